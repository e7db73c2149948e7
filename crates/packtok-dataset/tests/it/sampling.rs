//! Streams of split sides and planned batches, compared with plain reference implementations over
//! lists of documents.
//!
//! The Python oracle compares blocks and documents through the bindings.

use std::ops::Range;
use std::path::{Path, PathBuf};

use packtok_dataset::Error;
use packtok_dataset::files::file_set::Files;
use packtok_dataset::items::IdsMut;
use packtok_dataset::items::batch::{Batch, Filling, Segments, fill};
use packtok_dataset::items::items::{Items, Packing};
use packtok_dataset::items::token_stream::TokenStream;
use packtok_dataset::plans::best_fit::plan_best_fit;
use packtok_dataset::plans::plan::{BlockPlan, PlanWriter};
use packtok_dataset::plans::plan_file::{Key, Kind};
use packtok_dataset::plans::split::{
    Document, Side, SplitRuns, document_hash, key_by_hash, least_train_hash, write_by_hash,
};
use packtok_pbin::{Counts, Metadata, Replace, TokenWidth, Writer};
use proptest::prelude::*;

type Documents = Vec<Vec<u8>>;

const SEED: u64 = 5;
const FRACTION: f64 = 0.4;
const PAD: i32 = 1000;
const IGNORE: i32 = -100;

/// Files of short documents, ids in one byte.
fn files() -> impl Strategy<Value = Vec<Documents>> {
    let document = prop::collection::vec(any::<u8>(), 0..9);
    prop::collection::vec(prop::collection::vec(document, 0..8), 1..4)
}

fn write(folder: &Path, files: &[Documents]) -> Vec<PathBuf> {
    let paths = files.iter().enumerate().map(|(i, documents)| {
        let path = folder.join(format!("{i}.pbin"));
        let mut writer = Writer::create(&path, TokenWidth::U8, false).unwrap();
        for document in documents {
            writer.append(document, &[document.len() as u64]).unwrap();
        }
        let metadata = Metadata {
            counts: Counts {
                documents: documents.len() as u64,
                tokens: documents.concat().len() as u64,
                ..Counts::default()
            },
            ..Metadata::default()
        };
        let finished = writer.finish(&metadata, &[]).unwrap();
        finished.publish(Replace::Existing).unwrap();
        path
    });
    paths.collect()
}

fn open(paths: &[PathBuf]) -> Files {
    Files::open(paths, false).unwrap()
}

/// The stream of one side, and the documents that the reference implementation puts there.
fn side(
    folder: &Path,
    paths: &[PathBuf],
    files: &[Documents],
    side: Side,
) -> (TokenStream, Documents) {
    let split = folder.join("split");
    let key = key_by_hash(open(paths).fingerprint(), FRACTION, SEED);
    let mut start = 0;
    let documents: Documents = files.concat();
    let spans = documents.iter().map(|document| {
        let tokens = start..start + document.len() as u64;
        start = tokens.end;
        let bytes = &document[..];
        Ok(Document { tokens, bytes })
    });
    write_by_hash(&split, key, spans, TokenWidth::U8).unwrap();
    let runs = SplitRuns::open(&split, &open(paths).fingerprint(), side).unwrap();
    let is_on_side = |document: &Vec<u8>| {
        let is_held_out =
            document_hash(document, TokenWidth::U8, SEED) < least_train_hash(FRACTION);
        is_held_out == (side == Side::Validation)
    };
    let expected = documents.into_iter().filter(is_on_side).collect();
    (TokenStream::selected(open(paths), runs).unwrap(), expected)
}

/// Ranges of contiguous documents.
fn spans(documents: &[Vec<u8>]) -> Vec<Range<u64>> {
    let mut start = 0;
    let spans = documents.iter().map(|document| {
        start += document.len() as u64;
        start - document.len() as u64..start
    });
    spans.collect()
}

/// Items of a best-fit plan of a stream, and the pieces of each.
fn planned(
    folder: &Path,
    stream: TokenStream,
    context_length: u64,
) -> (Items, Vec<Vec<Range<u64>>>) {
    let path = folder.join("plan");
    let key = Key {
        kind: Kind::BestFit,
        options: [context_length, 0],
        data: stream.fingerprint(),
    };
    let mut writer = PlanWriter::create(&path, key).unwrap();
    let mut blocks = Vec::new();
    plan_best_fit(stream.documents(), context_length, &mut |pieces| {
        let ranges = pieces
            .iter()
            .map(|piece| piece.start..piece.start + u64::from(piece.len_tokens));
        blocks.push(ranges.collect());
        writer.push(pieces)
    })
    .unwrap();
    writer.publish(stream.num_tokens(), 0).unwrap();
    let plan = BlockPlan::open(&path, &stream.fingerprint()).unwrap();
    (Items::new(stream, Packing::Planned(plan)).unwrap(), blocks)
}

/// The arrays of one row and the lengths of its segments, computed token by token.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    input_ids: Vec<i64>,
    labels: Vec<i64>,
    position_ids: Vec<i64>,
    document_ids: Vec<i64>,
    loss_mask: Vec<bool>,
    segments: Vec<i32>,
}

impl Row {
    fn of(pieces: &[Range<u64>], documents: &[Vec<u8>], len: usize) -> Self {
        let mut row = Self::default();
        for (number, piece) in pieces.iter().enumerate() {
            let (document, span) = documents
                .iter()
                .zip(spans(documents))
                .find(|(_, span)| span.start <= piece.start && piece.end <= span.end)
                .expect("pieces stay within documents");
            for token in piece.clone() {
                let at = (token - span.start) as usize;
                let next = document.get(at + 1);
                row.input_ids.push(document[at].into());
                row.labels.push(next.map_or(IGNORE.into(), |&id| id.into()));
                row.loss_mask.push(next.is_some());
                row.position_ids.push((token - piece.start) as i64);
                row.document_ids.push(number as i64);
            }
            row.segments.push((piece.end - piece.start) as i32);
        }
        let padding = len - row.input_ids.len();
        row.input_ids.resize(len, PAD.into());
        row.labels.resize(len, IGNORE.into());
        row.position_ids.extend(0..padding as i64);
        row.document_ids.resize(len, -1);
        row.loss_mask.resize(len, false);
        row.segments.extend((padding > 0).then_some(padding as i32));
        row
    }
}

/// What `fill` writes for all items, as rows.
fn filled(items: &Items) -> Vec<Row> {
    let len = items.context_length().unwrap() as usize;
    let rows: Vec<(&Items, u64)> = (0..items.len()).map(|i| (items, i)).collect();
    let mut arrays = vec![vec![77i64; len * rows.len()]; 4];
    let mut loss_mask = vec![true; len * rows.len()];
    let [input_ids, labels, position_ids, document_ids] = &mut arrays[..] else {
        unreachable!("four were made");
    };
    let mut batch = Batch {
        input_ids: IdsMut::I64(input_ids),
        labels: Some(IdsMut::I64(labels)),
        position_ids: Some(IdsMut::I64(position_ids)),
        document_ids: Some(IdsMut::I64(document_ids)),
        loss_mask: Some(&mut loss_mask),
    };
    let filling = Filling {
        pad_token_id: PAD,
        ignore_index: IGNORE,
        aligned: false,
        segments: true,
        number_padding: false,
        loss_markers: None,
    };
    let segments = fill(&rows, filling, &mut batch).unwrap().unwrap();
    let lengths = lengths(&segments);
    let mut taken = 0;
    let rows = (0..rows.len()).map(|row| {
        let mut tokens = 0;
        let first = taken;
        while tokens < len {
            tokens += lengths[taken] as usize;
            taken += 1;
        }
        assert_eq!(tokens, len, "every row start is a boundary");
        let take = |array: &Vec<i64>| array[row * len..(row + 1) * len].to_vec();
        Row {
            input_ids: take(&arrays[0]),
            labels: take(&arrays[1]),
            position_ids: take(&arrays[2]),
            document_ids: take(&arrays[3]),
            loss_mask: loss_mask[row * len..(row + 1) * len].to_vec(),
            segments: lengths[first..taken].to_vec(),
        }
    });
    rows.collect()
}

fn lengths(segments: &Segments) -> Vec<i32> {
    let bounds = &segments.cu_seqlens;
    let lengths: Vec<i32> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(
        segments.max_seqlen,
        lengths.iter().copied().max().unwrap_or(0)
    );
    lengths
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_side_equals_the_stream_of_its_documents(files in files(), is_train: bool) {
        let folder = tempfile::tempdir().unwrap();
        let paths = write(folder.path(), &files);
        let which = if is_train { Side::Train } else { Side::Validation };
        let (stream, documents) = side(folder.path(), &paths, &files, which);
        let expected = spans(&documents);
        prop_assert_eq!(stream.num_documents(), documents.len() as u64);
        prop_assert_eq!(stream.num_tokens(), documents.concat().len() as u64);
        let walked: Vec<_> = stream.documents().collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(&walked, &expected);
        let looked_up = (0..stream.num_documents()).map(|i| stream.document(i).unwrap());
        prop_assert_eq!(looked_up.collect::<Vec<_>>(), expected);
        let tokens = documents.concat();
        for start in 0..=tokens.len() {
            for stop in start..=tokens.len() {
                let mut copied = vec![0u8; stop - start];
                stream.copy(start as u64..stop as u64, &mut copied).unwrap();
                prop_assert_eq!(&copied, &tokens[start..stop]);
            }
        }
    }

    #[test]
    fn documents_of_files_follow_each_other(files in files()) {
        let folder = tempfile::tempdir().unwrap();
        let stream = TokenStream::new(open(&write(folder.path(), &files)));
        let expected = spans(&files.concat());
        let walked: Vec<_> = stream.documents().collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(&walked, &expected);
        let looked_up = (0..stream.num_documents()).map(|i| stream.document(i).unwrap());
        prop_assert_eq!(looked_up.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn planned_batches_equal_those_of_the_reference(
        files in files(), context_length in 1..12u64, selected in any::<Option<bool>>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let paths = write(folder.path(), &files);
        let (stream, documents) = match selected {
            None => (TokenStream::new(open(&paths)), files.concat()),
            Some(true) => side(folder.path(), &paths, &files, Side::Train),
            Some(false) => side(folder.path(), &paths, &files, Side::Validation),
        };
        let (items, blocks) = planned(folder.path(), stream, context_length);
        let len = context_length as usize;
        let expected: Vec<Row> = blocks.iter().map(|pieces| Row::of(pieces, &documents, len)).collect();
        prop_assert_eq!(items.len(), blocks.len() as u64);
        prop_assert_eq!(filled(&items), expected);
        let tokens = documents.concat();
        for (i, pieces) in blocks.iter().enumerate() {
            let of_piece = |piece: &Range<u64>| tokens[piece.start as usize..piece.end as usize].to_vec();
            let expected: Vec<u8> = pieces.iter().flat_map(of_piece).collect();
            prop_assert_eq!(&items.copied::<u8>(i as u64).unwrap(), &expected);
            if let Some(bytes) = items.one_piece(i as u64).unwrap() {
                prop_assert_eq!(bytes, expected);
            }
        }
    }
}

#[test]
fn plans_and_splits_for_other_files_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let files = [vec![vec![1, 2, 3], vec![4]]];
    let paths = write(folder.path(), &files);
    let (stream, _) = side(folder.path(), &paths, &files, Side::Train);
    planned(folder.path(), TokenStream::new(open(&paths)), 4);
    let plan = |data| BlockPlan::open(&folder.path().join("plan"), &data);
    let error = plan(stream.fingerprint()).unwrap_err();
    assert!(matches!(error, Error::PlanFile { .. }), "{error}");

    write(folder.path(), &[vec![vec![1, 2, 3]]]);
    let other = open(&paths);
    let split = folder.path().join("split");
    let error = SplitRuns::open(&split, &other.fingerprint(), Side::Train).unwrap_err();
    assert!(matches!(error, Error::PlanFile { .. }), "{error}");

    // The totals expose files with a wrong fingerprint.
    let key = Key {
        kind: Kind::BestFit,
        options: [4, 0],
        data: other.fingerprint(),
    };
    let path = folder.path().join("lie");
    let writer = PlanWriter::create(&path, key).unwrap();
    writer.publish(4, 0).unwrap();
    let plan = BlockPlan::open(&path, &other.fingerprint()).unwrap();
    let error = Items::new(TokenStream::new(other), Packing::Planned(plan)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: the plan covers 4 tokens, the dataset has 3; delete the file to rebuild it",
            path.display()
        )
    );
}

#[test]
fn blocks_of_a_side_do_not_stay_within_files() {
    let folder = tempfile::tempdir().unwrap();
    let files = [vec![vec![1, 2, 3], vec![4]]];
    let paths = write(folder.path(), &files);
    let (stream, _) = side(folder.path(), &paths, &files, Side::Train);
    let packing = Packing::Fixed {
        block_size: 2,
        overlap: 0,
        by_file: true,
    };
    let error = Items::new(stream, packing).unwrap_err();
    assert!(matches!(error, Error::ByFileOfSplit));
}

#[test]
fn batches_with_more_tokens_than_32_bits_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write(folder.path(), &[vec![vec![1, 2, 3]]]);
    let packing = Packing::Document {
        block_size: 1 << 31,
    };
    let items = Items::new(TokenStream::new(open(&paths)), packing).unwrap();
    let mut batch = Batch {
        input_ids: IdsMut::I64(&mut []),
        labels: None,
        position_ids: None,
        document_ids: None,
        loss_mask: None,
    };
    let filling = Filling {
        pad_token_id: 0,
        ignore_index: IGNORE,
        aligned: false,
        segments: true,
        number_padding: false,
        loss_markers: None,
    };
    let error = fill(&[(&items, 0), (&items, 0)], filling, &mut batch).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a batch of 4294967294 tokens is too long for the 32-bit cu_seqlens; make it smaller"
    );
}

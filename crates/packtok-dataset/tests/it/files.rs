//! Plan files: a read returns what was written, and damage is rejected.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use packtok_dataset::plans::best_fit::plan_best_fit;
use packtok_dataset::plans::plan::{BlockPlan, PlanWriter, TokenSpan};
use packtok_dataset::plans::plan_file::{HEADER_BYTES, Key, Kind, PlanFault};
use packtok_dataset::plans::split::{Side, SplitRuns};
use packtok_dataset::plans::whole_documents::plan_whole_documents;
use packtok_dataset::{Error, Result};
use proptest::prelude::*;

use crate::reference;

const DATA: [u8; 32] = [7; 32];

fn key(block_len_tokens: u64) -> Key {
    Key {
        kind: Kind::BestFit,
        options: [block_len_tokens, 0],
        data: DATA,
    }
}

fn write(path: &Path, block_len_tokens: u64, blocks: &[Vec<(u64, u32)>], num_tokens: u64) {
    let mut writer =
        PlanWriter::create(path, key(block_len_tokens)).expect("a temporary file can be written");
    for block in blocks {
        let pieces: Vec<TokenSpan> = block
            .iter()
            .map(|&(start, len_tokens)| TokenSpan { start, len_tokens })
            .collect();
        writer
            .push(&pieces)
            .expect("a temporary file can be written");
    }
    writer
        .publish(num_tokens, 3)
        .expect("a temporary file can be written");
}

fn read(plan: &BlockPlan) -> Result<Vec<Vec<Range<u64>>>> {
    let blocks = 0..plan.num_blocks();
    blocks
        .map(|block| Ok(plan.pieces(block)?.collect()))
        .collect()
}

fn fault_of<T>(outcome: Result<T>) -> PlanFault {
    match outcome {
        Err(Error::PlanFile { fault, .. }) => fault,
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("no error"),
    }
}

fn seal(file: &mut [u8]) {
    let crc = crc32c(&file[..HEADER_BYTES - 4]);
    file[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}

#[test]
fn a_read_returns_what_was_written() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let path = folder.path().join("new/plan");
    write(&path, 10, &[vec![(0, 4), (9, 5)], vec![(4, 5)]], 14);
    let plan = BlockPlan::open(&path, &DATA).expect("the plan is valid");
    assert_eq!(
        read(&plan).expect("it is valid"),
        [vec![0..4, 9..14], vec![4..9]]
    );
    assert_eq!((plan.num_blocks(), plan.block_len_tokens()), (2, 10));
    assert_eq!(
        (plan.num_padding_tokens(), plan.num_dropped_tokens()),
        (6, 3)
    );
    assert_eq!((plan.kind(), plan.path()), (Kind::BestFit, &*path));
    plan.verify().expect("nothing is damaged");
    let listed = fs::read_dir(folder.path().join("new")).expect("the folder exists");
    assert_eq!(listed.count(), 1);

    let error = plan.pieces(2).map(drop).expect_err("there are two");
    let text = format!("{}: no block 2, the plan has 2", path.display());
    assert_eq!(error.to_string(), text);
}

/// A file written by the oracle.
fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/golden")
        .join(name)
}

#[test]
fn written_plans_equal_the_golden_files() {
    let lens = [25, 4, 1, 0, 12, 8];
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let path = folder.path().join("plan");
    for (name, kind) in [
        ("best_fit.plan", Kind::BestFit),
        ("megatron.plan", Kind::WholeDocuments),
    ] {
        let mut writer = PlanWriter::create(&path, Key { kind, ..key(10) })
            .expect("a temporary file can be written");
        let mut emit = |pieces: &[TokenSpan]| writer.push(pieces);
        let documents = reference::results(&lens);
        let num_dropped = match kind {
            Kind::WholeDocuments => plan_whole_documents(documents, 10, &mut emit),
            _ => plan_best_fit(documents, 10, &mut emit).map(|()| 0),
        };
        let num_dropped = num_dropped.expect("this cannot fail");
        writer
            .publish(50, num_dropped)
            .expect("a temporary file can be written");
        let expected = fs::read(golden(name)).expect("it is in the repository");
        assert_eq!(fs::read(&path).expect("it was written"), expected);
    }
}

#[test]
fn golden_files_are_read() {
    let plan = BlockPlan::open(&golden("megatron.plan"), &DATA).expect("the plan is valid");
    assert_eq!(
        read(&plan).expect("it is valid"),
        [[0..10], [25..35], [30..40]]
    );
    assert_eq!((plan.num_dropped_tokens(), plan.num_tokens()), (25, 50));
    let open = |side| SplitRuns::open(&golden("split_by_hash.plan"), &DATA, side);
    let [train, validation] =
        [Side::Train, Side::Validation].map(|side| open(side).expect("the split is valid"));
    assert_eq!((train.num_documents(), train.num_tokens()), (2, 7));
    assert_eq!(
        (validation.num_documents(), validation.num_tokens()),
        (2, 2)
    );
    assert_eq!(train.document(1).expect("it exists"), 3);
    assert_eq!(validation.token(1).expect("it exists"), (4, 1));
}

#[test]
fn a_plan_of_an_empty_stream_has_no_blocks() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let path = folder.path().join("plan");
    write(&path, 10, &[], 0);
    let plan = BlockPlan::open(&path, &DATA).expect("the plan is valid");
    assert_eq!((plan.num_blocks(), plan.num_padding_tokens()), (0, 0));
}

#[test]
fn a_plan_for_other_data_is_rejected() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let path = folder.path().join("plan");
    write(&path, 10, &[vec![(0, 4)]], 4);
    let error = BlockPlan::open(&path, &[8; 32]).expect_err("the data are others");
    assert_eq!(
        error.to_string(),
        format!(
            "{}: file was built as best_fit with options 10 and 0 from data 0707070707070707, expected as best_fit with \
             options 10 and 0 from data 0808080808080808; the data or the options have changed; delete the file to rebuild it",
            path.display()
        )
    );
}

#[test]
fn opening_detects_every_damaged_byte_of_the_header() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let path = folder.path().join("plan");
    write(&path, 10, &[vec![(0, 4)]], 4);
    let file = fs::read(&path).expect("it was written");
    for at in 0..HEADER_BYTES {
        let mut damaged = file.clone();
        damaged[at] ^= 0x40;
        fs::write(&path, damaged).expect("a temporary file can be written");
        let fault = fault_of(BlockPlan::open(&path, &DATA));
        match at {
            0..8 => assert_eq!(fault, PlanFault::Magic),
            8..12 => assert!(matches!(fault, PlanFault::Version { .. })),
            _ => assert!(
                matches!(fault, PlanFault::HeaderChecksum { .. }),
                "{at}: {fault}"
            ),
        }
    }
}

#[test]
fn verify_detects_every_damaged_byte_of_the_body() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let path = folder.path().join("plan");
    write(&path, 10, &[vec![(0, 4), (9, 5)], vec![(4, 5)]], 14);
    let file = fs::read(&path).expect("it was written");
    for at in HEADER_BYTES..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 1;
        fs::write(&path, damaged).expect("a temporary file can be written");
        let plan = BlockPlan::open(&path, &DATA).expect("the header is valid");
        assert!(matches!(
            fault_of(plan.verify()),
            PlanFault::BodyChecksum { .. }
        ));
    }
}

#[test]
fn a_file_truncated_anywhere_is_rejected() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let path = folder.path().join("plan");
    write(&path, 10, &[vec![(0, 4)]], 4);
    let file = fs::read(&path).expect("it was written");
    for len in 0..file.len() {
        fs::write(&path, &file[..len]).expect("a temporary file can be written");
        let (found, expected) = (len as u64, file.len() as u64);
        let fault = fault_of(BlockPlan::open(&path, &DATA));
        if len < HEADER_BYTES {
            assert_eq!(fault, PlanFault::TooShort { found });
        } else {
            assert_eq!(fault, PlanFault::Length { found, expected });
        }
    }
}

#[test]
fn counts_that_exceed_the_body_are_rejected() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let path = folder.path().join("plan");
    write(&path, 10, &[vec![(0, 4)]], 4);
    let file = fs::read(&path).expect("it was written");
    for (at, value) in [
        (64, 2),
        (64, u64::MAX),
        (72, u64::MAX / 12),
        (104, u64::MAX),
    ] {
        let mut damaged = file.clone();
        damaged[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
        seal(&mut damaged);
        fs::write(&path, damaged).expect("a temporary file can be written");
        let fault = fault_of(BlockPlan::open(&path, &DATA));
        assert!(matches!(fault, PlanFault::Length { .. }), "{at}: {fault}");
    }
}

#[test]
fn an_out_of_range_entry_is_an_error_at_access() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let path = folder.path().join("plan");
    // Past the stream, past the end of all numbers, longer than a block, empty, and a valid one.
    let pieces = [(3, 2), (u64::MAX, 1), (0, 4), (0, 0), (1, 3)];
    let blocks: Vec<_> = pieces.iter().map(|&piece| vec![piece]).collect();
    write(&path, 3, &blocks, 4);
    let plan = BlockPlan::open(&path, &DATA).expect("the header is valid");
    for block in 0..4 {
        let expected = PlanFault::Entry {
            what: "block",
            number: block,
        };
        assert_eq!(fault_of(plan.pieces(block).map(drop)), expected);
    }
    assert_eq!(
        plan.pieces(4).expect("it is valid").collect::<Vec<_>>(),
        [1..4]
    );
}

proptest! {
    #[test]
    fn any_blocks_are_read_as_they_were_written(
        blocks in prop::collection::vec(prop::collection::vec((0u64..1 << 40, 1u32..5), 1..6), 0..40),
    ) {
        let folder = tempfile::tempdir().expect("a temporary file can be written");
        let path = folder.path().join("plan");
        write(&path, 20, &blocks, 1 << 41);
        let plan = BlockPlan::open(&path, &DATA).expect("the plan is valid");
        let range = |&(start, len): &(u64, u32)| start..start + u64::from(len);
        let expected: Vec<Vec<_>> = blocks
            .iter()
            .map(|block| block.iter().map(range).collect())
            .collect();
        prop_assert_eq!(read(&plan).expect("it is valid"), expected);
    }
}

//! Joins equal packing in one run, and incompatible parts are rejected.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use packtok_pbin::{
    Error, JoinOptions, Metadata, Padding, PartInfo, Reader, Replace, Side, Source, SpecialToken,
    TokenWidth, TokenizerInfo, join,
};
use tempfile::TempDir;

use crate::fixture::{DOCUMENTS, documents_of, example_metadata, golden, proceed, write};

const NEVER: JoinOptions = JoinOptions {
    replace: Replace::Never,
    declared_tokenizer: None,
};

struct Parts {
    folder: TempDir,
    paths: Vec<PathBuf>,
}

impl Parts {
    /// Writes one file per list of documents, with the metadata that `metadata` returns for its
    /// number.
    fn new(parts: &[&[Vec<u32>]], metadata: impl Fn(usize) -> Metadata) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for (i, documents) in parts.iter().enumerate() {
            let path = folder.path().join(format!("part{i}.pbin"));
            write(&path, TokenWidth::U16, documents, metadata(i), &[source(i)]);
            paths.push(path);
        }
        Self { folder, paths }
    }

    fn dst(&self) -> PathBuf {
        self.folder.path().join("joined.pbin")
    }

    /// The error message of joining the parts, without the folder.
    fn refusal(&self, options: &JoinOptions) -> String {
        let error = join(&self.paths, &self.dst(), options, &mut proceed).unwrap_err();
        assert!(!self.dst().exists());
        assert_eq!(
            fs::read_dir(self.folder.path()).unwrap().count(),
            self.paths.len()
        );
        error
            .to_string()
            .replace(&format!("{}/", self.folder.path().display()), "")
    }
}

fn source(i: usize) -> Source {
    Source {
        path: format!("{i}.jsonl"),
        bytes: i as u64,
        crc32c: None,
        format: None,
        input: None,
    }
}

fn two_parts() -> [Vec<Vec<u32>>; 2] {
    [vec![vec![1, 2, 3], vec![]], vec![vec![4], vec![5, 50256]]]
}

fn two(metadata: impl Fn(usize) -> Metadata) -> Parts {
    let [a, b] = two_parts();
    Parts::new(&[&a, &b], metadata)
}

/// The bytes before the metadata, which must equal those of a file packed in one run.
fn comparable(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let metadata = bytes
        .windows(10)
        .position(|window| window == b"{\"writer\":")
        .unwrap();
    bytes[..metadata].to_vec()
}

#[test]
fn a_joined_file_equals_one_packed_in_one_run() {
    let parts = two(|_| example_metadata());
    let mut last_bytes = 0;
    let mut progress = |bytes| {
        assert!(bytes >= last_bytes);
        last_bytes = bytes;
        ControlFlow::Continue(())
    };
    let summary = join(&parts.paths, &parts.dst(), &NEVER, &mut progress).unwrap();
    let sizes = parts
        .paths
        .iter()
        .map(|path| fs::metadata(path).unwrap().len());
    assert_eq!(last_bytes, sizes.sum::<u64>());

    let at_once = parts.folder.path().join("at_once.pbin");
    let written = write(
        &at_once,
        TokenWidth::U16,
        &two_parts().concat(),
        example_metadata(),
        &[source(0), source(1)],
    );
    assert_eq!((summary.documents, summary.tokens), (4, 6));
    assert_eq!(summary.data_crc32c, written.data_crc32c);
    assert_eq!(comparable(&parts.dst()), comparable(&at_once));

    let (joined, at_once) = (
        Reader::open(&parts.dst()).unwrap(),
        Reader::open(&at_once).unwrap(),
    );
    joined.verify(&mut proceed).unwrap();
    assert_eq!(documents_of(&joined), two_parts().concat());
    assert_eq!(joined.sources().unwrap(), at_once.sources().unwrap());
    let crc = |path: &Path| Reader::open(path).unwrap().data_crc32c().unwrap().unwrap();
    let part = |name: &str, tokens, path| PartInfo {
        name: name.into(),
        documents: 2,
        tokens,
        data_crc32c: crc(path),
    };
    let listed = vec![
        part("part0.pbin", 3, &parts.paths[0]),
        part("part1.pbin", 3, &parts.paths[1]),
    ];
    let expected = Metadata {
        parts: listed,
        ..at_once.metadata().unwrap().unwrap().clone()
    };
    assert_eq!(joined.metadata().unwrap(), Some(&expected));
}

#[test]
fn parts_without_a_trailer_are_joined_if_the_tokenizer_is_specified() {
    let folder = tempfile::tempdir().unwrap();
    let dst = folder.path().join("joined.pbin");
    let parts = [golden("plain_u16.pbin"), golden("plain_legacy.pbin")];
    let error = join(&parts, &dst, &NEVER, &mut proceed).unwrap_err();
    let text = "file does not record which tokenizer packed it; give it with --tokenizer (tokenizer) to confirm it";
    assert_eq!(error.to_string(), format!("{}: {text}", parts[0].display()));

    let declared_tokenizer = Some(TokenizerInfo {
        name: "t".into(),
        fingerprint: "f".into(),
        vocab_size: 300,
    });
    let options = JoinOptions {
        replace: Replace::Never,
        declared_tokenizer: declared_tokenizer.clone(),
    };
    join(&parts, &dst, &options, &mut proceed).unwrap();
    let joined = Reader::open(&dst).unwrap();
    joined.verify(&mut proceed).unwrap();
    assert_eq!(documents_of(&joined), [DOCUMENTS, DOCUMENTS].concat());
    let metadata = joined.metadata().unwrap().unwrap();
    assert_eq!(metadata.tokenizer, declared_tokenizer);
    assert_eq!(
        (
            metadata.counts.documents,
            metadata.counts.tokens,
            metadata.counts.lines
        ),
        (8, 12, 0)
    );

    let known = two(|_| example_metadata());
    let text = "part0.pbin: tokenizer fingerprint is \"sha256:00\", expected \"f\", that of the given tokenizer";
    assert_eq!(known.refusal(&options), text);
}

#[test]
fn incompatible_parts_are_rejected() {
    type Edit = fn(&mut Metadata);
    let cases: [(Edit, &str); 7] = [
        (
            |metadata| metadata.tokenizer.as_mut().unwrap().fingerprint = "other".into(),
            "tokenizer fingerprint is \"other\", in part0.pbin it is \"sha256:00\"",
        ),
        (
            |metadata| {
                metadata.eod = Some(SpecialToken {
                    token: "</s>".into(),
                    id: 2,
                })
            },
            "EOD is \"</s>\" with id 2, in part0.pbin it is \"<|endoftext|>\" with id 50256",
        ),
        (
            |metadata| {
                metadata.bos = Some(SpecialToken {
                    token: "<s>".into(),
                    id: 1,
                })
            },
            "BOS is \"<s>\" with id 1, in part0.pbin it is unset",
        ),
        (
            |metadata| metadata.options.field = ".b".into(),
            "field is \".b\", in part0.pbin it is \".text\"",
        ),
        (
            |metadata| metadata.options.truncate_to = Some(5),
            "truncate_to is 5, in part0.pbin it is unset",
        ),
        (
            |metadata| metadata.options.truncate_side = Side::Left,
            "truncate_side is \"left\", in part0.pbin it is \"right\"",
        ),
        (
            |metadata| {
                metadata.options.padding = Some(Padding {
                    length: 8,
                    id: 3,
                    side: Side::Left,
                })
            },
            "padding is {\"length\":8,\"id\":3,\"side\":\"left\"}, in part0.pbin it is unset",
        ),
    ];
    for (edit, text) in cases {
        let parts = two(|i| {
            let mut metadata = example_metadata();
            if i == 1 {
                edit(&mut metadata);
            }
            metadata
        });
        assert_eq!(
            parts.refusal(&NEVER),
            format!("part1.pbin: {text}; pack all parts with the same options")
        );
    }
}

#[test]
fn parts_of_different_widths_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let declared_tokenizer = Some(TokenizerInfo {
        name: "t".into(),
        fingerprint: "f".into(),
        vocab_size: 300,
    });
    let options = JoinOptions {
        replace: Replace::Never,
        declared_tokenizer,
    };
    let parts = [golden("plain_u16.pbin"), golden("plain_u32.pbin")];
    let error = join(
        &parts,
        &folder.path().join("joined.pbin"),
        &options,
        &mut proceed,
    )
    .unwrap_err();
    let (first, second) = (parts[0].display(), parts[1].display());
    let text = format!(
        "{second}: tokens are 4 bytes wide, in {first} they are 2; pack both with the same tokenizer"
    );
    assert_eq!(error.to_string(), text);
}

#[test]
fn copying_detects_a_damaged_part() {
    let parts = two(|_| example_metadata());
    let mut bytes = fs::read(&parts.paths[1]).unwrap();
    bytes[12] ^= 1;
    fs::write(&parts.paths[1], &bytes).unwrap();
    let text = parts.refusal(&NEVER);
    assert!(
        text.starts_with("part1.pbin: data at bytes 12..18: CRC32C is "),
        "{text}"
    );
}

#[test]
fn an_output_that_exists_or_is_a_part_is_rejected() {
    let parts = two(|_| example_metadata());
    let replace = JoinOptions {
        replace: Replace::Existing,
        declared_tokenizer: None,
    };
    let error = join(&parts.paths, &parts.paths[1], &replace, &mut proceed).unwrap_err();
    let text = "file is both a part and the output of the join; choose another output";
    assert_eq!(
        error.to_string(),
        format!("{}: {text}", parts.paths[1].display())
    );
    fs::write(parts.dst(), b"old").unwrap();
    assert!(matches!(
        join(&parts.paths, &parts.dst(), &NEVER, &mut proceed),
        Err(Error::Exists { .. })
    ));
    join(&parts.paths, &parts.dst(), &replace, &mut proceed).unwrap();
    assert_eq!(
        documents_of(&Reader::open(&parts.dst()).unwrap()),
        two_parts().concat()
    );
}

#[test]
fn empty_and_cancelled_joins_leave_no_files() {
    let parts = two(|_| example_metadata());
    let error = join(&[], &parts.dst(), &NEVER, &mut proceed).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: no parts to join; give at least one",
            parts.dst().display()
        )
    );
    let error = join(&parts.paths, &parts.dst(), &NEVER, &mut |_| {
        ControlFlow::Break(())
    })
    .unwrap_err();
    assert!(matches!(error, Error::Cancelled));
    assert_eq!(fs::read_dir(parts.folder.path()).unwrap().count(), 2);
}

//! Train and validation sides of documents.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use packtok_dataset::plans::plan_file::{HEADER_BYTES, Key, PlanFault};
use packtok_dataset::plans::split::{
    Document, Side, SplitRuns, document_hash, key_at, key_by_hash, least_train_hash, write_at,
    write_by_hash,
};
use packtok_dataset::{Error, Result};
use packtok_pbin::TokenWidth;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::reference;

const DATA: [u8; 32] = [7; 32];
const SIDES: [Side; 2] = [Side::Train, Side::Validation];

/// A split in its own temporary folder.
struct Split {
    _folder: TempDir,
    path: PathBuf,
}

impl Split {
    fn new(write: impl FnOnce(&Path) -> Result<()>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary file can be written");
        let path = folder.path().join("split");
        write(&path).expect("a temporary file can be written");
        Self {
            _folder: folder,
            path,
        }
    }

    fn by_hash(documents: &[Vec<u8>], fraction: f64, seed: u64) -> Self {
        let lens: Vec<u64> = documents.iter().map(|ids| ids.len() as u64).collect();
        let spans = reference::documents(&lens);
        let documents = spans
            .into_iter()
            .zip(documents)
            .map(|(tokens, bytes)| Ok(Document { tokens, bytes }));
        let key = key_by_hash(DATA, fraction, seed);
        Self::new(|path| write_by_hash(path, key, documents, TokenWidth::U8))
    }

    fn at(lens: &[u64], document: usize) -> Self {
        let (train, all) = (lens[..document].iter().sum(), lens.iter().sum());
        let key = key_at(DATA, document as u64);
        Self::new(|path| write_at(path, key, train, lens.len() as u64, all))
    }

    fn open(&self, side: Side) -> SplitRuns {
        let runs = SplitRuns::open(&self.path, &DATA, side).expect("the split is valid");
        assert_eq!((runs.side(), runs.path()), (side, &*self.path));
        runs.verify().expect("nothing is damaged");
        runs
    }

    /// The documents of a side, as numbers among all documents.
    fn documents(&self, side: Side) -> Vec<u64> {
        let runs = self.open(side);
        let documents = (0..runs.num_documents()).map(|i| runs.document(i));
        documents
            .collect::<Result<_>>()
            .expect("the split is valid")
    }

    /// The tokens of a side, as positions among all tokens.
    fn tokens(&self, side: Side) -> Vec<u64> {
        let runs = self.open(side);
        let tokens = (0..runs.num_tokens()).map(|i| Ok(runs.token(i)?.0));
        tokens.collect::<Result<_>>().expect("the split is valid")
    }
}

/// Documents of up to three random ids, some of them empty.
fn documents() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 0..80)
}

fn tokens_of(lens: &[u64], documents: &[u64]) -> Vec<u64> {
    let spans = reference::documents(lens);
    documents
        .iter()
        .flat_map(|&i| spans[i as usize].clone())
        .collect()
}

#[test]
fn the_documents_from_one_on_are_held_out() {
    let split = Split::at(&[3, 0, 2, 4], 2);
    assert_eq!(split.documents(Side::Train), [0, 1]);
    assert_eq!(split.documents(Side::Validation), [2, 3]);
    assert_eq!(split.tokens(Side::Train), [0, 1, 2]);
    assert_eq!(split.tokens(Side::Validation), [3, 4, 5, 6, 7, 8]);
    let runs = split.open(Side::Validation);
    assert_eq!(runs.token(1).expect("it exists"), (4, 5));
    let run = runs.run_of_document(1).expect("it exists");
    assert_eq!((run.documents, run.tokens), (2..4, 3..9));
    assert_eq!(
        (run.first_virtual_document, run.first_virtual_token),
        (0, 0)
    );
}

#[test]
fn either_side_may_be_empty() {
    for (document, side) in [(0, Side::Train), (3, Side::Validation)] {
        let split = Split::at(&[3, 1, 2], document);
        assert!(split.documents(side).is_empty() && split.tokens(side).is_empty());
        let other = SIDES
            .into_iter()
            .find(|&other| other != side)
            .expect("there are two");
        assert_eq!(split.documents(other), [0, 1, 2]);
        assert_eq!(split.tokens(other).len(), 6);
    }
}

#[test]
fn a_split_beyond_the_end_is_rejected() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let path = folder.path().join("split");
    let error = write_at(&path, key_at(DATA, 4), 6, 3, 6).expect_err("there are three");
    assert_eq!(
        error.to_string(),
        "the validation side starts at document 4, but the data has 3 documents"
    );
    assert!(!path.exists());
}

#[test]
fn nothing_or_everything_is_held_out_by_fractions_0_and_1() {
    let documents: Vec<Vec<u8>> = (0..=255).map(|id| vec![id]).collect();
    let all: Vec<u64> = (0..256).collect();
    assert_eq!(
        Split::by_hash(&documents, 0.0, 1).documents(Side::Train),
        all
    );
    assert_eq!(
        Split::by_hash(&documents, 1.0, 1).documents(Side::Validation),
        all
    );
}

#[test]
fn about_the_fraction_is_held_out_and_seeds_give_different_splits() {
    let documents: Vec<Vec<u8>> = (0..20_000u32).map(|i| i.to_le_bytes().to_vec()).collect();
    let first = Split::by_hash(&documents, 0.1, 1).documents(Side::Validation);
    let second = Split::by_hash(&documents, 0.1, 2).documents(Side::Validation);
    let both = first
        .iter()
        .filter(|i| second.binary_search(i).is_ok())
        .count();
    assert!((1800..2200).contains(&first.len()), "{}", first.len());
    assert!((1800..2200).contains(&second.len()), "{}", second.len());
    assert!((100..300).contains(&both), "{both}");
}

#[test]
fn sides_options_and_data_have_distinct_fingerprints() {
    let documents = vec![vec![1], vec![2]];
    let fingerprint = |split: &Split, side| split.open(side).fingerprint();
    let split = Split::by_hash(&documents, 0.5, 1);
    let train = fingerprint(&split, Side::Train);
    assert_eq!(
        fingerprint(&Split::by_hash(&documents, 0.5, 1), Side::Train),
        train
    );
    assert_ne!(fingerprint(&split, Side::Validation), train);
    assert_ne!(
        fingerprint(&Split::by_hash(&documents, 0.5, 2), Side::Train),
        train
    );
    assert_ne!(
        fingerprint(&Split::by_hash(&documents, 0.25, 1), Side::Train),
        train
    );
    assert_ne!(fingerprint(&Split::at(&[1, 1], 1), Side::Train), train);
    let error =
        SplitRuns::open(&split.path, &[8; 32], Side::Train).expect_err("the data are others");
    assert!(matches!(
        error,
        Error::PlanFile {
            fault: PlanFault::Key { .. },
            ..
        }
    ));
}

#[test]
fn a_damaged_split_gives_errors_only() {
    let split = Split::by_hash(&(0..64).map(|id| vec![id]).collect::<Vec<_>>(), 0.5, 1);
    let file = fs::read(&split.path).expect("it was written");
    let mut num_errors = 0;
    for at in HEADER_BYTES..file.len() {
        for value in [0, 0xff, file[at] ^ 1] {
            let mut damaged = file.clone();
            damaged[at] = value;
            fs::write(&split.path, damaged).expect("a temporary file can be written");
            for side in SIDES {
                num_errors += usize::from(!is_usable(&split.path, side));
            }
        }
    }
    assert!(num_errors > 0);
}

/// Whether every query of a side succeeds.
fn is_usable(path: &Path, side: Side) -> bool {
    let Ok(runs) = SplitRuns::open(path, &DATA, side) else {
        return false;
    };
    let documents = (0..runs.num_documents().min(300)).map(|i| runs.document(i));
    let tokens = (0..runs.num_tokens().min(300)).map(|i| Ok(runs.token(i)?.0));
    documents
        .chain(tokens)
        .all(|place: Result<u64>| place.is_ok())
}

proptest! {
    #[test]
    fn a_side_by_hash_depends_only_on_the_tokens(
        documents in documents(),
        fraction in 0.0f64..1.0,
        seed in any::<u64>(),
    ) {
        let split = Split::by_hash(&documents, fraction, seed);
        let lens: Vec<u64> = documents.iter().map(|ids| ids.len() as u64).collect();
        let is_held_out = |i: &u64| {
            let ids = &documents[*i as usize];
            document_hash(ids, TokenWidth::U8, seed) < least_train_hash(fraction)
        };
        let (validation, train): (Vec<u64>, Vec<u64>) =
            (0..documents.len() as u64).partition(is_held_out);
        for (side, expected) in [(Side::Train, train), (Side::Validation, validation)] {
            prop_assert_eq!(split.documents(side), expected.clone());
            prop_assert_eq!(split.tokens(side), tokens_of(&lens, &expected));
        }
    }

    #[test]
    fn a_document_keeps_its_side_when_others_are_added_or_removed(
        documents in documents(),
        added in documents(),
        removed in any::<prop::sample::Index>(),
    ) {
        prop_assume!(!documents.is_empty());
        let removed = removed.index(documents.len());
        let mut changed = documents.clone();
        changed.remove(removed);
        changed.extend(added);
        let before = Split::by_hash(&documents, 0.5, 3).documents(Side::Validation);
        let after = Split::by_hash(&changed, 0.5, 3).documents(Side::Validation);
        let kept: Vec<u64> = before
            .into_iter()
            .filter(|&i| i != removed as u64)
            .map(|i| i - u64::from(i > removed as u64))
            .collect();
        let of_before = after.into_iter().filter(|&i| i < documents.len() as u64 - 1);
        prop_assert_eq!(of_before.collect::<Vec<_>>(), kept);
    }

    #[test]
    fn sides_from_a_document_on_are_a_prefix_and_a_suffix(
        lens in prop::collection::vec(0u64..5, 0..40),
        document in any::<prop::sample::Index>(),
    ) {
        let document = document.index(lens.len() + 1);
        let split = Split::at(&lens, document);
        let all: Vec<u64> = (0..lens.len() as u64).collect();
        let (train, validation) = all.split_at(document);
        for (side, expected) in [(Side::Train, train), (Side::Validation, validation)] {
            prop_assert_eq!(split.documents(side), expected.to_vec());
            prop_assert_eq!(split.tokens(side), tokens_of(&lens, expected));
        }
    }

    #[test]
    fn a_token_is_followed_by_the_rest_of_its_run(
        documents in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..4), 0..80),
    ) {
        let split = Split::by_hash(&documents, 0.5, 5);
        for side in SIDES {
            let (runs, tokens) = (split.open(side), split.tokens(side));
            for (i, &token) in (0..).zip(&tokens) {
                let (first, rest) = runs.token(i).expect("it exists");
                prop_assert_eq!(first, token);
                let expected: Range<u64> = token..token + rest;
                prop_assert!(tokens[i as usize..].starts_with(&expected.collect::<Vec<_>>()));
                prop_assert_ne!(tokens.get(i as usize + rest as usize), Some(&(token + rest)));
            }
        }
    }
}

#[test]
fn keys_contain_the_options() {
    let Key { options, .. } = key_by_hash(DATA, 0.5, 9);
    assert_eq!(options, [9, 1 << 63]);
}

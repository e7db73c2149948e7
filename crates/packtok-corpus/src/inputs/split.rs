//! The splits of a dataset (`train`, `validation`, `test`), recognized by the names of its files
//! and folders as Hugging Face `datasets` does.
//!
//! `datasets` knows three layouts and uses the first that any file matches: names of the form
//! `data/SPLIT-00000-of-00001.*` with any split name, folders named after a split, and files named
//! after a split.

/// The split of all files if no name mentions a split.
const TRAIN: &str = "train";

/// The splits, and the words that denote them in names.
const WORDS: [(&str, &[&str]); 3] = [
    (TRAIN, &["train", "training"]),
    ("validation", &["validation", "valid", "dev", "val"]),
    ("test", &["test", "testing", "eval", "evaluation"]),
];

/// Folder of the files whose names may contain any split name.
const DATA_FOLDER: &str = "data/";

/// The splits of each file, given by its path below the folder of the dataset. A file can have
/// several splits or none. If no file names a split, all of them belong to `train`.
pub(crate) fn splits<'a>(names: &'a [&'a str]) -> Vec<Vec<&'a str>> {
    let layouts: [fn(&'a str) -> Vec<&'a str>; 3] =
        [of_shard, |name| of_folders(name), |name| of_file_name(name)];
    let mut splits_by_layout = layouts.iter().map(|layout| {
        let splits = names.iter().map(|name| layout(name));
        splits.collect::<Vec<_>>()
    });
    let names_any = |splits: &Vec<Vec<&str>>| splits.iter().any(|of_file| !of_file.is_empty());
    splits_by_layout
        .find(names_any)
        .unwrap_or_else(|| vec![vec![TRAIN]; names.len()])
}

/// The distinct splits of the files, in the order in which messages list them.
pub(crate) fn all_splits(splits: &[Vec<&str>]) -> Vec<String> {
    let rank = |split: &str| WORDS.iter().position(|(word, _)| *word == split);
    let mut all: Vec<&str> = splits.iter().flatten().copied().collect();
    all.sort_unstable_by_key(|split| (rank(split).unwrap_or(WORDS.len()), *split));
    all.dedup();
    all.into_iter().map(str::to_owned).collect()
}

/// The split in a name such as `data/SPLIT-00000-of-00001.parquet`.
fn of_shard(name: &str) -> Vec<&str> {
    let file = name.strip_prefix(DATA_FOLDER);
    let file = file.filter(|file| !file.contains('/')).unwrap_or("");
    let is_numbers = |text: &str| {
        let digits = |range| {
            let digits: Option<&[u8]> = text.as_bytes().get(range);
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
        };
        digits(0..5) && text.as_bytes().get(5..9) == Some(b"-of-") && digits(9..14)
    };
    let is_end = |start: usize| {
        let end = &file[start + 1..];
        is_numbers(end) && end[14..].contains('.')
    };
    let mut hyphens = file.rmatch_indices('-').map(|(start, _)| start);
    let end = hyphens.find(|&start| start > 0 && is_end(start));
    end.map(|end| &file[..end]).into_iter().collect()
}

/// The splits after which the parent folders of the file are named.
fn of_folders(name: &str) -> Vec<&'static str> {
    let folders = name.rsplit_once('/').map_or("", |(folders, _)| folders);
    of_words(|word| {
        folders
            .split('/')
            .any(|folder| has_word(folder, word, true))
    })
}

/// The splits after which the file is named.
fn of_file_name(name: &str) -> Vec<&'static str> {
    let file = name.rsplit('/').next().unwrap_or(name);
    of_words(|word| has_word(file, word, false))
}

fn of_words(mut has: impl FnMut(&str) -> bool) -> Vec<&'static str> {
    let splits = WORDS.iter();
    let splits = splits.filter(|(_, words)| words.iter().any(|word| has(word)));
    splits.map(|(split, _)| *split).collect()
}

/// Whether a name contains `word` between separators or the ends of the name. `may_end` allows the
/// word at the end of the name; in a file name, a separator must follow it.
fn has_word(name: &str, word: &str, may_end: bool) -> bool {
    let is_separator = |c: char| matches!(c, '-' | '.' | '_' | ' ' | '0'..='9');
    // A word cannot overlap itself, so `match_indices` finds every occurrence.
    name.match_indices(word).any(|(start, _)| {
        let (before, after) = (&name[..start], &name[start + word.len()..]);
        (before.is_empty() || before.ends_with(is_separator))
            && (after.starts_with(is_separator) || may_end && after.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Vec<String> {
        let splits = splits(names);
        splits.iter().map(|splits| splits.join("+")).collect()
    }

    #[test]
    fn words_in_names_are_splits() {
        assert_eq!(
            of(&[
                "train.jsonl",
                "a-training-1.jsonl",
                "c4-validation.00000-of-00008.json.gz",
                "x/dev2.jsonl",
                "val.jsonl",
                "my test.jsonl",
                "eval_1.jsonl",
                "trainer.jsonl",
                "mytrain.jsonl",
                "Train.jsonl",
                "train_test.jsonl",
            ]),
            [
                "train",
                "train",
                "validation",
                "validation",
                "validation",
                "test",
                "test",
                "",
                "",
                "",
                "train+test"
            ]
        );
    }

    #[test]
    fn folders_come_before_file_names_and_shards_before_both() {
        assert_eq!(
            of(&["train/a.jsonl", "x/test-1/b.jsonl", "test.jsonl"]),
            ["train", "test", ""]
        );
        assert_eq!(
            of(&[
                "data/en.gb-00000-of-00002.parquet",
                "data/train-00001-of-00002-a1b2.parquet",
                "data/train-1-of-2.parquet",
                "data/sub/test-00000-of-00001.parquet",
                "test/a.parquet",
            ]),
            ["en.gb", "train", "", "", ""]
        );
    }

    #[test]
    fn files_without_splits_are_train() {
        assert_eq!(of(&["a.jsonl", "b.jsonl"]), ["train", "train"]);
        let names = ["x-test.jsonl", "train.jsonl", "z/dev.jsonl"];
        assert_eq!(all_splits(&splits(&names)), ["train", "validation", "test"]);
    }
}

//! Selects which files of the inputs are read.

use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use crate::Format;
use crate::error::{Error, Result};

/// The split name that selects the files of all splits.
const ALL_SPLITS: &str = "all";

/// The selection of the files of the inputs that are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The format of all inputs; `None` to derive each from its name or content.
    pub format: Option<Format>,
    /// Files and folders to leave out.
    pub(crate) ignore: Vec<Pattern>,
    /// The split of a folder to read; `None` for all files.
    pub(crate) split: Option<String>,
    /// The folder against which relative lines of lists are resolved; `None` for the folder of
    /// each list.
    pub(crate) root: Option<PathBuf>,
}

impl Selection {
    /// A selection that leaves out the files and folders matching a glob of `ignore`. A folder
    /// stands for the files of `split`, or for all of its files if `split` is `None` or `all`.
    ///
    /// # Errors
    /// A glob is invalid.
    pub fn new(format: Option<Format>, ignore: &[String], split: Option<&str>) -> Result<Self> {
        let pattern = |glob: &String| {
            // A relative pattern may match the end of a path, starting at any component.
            let whole = if glob.starts_with('/') {
                glob.clone()
            } else {
                format!("**/{glob}")
            };
            Pattern::new(whole.trim_end_matches('/')).map_err(|source| Error::BadGlob {
                pattern: glob.clone(),
                source,
            })
        };
        Ok(Self {
            format,
            ignore: ignore.iter().map(pattern).collect::<Result<_>>()?,
            split: split
                .filter(|split| *split != ALL_SPLITS)
                .map(str::to_owned),
            root: None,
        })
    }

    /// The same selection with a base folder for relative lines of lists.
    pub fn with_root(self, root: Option<PathBuf>) -> Self {
        Self { root, ..self }
    }

    /// A selection of all files, read as `format`.
    pub fn of_format(format: Option<Format>) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }

    /// Whether a glob of `ignore` matches this file or folder.
    pub(crate) fn ignores(&self, path: &Path) -> bool {
        let options = MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: false,
        };
        self.ignore
            .iter()
            .any(|pattern| pattern.matches_path_with(path, options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_the_last_names_of_a_path() {
        for (glob, path, expected) in [
            ("*.xz", "corpus/a.jsonl.xz", true),
            ("*.xz", "a.jsonl.xz", true),
            ("*.xz", "a.jsonl", false),
            ("*.xz", "a.xz/b.jsonl", false),
            ("old", "corpus/old", true),
            ("old/", "corpus/old", true),
            ("old/*.jsonl", "corpus/old/a.jsonl", true),
            ("old/*.jsonl", "corpus/old/b/a.jsonl", false),
            ("old/**", "corpus/old/b/a.jsonl", true),
            ("/corpus/*.jsonl", "/corpus/a.jsonl", true),
            ("/corpus/*.jsonl", "/data/corpus/a.jsonl", false),
            ("*.JSONL", "a.jsonl", false),
            ("[ab].jsonl", "s3://bucket/b.jsonl", true),
        ] {
            let selection = Selection::new(None, &[glob.to_owned()], None).unwrap();
            assert_eq!(
                selection.ignores(Path::new(path)),
                expected,
                "{glob} {path}"
            );
        }
        let error = Selection::new(None, &["a[".to_owned()], None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"a[\": not a valid glob; write [[] for a literal bracket"
        );
    }
}

//! Compares the fast engine with the reference engine when a tokenizer is used for the first time.
//!
//! A passed comparison is recorded as a file in a folder. The name and content of the file
//! identify the comparison: the tokenizer's fingerprint, packtok's version, the engine with its
//! vector instructions, and the reference engine. A file with any other content is ignored, and
//! the comparison runs again.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use packtok_jobs::Monitor;
use packtok_pbin::{Replace, publish_bytes};
use packtok_tokenizer::{TextExtent, Tokenizer};

use super::engines::compare_built_in;
use crate::error::{Error, Result};

/// In debug builds, comparing all texts takes seconds for each of the hundreds of tokenizers of the
/// tests, which compare texts of their own. `tokenizer verify` always compares all of them.
const EXTENT: TextExtent = if cfg!(debug_assertions) {
    TextExtent::Sample
} else {
    TextExtent::All
};

/// Compares the fast engine with the reference engine on the built-in texts, unless `folder`
/// contains a record that they agree.
///
/// If they differ, the reference engine serves the tokenizer from then on; [`Tokenizer::distrust`]
/// returns the difference.
///
/// # Errors
/// The reference engine cannot load the tokenizer, or has different special tokens;
/// [`Error::Cancelled`]. In both cases, the tokenizer is unchanged and no record is written.
pub fn prove(
    tokenizer: &Tokenizer,
    folder: Option<&Path>,
    num_threads: usize,
    monitor: &mut Monitor<'_>,
) -> Result<()> {
    // Loading the reference engine is slow, so it is loaded only if there is no record.
    prove_against(
        tokenizer,
        Tokenizer::without_fast,
        folder,
        num_threads,
        monitor,
    )
}

fn prove_against(
    tokenizer: &Tokenizer,
    reference: impl Fn(&Tokenizer) -> packtok_tokenizer::Result<Option<Tokenizer>>,
    folder: Option<&Path>,
    num_threads: usize,
    monitor: &mut Monitor<'_>,
) -> Result<()> {
    let record = folder.and_then(|folder| Record::of(tokenizer, folder));
    if record.as_ref().is_some_and(Record::exists) {
        return Ok(());
    }
    let Some(reference) = &reference(tokenizer)? else {
        return Ok(());
    };
    match compare_built_in(tokenizer, reference, EXTENT, num_threads, monitor) {
        Ok(_) => {
            // If the folder is not writable, the comparison runs again next time.
            if let Some(record) = record {
                let _ = record.write();
            }
        }
        Err(Error::Cancelled) => {
            return Err(Error::Cancelled);
        }
        Err(error) => tokenizer.distrust_fast(&error.to_string()),
    }
    Ok(())
}

/// A record that the engines agree on a tokenizer.
struct Record {
    path: PathBuf,
    /// Identifies the comparison. Every tokenizer, version and engine has its own statement, so
    /// the file name is not trusted.
    statement: String,
}

impl Record {
    /// The record for the fast engine of `tokenizer`; `None` if the fast engine does not serve it.
    fn of(tokenizer: &Tokenizer, folder: &Path) -> Option<Self> {
        let fingerprint = tokenizer.fingerprint();
        let (_, hex) = fingerprint.split_once(':')?;
        let mut back_end = tokenizer.fast_back_end()?.to_owned();
        if EXTENT == TextExtent::Sample {
            back_end.push_str("-sampled");
        }
        let version = env!("CARGO_PKG_VERSION");
        let reference = tokenizer.reference_kind().name();
        Some(Self {
            path: folder.join(format!("{hex}-{version}-{back_end}")),
            statement: format!(
                "packtok {version}, engine {back_end}, gives the ids of {reference}\ntokenizer {fingerprint}\n"
            ),
        })
    }

    fn exists(&self) -> bool {
        // Check the length first: the path may be a pipe or a huge file.
        let is_as_long = fs::metadata(&self.path).is_ok_and(|metadata| {
            metadata.is_file() && metadata.len() == self.statement.len() as u64
        });
        is_as_long && fs::read(&self.path).is_ok_and(|bytes| bytes == self.statement.as_bytes())
    }

    fn write(&self) -> std::io::Result<()> {
        if let Some(folder) = self.path.parent() {
            if let Some(above) = folder.parent() {
                fs::create_dir_all(above)?;
            }
            match DirBuilder::new().mode(0o700).create(folder) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(error);
                }
                _ => {}
            }
        }
        publish_bytes(&self.path, self.statement.as_bytes(), Replace::Existing)
            .map_err(std::io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::os::unix::fs::PermissionsExt;

    use packtok_jobs::Progress;
    use packtok_tokenizer::EngineKind;

    use super::*;

    fn proceed() -> impl FnMut(&Progress) -> ControlFlow<()> {
        |_| ControlFlow::Continue(())
    }

    fn without_merges() -> Tokenizer {
        let gpt2 = packtok_tokenizer::builtin_json("gpt2").unwrap();
        let mut file: serde_json::Value = serde_json::from_str(&gpt2).unwrap();
        file["model"]["merges"] = serde_json::json!([]);
        Tokenizer::from_json("t", file.to_string()).unwrap()
    }

    #[test]
    fn a_passed_comparison_is_recorded_and_not_repeated() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("cache").join("engines");
        let tokenizer = Tokenizer::builtin("gpt2").unwrap();
        prove(&tokenizer, Some(&folder), 2, &mut proceed()).unwrap();
        assert_eq!(
            (tokenizer.engine(), tokenizer.distrust()),
            (EngineKind::Fast, None)
        );
        assert_eq!(
            folder.metadata().unwrap().permissions().mode() & 0o777,
            0o700
        );
        let notes: Vec<_> = folder.read_dir().unwrap().collect();
        assert_eq!(notes.len(), 1);
        // The second call does not notice the difference, because the record suppresses the
        // comparison.
        prove_against(
            &tokenizer,
            |_| Ok(Some(without_merges())),
            Some(&folder),
            2,
            &mut proceed(),
        )
        .unwrap();
        assert_eq!(tokenizer.engine(), EngineKind::Fast);
    }

    #[test]
    fn an_engine_that_differs_is_not_used() {
        let tokenizer = Tokenizer::builtin("gpt2").unwrap();
        let before = tokenizer.clone();
        let folder = tempfile::tempdir().unwrap();
        prove_against(
            &tokenizer,
            |_| Ok(Some(without_merges())),
            Some(folder.path()),
            2,
            &mut proceed(),
        )
        .unwrap();
        assert_eq!(before.engine(), EngineKind::Reference);
        let distrust = before.distrust().unwrap();
        assert!(distrust.contains("built-in texts:"), "{distrust}");
        assert!(distrust.contains("please report it"), "{distrust}");
        assert_eq!(before.not_fast(), Some(distrust));
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_stray_file_proves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let tokenizer = Tokenizer::builtin("gpt2").unwrap();
        let record = Record::of(&tokenizer, folder.path()).unwrap();
        let stray = ["", "x", &record.statement.replace("sha256:", "sha256;")];
        for content in stray {
            fs::write(&record.path, content).unwrap();
            assert!(!record.exists(), "{content:?}");
        }
        fs::remove_file(&record.path).unwrap();
        fs::create_dir(&record.path).unwrap();
        assert!(!record.exists());
        fs::remove_dir(&record.path).unwrap();
        prove(&tokenizer, Some(folder.path()), 2, &mut proceed()).unwrap();
        assert!(record.exists());
        assert_eq!(
            fs::read_to_string(&record.path).unwrap(),
            format!(
                "packtok {}, engine {}{}, gives the ids of tokenizers 0.23.2\ntokenizer {}\n",
                env!("CARGO_PKG_VERSION"),
                tokenizer.fast_back_end().unwrap(),
                if cfg!(debug_assertions) {
                    "-sampled"
                } else {
                    ""
                },
                tokenizer.fingerprint()
            )
        );
    }

    #[test]
    fn another_tokenizers_record_proves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let gpt2 = Tokenizer::builtin("gpt2").unwrap();
        prove(&gpt2, Some(folder.path()), 2, &mut proceed()).unwrap();
        let of_gpt2 = Record::of(&gpt2, folder.path()).unwrap();
        let other = Record::of(&without_merges(), folder.path()).unwrap();
        fs::copy(of_gpt2.path, &other.path).unwrap();
        assert!(!other.exists());
    }

    #[test]
    fn a_read_only_folder_is_harmless() {
        let tokenizer = Tokenizer::builtin("gpt2").unwrap();
        prove(
            &tokenizer,
            Some(Path::new("/proc/no/such")),
            2,
            &mut proceed(),
        )
        .unwrap();
        prove(&tokenizer, None, 2, &mut proceed()).unwrap();
        assert_eq!(tokenizer.engine(), EngineKind::Fast);
    }
}

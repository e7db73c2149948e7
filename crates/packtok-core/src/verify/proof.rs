//! Holds packtok's own engine against the reference when a tokenizer is seen for the first time.
//!
//! A proof that was given is noted in a folder, by an empty file whose name says of what: the tokenizer's
//! fingerprint, packtok's version and the vector instructions that were used. Whoever can write there could
//! at most spare an engine its proof.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use packtok_bpe::Tokenizer;
use packtok_pbin::{Replace, publish_bytes};

use super::engines::compare_built_in;
use crate::error::{Error, Result};
use crate::pack::Monitor;

/// Compares the fast engine with the reference on the built-in texts, unless `folder` says that this was done.
///
/// Whatever is found to differ makes the reference serve the tokenizer; [`Tokenizer::distrust`] says what it is.
///
/// # Errors
/// The reference cannot load the tokenizer, or gives other special tokens; [`Error::Cancelled`]. Both leave the
/// tokenizer as it was, unproven.
pub fn prove(
    tokenizer: &Tokenizer,
    folder: Option<&Path>,
    num_threads: usize,
    monitor: &mut Monitor<'_>,
) -> Result<()> {
    // It is loaded for this, so that it is not asked for where nothing is to be proven.
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
    reference: impl Fn(&Tokenizer) -> packtok_bpe::Result<Option<Tokenizer>>,
    folder: Option<&Path>,
    num_threads: usize,
    monitor: &mut Monitor<'_>,
) -> Result<()> {
    let note = folder.and_then(|folder| note_of(tokenizer, folder));
    if note.as_ref().is_some_and(|note| note.exists()) {
        return Ok(());
    }
    let Some(reference) = &reference(tokenizer)? else {
        return Ok(());
    };
    match compare_built_in(tokenizer, reference, num_threads, monitor) {
        Ok(_) => {
            // A folder that cannot be written to costs the time of another proof.
            if let Some(note) = note {
                let _ = write(&note);
            }
        }
        Err(Error::Cancelled) => return Err(Error::Cancelled),
        Err(error) => tokenizer.distrust_fast(&error.to_string()),
    }
    Ok(())
}

/// The file that says that this tokenizer was proven.
fn note_of(tokenizer: &Tokenizer, folder: &Path) -> Option<PathBuf> {
    let (_, fingerprint) = tokenizer.fingerprint().split_once(':')?;
    let lane = tokenizer.fast_lane()?;
    let version = env!("CARGO_PKG_VERSION");
    Some(folder.join(format!("{fingerprint}-{version}-{lane}")))
}

fn write(note: &Path) -> std::io::Result<()> {
    if let Some(folder) = note.parent() {
        if let Some(above) = folder.parent() {
            fs::create_dir_all(above)?;
        }
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    publish_bytes(note, b"", Replace::Existing).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::os::unix::fs::PermissionsExt;

    use packtok_bpe::EngineKind;

    use super::*;
    use crate::pack::Progress;

    fn go_on() -> impl FnMut(&Progress) -> ControlFlow<()> {
        |_| ControlFlow::Continue(())
    }

    fn without_merges() -> Tokenizer {
        let gpt2 = packtok_bpe::builtin_json("gpt2").unwrap();
        let mut file: serde_json::Value = serde_json::from_str(&gpt2).unwrap();
        file["model"]["merges"] = serde_json::json!([]);
        Tokenizer::from_json("t", file.to_string()).unwrap()
    }

    #[test]
    fn a_proof_is_noted_and_not_asked_for_again() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("cache").join("engines");
        let tokenizer = Tokenizer::builtin("gpt2").unwrap();
        prove(&tokenizer, Some(&folder), 2, &mut go_on()).unwrap();
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
        // What differs is not found, as nobody looks.
        prove_against(
            &tokenizer,
            |_| Ok(Some(without_merges())),
            Some(&folder),
            2,
            &mut go_on(),
        )
        .unwrap();
        assert_eq!(tokenizer.engine(), EngineKind::Fast);
    }

    #[test]
    fn an_engine_that_differs_does_not_serve() {
        let tokenizer = Tokenizer::builtin("gpt2").unwrap();
        let before = tokenizer.clone();
        let folder = tempfile::tempdir().unwrap();
        prove_against(
            &tokenizer,
            |_| Ok(Some(without_merges())),
            Some(folder.path()),
            2,
            &mut go_on(),
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
    fn a_folder_that_cannot_be_written_to_does_no_harm() {
        let tokenizer = Tokenizer::builtin("gpt2").unwrap();
        prove(
            &tokenizer,
            Some(Path::new("/proc/no/such")),
            2,
            &mut go_on(),
        )
        .unwrap();
        prove(&tokenizer, None, 2, &mut go_on()).unwrap();
        assert_eq!(tokenizer.engine(), EngineKind::Fast);
    }
}

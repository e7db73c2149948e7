//! Who works on an output: one process at a time, wherever it runs.
//!
//! A lock on the journal decides. Where its holder may be on another machine, of which some file systems do not
//! tell, or where files cannot be locked at all, a claim beside the journal decides: its owner rewrites it every
//! few seconds, and one that does not change for a while has no owner. Clocks are not compared.

use crate::journal::JournalError;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Tests have less time.
const HASTE: u64 = if cfg!(test) { 50 } else { 1 };

/// How often a claim is renewed.
const BEAT: Duration = Duration::from_millis(5_000 / HASTE);

/// How long a claim is watched before its owner is taken for dead.
const PATIENCE: Duration = Duration::from_millis(30_000 / HASTE);

/// How often a claim that is watched is looked at.
const LOOK: Duration = Duration::from_millis(500 / HASTE);

/// Name of the claim in the journal's folder.
pub(super) const CLAIM_NAME: &str = "owner";

/// This process's ownership of a journal; given up when it is dropped.
#[derive(Debug)]
pub(super) struct Owner {
    pulse: Arc<Pulse>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Pulse {
    path: PathBuf,
    claim: Mutex<Claim>,
    is_over: Mutex<bool>,
    over: Condvar,
    is_lost: AtomicBool,
}

/// What an owner says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    /// Tells this attempt from all others.
    attempt: String,
    host: String,
    /// Tells the machine, and the time since it was started, from others.
    boot: String,
    pid: u32,
    /// Grows while the owner lives.
    beat: u64,
}

/// A name that no other attempt has.
pub(super) fn new_attempt() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// Whether `name` could be one of [`new_attempt`].
pub(super) fn is_attempt(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether the owner of the journal at `path` was on this machine and has ended.
pub(super) fn is_gone(path: &Path) -> bool {
    let claim = Claim::read(&path.with_file_name(CLAIM_NAME));
    let is_of_here = claim.is_some_and(|claim| claim.boot == Claim::of_this_process().boot);
    is_of_here && File::open(path).is_ok_and(|journal| journal.try_lock().is_ok())
}

impl Owner {
    /// Takes the journal in `folder`, of which `journal` is the file, for this process.
    ///
    /// # Errors
    /// [`Error::OutputHeld`] if another process has it; [`Error::Io`]; what `tick`, called while a claim is
    /// watched, returned.
    pub(super) fn take(
        output: &Path,
        folder: &Path,
        journal: &File,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Self> {
        let path = folder.join(CLAIM_NAME);
        let mine = Claim::of_this_process();
        let found = Claim::read(&path);
        let held = |found: Option<&Claim>| {
            Error::Journal(JournalError::OutputHeld {
                path: output.to_owned(),
                holder: found.map_or_else(|| "another process".to_owned(), Claim::shown),
            })
        };
        let is_proven_free = match journal.try_lock() {
            // On this machine nobody else has it, since locks outlive no process.
            Ok(()) => found.as_ref().is_none_or(|found| found.boot == mine.boot),
            Err(TryLockError::WouldBlock) => return Err(held(found.as_ref())),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                found.is_none()
            }
            Err(TryLockError::Error(error)) => return Err(Error::io(folder, error)),
        };
        if !is_proven_free && beats(&path, &found, PATIENCE, tick)? {
            return Err(held(Claim::read(&path).as_ref()));
        }
        mine.write(&path).map_err(|error| Error::io(&path, error))?;
        let pulse = Arc::new(Pulse {
            path,
            claim: Mutex::new(mine),
            is_over: Mutex::new(false),
            over: Condvar::new(),
            is_lost: AtomicBool::new(false),
        });
        let beating = Arc::clone(&pulse);
        let thread = std::thread::Builder::new()
            .name("packtok-owner".to_owned())
            .spawn(move || beating.beat_until_over())
            .map_err(|error| Error::io(folder, error))?;
        Ok(Self {
            pulse,
            thread: Some(thread),
        })
    }

    /// Whether another process has taken the journal, which it may only where files cannot be locked.
    pub(super) fn is_lost(&self) -> bool {
        self.pulse.is_lost.load(Ordering::Relaxed)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        *self
            .pulse
            .is_over
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.pulse.over.notify_all();
        if let Some(thread) = self.thread.take() {
            // It cannot panic, and there is nobody to tell.
            let _ = thread.join();
        }
        if !self.is_lost() {
            let _ = fs::remove_file(&self.pulse.path);
        }
    }
}

impl Pulse {
    fn beat_until_over(&self) {
        let mut is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_over {
            let (waited, _) = self
                .over
                .wait_timeout(is_over, BEAT)
                .unwrap_or_else(PoisonError::into_inner);
            is_over = waited;
            if *is_over {
                return;
            }
            let mut claim = self.claim.lock().unwrap_or_else(PoisonError::into_inner);
            let found = Claim::read(&self.path);
            if found.is_some_and(|found| found.attempt != claim.attempt) {
                self.is_lost.store(true, Ordering::Relaxed);
                return;
            }
            claim.beat += 1;
            // A beat that cannot be written is missed; a full disk has room for none, and ends the run anyway.
            let _ = claim.write(&self.path);
        }
    }
}

impl Claim {
    fn of_this_process() -> Self {
        let kernel = |name: &str| {
            let found = fs::read_to_string(format!("/proc/sys/kernel/{name}"));
            found.map_or_else(|_| String::new(), |text| text.trim().to_owned())
        };
        Self {
            attempt: new_attempt(),
            host: kernel("hostname"),
            boot: kernel("random/boot_id"),
            pid: std::process::id(),
            beat: 0,
        }
    }

    fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut new = path.as_os_str().to_owned();
        new.push(format!(".{}", self.attempt));
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(&new, path)
    }

    fn shown(&self) -> String {
        format!("process {} on {}", self.pid, self.host)
    }
}

/// Whether the claim at `path` changes from `found` within `patience`.
fn beats(
    path: &Path,
    found: &Option<Claim>,
    patience: Duration,
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<bool> {
    let mut waited = Duration::ZERO;
    while waited < patience {
        std::thread::sleep(LOOK);
        waited += LOOK;
        tick()?;
        match Claim::read(path) {
            // Given up in order.
            None => return Ok(false),
            now if now != *found => return Ok(true),
            Some(_) => {}
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Instant;

    use super::*;
    use crate::journal::Journal;

    fn elsewhere(beat: u64) -> Claim {
        Claim {
            attempt: "0123456789abcdef".to_owned(),
            host: "elsewhere".to_owned(),
            boot: "another".to_owned(),
            pid: 7,
            beat,
        }
    }

    /// An output with a folder in which a process of another machine has left its claim.
    fn claimed() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::TempDir::new().unwrap();
        let output = folder.path().join("out.pbin");
        let partial = folder.path().join("out.pbin.partial");
        fs::create_dir(&partial).unwrap();
        let claim = partial.join(CLAIM_NAME);
        elsewhere(3).write(&claim).unwrap();
        (folder, output, claim)
    }

    #[test]
    fn a_claim_of_another_machine_is_watched_and_taken_over_if_it_does_not_change() {
        let (_folder, output, claim) = claimed();
        let started = Instant::now();
        let journal = Journal::open(&output, &mut || Ok(())).unwrap();
        assert!(started.elapsed() >= PATIENCE);
        assert_eq!(Claim::read(&claim).unwrap().pid, std::process::id());
        drop(journal);
        assert_eq!(Claim::read(&claim), None);
    }

    #[test]
    fn a_claim_that_changes_has_an_owner() {
        let (_folder, output, claim) = claimed();
        let mut beat = 3;
        let error = Journal::open(&output, &mut || {
            beat += 1;
            elsewhere(beat)
                .write(&claim)
                .map_err(|error| Error::io(&claim, error))
        })
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "{}: process 7 on elsewhere is writing this output; wait for it to finish, or stop it and run this command again",
                output.display()
            )
        );
    }

    #[test]
    fn a_claim_of_this_machine_whose_lock_is_free_has_no_owner() {
        let (_folder, output, claim) = claimed();
        let mine = Claim {
            pid: 1,
            ..Claim::of_this_process()
        };
        mine.write(&claim).unwrap();
        let started = Instant::now();
        Journal::open(&output, &mut || Ok(())).unwrap();
        assert!(started.elapsed() < PATIENCE);
    }

    #[test]
    fn whoever_lost_the_output_writes_no_more() {
        let (_folder, output, claim) = claimed();
        fs::remove_file(&claim).unwrap();
        let mut journal = Journal::open(&output, &mut || Ok(())).unwrap();
        journal.begin(&1).unwrap();
        elsewhere(1).write(&claim).unwrap();
        let started = Instant::now();
        let error = loop {
            match journal.append(&2) {
                Ok(()) => assert!(started.elapsed() < 100 * BEAT, "nothing was noticed"),
                Err(error) => break error,
            }
        };
        assert_eq!(
            error.to_string(),
            format!(
                "{}: another process took over this output because this one appeared dead; let it finish",
                output.display()
            )
        );
        drop(journal);
        assert_eq!(Claim::read(&claim), Some(elsewhere(1)));
    }
}

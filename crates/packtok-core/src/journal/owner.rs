//! Ownership of an output: one process at a time, on any machine.
//!
//! A lock on the journal decides. If the lock holder may be on another machine (some file systems
//! do not show such locks), or if files cannot be locked at all, a claim file next to the journal
//! decides: its owner rewrites it every few seconds, and a claim that stays unchanged for a while
//! has no owner. Clocks of different machines are never compared.

use crate::journal::JournalError;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Tests use shorter times.
const SPEEDUP: u64 = if cfg!(test) { 50 } else { 1 };

/// Interval at which a claim is renewed.
const RENEWAL_INTERVAL: Duration = Duration::from_millis(5_000 / SPEEDUP);

/// How long a claim is watched before its owner is presumed dead.
const CLAIM_TIMEOUT: Duration = Duration::from_millis(30_000 / SPEEDUP);

/// Polling interval while a claim is watched.
const POLL_INTERVAL: Duration = Duration::from_millis(500 / SPEEDUP);

/// How long a lock without a claim is waited for. A child process of another thread has a copy of the lock from
/// its fork until its exec, and an owner that has just taken the lock has no claim yet.
const LOCK_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 2 });

/// Polling interval while such a lock is waited for.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// File name of the claim in the journal's folder.
pub(super) const CLAIM_NAME: &str = "owner";

/// This process's ownership of a journal; released on drop.
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

/// The content of a claim file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    /// Identifies this attempt.
    attempt: String,
    host: String,
    /// Identifies the machine and its boot.
    boot: String,
    pid: u32,
    /// Increases while the owner is alive.
    beat: u64,
}

/// A unique name for an attempt.
pub(super) fn new_attempt() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// Whether `name` could come from [`new_attempt`].
pub(super) fn is_attempt(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether the owner of the journal at `path` was on this machine and has ended.
pub(super) fn has_ended(path: &Path) -> bool {
    let claim = Claim::read(&path.with_file_name(CLAIM_NAME));
    let is_of_here = claim.is_some_and(|claim| claim.boot == Claim::of_this_process().boot);
    is_of_here && File::open(path).is_ok_and(|journal| journal.try_lock().is_ok())
}

impl Owner {
    /// Takes ownership of the journal in `folder`, whose file is `journal`.
    ///
    /// # Errors
    /// [`JournalError::OutputHeld`] if another process owns it; [`Error::Io`]; the error of `tick`,
    /// which is called while a claim is watched.
    pub(super) fn take(
        output: &Path,
        folder: &Path,
        journal: &File,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Self> {
        let path = folder.join(CLAIM_NAME);
        let mine = Claim::of_this_process();
        let mut found = Claim::read(&path);
        let held = |found: Option<&Claim>| {
            Error::Journal(JournalError::OutputHeld {
                path: output.to_owned(),
                holder: found.map_or_else(|| "another process".to_owned(), Claim::shown),
            })
        };
        let deadline = Instant::now() + LOCK_TIMEOUT;
        let is_proven_free = loop {
            match journal.try_lock() {
                // On this machine no other process owns it: locks do not outlive their process.
                Ok(()) => break found.as_ref().is_none_or(|found| found.boot == mine.boot),
                Err(TryLockError::WouldBlock) if found.is_none() && Instant::now() < deadline => {
                    tick()?;
                    std::thread::sleep(LOCK_INTERVAL);
                    found = Claim::read(&path);
                }
                Err(TryLockError::WouldBlock) => return Err(held(found.as_ref())),
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                    break found.is_none();
                }
                Err(TryLockError::Error(error)) => return Err(Error::io(folder, error)),
            }
        };
        if !is_proven_free && is_renewed(&path, &found, CLAIM_TIMEOUT, tick)? {
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

    /// Whether another process took over the journal, which it may do only where files cannot be
    /// locked.
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
            // The thread cannot panic, and its result is not needed.
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
                .wait_timeout(is_over, RENEWAL_INTERVAL)
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
            // A failed renewal is skipped. A full disk fails all of them, but also ends the run.
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

/// Whether the claim at `path` changes from `found` within `timeout`.
fn is_renewed(
    path: &Path,
    found: &Option<Claim>,
    timeout: Duration,
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<bool> {
    let mut waited = Duration::ZERO;
    while waited < timeout {
        std::thread::sleep(POLL_INTERVAL);
        waited += POLL_INTERVAL;
        tick()?;
        match Claim::read(path) {
            // The owner released it properly.
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

    /// An output whose folder contains the claim of a process on another machine.
    fn claimed() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::TempDir::new().unwrap();
        let output = folder.path().join("out.pbin");
        let partial = folder.path().join("out.pbin.partial");
        fs::create_dir(&partial).unwrap();
        let claim = partial.join(CLAIM_NAME);
        elsewhere(3).write(&claim).unwrap();
        (folder, output, claim)
    }

    // On a busy machine a thread may wait for seconds, so nothing here has to happen within a short time.
    #[test]
    fn a_lock_without_a_claim_is_waited_for() {
        let folder = tempfile::TempDir::new().unwrap();
        let open = || File::create(folder.path().join("journal")).unwrap();
        let inherited = open();
        inherited.lock().unwrap();
        // As a child process does that has not got to its exec.
        let child = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            drop(inherited);
        });
        let taken = Owner::take(
            Path::new("out.pbin"),
            folder.path(),
            &open(),
            &mut || Ok(()),
        );
        child.join().unwrap();
        taken.unwrap();
    }

    #[test]
    fn an_unchanged_claim_of_another_machine_is_taken_over() {
        let (_folder, output, claim) = claimed();
        let started = Instant::now();
        let journal = Journal::open(&output, &mut || Ok(())).unwrap();
        assert!(started.elapsed() >= CLAIM_TIMEOUT);
        assert_eq!(Claim::read(&claim).unwrap().pid, std::process::id());
        drop(journal);
        assert_eq!(Claim::read(&claim), None);
    }

    #[test]
    fn a_claim_that_changes_is_held() {
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
    fn a_claim_of_this_machine_without_a_lock_is_free() {
        let (_folder, output, claim) = claimed();
        let mine = Claim {
            pid: 1,
            ..Claim::of_this_process()
        };
        mine.write(&claim).unwrap();
        Journal::open(&output, &mut || unreachable!("the claim is not watched")).unwrap();
    }

    #[test]
    fn a_process_that_lost_the_output_stops_writing() {
        let (_folder, output, claim) = claimed();
        fs::remove_file(&claim).unwrap();
        let mut journal = Journal::open(&output, &mut || Ok(())).unwrap();
        journal.begin(&1).unwrap();
        elsewhere(1).write(&claim).unwrap();
        let started = Instant::now();
        let error = loop {
            match journal.append(&2) {
                Ok(()) => assert!(
                    started.elapsed() < Duration::from_secs(60),
                    "nothing was noticed"
                ),
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

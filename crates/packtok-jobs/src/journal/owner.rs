//! Ownership of an output: one process at a time, on any machine.
//!
//! A lock on the journal decides. If the lock holder may be on another machine (some file systems
//! do not show such locks), or if files cannot be locked at all, a claim file next to the journal
//! decides: its owner rewrites it every few seconds, and a claim that stays unchanged for a while
//! has no owner. Clocks of different machines are never compared.
//!
//! Without locks, the first claim is a file that only one process can create, and a claim whose
//! process has ended on this machine is free at once. This case has a weakness: a process that is
//! stopped for longer than the timeout of a claim and then continues may write until it reads the
//! claim again.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use packtok_pbin::file_system::{self, Locked};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Tests use shorter times.
const SPEEDUP: u64 = if cfg!(test) { 50 } else { 1 };

/// Interval at which a claim is renewed.
const RENEWAL_INTERVAL: Duration = Duration::from_millis(5_000 / SPEEDUP);

/// Time for which a claim must stay unchanged before its owner is presumed dead.
const CLAIM_TIMEOUT: Duration = Duration::from_millis(30_000 / SPEEDUP);

/// Polling interval while a claim is watched.
const POLL_INTERVAL: Duration = Duration::from_millis(500 / SPEEDUP);

/// Maximum wait for a lock without a claim. Such a lock may be the copy of a child process between
/// its fork and its exec, or belong to an owner that has just locked and not written its claim
/// yet.
const LOCK_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 2 });

/// After a takeover of a claim without a lock: the wait for other processes that take it over at
/// the same moment.
const SETTLING_TIME: Duration = Duration::from_millis(1_000 / SPEEDUP);

/// Polling interval while waiting for such a lock.
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

/// The content of a claim file. An unreadable file is a claim with empty fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    /// Identifies this attempt.
    attempt: String,
    host: String,
    /// Identifies the machine and its boot.
    boot: String,
    /// The namespace of `pid`: a container may number its processes separately.
    #[serde(default)]
    pid_namespace: String,
    pid: u32,
    /// Whether the process also holds the lock, as all did in earlier versions.
    #[serde(default = "yes")]
    has_lock: bool,
    /// Increases while the owner is alive.
    beat: u64,
}

fn yes() -> bool {
    true
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
    is_of_here
        && file_system::open_to_lock(path)
            .and_then(|journal| file_system::try_lock(&journal))
            .is_ok_and(|locked| locked == Locked::Taken)
}

impl Owner {
    /// Takes ownership of the journal in `folder`, whose file is `journal`.
    ///
    /// # Errors
    /// [`Error::OutputHeld`] if another process owns it; [`Error::Io`]; the error of `tick`,
    /// which is called while a claim is watched.
    pub(super) fn take(
        output: &Path,
        folder: &Path,
        journal: &File,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Self> {
        let path = folder.join(CLAIM_NAME);
        let locked = lock(folder, journal, &path, tick)?;
        let mine = Claim {
            has_lock: locked == Locked::Taken,
            ..Claim::of_this_process()
        };
        if locked == Locked::Held || !mine.take(&path, tick)? {
            let holder = Claim::read(&path).unwrap_or_default();
            return Err(Error::OutputHeld {
                path: output.to_owned(),
                holder: holder.description(),
            });
        }
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
            .map_err(|source| Error::Threads {
                purpose: "the thread that renews the claim of the output",
                source,
            })?;
        Ok(Self {
            pulse,
            thread: Some(thread),
        })
    }

    /// Whether another process took over the journal. This can only happen where files cannot be
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
        let path = &self.pulse.path;
        let claim = self
            .pulse
            .claim
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if Claim::read(path).is_some_and(|current| current.attempt == claim.attempt) {
            let _ = fs::remove_file(path);
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
            let current = Claim::read(&self.path);
            if current
                .is_some_and(|current| current.is_readable() && current.attempt != claim.attempt)
            {
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
            let content = fs::read_to_string(format!("/proc/sys/kernel/{name}"));
            content.map_or_else(|_| String::new(), |text| text.trim().to_owned())
        };
        Self {
            attempt: new_attempt(),
            host: kernel("hostname"),
            boot: kernel("random/boot_id"),
            pid_namespace: fs::read_link("/proc/self/ns/pid")
                .map_or_else(|_| String::new(), |link| link.display().to_string()),
            pid: std::process::id(),
            has_lock: true,
            beat: 0,
        }
    }

    /// The claim at `path`; `None` if the file does not exist.
    fn read(path: &Path) -> Option<Self> {
        match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            read => Some(
                read.ok()
                    .and_then(|json| serde_json::from_slice(&json).ok())
                    .unwrap_or_default(),
            ),
        }
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut new = path.as_os_str().to_owned();
        new.push(format!(".{}", self.attempt));
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(&new, path)
    }

    /// Writes the claim to a new file; returns false if there is a claim already.
    fn create(&self, path: &Path) -> io::Result<bool> {
        match File::create_new(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            created => created?
                .write_all(&serde_json::to_vec(self)?)
                .map(|()| true),
        }
    }

    /// Makes this the claim at `path`, unless the owner of the existing claim is alive.
    fn take(&self, path: &Path, tick: &mut dyn FnMut() -> Result<()>) -> Result<bool> {
        let io = |error| Error::io(path, error);
        let Some(existing) = Claim::read(path) else {
            return if self.has_lock {
                self.write(path).map(|()| true).map_err(io)
            } else {
                self.create(path).map_err(io)
            };
        };
        // On this machine, locks do not outlive their process.
        let has_lost_lock = self.has_lock && existing.has_lock && existing.boot == self.boot;
        if !has_lost_lock && !existing.has_ended_here(self) && is_renewed(path, &existing, tick)? {
            return Ok(false);
        }
        self.write(path).map_err(io)?;
        if self.has_lock {
            return Ok(true);
        }
        // If several processes take over at once, the last one to write owns the output.
        std::thread::sleep(SETTLING_TIME);
        tick()?;
        Ok(Claim::read(path).is_some_and(|now| now.attempt == self.attempt))
    }

    /// Whether the process has ended. Only a process on the same machine, in the same pid
    /// namespace, can determine this.
    fn has_ended_here(&self, here: &Claim) -> bool {
        let is_here = !self.pid_namespace.is_empty()
            && (&self.boot, &self.pid_namespace) == (&here.boot, &here.pid_namespace);
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        is_here && pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
    }

    fn is_readable(&self) -> bool {
        !self.attempt.is_empty()
    }

    fn description(&self) -> String {
        if self.is_readable() {
            format!("process {} on {}", self.pid, self.host)
        } else {
            "another process".to_owned()
        }
    }
}

/// Locks the journal in `folder`, whose claim is at `path`. Waits for a lock without a claim.
fn lock(
    folder: &Path,
    journal: &File,
    path: &Path,
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<Locked> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        let holder = Claim::read(path);
        let locked = file_system::try_lock(journal).map_err(|error| Error::io(folder, error))?;
        if locked != Locked::Held || holder.is_some() || Instant::now() >= deadline {
            return Ok(locked);
        }
        tick()?;
        std::thread::sleep(LOCK_INTERVAL);
    }
}

/// Whether the claim at `path` changes from `existing` within [`CLAIM_TIMEOUT`].
fn is_renewed(path: &Path, existing: &Claim, tick: &mut dyn FnMut() -> Result<()>) -> Result<bool> {
    let mut waited = Duration::ZERO;
    while waited < CLAIM_TIMEOUT {
        std::thread::sleep(POLL_INTERVAL);
        waited += POLL_INTERVAL;
        tick()?;
        match Claim::read(path) {
            // The owner released it properly.
            None => return Ok(false),
            Some(now) if now != *existing => return Ok(true),
            Some(_) => {}
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Barrier;
    use std::time::Instant;

    use super::*;
    use crate::journal::Journal;

    fn elsewhere(beat: u64) -> Claim {
        Claim {
            attempt: "0123456789abcdef".to_owned(),
            host: "elsewhere".to_owned(),
            boot: "another".to_owned(),
            pid_namespace: "pid:[1]".to_owned(),
            pid: 7,
            has_lock: true,
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

    // On a busy machine a thread may wait for seconds, so this test requires nothing to happen
    // within a short time.
    #[test]
    fn a_lock_without_a_claim_is_waited_for() {
        let folder = tempfile::TempDir::new().unwrap();
        let open = || File::create(folder.path().join("journal")).unwrap();
        let inherited = open();
        inherited.lock().unwrap();
        // Like a child process between its fork and its exec.
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

    fn unlocked() -> Claim {
        Claim {
            has_lock: false,
            ..Claim::of_this_process()
        }
    }

    /// Runs eight threads as processes without locks. Returns how many take the claim at `path`
    /// without watching another claim.
    fn num_owners(path: &Path) -> usize {
        let together = Barrier::new(8);
        std::thread::scope(|scope| {
            let take = || {
                let mut give_up = || Err(Error::io(path, ErrorKind::Interrupted.into()));
                together.wait();
                matches!(unlocked().take(path, &mut give_up), Ok(true))
            };
            let threads = Vec::from_iter((0..8).map(|_| scope.spawn(take)));
            let taken = threads.into_iter().map(|thread| thread.join().unwrap());
            taken.filter(|&is_taken| is_taken).count()
        })
    }

    #[test]
    fn without_locks_one_process_takes_a_new_output() {
        let folder = tempfile::TempDir::new().unwrap();
        assert_eq!(num_owners(&folder.path().join(CLAIM_NAME)), 1);
    }

    #[test]
    fn without_locks_the_claim_of_an_ended_process_is_free_at_once() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let ended = Claim {
            pid: child.id(),
            ..unlocked()
        };
        let (_folder, _, claim) = claimed();
        ended.write(&claim).unwrap();
        let mut tick = || {
            if Claim::read(&claim).unwrap() == ended {
                unreachable!("the claim is not watched")
            } else {
                Ok(())
            }
        };
        assert!(unlocked().take(&claim, &mut tick).unwrap());
    }

    #[test]
    fn without_locks_the_claim_of_another_pid_namespace_is_watched() {
        let (_folder, _, claim) = claimed();
        let mut other = Claim {
            pid_namespace: "pid:[1]".to_owned(),
            pid: i32::MAX as u32,
            ..unlocked()
        };
        other.write(&claim).unwrap();
        let renew = &mut || {
            other.beat += 1;
            other
                .write(&claim)
                .map_err(|error| Error::io(&claim, error))
        };
        assert!(!unlocked().take(&claim, renew).unwrap());
    }

    // The situation after the lock manager of NFS starts while a run is writing.
    #[test]
    fn a_lock_does_not_free_the_claim_of_a_process_without_one() {
        let (_folder, _, claim) = claimed();
        let mut other = unlocked();
        other.write(&claim).unwrap();
        let renew = &mut || {
            other.beat += 1;
            other
                .write(&claim)
                .map_err(|error| Error::io(&claim, error))
        };
        assert!(!Claim::of_this_process().take(&claim, renew).unwrap());
    }

    #[test]
    fn a_claim_that_is_just_being_written_is_watched() {
        let (_folder, _, claim) = claimed();
        fs::write(&claim, "").unwrap();
        let writer = elsewhere(0);
        let write = &mut || {
            writer
                .write(&claim)
                .map_err(|error| Error::io(&claim, error))
        };
        assert!(!unlocked().take(&claim, write).unwrap());
        assert_eq!(Claim::read(&claim), Some(writer.clone()));
    }

    #[test]
    fn a_claim_of_an_earlier_version_is_read() {
        let json = br#"{"attempt":"0123456789abcdef","host":"elsewhere","boot":"another","pid":7,"beat":3}"#;
        let claim: Claim = serde_json::from_slice(json).unwrap();
        let pid_namespace = String::new();
        assert_eq!(
            claim,
            Claim {
                pid_namespace,
                ..elsewhere(3)
            }
        );
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

//! Crash points: places where a test can abort the process as a crash would.
//!
//! They exist in builds with the feature `crash-points`, which only tests enable; in other builds
//! they compile to nothing.

/// The environment variable that names a crash point and how many times to pass it first, as in
/// `span recorded:3`.
pub const VARIABLE: &str = "PACKTOK_CRASH";

/// Aborts the process if the environment requests a crash here.
#[cfg(feature = "crash-points")]
pub fn point(name: &str) {
    use std::collections::HashMap;
    use std::sync::{Mutex, PoisonError};

    static PASSED: Mutex<Option<HashMap<String, u64>>> = Mutex::new(None);
    let Ok(wanted) = std::env::var(VARIABLE) else {
        return;
    };
    let Some((place, times)) = wanted.rsplit_once(':') else {
        return;
    };
    let mut passed = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
    let count = passed
        .get_or_insert_default()
        .entry(name.to_owned())
        .or_default();
    if place == name && times.parse() == Ok(*count) {
        std::process::abort();
    }
    *count += 1;
}

/// Does nothing: the feature `crash-points` is disabled.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub fn point(_: &str) {}

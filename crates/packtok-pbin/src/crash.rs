//! Places where a test ends the process as a crash would.
//!
//! They exist in builds with the feature `crash-points`, which only tests ask for; elsewhere they are nothing.

/// The environment variable that names a place and how often it is passed before: `span recorded:3`.
pub const VARIABLE: &str = "PACKTOK_CRASH";

/// Ends the process here if the environment asks for it.
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

/// Ends the process here if the environment asks for it.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub fn point(_: &str) {}

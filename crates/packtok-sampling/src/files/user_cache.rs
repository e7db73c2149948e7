//! Where packtok keeps, for a user, what can be had again.

use std::env;
use std::path::PathBuf;

/// `packtok` in the user's cache, which is `XDG_CACHE_HOME` or else `.cache` in the home folder; `None` for a
/// user without either.
pub fn user_cache() -> Option<PathBuf> {
    let cache = match env::var_os("XDG_CACHE_HOME").filter(|cache| !cache.is_empty()) {
        Some(cache) => PathBuf::from(cache),
        None => env::home_dir()?.join(".cache"),
    };
    Some(cache.join("packtok"))
}

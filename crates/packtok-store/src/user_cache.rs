//! The user's cache folder of packtok.

use std::env;
use std::path::PathBuf;

/// `packtok` in the user's cache folder: `XDG_CACHE_HOME`, or `.cache` in the home folder. `None`
/// if neither is set.
pub fn user_cache() -> Option<PathBuf> {
    let cache = match env::var_os("XDG_CACHE_HOME").filter(|cache| !cache.is_empty()) {
        Some(cache) => PathBuf::from(cache),
        None => env::home_dir()?.join(".cache"),
    };
    Some(cache.join("packtok"))
}

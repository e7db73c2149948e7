//! Paths that are URLs.

use std::path::Path;

/// Whether a path is a URL. A file lookup prefers a local file with the same name.
pub fn is_url(path: &Path) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    path.to_str()
        .and_then(|text| text.split_once("://"))
        .is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(is_letter))
}

//! Checks the maps of `Precompiled` normalizers. The crate trusts every position and every length
//! in a map: it follows all positions and allocates all lengths.
//!
//! A map is the length of its trie in 32 bits, the trie, and the replacements, each of which ends
//! with a zero byte.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

const KEY: &str = "precompiled_charsmap";

/// The bytes of the longest replacement of a normalizer that was loaded.
pub(super) fn longest_replacement(normalizer: &Value) -> u64 {
    let map = normalizer[KEY].as_str().and_then(decoded);
    let (_, replacements) = map.as_deref().and_then(parts).unwrap_or_default();
    let lens = replacements.split(|&byte| byte == 0).map(<[u8]>::len);
    lens.max().unwrap_or(0) as u64
}

/// Checks the maps of a normalizer and of its members.
///
/// # Errors
/// The fault of a map.
pub(super) fn check_maps(normalizer: &Value) -> Result<(), &'static str> {
    match normalizer {
        Value::Object(entries) => {
            // The crate reports values that are not base64.
            if let Some(map) = entries.get(KEY).and_then(Value::as_str).and_then(decoded) {
                let (trie, replacements) =
                    parts(&map).ok_or("the precompiled_charsmap of its normalizer is truncated")?;
                check(&units(trie), replacements)
                    .ok_or("the precompiled_charsmap of its normalizer contradicts itself")?;
            }
            entries.values().try_for_each(check_maps)
        }
        Value::Array(members) => members.iter().try_for_each(check_maps),
        _ => Ok(()),
    }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(text).ok()
}

/// The trie and the replacements.
fn parts(map: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = map.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize / 4 * 4)
}

fn units(trie: &[u8]) -> Vec<u32> {
    let (units, _) = trie.as_chunks::<4>();
    units.iter().copied().map(u32::from_le_bytes).collect()
}

/// Checks that every position reachable by a text is inside the trie, and that every value is the
/// start of a character in the replacements; `None` otherwise. `double_array` describes the layout
/// of a unit.
fn check(units: &[u32], replacements: &[u8]) -> Option<()> {
    // The crate refuses bytes that are not UTF-8.
    let replacements = std::str::from_utf8(replacements).unwrap_or_default();
    let mut is_seen = vec![false; units.len()];
    let mut nodes = vec![offset(*units.first()?)];
    while let Some(node) = nodes.pop() {
        // The children of a node are in one block of 256 units.
        if std::mem::replace(is_seen.get_mut(node)?, true) {
            continue;
        }
        units.get(node | 0xff)?;
        for byte in 1..=0xff {
            let unit = units[node ^ byte];
            if (unit & (1 << 31 | 0xff)) as usize != byte {
                continue;
            }
            let child = node ^ byte ^ offset(unit);
            if unit & 1 << 8 != 0 {
                let value = units.get(child)? & !(1 << 31);
                if !replacements.is_char_boundary(value as usize) {
                    return None;
                }
            }
            nodes.push(child);
        }
    }
    Some(())
}

fn offset(unit: u32) -> usize {
    ((unit >> 10) as usize) << ((unit & 1 << 9) >> 6)
}

//! The encoding of a journal entry: a line that starts with its checksum, so that an incomplete
//! line is detected.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Hexadecimal digits of the checksum, and the space after them.
const PREFIX_LEN: usize = 9;

pub(super) fn line_of(entry: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let json = serde_json::to_string(entry)?;
    Ok(format!("{:08x} {json}\n", crc32c::crc32c(json.as_bytes())).into_bytes())
}

/// The JSON of a line without its line end, if the line is complete.
fn json_of(line: &[u8]) -> Option<&[u8]> {
    let (prefix, json) = line.split_at_checked(PREFIX_LEN)?;
    let expected = format!("{:08x} ", crc32c::crc32c(json));
    (prefix == expected.as_bytes()).then_some(json)
}

/// The entry of a line without its line end, if the line is complete.
pub(super) fn entry_of<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(json_of(line)?).ok()
}

/// The terminated lines of `text`, each with the position after it.
pub(super) fn complete_lines(text: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let mut start = 0;
    memchr::memchr_iter(b'\n', text).map(move |end| {
        let line = &text[start..end];
        start = end + 1;
        (line, start)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn incomplete_or_modified_lines_are_not_entries(entry: Vec<u32>, cut: prop::sample::Index, bit in 0u8..8) {
            let line = line_of(&entry).unwrap();
            let inside = &line[..line.len() - 1];
            prop_assert_eq!(entry_of::<Vec<u32>>(inside), Some(entry));
            let at = cut.index(inside.len());
            prop_assert_eq!(entry_of::<Vec<u32>>(&inside[..at]), None);
            let mut changed = inside.to_vec();
            changed[at] ^= 1 << bit;
            prop_assert_eq!(entry_of::<Vec<u32>>(&changed), None);
        }
    }

    #[test]
    fn a_line_without_its_end_is_ignored() {
        let lines: Vec<_> = complete_lines(b"ab\n\ncd").collect();
        assert_eq!(lines, [(&b"ab"[..], 3), (&b""[..], 4)]);
    }
}

//! Natural order (`part2` before `part10`), implemented as keys that are compared bytewise.
//!
//! Whitespace is ignored, except between two runs of digits. Runs of digits compare by value; runs
//! that start with a zero come first and compare digit by digit, like decimals. Names that are
//! equal under these rules compare by their bytes.

use std::ffi::OsStr;
use std::path::Path;

/// Ends a run of digits; smaller than any digit.
const END_OF_RUN: u8 = 1;
/// Ends a name; smaller than any byte of a name, because a name cannot contain it.
const END_OF_NAME: u8 = 0;

/// The sort key of `name` among its siblings.
pub(crate) fn name_key(name: &OsStr) -> Vec<u8> {
    let mut key = Vec::with_capacity(2 * name.len() + 8);
    push_name(name, &mut key);
    key
}

/// Sorts paths in natural order, component by component.
pub fn sort_naturally<P: AsRef<Path>>(paths: &mut [P]) {
    paths.sort_by_cached_key(|path| path_key(path.as_ref()));
}

/// The sort key of `path`.
pub(crate) fn path_key(path: &Path) -> Vec<u8> {
    let mut key = Vec::new();
    for name in path.components() {
        push_name(name.as_os_str(), &mut key);
    }
    key
}

fn push_name(name: &OsStr, key: &mut Vec<u8>) {
    push_natural(name.to_string_lossy().as_bytes(), key);
    key.push(END_OF_NAME);
    key.extend(name.as_encoded_bytes());
    key.push(END_OF_NAME);
}

/// Appends the part of a UTF-8 name that natural order compares.
fn push_natural(name: &[u8], key: &mut Vec<u8>) {
    let mut rest = name;
    while let Some(&first) = rest.first() {
        let len = match first {
            b'0'..=b'9' => push_run(rest, key),
            0..=0x7f => {
                if !char::from(first).is_whitespace() {
                    key.push(first);
                }
                1
            }
            _ => push_char(rest, key),
        };
        rest = &rest[len..];
    }
}

/// Appends a run of digits; returns its length.
fn push_run(rest: &[u8], key: &mut Vec<u8>) -> usize {
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let len = rest.iter().take_while(is_digit).count();
    // Both markers sort relative to other characters as digits do.
    if rest[0] == b'0' {
        key.push(b'0');
        key.extend(&rest[1..len]);
        key.push(END_OF_RUN);
    } else {
        key.push(b'1');
        // Names are far shorter than 4 GiB.
        key.extend((len as u32).to_be_bytes());
        key.extend(&rest[..len]);
    }
    len
}

/// Appends a non-ASCII character unless it is whitespace; returns its length in bytes.
fn push_char(rest: &[u8], key: &mut Vec<u8>) -> usize {
    let is_continued = |byte: &&u8| (0x80..0xc0).contains(*byte);
    let len = 1 + rest[1..].iter().take_while(is_continued).count();
    let is_space =
        str::from_utf8(&rest[..len]).is_ok_and(|char| char.chars().all(char::is_whitespace));
    if !is_space {
        key.extend(&rest[..len]);
    }
    len
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;

    /// The order by its definition, component by component.
    fn compare(a: &Path, b: &Path) -> Ordering {
        let mut names = a.components().zip(b.components()).map(|(a, b)| {
            let (a, b) = (a.as_os_str(), b.as_os_str());
            natord::compare(&a.to_string_lossy(), &b.to_string_lossy()).then_with(|| a.cmp(b))
        });
        names
            .find(|ordering| ordering.is_ne())
            .unwrap_or_else(|| a.components().count().cmp(&b.components().count()))
    }

    fn path() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a1-]{1,3}(/[ab01. -]{1,4}){0,2}",
            "[0-3]{1,6}(/[0-2 ]{1,5}){0,2}",
            "(\u{1}|[^/\0]){1,4}(/[^/\0]{1,4})?",
            "part0*[0-9]{1,3}\u{2003}?[0-9]{0,2}[.]jsonl",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn keys_are_in_natural_order(a in path(), b in path()) {
            let (a, b) = (Path::new(&a), Path::new(&b));
            prop_assert_eq!(path_key(a).cmp(&path_key(b)), compare(a, b), "{:?} {:?}", a, b);
        }
    }

    #[test]
    fn names_that_are_not_utf8_are_ordered_too() {
        use std::os::unix::ffi::OsStrExt;

        let key = |bytes: &[u8]| name_key(OsStr::from_bytes(bytes));
        assert!(key(b"a\xff") > key(b"a\xfe") && key(b"a\xfe") > key(b"a2"));
    }
}

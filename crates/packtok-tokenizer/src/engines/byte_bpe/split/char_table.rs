//! One byte for every character: the classes that it is in, or the number of its class.

use std::collections::HashMap;

/// Number of characters that differ only in the last six bits. In UTF-8, the last byte holds these
/// bits.
const PAGE_CHARS: usize = 64;

/// The last six bits of the lowest first byte of a character of four bytes.
pub(super) const OF_FOUR: usize = 0x30;

type Page = [u8; PAGE_CHARS];

/// A byte for every character, in two steps: the page of a character, and the character within the
/// page. Most pages are equal and stored once, so the table takes about 60 kB.
pub(super) struct CharTable {
    /// By a character's number without the last six bits.
    page_of: Vec<u16>,
    /// The page for the last six bits of a character's first byte and second byte. For characters
    /// of three bytes, this is their page. For characters of two bytes, all entries of this page
    /// are the byte of the character, so that one lookup serves both lengths.
    page_of_two: Vec<u16>,
    pages: Vec<Page>,
}

/// Pages, each stored once.
#[derive(Default)]
struct Pages {
    all: Vec<Page>,
    numbers: HashMap<Page, u16>,
}

impl Pages {
    fn number(&mut self, page: Page) -> u16 {
        *self.numbers.entry(page).or_insert_with(|| {
            self.all.push(page);
            self.all.len() as u16 - 1
        })
    }
}

impl CharTable {
    /// With the byte of each scalar, surrogates included.
    pub(super) fn new(all: &[u8]) -> Self {
        let (chunks, _) = all.as_chunks();
        let mut pages = Pages::default();
        let page_of = chunks.iter().map(|&chunk| pages.number(chunk)).collect();
        let of_two = (0..1 << 12).map(|two: usize| match two {
            // 0b110..... and 0b10......
            0..0x800 => pages.number([all[two]; PAGE_CHARS]),
            // 0b1110....: a first byte of three. Characters of four bytes are not looked up in
            // this table.
            _ => pages.number(chunks[two & 0x3ff]),
        });
        Self {
            page_of_two: of_two.collect(),
            page_of,
            pages: pages.all,
        }
    }

    /// The page for the last six bits of a character's first byte and second byte.
    pub(super) fn page_of_two(&self, first: usize, second: usize) -> &Page {
        &self.pages[usize::from(self.page_of_two[first << 6 | second])]
    }

    #[inline]
    pub(super) fn of(&self, scalar: usize) -> u8 {
        self.pages[usize::from(self.page_of[scalar / PAGE_CHARS])][scalar % PAGE_CHARS]
    }

    /// The byte of the character beyond ASCII whose first byte is at `at`.
    #[inline(always)]
    pub(super) fn of_wide(&self, text: &[u8], at: usize) -> u8 {
        let bytes = match text.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
            Some(bytes) => *bytes,
            None => {
                let mut bytes = [0; 4];
                bytes[..text.len() - at].copy_from_slice(&text[at..]);
                bytes
            }
        };
        let [first, low, lower, lowest] = bytes.map(|byte| usize::from(byte & 0x3f));
        if first < OF_FOUR {
            return self.page_of_two(first, low)[lower];
        }
        self.of((first & 7) << 18 | low << 12 | lower << 6 | lowest)
    }
}

//! The initial symbols of a word before merging: one per byte, or one per character.
//!
//! An alphabet is read with the ids of tokens. Rules number tokens as symbols and keep an alphabet of symbols
//! ([`Alphabet::map`]).

/// Characters whose numbers are adjacent in memory.
const PAGE: usize = 256;
const NONE: u32 = u32::MAX;

/// The id of each byte or each character. A character without an id becomes the ids of its bytes.
pub(in crate::engines) struct Alphabet {
    /// For an ASCII byte of a character alphabet, the id of the character.
    of_byte: [u32; 256],
    chars: Option<Chars>,
}

/// The ids of characters beyond ASCII.
struct Chars {
    /// For each [`PAGE`] characters, their page; page 0 has no ids.
    page_of: Vec<u16>,
    pages: Vec<[u32; PAGE]>,
}

impl Alphabet {
    /// An alphabet of bytes, each with an id.
    pub(super) fn of_bytes(of_byte: [u32; 256]) -> Self {
        Self {
            of_byte,
            chars: None,
        }
    }

    /// An alphabet of characters. A character without an id is encoded as its bytes.
    pub(super) fn of_chars(
        mut of_byte: [u32; 256],
        ids: impl Iterator<Item = (char, u32)>,
    ) -> Self {
        let mut chars = Chars {
            page_of: vec![0; char::MAX as usize / PAGE + 1],
            pages: vec![[NONE; PAGE]],
        };
        for (char, id) in ids {
            if char.is_ascii() {
                of_byte[char as usize] = id
            } else {
                chars.put(char, id)
            }
        }
        Self {
            of_byte,
            chars: Some(chars),
        }
    }

    /// The ids of all symbols; `no_id` stands for bytes without one.
    pub(super) fn ids(&self, no_id: u32) -> impl Iterator<Item = u32> {
        let pages = self.chars.iter().flat_map(|chars| &chars.pages);
        let of_chars = pages.flatten().filter(|&&id| id != NONE);
        let of_bytes = self.of_byte.iter().filter(move |&&id| id != no_id);
        of_bytes.chain(of_chars).copied()
    }

    /// The same alphabet with other ids.
    pub(super) fn map(mut self, other: impl Fn(u32) -> u32) -> Self {
        let pages = self.chars.iter_mut().flat_map(|chars| &mut chars.pages);
        let of_chars = pages.flatten().filter(|id| **id != NONE);
        for id in self.of_byte.iter_mut().chain(of_chars) {
            *id = other(*id);
        }
        self
    }

    /// Whether a character has a number other than `no_id`, which stands for bytes without one.
    #[inline]
    pub(super) fn has(&self, char: char, no_id: u32) -> bool {
        match &self.chars {
            Some(chars) if !char.is_ascii() => chars.id(char) != NONE,
            _ => self.of_byte[char as usize % 256] != no_id,
        }
    }

    /// Whether symbols are characters, which must not be split.
    pub(super) fn is_of_chars(&self) -> bool {
        self.chars.is_some()
    }

    /// The id of a byte that is a symbol.
    #[inline(always)]
    pub(super) fn id_of_byte(&self, byte: u8) -> u32 {
        self.of_byte[usize::from(byte)]
    }

    /// Calls `put` with each symbol of a word. There are at most as many as bytes.
    #[inline(always)]
    pub(super) fn symbols(&self, word: &[u8], mut put: impl FnMut(u32)) {
        let Some(chars) = &self.chars else {
            return word.iter().for_each(|&byte| put(self.id_of_byte(byte)));
        };
        let word = std::str::from_utf8(word).expect("words are cut between characters");
        for char in word.chars() {
            match chars.id(char) {
                NONE => {
                    let mut bytes = [0; 4];
                    let bytes = char.encode_utf8(&mut bytes).bytes();
                    bytes.for_each(|byte| put(self.id_of_byte(byte)));
                }
                id => put(id),
            }
        }
    }
}

impl Chars {
    fn put(&mut self, char: char, id: u32) {
        let page = &mut self.page_of[char as usize / PAGE];
        if *page == 0 {
            *page = self.pages.len() as u16;
            self.pages.push([NONE; PAGE]);
        }
        self.pages[usize::from(*page)][char as usize % PAGE] = id;
    }

    #[inline(always)]
    fn id(&self, char: char) -> u32 {
        let page = self.page_of[char as usize / PAGE];
        self.pages[usize::from(page)][char as usize % PAGE]
    }
}

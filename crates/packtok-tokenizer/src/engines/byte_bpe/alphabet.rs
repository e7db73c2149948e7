//! The symbols that a word begins as, before any is merged: one for each byte, or one for each character.

/// Characters whose ids are next to each other in memory.
const PAGE: usize = 256;
const NONE: u32 = u32::MAX;

/// The id of each byte, or of each character; one that has no id is the ids of its bytes.
pub(super) struct Alphabet {
    /// Of a byte that is a character, the character's.
    of_byte: [u32; 256],
    chars: Option<Chars>,
}

/// Ids of characters beyond ASCII.
struct Chars {
    /// The page of each [`PAGE`] characters; the first has no ids.
    page_of: Vec<u16>,
    pages: Vec<[u32; PAGE]>,
}

impl Alphabet {
    /// Bytes, each with an id.
    pub(super) fn of_bytes(of_byte: [u32; 256]) -> Self {
        Self {
            of_byte,
            chars: None,
        }
    }

    /// Characters, and the bytes of those that have no id.
    pub(super) fn of_chars(
        mut of_byte: [u32; 256],
        ids: impl Iterator<Item = (char, u32)>,
    ) -> Self {
        let mut chars = Chars {
            page_of: vec![0; char::MAX as usize / PAGE + 1],
            pages: vec![[NONE; PAGE]],
        };
        for (char, id) in ids {
            match char.is_ascii() {
                true => of_byte[char as usize] = id,
                false => chars.put(char, id),
            }
        }
        Self {
            of_byte,
            chars: Some(chars),
        }
    }

    /// Whether symbols are characters, which must not be cut.
    pub(super) fn is_of_chars(&self) -> bool {
        self.chars.is_some()
    }

    /// The id of a byte that is a symbol of its own.
    #[inline(always)]
    pub(super) fn id_of_byte(&self, byte: u8) -> u32 {
        self.of_byte[usize::from(byte)]
    }

    /// Calls `put` with each symbol of a word, of which there are as many as bytes at most.
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

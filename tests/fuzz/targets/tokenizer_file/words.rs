//! Strings that vocabularies and texts are made of.

use crate::source::Source;

/// Letters of one to four bytes in both cases, marks, digits, punctuation, symbols.
const ATOMS: [&str; 100] = [
    "a",
    "b",
    "c",
    "d",
    "e",
    "i",
    "n",
    "s",
    "t",
    "h",
    "A",
    "B",
    "Z",
    "S",
    "the",
    "ing",
    "é",
    "É",
    "e\u{301}",
    "ß",
    "ſ",
    "İ",
    "ı",
    "ǆ",
    "ǅ",
    "Σ",
    "ς",
    "я",
    "Я",
    "п",
    "ﬁ",
    "Å",
    "\u{212b}",
    "ø",
    "語",
    "日",
    "本",
    "々",
    "ー",
    "ア",
    "が",
    "か\u{3099}",
    "한",
    "\u{1112}\u{1161}\u{11ab}",
    "각",
    "ا",
    "ب",
    "א",
    "ก",
    "ि",
    "क",
    "𐐷",
    "𐐏",
    "𝐀",
    "0",
    "1",
    "22",
    "7",
    "²",
    "½",
    "٣",
    "Ⅷ",
    "𝟘",
    "①",
    ".",
    ",",
    ";",
    "!",
    "?",
    "-",
    "--",
    "_",
    "/",
    "'",
    "'s",
    "'LL",
    "'re",
    "'ſ",
    "'lL",
    "\"",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    "|",
    "#",
    "##",
    "@@",
    "«",
    "€",
    "—",
    "。",
    "、",
    "😀",
    "👩\u{200d}💻",
    "❤\u{fe0f}",
    "+",
    "$",
];

/// White space of every kind, and characters that are similar to it.
const SPACES: [&str; 36] = [
    " ", " ", " ", " ", " ", "  ", "   ", "\n", "\n", "\n\n", "\r\n", "\r", "\t", "\u{b}", "\u{c}",
    "\u{1c}", "\u{1f}", "\u{85}", "\u{a0}", "\u{ad}", "\u{1680}", "\u{180e}", "\u{2000}",
    "\u{2003}", "\u{200a}", "\u{200b}", "\u{200d}", "\u{2028}", "\u{2029}", "\u{202f}", "\u{205f}",
    "\u{2060}", "\u{3000}", "\u{feff}", "▁", "▁▁",
];

/// Characters that normalizers, classes and tables of different versions of Unicode treat differently.
const ODD: [&str; 66] = [
    "\0",
    "\u{1}",
    "\u{8}",
    "\u{7f}",
    "\u{8f}",
    "\u{9f}",
    "\u{fffd}",
    "\u{fffe}",
    "\u{ffff}",
    "\u{e000}",
    "\u{f0000}",
    "\u{10ffff}",
    "\u{300}",
    "\u{301}",
    "\u{323}",
    "\u{327}",
    "\u{340}",
    "\u{344}",
    "\u{345}",
    "\u{37e}",
    "\u{387}",
    "\u{600}",
    "\u{61d}",
    "\u{93c}",
    "\u{958}",
    "\u{fb1d}",
    "\u{fb4f}",
    "\u{1161}",
    "\u{11a8}",
    "\u{1b7d}",
    "\u{1c89}",
    "\u{1c8a}",
    "\u{1e9e}",
    "\u{1e9b}\u{323}",
    "\u{1fbe}",
    "\u{2126}",
    "\u{212a}",
    "\u{2e43}",
    "\u{2ffc}",
    "\u{31ef}",
    "\u{a7cb}",
    "\u{a7cd}",
    "\u{a7da}",
    "\u{a7dc}",
    "\u{10d4a}",
    "\u{10d50}",
    "\u{10d6f}",
    "\u{11de0}",
    "\u{11de5}",
    "\u{11de9}",
    "\u{11bf0}",
    "\u{16d40}",
    "\u{16d70}",
    "\u{16ea0}",
    "\u{16eb8}",
    "\u{16ff4}",
    "\u{16ff5}",
    "\u{16ff6}",
    "\u{1ccf0}",
    "\u{1d15e}",
    "\u{1e5d0}",
    "\u{1e5f1}",
    "\u{2ebf0}",
    "\u{2f800}",
    "\u{323b0}",
    "\u{e0100}",
];

/// The strings that one file uses.
pub(crate) struct Words {
    atoms: Vec<String>,
}

impl Words {
    pub(crate) fn of(source: &mut Source) -> Self {
        let num_atoms = 4 + source.below(28);
        let atoms = (0..num_atoms).map(|_| match source.below(20) {
            0 => source.pick(&ODD).to_owned(),
            1 => source.pick(&SPACES).to_owned(),
            2 => source.char().to_string(),
            _ => source.pick(&ATOMS).to_owned(),
        });
        let mut atoms: Vec<String> = atoms.collect();
        atoms.extend(["a", "b"].map(str::to_owned));
        Self { atoms }
    }

    pub(crate) fn atom(&self, source: &mut Source) -> String {
        source.pick(&self.atoms)
    }

    /// A few atoms.
    pub(crate) fn word(&self, source: &mut Source) -> String {
        let num_atoms = 1 + source.below(5);
        (0..num_atoms).map(|_| self.atom(source)).collect()
    }

    pub(crate) fn atoms(&self) -> &[String] {
        &self.atoms
    }
}

pub(crate) fn space(source: &mut Source) -> &'static str {
    source.pick(&SPACES)
}

pub(crate) fn odd(source: &mut Source) -> &'static str {
    source.pick(&ODD)
}

/// Any string of the lists above, or any character.
pub(crate) fn any(source: &mut Source) -> String {
    match source.below(6) {
        0 => space(source).to_owned(),
        1 => odd(source).to_owned(),
        2 => source.char().to_string(),
        _ => source.pick(&ATOMS).to_owned(),
    }
}

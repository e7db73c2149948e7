//! The header of an NPY file: the type and size of the array and the position of its elements.
//!
//! The format is that of NumPy's `numpy.lib.format`: magic, version, length, and a Python literal
//! of a dict with the keys `descr`, `fortran_order` and `shape`. The parser accepts the literals
//! that NumPy writes, and evaluates no code.

use std::path::Path;

use packtok_pbin::TokenWidth;

use crate::error::{Error, Result};

/// The bytes that every NPY file starts with.
pub const MAGIC: [u8; 6] = *b"\x93NUMPY";

/// NumPy pads headers so that elements start at a multiple of this.
const ALIGN: usize = 64;
/// NumPy leaves space in the header for a first dimension of this many digits.
const GROWTH_DIGITS: usize = 21;
/// The longest header that is parsed. NumPy's own limit for untrusted files is 10,000.
const MAX_HEADER_BYTES: u64 = 1 << 16;
/// Dimensions that NumPy arrays can have.
const MAX_DIMENSIONS: usize = 64;

/// The type of an array's elements, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Element {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F64,
}

impl Element {
    const ALL: [(Self, &'static str, u64, &'static str); 9] = [
        (Self::I8, "|i1", 1, "int8"),
        (Self::I16, "<i2", 2, "int16"),
        (Self::I32, "<i4", 4, "int32"),
        (Self::I64, "<i8", 8, "int64"),
        (Self::U8, "|u1", 1, "uint8"),
        (Self::U16, "<u2", 2, "uint16"),
        (Self::U32, "<u4", 4, "uint32"),
        (Self::U64, "<u8", 8, "uint64"),
        (Self::F64, "<f8", 8, "float64"),
    ];

    /// The elements that are tokens of this width.
    pub fn of_width(width: TokenWidth) -> Self {
        match width {
            TokenWidth::U8 => Self::U8,
            TokenWidth::U16 => Self::U16,
            TokenWidth::U32 => Self::U32,
        }
    }

    /// The type that formats use whose ids of four bytes are signed.
    pub(crate) fn signed_if_four_bytes(width: TokenWidth) -> Self {
        match width {
            TokenWidth::U32 => Self::I32,
            width => Self::of_width(width),
        }
    }

    /// The type with this name in NumPy.
    pub fn of_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|(.., known)| *known == name)
            .map(|(element, ..)| element)
    }

    /// The name in NumPy.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].3
    }

    /// The dtype as NumPy writes it in a header.
    pub fn descr(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Bytes of one element.
    pub fn bytes(self) -> u64 {
        Self::ALL[self as usize].2
    }

    fn of_descr(descr: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, known, ..)| *known == descr)
            .map(|(element, ..)| element)
    }
}

/// A plain one-dimensional array that fills the rest of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NpyHeader {
    /// The type of the elements.
    pub element: Element,
    /// Number of elements.
    pub elements: u64,
    /// Bytes before the first element.
    pub header_bytes: u64,
}

impl NpyHeader {
    /// Reads the header of the file with content `file`; `path` is for errors.
    ///
    /// # Errors
    /// The file is not a plain, little-endian, one-dimensional array of numbers in C order that is as
    /// long as the header declares.
    pub fn parse(file: &[u8], path: &Path) -> Result<Self> {
        let (text, start) = header_text(file, path)?;
        let literal =
            Parser { text, at: 0 }
                .dict()
                .map_err(|(at, expected)| Error::NpyHeaderText {
                    path: path.into(),
                    offset: (start + at) as u64,
                    expected,
                })?;
        let element = literal.element(path)?;
        if literal.is_fortran {
            return Err(Error::NpyFortranOrder { path: path.into() });
        }
        let [elements] = literal.shape[..] else {
            return Err(Error::NpyDimensions {
                path: path.into(),
                dimensions: literal.shape.len(),
            });
        };
        let header_bytes = (start + text.len()) as u64;
        let header = Self {
            element,
            elements,
            header_bytes,
        };
        header.check_length(file.len() as u64, path)?;
        Ok(header)
    }

    /// As [`NpyHeader::header_bytes`], in 16 bits, which the headers that NumPy writes fit.
    pub(super) fn first_byte(&self, path: &Path) -> Result<u16> {
        u16::try_from(self.header_bytes).map_err(|_| Error::NpyHeaderText {
            path: path.into(),
            offset: 8,
            expected: "a header of at most 65535 bytes",
        })
    }

    fn check_length(&self, file_bytes: u64, path: &Path) -> Result<()> {
        let width = self.element.bytes();
        // Wider than any product of two 64-bit numbers.
        let expected =
            u128::from(self.header_bytes) + u128::from(self.elements) * u128::from(width);
        if expected != u128::from(file_bytes) {
            return Err(Error::NpyFileLength {
                path: path.into(),
                elements: self.elements,
                width,
                expected,
                found: file_bytes.into(),
            });
        }
        if !self.header_bytes.is_multiple_of(width) {
            return Err(Error::NpyMisaligned {
                path: path.into(),
                header_bytes: self.header_bytes,
                width,
            });
        }
        Ok(())
    }

    /// The header that `numpy.save` writes for such an array.
    pub fn encode(element: Element, elements: u64) -> Vec<u8> {
        let shape = elements.to_string();
        let mut text = format!(
            "{{'descr': '{}', 'fortran_order': False, 'shape': ({shape},), }}",
            element.descr()
        );
        text.extend(std::iter::repeat_n(
            ' ',
            GROWTH_DIGITS.saturating_sub(shape.len()),
        ));
        let prefix_bytes = MAGIC.len() + 4;
        // The line feed at the end counts too.
        let padding = ALIGN - (prefix_bytes + text.len() + 1) % ALIGN;
        text.extend(std::iter::repeat_n(' ', padding));
        text.push('\n');
        let mut header = MAGIC.to_vec();
        header.extend([1, 0]);
        // The header of a one-dimensional array has 118 bytes.
        header.extend((text.len() as u16).to_le_bytes());
        header.extend(text.into_bytes());
        header
    }
}

/// The literal in the header, and the position where it starts.
fn header_text<'a>(file: &'a [u8], path: &Path) -> Result<(&'a [u8], usize)> {
    let truncated = |expected| Error::NpyHeaderTruncated {
        path: path.into(),
        found: file.len() as u64,
        expected,
    };
    let Some(rest) = file.strip_prefix(&MAGIC) else {
        let path = path.into();
        // The opcode PROTO, with a version that pickles have.
        return match file {
            [0x80, 2..=5, ..] => Err(Error::NpyIsPickle { path }),
            _ => Err(Error::NotNpy { path }),
        };
    };
    let (len, start) = match rest {
        [1, 0, a, b, ..] => (u64::from(u16::from_le_bytes([*a, *b])), 10),
        [2 | 3, 0, a, b, c, d, ..] => (u64::from(u32::from_le_bytes([*a, *b, *c, *d])), 12),
        [1..=3, 0, ..] | [_] | [] => return Err(truncated(12)),
        [major, minor, ..] => {
            return Err(Error::NpyVersion {
                path: path.into(),
                major: *major,
                minor: *minor,
            });
        }
    };
    if len > MAX_HEADER_BYTES {
        return Err(Error::NpyHeaderText {
            path: path.into(),
            offset: 8,
            expected: "a header of at most 65536 bytes",
        });
    }
    let end = start + len as usize;
    match file.get(start..end) {
        Some(text) => Ok((text, start)),
        None => Err(truncated(end as u64)),
    }
}

/// The values of the dict in a header.
#[derive(Default)]
struct Literal {
    /// `None` if the value is a list, as for a structured dtype.
    descr: Option<String>,
    is_fortran: bool,
    shape: Vec<u64>,
}

impl Literal {
    fn element(&self, path: &Path) -> Result<Element> {
        let path = || path.to_owned();
        let Some(descr) = &self.descr else {
            return Err(Error::NpyStructured { path: path() });
        };
        if let Some(element) = Element::of_descr(descr) {
            return Ok(element);
        }
        let descr = descr.clone();
        let kind = descr.trim_start_matches(['|', '<', '>', '=']);
        Err(match kind.as_bytes().first() {
            Some(b'O') => Error::NpyObjectArray {
                path: path(),
                descr,
            },
            Some(b'V') => Error::NpyStructured { path: path() },
            _ => Error::NpyElementType {
                path: path(),
                descr,
            },
        })
    }
}

type Parsed<T> = Result<T, (usize, &'static str)>;

/// Reads the literal of a header from its bytes.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn dict(mut self) -> Parsed<Literal> {
        let mut literal = Literal::default();
        let mut has_key = [false; 3];
        self.expect(b'{', "a dict")?;
        while !self.take(b'}') {
            let at = self.at;
            let key = self.string()?;
            self.expect(b':', "a colon after the key")?;
            let which = match &*key {
                "descr" => {
                    literal.descr = self.descr()?;
                    0
                }
                "fortran_order" => {
                    literal.is_fortran = self.boolean()?;
                    1
                }
                "shape" => {
                    literal.shape = self.shape()?;
                    2
                }
                _ => return Err((at, "the keys 'descr', 'fortran_order' and 'shape'")),
            };
            if std::mem::replace(&mut has_key[which], true) {
                return Err((at, "each key once"));
            }
            if !self.take(b',') {
                self.expect(b'}', "a comma or the end of the dict")?;
                break;
            }
        }
        self.skip_space();
        if self.at < self.text.len() {
            return Err((self.at, "only spaces after the dict"));
        }
        match has_key {
            [true, true, true] => Ok(literal),
            _ => Err((0, "the keys 'descr', 'fortran_order' and 'shape'")),
        }
    }

    /// A dtype. `None` for a list, which is skipped up to its closing bracket.
    fn descr(&mut self) -> Parsed<Option<String>> {
        if !self.take(b'[') {
            return self.string().map(Some);
        }
        let mut depth = 1;
        while depth > 0 {
            match self.text.get(self.at) {
                Some(b'\'' | b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'[') => depth += 1,
                Some(b']') => depth -= 1,
                Some(_) => {}
                None => return Err((self.at, "the end of the list")),
            }
            self.at += 1;
        }
        Ok(None)
    }

    fn string(&mut self) -> Parsed<String> {
        self.skip_space();
        let start = self.at;
        let Some(&quote @ (b'\'' | b'"')) = self.text.get(start) else {
            return Err((start, "a string"));
        };
        let rest = &self.text[start + 1..];
        let end = rest.iter().position(|&byte| byte == quote);
        let content = end.map(|end| &rest[..end]);
        match content {
            Some(content) if content.is_ascii() && !content.contains(&b'\\') => {
                self.at = start + content.len() + 2;
                Ok(content.iter().map(|&byte| char::from(byte)).collect())
            }
            _ => Err((start, "a string of ASCII characters without escapes")),
        }
    }

    fn boolean(&mut self) -> Parsed<bool> {
        self.skip_space();
        for (word, value) in [("True", true), ("False", false)] {
            if self.text[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err((self.at, "True or False"))
    }

    fn shape(&mut self) -> Parsed<Vec<u64>> {
        self.expect(b'(', "a tuple")?;
        let mut shape = Vec::new();
        while !self.take(b')') {
            if shape.len() == MAX_DIMENSIONS {
                return Err((self.at, "at most 64 dimensions"));
            }
            shape.push(self.number()?);
            if !self.take(b',') {
                self.expect(b')', "a comma or the end of the tuple")?;
                break;
            }
        }
        Ok(shape)
    }

    fn number(&mut self) -> Parsed<u64> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = str::from_utf8(&rest[..digits]).unwrap_or_default();
        let number = text.parse().map_err(|_| (self.at, "a 64-bit number"))?;
        self.at += digits;
        // Python 2 wrote long integers this way.
        if self.text.get(self.at) == Some(&b'L') {
            self.at += 1;
        }
        Ok(number)
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Parsed<()> {
        if self.take(byte) {
            Ok(())
        } else {
            Err((self.at, expected))
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_there = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(literal: &str, data_bytes: usize) -> Result<NpyHeader, String> {
        let mut file = MAGIC.to_vec();
        file.extend([1, 0]);
        file.extend((literal.len() as u16).to_le_bytes());
        file.extend(literal.bytes());
        file.resize(file.len() + data_bytes, 0);
        NpyHeader::parse(&file, Path::new("a.npy")).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_encoded_is_parsed() {
        for elements in [0, 1, 9, 12_345] {
            for (element, ..) in Element::ALL {
                let mut file = NpyHeader::encode(element, elements);
                assert_eq!(file.len(), 128);
                let end = file.len() + (elements * element.bytes()) as usize;
                file.resize(end, 0);
                let header = NpyHeader::parse(&file, Path::new("a.npy")).unwrap();
                assert_eq!((header.element, header.elements), (element, elements));
                assert_eq!(header.header_bytes, 128);
            }
        }
    }

    #[test]
    fn other_arrays_are_refused_by_name() {
        let dict = |descr: &str, order: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}")
        };
        for (literal, expected) in [
            (
                dict("'|O'", "False", "(3,)"),
                "declares an object array (dtype \"|O\")",
            ),
            (
                dict("[('a', '<i8'), ('b]', '<f4')]", "False", "(3,)"),
                "a structured dtype",
            ),
            (dict("'|V8'", "False", "(3,)"), "a structured dtype"),
            (dict("'>i8'", "False", "(3,)"), "has dtype \">i8\""),
            (dict("'<f4'", "False", "(3,)"), "has dtype \"<f4\""),
            (dict("'<i8'", "True", "(3,)"), "Fortran order"),
            (dict("'<i8'", "False", "(3, 4)"), "has 2 dimensions"),
            (dict("'<i8'", "False", "()"), "has 0 dimensions"),
            (
                dict("'<i8'", "False", "(18446744073709551615,)"),
                "which end at byte 147573952589676413004",
            ),
            (
                dict("'<i8'", "False", "(18446744073709551616,)"),
                "expected a 64-bit number",
            ),
            (
                dict("'<i8'", "__import__", "(3,)"),
                "expected True or False",
            ),
            (dict("open('a')", "False", "(3,)"), "expected a string"),
            ("{'descr': '<i8'}".into(), "expected the keys"),
            ("[]".into(), "expected a dict"),
        ] {
            let error = parse(&literal, 24).unwrap_err();
            assert!(error.contains(expected), "{literal}: {error}");
        }
    }

    #[test]
    fn another_file_is_named() {
        let error = |bytes: &[u8]| {
            NpyHeader::parse(bytes, Path::new("a.npy"))
                .unwrap_err()
                .to_string()
        };
        assert!(error(b"\x80\x04\x95").contains("is a pickle"));
        assert!(error(b"PK\x03\x04").contains("is not an NPY file"));
        assert!(error(b"\x93NUMPY\x04\x00aaaaaa").contains("has version 4.0"));
        assert!(error(b"\x93NUMPY\x01\x00\xff\x00{").contains("its NPY header has 265"));
        assert!(error(b"\x93NUMPY\x01").contains("its NPY header has 12"));
        assert!(error(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{").contains("at most 65536 bytes"));
    }
}

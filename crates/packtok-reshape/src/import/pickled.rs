//! Parses pickles of number arrays and of lists of them, and rejects all other pickles.
//!
//! CEPE's scripts pickle NumPy arrays, maps of files (`memmap`) and lists of arrays into MDS
//! columns. Nothing is executed: a global is looked up in a list of seven, and this module itself
//! builds the few kinds of objects in these pickles. Supports protocols 2 to 5. All objects are in
//! one arena and refer to each other by number, so no pickle causes recursion. The length of the
//! pickle bounds the memory: an array, a text or a shape that is referred to many times is copied
//! only within a budget.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;

use packtok_formats::mds::Dtype;

/// Dimensions that an array of NumPy 2 can have; NumPy 1 allows 32.
const MAX_DIMS: usize = 64;
/// Maximum number of times that the bytes of a pickle's arrays are copied in total: once out of a
/// text, once into an array, once to swap their order, and once for each element of a list that
/// names the array.
const MAX_COPIES: usize = 8;
/// Small pickles may copy this many bytes more.
const COPIED_BYTES: usize = 1 << 20;

/// The reason why a pickle is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PickleFault {
    /// A global that NumPy's number arrays do not use.
    #[error(
        "the pickle names {module}.{name}, which is neither a plain NumPy array of numbers nor a list of them"
    )]
    Global {
        /// The module.
        module: String,
        /// The name in it.
        name: String,
    },
    /// An opcode that pickles of number arrays do not use.
    #[error(
        "byte {at} of the pickle is operation 0x{opcode:02x}, which pickles of number arrays do not have"
    )]
    Opcode {
        /// The operation.
        opcode: u8,
        /// Position of the opcode.
        at: usize,
    },
    /// The pickle ends early, or its operations are inconsistent.
    #[error("the pickle is damaged at byte {at}")]
    Damaged {
        /// The position.
        at: usize,
    },
    /// An array of other elements.
    #[error(
        "the array has elements of type {found:?}, expected integers or floats of 8 to 64 bits"
    )]
    Elements {
        /// NumPy's code of the type.
        found: String,
    },
    /// The bytes of an array do not match its shape.
    #[error("the array has {found} bytes of elements, which is not what its shape {shape:?} needs")]
    Shape {
        /// Number of bytes.
        found: usize,
        /// The shape.
        shape: Vec<u64>,
    },
    /// A matrix that is stored by columns.
    #[error("the array is stored by columns, expected rows")]
    ByColumns,
    /// A list of different things.
    #[error("the list has neither only arrays nor only numbers")]
    Mixed,
    /// The pickle contains neither an array nor a list.
    #[error("the pickle is neither an array of numbers nor a list")]
    NoArray,
}

/// An array of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array<'a> {
    /// The type of the elements.
    pub dtype: Dtype,
    /// The shape.
    pub shape: Vec<u64>,
    /// The elements as little-endian bytes, by rows.
    pub bytes: Cow<'a, [u8]>,
}

/// The content of a pickle.
#[derive(Debug, Clone, PartialEq)]
pub enum Pickled<'a> {
    /// An array.
    Array(Array<'a>),
    /// A list of arrays.
    Arrays(Vec<Array<'a>>),
    /// A list of integers.
    Integers(Vec<i64>),
    /// A list of numbers with a float among them.
    Floats(Vec<f64>),
}

/// The functions and classes that pickles of number arrays name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Global {
    Reconstruct,
    FromBuffer,
    NdArray,
    Dtype,
    Encode,
}

/// An object on the stack or in the memo.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Item {
    Mark,
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text {
        start: usize,
        stop: usize,
    },
    Bytes {
        start: usize,
        stop: usize,
    },
    Global(Global),
    /// A number of `objects`.
    Object(usize),
}

/// An object that later operations change, and that is therefore referred to by number.
#[derive(Debug, Clone)]
enum Object<'a> {
    Tuple(Vec<Item>),
    List(Vec<Item>),
    /// Bytes that protocol 2 writes as a text.
    Bytes(Vec<u8>),
    /// The code of the elements, such as `i8`, and their byte order.
    Dtype(&'a str, u8),
    /// `None` until the state of the array is set.
    Array(Option<Array<'a>>),
}

/// Parses a pickle.
///
/// # Errors
/// The pickle contains objects other than arrays of numbers and lists of arrays or numbers.
pub fn parse(bytes: &[u8]) -> Result<Pickled<'_>, PickleFault> {
    let mut parser = Parser {
        bytes,
        at: 0,
        stack: Vec::new(),
        memo: HashMap::new(),
        objects: Vec::new(),
        copies_left: Cell::new(MAX_COPIES * bytes.len() + COPIED_BYTES),
    };
    while let Some(opcode) = parser.step()? {
        parser.apply(opcode)?;
    }
    let item = match parser.stack[..] {
        [item] => item,
        _ => return Err(parser.damaged()),
    };
    parser.result(item)
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Item>,
    memo: HashMap<u32, Item>,
    objects: Vec<Object<'a>>,
    /// Number of bytes that may still be copied.
    copies_left: Cell<usize>,
}

impl<'a> Parser<'a> {
    /// The next operation, or `None` after the last one.
    fn step(&mut self) -> Result<Option<u8>, PickleFault> {
        match self.take(1)?[0] {
            b'.' => Ok(None),
            opcode => Ok(Some(opcode)),
        }
    }

    fn apply(&mut self, opcode: u8) -> Result<(), PickleFault> {
        match opcode {
            0x80 => match self.take(1)?[0] {
                2..=5 => {}
                _ => return Err(self.damaged()),
            },
            // The length of a frame is only a hint for reading.
            0x95 => self.take(8).map(|_| ())?,
            b'N' => self.stack.push(Item::None),
            0x88 => self.stack.push(Item::Bool(true)),
            0x89 => self.stack.push(Item::Bool(false)),
            b'K' => self.push_int::<1>(false)?,
            b'M' => self.push_int::<2>(false)?,
            b'J' => self.push_int::<4>(true)?,
            0x8a => self.push_long()?,
            b'G' => {
                let bytes = self.take(8)?.try_into().map_err(|_| self.damaged())?;
                self.stack.push(Item::Float(f64::from_be_bytes(bytes)));
            }
            0x8c => self.push_text(1)?,
            b'X' => self.push_text(4)?,
            0x8d => self.push_text(8)?,
            b'C' => self.push_bytes(1)?,
            b'B' => self.push_bytes(4)?,
            0x8e | 0x96 => self.push_bytes(8)?,
            b'(' => self.stack.push(Item::Mark),
            b')' => self.push_object(Object::Tuple(Vec::new())),
            0x85 => self.push_tuple(1)?,
            0x86 => self.push_tuple(2)?,
            0x87 => self.push_tuple(3)?,
            b't' => {
                let items = self.pop_to_mark()?;
                self.push_object(Object::Tuple(items));
            }
            b']' => self.push_object(Object::List(Vec::new())),
            b'a' => {
                let item = self.pop()?;
                self.extend_list(vec![item])?;
            }
            b'e' => {
                let items = self.pop_to_mark()?;
                self.extend_list(items)?;
            }
            0x94 => self.memoize(self.memo.len() as u32)?,
            b'q' => {
                let key = self.take(1)?[0].into();
                self.memoize(key)?;
            }
            b'r' => {
                let key = self.number(4)? as u32;
                self.memoize(key)?;
            }
            b'h' => {
                let key = self.take(1)?[0].into();
                self.recall(key)?;
            }
            b'j' => {
                let key = self.number(4)? as u32;
                self.recall(key)?;
            }
            b'c' => {
                let [module, name] = [self.line()?, self.line()?];
                self.push_global(module, name)?;
            }
            0x93 => {
                let [name, module] = [self.pop()?, self.pop()?];
                let [module, name] = [self.text(module)?, self.text(name)?];
                self.push_global(module, name)?;
            }
            b'R' => self.reduce()?,
            b'b' => self.build()?,
            opcode => {
                return Err(PickleFault::Opcode {
                    opcode,
                    at: self.at - 1,
                });
            }
        }
        Ok(())
    }

    fn damaged(&self) -> PickleFault {
        PickleFault::Damaged { at: self.at }
    }

    /// Accounts for bytes that are going to be copied.
    fn spend(&self, count: usize) -> Result<(), PickleFault> {
        let left = self.copies_left.get().checked_sub(count);
        self.copies_left.set(left.ok_or_else(|| self.damaged())?);
        Ok(())
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], PickleFault> {
        let stop = self.at.checked_add(count);
        let taken = stop.and_then(|stop| self.bytes.get(self.at..stop));
        let taken = taken.ok_or_else(|| self.damaged())?;
        self.at += count;
        Ok(taken)
    }

    fn number(&mut self, width: usize) -> Result<u64, PickleFault> {
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(self.take(width)?);
        Ok(u64::from_le_bytes(bytes))
    }

    fn line(&mut self) -> Result<&'a str, PickleFault> {
        let rest = &self.bytes[self.at..];
        let len = rest
            .iter()
            .position(|&byte| byte == b'\n')
            .ok_or_else(|| self.damaged())?;
        let line = self.take(len)?;
        self.take(1)?;
        std::str::from_utf8(line).map_err(|_| self.damaged())
    }

    fn pop(&mut self) -> Result<Item, PickleFault> {
        self.stack.pop().ok_or_else(|| self.damaged())
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Item>, PickleFault> {
        let mark = self.stack.iter().rposition(|item| *item == Item::Mark);
        let mark = mark.ok_or_else(|| self.damaged())?;
        let items = self.stack.split_off(mark + 1);
        self.stack.pop();
        Ok(items)
    }

    fn push_object(&mut self, object: Object<'a>) {
        self.objects.push(object);
        self.stack.push(Item::Object(self.objects.len() - 1));
    }

    fn push_int<const WIDTH: usize>(&mut self, is_signed: bool) -> Result<(), PickleFault> {
        let number = self.number(WIDTH)?;
        self.stack.push(Item::Int(if is_signed {
            i64::from(number as u32 as i32)
        } else {
            number as i64
        }));
        Ok(())
    }

    /// An integer of arbitrary length, of which up to 64 bits are accepted.
    fn push_long(&mut self) -> Result<(), PickleFault> {
        let len = usize::from(self.take(1)?[0]);
        let bytes = self.take(len)?;
        if len > 8 {
            return Err(self.damaged());
        }
        let is_negative = bytes.last().is_some_and(|&byte| byte >= 0x80);
        let mut wide = [if is_negative { 0xff } else { 0 }; 8];
        wide[..len].copy_from_slice(bytes);
        self.stack.push(Item::Int(i64::from_le_bytes(wide)));
        Ok(())
    }

    fn span(&mut self, width: usize) -> Result<(usize, usize), PickleFault> {
        let len = usize::try_from(self.number(width)?).map_err(|_| self.damaged())?;
        let start = self.at;
        self.take(len)?;
        Ok((start, self.at))
    }

    fn push_text(&mut self, width: usize) -> Result<(), PickleFault> {
        let (start, stop) = self.span(width)?;
        self.stack.push(Item::Text { start, stop });
        Ok(())
    }

    fn push_bytes(&mut self, width: usize) -> Result<(), PickleFault> {
        let (start, stop) = self.span(width)?;
        self.stack.push(Item::Bytes { start, stop });
        Ok(())
    }

    fn push_tuple(&mut self, len: usize) -> Result<(), PickleFault> {
        let start = self.stack.len().checked_sub(len);
        let start = start.ok_or_else(|| self.damaged())?;
        let items = self.stack.split_off(start);
        self.push_object(Object::Tuple(items));
        Ok(())
    }

    fn extend_list(&mut self, items: Vec<Item>) -> Result<(), PickleFault> {
        match self.stack.last() {
            Some(&Item::Object(number)) => match &mut self.objects[number] {
                Object::List(list) => list.extend(items),
                _ => return Err(self.damaged()),
            },
            _ => return Err(self.damaged()),
        }
        Ok(())
    }

    fn memoize(&mut self, key: u32) -> Result<(), PickleFault> {
        let item = *self.stack.last().ok_or_else(|| self.damaged())?;
        self.memo.insert(key, item);
        Ok(())
    }

    fn recall(&mut self, key: u32) -> Result<(), PickleFault> {
        let item = *self.memo.get(&key).ok_or_else(|| self.damaged())?;
        self.stack.push(item);
        Ok(())
    }

    fn text(&self, item: Item) -> Result<&'a str, PickleFault> {
        match item {
            Item::Text { start, stop } => {
                std::str::from_utf8(&self.bytes[start..stop]).map_err(|_| self.damaged())
            }
            _ => Err(self.damaged()),
        }
    }

    fn push_global(&mut self, module: &str, name: &str) -> Result<(), PickleFault> {
        let global = match (module, name) {
            ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => {
                Global::Reconstruct
            }
            ("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer") => Global::FromBuffer,
            ("numpy", "ndarray" | "memmap")
            | ("numpy.core.memmap" | "numpy._core.memmap", "memmap") => Global::NdArray,
            ("numpy", "dtype") => Global::Dtype,
            ("_codecs", "encode") => Global::Encode,
            _ => {
                return Err(PickleFault::Global {
                    module: module.to_owned(),
                    name: name.to_owned(),
                });
            }
        };
        self.stack.push(Item::Global(global));
        Ok(())
    }

    fn tuple(&self, item: Item) -> Result<&[Item], PickleFault> {
        match item {
            Item::Object(number) => match &self.objects[number] {
                Object::Tuple(items) => Ok(items),
                _ => Err(self.damaged()),
            },
            _ => Err(self.damaged()),
        }
    }

    /// Builds the object that a NumPy function would build from its arguments.
    fn reduce(&mut self) -> Result<(), PickleFault> {
        let (arguments, global) = (self.pop()?, self.pop()?);
        let arguments = self.tuple(arguments)?;
        let object = match (global, arguments) {
            // The class, an empty shape and a type. The state replaces shape and type later.
            (Item::Global(Global::Reconstruct), [Item::Global(Global::NdArray), _, _]) => {
                Object::Array(None)
            }
            (Item::Global(Global::Dtype), [code, ..]) => Object::Dtype(self.text(*code)?, b'<'),
            (Item::Global(Global::FromBuffer), &[bytes, dtype, shape, order]) => {
                let by_columns = self.text(order)? != "C";
                Object::Array(Some(self.array(shape, dtype, by_columns, bytes)?))
            }
            (Item::Global(Global::Encode), &[text, encoding])
                if self.text(encoding)? == "latin1" =>
            {
                let text = self.text(text)?;
                self.spend(text.len())?;
                let bytes = text.chars().map(|c| u8::try_from(u32::from(c)));
                Object::Bytes(
                    bytes
                        .collect::<Result<_, _>>()
                        .map_err(|_| self.damaged())?,
                )
            }
            _ => return Err(self.damaged()),
        };
        self.push_object(object);
        Ok(())
    }

    /// Sets the state of an array or a type.
    fn build(&mut self) -> Result<(), PickleFault> {
        let state = self.pop()?;
        let Some(&Item::Object(number)) = self.stack.last() else {
            return Err(self.damaged());
        };
        let object = match (&self.objects[number], self.tuple(state)?) {
            (Object::Array(None), &[Item::Int(1), shape, dtype, Item::Bool(by_columns), bytes]) => {
                Object::Array(Some(self.array(shape, dtype, by_columns, bytes)?))
            }
            // Structured fields, subtypes and metadata must be absent.
            (
                &Object::Dtype(code, _),
                &[
                    Item::Int(_),
                    order,
                    Item::None,
                    Item::None,
                    Item::None,
                    _,
                    _,
                    _,
                ],
            ) => {
                let order = self.text(order)?;
                Object::Dtype(code, order.bytes().next().unwrap_or(b'<'))
            }
            (&Object::Dtype(code, _), _) => {
                return Err(PickleFault::Elements {
                    found: code.to_owned(),
                });
            }
            _ => return Err(self.damaged()),
        };
        self.objects[number] = object;
        Ok(())
    }

    fn array(
        &self,
        shape: Item,
        dtype: Item,
        by_columns: bool,
        bytes: Item,
    ) -> Result<Array<'a>, PickleFault> {
        let dims = self.tuple(shape)?;
        if dims.len() > MAX_DIMS {
            return Err(self.damaged());
        }
        let dims = dims.iter().map(|dim| match dim {
            Item::Int(dim) => u64::try_from(*dim).map_err(|_| self.damaged()),
            _ => Err(self.damaged()),
        });
        let shape = dims.collect::<Result<Vec<_>, _>>()?;
        let (dtype, is_swapped) = self.dtype(dtype)?;
        let bytes = match bytes {
            Item::Bytes { start, stop } => Cow::Borrowed(&self.bytes[start..stop]),
            Item::Object(number) => match &self.objects[number] {
                Object::Bytes(bytes) => {
                    self.spend(bytes.len())?;
                    Cow::Owned(bytes.clone())
                }
                _ => return Err(self.damaged()),
            },
            _ => return Err(self.damaged()),
        };
        let needed = shape
            .iter()
            .try_fold(dtype.bytes(), |bytes, &dim| bytes.checked_mul(dim));
        if needed != Some(bytes.len() as u64) {
            return Err(PickleFault::Shape {
                found: bytes.len(),
                shape,
            });
        }
        if by_columns && shape.iter().filter(|&&dim| dim > 1).count() > 1 {
            return Err(PickleFault::ByColumns);
        }
        let bytes = if is_swapped {
            self.spend(bytes.len())?;
            let elements = bytes.chunks_exact(dtype.bytes() as usize);
            Cow::Owned(
                elements
                    .flat_map(|element| element.iter().rev().copied())
                    .collect(),
            )
        } else {
            bytes
        };
        Ok(Array {
            dtype,
            shape,
            bytes,
        })
    }

    /// The type of an array's elements, and whether they are big-endian.
    fn dtype(&self, item: Item) -> Result<(Dtype, bool), PickleFault> {
        let Item::Object(number) = item else {
            return Err(self.damaged());
        };
        let &Object::Dtype(code, order) = &self.objects[number] else {
            return Err(self.damaged());
        };
        let dtype = match code {
            "u1" => Dtype::U8,
            "i1" => Dtype::I8,
            "u2" => Dtype::U16,
            "i2" => Dtype::I16,
            "f2" => Dtype::F16,
            "u4" => Dtype::U32,
            "i4" => Dtype::I32,
            "f4" => Dtype::F32,
            "u8" => Dtype::U64,
            "i8" => Dtype::I64,
            "f8" => Dtype::F64,
            code => {
                return Err(PickleFault::Elements {
                    found: code.to_owned(),
                });
            }
        };
        Ok((dtype, order == b'>'))
    }

    fn result(mut self, item: Item) -> Result<Pickled<'a>, PickleFault> {
        let Item::Object(number) = item else {
            return Err(PickleFault::NoArray);
        };
        match std::mem::replace(&mut self.objects[number], Object::Array(None)) {
            Object::Array(Some(array)) => Ok(Pickled::Array(array)),
            Object::List(items) => self.list(&items),
            _ => Err(PickleFault::NoArray),
        }
    }

    fn list(&self, items: &[Item]) -> Result<Pickled<'a>, PickleFault> {
        let float = |item: &Item| match *item {
            Item::Int(number) => Some(number as f64),
            Item::Float(number) => Some(number),
            _ => None,
        };
        let int = |item: &Item| match *item {
            Item::Int(number) => Some(number),
            _ => None,
        };
        if let Some(numbers) = items.iter().map(int).collect() {
            return Ok(Pickled::Integers(numbers));
        }
        if let Some(numbers) = items.iter().map(float).collect() {
            return Ok(Pickled::Floats(numbers));
        }
        let arrays = items.iter().map(|item| match *item {
            Item::Object(number) => match &self.objects[number] {
                Object::Array(Some(array)) => {
                    self.spend(array.bytes.len())?;
                    Ok(array.clone())
                }
                _ => Err(PickleFault::Mixed),
            },
            _ => Err(PickleFault::Mixed),
        });
        Ok(Pickled::Arrays(arrays.collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_refers_to_itself_is_refused() {
        // l = []; l.append(l)
        assert_eq!(parse(b"\x80\x04]\x94h\x00a."), Err(PickleFault::Mixed));
    }

    #[test]
    fn nested_tuples_are_refused_without_recursion() {
        let mut bytes = b"\x80\x04)".to_vec();
        bytes.extend(std::iter::repeat_n(0x85, 1_000_000));
        bytes.push(b'.');
        assert_eq!(parse(&bytes), Err(PickleFault::NoArray));
    }

    #[test]
    fn pickles_of_both_numpys_are_read_in_all_protocols() {
        let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fuzz/seeds");
        let mut num_read = 0;
        for file in std::fs::read_dir(seeds).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "pickled") {
                let bytes = std::fs::read(&path).unwrap();
                assert!(parse(&bytes).is_ok(), "{}", path.display());
                num_read += 1;
            }
        }
        assert!(num_read >= 24);
    }

    #[test]
    fn copies_of_one_text_are_bounded_by_the_length_of_the_pickle() {
        // _codecs.encode, a text and its encoding in the memo, and many calls with them.
        let text = "a".repeat(100_000);
        let mut bytes = b"\x80\x02c_codecs\nencode\nq\x00X\xa0\x86\x01\x00".to_vec();
        bytes.extend(text.as_bytes());
        bytes.extend(b"q\x01X\x06\x00\x00\x00latin1q\x02");
        for _ in 0..10_000 {
            bytes.extend(b"h\x00h\x01h\x02\x86R");
        }
        let fault = parse(&bytes).unwrap_err();
        let PickleFault::Damaged { at } = fault else {
            panic!("{fault}")
        };
        // The budget allows 25 of the 10,000 copies.
        assert!(at < text.len() + 500, "{at}");
    }

    #[test]
    fn more_dimensions_than_numpy_has_are_refused() {
        let mut bytes =
            b"\x80\x04cnumpy.core.numeric\n_frombuffer\n(C\x01acnumpy\ndtype\n".to_vec();
        bytes.extend(b"(X\x02\x00\x00\x00u1tR(");
        bytes.extend(b"K\x01".repeat(MAX_DIMS));
        let whole = [&bytes[..], b"tX\x01\x00\x00\x00CtR."].concat();
        assert!(matches!(parse(&whole), Ok(Pickled::Array(_))));
        let more = [&bytes[..], b"K\x01tX\x01\x00\x00\x00CtR."].concat();
        assert!(matches!(parse(&more), Err(PickleFault::Damaged { .. })));
    }

    #[test]
    fn code_is_refused_by_name() {
        let error = parse(b"\x80\x04cposix\nsystem\n(X\x02\x00\x00\x00ls\x85R.").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the pickle names posix.system, which is neither a plain NumPy array of numbers nor a list of them"
        );
    }

    #[test]
    fn every_truncation_is_an_error() {
        let whole = b"\x80\x04]\x94(K\x01G\x3f\xe0\x00\x00\x00\x00\x00\x00e.";
        assert_eq!(parse(whole), Ok(Pickled::Floats(vec![1.0, 0.5])));
        for len in 0..whole.len() {
            assert!(parse(&whole[..len]).is_err(), "{len}");
        }
    }
}

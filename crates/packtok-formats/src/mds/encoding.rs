//! The encodings of columns, and the values that they store.

use std::borrow::Cow;
use std::ops::Deref;

use crate::mds::fault::{EncodingFault, SampleFault};

/// The type of an array's elements, or of a column of single numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Dtype {
    U8,
    I8,
    U16,
    I16,
    F16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

impl Dtype {
    /// All types, with their names and their codes in arrays of dynamic type.
    const ALL: [(Self, &'static str, u8); 11] = [
        (Self::U8, "uint8", 8),
        (Self::I8, "int8", 9),
        (Self::U16, "uint16", 16),
        (Self::I16, "int16", 17),
        (Self::F16, "float16", 18),
        (Self::U32, "uint32", 32),
        (Self::I32, "int32", 33),
        (Self::F32, "float32", 34),
        (Self::U64, "uint64", 64),
        (Self::I64, "int64", 65),
        (Self::F64, "float64", 66),
    ];

    /// The type that NumPy names so.
    pub fn of_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|entry| entry.1 == name).map(|entry| entry.0)
    }

    fn of_code(code: u8) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|entry| entry.2 == code).map(|entry| entry.0)
    }

    /// NumPy's name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    fn code(self) -> u8 {
        Self::ALL[self as usize].2
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

/// The encoding in which a column stores its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Bytes,
    /// UTF-8.
    Str,
    /// A signed integer of 64 bits.
    Int,
    /// A number.
    Scalar(Dtype),
    /// An array. Each property that is `None` is stored with every value.
    Array {
        /// Type of the elements.
        dtype: Option<Dtype>,
        /// The shape.
        shape: Option<Box<[u64]>>,
    },
    /// An integer in decimal digits.
    StrInt,
    /// A float in decimal digits.
    StrFloat,
    /// A decimal number in digits.
    StrDecimal,
    /// JSON.
    Json,
    /// A pickle, which only an import reads, as bytes.
    Pickle,
}

impl Encoding {
    /// The encoding with this name.
    ///
    /// # Errors
    /// The encoding is unknown or not supported.
    pub fn parse(text: &str) -> Result<Self, EncodingFault> {
        let (name, arguments) = match text.split_once(':') {
            Some((name, arguments)) => (name, Some(arguments)),
            None => (text, None),
        };
        if arguments.is_some() && name != "ndarray" {
            return Err(EncodingFault::Unknown);
        }
        Ok(match name {
            "bytes" => Self::Bytes,
            "str" => Self::Str,
            "int" => Self::Int,
            "ndarray" => Self::array(arguments.unwrap_or_default())?,
            "str_int" => Self::StrInt,
            "str_float" => Self::StrFloat,
            "str_decimal" => Self::StrDecimal,
            "json" => Self::Json,
            "pkl" => Self::Pickle,
            "pil" | "jpeg" | "jpeg_array" | "jpegarray" | "png" | "list[pil]" | "list[jpeg]"
            | "list[png]" => return Err(EncodingFault::Image),
            name => Self::Scalar(Dtype::of_name(name).ok_or(EncodingFault::Unknown)?),
        })
    }

    fn array(arguments: &str) -> Result<Self, EncodingFault> {
        let fault = || EncodingFault::Array;
        if arguments.is_empty() {
            return Ok(Self::Array {
                dtype: None,
                shape: None,
            });
        }
        let (dtype, shape) = match arguments.split_once(':') {
            Some((dtype, shape)) => (dtype, Some(shape)),
            None => (arguments, None),
        };
        let dtype = Dtype::of_name(dtype).ok_or_else(fault)?;
        let parsed = |text: &str| text.trim().parse().ok().filter(|&dim: &u64| dim > 0);
        let shape: Option<Box<[u64]>> = match shape {
            Some(shape) => Some(
                shape
                    .split(',')
                    .map(parsed)
                    .collect::<Option<_>>()
                    .ok_or_else(fault)?,
            ),
            None => None,
        };
        let encoding = Self::Array {
            dtype: Some(dtype),
            shape,
        };
        // A shape that no value can have.
        match &encoding {
            Self::Array { shape: Some(_), .. } if encoding.size().is_none() => Err(fault()),
            _ => Ok(encoding),
        }
    }

    /// Bytes of every value; `None` if they vary.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Int => Some(8),
            Self::Scalar(dtype) => Some(dtype.bytes()),
            Self::Array {
                dtype: Some(dtype),
                shape: Some(shape),
            } => bytes_of(*dtype, shape),
            _ => None,
        }
    }

    /// Appends the bytes of `value` to `out`.
    ///
    /// # Errors
    /// A description of the value, if the column cannot store it. In that case `out` may contain a
    /// part of the bytes.
    pub(crate) fn encode(&self, value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), String> {
        match (self, value) {
            (Self::Bytes, Value::Bytes(bytes)) => out.extend_from_slice(bytes),
            (
                Self::Str | Self::StrInt | Self::StrFloat | Self::StrDecimal | Self::Json,
                Value::Str(text),
            ) => {
                out.extend_from_slice(text.as_bytes());
            }
            (Self::Int, Value::Int(number)) => out.extend_from_slice(&number.to_le_bytes()),
            (Self::Scalar(expected), Value::Scalar(dtype, bytes))
                if expected == dtype && dtype.bytes() == bytes.len() as u64 =>
            {
                out.extend_from_slice(bytes);
            }
            (
                Self::Array {
                    dtype: expected,
                    shape,
                },
                Value::Array(dtype, dims, bytes),
            ) => {
                if expected.is_some_and(|expected| expected != *dtype)
                    || shape.as_ref().is_some_and(|shape| **shape != **dims)
                    || dims.is_empty()
                    || dims.len() > 63
                    || dims.contains(&0)
                    || bytes_of(*dtype, dims) != Some(bytes.len() as u64)
                {
                    return Err(value.description());
                }
                if expected.is_none() {
                    out.push(dtype.code());
                }
                if shape.is_none() {
                    encode_shape(dims, out);
                }
                out.extend_from_slice(bytes);
            }
            _ => return Err(value.description()),
        }
        Ok(())
    }

    /// The value that has these bytes.
    pub(crate) fn decode<'a>(&'a self, bytes: &'a [u8]) -> Result<Value<'a>, SampleFault> {
        Ok(match self {
            Self::Bytes | Self::Pickle => Value::Bytes(bytes),
            Self::Str | Self::StrInt | Self::StrFloat | Self::StrDecimal | Self::Json => {
                Value::Str(std::str::from_utf8(bytes).map_err(|_| SampleFault::NotUtf8)?)
            }
            Self::Int => {
                let short = SampleFault::Short {
                    needed: 8,
                    left: bytes.len() as u64,
                };
                Value::Int(i64::from_le_bytes(bytes.try_into().map_err(|_| short)?))
            }
            Self::Scalar(dtype) => Value::Scalar(*dtype, bytes),
            Self::Array { dtype, shape } => decode_array(*dtype, shape.as_deref(), bytes)?,
        })
    }
}

/// The shape of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dims<'a> {
    /// A shape of one dimension, stored without an allocation.
    One([u64; 1]),
    /// Any number of dimensions.
    Many(Cow<'a, [u64]>),
}

impl Deref for Dims<'_> {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match self {
            Self::One(dims) => dims,
            Self::Many(dims) => dims,
        }
    }
}

impl<'a> From<&'a [u64]> for Dims<'a> {
    fn from(dims: &'a [u64]) -> Self {
        Self::Many(dims.into())
    }
}

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// Bytes.
    Bytes(&'a [u8]),
    /// A text; also of a number in digits, and of JSON.
    Str(&'a str),
    /// An integer.
    Int(i64),
    /// A number as little-endian bytes.
    Scalar(Dtype, &'a [u8]),
    /// An array: type, shape, and elements as little-endian bytes in row-major order.
    Array(Dtype, Dims<'a>, &'a [u8]),
}

impl<'a> Value<'a> {
    /// A one-dimensional array of these little-endian bytes.
    pub fn row(dtype: Dtype, bytes: &'a [u8]) -> Self {
        let len = bytes.len() as u64 / dtype.bytes();
        Self::Array(dtype, Dims::One([len]), bytes)
    }

    fn description(&self) -> String {
        match self {
            Self::Bytes(bytes) => format!("{} bytes", bytes.len()),
            Self::Str(_) => "a text".to_owned(),
            Self::Int(number) => format!("the integer {number}"),
            Self::Scalar(dtype, _) => format!("a number of type {}", dtype.name()),
            Self::Array(dtype, dims, _) => {
                format!("an array of {} with shape {:?}", dtype.name(), &**dims)
            }
        }
    }
}

/// Bytes of an array; `None` if they exceed 64 bits.
fn bytes_of(dtype: Dtype, dims: &[u64]) -> Option<u64> {
    let mut dims = dims.iter();
    dims.try_fold(dtype.bytes(), |bytes, &dim| bytes.checked_mul(dim))
}

/// Bytes of the shape of an array with one dimension.
pub(super) fn shape_bytes(dim: u64) -> u64 {
    1 + (1 << log_width(dim))
}

/// The logarithm of the bytes that a dimension needs.
fn log_width(dim: u64) -> u8 {
    match dim {
        0..=0xff => 0,
        0x100..=0xffff => 1,
        0x1_0000..=0xffff_ffff => 2,
        _ => 3,
    }
}

/// Appends one byte with the number of dimensions and their width, then the dimensions. The width
/// is the smallest that fits all dimensions.
fn encode_shape(dims: &[u64], out: &mut Vec<u8>) {
    let log_width = log_width(dims.iter().copied().max().unwrap_or_default());
    out.push((dims.len() as u8) << 2 | log_width);
    for dim in dims {
        out.extend_from_slice(&dim.to_le_bytes()[..1 << log_width]);
    }
}

fn decode_array<'a>(
    dtype: Option<Dtype>,
    shape: Option<&'a [u64]>,
    mut bytes: &'a [u8],
) -> Result<Value<'a>, SampleFault> {
    let dtype = match dtype {
        Some(dtype) => dtype,
        None => {
            let code = take(&mut bytes, 1)?[0];
            Dtype::of_code(code).ok_or(SampleFault::DtypeCode { code })?
        }
    };
    let dims = match shape {
        Some(shape) => Dims::Many(shape.into()),
        None => {
            let head = take(&mut bytes, 1)?[0];
            let (num_dims, width) = (usize::from(head >> 2), 1 << (head & 3));
            decode_shape(take(&mut bytes, num_dims * width)?, width)
        }
    };
    let expected = bytes_of(dtype, &dims);
    if expected != Some(bytes.len() as u64) {
        return Err(SampleFault::ArrayBytes {
            found: bytes.len() as u64,
            expected,
            shape: dims.to_vec(),
            dtype: dtype.name(),
        });
    }
    Ok(Value::Array(dtype, dims, bytes))
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], SampleFault> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or(SampleFault::Shape)?;
    *bytes = rest;
    Ok(taken)
}

fn decode_shape<'a>(bytes: &[u8], width: usize) -> Dims<'a> {
    let mut dims = bytes.chunks_exact(width).map(|dim| {
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(dim);
        u64::from_le_bytes(wide)
    });
    if bytes.len() == width {
        Dims::One([dims.next().unwrap_or_default()])
    } else {
        Dims::Many(dims.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_the_least_width_that_holds_all_dimensions() {
        for (dims, bytes) in [
            (&[255, 1][..], &[8, 255, 1][..]),
            (&[256, 1], &[9, 0, 1, 1, 0]),
            (&[65_536], &[6, 0, 0, 1, 0]),
            (&[1 << 32], &[7, 0, 0, 0, 0, 1, 0, 0, 0]),
        ] {
            let mut out = Vec::new();
            encode_shape(dims, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(&*decode_shape(&out[1..], 1 << (out[0] & 3)), dims);
        }
    }

    #[test]
    fn a_shape_that_exceeds_64_bits_is_an_error() {
        let mut bytes = vec![(4 * 3) | 3];
        for _ in 0..3 {
            bytes.extend_from_slice(&(u64::MAX / 2).to_le_bytes());
        }
        let array = Encoding::parse("ndarray:uint32").unwrap();
        let error = array.decode(&bytes).unwrap_err().to_string();
        assert!(error.ends_with("needs more than 2^64"), "{error}");
    }

    #[test]
    fn the_size_of_an_encoding_is_that_of_its_values() {
        for (text, size) in [
            ("int", Some(8)),
            ("float16", Some(2)),
            ("ndarray:uint16:3,5", Some(30)),
            ("ndarray:uint16", None),
            ("ndarray", None),
            ("ndarray:", None),
            ("str", None),
        ] {
            assert_eq!(Encoding::parse(text).unwrap().size(), size, "{text}");
        }
    }

    #[test]
    fn impossible_encodings_are_errors() {
        for text in [
            "png",
            "float8",
            "ndarray:float8",
            "ndarray:int8:0",
            "ndarray:int8:",
            "int:8",
        ] {
            assert!(Encoding::parse(text).is_err(), "{text}");
        }
        assert!(Encoding::parse(&format!("ndarray:int64:{0},{0}", u32::MAX)).is_err());
    }
}

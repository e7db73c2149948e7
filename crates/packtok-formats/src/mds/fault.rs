//! Faults of encodings and of samples, which errors report with their place.

/// The fault of the encoding of a column.
#[derive(Debug, thiserror::Error)]
pub enum EncodingFault {
    /// Pickles execute code when they are loaded.
    #[error(
        "pickles are refused because reading one can execute code; `packtok sample import` rewrites the columns of number arrays"
    )]
    Pickle,
    /// Images.
    #[error("columns of images are not supported")]
    Image,
    /// No encoding of this format.
    #[error(
        "expected bytes, str, int, ndarray[:dtype[:d1,d2…]], a number type, str_int, str_float, str_decimal or json"
    )]
    Unknown,
    /// The dtype or shape of an array.
    #[error(
        "expected ndarray[:dtype[:d1,d2…]] with an integer or float dtype and dimensions of at least 1"
    )]
    Array,
}

/// The fault of a column of a sample.
#[derive(Debug, thiserror::Error)]
pub enum SampleFault {
    /// The sample ends before the value.
    #[error("needs {needed} bytes, the sample has {left} left")]
    Short {
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are left.
        left: u64,
    },
    /// The sample is longer than its values.
    #[error("{left} bytes follow the last value")]
    Long {
        /// The number of bytes.
        left: u64,
    },
    /// A text is not UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// An array has a dtype that does not exist.
    #[error("{code} is not the number of a dtype")]
    DtypeCode {
        /// The number.
        code: u8,
    },
    /// An array ends within its shape.
    #[error("the array ends within its shape")]
    Shape,
    /// The number of an array's elements does not match its shape.
    #[error("the array has {found} bytes, its shape {shape:?} of {dtype} needs {}", expected.map_or("more than 2^64".to_owned(), |bytes| bytes.to_string()))]
    ArrayBytes {
        /// Bytes of the elements.
        found: u64,
        /// Bytes that the shape needs; `None` if they exceed 64 bits.
        expected: Option<u64>,
        /// The shape.
        shape: Vec<u64>,
        /// The dtype.
        dtype: &'static str,
    },
}

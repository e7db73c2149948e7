//! Converts ids from the bytes of a file to arrays of other integer types.

use std::ops::Range;

use packtok_pbin::TokenWidth;

/// An integer type that ids can be written as.
pub trait Id: Copy + Send + 'static {
    /// Name of the NumPy dtype.
    const DTYPE: &'static str;
    /// The highest id it holds.
    const MAX: u32;
    /// Converts an id; wraps above [`Id::MAX`].
    fn from_u32(id: u32) -> Self;
}

macro_rules! ids {
    ($($type:ty, $dtype:literal, $max:expr;)*) => {$(
        impl Id for $type {
            const DTYPE: &'static str = $dtype;
            const MAX: u32 = $max;
            #[inline(always)]
            fn from_u32(id: u32) -> Self {
                id as Self
            }
        }
    )*};
}

ids! {
    u8, "uint8", u8::MAX as u32;
    u16, "uint16", u16::MAX as u32;
    u32, "uint32", u32::MAX;
    i32, "int32", i32::MAX as u32;
    i64, "int64", u32::MAX;
}

/// Writes the tokens of `bytes` to `out`, one per element.
///
/// # Errors
/// The highest id, if it exceeds `T`.
pub(crate) fn write_ids<T: Id>(
    width: TokenWidth,
    bytes: &[u8],
    out: &mut [T],
) -> std::result::Result<(), u32> {
    match width {
        TokenWidth::U8 => write_each(bytes, out, u8::from_le_bytes, u32::from(u8::MAX)),
        TokenWidth::U16 => write_each(bytes, out, u16::from_le_bytes, u32::from(u16::MAX)),
        TokenWidth::U32 => write_each(bytes, out, u32::from_le_bytes, u32::MAX),
    }
}

#[inline(always)]
fn write_each<const N: usize, W: Into<u32>, T: Id>(
    bytes: &[u8],
    out: &mut [T],
    decode: impl Fn([u8; N]) -> W,
    max: u32,
) -> std::result::Result<(), u32> {
    let (tokens, _) = bytes.as_chunks::<N>();
    for (id, &token) in out.iter_mut().zip(tokens) {
        *id = T::from_u32(decode(token).into());
    }
    if max <= T::MAX {
        return Ok(());
    }
    let highest = tokens.iter().map(|&token| decode(token).into()).max();
    highest.filter(|&id| id > T::MAX).map_or(Ok(()), Err)
}

fn copy_each<T: Id>(ids: &[u32], out: &mut [T]) {
    for (out, &id) in out.iter_mut().zip(ids) {
        *out = T::from_u32(id);
    }
}

/// An array to fill, in one of the types that models accept.
#[derive(Debug)]
pub enum IdsMut<'a> {
    /// 16 bits, unsigned.
    U16(&'a mut [u16]),
    /// 32 bits, unsigned.
    U32(&'a mut [u32]),
    /// 32 bits.
    I32(&'a mut [i32]),
    /// 64 bits.
    I64(&'a mut [i64]),
}

impl IdsMut<'_> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::U16(ids) => ids.len(),
            Self::U32(ids) => ids.len(),
            Self::I32(ids) => ids.len(),
            Self::I64(ids) => ids.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes `ids` from position `at` on. Ids that the type cannot represent wrap.
    pub(crate) fn copy(&mut self, at: usize, ids: &[u32]) {
        let place = at..at + ids.len();
        match self {
            Self::U16(out) => copy_each(ids, &mut out[place]),
            Self::U32(out) => copy_each(ids, &mut out[place]),
            Self::I32(out) => copy_each(ids, &mut out[place]),
            Self::I64(out) => copy_each(ids, &mut out[place]),
        }
    }

    /// As [`IdsMut::copy`], for ids that may be negative.
    pub(crate) fn copy_signed(&mut self, at: usize, ids: &[i64]) {
        let place = at..at + ids.len();
        let ids = ids.iter();
        match self {
            Self::U16(out) => (out[place].iter_mut().zip(ids)).for_each(|(o, &id)| *o = id as u16),
            Self::U32(out) => (out[place].iter_mut().zip(ids)).for_each(|(o, &id)| *o = id as u32),
            Self::I32(out) => (out[place].iter_mut().zip(ids)).for_each(|(o, &id)| *o = id as i32),
            Self::I64(out) => (out[place].iter_mut().zip(ids)).for_each(|(o, &id)| *o = id),
        }
    }

    /// Fills a range with one value. A value that the type cannot represent wraps.
    pub(crate) fn set(&mut self, place: Range<usize>, value: i32) {
        match self {
            Self::U16(ids) => ids[place].fill(value as u16),
            Self::U32(ids) => ids[place].fill(value as u32),
            Self::I32(ids) => ids[place].fill(value),
            Self::I64(ids) => ids[place].fill(value.into()),
        }
    }

    /// Fills a range with 0, 1, 2, …. Numbers that the type cannot represent wrap.
    pub(crate) fn count(&mut self, place: Range<usize>) {
        match self {
            Self::U16(ids) => (0u32..)
                .zip(&mut ids[place])
                .for_each(|(n, id)| *id = n as u16),
            Self::U32(ids) => (0..).zip(&mut ids[place]).for_each(|(n, id)| *id = n),
            Self::I32(ids) => (0..).zip(&mut ids[place]).for_each(|(n, id)| *id = n),
            Self::I64(ids) => (0..).zip(&mut ids[place]).for_each(|(n, id)| *id = n),
        }
    }
}

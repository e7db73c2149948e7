//! Texts stored as code points of a fixed width, as Python stores them (PEP 393), to UTF-8.
//!
//! `avx2` converts groups of code points that are neither surrogates nor beyond U+FFFF. All others, the last few,
//! and machines without AVX2 are left to `append_group`, the only place that detects invalid code points.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(test)]
mod tests;

use crate::EncodeError;

/// Code points that are converted one by one before vectors are tried again.
const GROUP: usize = 16;

/// Memory that vectors may write in excess of the text.
const SLACK: usize = 32;

/// The code points of a text, each in as many bytes as the widest needs. They may include surrogates, which have
/// no UTF-8.
#[derive(Clone, Copy, Debug)]
pub enum CodePoints<'a> {
    /// U+0000 to U+00FF.
    One(&'a [u8]),
    /// U+0000 to U+FFFF.
    Two(&'a [u16]),
    /// U+0000 to U+10FFFF.
    Four(&'a [u32]),
}

impl CodePoints<'_> {
    /// An upper bound of the bytes of the UTF-8.
    pub fn max_utf8_bytes(self) -> usize {
        match self {
            Self::One(units) => 2 * units.len(),
            Self::Two(units) => 3 * units.len(),
            Self::Four(units) => 4 * units.len(),
        }
    }

    /// Appends the UTF-8 to `text`.
    ///
    /// # Errors
    /// [`EncodeError::NotACharacter`] if a code point is a surrogate or above U+10FFFF. `text` then ends before the
    /// group that contains it.
    pub fn append_to(self, text: &mut String) -> Result<(), EncodeError> {
        text.reserve(self.max_utf8_bytes() + SLACK);
        match self {
            Self::One(units) => append(units, text, append_vectors_of_one),
            Self::Two(units) => append(units, text, append_vectors_of_two),
            Self::Four(units) => append(units, text, append_vectors_of_four),
        }
    }
}

/// Appends the UTF-8 of all code points. `append_vectors` appends that of those before the first group that it cannot
/// convert, and returns their number.
fn append<U: Copy + Into<u32>>(
    units: &[U],
    text: &mut String,
    append_vectors: impl Fn(&[U], &mut String) -> usize,
) -> Result<(), EncodeError> {
    let mut done = 0;
    loop {
        done += append_vectors(&units[done..], text);
        let rest = &units[done..];
        let group = &rest[..GROUP.min(rest.len())];
        if group.is_empty() {
            return Ok(());
        }
        append_group(group, text).map_err(|(at, code_point)| EncodeError::NotACharacter {
            position: done + at,
            code_point,
        })?;
        done += group.len();
    }
}

/// Appends the UTF-8 of a group of code points. An error is the position and value of the first invalid one.
fn append_group<U: Copy + Into<u32>>(group: &[U], text: &mut String) -> Result<(), (usize, u32)> {
    let mut utf8 = [0; 4 * GROUP];
    let bits = group.iter().fold(0, |bits, &unit| bits | unit.into());
    let mut len = 0;
    if bits < 0x80 {
        for &unit in group {
            utf8[len] = unit.into() as u8;
            len += 1;
        }
    } else {
        for (at, &unit) in group.iter().enumerate() {
            let char = char::from_u32(unit.into()).ok_or((at, unit.into()))?;
            len += char.encode_utf8(&mut utf8[len..]).len();
        }
    }
    text.push_str(str::from_utf8(&utf8[..len]).expect("the UTF-8 of characters"));
    Ok(())
}

/// Whether `avx2` may run. Builds for measurements exclude it with `--cfg packtok_simd="portable"`.
#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    !cfg!(packtok_simd = "portable")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("popcnt")
}

macro_rules! append_vectors {
    ($name:ident, $unit:ty, $of:ident) => {
        #[allow(unsafe_code)]
        fn $name(units: &[$unit], text: &mut String) -> usize {
            #[cfg(target_arch = "x86_64")]
            if has_avx2() {
                // SAFETY: the processor has the features of `avx2`.
                return unsafe { avx2::$of(units, text) };
            }
            let _ = (units, text);
            0
        }
    };
}

append_vectors!(append_vectors_of_one, u8, append_one);
append_vectors!(append_vectors_of_two, u16, append_two);
append_vectors!(append_vectors_of_four, u32, append_four);

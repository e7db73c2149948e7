//! Values of any type as short texts, for a person who looks at the records of a table.
//!
//! A text or number is written as it is, and a list or structure as JSON. [`CellWriter`] stops at a
//! number of bytes, so that a value of any length or nesting costs little memory.

use serde::Serialize;

/// Nesting up to which a value is written, as for JSON.
pub(super) const MAX_DEPTH: usize = 127;

/// The value of a column in one record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// The value or its start; `None` without a value.
    pub text: Option<String>,
    /// Whether `text` is only the start of the value.
    pub is_cut: bool,
    /// Length of a text in bytes.
    pub bytes: Option<u64>,
    /// The reason why the value cannot be shown.
    pub fault: Option<String>,
}

impl Cell {
    /// A value that cannot be shown.
    pub fn fault(reason: impl Into<String>) -> Self {
        Self {
            fault: Some(reason.into()),
            ..Self::default()
        }
    }

    /// At most `max_bytes` of a text. Bytes that belong to no character are replaced.
    pub fn text(text: &[u8], max_bytes: usize) -> Self {
        let is_cut = text.len() > max_bytes;
        let mut shown = &text[..text.len().min(max_bytes)];
        if is_cut
            && let Err(error) = std::str::from_utf8(shown)
            && error.error_len().is_none()
        {
            shown = &shown[..error.valid_up_to()];
        }
        Self {
            text: Some(String::from_utf8_lossy(shown).into_owned()),
            is_cut,
            bytes: Some(text.len() as u64),
            fault: None,
        }
    }

    /// Keeps at most `max_bytes`.
    pub fn cut(&mut self, max_bytes: usize) {
        if let Some(text) = &mut self.text
            && text.len() > max_bytes
        {
            text.truncate(text.floor_char_boundary(max_bytes));
            self.is_cut = true;
        }
    }
}

/// A value that is neither a list nor a structure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scalar<'a> {
    Bool(bool),
    Integer(i128),
    Float(f64),
    /// A number, divided by ten to the power of the scale.
    Decimal(i128, i32),
    /// Days since 1970-01-01.
    Date(i64),
    /// The time of a day, in the unit.
    Time(i64, Unit),
    /// The time since 1970-01-01, and whether it is in UTC.
    Timestamp(i64, Unit, bool),
    /// The start of a text or of other bytes, and the length of the whole value.
    Bytes(&'a [u8], u64),
    /// A value of a type that is not shown, by the name of the type.
    Other(&'static str),
}

/// Parts of a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds = 0,
    Milliseconds = 3,
    Microseconds = 6,
    Nanoseconds = 9,
}

/// Writes one cell.
pub(super) struct CellWriter {
    cell: Cell,
    out: String,
    max_bytes: usize,
}

impl CellWriter {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            cell: Cell::default(),
            out: String::new(),
            max_bytes,
        }
    }

    /// Whether the rest of the value is to be left out; records this.
    pub(super) fn is_full(&mut self) -> bool {
        let is_full = self.out.len() >= self.max_bytes;
        self.cell.is_cut |= is_full;
        is_full
    }

    /// Bytes that the rest of the value may have.
    pub(super) fn room(&self) -> u64 {
        self.max_bytes.saturating_sub(self.out.len()) as u64
    }

    /// Writes a part of the JSON of a list or structure.
    pub(super) fn json(&mut self, json: &str) {
        self.out.push_str(json);
    }

    /// Writes the name of a field of a structure.
    pub(super) fn name(&mut self, name: &str) {
        self.scalar(&Scalar::Bytes(name.as_bytes(), name.len() as u64), true);
        self.json(":");
    }

    /// Writes a value; `is_inner` in a list or structure, where a text is in quotes.
    pub(super) fn scalar(&mut self, scalar: &Scalar<'_>, is_inner: bool) {
        let text = match *scalar {
            Scalar::Bool(value) => return self.json(if value { "true" } else { "false" }),
            Scalar::Integer(value) => return self.json(&value.to_string()),
            Scalar::Float(value) if value.is_finite() => return self.json(&value.to_string()),
            Scalar::Float(value) => value.to_string(),
            Scalar::Decimal(value, scale) => return self.json(&decimal(value, scale)),
            Scalar::Date(days) => date(days),
            Scalar::Time(value, unit) => time(value.into(), unit),
            Scalar::Timestamp(value, unit, is_utc) => timestamp(value, unit, is_utc),
            Scalar::Bytes(start, len_bytes) => self.text_of(start, len_bytes, is_inner),
            Scalar::Other(type_name) => {
                if !is_inner {
                    self.cell.fault = Some(format!("the page does not show {type_name}"));
                    return;
                }
                format!("({type_name})")
            }
        };
        if is_inner {
            // The serialization of a text cannot fail.
            let quoted = serde_json::to_string(&text).unwrap_or_default();
            self.json(&quoted);
        } else {
            self.json(&text);
        }
    }

    /// The start of a text; bytes that are no text as hexadecimal digits.
    fn text_of(&mut self, start: &[u8], len_bytes: u64, is_inner: bool) -> String {
        let room = self.max_bytes.saturating_sub(self.out.len());
        let shown = &start[..start.len().min(room)];
        if !is_inner {
            self.cell.bytes = Some(len_bytes);
        }
        self.cell.is_cut |= (shown.len() as u64) < len_bytes;
        match std::str::from_utf8(shown) {
            Ok(text) => text.to_owned(),
            // The last character may be cut.
            Err(error) if error.error_len().is_none() && self.cell.is_cut => {
                String::from_utf8_lossy(&shown[..error.valid_up_to()]).into_owned()
            }
            Err(_) => {
                let shown = &shown[..shown.len().min(room / 2)];
                self.cell.is_cut |= (shown.len() as u64) < len_bytes;
                let digits = shown.iter().map(|byte| format!("{byte:02x}"));
                format!("0x{}", digits.collect::<String>())
            }
        }
    }

    /// The cell of a value that is not null.
    pub(super) fn finish(mut self) -> Cell {
        if self.cell.fault.is_none() {
            self.cell.text = Some(self.out);
            self.cell.cut(self.max_bytes);
        }
        self.cell
    }
}

fn decimal(value: i128, scale: i32) -> String {
    let digits = value.unsigned_abs().to_string();
    let sign = if value < 0 { "-" } else { "" };
    match usize::try_from(scale) {
        Ok(0) => format!("{sign}{digits}"),
        // No type has more digits.
        Ok(scale @ ..=76) => {
            let digits = format!("{digits:0>width$}", width = scale + 1);
            let (whole, rest) = digits.split_at(digits.len() - scale);
            format!("{sign}{whole}.{rest}")
        }
        _ => format!("{sign}{digits}e{}", -i64::from(scale)),
    }
}

/// A day of the proleptic Gregorian calendar. Source: `civil_from_days` in
/// <https://howardhinnant.github.io/date_algorithms.html>.
fn date(days: i64) -> String {
    let days = i128::from(days) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The time of a day, with a fraction of a second if it is not 0.
fn time(value: i128, unit: Unit) -> String {
    let per_second = 10i128.pow(unit as u32);
    let (seconds, rest) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    let (hours, minutes) = (
        seconds.div_euclid(3600),
        seconds.div_euclid(60).rem_euclid(60),
    );
    let fraction = match rest {
        0 => String::new(),
        _ => format!(".{rest:0width$}", width = unit as usize),
    };
    format!(
        "{hours:02}:{minutes:02}:{:02}{fraction}",
        seconds.rem_euclid(60)
    )
}

fn timestamp(value: i64, unit: Unit, is_utc: bool) -> String {
    let per_day = 86_400 * 10i64.pow(unit as u32);
    let (days, rest) = (value.div_euclid(per_day), value.rem_euclid(per_day));
    let zone = if is_utc { "Z" } else { "" };
    format!("{}T{}{zone}", date(days), time(rest.into(), unit))
}

/// A floating-point number of 32 bits, with the same shortest text.
pub(super) fn single(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(value.into())
}

/// A floating-point number of 16 bits.
pub(super) fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(scalar: Scalar<'_>) -> String {
        let mut cell = CellWriter::new(100);
        cell.scalar(&scalar, false);
        cell.finish().text.unwrap()
    }

    #[test]
    fn dates_times_and_numbers_are_written_for_people() {
        for (scalar, expected) in [
            (Scalar::Date(0), "1970-01-01"),
            (Scalar::Date(11_016), "2000-02-29"),
            (Scalar::Date(-719_529), "-001-12-31"),
            (Scalar::Date(i64::MAX), "25252734927768524-07-27"),
            (Scalar::Time(3_723_004, Unit::Milliseconds), "01:02:03.004"),
            (
                Scalar::Timestamp(-1, Unit::Microseconds, true),
                "1969-12-31T23:59:59.999999Z",
            ),
            (
                Scalar::Timestamp(1_700_000_000, Unit::Seconds, false),
                "2023-11-14T22:13:20",
            ),
            (Scalar::Decimal(-1_205, 2), "-12.05"),
            (Scalar::Decimal(7, 3), "0.007"),
            (Scalar::Decimal(12, -3), "12e3"),
            (Scalar::Float(f64::NAN), "NaN"),
            (Scalar::Float(half(0xc200)), "-3"),
            (Scalar::Float(half(0x0001)), "0.00000005960464477539063"),
            (Scalar::Bytes(b"\x89PNG", 4), "0x89504e47"),
        ] {
            assert_eq!(cell(scalar), expected);
        }
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let cut = Cell::text("aé".repeat(100).as_bytes(), 5);
        assert_eq!(cut.text.as_deref(), Some("aéa"));
        assert_eq!((cut.is_cut, cut.bytes), (true, Some(300)));
        let damaged = Cell::text(b"a\xffb\xc3", 4);
        assert_eq!(damaged.text.as_deref(), Some("a\u{fffd}b\u{fffd}"));
        assert!(!damaged.is_cut);
        let mut value = CellWriter::new(5);
        value.scalar(&Scalar::Bytes("aéaé".as_bytes(), 300), false);
        assert_eq!(value.finish(), cut);
        let mut list = CellWriter::new(4);
        list.json("[");
        list.scalar(&Scalar::Bytes(&[1; 9], 9), true);
        assert!(list.is_full());
        list.json("]");
        let list = list.finish();
        assert_eq!((list.text.as_deref(), list.is_cut), (Some("[\"\\u"), true));
    }
}

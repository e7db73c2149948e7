//! Columns of tables that say which tokens count in the loss, read as one loss mask.
//!
//! Sources: the collators of TRL (`completion_mask`, `assistant_masks`), and of Transformers and axolotl
//! (`labels`, where -100 is not counted); Levanter (`loss_weights`).

use std::path::Path;

use crate::error::{Error, Result};
use crate::flat_file::FlatFile;
use crate::loss_mask::{LossMask, MaskBytes, MaskWriter};
use crate::table::Fault;
use crate::token_read::TokenRead;

/// The label of a token that does not count.
const IGNORED: i64 = -100;

/// What the integers of a column mean.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    /// The id, or [`IGNORED`].
    Labels,
    /// 1 or true if the token counts; weights of other values are no mask.
    Flags,
    /// 1 if the token is no padding. A column of ones says nothing.
    Attention,
}

impl Meaning {
    fn of_column(name: &str) -> Option<Self> {
        match name {
            "labels" => Some(Self::Labels),
            "completion_mask" | "assistant_masks" | "loss_weights" => Some(Self::Flags),
            "attention_mask" => Some(Self::Attention),
            _ => None,
        }
    }

    /// Whether the token counts; `None` if the column is no mask.
    fn is_counted(self, value: i64, id: u32) -> Option<bool> {
        match (self, value) {
            (Self::Labels, IGNORED) | (Self::Flags, 0) => Some(false),
            (Self::Labels, label) if label == i64::from(id) => Some(true),
            (Self::Flags | Self::Attention, 1) => Some(true),
            _ => None,
        }
    }
}

/// The reason why a column is not read to its end.
pub(crate) enum ColumnError {
    Fault(Fault),
    Other(Error),
    /// It has other values than a mask.
    NoMask,
}

impl From<Fault> for ColumnError {
    fn from(fault: Fault) -> Self {
        match fault {
            fault @ (Fault::Io(_) | Fault::Temporary(_)) => Self::Fault(fault),
            // A column of another type, or with nulls. The ids were read from the same file, so that it is not
            // damaged as a whole.
            _ => Self::NoMask,
        }
    }
}

/// Receives the integers of one row after the other.
pub(crate) type EachRow<'a> = &'a mut dyn FnMut(&[i64]) -> Result<(), ColumnError>;

/// The table that `file` was opened from, with the mask that its columns `names` describe. The columns
/// that do not are extras of the file. `rows` reads a column.
///
/// # Errors
/// The table is damaged; a temporary file cannot be written. `of_fault` returns the error of a fault.
pub(crate) fn with_masks(
    file: FlatFile,
    names: &[String],
    rows: impl Fn(&str, EachRow<'_>) -> Result<(), ColumnError>,
    of_fault: impl Fn(Fault) -> Error,
) -> Result<FlatFile> {
    let mut mask = None;
    let (mut extras, mut unusable) = (Vec::new(), Vec::new());
    for name in names {
        let Some(meaning) = Meaning::of_column(name) else {
            extras.push(name.clone());
            continue;
        };
        match narrowed(&file, mask.as_ref(), meaning, |each| rows(name, each)) {
            // All tokens count.
            Ok(None) => {}
            Ok(narrowed) => mask = narrowed,
            Err(ColumnError::NoMask) => {
                extras.push(name.clone());
                unusable.push(name.clone());
            }
            Err(ColumnError::Fault(fault)) => return Err(of_fault(fault)),
            Err(ColumnError::Other(error)) => return Err(error),
        }
    }
    let file = file.with_extras(extras).with_unusable_masks(unusable);
    Ok(file.with_loss_mask(mask))
}

/// The tokens that count by `before` and by a column; `None` if the column has no token that does not.
fn narrowed(
    file: &FlatFile,
    before: Option<&MaskBytes>,
    meaning: Meaning,
    rows: impl Fn(EachRow<'_>) -> Result<(), ColumnError>,
) -> Result<Option<MaskBytes>, ColumnError> {
    let path = file.path();
    let mut writer = MaskWriter::new(path).map_err(|source| temporary(path, source))?;
    let (mut row, mut is_all_counted) = (0, true);
    let mut row_mask = Vec::new();
    rows(&mut |values| {
        // A column of more rows than the ids have is no mask of them.
        let Ok(tokens) = file.document_tokens(row) else {
            return Err(ColumnError::NoMask);
        };
        row += 1;
        if tokens.end - tokens.start != values.len() as u64 {
            return Err(ColumnError::NoMask);
        }
        let ids = file.tokens(tokens.clone()).map_err(ColumnError::Other)?;
        row_mask.clear();
        match before {
            None => row_mask.resize(values.len(), true),
            Some(mask) => LossMask::of_bytes(mask)
                .append_to(tokens, &mut row_mask)
                .map_err(ColumnError::Other)?,
        }
        for ((is_counted, &value), id) in row_mask.iter_mut().zip(values).zip(file.width().ids(ids))
        {
            let by_column = meaning.is_counted(value, id).ok_or(ColumnError::NoMask)?;
            is_all_counted &= by_column;
            *is_counted &= by_column;
        }
        let written = writer.push(row_mask.iter().copied());
        written.map_err(|source| temporary(path, source))
    })?;
    if row != file.num_documents() {
        return Err(ColumnError::NoMask);
    }
    if is_all_counted {
        return Ok(None);
    }
    let mask = writer.finish().map_err(|source| temporary(path, source))?;
    Ok(Some(mask))
}

fn temporary(path: &Path, source: std::io::Error) -> ColumnError {
    ColumnError::Other(Error::NarrowedCopy {
        path: path.into(),
        folder: std::env::temp_dir(),
        source,
    })
}

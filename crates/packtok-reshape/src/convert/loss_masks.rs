//! The loss masks of the inputs of a conversion.

use std::ops::Range;

use packtok_formats::{LossMask, TokenFile};
use packtok_pbin::Reader;

use super::rest::kept_reader;
use crate::error::Result;
use crate::loss_mask::{append_loss_mask, loss_mask_of};

/// The loss masks of some files.
pub(super) struct LossMasks<'a>(Vec<(&'a TokenFile, Option<Reader>)>);

impl<'a> LossMasks<'a> {
    /// # Errors
    /// As [`kept_reader`] and [`Reader::verify_loss_mask`].
    pub(super) fn of(files: impl IntoIterator<Item = &'a TokenFile>) -> Result<Self> {
        let mut masks = Vec::new();
        for file in files {
            let has_own = file.has_loss_mask() || file.format().records_loss_masks();
            let kept = if has_own { None } else { kept_reader(file)? };
            if loss_mask_of(file, kept.as_ref()).is_some() {
                if let (TokenFile::Pbin(reader), _) | (_, Some(reader)) = (file, &kept) {
                    reader.verify_loss_mask()?;
                }
                masks.push((file, kept));
            }
        }
        Ok(Self(masks))
    }

    /// The files that have masks.
    pub(super) fn files(&self) -> impl Iterator<Item = &'a TokenFile> + '_ {
        self.0.iter().map(|(file, _)| *file)
    }

    /// Whether no file has a mask.
    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of these files has a mask.
    pub(super) fn are_of_any(&self, mut files: impl Iterator<Item = &'a TokenFile>) -> bool {
        files.any(|file| self.of_file(file).is_some())
    }

    /// As [`append_loss_mask`], for tokens of `file`.
    pub(super) fn append_to(
        &self,
        file: &TokenFile,
        tokens: Range<u64>,
        out: &mut Vec<bool>,
    ) -> Result<()> {
        append_loss_mask(self.of_file(file), tokens, out)
    }

    fn of_file(&self, file: &TokenFile) -> Option<LossMask<'_>> {
        let mut masks = self.0.iter();
        let (file, kept) = masks.find(|(other, _)| std::ptr::eq(*other, file))?;
        loss_mask_of(file, kept.as_ref())
    }
}

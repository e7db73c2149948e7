//! What a conversion keeps, and where.

use std::path::Path;

use packtok_formats::{OutputPaths, TokenFile, TokenFormat, megatron};
use packtok_pbin::Reader;
use serde::Serialize;

use super::loss_masks::LossMasks;
use super::meaning::Meaning;
use super::parts::Parts;
use super::rest::kept_reader;
use crate::error::{Error, Result};
use crate::loss_mask::LOSS_MASK;

/// The name of the origins of documents, which callers accept to lose.
pub(crate) const ORIGINS: &str = "origins";

/// What files can record besides ids and documents, and callers accept to lose; of tables also any column.
const OF_FORMATS: [&str; 4] = [LOSS_MASK, megatron::MODES, ORIGINS, megatron::SEQUENCES];

/// Where an output has what the input records, by name.
#[derive(Debug, Default, Serialize)]
pub struct Kept {
    /// In the files of the format, where all programs find it.
    pub in_files: Vec<&'static str>,
    /// Beside them, where packtok finds it.
    pub beside: Vec<&'static str>,
    /// Nowhere.
    pub lost: Vec<String>,
}

/// Where an output has something that an input records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In its files.
    Files,
    /// Beside them.
    Beside,
    /// Nowhere.
    Nowhere,
}

/// The output of which a [`Kept`] tells, as its errors name it, and what callers accept to lose.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Losing<'a> {
    pub(crate) to: &'static str,
    pub(crate) accept_loss: &'a [String],
}

impl Kept {
    /// # Errors
    /// [`Error::Lost`] for origins and loss masks whose loss is not accepted.
    pub(super) fn new(
        files: &[TokenFile],
        outputs: &[(OutputPaths, Parts<'_>)],
        meaning: &Meaning,
        masks: &LossMasks<'_>,
        (to, accept_loss): (TokenFormat, &[String]),
    ) -> Result<Self> {
        let losing = Losing {
            to: to.name(),
            accept_loss,
        };
        let mut kept = Self::of_format(to, meaning, files);
        // The origins of a whole pbin are in its rest beside the output, and in a pbin made from that.
        let is_whole = matches!(outputs, [(_, parts)] if parts.as_whole_file().is_some());
        let has_rest = is_whole && to != TokenFormat::CepeNpy;
        for file in files {
            if has_origins(file)? {
                let place = match (to, has_rest) {
                    (TokenFormat::Pbin, _) => Place::Files,
                    (_, true) => Place::Beside,
                    (_, false) => Place::Nowhere,
                };
                kept.put(ORIGINS, place, file.path(), losing)?;
            }
        }
        for file in masks.files() {
            let place = if to.records_loss_masks() {
                Place::Files
            } else if has_rest && has_own_or_kept_pbin(file)? {
                Place::Beside
            } else {
                Place::Nowhere
            };
            kept.put(LOSS_MASK, place, file.path(), losing)?;
        }
        kept.lost.sort();
        Ok(kept)
    }

    /// What files of a format have of the ids, the documents and their meaning; they lose the extras of `files`.
    pub(crate) fn of_format<'a>(
        to: TokenFormat,
        meaning: &Meaning,
        files: impl IntoIterator<Item = &'a TokenFile>,
    ) -> Self {
        let mut kept = Self {
            in_files: vec!["ids"],
            ..Self::default()
        };
        if to.records_documents() {
            kept.in_files.push("documents");
        } else {
            kept.beside.push("documents");
        }
        let of_meaning = [
            ("tokenizer", meaning.tokenizer.is_some()),
            ("eod", meaning.eod.is_some()),
            ("bos", meaning.bos.is_some()),
        ];
        let known = of_meaning.into_iter().filter(|&(_, is_known)| is_known);
        let known = known.map(|(name, _)| name);
        if to == TokenFormat::Pbin {
            kept.in_files.extend(known);
        } else {
            kept.beside.extend(known);
        }
        for file in files {
            kept.lost.extend_from_slice(file.extras());
        }
        kept.lost.sort();
        kept.lost.dedup();
        kept
    }

    /// Notes where the output has what the file at `path` records.
    ///
    /// # Errors
    /// [`Error::Lost`] if that is nowhere, which the caller does not accept.
    pub(crate) fn put(
        &mut self,
        name: &'static str,
        place: Place,
        path: &Path,
        losing: Losing<'_>,
    ) -> Result<()> {
        let names = match place {
            Place::Files => &mut self.in_files,
            Place::Beside => &mut self.beside,
            Place::Nowhere => {
                check_accepted(path, name, losing)?;
                if !self.lost.iter().any(|lost| lost == name) {
                    self.lost.push(name.to_owned());
                }
                return Ok(());
            }
        };
        if !names.contains(&name) {
            names.push(name);
        }
        Ok(())
    }
}

/// A sentence about the names in `accept_loss` that are neither what files can record nor columns of these;
/// `None` if there are none.
pub(crate) fn unknown_losses<'a>(
    files: impl IntoIterator<Item = &'a TokenFile>,
    accept_loss: &[String],
) -> Option<String> {
    let mut unknown = accept_loss.to_vec();
    unknown.retain(|name| !OF_FORMATS.contains(&name.as_str()));
    for file in files {
        unknown.retain(|name| !file.extras().contains(name));
    }
    (!unknown.is_empty()).then(|| {
        format!(
            "--accept-loss (accept_loss): no input records {}; expected a column of the input, or {}",
            unknown.join(", "),
            OF_FORMATS.join(", ")
        )
    })
}

/// The names of what a file records besides documents, and rows of several documents do not have.
///
/// # Errors
/// [`Error::Lost`] for what the caller does not accept to lose.
pub(super) fn lost_in_rows(file: &TokenFile, losing: Losing<'_>) -> Result<Vec<String>> {
    let mut names = file.extras().to_vec();
    if has_origins(file)? {
        names.push(ORIGINS.to_owned());
    }
    let is_kept_beside = !file.has_loss_mask() && !file.format().records_loss_masks();
    if is_kept_beside && kept_reader(file)?.is_some_and(|kept| kept.has_loss_mask()) {
        names.push(LOSS_MASK.to_owned());
    }
    for name in &names {
        check_accepted(file.path(), name, losing)?;
    }
    Ok(names)
}

/// Whether the file is a pbin, or was made from one that is kept.
fn has_own_or_kept_pbin(file: &TokenFile) -> Result<bool> {
    Ok(matches!(file, TokenFile::Pbin(_)) || kept_reader(file)?.is_some())
}

fn has_origins(file: &TokenFile) -> Result<bool> {
    match file {
        TokenFile::Pbin(reader) => Ok(reader.has_origins()),
        _ => Ok(kept_reader(file)?.as_ref().is_some_and(Reader::has_origins)),
    }
}

/// Checks that the caller accepts the loss of what the file at `path` records.
///
/// # Errors
/// [`Error::Lost`].
pub(crate) fn check_accepted(path: &Path, name: &str, losing: Losing<'_>) -> Result<()> {
    if losing.accept_loss.iter().any(|accepted| accepted == name) {
        return Ok(());
    }
    Err(Error::Lost {
        path: path.into(),
        name: name.to_owned(),
        format: losing.to,
    })
}

//! What a conversion keeps, and where.

use std::path::Path;

use packtok_formats::{TokenFile, TokenFormat};
use packtok_pbin::Reader;
use serde::Serialize;

use super::loss_masks::LossMasks;
use super::meaning::Meaning;
use super::parts::Parts;
use super::paths::OutputPaths;
use super::rest::kept_reader;
use crate::error::{Error, Result};
use crate::loss_mask::LOSS_MASK;

/// The name of the origins of documents, which callers accept to lose.
pub(crate) const ORIGINS: &str = "origins";

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
        let mut kept = Self {
            in_files: vec!["ids"],
            ..Self::default()
        };
        let is_pbin = to == TokenFormat::Pbin;
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
        for (name, is_known) in of_meaning {
            if is_known && is_pbin {
                kept.in_files.push(name);
            } else if is_known {
                kept.beside.push(name);
            }
        }
        for file in files {
            if let TokenFile::Flat(flat) = file {
                kept.lost.extend_from_slice(flat.extras());
            }
        }
        // The origins of a whole pbin are in its rest beside the output, and in a pbin made from that.
        let is_whole = matches!(outputs, [(_, parts)] if parts.as_whole_file().is_some());
        let has_rest = is_whole && to != TokenFormat::CepeNpy;
        for file in files {
            if !has_origins(file)? {
                continue;
            }
            if is_pbin {
                kept.in_files.push(ORIGINS);
            } else if has_rest && !is_pbin {
                kept.beside.push(ORIGINS);
            } else {
                check_accepted(file.path(), ORIGINS, to.name(), accept_loss)?;
                kept.lost.push(ORIGINS.to_owned());
            }
        }
        for file in masks.files() {
            if to.records_loss_masks() {
                kept.in_files.push(LOSS_MASK);
            } else if has_rest && has_own_or_kept_pbin(file)? {
                kept.beside.push(LOSS_MASK);
            } else {
                check_accepted(file.path(), LOSS_MASK, to.name(), accept_loss)?;
                kept.lost.push(LOSS_MASK.to_owned());
            }
        }
        for names in [&mut kept.in_files, &mut kept.beside] {
            names.dedup();
        }
        kept.lost.sort();
        kept.lost.dedup();
        Ok(kept)
    }
}

/// The names of what a file records besides documents, and rows of several documents do not have.
///
/// # Errors
/// [`Error::Lost`] for what the caller does not accept to lose.
pub(super) fn lost_in_rows(
    file: &TokenFile,
    format: &'static str,
    accept_loss: &[String],
) -> Result<Vec<String>> {
    let mut names = match file {
        TokenFile::Flat(flat) => flat.extras().to_vec(),
        _ => Vec::new(),
    };
    if has_origins(file)? {
        names.push(ORIGINS.to_owned());
    }
    let is_kept_beside = !file.has_loss_mask() && !file.format().records_loss_masks();
    if is_kept_beside && kept_reader(file)?.is_some_and(|kept| kept.has_loss_mask()) {
        names.push(LOSS_MASK.to_owned());
    }
    for name in &names {
        check_accepted(file.path(), name, format, accept_loss)?;
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
pub(crate) fn check_accepted(
    path: &Path,
    name: &str,
    to: &'static str,
    accept_loss: &[String],
) -> Result<()> {
    if accept_loss.iter().any(|accepted| accepted == name) {
        return Ok(());
    }
    Err(Error::Lost {
        path: path.into(),
        name: name.to_owned(),
        format: to,
    })
}

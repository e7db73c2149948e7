//! Writes the files beside the tokens.

use std::io::Write;
use std::path::Path;

use packtok_jobs::with_suffix;

use super::{DatatroveMetadata, DatatrovePaths};
use crate::ends::write_ends;
use crate::error::{Error, Result};
use crate::token_write::{OutputPaths, TokenWrite, TokensToWrite, without_ending};

/// The name of a tokenizer that is not known, as datatrove writes it.
const UNKNOWN_TOKENIZER: &str = "Unknown Tokenizer";

/// How datatrove writes tokens.
pub(crate) struct Datatrove;

impl TokenWrite for Datatrove {
    fn paths(output: &Path) -> OutputPaths {
        let prefix = without_ending(output, &["ds"]);
        let paths = DatatrovePaths::of_data(&with_suffix(&prefix, ".ds"));
        OutputPaths {
            loss_mask: Some(paths.loss.clone()),
            ..OutputPaths::of_data(paths.data, vec![paths.metadata, paths.index, paths.loss])
        }
    }

    fn write_other(out: &mut impl Write, path: &Path, tokens: &impl TokensToWrite) -> Result<()> {
        if path.extension().is_none_or(|ending| ending != "metadata") {
            return write_ends(out, path, tokens.lengths());
        }
        let metadata = DatatroveMetadata {
            tokenizer: tokens
                .tokenizer_name()
                .unwrap_or(UNKNOWN_TOKENIZER)
                .to_owned(),
            width: tokens.width(),
            num_tokens: tokens.num_tokens(),
        };
        let written = out.write_all(metadata.to_text().as_bytes());
        written.map_err(Error::io(path))
    }
}

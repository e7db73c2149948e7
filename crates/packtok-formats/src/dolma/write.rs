//! Writes the index beside the tokens.

use std::io::Write;
use std::path::Path;

use super::{DolmaPaths, write_index};
use crate::error::Result;
use crate::token_write::{OutputPaths, TokenWrite, TokensToWrite, without_ending};

/// How dolma writes tokens.
pub(crate) struct Dolma;

impl TokenWrite for Dolma {
    fn paths(output: &Path) -> OutputPaths {
        let paths = DolmaPaths::of_prefix(&without_ending(output, &["npy"]));
        OutputPaths {
            loss_mask: Some(paths.loss_mask.clone()),
            ..OutputPaths::of_data(paths.data, vec![paths.index, paths.loss_mask])
        }
    }

    fn write_other(out: &mut impl Write, path: &Path, tokens: &impl TokensToWrite) -> Result<()> {
        write_index(out, path, tokens.rows()).map(drop)
    }
}

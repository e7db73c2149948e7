//! Writes the header, and the positions of BOS beside the tokens.

use std::io::Write;
use std::path::Path;

use packtok_jobs::with_suffix;
use packtok_pbin::TokenWidth;

use super::bos_index::write_bos_index;
use super::header::encode_header;
use super::read::bos_index_path;
use crate::ends::write_ends;
use crate::error::Result;
use crate::sidecar::sidecar_ends_path;
use crate::token_write::{OutputPaths, TokenWrite, TokensToWrite, without_ending};

/// How the scripts of llm.c and NeMo AutoModel write tokens.
pub(crate) struct LlmC;

impl TokenWrite for LlmC {
    fn paths(output: &Path) -> OutputPaths {
        let data = with_suffix(&without_ending(output, &["bin"]), ".bin");
        let others = vec![sidecar_ends_path(&data), bos_index_path(&data)];
        OutputPaths::of_data(data, others)
    }

    fn width_for_vocab(vocab_size: u64) -> TokenWidth {
        // NeMo AutoModel does not have two bytes for 2^16 ids, which would fit.
        if vocab_size < 1 << 16 {
            TokenWidth::U16
        } else {
            TokenWidth::U32
        }
    }

    fn header(path: &Path, tokens: &impl TokensToWrite) -> Result<Vec<u8>> {
        encode_header(tokens.width(), tokens.num_tokens(), path)
    }

    fn is_needed(path: &Path, tokens: &impl TokensToWrite) -> Result<bool> {
        Ok(!is_bos_index(path) || tokens.all_start_with_bos()?)
    }

    fn write_other(out: &mut impl Write, path: &Path, tokens: &impl TokensToWrite) -> Result<()> {
        if is_bos_index(path) {
            write_bos_index(out, path, tokens.lengths())
        } else {
            write_ends(out, path, tokens.lengths())
        }
    }
}

fn is_bos_index(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "idx")
}

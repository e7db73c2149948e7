//! The reference engine: the `tokenizers` crate 1.0.0-rc.3, in the one file that names it.
//!
//! It encodes text to ids and ids to text. What surrounds the text of a document (the
//! post-processor's special tokens, truncation) is [`crate::load::Template`]'s business, because
//! every engine shares it and this one would allocate for it.

use tokenizers::pipeline::{EncodeOptions, Override, PipelineToken, PipelineTokenizer};

use crate::error::Cause;

/// Buffer that one thread reuses from document to document.
pub(crate) type Scratch = Vec<PipelineToken>;

/// Tokens of scratch that a thread keeps between documents; what one huge document needed beyond
/// that is given back at once, so that memory does not stay at the high-water mark.
const KEPT_SCRATCH_TOKENS: usize = 4 << 20;

/// The loaded tokenizer; clones share it.
#[derive(Clone)]
pub(crate) struct Reference(PipelineTokenizer);

impl Reference {
    /// Loads a tokenizer.json of any version that the crate can bring into its canonical form.
    pub(crate) fn load(json: &str) -> Result<Self, Cause> {
        let canonical = tokenizers::canonicalize_str(json)?;
        Ok(Self(tokenizers::from_json(&canonical)?))
    }

    /// Appends the ids of `text`, without what a post-processor adds.
    pub(crate) fn encode_into(
        &self,
        text: &str,
        special_tokens_are_text: bool,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) -> Result<(), Cause> {
        let options = EncodeOptions {
            add_special_tokens: false,
            encode_special_tokens: special_tokens_are_text,
            padding: Override::Off,
            truncation: Override::Off,
        };
        scratch.clear();
        self.0.encode_into(text, &options, scratch)?;
        if scratch.capacity() > KEPT_SCRATCH_TOKENS {
            // One huge document: a copy of its ids would be a good part of the memory it costs, and
            // collecting into the same layout reuses the allocation.
            let mut huge: Vec<u32> = std::mem::take(scratch)
                .into_iter()
                .map(PipelineToken::id)
                .collect();
            huge.splice(..0, ids.drain(..));
            *ids = huge;
        } else {
            ids.extend_from_slice(PipelineToken::cast_slice(scratch));
        }
        Ok(())
    }

    /// The ids of `text` as the crate itself post-processes them; to check the template with.
    pub(crate) fn encode_with_special_tokens(&self, text: &str) -> Result<Vec<u32>, Cause> {
        let options = EncodeOptions {
            padding: Override::Off,
            truncation: Override::Off,
            ..EncodeOptions::default()
        };
        let mut tokens = Vec::new();
        self.0.encode_into(text, &options, &mut tokens)?;
        Ok(PipelineToken::cast_slice(&tokens).to_vec())
    }

    /// The text of `ids`, special tokens included.
    pub(crate) fn decode(&self, ids: &[u32]) -> Result<String, Cause> {
        self.0.decode(ids, false)
    }
}

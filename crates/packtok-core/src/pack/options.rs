//! The options of a run: [`PackSpec`], as a caller gives them, and [`PackOptions`], as a run needs them.
//!
//! No defaults live here; `packtok/config/options.py` has them, with the help of each option.

use std::path::PathBuf;

use packtok_pbin::{Options, SpecialToken};
use packtok_tokenizer::{EncodeOptions, EngineChoice, SpecialTokensInText, Tokenizer};
use serde::Deserialize;

use super::beside::tokenizer_path_of;
use super::error::SpecError;
use super::reject_limit::RejectLimit;
use crate::corpus::{CHUNK_BYTES, ReadOptions};
use crate::error::Result;
use crate::field::Field;
use crate::rejects::failed_rejects_path;
use crate::suffix::with_suffix;

/// What becomes of a line that is no document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnBadDocument {
    /// It ends the run.
    Fail,
    /// It is counted, named in the rejects file and left out.
    Skip,
}

/// What becomes of an output that is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Existing {
    /// It ends the run.
    Error,
    /// It is kept, once it is proven to be what this run would write.
    Skip,
    /// It is replaced, in one step, when the new one is complete.
    Replace,
}

/// The options of a run, checked by the caller, in the form in which they arrive: one JSON object.
///
/// Its keys are the fields' names; those of `recorded` stand beside the others. Unknown keys are errors.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackSpec {
    /// Files, globs and folders, in order.
    pub input: Vec<String>,
    /// The pbin to write.
    pub output: PathBuf,
    /// A raw index whose entries, and only they, are packed.
    pub index_path: Option<PathBuf>,
    /// The token that closes every document; packing needs one.
    pub eod: Option<String>,
    /// A token that opens every document.
    pub bos: Option<String>,
    /// What the trailer records.
    #[serde(flatten)]
    pub recorded: Options,
    /// Which engine encodes.
    pub engine: EngineChoice,
    /// Memory of the word cache, per thread; `None` for the engine's own choice.
    pub cache_bytes: Option<usize>,
    /// What becomes of a line that is no document.
    pub on_bad_document: OnBadDocument,
    /// Most documents to reject; without one, all but the last.
    pub max_rejects: Option<RejectLimit>,
    /// Threads that work.
    pub num_cpus: usize,
    /// Largest zstd window, as a power of two.
    pub zstd_window_log: u32,
    /// What becomes of an output that is already there.
    pub existing: Existing,
    /// Bytes of text between two records of a run's progress.
    pub span_bytes: u64,
    /// Whether what an earlier run left of the output is discarded.
    pub restart: bool,
    /// Secrets, and what is written in their place.
    pub redactions: Vec<(String, String)>,
    /// Length that a chunk of lines is filled up to. Not an option: tests make it small.
    #[serde(skip, default = "chunk_bytes")]
    pub chunk_bytes: usize,
}

fn chunk_bytes() -> usize {
    CHUNK_BYTES
}

impl PackSpec {
    /// How texts are encoded.
    pub fn encode(&self) -> EncodeOptions {
        use packtok_pbin::SpecialTokensInText as Recorded;
        EncodeOptions {
            add_special_tokens: self.recorded.add_special_tokens,
            special_tokens_in_text: match self.recorded.special_tokens_in_text {
                Recorded::Parse => SpecialTokensInText::Parse,
                Recorded::Text => SpecialTokensInText::Text,
                Recorded::Fail => SpecialTokensInText::Fail,
            },
            truncate_to: (self.recorded.truncate_to)
                .map(|tokens| usize::try_from(tokens).unwrap_or(usize::MAX)),
            engine: self.engine,
            cache_bytes: self.cache_bytes,
        }
    }

    /// How sources are read.
    pub fn read(&self) -> ReadOptions {
        ReadOptions {
            chunk_bytes: self.chunk_bytes,
            max_document_bytes: self.recorded.max_document_bytes,
            zstd_window_log_max: self.zstd_window_log,
        }
    }

    /// The options of a run that encodes with `tokenizer`.
    ///
    /// # Errors
    /// The filter is not jq; EOD is missing, or EOD or BOS is not one token.
    pub fn resolve(self, tokenizer: &Tokenizer) -> Result<PackOptions> {
        let special = |option, token: &String| special_token(tokenizer, option, token);
        let bos = self.bos.as_ref();
        Ok(PackOptions {
            field: Field::compile(&self.recorded.field)?,
            eod: special(
                "--eod: settings.eod_token",
                self.eod.as_ref().ok_or(SpecError::NoEod)?,
            )?,
            bos: bos
                .map(|token| special("--bos: settings.bos_token", token))
                .transpose()?,
            spec: self,
        })
    }
}

/// A token by its name, which has to be exactly one token.
fn special_token(
    tokenizer: &Tokenizer,
    option: &'static str,
    token: &str,
) -> std::result::Result<SpecialToken, SpecError> {
    match tokenizer.token_to_id(token) {
        Some(id) => Ok(SpecialToken {
            token: token.to_owned(),
            id,
        }),
        None => Err(SpecError::NotOneToken {
            option,
            token: token.to_owned(),
            tokenizer: tokenizer.name().to_owned(),
            special_tokens: tokenizer
                .special_tokens()
                .map(|special| special.content.to_string())
                .collect(),
        }),
    }
}

/// Everything that a run needs to know.
#[derive(Clone)]
pub struct PackOptions {
    /// What the caller gave.
    pub spec: PackSpec,
    /// Where the text is in each line.
    pub field: Field,
    /// The token that closes every document.
    pub eod: SpecialToken,
    /// The token that opens every document, if any.
    pub bos: Option<SpecialToken>,
}

impl PackOptions {
    /// The file that names what was rejected.
    pub fn rejects_path(&self) -> PathBuf {
        with_suffix(&self.spec.output, ".rejects.jsonl")
    }

    /// The same, of a run that failed and was to replace an output, which keeps its own.
    pub fn failed_rejects_path(&self) -> PathBuf {
        failed_rejects_path(&self.spec.output)
    }

    /// The copy of the tokenizer that travels with the output.
    pub fn tokenizer_path(&self) -> PathBuf {
        tokenizer_path_of(&self.spec.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> serde_json::Value {
        serde_json::json!({
            "input": ["a.jsonl"], "output": "a.pbin", "index_path": null, "eod": "<eod>", "bos": null,
            "field": ".text", "add_special_tokens": true, "special_tokens_in_text": "text",
            "empty_document": "keep", "truncate_to": 5, "max_document_bytes": 100,
            "max_documents": null, "max_tokens": 7, "engine": "reference", "cache_bytes": null,
            "on_bad_document": "skip", "max_rejects": "0.5%", "num_cpus": 2, "zstd_window_log": 27,
            "existing": "replace", "span_bytes": 1, "restart": false, "redactions": [["a", "b"]],
        })
    }

    fn parsed(change: impl Fn(&mut serde_json::Value)) -> serde_json::Result<PackSpec> {
        let mut value = spec();
        change(&mut value);
        serde_json::from_str(&value.to_string())
    }

    #[test]
    fn a_spec_is_one_flat_object() {
        let spec = parsed(|_| {}).unwrap();
        let encode = spec.encode();
        assert_eq!(
            encode.special_tokens_in_text,
            packtok_tokenizer::SpecialTokensInText::Text
        );
        assert_eq!(
            (encode.truncate_to, encode.engine),
            (Some(5), EngineChoice::Reference)
        );
        assert_eq!(spec.recorded.max_tokens, Some(7));
        assert_eq!(spec.read().chunk_bytes, CHUNK_BYTES);
        assert_eq!(spec.max_rejects, Some("0.5%".parse().unwrap()));
    }

    #[test]
    fn unknown_keys_and_values_are_errors() {
        for (key, value) in [
            ("colour", "red"),
            ("existing", "override"),
            ("empty_document", "x"),
        ] {
            let error = parsed(|spec| spec[key] = value.into()).unwrap_err();
            assert!(error.to_string().contains("unknown"), "{error}");
        }
        assert!(parsed(|spec| spec["chunk_bytes"] = 1.into()).is_err());
        assert!(
            parsed(|spec| {
                spec.as_object_mut().unwrap().remove("restart");
            })
            .is_err()
        );
    }
}

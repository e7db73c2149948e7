//! The options of a run: [`PackSpec`], which the caller provides, and [`PackOptions`], resolved
//! for the run.
//!
//! There are no defaults here; `packtok/config/options.py` defines them, with the help text of
//! each option.

use std::path::PathBuf;
use std::sync::Arc;

use packtok_corpus::field::Fields;
use packtok_corpus::rejects::failed_rejects_path;
use packtok_corpus::{
    CHUNK_BYTES, Columns, Expansion, OnBadDocument, Plugin, PluginCorpora, ReadOptions, Selection,
    unescaped,
};
use packtok_jobs::with_suffix;
use packtok_pbin::{Options, Side, SpecialToken, TokenWidth};
use packtok_tokenizer::{
    EncodeOptions, EngineChoice, SpecialTokensInText, Tokenizer, TruncationSide,
};
use serde::Deserialize;

use super::reject_limit::RejectLimit;
use super::sidecar_files::tokenizer_path_of;
use crate::error::{Error, Result};

/// The action if the output already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Existing {
    /// Report an error.
    Error,
    /// Keep the output after proving that it equals the output of this run.
    Skip,
    /// Replace the output atomically when the new one is complete.
    Replace,
}

/// The options of a run in their transfer format: one JSON object, validated by the caller.
///
/// Its keys are the names of the fields; the fields of `recorded` are at the same level. Unknown
/// keys are errors.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackSpec {
    /// Files, globs and folders, in order.
    pub input: Vec<String>,
    /// The pbin to write.
    pub output: PathBuf,
    /// Globs of files and folders to leave out.
    pub ignore: Vec<String>,
    /// The split of folders to read; `None` for all files.
    pub split: Option<String>,
    /// The folder against which relative lines of lists are resolved; `None` for the folder of
    /// each list.
    #[serde(default)]
    pub root: Option<PathBuf>,
    /// A raw index; only its entries are packed.
    pub index_path: Option<PathBuf>,
    /// The token after every document; required for packing.
    pub eod: Option<String>,
    /// The token before every document.
    pub bos: Option<String>,
    /// The options that the trailer records.
    #[serde(flatten)]
    pub recorded: Options,
    /// The engine that encodes.
    pub engine: EngineChoice,
    /// Memory of the word cache per thread; `None` for the engine's default.
    pub cache_bytes: Option<usize>,
    /// The action for a line that is not a document.
    pub on_bad_document: OnBadDocument,
    /// Maximum number of rejected documents; `None` allows any number as long as one document is
    /// packed.
    pub max_rejects: Option<RejectLimit>,
    /// Number of threads.
    pub num_cpus: usize,
    /// Largest zstd window, as a power of two.
    pub zstd_window_log: u32,
    /// The action if the output already exists.
    pub existing: Existing,
    /// Bytes of text between two records of a run's progress.
    pub span_bytes: u64,
    /// Whether to discard an unfinished run of the output.
    pub restart: bool,
    /// Secrets and their replacements.
    pub redactions: Vec<(String, String)>,
    /// The source plug-in that reads the inputs; `None` if they are files. `recorded.source` is its
    /// name.
    #[serde(skip)]
    pub plugin: Option<Arc<dyn Plugin>>,
    /// Target length of a chunk of lines. Not a user option; tests make it small.
    #[serde(skip, default = "chunk_bytes")]
    pub chunk_bytes: usize,
}

fn chunk_bytes() -> usize {
    CHUNK_BYTES
}

impl PackSpec {
    /// The options for encoding a text.
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
            truncation_side: match self.recorded.truncate_side {
                Side::Left => TruncationSide::Left,
                Side::Right => TruncationSide::Right,
            },
            engine: self.engine,
            cache_bytes: self.cache_bytes,
        }
    }

    /// The patterns of the filters: a single pattern for all inputs, or one per input.
    fn patterns(&self) -> impl Iterator<Item = &str> {
        let recorded = &self.recorded;
        let for_all = recorded.input_fields.is_empty().then_some(&recorded.field);
        for_all
            .into_iter()
            .chain(&recorded.input_fields)
            .map(String::as_str)
    }

    /// The compiled filters.
    ///
    /// # Errors
    /// A filter is not valid jq, or the number of filters differs from the number of inputs.
    pub(crate) fn fields(&self) -> Result<Fields> {
        let (found, expected) = (self.recorded.input_fields.len(), self.input.len());
        if found > 0 && found != expected {
            return Err(Error::InputFields { found, expected });
        }
        Ok(Fields::compile(self.patterns())?)
    }

    /// The options for reading sources.
    pub fn read(&self) -> ReadOptions {
        ReadOptions {
            chunk_bytes: self.chunk_bytes,
            max_document_bytes: self.recorded.max_document_bytes,
            zstd_window_log_max: self.zstd_window_log,
            columns: Columns::of_patterns(self.patterns()),
            text_separator: (self.recorded.text_separator.as_deref())
                .map(|separator| unescaped(separator).into()),
            plugin: (self.plugin.as_ref())
                .map(|plugin| PluginCorpora::new(Arc::clone(plugin), &self.input)),
            deadline: None,
        }
    }

    /// The selection of the files of the inputs.
    ///
    /// # Errors
    /// A glob is not valid.
    pub(crate) fn selection(&self) -> Result<Selection> {
        let selection = Selection::new(self.recorded.format, &self.ignore, self.split.as_deref())?;
        Ok(selection.with_root(self.root.clone()))
    }

    /// The files of the inputs, or the parts of a plug-in's corpora.
    ///
    /// # Errors
    /// As [`packtok_corpus::expand`]; or the plug-in failed.
    pub(crate) fn expand(&self) -> Result<Expansion> {
        Ok(self.read().expand(&self.input, &self.selection()?)?)
    }

    /// Resolves the options for `tokenizer`.
    ///
    /// # Errors
    /// The filter is not valid jq; EOD is missing, or EOD or BOS is not a single token; the requested
    /// width of tokens is too narrow.
    pub fn resolve(self, tokenizer: &Tokenizer) -> Result<PackOptions> {
        let vocab_size = tokenizer.vocab_size();
        if self.recorded.token_width.for_vocab(vocab_size).is_none() {
            return Err(Error::WidthTooNarrow {
                tokenizer: tokenizer.name().to_owned(),
                vocab_size,
            });
        }
        let special = |option, token: &String| special_token(tokenizer, option, token);
        let bos = self.bos.as_ref();
        Ok(PackOptions {
            fields: self.fields()?,
            eod: special(
                "--eod: settings.eod_token",
                self.eod.as_ref().ok_or(Error::NoEodToken)?,
            )?,
            bos: bos
                .map(|token| special("--bos: settings.bos_token", token))
                .transpose()?,
            spec: self,
        })
    }
}

/// Looks up a special token, which must be exactly one token.
fn special_token(tokenizer: &Tokenizer, option: &'static str, token: &str) -> Result<SpecialToken> {
    match tokenizer.token_to_id(token) {
        Some(id) => Ok(SpecialToken {
            token: token.to_owned(),
            id,
        }),
        None => Err(Error::NotOneToken {
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

/// Everything that a run needs.
#[derive(Clone)]
pub struct PackOptions {
    /// The options that the caller provided.
    pub spec: PackSpec,
    /// The compiled filters.
    pub fields: Fields,
    /// The token after every document.
    pub eod: SpecialToken,
    /// The token before every document, if any.
    pub bos: Option<SpecialToken>,
}

impl PackOptions {
    /// The width of tokens of `tokenizer`.
    pub(crate) fn width_for(&self, tokenizer: &Tokenizer) -> TokenWidth {
        self.spec.recorded.width_for_vocab(tokenizer.vocab_size())
    }

    /// The file that lists the rejected lines.
    pub fn rejects_path(&self) -> PathBuf {
        with_suffix(&self.spec.output, ".rejects.jsonl")
    }

    /// Path of the rejects of a failed run with `--existing replace`. The existing output keeps
    /// its own rejects.
    pub fn failed_rejects_path(&self) -> PathBuf {
        failed_rejects_path(&self.spec.output)
    }

    /// The copy of the tokenizer next to the output.
    pub fn tokenizer_path(&self) -> PathBuf {
        tokenizer_path_of(&self.spec.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> serde_json::Value {
        serde_json::json!({
            "input": ["a.jsonl"], "ignore": [], "split": null, "output": "a.pbin", "index_path": null, "eod": "<eod>", "bos": null,
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

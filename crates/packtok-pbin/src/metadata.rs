//! The trailer's JSON: the meaning of the ids, and counts.
//!
//! Responsible for names, order and presence of the JSON's fields. The JSON has no spaces and the
//! field order of the structs, so it is a function of its content. Unknown fields are ignored.

use serde::{Deserialize, Serialize};

use crate::header::TokenWidth;

/// The meaning of the ids of a pbin, and counts of the corpus.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The program that wrote the file.
    pub writer: WriterInfo,
    /// The tokenizer, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<TokenizerInfo>,
    /// The token after every document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eod: Option<SpecialToken>,
    /// The token before every document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bos: Option<SpecialToken>,
    /// Counts of documents, tokens and lines.
    pub counts: Counts,
    /// The options that change bytes. The default means unknown and is not written.
    #[serde(default, skip_serializing_if = "Options::are_unknown")]
    pub options: Options,
    /// Whether a limit on documents or tokens ended the run before the end of the corpus.
    pub stopped_early: bool,
    /// The part of the corpus that the file was made from, if it is a shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardInfo>,
    /// The files that were joined into this one, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartInfo>,
    /// The shuffle of the documents of the parts; `None` if they were not shuffled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shuffle: Option<ShuffleInfo>,
    /// Whether the documents are not all documents of the sources in their order: the documents or
    /// those of a part were shuffled, or only some documents were selected.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rearranged: bool,
    /// The steps that selected, changed or reordered the documents, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

impl Metadata {
    /// The name of the step that cut documents into rows of equal length.
    pub const ROWS_STEP: &str = "rows";

    /// The step, of which only the name is known.
    pub fn rows_step() -> Step {
        Step {
            step: Self::ROWS_STEP.to_owned(),
            value: None,
            left_out: 0,
        }
    }

    /// Whether documents of the file are rows, which EOD does not end.
    pub fn has_rows(&self) -> bool {
        self.steps.iter().any(|step| step.step == Self::ROWS_STEP)
    }
}

/// A step that reshaped documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Name of the step.
    pub step: String,
    /// What the step was told, if it has a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Documents that it has left out.
    pub left_out: u64,
}

/// The program that wrote a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterInfo {
    /// Name of the program.
    pub name: String,
    /// Version of the program.
    pub version: String,
}

impl Default for WriterInfo {
    /// This version of packtok.
    fn default() -> Self {
        Self {
            name: "packtok".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// The tokenizer that produced the ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenizerInfo {
    /// A human-readable name.
    pub name: String,
    /// A digest of the parsed tokenizer: equal digests give equal ids.
    pub fingerprint: String,
    /// The highest id plus one, added tokens included.
    pub vocab_size: u64,
}

/// A special token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecialToken {
    /// Text of the token.
    pub token: String,
    /// Id of the token.
    pub id: u32,
}

/// Counts of a packing run; `lines = packed + empty + blank + rejected`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Documents in the file.
    pub documents: u64,
    /// Tokens in the file.
    pub tokens: u64,
    /// Lines read from the corpus.
    pub lines: u64,
    /// Lines whose text became a document.
    pub packed: u64,
    /// Lines whose text produced no ids.
    pub empty: u64,
    /// Lines with whitespace only.
    pub blank: u64,
    /// Lines skipped as bad.
    pub rejected: u64,
    /// EOD ids that came from document text.
    pub eods_in_text: u64,
    /// Bytes and tokens of the texts; `None` if they are unknown, as after steps that change or
    /// select documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextCounts>,
}

/// Bytes and tokens of the texts of all documents in a file. Their quotient is the number of bytes
/// per token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextCounts {
    /// Bytes of the texts in UTF-8, before normalization.
    pub bytes: u64,
    /// Tokens of the texts, without the BOS, the EOD and the special tokens that surround a text.
    pub tokens: u64,
}

impl TextCounts {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.tokens = self.tokens.saturating_add(other.tokens);
    }
}

impl Counts {
    /// The counts of a file without documents, to which others are added.
    pub const EMPTY: Self = Self {
        documents: 0,
        tokens: 0,
        lines: 0,
        packed: 0,
        empty: 0,
        blank: 0,
        rejected: 0,
        eods_in_text: 0,
        text: Some(TextCounts {
            bytes: 0,
            tokens: 0,
        }),
    };

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.documents, other.documents),
            (&mut self.tokens, other.tokens),
            (&mut self.lines, other.lines),
            (&mut self.packed, other.packed),
            (&mut self.empty, other.empty),
            (&mut self.blank, other.blank),
            (&mut self.rejected, other.rejected),
            (&mut self.eods_in_text, other.eods_in_text),
        ];
        for (sum, count) in pairs {
            *sum = sum.saturating_add(count);
        }
        self.text = self.text.zip(other.text).map(|(mut sum, text)| {
            sum.add(&text);
            sum
        });
    }
}

/// The treatment of the text of a special token inside a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpecialTokensInText {
    /// The text is encoded as the special token, as in Hugging Face tokenizers.
    #[default]
    Parse,
    /// The text is encoded like any other text.
    Text,
    /// The document is rejected.
    Fail,
}

/// The treatment of a document without tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmptyDocument {
    /// The document is counted and skipped.
    #[default]
    Skip,
    /// The document is packed as a single EOD.
    Keep,
    /// The document ends the run.
    Fail,
}

/// An end of a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The start of the document.
    Left,
    /// The end of the document.
    #[default]
    Right,
}

impl Side {
    fn is_right(&self) -> bool {
        *self == Self::Right
    }
}

/// The requested width of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestedWidth {
    /// As narrow as the vocabulary allows.
    #[default]
    Auto,
    /// At least two bytes.
    Uint16,
    /// Four bytes.
    Uint32,
}

impl RequestedWidth {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }

    /// The width of tokens; `None` if the vocabulary does not fit.
    pub fn for_vocab(self, vocab_size: u64) -> Option<TokenWidth> {
        let least = TokenWidth::for_vocab(vocab_size);
        match self {
            Self::Auto => Some(least),
            Self::Uint16 => (least != TokenWidth::U32).then_some(TokenWidth::U16),
            Self::Uint32 => Some(TokenWidth::U32),
        }
    }
}

/// The padding of short documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Padding {
    /// The number of ids that shorter documents are padded to, without EOD and BOS of the run.
    pub length: u64,
    /// The id of padding.
    pub id: u32,
    /// The side of the document that is padded.
    pub side: Side,
}

/// The format of a corpus. Its `Display` is the name.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error,
)]
#[serde(rename_all = "lowercase")]
pub enum CorpusFormat {
    /// A JSON value per line.
    #[error("JSON lines")]
    Jsonl,
    /// A table in row groups.
    #[error("Parquet")]
    Parquet,
    /// A table in record batches: an Arrow (Feather) file or stream.
    #[error("Arrow")]
    Arrow,
    /// A table of comma-separated values with a header.
    #[error("CSV")]
    Csv,
    /// A table of tab-separated values with a header.
    #[error("TSV")]
    Tsv,
    /// Text without structure: one document, or several with a separator between them.
    #[error("plain text")]
    Text,
    /// A sequence of CBOR items.
    #[error("CBOR")]
    Cbor,
    /// The documents of a source plug-in.
    #[error("documents of a source plug-in")]
    Plugin,
}

/// The options of a run that change the file's bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The format of all sources; `None` if each source has the format that its name or content
    /// implies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<CorpusFormat>,
    /// The text between two documents of a plain text; `None` if each file is one document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_separator: Option<String>,
    /// Name of the source plug-in that yields the documents; `None` if the sources are files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The filter that extracts the text of a record.
    pub field: String,
    /// The filter of each input, if the inputs have different filters. `field` is then the filter
    /// of the first input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_fields: Vec<String>,
    /// Whether the tokenizer's post-processor adds its tokens.
    pub add_special_tokens: bool,
    /// The treatment of the text of a special token inside a document.
    pub special_tokens_in_text: SpecialTokensInText,
    /// The treatment of documents without tokens.
    pub empty_document: EmptyDocument,
    /// The number of ids that documents are truncated to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncate_to: Option<u64>,
    /// The end at which truncation removes ids.
    #[serde(default, skip_serializing_if = "Side::is_right")]
    pub truncate_side: Side,
    /// The padding of short documents; `None` if documents are not padded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub padding: Option<Padding>,
    /// The longest accepted record.
    pub max_document_bytes: u64,
    /// The maximum number of documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_documents: Option<u64>,
    /// The maximum number of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Whether the origin of each document is recorded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub origins: bool,
    /// Whether BOS and EOD enclose every document, even a document that already has them or has no
    /// tokens.
    #[serde(default, skip_serializing_if = "is_false")]
    pub enclose_all: bool,
    /// The requested width of tokens.
    #[serde(default, skip_serializing_if = "RequestedWidth::is_auto")]
    pub token_width: RequestedWidth,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Options {
    /// The width of tokens with these options; a request that the vocabulary does not fit is
    /// ignored, because no file is written with it.
    pub fn width_for_vocab(&self, vocab_size: u64) -> TokenWidth {
        let requested = self.token_width.for_vocab(vocab_size);
        requested.unwrap_or_else(|| TokenWidth::for_vocab(vocab_size))
    }

    /// Whether the options are unknown; the filter of a run is never empty.
    pub(crate) fn are_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// The shard of a corpus that a file contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardInfo {
    /// Number of the shard, from 0.
    pub index: u64,
    /// Number of shards.
    pub count: u64,
    /// Fingerprint of the plan that divides the corpus into shards.
    pub plan: String,
}

/// One part of a joined file: a complete file or, in a shuffled chunk, consecutive documents of a
/// file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartInfo {
    /// File name of the part, without the folder.
    pub name: String,
    /// Number of documents in the part.
    pub documents: u64,
    /// Number of tokens in the part.
    pub tokens: u64,
    /// CRC32C of its data.
    pub data_crc32c: u32,
}

/// The shuffle that ordered the documents of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShuffleInfo {
    /// The generator of the order.
    pub generator: ShuffleGenerator,
    /// The seed of the order, in decimal; in hexadecimal after `0x` if the seed exceeds 64 bits.
    pub seed: String,
    /// The chunk of every part that was used; `None` for all documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<ChunkInfo>,
}

/// The generator of the order of shuffled documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShuffleGenerator {
    /// `random.Random(seed).shuffle` of CPython.
    Python,
    /// `numpy.random.default_rng(seed).shuffle` of a list.
    Numpy,
    /// The permutation of packtok.
    Packtok,
}

/// The chunk that was used, out of equal chunks of each part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkInfo {
    /// Number of the chunk, from 0.
    pub index: u64,
    /// Number of chunks.
    pub count: u64,
}

/// A file of the corpus, with its path relative to the inputs' common folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Relative path, separated by `/`.
    pub path: String,
    /// Bytes of the file as stored.
    pub bytes: u64,
    /// CRC32C of the file as stored, if all of it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32c: Option<u32>,
    /// The format it was read as, if the file records the origin of each document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<CorpusFormat>,
    /// The number of the input that named the source, if the file records origins and inputs have
    /// filters of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_texts_add_up_while_all_are_known() {
        let counts = |text| Counts {
            documents: 1,
            text,
            ..Counts::EMPTY
        };
        let known = counts(Some(TextCounts {
            bytes: 7,
            tokens: 2,
        }));
        let mut sum = Counts::EMPTY;
        sum.add(&known);
        sum.add(&known);
        let text = TextCounts {
            bytes: 14,
            tokens: 4,
        };
        assert_eq!((sum.documents, sum.text), (2, Some(text)));
        sum.add(&counts(None));
        sum.add(&known);
        assert_eq!((sum.documents, sum.text), (4, None));
    }

    #[test]
    fn json_has_a_fixed_order_and_omits_unknown_values() {
        let metadata = Metadata {
            writer: WriterInfo {
                name: "p".into(),
                version: "1".into(),
            },
            ..Metadata::default()
        };
        let json = serde_json::to_string(&metadata).unwrap();
        assert_eq!(
            json,
            r#"{"writer":{"name":"p","version":"1"},"counts":{"documents":0,"tokens":0,"lines":0,"packed":0,"empty":0,"blank":0,"rejected":0,"eods_in_text":0},"stopped_early":false}"#
        );
        assert_eq!(serde_json::from_str::<Metadata>(&json).unwrap(), metadata);
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let source: Source =
            serde_json::from_str(r#"{"path":"a","bytes":1,"colour":"red"}"#).unwrap();
        assert_eq!(
            source,
            Source {
                path: "a".into(),
                bytes: 1,
                crc32c: None,
                format: None,
                input: None,
            }
        );
    }
}

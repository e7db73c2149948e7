//! The trailer's JSON: what the ids mean and what was counted.
//!
//! Responsible for names, order and presence of the JSON's fields. Serialised without spaces in the
//! order of the structs, it is a function of its content. Fields that are not known are ignored.

use serde::{Deserialize, Serialize};

/// What the ids of a pbin mean and what became of the corpus.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The program that wrote the file.
    pub writer: WriterInfo,
    /// The tokenizer, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<TokenizerInfo>,
    /// The token that closes every document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eod: Option<SpecialToken>,
    /// The token that opens every document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bos: Option<SpecialToken>,
    /// What was counted.
    pub counts: Counts,
    /// The options that change bytes; the default, which is not written, where they are not known.
    #[serde(default, skip_serializing_if = "Options::are_unknown")]
    pub options: Options,
    /// Whether a limit on documents or tokens ended the run before the corpus did.
    pub stopped_early: bool,
    /// The part of the corpus that the file was made from, if it is one of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardInfo>,
    /// The files that a joined one was made from, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartInfo>,
}

/// The program that wrote a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterInfo {
    /// Name of the program.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Default for WriterInfo {
    /// This program at its version.
    fn default() -> Self {
        Self {
            name: "packtok".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// The tokenizer that the ids come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenizerInfo {
    /// Its name for people.
    pub name: String,
    /// A digest of its parsed content: equal digests give equal ids.
    pub fingerprint: String,
    /// The highest id plus one, added tokens included.
    pub vocab_size: u64,
}

/// A token with a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecialToken {
    /// Its text.
    pub token: String,
    /// Its id.
    pub id: u32,
}

/// What was counted while packing; `lines = packed + empty + blank + rejected`.
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
    /// Lines whose text has no ids.
    pub empty: u64,
    /// Lines of white space only.
    pub blank: u64,
    /// Lines skipped as bad.
    pub rejected: u64,
    /// EOD ids that came from the text of documents.
    pub eods_in_text: u64,
}

impl Counts {
    /// Adds what was counted elsewhere.
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
    }
}

/// What becomes of a special token's text inside a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpecialTokensInText {
    /// It becomes the special token, as Hugging Face does.
    #[default]
    Parse,
    /// It is encoded like any other text.
    Text,
    /// The document is bad.
    Fail,
}

/// What becomes of a document without tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmptyDocument {
    /// It is counted and left out.
    #[default]
    Skip,
    /// It is packed as EOD alone.
    Keep,
    /// It ends the run.
    Fail,
}

/// The options of a run that change the file's bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The filter that takes the text out of a record.
    pub field: String,
    /// Whether the tokenizer's post-processor added its tokens.
    pub add_special_tokens: bool,
    /// What became of a special token's text inside a document.
    pub special_tokens_in_text: SpecialTokensInText,
    /// What became of documents without tokens.
    pub empty_document: EmptyDocument,
    /// The most ids a document was cut to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncate_to: Option<u64>,
    /// The longest record that was accepted.
    pub max_document_bytes: u64,
    /// The limit on documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_documents: Option<u64>,
    /// The limit on tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

impl Options {
    /// Whether these are the options of no run: none has an empty filter.
    pub(crate) fn are_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// Which part of a corpus a file was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardInfo {
    /// Its number, from 0.
    pub index: u64,
    /// How many there are.
    pub count: u64,
    /// Fingerprint of the plan that divides the corpus.
    pub plan: String,
}

/// One part of a joined file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartInfo {
    /// Its file name, without folders.
    pub name: String,
    /// Its documents.
    pub documents: u64,
    /// Its tokens.
    pub tokens: u64,
    /// CRC32C of its data segment.
    pub data_crc32c: u32,
}

/// A file of the corpus, by the path relative to the inputs' common folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Relative path, separated by `/`.
    pub path: String,
    /// Bytes of the file as stored.
    pub bytes: u64,
    /// CRC32C of the file as stored, if it was read whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32c: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_a_fixed_order_and_leaves_out_what_is_unknown() {
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
                crc32c: None
            }
        );
    }
}

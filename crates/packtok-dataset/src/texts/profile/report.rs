//! The figures of a profile, as they are serialized. Documents are named by [`Place`].

use serde::Serialize;

/// A document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Number of its file.
    pub file: usize,
    /// Its number in that file.
    pub document: u64,
}

/// What a sample of documents contains.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// Documents of all files.
    pub documents: u64,
    /// Tokens of all files.
    pub tokens: u64,
    /// The documents that all other figures are about.
    pub sample: Sample,
    /// Documents without text, or without tokens other than EOD if there is no tokenizer. Only the figures of
    /// the vocabulary include them.
    pub empty: Figure,
    /// Documents that are equal to an earlier one.
    pub duplicates: Duplicates,
    /// Tokens in n-grams of 10 tokens that occurred before in the same document.
    pub repeated_ngrams: Repeats,
    /// Use of the ids.
    pub vocabulary: VocabularyUse,
    /// Figures about texts; `None` without a tokenizer.
    pub text: Option<TextFigures>,
}

/// The documents of the sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Sample {
    /// The share of documents that a sample is expected to have.
    pub share: f64,
    /// Number of documents.
    pub documents: u64,
    /// Number of tokens.
    pub tokens: u64,
    /// Documents of which only the start is examined, because they are too long.
    pub cut_documents: u64,
}

/// Documents in which something occurs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// Number of documents.
    pub documents: u64,
    /// How often it occurs in all of them.
    pub occurrences: u64,
    /// Documents with most occurrences; with equal numbers, the first ones.
    pub examples: Vec<Example>,
}

/// A document in which something occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Example {
    /// The document.
    #[serde(flatten)]
    pub place: Place,
    /// How often it occurs.
    pub occurrences: u64,
}

/// Documents that are equal to an earlier one in all ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Duplicates {
    /// Number of documents, without the first of each group of equal ones.
    pub documents: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Documents that were compared: those of the sample, or in a large sample those below a hash.
    pub compared_documents: u64,
    /// Their tokens.
    pub compared_tokens: u64,
    /// The largest groups.
    pub examples: Vec<EqualDocuments>,
}

/// A group of equal documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EqualDocuments {
    /// Number of documents.
    pub copies: u64,
    /// Tokens of each of them.
    pub tokens: u64,
    /// The first two of them.
    pub documents: [Place; 2],
}

/// Repetition within documents.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Repeats {
    /// What is repeated in all documents, in bytes of lines or in tokens.
    pub repeated: u64,
    /// All of it, in the same unit.
    pub total: u64,
    /// The share above which a document counts as repetitive.
    pub limit: f64,
    /// Repetitive documents.
    pub documents: u64,
    /// Those in which most is repeated.
    pub examples: Vec<RepetitiveDocument>,
}

/// A repetitive document.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RepetitiveDocument {
    /// The document.
    #[serde(flatten)]
    pub place: Place,
    /// What is repeated in it.
    pub repeated: u64,
    /// The repeated share.
    pub share: f64,
}

/// Use of the ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VocabularyUse {
    /// Ids that the sample has.
    pub used: u64,
    /// Ids of the tokenizer that the sample does not have; `None` without a tokenizer.
    pub never_used: Option<u64>,
    /// The lowest of them.
    pub never_used_examples: Vec<Token>,
    /// The most used ids, in descending order of use.
    pub most_used: Vec<UsedToken>,
}

/// A token of the vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Token {
    /// Its id.
    pub id: u32,
    /// The start of its name in the tokenizer file; `None` without a tokenizer, or if it has no such id.
    pub name: Option<String>,
}

/// A token that the sample has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsedToken {
    /// The token.
    #[serde(flatten)]
    pub token: Token,
    /// How often it occurs.
    pub occurrences: u64,
    /// The first document that has it.
    pub example: Place,
}

/// Figures about texts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TextFigures {
    /// Bytes of text in UTF-8, without special tokens.
    pub bytes: u64,
    /// Letters: characters with the property Alphabetic of Unicode.
    pub letters: u64,
    /// Letters by script, in descending order.
    pub scripts: Vec<Script>,
    /// Bytes of lines that are equal to an earlier line of the same document.
    pub repeated_lines: Repeats,
    /// E-mail addresses.
    pub emails: Figure,
    /// Phone numbers.
    pub phones: Figure,
    /// Private keys and access tokens.
    pub keys: Figure,
    /// Control characters other than tabs, line feeds and carriage returns.
    pub control_characters: Figure,
    /// U+FFFD, which also stands for tokens that are not valid UTF-8.
    pub replacement_characters: Figure,
    /// The longest words.
    pub longest_words: Vec<Word>,
}

/// Letters of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Script {
    /// Its name in Unicode, or `other`.
    pub script: &'static str,
    /// The documents that have its letters, and the number of letters.
    #[serde(flatten)]
    pub figure: Figure,
}

/// A long word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Word {
    /// The first document that has it.
    #[serde(flatten)]
    pub place: Place,
    /// Number of characters.
    pub characters: u64,
    /// The first characters.
    pub start: String,
}

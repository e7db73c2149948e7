//! A corpus in memory: its lines as in a file, and their texts.

use std::ops::Range;
use std::path::PathBuf;

use packtok_corpus::field::Field;

use crate::synthetic;

/// Bytes of JSON lines generated from the seed, about as long as the shared corpora.
const SYNTHETIC_BYTES: usize = 50 << 20;

/// JSON lines and their texts, each concatenated.
pub struct Corpus {
    /// Name of the corpus: `prose`, `code` or `multi`.
    pub name: String,
    jsonl: Vec<u8>,
    text: String,
    spans: Vec<Range<usize>>,
}

impl Corpus {
    /// The corpora that the benches use.
    pub const NAMES: [&str; 3] = ["prose", "code", "multi"];

    /// The corpus `name`, truncated after the document with which its lines reach `max_bytes`.
    ///
    /// Uses the shared corpus with this name. If it is missing, generates documents of that kind
    /// from a seed and prints a note on standard error.
    ///
    /// # Panics
    /// If a shared corpus exists and cannot be read.
    pub fn load(name: &str, max_bytes: usize) -> Self {
        let mut jsonl = shared(name).unwrap_or_else(|| {
            eprintln!("{name}: the shared corpus is not there; its documents are made from a seed");
            synthetic::jsonl(name, max_bytes.min(SYNTHETIC_BYTES))
        });
        if let Some(rest) = jsonl.get(max_bytes..)
            && let Some(end) = memchr::memchr(b'\n', rest)
        {
            jsonl.truncate(max_bytes + end + 1);
        }
        Self::from_jsonl(name, jsonl)
    }

    /// The corpus of these lines, each with its text under `text`.
    ///
    /// # Panics
    /// If a line has no text.
    pub fn from_jsonl(name: &str, jsonl: Vec<u8>) -> Self {
        let field = Field::compile(".text").expect("the pattern is jq");
        let mut extractor = field.extractor();
        let (mut text, mut spans) = (String::new(), Vec::new());
        for line in lines(&jsonl) {
            let start = text.len();
            text.push_str(extractor.text(line).expect("every line has a text"));
            spans.push(start..text.len());
        }
        Self {
            name: name.to_owned(),
            jsonl,
            text,
            spans,
        }
    }

    /// The lines, as in a file.
    pub fn jsonl(&self) -> &[u8] {
        &self.jsonl
    }

    /// The lines, without their line ends.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        lines(&self.jsonl)
    }

    /// The texts, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.spans.iter().map(|span| &self.text[span.clone()])
    }

    /// Length of all texts in bytes.
    pub fn text_bytes(&self) -> u64 {
        self.text.len() as u64
    }
}

fn lines(jsonl: &[u8]) -> impl Iterator<Item = &[u8]> {
    jsonl
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
}

/// The lines of the shared corpus `name`, if it exists.
fn shared(name: &str) -> Option<Vec<u8>> {
    let path = shared_folder().join(format!("data/corpora/{name}.jsonl.zst"));
    let file = std::fs::File::open(&path).ok()?;
    Some(zstd::decode_all(file).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// `PACKTOK_SHARED`, or the folder `shared` next to the repository.
fn shared_folder() -> PathBuf {
    std::env::var_os("PACKTOK_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    )
}

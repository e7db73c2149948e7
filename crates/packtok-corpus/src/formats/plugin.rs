//! Corpora whose documents come from a source plug-in: code of the user that yields texts.
//!
//! The caller names the plug-in and implements it outside this crate. Each of its parts is one
//! source, which has no length in bytes. Positions in a part count documents, and its checksum
//! covers the texts and the boundaries between them.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::field::NoText;
use crate::inputs::label::labels;
use crate::{Format, Source};

/// Yields the documents of corpora.
pub trait Plugin: Send + Sync {
    /// The name of the plug-in, for messages.
    fn name(&self) -> &str;

    /// Whether [`Plugin::open`] can start in the middle of a part. If not, the plug-in must yield
    /// the same documents every time, because resuming reads and skips the earlier documents.
    fn is_resumable(&self) -> bool;

    /// The names of the parts of `corpus`, in order; `None` if it has no parts.
    ///
    /// # Errors
    /// The plug-in failed.
    fn parts(&self, corpus: &str) -> Result<Option<Vec<String>>>;

    /// The documents of a part, without the first `start` ones; `start` is 0 unless the plug-in is
    /// resumable.
    ///
    /// # Errors
    /// The plug-in failed.
    fn open(
        &self,
        part: PartOfCorpus<'_>,
        start: u64,
        max_document_bytes: u64,
    ) -> Result<Box<dyn Documents>>;
}

impl fmt::Debug for dyn Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A part of a plug-in's corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartOfCorpus<'a> {
    /// The corpus, as the user named it.
    pub corpus: &'a str,
    /// The name of the part; `None` if the corpus has no parts.
    pub name: Option<&'a str>,
}

impl fmt::Display for PartOfCorpus<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.corpus)?;
        self.name.map_or(Ok(()), |name| write!(f, "/{name}"))
    }
}

/// The documents of a part, in order.
pub trait Documents: Send {
    /// The next documents, at least one; `None` after the last one.
    ///
    /// # Errors
    /// The plug-in failed.
    fn next(&mut self) -> Result<Option<DocumentBatch>>;
}

/// Consecutive documents.
#[derive(Debug, Default)]
pub struct DocumentBatch {
    /// The texts, one after the other.
    pub(crate) bytes: Vec<u8>,
    pub(crate) documents: Vec<Document>,
}

/// A document of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Document {
    /// A text of this length in the bytes of the batch.
    Text(usize),
    /// A text that is too long to keep.
    Oversize { len_bytes: u64, crc32c: u32 },
    /// A value that is not a text.
    NoText(NoText),
}

impl DocumentBatch {
    /// Adds a text, which may not be UTF-8. If the text is longer than `max_document_bytes`, keeps
    /// only its length.
    pub fn push_text(&mut self, text: &[u8], max_document_bytes: u64) {
        let len_bytes = text.len() as u64;
        self.documents.push(if len_bytes > max_document_bytes {
            Document::Oversize {
                len_bytes,
                crc32c: crc32c::crc32c(text),
            }
        } else {
            self.bytes.extend_from_slice(text);
            Document::Text(text.len())
        });
    }

    /// Adds a document that has no text.
    pub fn push_no_text(&mut self, reason: NoText) {
        self.documents.push(Document::NoText(reason));
    }

    /// Number of its documents.
    pub fn num_documents(&self) -> usize {
        self.documents.len()
    }

    /// Length of its texts in bytes.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// The corpora that the inputs of a run name, and the plug-in that reads them.
#[derive(Clone)]
pub struct PluginCorpora {
    plugin: Arc<dyn Plugin>,
    inputs: Arc<[String]>,
}

impl fmt::Debug for PluginCorpora {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.plugin, self.inputs)
    }
}

impl PartialEq for PluginCorpora {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.plugin, &other.plugin) && self.inputs == other.inputs
    }
}

impl Eq for PluginCorpora {}

impl PluginCorpora {
    /// The corpora `inputs` of `plugin`.
    pub fn new(plugin: Arc<dyn Plugin>, inputs: &[String]) -> Self {
        Self {
            plugin,
            inputs: inputs.into(),
        }
    }

    /// The plug-in.
    pub(crate) fn plugin(&self) -> &dyn Plugin {
        &*self.plugin
    }

    /// A source for each part of each corpus, in order.
    pub(crate) fn sources(&self) -> Result<Vec<Source>> {
        let mut sources = Vec::new();
        let mut seen = HashSet::new();
        for (input, (corpus, label)) in self.inputs.iter().zip(self.labels()?).enumerate() {
            let fault = |cause: String| Error::Plugin {
                plugin: self.plugin.name().to_owned(),
                place: corpus.clone(),
                cause,
            };
            if !seen.insert(corpus.clone()) {
                return Err(fault("the corpus is given twice; give it once".to_owned()));
            }
            let Some(parts) = self.plugin.parts(corpus)? else {
                sources.push(source(corpus.into(), label, input));
                continue;
            };
            if parts.is_empty() {
                return Err(fault(
                    "the list of its parts is empty; expected at least one".to_owned(),
                ));
            }
            let mut names = HashSet::new();
            for part in &parts {
                if part.is_empty() || !names.insert(part) {
                    return Err(fault(format!(
                        "its part {part:?} is {}; expected distinct names",
                        if part.is_empty() {
                            "empty"
                        } else {
                            "listed twice"
                        },
                    )));
                }
                let path = format!("{corpus}/{part}");
                sources.push(source(path.into(), format!("{label}/{part}"), input));
            }
        }
        Ok(sources)
    }

    /// The source with a label that `PluginCorpora::sources` returns.
    pub fn labelled(&self, label: String, input: usize) -> Result<Source> {
        let of_corpus = self.labels()?;
        let (Some(corpus), Some(start)) = (self.inputs.get(input), of_corpus.get(input)) else {
            return Ok(source(PathBuf::from(&label), label, input));
        };
        let rest = label.strip_prefix(start.as_str()).unwrap_or(&label);
        Ok(source(format!("{corpus}{rest}").into(), label, input))
    }

    /// The part that a source stands for.
    pub(crate) fn part_of<'a>(&'a self, source: &'a Source) -> PartOfCorpus<'a> {
        let corpus = self.inputs.get(source.input).map_or("", String::as_str);
        let path = source.path.to_str().unwrap_or_default();
        let name = path
            .strip_prefix(corpus)
            .and_then(|rest| rest.strip_prefix('/'));
        PartOfCorpus { corpus, name }
    }

    /// The labels of the corpora. A corpus may be a path, and no output depends on where it is.
    fn labels(&self) -> Result<Vec<String>> {
        labels(self.inputs.iter().map(Path::new))
    }
}

fn source(path: PathBuf, label: String, input: usize) -> Source {
    Source {
        path,
        label,
        bytes: 0,
        format: Format::Plugin,
        input,
        range: None,
        files: None,
    }
}

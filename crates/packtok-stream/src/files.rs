//! The operators that read files: `from_files` and `from_pbin`.

use std::path::PathBuf;
use std::sync::Arc;

use packtok_corpus::OnBadDocument;
use packtok_corpus::field::pattern_of_key;
use packtok_corpus::{Columns, ForeignFiles, Format, ReadOptions, Selection, Source, expand_with};
use packtok_dataset::files::file_set::Files;
use packtok_formats::npy::Element;
use packtok_formats::{Boundaries, OpenOptions, TokenFormat};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;

use super::builder::{Flow, OperatorSpec, Site};
use super::lane_files::LaneFiles;
use super::node::Node;
use super::numbered::{IndexedLines, Numbered, NumberedOptions, TokenDocuments};
use super::ring::{Ring, RingOptions};
use super::sample::{IDS_COLUMN, Name};
use crate::error::{Error, Result};

/// Reads the records of files in turns, or in a permutation of all of them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FilesSpec {
    /// The paths of all files, and their lengths when they were listed.
    #[serde(skip_serializing)]
    inputs: Vec<String>,
    #[serde(skip_serializing)]
    bytes: Vec<u64>,
    /// The number of the reader for URLs that packtok does not support.
    #[serde(skip_serializing)]
    object: Option<usize>,
    #[serde(skip_serializing)]
    zstd_window_log: u32,
    format: Option<Format>,
    text_column: String,
    num_active: usize,
    repeat: bool,
    shuffle_seed: Option<u64>,
    /// Whether all documents are shuffled, by raw indexes.
    shuffles_documents: bool,
    on_bad_document: OnBadDocument,
    max_document_bytes: u64,
    /// The files in a state: their number, and names and lengths, or a digest of these.
    num_files: u64,
    files: Json,
}

impl OperatorSpec for FilesSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        if self.shuffles_documents {
            let order = NumberedOptions {
                repeat: self.repeat,
                shuffle_seed: self.shuffle_seed,
            };
            return site.numbered(order, || self.lines());
        }
        let sources = || {
            let foreign = self.object.map(|object| site.objects().files(object));
            self.sources(foreign.as_ref())
        };
        let sources = match site.lane() {
            None => sources()?,
            Some(lane) => {
                let (index, count) = (lane.shard.index(), lane.shard.count());
                let divide = || LaneFiles::new(sources()?, count, lane.division);
                site.lane_files(divide)?.of_lane(index)?
            }
        };
        let column: Name = self.text_column.as_str().into();
        let read = ReadOptions {
            columns: Columns::of_pattern(&pattern_of_key(&column)),
            zstd_window_log_max: self.zstd_window_log,
            ..ReadOptions::for_json_lines(self.max_document_bytes)
        };
        let ring = RingOptions {
            num_active: self.num_active,
            repeat: self.repeat,
            shuffle_seed: self.shuffle_seed.map(|seed| site.seed(seed)),
            text_column: column,
            on_bad_document: self.on_bad_document,
        };
        Ok(Box::new(Ring::new(sources.into(), read, ring)))
    }

    fn is_endless(&self, _: &[&Flow]) -> bool {
        self.repeat
    }

    fn on_bad_document(&self, _: &[&Flow]) -> OnBadDocument {
        self.on_bad_document
    }
}

impl FilesSpec {
    /// The files, with the lengths that they had when they were listed.
    fn sources(&self, foreign: Option<&ForeignFiles>) -> Result<Vec<Source>> {
        let selection = Selection::of_format(self.format);
        let sources = expand_with(&self.inputs, &selection, foreign)?.sources;
        for (source, &expected_bytes) in sources.iter().zip(&self.bytes) {
            if source.bytes != expected_bytes {
                return Err(Error::OtherFile {
                    path: source.path.clone(),
                    expected_bytes,
                    found_bytes: source.bytes,
                });
            }
        }
        Ok(sources)
    }

    fn lines(&self) -> Result<Arc<dyn Numbered>> {
        let (limit, policy) = (self.max_document_bytes, self.on_bad_document);
        let lines = IndexedLines::open(self.sources(None)?, limit, policy)?;
        Ok(Arc::new(lines))
    }
}

/// Reads the documents of packed files.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PbinSpec {
    #[serde(skip_serializing)]
    paths: Vec<PathBuf>,
    /// What the caller says about the files.
    #[serde(skip_serializing, deserialize_with = "read_as")]
    read_as: OpenOptions,
    repeat: bool,
    shuffle_seed: Option<u64>,
    /// The fingerprint of the files in a state.
    fingerprint: String,
}

/// The format, the type of ids and the boundaries of files, by their names.
fn read_as<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<OpenOptions, D::Error> {
    let (format, dtype, boundaries) =
        <(Option<String>, Option<String>, Option<String>)>::deserialize(deserializer)?;
    let error = |name: &str| D::Error::custom(format!("{name} is not known"));
    Ok(OpenOptions {
        format: format
            .map(|name| TokenFormat::of_name(&name).ok_or_else(|| error(&name)))
            .transpose()?,
        dtype: dtype
            .map(|name| Element::of_name(&name).ok_or_else(|| error(&name)))
            .transpose()?,
        boundaries: boundaries
            .map(|text| Boundaries::parse(&text).ok_or_else(|| error(&text)))
            .transpose()?,
    })
}

impl OperatorSpec for PbinSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        let order = NumberedOptions {
            repeat: self.repeat,
            shuffle_seed: self.shuffle_seed,
        };
        site.numbered(order, || {
            let files = Files::open_with(&self.paths, &self.read_as, false)?;
            files.check_loss_columns()?;
            for file in 0..files.len() {
                if files.token_file(file)?.has_loss_mask() {
                    let path = files.path(file).to_owned();
                    return Err(Error::LossMask { path });
                }
            }
            Ok(Arc::new(TokenDocuments {
                files: Arc::new(files),
                column: IDS_COLUMN.into(),
            }))
        })
    }

    fn is_endless(&self, _: &[&Flow]) -> bool {
        self.repeat
    }
}

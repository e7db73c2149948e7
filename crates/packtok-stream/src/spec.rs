//! A recipe in the form in which a caller describes it, as JSON.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use packtok_corpus::OnBadDocument;
use packtok_corpus::field::pattern_of_key;
use packtok_corpus::{Columns, ForeignFiles, Format, ReadOptions, Selection, Source, expand_with};
use packtok_dataset::files::file_set::Files;
use packtok_jobs::Shard;
use packtok_jobs::splitmix;
use packtok_tokenizer::{EncodeOptions, Tokenizer};
use serde::Deserialize;

use super::counting::Counting;
use super::each::Change;
use super::function::{Function, Samples};
use super::lane_files::{Division, LaneFiles};
use super::lanes::Ranks;
use super::numbered::{IndexedLines, Numbered, NumberedOptions, TokenDocuments, documents_of_lane};
use super::parallel::Limits;
use super::recipe::{Recipe, Step, Work, WorkKind};
use super::ring::RingOptions;
use super::rows::{RowOptions, RowsOf};
use super::sample::{IDS_COLUMN, Name, RowFields, TokenForm};
use super::tokenize::TokenizeOptions;
use crate::error::{Error, Result};

/// The column of the attention mask. It follows the column of the ids.
const MASK_COLUMN: &str = "attention_mask";

/// Objects that the caller passes by number, because JSON cannot describe them.
pub trait Objects {
    /// The tokenizer with this number.
    ///
    /// # Errors
    /// The caller failed to provide it.
    fn tokenizer(&self, number: usize) -> Result<Tokenizer>;

    /// The function with this number.
    ///
    /// # Errors
    /// The caller failed to provide it.
    fn function(&self, number: usize) -> Result<Arc<dyn Function>>;

    /// A source of samples, from its start: all of its samples, or the samples of a lane.
    ///
    /// # Errors
    /// The caller cannot divide the source.
    fn samples(&self, number: usize, lane: Option<Shard>) -> Result<Box<dyn Samples>>;

    /// The reader for URLs that packtok does not support.
    fn files(&self, number: usize) -> ForeignFiles;
}

/// A stream as a list of nodes. Each node comes after the nodes that it reads from.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct RecipeSpec(Vec<NodeSpec>);

/// A node. `from` is the number of the node that it reads from.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum NodeSpec {
    FromFiles(FilesSpec),
    FromPbin(PbinSpec),
    FromSamples {
        object: usize,
        on_bad_document: OnBadDocument,
    },
    Concat {
        from: Vec<usize>,
    },
    Interleave {
        from: Vec<usize>,
        weights: Vec<u64>,
    },
    Distribute(DistributeSpec),
    #[serde(untagged)]
    Step(StepNode),
}

/// Divides the sources of the preceding nodes into lanes.
#[derive(Debug, Clone, Deserialize)]
struct DistributeSpec {
    from: usize,
    num_lanes: u64,
    rank: u64,
    num_ranks: u64,
    is_endless: bool,
    may_be_short: bool,
    division: Division,
}

#[derive(Debug, Clone, Deserialize)]
struct StepNode {
    from: usize,
    #[serde(flatten)]
    step: StepSpec,
}

#[derive(Debug, Clone, Deserialize)]
struct FilesSpec {
    /// The paths of all files, and their lengths when they were found.
    inputs: Vec<String>,
    bytes: Vec<u64>,
    /// The number of the reader for URLs that packtok does not support.
    object: Option<usize>,
    format: Option<Format>,
    text_column: String,
    num_active: usize,
    repeat: bool,
    shuffle_seed: Option<u64>,
    /// Whether all documents are shuffled, by raw indexes.
    shuffles_documents: bool,
    on_bad_document: OnBadDocument,
    max_document_bytes: u64,
    zstd_window_log: u32,
}

#[derive(Debug, Clone, Deserialize)]
struct PbinSpec {
    paths: Vec<PathBuf>,
    repeat: bool,
    shuffle_seed: Option<u64>,
}

/// A step that processes the samples of the node before.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum StepSpec {
    Call {
        object: usize,
        window: usize,
        job_samples: usize,
    },
    Check {},
    Tokenize(TokenizeSpec),
    ConcatChunk(RowsSpec),
    Chunk(RowsSpec),
    PackChunk(RowsSpec),
    Ends {
        column: String,
        ends: (Option<i64>, Option<i64>),
        always: bool,
    },
    Pad {
        values: Vec<(String, i64)>,
        chunk_length: usize,
        fields: Option<RowFields>,
    },
    Shuffle {
        buffer_size: usize,
        seed: u64,
    },
    Take {
        max_count: u64,
    },
    Stride {
        interval: u64,
        offset: u64,
    },
    Enumerate {
        column: String,
    },
    Batch {
        batch_size: usize,
        drop_last: bool,
        stacks: bool,
    },
}

#[derive(Debug, Clone, Deserialize)]
struct TokenizeSpec {
    object: usize,
    add_special_tokens: bool,
    truncate_to: Option<usize>,
    text_column: String,
    mask_column: Option<String>,
    ensured: (Option<u32>, Option<u32>),
    max_document_bytes: u64,
    drops_record: bool,
    form: TokenForm,
}

#[derive(Debug, Clone, Deserialize)]
struct RowsSpec {
    chunk_length: usize,
    columns: Vec<String>,
    drop_remainder: bool,
    #[serde(default)]
    discard_long: bool,
    /// Documents of a window, to fill rows by best fit.
    #[serde(default)]
    window: Option<usize>,
    fields: RowFields,
}

impl RecipeSpec {
    /// The recipe of the last node.
    ///
    /// # Errors
    /// A file is missing or cannot be read, or a lane has nothing to read.
    ///
    /// # Panics
    /// If a node reads from a node that does not come before it.
    pub fn recipe(&self, objects: &dyn Objects) -> Result<Recipe> {
        let conversion = Conversion {
            nodes: &self.0,
            objects,
            works: RefCell::default(),
            sources: RefCell::default(),
            lane_files: RefCell::default(),
            division: self.0.iter().find_map(|node| match node {
                NodeSpec::Distribute(spec) => Some(spec.division),
                _ => None,
            }),
            numbered: RefCell::default(),
        };
        conversion.node(self.0.len() - 1, None)
    }
}

/// The context of the conversion of nodes to recipes.
struct Conversion<'a> {
    nodes: &'a [NodeSpec],
    objects: &'a dyn Objects,
    /// The work of a node, which all lanes share.
    works: RefCell<HashMap<usize, Arc<Work>>>,
    /// The files of a node, which all lanes share.
    sources: RefCell<HashMap<usize, Vec<Source>>>,
    /// The rule that divides files among lanes, if there are lanes.
    division: Option<Division>,
    /// The files of a node as lanes read them.
    lane_files: RefCell<HashMap<usize, LaneFiles>>,
    /// The documents of a node, which all lanes share.
    numbered: RefCell<HashMap<usize, Arc<dyn Numbered>>>,
}

impl Conversion<'_> {
    /// The recipe of a node, or of its part in a lane.
    fn node(&self, number: usize, lane: Option<Shard>) -> Result<Recipe> {
        let before = |from: usize| {
            assert!(from < number, "node {number} reads from node {from}");
            self.node(from, lane)
        };
        let all = |from: &[usize]| from.iter().copied().map(before).collect::<Result<Vec<_>>>();
        Ok(match &self.nodes[number] {
            NodeSpec::FromFiles(files) if files.shuffles_documents => {
                let order = NumberedOptions {
                    repeat: files.repeat,
                    shuffle_seed: files.shuffle_seed,
                };
                self.numbered(number, order, lane, || files.lines())?
            }
            NodeSpec::FromFiles(files) => files.recipe(self.sources(number, files, lane)?, lane),
            NodeSpec::FromPbin(pbin) => {
                let order = NumberedOptions {
                    repeat: pbin.repeat,
                    shuffle_seed: pbin.shuffle_seed,
                };
                self.numbered(number, order, lane, || pbin.documents())?
            }
            NodeSpec::FromSamples {
                object,
                on_bad_document,
            } => Recipe::Samples {
                samples: self.objects.samples(*object, lane)?,
                on_bad_document: *on_bad_document,
            },
            NodeSpec::Concat { from } => Recipe::Concat(all(from)?),
            NodeSpec::Interleave { from, weights } => Recipe::Interleave {
                streams: all(from)?,
                weights: weights.clone(),
            },
            NodeSpec::Distribute(spec) => self.lanes(spec)?,
            NodeSpec::Step(node) => {
                let step = self.step(number, &node.step, lane)?;
                Recipe::Step(Box::new(before(node.from)?), step)
            }
        })
    }

    /// The files of node `number`, or the parts of them that a lane reads.
    fn sources(
        &self,
        number: usize,
        files: &FilesSpec,
        lane: Option<Shard>,
    ) -> Result<Vec<Source>> {
        let (Some(lane), Some(division)) = (lane, self.division) else {
            return self.all_sources(number, files);
        };
        if let Some(divided) = self.lane_files.borrow().get(&number) {
            return divided.of_lane(lane.index());
        }
        let sources = self.all_sources(number, files)?;
        let divided = LaneFiles::new(sources, lane.count(), division)?;
        let parts = divided.of_lane(lane.index());
        self.lane_files.borrow_mut().insert(number, divided);
        parts
    }

    fn all_sources(&self, number: usize, files: &FilesSpec) -> Result<Vec<Source>> {
        if let Some(sources) = self.sources.borrow().get(&number) {
            return Ok(sources.clone());
        }
        let foreign = files.object.map(|object| self.objects.files(object));
        let sources = files.sources(foreign.as_ref())?;
        self.sources.borrow_mut().insert(number, sources.clone());
        Ok(sources)
    }

    /// The documents of node `number`, or the documents of a lane. `open` is called once per node.
    fn numbered(
        &self,
        number: usize,
        mut options: NumberedOptions,
        lane: Option<Shard>,
        open: impl FnOnce() -> Result<Arc<dyn Numbered>>,
    ) -> Result<Recipe> {
        let known = self.numbered.borrow().get(&number).cloned();
        let documents = known.map_or_else(open, Ok)?;
        self.numbered
            .borrow_mut()
            .insert(number, Arc::clone(&documents));
        let seed = options.shuffle_seed;
        options.shuffle_seed = seed.map(|seed| seed_of_lane(seed, lane));
        Ok(Recipe::Numbered {
            range: documents_of_lane(&*documents, lane)?,
            documents,
            options,
        })
    }

    fn lanes(&self, spec: &DistributeSpec) -> Result<Recipe> {
        let ranks = Ranks {
            rank: spec.rank,
            count: spec.num_ranks,
            may_be_short: spec.may_be_short,
        };
        let lane = |number| {
            let part = Shard::new(number, spec.num_lanes)?;
            Ok((number, self.node(spec.from, Some(part))?))
        };
        let numbers = ranks.lanes(spec.num_lanes, spec.is_endless);
        let lanes = numbers.into_iter().map(lane).collect::<Result<_>>()?;
        let divided = self.lane_files.borrow();
        let mut shares: Vec<_> = divided.iter().collect();
        shares.sort_by_key(|(number, _)| **number);
        Ok(Recipe::Lanes {
            lanes,
            num_lanes: spec.num_lanes,
            ranks,
            shares: shares
                .iter()
                .filter_map(|(_, files)| files.shares())
                .collect(),
        })
    }

    fn step(&self, number: usize, spec: &StepSpec, lane: Option<Shard>) -> Result<Step> {
        Ok(match spec {
            StepSpec::Call { .. } | StepSpec::Check { .. } | StepSpec::Tokenize(_) => {
                Step::Work(self.work(number, spec)?)
            }
            StepSpec::ConcatChunk(rows) => Step::Rows(rows.options(RowsOf::Concat)),
            StepSpec::Chunk(rows) => Step::Rows(rows.options(RowsOf::Document)),
            StepSpec::PackChunk(rows) => {
                let options = rows.options(RowsOf::Whole {
                    discard_long: rows.discard_long,
                });
                match rows.window {
                    Some(window) => Step::Fit { options, window },
                    None => Step::Rows(options),
                }
            }
            StepSpec::Ends {
                column,
                ends,
                always,
            } => Step::Each(Change::Ends {
                column: column.as_str().into(),
                mask_column: MASK_COLUMN.into(),
                ends: *ends,
                always: *always,
            }),
            StepSpec::Pad {
                values,
                chunk_length,
                fields,
            } => Step::Each(Change::Pad {
                values: values
                    .iter()
                    .map(|(name, value)| (name.as_str().into(), *value))
                    .collect(),
                length: *chunk_length,
                fields: *fields,
            }),
            &StepSpec::Shuffle { buffer_size, seed } => Step::Shuffle {
                size: buffer_size,
                seed: seed_of_lane(seed, lane),
            },
            &StepSpec::Take { max_count } => Step::Count(Counting::Take(max_count)),
            &StepSpec::Stride { interval, offset } => {
                Step::Count(Counting::Stride { interval, offset })
            }
            StepSpec::Enumerate { column } => {
                Step::Count(Counting::Enumerate(column.as_str().into()))
            }
            &StepSpec::Batch {
                batch_size,
                drop_last,
                stacks,
            } => Step::Batch {
                size: batch_size,
                drop_last,
                stacks,
            },
        })
    }

    fn work(&self, number: usize, spec: &StepSpec) -> Result<Arc<Work>> {
        if let Some(work) = self.works.borrow().get(&number) {
            return Ok(Arc::clone(work));
        }
        let kind = match spec {
            &StepSpec::Call {
                object,
                window,
                job_samples,
            } => WorkKind::Call {
                function: self.objects.function(object)?,
                limits: Limits {
                    window,
                    num_threads: window,
                    job_samples,
                },
            },
            StepSpec::Tokenize(tokenize) => {
                WorkKind::Tokenize(Arc::new(tokenize.options(self.objects)?))
            }
            StepSpec::Check {} => WorkKind::Check,
            other => unreachable!("{other:?} is no work"),
        };
        let work = Work::new(kind);
        self.works.borrow_mut().insert(number, Arc::clone(&work));
        Ok(work)
    }
}

/// The seed of a lane. The first lane uses the seed of the recipe; the seeds of other lanes are
/// unrelated.
fn seed_of_lane(seed: u64, lane: Option<Shard>) -> u64 {
    match lane.map_or(0, Shard::index) {
        0 => seed,
        index => splitmix::mixed(seed ^ splitmix::mixed(index)),
    }
}

impl PbinSpec {
    fn documents(&self) -> Result<Arc<dyn Numbered>> {
        let files = Files::open(&self.paths, false);
        Ok(Arc::new(TokenDocuments {
            files: Arc::new(files?),
            column: IDS_COLUMN.into(),
        }))
    }
}

impl FilesSpec {
    /// The files, with the lengths that they had when they were found.
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
        let sources = self.sources(None)?;
        Ok(Arc::new(IndexedLines::open(
            sources,
            self.max_document_bytes,
            self.on_bad_document,
        )?))
    }

    fn recipe(&self, sources: Vec<Source>, lane: Option<Shard>) -> Recipe {
        let column: Name = self.text_column.as_str().into();
        Recipe::Files {
            sources: sources.into(),
            read: ReadOptions {
                columns: Columns::of_pattern(&pattern_of_key(&column)),
                zstd_window_log_max: self.zstd_window_log,
                ..ReadOptions::for_json_lines(self.max_document_bytes)
            },
            ring: RingOptions {
                num_active: self.num_active,
                repeat: self.repeat,
                shuffle_seed: self.shuffle_seed.map(|seed| seed_of_lane(seed, lane)),
                text_column: column,
                on_bad_document: self.on_bad_document,
            },
        }
    }
}

impl TokenizeSpec {
    fn options(&self, objects: &dyn Objects) -> Result<TokenizeOptions> {
        Ok(TokenizeOptions {
            tokenizer: objects.tokenizer(self.object)?,
            encode: EncodeOptions {
                add_special_tokens: self.add_special_tokens,
                truncate_to: self.truncate_to,
                ..EncodeOptions::default()
            },
            text_column: self.text_column.as_str().into(),
            ids_column: IDS_COLUMN.into(),
            mask_column: self.mask_column.as_deref().map(Into::into),
            ensured: self.ensured,
            max_document_bytes: self.max_document_bytes,
            drops_record: self.drops_record,
            form: self.form,
        })
    }
}

impl RowsSpec {
    fn options(&self, of: RowsOf) -> RowOptions {
        let columns = self.columns.iter().map(|name| name.as_str().into());
        RowOptions {
            of,
            length: self.chunk_length,
            columns: columns.collect(),
            drop_remainder: self.drop_remainder,
            fields: self.fields,
        }
    }
}

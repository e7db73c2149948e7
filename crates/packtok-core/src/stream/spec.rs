//! A recipe in the form in which a caller describes it, as JSON.

use std::sync::Arc;

use packtok_tokenizer::{EncodeOptions, Tokenizer};
use serde::Deserialize;

use super::counting::Counting;
use super::function::{Function, Samples};
use super::parallel::Limits;
use super::recipe::{Recipe, Step};
use super::ring::RingOptions;
use super::rows::{RowOptions, RowsOf};
use super::sample::Name;
use super::tokenize::TokenizeOptions;
use crate::corpus::{Columns, Format, ReadOptions, expand};
use crate::error::Result;
use crate::field::pattern_of_key;
use crate::pack::OnBadDocument;

/// What a caller gives by its number, because it cannot be described.
pub trait Objects {
    /// A tokenizer.
    ///
    /// # Errors
    /// The caller failed to give it.
    fn tokenizer(&self, number: usize) -> Result<Tokenizer>;

    /// A function.
    fn function(&self, number: usize) -> Arc<dyn Function>;

    /// A source of samples, from its start.
    fn samples(&self, number: usize) -> Box<dyn Samples>;
}

/// A stream as a list of nodes; each comes after those that it reads from.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct RecipeSpec(Vec<NodeSpec>);

/// A node. `from` is the number of the node that it reads from.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum NodeSpec {
    FromFiles(FilesSpec),
    FromSamples {
        object: usize,
    },
    Concat {
        from: Vec<usize>,
    },
    Interleave {
        from: Vec<usize>,
        weights: Vec<u64>,
    },
    #[serde(untagged)]
    Step(StepNode),
}

#[derive(Debug, Clone, Deserialize)]
struct StepNode {
    from: usize,
    #[serde(flatten)]
    step: StepSpec,
}

#[derive(Debug, Clone, Deserialize)]
struct FilesSpec {
    inputs: Vec<String>,
    format: Option<Format>,
    text_column: String,
    num_active: usize,
    repeat: bool,
    shuffle_seed: Option<u64>,
    max_document_bytes: u64,
}

/// What is done to the samples of the node before.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum StepSpec {
    Call {
        object: usize,
        window: usize,
        job_samples: usize,
    },
    Check {
        on_bad_document: OnBadDocument,
    },
    Tokenize(TokenizeSpec),
    ConcatChunk(RowsSpec),
    Chunk(RowsSpec),
    PackChunk(RowsSpec),
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
    on_bad_document: OnBadDocument,
    max_document_bytes: u64,
    drops_record: bool,
}

#[derive(Debug, Clone, Deserialize)]
struct RowsSpec {
    chunk_length: usize,
    columns: Vec<String>,
    drop_remainder: bool,
    #[serde(default)]
    discard_long: bool,
}

impl RecipeSpec {
    /// The recipe of the last node.
    ///
    /// # Errors
    /// A file of it is missing or cannot be read.
    ///
    /// # Panics
    /// A node reads from one that does not come before it.
    pub fn recipe(&self, objects: &dyn Objects) -> Result<Recipe> {
        self.node(self.0.len() - 1, objects)
    }

    fn node(&self, number: usize, objects: &dyn Objects) -> Result<Recipe> {
        let before = |from: usize| {
            assert!(from < number, "node {number} reads from node {from}");
            self.node(from, objects)
        };
        let all = |from: &[usize]| from.iter().copied().map(before).collect::<Result<Vec<_>>>();
        Ok(match &self.0[number] {
            NodeSpec::FromFiles(files) => files.recipe()?,
            NodeSpec::FromSamples { object } => Recipe::Samples(objects.samples(*object)),
            NodeSpec::Concat { from } => Recipe::Concat(all(from)?),
            NodeSpec::Interleave { from, weights } => Recipe::Interleave {
                streams: all(from)?,
                weights: weights.clone(),
            },
            NodeSpec::Step(node) => {
                let step = node.step.step(objects)?;
                Recipe::Step(Box::new(before(node.from)?), step)
            }
        })
    }
}

impl FilesSpec {
    fn recipe(&self) -> Result<Recipe> {
        let column: Name = self.text_column.as_str().into();
        Ok(Recipe::Files {
            sources: expand(&self.inputs, self.format)?.into(),
            read: ReadOptions {
                columns: Columns::of_pattern(&pattern_of_key(&column)),
                ..ReadOptions::for_json_lines(self.max_document_bytes)
            },
            ring: RingOptions {
                num_active: self.num_active,
                repeat: self.repeat,
                shuffle_seed: self.shuffle_seed,
                text_column: column,
            },
        })
    }
}

impl StepSpec {
    fn step(&self, objects: &dyn Objects) -> Result<Step> {
        Ok(match self {
            &Self::Call {
                object,
                window,
                job_samples,
            } => Step::Call {
                function: objects.function(object),
                limits: Limits {
                    window,
                    num_threads: window,
                    job_samples,
                },
            },
            Self::Check { on_bad_document } => Step::Check(*on_bad_document),
            Self::Tokenize(tokenize) => tokenize.step(objects)?,
            Self::ConcatChunk(rows) => rows.step(RowsOf::Concat),
            Self::Chunk(rows) => rows.step(RowsOf::Document),
            Self::PackChunk(rows) => rows.step(RowsOf::Whole {
                discard_long: rows.discard_long,
            }),
            &Self::Shuffle { buffer_size, seed } => Step::Shuffle {
                size: buffer_size,
                seed,
            },
            &Self::Take { max_count } => Step::Count(Counting::Take(max_count)),
            &Self::Stride { interval, offset } => {
                Step::Count(Counting::Stride { interval, offset })
            }
            Self::Enumerate { column } => Step::Count(Counting::Enumerate(column.as_str().into())),
            &Self::Batch {
                batch_size,
                drop_last,
            } => Step::Batch {
                size: batch_size,
                drop_last,
            },
        })
    }
}

impl TokenizeSpec {
    fn step(&self, objects: &dyn Objects) -> Result<Step> {
        Ok(Step::Tokenize(TokenizeOptions {
            tokenizer: objects.tokenizer(self.object)?,
            encode: EncodeOptions {
                add_special_tokens: self.add_special_tokens,
                truncate_to: self.truncate_to,
                ..EncodeOptions::default()
            },
            text_column: self.text_column.as_str().into(),
            ids_column: "input_ids".into(),
            mask_column: self.mask_column.as_deref().map(Into::into),
            ensured: self.ensured,
            on_bad_document: self.on_bad_document,
            max_document_bytes: self.max_document_bytes,
            drops_record: self.drops_record,
        }))
    }
}

impl RowsSpec {
    fn step(&self, of: RowsOf) -> Step {
        let columns = self.columns.iter().map(|name| name.as_str().into());
        Step::Rows(RowOptions {
            of,
            length: self.chunk_length,
            columns: columns.collect(),
            drop_remainder: self.drop_remainder,
        })
    }
}

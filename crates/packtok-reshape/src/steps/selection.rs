//! How often each document is used.

use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::path::PathBuf;

use packtok_dataset::order::permutation::Permutation;
use packtok_dataset::plans::split::{Side, document_hash, least_train_hash};
use packtok_formats::OpenOptions;
use packtok_pbin::{ChunkInfo, Step};
use serde::Serialize;

use super::inputs::Inputs;
use super::removed::Removal;
use crate::convert::Meaning;
use crate::declared_tokenizer::DeclaredTokenizer;
use crate::error::{Error, Result};
use crate::shuffle;

/// The most documents and tokens of a batch that a filter decides on.
const BATCH_DOCUMENTS: usize = 1 << 16;
const BATCH_TOKENS: u64 = 4 << 20;
/// The greatest weight of a source: how often a document is used is one byte.
const MAX_WEIGHT: f64 = 255.0;

/// Documents of token files, and how often each is used.
pub struct Reshaper {
    pub(super) inputs: Inputs,
    /// How often each document is used, by its number among all.
    pub(super) copies: Vec<u8>,
    pub(super) steps: Vec<StepReport>,
    pub(super) removal: Option<Removal>,
}

/// What a step has left out or repeated.
#[derive(Debug, Clone, Serialize)]
pub struct StepReport {
    /// The step, as the output records it.
    #[serde(flatten)]
    pub step: Step,
    /// Tokens of the documents that were left out.
    pub left_out_tokens: u64,
    /// Documents that are used again.
    pub repeated: u64,
    /// Tokens of the documents that are used again.
    pub repeated_tokens: u64,
}

impl StepReport {
    pub(super) fn new(name: &str, value: Option<String>) -> Self {
        Self {
            step: Step {
                step: name.to_owned(),
                value,
                left_out: 0,
            },
            left_out_tokens: 0,
            repeated: 0,
            repeated_tokens: 0,
        }
    }
}

impl Reshaper {
    /// Opens token files, of which all documents are used.
    ///
    /// # Errors
    /// A file is damaged; the files differ in the meaning of their ids.
    pub fn open(
        paths: &[PathBuf],
        open: &OpenOptions,
        tokenizer: Option<&DeclaredTokenizer>,
    ) -> Result<Self> {
        let inputs = Inputs::open(paths, open, tokenizer)?;
        let num_documents = shuffle::checked_len(inputs.num_documents)?;
        Ok(Self {
            inputs,
            copies: vec![1; num_documents as usize],
            steps: Vec::new(),
            removal: None,
        })
    }

    /// Number of documents of the files.
    pub fn num_documents(&self) -> u64 {
        self.inputs.num_documents
    }

    /// Number of used documents, each as often as it is used.
    pub fn num_used(&self) -> u64 {
        self.copies.iter().map(|&copies| u64::from(copies)).sum()
    }

    /// The meaning of the ids.
    pub fn meaning(&self) -> Meaning {
        let metadata = &self.inputs.metadata;
        Meaning {
            tokenizer: metadata.tokenizer.clone(),
            eod: metadata.eod.clone(),
            bos: metadata.bos.clone(),
        }
    }

    /// Starts a step, to which documents that are left out from now on are added.
    pub fn start_step(&mut self, name: &str, value: Option<String>) {
        self.steps.push(StepReport::new(name, value));
    }

    /// Uses a document another number of times.
    pub(super) fn set_copies(&mut self, number: u64, copies: u8) -> Result<()> {
        let before = std::mem::replace(&mut self.copies[number as usize], copies);
        if before == copies {
            return Ok(());
        }
        let length = self.inputs.length(number)?;
        let Some(report) = self.steps.last_mut() else {
            return Ok(());
        };
        let difference = u64::from(before.abs_diff(copies));
        if copies < before {
            report.step.left_out += difference;
            report.left_out_tokens += difference * length;
        } else {
            report.repeated += difference;
            report.repeated_tokens += difference * length;
        }
        Ok(())
    }

    fn leave_out(&mut self, number: u64) -> Result<()> {
        self.set_copies(number, 0)
    }

    /// Numbers of the used documents from `first` on, in order.
    pub(super) fn used_from(&self, first: u64) -> impl Iterator<Item = u64> + '_ {
        let copies = self.copies.iter().enumerate().skip(first as usize);
        copies
            .filter(|(_, copies)| **copies > 0)
            .map(|(i, _)| i as u64)
    }

    /// The numbers of the used documents, in order.
    pub(super) fn used(&self) -> Vec<u32> {
        // There are fewer than 2^32 documents.
        self.used_from(0).map(|number| number as u32).collect()
    }

    /// Numbers of the next used documents from `first` on, at least one; `None` after the last.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn batch(&self, first: u64) -> Result<Option<Vec<u64>>> {
        let (mut numbers, mut num_tokens) = (Vec::new(), 0);
        for number in self.used_from(first) {
            num_tokens += self.inputs.length(number)?;
            numbers.push(number);
            if numbers.len() >= BATCH_DOCUMENTS || num_tokens >= BATCH_TOKENS {
                break;
            }
        }
        Ok((!numbers.is_empty()).then_some(numbers))
    }

    /// Leaves out the documents whose flag is false.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn decide(&mut self, numbers: &[u64], flags: &[bool]) -> Result<()> {
        for (&number, &is_kept) in numbers.iter().zip(flags) {
            if !is_kept {
                self.leave_out(number)?;
            }
        }
        Ok(())
    }

    /// Keeps the documents of each file that are in a chunk.
    ///
    /// # Errors
    /// The chunk does not exist.
    pub fn chunk(&mut self, chunk: ChunkInfo) -> Result<()> {
        let chunk = shuffle::checked_chunk(chunk)?;
        self.start_step("chunk", Some(format!("{}/{}", chunk.index, chunk.count)));
        for i in 0..self.inputs.files.len() {
            let input = &self.inputs.files[i];
            let (first, num_documents) = (input.first, input.file.num_documents());
            let kept = shuffle::documents_of_chunk(chunk, num_documents);
            for document in (0..num_documents).filter(|document| !kept.contains(document)) {
                self.leave_out(first + document)?;
            }
        }
        Ok(())
    }

    /// Keeps one side of a split by the hash of the documents, as datasets split.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn split_by_hash(
        &mut self,
        side: Side,
        fraction: f64,
        seed: u64,
        check: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<()> {
        self.start_step(
            "split",
            Some(format!("{}, fraction {fraction}, seed {seed}", side.name())),
        );
        let least = least_train_hash(fraction);
        let mut first = 0;
        while let Some(numbers) = self.batch(first)? {
            let mut flags = Vec::with_capacity(numbers.len());
            for hash in self.hashes(&numbers, seed)? {
                let is_validation = hash < least;
                flags.push(is_validation == (side == Side::Validation));
            }
            self.decide(&numbers, &flags)?;
            first = next_number(&numbers);
            keep_going(check)?;
        }
        Ok(())
    }

    /// Keeps one side of a split that holds out the last documents.
    ///
    /// # Errors
    /// There are fewer documents.
    pub fn split_last(&mut self, side: Side, num_validation: u64) -> Result<()> {
        let used = self.used();
        let Some(num_train) = (used.len() as u64).checked_sub(num_validation) else {
            return Err(Error::OptionOutOfRange {
                option: "--validation-last (validation_last)",
                found: num_validation.to_string(),
                expected: "at most the number of documents",
            });
        };
        self.start_step(
            "split",
            Some(format!("{}, last {num_validation}", side.name())),
        );
        let (train, validation) = used.split_at(num_train as usize);
        let left_out = match side {
            Side::Train => validation,
            Side::Validation => train,
        };
        left_out
            .iter()
            .try_for_each(|&number| self.leave_out(number.into()))
    }

    /// Keeps randomly chosen documents: `num_documents` of them.
    ///
    /// # Errors
    /// There are fewer documents.
    pub fn sample_documents(&mut self, num_documents: u64, seed: u64) -> Result<()> {
        let used = self.used();
        if num_documents > used.len() as u64 {
            return Err(Error::OptionOutOfRange {
                option: "--sample (sample)",
                found: format!("{num_documents} documents"),
                expected: "at most the number of documents that the steps before it keep",
            });
        }
        self.start_step(
            "sample",
            Some(format!("{num_documents} documents, seed {seed}")),
        );
        self.keep_share(&used, num_documents, 0, seed)
    }

    /// Keeps randomly chosen documents that have at most `max_tokens` tokens together: the first in a
    /// random order until the next would exceed that number.
    ///
    /// # Errors
    /// There are fewer tokens.
    pub fn sample_tokens(&mut self, max_tokens: u64, seed: u64) -> Result<()> {
        let used = self.used();
        self.start_step("sample", Some(format!("{max_tokens} tokens, seed {seed}")));
        let (mut num_documents, mut num_tokens) = (0, 0);
        if let Some(len) = NonZeroU64::new(used.len() as u64) {
            let permutation = Permutation::new(len, seed, 0);
            while num_documents < len.get() {
                let number = used[permutation.at(num_documents) as usize];
                num_tokens += self.inputs.length(number.into())?;
                if num_tokens > max_tokens {
                    break;
                }
                num_documents += 1;
            }
        }
        if num_documents == used.len() as u64 && num_tokens < max_tokens {
            return Err(Error::OptionOutOfRange {
                option: "--sample (sample)",
                found: format!("{max_tokens} tokens"),
                expected: "at most the number of tokens that the steps before it keep",
            });
        }
        self.keep_share(&used, num_documents, 0, seed)
    }

    /// Uses the documents of each source as often as its weight says: 0.25 keeps a quarter of them,
    /// 2.5 uses each twice and half of them once more. `weights` are by index of the source.
    ///
    /// # Errors
    /// A weight is negative, or above 255; an origin is damaged.
    pub fn sample_by_weight(
        &mut self,
        weights: &[f64],
        seed: u64,
        described: String,
    ) -> Result<()> {
        if let Some(weight) = weights
            .iter()
            .find(|weight| !(0.0..=MAX_WEIGHT).contains(*weight))
        {
            return Err(Error::OptionOutOfRange {
                option: "--sample (sample)",
                found: format!("the weight {weight}"),
                expected: "0 to 255",
            });
        }
        self.start_step("sample", Some(format!("{described}, seed {seed}")));
        let mut by_source = vec![Vec::new(); weights.len()];
        for number in self.used() {
            let (source, _) = self.inputs.origin(number.into())?;
            if let Some(numbers) = by_source.get_mut(source as usize) {
                numbers.push(number);
            }
        }
        for (numbers, &weight) in by_source.iter().zip(weights) {
            let share = weight.fract() * numbers.len() as f64;
            self.keep_share(numbers, share.round() as u64, weight as u8, seed)?;
        }
        Ok(())
    }

    /// Uses each of these documents `copies` times, and some of them, which are chosen at random,
    /// once more.
    fn keep_share(
        &mut self,
        numbers: &[u32],
        num_chosen: u64,
        copies: u8,
        seed: u64,
    ) -> Result<()> {
        let mut is_chosen = vec![false; numbers.len()];
        if let Some(len) = NonZeroU64::new(numbers.len() as u64) {
            let permutation = Permutation::new(len, seed, 0);
            for position in 0..num_chosen {
                is_chosen[permutation.at(position) as usize] = true;
            }
        }
        for (&number, is_chosen) in numbers.iter().zip(is_chosen) {
            self.set_copies(number.into(), copies.saturating_add(is_chosen.into()))?;
        }
        Ok(())
    }

    /// The number of tokens of each document.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn lengths(&self, numbers: &[u64]) -> Result<Vec<u64>> {
        let numbers = numbers.iter();
        numbers.map(|&number| self.inputs.length(number)).collect()
    }

    /// The hash of each document that a split uses.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn hashes(&self, numbers: &[u64], seed: u64) -> Result<Vec<u64>> {
        self.each(numbers, |bytes, width| document_hash(bytes, width, seed))
    }

    /// How often an id is in each document.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn counts(&self, numbers: &[u64], id: u32) -> Result<Vec<u64>> {
        self.each(numbers, |bytes, width| count(bytes, width, id))
    }

    fn each<T>(
        &self,
        numbers: &[u64],
        of: impl Fn(&[u8], packtok_pbin::TokenWidth) -> T,
    ) -> Result<Vec<T>> {
        let values = numbers.iter().map(|&number| {
            let (input, bytes) = self.inputs.tokens(number)?;
            Ok(of(bytes, input.file.width()))
        });
        let values = values.collect();
        self.inputs.release_pages();
        values
    }

    /// The ids of a document.
    ///
    /// # Errors
    /// There is no such document, or its file is damaged.
    pub fn ids(&self, number: u64) -> Result<Vec<u32>> {
        let (input, bytes) = self.inputs.tokens(number)?;
        Ok(input.file.width().ids(bytes).collect())
    }

    /// The source of each document, as an index of [`Reshaper::source_names`], and its place there:
    /// as the file records it, otherwise the number of the document in its file.
    ///
    /// # Errors
    /// An origin is damaged.
    pub fn origins(&self, numbers: &[u64]) -> Result<(Vec<u64>, Vec<u64>)> {
        let mut columns = (Vec::new(), Vec::new());
        for &number in numbers {
            let (source, offset) = self.inputs.origin(number)?;
            columns.0.push(source);
            columns.1.push(offset);
        }
        Ok(columns)
    }

    /// The names of the sources: files of the corpus if all files record origins, otherwise the token
    /// files.
    pub fn source_names(&self) -> Vec<String> {
        self.inputs.source_names()
    }
}

/// The number after the last.
pub(super) fn next_number(numbers: &[u64]) -> u64 {
    numbers.last().map_or(0, |last| last + 1)
}

/// # Errors
/// `check` breaks.
pub(super) fn keep_going(check: &mut dyn FnMut() -> ControlFlow<()>) -> Result<()> {
    match check() {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(packtok_jobs::Error::Cancelled.into()),
    }
}

/// How often an id is among tokens. Comparing tokens of their width compiles to vector instructions.
fn count(bytes: &[u8], width: packtok_pbin::TokenWidth, id: u32) -> u64 {
    if id > width.max_id() {
        return 0;
    }
    match width.bytes() {
        1 => count_of(bytes, [id as u8]),
        2 => count_of(bytes, (id as u16).to_le_bytes()),
        _ => count_of(bytes, id.to_le_bytes()),
    }
}

fn count_of<const WIDTH: usize>(bytes: &[u8], id: [u8; WIDTH]) -> u64 {
    let tokens = bytes.as_chunks::<WIDTH>().0.iter();
    tokens.filter(|&&token| token == id).count() as u64
}

//! The caller's objects: tokenizers, functions, and sources of samples.

use std::sync::Arc;

use packtok_corpus::ForeignFiles;
use packtok_jobs::Shard;
use packtok_tokenizer::Tokenizer;

use super::Sample;
use crate::error::Result;

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

/// The position of a sample among all inputs of a function: the lane, and the number of the sample
/// in the lane. For a sample of joined lanes, the lane is `None` and the number is the number of
/// the row.
pub type SampleKey = (Option<u64>, u64);

/// A function of samples. It must return the same for the same sample.
pub trait Function: Send + Sync {
    /// Returns a result for each of `samples`, in order; `None` drops the sample. If there are
    /// fewer results than samples, the error belongs to the next sample.
    ///
    /// `keys` has a key for each sample, which only depends on the sample's position in the
    /// stream.
    fn call(&self, samples: Vec<Sample>, keys: &[SampleKey]) -> (Vec<Option<Sample>>, Result<()>);

    /// Whether states hold its outputs, because it returns others for the same samples later.
    fn keeps_outputs(&self) -> bool;

    /// The bytes of outputs.
    fn pack(&self, samples: &[&Sample]) -> Vec<u8>;

    /// The outputs that [`Function::pack`] serialized.
    ///
    /// # Errors
    /// The bytes are damaged.
    fn unpack(&self, bytes: &[u8]) -> Result<Vec<Sample>>;
}

/// Samples of the caller.
pub trait Samples: Send {
    /// The next samples, at least one and at most `limit`; empty at the end.
    ///
    /// # Errors
    /// The caller's source failed.
    fn next(&mut self, limit: usize) -> Result<Vec<Sample>>;

    /// The state of the source before the next sample, if the source has a state of its own.
    ///
    /// # Errors
    /// The caller's source failed.
    fn state(&mut self) -> Result<Option<Vec<u8>>>;

    /// Moves to sample `number`, counted from the start, where [`Samples::state`] returned
    /// `state`. Called at most once, before all other methods.
    ///
    /// # Errors
    /// The caller's source failed or is shorter.
    fn seek(&mut self, number: u64, state: Option<&[u8]>) -> Result<()>;
}

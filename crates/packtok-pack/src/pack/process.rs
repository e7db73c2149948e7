//! Tokenizes on all threads, for packing and for comparing.

use packtok_corpus::Source;
use packtok_corpus::pipeline::run;
use packtok_jobs::Consume;
use packtok_tokenizer::Tokenizer;

use super::options::PackOptions;
use super::worker::{DocBatch, Sample, Worker};
use crate::error::{Error, Result};

/// Tokenizes the sampled lines of `reader` on all threads, and passes the results to `consumer` in
/// order.
///
/// Returns the digests of the sources that were read to the end.
pub(crate) fn process(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    sources: &[Source],
    reader: packtok_corpus::Reader,
    sample: Sample,
    consumer: &mut impl Consume<DocBatch, Error>,
) -> Result<Vec<Option<u32>>> {
    let workers = (0..options.spec.num_cpus.max(1))
        .map(|_| Worker::new(tokenizer, options, sample.clone()))
        .collect::<Result<Vec<_>>>()?;
    run(reader, workers, 4 * options.spec.chunk_bytes, consumer)
        .map_err(|error| error.with_names(sources))
}

//! The part of the corpus that a run packs.

use packtok_corpus::Source;
use packtok_pbin::{ShardInfo, read_raw_index};

use super::options::PackOptions;
use crate::error::{Error, Result};

/// The part of the corpus that a run packs.
pub(crate) struct CorpusPart<'a> {
    /// The sources, in order.
    pub(crate) sources: &'a [Source],
    /// The shard, if the run packs a shard. Shards have no copy of the tokenizer.
    pub(crate) shard: Option<ShardInfo>,
}

impl<'a> CorpusPart<'a> {
    pub(crate) fn whole(sources: &'a [Source]) -> Self {
        Self {
            sources,
            shard: None,
        }
    }
}

/// A reader of the corpus from its start.
pub(crate) fn reader(options: &PackOptions, sources: &[Source]) -> Result<packtok_corpus::Reader> {
    let Some(index_path) = &options.spec.index_path else {
        return Ok(packtok_corpus::Reader::new(
            sources.to_vec(),
            options.spec.read(),
        ));
    };
    let [source] = sources else {
        return Err(Error::IndexForMany {
            path: index_path.clone(),
            num_sources: sources.len(),
        });
    };
    let entries = read_raw_index(index_path)?;
    let reader = packtok_corpus::Reader::indexed(source.clone(), entries, options.spec.read())?;
    Ok(reader)
}

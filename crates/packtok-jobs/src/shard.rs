//! Shard arithmetic: the byte range of a corpus that a shard owns.
//!
//! The concatenation of all sources has `total_bytes`. Shard `k` of `N` owns the lines whose first
//! byte is in `k·total/N..(k+1)·total/N`; the files of a corpus are cut at these bytes.

use std::ops::Range;

use crate::error::{Error, Result};

/// One of the parts of a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    count: u64,
}

impl Shard {
    /// Shard `index` of `count`, numbered from 0.
    ///
    /// # Errors
    /// [`Error::NoShards`], [`Error::NoSuchShard`].
    pub fn new(index: u64, count: u64) -> Result<Self> {
        if count == 0 {
            return Err(Error::NoShards);
        }
        if index >= count {
            return Err(Error::NoSuchShard { index, count });
        }
        Ok(Self { index, count })
    }

    /// Index of the shard, from 0.
    pub fn index(self) -> u64 {
        self.index
    }

    /// Number of shards.
    pub fn count(self) -> u64 {
        self.count
    }

    /// The bytes of the corpus in which the shard's lines start.
    pub fn span(self, total_bytes: u64) -> Range<u64> {
        self.start(self.index, total_bytes)..self.start(self.index + 1, total_bytes)
    }

    /// The range of a file in which the shard's lines start; `None` if the range is empty. The
    /// file has `bytes` bytes and follows `bytes_before` bytes of other files.
    ///
    /// An empty file belongs to the shard that owns the next byte; at the end of the corpus, to
    /// the last shard.
    pub fn share(self, total_bytes: u64, bytes_before: u64, bytes: u64) -> Option<Range<u64>> {
        let span = self.span(total_bytes);
        if bytes == 0 {
            let is_last = self.index + 1 == self.count;
            let is_mine = span.contains(&bytes_before) || (is_last && bytes_before >= total_bytes);
            return is_mine.then_some(0..0);
        }
        let start = span.start.max(bytes_before) - bytes_before;
        let stop = span
            .end
            .min(bytes_before + bytes)
            .saturating_sub(bytes_before);
        (start < stop).then_some(start..stop)
    }

    fn start(self, index: u64, total_bytes: u64) -> u64 {
        let start = u128::from(index) * u128::from(total_bytes) / u128::from(self.count);
        // At most `total_bytes`, because `index` is at most `count`.
        start as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn spans_tile_the_corpus_evenly(total in any::<u64>(), count in 1u64..2000) {
            let mut stop = 0;
            for index in 0..count {
                let span = Shard::new(index, count).unwrap().span(total);
                prop_assert_eq!(span.start, stop);
                let len = span.end - span.start;
                prop_assert!(len == total / count || len == total.div_ceil(count));
                stop = span.end;
            }
            prop_assert_eq!(stop, total);
        }

        #[test]
        fn shares_tile_every_file_and_each_empty_file_has_one_owner(
            files in prop::collection::vec(0u64..40, 1..12),
            count in 1u64..50,
        ) {
            let total = files.iter().sum();
            let mut before = 0;
            for bytes in files {
                let shares: Vec<_> = (0..count)
                    .filter_map(|index| Shard::new(index, count).unwrap().share(total, before, bytes))
                    .collect();
                let mut stop = 0;
                for share in &shares {
                    prop_assert_eq!(share.start, stop);
                    stop = share.end;
                }
                prop_assert_eq!(stop, bytes);
                prop_assert!(!shares.is_empty());
                prop_assert!(bytes > 0 || shares.len() == 1);
                before += bytes;
            }
        }
    }

    #[test]
    fn numbers_out_of_range_are_rejected() {
        let message = |index, count| Shard::new(index, count).unwrap_err().to_string();
        assert_eq!(message(4, 4), "no shard 4 of 4; shards are numbered 0 to 3");
        assert_eq!(
            message(0, 0),
            "the number of shards is 0, expected at least 1"
        );
    }
}

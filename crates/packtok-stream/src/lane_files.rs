//! The parts of files that each lane reads.
//!
//! Files that can be cut are divided by bytes, as for shards. A compressed file, or a file in a
//! format without entry points, is read by one lane. These files are distributed first, the
//! largest first, each to the lane with the fewest bytes. The files that can be cut then fill all
//! lanes up to the same level.

use std::path::Path;

use packtok_corpus::cut;
use packtok_corpus::{Compression, Format, Source, compression, is_named_compressed, is_url};
use packtok_jobs::Shard;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Lanes with more bytes than this are not checked for being empty. The check reads files at every
/// boundary, and only a line longer than this can leave such a lane without a line.
const SEARCHED_BYTES: u64 = 1 << 20;

/// The rule that divides files among lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Division {
    /// So that lanes have about as many bytes each.
    Equal,
    /// The rule of earlier versions, which their states need: a file that cannot be cut belongs to
    /// the lane that owns its first byte.
    ByFirstByte,
}

impl Division {
    /// Whether a state does not record it: earlier versions, which had one rule, recorded none.
    pub(super) fn is_unrecorded(&self) -> bool {
        *self == Self::ByFirstByte
    }
}

/// The bytes of a source that each lane reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneShares {
    /// The files of the source, in words.
    pub source: String,
    /// Number of bytes of each lane. For compressed files, this counts compressed bytes.
    pub bytes: Vec<u64>,
}

/// Whether one lane reads the whole file. The check does not read the content of files in a store.
fn is_whole(source: &Source) -> Result<bool> {
    Ok(match source.format {
        Format::Parquet | Format::Arrow => false,
        Format::Jsonl if is_named_compressed(source) => true,
        Format::Jsonl if is_url(&source.path) || source.bytes == 0 => false,
        Format::Jsonl => compression(source)? != Compression::None,
        _ => true,
    })
}

/// Files in words.
pub(super) fn described<'a>(paths: impl ExactSizeIterator<Item = &'a Path>) -> String {
    let mut paths = paths;
    let num_more = paths.len().saturating_sub(1);
    let first = paths.next().map(Path::display);
    match (first, num_more) {
        (None, _) => "no files".to_owned(),
        (Some(first), 0) => first.to_string(),
        (Some(first), 1) => format!("{first} and 1 more file"),
        (Some(first), _) => format!("{first} and {num_more} more files"),
    }
}

/// Files that are divided among lanes.
pub(super) struct LaneFiles {
    sources: Vec<Source>,
    /// For each source, whether one lane reads the whole file.
    whole: Vec<bool>,
    count: u64,
    division: Division,
}

impl LaneFiles {
    /// Divides `sources` among `count` lanes.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn new(sources: Vec<Source>, count: u64, division: Division) -> Result<Self> {
        let mut this = Self {
            whole: sources.iter().map(is_whole).collect::<Result<_>>()?,
            sources,
            count,
            division,
        };
        if division == Division::Equal && this.needs_files()? {
            this.whole.fill(true);
        }
        Ok(this)
    }

    /// The parts that lane `index` reads, in the order of the sources.
    ///
    /// # Errors
    /// A file cannot be read, or a lane has nothing to read.
    pub(super) fn of_lane(&self, index: u64) -> Result<Vec<Source>> {
        let parts = self.parts(index)?;
        // All ranks must detect an empty lane, including ranks that do not read it.
        let is_unequal = |shares: LaneShares| {
            shares.bytes.contains(&0) && shares.bytes.iter().any(|&bytes| bytes > 0)
        };
        if parts.is_empty() || self.shares().is_some_and(is_unequal) {
            return Err(self.empty_lane(index));
        }
        Ok(parts)
    }

    fn parts(&self, index: u64) -> Result<Vec<Source>> {
        match self.division {
            Division::Equal if self.whole.contains(&true) => self.leveled(index),
            _ => self.by_first_byte(index),
        }
    }

    fn by_first_byte(&self, index: u64) -> Result<Vec<Source>> {
        let lane = Shard::new(index, self.count)?;
        let total_bytes = self.sources.iter().map(|source| source.bytes).sum();
        let mut bytes_before = 0;
        let mut parts = Vec::new();
        for source in &self.sources {
            if let Some(share) = lane.share(total_bytes, bytes_before, source.bytes) {
                parts.extend(cut(source.clone(), share, &mut || Ok(()))?);
            }
            bytes_before += source.bytes;
        }
        Ok(parts)
    }

    /// Whether cutting files leaves a lane without documents although there are enough files for
    /// all lanes.
    fn needs_files(&self) -> Result<bool> {
        let total_bytes: u64 = self.sources.iter().map(|source| source.bytes).sum();
        let is_table = |source: &Source| source.format != Format::Jsonl;
        let is_searched =
            total_bytes / self.count < SEARCHED_BYTES || self.sources.iter().any(is_table);
        if self.num_files() < self.count || !self.whole.contains(&false) || !is_searched {
            return Ok(false);
        }
        for index in 0..self.count {
            if self.parts(index)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Number of files that have content.
    fn num_files(&self) -> u64 {
        self.sources
            .iter()
            .filter(|source| source.bytes > 0)
            .count() as u64
    }

    /// The whole files of a lane, and the cut parts that fill the lane up to the common level.
    fn leveled(&self, index: u64) -> Result<Vec<Source>> {
        let (owners, loads) = self.owners();
        let spans = self.spans(&loads);
        let (start, stop) = (spans[index as usize], spans[index as usize + 1]);
        let mut bytes_before = 0;
        let mut parts = Vec::new();
        for ((source, whole), owner) in self.sources.iter().zip(&self.whole).zip(owners) {
            if *whole {
                parts.extend((owner == index).then(|| source.clone()));
                continue;
            }
            let from = start.max(bytes_before) - bytes_before;
            let to = stop
                .min(bytes_before + source.bytes)
                .saturating_sub(bytes_before);
            if from < to {
                parts.extend(cut(source.clone(), from..to, &mut || Ok(()))?);
            }
            bytes_before += source.bytes;
        }
        Ok(parts)
    }

    /// The lane of each whole file, and the number of bytes of each lane. The largest file is
    /// assigned first, each to the lane with the fewest bytes.
    fn owners(&self) -> (Vec<u64>, Vec<u64>) {
        let mut loads = vec![0; self.count as usize];
        let mut owners = vec![0; self.sources.len()];
        let mut files: Vec<_> = (0..self.sources.len()).filter(|&i| self.whole[i]).collect();
        files.sort_by_key(|&i| std::cmp::Reverse(self.sources[i].bytes));
        for i in files {
            let lightest = (0..loads.len())
                .min_by_key(|&lane| loads[lane])
                .unwrap_or(0);
            loads[lightest] += self.sources[i].bytes;
            owners[i] = lightest as u64;
        }
        (owners, loads)
    }

    /// The boundaries of lanes in the bytes of all files that can be cut. Each lane receives the
    /// bytes that it lacks to the common level.
    fn spans(&self, loads: &[u64]) -> Vec<u64> {
        let divisible = self
            .sources
            .iter()
            .zip(&self.whole)
            .filter(|(_, whole)| !**whole);
        let mut rest: u64 = divisible.map(|(source, _)| source.bytes).sum();
        let mut sorted = loads.to_vec();
        sorted.sort_unstable();
        // The number of lanes that are filled, and the common level.
        let (mut num_filled, mut level) = (1, sorted[0]);
        while let Some(&next) = sorted.get(num_filled)
            && let Some(left) = rest.checked_sub((next - level) * num_filled as u64)
        {
            (rest, level) = (left, next);
            num_filled += 1;
        }
        let mut spans = vec![0];
        let mut filled = 0;
        for &load in loads {
            let mut own = 0;
            if load <= level && filled < num_filled as u64 {
                let share = |k| u128::from(rest) * u128::from(k) / num_filled as u128;
                own = level - load + (share(filled + 1) - share(filled)) as u64;
                filled += 1;
            }
            spans.push(spans[spans.len() - 1] + own);
        }
        spans
    }

    /// The number of bytes of each lane; `None` for the division of earlier versions.
    pub(super) fn shares(&self) -> Option<LaneShares> {
        if self.division == Division::ByFirstByte {
            return None;
        }
        let (_, loads) = self.owners();
        let spans = self.spans(&loads);
        let own = spans.windows(2).map(|pair| pair[1] - pair[0]);
        Some(LaneShares {
            source: described(self.sources.iter().map(|source| &*source.path)),
            bytes: loads
                .iter()
                .zip(own)
                .map(|(load, own)| load + own)
                .collect(),
        })
    }

    fn empty_lane(&self, lane: u64) -> Error {
        let is_possible = |count: &u64| {
            let divided = Self::new(self.sources.clone(), *count, self.division);
            let has_all = |divided: Self| {
                (0..*count).all(|index| divided.parts(index).is_ok_and(|parts| !parts.is_empty()))
            };
            divided.is_ok_and(has_all)
        };
        Error::EmptyLane {
            data: described(self.sources.iter().map(|source| &*source.path)),
            lane,
            num_lanes: self.count,
            possible: (1..self.count).rev().find(is_possible).unwrap_or(0),
            has_whole: self.whole.contains(&true),
        }
    }
}

//! Lanes: parts of the corpus, each read by its own chain of nodes, joined into one stream of
//! rows.
//!
//! Row `p` of the stream is row `p div V` of lane `p mod V`; lanes that have ended are skipped.
//! Rank `r` of `R` returns the rows `p ≡ r mod R`. So the stream depends on the number of lanes,
//! which the specification fixes, but not on the number of ranks.
//!
//! If R divides V and no lane ends, a rank only needs its own lanes. Otherwise it computes all
//! lanes: the row that follows the end of a lane depends on the ends of the other lanes.

use serde::{Deserialize, Serialize};

use super::Sample;
use super::builder::{OperatorSpec, Site};
use super::lane_files::Division;
use super::node::Node;
use super::position::{Numbers, Position, damaged, unpacked};
use super::sample::StreamRow;
use crate::error::{Error, Result};

/// Divides the data into lanes and joins their rows, which ranks share.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DistributeSpec {
    /// This rank, below `num_ranks`.
    #[serde(skip_serializing)]
    rank: u64,
    #[serde(skip_serializing)]
    num_ranks: u64,
    num_lanes: u64,
    /// Whether a last round with fewer rows than ranks is returned. Otherwise, its rows are
    /// dropped.
    may_be_short: bool,
    #[serde(skip_serializing_if = "Division::is_unrecorded")]
    division: Division,
}

impl OperatorSpec for DistributeSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        // If the stream is endless, no lane ends.
        let reads_own = site.flow().is_endless && self.num_lanes.is_multiple_of(self.num_ranks);
        let is_read = |lane: &u64| !reads_own || lane % self.num_ranks == self.rank;
        let numbers: Vec<_> = (0..self.num_lanes).filter(is_read).collect();
        let ranks = Ranks {
            rank: self.rank,
            count: self.num_ranks,
            may_be_short: self.may_be_short,
        };
        let lanes = site.lanes(&numbers, self.num_lanes, self.division)?;
        Ok(Box::new(Lanes::new(lanes, self.num_lanes, ranks)))
    }

    fn num_ranks(&self) -> Option<u64> {
        Some(self.num_ranks)
    }
}

/// The ranks that share a stream.
#[derive(Debug, Clone, Copy)]
struct Ranks {
    rank: u64,
    count: u64,
    may_be_short: bool,
}

/// The node that joins lanes.
struct Lanes {
    /// The lanes that are read, in order, with their numbers.
    lanes: Vec<Lane>,
    num_lanes: u64,
    ranks: Ranks,
    /// Rows of the stream so far, of all ranks; a multiple of their number.
    num_rows: u64,
    /// Position in `lanes` of the next row.
    next: usize,
}

struct Lane {
    number: u64,
    node: Box<dyn Node>,
    has_ended: bool,
}

impl Lanes {
    /// Joins `lanes`, those that the rank reads with their numbers.
    fn new(lanes: Vec<(u64, Box<dyn Node>)>, num_lanes: u64, ranks: Ranks) -> Self {
        let lane = |(number, node)| Lane {
            number,
            node,
            has_ended: false,
        };
        Self {
            lanes: lanes.into_iter().map(lane).collect(),
            num_lanes,
            ranks,
            num_rows: 0,
            next: 0,
        }
    }

    fn reads_all(&self) -> bool {
        self.lanes.len() as u64 == self.num_lanes
    }

    /// The next row of the lanes that this rank reads; `None` when all lanes have ended.
    fn next_row(&mut self) -> Result<Option<Sample>> {
        let num_read = self.lanes.len();
        for _ in 0..num_read {
            let lane = &mut self.lanes[self.next];
            self.next = (self.next + 1) % num_read;
            if lane.has_ended {
                continue;
            }
            match lane.node.next()? {
                Some(row) => return Ok(Some(row)),
                None => lane.has_ended = true,
            }
            // The lane has ended, so the next lane is read instead.
        }
        Ok(None)
    }
}

impl Node for Lanes {
    fn next(&mut self) -> Result<Option<Sample>> {
        let mut own = None;
        if self.reads_all() {
            // All ranks are at the same row between two calls.
            for rank in 0..self.ranks.count {
                let Some(row) = self.next_row()? else {
                    if !self.ranks.may_be_short {
                        return Ok(None);
                    }
                    break;
                };
                let is_own = rank == self.ranks.rank;
                if is_own || own.is_none() {
                    own = Some(Sample {
                        is_absent: !is_own,
                        ..row
                    });
                }
            }
        } else {
            own = self.next_row()?;
        }
        if let Some(row) = &mut own {
            let round = (self.num_rows, self.num_rows + self.ranks.count);
            row.row = Some(StreamRow {
                number: self.num_rows + self.ranks.rank,
                round,
                may_be_short: self.ranks.may_be_short,
            });
            self.num_rows = round.1;
        }
        Ok(own)
    }

    fn mark(&self, _: &mut Numbers) {}

    fn advance(&mut self, _: &mut Position<'_>) -> Result<()> {
        // No operator with a buffer follows lanes.
        Err(damaged())
    }

    fn save(&self, state: &mut Numbers) {
        state.push(self.num_rows);
        // If no lane has ended, the number of rows determines the next lane.
        let has_ended = self.lanes.iter().any(|lane| lane.has_ended);
        state.push(u64::from(has_ended));
        if has_ended {
            state.push(self.lanes[self.next].number);
        }
        for lane in &self.lanes {
            let mut own = Numbers::default();
            own.push(u64::from(lane.has_ended));
            lane.node.save(&mut own);
            state.lanes.insert(lane.number, own.into_bytes());
        }
    }

    fn load(&mut self, state: &mut Position<'_>) -> Result<()> {
        self.num_rows = state.number()?;
        let next_of_ended = match state.number_to(1)? {
            0 => None,
            _ => Some(state.number()?),
        };
        let missing = |lane| Error::LaneMissing { lane };
        for lane in &mut self.lanes {
            let saved = state.lanes.and_then(|lanes| lanes.get(&lane.number));
            let saved = saved.ok_or_else(|| missing(lane.number))?;
            let own = unpacked(saved)?;
            let mut own = Position::new(&own);
            lane.has_ended = own.number_to(1)? == 1;
            lane.node.load(&mut own)?;
            own.finish()?;
        }
        let is_over = self.lanes.iter().all(|lane| lane.has_ended);
        if !is_over && !self.num_rows.is_multiple_of(self.ranks.count) {
            return Err(Error::RowsOfRanks {
                num_rows: self.num_rows,
                num_ranks: self.ranks.count,
            });
        }
        let first_own = if self.reads_all() {
            self.num_rows
        } else {
            self.num_rows + self.ranks.rank
        };
        let next = next_of_ended.unwrap_or(first_own % self.num_lanes);
        let position = self.lanes.iter().position(|lane| lane.number == next);
        self.next = position.ok_or_else(damaged)?;
        Ok(())
    }

    fn set_recomputing(&mut self, is_recomputing: bool) {
        for lane in &mut self.lanes {
            lane.node.set_recomputing(is_recomputing);
        }
    }
}

//! Makes rows of complete documents: `pack_chunk`. The rows of `strategy="next_fit"` are those of
//! `rows.rs`; those of `strategy="best_fit"` are made here.
//!
//! For best fit, documents are read in windows, and each window is planned as `TokenDataset` plans a file.

use packtok_dataset::plans::best_fit::plan_best_fit;
use serde::{Deserialize, Serialize};

use super::Sample;
use super::builder::{OperatorSpec, Site};
use super::node::{History, Node};
use super::position::{Numbers, Position, damaged};
use super::rows::{Document, RowBuilder, RowOptions, RowsOf, RowsSpec};
use crate::error::Result;

/// Puts complete documents into rows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PackChunkSpec {
    #[serde(flatten)]
    rows: RowsSpec,
    #[serde(flatten)]
    strategy: Strategy,
}

/// The choice of the documents of a row.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "strategy", rename_all = "snake_case")]
enum Strategy {
    NextFit {
        discard_long: bool,
    },
    BestFit {
        /// Documents that are planned together, at least 1.
        window: usize,
    },
}

impl OperatorSpec for PackChunkSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        match self.strategy {
            Strategy::NextFit { discard_long } => {
                self.rows.build(site, RowsOf::Whole { discard_long })
            }
            Strategy::BestFit { window } => {
                let discard_long = false;
                let options = self.rows.options(RowsOf::Whole { discard_long });
                Ok(Box::new(Fit::new(site.input()?, options, window)))
            }
        }
    }
}

/// The node that makes rows by best fit.
struct Fit {
    upstream: History,
    options: RowOptions,
    /// Documents of a window, at least 1.
    window_documents: usize,
    window: Window,
    /// The next row of the window.
    next_row: usize,
}

/// Documents that are planned together, and their rows.
#[derive(Default)]
struct Window {
    /// Number and mark of the first document.
    number: u64,
    mark: Vec<u8>,
    documents: Vec<Document>,
    rows: Vec<Vec<DocumentSpan>>,
}

/// Tokens of a document.
struct DocumentSpan {
    document: usize,
    start: usize,
    len: usize,
}

impl Fit {
    fn new(upstream: Box<dyn Node>, options: RowOptions, window_documents: usize) -> Self {
        Self {
            upstream: History::new(upstream),
            options,
            window_documents,
            window: Window::default(),
            next_row: 0,
        }
    }

    /// Reads and plans the next window; false at the end.
    fn read_window(&mut self) -> Result<bool> {
        let mut window = Window {
            number: self.upstream.number(),
            ..Window::default()
        };
        let mut mark = Numbers::default();
        self.upstream.mark(&mut mark);
        window.mark = mark.into_bytes();
        self.upstream.forget_before(window.number);
        while window.documents.len() < self.window_documents {
            let Some(mut sample) = self.upstream.pull(&mut Numbers::default())? else {
                break;
            };
            window
                .documents
                .push(Document::of(&mut sample, &self.options)?);
        }
        let has_documents = !window.documents.is_empty();
        window.plan(self.options.length as u64)?;
        self.window = window;
        Ok(has_documents)
    }

    /// Row `i` of the window.
    fn row(&self, i: usize) -> Sample {
        let pieces = &self.window.rows[i];
        let len = pieces.iter().map(|piece| piece.len).sum();
        let mut row = RowBuilder::new(len, &self.options);
        let mut next = None;
        for piece in pieces {
            let document = &self.window.documents[piece.document];
            let end = piece.start + piece.len;
            row.push(document, piece.start..end);
            next = document.token(end);
        }
        row.finish(&self.options, next)
    }
}

impl Window {
    /// Determines the rows.
    fn plan(&mut self, length: u64) -> Result<()> {
        // All documents, concatenated into one sequence of tokens.
        let mut starts = Vec::with_capacity(self.documents.len());
        let mut end = 0;
        for document in &self.documents {
            starts.push(end);
            end += document.len as u64;
        }
        let ranges = starts.iter().zip(&self.documents);
        let ranges = ranges.map(|(&start, document)| Ok(start..start + document.len as u64));
        let rows = &mut self.rows;
        let planned = plan_best_fit(ranges, length, &mut |pieces| {
            rows.push(
                pieces
                    .iter()
                    .map(|piece| {
                        let document = starts.partition_point(|&start| start <= piece.start) - 1;
                        DocumentSpan {
                            document,
                            start: (piece.start - starts[document]) as usize,
                            len: piece.len_tokens as usize,
                        }
                    })
                    .collect(),
            );
            Ok(())
        });
        Ok(planned?)
    }
}

impl Node for Fit {
    fn next(&mut self) -> Result<Option<Sample>> {
        while self.next_row >= self.window.rows.len() {
            let wanted = if self.window.rows.is_empty() {
                // The rows of a state's window are passed over.
                self.next_row
            } else {
                0
            };
            if !self.read_window()? {
                self.next_row = 0;
                return match wanted {
                    0 => Ok(None),
                    _ => Err(damaged()),
                };
            }
            if wanted > self.window.rows.len() {
                return Err(damaged());
            }
            self.next_row = wanted;
        }
        self.next_row += 1;
        Ok(Some(self.row(self.next_row - 1)))
    }

    fn mark(&self, mark: &mut Numbers) {
        let is_in_window = self.next_row < self.window.rows.len();
        if is_in_window {
            mark.push(self.window.number);
            mark.push_bytes(&self.window.mark);
        } else {
            mark.push(self.upstream.number());
            let mut next = Numbers::default();
            self.upstream.mark(&mut next);
            mark.push_bytes(next.bytes());
        }
        let is_unread = self.window.rows.is_empty();
        mark.push(if is_in_window || is_unread {
            self.next_row as u64
        } else {
            0
        });
    }

    fn advance(&mut self, mark: &mut Position<'_>) -> Result<()> {
        let (number, before) = (mark.number()?, mark.bytes()?);
        let row = mark.number_to(usize::MAX as u64)? as usize;
        let is_in_window = number == self.window.number && row < self.window.rows.len();
        if !is_in_window {
            self.window = Window::default();
            self.upstream.advance(number, before)?;
        } else if row < self.next_row {
            return Err(damaged());
        }
        self.next_row = row;
        Ok(())
    }

    fn save(&self, state: &mut Numbers) {
        let is_in_window = self.next_row < self.window.rows.len();
        let oldest = if is_in_window {
            self.window.number
        } else {
            self.upstream.number()
        };
        self.upstream.save(oldest, state);
        self.mark(state);
    }

    fn load(&mut self, state: &mut Position<'_>) -> Result<()> {
        self.window = Window::default();
        self.upstream.load(state)?;
        self.advance(state)
    }

    fn set_recomputing(&mut self, is_recomputing: bool) {
        self.upstream.set_recomputing(is_recomputing);
    }
}

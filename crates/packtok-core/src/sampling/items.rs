//! Which tokens an item has, for each way of packing.
//!
//! Responsible for the number of items, their tokens, and which of these are inputs with which label; the
//! arrays of a batch are the matter of `batch`.

use std::ops::Range;

use super::blocks::BlockLayout;
use super::error::SamplingError;
use super::ids::Id;
use super::plan::Plan;
use super::stream::{Piece, Stream};
use crate::error::Result;

/// How tokens become items.
#[derive(Debug)]
pub enum Packing {
    /// Blocks of equal size, across documents.
    Fixed {
        /// Tokens of a block.
        block_size: u64,
        /// Tokens that a block shares with the next.
        overlap: u64,
        /// Whether blocks stay within files.
        by_file: bool,
    },
    /// One document an item, cut after `block_size` tokens.
    Document {
        /// The most tokens an item has.
        block_size: u64,
    },
    /// What a plan, made for the stream, puts together.
    Planned(Plan),
    /// One document an item, whole.
    Whole,
}

/// The items of a dataset.
#[derive(Debug)]
pub struct Items {
    stream: Stream,
    layout: Layout,
}

#[derive(Debug)]
enum Layout {
    /// Blocks of the whole stream.
    Blocks(BlockLayout),
    /// Blocks of each file, and the number of blocks before each file and in all.
    ByFile(Vec<BlockLayout>, Vec<u64>),
    /// Documents cut after so many tokens.
    Documents { block_size: u64 },
    /// Pieces that a plan puts together.
    Planned(Plan),
    /// Documents.
    Whole,
}

/// The ranges of tokens that an item is made of: one, or those of a plan.
enum Spans<I> {
    One(Option<Range<u64>>),
    Planned(I),
}

impl<I: Iterator<Item = Range<u64>>> Iterator for Spans<I> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        match self {
            Self::One(span) => span.take(),
            Self::Planned(spans) => spans.next(),
        }
    }
}

/// What the label of a span's last input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLabel {
    /// The token behind it.
    Next,
    /// The token behind it if that is of the same document, otherwise none.
    NextOfDocument,
    /// None.
    Missing,
}

/// One document's part in an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentPart {
    /// Ordinal of the file.
    pub file: usize,
    /// Ordinal of the document in the file.
    pub document: u64,
    /// Tokens of the item, counted from the start of the document.
    pub tokens: Range<u64>,
}

impl Items {
    /// The items of `stream` by `packing`.
    ///
    /// # Errors
    /// [`SamplingError::BlockTooSmall`], [`SamplingError::Overlap`], [`SamplingError::TooFewTokens`],
    /// [`SamplingError::PlanTokens`].
    pub fn new(stream: Stream, packing: Packing) -> Result<Self> {
        let layout = match packing {
            Packing::Whole => Layout::Whole,
            Packing::Planned(plan) => planned(&stream, plan)?,
            Packing::Document { block_size } => {
                check_block_size(block_size)?;
                Layout::Documents { block_size }
            }
            Packing::Fixed {
                block_size,
                overlap,
                by_file,
            } => fixed(&stream, block_size, overlap, by_file)?,
        };
        Ok(Self { stream, layout })
    }

    /// The stream that the items are of.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Number of items.
    pub fn len(&self) -> u64 {
        match &self.layout {
            Layout::Blocks(layout) => layout.len(),
            Layout::ByFile(_, firsts) => firsts[firsts.len() - 1],
            Layout::Planned(plan) => plan.num_blocks(),
            Layout::Documents { .. } | Layout::Whole => self.stream.num_documents(),
        }
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of inputs in a row of a batch; `None` if rows would differ.
    pub fn context_length(&self) -> Option<u64> {
        let block_size = match &self.layout {
            Layout::Blocks(layout) => layout.block_size(),
            Layout::ByFile(layouts, _) => layouts[0].block_size(),
            Layout::Documents { block_size } => *block_size,
            Layout::Planned(plan) => return Some(plan.block_len_tokens()),
            Layout::Whole => return None,
        };
        Some(block_size - 1)
    }

    /// The ordinal of `item`, which counts from the end if it is negative.
    ///
    /// # Errors
    /// [`SamplingError::NoSuchItem`].
    pub fn ordinal(&self, item: i64) -> Result<u64> {
        let items = self.len();
        let ordinal = match item {
            0.. => item as u64,
            // Wraps past the end when it counts back beyond the first, and is refused there.
            _ => items.wrapping_sub(item.unsigned_abs()),
        };
        if ordinal < items {
            Ok(ordinal)
        } else {
            Err(SamplingError::NoSuchItem { item, items }.into())
        }
    }

    /// The virtual tokens of item `i`, which must be below [`Items::len`].
    ///
    /// # Errors
    /// What opening its file may find; its offsets or the plan are damaged.
    pub fn spans(&self, i: u64) -> Result<impl Iterator<Item = Range<u64>> + '_> {
        let one = match &self.layout {
            Layout::Planned(plan) => return Ok(Spans::Planned(plan.pieces(i)?)),
            Layout::Blocks(layout) => layout.block(i),
            Layout::ByFile(layouts, firsts) => {
                let file = firsts.partition_point(|&first| first <= i) - 1;
                let origin = self.stream.files().tokens_of(file).start;
                let block = layouts[file].block(i - firsts[file]);
                origin + block.start..origin + block.end
            }
            Layout::Documents { block_size } => self.document(i, *block_size)?,
            Layout::Whole => self.stream.document(i)?,
        };
        Ok(Spans::One(Some(one)))
    }

    /// Virtual tokens of document `i`, cut after `block_size`.
    fn document(&self, i: u64, block_size: u64) -> Result<Range<u64>> {
        let document = self.stream.document(i)?;
        let cut = document.start.saturating_add(block_size);
        Ok(document.start..document.end.min(cut))
    }

    /// The tokens of item `i`, which must be below [`Items::len`], if they are one piece of one file.
    ///
    /// # Errors
    /// As [`Items::spans`] and [`super::files::Files::tokens`].
    pub fn one_piece(&self, i: u64) -> Result<Option<&[u8]>> {
        let mut spans = self.spans(i)?;
        let (Some(span), None) = (spans.next(), spans.next()) else {
            return Ok(None);
        };
        if span.is_empty() {
            return Ok(None);
        }
        let len = span.end - span.start;
        let piece = self.stream.piece(span)?;
        if piece.len() < len {
            return Ok(None);
        }
        Ok(Some(self.stream.files().tokens(piece.file, piece.tokens)?))
    }

    /// The tokens of item `i`, which must be below [`Items::len`], as another type.
    ///
    /// # Errors
    /// As [`Items::spans`]; [`SamplingError::IdTooLarge`].
    pub fn copied<T: Id + Default>(&self, i: u64) -> Result<Vec<T>> {
        let mut ids = Vec::new();
        for span in self.spans(i)? {
            let at = ids.len();
            ids.resize(at + (span.end - span.start) as usize, T::default());
            self.stream.copy(span, &mut ids[at..])?;
        }
        Ok(ids)
    }

    /// The inputs among an item's span, and what the label of the last one is.
    ///
    /// A block's last token is a label only; a document that is no longer than a row has no such token.
    pub(crate) fn inputs(&self, span: Range<u64>) -> (Range<u64>, LastLabel) {
        let block_size = match &self.layout {
            Layout::Planned(_) => return (span, LastLabel::NextOfDocument),
            Layout::Blocks(layout) => layout.block_size(),
            Layout::ByFile(layouts, _) => layouts[0].block_size(),
            Layout::Documents { block_size } => *block_size,
            Layout::Whole => return (span, LastLabel::Missing),
        };
        if span.end - span.start < block_size {
            (span, LastLabel::Missing)
        } else {
            (span.start..span.end - 1, LastLabel::Next)
        }
    }

    /// The documents that item `i`, which must be below [`Items::len`], has tokens of.
    ///
    /// # Errors
    /// As [`Items::spans`].
    pub fn locate(&self, i: u64) -> Result<Vec<DocumentPart>> {
        let mut parts = Vec::new();
        let pieces = self.spans(i)?.flat_map(|span| self.stream.pieces(span));
        for piece in pieces {
            let Piece { file, tokens } = piece?;
            let reader = self.stream.files().reader(file)?;
            for document in reader.documents_from(tokens.start)? {
                let (document, span) = document?;
                if span.start >= tokens.end {
                    break;
                }
                let (start, stop) = (span.start.max(tokens.start), span.end.min(tokens.end));
                if start < stop {
                    parts.push(DocumentPart {
                        file,
                        document,
                        tokens: start - span.start..stop - span.start,
                    });
                }
            }
        }
        Ok(parts)
    }

    /// Number of tokens that are in no item.
    ///
    /// # Errors
    /// As [`Items::spans`].
    pub fn num_dropped_tokens(&self) -> Result<u64> {
        let num_tokens = self.stream.num_tokens();
        match &self.layout {
            Layout::Blocks(layout) => Ok(num_tokens - layout.num_tokens_in_blocks()),
            Layout::ByFile(layouts, _) => {
                let served: u64 = layouts.iter().map(BlockLayout::num_tokens_in_blocks).sum();
                Ok(num_tokens - served)
            }
            Layout::Documents { block_size } => {
                let mut dropped = num_tokens;
                for i in 0..self.len() {
                    let tokens = self.document(i, *block_size)?;
                    dropped -= tokens.end - tokens.start;
                }
                Ok(dropped)
            }
            Layout::Planned(plan) => Ok(plan.num_dropped_tokens()),
            Layout::Whole => Ok(0),
        }
    }

    /// Number of inputs that are padding, in a batch of all items.
    ///
    /// # Errors
    /// As [`Items::spans`].
    pub fn num_padding_tokens(&self) -> Result<u64> {
        match &self.layout {
            Layout::Planned(plan) => Ok(plan.num_padding_tokens()),
            Layout::Documents { block_size } => {
                let mut padding = 0;
                for i in 0..self.len() {
                    let tokens = self.document(i, *block_size)?;
                    padding += (block_size - 1).saturating_sub(tokens.end - tokens.start);
                }
                Ok(padding)
            }
            Layout::Blocks(_) | Layout::ByFile(..) | Layout::Whole => Ok(0),
        }
    }

    /// Asks the system to read the pages of item `i`, which must be below [`Items::len`], without waiting.
    ///
    /// # Errors
    /// As [`Items::spans`]; the system refuses.
    pub fn prefetch(&self, i: u64) -> Result<()> {
        let pieces = self.spans(i)?.flat_map(|span| self.stream.pieces(span));
        for piece in pieces {
            let piece = piece?;
            self.stream
                .files()
                .reader(piece.file)?
                .prefetch(piece.tokens)?;
        }
        Ok(())
    }
}

/// A plan whose pieces are within the stream.
fn planned(stream: &Stream, plan: Plan) -> Result<Layout> {
    let (found, expected) = (plan.num_tokens(), stream.num_tokens());
    if found != expected {
        let path = plan.path().into();
        return Err(SamplingError::PlanTokens {
            path,
            found,
            expected,
        }
        .into());
    }
    Ok(Layout::Planned(plan))
}

fn check_block_size(block_size: u64) -> Result<()> {
    if block_size < 2 {
        return Err(SamplingError::BlockTooSmall { block_size }.into());
    }
    Ok(())
}

/// Blocks of the stream or of its files, at least one.
fn fixed(stream: &Stream, block_size: u64, overlap: u64, by_file: bool) -> Result<Layout> {
    check_block_size(block_size)?;
    let layout = |num_tokens| {
        let blocks = BlockLayout::new(num_tokens, block_size, overlap);
        blocks.ok_or(SamplingError::Overlap {
            overlap,
            block_size,
        })
    };
    let files = stream.files();
    let too_few = |tokens| SamplingError::TooFewTokens {
        path: files.path(0).into(),
        more: files.len() - 1,
        block_size,
        tokens,
    };
    if !by_file {
        let blocks = layout(stream.num_tokens())?;
        if blocks.is_empty() {
            return Err(too_few(stream.num_tokens()).into());
        }
        return Ok(Layout::Blocks(blocks));
    }
    if stream.is_selected() {
        return Err(SamplingError::ByFileOfSplit.into());
    }
    let tokens: Vec<u64> = files.entries().map(|entry| entry.tokens).collect();
    let layouts = tokens.iter().map(|&tokens| layout(tokens));
    let layouts = layouts.collect::<std::result::Result<Vec<_>, _>>()?;
    let mut firsts = vec![0];
    for layout in &layouts {
        firsts.push(firsts[firsts.len() - 1] + layout.len());
    }
    if firsts[layouts.len()] == 0 {
        return Err(too_few(tokens.into_iter().max().unwrap_or(0)).into());
    }
    Ok(Layout::ByFile(layouts, firsts))
}

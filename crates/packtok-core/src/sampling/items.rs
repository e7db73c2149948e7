//! Which tokens an item has, for each way of packing.
//!
//! Responsible for the number of items, their tokens, and which of these are inputs with which label; the
//! arrays of a batch are the matter of `batch`.

use std::ops::Range;

use super::blocks::BlockLayout;
use super::error::{Error, Result};
use super::stream::{Piece, Stream};

/// How tokens become items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Documents.
    Whole,
}

/// Tokens of a row that follow each other in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inputs {
    /// Virtual tokens that are inputs.
    pub(crate) tokens: Range<u64>,
    /// Whether the token behind them is the label of the last one.
    pub(crate) next_is_label: bool,
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
    /// [`Error::BlockTooSmall`], [`Error::Overlap`], [`Error::TooFewTokens`].
    pub fn new(stream: Stream, packing: Packing) -> Result<Self> {
        let layout = match packing {
            Packing::Whole => Layout::Whole,
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
            Layout::Whole => return None,
        };
        Some(block_size - 1)
    }

    /// The ordinal of `item`, which counts from the end if it is negative.
    ///
    /// # Errors
    /// [`Error::NoSuchItem`].
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
            Err(Error::NoSuchItem { item, items })
        }
    }

    /// Virtual tokens of item `i`, which must be below [`Items::len`].
    ///
    /// # Errors
    /// What opening its file may find; its offsets are damaged.
    pub fn tokens(&self, i: u64) -> Result<Range<u64>> {
        match &self.layout {
            Layout::Blocks(layout) => Ok(layout.block(i)),
            Layout::ByFile(layouts, firsts) => {
                let file = firsts.partition_point(|&first| first <= i) - 1;
                let origin = self.stream.files().tokens_of(file).start;
                let block = layouts[file].block(i - firsts[file]);
                Ok(origin + block.start..origin + block.end)
            }
            Layout::Documents { block_size } => {
                let document = self.stream.document(i)?;
                Ok(document.start..document.end.min(document.start.saturating_add(*block_size)))
            }
            Layout::Whole => self.stream.document(i),
        }
    }

    /// The tokens of item `i`, which must be below [`Items::len`], if they are one piece of one file.
    ///
    /// # Errors
    /// As [`Items::tokens`] and [`super::files::Files::tokens`].
    pub fn one_piece(&self, i: u64) -> Result<Option<&[u8]>> {
        let tokens = self.tokens(i)?;
        if tokens.is_empty() {
            return Ok(None);
        }
        let len = tokens.end - tokens.start;
        let piece = self.stream.piece(tokens);
        if piece.len() < len {
            return Ok(None);
        }
        Ok(Some(self.stream.files().tokens(piece.file, piece.tokens)?))
    }

    /// The inputs of item `i`, which must be below [`Items::len`].
    pub(crate) fn inputs(&self, i: u64) -> Result<Inputs> {
        let tokens = self.tokens(i)?;
        let len = tokens.end - tokens.start;
        let context_length = self.context_length().ok_or(Error::NoRows)?;
        // A block's last token is a label only; a document that is no longer than a row has no such token.
        let next_is_label = len > context_length;
        Ok(Inputs {
            tokens: tokens.start..tokens.end - u64::from(next_is_label),
            next_is_label,
        })
    }

    /// The documents that item `i`, which must be below [`Items::len`], has tokens of.
    ///
    /// # Errors
    /// As [`Items::tokens`].
    pub fn locate(&self, i: u64) -> Result<Vec<DocumentPart>> {
        let mut parts = Vec::new();
        for Piece { file, tokens } in self.stream.pieces(self.tokens(i)?) {
            let reader = self.stream.files().reader(file)?;
            let mut start = tokens.start;
            let mut document = reader.document_at(start)?;
            while start < tokens.end {
                let span = reader.document_tokens(document)?;
                let stop = span.end.min(tokens.end);
                if start < stop {
                    parts.push(DocumentPart {
                        file,
                        document,
                        tokens: start - span.start..stop - span.start,
                    });
                }
                start = stop;
                document += 1;
            }
        }
        Ok(parts)
    }

    /// Number of tokens that are in no item.
    ///
    /// # Errors
    /// As [`Items::tokens`].
    pub fn num_dropped_tokens(&self) -> Result<u64> {
        let num_tokens = self.stream.num_tokens();
        match &self.layout {
            Layout::Blocks(layout) => Ok(num_tokens - layout.num_tokens_in_blocks()),
            Layout::ByFile(layouts, _) => {
                let served: u64 = layouts.iter().map(BlockLayout::num_tokens_in_blocks).sum();
                Ok(num_tokens - served)
            }
            Layout::Documents { .. } => {
                let mut dropped = num_tokens;
                for i in 0..self.len() {
                    let tokens = self.tokens(i)?;
                    dropped -= tokens.end - tokens.start;
                }
                Ok(dropped)
            }
            Layout::Whole => Ok(0),
        }
    }

    /// Number of inputs that are padding, in a batch of all items.
    ///
    /// # Errors
    /// As [`Items::tokens`].
    pub fn num_padding_tokens(&self) -> Result<u64> {
        let Layout::Documents { block_size } = self.layout else {
            return Ok(0);
        };
        let mut padding = 0;
        for i in 0..self.len() {
            let tokens = self.tokens(i)?;
            padding += (block_size - 1).saturating_sub(tokens.end - tokens.start);
        }
        Ok(padding)
    }

    /// Asks the system to read the pages of item `i`, which must be below [`Items::len`], without waiting.
    ///
    /// # Errors
    /// As [`Items::tokens`]; the system refuses.
    pub fn prefetch(&self, i: u64) -> Result<()> {
        for piece in self.stream.pieces(self.tokens(i)?) {
            self.stream
                .files()
                .reader(piece.file)?
                .prefetch(piece.tokens)?;
        }
        Ok(())
    }
}

fn check_block_size(block_size: u64) -> Result<()> {
    if block_size < 2 {
        return Err(Error::BlockTooSmall { block_size });
    }
    Ok(())
}

/// Blocks of the stream or of its files, at least one.
fn fixed(stream: &Stream, block_size: u64, overlap: u64, by_file: bool) -> Result<Layout> {
    check_block_size(block_size)?;
    let layout = |num_tokens| {
        BlockLayout::new(num_tokens, block_size, overlap).ok_or(Error::Overlap {
            overlap,
            block_size,
        })
    };
    let files = stream.files();
    let too_few = |tokens| Error::TooFewTokens {
        path: files.path(0).into(),
        more: files.len() - 1,
        block_size,
        tokens,
    };
    if !by_file {
        let blocks = layout(stream.num_tokens())?;
        if blocks.is_empty() {
            return Err(too_few(stream.num_tokens()));
        }
        return Ok(Layout::Blocks(blocks));
    }
    let tokens: Vec<u64> = files.entries().map(|entry| entry.tokens).collect();
    let layouts = tokens.iter().map(|&tokens| layout(tokens));
    let layouts = layouts.collect::<Result<Vec<_>>>()?;
    let mut firsts = vec![0];
    for layout in &layouts {
        firsts.push(firsts[firsts.len() - 1] + layout.len());
    }
    if firsts[layouts.len()] == 0 {
        return Err(too_few(tokens.into_iter().max().unwrap_or(0)));
    }
    Ok(Layout::ByFile(layouts, firsts))
}

//! The tokens of an item, for each packing.
//!
//! Responsible for the number of items, their tokens, and the division of these tokens into inputs
//! and labels. `batch` writes the arrays of a batch.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::files::ranges::Ranges;
use crate::items::blocks::BlockLayout;
use crate::items::chunks::ChunkLayout;
use crate::items::ids::Id;
use crate::items::token_stream::{FileSpan, Span, TokenStream};
use crate::plans::plan::BlockPlan;

/// The rule that divides a stream into items.
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
    /// Rows of inputs with one label each, across documents: blocks with one extra token, which is
    /// also the first token of the next block.
    Rows {
        /// Inputs of a row.
        context_length: u64,
        /// Whether rows stay within files.
        by_file: bool,
        /// As for [`Packing::Chunks`].
        separator: Option<u32>,
    },
    /// Chunks that cover all tokens, across documents. The last chunks are padded.
    Chunks {
        /// Number of tokens in a chunk, all of which are inputs.
        chunk_size: u64,
        /// Tokens that a chunk shares with the next.
        overlap: u64,
        /// Whether chunks stay within files.
        by_file: bool,
        /// The id that ends every document, if the files do not record where documents start.
        separator: Option<u32>,
    },
    /// One document per item, truncated to `block_size` tokens.
    Document {
        /// Maximum number of tokens of an item.
        block_size: u64,
    },
    /// Pieces combined by a plan for the stream.
    Planned(BlockPlan),
    /// One complete document per item.
    Whole,
}

/// The items of a dataset.
#[derive(Debug)]
pub struct Items {
    stream: TokenStream,
    layout: Layout,
    /// The id that ends every document, if documents are found by this id instead of the files'
    /// indexes.
    separator: Option<u32>,
}

#[derive(Debug)]
enum Layout {
    /// Blocks of the whole stream.
    Blocks(BlockLayout),
    /// Blocks of each file.
    ByFile {
        /// The blocks of the first file. The layouts of other files differ only in the number of
        /// blocks.
        layout: BlockLayout,
        /// Block ranges of the files in the overall sequence.
        blocks: Ranges,
        num_tokens_in_blocks: u64,
    },
    /// Chunks of the stream or of each file.
    Chunks {
        layout: ChunkLayout,
        /// Ranges of chunk numbers of the files; `None` if chunks divide the whole stream.
        by_file: Option<Ranges>,
    },
    /// Documents truncated to this number of tokens.
    Documents { block_size: u64 },
    /// Pieces combined by a plan.
    Planned(BlockPlan),
    /// Complete documents.
    Whole,
}

/// The token ranges of an item: a single range, or the ranges of a plan.
enum Spans<I> {
    One(Option<Span>),
    Planned(I),
}

impl<I: Iterator<Item = Range<u64>>> Iterator for Spans<I> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        match self {
            Self::One(span) => span.take(),
            Self::Planned(spans) => spans.next().map(Span::Virtual),
        }
    }
}

/// The label of the last input of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLabel {
    /// The token after the input.
    Next,
    /// The token after the input if both belong to the same document, otherwise no label.
    NextOfDocument,
    /// No label.
    Missing,
}

/// The part of an item that belongs to one document.
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
    /// Divides `stream` into items according to `packing`.
    ///
    /// # Errors
    /// [`Error::BlockTooSmall`], [`Error::Overlap`], [`Error::TooFewTokens`],
    /// [`Error::TooFewTokensForRow`], [`Error::PlanTokens`].
    pub fn new(stream: TokenStream, packing: Packing) -> Result<Self> {
        let separator = match packing {
            Packing::Rows { separator, .. } | Packing::Chunks { separator, .. } => separator,
            Packing::Fixed { .. }
            | Packing::Document { .. }
            | Packing::Planned(_)
            | Packing::Whole => None,
        };
        let layout = match packing {
            Packing::Whole => Layout::Whole,
            Packing::Planned(plan) => planned(&stream, plan)?,
            Packing::Document { block_size } => {
                check_block_size(block_size)?;
                Layout::Documents { block_size }
            }
            Packing::Chunks {
                chunk_size,
                overlap,
                by_file,
                ..
            } => chunks(&stream, chunk_size, overlap, by_file)?,
            Packing::Fixed {
                block_size,
                overlap,
                by_file,
            } => fixed(&stream, block_size, overlap, by_file)?,
            Packing::Rows {
                context_length,
                by_file,
                ..
            } => fixed(&stream, context_length.saturating_add(1), 1, by_file)
                .map_err(|error| in_rows(error, context_length))?,
        };
        Ok(Self {
            stream,
            layout,
            separator,
        })
    }

    /// The stream that the items divide.
    pub fn stream(&self) -> &TokenStream {
        &self.stream
    }

    /// Number of items.
    pub fn len(&self) -> u64 {
        match &self.layout {
            Layout::Blocks(layout) => layout.len(),
            Layout::ByFile { blocks, .. } => blocks.total(),
            Layout::Chunks {
                by_file: Some(chunks),
                ..
            } => chunks.total(),
            Layout::Chunks { layout, .. } => layout.len(self.stream.num_tokens()),
            Layout::Planned(plan) => plan.num_blocks(),
            Layout::Documents { .. } | Layout::Whole => self.stream.num_documents(),
        }
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of inputs in a row of a batch; `None` if rows would have different lengths.
    pub fn context_length(&self) -> Option<u64> {
        let block_size = match &self.layout {
            Layout::Blocks(layout) | Layout::ByFile { layout, .. } => layout.block_size(),
            Layout::Documents { block_size } => *block_size,
            Layout::Planned(plan) => return Some(plan.block_len_tokens()),
            Layout::Chunks { layout, .. } => return Some(layout.chunk_size()),
            Layout::Whole => return None,
        };
        Some(block_size - 1)
    }

    /// The ordinal of `item`. A negative `item` counts from the end.
    ///
    /// # Errors
    /// [`Error::NoSuchItem`].
    #[inline]
    pub fn ordinal(&self, item: i64) -> Result<u64> {
        let items = self.len();
        let ordinal = match item {
            0.. => item as u64,
            // If `item` counts back past the first item, this wraps to a number past the end,
            // which the check below rejects.
            _ => items.wrapping_sub(item.unsigned_abs()),
        };
        if ordinal < items {
            Ok(ordinal)
        } else {
            Err(Error::NoSuchItem { item, items })
        }
    }

    /// The tokens of item `i`, which must be below [`Items::len`].
    ///
    /// # Errors
    /// The errors of opening its file; damaged offsets or a damaged plan.
    pub(crate) fn spans(&self, i: u64) -> Result<impl Iterator<Item = Span> + '_> {
        let span = match &self.layout {
            Layout::Planned(plan) => return Ok(Spans::Planned(plan.pieces(i)?)),
            Layout::Blocks(layout) => Span::Virtual(layout.block(i)),
            Layout::ByFile { layout, blocks, .. } => {
                let file = blocks.find(i);
                let tokens = layout.block(i - blocks.start(file));
                Span::FileSpan(FileSpan { file, tokens })
            }
            Layout::Chunks {
                layout,
                by_file: Some(chunks),
                ..
            } => {
                let file = chunks.find(i);
                let of_file = self.stream.files().tokens_of(file);
                let tokens = layout.chunk(i - chunks.start(file), of_file.end - of_file.start);
                Span::FileSpan(FileSpan { file, tokens })
            }
            Layout::Chunks { layout, .. } => {
                Span::Virtual(layout.chunk(i, self.stream.num_tokens()))
            }
            Layout::Documents { block_size } => Span::Virtual(self.document(i, *block_size)?),
            Layout::Whole => Span::Virtual(self.stream.document(i)?),
        };
        Ok(Spans::One(Some(span)))
    }

    /// Virtual tokens of document `i`, truncated to `block_size`.
    fn document(&self, i: u64, block_size: u64) -> Result<Range<u64>> {
        let document = self.stream.document(i)?;
        let cut = document.start.saturating_add(block_size);
        Ok(document.start..document.end.min(cut))
    }

    /// The tokens of item `i`, which must be below [`Items::len`], if they are contiguous in one
    /// file.
    ///
    /// # Errors
    /// The errors of opening its file; damaged offsets or a damaged plan; a checksum that does not match.
    #[inline]
    pub fn one_piece(&self, i: u64) -> Result<Option<&[u8]>> {
        // The fast path returns an `Option`: a `Result` with this error type is returned through
        // memory, which stalls the processor.
        match self.ready_piece(i) {
            Some(bytes) => Ok(Some(bytes)),
            None => self.any_one_piece(i),
        }
    }

    /// Fast path of [`Items::one_piece`] for blocks and documents of open files; `None` if it does
    /// not apply.
    fn ready_piece(&self, i: u64) -> Option<&[u8]> {
        let files = self.stream.files();
        match &self.layout {
            Layout::ByFile { layout, blocks, .. } => {
                let file = blocks.find(i);
                files.ready_tokens(file, layout.block(i - blocks.start(file)))
            }
            Layout::Blocks(layout) if !self.stream.is_selected() => {
                let tokens = layout.block(i);
                let file = files.file_of_token(tokens.start);
                let start = files.tokens_of(file).start;
                files.ready_tokens(file, tokens.start - start..tokens.end - start)
            }
            Layout::Whole if !self.stream.is_selected() => files.ready_document(i),
            _ => None,
        }
    }

    fn any_one_piece(&self, i: u64) -> Result<Option<&[u8]>> {
        let mut spans = self.spans(i)?;
        let (Some(span), None) = (spans.next(), spans.next()) else {
            return Ok(None);
        };
        let len = span.len();
        match self.stream.pieces(span).next().transpose()? {
            Some(FileSpan { file, tokens }) if tokens.end - tokens.start == len => {
                self.stream.files().tokens(file, tokens).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The pieces of item `i`, which must be below [`Items::len`].
    pub(crate) fn pieces(&self, i: u64) -> Result<impl Iterator<Item = Result<FileSpan>> + '_> {
        let spans = self.spans(i)?;
        Ok(spans.flat_map(|span| self.stream.pieces(span)))
    }

    /// The tokens of item `i`, which must be below [`Items::len`], converted to another type.
    ///
    /// # Errors
    /// The errors of opening its files; damaged offsets or a damaged plan; [`Error::IdTooLarge`].
    pub fn copied<T: Id + Default>(&self, i: u64) -> Result<Vec<T>> {
        let mut ids = Vec::new();
        for piece in self.pieces(i)? {
            let piece = piece?;
            let at = ids.len();
            ids.resize(at + piece.len() as usize, T::default());
            self.stream.copy_piece(&piece, &mut ids[at..])?;
        }
        Ok(ids)
    }

    /// The number of inputs at the start of a span, and the label of the last input.
    ///
    /// The last token of a block is only a label. A document that is not longer than a row has no
    /// such token.
    pub(crate) fn inputs(&self, span: &Span) -> (u64, LastLabel) {
        let len = span.len();
        let block_size = match &self.layout {
            Layout::Planned(_) => return (len, LastLabel::NextOfDocument),
            Layout::Blocks(layout) | Layout::ByFile { layout, .. } => layout.block_size(),
            Layout::Documents { block_size } => *block_size,
            Layout::Chunks { .. } | Layout::Whole => return (len, LastLabel::Missing),
        };
        if len < block_size {
            (len, LastLabel::Missing)
        } else {
            (len - 1, LastLabel::Next)
        }
    }

    /// The documents that item `i`, which must be below [`Items::len`], contains tokens of.
    ///
    /// # Errors
    /// The errors of opening files; damaged offsets or a damaged plan.
    pub fn locate(&self, i: u64) -> Result<Vec<DocumentPart>> {
        let mut parts = Vec::new();
        for piece in self.pieces(i)? {
            let FileSpan { file, tokens } = piece?;
            let token_file = self.stream.files().token_file(file)?;
            for document in token_file.documents_from(tokens.start)? {
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

    /// Number of tokens that belong to no item.
    ///
    /// # Errors
    /// The errors of opening files; damaged offsets or a damaged plan.
    pub fn num_dropped_tokens(&self) -> Result<u64> {
        let num_tokens = self.stream.num_tokens();
        match &self.layout {
            Layout::Blocks(layout) => Ok(num_tokens - layout.num_tokens_in_blocks()),
            Layout::ByFile {
                num_tokens_in_blocks,
                ..
            } => Ok(num_tokens - num_tokens_in_blocks),
            Layout::Documents { block_size } => {
                let mut dropped = num_tokens;
                for i in 0..self.len() {
                    let tokens = self.document(i, *block_size)?;
                    dropped -= tokens.end - tokens.start;
                }
                Ok(dropped)
            }
            Layout::Planned(plan) => Ok(plan.num_dropped_tokens()),
            Layout::Chunks { .. } | Layout::Whole => Ok(0),
        }
    }

    /// The id that ends every document, if documents are found by this id instead of the files'
    /// indexes.
    pub(crate) fn separator(&self) -> Option<u32> {
        self.separator
    }

    /// Number of padding inputs in a batch of all items.
    ///
    /// # Errors
    /// The errors of opening files; damaged offsets or a damaged plan.
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
            Layout::Chunks {
                layout, by_file, ..
            } => Ok(match by_file {
                None => layout.num_padding_tokens(self.stream.num_tokens()),
                Some(_) => {
                    let entries = self.stream.files().entries();
                    entries
                        .map(|entry| layout.num_padding_tokens(entry.tokens))
                        .sum()
                }
            }),
            Layout::Blocks(_) | Layout::ByFile { .. } | Layout::Whole => Ok(0),
        }
    }

    /// Asks the system to read the pages of item `i`, which must be below [`Items::len`],
    /// asynchronously.
    ///
    /// # Errors
    /// The errors of opening its files; damaged offsets or a damaged plan; the system call fails.
    pub fn prefetch(&self, i: u64) -> Result<()> {
        for piece in self.pieces(i)? {
            let FileSpan { file, tokens } = piece?;
            self.stream.files().token_file(file)?.prefetch(tokens)?;
        }
        Ok(())
    }
}

/// A layout by a plan, after checking that its pieces are within the stream.
fn planned(stream: &TokenStream, plan: BlockPlan) -> Result<Layout> {
    let (found, expected) = (plan.num_tokens(), stream.num_tokens());
    if found != expected {
        let path = plan.path().into();
        return Err(Error::PlanTokens {
            path,
            found,
            expected,
        });
    }
    Ok(Layout::Planned(plan))
}

fn check_block_size(block_size: u64) -> Result<()> {
    if block_size < 2 {
        return Err(Error::BlockTooSmall { block_size });
    }
    Ok(())
}

/// Rewrites `error` in terms of rows, because the caller's options do not mention blocks.
fn in_rows(error: Error, context_length: u64) -> Error {
    match error {
        Error::TooFewTokens {
            path, more, tokens, ..
        } => Error::TooFewTokensForRow {
            path,
            more,
            context_length,
            tokens,
        },
        error => error,
    }
}

/// A layout in chunks of the stream or of its files.
fn chunks(stream: &TokenStream, chunk_size: u64, overlap: u64, by_file: bool) -> Result<Layout> {
    let layout = ChunkLayout::new(chunk_size, overlap).ok_or(Error::Overlap {
        overlap,
        block_size: chunk_size,
    })?;
    if by_file && stream.is_selected() {
        return Err(Error::ByFileOfSplit);
    }
    let by_file = by_file.then(|| {
        let entries = stream.files().entries();
        let chunks = Ranges::new(entries.map(|entry| layout.len(entry.tokens)));
        chunks.expect("a chunk has tokens, and the tokens of the files could be counted")
    });
    Ok(Layout::Chunks { layout, by_file })
}

/// A layout in blocks of the stream or of its files; at least one block is required.
fn fixed(stream: &TokenStream, block_size: u64, overlap: u64, by_file: bool) -> Result<Layout> {
    check_block_size(block_size)?;
    let layout = |num_tokens| {
        let blocks = BlockLayout::new(num_tokens, block_size, overlap);
        blocks.ok_or(Error::Overlap {
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
    if stream.is_selected() {
        return Err(Error::ByFileOfSplit);
    }
    let tokens: Vec<u64> = files.entries().map(|entry| entry.tokens).collect();
    let layouts = tokens.iter().map(|&tokens| layout(tokens));
    let layouts = layouts.collect::<std::result::Result<Vec<_>, _>>()?;
    let num_tokens_in_blocks = layouts.iter().map(BlockLayout::num_tokens_in_blocks).sum();
    if num_tokens_in_blocks == 0 {
        return Err(too_few(tokens.into_iter().max().unwrap_or(0)));
    }
    let blocks = Ranges::new(layouts.iter().map(BlockLayout::len));
    Ok(Layout::ByFile {
        layout: layouts[0],
        blocks: blocks.expect("a block has tokens, and the tokens of the files could be counted"),
        num_tokens_in_blocks,
    })
}

//! Plain reference implementations of the planners.

use std::ops::Range;

use packtok_dataset::Result;
use packtok_dataset::plans::plan::TokenSpan;

/// Contiguous documents of these lengths.
pub(crate) fn documents(lens: &[u64]) -> Vec<Range<u64>> {
    let mut stop = 0;
    let spans = lens.iter().map(|len| {
        let start = stop;
        stop += len;
        start..stop
    });
    spans.collect()
}

/// The same as an iterator of results, as planners take them.
pub(crate) fn results(lens: &[u64]) -> impl Iterator<Item = Result<Range<u64>>> {
    documents(lens).into_iter().map(Ok)
}

/// What a planner emits, as ranges of tokens.
pub(crate) fn collect<T>(
    plan: impl FnOnce(&mut dyn FnMut(&[TokenSpan]) -> Result<()>) -> Result<T>,
) -> (Vec<Vec<Range<u64>>>, T) {
    let mut blocks = Vec::new();
    let outcome = plan(&mut |pieces| {
        let range = |piece: &TokenSpan| piece.start..piece.start + u64::from(piece.len_tokens);
        blocks.push(pieces.iter().map(range).collect());
        Ok(())
    });
    (blocks, outcome.expect("this cannot fail"))
}

/// Best-fit decreasing with a linear search over all bins.
pub(crate) fn best_fit(lens: &[u64], context_length: u64) -> Vec<Vec<Range<u64>>> {
    let mut pieces: Vec<Range<u64>> = documents(lens)
        .into_iter()
        .flat_map(|document| cut(document, context_length))
        .collect();
    pieces.sort_by_key(|piece| (u64::MAX - (piece.end - piece.start), piece.start));
    // Room, time of the last piece, and the pieces.
    let mut bins: Vec<(u64, usize, Vec<Range<u64>>)> = Vec::new();
    for (time, piece) in pieces.into_iter().enumerate() {
        let len = piece.end - piece.start;
        let fitting = bins.iter_mut().filter(|bin| bin.0 >= len);
        match fitting.min_by_key(|bin| (bin.0, usize::MAX - bin.1)) {
            Some(bin) => {
                bin.0 -= len;
                bin.1 = time;
                bin.2.push(piece);
            }
            None => bins.push((context_length - len, time, vec![piece])),
        }
    }
    let mut blocks: Vec<Vec<Range<u64>>> = bins.into_iter().map(|bin| bin.2).collect();
    for block in &mut blocks {
        block.sort_by_key(|piece| piece.start);
    }
    blocks.sort_by_key(|block| block[0].start);
    blocks
}

/// Full blocks and a remainder.
fn cut(document: Range<u64>, context_length: u64) -> Vec<Range<u64>> {
    let starts = document.clone().step_by(context_length as usize);
    starts
        .map(|start| start..document.end.min(start + context_length))
        .collect()
}

/// Blocks of whole documents and the number of tokens in none, by marking every token.
pub(crate) fn megatron(lens: &[u64], block_size: u64) -> (Vec<Range<u64>>, u64) {
    let documents: Vec<Range<u64>> = documents(lens)
        .into_iter()
        .filter(|document| !document.is_empty())
        .collect();
    let num_tokens = lens.iter().sum::<u64>();
    let mut is_served = vec![false; num_tokens as usize];
    let (mut blocks, mut first) = (Vec::new(), 0);
    while let Some(document) = documents.get(first) {
        let block = document.start..document.start + block_size;
        if block.end > num_tokens {
            break;
        }
        is_served[block.start as usize..block.end as usize].fill(true);
        let is_cut = |&i: &usize| documents[i].end > block.end;
        let next = (first..documents.len()).find(is_cut);
        blocks.push(block);
        match next {
            Some(next) => first = next.max(first + 1),
            None => break,
        }
    }
    let num_dropped = is_served.iter().filter(|served| !**served).count();
    (blocks, num_dropped as u64)
}

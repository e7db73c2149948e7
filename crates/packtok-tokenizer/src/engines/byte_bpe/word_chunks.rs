//! Divides the words of a text into chunks, with long words in pieces.

use super::piece_bounds::PieceBounds;
use crate::engines::simd::{KEY_BATCH, LEN_BATCH, SIMD_BLOCK_BYTES, Simd};
use crate::engines::word_cache::GROUP;
use crate::engines::word_key::{LONG, SHORT};

/// Words in a chunk. The misses of a chunk are resolved together.
pub(super) const WORDS_PER_CHUNK: usize = 2 * GROUP;

/// The start of the first word of a chunk and the end of each word, with room for undefined values
/// after them.
pub(super) type Bounds = [u32; WORDS_PER_CHUNK + 1 + SIMD_BLOCK_BYTES];

/// The words of a text that have not been looked up yet.
pub(super) struct WordChunks<'a> {
    pub(super) text: &'a [u8],
    /// The starts of the words, and the end of the last word.
    pub(super) bounds: &'a [u32],
    /// Start of the rest of the first word.
    pub(super) at: u32,
    /// The bounds at which long words are split; `None` if long words must not be split.
    pub(super) piece_bounds: Option<&'a PieceBounds>,
}

impl WordChunks<'_> {
    /// Writes the bounds of the next words to `bounds` and returns the number of words; 0 at the
    /// end of the text.
    #[inline(always)]
    pub(super) fn next_chunk(&mut self, simd: impl Simd, bounds: &mut Bounds) -> usize {
        let mut num_words = 0;
        bounds[0] = self.at;
        while num_words < WORDS_PER_CHUNK && self.bounds.len() > 1 {
            let some = &mut bounds[num_words..];
            let num_some = (self.bounds.len() - 1)
                .min(WORDS_PER_CHUNK - num_words)
                .min(LEN_BATCH);
            let num_short = match self.bounds.first_chunk() {
                Some(bounds) if num_some == LEN_BATCH && bounds[0] == some[0] => {
                    copy_short(simd, bounds, some)
                }
                _ => copy_few_short(&self.bounds[1..=num_some], some),
            };
            num_words += num_short;
            self.bounds = &self.bounds[num_short..];
            if num_short < num_some {
                num_words +=
                    self.split_long(simd, &mut bounds[num_words..], WORDS_PER_CHUNK - num_words);
            }
        }
        self.at = bounds[num_words];
        // Empty words, because keys are computed in batches.
        bounds[num_words + 1..][..KEY_BATCH].fill(self.at);
        num_words
    }

    /// Splits the first word, which is long and starts at the first bound. Writes the ends of its
    /// pieces and returns their number.
    #[inline(always)]
    fn split_long(&mut self, simd: impl Simd, bounds: &mut [u32], most: usize) -> usize {
        let (start, end) = (bounds[0], self.bounds[1]);
        let word = &self.text[start as usize..end as usize];
        let places = bounds[1..].first_chunk_mut().expect("there is room");
        let (mut num_pieces, mut is_done) = (1, true);
        match self.piece_bounds {
            None => places[0] = end,
            Some(piece_bounds) => {
                let mut begins = piece_bounds.piece_starts(simd, word);
                is_done = word.len() <= SIMD_BLOCK_BYTES;
                if is_done {
                    // A short rest at the end of the word stays one piece.
                    let of_short = begins & u64::MAX << (word.len() - LONG);
                    begins ^= of_short & of_short.wrapping_sub(1);
                }
                num_pieces = begins.count_ones() as usize;
                simd.positions(begins, start + 1, places);
                if is_done {
                    places[num_pieces] = end;
                    num_pieces += 1;
                } else if num_pieces == 0 {
                    places[0] = start + piece_bounds.end_of_piece(word, 0) as u32;
                    num_pieces = 1;
                    is_done = places[0] == end;
                }
            }
        }
        if is_done && num_pieces <= most {
            self.bounds = &self.bounds[1..];
        }
        num_pieces.min(most)
    }
}

/// Copies the ends of words and returns the number of words before the first long word.
#[inline(always)]
fn copy_short(simd: impl Simd, words: &[u32; LEN_BATCH + 1], bounds: &mut [u32]) -> usize {
    bounds[1..=LEN_BATCH].copy_from_slice(&words[1..]);
    (simd.long_words(words) | 1 << LEN_BATCH).trailing_zeros() as usize
}

/// As [`copy_short`], for fewer than [`LEN_BATCH`] words.
#[inline(always)]
fn copy_few_short(ends: &[u32], bounds: &mut [u32]) -> usize {
    let mut num_short = 0;
    for &end in ends {
        if (end - bounds[num_short]) as usize > SHORT {
            break;
        }
        num_short += 1;
        bounds[num_short] = end;
    }
    num_short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engines::simd::{AnySimd, Job};

    struct AllBounds<'a>(WordChunks<'a>);

    impl Job for AllBounds<'_> {
        type Output = Vec<u32>;

        #[inline(always)]
        fn run(mut self, simd: impl Simd) -> Vec<u32> {
            let mut all = vec![self.0.at];
            let mut bounds = [0; WORDS_PER_CHUNK + 1 + SIMD_BLOCK_BYTES];
            loop {
                let num_words = self.0.next_chunk(simd, &mut bounds);
                if num_words == 0 {
                    return all;
                }
                assert_eq!(Some(&bounds[0]), all.last());
                assert_eq!(
                    bounds[num_words..][..=KEY_BATCH],
                    [bounds[num_words]; KEY_BATCH + 1]
                );
                all.extend_from_slice(&bounds[1..=num_words]);
            }
        }
    }

    /// The ends of the pieces of a word, computed one by one.
    fn ends_one_by_one(piece_bounds: &PieceBounds, word: &[u8]) -> Vec<usize> {
        let mut ends = vec![0];
        while ends[ends.len() - 1] < word.len() {
            ends.push(piece_bounds.end_of_piece(word, ends[ends.len() - 1]));
        }
        ends
    }

    fn check(text: &[u8], bounds: &[u32], piece_bounds: &PieceBounds) {
        let whole = AllBounds(WordChunks {
            text,
            bounds,
            at: bounds[0],
            piece_bounds: None,
        });
        assert_eq!(AnySimd::detect().run(whole), bounds);
        for simd in AnySimd::all() {
            let all = simd.run(AllBounds(WordChunks {
                text,
                bounds,
                at: bounds[0],
                piece_bounds: Some(piece_bounds),
            }));
            let mut pieces = &all[..];
            for word in bounds.windows(2) {
                let (start, end) = (word[0], word[1]);
                let num_pieces = pieces.iter().position(|&bound| bound == end);
                let num_pieces = num_pieces.expect("words are not put together");
                let word = &text[start as usize..end as usize];
                let ends = ends_one_by_one(piece_bounds, word);
                for piece in pieces[..=num_pieces].windows(2) {
                    let piece = (piece[0] - start) as usize..(piece[1] - start) as usize;
                    assert!(ends.contains(&piece.start) && ends.contains(&piece.end));
                    let is_short = piece.len() <= SHORT;
                    assert!(
                        is_short
                            || !ends
                                .iter()
                                .any(|end| (piece.start + 1..piece.end).contains(end))
                    );
                }
                assert!(word.len() > SHORT || num_pieces == 1, "a short word is one");
                pieces = &pieces[num_pieces..];
            }
            assert_eq!(pieces.len(), 1);
        }
    }

    proptest! {
        #[test]
        fn long_words_are_split_where_allowed_and_nothing_else_is(
            tokens in prop::collection::vec("[ab]{1,6}", 0..20),
            letters in "[abc]{400}",
            lens in prop::collection::vec(prop_oneof![8 => 1..16usize, 2 => 16..70usize, 1 => 70..400usize], 1..400),
        ) {
            let piece_bounds = PieceBounds::of_tokens(tokens.iter().map(String::as_bytes), false);
            let (mut text, mut bounds) = (b"  ".to_vec(), vec![2]);
            for (number, len) in lens.into_iter().enumerate() {
                let word = letters.as_bytes().iter().cycle().skip(number).take(len);
                text.extend(word);
                bounds.push(text.len() as u32);
            }
            check(&text, &bounds, &piece_bounds);
        }
    }
}

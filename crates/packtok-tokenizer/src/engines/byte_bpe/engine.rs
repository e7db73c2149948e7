//! The engine of packtok's own, for byte-level BPE by the split patterns of today's tokenizers, and for BPE on
//! characters as SentencePiece makes it.
//!
//! ```text
//! text -> ends of words (split) -> long words in pieces (cutting, cuts) -> numbers that words are looked up by (words)
//!      -> ids of words met before (cache), or merged (missing: merging, heap) -> ids
//! ```
//!
//! Added tokens are found first (`added`), and what is between them is encoded apart. A text that has tokens which
//! are found in other ways than by their text is left to the engine that knows all of the file. `docs/engine.md`
//! tells the whole of it.
//!
//! `wordwise` is another engine, for files of any model whose words white space parts; it has the same cache.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

use super::added_tokens::{Added, Part, Place};
use super::merge::{Heap, Merges};
use super::misses::{Missing, Resolve};
use super::model::{Model, Tokens};
use super::piece_bounds::Cuts;
use super::preprocessing::{Form, Prefix};
use super::split::{Cut, ROOM, Splitter};
use super::word_chunks::{Bounds, Cutting};
use crate::engines::lane::{AnyLane, BLOCK, EIGHT, Job, Lane};
use crate::engines::word_cache as cache;
use crate::engines::word_cache::Cache;
use crate::engines::word_key::{SHORT, Word};
use crate::load::AddedToken;
use crate::load::model_type;

/// Bytes that the words one thread has met take at most, unless something else is asked for.
pub(in crate::engines) const CACHE_BYTES: usize = 48 << 20;

/// Bytes for the first word of a text that are kept allocated.
const KEPT_BYTES: usize = 1 << 16;

/// Words whose places in the cache are fetched together, which must all have room in the nearest cache; and words
/// after which those that are not there are merged.
pub(in crate::engines) const GROUP: usize = 128;
pub(super) const CHUNK: usize = 2 * GROUP;

/// What the vector instructions are called that engines use on this machine.
pub(crate) fn lane_name() -> &'static str {
    AnyLane::detect().name()
}

/// The loaded engine, shared by all threads.
pub(crate) struct Fast {
    lane: AnyLane,
    splitter: Splitter,
    pub(super) merges: Merges,
    pub(super) cuts: Cuts,
    /// Words that are tokens as they are although their merges give other ids; only with `ignore_merges`.
    whole: HashMap<Box<[u8]>, u32>,
    prefix: Prefix,
    added: Added,
    tokens: Tokens,
}

/// What one thread needs, and the words that it has met.
pub(crate) struct Scratch {
    /// Where some words begin, and where the last of them ends.
    found: Vec<u32>,
    /// Where the words of a chunk are.
    pub(super) bounds: Bounds,
    /// The words of a group, and the numbers of their buckets in the cache.
    words: Lines<[Word; GROUP]>,
    buckets: Lines<[u32; GROUP]>,
    /// Ids of the words of a chunk that the cache has, before they go to the caller's buffer.
    pub(super) staged: Box<[u32; CHUNK * SHORT + cache::ROOM]>,
    pub(super) missing: Missing,
    pub(super) cache: Cache,
    pub(super) heap: Heap,
    /// The first word of a text with the blank before it.
    first: Vec<u8>,
}

/// Begins with a line of the processor's cache, so that no vector that is stored is in two.
#[repr(align(64))]
struct Lines<T>(T);

impl Scratch {
    /// With a cache of at most so many bytes.
    pub(crate) fn new(cache_bytes: Option<usize>) -> Box<Self> {
        Box::new(Self {
            found: vec![0; ROOM + 1],
            bounds: [0; CHUNK + 1 + BLOCK],
            words: Lines([Word::default(); GROUP]),
            buckets: Lines([0; GROUP]),
            staged: Box::new([0; CHUNK * SHORT + cache::ROOM]),
            missing: Missing::default(),
            cache: Cache::new(cache_bytes.unwrap_or(CACHE_BYTES)),
            heap: Heap::default(),
            first: Vec::new(),
        })
    }
}

impl Fast {
    /// The engine for a tokenizer.json.
    ///
    /// # Errors
    /// Why it does not cover the file.
    pub(crate) fn load(json: &Value, added_tokens: &[AddedToken]) -> Result<Self, String> {
        match model_type(&json["model"]) {
            "BPE" => {}
            other => return Err(format!("its model is {other}")),
        }
        let form = Form::read(json)?;
        let model = Model::read(&json["model"], form.spelling)?;
        let tokens = model.tokens.iter().map(|(token, _)| token);
        let cuts = Cuts::between(tokens, model.alphabet.is_of_chars());
        let mut fast = Self {
            lane: AnyLane::detect(),
            splitter: Splitter::new(form.pattern, cuts.pairs()),
            merges: Merges::new(model.alphabet, &model.merges)?,
            cuts,
            whole: HashMap::new(),
            prefix: form.prefix,
            added: Added::read(json, added_tokens, &form)?,
            tokens: model.tokens,
        };
        if json["model"]["ignore_merges"] == true {
            fast.whole = fast.not_merged();
        }
        Ok(fast)
    }

    /// Texts that hold any of these are not for this engine.
    pub(crate) fn foreign(&self) -> &[String] {
        self.added.foreign()
    }

    /// The tokens that their own merges do not give, and that a word may be.
    fn not_merged(&self) -> HashMap<Box<[u8]>, u32> {
        let mut whole = self.lane.run(NotMerged {
            merges: &self.merges,
            tokens: &self.tokens,
        });
        whole.retain(|token, _| self.may_be_word(token));
        whole
    }

    /// Whether a word may have these bytes. What the pattern cuts when it stands alone, it cuts everywhere: no
    /// alternative asks what is before it, and the one that asks what is behind, for white space at the end, is
    /// met best by nothing.
    fn may_be_word(&self, bytes: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return false;
        };
        let mut ends = [0; ROOM];
        let (splitter, cut) = (&self.splitter, &mut Cut::new());
        self.lane.run(Fill {
            splitter,
            cut,
            text,
            ends: &mut ends,
        }) == 1
    }

    /// Takes all memory that a cache may have, and puts the words into it that are tokens.
    pub(crate) fn warm_up(&self, scratch: &mut Scratch) {
        self.lane.run(WarmUp {
            fast: self,
            scratch,
        });
    }

    /// Appends the ids of a text; false if it is one for the reference engine.
    pub(crate) fn encode_into(
        &self,
        text: &str,
        special_tokens_are_text: bool,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) -> bool {
        if !self.is_for_this(text) {
            return false;
        }
        self.added
            .parts(text, special_tokens_are_text, &mut |part| match part {
                Part::Id(id) => ids.push(id),
                Part::Text(text, place) => self.lane.run(AppendText {
                    fast: self,
                    text,
                    place,
                    scratch,
                    ids,
                }),
            });
        true
    }

    /// Appends the ids of a text without added tokens, which may be the first part of another.
    #[inline(always)]
    fn append_text(
        &self,
        lane: impl Lane,
        text: &str,
        place: Place,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) {
        let mut cut = Cut::new();
        scratch.found[0] = 0;
        loop {
            let ends = scratch.found[1..].first_chunk_mut();
            let ends = ends.expect("there is room");
            let num_words = self.splitter.fill(lane, &mut cut, text, ends);
            if num_words == 0 {
                return;
            }
            let mut found = std::mem::take(&mut scratch.found);
            let mut words = &found[..=num_words];
            if words[0] == 0 && self.has_prefix(text, place) {
                words = &words[1..];
                self.append_behind_blank(lane, &text[..words[0] as usize], scratch, ids);
            }
            self.append_words(lane, text.as_bytes(), words, scratch, ids);
            found[0] = found[num_words];
            scratch.found = found;
        }
    }

    /// Whether a text has nothing that only the reference engine knows about.
    #[inline]
    fn is_for_this(&self, text: &str) -> bool {
        // Positions are kept in 32 bits, with room for a block behind the end.
        text.len() < 1 << 31 && !self.added.is_foreign(text)
    }

    /// Whether a blank goes before this text.
    #[inline]
    fn has_prefix(&self, text: &str, place: Place) -> bool {
        match self.prefix {
            Prefix::None => false,
            Prefix::Always => place != Place::BehindNormalized,
            Prefix::UnlessThere => !text.starts_with(' '),
            Prefix::FirstUnlessThere => place == Place::First && !text.starts_with(' '),
        }
    }

    /// Appends the ids of a word with a blank before it.
    #[inline(never)]
    fn append_behind_blank(
        &self,
        lane: impl Lane,
        word: &str,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) {
        let mut first = std::mem::take(&mut scratch.first);
        first.clear();
        first.push(b' ');
        first.extend_from_slice(word.as_bytes());
        let job = AppendWord {
            fast: self,
            word: &first,
            scratch,
            ids,
        };
        lane.run(job);
        if first.capacity() <= KEPT_BYTES {
            scratch.first = first;
        }
    }

    /// Appends the ids of the words that begin at each of these bounds and end at the next.
    #[inline(always)]
    fn append_words(
        &self,
        lane: impl Lane,
        text: &[u8],
        bounds: &[u32],
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) {
        // No closures here, nor in what it calls: they would be compiled for no lane.
        let mut words = Cutting {
            text,
            bounds,
            at: bounds[0],
            // A piece that is a token only as a whole word would be taken for one.
            cuts: self.whole.is_empty().then_some(&self.cuts),
        };
        loop {
            let num_words = lane.run(NextWords {
                words: &mut words,
                bounds: &mut scratch.bounds,
            });
            if num_words == 0 {
                return;
            }
            let mut num_staged = 0;
            scratch.missing.clear();
            for first in (0..num_words).step_by(GROUP) {
                let of_chunk = first..num_words.min(first + GROUP);
                lane.run(Prepare {
                    text,
                    of_chunk: of_chunk.clone(),
                    scratch,
                });
                num_staged = lane.run(Stage {
                    of_chunk,
                    num_staged,
                    scratch,
                });
            }
            if scratch.missing.is_empty() {
                ids.extend_from_slice(&scratch.staged[..num_staged]);
            } else {
                lane.run(Resolve {
                    fast: self,
                    text,
                    num_staged,
                    scratch,
                    ids,
                });
            }
        }
    }

    /// The id of a word that is a token although its merges do not give it.
    #[inline(always)]
    pub(super) fn whole(&self, word: &[u8]) -> Option<u32> {
        if self.whole.is_empty() {
            return None;
        }
        self.whole.get(word).copied()
    }
}

/// [`Cutting::next`], in a lane.
struct NextWords<'a, 't> {
    words: &'a mut Cutting<'t>,
    bounds: &'a mut Bounds,
}

impl Job for NextWords<'_, '_> {
    type Done = usize;

    #[inline(always)]
    fn run(self, lane: impl Lane) -> usize {
        self.words.next(lane, self.bounds)
    }
}

/// Makes these words of a chunk, at most [`GROUP`], and has the processor fetch what looking them up will need.
///
/// They are looked up when this has been done for all of them, so that it has all of this time to fetch.
struct Prepare<'a> {
    text: &'a [u8],
    of_chunk: Range<usize>,
    scratch: &'a mut Scratch,
}

impl Job for Prepare<'_> {
    type Done = ();

    #[inline(always)]
    fn run(self, lane: impl Lane) {
        let Self {
            text,
            of_chunk,
            scratch,
        } = self;
        let finder = scratch.cache.finder();
        let words = scratch.words.0.as_chunks_mut().0;
        let buckets = scratch.buckets.0.as_chunks_mut().0;
        let bounds = scratch.bounds[of_chunk.start..].windows(EIGHT + 1);
        let eights = words.iter_mut().zip(buckets).zip(bounds.step_by(EIGHT));
        for ((words, buckets), bounds) in eights.take(of_chunk.len().div_ceil(EIGHT)) {
            let bounds = bounds.first_chunk().expect("a window has as many");
            lane.words(text, bounds, finder.shift(), words, buckets);
        }
        // Read from memory again: to take them out of a vector one by one takes longer.
        for &bucket in &scratch.buckets.0[..of_chunk.len()] {
            finder.prefetch(bucket);
        }
    }
}

/// Stages the ids of these words of a chunk, which were prepared last, behind those that are; gives the number of all.
struct Stage<'a> {
    of_chunk: Range<usize>,
    num_staged: usize,
    scratch: &'a mut Scratch,
}

impl Job for Stage<'_> {
    type Done = usize;

    #[inline(always)]
    fn run(self, lane: impl Lane) -> usize {
        let Self {
            of_chunk,
            mut num_staged,
            scratch,
        } = self;
        let finder = scratch.cache.finder();
        let words = scratch.words.0.iter().zip(&scratch.buckets.0);
        for (number, (word, bucket)) in of_chunk.zip(words) {
            let staged = scratch.staged.get_mut(num_staged..);
            let Some(staged) = staged.and_then(|staged| staged.first_chunk_mut()) else {
                unreachable!("a chunk's ids have room")
            };
            match finder.find(lane, *word, *bucket, staged) {
                Some(count) => num_staged += count,
                None => scratch.missing.push(number, num_staged),
            }
        }
        num_staged
    }
}

/// [`Fast::warm_up`], in a lane.
struct WarmUp<'a> {
    fast: &'a Fast,
    scratch: &'a mut Scratch,
}

impl Job for WarmUp<'_> {
    type Done = ();

    #[inline(always)]
    fn run(self, lane: impl Lane) {
        let Self { fast, scratch } = self;
        scratch.cache.take_memory(lane);
        let tokens = fast.tokens.iter().map(|(token, _)| token);
        let is_remembered = |token: &&[u8]| token.len() <= SHORT && fast.whole(token).is_none();
        let words: Vec<&[u8]> = tokens.filter(is_remembered).collect();
        fast.merges
            .encode_all(words.iter().copied(), |number, ids, num_ids| {
                let word = words[number];
                let word = Word::at(word, 0, word.len());
                scratch.cache.put_short(lane, word, &ids[..num_ids]);
            });
    }
}

/// The tokens that their own merges do not give.
struct NotMerged<'a> {
    merges: &'a Merges,
    tokens: &'a Tokens,
}

impl Job for NotMerged<'_> {
    type Done = HashMap<Box<[u8]>, u32>;

    #[inline(always)]
    fn run(self, _: impl Lane) -> Self::Done {
        let mut heap = Heap::default();
        let mut ids = Vec::new();
        let mut whole = HashMap::new();
        for (token, id) in self.tokens.iter() {
            ids.clear();
            self.merges.encode(token, &mut heap, &mut ids);
            if ids[..] != [id] {
                whole.insert(token.into(), id);
            }
        }
        whole
    }
}

/// [`Splitter::fill`], in a lane.
struct Fill<'a> {
    splitter: &'a Splitter,
    cut: &'a mut Cut,
    text: &'a str,
    ends: &'a mut [u32; ROOM],
}

impl Job for Fill<'_> {
    type Done = usize;

    #[inline(always)]
    fn run(self, lane: impl Lane) -> usize {
        self.splitter.fill(lane, self.cut, self.text, self.ends)
    }
}

/// [`Fast::append_text`], in a lane.
struct AppendText<'a> {
    fast: &'a Fast,
    text: &'a str,
    place: Place,
    scratch: &'a mut Scratch,
    ids: &'a mut Vec<u32>,
}

impl Job for AppendText<'_> {
    type Done = ();

    #[inline(always)]
    fn run(self, lane: impl Lane) {
        let Self {
            fast,
            text,
            place,
            scratch,
            ids,
        } = self;
        fast.append_text(lane, text, place, scratch, ids);
    }
}

/// [`Fast::append_words`] of one, in a lane.
struct AppendWord<'a> {
    fast: &'a Fast,
    word: &'a [u8],
    scratch: &'a mut Scratch,
    ids: &'a mut Vec<u32>,
}

impl Job for AppendWord<'_> {
    type Done = ();

    #[inline(always)]
    fn run(self, lane: impl Lane) {
        let Self {
            fast,
            word,
            scratch,
            ids,
        } = self;
        fast.append_words(lane, word, &[0, word.len() as u32], scratch, ids);
    }
}

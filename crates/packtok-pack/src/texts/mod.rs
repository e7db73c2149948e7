//! Encodes, counts and decodes texts in memory.
//!
//! `runs` divides the items of a call among threads. Texts in files are the job of `pack`.

mod runs;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use packtok_tokenizer::{EncodeOptions, Encoder, Result as BpeResult, Tokenizer};
use runs::Items;
pub use runs::Tick;
pub(crate) use runs::in_runs;

use crate::error::{Error, Result};
use crate::pack::KEPT_IDS;

/// Maximum number of idle encoders kept for later calls.
const KEPT_ENCODERS: usize = 64;

/// A tokenizer and a pool of encoders whose caches are warm from earlier calls.
pub struct Encoders {
    tokenizer: Tokenizer,
    /// Accessed with `try_lock` only: a process forked while another thread holds the lock
    /// continues without these encoders instead of deadlocking.
    idle: Mutex<Vec<(EncodeOptions, Encoder)>>,
}

/// A text in memory, which may have another encoding than UTF-8.
pub trait Text: Sync {
    /// An upper bound of the bytes of its UTF-8.
    fn max_utf8_bytes(&self) -> usize;

    /// Its UTF-8. A text in another encoding is converted to `buffer`, whose content is replaced.
    ///
    /// # Errors
    /// The text has no UTF-8.
    fn utf8<'a>(&'a self, buffer: &'a mut String) -> BpeResult<&'a str>;
}

impl<T: AsRef<str> + Sync> Text for T {
    fn max_utf8_bytes(&self) -> usize {
        self.as_ref().len()
    }

    fn utf8<'a>(&'a self, _: &'a mut String) -> BpeResult<&'a str> {
        Ok(self.as_ref())
    }
}

/// The concatenated ids of many texts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// All ids.
    pub ids: Vec<u32>,
    /// Text `i` has the ids `ids[offsets[i]..offsets[i + 1]]`. `offsets` has one entry more than
    /// there are texts.
    pub offsets: Vec<i64>,
}

impl Encoders {
    /// An empty pool for `tokenizer`.
    pub fn new(tokenizer: Tokenizer) -> Self {
        Self {
            tokenizer,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// The tokenizer that the encoders use.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    fn borrow(&self, options: &EncodeOptions) -> Result<Borrowed<'_>> {
        let idle = self.idle.try_lock().ok().and_then(|mut idle| {
            let at = idle.iter().position(|(of, _)| of == options)?;
            Some(idle.swap_remove(at))
        });
        let encoder = match idle {
            Some(idle) => idle,
            None => (options.clone(), self.tokenizer.encoder(options)?),
        };
        Ok(Borrowed {
            home: self,
            encoder: Some(encoder),
            text: String::new(),
            ids: Vec::new(),
        })
    }

    /// The ids of one text.
    ///
    /// # Errors
    /// If the tokenizer rejects the text.
    pub fn encode<T: Text + ?Sized>(&self, text: &T, options: &EncodeOptions) -> Result<Vec<u32>> {
        let mut encoder = self.borrow(options)?;
        let mut ids = Vec::new();
        match catch_unwind(AssertUnwindSafe(|| encoder.encode_into(text, &mut ids))) {
            Ok(outcome) => outcome.map(|()| ids).map_err(Error::from),
            Err(_) => Err(Error::TextItemPanicked {
                argument: "texts",
                item: 0,
            }),
        }
    }

    /// The ids of many texts.
    ///
    /// The result reuses the memory of `ids` and replaces its content.
    ///
    /// # Errors
    /// The first text, in input order, that the tokenizer rejects.
    pub fn encode_batch<T: Text>(
        &self,
        texts: &[T],
        options: &EncodeOptions,
        num_threads: usize,
        mut ids: Vec<u32>,
        tick: &mut Tick<'_>,
    ) -> Result<Batch> {
        ids.clear();
        let mut offsets = Vec::with_capacity(texts.len() + 1);
        offsets.push(0);
        let items = Items::new("texts", texts.len(), |item| texts[item].max_utf8_bytes());
        if num_threads.min(items.num_runs()) <= 1 {
            // Written directly to the result: a copy of the ids is slow compared with encoding.
            let mut encoder = self.borrow(options)?;
            items.in_turn(tick, |item| {
                encoder.encode_into(&texts[item], &mut ids)?;
                offsets.push(ids.len() as i64);
                Ok(())
            })?;
            return Ok(Batch { ids, offsets });
        }
        items.on_threads(
            num_threads,
            || self.borrow(options),
            |encoder, item, (ids, ends): &mut (Vec<u32>, Vec<usize>)| {
                encoder.encode_into(&texts[item], ids)?;
                ends.push(ids.len());
                Ok(())
            },
            |(ids_of_run, ends)| {
                let start = ids.len();
                ids.extend_from_slice(ids_of_run);
                offsets.extend(ends.iter().map(|end| (start + end) as i64));
                ids_of_run.clear();
                ends.clear();
            },
            tick,
        )?;
        Ok(Batch { ids, offsets })
    }

    /// The number of tokens of each text.
    ///
    /// # Errors
    /// The first text, in input order, that the tokenizer rejects.
    pub fn count<T: Text>(
        &self,
        texts: &[T],
        options: &EncodeOptions,
        num_threads: usize,
        tick: &mut Tick<'_>,
    ) -> Result<Vec<i64>> {
        let runs = in_runs(
            "texts",
            texts.len(),
            |item| texts[item].max_utf8_bytes(),
            num_threads,
            || self.borrow(options),
            |encoder, item, counts: &mut Vec<i64>| {
                counts.push(encoder.count(&texts[item])?);
                Ok(())
            },
            tick,
        )?;
        Ok(runs.concat())
    }

    /// The text of `ids`.
    ///
    /// # Errors
    /// An id is not in the vocabulary, or the engine rejects the ids.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        self.check(ids)?;
        Ok(self.text_of(ids, skip_special_tokens)?)
    }

    /// The texts of many id lists, laid out as in [`Batch`].
    ///
    /// # Errors
    /// Offsets decrease or exceed the number of ids, an id is not in the vocabulary, or the engine
    /// rejects a list; the error names the first such list in input order.
    pub fn decode_batch(
        &self,
        ids: &[u32],
        offsets: &[usize],
        skip_special_tokens: bool,
        num_threads: usize,
        tick: &mut Tick<'_>,
    ) -> Result<Vec<String>> {
        self.check(ids)?;
        let spans = spans(offsets, ids.len())?;
        let runs = in_runs(
            "documents",
            spans.len(),
            |item| 4 * spans[item].len(),
            num_threads,
            || Ok(()),
            |(), item, texts: &mut Vec<String>| {
                let ids = &ids[spans[item].clone()];
                texts.push(self.text_of(ids, skip_special_tokens)?);
                Ok(())
            },
            tick,
        )?;
        Ok(runs.into_iter().flatten().collect())
    }

    fn text_of(&self, ids: &[u32], skip_special_tokens: bool) -> BpeResult<String> {
        if skip_special_tokens {
            self.tokenizer.decode_without_special_tokens(ids)
        } else {
            self.tokenizer.decode(ids)
        }
    }

    /// Checks that all ids are in the vocabulary: engines silently ignore unknown ids.
    fn check(&self, ids: &[u32]) -> Result<()> {
        let vocab_size = self.tokenizer.vocab_size();
        let position = ids.iter().position(|&id| u64::from(id) >= vocab_size);
        match position {
            None => Ok(()),
            Some(position) => Err(Error::NoSuchId {
                position,
                found: ids[position],
                vocab_size,
            }),
        }
    }
}

/// The ranges between adjacent offsets.
fn spans(offsets: &[usize], num_ids: usize) -> Result<Vec<Range<usize>>> {
    let falls = offsets.windows(2).position(|pair| pair[0] > pair[1]);
    if let Some(position) = falls {
        return Err(Error::OffsetsFall {
            position: position + 1,
            found: offsets[position + 1],
            before: offsets[position],
        });
    }
    match offsets.last() {
        Some(&found) if found > num_ids => Err(Error::OffsetsBeyond { found, num_ids }),
        _ => Ok(offsets.windows(2).map(|pair| pair[0]..pair[1]).collect()),
    }
}

/// An encoder that returns to the pool on drop, unless it panicked.
struct Borrowed<'a> {
    home: &'a Encoders,
    encoder: Option<(EncodeOptions, Encoder)>,
    /// The last text that was not UTF-8, converted.
    text: String,
    ids: Vec<u32>,
}

impl Borrowed<'_> {
    fn encode_into<T: Text + ?Sized>(&mut self, text: &T, ids: &mut Vec<u32>) -> BpeResult<()> {
        let text = text.utf8(&mut self.text)?;
        let (options, mut encoder) = self.encoder.take().expect("absent only while it encodes");
        let outcome = encoder.encode_into(text, ids);
        self.encoder = Some((options, encoder));
        outcome
    }

    fn count<T: Text>(&mut self, text: &T) -> BpeResult<i64> {
        let mut ids = std::mem::take(&mut self.ids);
        ids.clear();
        self.encode_into(text, &mut ids)?;
        let count = ids.len() as i64;
        if ids.capacity() <= KEPT_IDS {
            self.ids = ids;
        }
        Ok(count)
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        if let (Some(encoder), Ok(mut idle)) = (self.encoder.take(), self.home.idle.try_lock())
            && idle.len() < KEPT_ENCODERS
        {
            idle.push(encoder);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    fn encoders() -> Encoders {
        Encoders::new(Tokenizer::builtin("gpt2").unwrap())
    }

    fn proceed() -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Texts of various lengths that fill more than one run.
    fn texts() -> Vec<String> {
        let text = |i: usize| "some words 12 \u{e9}\n".repeat(i % 37) + &i.to_string();
        let mut texts: Vec<String> = (0..2000).map(text).collect();
        texts[7].clear();
        texts
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let (encoders, texts) = (encoders(), texts());
        let options = EncodeOptions::default();
        let mut expected = Batch::default();
        expected.offsets.push(0);
        for text in &texts {
            expected
                .ids
                .extend(encoders.tokenizer().encode(text, &options).unwrap());
            expected.offsets.push(expected.ids.len() as i64);
        }
        let counts: Vec<i64> = expected
            .offsets
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect();
        let offsets: Vec<usize> = expected.offsets.iter().map(|&at| at as usize).collect();
        for num_threads in [1, 2, 7] {
            let batch =
                encoders.encode_batch(&texts, &options, num_threads, vec![7; 3], &mut proceed);
            assert_eq!(batch.unwrap(), expected);
            let num_tokens = encoders.count(&texts, &options, num_threads, &mut proceed);
            assert_eq!(num_tokens.unwrap(), counts);
            let decoded =
                encoders.decode_batch(&expected.ids, &offsets, false, num_threads, &mut proceed);
            assert_eq!(decoded.unwrap(), texts);
        }
        let none: [&str; 0] = [];
        let batch = encoders
            .encode_batch(&none, &options, 3, Vec::new(), &mut proceed)
            .unwrap();
        assert_eq!((batch.ids.len(), batch.offsets), (0, vec![0]));
    }

    #[test]
    fn the_error_names_the_first_rejected_text_for_any_number_of_threads() {
        let encoders = encoders();
        let mut texts = texts();
        texts[900] += "<|endoftext|>";
        texts[1800] += "<|endoftext|>";
        let options = EncodeOptions {
            special_tokens_in_text: packtok_tokenizer::SpecialTokensInText::Fail,
            ..EncodeOptions::default()
        };
        for num_threads in [1, 2, 7] {
            let error = encoders
                .encode_batch(&texts, &options, num_threads, vec![7; 3], &mut proceed)
                .unwrap_err();
            assert_eq!(
                packtok_pbin::chain(&error),
                "texts[900]: the text contains the special token \"<|endoftext|>\""
            );
        }
    }

    #[test]
    fn an_interruption_cancels_the_call() {
        let (encoders, texts) = (encoders(), texts());
        let mut stop = || ControlFlow::Break(());
        let outcome = encoders.count(&texts, &EncodeOptions::default(), 1, &mut stop);
        assert!(matches!(outcome, Err(Error::Cancelled)));
    }

    #[test]
    fn an_id_outside_the_vocabulary_is_rejected() {
        let error = encoders().decode(&[1, 50_257], false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ids[1] is 50257, expected an id below 50257"
        );
    }
}

//! Compares the engine of a tokenizer with the reference engine.

use std::sync::atomic::{AtomicU64, Ordering};

use packtok_corpus::{Location, RecordNumber, Source};
use packtok_jobs::{Monitor, Progress};
use packtok_tokenizer::{
    EncodeOptions, Encoder, Result as BpeResult, SpecialTokensInText, TextExtent, Tokenizer,
    adversarial_texts,
};
use serde::Serialize;

use crate::error::EnginesDiffer;
use crate::error::{Error, Result};
use crate::scan::{Examine, LineCounts, Receive, ScanOptions, scan};
use crate::texts::in_runs;

/// The name of the built-in texts in errors.
const BUILT_IN: &str = "built-in texts";
/// Bytes of text shown in a difference.
const SHOWN_BYTES: usize = 40;

/// The extent of a comparison of engines.
#[derive(Debug, Serialize)]
pub struct EnginesReport {
    /// The engine of the tokenizer.
    pub engine: &'static str,
    /// The engine used for comparison; `None` if both engines are the same, so nothing was
    /// compared.
    pub oracle: Option<&'static str>,
    /// Number of built-in texts compared, each with special tokens parsed and read as text; 0 if all documents of the
    /// corpus were rejected.
    pub built_in_texts: u64,
    /// Counts of the lines of the corpus.
    #[serde(flatten)]
    pub lines: LineCounts,
    /// Tokens of its documents.
    pub tokens: u64,
}

/// Compares engines on the texts of a corpus, if there is one, and on the built-in texts, unless all documents were
/// rejected.
///
/// # Errors
/// The first difference, with file, line and position.
pub fn verify_engines(
    tokenizer: &Tokenizer,
    corpus: Option<&ScanOptions>,
    num_threads: usize,
    monitor: &mut Monitor<'_>,
) -> Result<EnginesReport> {
    let mut report = EnginesReport {
        engine: tokenizer.engine().name(),
        oracle: None,
        built_in_texts: 0,
        lines: LineCounts::default(),
        tokens: 0,
    };
    let Some(oracle) = tokenizer.without_fast()? else {
        return Ok(report);
    };
    report.oracle = Some(oracle.engine().name());
    // First, because it may have errors of the caller, and the built-in texts take seconds.
    if let Some(options) = corpus {
        compare_corpus(tokenizer, &oracle, options, &mut report, monitor)?;
    }
    if report.lines.rejected == 0 || report.lines.documents > 0 {
        report.built_in_texts =
            compare_built_in(tokenizer, &oracle, TextExtent::All, num_threads, monitor)?;
    }
    Ok(report)
}

/// Compares the engines on the documents of a corpus, and adds their numbers to the report.
fn compare_corpus(
    tokenizer: &Tokenizer,
    oracle: &Tokenizer,
    options: &ScanOptions,
    report: &mut EnginesReport,
    monitor: &mut Monitor<'_>,
) -> Result<()> {
    let sources = options.expand()?.sources;
    let examiners = (0..options.num_threads.max(1))
        .map(|_| EncoderPair::new(tokenizer, oracle, SpecialTokensInText::Parse, None))
        .collect::<Result<_>>()?;
    let mut differences = Differences {
        tokenizer,
        oracle,
        sources: &sources,
        num_tokens: 0,
    };
    let scanned = scan(options, &sources, examiners, &mut differences, monitor)?;
    for lines in &scanned.lines {
        report.lines.add(lines);
    }
    report.tokens = differences.num_tokens;
    Ok(())
}

/// Few words of the built-in texts recur, so filling larger caches would take longer than the comparison.
const BUILT_IN_CACHE_BYTES: usize = 1 << 20;

/// Compares the engines on the built-in texts. Returns the number of texts.
pub(super) fn compare_built_in(
    tokenizer: &Tokenizer,
    oracle: &Tokenizer,
    extent: TextExtent,
    num_threads: usize,
    monitor: &mut Monitor<'_>,
) -> Result<u64> {
    let texts = adversarial_texts(tokenizer, extent);
    let modes = [SpecialTokensInText::Parse, SpecialTokensInText::Text];
    let pairs = || {
        let pair = |mode| EncoderPair::new(tokenizer, oracle, mode, Some(BUILT_IN_CACHE_BYTES));
        modes.into_iter().map(pair).collect::<Result<Vec<_>>>()
    };
    let total_bytes = texts.iter().map(String::len).sum::<usize>() as u64;
    let bytes_read = AtomicU64::new(0);
    let runs = in_runs(
        BUILT_IN,
        texts.len(),
        |item| texts[item].len(),
        num_threads,
        pairs,
        |pairs, item, differences: &mut Vec<(usize, Difference)>| {
            for pair in pairs {
                pair.encode(&texts[item])?;
                differences.extend(
                    pair.difference(&texts[item])
                        .map(|difference| (item, difference)),
                );
            }
            bytes_read.fetch_add(texts[item].len() as u64, Ordering::Relaxed);
            Ok(())
        },
        &mut || {
            monitor(&Progress {
                bytes_read: bytes_read.load(Ordering::Relaxed),
                total_bytes,
                ..Progress::default()
            })
        },
    )?;
    match runs.into_iter().flatten().next() {
        Some((item, difference)) => {
            let location = Location {
                path: BUILT_IN.into(),
                number: RecordNumber::Line(item as u64 + 1),
            };
            Err(difference.into_error(tokenizer, oracle, location))
        }
        None => Ok(texts.len() as u64),
    }
}

/// The position where two engines differ.
struct Difference {
    token: u64,
    found: Option<u32>,
    expected: Option<u32>,
    text: String,
}

impl Difference {
    fn into_error(self, tokenizer: &Tokenizer, oracle: &Tokenizer, location: Location) -> Error {
        Error::EnginesDiffer(Box::new(EnginesDiffer {
            tokenizer: tokenizer.name().to_owned(),
            location,
            token: self.token,
            engine: tokenizer.engine().name(),
            found: self.found,
            oracle: oracle.engine().name(),
            expected: self.expected,
            text: self.text,
        }))
    }
}

/// The two encoders of one thread, and their results for the current text.
struct EncoderPair {
    tokenizer: Tokenizer,
    encoders: [Encoder; 2],
    ids: [Vec<u32>; 2],
}

impl EncoderPair {
    fn new(
        tokenizer: &Tokenizer,
        oracle: &Tokenizer,
        mode: SpecialTokensInText,
        cache_bytes: Option<usize>,
    ) -> Result<Self> {
        let options = EncodeOptions {
            special_tokens_in_text: mode,
            cache_bytes,
            ..EncodeOptions::default()
        };
        Ok(Self {
            tokenizer: tokenizer.clone(),
            encoders: [tokenizer.encoder(&options)?, oracle.encoder(&options)?],
            ids: [Vec::new(), Vec::new()],
        })
    }

    fn encode(&mut self, text: &str) -> BpeResult<()> {
        for (encoder, ids) in self.encoders.iter_mut().zip(&mut self.ids) {
            ids.clear();
            encoder.encode_into(text, ids)?;
        }
        Ok(())
    }

    fn difference(&self, text: &str) -> Option<Difference> {
        let [found, expected] = &self.ids;
        if found == expected {
            return None;
        }
        let pairs = found.iter().zip(expected);
        let token = pairs
            .take_while(|(found, expected)| found == expected)
            .count();
        // If the equal ids decode to a prefix of the text, the engines differ right after it.
        let before = self.tokenizer.decode(&found[..token]).unwrap_or_default();
        let start = text.floor_char_boundary(before.len().saturating_sub(SHOWN_BYTES / 4));
        let stop = text.floor_char_boundary(start + SHOWN_BYTES);
        Some(Difference {
            token: token as u64,
            found: found.get(token).copied(),
            expected: expected.get(token).copied(),
            text: text[start..stop].to_owned(),
        })
    }
}

impl Examine for EncoderPair {
    type Finding = (u64, Option<Difference>);

    fn examine(&mut self, text: &str) -> BpeResult<Option<Self::Finding>> {
        self.encode(text)?;
        let num_tokens = self.ids[0].len() as u64;
        let is_empty = self.ids.iter().all(Vec::is_empty);
        Ok((!is_empty).then(|| (num_tokens, self.difference(text))))
    }
}

struct Differences<'a> {
    tokenizer: &'a Tokenizer,
    oracle: &'a Tokenizer,
    sources: &'a [Source],
    num_tokens: u64,
}

impl Receive<(u64, Option<Difference>)> for Differences<'_> {
    fn receive(
        &mut self,
        source: usize,
        line: u64,
        (num_tokens, difference): (u64, Option<Difference>),
    ) -> Result<u64> {
        self.num_tokens += num_tokens;
        match difference {
            None => Ok(num_tokens),
            Some(difference) => {
                let location = Location::of(&self.sources[source], line);
                Err(difference.into_error(self.tokenizer, self.oracle, location))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    /// The tokenizer of GPT-2, and the same tokenizer without merges: two engines that differ.
    fn unlike() -> (Tokenizer, Tokenizer) {
        let gpt2 = packtok_tokenizer::builtin_json("gpt2").unwrap();
        let mut file: serde_json::Value = serde_json::from_str(&gpt2).unwrap();
        file["model"]["merges"] = serde_json::json!([]);
        (
            Tokenizer::from_json("t", gpt2).unwrap(),
            Tokenizer::from_json("t", file.to_string()).unwrap(),
        )
    }

    #[test]
    fn equal_engines_are_reported_with_the_extent_of_the_comparison() {
        let tokenizer = Tokenizer::builtin("gpt2").unwrap();
        let report = verify_engines(&tokenizer, None, 2, &mut |_| ControlFlow::Continue(()));
        let report = report.unwrap();
        assert_eq!(report.oracle, Some("tokenizers 0.23.2"));
        assert_eq!(
            report.built_in_texts,
            adversarial_texts(&tokenizer, TextExtent::All).len() as u64
        );
    }

    #[test]
    fn the_first_difference_is_reported_for_any_number_of_threads() {
        let (tokenizer, other) = unlike();
        let options = EncodeOptions::default();
        let ids = |text: &String| {
            let of = |tokenizer: &Tokenizer| tokenizer.encode(text, &options).unwrap();
            (of(&tokenizer), of(&other))
        };
        let texts = adversarial_texts(&tokenizer, TextExtent::All);
        let first = texts.iter().position(|text| ids(text).0 != ids(text).1);
        let (found, expected) = ids(&texts[first.unwrap()]);
        let token = (0..).find(|&at| found.get(at) != expected.get(at)).unwrap();
        for num_threads in [1, 3] {
            let mut monitor = |_: &Progress| ControlFlow::Continue(());
            let error = compare_built_in(
                &tokenizer,
                &other,
                TextExtent::All,
                num_threads,
                &mut monitor,
            );
            let Err(Error::EnginesDiffer(difference)) = error else {
                panic!("{error:?}");
            };
            let number = RecordNumber::Line(first.unwrap() as u64 + 1);
            assert_eq!(difference.location.number, number);
            assert_eq!(difference.token, token as u64);
            assert_eq!(difference.found, found.get(token).copied());
            assert_eq!(difference.expected, expected.get(token).copied());
        }
    }

    #[test]
    fn a_difference_has_its_position_and_both_ids() {
        let (tokenizer, other) = unlike();
        let mut pair =
            EncoderPair::new(&tokenizer, &other, SpecialTokensInText::Parse, None).unwrap();
        let text = "Hello w\u{f6}rld";
        pair.encode(text).unwrap();
        let difference = pair.difference(text).unwrap();
        let location = Location {
            path: "c.jsonl".into(),
            number: RecordNumber::Line(7),
        };
        let error = difference.into_error(&tokenizer, &other, location);
        assert_eq!(
            error.to_string(),
            "t: c.jsonl:7: token 1 is id 266 with packtok, and id 220 with packtok, near \"Hello w\u{f6}rld\"; please report it with this text"
        );
    }
}

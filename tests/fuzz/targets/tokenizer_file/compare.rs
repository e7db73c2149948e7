//! Compares packtok with `tokenizers` on one case.

use packtok_tokenizer::{
    EncodeError, EncodeOptions, Encoder, EngineChoice, Error, LoadError, SpecialTokensInText,
};
use serde_json::Value;

use crate::generate::{Case, Limits};
use crate::oracle::{Oracle, Outcome};
use crate::panics::catch;

/// A claim that does not hold.
#[derive(Debug)]
pub(crate) struct Finding {
    /// Which claim, in the same words for similar findings.
    pub(crate) kind: String,
    /// The input, what was found, and what was expected.
    pub(crate) detail: String,
}

/// The result of a case without findings.
pub(crate) struct Compared {
    /// Number of texts whose ids were compared, those that both refuse included.
    pub(crate) pairs: u64,
    /// The engine that packtok chose; `None` if the file was refused.
    pub(crate) engine: Option<&'static str>,
}

/// Calls packtok; a panic is a finding.
fn own<T>(
    place: &str,
    call: impl FnOnce() -> Result<T, Error>,
) -> Result<Result<T, Error>, Finding> {
    catch(call).map_err(|message| Finding {
        kind: format!("{place}: panic: {}", shape_of(&message)),
        detail: message,
    })
}

/// Whether this refusal of a file that `tokenizers` loads is documented (docs/design/exactness.md).
fn is_documented(error: &Error, oracle: &Oracle) -> bool {
    match error {
        // Ids would depend on chance.
        Error::Load(LoadError::Dropout { .. }) => true,
        Error::Load(LoadError::SameAddedTokens { .. } | LoadError::EmptyAddedToken { .. }) => {
            !oracle.has_ids_of_texts()
        }
        // The template does not put fixed tokens around one text.
        Error::Load(LoadError::Shape { key, .. }) => *key == "post_processor",
        // The post-processor fails on every text, with special tokens or without.
        Error::Load(LoadError::Unloadable { .. }) => {
            [false, true].iter().any(|&add_special_tokens| {
                let options = EncodeOptions {
                    add_special_tokens,
                    ..EncodeOptions::default()
                };
                ["", "a"]
                    .iter()
                    .all(|text| oracle.encode(text, &options).is_err())
            })
        }
        _ => false,
    }
}

/// Loads a file with both; `None` if both refuse it, or packtok does as documented.
fn load(json: &str) -> Result<Option<(Oracle, packtok_tokenizer::Tokenizer)>, Finding> {
    let finding = |whose: &str, reason: String| Finding {
        kind: format!("load: only {whose} refuses: {}", shape_of(&reason)),
        detail: reason,
    };
    let oracle = Oracle::load(json);
    let loaded = own("load", || {
        packtok_tokenizer::Tokenizer::from_json("t.json", json.to_owned())
    })?;
    match (oracle, loaded) {
        (Ok(oracle), Ok(_)) if !oracle.has_ids_of_texts() => Err(Finding {
            kind: "load: texts of this file have no ids".to_owned(),
            detail: "packtok takes it".to_owned(),
        }),
        (Ok(oracle), Ok(tokenizer)) => Ok(Some((oracle, tokenizer))),
        (Err(_), Err(_)) => Ok(None),
        (Ok(oracle), Err(error)) if is_documented(&error, &oracle) => Ok(None),
        (Ok(_), Err(error)) => Err(finding("packtok", chain(&error))),
        (Err(_), Ok(_)) if has_duplicate_keys(json) => Ok(None),
        (Err(reason), Ok(_)) => Err(finding("tokenizers", reason)),
    }
}

/// Whether `tokenizers` refuses a file only because an object has a key twice; packtok takes the last one, as documented.
fn has_duplicate_keys(json: &str) -> bool {
    let file: serde_json::Result<Value> = serde_json::from_str(json);
    file.is_ok_and(|file| Oracle::load(&file.to_string()).is_ok())
}

/// Compares everything that a case has.
pub(crate) fn compare(case: &Case) -> Result<Compared, Finding> {
    let Some((mut oracle, tokenizer)) = load(&case.json)? else {
        return Ok(Compared {
            pairs: 0,
            engine: None,
        });
    };
    if let Some(max_length) = case.limits.truncate_to {
        oracle.truncate_to(max_length);
    }
    let mut pair = Pair {
        engine: tokenizer.engine().name(),
        names: names(&tokenizer),
        oracle,
        has_texts_of_ids: has_texts_of_ids(&case.json),
        encoders: Vec::new(),
        tokenizer,
    };
    pair.compare_added_tokens()?;
    pair.make_encoders(&case.limits)?;
    for text in &case.texts {
        pair.compare_text(text)?;
    }
    for ids in &case.ids {
        pair.compare_decoded(ids)?;
    }
    Ok(Compared {
        pairs: case.texts.len() as u64,
        engine: Some(pair.engine),
    })
}

fn names(tokenizer: &packtok_tokenizer::Tokenizer) -> String {
    let other = tokenizer.engine_chosen(EngineChoice::Reference).name();
    format!("{}, {other}", tokenizer.engine().name())
}

/// A file loaded by both.
struct Pair {
    oracle: Oracle,
    tokenizer: packtok_tokenizer::Tokenizer,
    /// The engine that serves the file, and both engines.
    engine: &'static str,
    names: String,
    has_texts_of_ids: bool,
    /// Encoders that are reused for all texts, or why they cannot be created.
    encoders: Vec<(EncodeOptions, Result<Encoder, Error>)>,
}

impl Pair {
    fn compare_added_tokens(&self) -> Result<(), Finding> {
        for token in self.tokenizer.added_tokens() {
            let expected = self.oracle.parsing.token_to_id(&token.content);
            if expected != Some(token.id) {
                return Err(Finding {
                    kind: "ids of added tokens differ".to_owned(),
                    detail: format!(
                        "{:?}: found {}, expected {expected:?}",
                        token.content, token.id
                    ),
                });
            }
        }
        Ok(())
    }

    /// Creates encoders with all options. Each pair differs in the engine only, `Auto` first.
    fn make_encoders(&mut self, limits: &Limits) -> Result<(), Finding> {
        let mut lengths = vec![None];
        // A sequence of post-processors may add more special tokens than `tokenizers` reserves room for; it then exceeds
        // the limit.
        let num_special = self.tokenizer.prefix().len() + self.tokenizer.suffix().len();
        if num_special == self.oracle.num_special() {
            lengths.extend(limits.truncate_to.map(Some));
        }
        let flags = [(false, false), (false, true), (true, false), (true, true)];
        for (add_special_tokens, is_text) in flags {
            for &truncate_to in &lengths {
                for engine in [EngineChoice::Auto, EngineChoice::Reference] {
                    let options = EncodeOptions {
                        add_special_tokens,
                        special_tokens_in_text: if is_text {
                            SpecialTokensInText::Text
                        } else {
                            SpecialTokensInText::Parse
                        },
                        truncate_to,
                        engine,
                        cache_bytes: Some(limits.cache_bytes),
                        ..EncodeOptions::default()
                    };
                    self.make_encoder(limits, options)?;
                }
            }
        }
        Ok(())
    }

    fn make_encoder(&mut self, limits: &Limits, options: EncodeOptions) -> Result<(), Finding> {
        let encoder = own("encoder", || {
            let mut encoder = self.tokenizer.encoder(&options)?;
            if limits.grows_cache {
                // After some hundred words, the cache grows; the next text puts the vocabulary into it. A tokenizer may
                // refuse the words.
                let words: String = (0..1500).map(|number| format!("w{number}x ")).collect();
                let _ = encoder.encode_into(&words, &mut Vec::new());
            }
            Ok(encoder)
        })?;
        // `tokenizers` accepts a limit below the number of special tokens; its ids are of no use then.
        if !matches!(
            encoder,
            Err(Error::Encode(EncodeError::TruncationTooShort { .. }))
        ) {
            self.encoders.push((options, encoder));
        }
        Ok(())
    }

    fn compare_text(&mut self, text: &str) -> Result<(), Finding> {
        let mut expected = Err(String::new());
        let mut is_refused = false;
        let mut all_ids = Vec::new();
        for (options, encoder) in &mut self.encoders {
            // The expected ids are the same for both engines.
            if options.engine == EngineChoice::Auto {
                expected = self.oracle.encode(text, options);
                all_ids.extend(expected.clone());
                if options.truncate_to.is_none() {
                    is_refused = expected.is_err();
                }
            }
            let found = match encoder {
                Ok(encoder) => own("encode", || {
                    let mut ids = vec![7];
                    encoder
                        .encode_into(text, &mut ids)
                        .map(|()| ids.split_off(1))
                })?
                .map_err(|error| chain(&error)),
                Err(error) => Err(chain(error)),
            };
            // `tokenizers` does not encode what it cuts off; packtok does, and may refuse the text because of it.
            if options.truncate_to.is_some() && is_refused && found.is_err() {
                continue;
            }
            let place = format!(
                "ids of {:?} ({}), {:?}, add_special_tokens {}, truncated {}",
                options.engine,
                self.names,
                options.special_tokens_in_text,
                options.add_special_tokens,
                options.truncate_to.is_some(),
            );
            compare_outcomes(&place, &found, &expected)
                .map_err(|finding| finding.with(&format!("text {text:?}")))?;
        }
        // Ids with and without special tokens are often the same.
        all_ids.dedup();
        all_ids.iter().try_for_each(|ids| self.compare_decoded(ids))
    }

    fn compare_decoded(&self, ids: &[u32]) -> Result<(), Finding> {
        if !self.has_texts_of_ids {
            return Ok(());
        }
        for skip_special_tokens in [false, true] {
            let found = own("decode", || {
                if skip_special_tokens {
                    self.tokenizer.decode_without_special_tokens(ids)
                } else {
                    self.tokenizer.decode(ids)
                }
            })?;
            let found = found.map_err(|error| chain(&error));
            let expected = self.oracle.decode(ids, skip_special_tokens);
            let place = format!(
                "text ({}), skip_special_tokens {skip_special_tokens}",
                self.names
            );
            compare_outcomes(&place, &found, &expected)
                .map_err(|finding| finding.with(&format!("ids {ids:?}")))?;
        }
        Ok(())
    }
}

impl Finding {
    fn with(mut self, input: &str) -> Self {
        self.detail = format!("{input}: {}", self.detail);
        self
    }
}

fn compare_outcomes<T: PartialEq + std::fmt::Debug>(
    place: &str,
    found: &Outcome<T>,
    expected: &Outcome<T>,
) -> Result<(), Finding> {
    let kind = match (found, expected) {
        (Ok(found), Ok(expected)) if found == expected => return Ok(()),
        (Err(_), Err(_)) => return Ok(()),
        (Ok(_), Ok(_)) => "differ".to_owned(),
        (Err(reason), Ok(_)) => format!("only packtok refuses: {}", shape_of(reason)),
        (Ok(_), Err(reason)) => format!("only tokenizers refuses: {}", shape_of(reason)),
    };
    Err(Finding {
        kind: format!("{place}: {kind}"),
        detail: format!("found {found:?}, expected {expected:?}"),
    })
}

fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// A message without names and numbers, which differ from file to file.
fn shape_of(message: &str) -> String {
    let outside = message
        .split(['"', '`'])
        .step_by(2)
        .collect::<Vec<_>>()
        .join(" _ ");
    let is_kept = |c: char| c.is_alphabetic() || "_.:".contains(c);
    let words = outside
        .split(|c| !is_kept(c))
        .filter(|word| !word.is_empty());
    words.take(16).collect::<Vec<_>>().join(" ")
}

/// Whether decoding is deterministic: if several tokens of the model have the same id, `tokenizers` decodes it to any one
/// of them, which changes from run to run.
fn has_texts_of_ids(json: &str) -> bool {
    let file: Value = serde_json::from_str(json).unwrap_or_default();
    let Some(vocab) = file["model"]["vocab"].as_object() else {
        return true;
    };
    let mut ids: Vec<u64> = vocab.values().filter_map(Value::as_u64).collect();
    ids.sort_unstable();
    ids.windows(2).all(|two| two[0] != two[1])
}

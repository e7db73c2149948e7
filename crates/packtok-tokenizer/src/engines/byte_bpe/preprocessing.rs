//! The steps of a tokenizer.json before its model, if this engine implements them.

use serde_json::Value;

use super::model::{SPACE_MARK, Spelling};
use super::normal_form::Form;
use super::split::{Finds, GPT2_PATTERN, Pattern, Step};
use crate::load::shape;

/// When a space is prepended to a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    None,
    Always,
    /// Unless the text begins with a space.
    UnlessThere,
    /// As `UnlessThere`, but not after an added token.
    FirstUnlessThere,
    /// As `UnlessThere`, before a pattern splits the text, which may split the space off.
    BeforeSplit,
}

/// The steps before the model.
#[derive(Debug, Clone)]
pub(super) struct Preprocessing {
    pub(super) pattern: Pattern,
    pub(super) spelling: Spelling,
    pub(super) prefix: Prefix,
    /// The normal form of texts.
    pub(super) form: Option<Form>,
    /// Texts that contain this fall back.
    pub(super) fallback_text: Option<String>,
}

impl Preprocessing {
    /// Reads the steps before the model.
    ///
    /// # Errors
    /// The file has a step that this engine does not implement.
    pub(super) fn read(json: &Value) -> Result<Self, String> {
        let (normalizer, pre_tokenizer) = (&json["normalizer"], &json["pre_tokenizer"]);
        if is_byte_level(pre_tokenizer) {
            let form = normalizer["type"].as_str().and_then(Form::of_type);
            let not_covered = (!normalizer.is_null() && form.is_none())
                .then(|| format!("its normalizer {} is not supported", shape(normalizer)));
            return match (byte_level(pre_tokenizer), not_covered) {
                (Ok((pattern, prefix)), None) => Ok(Self {
                    pattern,
                    spelling: Spelling::Bytes,
                    prefix,
                    form,
                    fallback_text: None,
                }),
                (steps, not_covered) => {
                    let reasons = not_covered.into_iter().chain(steps.err());
                    Err(reasons.collect::<Vec<_>>().join(" and "))
                }
            };
        }
        let text = |prefix, each_space| Self {
            pattern: Pattern::Pieces { each_space },
            spelling: Spelling::Text,
            prefix,
            form: None,
            fallback_text: None,
        };
        if normalizer.is_null() {
            let (prefix, each_space) =
                metaspace(pre_tokenizer).ok_or_else(|| not_supported(pre_tokenizer))?;
            return Ok(text(prefix, each_space));
        }
        let (prefix, other_space) = spaces_replaced(normalizer)
            .ok_or_else(|| format!("its normalizer {} is not supported", shape(normalizer)))?;
        // Has no effect, because neither spaces nor what the normalizer replaces like spaces are left.
        let splits_at_spaces = pre_tokenizer["type"] == "Split"
            && pre_tokenizer["pattern"]["String"]
                .as_str()
                .is_some_and(|text| text == " " || Some(text) == other_space)
            && pre_tokenizer["invert"] != true;
        if !pre_tokenizer.is_null() && !splits_at_spaces {
            return Err(not_supported(pre_tokenizer));
        }
        Ok(Self {
            fallback_text: other_space.map(str::to_owned),
            ..text(prefix, false)
        })
    }
}

fn not_supported(pre_tokenizer: &Value) -> String {
    if pre_tokenizer.is_null() {
        "it has no pre-tokenizer".to_owned()
    } else {
        format!(
            "its pre-tokenizer {} is not supported",
            shape(pre_tokenizer)
        )
    }
}

/// Whether a pre-tokenizer maps bytes to letters.
pub(crate) fn is_byte_level(pre_tokenizer: &Value) -> bool {
    let maps_bytes = |part: &Value| part["type"] == "ByteLevel";
    let members = pre_tokenizer["pretokenizers"].as_array();
    maps_bytes(pre_tokenizer) || members.is_some_and(|members| members.iter().any(maps_bytes))
}

/// The pattern of a pre-tokenizer that maps bytes to letters, and the prefix of texts.
///
/// # Errors
/// The pre-tokenizer has a step that this engine does not implement.
fn byte_level(pre_tokenizer: &Value) -> Result<(Pattern, Prefix), String> {
    let (steps, prefix) = steps_and_prefix(parts_of(pre_tokenizer), Vec::new())?;
    if steps.is_empty() {
        return Err("its pre-tokenizer does not split texts".to_owned());
    }
    Ok((Pattern::of(steps)?, prefix))
}

/// The steps of a pre-tokenizer whose first one leaves nothing but white space between words.
///
/// # Errors
/// The first step is another one, or this crate does not implement a step.
pub(crate) fn steps_between_white_space(pre_tokenizer: &Value) -> Result<Vec<Step>, String> {
    let (first, others) = parts_of(pre_tokenizer)
        .split_first()
        .ok_or("its pre-tokenizer has no steps")?;
    let is_removed = first["behavior"] == "Removed" && first["invert"] == true;
    if first["type"] != "Split" || !is_removed {
        return Err(format!(
            "its pre-tokenizer {} does not remove whitespace",
            shape(first)
        ));
    }
    let step = step_of_split(first)?;
    if !step.separates_at_white_space()? {
        return Err("its pre-tokenizer Split removes more than white space".to_owned());
    }
    steps_and_prefix(others, vec![step]).map(|(steps, _)| steps)
}

/// The members of a sequence, or the only step.
fn parts_of(pre_tokenizer: &Value) -> &[Value] {
    match pre_tokenizer["pretokenizers"].as_array() {
        Some(parts) => parts,
        None => std::slice::from_ref(pre_tokenizer),
    }
}

/// The steps of all parts, after some others, and the prefix of texts.
///
/// # Errors
/// This engine does not implement a step.
fn steps_and_prefix(parts: &[Value], before: Vec<Step>) -> Result<(Vec<Step>, Prefix), String> {
    let (mut steps, mut prefix, mut are_bytes) = (before, Prefix::None, false);
    for part in parts {
        let step = match part["type"].as_str().unwrap_or_default() {
            "ByteLevel" if are_bytes => {
                return Err("its pre-tokenizer maps bytes to letters twice".to_owned());
            }
            "ByteLevel" => {
                if part["add_prefix_space"].as_bool().unwrap_or(true) {
                    // After another step, each of its words would get a space.
                    if !steps.is_empty() {
                        return Err(
                            "its pre-tokenizer ByteLevel adds a space to each word".to_owned()
                        );
                    }
                    prefix = Prefix::BeforeSplit;
                }
                if part["use_regex"].as_bool().unwrap_or(true) {
                    steps.push(Step::new(Finds::Regex(GPT2_PATTERN.to_owned())));
                }
                are_bytes = true;
                continue;
            }
            "Split" => split(part)?,
            "Digits" => Step::new(Finds::Digits {
                each: part["individual_digits"].as_bool().unwrap_or(false),
            }),
            "Punctuation" => match part["behavior"].as_str().unwrap_or("Isolated") {
                "Isolated" => Step::new(Finds::Punctuation { each: true }),
                "Contiguous" => Step::new(Finds::Punctuation { each: false }),
                behavior => return Err(format!("its pre-tokenizer Punctuation is {behavior}")),
            },
            _ => return Err(not_supported(part)),
        };
        steps.push(Step {
            is_on_bytes: are_bytes,
            ..step
        });
    }
    Ok((steps, prefix))
}

/// The step of a `Split`, if its matches are words, and so is the text between them.
///
/// # Errors
/// This engine does not implement it.
fn split(part: &Value) -> Result<Step, String> {
    let step = step_of_split(part)?;
    let is_inverted = part["invert"] == true;
    match part["behavior"].as_str().unwrap_or_default() {
        "Isolated" => Ok(step),
        // Nothing is left between matches.
        "Removed" if is_inverted && step.is_total()? => Ok(step),
        behavior => Err(format!(
            "its pre-tokenizer Split is {behavior}{}",
            if is_inverted { ", inverted" } else { "" }
        )),
    }
}

/// The step that finds the pattern of a `Split`.
///
/// # Errors
/// It has none.
fn step_of_split(part: &Value) -> Result<Step, String> {
    let pattern = &part["pattern"];
    match (pattern["Regex"].as_str(), pattern["String"].as_str()) {
        (Some(regex), _) => Ok(Step::new(Finds::Regex(regex.to_owned()))),
        (None, Some(text)) => Ok(Step::new(Finds::Text(text.to_owned()))),
        (None, None) => Err("its pre-tokenizer Split has no pattern".to_owned()),
    }
}

/// The prefix of a normalizer that only writes spaces as SentencePiece does, and another text that it replaces by the
/// same mark before, as ChatGLM does.
fn spaces_replaced(normalizer: &Value) -> Option<(Prefix, Option<&str>)> {
    fn replaced(part: &Value) -> Option<&str> {
        let is_marked = part["type"] == "Replace" && part["content"] == SPACE_MARK;
        part["pattern"]["String"].as_str().filter(|_| is_marked)
    }
    let replaces = |part: &Value| replaced(part) == Some(" ");
    let prepends = |part: &Value| part["type"] == "Prepend" && part["prepend"] == SPACE_MARK;
    if replaces(normalizer) {
        return Some((Prefix::None, None));
    }
    match &normalizer["normalizers"].as_array()?[..] {
        [only] if replaces(only) => Some((Prefix::None, None)),
        [first, second] if prepends(first) && replaces(second) => Some((Prefix::Always, None)),
        [first, second] if replaces(second) => {
            let text = replaced(first)?;
            let is_other = !text.is_empty() && !text.contains([' ', '\u{2581}']);
            is_other.then_some((Prefix::None, Some(text)))
        }
        _ => None,
    }
}

/// The prefix of a pre-tokenizer that writes spaces as SentencePiece does, and whether it splits
/// before each space.
fn metaspace(pre_tokenizer: &Value) -> Option<(Prefix, bool)> {
    if pre_tokenizer["type"] != "Metaspace" || pre_tokenizer["replacement"] != SPACE_MARK {
        return None;
    }
    let prefix = match pre_tokenizer["prepend_scheme"].as_str()? {
        "always" => Prefix::UnlessThere,
        "first" => Prefix::FirstUnlessThere,
        "never" => Prefix::None,
        _ => return None,
    };
    Some((prefix, pre_tokenizer["split"].as_bool().unwrap_or(true)))
}

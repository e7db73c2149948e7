//! Names the component that the crate cannot read. The crate's own message for an unknown type
//! only lists the types that it tried.

use serde::Deserialize;
use serde_json::Value;
use tokenizers::{
    DecoderWrapper, ModelWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper,
};

use crate::cause::Cause;

/// A kind of component: its key in the file, the key of the members of a sequence, and a function
/// that returns whether a component can be read.
type Kind = (&'static str, &'static str, fn(&Value) -> bool);

const KINDS: [Kind; 5] = [
    ("normalizer", "normalizers", can_read::<NormalizerWrapper>),
    (
        "pre_tokenizer",
        "pretokenizers",
        can_read::<PreTokenizerWrapper>,
    ),
    (
        "post_processor",
        "processors",
        can_read::<PostProcessorWrapper>,
    ),
    ("decoder", "decoders", can_read::<DecoderWrapper>),
    ("model", "", can_read::<ModelWrapper>),
];

fn can_read<T: for<'de> Deserialize<'de>>(component: &Value) -> bool {
    T::deserialize(component).is_ok()
}

/// The error for the unreadable component of `file`; `None` if all components can be read.
pub(super) fn error_of(file: &Value) -> Option<Cause> {
    let (key, component) = KINDS.iter().find_map(|&kind| {
        let component = &file[kind.0];
        let unknown = (!component.is_null()).then(|| unknown_in(component, kind))?;
        Some((kind.0, unknown?))
    })?;
    let of_type = match component["type"].as_str() {
        Some(name) => format!("the type {name:?}"),
        None => "no type".to_owned(),
    };
    Some(
        format!(
            "its {key} has a component with {of_type}, which the tokenizers library does not know with these settings"
        )
        .into(),
    )
}

/// The first component that cannot be read: `component` itself or one of its members.
fn unknown_in(component: &Value, kind: Kind) -> Option<&Value> {
    let (_, members, can_read) = kind;
    if can_read(component) {
        return None;
    }
    let mut members = component[members].as_array().into_iter().flatten();
    let unknown = members.find_map(|member| unknown_in(member, kind));
    Some(unknown.unwrap_or(component))
}

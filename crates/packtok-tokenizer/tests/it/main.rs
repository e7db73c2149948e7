//! The tests of the crate's public interface, in one binary.

mod builtin;
mod engines;
mod fast;
mod patterns;
mod tekken;
mod tokenizer;
mod wordwise;

use serde_json::Value;

/// The tokenizer.json of a built-in tokenizer.
fn builtin_file(name: &str) -> Value {
    serde_json::from_str(&packtok_tokenizer::builtin_json(name).unwrap()).unwrap()
}

/// Returns the first value in the thorough run, otherwise the second, as `tests/support/extent.py` does.
fn extent<T>(all_of_it: T, some_of_it: T) -> T {
    match std::env::var_os("PACKTOK_THOROUGH") {
        Some(set) if set == "1" => all_of_it,
        _ => some_of_it,
    }
}

mod agreement;
mod documents;
mod filters;
mod limits;
mod meter;

use std::cell::RefCell;
use std::collections::HashMap;

use super::*;

fn text(pattern: &str, line: &str) -> std::result::Result<String, BadDocument> {
    text_of_bytes(pattern, line.as_bytes())
}

/// Caches compiled patterns: the property tests run thousands of lines.
fn compiled(pattern: &str) -> Field {
    thread_local! {
        static FIELDS: RefCell<HashMap<String, Field>> = RefCell::default();
    }
    let compile = || Field::compile(pattern).unwrap();
    FIELDS.with_borrow_mut(|fields| {
        fields
            .entry(pattern.to_owned())
            .or_insert_with(compile)
            .clone()
    })
}

fn text_of_bytes(pattern: &str, line: &[u8]) -> std::result::Result<String, BadDocument> {
    let field = compiled(pattern);
    let mut extractor = field.extractor();
    let answer = extractor.text(line).map(str::to_owned);
    let general = general_text(&field, &mut Val::Null, line).map(str::to_owned);
    assert_eq!(
        answer, general,
        "the two paths differ for {pattern} on {line:?}"
    );
    answer
}

fn complaint(pattern: &str, line: &str) -> String {
    text(pattern, line).unwrap_err().to_string()
}

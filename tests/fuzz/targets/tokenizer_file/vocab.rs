//! Generates the ids of a vocabulary.

use serde_json::{Map, Value, json};

use crate::source::Source;

/// The vocabulary of these tokens; in most cases ids are consecutive.
pub(crate) fn numbered(source: &mut Source, tokens: &[String]) -> Value {
    let mut places = Map::new();
    for token in tokens {
        let place = places.len();
        places.entry(token.clone()).or_insert(place.into());
    }
    let mut by_place: Vec<(String, Value)> = places.into_iter().collect();
    by_place.sort_by_key(|(_, place)| place.as_u64());
    let ids = ids(source, by_place.len());
    let names = by_place.into_iter().map(|(name, _)| name);
    names.zip(ids).collect::<Map<String, Value>>().into()
}

/// Ids for `last` tokens.
fn ids(source: &mut Source, last: usize) -> Vec<Value> {
    let mut ids: Vec<Value> = (0..last).map(Value::from).collect();
    let way = source.below(24);
    match way {
        0 => source.shuffle(&mut ids),
        1 => ids = (0..last).map(|id| (3 * id + 7).into()).collect(),
        // Two tokens for each id.
        3 => ids = (0..last).map(|id| (id / 2).into()).collect(),
        2 => {
            // A gap.
            let start = source.below(last);
            let gap = 1 + source.below(5);
            for (id, value) in ids.iter_mut().enumerate().skip(start) {
                *value = (id + gap).into();
            }
        }
        _ => {}
    }
    if way < 6 {
        put_odd(source, &mut ids);
    }
    ids
}

/// Replaces a few ids with large, duplicate or invalid ones.
fn put_odd(source: &mut Source, ids: &mut [Value]) {
    let last = ids.len();
    let odd = [
        json!(0),
        json!(1),
        json!(last),
        json!(last + 1),
        json!(1 << 16),
        json!((1 << 21) - 1),
        json!(1 << 21),
        json!((1 << 24) - 1),
        json!(1 << 24),
        json!(1_000_000_000),
        json!((1u64 << 31) - 1),
        json!(1u64 << 31),
        json!(u32::MAX - 1),
        json!(u32::MAX),
    ];
    let broken = [
        json!(1u64 << 32),
        json!(u64::MAX),
        json!(-1),
        json!(1.0),
        json!("1"),
        Value::Null,
    ];
    for _ in 0..source.below(4) {
        let at = source.below(last);
        ids[at] = match source.below(20) {
            0 => source.pick(&broken),
            _ => source.pick(&odd),
        };
    }
}

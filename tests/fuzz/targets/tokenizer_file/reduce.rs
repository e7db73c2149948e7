//! Reduces a case to a small one that shows the same finding.

use serde_json::Value;

use crate::generate::Case;

/// Removes parts as long as `is_shown` holds for what is left.
pub(crate) fn reduced(mut case: Case, is_shown: &dyn Fn(&Case) -> bool) -> Case {
    loop {
        let before = size(&case);
        drop_items(&mut case, |case| &mut case.texts, is_shown);
        drop_items(&mut case, |case| &mut case.ids, is_shown);
        for at in 0..case.ids.len() {
            drop_items(&mut case, |case| &mut case.ids[at], is_shown);
        }
        for at in 0..case.texts.len() {
            let mut chars: Vec<char> = case.texts[at].chars().collect();
            drop_parts(&mut chars, &mut |chars| {
                let old = std::mem::replace(&mut case.texts[at], chars.iter().collect());
                let is_kept = is_shown(&case);
                if !is_kept {
                    case.texts[at] = old;
                }
                is_kept
            });
        }
        if let Ok(mut file) = serde_json::from_str::<Value>(&case.json) {
            reduce_value(&mut file, &mut Vec::new(), &mut case, is_shown);
        }
        if size(&case) == before {
            return case;
        }
    }
}

fn size(case: &Case) -> usize {
    let ids: usize = case.ids.iter().map(|ids| ids.len() + 1).sum();
    let texts: usize = case.texts.iter().map(|text| text.len() + 1).sum();
    case.json.len() + ids + texts
}

fn drop_items<T: Clone>(
    case: &mut Case,
    items: impl Fn(&mut Case) -> &mut Vec<T>,
    is_shown: &dyn Fn(&Case) -> bool,
) {
    let mut left = items(case).clone();
    drop_parts(&mut left, &mut |some| {
        let old = std::mem::replace(items(case), some.to_vec());
        let is_kept = is_shown(case);
        if !is_kept {
            *items(case) = old;
        }
        is_kept
    });
}

/// Removes halves, quarters and so on, down to single items, whenever `try_without` accepts what is left.
fn drop_parts<T: Clone>(items: &mut Vec<T>, try_without: &mut dyn FnMut(&[T]) -> bool) {
    let mut len = items.len().div_ceil(2);
    while len > 0 {
        let mut at = 0;
        while at < items.len() {
            let mut some = items.clone();
            some.drain(at..items.len().min(at + len));
            if try_without(&some) {
                *items = some
            } else {
                at += len
            }
        }
        len = if len == 1 { 0 } else { len.div_ceil(2) };
    }
}

/// Keeps this file in the case if it is shorter and still shows the finding.
fn try_file(file: &Value, case: &mut Case, is_shown: &dyn Fn(&Case) -> bool) -> bool {
    let old = std::mem::replace(&mut case.json, file.to_string());
    let is_kept = case.json.len() < old.len() && is_shown(case);
    if !is_kept {
        case.json = old;
    }
    is_kept
}

/// Reduces the value at `path` of the file.
fn reduce_value(
    file: &mut Value,
    path: &mut Vec<String>,
    case: &mut Case,
    is_shown: &dyn Fn(&Case) -> bool,
) {
    let pointer = path
        .iter()
        .map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1")))
        .collect::<String>();
    let Some(value) = file.pointer(&pointer).cloned() else {
        return;
    };
    let mut attempt = |new: Value| {
        let mut changed = file.clone();
        *changed.pointer_mut(&pointer).expect("it is there") = new;
        let is_kept = try_file(&changed, case, is_shown);
        if is_kept {
            *file = changed;
        }
        is_kept
    };
    if attempt(Value::Null) {
        return;
    }
    let keys: Vec<String> = match value {
        Value::Array(mut items) => {
            if let [only] = &items[..]
                && attempt(only.clone())
            {
                return reduce_value(file, path, case, is_shown);
            }
            drop_parts(&mut items, &mut |some| attempt(some.to_vec().into()));
            (0..items.len()).map(|at| at.to_string()).collect()
        }
        Value::Object(map) => {
            let steps = ["normalizers", "pretokenizers", "processors", "decoders"]
                .iter()
                .find_map(|key| map.get(*key));
            if let Some([only]) = steps.and_then(Value::as_array).map(Vec::as_slice)
                && attempt(only.clone())
            {
                return reduce_value(file, path, case, is_shown);
            }
            let mut entries: Vec<(String, Value)> = map.into_iter().collect();
            drop_parts(&mut entries, &mut |some| {
                attempt(
                    some.iter()
                        .cloned()
                        .collect::<serde_json::Map<_, _>>()
                        .into(),
                )
            });
            entries.into_iter().map(|(key, _)| key).collect()
        }
        Value::String(text) => {
            let mut chars: Vec<char> = text.chars().collect();
            drop_parts(&mut chars, &mut |some| {
                attempt(some.iter().collect::<String>().into())
            });
            return;
        }
        _ => return,
    };
    for key in keys {
        path.push(key);
        reduce_value(file, path, case, is_shown);
        path.pop();
    }
}

//! The fingerprint of a tokenizer.json: the identity of a tokenizer.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// SHA-256 of the parsed file. White space and the order of keys do not affect it.
pub(super) fn fingerprint(file: &Value) -> String {
    let mut canonical = Canonical {
        hasher: Sha256::new(),
        text: Vec::with_capacity(2 * HASHED_BYTES),
    };
    canonical.push(file);
    canonical.hasher.update(&canonical.text);
    format!("sha256:{}", hex(&canonical.hasher.finalize()))
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Minimum number of bytes per update of the hash, which is slow for a few bytes.
const HASHED_BYTES: usize = 1 << 16;

/// The canonical text of a value. The start of the text is already hashed.
struct Canonical {
    hasher: Sha256,
    text: Vec<u8>,
}

impl Canonical {
    fn push(&mut self, value: &Value) {
        match value {
            Value::Array(items) => {
                self.text.push(b'[');
                for item in items {
                    self.push(item);
                    self.text.push(b',');
                }
                self.text.push(b']');
            }
            Value::Object(map) => {
                let mut entries: Vec<(&String, &Value)> = map.iter().collect();
                entries.sort_unstable_by_key(|&(key, _)| key);
                self.text.push(b'{');
                for (key, value) in entries {
                    self.push_scalar(key);
                    self.text.push(b':');
                    self.push(value);
                    self.text.push(b',');
                }
                self.text.push(b'}');
            }
            scalar => self.push_scalar(scalar),
        }
    }

    fn push_scalar(&mut self, scalar: &impl Serialize) {
        serde_json::to_writer(&mut self.text, scalar).expect("memory takes all that is written");
        if self.text.len() >= HASHED_BYTES {
            self.hasher.update(&self.text);
            self.text.clear();
        }
    }
}

//! Limits the memory for a text, relative to the length of the text.
//!
//! A component that replaces parts of a text can turn a few bytes into gigabytes. No component of
//! a real tokenizer comes near this limit: the largest growth of Unicode's normal forms is
//! eleven-fold.

/// Bytes that every text may have after each step.
const BASE_BYTES: u64 = 4 << 20;

/// Bytes that it may have in addition, for each of its own.
const BYTES_PER_BYTE: u64 = 32;

/// A component of the tokenizer makes too much of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its {component} makes more than {max_bytes} bytes of {text_bytes} bytes of text")]
pub(crate) struct Excess {
    pub(crate) component: &'static str,
    pub(crate) text_bytes: u64,
    pub(crate) max_bytes: u64,
}

/// The maximum length of the results that the steps produce from a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    text_bytes: u64,
    max_bytes: u64,
}

impl Room {
    /// For a text of this length.
    pub(crate) const fn of(text_bytes: usize) -> Self {
        let text_bytes = text_bytes as u64;
        Self {
            text_bytes,
            max_bytes: BASE_BYTES.saturating_add(text_bytes.saturating_mul(BYTES_PER_BYTE)),
        }
    }

    /// Whether so many bytes are allowed.
    pub(crate) fn has(self, num_bytes: u64) -> bool {
        num_bytes <= self.max_bytes
    }

    /// The error if `component` makes more.
    pub(crate) fn excess(self, component: &'static str) -> Excess {
        Excess {
            component,
            text_bytes: self.text_bytes,
            max_bytes: self.max_bytes,
        }
    }
}

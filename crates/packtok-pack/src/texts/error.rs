//! The errors of this module.

/// Why texts or ids cannot be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub enum TextsError {
    /// One of several texts or id lists was rejected.
    #[error("{argument}[{item}]")]
    Item {
        /// Name of the argument.
        argument: &'static str,
        /// Index in the argument, from 0.
        item: usize,
        /// The error of the tokenizer.
        source: Box<packtok_tokenizer::Error>,
    },
    /// The engine panicked on one of several texts or id lists.
    #[error(
        "{argument}[{item}]: packtok panicked on this item; this is a bug, please report it with the item"
    )]
    ItemPanicked {
        /// Name of the argument.
        argument: &'static str,
        /// Index in the argument, from 0.
        item: usize,
    },
    /// An id to decode is not in the vocabulary.
    #[error("ids[{position}] is {found}, expected an id below {vocab_size}")]
    NoSuchId {
        /// Its index among all ids, from 0.
        position: usize,
        /// The id.
        found: u32,
        /// Highest id + 1.
        vocab_size: u64,
    },
    /// Offsets of id lists decrease.
    #[error(
        "offsets[{position}] is {found}, less than the preceding {before}; offsets must not decrease"
    )]
    OffsetsFall {
        /// Index of the offset that is too low, from 0.
        position: usize,
        /// Its value.
        found: usize,
        /// The preceding offset.
        before: usize,
    },
    /// Offsets of id lists exceed the number of ids.
    #[error("offsets end at {found}, but there are {num_ids} ids")]
    OffsetsBeyond {
        /// The last offset.
        found: usize,
        /// Number of ids.
        num_ids: usize,
    },
}

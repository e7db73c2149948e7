//! What can go wrong here, with the data to say so.

/// Why texts, or ids, cannot be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub enum TextsError {
    /// One of many texts, or of many lists of ids, is refused.
    #[error("{argument}[{item}]")]
    Item {
        /// Name of the argument that has it.
        argument: &'static str,
        /// Its position there, from 0.
        item: usize,
        /// What the tokenizer said.
        source: Box<packtok_tokenizer::Error>,
    },
    /// The engine panicked with one of many texts, or lists of ids.
    #[error(
        "{argument}[{item}]: packtok panicked on this item; this is a bug, please report it with the item"
    )]
    ItemPanicked {
        /// Name of the argument that has it.
        argument: &'static str,
        /// Its position there, from 0.
        item: usize,
    },
    /// An id that no token has, to be decoded.
    #[error("ids[{position}] is {found}, expected an id below {vocab_size}")]
    NoSuchId {
        /// Its position among all ids, from 0.
        position: usize,
        /// The id.
        found: u32,
        /// Highest id + 1.
        vocab_size: u64,
    },
    /// Offsets of lists of ids are out of order.
    #[error(
        "offsets[{position}] is {found}, less than the preceding {before}; offsets must not decrease"
    )]
    OffsetsFall {
        /// Position of the one that is too low, from 0.
        position: usize,
        /// What it is.
        found: usize,
        /// The one before it.
        before: usize,
    },
    /// Offsets of lists of ids go beyond the ids.
    #[error("offsets end at {found}, but there are {num_ids} ids")]
    OffsetsBeyond {
        /// The last offset.
        found: usize,
        /// Number of ids.
        num_ids: usize,
    },
}

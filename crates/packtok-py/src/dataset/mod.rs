//! Bindings of `packtok-dataset`: files of tokens, their items, batches and orders.

pub(crate) mod block_options;
pub(crate) mod blocks;
pub(crate) mod files;
pub(crate) mod mixture;
pub(crate) mod order;
pub(crate) mod origin;
pub(crate) mod plans;
pub(crate) mod reader;
pub(crate) mod rows;
pub(crate) mod texts;

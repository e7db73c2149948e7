//! Bindings of `packtok-pack` and `packtok-corpus`: packing, shards, checks and scans of corpora.

pub(crate) mod names;
pub(crate) mod operations;
pub(crate) mod plugin;
pub(crate) mod records;
pub(crate) mod scans;
pub(crate) mod shards;
pub(crate) mod texts;

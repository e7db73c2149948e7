//! Plans, splits and the cache of them, against plain twins and on damaged files.

mod best_fit;
mod files;
mod megatron;
mod twins;

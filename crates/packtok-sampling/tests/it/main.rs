//! Plans, splits and the cache of them, against plain twins and on damaged files.

// A block of one piece is a list of one range, and meant as one.
#![allow(clippy::single_range_in_vec_init)]

mod best_fit;
mod cache;
mod files;
mod sampling;
mod split;
mod twins;
mod whole_documents;

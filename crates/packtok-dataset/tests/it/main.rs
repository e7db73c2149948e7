//! Plans, splits and their cache, compared with plain reference implementations and tested on
//! damaged files.

// A block with one piece is a list of one range; that is intended.
#![allow(clippy::single_range_in_vec_init)]

mod best_fit;
mod cache;
mod files;
mod reference;
mod sampling;
mod split;
mod texts;
mod whole_documents;

//! The tests of the crate's public interface, in one binary.

mod fixture;
mod pack;
mod resumed;
mod shards;

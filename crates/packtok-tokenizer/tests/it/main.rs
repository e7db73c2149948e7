//! The tests of the crate's public interface, in one binary.

mod builtin;
mod engines;
mod fast;
mod patterns;
mod tekken;
mod tokenizer;
mod wordwise;

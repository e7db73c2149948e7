//! Unifies features of dependencies: this crate has no code, and its `Cargo.toml` lists the
//! dependencies whose features would otherwise differ between builds.
#![forbid(unsafe_code)]

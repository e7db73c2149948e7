//! Bindings of `packtok-store`: objects in stores, and files at URLs that Python reads.

pub(crate) mod foreign;
pub(crate) mod objects;

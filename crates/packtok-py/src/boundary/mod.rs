//! State and conversions that all bindings share: arrays, calls of Python, errors, memory, progress.

pub(crate) mod allocator;
pub(crate) mod arrays;
pub(crate) mod calls;
pub(crate) mod error;
pub(crate) mod integers;
pub(crate) mod memory;
pub(crate) mod monitor;
pub(crate) mod process;
pub(crate) mod strings;
pub(crate) mod token_formats;
pub(crate) mod values;
pub(crate) mod views;

//! Bindings of `packtok-reshape`: token files to other files, and folders of samples.

pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod mds;
pub(crate) mod sample;
pub(crate) mod shuffle;
pub(crate) mod steps;
pub(crate) mod tokens;

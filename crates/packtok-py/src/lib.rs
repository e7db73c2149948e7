//! Python bindings: registers the classes and functions of the other modules.

mod allocator;
mod arrays;
mod block_options;
mod blocks;
mod calls;
mod choice;
mod convert;
mod cpus;
mod error;
mod foreign;
mod integers;
mod json;
mod manifest;
mod mds;
mod memory;
mod mixture;
mod monitor;
mod names;
mod operations;
mod order;
mod origin;
mod panics;
mod plans;
mod plugin;
mod proof;
mod reader;
mod reshape;
mod rows;
mod sample;
mod scans;
mod shards;
mod stores;
mod stream;
mod stream_samples;
mod texts;
mod tokenizer;
mod tokens;
mod views;

use pyo3::prelude::*;

/// packtok's compiled core.
#[pymodule(gil_used = false)]
fn _packtok(module: &Bound<'_, PyModule>) -> PyResult<()> {
    panics::hush_contained();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("TOKENIZERS_VERSION", packtok_tokenizer::TOKENIZERS_VERSION)?;
    module.add("KEPT_NOTE", packtok_pack::KEPT)?;
    error::register(module)?;
    foreign::register();
    tokenizer::register(module)?;
    module.add_class::<reader::PyPbinReader>()?;
    module.add_class::<texts::PyTexts>()?;
    module.add_class::<origin::PyOrigin>()?;
    module.add_class::<blocks::PyBlocks>()?;
    block_options::register(module)?;
    arrays::register(module)?;
    manifest::register(module)?;
    mds::register(module)?;
    mixture::register(module)?;
    module.add_class::<order::PyPermutation>()?;
    module.add_class::<order::PyOrder>()?;
    names::register(module)?;
    plans::register(module)?;
    choice::register(module)?;
    cpus::register(module)?;
    operations::register(module)?;
    proof::register(module)?;
    reshape::register(module)?;
    sample::register(module)?;
    scans::register(module)?;
    shards::register(module)?;
    stores::register(module)?;
    convert::register(module)?;
    tokens::register(module)?;
    calls::register(module)?;
    stream::register(module)
}

//! Python bindings: registers the classes and functions of the other modules.

mod boundary;
mod dataset;
mod pack;
mod reshape;
mod store;
mod stream;
mod tokenizer;

use pyo3::prelude::*;

/// packtok's compiled core.
#[pymodule(gil_used = false)]
fn _packtok(module: &Bound<'_, PyModule>) -> PyResult<()> {
    boundary::panics::hush_contained();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("TOKENIZERS_VERSION", packtok_tokenizer::TOKENIZERS_VERSION)?;
    module.add("KEPT_NOTE", packtok_pack::KEPT)?;
    boundary::error::register(module)?;
    store::foreign::register();
    tokenizer::register(module)?;
    module.add_class::<dataset::reader::PyPbinReader>()?;
    module.add_class::<pack::texts::PyTexts>()?;
    module.add_class::<dataset::origin::PyOrigin>()?;
    module.add_class::<dataset::blocks::PyBlocks>()?;
    dataset::block_options::register(module)?;
    boundary::arrays::register(module)?;
    dataset::manifest::register(module)?;
    reshape::mds::register(module)?;
    dataset::mixture::register(module)?;
    module.add_class::<dataset::order::PyPermutation>()?;
    module.add_class::<dataset::order::PyOrder>()?;
    pack::names::register(module)?;
    dataset::plans::register(module)?;
    boundary::choice::register(module)?;
    boundary::cpus::register(module)?;
    pack::operations::register(module)?;
    tokenizer::proof::register(module)?;
    reshape::shuffle::register(module)?;
    reshape::sample::register(module)?;
    pack::scans::register(module)?;
    pack::shards::register(module)?;
    store::objects::register(module)?;
    reshape::convert::register(module)?;
    reshape::tokens::register(module)?;
    boundary::calls::register(module)?;
    stream::register(module)
}

//! Python bindings: lists the classes, functions and constants that the other modules define.

mod boundary;
mod dataset;
mod pack;
mod reshape;
mod store;
mod stream;
mod tokenizer;

/// packtok's compiled core.
#[pyo3::pymodule(gil_used = false)]
mod _packtok {
    use packtok_pack::shard::folder;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::boundary::arrays::mask_of_item;
    #[pymodule_export]
    use crate::boundary::calls::wait_for_stream_calls;
    use crate::boundary::error::{self, DocumentError};
    #[pymodule_export]
    use crate::boundary::error::{PacktokError, PbinFormatError, TokenizerError};
    use crate::boundary::process;
    #[pymodule_export]
    use crate::boundary::process::available_cpus;
    use crate::boundary::strings;
    #[pymodule_export]
    use crate::boundary::strings::string_access;
    #[pymodule_export]
    use crate::dataset::blocks::PyBlocks;
    #[pymodule_export]
    use crate::dataset::files::{
        indexed_files, largest_ids, loss_mask_path, raw_entries, write_manifest,
    };
    #[pymodule_export]
    use crate::dataset::mixture::{PyMixture, fill_from};
    #[pymodule_export]
    use crate::dataset::order::{PyOrder, PyPermutation};
    #[pymodule_export]
    use crate::dataset::origin::PyOrigin;
    #[pymodule_export]
    use crate::dataset::plans::{find_or_plan, find_or_split};
    #[pymodule_export]
    use crate::dataset::reader::PyPbinReader;
    #[pymodule_export]
    use crate::dataset::texts::PyDocumentTexts;
    #[pymodule_export]
    use crate::pack::names::{
        column_names, is_corpus_name, marker_name, natural_sorted, shard_name,
    };
    #[pymodule_export]
    use crate::pack::operations::{
        merge, pack, publish_bytes, verify, verify_corpus, verify_origins, write_raw_index,
    };
    #[pymodule_export]
    use crate::pack::records::{source_record, source_rows};
    #[pymodule_export]
    use crate::pack::scans::{compare_engines, count_tokens, describe_corpus};
    #[pymodule_export]
    use crate::pack::shards::{
        checked_reject_limit, find_marker, join_shards, list_shards, pack_shard, plan_shards,
        read_plan, report_of_marker,
    };
    #[pymodule_export]
    use crate::pack::texts::PyTexts;
    #[pymodule_export]
    use crate::reshape::convert::{
        convert_tokens, find_token_marker, plan_difference, write_packed_rows,
    };
    #[pymodule_export]
    use crate::reshape::diff::first_difference_of;
    #[pymodule_export]
    use crate::reshape::mds::{
        _reopen_mds, PyMdsReader, PyMdsWriter, context_masks, import_mds, mds_marker,
        publish_mds_index,
    };
    #[pymodule_export]
    use crate::reshape::sample::{draw_samples, keeps_samples, pack_samples};
    #[pymodule_export]
    use crate::reshape::shuffle::{
        PyPbinFilter, chunk_seed, read_file_list, shuffle_files, shuffled_order,
    };
    #[pymodule_export]
    use crate::reshape::steps::PyReshaper;
    #[pymodule_export]
    use crate::reshape::tokens::{
        listed_files, npy_files, split_tokens, token_facts, token_plan, written_list,
    };
    use crate::store::foreign;
    #[pymodule_export]
    use crate::store::objects::{
        delete_object, download, is_store_url, is_url, list_objects, object_bytes, upload,
        user_cache,
    };
    #[pymodule_export]
    use crate::stream::{PyStream, check_stream, corpus_files, describe_stream};
    #[pymodule_export]
    use crate::tokenizer::proof::on_engine_check;
    #[pymodule_export]
    use crate::tokenizer::{
        PyTokenizer, appended_id, builtin_tokenizer, presence_of_tokens, read_tokenizer,
        with_tokens,
    };

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name in Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    const TOKENIZERS_VERSION: &str = packtok_tokenizer::TOKENIZERS_VERSION;
    #[pymodule_export]
    const KEPT_NOTE: &str = packtok_pack::KEPT;
    #[pymodule_export]
    const OUTPUT_EXISTS: &str = error::OUTPUT_EXISTS;
    #[pymodule_export]
    const PLAN_NAME: &str = folder::PLAN;
    #[pymodule_export]
    const PLAN_TOKENIZER_NAME: &str = folder::TOKENIZER;
    #[pymodule_export]
    const SHARD_PREFIX: &str = folder::SHARD_PREFIX;
    #[pymodule_export]
    const REJECTS_SUFFIX: &str = folder::REJECTS_SUFFIX;
    #[pymodule_export]
    const PROFILE_TOKENS: u64 = packtok_dataset::texts::profile::SAMPLE_TOKENS;

    /// Sets up the process, finds out how strings are read, and adds the two values that are not constants.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        process::hush_contained();
        strings::layout(module.py())?;
        foreign::use_for_all();
        module.add("DocumentError", DocumentError::class(module.py())?)?;
        module.add("TOKEN_FORMATS", packtok_formats::TokenFormat::NAMES)
    }
}

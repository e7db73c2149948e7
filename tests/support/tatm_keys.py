"""Keys of metadata files that tatm accepts."""

from __future__ import annotations

# All keys that tatm 0.2.2 knows; tatm refuses others.
TATM_KEYS = {
    "name",
    "dataset_path",
    "description",
    "date_downloaded",
    "download_source",
    "data_content",
    "content_field",
    "corpuses",
    "corpus_separation_strategy",
    "corpus_data_dir_parent",
    "tokenized_info",
}
TATM_TOKENIZED_KEYS = {
    "tokenizer",
    "file_prefix",
    "dtype",
    "file_extension",
    "parent_datasets",
    "vocab_size",
    "tatm_version",
    "tokenizers_version",
}

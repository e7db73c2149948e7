"""Runs one of Modalities' data commands by its API, in Modalities' own environment.

The same calls as ``modalities data create_raw_index`` and ``modalities data pack_encoded_data``, without the
command line's other imports. Usage: ``modalities_data.py index|pack SRC IDX DST TOKENIZER``.
"""

import sys
from pathlib import Path

from modalities.api import FileExistencePolicy, create_raw_data_index, pack_encoded_data


def main() -> None:
    command, src, index, dst, tokenizer = sys.argv[1:]
    if command == "index":
        create_raw_data_index(Path(src), Path(index), FileExistencePolicy.OVERRIDE)
        return
    settings = {
        "src_path": src,
        "index_path": index,
        "dst_path": dst,
        "jq_pattern": ".text",
        "num_cpus": 1,
        "eod_token": "<|endoftext|>",
        "processing_batch_size": 1000,
        "raw_samples_queue_size": 300,
        "processed_samples_queue_size": 300,
    }
    config = {
        "component_key": "tokenizer",
        "variant_key": "pretrained_hf_tokenizer",
        "config": {"pretrained_model_name_or_path": tokenizer, "padding": False, "truncation": False},
    }
    pack_encoded_data({"settings": settings, "tokenizer": config}, FileExistencePolicy.OVERRIDE)


if __name__ == "__main__":
    main()

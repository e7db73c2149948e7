"""Writes `tests/golden/llm_c` with the writers of llm.c and of NeMo AutoModel.

    python tests/golden/make_llm_c.py FOLDER DATA_COMMON.py NANOGPT_DATA_PROCESSOR.py

The last two are `dev/data/data_common.py` of llm.c (commit 16635d4) and `tools/nanogpt_data_processor.py` of
NeMo AutoModel. Writes into a new folder, because golden files never change.
"""

import importlib.util
import json
import sys
from itertools import chain
from pathlib import Path
from types import ModuleType

import numpy as np

DOCUMENT_LENGTHS = [5, 7, 1, 9, 17]
BOS = 3


def main(folder: Path, llm_c: ModuleType, nemo: ModuleType) -> None:
    """Writes all files, and the ids of their documents as JSON."""
    random = np.random.default_rng(20261127)
    documents = {}
    for name, model, token_bytes in (("gpt2", "gpt-2", 2), ("llama3", "llama-3", 4)):
        documents[name] = made(random, token_bytes)
        llm_c.write_datafile(str(folder / f"{name}.bin"), list(chain.from_iterable(documents[name])), model)
    for name, vocab_size, token_bytes in (("nemo_two", 50_257, 2), ("nemo_four", 200_000, 4)):
        documents[name] = made(random, token_bytes)
        writer = nemo.BinaryDataWriter(str(folder / f"{name}.bin"), BOS, vocab_size)
        for ids in documents[name]:
            writer.write(ids)
        del writer
    (folder / "documents.json").write_text(json.dumps(documents) + "\n")


def made(random: np.random.Generator, token_bytes: int) -> list[list[int]]:
    """Returns documents that start with BOS, which is nowhere else."""
    most = 50_000 if token_bytes == 2 else 1 << 31
    return [[BOS, *random.integers(BOS + 1, most, length - 1).tolist()] for length in DOCUMENT_LENGTHS]


def loaded(path: str) -> ModuleType:
    """Returns the module in a file."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(Path(sys.argv[1]), loaded(sys.argv[2]), loaded(sys.argv[3]))

"""Demonstrates faults of tatm 0.2.2 that need neither Ray nor a tokenizer, for `tatm.py`.

docs/guides/coming_from_tatm.md lists them as differences; packtok's tests show that it does not have them.
"""

import builtins
import os
import pickle
import types
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import default_collate

Tatm = types.SimpleNamespace
CONTEXT_LENGTH = 8


def show_faults(tatm: Tatm, folder: Path) -> None:
    """Prints each fault with its effect; prints also that a fault is gone."""
    folder.mkdir()
    for i, first in ((2, 20), (10, 100)):
        np.arange(first, first + CONTEXT_LENGTH + 2, dtype=np.uint16).tofile(folder / f"tokenized_{i}.bin")
    dataset = tatm.Dataset(str(folder / "tokenized"), CONTEXT_LENGTH)
    faults: dict[str, Callable[[], object]] = {
        "create-metadata without corpora": lambda: answer_all(tatm, folder, corpora=[]),
        "create-metadata with one corpus": lambda: answer_all(tatm, folder, corpora=["a"]),
        "create-metadata with configs": lambda: answer_all(tatm, folder, corpora=["a", "b"]),
        "an unknown key": lambda: tatm.Metadata(**metadata(), license="MIT"),
        "file 10 before file 2": lambda: first_token(dataset, 100),
        "padding belongs to the last document": lambda: padding_of(dataset),
        "tokens of padding count": lambda: zeros_count(tatm, folder),
        "a folder that was moved": lambda: moved(tatm, folder),
        "split val": lambda: dataset.set_split("val"),
        "masks of int64": lambda: mask_dtype(tatm, folder),
        "short items with chunked=False": lambda: short_item(tatm, folder),
        "ids that do not fit wrap": wrapped,
        "default collation": lambda: default_collate([dataset[0], dataset[1]]),
        "pickling closes the file": lambda: closed(dataset),
    }
    for name, show in faults.items():
        try:
            symptom = show()
        except Exception as error:  # any error is the fault
            symptom = f"{type(error).__name__}: {error}".splitlines()[0][:90]
        print(f"tatm, {name}: {symptom or 'NOT REPRODUCED'}")


def metadata() -> dict[str, Any]:
    fields = ("name", "dataset_path", "description", "date_downloaded", "download_source")
    return {**dict.fromkeys(fields, "x"), "data_content": "text"}


def answer_all(tatm: Tatm, folder: Path, corpora: list[str]) -> None:
    """Answers the questions with the defaults."""

    def answer(question: str) -> str:
        if "strategy" in question:
            return "configs"
        if "corpus" in question and "Parent" not in question:
            return next(names, "")
        return ""

    names, original = iter(corpora), builtins.input
    builtins.input = answer
    try:
        with chdir(folder), open(os.devnull, "w") as null:
            builtins_print, builtins.print = builtins.print, lambda *values, **_: null.write(str(values))
            try:
                tatm.create_metadata()
            finally:
                builtins.print = builtins_print
    finally:
        builtins.input = original


def first_token(dataset: Any, wrong: int) -> str:
    token = int(dataset[0].token_ids[0])
    return f"the first token is {token}" if token == wrong else ""


def padding_of(dataset: Any) -> str:
    ids = dataset[1].document_ids.tolist()
    return f"document ids of two tokens and six of padding: {ids}" if len(set(ids)) == 1 else ""


def zeros_count(tatm: Tatm, folder: Path) -> str:
    np.zeros(1000, np.uint16).tofile(folder / "zeros_0.bin")
    dataset = tatm.Dataset(str(folder / "zeros"), CONTEXT_LENGTH)
    return f"a file of nothing but padding has {dataset.num_tokens()} tokens, {len(dataset)} items"


def moved(tatm: Tatm, folder: Path) -> object:
    """Opens a dataset whose metadata has the path before the move."""
    info = {"tokenizer": "t", "file_prefix": str(folder / "before" / "tokenized")}
    return len(tatm.get_dataset(tatm.Metadata(**metadata(), tokenized_info=info), context_length=8))


def mask_dtype(tatm: Tatm, folder: Path) -> str:
    mask = tatm.Dataset(str(folder / "tokenized"), CONTEXT_LENGTH, create_doc_mask=True)[0].document_mask
    return f"{mask.dtype}, {mask.nbytes} bytes for {CONTEXT_LENGTH}²" if mask.dtype == torch.int64 else ""


def short_item(tatm: Tatm, folder: Path) -> str:
    item = tatm.Dataset(str(folder / "tokenized"), CONTEXT_LENGTH, chunked=False)[-1]
    return f"{len(item.token_ids)} token instead of {CONTEXT_LENGTH}"


def wrapped() -> str:
    """Assigns as tatm's writer does."""
    stored = np.zeros(1, np.uint16)
    stored[:] = np.array([70_000])
    return f"70000 is stored as {stored[0]}"


def closed(dataset: Any) -> str:
    _ = dataset[0]
    pickle.dumps(dataset)
    return "the array of the original is closed" if dataset.file_list[0][1].array is None else ""

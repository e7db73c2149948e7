"""Megatron Core's side of `loaders.py`: its .bin and .idx, `IndexedDataset` and `GPTDataset`."""

import itertools
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from loader_pbin import boundaries, eod_id, tokens
from loader_worker import CONTEXT_LENGTH, Arrays, Batches, Items
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import (
    IndexedDataset,
    IndexedDatasetBuilder,
    get_bin_path,
    get_idx_path,
)
from megatron.core.datasets.utils import Split
from torch.utils.data import default_collate


def prepare(corpus: Path, folder: Path) -> None:
    """Writes the corpus with one sequence per document, and again with one per block."""
    data, starts = tokens(corpus), boundaries(corpus)
    write(folder / "documents", data, starts)
    write(folder / "blocks", data, np.arange(0, len(data), CONTEXT_LENGTH))
    open_batches(corpus, folder)


def write(prefix: Path, data: Any, starts: Any) -> None:
    builder = IndexedDatasetBuilder(get_bin_path(str(prefix)), dtype=np.uint16)
    for start, stop in itertools.pairwise(starts):
        builder.add_document(data[start:stop], [int(stop - start)])
    builder.finalize(get_idx_path(str(prefix)))


def open_sequences(name: str, corpus: Path, folder: Path) -> Items:
    dataset = IndexedDataset(str(folder / name))
    return Items(dataset, len(dataset), lambda item: {"tokens": item})


def open_batches(corpus: Path, folder: Path, *, reset: bool = False) -> Batches:
    """Opens `GPTDataset`, which shuffles by itself, without the dense mask that it creates by default."""
    prefix, eod = str(folder / "documents"), eod_id(corpus)
    tokenizer = SimpleNamespace(
        eod=eod, pad=-1, vocab_size=eod + 1, special_tokens_dict={}, unique_identifiers={"tokenizer": "bench"}
    )
    config = GPTDatasetConfig(
        random_seed=0,
        sequence_length=CONTEXT_LENGTH,
        blend=([prefix], None),
        split="1,0,0",
        path_to_cache=str(folder / "cache"),
        tokenizer=tokenizer,
        reset_position_ids=reset,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
    )
    documents = IndexedDataset(prefix)
    dataset = GPTDataset(
        documents, prefix, np.arange(len(documents), dtype=np.int32), None, Split.train, config
    )
    fields = {"tokens": "input_ids", "labels": "labels"}
    if reset:
        fields["position_ids"] = "position_ids"

    def show(batch: dict[str, torch.Tensor]) -> Arrays:
        return {ours: batch[theirs].numpy() for theirs, ours in fields.items()}

    return Batches(
        lambda items: default_collate([dataset[i] for i in items]),
        len(dataset),
        show,
        documents=lambda: dataset.document_index,
    )


CASES = {
    "blocks": partial(open_sequences, "blocks"),
    "documents": partial(open_sequences, "documents"),
    "batches": open_batches,
    "with boundaries": partial(open_batches, reset=True),
}

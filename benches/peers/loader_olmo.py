"""OLMo-core's side of `loaders.py`: `NumpyFSLDataset` over raw tokens, its collator and its labels."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from loader_pbin import eod_id, tokens
from loader_worker import CONTEXT_LENGTH, Arrays, Batches
from olmo_core.data.collator import DataCollator
from olmo_core.data.numpy_dataset import NumpyFSLDataset
from olmo_core.data.utils import get_cumulative_document_lengths, get_labels


def prepare(corpus: Path, folder: Path) -> None:
    tokens(corpus).tofile(folder / "tokens.npy")


def open_batches(corpus: Path, folder: Path, *, boundaries: bool = False) -> Batches:
    eod = eod_id(corpus)
    dataset = NumpyFSLDataset(
        str(folder / "tokens.npy"),
        sequence_length=CONTEXT_LENGTH,
        pad_token_id=eod,
        eos_token_id=eod,
        vocab_size=eod + 1,
        dtype=np.uint16,
        include_instance_metadata=False,
        generate_doc_lengths=boundaries,
    )
    dataset.prepare()
    collate = DataCollator(pad_token_id=eod)

    def batch(items: Sequence[int]) -> dict[str, Any]:
        made = collate([dataset[i] for i in items])
        # The trainer's part of the work, with the functions it uses.
        made["labels"] = get_labels(made)
        if boundaries:
            made["cu_seqlens"] = get_cumulative_document_lengths(made["doc_lens"])
        return made

    def show(batch: dict[str, Any]) -> Arrays:
        return {name: batch[name].numpy() for name in ("input_ids", "labels", "cu_seqlens") if name in batch}

    return Batches(batch, len(dataset), show)


CASES = {"batches": open_batches, "with boundaries": partial(open_batches, boundaries=True)}

"""Modalities' side of `loaders.py`: its datasets over the same pbin, and its collator for GPT-2."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loader_worker import CONTEXT_LENGTH, Arrays, Batches, Items
from modalities.dataloader.dataset import PackedMemMapDatasetBase, PackedMemMapDatasetContinuous
from modalities.models.gpt2.collator import GPT2LLMCollateFn

KEY = "input_ids"


def blocks(corpus: Path) -> PackedMemMapDatasetContinuous:
    return PackedMemMapDatasetContinuous(
        raw_data_path=corpus,
        sample_key=KEY,
        block_size=CONTEXT_LENGTH + 1,
        reuse_last_target=True,
        load_index=False,
    )


def open_blocks(corpus: Path, folder: Path) -> Items:
    dataset = blocks(corpus)
    return Items(dataset, len(dataset), lambda item: {"tokens": item[KEY]})


def open_documents(corpus: Path, folder: Path) -> Items:
    dataset = PackedMemMapDatasetBase(raw_data_path=corpus, sample_key=KEY)
    return Items(dataset, len(dataset), lambda item: {"tokens": item[KEY]})


def open_batches(corpus: Path, folder: Path) -> Batches:
    dataset = blocks(corpus)
    collate = GPT2LLMCollateFn(sample_key=KEY, target_key="target_ids")

    def batch(items: Sequence[int]) -> Any:
        made = collate([dataset[i] for i in items])
        # Items are 32 bits wide, which embeddings accept; a loss needs int64 targets.
        return made.samples[KEY].long(), made.targets["target_ids"].long()

    def show(pair: Any) -> Arrays:
        return {"input_ids": pair[0].numpy(), "labels": pair[1].numpy()}

    return Batches(batch, len(dataset), show)


CASES = {"blocks": open_blocks, "documents": open_documents, "batches": open_batches}

"""litdata's side of `loaders.py`: `StreamingDataset` with `TokensLoader` over chunks on local disk."""

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from litdata import StreamingDataset, TokensLoader, optimize
from loader_pbin import boundaries, tokens
from loader_worker import CONTEXT_LENGTH, Arrays, Batches, Items
from torch.utils.data import default_collate

BLOCK = CONTEXT_LENGTH + 1
CHUNK_TOKENS = BLOCK * 4096


def prepare(corpus: Path, folder: Path) -> None:
    starts = boundaries(corpus).tolist()
    optimize(
        fn=partial(document, corpus),
        inputs=list(itertools.pairwise(starts)),
        output_dir=str(folder / "chunks"),
        chunk_size=CHUNK_TOKENS,
        item_loader=TokensLoader(),
        num_workers=1,
        keep_data_ordered=True,
    )


def document(corpus: Path, place: tuple[int, int]) -> torch.Tensor:
    return torch.from_numpy(tokens(corpus)[place[0] : place[1]].astype("int32"))


def streamed(folder: Path, *, shuffle: bool) -> StreamingDataset:
    return StreamingDataset(
        str(folder / "chunks"), item_loader=TokensLoader(block_size=BLOCK), shuffle=shuffle, drop_last=False
    )


def open_blocks(corpus: Path, folder: Path) -> Items:
    dataset = streamed(folder, shuffle=False)
    return Items(dataset, len(dataset), lambda item: {"tokens": item.numpy()})


def open_batches(corpus: Path, folder: Path) -> Batches:
    """Uses its own shuffled iteration, which is faster than items by index."""
    dataset = streamed(folder, shuffle=True)
    rows = forever(dataset)

    def batch(items: Sequence[int]) -> Any:
        stacked = default_collate([next(rows) for _ in items])
        return stacked[:, :-1].contiguous().long(), stacked[:, 1:].contiguous().long()

    def show(pair: Any) -> Arrays:
        return {"input_ids": pair[0].numpy(), "labels": pair[1].numpy()}

    return Batches(batch, len(dataset), show)


def forever(dataset: StreamingDataset) -> Iterator[torch.Tensor]:
    while True:
        yield from dataset


CASES = {"blocks": open_blocks, "batches": open_batches}

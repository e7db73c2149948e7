"""Which operator may follow which: the whole message about each order that is refused."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")
from stories import TOKENIZER

from packtok.stream import CheckpointableDataset, concat_datasets, interleave_datasets

Dataset = CheckpointableDataset
Operator = Callable[[Dataset], Dataset]

WITH_BUFFER: dict[str, Operator] = {
    "shuffle": lambda dataset: dataset.shuffle(3),
    "chunk": lambda dataset: dataset.chunk(4),
    "concat_chunk": lambda dataset: dataset.concat_chunk(4),
    "pack_chunk": lambda dataset: dataset.pack_chunk(4, strategy="best_fit"),
}
WITHOUT_BUFFER: list[Operator] = [
    lambda dataset: dataset.map(dict),
    lambda dataset: dataset.pad({"input_ids": 0}, 4),
    lambda dataset: dataset.add_bos_eos(1, 2),
    lambda dataset: dataset.take(3),
    lambda dataset: dataset.stride(2, 1),
    lambda dataset: dataset.enumerate(),
    lambda dataset: dataset.batch(2).batch(2),
    lambda dataset: dataset.batch(global_batch_size=4),
]


def samples(*, repeat: bool = False) -> Dataset:
    return Dataset.from_sequence([{"input_ids": [i, i]} for i in range(8)], repeat=repeat)


def refusal(apply: Callable[[Dataset], Any], dataset: Dataset) -> str:
    """Returns the message about an operator that cannot follow ``dataset``."""
    with pytest.raises(ValueError, match=r".") as raised:
        apply(dataset)
    return str(raised.value)


def test_only_operators_without_a_buffer_follow_distribute() -> None:
    rows = samples().distribute(4, rank=0, num_replicas=2)
    others: dict[str, Operator] = {
        "tokenize": lambda dataset: dataset.tokenize(TOKENIZER),
        "distribute": lambda dataset: dataset.distribute(4, rank=0, num_replicas=2),
    }
    for name, operator in {**WITH_BUFFER, **others}.items():
        expected = f"{name} cannot follow distribute, because ranks would have other buffers; put it before"
        assert refusal(operator, rows) == expected
        # Also if operators are between them.
        assert refusal(operator, rows.take(3).batch(2)) == expected
    for operator in WITHOUT_BUFFER:
        operator(rows)


def test_an_operator_that_drops_rows_or_runs_ahead_cannot_follow_distribute() -> None:
    rows = samples().distribute(4, rank=0, num_replicas=2)
    for name, argument in (("filter", dict), ("filter_map", dict), ("skip", 1)):
        assert refusal(methodcaller(name, argument), rows) == (
            f"{name} cannot follow distribute, because ranks would have different numbers of rows; put it "
            "before"
        )
    ahead = "a parallel function cannot follow distribute; put it before, or use map"
    for name in ("parallel_map", "parallel_filter", "parallel_filter_map"):
        assert refusal(methodcaller(name, dict), rows) == ahead
    assert refusal(lambda dataset: dataset.tokenize(dict), rows) == ahead
    assert refusal(Dataset.cache, rows) == "cache cannot follow distribute; put it before"
    divided = "a dataset is divided among ranks already; combine the datasets, then distribute"
    assert refusal(lambda dataset: dataset + samples(), rows) == divided
    assert refusal(lambda dataset: concat_datasets([samples(), dataset]), rows) == divided
    assert refusal(lambda dataset: interleave_datasets([samples(), dataset]), rows) == divided


def test_ranks_share_a_global_batch_equally() -> None:
    rows = samples().distribute(4, rank=0, num_replicas=2)
    assert refusal(lambda dataset: dataset.map(dict).batch(global_batch_size=3), rows) == (
        "global_batch_size is 3, expected a multiple of the 2 ranks"
    )
    assert refusal(Dataset.batch, rows) == "give either batch_size or global_batch_size"
    both = refusal(lambda dataset: dataset.batch(2, global_batch_size=4), rows)
    assert both == "give either batch_size or global_batch_size"


def test_no_buffer_follows_a_function_whose_outputs_are_in_states() -> None:
    outputs = samples().parallel_map(dict, 1, executor_type="thread", keep_outputs=True)
    for name, operator in WITH_BUFFER.items():
        expected = (
            f"{name} cannot follow a function with keep_outputs, because its buffer is computed again when a "
            "state is loaded; put it before the function"
        )
        assert refusal(operator, outputs) == expected
        # Also after operators, and if another stream is combined with it.
        assert refusal(operator, outputs.map(dict) + samples()) == expected
    for operator in WITHOUT_BUFFER:
        operator(outputs)


def test_only_a_stream_that_ends_has_a_cache() -> None:
    endless = "the stream has no end, so its cache would grow without limit; use take first"
    for dataset in (
        samples(repeat=True),
        samples(repeat=True).map(dict).batch(2),
        samples() + samples(repeat=True),
        interleave_datasets([samples(repeat=True), samples(repeat=True)]),
    ):
        assert refusal(Dataset.cache, dataset) == endless
    # An interleaved stream ends with the first of its streams.
    for dataset in (samples(repeat=True).take(3), interleave_datasets([samples(repeat=True), samples()])):
        dataset.cache()

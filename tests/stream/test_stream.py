"""Streams: their order, operators, errors and states, against plain versions and packtok's own files."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import pickle
import random
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ranks
import torch
from extent import extent
from stories import TOKENIZER, story
from stream_functions import exclaimed, exclaimed_if_even, is_even, noisy, random_number
from torch.utils.data import DataLoader

import packtok
from packtok.stream import (
    CheckpointableDataset,
    braceexpand,
    concat_datasets,
    interleave_datasets,
    merge_states,
    testing,
)

EOS, EOD = 0, "<|endoftext|>"


def write_lines(path: Path, texts: list[str]) -> str:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(path)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Returns files of 5, 3, 6 and 2 documents, each with the text ``file.index``."""
    folder = tmp_path_factory.mktemp("shards")
    lengths = enumerate([5, 3, 6, 2])
    return [write_lines(folder / f"{f}.jsonl", [f"{f}.{i}" for i in range(n)]) for f, n in lengths]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Returns three files of stories."""
    folder, rng = tmp_path_factory.mktemp("stories"), random.Random(3)
    lengths = enumerate([120, 7, 80])
    return [write_lines(folder / f"{f}.jsonl", [story(rng) for _ in range(n)]) for f, n in lengths]


@pytest.fixture(scope="module")
def tokenizer() -> packtok.Tokenizer:
    return packtok.Tokenizer.from_file(TOKENIZER)


class WithEos:
    """A tokenizer that only has special tokens."""

    bos_token_id = None
    eos_token_id = EOS


def texts(dataset: Any) -> str:
    return " ".join(sample["text"] for sample in dataset)


def rows(dataset: Any, column: str = "input_ids") -> list[list[int]]:
    return [sample[column].tolist() for sample in dataset]


def tutorial(paths: list[str], tokenizer: packtok.Tokenizer) -> CheckpointableDataset:
    """The pipeline of the tutorial, on a small scale."""
    files = CheckpointableDataset.from_files(paths, shuffle_shards=True, n_active_shards=2, repeat=True)
    tokens = files.tokenize(tokenizer).ensure_bos_eos(WithEos())
    return tokens.concat_chunk(32).shuffle(20).batch(4).enumerate().take(90)


# --- order ---


def test_files_are_read_in_turns_as_by_epochraft(shards: list[str]) -> None:
    two = "0.0 1.0 0.1 1.1 0.2 1.2 0.3 0.4 2.0 2.1 3.0 2.2 3.1 2.3 2.4 2.5"
    all_of_them = "0.0 1.0 2.0 3.0 0.1 1.1 2.1 3.1 0.2 1.2 2.2 0.3 2.3 0.4 2.4 2.5"
    assert texts(CheckpointableDataset.from_files(shards, n_active_shards=2)) == two
    for num_active in (4, 10):
        assert texts(CheckpointableDataset.from_files(shards, n_active_shards=num_active)) == all_of_them
    assert texts(CheckpointableDataset.from_files(shards)) == all_of_them


def test_paths_are_braces_globs_and_folders(shards: list[str]) -> None:
    folder = Path(shards[0]).parent
    from_files = CheckpointableDataset.from_files
    expected = texts(from_files(shards))
    for paths in (f"{folder}/{{0..3}}.jsonl", f"{folder}/*.jsonl", str(folder), folder):
        assert texts(from_files(paths)) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a", "a"),
        ("{a,b}", "a b"),
        ("x{a,b{1..2},}y{8..10}", "xay8 xay9 xay10 xb1y8 xb1y9 xb1y10 xb2y8 xb2y9 xb2y10 xy8 xy9 xy10"),
        ("{00..03}", "00 01 02 03"),
        ("{3..1}", "3 2 1"),
        ("{1..5..2}", "1 3 5"),
        ("{a..c}", "a b c"),
        ("{a}{}{b", "{a}{}{b"),
        (r"\{a,b\}", "{a,b}"),
        ("s3://b/{08..10}.jsonl", "s3://b/08.jsonl s3://b/09.jsonl s3://b/10.jsonl"),
    ],
)
def test_braces(pattern: str, expected: str) -> None:
    assert " ".join(braceexpand(pattern)) == expected


def test_epochs_repeat_every_sample_and_shuffle_files(shards: list[str]) -> None:
    files = CheckpointableDataset.from_files
    once = texts(files(shards, n_active_shards=2)).split()
    twice = texts(files(shards, n_active_shards=2, repeat=True).take(32)).split()
    assert twice == once + once
    shuffled = files(shards, n_active_shards=1, repeat=True, shuffle_shards=True, seed=7).take(16 * 20)
    epochs = [texts(shuffled).split()[16 * i : 16 * (i + 1)] for i in range(20)]
    assert all(sorted(epoch) == sorted(once) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 5


def test_sequences_and_iterables(tmp_path: Path) -> None:
    samples = [{"text": str(i)} for i in range(5)]
    assert texts(CheckpointableDataset.from_sequence(samples)) == "0 1 2 3 4"
    assert texts(CheckpointableDataset.from_sequence(samples, repeat=True).take(7)) == "0 1 2 3 4 0 1"
    assert texts(CheckpointableDataset.from_iterable(samples, repeat=True).take(7)) == "0 1 2 3 4 0 1"
    assert texts(CheckpointableDataset.from_iterable(iter(samples))) == "0 1 2 3 4"
    shuffled = CheckpointableDataset.from_sequence(samples, repeat=True, shuffle=True).take(50)
    found = texts(shuffled).split()
    assert all(sorted(found[i : i + 5]) == list("01234") for i in range(0, 50, 5))
    assert len({tuple(found[i : i + 5]) for i in range(0, 50, 5)}) > 3
    assert texts(CheckpointableDataset.from_sequence([])) == ""
    assert texts(CheckpointableDataset.from_files([])) == ""


@pytest.mark.parametrize(
    ("weights", "expected"),
    [(None, "abababab"), ([1.5, 1], "ababaababaab"), ([3, 1], "aabaaaba"), ([1, 0], "aaaa")],
)
def test_interleaving_two_datasets_is_that_of_epochraft(weights: list[float] | None, expected: str) -> None:
    named = [CheckpointableDataset.from_sequence([{"text": name}], repeat=True) for name in ("a", "b")]
    found = texts(interleave_datasets(named, weights).take(len(expected)))
    assert found.replace(" ", "") == expected


def test_interleaving_ends_with_the_first_and_rare_sources_come(tokenizer: packtok.Tokenizer) -> None:
    def source(name: str, length: int) -> CheckpointableDataset:
        return CheckpointableDataset.from_sequence([{"text": f"{name}{i}"} for i in range(length)])

    assert texts(interleave_datasets([source("a", 2), source("b", 9)])) == "a0 b0 a1 b1"
    rare = interleave_datasets([source("a", 40_000), source("b", 9)], [1, 1e-4])
    assert texts(rare).split()[:30_000].count("b0") == 1
    assert texts(concat_datasets([source("a", 2), source("b", 1)])) == "a0 a1 b0"
    assert texts(source("a", 1) + source("b", 2)) == "a0 b0 b1"
    for wrong, weights in (([], None), ([source("a", 1)], [1, 2]), ([source("a", 1)], [0])):
        with pytest.raises(ValueError, match=r"dataset|weight"):
            interleave_datasets(wrong, weights)
    with pytest.raises(ValueError, match="no datasets"):
        concat_datasets([])


# --- operators ---


def test_functions_of_samples(shards: list[str]) -> None:
    files = CheckpointableDataset.from_files(shards, n_active_shards=1)
    expected = texts(files).split()
    assert texts(files.map(lambda sample: {"text": sample["text"] + "!"})).split() == [
        f"{text}!" for text in expected
    ]
    even = [text for text in expected if text.endswith(("0", "2", "4"))]
    assert texts(files.filter(lambda sample: sample["text"][-1] in "024")).split() == even
    dropped = files.filter_map(lambda sample: sample if sample["text"][-1] in "024" else None)
    assert texts(dropped).split() == even
    with pytest.raises(ValueError, match="returned None"):
        list(files.map(lambda sample: None))


@pytest.mark.parametrize("executor_type", ["thread", "process"])
def test_parallel_functions_keep_the_order(shards: list[str], executor_type: Any) -> None:
    files = CheckpointableDataset.from_files(shards)
    options = {"max_workers": 2, "prefetch_factor": 3, "executor_type": executor_type}
    expected = [f"{text}!" for text in texts(files).split()]
    assert texts(files.parallel_map(exclaimed, **options)).split() == expected
    assert texts(files.parallel_filter(is_even, **options)).split() == [
        text for text in texts(files).split() if text[-1] in "024"
    ]
    assert len(texts(files.parallel_filter_map(exclaimed_if_even, ordered=False, **options)).split()) == 9


def test_threads_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=60)
    dataset = CheckpointableDataset.from_sequence(list(range(32)))

    def wait(sample: int) -> int:
        if sample in (0, 4):
            both.wait()
        return sample

    options = {"max_workers": 2, "prefetch_factor": 4, "executor_type": "thread"}
    assert list(dataset.parallel_map(wait, **options)) == list(range(32))  # type: ignore[arg-type]


def test_take_and_skip_divide_a_stream_into_two(shards: list[str]) -> None:
    dataset = CheckpointableDataset.from_files(shards, n_active_shards=2)
    for count in (0, 1, 5, 15, 16, 100):
        assert (
            texts(dataset.take(count)).split() + texts(dataset.skip(count)).split() == texts(dataset).split()
        )
    # A repeated stream skips once, and not in every epoch.
    repeated = CheckpointableDataset.from_sequence([{"text": str(i)} for i in range(3)], repeat=True)
    assert texts(repeated.skip(2).take(5)) == "2 0 1 2 0"
    assert texts(repeated.skip(7).take(2)) == "1 2"


def test_a_state_after_skip_names_no_sample_before_it() -> None:
    calls: list[int] = []

    def called(sample: dict[str, int]) -> dict[str, int]:
        calls.append(sample["n"])
        return sample

    dataset = CheckpointableDataset.from_sequence([{"n": i} for i in range(200)]).map(called).skip(100)
    with dataset.iter() as iterator:
        assert next(iterator) == {"n": 100}
        state = json.loads(json.dumps(iterator.state_dict()))
    calls.clear()
    with dataset.iter(state) as iterator:
        assert next(iterator) == {"n": 101}
    assert min(calls) >= 64


def test_each_lane_skips_its_first_samples_for_any_number_of_ranks() -> None:
    samples = CheckpointableDataset.from_sequence([{"n": i} for i in range(40)])
    for num_ranks in (1, 2, 4):
        rows = [samples.skip(3).distribute(4, rank, num_ranks).iter() for rank in range(num_ranks)]
        turns = [row["n"] for round_ in zip(*rows, strict=True) for row in round_]
        assert turns == [10 * lane + i for i in range(3, 10) for lane in range(4)]


def test_counting_and_batches() -> None:
    dataset = CheckpointableDataset.from_sequence([{"n": i} for i in range(7)])
    assert [sample["n"] for sample in dataset.take(3)] == [0, 1, 2]
    assert [sample["n"] for sample in dataset.stride(3, 1)] == [1, 4]
    assert [sample["step"] for sample in dataset.enumerate()] == list(range(7))
    assert [sample["n"].tolist() for sample in dataset.batch(3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [sample["n"].tolist() for sample in dataset.batch(3, drop_last=True)] == [[0, 1, 2], [3, 4, 5]]
    assert list(dataset.batch(4, collate_fn=len)) == [4, 3]
    numbered = list(dataset.batch(3).enumerate("batch"))
    assert [sample["batch"] for sample in numbered] == [0, 1, 2]
    for wrong in (lambda: dataset.stride(0, 0), lambda: dataset.stride(2, 2), lambda: dataset.batch(0)):
        with pytest.raises(ValueError, match="expected an integer"):
            wrong()
    with pytest.raises(ValueError, match="buffer_size"):
        dataset.shuffle(0)


def test_samples_of_the_user_are_not_changed() -> None:
    samples = [{"n": i} for i in range(3)]
    list(CheckpointableDataset.from_sequence(samples).enumerate())
    assert samples == [{"n": i} for i in range(3)]


def test_shuffle_serves_every_sample_once() -> None:
    dataset = CheckpointableDataset.from_sequence(list(range(100)))
    for size in (1, 10, 1000):
        found = list(dataset.shuffle(size))
        assert sorted(found) == list(range(100))
        assert (found == list(range(100))) == (size == 1)
        assert found == list(dataset.shuffle(size))
        assert size == 1 or found != list(dataset.shuffle(size, seed=1))
        assert all(found[i] <= i + size - 1 for i in range(100))


def test_tokenize_keeps_the_columns_and_adds_a_mask(tmp_path: Path, tokenizer: packtok.Tokenizer) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a b", "n": 3, "m": {"k": [1]}}\n{"body": "c"}\n')
    first = next(CheckpointableDataset.from_files(path).tokenize(tokenizer).iter())
    ids = tokenizer.encode("a b")
    assert (first["text"], first["n"], first["m"]) == ("a b", 3, {"k": [1]})
    assert first["input_ids"] == list(ids)
    assert first["attention_mask"] == [1] * len(ids)
    with pytest.raises(packtok.DocumentError, match=r"a.jsonl:2: byte 41: field \.\"?text"):
        list(CheckpointableDataset.from_files(path).tokenize(tokenizer))


def test_tokens_are_lists_in_the_order_of_epochraft_until_a_step_makes_tensors(
    tmp_path: Path, tokenizer: packtok.Tokenizer
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a b", "n": 3}\n')
    ids = tokenizer.encode("a b").tolist()
    mask = [1] * len(ids)
    for source in (
        CheckpointableDataset.from_files(path),
        CheckpointableDataset.from_files(path).map(dict),
        CheckpointableDataset.from_sequence([{"text": "a b", "n": 3}]),
    ):
        tokenized = source.tokenize(tokenizer)
        expected = {"text": "a b", "n": 3, "input_ids": ids, "attention_mask": mask}
        for dataset in (tokenized, tokenized.shuffle(2), tokenized.map(lambda sample: {**sample})):
            (found,) = dataset
            assert json.dumps(found) == json.dumps(expected)
        (longer,) = tokenized.map(lambda sample: {**sample, "input_ids": sample["input_ids"] + [EOS]})
        assert longer["input_ids"] == [*ids, EOS]
        (batch,) = tokenized.batch(1, collate_fn=list)
        assert batch == [expected]
        (batch,) = tokenized.batch(1)
        assert (batch["input_ids"].tolist(), batch["n"].tolist()) == ([ids], [3])
        (ended,) = tokenized.add_bos_eos(bos_token_id=1, eos_token_id=2)
        assert list(ended) == list(expected)
        assert isinstance(ended["input_ids"], torch.Tensor)
        assert ended["input_ids"].tolist() == [1, *ids, 2]
        (padded,) = tokenized.pad({"input_ids": 0}, 9)
        assert padded["input_ids"].tolist() == [*ids, *[0] * (9 - len(ids))]


def test_arguments_of_hugging_face_tokenizers_are_accepted_or_named(tokenizer: packtok.Tokenizer) -> None:
    source = CheckpointableDataset.from_sequence([{"text": "a b"}])
    ids = tokenizer.encode("a b").tolist()
    without_effect = {"padding": False, "verbose": False, "return_token_type_ids": False, "truncation": False}
    (found,) = source.tokenize(tokenizer, without_effect)
    assert found == {"text": "a b", "input_ids": ids, "attention_mask": [1] * len(ids)}
    for name, kind in {"pt": torch.Tensor, "np": np.ndarray}.items():
        tokenized = source.tokenize(tokenizer, {"return_tensors": name})
        (found,) = tokenized
        assert [type(found[column]) for column in ("input_ids", "attention_mask")] == [kind, kind]
        assert (found["input_ids"].tolist(), found["attention_mask"].tolist()) == ([ids], [[1] * len(ids)])
        (row,) = tokenized.map(dict).concat_chunk(len(ids))
        assert row["input_ids"].tolist() == ids
    (found,) = source.tokenize(tokenizer, {"return_attention_mask": False})
    assert list(found) == ["text", "input_ids"]
    with pytest.raises(ValueError, match=r"^return_tensors is 'tf', expected 'pt', 'np' or None$"):
        source.tokenize(tokenizer, {"return_tensors": "tf"})
    with pytest.raises(
        ValueError,
        match=r"^tokenizer_kwargs has padding='max_length', which packtok's engine does not support; leave "
        "it "
        "out, or give a callable$",
    ):
        source.tokenize(tokenizer, {"padding": "max_length", "verbose": True})


def test_samples_of_the_caller_stay_as_they_are() -> None:
    sample = {"array": np.arange(3), "list": [1, 2]}
    (found,) = CheckpointableDataset.from_sequence([sample]).enumerate()
    assert type(found["array"]) is np.ndarray
    assert list(sample) == ["array", "list"]


def test_missing_bos_and_eos_are_added_to_each_document(tmp_path: Path, tokenizer: packtok.Tokenizer) -> None:
    class Special:
        bos_token_id, eos_token_id = 5, 6

    class Same:
        bos_token_id = eos_token_id = 5

    def of(ids: list[int]) -> CheckpointableDataset:
        return CheckpointableDataset.from_sequence([{"input_ids": ids, "attention_mask": [1] * len(ids)}])

    for ids, special, expected in (
        ([1], Special(), [5, 1, 6]),
        ([5, 1, 6], Special(), [5, 1, 6]),
        ([5, 1], Special(), [5, 1, 6]),
        ([1], Same(), [1, 5]),
        ([5, 1], Same(), [5, 1]),
        ([1], WithEos(), [1, EOS]),
    ):
        (found,) = of(ids).ensure_bos_eos(special)
        assert found["input_ids"].tolist() == expected
        assert found["attention_mask"].tolist() == [1] * len(expected)
    folder = tmp_path / "named"
    folder.mkdir()
    (folder / "tokenizer.json").write_bytes(Path(TOKENIZER).read_bytes())
    bos = tokenizer.id_to_token(7)
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": bos, "eos_token": {"content": EOD}})
    )
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    like = transformers.PreTrainedTokenizerFast(tokenizer_file=TOKENIZER, bos_token=bos, eos_token=EOD)
    with pytest.warns(UserWarning, match="as ordinary tokens only"):
        loaded = packtok.Tokenizer.from_pretrained(folder)
    assert loaded.bos_token == bos
    copy = pickle.loads(pickle.dumps(loaded))
    for tokenizer in (folder, str(folder / "tokenizer.json"), like, loaded, copy):
        (found,) = of([1]).ensure_bos_eos(tokenizer)
        assert found["input_ids"].tolist() == [7, 1, EOS]
    # As in Hugging Face's tokenizer of GPT-2, BOS and EOS are one token.
    for gpt2 in ("gpt2", packtok.Tokenizer.builtin("gpt2")):
        for ids, expected in (([1], [1, 50256]), ([50256, 1], [50256, 1])):
            (found,) = of(ids).ensure_bos_eos(gpt2)
            assert found["input_ids"].tolist() == expected
    (found,) = of([5, 1]).add_bos_eos(5, None)
    assert found["input_ids"].tolist() == [5, 5, 1]
    # Directly after tokenize, the core adds the tokens.
    (sample,) = (
        CheckpointableDataset.from_sequence([{"text": "a"}]).tokenize(tokenizer).ensure_bos_eos(Special())
    )
    assert sample["input_ids"].tolist() == [5, *tokenizer.encode("a"), 6]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [(None, []), (4, [4]), ([4, 5], [4, 5]), ([[4, 5]], [4, 5]), (torch.tensor([4, 5]), [4, 5])],
)
def test_token_columns_of_many_types(ids: Any, expected: list[int]) -> None:
    dataset = CheckpointableDataset.from_sequence([{"input_ids": ids}, {"input_ids": [9]}])
    assert rows(dataset.concat_chunk(10, drop_remainder=False)) == [[*expected, 9]]


UNFIT = [
    ("ab", "has values of type <U2, expected integers"),
    ([1.5], "has values of type float64, expected integers"),
    ([True, False], "has values of type bool, expected integers"),
    (torch.tensor([True]), "is a tensor of torch.bool, expected torch.int64"),
    (torch.tensor([1], dtype=torch.int32), "is a tensor of torch.int32, expected torch.int64"),
    ([[1], [2]], "has shape (2, 1), expected (n,) or (1, n)"),
    (torch.tensor([[1], [2]]), "has shape (2, 1), expected (n,) or (1, n)"),
    ([[1], [2, 3]], "has rows of unequal lengths, expected one row of integers"),
    ([5, 1 << 32], "has the id 4294967296, expected at most 4294967295"),
]


@pytest.mark.parametrize(("ids", "reason"), UNFIT)
@pytest.mark.parametrize(
    "make",
    [
        lambda dataset: dataset.chunk(1),
        lambda dataset: dataset.concat_chunk(1),
        lambda dataset: dataset.pack_chunk(1),
        lambda dataset: dataset.pack_chunk(1, strategy="best_fit"),
        lambda dataset: dataset.add_bos_eos(1, 2),
        lambda dataset: dataset.pad({"input_ids": 0}, 9),
    ],
)
def test_other_token_columns_are_errors_with_the_reason(ids: Any, reason: str, make: Any) -> None:
    with pytest.raises(ValueError, match="input_ids") as raised:
        list(make(CheckpointableDataset.from_sequence([{"input_ids": ids}])))
    assert str(raised.value) == f'column "input_ids" of a sample {reason}'


def test_errors_about_columns_name_the_place(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"ids": [1]}\n{"ids": [1.5]}\n')
    files = CheckpointableDataset.from_files(path)
    for dataset in (files, files.map(dict)):
        iterator = dataset.chunk(1, ("ids",)).iter()
        next(iterator)
        with pytest.raises(ValueError, match=r"a\.jsonl:2: byte 13: column \"ids\" of a sample has "):
            next(iterator)
        with pytest.raises(ValueError, match=r"a\.jsonl:1: byte 0: a sample has no tokens in column \"x\"; "):
            next(dataset.concat_chunk(1, ("x",)).iter())
        with pytest.raises(
            ValueError, match=r"a\.jsonl:1: byte 0: column \"ids\" has 3 tokens, expected at most"
        ):
            next(dataset.add_bos_eos(1, 2, "ids").pad({"ids": 0}, 2).iter())


def test_rows_equal_the_plain_version(stories: list[str], tokenizer: packtok.Tokenizer) -> None:
    tokens = CheckpointableDataset.from_files(stories).tokenize(tokenizer).ensure_bos_eos(WithEos())
    documents = [sample["input_ids"].tolist() for sample in tokens]
    stream = [id_ for document in documents for id_ in document]
    whole = [stream[i : i + 50] for i in range(0, len(stream), 50)]
    assert rows(tokens.concat_chunk(50)) == whole[:-1]
    assert rows(tokens.concat_chunk(50, drop_remainder=False)) == whole
    each = [document[i : i + 50] for document in documents for i in range(0, len(document), 50)]
    assert rows(tokens.chunk(50, drop_remainder=False)) == each
    assert rows(tokens.chunk(50)) == [row for row in each if len(row) == 50]
    packed: list[list[int]] = [[]]
    for document in (document[:100] for document in documents):
        if len(packed[-1]) + len(document) > 100:
            packed.append([])
        packed[-1] += document
    assert rows(tokens.pack_chunk(100)) == packed
    both = ("input_ids", "attention_mask")
    assert rows(tokens.concat_chunk(50, both), "attention_mask") == [[1] * 50] * (len(whole) - 1)
    padded = tokens.pack_chunk(100).pad({"input_ids": -100}, 100)
    assert rows(padded) == [row + [-100] * (100 - len(row)) for row in packed]
    with pytest.raises(ValueError, match="at most chunk_length 10"):
        list(tokens.pad({"input_ids": 0}, 10))


def test_thousands_of_short_documents_need_no_recursion(tokenizer: packtok.Tokenizer) -> None:
    dataset = CheckpointableDataset.from_sequence([{"input_ids": [1, 2]}] * 5000 + [{"input_ids": [3] * 4}])
    assert rows(dataset.chunk(4)) == [[3] * 4]


# --- states ---


def pipelines(
    stories: list[str], tokenizer: packtok.Tokenizer
) -> dict[str, Callable[[], CheckpointableDataset]]:
    files = CheckpointableDataset.from_files
    samples = [{"text": str(i), "n": i} for i in range(60)]
    sequence = CheckpointableDataset.from_sequence

    def tokens() -> CheckpointableDataset:
        return files(stories).tokenize(tokenizer).ensure_bos_eos(WithEos())

    threads: dict[str, Any] = {"max_workers": 2, "prefetch_factor": 3, "executor_type": "thread"}
    return {
        "files": lambda: files(stories, n_active_shards=2, repeat=True).take(500),
        "tutorial": lambda: tutorial(stories, tokenizer),
        "functions": lambda: files(stories).map(exclaimed).filter(is_long).shuffle(7).enumerate(),
        "threads": lambda: files(stories).parallel_map(exclaimed, **threads).shuffle(5).batch(3),
        "sequence": lambda: sequence(samples, repeat=True, shuffle=True).take(150).shuffle(9).stride(2, 1),
        "iterable": lambda: CheckpointableDataset.from_iterable(samples, repeat=True).take(130),
        "twice shuffled": lambda: tokens().shuffle(11).concat_chunk(40).shuffle(13).batch(2, drop_last=True),
        "packed": lambda: tokens().pack_chunk(90).shuffle(6).pad({"input_ids": 0}, 90).batch(2),
        "mixture": lambda: interleave_datasets(
            [tokens().concat_chunk(30), tokens().filter(is_long).chunk(30)], [2, 1]
        ).shuffle(8),
        "joined": lambda: (tokens() + files(stories[:1]).tokenize(tokenizer)).concat_chunk(70),
    }


def is_long(sample: dict[str, Any]) -> bool:
    return len(sample["text"]) > 200


NAMES = [
    "files",
    "tutorial",
    "functions",
    "threads",
    "sequence",
    "iterable",
    "twice shuffled",
    "packed",
    "mixture",
    "joined",
]


def plain(sample: Any) -> Any:
    """Returns a sample without tensors, to compare it."""
    if isinstance(sample, torch.Tensor):
        return sample.tolist()
    return {name: plain(value) for name, value in sample.items()} if isinstance(sample, dict) else sample


@pytest.mark.parametrize("name", NAMES)
def test_streams_resume_at_any_sample(stories: list[str], tokenizer: packtok.Tokenizer, name: str) -> None:
    make = pipelines(stories, tokenizer)[name]
    expected = [plain(sample) for sample in make()]
    assert len(expected) > 20
    rng, found = random.Random(name), []
    state: dict[str, Any] | None = None
    while True:
        # The state has the form after JSON, or after torch.load with weights_only, and can be loaded again.
        with make().iter(json.loads(json.dumps(state)) if state else None) as iterator:
            stop = rng.randrange(len(expected) // 3)
            part = [plain(sample) for sample in itertools.islice(iterator, stop)]
            found += part
            if len(part) < stop:
                break
            before, state = json.dumps(state), iterator.state_dict()
            assert len(json.dumps(state)) < 10_000
            del before
    assert found == expected


def test_state_is_of_the_last_sample_and_reusable(stories: list[str], tokenizer: packtok.Tokenizer) -> None:
    dataset = tutorial(stories, tokenizer)
    iterator = dataset.iter()
    first = [plain(next(iterator)) for _ in range(5)]
    state = iterator.state_dict()
    copied = json.dumps(state)
    after = [plain(sample) for sample in iterator]
    for _ in range(2):
        assert [plain(sample) for sample in dataset.iter(state)] == after
    assert json.dumps(state) == copied
    iterator.load_state_dict(state)
    assert [plain(sample) for sample in iterator] == after
    skipped = dataset.iter()
    skipped.skip(5)
    assert [plain(sample) for sample in skipped] == after
    assert [plain(sample) for sample in dataset] == first + after
    # The state at the end of the stream.
    assert list(dataset.iter(iterator.state_dict())) == []


def test_states_have_few_bytes_for_each_row(stories: list[str], tokenizer: packtok.Tokenizer) -> None:
    def rows_of(seed: int) -> CheckpointableDataset:
        files = CheckpointableDataset.from_files(stories, repeat=True, shuffle_shards=True, seed=seed)
        return files.tokenize(tokenizer).concat_chunk(16)

    size = 2000
    for dataset in (rows_of(0), interleave_datasets([rows_of(seed) for seed in range(6)])):
        empty = len(json.dumps(dataset.shuffle(1).iter().state_dict()))
        with dataset.shuffle(size).iter() as iterator:
            iterator.skip(5 * size)
            assert len(json.dumps(iterator.state_dict())) < empty + 32 * size


def test_state_of_another_recipe_is_refused(stories: list[str], tokenizer: packtok.Tokenizer) -> None:
    files = CheckpointableDataset.from_files(stories)
    iterator = files.tokenize(tokenizer).concat_chunk(10).shuffle(5).iter()
    next(iterator)
    state = iterator.state_dict()
    for other, message in (
        (
            files.tokenize(tokenizer).concat_chunk(11).shuffle(5),
            "chunk_length of step 3 .* is 10, expected 11",
        ),
        (files.tokenize(tokenizer).chunk(10).shuffle(5), "step 3 is concat_chunk, expected chunk"),
        (files.tokenize(tokenizer).concat_chunk(10), "it has 4 steps, expected 3"),
        (files.tokenize("gpt2").concat_chunk(10).shuffle(5), "tokenizer of step 2"),
        (
            CheckpointableDataset.from_files(stories[:2]).tokenize(tokenizer).concat_chunk(10).shuffle(5),
            "it has the file 2.jsonl, which is not there",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            other.iter(state)
    changed = files.tokenize(tokenizer).concat_chunk(10).shuffle(5, seed=3)
    assert next(changed.iter(state, allow=["shuffle.seed"]))
    for damaged in (
        {},
        3,
        {**state, "version": 9},
        {**state, "position": "!"},
        {**state, "position": "AAAA"},
    ):
        with pytest.raises(ValueError, match="state"):
            files.tokenize(tokenizer).concat_chunk(10).shuffle(5).iter(damaged)  # type: ignore[arg-type]


# --- ranks ---


def distributed(
    paths: list[str],
    tokenizer: packtok.Tokenizer,
    lanes: int,
    rank: int,
    num_ranks: int,
    *,
    repeat: bool = True,
) -> CheckpointableDataset:
    files = CheckpointableDataset.from_files

    def tokens(path: list[str]) -> CheckpointableDataset:
        return files(path, n_active_shards=2, repeat=repeat, shuffle_shards=True).tokenize(tokenizer)

    mixed = interleave_datasets([tokens(paths[:1]), tokens(paths[1:])], [2, 1]).ensure_bos_eos(WithEos())
    shuffled = mixed.filter(is_long).concat_chunk(24).shuffle(10)
    return shuffled.distribute(lanes, rank, num_ranks).map(dict).batch(global_batch_size=24).enumerate()


def steps(iterators: list[Any], count: int) -> list[list[list[int]]]:
    """Returns the rows of each global batch, in the order of the stream."""
    batches = [[plain(next(iterator)) for _ in range(count)] for iterator in iterators]
    return [
        [row for rows in zip(*(rank[step]["input_ids"] for rank in batches), strict=True) for row in rows]
        for step in range(count)
    ]


@pytest.mark.parametrize("lanes", [1, 8])
def test_global_batches_do_not_depend_on_the_ranks(
    stories: list[str], tokenizer: packtok.Tokenizer, lanes: int
) -> None:
    whole = distributed(stories, tokenizer, lanes, 0, 1).iter()
    expected = steps([whole], 30)
    assert len({tuple(row) for step in expected for row in step}) > 300
    rng, state, found = random.Random(lanes), None, []
    for num_ranks in (3, 8, 1, 2, 4, 8, 2, 3):
        running = [
            distributed(stories, tokenizer, lanes, rank, num_ranks).iter(state) for rank in range(num_ranks)
        ]
        found += steps(running, rng.randrange(5))
        state = json.loads(json.dumps(merge_states(iterator.state_dict() for iterator in running)))
        own = {lane for iterator in running for lane in iterator.state_dict()["lanes"]}
        assert len(own) == lanes
        if lanes % num_ranks == 0:
            assert all(len(iterator.state_dict()["lanes"]) == lanes // num_ranks for iterator in running)
    assert found == expected[: len(found)]
    assert len(found) > 8


def steps_of_rank(paths: list[str], count: int, before: str | None, after: str) -> list[Any]:
    """Runs on each process of a group, whose ranks the stream finds by itself."""
    import torch.distributed.checkpoint as dcp

    files = CheckpointableDataset.from_files(paths, repeat=True).tokenize(TOKENIZER)
    dataset = files.concat_chunk(24).shuffle(10).distribute(8).batch(global_batch_size=24)
    with dataset.iter() as iterator:
        if before is not None:
            # The keys of this state name the lanes that this rank needs.
            content = {"stream": iterator.state_dict()}
            dcp.load(content, checkpoint_id=before)
            iterator.load_state_dict(content["stream"])
        own = [next(iterator)["input_ids"].tolist() for _ in range(count)]
        dcp.save({"stream": iterator.state_dict()}, checkpoint_id=after)
    batches = zip(*ranks.gathered(own), strict=True)
    return [[row for rows in zip(*step, strict=True) for row in rows] for step in batches]


def test_process_groups_of_other_sizes_serve_one_stream_from_checkpoints_of_torch(
    stories: list[str], tmp_path: Path
) -> None:
    dataset = CheckpointableDataset.from_files(stories, repeat=True).tokenize(TOKENIZER)
    alone = dataset.concat_chunk(24).shuffle(10).distribute(8, 0, 1).batch(global_batch_size=24)
    sizes = extent([2, 3, 8, 1, 4], [2, 3])
    expected = [plain(sample["input_ids"]) for sample in itertools.islice(alone.iter(), 3 * len(sizes))]
    found: list[Any] = []
    before = None
    for number, size in enumerate(sizes):
        after = str(tmp_path / f"checkpoint {number}")
        found += ranks.run_ranks(size, tmp_path / str(number), steps_of_rank, stories, 3, before, after)
        before = after
    assert found == expected


def test_lanes_that_end_give_every_rank_as_many_batches(
    stories: list[str], tokenizer: packtok.Tokenizer
) -> None:
    def batches_of(num_ranks: int, at_epoch_end: Any) -> list[list[list[list[int]]]]:
        found = []
        for rank in range(num_ranks):
            ending = distributed_rows(stories, tokenizer, rank, num_ranks, at_epoch_end)
            found.append([batch["input_ids"].tolist() for batch in ending.batch(global_batch_size=12)])
        assert len({len(batches) for batches in found}) == 1
        return found

    expected = [row for batch in batches_of(1, "short")[0] for row in batch]
    assert len(expected) > 100
    for num_ranks in (2, 3, 4):
        for at_epoch_end in ("short", "drop"):
            found = []
            for ranks_batches in zip(*batches_of(num_ranks, at_epoch_end), strict=True):
                longest = max(map(len, ranks_batches))
                rounds = [[rank[i] for rank in ranks_batches if i < len(rank)] for i in range(longest)]
                found += [row for round_rows in rounds for row in round_rows]
            kept = len(expected) // num_ranks * num_ranks if at_epoch_end == "drop" else len(expected)
            assert found == expected[:kept]
    # Resumes after some lanes have ended.
    dataset = distributed_rows(stories, tokenizer, 1, 2)
    for stop in (len(expected) // 2 - 1, len(expected) // 2 - 4, 3):
        iterator = dataset.iter()
        before = [sample["input_ids"].tolist() for sample in itertools.islice(iterator, stop)]
        assert before + rows(dataset.iter(iterator.state_dict())) == rows(dataset)


def test_ranks_without_a_last_row_have_an_empty_batch() -> None:
    samples = [{"input_ids": [i] * 4} for i in range(10)]
    tokens = CheckpointableDataset.from_sequence(samples).concat_chunk(4, labels=True, cu_seqlens=True)

    def batches(rank: int, dataset: CheckpointableDataset) -> list[Any]:
        return list(dataset.distribute(1, rank=rank, num_replicas=4).batch(global_batch_size=4))

    for dataset in (tokens, tokens.map(dict)):
        last = [batches(rank, dataset)[-1] for rank in range(4)]
        assert [len(batch["input_ids"]) for batch in last] == [1, 0, 0, 0]
        assert last[1]["input_ids"].shape == last[1]["labels"].shape == (0, 4)
        assert last[1]["cu_seqlens"].tolist() == [0]
    # A limit counts the samples of all ranks.
    limited = [tokens.distribute(1, rank=r, num_replicas=4).take(6).batch(2) for r in range(4)]
    assert [[len(batch["labels"]) for batch in rank] for rank in limited] == [[2], [2], [1], [1]]


def distributed_rows(
    paths: list[str],
    tokenizer: packtok.Tokenizer,
    rank: int,
    num_ranks: int,
    at_epoch_end: Any = "short",
) -> CheckpointableDataset:
    files = CheckpointableDataset.from_files(paths).tokenize(tokenizer)
    return files.concat_chunk(40).shuffle(7).distribute(4, rank, num_ranks, at_epoch_end=at_epoch_end)


def test_one_lane_is_a_stride(stories: list[str], tokenizer: packtok.Tokenizer) -> None:
    chunks = CheckpointableDataset.from_files(stories).tokenize(tokenizer).concat_chunk(40).shuffle(7)
    for rank in range(3):
        strided, distributed = chunks.stride(3, rank), chunks.distribute(1, rank, 3)
        found = rows(distributed)
        assert found == rows(strided)[: len(found)]
        assert len(found) >= len(rows(strided)) - 1


def test_counts_after_distribute_are_those_of_all_ranks() -> None:
    numbers = CheckpointableDataset.from_sequence([{"n": i} for i in range(20)])
    both = [numbers.distribute(2, rank, 2).enumerate().take(12) for rank in range(2)]
    assert [[(sample["n"], sample["step"]) for sample in rank] for rank in both] == [
        [(i, 2 * i) for i in range(6)],
        [(10 + i, 2 * i + 1) for i in range(6)],
    ]


def gz_files(folder: Path, sizes: Sequence[int]) -> list[Path]:
    """Returns files with this many documents, which do not compress."""
    rng = random.Random(7)
    paths = [folder / f"{i:03}.jsonl.gz" for i in range(len(sizes))]
    for i, (path, size) in enumerate(zip(paths, sizes, strict=True)):
        lines = [json.dumps({"text": f"{i}.{n} {rng.randbytes(200).hex()}"}) for n in range(size)]
        path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return paths


@pytest.mark.parametrize("count", [4, 8, 16, 64])
def test_as_many_lanes_as_compressed_files_each_read_one(tmp_path: Path, count: int) -> None:
    paths = gz_files(tmp_path, [3] * count)
    with CheckpointableDataset.from_files(paths, repeat=True).distribute(count, 0, 1).iter() as samples:
        texts = [sample["text"].split(".")[0] for sample in itertools.islice(samples, count)]
        assert sorted(texts, key=int) == [str(i) for i in range(count)]
        (share,) = samples.report()["lane_shares"]
    assert sorted(share["bytes"]) == sorted(path.stat().st_size for path in paths)
    assert share["source"] == f"{paths[0]} and {count - 1} more files"


def test_compressed_files_are_shared_out_by_size_and_plain_ones_fill_the_rest(tmp_path: Path) -> None:
    packed = gz_files(tmp_path, [40, 10, 10, 10])
    plain = tmp_path / "plain.jsonl"
    plain.write_text("".join(json.dumps({"text": f"p.{n} {'x' * 380}"}) + "\n" for n in range(50)))
    dataset = CheckpointableDataset.from_files([*packed, plain], n_active_shards=1)
    with dataset.distribute(3, 0, 1).iter() as samples:
        found = sorted(sample["text"].split()[0] for sample in samples)
        (share,) = samples.report()["lane_shares"]
    names = [f"{i}.{n}" for i, size in enumerate([40, 10, 10, 10]) for n in range(size)]
    assert found == sorted([*names, *(f"p.{n}" for n in range(50))])
    assert max(share["bytes"]) - min(share["bytes"]) <= 1


def test_unequal_lanes_are_reported_and_too_many_are_an_error(tmp_path: Path) -> None:
    paths = gz_files(tmp_path, [6, 3, 3])
    dataset = CheckpointableDataset.from_files(paths, repeat=True)
    dataset.distribute(2, 0, 1).iter().close()
    with pytest.warns(
        UserWarning,
        match=rf"^{paths[0]} and 2 more files: lanes have from \d+ to \d+ bytes, because compressed files, "
        "and "
        "those of other formats than JSON lines, Parquet and Arrow, are not cut; some documents are "
        "repeated up "
        "to (1.9|2.0|2.1) times as often as others; give files of about equal sizes whose number is a "
        "multiple "
        "of the lanes$",
    ):
        dataset.distribute(3, 0, 1).iter().close()
    with pytest.raises(
        ValueError,
        match=rf"^{paths[0]} and 2 more files: lane \d of 4 has no document: the data allow at most 3 lanes, "
        "because compressed files, and those of other formats than JSON lines, Parquet and Arrow, are not "
        "cut; "
        "lower lanes, or give more or larger files$",
    ):
        dataset.distribute(4, 0, 1).iter()


def test_states_of_earlier_versions_keep_their_division(tmp_path: Path) -> None:
    paths = gz_files(tmp_path, [10, 2, 2, 10])
    dataset = CheckpointableDataset.from_files(paths, repeat=True, n_active_shards=1).distribute(2, 0, 1)

    def started(iterator: Any, count: int) -> list[str]:
        return [sample["text"] for sample in itertools.islice(iterator, count)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with dataset.iter() as samples:
            state = samples.state_dict()
        (step,) = [step for step in state["recipe"] if step["op"] == "distribute"]
        # The state of an earlier version, which read each file in the lane of its first byte.
        del step["division"]
        state["skip"] = 0
        with dataset.iter(state) as samples:
            expected = started(samples, 60)
            saved = samples.state_dict()
            rest = started(samples, 20)
        assert "division" not in next(step for step in saved["recipe"] if step["op"] == "distribute")
        with dataset.iter(saved) as samples:
            assert started(samples, 20) == rest
    # Files 0 to 2 are in lane 0, and file 3 is in lane 1.
    files = [[text.split(".")[0] for text in expected[lane::2]] for lane in range(2)]
    assert files[1] == ["3"] * 30
    assert files[0] == (["0"] * 10 + ["1"] * 2 + ["2"] * 2) * 2 + ["0", "0"]


def test_lanes_of_packed_files_have_documents_where_there_are_enough(
    tmp_path: Path, tokenizer: packtok.Tokenizer
) -> None:
    path = tmp_path / "a.jsonl"
    words = [30, 1, 1, 1]
    path.write_text("".join(json.dumps({"text": "a " * count}) + "\n" for count in words))
    packtok.pack(input=path, output=tmp_path / "a.pbin", tokenizer=TOKENIZER, eod="<|endoftext|>")
    dataset = CheckpointableDataset.from_pbin(tmp_path / "a.pbin")
    assert len(list(dataset.distribute(4, 0, 1).iter())) == len(words)
    with pytest.raises(
        ValueError,
        match=rf"^{tmp_path}/a\.pbin: lane 0 of 5 has no document: the data allow at most 4 lanes; lower "
        "lanes, "
        "or give more or larger files$",
    ):
        dataset.distribute(5, 0, 1).iter()


def test_packed_files_are_read_as_the_caller_says(tmp_path: Path) -> None:
    np.array([5, 6, 0, 7, 0], np.uint16).tofile(tmp_path / "a.bin")
    with pytest.raises(packtok.PbinFormatError, match=r"\(input_dtype\)"):
        CheckpointableDataset.from_pbin(tmp_path / "a.bin")
    with pytest.raises(ValueError, match='is "eos"; expected eos=ID'):
        CheckpointableDataset.from_pbin(tmp_path / "a.bin", input_dtype="uint16", boundaries="eos")
    dataset = CheckpointableDataset.from_pbin(
        tmp_path / "a.bin", format="raw", input_dtype="uint16", boundaries="eos=0"
    )
    assert [sample["input_ids"].tolist() for sample in dataset] == [[5, 6, 0], [7, 0]]


def test_wrong_lanes_and_states_of_ranks_are_errors(stories: list[str], tokenizer: packtok.Tokenizer) -> None:
    numbers = CheckpointableDataset.from_sequence([{"n": i} for i in range(4)], repeat=True)
    with pytest.raises(ValueError, match="too few for 5 lanes"):
        numbers.distribute(5).iter()
    with pytest.raises(ValueError, match="cannot be divided into 2 lanes"):
        CheckpointableDataset.from_iterable([1]).distribute(2).iter()
    files = CheckpointableDataset.from_files(stories[1])
    with pytest.raises(
        ValueError,
        match=r"1\.jsonl: lane \d+ of 50 has no document: the data allow at most [1-7] lanes; lower",
    ):
        files.distribute(50).iter()
    with pytest.raises(ValueError, match="expected a multiple of the 2 ranks"):
        numbers.distribute(2, 0, 2).batch(global_batch_size=3)
    with pytest.raises(ValueError, match="give either batch_size or global_batch_size"):
        numbers.batch()
    running = [numbers.distribute(4, rank, 2).batch(global_batch_size=4).iter() for rank in range(2)]
    for iterator in running:
        next(iterator)
    with pytest.raises(ValueError, match="the state lacks lane 1, which this rank reads; merge the states"):
        numbers.distribute(4, 1, 2).batch(global_batch_size=4).iter(running[0].state_dict())
    next(running[0])
    with pytest.raises(ValueError, match="position of state 1 differs"):
        merge_states(iterator.state_dict() for iterator in running)
    with pytest.raises(ValueError, match="shuffle cannot follow distribute"):
        numbers.distribute(2).shuffle(3)
    with pytest.raises(ValueError, match="parallel function cannot follow distribute"):
        numbers.distribute(2).parallel_map(plain)


# --- errors ---


def test_wrong_sources_are_errors_at_once(tmp_path: Path) -> None:
    files = CheckpointableDataset.from_files
    with pytest.raises(FileNotFoundError, match=r"none\.jsonl"):
        files(tmp_path / "none.jsonl")
    with pytest.raises(ValueError, match="repeating them would never end"):
        files([], repeat=True)
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(ValueError, match="all files are empty"):
        files(tmp_path / "empty.jsonl", repeat=True)
    with pytest.raises(ValueError, match='format is "xml", expected one of jsonl'):
        files(tmp_path / "empty.jsonl", format="xml")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="repeating it would never end"):
        CheckpointableDataset.from_sequence([], repeat=True)
    with pytest.raises(ValueError, match="empty at the start of an epoch"):
        list(CheckpointableDataset.from_iterable(iter([1]), repeat=True))
    (tmp_path / "blank.jsonl").write_text("\n\n")
    with pytest.raises(ValueError, match="an epoch has no sample"):
        list(files(tmp_path / "blank.jsonl", repeat=True))


@pytest.mark.parametrize("line", ['{"text": "x"', "[1]", '{"text": "\\ud800"}', '{"text": 5}', '{"x": "y"}'])
def test_bad_documents_fail_or_are_counted(tmp_path: Path, tokenizer: packtok.Tokenizer, line: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n' + line + '\n{"text": "b"}\n')
    files = CheckpointableDataset.from_files
    with pytest.raises(packtok.DocumentError, match=r"a\.jsonl:2: byte 14: .*; fix it, or set"):
        list(files(path).tokenize(tokenizer))
    iterator = files(path, on_bad_document="skip").tokenize(tokenizer).iter()
    assert texts(iterator) == "a b"
    report = iterator.report()
    assert report["num_bad"] == 1
    assert report["listed"][0]["at"] == f"{path}: byte 14"
    is_sample = line.startswith('{"x') or line.endswith("5}")
    if not is_sample:
        with pytest.raises(packtok.DocumentError, match=r"a\.jsonl:2: byte 14: "):
            list(files(path).map(exclaimed))
        assert texts(files(path, on_bad_document="skip").map(exclaimed)) == "a! b!"


BETWEEN: dict[str, Callable[[CheckpointableDataset], CheckpointableDataset]] = {
    "interleave": lambda dataset: interleave_datasets([dataset, dataset]),
    "interleave one": lambda dataset: interleave_datasets([dataset]),
    "concat": lambda dataset: dataset + dataset,
    "shuffle": lambda dataset: dataset.shuffle(2),
    "take": lambda dataset: dataset.take(5),
    "stride": lambda dataset: dataset.stride(1, 0),
    "enumerate": lambda dataset: dataset.enumerate(),
    "map": lambda dataset: dataset.map(dict),
    "parallel_map": lambda dataset: dataset.parallel_map(dict, 1, executor_type="thread"),
    "filter": lambda dataset: dataset.filter(dict),
    "cache": lambda dataset: dataset.cache(),
    "all": lambda dataset: interleave_datasets([dataset.take(9).map(dict).shuffle(3).enumerate()]).stride(
        1, 0
    ),
}


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("line", ['{"text": "x"', "[1]", '{"text": "\\ud800"}', '{"text": 5}', '{"x": "y"}'])
def test_bad_documents_are_skipped_wherever_they_are_noticed(
    tmp_path: Path, tokenizer: packtok.Tokenizer, between: str, line: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n' + line + '\n{"text": "b"}\n')
    files = CheckpointableDataset.from_files(path, on_bad_document="skip")
    with BETWEEN[between](files).tokenize(tokenizer).iter() as iterator:
        found = [next(iterator)["text"]]
        state = json.loads(json.dumps(iterator.state_dict()))
        found += [sample["text"] for sample in iterator]
    twice = 1 + (between in ("interleave", "concat"))
    assert sorted(found) == ["a"] * twice + ["b"] * twice
    with BETWEEN[between](files).tokenize(tokenizer).iter(state) as iterator:
        assert [sample["text"] for sample in iterator] == found[1:]
    # By default, bad documents are errors, which name the file and the line.
    if between != "cache":
        with pytest.raises(packtok.DocumentError, match=r"a\.jsonl:2: byte 14: .*; fix it, or set"):
            list(BETWEEN[between](CheckpointableDataset.from_files(path)).tokenize(tokenizer))


def test_only_the_source_that_promises_it_skips_bad_documents(
    tmp_path: Path, tokenizer: packtok.Tokenizer
) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text('{"text": "1"}\n{"text": 2}\n{"text": "3"}\n')
    skips = CheckpointableDataset.from_files(tmp_path / "a.jsonl", on_bad_document="skip")
    fails = CheckpointableDataset.from_files(tmp_path / "b.jsonl")
    iterator = (skips.map(dict) + fails.map(dict)).tokenize(tokenizer).iter()
    assert [next(iterator)["text"] for _ in range(3)] == ["1", "3", "1"]
    assert iterator.report()["listed"] == [
        {"at": f"{tmp_path}/a.jsonl: byte 14", "reason": '."text" is an int, not a string'}
    ]
    with pytest.raises(packtok.DocumentError) as raised:
        next(iterator)
    assert str(raised.value) == (
        f'{tmp_path}/b.jsonl:2: byte 14: ."text" is an int, not a string; '
        "fix it, or set on_bad_document to skip"
    )


def test_permuted_documents_are_skipped_after_other_steps(
    tmp_path: Path, tokenizer: packtok.Tokenizer
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n{"x": "y"}\n{"text": "b"}\n')
    packtok.index(str(path))
    files = CheckpointableDataset.from_files(path, shuffle="documents", on_bad_document="skip")
    assert sorted(texts(files.take(3).map(dict).tokenize(tokenizer)).split()) == ["a", "b"]


def test_missing_text_of_a_sample_that_is_not_from_a_file_is_described(tokenizer: packtok.Tokenizer) -> None:
    for sample, found in (
        ({"x": "y"}, ""),
        ({"text": 5}, ", which is an int"),
        ({"text": None}, ", which is None"),
    ):
        with pytest.raises(ValueError, match="a sample has no text") as raised:
            list(CheckpointableDataset.from_sequence([sample]).tokenize(tokenizer))
        remedy = "name the column that has the text"
        assert str(raised.value) == f'a sample has no text in column "text"{found}; {remedy}'


def test_errors_of_functions_are_raised_and_every_later_call_fails(shards: list[str]) -> None:
    def fail(sample: dict[str, str]) -> dict[str, str]:
        if sample["text"] == "0.3":
            raise LookupError("no such text")
        return sample

    files = CheckpointableDataset.from_files(shards, n_active_shards=1)
    threads: dict[str, Any] = {"max_workers": 2, "executor_type": "thread"}
    for dataset in (
        files.map(fail),
        files.parallel_map(fail, **threads),
        files.map(fail).shuffle(1).batch(1),
    ):
        iterator = dataset.iter()
        assert [plain(next(iterator)["text"]) for _ in range(3)][-1] in ("0.2", ["0.2"])
        with pytest.raises(LookupError, match="no such text"):
            next(iterator)
        for _ in range(2):
            with pytest.raises(packtok.PacktokError, match="ended with an error before: no such text"):
                next(iterator)


def test_closed_iterators_leave_no_threads(stories: list[str], tokenizer: packtok.Tokenizer) -> None:
    def num_threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    def num_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    next(tutorial(stories, tokenizer).iter())
    time.sleep(0.2)
    before = num_threads(), num_files()
    for _ in range(30):
        with tutorial(stories, tokenizer).iter() as iterator:
            next(iterator)
        with pytest.raises(RuntimeError, match="the stream is closed"):
            next(iterator)
    end = time.monotonic() + 60
    while (num_threads() > before[0] or num_files() > before[1]) and time.monotonic() < end:
        time.sleep(0.05)
    assert num_threads() <= before[0]
    assert num_files() <= before[1]


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.filterwarnings("ignore:the 2 workers of a DataLoader each compute:UserWarning")
def test_a_loader_serves_every_batch_once_in_order(
    stories: list[str], tokenizer: packtok.Tokenizer, num_workers: int
) -> None:
    dataset = (
        CheckpointableDataset.from_files(stories).tokenize(tokenizer).concat_chunk(40).shuffle(9).batch(3)
    )
    loader = DataLoader(dataset, batch_size=None, num_workers=num_workers)
    assert rows(loader) == rows(dataset)


def test_a_stateful_loader_resumes_without_reading_again(
    stories: list[str], tokenizer: packtok.Tokenizer
) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    seen: list[str] = []

    def note(sample: dict[str, str]) -> dict[str, str]:
        seen.append(sample["text"])
        return sample

    files = CheckpointableDataset.from_files(stories, n_active_shards=1)
    dataset = files.map(note).tokenize(tokenizer).concat_chunk(40).shuffle(3).batch(2)
    expected = rows(dataset)
    loader = stateful.StatefulDataLoader(dataset, batch_size=None)
    stop = 3 * len(expected) // 4
    first = [batch["input_ids"].tolist() for batch in itertools.islice(loader, stop)]
    state = json.loads(json.dumps(loader.state_dict()))
    start = seen[0]
    seen.clear()
    resumed = stateful.StatefulDataLoader(dataset, batch_size=None)
    resumed.load_state_dict(state)
    assert first + rows(resumed) == expected
    assert start not in seen


def test_damaged_states_are_refused(stories: list[str], tokenizer: packtok.Tokenizer) -> None:
    dataset = CheckpointableDataset.from_files(stories).tokenize(tokenizer).concat_chunk(10).shuffle(5)
    iterator = dataset.iter()
    next(iterator)
    state = iterator.state_dict()
    position = base64.b64decode(state["position"])
    for at in range(len(position)):
        changed = bytes([*position[:at], position[at] ^ 1, *position[at + 1 :]])
        for damaged in (position[:at], changed):
            with pytest.raises(ValueError, match="the state is damaged"):
                dataset.iter({**state, "position": base64.b64encode(damaged).decode()})


ENDING = """
import os, signal, sys, threading, time
from packtok.stream import CheckpointableDataset
dataset = CheckpointableDataset.from_sequence(list(range(9)), repeat=True)
calls = []
def slow(sample):
    calls.append(sample)
    if len(calls) == 3 and sys.argv[1] == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.3)
    return sample
slowly = dataset.parallel_map(slow, max_workers=2, executor_type="thread", prefetch_factor=1)
kept = slowly.shuffle(100).iter()
if sys.argv[1] == "interrupt":
    try:
        next(kept)
    except KeyboardInterrupt:
        # The first sample needs a full shuffle buffer.
        print("interrupted", len(calls) < 100)
else:
    def wait():
        try:
            next(kept)
        except RuntimeError as error:
            assert str(error) == "the stream is closed"

    threading.Thread(target=wait, daemon=True).start()
    time.sleep(0.2)
    print("ended")
"""


@pytest.mark.parametrize(("how", "printed"), [("interrupt", "interrupted True\n"), ("end", "ended\n")])
def test_program_ends_while_functions_run(how: str, printed: str) -> None:
    command = [sys.executable, "-c", ENDING, how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


def test_unsupported_arguments_of_the_tokenizer_are_named(
    shards: list[str], tokenizer: packtok.Tokenizer
) -> None:
    files = CheckpointableDataset.from_files(shards)
    with pytest.raises(ValueError, match="tokenizer_kwargs has padding=True, which"):
        files.tokenize(tokenizer, {"padding": True})
    with pytest.raises(ValueError, match="truncation and max_length in tokenizer_kwargs need each other"):
        files.tokenize(tokenizer, {"truncation": True})
    cut = files.tokenize(tokenizer, {"truncation": True, "max_length": 2, "return_attention_mask": False})
    first = next(cut.iter())
    assert len(first["input_ids"]) == 2
    assert "attention_mask" not in first
    with pytest.raises(TypeError, match="expected a tokenizer or a callable"):
        files.tokenize(3)


def test_any_callable_tokenizes(shards: list[str]) -> None:
    def lengths(text: str, *, by: int) -> dict[str, list[int]]:
        return {"input_ids": [len(text) * by]}

    files = CheckpointableDataset.from_files(shards, n_active_shards=1)
    assert rows(files.tokenize(lengths, {"by": 2}).concat_chunk(4)) == [[6] * 4] * 4
    assert [sample["input_ids"] for sample in files.tokenize(lengths, {"by": 2}, parallel=False).take(1)] == [
        [6]
    ]


# --- functions with random numbers, caches, and other sources ---


@pytest.mark.parametrize("how", ["map", "thread", "process"])
def test_generators_depend_on_the_position_alone(how: str) -> None:
    samples = CheckpointableDataset.from_sequence([{"n": i} for i in range(40)])

    def dataset(seed: int) -> CheckpointableDataset:
        if how == "map":
            return samples.map(noisy, rng=True, seed=seed)
        kind: Any = how
        return samples.parallel_map(noisy, 2, 3, executor_type=kind, rng=True, seed=seed)

    expected = list(samples.map(noisy, rng=True, seed=7))
    assert list(dataset(7)) == expected
    assert len({sample["noise"] for sample in expected}) == 40
    with dataset(7).iter() as iterator:
        iterator.skip(13)
        state = iterator.state_dict()
    assert list(dataset(7).iter(state)) == expected[13:]
    with pytest.raises(ValueError, match=r"seed of step 2 \(call\) is 7, expected 8"):
        dataset(8).iter(state)
    # Lanes have numbers of their own, and ranks share them.
    lanes = samples.map(noisy, rng=True).distribute(2, rank=0, num_replicas=1)
    assert len({sample["noise"] for sample in lanes}) == 40
    after = [samples.distribute(2, rank=rank, num_replicas=2).map(noisy, rng=True) for rank in range(2)]
    joined = [sample for pair in zip(*after, strict=True) for sample in pair]
    alone = samples.distribute(2, rank=0, num_replicas=1).map(noisy, rng=True)
    assert joined == list(alone)


def test_version_of_a_function_replaces_its_name_in_states() -> None:
    samples = CheckpointableDataset.from_sequence([{"n": i} for i in range(9)])
    with samples.map(lambda sample: sample, version="identity 1").iter() as iterator:
        next(iterator)
        state = iterator.state_dict()
    assert len(list(samples.map(dict, version="identity 1").iter(state))) == 8
    with pytest.raises(ValueError, match=r"function of step 2 .* is 'identity 1', expected 'identity 2'"):
        samples.map(dict, version="identity 2").iter(state)
    with pytest.raises(TypeError, match="unexpected argument 'versions'"):
        samples.map(dict, versions="1")  # type: ignore[call-arg]


def test_rows_of_ranks_are_counted_after_a_function() -> None:
    rows = CheckpointableDataset.from_sequence([{"n": i} for i in range(40)]).distribute(
        4, rank=0, num_replicas=4
    )
    assert len(list(rows.map(dict).take(20))) == 5
    assert [row["step"] for row in rows.map(dict).enumerate()][:2] == [0, 4]
    with pytest.raises(ValueError, match="filter cannot follow distribute"):
        rows.filter(bool)


def test_cache_computes_samples_once(shards: list[str]) -> None:
    calls: list[str] = []

    def noted(sample: dict[str, Any]) -> dict[str, Any]:
        calls.append(sample["text"])
        return sample

    files = CheckpointableDataset.from_files(shards)
    cached = files.map(noted).cache()
    expected = list(files)
    with cached.iter() as iterator:
        assert list(itertools.islice(iterator, 5)) == expected[:5]
        state = iterator.state_dict()
    for sample in cached:
        sample["text"] = "changed"
    assert list(cached) == expected
    assert list(cached.iter(state)) == expected[5:]
    assert calls == [sample["text"] for sample in expected]
    assert list(files.map(noted).cache().iter(state)) == expected[5:]
    with pytest.raises(ValueError, match="its cache would grow without limit; use take first"):
        CheckpointableDataset.from_files(shards, repeat=True).cache()


def test_combined_batches_keep_their_collate_fn() -> None:
    samples = CheckpointableDataset.from_sequence([{"n": i} for i in range(6)])
    batched = samples.batch(2, collate_fn=len)
    assert list(batched + batched) == [2] * 6
    assert list(interleave_datasets([batched, batched])) == [2] * 6
    with pytest.raises(ValueError, match="different collate_fn or pin_memory; combine them before batch"):
        concat_datasets([batched, samples.batch(2)])


def test_streamed_datasets_of_hugging_face_resume_by_their_state(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    paths = [write_lines(tmp_path / f"{f}.jsonl", [f"{f}.{i}" for i in range(20)]) for f in range(4)]

    def dataset() -> Any:
        streamed = datasets.load_dataset("json", data_files=paths, split="train", streaming=True)
        return CheckpointableDataset.from_huggingface(streamed, repeat=True)

    expected = list(dataset().take(200))
    assert [sample["text"] for sample in expected[:2]] == ["0.0", "0.1"]
    assert expected[80:160] == expected[:80]
    found: list[Any] = []
    state = None
    for stop in (0, 3, 77, 81, 130, 200):
        with dataset().shuffle(1).iter(json.loads(json.dumps(state)) if state else None) as iterator:
            found += itertools.islice(iterator, stop - len(found))
            state = iterator.state_dict()
    assert found == expected
    # The state is saved again before a sample is taken, and after one.
    with dataset().iter() as iterator:
        iterator.skip(4)
        state = iterator.state_dict()
    for number in (4, 5, 6):
        for _ in range(2):
            with dataset().iter(state) as iterator:
                state = iterator.state_dict()
        with dataset().iter(state) as iterator:
            assert next(iterator) == expected[number]
            state = iterator.state_dict()
    # Each lane has files of its own.
    lanes = [dataset().distribute(4, rank=rank, num_replicas=2).take(8) for rank in range(2)]
    assert [sample["text"] for sample in lanes[1]] == ["1.0", "3.0", "1.1", "3.1"]
    with pytest.raises(ValueError, match="4 shards, too few for 5 lanes"):
        list(dataset().distribute(5, rank=0, num_replicas=1))
    whole = datasets.load_dataset("json", data_files=paths, split="train")
    assert list(CheckpointableDataset.from_huggingface(whole)) == expected[:80]


# --- files in a state ---


def compressed(kind: str, texts: list[str]) -> bytes:
    """Returns a frame or member with a line for each text."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    if kind == "gz":
        return gzip.compress(lines)
    import zstandard

    return zstandard.compress(lines)


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_frames_before_a_state_are_not_decompressed_again(tmp_path: Path, kind: str) -> None:
    rng = random.Random(1)
    frames = [
        compressed(kind, [f"{f}.{i} {rng.randbytes(3000).hex()}" for i in range(60)]) for f in range(40)
    ]
    path = tmp_path / f"a.jsonl.{kind}"
    path.write_bytes(b"".join(frames))
    dataset = CheckpointableDataset.from_files(path)
    expected = list(dataset)
    with dataset.iter() as iterator:
        iterator.skip(2000)
        state = iterator.state_dict()
    assert list(dataset.iter(state)) == expected[2000:]
    # Everything is damaged but the start, by which the compression is recognized.
    damaged = bytearray(path.read_bytes())
    damaged[100 : sum(map(len, frames[:20]))] = bytes(sum(map(len, frames[:20])) - 100)
    path.write_bytes(damaged)
    assert list(dataset.iter(state)) == expected[2000:]
    with pytest.raises(packtok.PacktokError, match=r"a\.jsonl.*compressed data is corrupt"):
        list(dataset)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.jsonl.gz", "a.parquet"])
def test_file_with_other_content_is_an_error_of_its_state(tmp_path: Path, name: str) -> None:
    path = tmp_path / name

    def write(word: str) -> None:
        texts = [f"{word} {i:03}" for i in range(50)]
        if name.endswith("csv"):
            path.write_text("text\n" + "".join(f"{text}\n" for text in texts))
        elif name.endswith("parquet"):
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table({"text": texts}), path, compression="none")
        elif name.endswith("gz"):
            path.write_bytes(gzip.compress(json_lines(texts), mtime=0, compresslevel=0))
        else:
            path.write_bytes(json_lines(texts))

    write("one")
    dataset = CheckpointableDataset.from_files(path)
    with dataset.iter() as iterator:
        iterator.skip(20)
        state = iterator.state_dict()
    write("two")
    with pytest.raises(packtok.PacktokError, match=f"{name}: the file has other content than when the state"):
        list(CheckpointableDataset.from_files(path).iter(state))


def json_lines(texts: list[str]) -> bytes:
    return "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()


# --- checks for users ---


def test_checks_of_resumption_find_what_is_wrong(stories: list[str], tokenizer: packtok.Tokenizer) -> None:
    testing.check_resumption(tutorial(stories, tokenizer), num_samples=60)
    calls = itertools.count()
    changing = CheckpointableDataset.from_sequence([{"n": i} for i in range(30)]).map(
        lambda sample: {**sample, "call": next(calls)}
    )
    with pytest.raises(AssertionError, match="sample 0 differs"):
        testing.check_resumption(changing)

    def rank(rank: int, count: int) -> CheckpointableDataset:
        return tutorial_rows(stories, tokenizer).distribute(4, rank=rank, num_replicas=count)

    testing.check_ranks(rank)
    with pytest.raises(AssertionError, match="on rank 1 of 2"):
        testing.check_ranks(lambda _, count: tutorial_rows(stories, tokenizer).stride(count, 0), (2,))


def tutorial_rows(paths: list[str], tokenizer: packtok.Tokenizer) -> CheckpointableDataset:
    files = CheckpointableDataset.from_files(paths, repeat=True)
    return files.tokenize(tokenizer).concat_chunk(32).shuffle(20)


def test_state_is_shown(
    stories: list[str], tokenizer: packtok.Tokenizer, tmp_path: Path, packtok_cli: Any
) -> None:
    with tutorial_rows(stories, tokenizer).distribute(4, rank=1, num_replicas=2).iter() as iterator:
        iterator.skip(3)
        (tmp_path / "state.json").write_text(json.dumps(iterator.state_dict()))
    output = packtok_cli("stream", "show", "state.json", cwd=tmp_path).stdout
    assert re.search(r"version 1, [\d,]+ bytes: position of \d+ bytes, 2 lanes of at most", output)
    assert re.search(r"^ +4  shuffle\(buffer_size=20, seed=42\)$", output, re.M)
    for other in ("[1]", "[" * 100_000):
        (tmp_path / "other.json").write_text(other)
        failed = packtok_cli("stream", "show", "other.json", cwd=tmp_path, code=2)
        assert "other.json: not the state of a stream as JSON" in failed.stderr


@pytest.mark.parametrize("executor_type", ["thread", "process"])
def test_kept_outputs_are_not_computed_again(executor_type: Any) -> None:
    samples = CheckpointableDataset.from_sequence([{"n": i} for i in range(60)])

    def dataset() -> CheckpointableDataset:
        kind: Any = executor_type
        called = samples.parallel_filter_map(random_number, 2, 4, executor_type=kind, keep_outputs=True)
        return called.enumerate().batch(3)

    found: list[dict[str, Any]] = []
    state = None
    for stop in (0, 4, 5, 11, 40):
        with dataset().iter(json.loads(json.dumps(state)) if state else None) as iterator:
            found += [plain(batch) for batch in itertools.islice(iterator, stop - len(found))]
            time.sleep(0.05)
            previous, state = state, iterator.state_dict()
    numbers = [n for batch in found for n in batch["n"]]
    assert numbers == [n for n in range(60) if n % 7]
    assert [step for batch in found for step in batch["step"]] == list(range(len(numbers)))
    # Outputs contain random numbers, so two streams from one state agree only if finished outputs are kept.
    again = [dataset().iter(previous) for _ in range(2)]
    assert plain(next(again[0])) == plain(next(again[1]))
    with pytest.raises(ValueError, match="shuffle cannot follow a function with keep_outputs"):
        dataset().shuffle(3)
    with pytest.raises(TypeError, match="an option of parallel functions"):
        samples.map(dict, keep_outputs=True)  # type: ignore[call-arg]


# --- what must not be lost ---


def test_state_after_an_error_is_before_the_sample_that_failed(shards: list[str]) -> None:
    faults = [ZeroDivisionError("now"), KeyboardInterrupt()]

    def fails_once(sample: dict[str, Any]) -> dict[str, Any]:
        if sample["text"] == "2.3" and faults:
            raise faults.pop(0)
        return sample

    files = CheckpointableDataset.from_files(shards)
    expected = [sample["text"] for sample in files]
    dataset = files.map(fails_once).batch(3)
    found: list[str] = []
    state = None
    for _ in range(3):
        with dataset.iter(state) as iterator:
            try:
                for batch in iterator:
                    found += batch["text"]
            except (ZeroDivisionError, KeyboardInterrupt):
                with pytest.raises(packtok.PacktokError, match="ended with an error before"):
                    next(iterator)
            state = iterator.state_dict()
            assert iterator.report()["num_bad"] == 0
    assert found == expected


def test_state_in_a_signal_handler_is_an_error() -> None:
    program = """
import os, signal, threading
from packtok.stream import CheckpointableDataset
handled = threading.Event()
def slow(sample):
    if not handled.is_set():
        os.kill(os.getpid(), signal.SIGTERM)
        handled.wait(60)
    return sample
iterator = CheckpointableDataset.from_sequence([1, 2]).parallel_map(slow, 1, 1, executor_type="thread").iter()
def saves(*_):
    try:
        iterator.state_dict()
    except RuntimeError as error:
        print(error)
    handled.set()
    iterator.close()
signal.signal(signal.SIGTERM, saves)
try:
    next(iterator)
except RuntimeError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.stdout.splitlines()[0].startswith("the stream is in use by this thread"), done.stderr
    assert done.returncode == 0


def test_divided_streams_are_not_combined() -> None:
    divided = CheckpointableDataset.from_sequence([{"n": i} for i in range(8)]).distribute(2, 0, 2)
    for combine in (concat_datasets, interleave_datasets):
        with pytest.raises(ValueError, match="combine the datasets, then distribute"):
            combine([divided, divided])


def test_cache_tries_again_after_an_error() -> None:
    faults = [OSError("once")]

    def fails_once(sample: dict[str, int]) -> dict[str, int]:
        if sample["n"] == 3 and faults:
            raise faults.pop()
        return sample

    cached = CheckpointableDataset.from_sequence([{"n": i} for i in range(6)]).map(fails_once).cache()
    with pytest.raises(OSError, match="once"):
        list(cached)
    assert [sample["n"] for sample in cached] == list(range(6))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda files: files.shuffle(3, seed=-1), "seed is -1"),
        (lambda files: files.from_files(__file__, seed=-1), "seed is -1"),
        (lambda files: files.from_files(__file__, on_bad_document="skipp"), "on_bad_document is 'skipp'"),
        (lambda files: files.tokenize("gpt2", {"max_length": 4}), "need each other"),
        (lambda files: files.tokenize("gpt2", {"truncation": "only_first"}), "truncation is 'only_first'"),
    ],
)
def test_wrong_arguments_are_named_when_they_are_given(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(CheckpointableDataset.from_sequence([{"text": "a"}]))


def test_batches_that_cannot_be_made_are_not_lost() -> None:
    faults = [ZeroDivisionError("collating")]

    def collated(samples: list[Any]) -> list[int]:
        if len(samples) == 2 and samples[0]["n"] == 2 and faults:
            raise faults.pop()
        return [sample["n"] for sample in samples]

    dataset = CheckpointableDataset.from_sequence([{"n": i} for i in range(6)]).batch(2, collate_fn=collated)
    iterator = dataset.iter()
    assert next(iterator) == [0, 1]
    with pytest.raises(ZeroDivisionError, match="collating"):
        next(iterator)
    with pytest.raises(packtok.PacktokError, match="ended with an error before: collating"):
        next(iterator)
    assert list(dataset.iter(iterator.state_dict())) == [[2, 3], [4, 5]]


@pytest.mark.parametrize("is_distributed", [False, True])
def test_state_after_an_error_is_close_to_it(is_distributed: bool) -> None:
    def fails(sample: dict[str, int]) -> dict[str, int]:
        if sample["n"] == 25_000:
            raise ZeroDivisionError
        return sample

    dataset = CheckpointableDataset.from_sequence([{"n": i} for i in range(30_000)])
    rows = dataset.distribute(1, rank=0, num_replicas=1).map(fails) if is_distributed else dataset.map(fails)
    with rows.iter() as iterator:
        with pytest.raises(ZeroDivisionError):
            for _ in iterator:
                pass
        state = iterator.state_dict()
    assert state["skip"] < (1025 if is_distributed else 25_000)
    with rows.iter(state) as iterator, pytest.raises(ZeroDivisionError):
        next(iterator)

"""States of streams and arguments of operators: those that a state identifies, and those that may differ."""

from __future__ import annotations

import functools
import inspect
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")
from stories import TOKENIZER

import packtok
from packtok.stream import CheckpointableDataset, concat_datasets, interleave_datasets, merge_states

Dataset = CheckpointableDataset
TEXTS = [f"{i} word{' more' * (i % 5)}" for i in range(40)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with files of JSON lines, their raw indexes, texts, two pbins, and ids alone."""
    folder = tmp_path_factory.mktemp("states")
    for name, texts in (("a", TEXTS), ("b", TEXTS[::-1])):
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps({"text": text, "other": text[::-1]}) + "\n" for text in texts))
        packtok.index(str(path))
        packtok.pack(input=path, output=folder / f"{name}.pbin", tokenizer=TOKENIZER)
    (folder / "a.txt").write_text("\n".join(TEXTS))
    np.array([5, 0, 6, 1] * 12, np.uint16).tofile(folder / "ids.bin")
    return folder


def plain(sample: Any) -> Any:
    """Returns a sample in a form that can be compared."""
    if isinstance(sample, dict):
        return {name: plain(value) for name, value in sample.items()}
    return sample.tolist() if hasattr(sample, "tolist") else sample


def cut(sample: dict[str, Any], length: int = 3, *, column: str = "text") -> dict[str, Any]:
    return {**sample, column: sample[column][:length]}


def cut_or_not(sample: dict[str, Any]) -> dict[str, Any]:
    return cut(sample, 4)


class Cut:
    """A function with an attribute."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __call__(self, sample: dict[str, Any]) -> dict[str, Any]:
        return cut(sample, self._length)


class Characters:
    """A tokenizer of another library."""

    def __init__(self, vocabulary: dict[str, int]) -> None:
        self.vocabulary = vocabulary

    def __call__(self, text: str, *, shift: int = 0) -> dict[str, list[int]]:
        return {"input_ids": [self.vocabulary.get(character, 9) + shift for character in text]}


class Special:
    bos_token_id, eos_token_id = 3, 4


class OtherSpecial:
    bos_token_id, eos_token_id = 3, 5


def first_ids(samples: list[dict[str, Any]]) -> list[Any]:
    return [plain(sample) for sample in samples]


def last_ids(samples: list[dict[str, Any]]) -> list[Any]:
    return [plain(sample) for sample in samples[::-1]]


def texts() -> Dataset:
    return Dataset.from_sequence([{"text": text, "other": text[::-1]} for text in TEXTS])


def numbers() -> Dataset:
    ids = [list(range(n, n + 1 + n % 7)) for n in range(40)]
    samples = [{"input_ids": row, "labels": [-100 for _ in row]} for row in ids]
    return Dataset.from_sequence(samples)


PARALLEL = {"max_workers": 2, "prefetch_factor": 2, "ordered": True, "executor_type": "thread"}
OTHER_PARALLEL = {"max_workers": 1, "prefetch_factor": 3, "ordered": False, "executor_type": "process"}
FIELDS = ("labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens")
OPTIONS: dict[str, tuple[Any, Any]] = {"rng": (False, None), "seed": (42, 1), "version": ("1", "2")}
CHARACTERS = Characters({"w": 1})


def operators(folder: Path) -> dict[str, tuple[Callable[..., Dataset], dict[str, Any], dict[str, list[Any]]]]:
    """Returns, for each operator, the call, its arguments, and other values of each argument.

    An argument without other values has nothing that a state could compare.
    """
    files = [str(folder / "a.jsonl"), str(folder / "b.jsonl")]
    rows: dict[str, Any] = {"chunk_length": 4, "target_columns": ("input_ids",), "drop_remainder": False}
    other_rows: dict[str, list[Any]] = {
        "chunk_length": [5],
        "target_columns": [("input_ids", "labels")],
        "drop_remainder": [True],
        "fields": [{name: True} for name in FIELDS],
    }
    function: dict[str, Any] = {"fn": cut}
    other_function: dict[str, list[Any]] = {
        "fn": [cut_or_not, functools.partial(cut, length=4), Cut(5)],
        "options": [{"version": "2"}, {"rng": True, "version": "2"}],
    }
    parallel = {name: [value] for name, value in OTHER_PARALLEL.items()}
    kept = {"options": [{"version": "2"}, {"keep_outputs": True}]}
    return {
        "from_files": (
            Dataset.from_files,
            {"urls": files, "n_active_shards": 1},
            {
                "urls": [files[::-1], files[:1], [files[0], str(folder / "a.txt")]],
                "repeat": [True],
                "shuffle_shards": [True],
                "format": ["text", "jsonl"],
                "n_active_shards": [2],
                "n_standby_shards": [7],
                "timeout": [1.0],
                "ignore": ["*.none"],
                "max_document_bytes": [1000],
                "zstd_window_log": [20],
                "n_prefetch_samples": [3],
                "seed": [1],
                "text_column": ["other"],
                "on_bad_document": ["skip"],
                "shuffle": ["documents"],
            },
        ),
        "from_pbin": (
            Dataset.from_pbin,
            {"paths": [folder / "a.pbin", folder / "b.pbin"]},
            {
                "paths": [[folder / "b.pbin", folder / "a.pbin"], [folder / "a.pbin"]],
                "repeat": [True],
                "shuffle": [True],
                "seed": [1],
                "format": ["pbin"],
                "input_dtype": ["uint16"],
                "boundaries": [],
            },
        ),
        "from_pbin of ids alone": (
            Dataset.from_pbin,
            {"paths": [folder / "ids.bin"], "format": "raw", "input_dtype": "uint16", "boundaries": "eos=0"},
            {
                "paths": [],
                "repeat": [],
                "shuffle": [],
                "seed": [],
                "format": [None],
                "input_dtype": ["uint8"],
                "boundaries": ["eos=1", "bos=0", None],
            },
        ),
        "from_sequence": (
            Dataset.from_sequence,
            {"sequence": [{"n": i} for i in range(20)], "shuffle": True},
            {
                # A state records only the length of a sequence.
                "sequence": [[{"n": i} for i in range(21)]],
                "repeat": [True],
                "shuffle": [False],
                "shuffle_seed": [1],
            },
        ),
        # The samples of these sources are unknown before they are read.
        "from_iterable": (
            Dataset.from_iterable,
            {"iterable": [{"n": 1}] * 9},
            {"iterable": [], "repeat": [True]},
        ),
        "from_huggingface": (
            Dataset.from_huggingface,
            {"dataset": [{"n": i} for i in range(20)]},
            {"dataset": [[{"n": i} for i in range(21)]], "repeat": [True]},
        ),
        "from_mosaicml": (
            Dataset.from_mosaicml,
            {"mosaicml_dataset": None},
            {"mosaicml_dataset": [], "repeat": []},
        ),
        "map": (texts().map, function, other_function),
        "filter": (texts().filter, function, other_function),
        "filter_map": (texts().filter_map, function, other_function),
        "parallel_map": (
            texts().parallel_map,
            {**function, **PARALLEL},
            {**other_function, **parallel, **kept},
        ),
        "parallel_filter": (
            texts().parallel_filter,
            {**function, **PARALLEL},
            # Processes take long to start.
            {**other_function, **parallel, **kept, "executor_type": []},
        ),
        "parallel_filter_map": (
            texts().parallel_filter_map,
            {**function, **PARALLEL},
            # Processes take long to start.
            {**other_function, **parallel, **kept, "executor_type": []},
        ),
        "tokenize": (
            texts().tokenize,
            {"tokenizer": TOKENIZER},
            {
                "tokenizer": [CHARACTERS, "gpt2"],
                "tokenizer_kwargs": [
                    {"add_special_tokens": False},
                    {"truncation": True, "max_length": 2},
                    {"return_attention_mask": False},
                ],
                "target_column": ["other"],
                "parallel": [False],
                "max_workers": [3],
                "prefetch_factor": [2],
                "ordered": [False],
                "executor_type": ["process"],
                "add_special_tokens_from_config": [True],
            },
        ),
        "tokenize by a callable": (
            texts().tokenize,
            {"tokenizer": CHARACTERS, "tokenizer_kwargs": {"shift": 1}},
            {
                "tokenizer": [Characters({"w": 2}), functools.partial(CHARACTERS, shift=2)],
                "tokenizer_kwargs": [{"shift": 2}, {}],
                "target_column": ["other"],
                "parallel": [False],
                "max_workers": [3],
                "prefetch_factor": [2],
                "ordered": [False],
                "executor_type": ["process"],
                "add_special_tokens_from_config": [],
            },
        ),
        "add_bos_eos": (
            numbers().add_bos_eos,
            {"bos_token_id": -1, "eos_token_id": -2},
            {"bos_token_id": [None, 5], "eos_token_id": [None, 5], "target_column": ["labels"]},
        ),
        "ensure_bos_eos": (
            numbers().ensure_bos_eos,
            {"tokenizer": Special()},
            {"tokenizer": [OtherSpecial()], "target_column": ["labels"]},
        ),
        "chunk": (numbers().chunk, rows, other_rows),
        "concat_chunk": (numbers().concat_chunk, rows, other_rows),
        "pack_chunk": (
            numbers().pack_chunk,
            {"chunk_length": 4, "target_columns": ("input_ids",)},
            {
                "chunk_length": [5],
                "target_columns": [("input_ids", "labels")],
                "discard_long_samples": [True],
                "strategy": ["best_fit"],
                "window": [3],
                "fields": other_rows["fields"],
            },
        ),
        "pack_chunk by best fit": (
            numbers().pack_chunk,
            {"chunk_length": 4, "strategy": "best_fit", "window": 10},
            {
                "chunk_length": [5],
                "target_columns": [("input_ids", "labels")],
                "discard_long_samples": [],
                "strategy": ["next_fit"],
                "window": [3],
                "fields": other_rows["fields"],
            },
        ),
        "pad": (
            numbers().chunk(4, drop_remainder=False).pad,
            {"pad_values": {"input_ids": -1}, "chunk_length": 4},
            {
                "pad_values": [{"input_ids": -2}],
                "chunk_length": [5],
                "fields": other_rows["fields"],
            },
        ),
        "shuffle": (texts().shuffle, {"buffer_size": 5}, {"buffer_size": [6], "seed": [1]}),
        "batch": (
            texts().batch,
            {"batch_size": 7, "collate_fn": first_ids},
            {
                "batch_size": [8],
                "collate_fn": [last_ids, functools.partial(last_ids)],
                "drop_last": [True],
                "global_batch_size": [],
                "pin_memory": [],
            },
        ),
        "batch of ranks": (
            texts().distribute(4, rank=0, num_replicas=1).batch,
            {"global_batch_size": 8},
            {
                "batch_size": [],
                "collate_fn": [first_ids],
                "drop_last": [True],
                "global_batch_size": [4],
                "pin_memory": [],
            },
        ),
        "distribute": (
            texts().distribute,
            {"lanes": 4, "rank": 0, "num_replicas": 1},
            {
                "lanes": [2],
                # A rank has a part of the samples; test_stream.py compares the samples of all ranks.
                "rank": [],
                "num_replicas": [],
                "device_mesh": [],
                "dp_dim": [],
                "at_epoch_end": ["drop"],
            },
        ),
        "take": (texts().take, {"max_count": 20}, {"max_count": [30]}),
        "skip": (texts().skip, {"count": 20}, {"count": [15]}),
        "stride": (texts().stride, {"interval": 3, "offset": 1}, {"interval": [2], "offset": [0]}),
        "enumerate": (texts().enumerate, {}, {"count_column": ["number"]}),
        "cache": (texts().cache, {}, {}),
        "interleave_datasets": (
            interleave_datasets,
            {"sources": [texts(), texts().map(cut)], "weights": [2, 1]},
            {
                "sources": [[texts().map(cut), texts()], [texts(), texts().take(9)]],
                "weights": [[1, 1]],
                "chunk_size": [5],
            },
        ),
        "concat_datasets": (
            concat_datasets,
            {"sources": [texts(), texts().take(5)]},
            {"sources": [[texts().take(5), texts()]]},
        ),
    }


def of_call(make: Callable[..., Dataset], arguments: dict[str, Any]) -> Dataset:
    """Calls an operator whose options and fields are in the argument of this name."""
    named = dict(arguments)
    more = {**named.pop("options", {}), **named.pop("fields", {})}
    return make(**named, **more)


NUM_READ = 5


def state_after(dataset: Dataset) -> tuple[dict[str, Any], list[Any]]:
    """Returns the state after some samples, and the samples that follow."""
    with dataset.iter() as iterator:
        for _ in range(NUM_READ):
            next(iterator)
        state = iterator.state_dict()
        return json.loads(json.dumps(state)), [plain(next(iterator, None)) for _ in range(6)]


def names_of_operators() -> set[str]:
    """Returns the names of all sources and operators."""
    own = {
        name
        for base in Dataset.__mro__
        if base.__module__.startswith("packtok.")
        for name in vars(base)
        if not name.startswith("_")
    }
    return {*own, "interleave_datasets", "concat_datasets"} - {"iter"}


def test_every_argument_of_every_operator_is_compared(folder: Path) -> None:
    table = operators(folder)
    assert {name.split()[0] for name in table} == names_of_operators()
    for name, (make, arguments, others) in table.items():
        parameters = set(inspect.signature(make).parameters)
        assert set(others) == parameters, name
        assert set(arguments) <= parameters, name


NAMES = [
    "from_files",
    "from_pbin",
    "from_pbin of ids alone",
    "from_sequence",
    "from_iterable",
    "from_huggingface",
    "map",
    "filter",
    "filter_map",
    "parallel_map",
    "parallel_filter",
    "parallel_filter_map",
    "tokenize",
    "tokenize by a callable",
    "add_bos_eos",
    "ensure_bos_eos",
    "chunk",
    "concat_chunk",
    "pack_chunk",
    "pack_chunk by best fit",
    "pad",
    "shuffle",
    "batch",
    "batch of ranks",
    "distribute",
    "take",
    "skip",
    "stride",
    "enumerate",
    "interleave_datasets",
    "concat_datasets",
]


@pytest.mark.parametrize("name", NAMES)
def test_state_with_another_argument_is_refused_or_gives_equal_samples(folder: Path, name: str) -> None:
    make, arguments, others = operators(folder)[name]
    state, expected = state_after(of_call(make, arguments))
    for argument, values in others.items():
        for value in values:
            changed = of_call(make, {**arguments, argument: value})
            try:
                iterator = changed.iter(state)
            except ValueError as error:
                if str(error).startswith("the state is of another recipe: "):
                    continue
                raise
            with iterator:
                found = [plain(next(iterator, None)) for _ in expected]
            assert found == expected, (argument, value)


def difference(dataset: Dataset, other: Dataset) -> str:
    """Returns the message about a state of another recipe."""
    with dataset.iter() as iterator:
        state = iterator.state_dict()
    with pytest.raises(ValueError, match="the state is of another recipe") as raised:
        other.iter(state)
    return str(raised.value)


def test_messages_name_the_argument_and_how_to_permit_it(folder: Path) -> None:
    def best_fit(window: int) -> Dataset:
        return numbers().pack_chunk(4, strategy="best_fit", window=window)

    remedy = "load it into its own recipe, or permit it with allow="
    for dataset, other, message in (
        (
            best_fit(10),
            best_fit(3),
            f"window of step 2 (pack_chunk) is 10, expected 3; {remedy}['pack_chunk.window']",
        ),
        (
            best_fit(10),
            numbers().pack_chunk(4),
            "strategy of step 2 (pack_chunk) is 'best_fit', expected 'next_fit'; "
            f"{remedy}['pack_chunk.strategy']",
        ),
        (
            texts().map(functools.partial(cut, length=4)),
            texts().map(functools.partial(cut, length=5)),
            f"arguments of step 2 (call) is '{__name__}.cut(length=4)', expected '{__name__}.cut(length=5)'; "
            f"{remedy}['call.arguments']",
        ),
        (
            texts().map(Cut(4)),
            texts().map(Cut(5)),
            f"arguments of step 2 (call) is '{__name__}.Cut(_length=4)', "
            f"expected '{__name__}.Cut(_length=5)'; {remedy}['call.arguments']",
        ),
        (
            texts().tokenize(Characters({"w": 1})),
            texts().tokenize(Characters({"w": 2})),
            f"arguments of step 2 (call) is \"{__name__}.Characters(vocabulary={{'w': 1}})\", expected "
            f"\"{__name__}.Characters(vocabulary={{'w': 2}})\"; {remedy}['call.arguments']",
        ),
        (
            Dataset.from_files([folder / "a.jsonl", folder / "b.jsonl"]),
            Dataset.from_files([folder / "b.jsonl", folder / "a.jsonl"]),
            f"the files are in another order (step 1); {remedy}['from_files.files']",
        ),
        (
            texts().take(3),
            texts().stride(3, 1),
            "step 2 is take, expected stride; load it into its own recipe",
        ),
        (
            best_fit(10).cache(),
            best_fit(3).cache(),
            "in the cache of step 1, window of step 2 (pack_chunk) is 10, expected 3; "
            f"{remedy}['from_samples.recipe']",
        ),
    ):
        assert difference(dataset, other) == f"the state is of another recipe: {message}"


def test_fingerprint_or_vocabulary_identifies_a_callable_tokenizer() -> None:
    class WithFingerprint(Characters):
        fingerprint = "abc"

    class WithVocabulary(Characters):
        def get_vocab(self) -> dict[str, int]:
            return self.vocabulary

    assert 'arguments of step 2 (call) is "' in difference(
        texts().tokenize(WithVocabulary({"w": 1})), texts().tokenize(WithVocabulary({"w": 2}))
    )
    with texts().tokenize(WithFingerprint({"w": 1})).iter() as iterator:
        assert iterator.state_dict()["recipe"][1]["arguments"] == "abc"


def test_unknown_name_in_allow_is_an_error() -> None:
    dataset = texts().shuffle(4)
    with dataset.iter() as iterator:
        state = iterator.state_dict()
    for saved in (state, None):
        with pytest.raises(
            ValueError, match=r"allow has 'shuffle\.sede', which is no argument of this recipe; "
        ):
            dataset.iter(saved, allow=["shuffle.sede"])
    with texts().shuffle(4, seed=1).iter(state, allow=["shuffle.seed"]) as iterator:
        next(iterator)


def test_states_of_earlier_versions_load_with_one_warning(folder: Path) -> None:
    call = functools.partial(cut, length=4)
    files = Dataset.from_files([folder / "a.jsonl", folder / "b.jsonl"])
    tokens = files.map(call).tokenize(TOKENIZER).pack_chunk(8, strategy="best_fit", window=9)
    dataset = tokens.batch(2, collate_fn=first_ids)
    state, expected = state_after(dataset)
    # The steps in the form of versions that did not record these arguments.
    steps = {step["op"]: step for step in state["recipe"]}
    steps["from_files"]["files"] = dict(steps["from_files"]["files"])
    steps["tokenize"]["on_bad_document"] = "fail"
    del steps["call"]["arguments"], steps["batch"]["collate_fn"]
    del steps["pack_chunk"]["window"], steps["pack_chunk"]["strategy"]
    with pytest.warns(UserWarning, match="the state is of an earlier version") as warned:
        iterator = dataset.iter(state)
    assert [str(warning.message) for warning in warned] == [
        "the state is of an earlier version, which did not record call.arguments, pack_chunk.window, "
        "batch.collate_fn: make sure that they are as they were"
    ]
    with iterator:
        assert [plain(next(iterator, None)) for _ in expected] == expected
    # The recorded arguments are compared.
    with pytest.raises(ValueError, match="strategy of step 4"):
        files.map(call).tokenize(TOKENIZER).pack_chunk(8).batch(2).iter(state)


def test_states_of_earlier_versions_without_missing_arguments_load_silently(folder: Path) -> None:
    dataset = Dataset.from_files(folder / "a.jsonl").map(cut).tokenize(TOKENIZER).concat_chunk(8).batch(2)
    state, expected = state_after(dataset)
    steps = {step["op"]: step for step in state["recipe"]}
    steps["from_files"]["files"] = dict(steps["from_files"]["files"])
    steps["tokenize"]["on_bad_document"] = "fail"
    del steps["batch"]["collate_fn"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        iterator = dataset.iter(state)
    with iterator:
        assert [plain(next(iterator, None)) for _ in expected] == expected


def test_states_of_ranks_with_other_functions_are_not_merged() -> None:
    def of_rank(rank: int) -> dict[str, Any]:
        dataset = texts().map(functools.partial(cut, length=rank)).distribute(2, rank=rank, num_replicas=2)
        with dataset.iter() as iterator:
            return iterator.state_dict()

    with pytest.raises(
        ValueError, match=r"state 1 is of another recipe than state 0: arguments of step 2 \(call\) is"
    ):
        merge_states([of_rank(0), of_rank(1)])

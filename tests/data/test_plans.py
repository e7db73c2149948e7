"""Plans and splits in Python: compared with the oracle, loaded or created once, interrupted and rejected."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import make
import pbins
import pytest
import reference
import reference_plans
from hypothesis import given, settings
from hypothesis import strategies as st
from repository import GOLDEN

from packtok import PacktokError
from packtok._packtok import Blocks, find_or_plan, find_or_split

SIDES = ["train", "validation"]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Returns a new folder at each call, because Hypothesis runs one test many times."""
    return lambda: tmp_path_factory.mktemp("plans")


def whole(files: list[Path], **options: Any) -> Blocks:
    return Blocks([str(file) for file in files], packing="whole", **options)


def write(folder: Path, files: list[list[list[int]]], width: int = 2) -> list[Path]:
    return [pbins.write(folder / f"{i}.pbin", documents, width) for i, documents in enumerate(files)]


def joined(files: list[list[list[int]]]) -> list[list[int]]:
    return [document for documents in files for document in documents]


def items(blocks: Blocks) -> list[list[int]]:
    return [blocks[i].tolist() for i in range(len(blocks))]


documents = st.lists(st.lists(st.integers(0, 255), max_size=12), min_size=1, max_size=15)
datasets = st.lists(documents, min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("name", "blocks", "runs"),
    [
        ("best_fit.plan", reference_plans.best_fit_blocks(make.PLANNED_LENGTHS, 10), []),
        ("megatron.plan", [[(0, 10)], [(25, 35)], [(30, 40)]], []),
        ("split_by_hash.plan", [], [(0, 0), (1, 3), (3, 5), (4, 9)]),
    ],
)
def test_golden_files_equal_what_the_oracle_writes_and_reads(
    name: str, blocks: list[list[tuple[int, int]]], runs: list[tuple[int, int]]
) -> None:
    path = GOLDEN / name
    assert path.read_bytes() == make.golden()[name]
    plan = reference_plans.read_plan_file(path)
    assert (plan.blocks, plan.runs) == (blocks, runs)


@given(files=datasets, context_length=st.integers(1, 20), width=st.sampled_from([1, 2, 4]))
@settings(max_examples=60, deadline=None)
def test_best_fit_plans_equal_those_of_the_oracle(
    scratch: Callable[[], Path], files: list[list[list[int]]], context_length: int, width: int
) -> None:
    folder = scratch()
    paths = write(folder, files, width)
    stream = [token for document in joined(files) for token in document]
    expected = reference_plans.best_fit_blocks([len(document) for document in joined(files)], context_length)

    path = find_or_plan(whole(paths), planner="best_fit", block_size=context_length, folders=[folder])
    plan = reference_plans.read_plan_file(path)
    assert (plan.kind, plan.options, plan.blocks) == (1, (context_length, 0), expected)
    padding = len(expected) * context_length - len(stream)
    pieces = sum(len(block) for block in expected)
    assert plan.counts == (len(expected), pieces, 0, padding, len(stream))

    blocks = Blocks([str(path) for path in paths], packing="planned", plan_path=path)
    assert (blocks.context_length, blocks.num_dropped_tokens) == (context_length, 0)
    assert blocks.num_padding_tokens == padding
    assert items(blocks) == [
        [token for start, stop in block for token in stream[start:stop]] for block in expected
    ]


@given(files=datasets, block_size=st.integers(1, 20), width=st.sampled_from([1, 2, 4]))
@settings(max_examples=60, deadline=None)
def test_megatron_plans_equal_those_of_the_oracle(
    scratch: Callable[[], Path], files: list[list[list[int]]], block_size: int, width: int
) -> None:
    folder = scratch()
    paths = write(folder, files, width)
    stream = [token for document in joined(files) for token in document]
    expected = reference_plans.megatron_spans([len(document) for document in joined(files)], block_size)
    served = {token for start, stop in expected for token in range(start, stop)}

    path = find_or_plan(whole(paths), planner="megatron", block_size=block_size, folders=[folder])
    plan = reference_plans.read_plan_file(path)
    assert (plan.kind, plan.options) == (2, (block_size, 0))
    assert plan.blocks == [[block] for block in expected]
    dropped = len(stream) - len(served)
    assert plan.counts == (len(expected), len(expected), dropped, 0, len(stream))

    blocks = Blocks([str(path) for path in paths], packing="planned", plan_path=path)
    assert blocks.num_dropped_tokens == dropped
    assert items(blocks) == [stream[start:stop] for start, stop in expected]


@given(
    files=datasets,
    fraction=st.floats(0, 1),
    seed=st.integers(0, 2**64 - 1),
    width=st.sampled_from([1, 2, 4]),
)
@settings(max_examples=60, deadline=None)
def test_hash_splits_equal_those_of_the_oracle(
    scratch: Callable[[], Path], files: list[list[list[int]]], fraction: float, seed: int, width: int
) -> None:
    folder = scratch()
    paths = write(folder, files, width)
    path = find_or_split(whole(paths), fraction=fraction, seed=seed, folders=[folder])
    split = reference_plans.read_plan_file(path)
    assert (split.kind, split.options[0]) == (3, seed)
    held_out = [reference_plans.is_held_out(document, fraction, seed) for document in joined(files)]
    for side in SIDES:
        expected = [
            document
            for document, is_held_out in zip(joined(files), held_out, strict=True)
            if is_held_out == (side == "validation")
        ]
        assert items(whole(paths, split_path=path, side=side)) == expected


@given(before=documents, added=documents)
@settings(max_examples=30, deadline=None)
def test_no_document_changes_sides_when_files_are_added(
    scratch: Callable[[], Path], before: list[list[int]], added: list[list[int]]
) -> None:
    folder = scratch()
    paths = write(folder, [before, added])
    for rule in ({"fraction": 0.5}, {"first_document": 1}):
        first = find_or_split(whole(paths[:1]), **rule, folders=[folder])
        second = find_or_split(whole(paths), **rule, folders=[folder])
        validation = items(whole(paths[:1], split_path=first, side="validation"))
        assert items(whole(paths, split_path=second, side="validation"))[: len(validation)] == validation


@pytest.mark.parametrize(
    ("rule", "num_train"),
    [
        ({"last": 2}, 4),
        ({"last": 0}, 6),
        ({"last": 6}, 0),
        ({"last": 0.5}, 3),
        ({"last": 0.4}, 4),
        ({"last": 1.0}, 0),
        ({"first_document": 5}, 5),
        ({"first_document": 6}, 6),
    ],
)
def test_last_documents_are_held_out(tmp_path: Path, rule: dict[str, Any], num_train: int) -> None:
    files = [[[1], [2, 3], []], [[4], [5, 6, 7], [8]]]
    paths = write(tmp_path, files)
    path = find_or_split(whole(paths), **rule, folders=[tmp_path])
    split = reference_plans.read_plan_file(path)
    assert (split.kind, split.options) == (4, (num_train, 0))
    assert items(whole(paths, split_path=path, side="train")) == joined(files)[:num_train]
    assert items(whole(paths, split_path=path, side="validation")) == joined(files)[num_train:]


def test_each_side_has_its_own_plan_and_together_they_cover_all_tokens(tmp_path: Path) -> None:
    files = [[[i, i + 1] * (i % 7) + [255] for i in range(40)], [[i] for i in range(40, 60)]]
    paths = write(tmp_path, files)
    split = find_or_split(whole(paths), fraction=0.3, seed=1, folders=[tmp_path])
    tokens = []
    for side in SIDES:
        chosen = {"split_path": split, "side": side}
        plan = find_or_plan(whole(paths, **chosen), planner="best_fit", block_size=9, folders=[tmp_path])
        lengths = [len(document) for document in items(whole(paths, **chosen))]
        assert reference_plans.read_plan_file(plan).blocks == reference_plans.best_fit_blocks(lengths, 9)
        blocks = Blocks([str(path) for path in paths], packing="planned", plan_path=plan, **chosen)
        tokens += [token for item in items(blocks) for token in item]
    assert sorted(tokens) == sorted(token for document in joined(files) for token in document)
    assert len(list(tmp_path.glob("best_fit-*.plan"))) == 2


def test_plan_of_other_files_is_rejected(tmp_path: Path) -> None:
    first, other = write(tmp_path, [[[1, 2]], [[3]]])
    plan = find_or_plan(whole([first]), planner="best_fit", block_size=4, folders=[tmp_path])
    with pytest.raises(PacktokError) as caught:
        Blocks([str(other)], packing="planned", plan_path=plan)
    hash_, expected = (whole([file]).fingerprint[:16] for file in (first, other))
    assert str(caught.value) == (
        f"{plan}: file was built as best_fit with options 4 and 0 from data {hash_}, expected as best_fit "
        f"with options 4 and 0 from data {expected}; the data or the options have changed; delete the file "
        "to rebuild it"
    )
    with pytest.raises(
        PacktokError, match=r"holds best_fit, expected a split; delete the file to rebuild it"
    ):
        whole([first], split_path=plan, side="train")


def test_damaged_plan_is_recreated(tmp_path: Path) -> None:
    blocks = whole(write(tmp_path, [[[1, 2], [3]]]))
    plan = find_or_plan(blocks, planner="best_fit", block_size=4, folders=[tmp_path / "plans"])
    right = plan.read_bytes()
    plan.write_bytes(right[:-1] + b"\xff")
    assert find_or_plan(blocks, planner="best_fit", block_size=4, folders=[tmp_path / "plans"]) == plan
    assert plan.read_bytes() == right
    assert os.listdir(plan.parent) == [plan.name]


def test_invalid_arguments_are_rejected_by_name(tmp_path: Path) -> None:
    paths = write(tmp_path, [[[1, 2], [3]]])
    blocks = whole(paths)

    def message(kind: type[Exception], call: Callable[..., object], **arguments: Any) -> str:
        with pytest.raises(kind) as caught:
            call(blocks, folders=[tmp_path], **arguments)
        return str(caught.value)

    assert message(ValueError, find_or_plan, planner="first_fit", block_size=4) == (
        'planner is "first_fit", expected one of best_fit, megatron'
    )
    assert message(ValueError, find_or_plan, planner="best_fit", block_size=0) == (
        "context_length is 0, expected 1 to 16777216"
    )
    for wrong, formatted in ((-0.1, "-0.1"), (1.5, "1.5"), (float("nan"), "NaN")):
        text = f"the held-out fraction is {formatted}, expected 0 to 1"
        assert message(ValueError, find_or_split, fraction=wrong) == text
    assert message(ValueError, find_or_split, last=3) == "cannot hold out 3 documents, the data has 2"
    assert message(ValueError, find_or_split, first_document=3) == (
        "the validation side starts at document 3, but the data has 2 documents"
    )
    one_of = "give exactly one of fraction (optionally with seed), last and first_document"
    for arguments in ({}, {"seed": 1}, {"last": 1, "fraction": 0.5}, {"first_document": 1, "seed": 1}):
        assert message(TypeError, find_or_split, **arguments) == one_of
    split = find_or_split(blocks, last=1, folders=[tmp_path])
    blocks = whole(paths, split_path=split, side="train")
    assert message(ValueError, find_or_split, last=1) == (
        "one side of a split cannot be split again; split the whole dataset with another rule"
    )


def test_unwritable_folders_are_named(tmp_path: Path) -> None:
    (pbin,) = write(tmp_path, [[[1]]])
    with pytest.raises(OSError, match=r"cannot write .* to any folder") as caught:
        find_or_plan(whole([pbin]), planner="best_fit", block_size=4, folders=[pbin / "a", pbin / "b"])
    assert str(pbin / "a") in str(caught.value)
    assert str(pbin / "b") in str(caught.value)


PLANS = """
import sys
from packtok._packtok import Blocks, find_or_plan
blocks = Blocks([sys.argv[1]], packing="whole")
sys.stdin.read()
print(find_or_plan(blocks, planner="best_fit", block_size=64, folders=[sys.argv[2]]))
"""


def test_eight_concurrent_processes_get_one_plan(tmp_path: Path) -> None:
    (pbin,) = write(tmp_path, [[[i % 256] * (i % 50) for i in range(5000)]])
    folder = tmp_path / "plans"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PLANS, str(pbin), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
    plans = set()
    for process in started:
        assert process.stdout is not None
        plans.add(process.stdout.read().strip())
        process.stdout.close()
        assert process.wait() == 0
    assert len(plans) == 1
    assert [str(path) for path in folder.iterdir()] == list(plans)


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """Returns a pbin of 512 documents of 1 MiB; hashing takes longer than the interval between checks."""
    length = 1 << 20
    path = tmp_path / "slow.pbin"
    index = pickle.dumps([(i * length, length) for i in range(512)], protocol=4)
    with path.open("wb") as file:
        file.write(reference.HEADER.pack(512 * length, 1))
        file.seek(512 * length, os.SEEK_CUR)
        file.write(index)
    return path


def test_progress_is_reported_and_its_exceptions_end_the_work(slow: Path, tmp_path: Path) -> None:
    reports: list[dict[str, int]] = []

    def stop(progress: dict[str, int]) -> None:
        reports.append(progress)
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match=r"^enough$"):
        find_or_split(whole([slow]), fraction=0.5, folders=[tmp_path / "plans"], on_progress=stop)
    (progress,) = reports
    assert progress["total_bytes"] == 512 << 20
    assert progress["bytes_read"] == progress["tokens"] == progress["documents"] << 20
    assert os.listdir(tmp_path / "plans") == []


def test_interrupt_ends_the_work_and_leaves_no_files(slow: Path, tmp_path: Path) -> None:
    def interrupt(_: dict[str, int]) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        find_or_split(whole([slow]), fraction=0.5, folders=[tmp_path / "plans"], on_progress=interrupt)
    assert os.listdir(tmp_path / "plans") == []

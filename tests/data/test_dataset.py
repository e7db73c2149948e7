"""Blocks and Modalities' datasets over them: items, slices, batches, pickling, and changed files."""

from __future__ import annotations

import gc
import os
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pbins
import pytest
import reference
import reference_plans
import reference_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from packtok import PacktokError, PbinFormatError
from packtok._packtok import Blocks, find_or_plan, find_or_split
from packtok.sources import find_files, plan_folders

torch = pytest.importorskip("torch", reason="needs torch, which is not installed")

import packtok  # noqa: E402

DOCUMENTS = [[1, 2, 3, 9], [9], [], [4, 5, 9], [6, 7, 8, 10, 11, 9], [12, 9]]
FLAT = [token for document in DOCUMENTS for token in document]
SLICES = [
    slice(None),
    slice(0, 0),
    slice(2, 1),
    slice(1, None, 2),
    slice(None, None, -1),
    slice(-3, None),
    slice(-1, -10, -2),
    slice(100, 200),
    slice(-100, 100, 3),
]

SIDES = [None, "train", "validation"]

widths = st.sampled_from([1, 2, 4])


def documents_of(width: int) -> st.SearchStrategy[list[list[int]]]:
    """Strategy for documents, some of them empty, with ids that use all bytes."""
    ids = st.integers(0, 256**width - 1)
    return st.lists(st.lists(ids, max_size=12), min_size=1, max_size=12)


@st.composite
def datasets(draw: st.DrawFn, max_files: int = 4) -> tuple[int, list[list[list[int]]], bool]:
    """Strategy for the token width, the documents of each file, and whether the files have trailers."""
    width = draw(widths)
    files = draw(st.lists(documents_of(width), min_size=1, max_size=max_files))
    return width, files, draw(st.booleans())


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Returns a new folder at each call, because Hypothesis runs a test many times."""
    return lambda: tmp_path_factory.mktemp("files")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Returns a file of six documents, with a trailer."""
    return pbins.write(tmp_path / "a.pbin", DOCUMENTS)


def write_all(folder: Path, width: int, files: list[list[list[int]]], trailer: bool) -> list[Path]:
    return [
        pbins.write(folder / f"{number}.pbin", documents, width, trailer=trailer)
        for number, documents in enumerate(files)
    ]


def listed(items: Any) -> list[list[int]]:
    return [item.tolist() for item in items]


def base(*arguments: Any, **options: Any) -> Any:
    return packtok.PackedMemMapDatasetBase(*arguments, **options)


def continuous(*arguments: Any, **options: Any) -> Any:
    return packtok.PackedMemMapDatasetContinuous(*arguments, **options)


@settings(max_examples=100, deadline=None)
@given(data=datasets(), block_size=st.integers(2, 30), overlap=st.integers(0, 29), by_file=st.booleans())
def test_blocks_equal_those_of_the_oracle(
    scratch: Callable[[], Path],
    data: tuple[int, list[list[list[int]]], bool],
    block_size: int,
    overlap: int,
    by_file: bool,
) -> None:
    width, files, trailer = data
    paths = write_all(scratch(), width, files, trailer)
    overlap = min(overlap, block_size - 1)
    streams = [[token for document in documents for token in document] for documents in files]
    if not by_file:
        streams = [[token for stream in streams for token in stream]]
    expected = [
        block for stream in streams for block in reference_rows.fixed_blocks(stream, block_size, overlap)
    ]

    def opened() -> Blocks:
        return Blocks(paths, packing="fixed", block_size=block_size, overlap=overlap, by_file=by_file)

    if not expected:
        with pytest.raises(
            ValueError, match=f"block_size {block_size} exceeds the {max(map(len, streams))} "
        ):
            opened()
        return
    blocks = opened()
    assert len(blocks) == len(expected)
    assert listed(blocks[i] for i in range(len(blocks))) == expected
    assert listed(blocks[:]) == expected
    assert {block.dtype for block in blocks[:]} == {np.dtype(f"u{width}")} == {blocks.dtype}
    served = [
        (len(blocks_of) - 1) * (block_size - overlap) + block_size if blocks_of else 0
        for blocks_of in (reference_rows.fixed_blocks(stream, block_size, overlap) for stream in streams)
    ]
    assert blocks.num_tokens == sum(map(len, streams))
    assert blocks.num_dropped_tokens == blocks.num_tokens - sum(served)
    assert blocks.num_padding_tokens == 0


@settings(max_examples=100, deadline=None)
@given(data=datasets())
def test_whole_packing_serves_documents(
    scratch: Callable[[], Path], data: tuple[int, list[list[list[int]]], bool]
) -> None:
    width, files, trailer = data
    documents = [document for file in files for document in file]
    blocks = Blocks(write_all(scratch(), width, files, trailer), packing="whole")
    assert (len(blocks), blocks.num_documents) == (len(documents), len(documents))
    assert listed(blocks[i] for i in range(-len(blocks), 0)) == documents
    assert (blocks.num_dropped_tokens, blocks.num_padding_tokens) == (0, 0)


@settings(max_examples=60, deadline=None)
@given(data=datasets(), block_size=st.integers(1, 20))
def test_megatron_blocks_equal_those_of_the_oracle(
    scratch: Callable[[], Path], data: tuple[int, list[list[list[int]]], bool], block_size: int
) -> None:
    width, files, trailer = data
    folder = scratch()
    paths = write_all(folder, width, files, trailer)
    documents = [document for file in files for document in file]
    tokens = [token for document in documents for token in document]
    spans = reference_plans.megatron_spans([len(document) for document in documents], block_size)
    expected = [tokens[start:stop] for start, stop in spans]
    dataset = packtok.PackedMemMapDatasetMegatron(paths, "x", block_size, zero_copy=True)
    assert listed(dataset[:]["x"]) == expected
    assert listed(dataset[::-2]["x"]) == expected[::-2]
    assert {item.dtype for item in dataset[:]["x"]} <= {np.dtype(f"u{width}")}
    assert [path.suffix for path in folder.iterdir() if path not in paths and path.suffix != ".lock"] == [
        ".plan"
    ]
    again = pickle.loads(pickle.dumps(dataset))
    assert listed(again[:]["x"]) == expected
    assert again.fingerprint == dataset.fingerprint


def test_document_longer_than_a_megatron_block_is_cut(tmp_path: Path) -> None:
    path = pbins.write(tmp_path / "a.pbin", [[1, 2], [3], [4, 5, 6, 7, 8, 9], [10], [11, 12, 13], [14, 15]])
    dataset = packtok.PackedMemMapDatasetMegatron(path, "x", 4, cache_dir=tmp_path / "plans", dtype="int64")
    # 3 fits, 4 … does not. 8 and 9 are in no block. The block that starts at 14 would pass the end.
    assert listed(dataset[:]["x"]) == [[1, 2, 3, 4], [4, 5, 6, 7], [10, 11, 12, 13]]
    assert (dataset.blocks.num_dropped_tokens, dataset.blocks.num_padding_tokens) == (4, 0)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.pbin", "plans"]
    assert dataset.locate(0) == [(str(path), 0, 0, 2), (str(path), 1, 0, 1), (str(path), 2, 0, 1)]


def test_numbers_of_megatron_blocks_are_those_of_modalities(tmp_path: Path) -> None:
    lengths = (6, 10, 3, 1)
    path = pbins.write(tmp_path / "a.pbin", [[*range(length)] for length in lengths], width=4)
    # The result of Modalities 0.5.0 for these documents.
    for block_size, expected in ((1, 4), (2, 3), (3, 3), (6, 2), (10, 2), (20, 1), (25, 0)):
        dataset = packtok.PackedMemMapDatasetMegatron(path, "x", block_size)
        assert len(dataset) == expected, block_size
        assert [len(item) for item in dataset[:]["x"]] == [block_size] * expected
        assert len(pickle.loads(pickle.dumps(dataset))) == expected
    with pytest.raises(IndexError, match=r"^item 0 is out of range, the dataset has 0$"):
        dataset[0]


def test_token_size_in_bytes_is_that_of_the_file(tmp_path: Path) -> None:
    for width in (1, 2, 4):
        path = pbins.write(tmp_path / f"{width}.pbin", [[1, 2, 3, 4]], width=width)
        for dataset in (
            packtok.PackedMemMapDatasetBase(path, "x"),
            packtok.PackedMemMapDatasetContinuous(path, "x", 2, True, dtype="int64"),
            packtok.PackedMemMapDatasetMegatron(path, "x", 2, zero_copy=True),
        ):
            assert dataset.token_size_in_bytes == width


def test_invalid_block_sizes_are_rejected(file: Path) -> None:
    for value in (1, 0, -3, True, 4.0, "4", 2**63):
        text = f"block_size is {value!r}, expected an integer from 2 to 9223372036854775807"
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            continuous(file, "x", value, True)
    for value in (0, -3, True, 4.0, "4", 2**63):
        text = f"block_size is {value!r}, expected an integer from 1 to 9223372036854775807"
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            packtok.PackedMemMapDatasetMegatron(file, "x", value)  # type: ignore[arg-type]


def test_plans_go_to_the_user_cache_if_the_data_folder_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pbins.write(tmp_path / "a.pbin", DOCUMENTS)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert plan_folders(find_files(path), None) == [str(tmp_path), str(tmp_path / "cache" / "packtok")]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert plan_folders(find_files([path]), None) == [str(tmp_path), str(tmp_path / "home/.cache/packtok")]
    assert plan_folders(find_files(path), tmp_path / "x") == [str(tmp_path / "x")]
    packtok.write_manifest([path], tmp_path / "lists" / "all.jsonl")
    assert plan_folders(find_files(tmp_path / "lists/all.jsonl"), None)[0] == str(tmp_path / "lists")


@settings(max_examples=60, deadline=None)
@given(data=datasets(), context_length=st.integers(1, 14), aligned=st.booleans(), side=st.sampled_from(SIDES))
def test_planned_batches_equal_those_of_the_oracle(
    scratch: Callable[[], Path],
    data: tuple[int, list[list[list[int]]], bool],
    context_length: int,
    aligned: bool,
    side: str | None,
) -> None:
    width, files, trailer = data
    files = [[[token % 2**31 for token in document] for document in documents] for documents in files]
    folder = scratch()
    paths = write_all(folder, width, files, trailer)
    chosen: dict[str, Any] = {}
    if side is not None:
        split_path = find_or_split(Blocks(paths, packing="whole"), fraction=0.5, folders=[folder])
        chosen = {"split_path": split_path, "side": side}
    whole = Blocks(paths, packing="whole", **chosen)
    plan = find_or_plan(whole, planner="best_fit", block_size=context_length, folders=[folder])
    blocks = pickle.loads(pickle.dumps(Blocks(paths, packing="planned", plan_path=plan, **chosen)))
    assert blocks.context_length == context_length
    # Documents by location, to look up the located pieces.
    places = [(str(path), i) for path, file in zip(paths, files, strict=True) for i in range(len(file))]
    numbers = {place: number for number, place in enumerate(places)}
    pieces = [
        [(numbers[path, document], start, stop) for path, document, start, stop in blocks.locate(i)]
        for i in range(len(blocks))
    ]
    documents = [document for file in files for document in file]
    for i, parts in enumerate(pieces):
        assert [token for number, start, stop in parts for token in documents[number][start:stop]] == blocks[
            i
        ].tolist()
    served = sorted(
        (number, at) for parts in pieces for number, start, stop in parts for at in range(start, stop)
    )
    there = [numbers[path, document] for i in range(len(whole)) for path, document, _, _ in whole.locate(i)]
    assert served == [(number, at) for number in sorted(there) for at in range(len(documents[number]))]
    rows = reference_rows.piece_rows(pieces, documents, context_length, 55, aligned=aligned)
    check_batch(blocks, rows, list(range(len(rows))), aligned=aligned, pad_token_id=55)
    assert blocks.num_padding_tokens == len(rows) * context_length - len(served)
    assert blocks.num_dropped_tokens == 0


def check_batch(blocks: Blocks, rows: list[reference_rows.Row], items: list[int], **options: Any) -> None:
    """Fills a batch with every field, as int64 and as int32, and compares it with the oracle's rows."""
    rows = [rows[item] for item in items]
    shape = (len(items), blocks.context_length)
    for dtype in (np.int64, np.int32):
        ids = {
            name: np.full(shape, 77, dtype)
            for name in ("input_ids", "labels", "position_ids", "document_ids")
        }
        loss_mask = np.ones(shape, bool)
        segments = blocks.fill(items, **ids, loss_mask=loss_mask, segments=True, **options)
        for name, array in ids.items():
            assert array.tolist() == [getattr(row, name) for row in rows], name
        assert loss_mask.tolist() == [row.loss_mask for row in rows]
        assert segments is not None
        cu_seqlens, max_seqlen = segments
        lengths = [length for row in rows for length in row.segments]
        assert cu_seqlens.dtype == np.int32
        assert cu_seqlens.tolist() == [0, *np.cumsum(lengths, dtype=int).tolist()]
        assert max_seqlen == max(lengths, default=0)
        alone = np.empty(shape, dtype)
        assert blocks.fill(items, input_ids=alone, **options) is None
        assert (alone == ids["input_ids"]).all()


@settings(max_examples=80, deadline=None)
@given(data=datasets(), context_length=st.integers(1, 20), aligned=st.booleans(), random=st.randoms())
def test_batches_of_blocks_equal_those_of_the_oracle(
    scratch: Callable[[], Path],
    data: tuple[int, list[list[list[int]]], bool],
    context_length: int,
    aligned: bool,
    random: Any,
) -> None:
    width, files, trailer = data
    # A 32-bit field cannot contain ids of 2^31 or more; another test checks that they are rejected.
    files = [[[token % 2**31 for token in document] for document in documents] for documents in files]
    rows = reference_rows.concat_rows(
        [document for file in files for document in file], context_length, aligned=aligned
    )
    paths = write_all(scratch(), width, files, trailer)
    if not rows:
        return
    blocks = Blocks(paths, packing="fixed", block_size=context_length + 1, overlap=1)
    assert len(blocks) == len(rows)
    items = [random.randrange(-len(rows), len(rows)) for _ in range(7)]
    check_batch(blocks, rows, list(range(len(rows))), aligned=aligned)
    check_batch(blocks, rows, items, aligned=aligned)


@settings(max_examples=80, deadline=None)
@given(data=datasets(), context_length=st.integers(1, 14), aligned=st.booleans())
def test_batches_of_documents_equal_those_of_the_oracle(
    scratch: Callable[[], Path],
    data: tuple[int, list[list[list[int]]], bool],
    context_length: int,
    aligned: bool,
) -> None:
    width, files, trailer = data
    files = [[[token % 2**31 for token in document] for document in documents] for documents in files]
    documents = [document for file in files for document in file]
    rows = reference_rows.document_rows(documents, context_length, 55, aligned=aligned)
    paths = write_all(scratch(), width, files, trailer)
    blocks = Blocks(paths, packing="document", block_size=context_length + 1)
    assert listed(blocks[:]) == [document[: context_length + 1] for document in documents]
    check_batch(blocks, rows, list(range(len(rows))), aligned=aligned, pad_token_id=55)
    lengths = [len(document) for document in documents]
    assert blocks.num_dropped_tokens == sum(max(0, length - context_length - 1) for length in lengths)
    assert blocks.num_padding_tokens == sum(max(0, context_length - length) for length in lengths)


@settings(max_examples=100, deadline=None)
@given(data=datasets(), block_size=st.integers(2, 12))
def test_located_documents_contain_the_tokens_of_the_item(
    scratch: Callable[[], Path], data: tuple[int, list[list[list[int]]], bool], block_size: int
) -> None:
    width, files, trailer = data
    paths = write_all(scratch(), width, files, trailer)
    documents = {str(path): file for path, file in zip(paths, files, strict=True)}
    if sum(len(document) for file in files for document in file) < block_size:
        return
    blocks = Blocks(paths, packing="fixed", block_size=block_size)
    for i in range(len(blocks)):
        parts = blocks.locate(i)
        tokens = [documents[path][document][start:stop] for path, document, start, stop in parts]
        assert all(tokens)
        assert [token for part in tokens for token in part] == blocks[i].tolist()


def test_items_equal_the_golden_files_of_modalities(shared: Path) -> None:
    for path in (shared / "redpajama/train.pbin", shared / "modalities/lorem_long.pbin"):
        documents = reference.read_pbin(path).documents
        whole = base(path, "input_ids")
        assert listed(whole[i]["input_ids"] for i in range(len(whole))) == documents
        tokens = [token for document in documents for token in document]
        for block_size, reuse in ((2048, False), (2049, True), (100, True)):
            dataset = continuous(path, "input_ids", block_size, reuse)
            expected = reference_rows.fixed_blocks(tokens, block_size, int(reuse))
            assert listed(dataset[:]["input_ids"]) == expected
            assert dataset[len(dataset) - 1]["input_ids"].tolist() == expected[-1]


# T = 20, with the numbers of blocks in Modalities.
@pytest.mark.parametrize(
    ("block_size", "with_reuse", "without"), [(4, 6, 5), (5, 4, 4), (2, 19, 10), (20, 1, 1)]
)
def test_numbers_of_blocks_equal_those_of_modalities(
    tmp_path: Path, block_size: int, with_reuse: int, without: int
) -> None:
    path = pbins.write(tmp_path / "a.pbin", [list(range(4)), list(range(4, 20))])
    for reuse, expected in ((True, with_reuse), (False, without)):
        dataset = continuous(path, "x", block_size, reuse_last_target=reuse, load_index=False)
        step = block_size - reuse
        assert [item["x"].tolist() for item in dataset] == [
            list(range(i * step, i * step + block_size)) for i in range(expected)
        ]


@pytest.mark.parametrize("packing", ["whole", "fixed"])
def test_indices_and_slices_work_as_in_a_list(file: Path, packing: str) -> None:
    options: dict[str, Any] = {} if packing == "whole" else {"block_size": 3, "overlap": 1}
    blocks = Blocks([file], packing=packing, **options)
    expected = DOCUMENTS if packing == "whole" else reference_rows.fixed_blocks(FLAT, 3, 1)
    for taken in SLICES:
        assert listed(blocks[taken]) == expected[taken], taken
    for i in range(-len(expected), len(expected)):
        assert blocks[i].tolist() == expected[i]
        assert blocks[np.int32(i)].tolist() == expected[i]
    for i in (len(expected), -len(expected) - 1, 2**62, -(2**63), 2**80):
        with pytest.raises(IndexError):
            blocks[i]
    with pytest.raises(IndexError) as caught:
        blocks[-100]
    assert str(caught.value) == f"item -100 is out of range, the dataset has {len(expected)}"
    for wrong in ("0", 0.0, None, (0,)):
        with pytest.raises(TypeError):
            blocks[wrong]  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="step"):
        blocks[::0]


def test_dataset_slices_are_lists_under_the_sample_key(file: Path) -> None:
    whole = base(file, "ids")
    for taken in SLICES:
        part = whole[taken]
        assert list(part) == ["ids"]
        assert listed(part["ids"]) == DOCUMENTS[taken]
    assert [item["ids"].tolist() for item in whole] == DOCUMENTS
    assert [item["ids"].tolist() for item in whole.__getitems__([3, -1, 0])] == [
        DOCUMENTS[3],
        DOCUMENTS[-1],
        DOCUMENTS[0],
    ]


def test_views_are_zero_copy_and_read_only(file: Path, tmp_path: Path) -> None:
    other = pbins.write(tmp_path / "b.pbin", DOCUMENTS)
    blocks = Blocks([file, other], packing="fixed", block_size=5)
    crossing = next(i for i in range(len(blocks)) if len({part[0] for part in blocks.locate(i)}) == 2)
    assert crossing == 3
    for i in range(len(blocks)):
        assert np.shares_memory(blocks[i], blocks[i]) == (i != crossing)
        assert not blocks[i].flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            blocks[i][0] = 1
        if i != crossing:
            with pytest.raises(ValueError, match="WRITEABLE"):
                blocks[i].flags.writeable = True


def test_views_outlive_the_dataset_and_the_unlinked_file(file: Path) -> None:
    blocks = Blocks([file], packing="whole")
    views = blocks[:]
    del blocks
    file.unlink()
    gc.collect()
    assert listed(views) == DOCUMENTS


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int32", "int64"])
def test_items_have_the_requested_dtype(tmp_path: Path, width: int, dtype: str) -> None:
    path = pbins.write(tmp_path / "a.pbin", DOCUMENTS, width)
    for requested in (dtype, np.dtype(dtype), getattr(np, dtype)):
        whole = base(path, "x", dtype=requested)
        assert whole.blocks.dtype == np.dtype(dtype)
        assert [item["x"].tolist() for item in whole] == DOCUMENTS
        assert {item["x"].dtype for item in whole} == {np.dtype(dtype)}
        assert all(item["x"].flags.writeable for item in whole)
        again = pickle.loads(pickle.dumps(whole))
        assert {(item["x"].dtype, item["x"].flags.writeable) for item in again} == {(np.dtype(dtype), True)}


# The dtypes of Modalities' datasets. For one byte per token, Modalities returns uint8, which embeddings do
# not accept.
@pytest.mark.parametrize(("width", "dtype"), [(1, "int32"), (2, "int32"), (4, "int64")])
def test_items_of_modalities_classes_are_accepted_by_embeddings(
    tmp_path: Path, width: int, dtype: str
) -> None:
    documents = [[1, 2, 3, 256**width - 1], [5, 6], [7, 8, 9]]
    paths = [pbins.write(tmp_path / f"{name}.pbin", documents, width) for name in "ab"]
    packtok.write_manifest(paths, tmp_path / "all.manifest")
    embed = torch.nn.Embedding(300, 2)
    for source in (paths, tmp_path / "all.manifest"):
        for made in (
            base(source, "x"),
            continuous(source, "x", 4, True),
            packtok.PackedMemMapDatasetMegatron(source, "x", 4, cache_dir=tmp_path / "plans"),
        ):
            for dataset in (made, pickle.loads(pickle.dumps(made)), packtok.CombinedDataset([made])):
                items = [dataset[i]["x"] for i in range(len(dataset))]
                assert {(item.dtype, item.flags.writeable) for item in items} == {(np.dtype(dtype), True)}
            assert made.blocks.dtype == np.dtype(dtype)
            ids = torch.from_numpy(made[-1]["x"])
            assert embed(ids.clamp(max=299)).shape == (len(ids), 2)
            assert listed(made[:]["x"]) == listed(dataset[i]["x"] for i in range(len(dataset)))
    assert base(paths, "x")[0]["x"].tolist() == documents[0]


@pytest.mark.parametrize("width", [1, 2, 4])
def test_zero_copy_gives_read_only_views_in_the_file_dtype(tmp_path: Path, width: int) -> None:
    path = pbins.write(tmp_path / "a.pbin", DOCUMENTS, width)
    for made in (
        base(path, "x", zero_copy=True),
        continuous(path, "x", 4, True, zero_copy=True),
        packtok.PackedMemMapDatasetMegatron(path, "x", 4, zero_copy=True),
    ):
        for dataset in (made, pickle.loads(pickle.dumps(made))):
            assert {(item["x"].dtype, item["x"].flags.writeable) for item in dataset} == {
                (np.dtype(f"u{width}"), False)
            }
            assert np.shares_memory(dataset[0]["x"], dataset[0]["x"])
    copied, viewed = continuous(path, "x", 4, True), continuous(path, "x", 4, True, zero_copy=True)
    assert listed(copied[:]["x"]) == listed(viewed[:]["x"])
    assert copied.fingerprint == viewed.fingerprint
    assert not np.shares_memory(copied[0]["x"], copied[0]["x"])


def test_zero_copy_and_a_dtype_contradict_each_other(file: Path) -> None:
    message = (
        "zero_copy=True returns views in the dtype of the file, but dtype='int64' needs copies; remove one "
        "of them"
    )
    for made in (
        lambda: base(file, "x", dtype="int64", zero_copy=True),
        lambda: continuous(file, "x", 4, True, dtype="int64", zero_copy=True),
        lambda: packtok.PackedMemMapDatasetMegatron(file, "x", 4, dtype="int64", zero_copy=True),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            made()


def test_default_items_collate_in_torch_without_a_warning(file: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = torch.utils.data.DataLoader(continuous(file, "x", 4, False), batch_size=3)
        assert [batch["x"].tolist() for batch in loader] == [
            reference_rows.fixed_blocks(FLAT, 4, 0)[:3],
            reference_rows.fixed_blocks(FLAT, 4, 0)[3:],
        ]


def test_ids_that_overflow_the_dtype_are_rejected(tmp_path: Path) -> None:
    path = pbins.write(tmp_path / "a.pbin", [[1, 255, 256], [2**31 - 1], [2**31, 5]], 4)
    eight = Blocks([path], packing="whole", dtype=np.uint8)
    with pytest.raises(ValueError, match="does not fit uint8") as caught:
        eight[0]
    message = "id 256 in tokens 0..3 does not fit uint8; request a wider type"
    assert str(caught.value) == f"{path}: {message}"
    signed = Blocks([path], packing="whole", dtype="int32")
    assert signed[1].tolist() == [2**31 - 1]
    with pytest.raises(ValueError, match=r"id 2147483648 in tokens .* does not fit int32"):
        signed[2]
    rows = Blocks([path], packing="document", block_size=3)
    with pytest.raises(ValueError, match=r"id 2147483648 in tokens .* does not fit int32"):
        rows.fill([2], input_ids=np.empty((1, 2), np.int32))
    with pytest.raises(ValueError, match="dtype is float32, expected uint8, uint16, uint32, int32 or int64"):
        Blocks([path], packing="whole", dtype="float32")


def test_invalid_options_are_named(file: Path, tmp_path: Path) -> None:
    wide = pbins.write(tmp_path / "wide.pbin", DOCUMENTS, 4)
    other = pbins.write(tmp_path / "other.pbin", DOCUMENTS, tokenizer="one", eod_id=9)
    another = pbins.write(tmp_path / "another.pbin", DOCUMENTS, tokenizer="two", eod_id=9)
    third = pbins.write(tmp_path / "third.pbin", DOCUMENTS, tokenizer="two", eod_id=12)

    def message(kind: type[Exception], *arguments: Any, **options: Any) -> str:
        with pytest.raises(kind) as caught:
            Blocks(*arguments, **options)
        return str(caught.value)

    fixed = {"packing": "fixed", "block_size": 17}
    assert message(ValueError, [file], **fixed) == f"{file}: block_size 17 exceeds the 16 available tokens"
    expected = f"{file} and 1 more: block_size 33 exceeds the 32 available tokens"
    assert message(ValueError, [file, file], **fixed | {"block_size": 33}) == expected
    expected = f"{file} and 1 more: block_size 17 exceeds the 16 available tokens"
    assert message(ValueError, [file, file], by_file=True, **fixed) == expected
    assert (
        message(ValueError, [file], packing="fixed", block_size=1) == "block_size is 1, expected at least 2"
    )
    assert (
        message(ValueError, [file], packing="fixed", block_size=4, overlap=4)
        == "overlap 4 is not smaller than block_size 4"
    )
    assert (
        message(ValueError, [file], packing="pieces")
        == 'packing is "pieces", expected "fixed", "rows", "chunks", "document", "planned" or "whole"'
    )
    assert message(TypeError, [file], packing="fixed") == 'packing "fixed" needs block_size'
    assert message(TypeError, [file], packing="rows") == 'packing "rows" needs context_length'
    assert message(TypeError, [file], packing="planned") == 'packing "planned" needs plan_path'
    assert message(ValueError, [], packing="whole") == "no pbin given; give at least one"
    assert message(TypeError, packing="whole") == "give either paths or a manifest, not both"
    assert (
        message(TypeError, [file], manifest=file, packing="whole")
        == "give either paths or a manifest, not both"
    )
    assert message(PacktokError, [file, wide], packing="whole") == (
        f"{wide}: tokens are 4 bytes wide, in {file} they are 2; pack both with the same tokenizer"
    )
    assert message(PacktokError, [file, other, another], packing="whole") == (
        f"{another}: tokenizer is two, in {other} it is one; pack all parts with the same options"
    )
    assert message(PacktokError, [another, third], packing="whole") == (
        f"{third}: EOD is <12>, in {another} it is <9>; pack all parts with the same options"
    )
    with pytest.raises(FileNotFoundError):
        Blocks([tmp_path / "none.pbin"], packing="whole")
    with pytest.raises(ValueError, match="exceeds the 16 available tokens"):
        continuous(file, "x", 17, reuse_last_target=True)


def test_invalid_arrays_are_named(file: Path) -> None:
    blocks = Blocks([file], packing="fixed", block_size=5, overlap=1)
    good = np.empty((2, 4), np.int64)

    def message(kind: type[Exception], **arrays: Any) -> str:
        with pytest.raises(kind) as caught:
            blocks.fill([0, 1], **{"input_ids": good, **arrays})
        return str(caught.value)

    for shape in ((2, 5), (3, 4), (1, 8), (0, 4)):
        expected = f"labels: shape is {shape}, expected (2, 4)"
        assert message(ValueError, labels=np.empty(shape, np.int64)) == expected
    strided = np.empty((2, 8), np.int64)[:, ::2]
    assert message(ValueError, labels=strided) == "labels: the array is not C-contiguous"
    assert message(ValueError, labels=np.empty((4, 2), np.int64).T) == "labels: the array is not C-contiguous"
    wanted = "expected a two-dimensional array of int64, int32, uint32 or uint16"
    description = "an array of float32 with 2 dimensions"
    assert message(TypeError, labels=np.empty((2, 4), np.float32)) == f"labels: found {description}, {wanted}"
    description = "an array of int64 with 1 dimensions"
    assert message(TypeError, input_ids=np.empty(8, np.int64)) == f"input_ids: found {description}, {wanted}"
    assert message(TypeError, labels=[[1]]).startswith("labels: found ")
    assert message(TypeError, loss_mask=good).endswith("expected a two-dimensional array of bool")
    frozen = np.empty((2, 4), np.int64)
    frozen.flags.writeable = False
    assert message(ValueError, labels=frozen).startswith("labels: ")
    # One array cannot be used for two fields.
    assert message(ValueError, labels=good).startswith("labels: ")
    with pytest.raises(IndexError, match="item 4 is out of range, the dataset has 3"):
        blocks.fill([0, 4], input_ids=good)
    with pytest.raises(ValueError, match='use packing "document"'):
        Blocks([file], packing="whole").fill([0], input_ids=np.empty((1, 4), np.int64))


def test_item_indices_can_be_any_integer_type(file: Path) -> None:
    blocks = Blocks([file], packing="fixed", block_size=5, overlap=1)
    expected = np.empty((3, 4), np.int64)
    blocks.fill([2, 0, -1], input_ids=expected)
    for items in ((2, 0, -1), np.array([2, 0, 2]), np.array([2, 0, 2], np.int32), torch.tensor([2, 0, -1])):
        filled = np.zeros((3, 4), np.int64)
        blocks.fill(items, input_ids=filled)
        assert (filled == expected).all()
    blocks.fill([], input_ids=np.empty((0, 4), np.int64))


def test_batch_is_written_into_torch_memory(file: Path) -> None:
    blocks = Blocks([file], packing="fixed", block_size=5, overlap=1)
    batch = torch.zeros(2, 3, 4, dtype=torch.int64)
    blocks.fill([0, 1, 2], input_ids=batch[0].numpy(), labels=batch[1].numpy())
    assert batch[0].tolist() == [FLAT[i * 4 : i * 4 + 4] for i in range(3)]
    assert batch[1].tolist() == [FLAT[i * 4 + 1 : i * 4 + 5] for i in range(3)]


def test_all_kinds_of_sources_give_the_same_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    (folder / "more").mkdir(parents=True)
    names = ["a1.pbin", "a2.pbin", "a10.pbin", "more/b.pbin"]
    paths = [pbins.write(folder / name, [[i, 9], [i]]) for i, name in enumerate(names)]
    pbins.write(folder / ".hidden.pbin", [[7]]).rename(folder / "note.txt")
    packtok.write_manifest([folder], tmp_path / "all.manifest")
    expected = [document for i in range(4) for document in ([i, 9], [i])]
    for source in (
        paths,
        tuple(map(str, paths)),
        folder,
        str(folder),
        [folder / "a1.pbin", str(folder / "a[!1]*.pbin"), folder / "a10.pbin", folder / "more"],
        str(folder / "**/*.pbin"),
        tmp_path / "all.manifest",
    ):
        assert [item["x"].tolist() for item in base(source, "x")] == expected, source
    monkeypatch.chdir(folder)
    assert [item["x"].tolist() for item in base("a1.pbin", "x")] == expected[:2]
    literal = pbins.write(folder / "a[1].pbin", [[5]])
    assert base(literal, "x")[0]["x"].tolist() == [5]


def test_empty_or_missing_sources_are_named(tmp_path: Path) -> None:
    for source, message in (
        ([], "the list of pbins is empty; give at least one"),
        (
            tmp_path,
            f"{tmp_path}: no .pbin file in this folder; tokenize the corpus first, with packtok pack, or "
            "with packtok tokenize --to cepe-npy",
        ),
        (
            f"{tmp_path}/*.pbin",
            f"{f'{tmp_path}/*.pbin'!r}: no file matches; globs skip hidden files, give those by name",
        ),
    ):
        with pytest.raises(packtok.ConfigError) as caught:
            find_files(source)
        assert str(caught.value) == message


def test_pbin_that_starts_like_json_is_a_pbin(tmp_path: Path) -> None:
    # With a data segment of 123 bytes, the header starts with "{".
    path = pbins.write(tmp_path / "a.pbin", [[1] * 123], 1)
    assert path.read_bytes()[:1] == b"{"
    assert base(path, "x")[0]["x"].tolist() == [1] * 123


@pytest.mark.parametrize("kind", ["file", "manifest"])
def test_datasets_pickle_small(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / ("x" * 200) / ("y" * 200)
    folder.mkdir(parents=True)
    path = pbins.write(folder / "a.pbin", DOCUMENTS * 100)
    if kind == "manifest":
        packtok.write_manifest([path], folder / "all.manifest")
        path = folder / "all.manifest"
    for dataset in (base(path, "x"), continuous(path, "x", 5, reuse_last_target=True, dtype="int64")):
        pickled = pickle.dumps(dataset)
        assert len(pickled) <= 2048
        again = pickle.loads(pickled)
        assert type(again) is type(dataset)
        assert listed(again[:]["x"]) == listed(dataset[:]["x"])
        assert again[0]["x"].dtype == dataset[0]["x"].dtype
        assert again.fingerprint == dataset.fingerprint


def test_every_option_survives_pickling(file: Path, tmp_path: Path) -> None:
    other = pbins.write(tmp_path / "b.pbin", DOCUMENTS[::-1])
    for options in (
        {"packing": "fixed", "block_size": 5, "overlap": 2, "by_file": True},
        {"packing": "fixed", "block_size": 5, "dtype": "int32", "verify": True},
        {"packing": "document", "block_size": 4},
        {"packing": "rows", "context_length": 4, "by_file": True},
        {"packing": "whole", "dtype": np.uint32},
    ):
        blocks = Blocks([file, other], **options)  # type: ignore[arg-type]
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(blocks, protocol))
            assert listed(again[:]) == listed(blocks[:])
            assert (again.dtype, again.paths) == (blocks.dtype, blocks.paths)
            assert repr(again) == repr(blocks)
            assert again.__getnewargs_ex__() == blocks.__getnewargs_ex__()


def test_replaced_file_is_reported_on_reopening(tmp_path: Path) -> None:
    paths = [pbins.write(tmp_path / f"{name}.pbin", DOCUMENTS) for name in "ab"]
    pickled = pickle.dumps(base(paths, "x"))
    shuffled = DOCUMENTS[1:] + DOCUMENTS[:1]
    pbins.write(paths[1], shuffled)
    again = pickle.loads(pickled)
    assert again[0]["x"].tolist() == DOCUMENTS[0]
    with pytest.raises(PacktokError) as caught:
        again[len(DOCUMENTS)]
    crc32c, expected_crc32c = pbins.trailer_crc32c(paths[1]), pbins.trailer_crc32c(paths[0])
    assert str(caught.value) == (
        f"{paths[1]}: trailer_crc32c is {crc32c}, expected {expected_crc32c}; "
        "the file was replaced since it was listed or first opened"
    )
    paths[1].unlink()
    with pytest.raises(FileNotFoundError):
        again[-1]


@pytest.mark.parametrize(
    ("documents", "width", "what"),
    [
        (DOCUMENTS[:-1], 2, "file_bytes"),
        (DOCUMENTS[1:] + DOCUMENTS[:1], 2, "index_crc32c"),
    ],
)
def test_replaced_file_without_trailer_is_detected_by_its_index(
    tmp_path: Path, documents: list[list[int]], width: int, what: str
) -> None:
    path = pbins.write(tmp_path / "a.pbin", DOCUMENTS, trailer=False)
    pickled = pickle.dumps(Blocks([path], packing="whole"))
    pbins.write(path, documents, width, trailer=False)
    with pytest.raises(PacktokError, match=f": {what} is "):
        pickle.loads(pickled)[0]


def test_fingerprints_distinguish_files_and_options(tmp_path: Path) -> None:
    path = pbins.write(tmp_path / "a.pbin", DOCUMENTS)
    (tmp_path / "moved").mkdir()
    moved = pbins.write(tmp_path / "moved" / "a.pbin", DOCUMENTS)
    same = Blocks([path], packing="whole").fingerprint
    assert len(same) == 64
    assert Blocks([moved], packing="whole").fingerprint == same
    others = [
        Blocks([pbins.write(tmp_path / "b.pbin", DOCUMENTS)], packing="whole").fingerprint,
        Blocks([path, path], packing="whole").fingerprint,
        Blocks([pbins.write(moved, DOCUMENTS[::-1])], packing="whole").fingerprint,
        Blocks([pbins.write(moved, DOCUMENTS, trailer=False)], packing="whole").fingerprint,
    ]
    assert len({same, *others}) == 5
    options = [
        base(path, "x"),
        continuous(path, "x", 4, True),
        continuous(path, "x", 4, False),
        continuous(path, "x", 5, True),
        continuous(path, "x", 5, True, by_file=True),
    ]
    assert len({dataset.fingerprint for dataset in options}) == 5
    assert continuous(path, "y", 4, True, dtype="int64", verify=True).fingerprint == options[1].fingerprint


def test_damaged_data_is_detected_on_first_read(tmp_path: Path) -> None:
    # Three checksum chunks of data, of which the second is damaged.
    documents = [[i % 251] * 1000 for i in range(2500)]
    path = pbins.write(tmp_path / "a.pbin", documents, 1)
    content = bytearray(path.read_bytes())
    content[12 + (1 << 20) + 5] ^= 1
    path.write_bytes(content)
    unchecked = Blocks([path], packing="whole")
    checked = Blocks([path], packing="whole", verify=True)
    assert checked[0].tolist() == unchecked[0].tolist() == documents[0]
    assert checked[-1].tolist() == documents[-1]
    message = rf"{path}: data at bytes {12 + (1 << 20)}\.\.{12 + (2 << 20)}: CRC32C is "
    for i in (1048, 1049, 1048, 2097):
        with pytest.raises(PbinFormatError, match=message):
            checked[i]
        assert len(unchecked[i]) == 1000
    rows = Blocks([path], packing="fixed", block_size=101, overlap=1, verify=True)
    with pytest.raises(PbinFormatError, match=message):
        rows.fill([0, 15000], input_ids=np.empty((2, 100), np.int64))
    reopened = pickle.loads(pickle.dumps(checked))
    with pytest.raises(PbinFormatError, match=message):
        reopened[1049]


def test_damaged_offsets_are_detected_with_verify(file: Path) -> None:
    content = bytearray(file.read_bytes())
    at = content.index(reference.START_MAGIC) + 8 + 8
    content[at] ^= 2
    file.write_bytes(content)
    with pytest.raises(PbinFormatError, match="trailer section of type 1"):
        Blocks([file], packing="whole", verify=True)


def test_files_without_checksums_cannot_be_verified(tmp_path: Path) -> None:
    path = pbins.write(tmp_path / "a.pbin", DOCUMENTS, trailer=False)
    with pytest.raises(ValueError, match="has no checksums") as caught:
        Blocks([path], packing="whole", verify=True)
    assert str(caught.value) == (f"{path}: file has no checksums to verify; pack it again, or remove verify")


def test_eod_comes_from_the_metadata(tmp_path: Path) -> None:
    with_eod = pbins.write(tmp_path / "a.pbin", DOCUMENTS, eod_id=9)
    assert Blocks([with_eod], packing="whole").eod_id == 9
    assert Blocks([pbins.write(tmp_path / "b.pbin", DOCUMENTS)], packing="whole").eod_id is None
    assert (
        Blocks([pbins.write(tmp_path / "c.pbin", DOCUMENTS, trailer=False)], packing="whole").eod_id is None
    )


def test_advice_and_prefetching_do_not_change_items(file: Path, tmp_path: Path) -> None:
    blocks = Blocks([file, pbins.write(tmp_path / "b.pbin", DOCUMENTS)], packing="fixed", block_size=5)
    expected = listed(blocks[:])
    for pattern in ("sequential", "random", "normal"):
        blocks.advise(pattern)
        blocks.prefetch(range(len(blocks)))
        assert listed(blocks[:]) == expected
    with pytest.raises(ValueError, match='pattern is "fast", expected "normal", "sequential" or "random"'):
        blocks.advise("fast")
    with pytest.raises(IndexError):
        blocks.prefetch([100])


def test_threads_share_one_dataset(file: Path, tmp_path: Path) -> None:
    other = pbins.write(tmp_path / "b.pbin", DOCUMENTS[::-1])
    blocks = pickle.loads(pickle.dumps(Blocks([file, other], packing="fixed", block_size=4, verify=True)))
    expected = reference_rows.fixed_blocks(FLAT + [token for d in DOCUMENTS[::-1] for token in d], 4, 0)

    def read(seed: int) -> bool:
        items = np.random.default_rng(seed).integers(0, len(expected), 500)
        rows = np.empty((500, 3), np.int64)
        blocks.fill(items, input_ids=rows)
        return rows.tolist() == [expected[i][:3] for i in items] and all(
            blocks[int(i)].tolist() == expected[i] for i in items
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(16)))


def test_combined_datasets_are_concatenated(file: Path, tmp_path: Path) -> None:
    other = pbins.write(tmp_path / "b.pbin", [[5], [6, 7]])
    parts = [base(file, "x"), base(pbins.write(tmp_path / "empty.pbin", []), "x"), base(other, "x")]
    combined = packtok.CombinedDataset(parts)
    expected = [*DOCUMENTS, [5], [6, 7]]
    assert len(combined) == 8
    assert [combined[i]["x"].tolist() for i in range(8)] == expected
    assert [combined[i]["x"].tolist() for i in range(-8, 0)] == expected
    assert [item["x"].tolist() for item in combined] == expected
    assert [item["x"].tolist() for item in combined.__getitems__([7, 0])] == [expected[7], expected[0]]
    for i in (8, -9):
        with pytest.raises(IndexError, match=f"item {i} is out of range, the dataset has 8"):
            combined[i]
    assert combined.locate(-1) == [(str(other), 1, 0, 2)]
    assert combined.fingerprint != packtok.CombinedDataset(parts[::-1]).fingerprint
    assert pickle.loads(pickle.dumps(combined))[6]["x"].tolist() == [5]
    with pytest.raises(ValueError, match="the list of datasets is empty"):
        packtok.CombinedDataset([])
    text = "datasets is one PackedMemMapDatasetBase, expected a list of datasets"
    with pytest.raises(TypeError, match=f"^{text}$"):
        packtok.CombinedDataset(parts[0])


def stacked(items: list[dict[str, Any]]) -> Any:
    return torch.stack([torch.tensor(item["x"]) for item in items])


# A spawned worker imports torch, which takes seconds.
@pytest.mark.parametrize(("method", "num_workers"), [("fork", 2), ("spawn", 1)])
def test_torch_workers_serve_the_same_items(file: Path, method: str, num_workers: int) -> None:
    dataset = continuous(file, "x", 4, False, dtype=np.int64)
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=3, num_workers=num_workers, collate_fn=stacked, multiprocessing_context=method
    )
    assert isinstance(dataset, torch.utils.data.Dataset)
    assert [row for batch in loader for row in batch.tolist()] == reference_rows.fixed_blocks(FLAT, 4, 0)


def test_importing_packtok_does_not_import_torch() -> None:
    code = "import sys, packtok, packtok._packtok, packtok.sources; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_load_index_is_accepted_everywhere(file: Path) -> None:
    for load_index in (True, False, None):
        assert len(base(file, "x", load_index=load_index)) == len(DOCUMENTS)
        assert len(continuous(file, "x", 4, True, load_index)) == 5


def test_paths_can_be_non_unicode(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.pbin"))
    pbins.write(path, DOCUMENTS)
    blocks = pickle.loads(pickle.dumps(Blocks([path], packing="whole")))
    assert blocks.paths == [path]
    assert listed(blocks[:]) == DOCUMENTS
    assert blocks.locate(0) == [(str(path), 0, 0, 4)]

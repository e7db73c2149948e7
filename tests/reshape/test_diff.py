"""`packtok diff`: the first difference between the documents of two token files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import PacktokCli
from extent import extent
from hypothesis import given, settings
from hypothesis import strategies as st
from repository import GOLDEN

import packtok

DOCUMENTS = st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=4)


def write(path: Path, documents: list[list[int]], dtype: str = "int64") -> Path:
    lengths = [len(document) for document in documents]
    np.save(path, np.concatenate([[len(lengths)], lengths, *documents]).astype(dtype))
    return path


def expected_difference(first: list[list[int]], second: list[list[int]]) -> tuple[int, int | None] | None:
    """Document and token of the first difference, by plain comparison."""
    for number, (document, other) in enumerate(zip(first, second, strict=False)):
        for token in range(max(len(document), len(other))):
            if document[token : token + 1] != other[token : token + 1]:
                return number, token
    return None if len(first) == len(second) else (min(len(first), len(second)), None)


@given(first=DOCUMENTS, second=DOCUMENTS)
@settings(max_examples=extent(300, 40), deadline=None)
def test_first_difference_is_that_of_a_plain_comparison(
    tmp_path_factory: pytest.TempPathFactory, first: list[list[int]], second: list[list[int]]
) -> None:
    folder = tmp_path_factory.mktemp("diff")
    files = write(folder / "a.npy", first), write(folder / "b.npy", second, "uint32")
    difference = packtok.diff(*files)["difference"]
    position = None if difference is None else (difference["document"], difference["token"])
    assert position == expected_difference(first, second)


def test_formats_and_widths_are_compared_by_their_ids(tmp_path: Path) -> None:
    packtok.convert(GOLDEN / "plain_u8.pbin", tmp_path / "a.npy", to="cepe-npy")
    packtok.convert(GOLDEN / "plain_u8.pbin", tmp_path / "a", to="megatron")
    for path in (tmp_path / "a.npy", tmp_path / "a.idx", GOLDEN / "plain_u8.pbin"):
        report = packtok.diff(GOLDEN / "plain_u8.pbin", path)
        assert report["difference"] is None
        assert report["first"] == report["second"] | {"path": str(GOLDEN / "plain_u8.pbin")}


def test_folders_are_compared_as_one_sequence_of_documents(tmp_path: Path) -> None:
    documents = [[1, 2], [3], [4, 5, 6], [7]]
    file = write(tmp_path / "a.npy", documents)
    packtok.convert(file, tmp_path / "x", to="litdata", max_tokens=3)
    packtok.convert(file, tmp_path / "y", to="parquet", max_tokens=4)
    for first, second in ((file, tmp_path / "x"), (tmp_path / "x", tmp_path / "y")):
        report = packtok.diff(first, second)
        assert report["difference"] is None
        assert (report["second"]["documents"], report["second"]["tokens"]) == (4, 7)
    documents[2][1] = 9
    report = packtok.diff(tmp_path / "x", write(tmp_path / "b.npy", documents))
    assert report["difference"] == {"document": 2, "token": 1, "first": 5, "second": 9}


def test_command_prints_the_difference(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    write(tmp_path / "a.npy", [[1, 2], [3]])
    for documents, output in [
        ([[1, 2], [3]], "same 2 documents, 3 tokens\n"),
        ([[1, 2], [4]], "document 1, token 0: 3 in a.npy, 4 in b.npy\n"),
        ([[1], [3]], "document 0, token 1: 2 in a.npy, no token in b.npy\n"),
        ([[1, 2]], "a.npy has 2 documents, b.npy has 1; those of both are the same\n"),
    ]:
        write(tmp_path / "b.npy", documents)
        code = 0 if output.startswith("same") else 1
        done = packtok_cli("diff", "a.npy", "b.npy", cwd=tmp_path, code=code)
        assert done.stdout == output
    done = packtok_cli("diff", "a.npy", "b.npy", "--json", cwd=tmp_path, code=1)
    expected = {"document": 1, "token": None, "first": None, "second": None}
    assert json.loads(done.stdout)["difference"] == expected


def test_sides_that_are_no_pbins_are_read_as_the_caller_says(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    pbin = tmp_path / "a.pbin"
    packtok.convert(write(tmp_path / "a.npy", [[1, 2, 0], [3, 0]]), pbin, to="pbin")
    np.array([1, 2, 0, 3, 0], np.uint16).tofile(tmp_path / "train.bin")
    done = packtok_cli("diff", pbin, "train.bin", cwd=tmp_path, code=1)
    assert "if the file has only tokens, set --input-dtype" in done.stderr
    reading = ("--input-dtype", "uint16", "--boundaries", "eos=0")
    for sides in ((pbin, "train.bin"), ("train.bin", pbin), ("train.bin", "train.bin")):
        done = packtok_cli("diff", *sides, *reading, cwd=tmp_path)
        assert done.stdout == "same 2 documents, 5 tokens\n"
    packtok_cli("merge", "train.bin", "train.bin", "m.pbin", *reading, cwd=tmp_path)
    assert len(packtok.PbinReader(tmp_path / "m.pbin")) == 4
    with pytest.raises(packtok.ConfigError, match="format: is text"):
        packtok.diff(pbin, pbin, format="text")


def test_wrong_usage_is_explained(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    write(tmp_path / "a.npy", [[1]])
    for arguments, code, message in [
        (("a.npy",), 2, "Missing argument 'SECOND'"),
        (("a.npy", "b.npy"), 1, "b.npy: No such file or directory"),
        (("", "a.npy"), 2, "FIRST: is empty"),
    ]:
        done = packtok_cli("diff", *arguments, cwd=tmp_path, code=code)
        assert message in done.stderr

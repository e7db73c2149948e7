"""`packtok convert`: the same documents in another format, and back to the same bytes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import reference
from command_line import PacktokCli
from extent import extent
from hypothesis import given, settings
from hypothesis import strategies as st
from repository import GOLDEN

import packtok


def saved(documents: list[list[int]], dtype: str = "int64") -> bytes:
    buffer = io.BytesIO()
    lengths = [len(document) for document in documents]
    np.save(buffer, np.concatenate([[len(lengths)], lengths, *documents]).astype(dtype))
    return buffer.getvalue()


@given(
    documents=st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=9), max_size=40),
    dtype=st.sampled_from(["int64", "uint32"]),
)
@settings(max_examples=extent(60, 8), deadline=None)
def test_there_and_back_gives_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[int]], dtype: str
) -> None:
    folder = tmp_path_factory.mktemp("convert")
    (folder / "a.npy").write_bytes(saved(documents, dtype))
    packtok.convert(folder / "a.npy", folder / "b.pbin", to="pbin")
    assert reference.read_pbin(folder / "b.pbin").documents == documents
    packtok.convert(folder / "b.pbin", folder / "c.npy", to="cepe-npy", dtype=dtype)
    assert (folder / "c.npy").read_bytes() == (folder / "a.npy").read_bytes()


def test_pbins_of_every_width_become_what_numpy_saves(tmp_path: Path) -> None:
    for name in ("plain_u8", "plain_u16", "plain_u32", "example"):
        documents = reference.read_pbin(GOLDEN / f"{name}.pbin").documents
        for dtype in ("int64", "uint32"):
            output = tmp_path / f"{name}_{dtype}.npy"
            packtok.convert(GOLDEN / f"{name}.pbin", output, to="cepe-npy", dtype=dtype)
            assert output.read_bytes() == saved(documents, dtype)


def test_the_tokenizer_is_taken_from_the_marker_or_given(tmp_path: Path) -> None:
    corpus = tmp_path / "a.jsonl"
    corpus.write_text(json.dumps({"text": "hello"}) + "\n")
    end = "<|endoftext|>"
    packtok.tokenize(str(corpus), "gpt2", tmp_path / "out", to="cepe-npy", bos=end, eod=end)
    npy = tmp_path / "out" / "a.npy"
    packtok.convert(npy, tmp_path / "a.pbin", to="pbin")
    metadata = packtok.PbinReader(tmp_path / "a.pbin").metadata
    assert metadata is not None
    assert (metadata["tokenizer"]["vocab_size"], metadata["eod"]["token"]) == (50257, end)
    assert packtok.PbinReader(tmp_path / "a.pbin").dtype == np.dtype("uint16")
    assert packtok.verify(str(tmp_path / "a.pbin"))["unchecked"] == []
    bare = tmp_path / "bare.npy"
    bare.write_bytes(npy.read_bytes())
    packtok.convert(bare, tmp_path / "b.pbin", to="pbin")
    assert packtok.PbinReader(tmp_path / "b.pbin").dtype == np.dtype("uint32")
    packtok.convert(bare, tmp_path / "c.pbin", to="pbin", tokenizer="gpt2")
    assert packtok.PbinReader(tmp_path / "c.pbin")[0].tolist() == [50256, 31373, 50256]
    bare.write_bytes(saved([[7, 60_000]]))
    with pytest.raises(packtok.PbinFormatError, match=r"token 1 of document 0 is 60000, but the tokenizer"):
        packtok.convert(bare, tmp_path / "d.pbin", to="pbin", tokenizer="gpt2")
    assert not (tmp_path / "d.pbin").exists()


def test_folders_are_mirrored(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    for name, documents in (("x/a.npy", [[1, 2]]), ("b.npy", [[3], []])):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(saved(documents))
    done = packtok_cli("convert", "in", "--to", "pbin", "-o", "out", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == {
        "output": "out",
        "files": 2,
        "documents": 3,
        "tokens": 3,
        "file_bytes": sum(path.stat().st_size for path in (tmp_path / "out").rglob("*.pbin")),
        "kept_in_files": ["documents", "ids"],
        "kept_beside": [],
        "lost": [],
        "warnings": [],
    }
    assert reference.read_pbin(tmp_path / "out" / "x" / "a.pbin").documents == [[1, 2]]


def test_existing_files_are_kept_only_if_they_are_the_same(tmp_path: Path) -> None:
    npy, pbin = tmp_path / "a.npy", tmp_path / "a.pbin"
    npy.write_bytes(saved([[1, 2], [3]]))
    packtok.convert(npy, pbin, to="pbin")
    with pytest.raises(FileExistsError):
        packtok.convert(npy, pbin, to="pbin")
    packtok.convert(npy, pbin, to="pbin", existing="skip")
    npy.write_bytes(saved([[1, 2], [4]]))
    with pytest.raises(packtok.PacktokError) as caught:
        packtok.convert(npy, pbin, to="pbin", existing="skip")
    assert str(caught.value) == (
        f"{pbin}: the existing file differs from the input in document 1; set existing to replace, or "
        "choose another output"
    )
    packtok.convert(npy, pbin, to="pbin", existing="replace")
    assert reference.read_pbin(pbin).documents == [[1, 2], [4]]


def test_a_marker_that_a_killed_run_did_not_write_is_added(tmp_path: Path) -> None:
    packtok.convert(GOLDEN / "example.pbin", tmp_path / "a.npy", to="cepe-npy")
    marker = tmp_path / "a.npy.done.json"
    content = marker.read_bytes()
    marker.unlink()
    packtok.convert(GOLDEN / "example.pbin", tmp_path / "a.npy", to="cepe-npy", existing="skip")
    assert marker.read_bytes() == content
    marker.unlink()
    # A run with these options did not write a file of another type.
    packtok.convert(
        GOLDEN / "example.pbin", tmp_path / "a.npy", to="cepe-npy", dtype="uint32", existing="skip"
    )
    assert not marker.exists()


def test_wrong_usage_is_explained(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    (tmp_path / "a.npy").write_bytes(saved([[1]]))
    for arguments, code, message in [
        (
            ("a.npy", "--to", "pbin", "-o", "b.pbin", "--format", "pbin"),
            1,
            "a.npy: the file has the format cepe-npy",
        ),
        (("a.npy", "--to", "cepe-npy", "-o", "a.npy"), 1, "a.npy: the output is the input itself"),
        (("a.npy", "--to", "cepe-npy", "-o", "b.npy", "--dtype", "uint16"), 2, "--dtype: is uint16"),
        (
            ("a.npy", "--to", "pbin", "-o", "b.pbin", "--dtype", "int64"),
            2,
            "--dtype: has no effect with --to pbin",
        ),
    ]:
        done = packtok_cli("convert", *arguments, cwd=tmp_path, code=code)
        assert message in done.stderr

"""Megatron's and datatrove's token files: read as they are, written, and converted back to the same pbin."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import oracle
import pytest
import reference
from command_line import PacktokCli
from extent import extent
from hypothesis import given, settings
from hypothesis import strategies as st
from repository import GOLDEN

import packtok

FORMATS = ["megatron", "datatrove"]


def documents_of(path: Path) -> list[list[int]]:
    reader = packtok.PbinReader(path)
    return [reader[number].tolist() for number in range(len(reader))]


def packed(folder: Path, **options: object) -> Path:
    """A pbin of four documents with a trailer, its tokenizer beside it."""
    corpus = folder / "corpus.jsonl"
    oracle.write_lines(corpus, ["one", "two and a half", "three", "a longer text, to the end"])
    packtok.pack(input=str(corpus), output=str(folder / "a.pbin"), tokenizer="gpt2", origins=True, **options)
    return folder / "a.pbin"


def opened(folder: Path, format: str) -> Path:
    """The file by which a dataset named ``a`` opens."""
    return folder / {"megatron": "a.idx", "datatrove": "a.ds"}[format]


@pytest.mark.parametrize("format", FORMATS)
def test_files_of_the_real_tools_are_read(format: str) -> None:
    for name, expected in json.loads((GOLDEN / format / "documents.json").read_text()).items():
        assert documents_of(GOLDEN / format / name) == expected
        reader = packtok.PbinReader(GOLDEN / format / name)
        assert (reader.dialect, reader.metadata, reader.num_tokens) == (format, None, sum(map(len, expected)))


@pytest.mark.parametrize("format", FORMATS)
def test_datasets_and_manifests_take_them(tmp_path: Path, format: str) -> None:
    pbin = packed(tmp_path)
    packtok.convert(pbin, tmp_path / "x" / "a", to=format)
    file = opened(tmp_path / "x", format)
    packtok.write_manifest([file], tmp_path / "files.jsonl")
    expected = packtok.TokenDataset(pbin, 3)
    for dataset in (packtok.TokenDataset(file, 3), packtok.TokenDataset(tmp_path / "files.jsonl", 3)):
        assert len(dataset) == len(expected)
        assert [item["input_ids"].tolist() for item in dataset] == [
            item["input_ids"].tolist() for item in expected
        ]
    assert packtok.verify(str(file))["documents"] == 4


@given(documents=st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=9), max_size=40))
@settings(max_examples=extent(60, 8), deadline=None)
@pytest.mark.parametrize("format", FORMATS)
def test_there_and_back_gives_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[int]], format: str
) -> None:
    folder = tmp_path_factory.mktemp("convert")
    lengths = [len(document) for document in documents]
    np.save(folder / "a.npy", np.concatenate([[len(lengths)], lengths, *documents]).astype("int64"))
    packtok.convert(folder / "a.npy", folder / "a.pbin", to="pbin")
    packtok.convert(folder / "a.pbin", folder / "x" / "a", to=format)
    packtok.convert(opened(folder / "x", format), folder / "b.pbin", to="pbin")
    assert (folder / "b.pbin").read_bytes() == (folder / "a.pbin").read_bytes()
    shutil.rmtree(folder / "x" / ".packtok")
    packtok.convert(opened(folder / "x", format), folder / "c.pbin", to="pbin")
    assert reference.read_pbin(folder / "c.pbin").documents == documents


@pytest.mark.parametrize("format", FORMATS)
def test_trailer_origins_and_tokenizer_come_back(tmp_path: Path, format: str) -> None:
    pbin = packed(tmp_path)
    packtok.convert(pbin, tmp_path / "x" / "a", to=format)
    packtok.convert(opened(tmp_path / "x", format), tmp_path / "y" / "a.pbin", to="pbin")
    assert (tmp_path / "y" / "a.pbin").read_bytes() == pbin.read_bytes()
    tokenizer = tmp_path / "y" / "a.pbin.tokenizer.json"
    assert tokenizer.read_bytes() == (tmp_path / "a.pbin.tokenizer.json").read_bytes()
    names = {"megatron": {"a.bin", "a.idx"}, "datatrove": {"a.ds", "a.ds.index", "a.ds.metadata"}}[format]
    # Others look at every file of the folder.
    assert {path.name for path in (tmp_path / "x").iterdir()} == names | {".packtok"}


def test_tokenizer_of_another_dataset_in_the_folder_is_not_taken(
    tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    (tmp_path / "gpt2").mkdir()
    packtok.convert(packed(tmp_path / "gpt2"), tmp_path / "x" / "a", to="megatron")
    corpus = tmp_path / "gpt2" / "corpus.jsonl"
    packtok.pack(input=str(corpus), output=str(tmp_path / "b.pbin"), tokenizer="cl100k_base")
    packtok.convert(tmp_path / "b.pbin", tmp_path / "x" / "b", to="megatron")
    packtok_cli("cat", "x/a.idx", "--documents", "0", cwd=tmp_path)
    assert "every id is in the vocabulary" in packtok.verify(str(tmp_path / "x" / "a.idx"))["checked"]
    assert "every id is in the vocabulary" in packtok.verify(str(tmp_path / "x" / "b.idx"))["unchecked"]


def test_changed_tokens_are_not_restored_as_the_pbin(tmp_path: Path) -> None:
    pbin = packed(tmp_path)
    packtok.convert(pbin, tmp_path / "x" / "a", to="datatrove")
    file = tmp_path / "x" / "a.ds"
    content = bytearray(file.read_bytes())
    content[0] ^= 1
    file.write_bytes(content)
    rest = tmp_path / "x" / ".packtok" / "a.pbin_rest"
    with pytest.raises(packtok.PbinFormatError) as caught:
        packtok.convert(file, tmp_path / "b.pbin", to="pbin")
    assert str(caught.value).startswith(
        f"{file}: has other tokens than the pbin that it was made from; delete {rest} to write a pbin "
        "without what it keeps"
    )
    assert not (tmp_path / "b.pbin").exists()
    rest.unlink()
    packtok.convert(file, tmp_path / "b.pbin", to="pbin")
    assert documents_of(tmp_path / "b.pbin") == documents_of(file)


def test_link_copies_nothing_and_stops_a_merge(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    pbin = packed(tmp_path)
    done = packtok_cli("convert", "a.pbin", "--to", "megatron", "--link", "-o", "x/a", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["warnings"] == []
    assert os.stat(tmp_path / "x" / "a.bin").st_ino == os.stat(pbin).st_ino
    assert packtok.PbinReader(tmp_path / "x" / "a.idx").dialect == "megatron"
    assert documents_of(tmp_path / "x" / "a.idx") == documents_of(pbin)
    # The tokens start after the header of the pbin.
    index = (tmp_path / "x" / "a.idx").read_bytes()
    num_sequences = int.from_bytes(index[18:26], "little")
    assert np.frombuffer(index, "<i8", 1, 34 + 4 * num_sequences).tolist() == [12]
    # Megatron's merge expects an index beside every file, so this one makes it stop.
    assert (tmp_path / "x" / "a.linked.json").is_file()
    packtok.convert(tmp_path / "x" / "a.bin", tmp_path / "b.npy", to="cepe-npy")
    for name in ("a.bin", "a.idx"):
        assert packtok.verify(str(tmp_path / "x" / name))["documents"] == 4
    again = packtok_cli(
        "convert", "a.pbin", "--to", "megatron", "--link", "-o", "x/a", "--existing", "replace", cwd=tmp_path
    )
    assert again.returncode == 0
    assert pbin.stat().st_nlink == 2


def test_ids_that_the_type_cannot_hold_name_document_and_position(tmp_path: Path) -> None:
    documents = [[1, 2], [3, 2**31]]
    np.save(tmp_path / "a.npy", np.array([2, 2, 2, *documents[0], *documents[1]], "int64"))
    packtok.convert(tmp_path / "a.npy", tmp_path / "a.pbin", to="pbin")
    for link in (False, True):
        with pytest.raises(packtok.PbinFormatError) as caught:
            packtok.convert(tmp_path / "a.pbin", tmp_path / "x" / "a", to="megatron", link=link)
        assert str(caught.value) == (
            f"{tmp_path / 'a.pbin'}: token 1 of document 1 is 2147483648, which int32 cannot hold; choose "
            "another format"
        )
        assert not list(tmp_path.glob("x/a*"))


def test_what_a_format_cannot_hold_must_be_accepted(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    for name in ("modes.bin", "modes.idx"):
        shutil.copy(GOLDEN / "megatron" / name, tmp_path)
    arguments = ("convert", "modes.idx", "--to", "pbin", "-o", "a.pbin")
    done = packtok_cli(*arguments, cwd=tmp_path, code=1)
    assert done.stderr == (
        "packtok: modes.idx: records sequences, which are not written as pbin; set --accept-loss sequences "
        "to lose them\n"
    )
    done = packtok_cli(*arguments, "--accept-loss", "sequences", cwd=tmp_path, code=1)
    assert "records modes" in done.stderr
    packtok_cli(*arguments, "--accept-loss", "sequences", "--accept-loss", "modes", cwd=tmp_path)
    expected = json.loads((GOLDEN / "megatron" / "documents.json").read_text())["modes"]
    assert documents_of(tmp_path / "a.pbin") == expected


def test_files_of_others_are_not_overwritten(tmp_path: Path) -> None:
    pbin = packed(tmp_path)
    (tmp_path / "b.idx").write_bytes(b"a raw index of lines")
    with pytest.raises(FileExistsError, match=r"b\.idx"):
        packtok.convert(pbin, tmp_path / "b", to="megatron")
    assert (tmp_path / "b.idx").read_bytes() == b"a raw index of lines"
    packtok.convert(pbin, tmp_path / "c", to="megatron")
    with pytest.raises(FileExistsError, match=r"c\.bin"):
        packtok.convert(pbin, tmp_path / "c", to="megatron")
    packtok.convert(pbin, tmp_path / "c", to="megatron", existing="skip")
    # A run that was killed before it published the tokens leaves an index, which is written again.
    (tmp_path / "c.bin").unlink()
    packtok.convert(pbin, tmp_path / "c.bin", to="megatron")
    assert documents_of(tmp_path / "c") == documents_of(pbin)


def test_wrong_usage_is_explained(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    packed(tmp_path)
    packtok.convert(tmp_path / "a.pbin", tmp_path / "x" / "a", to="datatrove")
    for arguments, code, message in [
        (
            ("a.pbin", "--to", "datatrove", "-o", "b", "--link"),
            2,
            "--link: has no effect with --to datatrove",
        ),
        (
            ("x/a.ds", "--to", "megatron", "-o", "b", "--link"),
            1,
            "x/a.ds: has the format datatrove; only a pbin can be linked; leave out --link",
        ),
        (("x/a.ds", "--to", "datatrove", "-o", "x/a"), 1, "x/a.ds: the output is the input itself"),
        (("a.pbin", "--to", "megatron", "-o", "b", "--dtype", "int64"), 2, "--dtype: has no effect with"),
    ]:
        done = packtok_cli("convert", *arguments, cwd=tmp_path, code=code)
        assert message in done.stderr

"""Token files of other trainers: read as they are, written, and converted back to the same pbin."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import oracle
import pyarrow
import pyarrow.parquet
import pytest
import reference
import yaml
from command_line import PacktokCli
from extent import extent
from hypothesis import given, settings
from hypothesis import strategies as st
from repository import EXAMPLES, GOLDEN

import packtok
from packtok._packtok import MdsReader
from packtok.commands.token_folder import verify_folder

# The files of a dataset named ``a``: that by which it opens, and the others.
FILES = {
    "megatron": ["a.idx", "a.bin"],
    "datatrove": ["a.ds", "a.ds.index", "a.ds.metadata"],
    "dolma": ["a.npy", "a.csv.gz"],
    "llm-c": ["a.bin"],
    "litdata": ["a/chunk-0-0.bin", "a/index.json", "a/tokenizer.json", "a/tokenizer_config.json"],
    "mds": ["a/shard.00000.mds", "a/index.json", "a/tokenizer.json", "a/tokenizer_config.json"],
    "npy": ["a/shard_00000.npy", "a/metadata.yaml", "a/tokenizer.json", "a/tokenizer_config.json"],
    "raw": ["a"],
    "parquet": ["a/shard_00000.parquet", "a/README.md", "a/tokenizer.json", "a/tokenizer_config.json"],
}
FORMATS = list(FILES)
# Those that record documents by themselves, and those whose golden files were written by their tools.
RECORDING = ["megatron", "datatrove", "dolma", "litdata", "mds", "parquet"]
GOLDENS = ["megatron", "datatrove", "dolma"]


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
    return folder / FILES[format][0]


@pytest.mark.parametrize("format", GOLDENS)
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
    rows = packtok.get_dataset(file, 3, create_doc_ids=False)
    assert [row.token_ids.tolist() for row in rows] == [
        row.token_ids.tolist() for row in packtok.get_dataset(pbin, 3, create_doc_ids=False)
    ]
    checked = packtok.verify(str(file))
    assert checked["documents"] == 4
    assert "checksums" in checked["unchecked"]


@given(documents=st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=9), max_size=40))
@settings(max_examples=extent(60, 8), deadline=None)
@pytest.mark.parametrize("format", FORMATS)
def test_there_and_back_gives_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[int]], format: str
) -> None:
    folder = tmp_path_factory.mktemp("convert")
    if format == "mds":
        # It has no empty arrays.
        documents = [document or [7] for document in documents]
    lengths = [len(document) for document in documents]
    np.save(folder / "a.npy", np.concatenate([[len(lengths)], lengths, *documents]).astype("int64"))
    packtok.convert(folder / "a.npy", folder / "a.pbin", to="pbin")
    packtok.convert(folder / "a.pbin", folder / "x" / "a", to=format)
    packtok.convert(opened(folder / "x", format), folder / "b.pbin", to="pbin")
    assert (folder / "b.pbin").read_bytes() == (folder / "a.pbin").read_bytes()
    if format in RECORDING:
        shutil.rmtree(opened(folder / "x", format).parent / ".packtok")
        packtok.convert(opened(folder / "x", format), folder / "c.pbin", to="pbin")
        assert reference.read_pbin(folder / "c.pbin").documents == documents


@given(
    documents=st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=9), max_size=20),
    formats=st.lists(st.sampled_from([*FORMATS, "cepe-npy"]), min_size=2, max_size=4),
)
@settings(max_examples=extent(60, 12), deadline=None)
def test_documents_come_back_through_any_chain_of_formats(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[int]], formats: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("chain")
    if "mds" in formats:
        documents = [document or [7] for document in documents]
    lengths = [len(document) for document in documents]
    file = folder / "a.npy"
    np.save(file, np.concatenate([[len(lengths)], lengths, *documents]).astype("int64"))
    for number, format in enumerate(formats):
        target = folder / str(number) / "a"
        packtok.convert(file, target, to=format)
        file = target if format == "cepe-npy" else opened(target.parent, format)
    packtok.convert(file, folder / "b.pbin", to="pbin")
    assert reference.read_pbin(folder / "b.pbin").documents == documents


@pytest.mark.parametrize("format", FORMATS)
def test_trailer_origins_and_tokenizer_come_back(tmp_path: Path, format: str) -> None:
    pbin = packed(tmp_path)
    packtok.convert(pbin, tmp_path / "x" / "a", to=format)
    packtok.convert(opened(tmp_path / "x", format), tmp_path / "y" / "a.pbin", to="pbin")
    assert (tmp_path / "y" / "a.pbin").read_bytes() == pbin.read_bytes()
    tokenizer = tmp_path / "y" / "a.pbin.tokenizer.json"
    assert tokenizer.read_bytes() == (tmp_path / "a.pbin.tokenizer.json").read_bytes()
    # Others look at every file of the folder.
    files = {path.relative_to(tmp_path / "x") for path in (tmp_path / "x").rglob("*") if path.is_file()}
    assert {os.fspath(path) for path in files if ".packtok" not in path.parts} == set(FILES[format])
    assert packtok.diff(pbin, opened(tmp_path / "x", format))["difference"] is None


def test_tokens_of_llm_c_have_positions_of_bos(tmp_path: Path) -> None:
    pbin = packed(tmp_path, bos="<|endoftext|>")
    packtok.convert(pbin, tmp_path / "x" / "a", to="llm-c")
    data = (tmp_path / "x" / "a.bin").read_bytes()
    documents = documents_of(pbin)
    num_tokens = sum(map(len, documents))
    # Those of the header of llm.c.
    assert np.frombuffer(data, "<i4", 4).tolist() == [20240520, 1, num_tokens, 0]
    assert np.frombuffer(data, "<u2", offset=1024).tolist() == list(chain.from_iterable(documents))
    positions = np.fromfile(tmp_path / "x" / "a.bos.idx", "<i4").tolist()
    assert positions == [sum(map(len, documents[:number])) for number in range(len(documents))]
    shutil.rmtree(tmp_path / "x" / ".packtok")
    assert documents_of(tmp_path / "x" / "a.bin") == documents
    # Documents without BOS have no positions of it, and those of an earlier run are removed.
    packtok.pack(input=str(tmp_path / "corpus.jsonl"), output=str(tmp_path / "b.pbin"), tokenizer="gpt2")
    packtok.convert(tmp_path / "b.pbin", tmp_path / "x" / "a", to="llm-c", existing="replace")
    assert not (tmp_path / "x" / "a.bos.idx").exists()
    assert documents_of(tmp_path / "x" / "a.bin") == documents_of(tmp_path / "b.pbin")


def test_shards_are_cut_at_documents_or_at_multiples(tmp_path: Path) -> None:
    pbin = packed(tmp_path)
    documents = documents_of(pbin)
    tokens = list(chain.from_iterable(documents))
    report = packtok.convert([pbin, pbin], tmp_path / "x", to="npy", max_tokens=8, accept_loss="origins")
    shards = [np.load(path) for path in sorted((tmp_path / "x").glob("shard_*.npy"))]
    assert (report["files"], report["tokens"]) == (len(shards), 2 * len(tokens))
    assert {shard.dtype.name for shard in shards} == {"uint16"}
    assert np.concatenate(shards).tolist() == tokens * 2
    assert all(len(shard) <= max(8, *map(len, documents)) for shard in shards)
    joined = [documents_of(path) for path in sorted((tmp_path / "x").glob("shard_*.npy"))]
    assert list(chain.from_iterable(joined)) == documents * 2
    report = packtok.convert(
        [pbin, pbin], tmp_path / "y" / "b", to="llm-c", max_tokens=8, multiple_of=3, accept_loss="origins"
    )
    files = sorted((tmp_path / "y").glob("b_*.bin"))
    lengths = [(path.stat().st_size - 1024) // 2 for path in files]
    assert lengths[:-1] == [6] * (len(files) - 1)
    assert sum(lengths) == 2 * len(tokens)
    rest = 2 * len(tokens) % 3
    assert any(f"the last {rest} tokens are fewer than 3" in warning for warning in report["warnings"])
    pieces = list(chain.from_iterable(map(documents_of, files)))
    assert list(chain.from_iterable(pieces)) == tokens * 2
    # Of another number of shards, some would stay among the new ones.
    with pytest.raises(FileExistsError, match="a shard of another conversion"):
        packtok.convert(pbin, tmp_path / "x", to="npy", existing="replace")


def test_folder_of_shards_is_complete_for_its_trainer(tmp_path: Path) -> None:
    pbin = packed(tmp_path)
    packtok.convert(pbin, tmp_path / "x", to="npy")
    info = yaml.safe_load((tmp_path / "x" / "metadata.yaml").read_text())["tokenized_info"]
    assert (info["dtype"], info["vocab_size"], info["file_extension"]) == ("uint16", 50257, "npy")
    config = json.loads((tmp_path / "x" / "tokenizer_config.json").read_text())
    assert config == {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}
    assert (
        "every id is in the vocabulary" in packtok.verify(str(tmp_path / "x" / "shard_00000.npy"))["checked"]
    )
    dataset = packtok.TokenDataset(tmp_path / "x", 3)
    expected = packtok.TokenDataset(pbin, 3)
    assert [item["input_ids"].tolist() for item in dataset] == [
        item["input_ids"].tolist() for item in expected
    ]


@pytest.mark.parametrize(
    ("format", "name"),
    [
        ("litdata", "chunks"),
        ("litdata", "array_uint16"),
        ("mds", "no_hashes"),
        ("mds", "zstd"),
        ("arrow_rows", "int64"),
    ],
)
def test_folders_with_an_index_are_datasets(tmp_path: Path, format: str, name: str) -> None:
    folder = GOLDEN / format / name
    if format != "mds":
        expected = json.loads((GOLDEN / format / "documents.json").read_text())[name]
    else:
        samples = MdsReader(str(folder), verify=False)
        expected = [samples[number]["tokens"].tolist() for number in range(len(samples))]
    others = ["text"] if format == "arrow_rows" else []
    if name == "zstd":
        others = sorted(samples[0].keys() - {"tokens"})
    for column in others:
        with pytest.raises(ValueError, match=f"records {column}, which parquet cannot hold"):
            packtok.convert(folder, tmp_path / "x", to="parquet", accept_loss=others[: others.index(column)])
    # Metadata of something else.
    folder = Path(shutil.copytree(folder, tmp_path / "copy"))
    (folder / "metadata.json").write_text("{}")
    packtok.convert(folder, tmp_path / "x", to="parquet", accept_loss=others)
    (folder / "metadata.json").unlink()
    assert documents_of(tmp_path / "x" / "shard_00000.parquet") == expected
    dataset = packtok.TokenDataset(folder, 4, by_file=False)
    tokens = list(chain.from_iterable(expected))
    assert len(dataset) == (len(tokens) - 1) // 4
    assert dataset[len(dataset) - 1]["input_ids"].tolist() == tokens[4 * len(dataset) - 4 : 4 * len(dataset)]
    checked = verify_folder(folder)
    assert (checked["documents"], checked["tokens"], checked["faults"]) == (len(expected), len(tokens), [])
    report = packtok.reshape(folder, tmp_path / "a.pbin", truncate=2, accept_loss=others)
    assert report["documents"] == len(expected)
    assert documents_of(tmp_path / "a.pbin") == [document[:2] for document in expected]
    with pytest.raises(ValueError, match="is arrow, which packtok only reads; choose another format"):
        packtok.convert(tmp_path / "a.pbin", tmp_path / "y", to="arrow")


def test_chunks_of_litdata_are_described_as_litdata_does(tmp_path: Path) -> None:
    pbin = packed(tmp_path)
    documents = documents_of(pbin)
    packtok.convert(pbin, tmp_path / "x", to="litdata", max_tokens=8, dtype="uint32", accept_loss="origins")
    index = json.loads((tmp_path / "x" / "index.json").read_text())
    real = json.loads((GOLDEN / "litdata" / "int32" / "index.json").read_text())
    assert index["config"] == {**real["config"], "chunk_bytes": 32, "chunk_size": None}
    assert (index.keys(), len(index["chunks"])) == (real.keys(), 3)
    left = iter(documents)
    for chunk in index["chunks"]:
        joined = list(islice(left, chunk["chunk_size"]))
        positions = np.cumsum([4 * (2 + len(joined)), *(4 * len(document) for document in joined)])
        words = np.fromfile(tmp_path / "x" / chunk["filename"], "<i4").tolist()
        assert words == [len(joined), *positions.tolist(), *chain.from_iterable(joined)]
        assert (chunk["chunk_bytes"], chunk["dim"]) == (4 * len(words), sum(map(len, joined)))
    # An output of another type is not completed.
    with pytest.raises(ValueError, match="int32 ids; expected uint16"):
        packtok.convert(
            pbin, tmp_path / "x", to="litdata", max_tokens=8, existing="skip", accept_loss="origins"
        )
    # An index of something else is not replaced.
    (tmp_path / "y").mkdir()
    (tmp_path / "y" / "index.json").write_text("{}")
    for existing in ("error", "replace", "skip"):
        with pytest.raises(FileExistsError, match=r"index\.json"):
            packtok.convert(pbin, tmp_path / "y", to="litdata", existing=existing)
    packtok.convert(
        pbin,
        tmp_path / "x",
        to="litdata",
        max_tokens=8,
        existing="skip",
        dtype="uint32",
        accept_loss="origins",
    )


@pytest.mark.parametrize("format", ["litdata", "mds", "npy", "megatron"])
def test_parts_of_a_conversion_are_the_whole(tmp_path: Path, format: str) -> None:
    pbin = packed(tmp_path)
    options = {"to": format, "max_tokens": 4, "accept_loss": "origins"}
    whole = packtok.convert(pbin, tmp_path / "x" / "a", threads=1, **options)
    files = 0
    for part in ("2/3", "0/3", "1/3"):
        files += packtok.convert(pbin, tmp_path / "y" / "a", shard=part, **options)["files"]
    assert files == whole["files"] > 2
    assert packtok.convert(pbin, tmp_path / "y" / "a", join=True, **options)["files"] == files
    for path in (tmp_path / "x").rglob("*"):
        copy = tmp_path / "y" / path.relative_to(tmp_path / "x")
        assert not path.is_file() or copy.read_bytes() == path.read_bytes(), path
    for shard in ("3/3", "1"):
        with pytest.raises(ValueError, match="expected k/N with k below N"):
            packtok.convert(pbin, tmp_path / "z" / "a", shard=shard, **options)
    with pytest.raises(FileExistsError, match="a shard of another conversion"):
        packtok.convert(pbin, tmp_path / "y" / "a", join=True, **{**options, "max_tokens": 9})
    with pytest.raises(packtok.PacktokError, match="is missing; write all parts"):
        packtok.convert(pbin, tmp_path / "none" / "a", join=True, **options)


def test_parts_of_a_folder_are_its_files(tmp_path: Path) -> None:
    pbin = packed(tmp_path)
    for name in ("a", "b", "c"):
        (tmp_path / "in").mkdir(exist_ok=True)
        shutil.copy(pbin, tmp_path / "in" / f"{name}.pbin")
    packtok.convert(tmp_path / "in", tmp_path / "x", to="megatron", shard="1/2")
    assert sorted(path.name for path in (tmp_path / "x").glob("*.bin")) == ["b.bin"]
    packtok.convert(tmp_path / "in", tmp_path / "x", to="megatron", shard="0/2")
    assert sorted(path.name for path in (tmp_path / "x").glob("*.bin")) == ["a.bin", "b.bin", "c.bin"]


def test_what_is_kept_is_known_before_anything_is_written(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    pbin = packed(tmp_path)
    seen = []

    def on_start(kept: dict[str, list[str]]) -> None:
        seen.append(kept)
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        packtok.convert(pbin, tmp_path / "x" / "a", to="dolma", on_start=on_start)
    assert not (tmp_path / "x").exists()
    assert seen == [
        {"kept_in_files": ["documents", "ids"], "kept_beside": ["eod", "origins", "tokenizer"], "lost": []}
    ]
    done = packtok_cli("convert", pbin, "--to", "dolma", "-o", tmp_path / "x" / "a")
    assert "keeps documents, ids in the files; eod, origins, tokenizer beside them\n" in done.stderr


def test_samples_of_mds_are_documents(tmp_path: Path) -> None:
    pbin = packed(tmp_path)
    documents = documents_of(pbin)

    def write(**options: object) -> dict[str, Any]:
        options = {"max_tokens": 8, "accept_loss": "origins", **options}
        return packtok.convert(pbin, tmp_path / "x", to="mds", **options)

    for dtype, expected in ((None, "uint16"), ("uint32", "int32")):
        assert write(dtype=dtype, existing="replace")["files"] == 3
        index = json.loads((tmp_path / "x" / "index.json").read_text())
        assert {tuple(shard["column_encodings"]) for shard in index["shards"]} == {(f"ndarray:{expected}",)}
        samples = MdsReader(str(tmp_path / "x"), verify=False)
        assert [samples[number]["tokens"].tolist() for number in range(len(samples))] == documents
        assert samples[0]["tokens"].dtype == expected
    # A killed conversion leaves shards without an index, which are complete.
    (tmp_path / "x" / "index.json").unlink()
    (tmp_path / "x" / "shard.00001.mds").unlink()
    with pytest.raises(FileExistsError, match=r"shard\.00000\.mds"):
        write(dtype="uint32")
    write(dtype="uint32", existing="skip")
    assert json.loads((tmp_path / "x" / "index.json").read_text()) == index
    assert verify_folder(tmp_path / "x")["documents"] == 4
    index["shards"][1]["raw_data"]["hashes"] = {"xxh64": "0" * 16, "sha1": "0" * 40}
    (tmp_path / "x" / "index.json").write_text(json.dumps(index))
    (fault,) = verify_folder(tmp_path / "x")["faults"]
    assert (Path(fault["path"]).name, "xxh64" in fault["error"]) == ("shard.00001.mds", True)
    # An array of MDS is never empty.
    np.save(tmp_path / "a.npy", np.array([2, 1, 0, 7]))
    packtok.convert(tmp_path / "a.npy", tmp_path / "empty.pbin", to="pbin")
    with pytest.raises(ValueError, match=r"document 1 has no tokens, .* --filter \"length > 0\""):
        packtok.convert(tmp_path / "empty.pbin", tmp_path / "y", to="mds")
    assert not (tmp_path / "y").exists()
    report = packtok.reshape(tmp_path / "empty.pbin", tmp_path / "y", filter="length > 0", to="mds")
    assert report["documents"] == 1


def test_parquet_folder_is_a_dataset_of_hugging_face(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    import datasets
    import transformers

    pbin = packed(tmp_path)
    packtok.convert(pbin, tmp_path / "x", to="parquet", max_tokens=8, accept_loss="origins")
    assert len(list((tmp_path / "x").glob("shard_*.parquet"))) > 1
    dataset = datasets.load_dataset(str(tmp_path / "x"), split="train", cache_dir=str(tmp_path / "cache"))
    assert (dataset.column_names, dataset["input_ids"][:]) == (["input_ids"], documents_of(pbin))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "x")
    assert (len(tokenizer), tokenizer.eos_token) == (50257, "<|endoftext|>")
    # Files of other writers: int64 lists with nulls allowed, several row groups, other columns.
    rows = [[1, 2, 3], [], [4], list(range(5000))]
    table = pyarrow.table({"input_ids": rows, "labels": [[0, *row[1:]] for row in rows]})
    pyarrow.parquet.write_table(table, tmp_path / "b.parquet", row_group_size=2, compression="gzip")
    assert documents_of(tmp_path / "b.parquet") == rows
    with pytest.raises(ValueError, match="records labels, which pbin cannot hold; set accept_loss"):
        packtok.convert(tmp_path / "b.parquet", tmp_path / "b.pbin", to="pbin")
    packtok.convert(tmp_path / "b.parquet", tmp_path / "b.pbin", to="pbin", accept_loss=["labels"])
    assert documents_of(tmp_path / "b.pbin") == rows
    for values, message in [
        ({"text": ["a"]}, "has no column input_ids; it has text; pack its texts with packtok pack"),
        ({"input_ids": [[1.5]]}, "column input_ids has no lists of integers"),
        ({"input_ids": [[1], None]}, "row 1 of row group 0 has no list"),
        ({"input_ids": [[1, None]]}, "row 0 of row group 0 has a null instead of an id"),
        ({"input_ids": [[1], [2, -1]]}, "token 1 of row 1 is -1; expected an id in 0..=4294967295"),
    ]:
        pyarrow.parquet.write_table(pyarrow.table(values), tmp_path / "c.parquet")
        with pytest.raises(packtok.PbinFormatError, match=re.escape(message)):
            packtok.PbinReader(tmp_path / "c.parquet")


def test_documents_of_files_without_an_index_are_found(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    np.array([5, 9, 0, 7, 0, 8], "<u2").tofile(tmp_path / "train.bin")
    convert = ("convert", "train.bin", "--to", "pbin", "-o", "a.pbin")
    done = packtok_cli(*convert, "--format", "raw", cwd=tmp_path, code=1)
    assert (
        "train.bin: the file has only tokens and does not record their type; set --input-dtype" in done.stderr
    )
    as_uint16 = (*convert, "--input-dtype", "uint16", "--existing", "replace")
    for boundaries, expected in [
        ((), [[5, 9, 0, 7, 0, 8]]),
        (("--boundaries", "eos=0"), [[5, 9, 0], [7, 0], [8]]),
        (("--boundaries", "bos=0"), [[5, 9], [0, 7], [0, 8]]),
    ]:
        done = packtok_cli(*as_uint16, *boundaries, "--json", cwd=tmp_path)
        assert documents_of(tmp_path / "a.pbin") == expected
        has_tail = "the 1 tokens after the last EOS are a document" in done.stdout
        assert has_tail == ("eos=0" in boundaries)
    read = ("--input-dtype", "uint16", "--boundaries", "eos=0")
    done = packtok_cli("cat", "train.bin", "--documents", "1", "--ids", *read, cwd=tmp_path)
    assert done.stdout == "1: 7 0\n"
    done = packtok_cli("inspect", "train.bin", *read, "--json", cwd=tmp_path)
    assert (json.loads(done.stdout)["documents"], json.loads(done.stdout)["tokens"]) == (3, 6)
    reader = packtok.PbinReader(tmp_path / "train.bin", input_dtype="uint16", boundaries="bos=0")
    again = pickle.loads(pickle.dumps(reader))
    assert [document.tolist() for document in again] == [[5, 9], [0, 7], [0, 8]]
    done = packtok_cli(*as_uint16, "--boundaries", "eos", cwd=tmp_path, code=1)
    assert '--boundaries: is "eos"; expected eos=ID, bos=ID or file=PATH' in done.stderr


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
    rest = tmp_path / "x" / ".packtok" / "a.ds.pbin_rest"
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
    packtok.convert(tmp_path / "x" / "a.bin", tmp_path / "b.npy", to="cepe-npy", accept_loss="origins")
    for name in ("a.bin", "a.idx"):
        assert packtok.verify(str(tmp_path / "x" / name))["documents"] == 4
    again = packtok_cli(
        "convert", "a.pbin", "--to", "megatron", "--link", "-o", "x/a", "--existing", "replace", cwd=tmp_path
    )
    assert again.returncode == 0
    assert pbin.stat().st_nlink == 2


def test_files_without_a_header_are_links_of_each_other(tmp_path: Path) -> None:
    pbin = packed(tmp_path)
    packtok.convert(pbin, tmp_path / "x" / "a", to="datatrove")
    tokens = tmp_path / "x" / "a.ds"
    for to, name, data in (
        ("dolma", "a.npy", "a.npy"),
        ("raw", "a.bin", "a.bin"),
        ("megatron", "a.idx", "a.bin"),
    ):
        folder = tmp_path / to
        packtok.convert(tokens, folder / ("a.bin" if to == "raw" else "a"), to=to, link=True)
        assert os.stat(folder / data).st_ino == os.stat(tokens).st_ino
        assert documents_of(folder / name) == documents_of(pbin)
        assert not (folder / "a.linked.json").exists(), "the tokens start at byte 0"
        # What is kept of the pbin is kept on.
        packtok.convert(folder / name, folder / "back.pbin", to="pbin")
        assert (folder / "back.pbin").read_bytes() == pbin.read_bytes()


def test_a_foreign_file_is_described_once(tmp_path: Path) -> None:
    """A link beside which the type of its ids and its documents are recorded opens without options."""
    np.array([1, 2, 50256, 3, 50256, 4], np.uint16).tofile(tmp_path / "train.bin")
    described = {"input_dtype": "uint16", "boundaries": "eos=50256", "tokenizer": "gpt2"}
    packtok.convert(tmp_path / "train.bin", tmp_path / "x" / "train.bin", to="raw", link=True, **described)
    assert documents_of(tmp_path / "x" / "train.bin") == [[1, 2, 50256], [3, 50256], [4]]
    dataset = packtok.TokenDataset(str(tmp_path / "x" / "train.bin"), 2)
    assert dataset[1]["input_ids"].tolist() == [50256, 3]


def test_a_type_that_the_ids_contradict_is_an_error_that_names_the_right_one(tmp_path: Path) -> None:
    text = " ".join(json.loads(line)["text"] for line in (EXAMPLES / "corpus.jsonl").read_text().splitlines())
    ids = packtok.Tokenizer.from_pretrained("gpt2").encode(text)[:1000]
    for right, wrong in (("uint16", "uint32"), ("uint32", "uint16")):
        np.array(ids).astype(right).tofile(tmp_path / "train.bin")
        for call, to in ((packtok.convert, "megatron"), (packtok.convert, "pbin"), (packtok.reshape, "pbin")):
            with pytest.raises(ValueError, match=rf"read as {wrong}, .* set input_dtype to {right}"):
                call(tmp_path / "train.bin", tmp_path / "out", to=to, input_dtype=wrong, tokenizer="gpt2")
            assert not (tmp_path / "out").exists()
        packtok.convert(
            tmp_path / "train.bin", tmp_path / f"{right}.pbin", to="pbin", input_dtype=right, tokenizer="gpt2"
        )


def test_ids_of_another_tokenizer_are_an_error_in_every_format(tmp_path: Path) -> None:
    np.array([1, 2, 60000, 3], np.uint16).tofile(tmp_path / "train.bin")
    for to in ("pbin", "megatron", "datatrove", "raw"):
        with pytest.raises(
            packtok.PbinFormatError, match="token 2 of document 0 is 60000, but the tokenizer"
        ):
            packtok.convert(
                tmp_path / "train.bin", tmp_path / "o" / to, to=to, input_dtype="uint16", tokenizer="gpt2"
            )


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


def test_folder_of_tatm_is_converted_as_its_metadata_say(tmp_path: Path) -> None:
    packed(tmp_path)
    folder = tmp_path / "tatm"
    folder.mkdir()
    shutil.copy(tmp_path / "a.pbin.tokenizer.json", folder / "tokenizer.json")
    files = [[[5, 6, 50256], [7, 0, 50256]], [[8, 50256], [9]]]
    for number, documents in enumerate(files):
        ids = [*chain.from_iterable(documents), *[0] * 100]
        np.array(ids, "uint32").tofile(folder / f"tokenized_{number}.bin")
    info = {"tokenizer": "gpt2", "file_prefix": "tokenized", "dtype": "uint32", "file_extension": "bin"}
    required = dict.fromkeys(("description", "date_downloaded", "download_source"), "")
    metadata = {"name": "tokenized", **required, "data_content": "text", "tokenized_info": info}
    (folder / "metadata.yaml").write_text(yaml.safe_dump(metadata))
    report = packtok.convert(folder, tmp_path / "x", to="npy", boundaries="eos=50256")
    assert documents_of(tmp_path / "x" / "shard_00000.npy") == list(chain.from_iterable(files))
    assert np.load(tmp_path / "x" / "shard_00000.npy").dtype == np.uint16
    assert "200 zeros at the ends of files are padding and left out" in report["warnings"][0]
    assert any("the 1 tokens after the last EOS are a document" in text for text in report["warnings"])
    # Each file becomes one, with the tokenizer in its trailer.
    packtok.convert(folder, tmp_path / "y", to="pbin", boundaries="eos=50256")
    for number, documents in enumerate(files):
        pbin = tmp_path / "y" / f"tokenized_{number}.pbin"
        assert documents_of(pbin) == documents
        assert packtok.PbinReader(pbin).metadata["tokenizer"]["vocab_size"] == 50257
    # Other commands take the folder too.
    packtok.merge(folder, str(tmp_path / "m.pbin"))
    assert documents_of(tmp_path / "m.pbin") == [list(chain.from_iterable(documents)) for documents in files]
    assert packtok.diff(folder, tmp_path / "m.pbin")["difference"] is None
    assert packtok.diff(folder, tmp_path / "m.pbin")["first"]["tokens"] == 9
    checked = verify_folder(folder)
    assert (checked["files"], checked["documents"], checked["faults"]) == (2, 2, [])
    # This tokenizer appends no EOS, so that nothing says where documents end.
    report = packtok.reshape(folder, tmp_path / "b.pbin", truncate=2)
    assert "nothing says which id ends a document" in report["warnings"][0]
    assert documents_of(tmp_path / "b.pbin") == [[5, 6], [8, 50256]]
    with pytest.raises(ValueError, match="is tatm, which packtok only reads"):
        packtok.convert(folder, tmp_path / "z", to="tatm")


def test_what_a_format_cannot_hold_must_be_accepted(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    for name in ("modes.bin", "modes.idx"):
        shutil.copy(GOLDEN / "megatron" / name, tmp_path)
    arguments = ("convert", "modes.idx", "--to", "pbin", "-o", "a.pbin")
    done = packtok_cli(*arguments, cwd=tmp_path, code=1)
    assert done.stderr == (
        "packtok: modes.idx: records sequences, which pbin cannot hold; set --accept-loss sequences "
        "to accept that\n"
    )
    done = packtok_cli(*arguments, "--accept-loss", "sequences", cwd=tmp_path, code=1)
    assert "records modes" in done.stderr
    packtok_cli(*arguments, "--accept-loss", "sequences", "--accept-loss", "modes", cwd=tmp_path)
    expected = json.loads((GOLDEN / "megatron" / "documents.json").read_text())["modes"]
    assert documents_of(tmp_path / "a.pbin") == expected


def test_names_that_nothing_records_are_reported(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    pbin = packed(tmp_path)
    names = ("--accept-loss", "origins", "--accept-loss", "nonsense")
    message = (
        "--accept-loss: no input records nonsense; expected a column of the input, or loss_mask, modes, "
        "origins, sequences"
    )
    for to in ("megatron", "pbin"):
        done = packtok_cli("reshape", pbin, "--to", to, "-o", tmp_path / to, *names)
        assert message in done.stderr
    packed_rows = ("--to", "packed-parquet", "--context-length", 8)
    for to in (("--to", "raw"), packed_rows):
        done = packtok_cli("convert", pbin, *to, "-o", tmp_path / "x" / to[1], *names)
        assert message in done.stderr
    done = packtok_cli("merge", pbin, tmp_path / "m.pbin", *names, code=2)
    assert done.stderr == "packtok: --accept-loss: has no effect on pbins, of which nothing is lost\n"


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


@pytest.mark.parametrize("format", ["megatron", "litdata", "mds", "llm-c", "raw"])
def test_replaced_output_keeps_nothing_of_the_one_before(tmp_path: Path, format: str) -> None:
    pbin = packed(tmp_path)
    packtok.convert(pbin, tmp_path / "x" / "a", to=format)
    packtok.convert([pbin, pbin], tmp_path / "x" / "a", to=format, existing="replace", accept_loss="origins")
    assert not list((tmp_path / "x" / ".packtok").glob("*.pbin_rest"))
    file = opened(tmp_path / "x", format)
    packtok.convert(file, tmp_path / "b.pbin", to="pbin")
    assert documents_of(tmp_path / "b.pbin") == documents_of(pbin) * 2
    assert packtok.PbinReader(tmp_path / "b.pbin").metadata["eod"]["id"] == 50256


@pytest.mark.parametrize("format", ["megatron", "litdata", "mds", "parquet"])
def test_failed_replacement_keeps_the_output(tmp_path: Path, format: str) -> None:
    pbin = packed(tmp_path)
    packtok.convert(pbin, tmp_path / "x" / "a", to=format)
    before = {path: path.read_bytes() for path in (tmp_path / "x").rglob("*") if path.is_file()}
    np.save(tmp_path / "b.npy", np.array([1, 1, 2**31], "int64"))
    with pytest.raises(packtok.PbinFormatError, match="which int32 cannot hold"):
        packtok.convert(tmp_path / "b.npy", tmp_path / "x" / "a", to=format, existing="replace")
    assert {path: path.read_bytes() for path in (tmp_path / "x").rglob("*") if path.is_file()} == before


def test_inputs_of_other_tokenizers_are_not_joined(tmp_path: Path) -> None:
    pbin = packed(tmp_path)
    other = tmp_path / "b.pbin"
    packtok.pack(input=str(tmp_path / "corpus.jsonl"), output=str(other), tokenizer="cl100k_base")
    message = r"b\.pbin: the tokenizer is [\w:]+; expected [\w:]+, that of .*a\.pbin"
    with pytest.raises(ValueError, match=message):
        packtok.convert([pbin, other], tmp_path / "x", to="npy")
    with pytest.raises(ValueError, match="several files do not become one pbin file"):
        packtok.convert([pbin, pbin], tmp_path / "c.pbin", to="pbin")


def test_wrong_usage_is_explained(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    packed(tmp_path)
    packtok.convert(tmp_path / "a.pbin", tmp_path / "x" / "a", to="datatrove")
    for arguments, code, message in [
        (
            ("a.pbin", "--to", "npy", "-o", "b", "--link"),
            2,
            "--link: has no effect with --to npy; links can be megatron, datatrove, dolma, raw",
        ),
        (
            ("a.pbin", "--to", "datatrove", "-o", "b", "--link"),
            1,
            "a.pbin: the bytes of pbin are not those of datatrove, so that a link cannot be the output; "
            "leave out --link",
        ),
        (("x/a.ds", "--to", "datatrove", "-o", "x/a"), 1, "x/a.ds: the output is the input itself"),
        (("a.pbin", "--to", "megatron", "-o", "b", "--dtype", "int64"), 2, "--dtype: has no effect with"),
    ]:
        done = packtok_cli("convert", *arguments, cwd=tmp_path, code=code)
        assert message in done.stderr


def megatron_of(path: Path, code: int, ids: npt.NDArray[Any]) -> Path:
    """A dataset of Megatron with one document, written by hand."""
    header = b"MMIDIDX\0\0" + (1).to_bytes(8, "little") + bytes([code])
    counts = (1).to_bytes(8, "little") + (2).to_bytes(8, "little")
    index = np.array([len(ids)], "<i4").tobytes() + np.array([0, 0, 1], "<i8").tobytes()
    path.with_suffix(".idx").write_bytes(header + counts + index)
    path.with_suffix(".bin").write_bytes(ids.tobytes())
    return path.with_suffix(".idx")


@pytest.mark.parametrize(("code", "dtype"), [(2, "int8"), (3, "int16"), (4, "int32")])
def test_negative_ids_of_megatron_are_errors(tmp_path: Path, code: int, dtype: str) -> None:
    good = megatron_of(tmp_path / "good", code, np.array([1, 2, 127], dtype))
    assert documents_of(good) == [[1, 2, 127]]
    packtok.convert(good, tmp_path / "good.pbin", to="pbin")
    bad = megatron_of(tmp_path / "bad", code, np.array([1, -2, 3], dtype))
    offset = np.dtype(dtype).itemsize
    message = rf"bad\.bin: an id is -2 \(byte {offset}\); expected a number in 0\.\.="
    for call in (
        lambda: packtok.convert(bad, tmp_path / "x.pbin", to="pbin"),
        lambda: packtok.reshape(bad, tmp_path / "x.pbin"),
        lambda: packtok.verify(str(bad)),
    ):
        with pytest.raises(packtok.PbinFormatError, match=message):
            call()
    assert not (tmp_path / "x.pbin").exists()


def test_items_of_litdata_that_start_with_their_size(tmp_path: Path) -> None:
    """Items as `litdata.optimize` writes them without `TokensLoader`."""
    index = json.loads((GOLDEN / "litdata" / "int32" / "index.json").read_text())
    documents = [[7, 8, 9], [1], [2, 3]]
    index["config"]["item_loader"] = "PyTreeLoader"
    index["chunks"][0] |= {"dim": None, "chunk_size": 3}
    items = [np.array([4 * len(ids), *ids], "<i4").tobytes() for ids in documents]
    positions = np.cumsum([4 * 5, *map(len, items)]).astype("<u4")
    head = np.array([3], "<u4").tobytes() + positions.tobytes()
    (tmp_path / "chunk-0-0.bin").write_bytes(head + b"".join(items))
    (tmp_path / "index.json").write_text(json.dumps(index))
    assert documents_of(tmp_path / "chunk-0-0.bin") == documents
    packtok.convert(tmp_path, tmp_path / "x", to="parquet")
    assert documents_of(tmp_path / "x" / "shard_00000.parquet") == documents
    items[1] = np.array([8, 1], "<i4").tobytes()
    (tmp_path / "chunk-0-0.bin").write_bytes(head + b"".join(items))
    with pytest.raises(packtok.PbinFormatError, match=r"the number of bytes of an item is 8 \(byte 36\)"):
        packtok.PbinReader(tmp_path / "chunk-0-0.bin")
    index["chunks"] *= 2
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(packtok.PbinFormatError, match=r'lists the file "chunk-0-0\.bin" twice'):
        packtok.convert(tmp_path, tmp_path / "y", to="parquet")
    (tmp_path / "index.json").write_text("{")
    with pytest.raises(packtok.PbinFormatError, match=r"index\.json: is damaged"):
        packtok.PbinReader(tmp_path / "chunk-0-0.bin")


def test_a_folder_without_documents_or_of_several_datasets_is_an_error(tmp_path: Path) -> None:
    for content in (
        '{"chunks": [], "config": {"data_format": ["no_header_tensor:16"]}}',
        '{"shards": [], "version": 2}',
    ):
        folder = tmp_path / str(len(content))
        folder.mkdir()
        (folder / "index.json").write_text(content)
        for call in (
            lambda folder=folder: packtok.convert(folder, tmp_path / "x", to="parquet"),
            lambda folder=folder: packtok.reshape(folder, tmp_path / "x.pbin"),
            lambda folder=folder: packtok.TokenDataset(folder, 4),
        ):
            with pytest.raises(ValueError, match="its index lists no files"):
                call()
    (tmp_path / "dict").mkdir()
    (tmp_path / "dict" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    for name in ("train", "test"):
        shutil.copytree(GOLDEN / "arrow_rows" / "int64", tmp_path / "dict" / name)
    for call in (
        lambda: packtok.convert(tmp_path / "dict", tmp_path / "x", to="parquet"),
        lambda: packtok.TokenDataset(tmp_path / "dict", 4),
    ):
        with pytest.raises(ValueError, match=r"has several splits \(test, train\); give the folder of one"):
            call()


def test_a_link_is_one_to_the_file_itself(tmp_path: Path) -> None:
    pbin = packed(tmp_path)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "l.pbin").symlink_to("../a.pbin")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.pbin").write_bytes(b"something else")
    packtok.convert(tmp_path / "links" / "l.pbin", tmp_path / "out" / "deep" / "m", to="megatron", link=True)
    linked = tmp_path / "out" / "deep" / "m.bin"
    assert not linked.is_symlink()
    assert linked.samefile(pbin)
    # The link still has all of the pbin.
    packtok.convert(tmp_path / "out" / "deep" / "m", tmp_path / "b.pbin", to="pbin")
    assert (tmp_path / "b.pbin").read_bytes() == pbin.read_bytes()
    packtok.convert(tmp_path / "out" / "deep" / "m", tmp_path / "n", to="datatrove")
    packtok.convert(tmp_path / "n.ds", tmp_path / "c.pbin", to="pbin")
    assert (tmp_path / "c.pbin").read_bytes() == pbin.read_bytes()


def test_arrays_that_packtok_wrote_are_not_taken_for_those_of_cepe(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([2, 3, 1, 1, 2, 3, 4]))
    packtok.convert(tmp_path / "a.npy", tmp_path / "a.pbin", to="pbin")
    packtok.convert(tmp_path / "a.pbin", tmp_path / "x", to="npy")
    assert np.load(tmp_path / "x" / "shard_00000.npy").tolist() == [1, 2, 3, 4]
    assert packtok.PbinReader(tmp_path / "x" / "shard_00000.npy").dialect == "npy"
    packtok.convert(tmp_path / "x" / "shard_00000.npy", tmp_path / "b.pbin", to="pbin")
    assert documents_of(tmp_path / "b.pbin") == [[1, 2, 3], [4]]
    # Without a tokenizer too, the folder is one for all commands.
    assert len(packtok.TokenDataset(tmp_path / "x", 2)) == 1
    packtok.reshape(tmp_path / "x", tmp_path / "c.pbin")


def test_a_pbin_that_becomes_a_pbin_is_copied(tmp_path: Path) -> None:
    pbin = packed(tmp_path)
    report = packtok.convert(pbin, tmp_path / "b.pbin", to="pbin")
    assert "origins" in report["kept_in_files"]
    assert (tmp_path / "b.pbin").read_bytes() == pbin.read_bytes()


def test_shards_without_a_header_have_an_ending(tmp_path: Path) -> None:
    pbin = packed(tmp_path)
    packtok.convert(pbin, tmp_path / "x" / "a", to="raw", max_tokens=8, accept_loss="origins")
    assert len(list((tmp_path / "x").glob("a_*.bin"))) == 3
    packtok.convert(tmp_path / "x", tmp_path / "y", to="parquet", accept_loss="origins")
    assert documents_of(tmp_path / "y" / "shard_00000.parquet") == documents_of(pbin)
    report = packtok.convert(
        pbin, tmp_path / "z", to="npy", multiple_of=4, max_tokens=4, accept_loss="origins"
    )
    assert any("documents are divided between shards" in warning for warning in report["warnings"])


def test_files_that_record_little_are_verified_as_they_are_described(
    tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    np.array([7, 2, 0, 5, 0], "<u2").tofile(tmp_path / "a.bin")
    options = ("--input-dtype", "uint16", "--boundaries", "eos=0")
    done = packtok_cli("verify", "a.bin", *options, "--json", cwd=tmp_path)
    assert (json.loads(done.stdout)["documents"], json.loads(done.stdout)["tokens"]) == (2, 5)
    np.save(tmp_path / "b.npy", np.array([7, 2, 0]))
    assert packtok.verify(str(tmp_path / "b.npy"), format="npy")["tokens"] == 3
    failed = packtok_cli("verify", ".", *options, cwd=tmp_path, code=2)
    assert "are for a single file" in failed.stderr


@pytest.mark.parametrize("format", ["mds", "litdata", "npy"])
def test_an_output_of_another_type_is_not_kept(tmp_path: Path, format: str) -> None:
    pbin = packed(tmp_path)
    options = {"to": format, "max_tokens": 8, "accept_loss": "origins"}
    packtok.convert(pbin, tmp_path / "x", dtype="uint32", **options)
    before = {path: path.read_bytes() for path in (tmp_path / "x").rglob("*") if path.is_file()}
    for policy in ({"existing": "skip"}, {"join": True}):
        with pytest.raises((packtok.PacktokError, ValueError), match=r"has ids of u?int32, but|int32 ids;"):
            packtok.convert(pbin, tmp_path / "x", **options, **policy)
    assert {path: path.read_bytes() for path in (tmp_path / "x").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("format", ["mds", "litdata", "megatron"])
def test_parts_of_other_options_are_not_joined(tmp_path: Path, format: str) -> None:
    np.save(tmp_path / "a.npy", np.array([3, 3, 1, 2, *range(6)]))
    for part in ("0/2", "1/2"):
        packtok.convert(tmp_path / "a.npy", tmp_path / "x" / "a", to=format, max_tokens=4, shard=part)
    # Also two shards, but of others of the documents.
    with pytest.raises(packtok.PacktokError, match="give the options that wrote the parts"):
        packtok.convert(tmp_path / "a.npy", tmp_path / "x" / "a", to=format, max_tokens=3, join=True)
    packtok.convert(tmp_path / "a.npy", tmp_path / "x" / "a", to=format, max_tokens=4, join=True)


def test_an_mds_folder_grows(tmp_path: Path) -> None:
    pbin = packed(tmp_path)
    options = {"to": "mds", "max_tokens": 8, "accept_loss": "origins"}
    packtok.convert(pbin, tmp_path / "x", **options)
    packtok.convert([pbin, pbin], tmp_path / "x", existing="skip", **options)
    assert packtok.merge([str(tmp_path / "x")], str(tmp_path / "all.pbin"))["documents"] == 8


def test_a_pbin_without_a_tokenizer_gets_that_of_the_caller(tmp_path: Path) -> None:
    bare = reference.modalities_bytes([[7, 50256]], 2)
    (tmp_path / "a.pbin").write_bytes(bare)
    packtok.convert(tmp_path / "a.pbin", tmp_path / "b.pbin", to="pbin", tokenizer="gpt2")
    assert packtok.PbinReader(tmp_path / "b.pbin").metadata["tokenizer"]["name"] == "gpt2"
    (tmp_path / "a.pbin").write_bytes(reference.modalities_bytes([[7, 65535]], 2))
    for to in ("pbin", "npy", "mds", "megatron"):
        with pytest.raises(packtok.PbinFormatError, match="65535, but the tokenizer"):
            packtok.convert(tmp_path / "a.pbin", tmp_path / "x", to=to, tokenizer="gpt2")


def test_a_linked_pbin_with_other_documents_is_not_restored_from_itself(tmp_path: Path) -> None:
    pbin = packed(tmp_path)
    packtok.convert(pbin, tmp_path / "x" / "m", to="megatron", link=True)
    index = bytearray((tmp_path / "x" / "m.idx").read_bytes())
    lengths = np.frombuffer(index, "<i4", 4, 34)
    changed = np.array([lengths[0] + 1, lengths[1] - 1, *lengths[2:]], "<i4")
    index[34:50] = changed.tobytes()
    positions = 12 + 2 * np.concatenate([[0], np.cumsum(changed)[:-1]])
    index[50:82] = positions.astype("<i8").tobytes()
    (tmp_path / "x" / "m.idx").write_bytes(index)
    packtok.convert(tmp_path / "x" / "m.idx", tmp_path / "b.pbin", to="pbin", tokenizer="gpt2")
    assert list(map(len, documents_of(tmp_path / "b.pbin"))) == changed.tolist()


def test_datasets_read_files_as_their_options_say(tmp_path: Path) -> None:
    ids = [5, 6, 9, 7, 9, 9, 8, 1, 2]
    path = tmp_path / "train.bin"
    np.array(ids, np.uint16).tofile(path)
    options: dict[str, Any] = {"input_dtype": "uint16", "boundaries": "eos=9"}
    with pytest.raises(packtok.PbinFormatError):
        packtok.TokenDataset(path, 2)
    dataset = packtok.TokenDataset(path, 4, packing="document", **options)
    lengths = [int((item["labels"] != -100).sum()) + 1 for item in dataset]
    assert lengths == [3, 2, 1, 3]
    # Also in a copy for a worker, which opens the file again, and with a split, which needs documents.
    copy = pickle.loads(pickle.dumps(dataset))
    assert copy[3]["input_ids"].tolist() == dataset[3]["input_ids"].tolist() == [8, 1, 2, 0]
    assert copy.fingerprint == dataset.fingerprint
    sides = [
        packtok.TokenDataset(path, 4, packing="document", split=side, validation_last=1, **options)
        for side in ("train", "validation")
    ]
    assert [len(side) for side in sides] == [3, 1]
    mixture = packtok.Mixture({str(path): 1}, context_length=2, **options)
    assert len(mixture) == len(packtok.TokenDataset(path, 2, **options)) == 4
    items = packtok.get_dataset(path, 3, **options)
    assert items[0].token_ids.tolist() == ids[:3]
    assert packtok.TokenDataset(path, 4, packing="document", input_dtype="uint16").num_documents == 1
    # Other options are other items.
    other = packtok.TokenDataset(path, 4, packing="document", input_dtype="uint16", boundaries="bos=9")
    assert other.fingerprint != dataset.fingerprint
    with pytest.raises(ValueError, match="expected megatron"):
        packtok.TokenDataset(path, 2, format="megatron", input_dtype="uint16")


@pytest.mark.parametrize(
    "to", ["megatron", "datatrove", "dolma", "llm-c", "litdata", "mds", "npy", "parquet", "raw"]
)
def test_datasets_of_every_format_are_the_same_in_workers(tmp_path: Path, to: Any) -> None:
    packtok.convert(packed(tmp_path), tmp_path / "x" / "a", to=to)
    path = tmp_path / "x" / "a"
    for found in (path.with_suffix(".bin"), path):
        path = found if found.exists() else path
    dataset = packtok.TokenDataset(path, 4)
    copy = pickle.loads(pickle.dumps(dataset))
    assert copy.fingerprint == dataset.fingerprint
    assert copy[1]["input_ids"].tolist() == dataset[1]["input_ids"].tolist()


def test_fingerprints_cover_the_data_of_files_that_record_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "a.npy"

    checksums = tmp_path / "cache" / "packtok" / "checksums"

    def fingerprint(values: list[int]) -> str:
        np.save(path, np.array(values, np.uint16))
        return packtok.TokenDataset(path, 2).fingerprint

    first = fingerprint([1, 2, 3, 4])
    # Files of the same length.
    assert fingerprint([1, 2, 3, 5]) != first
    assert fingerprint([1, 2, 3, 4]) == first
    # What was just written is not kept, because its time may not change with the next write.
    assert not checksums.exists()
    old: dict[str, Any] = {"format": "raw", "input_dtype": "uint8"}
    first = packtok.TokenDataset(GOLDEN / "README.md", 2, **old).fingerprint
    (kept,) = checksums.iterdir()
    assert kept.stat().st_size == 4
    assert packtok.TokenDataset(GOLDEN / "README.md", 2, **old).fingerprint == first
    # The second time, the checksum comes from the cache.
    kept.write_bytes(b"9876")
    assert packtok.TokenDataset(GOLDEN / "README.md", 2, **old).fingerprint != first
    # The trailer of a pbin identifies it.
    dataset = packtok.TokenDataset(packed(tmp_path), 2)
    assert dataset.fingerprint
    assert len(list(checksums.iterdir())) == 1


def test_a_declared_tokenizer_must_fit_the_ids(tmp_path: Path) -> None:
    path = tmp_path / "train.bin"
    options: dict[str, Any] = {"input_dtype": "uint16", "boundaries": "eos=50256"}
    # As if another tokenizer had written them.
    np.random.default_rng(1).integers(0, 50000, 4000).astype(np.uint16).tofile(path)
    message = r"train\.bin: gpt2 is not the tokenizer of the ids: of \d+ tokens in a sample, \d+ come back"
    for call in (
        lambda: packtok.convert(path, tmp_path / "b.pbin", to="pbin", tokenizer="gpt2", **options),
        lambda: packtok.reshape(path, tmp_path / "b.pbin", truncate=5, tokenizer="gpt2", **options),
    ):
        with pytest.raises(packtok.PacktokError, match=message):
            call()
        assert not (tmp_path / "b.pbin").exists()
    packtok.convert(path, tmp_path / "b.pbin", to="pbin", **options)
    assert "tokenizer" not in packtok.PbinReader(tmp_path / "b.pbin").metadata

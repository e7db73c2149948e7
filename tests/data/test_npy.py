"""NPY files of documents are read wherever a pbin is; NumPy and plain lists are the oracle."""

from pathlib import Path

import numpy as np
import pytest
from extent import extent
from hypothesis import given, settings
from hypothesis import strategies as st
from repository import GOLDEN

import packtok
from packtok import PbinReader

GOLDEN_DOCUMENTS = [[1, 17, 250, 2], [1, 2], [1, 31999, 300, 5, 2]]


def save(path: Path, documents: list[list[int]], dtype: str = "int64") -> Path:
    """Saves documents with the statement of CEPE's script."""
    lengths = [len(document) for document in documents]
    np.save(path, np.concatenate([[len(lengths)], lengths, *documents]).astype(dtype))
    return path


def read(path: Path) -> list[list[int]]:
    reader = PbinReader(path)
    return [reader[i].tolist() for i in range(len(reader))]


@pytest.mark.parametrize("name", ["npy_int64.npy", "npy_uint32.npy"])
def test_golden_files_have_their_documents(name: str) -> None:
    reader = PbinReader(GOLDEN / name)
    assert read(GOLDEN / name) == GOLDEN_DOCUMENTS
    assert (len(reader), reader.num_tokens, reader.data_bytes) == (3, 11, 44)
    assert reader.tokens(3, 8).tolist() == [2, 1, 2, 1, 31999]
    assert (reader.dtype, reader.dialect, reader.metadata) == (np.dtype("uint32"), "cepe-npy", None)
    assert (reader.sources, reader.origin(0), reader.trailer_crc32c) == ([], None, None)


@pytest.mark.parametrize("name", ["npy_empty_int64.npy", "npy_empty_float64.npy"])
def test_files_without_documents_are_readable(name: str) -> None:
    reader = PbinReader(GOLDEN / name)
    assert (len(reader), reader.num_tokens) == (0, 0)


def test_torn_files_and_objects_are_named() -> None:
    torn, objects = GOLDEN / "npy_torn.npy", GOLDEN / "npy_object.npy"
    with pytest.raises(packtok.PbinFormatError) as caught:
        PbinReader(torn)
    assert str(caught.value) == (
        f"{torn}: the NPY header declares 15 elements of 8 bytes, which end at byte 248, but the file has "
        "236; the file is truncated"
    )
    with pytest.raises(packtok.PbinFormatError) as caught:
        PbinReader(objects)
    assert str(caught.value) == (
        f'{objects}: the NPY header declares an object array (dtype "|O"), whose elements are pickled '
        "Python objects; packtok never loads pickles, because loading one can run code; save a plain integer "
        "array"
    )


def test_an_id_outside_32_bits_is_an_error_with_its_position(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npy", [[1, 5, -7, 2]])
    reader = PbinReader(path)
    with pytest.raises(packtok.PbinFormatError) as caught:
        _ = reader[0]
    expected = f"{path}: token 2 (element 4 of the array) is -7; expected an id in 0..=4294967295"
    assert str(caught.value) == expected


@given(
    documents=st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=6), min_size=1, max_size=150),
    dtype=st.sampled_from(["int64", "uint32", "uint64"]),
)
@settings(max_examples=extent(100, 15), deadline=None)
def test_what_numpy_saves_is_read(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[int]], dtype: str
) -> None:
    path = save(tmp_path_factory.mktemp("npy") / "a.npy", documents, dtype)
    assert read(path) == documents


@pytest.mark.parametrize("dtype", ["int64", "uint32"])
def test_datasets_have_the_items_of_the_same_tokens_in_memory(tmp_path: Path, dtype: str) -> None:
    generator = np.random.default_rng(0)
    documents = [generator.integers(0, 32000, n).tolist() for n in (5, 40, 1, 33, 90)]
    path = save(tmp_path / "a.npy", documents, dtype)
    dataset = packtok.TokenDataset(str(path), context_length=16)
    stream = np.concatenate(documents)
    for i in range(len(dataset)):
        item = dataset[i]
        start = i * 16
        assert item["input_ids"].tolist() == stream[start : start + 16].tolist()
    again = packtok.TokenDataset(str(save(tmp_path / "b.npy", documents, "uint32")), context_length=16)
    assert len(again) == len(dataset) == (len(stream) - 1) // 16


def test_a_folder_of_npy_files_is_a_dataset(tmp_path: Path) -> None:
    for i in (10, 2):
        (tmp_path / str(i)).mkdir()
        save(tmp_path / str(i) / "a.npy", [[i] * 8])
    (tmp_path / "raw.npy").write_bytes(b"\0" * 64)
    dataset = packtok.TokenDataset(str(tmp_path), context_length=8, by_file=False)
    assert dataset[0]["input_ids"].tolist() == [2] * 8


def test_manifests_list_npy_files(tmp_path: Path) -> None:
    paths = [str(save(tmp_path / f"{i}.npy", [[1, i, 2]] * 20, "uint32")) for i in range(2)]
    manifest = tmp_path / "all.jsonl"
    packtok.write_manifest(paths, manifest)
    dataset = packtok.TokenDataset(str(manifest), context_length=9)
    assert dataset[0]["input_ids"].tolist() == [1, 0, 2] * 3
    # A file with the same ids and size but other lengths is another file.
    save(tmp_path / "0.npy", [[1, 0], [2, 1, 0, 2], *[[1, 0, 2]] * 18], "uint32")
    with pytest.raises(packtok.PacktokError, match=r"index_crc32c"):
        _ = packtok.TokenDataset(str(manifest), context_length=9)[0]

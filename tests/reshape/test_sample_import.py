"""`packtok sample import`: pickles of number arrays are parsed, and nothing else is, not even a name."""

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mds_samples import pickled_sample, retrieved_sample
from pickled_mds import write_pickles
from repository import GOLDEN

import packtok
from packtok._packtok import MdsReader

MDS = GOLDEN / "mds"


def imported(folder: Path, values: list[Any], dump: Callable[[Any], bytes] = pickle.dumps) -> MdsReader:
    write_pickles(folder / "old", [dump(value) for value in values])
    packtok.import_samples(folder / "old", folder / "new", dtype="int64")
    return MdsReader(folder / "new")


def test_the_folders_of_cepes_scripts_are_rewritten(tmp_path: Path) -> None:
    report = packtok.import_samples(MDS / "pickled", tmp_path / "new")
    reader = MdsReader(tmp_path / "new")
    columns = {"domain": "str", "prev_token_ids": "ndarray:uint16", "token_ids": "ndarray:uint16"}
    assert reader.columns == columns
    for i in range(5):
        row, expected_row = reader[i], pickled_sample(i)
        assert row["domain"] == expected_row["domain"]
        for key in ("token_ids", "prev_token_ids"):
            assert row[key].dtype == np.uint16
            assert np.array_equal(row[key], expected_row[key])
    (folder,) = report["folders"]
    assert report["output"] == str(tmp_path / "new")
    assert (folder["samples"], folder["columns"], folder["folder"]) == (5, columns, "")
    assert folder["bytes_after"] == sum(path.stat().st_size for path in (tmp_path / "new").glob("*.mds"))
    assert list(reader.shards[0]["raw_data"]["hashes"]) == ["sha256", "xxh64"]


def test_lists_of_passages_become_arrays_with_lengths(tmp_path: Path) -> None:
    packtok.import_samples(MDS / "retrieved", tmp_path / "new")
    reader = MdsReader(tmp_path / "new")
    assert reader.columns == {
        "retrieval_scores": "ndarray:float32:3",
        "retrieved_lengths": "ndarray:uint32",
        "retrieved_neighbor_lengths": "ndarray:uint32",
        "retrieved_neighbor_token_ids": "ndarray:uint16",
        "retrieved_token_ids": "ndarray:uint16",
    }
    for i in range(5):
        row, expected = reader[i], retrieved_sample(i)
        for prefix in ("retrieved", "retrieved_neighbor"):
            passages = zip(row[f"{prefix}_token_ids"], row[f"{prefix}_lengths"], strict=True)
            for (ids, length), passage in zip(passages, expected[f"{prefix}_token_ids"], strict=True):
                assert ids[:length].tolist() == passage.tolist()
                assert not ids[length:].any()
        assert row["retrieval_scores"].tolist() == expected["retrieval_scores"]


def old_names(value: Any) -> bytes:
    # Protocol 2 has no length prefixes, which would have to change with the names.
    return pickle.dumps(value, protocol=2).replace(b"numpy._core.", b"numpy.core.")


def mapped(folder: Path) -> Any:
    np.save(folder / "a.npy", np.arange(20))
    return np.load(folder / "a.npy", mmap_mode="r")[3:9]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_all_protocols_and_layouts_are_read(protocol: int, tmp_path: Path) -> None:
    values = [
        np.arange(7),
        np.arange(7)[::-2],
        np.arange(3).astype(">i8"),
        np.arange(200, 203),
        mapped(tmp_path),
        np.frombuffer(np.arange(2).tobytes(), np.int64),
    ]
    reader = imported(tmp_path, values, lambda value: pickle.dumps(value, protocol=protocol))
    for i, value in enumerate(values):
        assert reader[i]["token_ids"].tolist() == value.tolist()


def test_numpy_1s_names_are_read(tmp_path: Path) -> None:
    assert imported(tmp_path, [np.arange(3)], old_names)[0]["token_ids"].tolist() == [0, 1, 2]


def test_an_array_that_is_listed_twice_is_read_twice(tmp_path: Path) -> None:
    array = np.arange(3)
    assert imported(tmp_path, [[array, array]])[0]["token_ids"].tolist() == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize("dtype", [*"bBhHiIqQefd"])
def test_every_dtype_of_numbers_is_kept(dtype: str, tmp_path: Path) -> None:
    value = np.array([[1, 2, 3]], dtype)
    write_pickles(tmp_path / "old", [pickle.dumps(value)], column="scores")
    packtok.import_samples(tmp_path / "old", tmp_path / "new")
    reader = MdsReader(tmp_path / "new")
    assert reader.columns["scores"] == f"ndarray:{value.dtype.name}:1,3"
    assert np.array_equal(reader[0]["scores"], value)


class Task:
    """Stands for a dask graph: any class of another module."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("must not run",))


NEITHER = "which is neither a plain NumPy array of numbers nor a list of them"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Task(), f"the pickle names builtins.print, {NEITHER}"),
        ([np.arange(3), Task()], f"the pickle names builtins.print, {NEITHER}"),
        (np.array([Task()], object), f"the pickle names builtins.print, {NEITHER}"),
        (
            np.array([None], object),
            'the array has elements of type "O8", expected integers or floats of 8 to 64 bits',
        ),
        (
            np.array([1 + 1j]),
            'the array has elements of type "c16", expected integers or floats of 8 to 64 bits',
        ),
        (
            np.array([True]),
            'the array has elements of type "b1", expected integers or floats of 8 to 64 bits',
        ),
        (np.float64(1), f"the pickle names numpy._core.multiarray.scalar, {NEITHER}"),
        (np.arange(6).reshape(2, 3).T, "the array is stored by columns, expected rows"),
        ({"a": 1}, "byte 11 of the pickle is operation 0x7d, which pickles of number arrays do not have"),
        ([[1]], "the list has neither only arrays nor only numbers"),
        ("text", "the pickle is neither an array of numbers nor a list"),
    ],
)
def test_anything_else_is_refused_and_never_executed(
    value: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pickles(tmp_path / "old", [pickle.dumps(np.arange(3), protocol=4), pickle.dumps(value, protocol=4)])
    with pytest.raises(packtok.PacktokError) as error:
        packtok.import_samples(tmp_path / "old", tmp_path / "new")
    assert str(error.value) == f'{tmp_path}/old: sample 1, column "token_ids": {message}'
    assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_ids_that_do_not_fit_are_errors(tmp_path: Path) -> None:
    write_pickles(tmp_path / "wide", [pickle.dumps(np.array([70_000]))])
    write_pickles(tmp_path / "negative", [pickle.dumps(np.array([-1]))])
    for name, dtype, problem in [
        ("wide", "uint16", "70000 does not fit uint16"),
        ("negative", None, "-1 does not fit uint32"),
    ]:
        message = (
            f'{tmp_path}/{name}: sample 0, column "token_ids": id {problem}; choose another type with dtype'
        )
        with pytest.raises(ValueError, match=re.escape(message)):
            packtok.import_samples(tmp_path / name, tmp_path / "new", dtype=dtype)
    packtok.import_samples(tmp_path / "wide", tmp_path / "new")
    assert MdsReader(tmp_path / "new").columns["token_ids"] == "ndarray:uint32"


def test_an_empty_value_and_other_types_are_errors(tmp_path: Path) -> None:
    write_pickles(tmp_path / "empty", [pickle.dumps(np.arange(0))])
    write_pickles(tmp_path / "mixed", [pickle.dumps(np.arange(1)), pickle.dumps([np.arange(1)])])
    for name, message in [
        ("empty", 'sample 0, column "token_ids": the value is empty, which MDS cannot store'),
        (
            "mixed",
            'sample 1, column "token_ids": the value is a list of arrays of int64, in sample 0 it is '
            "an array of int64",
        ),
    ]:
        with pytest.raises(packtok.PacktokError) as error:
            packtok.import_samples(tmp_path / name, tmp_path / "new")
        assert str(error.value) == f"{tmp_path}/{name}: {message}"


def test_a_tree_is_rewritten_whole_or_not_at_all(tmp_path: Path) -> None:
    for side in ("test", "train"):
        for domain in ("a", "b"):
            write_pickles(
                tmp_path / "old" / side / domain, [pickle.dumps(np.arange(3) + n) for n in range(2)]
            )
    packtok.import_samples(tmp_path / "old", tmp_path / "new", compression="zstd")
    folders = sorted(
        str(path.parent.relative_to(tmp_path / "new")) for path in (tmp_path / "new").rglob("index.json")
    )
    assert folders == ["test/a", "test/b", "train/a", "train/b"]
    with pytest.raises(FileExistsError):
        packtok.import_samples(tmp_path / "old", tmp_path / "new")
    shard = tmp_path / "old" / "train" / "b" / "shard.00000.mds"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(packtok.PbinFormatError, match="it is truncated"):
        packtok.import_samples(tmp_path / "old", tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]


def test_what_a_killed_import_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / ".new.import.tmp"
    (left / "stale").mkdir(parents=True)
    packtok.import_samples(MDS / "pickled", tmp_path / "new")
    assert not left.exists()
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["index.json", "shard.00000.mds"]


def test_a_folder_without_samples_and_an_output_within_it_are_errors(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    with pytest.raises(ValueError, match=r"old: no folder with an index\.json was found"):
        packtok.import_samples(tmp_path / "old", tmp_path / "new")
    write_pickles(tmp_path / "old" / "a", [pickle.dumps(np.arange(3))])
    with pytest.raises(ValueError, match="new: the output is within the input; choose another folder"):
        packtok.import_samples(tmp_path / "old", tmp_path / "old" / "new")

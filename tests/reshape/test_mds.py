"""MDS folders: bytes and values are those of mosaicml-streaming, which wrote the folders in `golden/mds`."""

import errno
import hashlib
import json
import os
import pickle
import re
import resource
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mds_samples import COLUMNS, DTYPES, sample
from peers import python_of, trained
from repository import GOLDEN

from packtok import PacktokError, PbinFormatError
from packtok._packtok import MdsReader, MdsWriter, mds_marker, publish_mds_index

MDS = GOLDEN / "mds"


def write(folder: Path, columns: dict[str, str], samples: list[dict[str, Any]], **options: Any) -> None:
    with MdsWriter(folder, columns, **options) as writer:
        for row in samples:
            writer.write(row)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def same(value: Any, expected: Any) -> bool:
    if isinstance(expected, np.ndarray):
        return bool(
            value.dtype == expected.dtype
            and value.shape == expected.shape
            and value.tobytes() == expected.tobytes()
        )
    return type(value) is type(expected) and bool(value == expected)


def test_shards_and_index_are_byte_for_byte_those_of_mosaicml_streaming(tmp_path: Path) -> None:
    write(tmp_path / "plain", COLUMNS, [sample(i) for i in range(13)], size_limit=3000)
    assert content(tmp_path / "plain") == content(MDS / "plain")
    few = [{"tokens": sample(i)["tokens"]} for i in range(3)]
    write(tmp_path / "few", {"tokens": "ndarray:uint16"}, few, size_limit=None, hashes=())
    assert content(tmp_path / "few") == content(MDS / "no_hashes")


@pytest.mark.parametrize("name", ["plain", "zstd"])
def test_samples_of_mosaicml_streaming_are_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACKTOK_CACHE_DIR", str(tmp_path / "cache"))
    reader = MdsReader(MDS / name)
    assert len(reader) == 13
    assert reader.columns == dict(sorted(COLUMNS.items()))
    for i in range(13):
        row, expected = reader[i], sample(i)
        assert list(row) == sorted(expected)
        for column, value in expected.items():
            assert same(row[column], value), (i, column)
    assert same(reader[-1]["tokens"], sample(12)["tokens"])
    reader.verify()


def test_compressed_shards_decompress_to_the_uncompressed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACKTOK_CACHE_DIR", str(tmp_path / "cache"))
    samples = [sample(i) for i in range(13)]
    write(tmp_path / "zstd", COLUMNS, samples, size_limit=3000, hashes=["xxh64"], compression="zstd:7")
    index, golden = (
        json.loads((folder / "index.json").read_text()) for folder in (tmp_path / "zstd", MDS / "zstd")
    )
    for shard in (*index["shards"], *golden["shards"]):
        del shard["zip_data"]["bytes"], shard["zip_data"]["hashes"]
    assert index == golden
    reader = MdsReader(tmp_path / "zstd")
    assert all(same(reader[i]["any"], samples[i]["any"]) for i in range(13))
    assert len(list((tmp_path / "cache").glob("*.mds"))) == len(golden["shards"])
    assert not list((tmp_path / "cache").glob("*.tmp"))


def test_arrays_are_read_only_views_that_outlive_the_reader(tmp_path: Path) -> None:
    write(tmp_path / "a", COLUMNS, [sample(1)])
    value = MdsReader(tmp_path / "a")[0]["tokens"]
    assert not value.flags.writeable
    assert not value.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        value[0] = 1
    assert same(value, sample(1)["tokens"])


def test_arrays_of_any_layout_are_written_in_row_major_order(tmp_path: Path) -> None:
    grid = np.arange(12, dtype=np.uint32).reshape(3, 4)
    layouts = [grid.T, grid[::2, ::-1], np.asfortranarray(grid), grid.astype(">u4")]
    write(tmp_path / "a", {"x": "ndarray:uint32"}, [{"x": x} for x in layouts])
    reader = MdsReader(tmp_path / "a")
    for i, expected in enumerate(layouts):
        assert np.array_equal(reader[i]["x"], expected)


def test_a_value_that_does_not_fit_names_its_column_and_leaves_the_sample_out(tmp_path: Path) -> None:
    columns = {"x": "ndarray:uint16:2", "y": "str", "z": "int"}
    good = {"x": np.ones(2, np.uint16), "y": "", "z": 1}
    with MdsWriter(tmp_path / "a", columns) as writer:
        writer.write(good)
        for key, value, kind, message in [
            (
                "x",
                np.ones(3, np.uint16),
                ValueError,
                'column "x": the value is an array of uint16 with shape [3], expected ndarray:uint16:2',
            ),
            (
                "x",
                np.ones(2, np.int16),
                ValueError,
                'column "x": the value is an array of int16 with shape [2], expected ndarray:uint16:2',
            ),
            ("x", [1, 2], TypeError, 'column "x": the value is of type list, expected a NumPy array'),
            (
                "x",
                np.array(["a"]),
                TypeError,
                'column "x": the value is an array of <U1, expected an array of integers or floats of 8 to '
                "64 bits",
            ),
            ("y", b"", TypeError, 'column "y": the value is of type bytes, expected str'),
            ("z", 2**63, TypeError, 'column "z": the value is of type int, expected an int of 64 bits'),
            ("w", 1, ValueError, 'the sample has a value for "w", which is not a column'),
        ]:
            with pytest.raises(kind) as error:
                writer.write({**good, key: value})
            assert str(error.value) == message
        with pytest.raises(ValueError, match='the sample has no value of column "z"'):
            writer.write({"x": good["x"], "y": ""})
        assert writer.num_samples == 1
    assert len(MdsReader(tmp_path / "a")) == 1


def test_empty_arrays_and_scalars_are_refused_as_mosaicml_streaming_refuses_them(tmp_path: Path) -> None:
    with MdsWriter(tmp_path / "a", {"x": "ndarray"}) as writer:
        for value in (np.ones(0, np.uint8), np.array(1, np.uint8), np.ones((2, 0), np.uint8)):
            with pytest.raises(ValueError, match='column "x": the value is an array'):
                writer.write({"x": value})


def test_options_that_do_not_exist_are_errors(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"size_limit": 2**32}, "size_limit is 4294967296, expected at least 1 and less than 2^32"),
        ({"hashes": ["md5"]}, 'hashes: "md5" is unknown, expected "sha256" or "xxh64"'),
        (
            {"compression": "zstd:23"},
            'compression is "zstd:23", expected "zstd" or "zstd:LEVEL" with a level from 1 to 22',
        ),
    ]
    for options, message in cases:
        with pytest.raises(ValueError, match=re.escape(message) + "$"):
            MdsWriter(tmp_path / "a", {"x": "int"}, **options)
    with pytest.raises(ValueError, match="columns: expected at least one"):
        MdsWriter(tmp_path / "a", {})
    assert not (tmp_path / "a").exists()


def test_pickles_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(PacktokError) as error:
        MdsReader(MDS / "pickled")
    assert str(error.value) == (
        f'{MDS}/pickled/index.json: column "prev_token_ids" has encoding "pkl": pickles are refused '
        "because reading one can execute code; `packtok sample import` rewrites the columns of number arrays"
    )
    with pytest.raises(
        PacktokError, match='column "x" has encoding "png": columns of images are not supported'
    ):
        MdsWriter(tmp_path, {"x": "png"})


def test_a_first_sample_beyond_the_limit_is_not_preceded_by_an_empty_shard(tmp_path: Path) -> None:
    # mosaicml-streaming writes an empty shard, and divides by its number of samples when it reads the folder.
    samples = [{"x": np.zeros(n, np.uint8)} for n in (500, 1, 500, 1, 1)]
    write(tmp_path, {"x": "ndarray"}, samples, size_limit=300)
    assert [shard["samples"] for shard in MdsReader(tmp_path).shards] == [1, 1, 1, 2]


def test_several_writers_fill_one_folder(tmp_path: Path) -> None:
    samples = [sample(i) for i in range(13)]
    shards = []
    golden = json.loads((MDS / "plain/index.json").read_text())["shards"]
    at = 0
    for number, shard in enumerate(golden):
        writer = MdsWriter(tmp_path, COLUMNS, size_limit=3000, first_shard=number)
        for row in samples[at : at + shard["samples"]]:
            writer.write(row)
        at += shard["samples"]
        shards += writer.finish(publish_index=False)
        assert not (tmp_path / "index.json").exists()
    publish_mds_index(tmp_path, shards)
    assert content(tmp_path) == content(MDS / "plain")
    with pytest.raises(FileExistsError):
        publish_mds_index(tmp_path, shards)


def test_an_exception_removes_the_shards(tmp_path: Path) -> None:
    writer = MdsWriter(tmp_path, {"x": "int"}, size_limit=200)
    with pytest.raises(KeyError), writer:
        fill_and_fail(writer, tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="the writer has ended"):
        writer.write({"x": 1})


def fill_and_fail(writer: MdsWriter, folder: Path) -> None:
    while len(list(folder.iterdir())) < 3:
        writer.write({"x": 1})
    raise KeyError


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    write(tmp_path, {"x": "int"}, [{"x": 1}])
    before = content(tmp_path)
    with pytest.raises(FileExistsError):
        MdsWriter(tmp_path, {"x": "int"})
    assert content(tmp_path) == before


def test_the_marker_names_the_index_that_it_belongs_to(tmp_path: Path) -> None:
    marker = {"kind": "samples", "plan": "ab", "side": "train", "domain": "book", "start": 0, "stop": 1}
    writer = MdsWriter(tmp_path, {"x": "int"})
    writer.write({"x": 1})
    writer.finish(marker={**marker, "details": {"k": 50}})
    index = (tmp_path / "index.json").read_bytes()
    expected = {
        "version": 1,
        **marker,
        "index_sha256": hashlib.sha256(index).hexdigest(),
        "details": {"k": 50},
    }
    assert mds_marker(tmp_path) == MdsReader(tmp_path).marker == expected
    assert mds_marker(MDS / "plain") is None


def test_a_pickled_reader_reopens_its_folder() -> None:
    reader = pickle.loads(pickle.dumps(MdsReader(MDS / "plain", verify=False)))
    assert same(reader[5]["any"], sample(5)["any"])
    assert repr(reader) == f'MdsReader("{MDS}/plain")'


def test_positions_outside_of_the_folder_are_index_errors() -> None:
    reader = MdsReader(MDS / "plain")
    for i in (13, -14, 2**62):
        with pytest.raises(IndexError) as error:
            reader[i]
        assert str(error.value) == f"{MDS}/plain: sample {i} is out of range, the folder has 13"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(MDS / "plain", tmp_path / "copy")
    return tmp_path / "copy"


def test_a_changed_byte_is_found_when_its_shard_is_first_used(copy: Path) -> None:
    shard = copy / "shard.00001.mds"
    damaged = bytearray(shard.read_bytes())
    damaged[-1] ^= 1
    shard.write_bytes(damaged)
    reader = MdsReader(copy)
    reader[0]
    start = json.loads((copy / "index.json").read_text())["shards"][0]["samples"]
    with pytest.raises(
        PbinFormatError, match=r"shard.00001.mds: xxh64 is .*, the index says .*; the file is damaged"
    ):
        reader[start]
    with pytest.raises(PbinFormatError, match="the file is damaged"):
        reader.verify()
    assert MdsReader(copy, verify=False)[start]["flag"] == sample(start)["flag"]


def test_a_truncated_a_foreign_and_a_missing_shard_are_errors(copy: Path) -> None:
    shard = copy / "shard.00000.mds"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-1])
    with pytest.raises(PbinFormatError) as error:
        MdsReader(copy)[0]
    assert str(error.value) == (
        f"{shard}: the file is {len(whole) - 1} bytes, the index says {len(whole)}; it is truncated or "
        "belongs to another index"
    )
    shard.write_bytes((99).to_bytes(4, "little") + whole[4:])
    with pytest.raises(PbinFormatError, match="the file has 99 samples, the index says 6"):
        MdsReader(copy)[0]
    shard.unlink()
    with pytest.raises(FileNotFoundError):
        MdsReader(copy)[0]


def test_false_positions_and_sizes_are_errors(copy: Path) -> None:
    shard = copy / "shard.00000.mds"
    whole = shard.read_bytes()
    first = int.from_bytes(whole[4:8], "little")
    for at, value, message in [
        (4, 2**32 - 1, r"sample 0 is at bytes 4294967295\.\."),
        (4, 0, r"sample 0 is at bytes 0\.\."),
        (8, first - 1, r"sample 0 is at bytes \d+\.\.\d+, expected a range within 32\.\.\d+"),
        (first, 2**32 - 1, 'sample 0, column "any": needs 4294967295 bytes, the sample has'),
        (first, 0, 'sample 0, column "tokens": 6 bytes follow the last value'),
    ]:
        shard.write_bytes(whole[:at] + value.to_bytes(4, "little") + whole[at + 4 :])
        with pytest.raises(PbinFormatError, match=message):
            MdsReader(copy, verify=False)[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 3}, "version is 3, expected 2"),
        ({"format": "json"}, 'shard 0 has format "json", expected "mds"'),
        (
            {"column_sizes": []},
            "shard 0 has 9 column names, 9 encodings and 0 sizes, expected equal numbers of at least 1",
        ),
        ({"samples": 2**32}, "shard 0 has 4294967296 samples, expected fewer than 2^32"),
        ({"compression": "zstd"}, 'shard 0 has compression "zstd" and no compressed file'),
        (
            {"raw_data": {"basename": "../x", "bytes": 1, "hashes": {}}},
            'shard 0 is in the file "../x", expected a file below the index\'s folder',
        ),
    ],
)
def test_a_wrong_index_is_an_error(copy: Path, change: dict[str, Any], message: str) -> None:
    path = copy / "index.json"
    index = json.loads(path.read_text())
    index["shards"][0].update(change)
    path.write_text(json.dumps(index))
    with pytest.raises((PbinFormatError, PacktokError)) as error:
        MdsReader(copy)
    assert str(error.value) == f"{path}: {message}"


def test_a_bomb_is_not_decompressed_beyond_the_size_in_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACKTOK_CACHE_DIR", str(tmp_path / "cache"))
    with MdsWriter(tmp_path / "a", {"x": "bytes"}, hashes=(), compression="zstd") as writer:
        writer.write({"x": bytes(1 << 24)})
    path = tmp_path / "a" / "index.json"
    index = json.loads(path.read_text())
    index["shards"][0]["raw_data"]["bytes"] = 1000
    path.write_text(json.dumps(index))
    with pytest.raises(
        PbinFormatError, match="decompressed, the file has at least 262144 bytes, the index says 1000"
    ):
        MdsReader(tmp_path / "a", verify=False)[0]
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_full_disk_is_reported_with_the_file_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACKTOK_CACHE_DIR", str(tmp_path / "cache"))
    write(tmp_path / "a", {"x": "bytes"}, [{"x": bytes(1 << 20)}], compression="zstd")
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
            MdsReader(tmp_path / "a")[0]
        except OSError as error:
            os.write(sender, f"{error.errno} {error.filename}".encode())
        finally:
            os._exit(0)
    os.close(sender)
    os.waitpid(child, 0)
    with open(receiver) as file:
        code, _, path = file.read().partition(" ")
    assert int(code) == errno.EFBIG
    assert re.fullmatch(rf"{re.escape(str(tmp_path))}/cache/[0-9a-f]+\.mds", path)


def test_other_compressions_are_named(tmp_path: Path) -> None:
    shutil.copytree(MDS / "zstd", tmp_path / "a")
    path = tmp_path / "a" / "index.json"
    path.write_text(path.read_text().replace('"zstd:7"', '"br"'))
    with pytest.raises(
        PacktokError, match='the compression is "br", expected zstd; decompress the shards with'
    ):
        MdsReader(tmp_path / "a")[0]


@pytest.mark.whole
@pytest.mark.parametrize("options", [{}, {"compression": "zstd:5"}])
def test_mosaicml_streaming_reads_every_sample_with_hashes_checked(
    options: dict[str, Any], tmp_path: Path
) -> None:
    python = python_of("streaming", "mosaicml-streaming")
    samples = [sample(i) for i in range(13)]
    write(tmp_path / "a", COLUMNS, samples, size_limit=3000, **options)
    rows: Any = trained(python, "streaming_reading.py", tmp_path / "a")
    assert rows == {".": [{key: plain(row[key]) for key in sorted(row)} for row in samples]}


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [value.dtype.name, value.tolist()]
    if isinstance(value, bytes):
        return value.hex()
    return value.item() if isinstance(value, np.generic) else value


def test_all_dtypes_have_a_golden_sample() -> None:
    assert {sample(i)["any"].dtype.name for i in range(13)} == set(DTYPES)

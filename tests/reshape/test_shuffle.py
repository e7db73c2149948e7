"""Shuffled files are byte for byte those of Modalities for a seed; filters keep what they accept."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pbins
import pytest
import reference
from command_line import PacktokCli
from extent import extent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peers import modalities_python
from processes import in_a_mount_namespace, names

import packtok
from packtok import _packtok
from packtok.commands import shuffle
from packtok.compat import modalities
from packtok.compat.modalities import FileExistencePolicy
from packtok.errors import OUTPUT_EXISTS

# With these limits, no file is shuffled in memory, and parts of larger files have 4,096 bytes.
ON_DISK = (0, 4096)


def documents(num: int, width: int = 2, longest: int = 9) -> list[list[int]]:
    rng = random.Random(num)
    return [[rng.randrange(256**width) for _ in range(rng.randrange(longest))] for _ in range(num)]


def python_order(seed: int, num: int) -> list[int]:
    order = list(range(num))
    random.Random(seed).shuffle(order)
    return order


def numpy_order(seed: int, num: int) -> list[int]:
    order = list(range(num))
    np.random.default_rng(seed).shuffle(order)
    return order


def chunk_seed(global_seed: int, chunk_id: int) -> int:
    hashed = (int(hashlib.sha256(str(number).encode()).hexdigest(), 16) for number in (global_seed, chunk_id))
    return sum(hashed) % (2**32 - 1)


def chunk_of(items: list[Any], chunk_id: int, num_chunks: int) -> list[Any]:
    """Returns a chunk as Modalities computes it."""
    longest = -(-len(items) // num_chunks)
    num_full = len(items) % num_chunks or num_chunks
    first = longest * min(num_full, chunk_id) + max(chunk_id - num_full, 0) * (longest - 1)
    return items[first : first + (longest if chunk_id < num_full else longest - 1)]


def packed(folder: Path, name: str, texts: list[str], **options: Any) -> Path:
    corpus = oracle.write_lines(folder / f"{name}.jsonl", texts)
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.exists():
        oracle.byte_level(tokenizer)
    path = folder / f"{name}.pbin"
    packtok.pack(input=str(corpus), output=path, tokenizer=str(tokenizer), **options)
    return path


def metadata_of(path: Path) -> dict[str, Any]:
    metadata = reference.read_pbin(path).metadata
    assert metadata is not None
    return metadata


# --- orders ---


@pytest.mark.parametrize("seed", [0, 1, 42, -42, 2**32 - 1, 2**32, 2**200 + 7, -(2**65)])
@pytest.mark.parametrize("num", [0, 1, 2, 3, 255, 256, 257, 70_001])
def test_orders_are_those_of_python_and_numpy(seed: int, num: int) -> None:
    digits = f"{abs(seed):x}"
    assert _packtok.shuffled_order("python", digits, num) == python_order(seed, num)
    assert _packtok.shuffled_order("numpy", digits, num) == numpy_order(abs(seed), num)


def test_long_orders_are_those_of_python_and_numpy() -> None:
    num = extent(3_000_000, 300_000)
    assert _packtok.shuffled_order("python", "7", num) == python_order(7, num)
    assert _packtok.shuffled_order("numpy", "7", num) == numpy_order(7, num)


def test_order_of_packtok_is_its_permutation() -> None:
    permutation = packtok.Permutation(5000, seed=9, epoch=0)
    assert _packtok.shuffled_order("packtok", "9", 5000) == [permutation[i] for i in range(5000)]


@pytest.mark.parametrize(("global_seed", "chunk_id"), [(1, 2), (2, 1), (-5, 0), (10**40, 123_456)])
def test_seeds_of_chunks_are_those_of_modalities(global_seed: int, chunk_id: int) -> None:
    assert int(_packtok.chunk_seed(str(global_seed), chunk_id), 16) == chunk_seed(global_seed, chunk_id)


# --- pbins ---


@settings(max_examples=extent(200, 20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    num=st.integers(0, 60),
    width=st.sampled_from([1, 2, 4]),
    form=st.sampled_from(["packtok", "modalities", "legacy"]),
    memory=st.sampled_from([None, (0, 64), (0, 4096)]),
    seed=st.integers(-(2**70), 2**70),
)
def test_shuffled_pbin_starts_with_the_bytes_of_modalities(
    tmp_path: Path, num: int, width: int, form: str, memory: tuple[int, int] | None, seed: int
) -> None:
    expected = documents(num, width)
    source, output = tmp_path / "in.pbin", tmp_path / "out.pbin"
    if form == "legacy":
        source.write_bytes(reference.modalities_bytes(expected, width, origin=12))
    else:
        pbins.write(source, expected, width, trailer=form == "packtok")
    report = shuffle.shuffle_file("pbin", source, output, seed=seed, existing="replace", memory=memory)
    shuffled = [expected[i] for i in python_order(seed, num)]
    theirs = reference.modalities_bytes(shuffled, width)
    assert output.read_bytes()[: len(theirs)] == theirs
    assert reference.read_pbin(output).documents == shuffled
    assert (report["documents"], report["tokens"]) == (num, sum(map(len, shuffled)))
    assert report["order"] == "modalities"
    assert abs(seed) == report["seed"]
    _packtok.verify(path=str(output), tokenizer=None, on_progress=None)


def test_trailer_of_a_shuffled_pbin_is_complete(tmp_path: Path) -> None:
    source = packed(tmp_path, "in", [f"text {i} {'x' * (i % 7)}" for i in range(300)], origins=True)
    output = tmp_path / "out.pbin"
    written = []
    for memory in (None, ON_DISK):
        shuffle.shuffle_file("pbin", source, output, seed=5, existing="replace", memory=memory)
        written.append(output.read_bytes())
    assert written[0] == written[1]
    before, after = reference.read_pbin(source), reference.read_pbin(output)
    order = python_order(5, 300)
    assert before.metadata is not None
    assert after.metadata is not None
    assert before.origins is not None
    assert after.documents == [before.documents[i] for i in order]
    assert after.origins == [before.origins[i] for i in order]
    assert after.sources == before.sources
    part = {"name": "in.pbin", "documents": 300, "tokens": before.metadata["counts"]["tokens"]}
    data = source.read_bytes()[12:][: int.from_bytes(source.read_bytes()[:8], "little")]
    assert after.metadata == before.metadata | {
        "parts": [part | {"data_crc32c": reference.crc32c(data)}],
        "shuffle": {"generator": "python", "seed": "5"},
        "rearranged": True,
    }
    assert list(after.metadata) == [*before.metadata, "parts", "shuffle", "rearranged"]
    assert (tmp_path / "out.pbin.tokenizer.json").read_bytes() == (
        tmp_path / "in.pbin.tokenizer.json"
    ).read_bytes()
    packtok.verify(output)


def test_documents_of_a_source_of_a_shuffled_pbin_are_found_or_refused(tmp_path: Path) -> None:
    corpora = [oracle.write_lines(tmp_path / f"{name}.jsonl", [name] * 3) for name in "ab"]
    oracle.byte_level(tmp_path / "t.json")
    packtok.pack(
        input=[str(path) for path in corpora],
        output=tmp_path / "in.pbin",
        tokenizer=str(tmp_path / "t.json"),
        origins=True,
    )
    output = tmp_path / "out.pbin"
    seen = set()
    for seed in range(40):
        shuffle.shuffle_file("pbin", tmp_path / "in.pbin", output, seed=seed, existing="replace")
        sources = "".join("ab"[i // 3] for i in python_order(seed, 6))
        reader = packtok.PbinReader(str(output))
        if "aaa" in sources:
            assert reader.documents_of_source(0) == (sources.index("a"), sources.index("a") + 3)
        else:
            message = (
                f"{output}: the documents of source 0 are not consecutive, since the file was shuffled; read "
                "the origin of each document instead"
            )
            with pytest.raises(packtok.PacktokError, match=re.escape(message)):
                reader.documents_of_source(0)
        seen.add("aaa" in sources)
    assert seen == {True, False}


def test_merged_index_of_modalities_is_not_read_as_documents(tmp_path: Path) -> None:
    # Modalities' merge writes wrong offsets, and its shuffle then shuffles wrong documents.
    data = bytes(range(1, 9))
    wrong = [(0, 2), (2, 2), (-8 + 4, 2), (-8 + 6, 2)]
    source = tmp_path / "merged.pbin"
    source.write_bytes(reference.HEADER.pack(len(data), 1) + data + pickle.dumps(wrong, protocol=4))
    with pytest.raises(packtok.PbinFormatError):
        shuffle.shuffle_file("pbin", source, tmp_path / "out.pbin", seed=1)
    assert names(tmp_path) == ["merged.pbin"]


def test_pickled_code_in_an_input_is_refused_and_not_run(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
            return os.system, (f"touch {tmp_path}/ran",)

    source = tmp_path / "hostile.pbin"
    source.write_bytes(reference.HEADER.pack(2, 2) + b"\0\0" + pickle.dumps([Hostile()], protocol=4))
    kept: list[Callable[[], object]] = [
        lambda: modalities.shuffle_tokenized_data(source, tmp_path / "out.pbin", seed=1),
        lambda: modalities.create_shuffled_dataset_chunk([source], tmp_path / "out.pbin", 0, 1),
        lambda: modalities.filter_dataset(source, tmp_path / "out.pbin", lambda _: True),
        lambda: modalities.create_filtered_tokenized_dataset(source, lambda _: True, tmp_path / "out.pbin"),
    ]
    for call in kept:
        with pytest.raises(packtok.PbinFormatError):
            call()
    assert names(tmp_path) == ["hostile.pbin"]


def test_flipped_bit_of_an_input_is_found(tmp_path: Path) -> None:
    source = pbins.write(tmp_path / "in.pbin", documents(500), 2)
    content = bytearray(source.read_bytes())
    content[100] ^= 1
    source.write_bytes(content)
    for memory in (None, ON_DISK):
        with pytest.raises(packtok.PbinFormatError, match="is damaged"):
            shuffle.shuffle_file("pbin", source, tmp_path / "out.pbin", seed=1, memory=memory)
    assert names(tmp_path) == ["in.pbin"]


# --- JSONL ---

LINES = [
    b'{"a": 1}\n',
    b"\n",
    b'{"a": 2}\r\n',
    b'{"a": "\xc3\xa4"}\n',
    b"not json\n",
    b" \n",
    b"x" * 9000 + b"\n",
]


@pytest.mark.parametrize("memory", [None, (0, 100), ON_DISK])
@pytest.mark.parametrize("seed", [0, 1, -3, 2**100])
def test_shuffled_lines_are_those_of_modalities(
    tmp_path: Path, memory: tuple[int, int] | None, seed: int
) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"".join(LINES))
    report = shuffle.shuffle_file(
        "jsonl", tmp_path / "in.jsonl", tmp_path / "out.jsonl", seed=seed, memory=memory
    )
    expected = b"".join(LINES[i] for i in python_order(seed, len(LINES)))
    assert (tmp_path / "out.jsonl").read_bytes() == expected
    assert (report["documents"], report["file_bytes"]) == (len(LINES), len(expected))


@pytest.mark.parametrize("memory", [None, (0, 1)])
def test_last_line_without_newline_is_not_glued_to_its_successor(
    tmp_path: Path, memory: tuple[int, int] | None
) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"1\n2\n3")
    for seed in range(5):
        modalities_order = [(b"1\n", b"2\n", b"3\n")[i] for i in python_order(seed, 3)]
        shuffle.shuffle_file(
            "jsonl", tmp_path / "in.jsonl", tmp_path / "o", seed=seed, existing="replace", memory=memory
        )
        assert (tmp_path / "o").read_bytes() == b"".join(modalities_order)


def test_empty_file_of_lines_gives_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").touch()
    for memory in (None, (0, 1)):
        shuffle.shuffle_file(
            "jsonl", tmp_path / "in.jsonl", tmp_path / "o", seed=1, existing="replace", memory=memory
        )
        assert (tmp_path / "o").read_bytes() == b""


def test_compressed_lines_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(gzip.compress(b"{}\n"))
    message = (
        f"{tmp_path / 'in.jsonl'}: is compressed with gzip; decompress it first: its lines cannot be read in "
        "any order"
    )
    with pytest.raises(packtok.PacktokError, match=f"^{re.escape(message)}$"):
        shuffle.shuffle_file("jsonl", tmp_path / "in.jsonl", tmp_path / "o", seed=1)
    with pytest.raises(
        ValueError, match=f"^{re.escape(str(tmp_path))}: is not a file; expected a JSONL file$"
    ):
        shuffle.shuffle_file("jsonl", tmp_path, tmp_path / "o", seed=1)
    assert names(tmp_path) == ["in.jsonl"]


# --- without a seed ---


@pytest.mark.parametrize("kind", ["pbin", "jsonl"])
def test_order_without_a_seed_is_repeated_by_the_reported_seed(tmp_path: Path, kind: Any) -> None:
    source = tmp_path / f"in.{kind}"
    pbins.write(source, documents(200), 2)
    if kind == "jsonl":
        source.write_text("".join(f"{i}\n" for i in range(200)))
    first = shuffle.shuffle_file(kind, source, tmp_path / "one")
    other = shuffle.shuffle_file(kind, source, tmp_path / "two")
    assert first["order"] == other["order"] == "packtok"
    assert first["seed"] != other["seed"]
    assert 0 <= first["seed"] < 2**48
    shuffle.shuffle_file(kind, source, tmp_path / "again", seed=first["seed"], order="packtok")
    first_lines, second_lines, again = ((tmp_path / name).read_bytes() for name in ("one", "two", "again"))
    assert first_lines == again != second_lines
    if kind == "jsonl":
        permutation = packtok.Permutation(200, seed=first["seed"], epoch=0)
        assert first_lines.decode().split() == [str(permutation[i]) for i in range(200)]
    else:
        recorded = metadata_of(tmp_path / "one")["shuffle"]
        assert recorded == {"generator": "packtok", "seed": str(first["seed"])}


# --- an output that exists ---


def test_existing_pbin_is_kept_only_if_it_is_the_result(tmp_path: Path) -> None:
    source, output = pbins.write(tmp_path / "in.pbin", documents(50), 2), tmp_path / "out.pbin"
    shuffle.shuffle_file("pbin", source, output, seed=1)
    before = output.read_bytes()
    with pytest.raises(FileExistsError, match=re.escape(OUTPUT_EXISTS)):
        shuffle.shuffle_file("pbin", source, output, seed=1)
    report = shuffle.shuffle_file("pbin", source, output, seed=1, existing="skip")
    assert report["skipped_existing"] is True
    differs = f"{output}: the existing output differs from what this run would write: "
    with pytest.raises(packtok.PacktokError, match=re.escape(differs + "its shuffle is ")):
        shuffle.shuffle_file("pbin", source, output, seed=2, existing="skip")
    pbins.write(source, documents(51), 2)
    with pytest.raises(packtok.PacktokError, match=re.escape(differs + "its list of parts is ")):
        shuffle.shuffle_file("pbin", source, output, seed=1, existing="skip")
    pbins.write(source, documents(50), 2)
    output.write_bytes(before[:30] + bytes([before[30] ^ 1]) + before[31:])
    with pytest.raises(packtok.PbinFormatError, match="is damaged"):
        shuffle.shuffle_file("pbin", source, output, seed=1, existing="skip")
    reference.write_modalities(output, documents(50), 2)
    with pytest.raises(packtok.PacktokError, match="has no trailer, so its origin cannot be verified"):
        shuffle.shuffle_file("pbin", source, output, seed=1, existing="skip")
    shuffle.shuffle_file("pbin", source, output, seed=1, existing="replace")
    assert output.read_bytes() == before


def test_existing_pbin_of_a_run_without_a_seed_is_kept_with_its_seed(tmp_path: Path) -> None:
    source, output = pbins.write(tmp_path / "in.pbin", documents(50), 2), tmp_path / "out.pbin"
    first = shuffle.shuffle_file("pbin", source, output)
    again = shuffle.shuffle_file("pbin", source, output, existing="skip")
    assert (again["skipped_existing"], again["seed"]) == (True, first["seed"])


def test_existing_lines_are_compared_with_the_result(tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(f"{i}\n" for i in range(1000)))
    shuffle.shuffle_file("jsonl", source, output, seed=1)
    report = shuffle.shuffle_file("jsonl", source, output, seed=1, existing="skip")
    assert report["skipped_existing"] is True
    content = output.read_bytes()
    for changed, offset in (
        (content[:-1], len(content) - 1),
        (b"x" + content[1:], 0),
        (content + b"1", len(content)),
    ):
        output.write_bytes(changed)
        message = (
            f"{output}: the existing output differs from what this run would write, from byte {offset} on; "
            "set --existing (existing) to replace, or choose another output"
        )
        with pytest.raises(packtok.PacktokError, match=f"^{re.escape(message)}$"):
            shuffle.shuffle_file("jsonl", source, output, seed=1, existing="skip")
        assert output.read_bytes() == changed
    with pytest.raises(
        packtok.PacktokError, match="cannot be proven to be the result of this run without a seed"
    ):
        shuffle.shuffle_file("jsonl", source, output, existing="skip")
    assert names(tmp_path) == ["in.jsonl", "out.jsonl"]


def test_replaced_output_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    source, output = pbins.write(tmp_path / "in.pbin", documents(50), 2), tmp_path / "out.pbin"
    shuffle.shuffle_file("pbin", source, output, seed=1)
    before = output.read_bytes()
    content = bytearray(source.read_bytes())
    content[40] ^= 1
    source.write_bytes(content)
    # Modalities removes the old file first.
    with pytest.raises(packtok.PbinFormatError):
        modalities.shuffle_tokenized_data(source, output, 100, FileExistencePolicy.OVERRIDE, 2)
    assert output.read_bytes() == before


def test_output_is_not_an_input(tmp_path: Path) -> None:
    source = pbins.write(tmp_path / "in.pbin", documents(5), 2)
    (tmp_path / "link.pbin").symlink_to(source)
    message = ": file is both input and output; choose another output"
    for call in (
        lambda: modalities.shuffle_tokenized_data(source, source),
        lambda: modalities.shuffle_jsonl_data(source, tmp_path / "link.pbin"),
        lambda: modalities.create_shuffled_dataset_chunk([source], source, 0, 1),
        lambda: modalities.filter_dataset(source, source, lambda _: True),
    ):
        with pytest.raises(ValueError, match=message):
            call()


# --- chunks ---


@settings(max_examples=extent(200, 15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    nums=st.lists(st.integers(0, 20), min_size=1, max_size=3),
    num_chunks=st.integers(1, 6),
    global_seed=st.integers(-5, 2**70),
    memory=st.sampled_from([None, ON_DISK]),
)
def test_chunks_are_those_of_modalities(
    tmp_path: Path, nums: list[int], num_chunks: int, global_seed: int, memory: tuple[int, int] | None
) -> None:
    contents = [documents(num + 100 * i)[:num] for i, num in enumerate(nums)]
    files = [pbins.write(tmp_path / f"{i}.pbin", content) for i, content in enumerate(contents)]
    lines = [[f"{i} {k}\n" for k in range(num)] for i, num in enumerate(nums)]
    texts = [tmp_path / f"{i}.jsonl" for i in range(len(nums))]
    for path, content in zip(texts, lines, strict=True):
        # The last newline is missing, at which Modalities joins the last line with the next file.
        path.write_text("".join(content).removesuffix("\n"))
    for chunk_id in range(num_chunks):
        chosen = [item for content in contents for item in chunk_of(content, chunk_id, num_chunks)]
        chosen_lines = [item for content in lines for item in chunk_of(content, chunk_id, num_chunks)]
        arguments: dict[str, Any] = {
            "chunk_id": chunk_id,
            "num_chunks": num_chunks,
            "global_seed": global_seed,
            "existing": "replace",
            "memory": memory,
        }
        if not chosen:
            for kind, inputs in (("pbin", files), ("jsonl", texts)):
                with pytest.raises(ValueError, match=f"chunk {chunk_id} of {num_chunks} has no documents"):
                    shuffle.shuffle_chunk(kind, inputs, tmp_path / "out", **arguments)  # type: ignore[arg-type]
            continue
        order = numpy_order(chunk_seed(global_seed, chunk_id), len(chosen))
        shuffle.shuffle_chunk("pbin", files, tmp_path / "out.pbin", **arguments)
        theirs = reference.modalities_bytes([chosen[i] for i in order], 2)
        assert (tmp_path / "out.pbin").read_bytes()[: len(theirs)] == theirs
        metadata = metadata_of(tmp_path / "out.pbin")
        assert metadata["shuffle"]["chunk"] == {"index": chunk_id, "count": num_chunks}
        assert [part["documents"] for part in metadata["parts"]] == [
            len(chunk_of(content, chunk_id, num_chunks)) for content in contents
        ]
        report = shuffle.shuffle_chunk(
            "pbin", files, tmp_path / "out.pbin", **arguments | {"existing": "skip"}
        )
        assert report["skipped_existing"] is True
        shuffle.shuffle_chunk("jsonl", texts, tmp_path / "out.jsonl", **arguments)
        assert (tmp_path / "out.jsonl").read_text() == "".join(chosen_lines[i] for i in order)


def test_trailer_of_a_chunk_joins_those_of_the_files(tmp_path: Path) -> None:
    files = [packed(tmp_path, name, [f"{name} {i}" for i in range(10)], origins=True) for name in "ab"]
    for memory in (None, ON_DISK):
        shuffle.shuffle_chunk(
            "pbin", files, tmp_path / "o.pbin", chunk_id=1, num_chunks=3, existing="replace", memory=memory
        )
        chunk = reference.read_pbin(tmp_path / "o.pbin")
        before = [reference.read_pbin(file) for file in files]
        assert chunk.metadata is not None
        assert before[0].metadata is not None
        assert chunk.metadata["tokenizer"] == before[0].metadata["tokenizer"]
        assert chunk.metadata["options"] == before[0].metadata["options"]
        assert chunk.metadata["counts"]["documents"] == 6
        assert chunk.sources == [*before[0].sources, *before[1].sources]
        assert chunk.origins is not None
        for document, (source, offset) in zip(chunk.documents, chunk.origins, strict=True):
            assert before[source].origins is not None
            i = before[source].origins.index((0, offset))
            assert document == before[source].documents[i]
        packtok.verify(tmp_path / "o.pbin")


def test_incompatible_files_of_a_chunk_are_refused(tmp_path: Path) -> None:
    narrow, wide = (pbins.write(tmp_path / f"{width}.pbin", documents(9, 1), width) for width in (1, 2))
    with pytest.raises(packtok.PacktokError, match=r"2\.pbin: .*2.*1"):
        modalities.create_shuffled_dataset_chunk([narrow, wide], tmp_path / "o.pbin", 0, 1, global_seed=1)
    for chunk_id, num_chunks, message in (
        (0, 0, "--num-chunks: is 0, expected at least 1"),
        (3, 3, "--chunk-id: is 3, expected 0 to 2, since --num-chunks is 3"),
        (-1, 3, "--chunk-id: is -1, expected at least 0"),
    ):
        with pytest.raises(ValueError, match=f"^{message}$"):
            shuffle.shuffle_chunk(
                "pbin", [narrow], tmp_path / "o.pbin", chunk_id=chunk_id, num_chunks=num_chunks
            )
    message = (
        "chunk 9 of 10 has no documents, since the longest of 1 files has 9; set num_chunks to at most 9"
    )
    with pytest.raises(ValueError, match=f"^{message}$"):
        modalities.create_shuffled_dataset_chunk([narrow], tmp_path / "o.pbin", 9, 10)
    assert names(tmp_path) == ["1.pbin", "2.pbin"]


def test_lists_name_files_by_line(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a.pbin", "sub/b.x.pbin"):
        pbins.write(tmp_path / name, documents(3))
    files = tmp_path / "list.txt"
    files.write_text("a.jsonl\n\n  sub/b.x.jsonl \r\n")
    assert shuffle.read_file_list("pbin", files, tmp_path) == [
        str(tmp_path / "a.pbin"),
        str(tmp_path / "sub/b.x.pbin"),
    ]
    for content, message in (
        (
            b"a\n\nnone.pbin\n",
            f"line 3: {tmp_path}/none.pbin does not exist; correct the line, or --input-data-root-path",
        ),
        (b"a\n..\n", 'line 2: ".." names no file'),
        (b"a\n\xff\n", "line 2 is not UTF-8; expected one path on each line"),
        (b"\n", "lists no files; expected one path on each line"),
    ):
        files.write_bytes(content)
        with pytest.raises((packtok.PacktokError, FileNotFoundError)) as caught:
            shuffle.read_file_list("pbin", files, tmp_path)
        assert str(caught.value) == f"{files}: {message}"


# --- filters ---


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("trailer", [True, False])
def test_filters_keep_what_they_accept(tmp_path: Path, width: int, trailer: bool) -> None:
    content = documents(3000, width)
    source = pbins.write(tmp_path / "in.pbin", content, width, trailer=trailer)
    types = {1: np.dtype(np.uint8), 2: np.dtype(np.int32), 4: np.dtype(np.int64)}

    def accepts(item: tuple[int, dict[str, Any]]) -> bool:
        i, sample = item
        assert sample["input_ids"].dtype == types[width]
        assert sample["input_ids"].tolist() == content[i]
        return len(content[i]) % 2 == 0

    modalities.filter_dataset(source, tmp_path / "even.pbin", accepts)
    expected = [document for document in content if len(document) % 2 == 0]
    theirs = reference.modalities_bytes(expected, width)
    assert (tmp_path / "even.pbin").read_bytes()[: len(theirs)] == theirs
    assert reference.read_pbin(tmp_path / "even.pbin").documents == expected
    packtok.verify(tmp_path / "even.pbin")
    modalities.create_filtered_tokenized_dataset(source, lambda i: i % 3 == 1, tmp_path / "third.pbin")
    assert reference.read_pbin(tmp_path / "third.pbin").documents == content[1::3]


def test_filter_that_accepts_everything_copies_the_file(tmp_path: Path) -> None:
    for trailer in (True, False):
        source = pbins.write(tmp_path / "in.pbin", documents(30), trailer=trailer)
        modalities.filter_dataset(
            source, tmp_path / "o.pbin", lambda _: True, file_existence_policy=FileExistencePolicy.OVERRIDE
        )
        assert (tmp_path / "o.pbin").read_bytes() == source.read_bytes()
    source.write_bytes(reference.modalities_bytes(documents(30), 2, origin=12))
    modalities.create_filtered_tokenized_dataset(source, lambda _: True, tmp_path / "new.pbin")
    theirs = reference.modalities_bytes(documents(30), 2)
    assert (tmp_path / "new.pbin").read_bytes()[: len(theirs)] == theirs


def test_filter_that_accepts_nothing(tmp_path: Path) -> None:
    source = pbins.write(tmp_path / "in.pbin", documents(30))
    modalities.filter_dataset(source, tmp_path / "none.pbin", lambda _: False)
    theirs = reference.modalities_bytes([], 2)
    assert (tmp_path / "none.pbin").read_bytes()[: len(theirs)] == theirs
    assert len(packtok.PbinReader(str(tmp_path / "none.pbin"))) == 0
    message = f"{source}: the filter keeps none of 30 documents; nothing was written"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        modalities.create_filtered_tokenized_dataset(source, lambda _: False, tmp_path / "o.pbin")
    assert names(tmp_path) == ["in.pbin", "none.pbin"]


def test_filter_does_not_replace_an_output_silently(tmp_path: Path) -> None:
    source, output = pbins.write(tmp_path / "in.pbin", documents(30)), tmp_path / "o.pbin"
    output.write_bytes(b"precious")
    members = "set file_existence_policy to FileExistencePolicy.SKIP or FileExistencePolicy.OVERRIDE"
    with pytest.raises(FileExistsError, match=members):
        modalities.filter_dataset(source, output, lambda _: True)
    assert output.read_bytes() == b"precious"
    override, skip = FileExistencePolicy.OVERRIDE, FileExistencePolicy.SKIP

    def raises(item: tuple[int, Any]) -> bool:
        if item[0] == 20:
            raise RuntimeError("of the user")
        return True

    # Modalities has replaced the file with half a file at this point.
    with pytest.raises(RuntimeError, match="of the user"):
        modalities.filter_dataset(source, output, raises, file_existence_policy=override)
    assert output.read_bytes() == b"precious"
    assert names(tmp_path) == ["in.pbin", "o.pbin"]
    modalities.filter_dataset(source, output, lambda item: item[0] < 20, file_existence_policy=override)
    modalities.filter_dataset(source, output, lambda item: item[0] < 20, file_existence_policy=skip)
    message = "; set file_existence_policy to FileExistencePolicy.OVERRIDE, or choose another output"
    with pytest.raises(packtok.PacktokError, match=message):
        modalities.filter_dataset(source, output, lambda item: item[0] < 19, file_existence_policy=skip)


def test_filtered_pbin_keeps_what_is_known_of_its_documents(tmp_path: Path) -> None:
    source = packed(tmp_path, "in", [f"text {i}" for i in range(90)], origins=True)
    modalities.filter_dataset(source, tmp_path / "o.pbin", lambda item: item[0] % 4 == 2)
    before, after = reference.read_pbin(source), reference.read_pbin(tmp_path / "o.pbin")
    assert before.metadata is not None
    assert before.origins is not None
    assert after.metadata is not None
    assert after.documents == before.documents[2::4]
    assert after.origins == before.origins[2::4]
    assert after.sources == before.sources
    # Bytes and tokens of the texts are unknown.
    counts = dict.fromkeys(before.metadata["counts"].keys() - {"text"}, 0)
    counts |= {"documents": 22, "tokens": sum(map(len, after.documents))}
    assert after.metadata == before.metadata | {"counts": counts, "rearranged": True}
    assert packtok.PbinReader(str(tmp_path / "o.pbin")).documents_of_source(0) == (0, 22)
    # A shuffled file differs from the file that packing the corpus writes.
    message = "its order of documents is shuffled or filtered, expected the corpus"
    with pytest.raises(packtok.PacktokError, match=message):
        packtok.pack(
            input=str(tmp_path / "in.jsonl"),
            output=tmp_path / "o.pbin",
            tokenizer=str(tmp_path / "tokenizer.json"),
            origins=True,
            existing="skip",
        )


# --- the commands ---


def test_commands_have_the_options_of_modalities(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    content = documents(40)
    pbins.write(tmp_path / "in.pbin", content)
    (tmp_path / "in.jsonl").write_text("".join(f"{i}\n" for i in range(40)))
    (tmp_path / "list").write_text("in\n")
    both = ("--input_data_path", "in.pbin", "--output_data_path", "a.pbin", "--batch_size", 7, "--seed", -3)
    done = packtok_cli("data", "shuffle_tokenized_data", *both, cwd=tmp_path)
    assert done.stderr == "packtok: note: --batch_size has no effect; packtok sizes its work by bytes\n"
    shuffled = [content[i] for i in python_order(-3, 40)]
    assert reference.read_pbin(tmp_path / "a.pbin").documents == shuffled
    hyphens = ("--input-data-path", "in.jsonl", "--output-data-path", "a.jsonl", "--seed", 3, "--quiet")
    assert packtok_cli("data", "shuffle_jsonl_data", *hyphens, cwd=tmp_path).stdout == ""
    done = packtok_cli("data", "shuffle_jsonl_data", *hyphens, cwd=tmp_path, code=1)
    assert done.stderr == (
        "packtok: a.jsonl: the output already exists; choose another path, or set --existing to skip or "
        "replace\n"
    )
    packtok_cli("data", "shuffle_jsonl_data", *hyphens, "--file_existence_policy", "skip", cwd=tmp_path)
    packtok_cli("data", "shuffle_jsonl_data", *hyphens, "--existing", "replace", cwd=tmp_path)
    assert (tmp_path / "a.jsonl").read_text().split() == list(map(str, python_order(3, 40)))
    chunk = (
        "--input_file_list_path",
        "list",
        "--input_data_root_path",
        ".",
        "--output_chunk_file_path",
        "c.pbin",
        "--chunk_id",
        1,
        "--num_chunks",
        3,
        "--global_seed",
        5,
        "--json",
    )
    report = json.loads(packtok_cli("data", "create_shuffled_dataset_chunk", *chunk, cwd=tmp_path).stdout)
    chosen = chunk_of(content, 1, 3)
    assert reference.read_pbin(tmp_path / "c.pbin").documents == [
        chosen[i] for i in numpy_order(chunk_seed(5, 1), len(chosen))
    ]
    assert report == {
        "output": "c.pbin",
        "num_inputs": 1,
        "documents": len(chosen),
        "tokens": sum(map(len, chosen)),
        "file_bytes": (tmp_path / "c.pbin").stat().st_size,
        "seed": chunk_seed(5, 1),
        "skipped_existing": False,
        "order": "modalities",
    }


# --- kills and full disks ---

PROGRAM = """
import sys
from packtok.commands import shuffle
kind, source, output = sys.argv[1:]
print("started", flush=True)
shuffle.shuffle_file(kind, source, output, seed=1, existing="replace", memory=(0, 100_000))
"""


@pytest.mark.faults
@pytest.mark.parametrize("kind", ["pbin", "jsonl"])
def test_killed_shuffle_leaves_the_old_file_and_the_next_removes_its_rest(tmp_path: Path, kind: Any) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    if kind == "pbin":
        # The content is repeated, because the reference writer is slow.
        reference.write_modalities(source, documents(20_000) * 10, 2)
    else:
        source.write_bytes(b"".join(b"%d\n" % i * 20 for i in range(50_000)))
    started = time.monotonic()
    shuffle.shuffle_file(kind, source, output, seed=1, memory=(0, 100_000))
    seconds = time.monotonic() - started
    expected = output.read_bytes()
    rng = random.Random(7)
    for _ in range(extent(30, 1)):
        output.write_bytes(b"old")
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, kind, source, output], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        # The timing is the point of the test; nothing is waited for.
        time.sleep(rng.random() * seconds)
        process.kill()
        process.communicate()
        assert process.returncode in (-signal.SIGKILL, 0)
        assert output.read_bytes() in (b"old", expected)
    shuffle.shuffle_file(kind, source, output, seed=1, existing="replace", memory=(0, 100_000))
    assert output.read_bytes() == expected
    assert names(tmp_path) == ["in", "out"]


SMALL_DISKS = """
import json, os, subprocess, sys
from packtok.commands import shuffle

folder, sources = "disk", {"pbin": sys.argv[1], "jsonl": sys.argv[2]}
results = []
for kind in sources:
    for size in map(int, sys.argv[3:]):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
        try:
            shuffle.shuffle_file(kind, sources[kind], folder + "/out", seed=1, memory=(0, 20_000))
            code = 0
        except OSError as error:
            code = error.errno
        results.append([kind, size, code, sorted(os.listdir(folder))])
        subprocess.run(["umount", folder], check=True)
print(json.dumps(results))
"""


@pytest.mark.faults
def test_full_disk_leaves_nothing(tmp_path: Path) -> None:
    reference.write_modalities(tmp_path / "in.pbin", documents(20_000), 2)
    (tmp_path / "in.jsonl").write_bytes(b"0123456789\n" * 20_000)
    (tmp_path / "disk").mkdir()
    sizes = [*range(4096, 900_000, extent(16_384, 131_072)), 8 << 20]
    printed = in_a_mount_namespace(
        sys.executable, "-c", SMALL_DISKS, tmp_path / "in.pbin", tmp_path / "in.jsonl", *sizes, cwd=tmp_path
    )
    results = json.loads(printed)
    for kind, size, code, left in results:
        assert (code, left) in ((28, []), (0, ["out"])), (kind, size)
    assert {code for _, _, code, _ in results} == {0, 28}


# --- the real Modalities ---

THEIRS = """
import json, sys
from pathlib import Path
from modalities.api import (
    FileExistencePolicy, create_filtered_tokenized_dataset, create_shuffled_dataset_chunk,
    create_shuffled_jsonl_dataset_chunk, shuffle_jsonl_data, shuffle_tokenized_data,
)
from modalities.dataloader.filter_packed_data import filter_dataset

folder = Path(sys.argv[1])
pbins, texts = [folder / "a.pbin", folder / "b.pbin"], [folder / "a.jsonl", folder / "b.jsonl"]
error = FileExistencePolicy.ERROR
shuffle_tokenized_data(pbins[0], folder / "theirs.shuffled.pbin", 3, error, 11)
shuffle_jsonl_data(texts[0], folder / "theirs.shuffled.jsonl", error, 11)
create_shuffled_dataset_chunk(pbins, folder / "theirs.chunk.pbin", 1, 3, error, 11)
create_shuffled_jsonl_dataset_chunk(texts, folder / "theirs.chunk.jsonl", 1, 3, error, 11)
filter_dataset(pbins[0], folder / "theirs.filtered.pbin", lambda item: len(item[1]["input_ids"]) > 4)
create_filtered_tokenized_dataset(pbins[1], lambda i: i % 2 == 0, folder / "theirs.even.pbin", error)
"""


@pytest.mark.whole
def test_files_start_with_those_of_the_real_modalities(tmp_path: Path) -> None:
    python = modalities_python()
    pbin_files = [
        pbins.write(tmp_path / f"{name}.pbin", documents(num)) for name, num in (("a", 50), ("b", 7))
    ]
    text_files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path in text_files:
        path.write_text("".join(f"{path.name} {i}\n" for i in range(40)))
    done = subprocess.run(
        [python, "-c", THEIRS, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    error = FileExistencePolicy.ERROR
    modalities.shuffle_tokenized_data(pbin_files[0], tmp_path / "ours.shuffled.pbin", 3, error, 11)
    modalities.shuffle_jsonl_data(text_files[0], tmp_path / "ours.shuffled.jsonl", error, 11)
    modalities.create_shuffled_dataset_chunk(pbin_files, tmp_path / "ours.chunk.pbin", 1, 3, error, 11)
    modalities.create_shuffled_jsonl_dataset_chunk(text_files, tmp_path / "ours.chunk.jsonl", 1, 3, error, 11)
    modalities.filter_dataset(
        pbin_files[0], tmp_path / "ours.filtered.pbin", lambda item: len(item[1]["input_ids"]) > 4
    )
    modalities.create_filtered_tokenized_dataset(
        pbin_files[1], lambda i: i % 2 == 0, tmp_path / "ours.even.pbin", error
    )
    for name in (
        "shuffled.pbin",
        "shuffled.jsonl",
        "chunk.pbin",
        "chunk.jsonl",
        "filtered.pbin",
        "even.pbin",
    ):
        theirs, ours = ((tmp_path / f"{of}.{name}").read_bytes() for of in ("theirs", "ours"))
        assert ours[: len(theirs)] == theirs, name
        assert len(ours) == len(theirs) or name.endswith(".pbin")

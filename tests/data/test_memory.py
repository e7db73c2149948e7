"""A torch worker uses little memory for a dataset of a gigabyte, with any start method."""

from __future__ import annotations

import itertools
import pickle
import struct
import sys
from pathlib import Path

import pytest
import reference

pytest.importorskip("torch", reason="needs torch, which is not installed")

import worker_memory
from extent import extent

MIB = 1 << 20
DATA_BYTES = extent(1 << 30, 1 << 28)
DOCUMENT_BYTES = 10_000


@pytest.fixture(scope="module")
def gigabyte(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a complete pbin of up to 1 GiB of tokens in small documents, as a sparse file."""
    path = tmp_path_factory.mktemp("gigabyte") / "train.pbin"
    stops = [*range(0, DATA_BYTES, DOCUMENT_BYTES), DATA_BYTES]
    header = reference.HEADER.pack(DATA_BYTES, 2)
    pairs = [(start, stop - start) for start, stop in itertools.pairwise(stops)]
    with path.open("wb") as file:
        file.write(header)
        file.seek(len(header) + DATA_BYTES)
        file.write(pickle.dumps(pairs, protocol=4))
        start = -(-file.tell() // 8) * 8
        file.seek(start)
        file.write(trailer(start, header, struct.pack(f"<{len(stops)}Q", *stops)))
    return path


def trailer(start: int, header: bytes, offsets: bytes) -> bytes:
    """Returns a trailer at file offset ``start`` that contains only the offsets of documents."""
    section = start + len(reference.START_MAGIC)
    table = reference.ENTRY.pack(1, 1, section, len(offsets), reference.crc32c(offsets), 0)
    num_bytes = len(reference.START_MAGIC) + len(offsets) + len(table) + reference.TAIL.size
    tail = struct.pack("<QQ12sI", section + len(offsets), num_bytes, header, 1)
    tail += struct.pack("<I", reference.crc32c(table))
    tail += struct.pack("<I", reference.crc32c(tail)) + reference.TAIL_MAGIC
    return reference.START_MAGIC + offsets + table + tail


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in /proc")
@pytest.mark.parametrize(
    ("method", "limit_bytes"), [pytest.param("spawn", 10 * MIB, marks=pytest.mark.whole), ("fork", 2 * MIB)]
)
def test_workers_use_little_private_memory(gigabyte: Path, method: str, limit_bytes: int) -> None:
    measured = worker_memory.measured(method, gigabyte)
    more = measured["dataset"] - measured["nothing"]
    print(f"{method}: {measured['nothing'] / MIB:.1f} MiB, with the dataset {more / MIB:+.1f} MiB")
    assert more <= limit_bytes

"""Writes small pbins with and without trailer, with the reference writer, for tests of datasets."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import reference


def write(
    path: Path,
    documents: list[list[int]],
    width: int = 2,
    *,
    trailer: bool = True,
    eod_id: int | None = None,
    tokenizer: str | None = None,
) -> Path:
    """Writes a pbin, with offsets, checksums and metadata after it if ``trailer``."""
    plain = reference.modalities_bytes(documents, width)
    path.write_bytes(
        reference.with_trailer(plain, sections(documents, width, eod_id, tokenizer)) if trailer else plain
    )
    return path


def sections(
    documents: list[list[int]], width: int, eod_id: int | None, tokenizer: str | None
) -> list[tuple[int, int, bytes]]:
    """Returns offsets, data checksums and metadata of a trailer."""
    stops = [0]
    for document in documents:
        stops.append(stops[-1] + len(document) * width)
    data = b"".join(token.to_bytes(width, "little") for document in documents for token in document)
    pieces = [
        data[at : at + reference.CHECKED_DATA_BYTES]
        for at in range(0, len(data), reference.CHECKED_DATA_BYTES)
    ]
    metadata = {
        "writer": {"name": "test", "version": "1"},
        "counts": {
            "documents": len(documents),
            "tokens": stops[-1] // width,
            "lines": len(documents),
            "packed": len(documents),
            "empty": 0,
            "blank": 0,
            "rejected": 0,
            "eods_in_text": 0,
        },
        "stopped_early": False,
    }
    if eod_id is not None:
        metadata["eod"] = {"token": f"<{eod_id}>", "id": eod_id}
    if tokenizer is not None:
        metadata["tokenizer"] = {"name": tokenizer, "fingerprint": tokenizer, "vocab_size": 100}
    return [
        (1, 1, struct.pack(f"<{len(stops)}Q", *stops)),
        (2, 0, struct.pack(f"<{len(pieces)}I", *map(reference.crc32c, pieces))),
        (3, 0, json.dumps(metadata).encode()),
    ]


def trailer_crc32c(path: Path) -> int:
    """Returns the checksum in the tail of a file with trailer."""
    crc: int = reference.TAIL.unpack(path.read_bytes()[-reference.TAIL.size :])[5]
    return crc

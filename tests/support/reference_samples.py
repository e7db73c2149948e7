"""Draws samples in plain Python, as docs/guides/samples.md describes it.

The oracle of tests/reshape/test_sample.py. Works on lists of documents. Shares no code with packtok.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import struct
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import reference_order
from reference_plans import xxh64

SIDES = ("test", "train", "retrieval")
Document = list[int]


@dataclass
class Side:
    """The documents of a side of a domain, and the samples that can be taken from them."""

    documents: list[Document] = field(default_factory=list)
    samples: list[list[int]] = field(default_factory=list)
    """Samples, or chunks with their neighbours, in the order in which they are taken."""
    too_short: int = 0
    tail_tokens: int = 0


def side_of(document: Document, splits: tuple[float, float, float], seed: int) -> str:
    """Returns the side of a document."""
    hashed = hash_of(document, seed)
    if hashed < min(int(splits[0] * 2**64), 2**64 - 1):
        return "test"
    return "train" if hashed < min(int((splits[0] + splits[1]) * 2**64), 2**64 - 1) else "retrieval"


def hash_of(document: Document, seed: int) -> int:
    """Returns the hash of a document's tokens."""
    return xxh64(struct.pack(f"<{len(document)}I", *document), seed)


def keyed(document: Document, number: int, seed: int) -> int:
    """Returns the key of a window of a document."""
    return xxh64(struct.pack("<QQ", hash_of(document, seed), number), seed)


def quotas(total: int, proportions: list[str]) -> list[int]:
    """Divides ``total`` by the largest-remainder method, in fractions."""
    shares = [Fraction(Decimal(proportion)) * total for proportion in proportions]
    numbers = [int(share) for share in shares]
    by_rest = sorted(range(len(shares)), key=lambda i: (-(shares[i] - numbers[i]), i))
    for i in by_rest[: total - sum(numbers)]:
        numbers[i] += 1
    return numbers


def draw(
    documents: list[Document],
    *,
    is_stream: bool,
    context: int,
    decoder: int,
    splits: tuple[float, float, float] = (0.01, 0.49, 0.5),
    seed: int = 42,
    chunk: int | None = None,
) -> dict[str, Side]:
    """Returns the sides of a domain."""
    sides = {name: Side() for name in SIDES}
    for document in documents:
        sides[side_of(document, splits, seed)].documents.append(document)
    for number, name in enumerate(SIDES):
        side = sides[name]
        if name == "retrieval":
            if chunk is not None:
                _chunks(side, chunk, seed)
        elif is_stream:
            _stream(side, context, decoder, seed, number)
        else:
            _windows(side, context, decoder, seed)
    return sides


def _windows(side: Side, context: int, decoder: int, seed: int) -> None:
    keys = []
    for document in side.documents:
        if len(document) < context + decoder:
            side.too_short += 1
            continue
        end = context
        number = 0
        while end + decoder <= len(document):
            window = document[end - context : end + decoder]
            keys.append((keyed(document, number, seed), window))
            end += decoder
            number += 1
        side.tail_tokens += len(document) - end
    side.samples = [window for _, window in sorted(keys)]


def _stream(side: Side, context: int, decoder: int, seed: int, number: int) -> None:
    stream: list[int] = []
    for document in sorted(side.documents, key=lambda document: hash_of(document, seed)):
        stream += document
    windows = []
    start = 0
    while start + context + decoder <= len(stream):
        windows.append(stream[start : start + context + decoder])
        start += decoder
    side.tail_tokens = len(stream) - (start + context) if windows else len(stream)
    if windows:
        order = reference_order.permutation(len(windows), seed, number)
        side.samples = [windows[order(i)] for i in range(len(windows))]


def _chunks(side: Side, chunk: int, seed: int) -> None:
    keys = []
    for document in side.documents:
        side.too_short += len(document) < chunk
        for number in range(len(document) // chunk):
            start = number * chunk
            keys.append((keyed(document, number, seed), document[start : start + 2 * chunk]))
        side.tail_tokens += len(document) % chunk if len(document) >= chunk else 0
    side.samples = [window for _, window in sorted(keys)]


def read_mds(folder: Path) -> list[dict[str, Any]]:
    """Returns the samples of an uncompressed MDS folder, checked against its index and hashes."""
    samples: list[dict[str, Any]] = []
    for shard in json.loads((folder / "index.json").read_bytes())["shards"]:
        content = (folder / shard["raw_data"]["basename"]).read_bytes()
        assert len(content) == shard["raw_data"]["bytes"]
        assert hashlib.sha256(content).hexdigest() == shard["raw_data"]["hashes"]["sha256"]
        (number,) = struct.unpack_from("<I", content)
        assert number == shard["samples"]
        bounds = struct.unpack_from(f"<{number + 1}I", content, 4)
        assert bounds[-1] == len(content)
        columns = list(
            zip(shard["column_names"], shard["column_encodings"], shard["column_sizes"], strict=True)
        )
        for start, stop in itertools.pairwise(bounds):
            samples.append(_sample(content[start:stop], columns))
    return samples


def _sample(content: bytes, columns: list[tuple[str, str, int | None]]) -> dict[str, Any]:
    variable = [name for name, _, size in columns if size is None]
    sizes = dict(zip(variable, struct.unpack_from(f"<{len(variable)}I", content), strict=True))
    at = 4 * len(variable)
    sample = {}
    for name, encoding, size in columns:
        bytes_ = size if size is not None else sizes[name]
        sample[name] = _value(content[at : at + bytes_], encoding)
        at += bytes_
    assert at == len(content)
    return sample


_CODES = {"uint16": "H", "uint32": "I", "int32": "i"}


def _value(content: bytes, encoding: str) -> Any:
    if encoding == "str":
        return content.decode()
    if encoding == "int":
        return int.from_bytes(content, "little", signed=True)
    code = _CODES[encoding.removeprefix("ndarray:")]
    num_dims, width = content[0] >> 2, 1 << (content[0] & 3)
    at = 1 + num_dims * width
    shape = [int.from_bytes(content[start : start + width], "little") for start in range(1, at, width)]
    numbers = list(struct.unpack(f"<{(len(content) - at) // struct.calcsize(code)}{code}", content[at:]))
    if len(shape) == 1:
        assert shape[0] == len(numbers)
        return numbers
    return [numbers[i : i + shape[1]] for i in range(0, len(numbers), shape[1])]

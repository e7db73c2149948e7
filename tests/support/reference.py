"""Reads and writes pbin files naively, following docs/reference/pbin_format.md; shares no code with packtok.

The oracle that tests compare packtok with: slow, whole files in memory, plain lists of integers.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

HEADER = struct.Struct("<QI")
ENTRY = struct.Struct("<IIQQII")
TAIL = struct.Struct("<QQ12sIII8s")
START_MAGIC = b"\x89packtok"
TAIL_MAGIC = b"packtok\x89"
OFFSETS, DATA_CHECKSUMS, METADATA, SOURCES, ORIGINS = 1, 2, 3, 4, 5
ORIGINS_PER_BLOCK = 64
CHECKED_DATA_BYTES = 1 << 20


@dataclass(frozen=True)
class Pbin:
    """The complete decoded contents of a pbin."""

    width: int
    documents: list[list[int]]
    metadata: dict[str, Any] | None
    sources: list[dict[str, Any]]
    crcs: list[int]
    origins: list[tuple[int, int]] | None = None
    """Source and offset of each document, if they are recorded."""


@dataclass(frozen=True)
class Section:
    """One section of a trailer: its content and the flags of its table entry."""

    flags: int
    content: bytes


class _PairsOnly(pickle.Unpickler):
    """An unpickler without classes and functions, so that it executes no code."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"refused {module}.{name}")

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError(f"refused persistent id {pid!r}")


def read_pbin(path: Path) -> Pbin:
    """Decodes the pbin at ``path``, after all checks that the format allows.

    Raises:
        ValueError: If the file does not follow docs/reference/pbin_format.md.
    """
    file = path.read_bytes()
    data_bytes, width = HEADER.unpack_from(file)
    data = file[HEADER.size : HEADER.size + data_bytes]
    require(width in (1, 2, 4) and len(data) == data_bytes, "header")
    index = io.BytesIO(file[HEADER.size + data_bytes :])
    pairs: list[tuple[int, int]] = _PairsOnly(index).load()
    index_end = HEADER.size + data_bytes + index.tell()
    spans = _spans(pairs, data_bytes)
    documents = [_tokens(data[start:stop], width) for start, stop in spans]
    if index_end == len(file):
        return Pbin(width, documents, None, [], [])

    sections = trailer_of(file)
    start = -(-index_end // 8) * 8
    require(file[start : start + 8] == START_MAGIC and not any(file[index_end:start]), "start of the trailer")
    require(_trailer_start(file) == start, "length of the trailer")
    offsets = u64s(sections[OFFSETS].content)
    require(offsets == [0, *(stop for _, stop in spans)], "document offsets")
    crcs = _u32s(sections[DATA_CHECKSUMS].content) if DATA_CHECKSUMS in sections else []
    if crcs:
        pieces = [data[at : at + CHECKED_DATA_BYTES] for at in range(0, len(data), CHECKED_DATA_BYTES)]
        require(crcs == [crc32c(piece) for piece in pieces], "data checksums")
    metadata = json.loads(sections[METADATA].content) if METADATA in sections else None
    lines = sections[SOURCES].content.splitlines() if SOURCES in sections else []
    sources = [json.loads(line) for line in lines]
    origins = origins_of(sections[ORIGINS].content, len(documents)) if ORIGINS in sections else None
    require(origins is None or all(source < len(sources) for source, _ in origins), "sources of origins")
    return Pbin(width, documents, metadata, sources, crcs, origins)


def origins_of(section: bytes, num_documents: int) -> list[tuple[int, int]]:
    """Decodes the section of origins.

    Raises:
        ValueError: If it is not what `origins_section` returns for them.
    """
    num_blocks = -(-num_documents // ORIGINS_PER_BLOCK)
    numbers = iter(_varints(section[8 * num_blocks :]))
    origins: list[tuple[int, int]] = []
    for _ in range(num_documents):
        first = next(numbers)
        if first == 1:
            origins.append((next(numbers), next(numbers)))
        else:
            require(first % 2 == 0 and bool(origins), "origin")
            source, offset = origins[-1]
            origins.append((source, offset + first // 2))
    require(section == origins_section(origins), "section of origins")
    return origins


def origins_section(origins: list[tuple[int, int]]) -> bytes:
    """Encodes the section of origins, given source and offset of each document."""
    ends, encoded = [], b""
    for i, (source, offset) in enumerate(origins):
        is_near = i % ORIGINS_PER_BLOCK > 0 and origins[i - 1][0] == source and origins[i - 1][1] <= offset
        numbers = [2 * (offset - origins[i - 1][1])] if is_near else [1, source, offset]
        encoded += b"".join(_varint(number) for number in numbers)
        if (i + 1) % ORIGINS_PER_BLOCK == 0 or i + 1 == len(origins):
            ends.append(len(encoded))
    return struct.pack(f"<{len(ends)}Q", *ends) + encoded


def _varint(number: int) -> bytes:
    groups = []
    while number >= 128:
        groups.append(number % 128 + 128)
        number //= 128
    return bytes([*groups, number])


def _varints(data: bytes) -> list[int]:
    numbers, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(number)
            number = shift = 0
    return numbers


def trailer_of(file: bytes) -> dict[int, Section]:
    """Sections by type of the trailer at the end of a file's bytes.

    Raises:
        ValueError: If there is no trailer, or it does not follow docs/reference/pbin_format.md.
    """
    tail = file[-TAIL.size :]
    table_offset, _, header, version, table_crc, tail_crc, magic = TAIL.unpack(tail)
    require(magic == TAIL_MAGIC, "tail magic")
    require(crc32c(tail[:36]) == tail_crc, "CRC of the tail")
    require(version == 1 and header == file[: HEADER.size], "version or copy of the header")
    table = file[table_offset : len(file) - TAIL.size]
    require(crc32c(table) == table_crc and len(table) % ENTRY.size == 0, "section table")
    sections: dict[int, Section] = {}
    end = _trailer_start(file) + len(START_MAGIC)
    for kind, flags, offset, num_bytes, crc, reserved in ENTRY.iter_unpack(table):
        content = file[offset : offset + num_bytes]
        require(offset == end and len(content) == num_bytes and crc32c(content) == crc, f"section {kind}")
        require(
            reserved == 0 and flags in (0, 1) and kind > max(sections, default=-1), f"entry of section {kind}"
        )
        sections[kind] = Section(flags, content)
        end = -(-(offset + num_bytes) // 8) * 8
        require(not any(file[offset + num_bytes : end]), f"padding of section {kind}")
    require(end == table_offset, "place of the section table")
    return sections


def without_trailer(file: bytes) -> bytes:
    """Returns a file's bytes up to the end of its index.

    A search for `START_MAGIC` from the end would find it in a tail whose CRC ends with its first byte.
    """
    return file[: _trailer_start(file)].rstrip(b"\0")


def with_trailer(plain: bytes, sections: list[tuple[int, int, bytes]]) -> bytes:
    """Appends a trailer with these (type, flags, content) sections to a file without trailer."""
    file = bytearray(plain)
    file += bytes(-len(file) % 8)
    start = len(file)
    file += START_MAGIC
    table = b""
    for kind, flags, content in sections:
        table += ENTRY.pack(kind, flags, len(file), len(content), crc32c(content), 0)
        file += content
        file += bytes(-len(file) % 8)
    table_offset = len(file)
    file += table
    trailer_bytes = len(file) + TAIL.size - start
    checked = struct.pack("<QQ12sI", table_offset, trailer_bytes, plain[:12], 1)
    checked += struct.pack("<I", crc32c(table))
    return bytes(file + checked + struct.pack("<I", crc32c(checked)) + TAIL_MAGIC)


def with_sections(file: bytes, replaced: dict[int, bytes]) -> bytes:
    """Returns a file with other contents of sections that it has, and valid checksums."""
    sections = trailer_of(file).items()
    contents = [(kind, section.flags, replaced.get(kind, section.content)) for kind, section in sections]
    return with_trailer(without_trailer(file), contents)


def write_modalities(path: Path, documents: list[list[int]], width: int) -> None:
    """Writes ``documents`` as Modalities does: header, data and pickled index, no trailer."""
    path.write_bytes(modalities_bytes(documents, width))


def modalities_bytes(documents: list[list[int]], width: int, origin: int = 0) -> bytes:
    """The file that Modalities writes for ``documents``; ``origin`` 12 gives its older dialect."""
    encoded = [b"".join(token.to_bytes(width, "little") for token in document) for document in documents]
    pairs = []
    for document in encoded:
        pairs.append((origin, len(document)))
        origin += len(document)
    data = b"".join(encoded)
    return HEADER.pack(len(data), width) + data + pickle.dumps(pairs, protocol=4)


def crc32c(data: bytes, crc: int = 0) -> int:
    """CRC32C (Castagnoli, reflected polynomial 0x82F63B78) of ``data``, one byte at a time."""
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = _CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _crc_of_byte(value: int) -> int:
    for _ in range(8):
        value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value


_CRC_TABLE = [_crc_of_byte(byte) for byte in range(256)]


def _spans(pairs: list[tuple[int, int]], data_bytes: int) -> list[tuple[int, int]]:
    """Start and stop of every document, counted from the start of the data."""
    is_legacy = bool(pairs) and pairs[0][0] == HEADER.size and sum(pairs[-1]) == HEADER.size + data_bytes
    origin = HEADER.size if is_legacy else 0
    spans = [(offset - origin, offset - origin + length) for offset, length in pairs]
    starts = [0, *(stop for _, stop in spans)]
    require([start for start, _ in spans] == starts[:-1] and starts[-1] == data_bytes, "index")
    return spans


def _trailer_start(file: bytes) -> int:
    num_bytes: int = TAIL.unpack(file[-TAIL.size :])[1]
    return len(file) - num_bytes


def _tokens(data: bytes, width: int) -> list[int]:
    require(len(data) % width == 0, "document that ends inside a token")
    return [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]


def u64s(data: bytes) -> list[int]:
    return [value for (value,) in struct.iter_unpack("<Q", data)]


def _u32s(data: bytes) -> list[int]:
    return [value for (value,) in struct.iter_unpack("<I", data)]


def require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"wrong {what}")


def teacher_rows(model: Any, context: list[int], decoder: list[int], vocab_size: int) -> list[list[float]]:
    """Returns the log-probabilities after each decoder token, from one run of a model of Transformers."""
    import torch

    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([context + decoder])).logits[0].double()
    rows = logits[len(context) :, :vocab_size]
    return [[value - row.logsumexp(0).item() for value in row.tolist()] for row in rows]

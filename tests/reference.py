"""Reads and writes pbin files naively, following docs/format.md and sharing no code with packtok.

The oracle that tests compare packtok with: slow, whole files in memory, plain lists of integers.
"""

from __future__ import annotations

import io
import itertools
import json
import pickle
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

HEADER = struct.Struct("<QI")
ENTRY = struct.Struct("<IIQQII")
TAIL = struct.Struct("<QQ12sIII8s")
START_MAGIC = b"\x89packtok"
TAIL_MAGIC = b"packtok\x89"
OFFSETS, DATA_CHECKSUMS, METADATA, SOURCES = 1, 2, 3, 4
CHECKED_DATA_BYTES = 1 << 20


@dataclass(frozen=True)
class Pbin:
    """Everything a pbin says, decoded."""

    width: int
    documents: list[list[int]]
    metadata: dict[str, Any] | None
    sources: list[dict[str, Any]]
    crcs: list[int]


@dataclass(frozen=True)
class Section:
    """One section of a trailer: its content and the flags of its table entry."""

    flags: int
    content: bytes


class _PairsOnly(pickle.Unpickler):
    """An unpickler that knows no classes and no functions, so that nothing is executed."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"refused {module}.{name}")

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError(f"refused persistent id {pid!r}")


def read_pbin(path: Path) -> Pbin:
    """Decodes the pbin at ``path`` after checking everything in it that can be checked.

    Raises:
        ValueError: If something in the file is not as docs/format.md says.
    """
    file = path.read_bytes()
    data_bytes, width = HEADER.unpack_from(file)
    data = file[HEADER.size : HEADER.size + data_bytes]
    _require(width in (1, 2, 4) and len(data) == data_bytes, "header")
    index = io.BytesIO(file[HEADER.size + data_bytes :])
    pairs: list[tuple[int, int]] = _PairsOnly(index).load()
    index_end = HEADER.size + data_bytes + index.tell()
    spans = _spans(pairs, data_bytes)
    documents = [_tokens(data[start:stop], width) for start, stop in spans]
    if index_end == len(file):
        return Pbin(width, documents, None, [], [])

    sections = trailer_of(file)
    start = -(-index_end // 8) * 8
    _require(
        file[start : start + 8] == START_MAGIC and not any(file[index_end:start]), "start of the trailer"
    )
    _require(_trailer_start(file) == start, "length of the trailer")
    offsets = _u64s(sections[OFFSETS].content)
    _require(offsets == [0, *(stop for _, stop in spans)], "document offsets")
    crcs = _u32s(sections[DATA_CHECKSUMS].content) if DATA_CHECKSUMS in sections else []
    if crcs:
        pieces = [data[at : at + CHECKED_DATA_BYTES] for at in range(0, len(data), CHECKED_DATA_BYTES)]
        _require(crcs == [crc32c(piece) for piece in pieces], "data checksums")
    metadata = json.loads(sections[METADATA].content) if METADATA in sections else None
    lines = sections[SOURCES].content.splitlines() if SOURCES in sections else []
    return Pbin(width, documents, metadata, [json.loads(line) for line in lines], crcs)


def trailer_of(file: bytes) -> dict[int, Section]:
    """Sections by type of the trailer at the end of a file's bytes.

    Raises:
        ValueError: If there is no trailer or a byte of it is not as docs/format.md says.
    """
    tail = file[-TAIL.size :]
    table_offset, _, header, version, table_crc, tail_crc, magic = TAIL.unpack(tail)
    _require(magic == TAIL_MAGIC, "tail magic")
    _require(crc32c(tail[:36]) == tail_crc, "CRC of the tail")
    _require(version == 1 and header == file[: HEADER.size], "version or copy of the header")
    table = file[table_offset : len(file) - TAIL.size]
    _require(crc32c(table) == table_crc and len(table) % ENTRY.size == 0, "section table")
    sections: dict[int, Section] = {}
    end = _trailer_start(file) + len(START_MAGIC)
    for kind, flags, offset, num_bytes, crc, reserved in ENTRY.iter_unpack(table):
        content = file[offset : offset + num_bytes]
        _require(offset == end and len(content) == num_bytes and crc32c(content) == crc, f"section {kind}")
        _require(
            reserved == 0 and flags in (0, 1) and kind > max(sections, default=-1), f"entry of section {kind}"
        )
        sections[kind] = Section(flags, content)
        end = -(-(offset + num_bytes) // 8) * 8
        _require(not any(file[offset + num_bytes : end]), f"padding of section {kind}")
    _require(end == table_offset, "place of the section table")
    return sections


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
    _require([start for start, _ in spans] == starts[:-1] and starts[-1] == data_bytes, "index")
    return spans


def _trailer_start(file: bytes) -> int:
    num_bytes: int = TAIL.unpack(file[-TAIL.size :])[1]
    return len(file) - num_bytes


def _tokens(data: bytes, width: int) -> list[int]:
    _require(len(data) % width == 0, "document that ends inside a token")
    return [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]


def _u64s(data: bytes) -> list[int]:
    return [value for (value,) in struct.iter_unpack("<Q", data)]


def _u32s(data: bytes) -> list[int]:
    return [value for (value,) in struct.iter_unpack("<I", data)]


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"wrong {what}")


@dataclass(frozen=True)
class Row:
    """One row of a batch, and the lengths of its stretches of one document, padding as the last."""

    input_ids: list[int]
    labels: list[int]
    position_ids: list[int]
    document_ids: list[int]
    loss_mask: list[bool]
    segments: list[int]


def fixed_blocks(tokens: list[int], block_size: int, overlap: int) -> list[list[int]]:
    """Blocks of ``block_size`` tokens that share ``overlap`` of them with the next; the tail is in none."""
    blocks = []
    while len(tokens) >= block_size:
        blocks.append(tokens[:block_size])
        tokens = tokens[block_size - overlap :]
    return blocks


def concat_rows(documents: list[list[int]], context_length: int, *, aligned: bool = False) -> list[Row]:
    """Rows of the stream of all documents: whatever token comes next is the label."""
    stream = [(token, number) for number, document in enumerate(documents) for token in document]
    rows = []
    for start in range(0, len(stream) - context_length, context_length):
        inputs = stream[start : start + context_length]
        following = [token for token, _ in stream[start + 1 : start + context_length + 1]]
        rows.append(_row(inputs, following, context_length, 0, aligned=aligned))
    return rows


def document_rows(
    documents: list[list[int]], context_length: int, pad_token_id: int, *, aligned: bool = False
) -> list[Row]:
    """One row for each document, cut or padded."""
    return [
        piece_rows([[(number, 0, context_length)]], documents, context_length, pad_token_id, aligned=aligned)[
            0
        ]
        for number in range(len(documents))
    ]


def piece_rows(
    blocks: list[list[tuple[int, int, int]]],
    documents: list[list[int]],
    context_length: int,
    pad_token_id: int,
    *,
    aligned: bool = False,
) -> list[Row]:
    """Rows made of pieces (document, start, stop); a label is a token of the same document or none."""
    rows = []
    for pieces in blocks:
        inputs: list[tuple[int, int]] = []
        following: list[int | None] = []
        for number, start, stop in pieces:
            document = documents[number]
            inputs += [(token, number) for token in document[start:stop]]
            ends = [*document[1:], None] if document else []
            following += ends[start:stop]
        rows.append(_row(inputs, following, context_length, pad_token_id, aligned=aligned))
    return rows


def _row(
    inputs: list[tuple[int, int]],
    following: Sequence[int | None],
    context_length: int,
    pad_token_id: int,
    *,
    aligned: bool,
) -> Row:
    """A row of (token, document) with what follows each, padded to ``context_length``."""
    padding = context_length - len(inputs)
    labels = [token for token, _ in inputs] if aligned else list(following)
    position_ids: list[int] = []
    document_ids: list[int] = []
    segments: list[int] = []
    for i, (_, number) in enumerate(inputs):
        if i == 0 or inputs[i - 1][1] != number:
            segments.append(0)
        position_ids.append(segments[-1])
        document_ids.append(len(segments) - 1)
        segments[-1] += 1
    return Row(
        [token for token, _ in inputs] + [pad_token_id] * padding,
        [-100 if label is None else label for label in labels] + [-100] * padding,
        position_ids + list(range(padding)),
        document_ids + [-1] * padding,
        [label is not None for label in labels] + [False] * padding,
        segments + [padding] * (padding > 0),
    )


def best_fit_blocks(lengths: list[int], context_length: int) -> list[list[tuple[int, int]]]:
    """Blocks as (start, stop) of their pieces: best-fit decreasing, every bin looked at for every piece.

    For as many pieces as are in one window of docs/packing.md.
    """
    pieces = []
    for start, stop in _documents(lengths):
        for piece in range(start, stop, context_length):
            pieces.append((piece, min(piece + context_length, stop)))
    pieces.sort(key=lambda piece: (piece[0] - piece[1], piece[0]))
    bins: list[list[tuple[int, int]]] = []
    rooms: list[int] = []
    times: list[int] = []
    for time, (start, stop) in enumerate(pieces):
        fitting = [i for i, room in enumerate(rooms) if room >= stop - start]
        if fitting:
            best = min(fitting, key=lambda i: (rooms[i], -times[i]))
        else:
            best = len(bins)
            bins.append([])
            rooms.append(context_length)
            times.append(0)
        bins[best].append((start, stop))
        rooms[best] -= stop - start
        times[best] = time
    return sorted(sorted(block) for block in bins)


def megatron_spans(lengths: list[int], block_size: int) -> list[tuple[int, int]]:
    """Blocks of consecutive tokens, each from the start of a document, as (start, stop)."""
    documents = [(start, stop) for start, stop in _documents(lengths) if start < stop]
    blocks: list[tuple[int, int]] = []
    i = 0
    while i < len(documents):
        start = documents[i][0]
        if start + block_size > sum(lengths):
            break
        blocks.append((start, start + block_size))
        first = i
        while i < len(documents) and documents[i][1] <= start + block_size:
            i += 1
        if i == first:
            i += 1
    return blocks


def _documents(lengths: list[int]) -> list[tuple[int, int]]:
    """Start and stop of every document, back to back."""
    stops = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    return list(zip([0, *stops], stops, strict=False))


@dataclass(frozen=True)
class PlanFile:
    """What a plan file says: the header's numbers and its blocks, or its runs as (document, token)."""

    kind: int
    options: tuple[int, int]
    counts: tuple[int, ...]
    blocks: list[list[tuple[int, int]]]
    runs: list[tuple[int, int]]


def read_plan_file(path: Path) -> PlanFile:
    """Decodes a plan or a split, following docs/packing.md.

    Raises:
        ValueError: If something in the file is not as written there.
    """
    file = path.read_bytes()
    magic, version, kind, option_0, option_1 = struct.unpack_from("<8sIIQQ", file)
    counts = struct.unpack_from("<5Q", file, 64)
    body_bytes, body_crc, *reserved, header_crc = struct.unpack_from("<QIIII", file, 104)
    body = file[128:]
    _require(magic == b"\x89pktplan" and version == 1 and reserved == [0, 0], "magic, version or reserved")
    _require(header_crc == crc32c(file[:124]), "CRC of the header")
    _require(len(body) == body_bytes and crc32c(body) == body_crc, "body")
    blocks, runs = [], []
    if kind in (1, 2):
        num_blocks, num_pieces = counts[:2]
        pieces = [
            (start, start + length) for start, length in struct.iter_unpack("<QI", body[: 12 * num_pieces])
        ]
        firsts = _u64s(body[12 * num_pieces :])
        _require(
            len(firsts) == num_blocks + 1 and firsts[0] == 0 and firsts[-1] == num_pieces, "first pieces"
        )
        blocks = [pieces[first:stop] for first, stop in itertools.pairwise(firsts)]
    else:
        held_out = (0, 0)
        records = list(struct.iter_unpack("<4Q", body))
        _require(len(records) == counts[0] + 1 and not any(counts[1:]), "counts of a split")
        for i, (document, token, *validation) in enumerate(records):
            if i > 0 and i % 2 == 0:
                document_before, token_before, *_ = records[i - 1]
                held_out = (held_out[0] + document - document_before, held_out[1] + token - token_before)
            _require(tuple(validation) == held_out, f"run {i}")
            runs.append((document, token))
    return PlanFile(kind, (option_0, option_1), counts, blocks, runs)


_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_MASK = 2**64 - 1


def xxh64(data: bytes, seed: int) -> int:
    """XXH64 as its specification has it: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md."""
    prime_1, prime_2, prime_3, prime_4, prime_5 = _PRIMES
    at = 0
    if len(data) >= 32:
        lanes = [seed + prime_1 + prime_2, seed + prime_2, seed, seed - prime_1]
        while at + 32 <= len(data):
            words = struct.unpack_from("<4Q", data, at)
            lanes = [_xxh64_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += 32
        total = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            total = (total ^ _xxh64_round(0, lane)) * prime_1 + prime_4 & _MASK
    else:
        total = seed + prime_5
    total = total + len(data) & _MASK
    while at + 8 <= len(data):
        (word,) = struct.unpack_from("<Q", data, at)
        total = _rotated(total ^ _xxh64_round(0, word), 27) * prime_1 + prime_4 & _MASK
        at += 8
    if at + 4 <= len(data):
        (word,) = struct.unpack_from("<I", data, at)
        total = _rotated(total ^ word * prime_1 & _MASK, 23) * prime_2 + prime_3 & _MASK
        at += 4
    for byte in data[at:]:
        total = _rotated(total ^ byte * prime_5 & _MASK, 11) * prime_1 & _MASK
    for shift, prime in ((33, prime_2), (29, prime_3)):
        total = (total ^ total >> shift) * prime & _MASK
    return total ^ total >> 32


def _xxh64_round(lane: int, word: int) -> int:
    return _rotated(lane + word * _PRIMES[1] & _MASK, 31) * _PRIMES[0] & _MASK


def _rotated(value: int, by: int) -> int:
    value &= _MASK
    return (value << by | value >> 64 - by) & _MASK


def is_held_out(document: list[int], fraction: float, seed: int) -> bool:
    """Whether a split by hash holds ``document`` out."""
    ids = struct.pack(f"<{len(document)}I", *document)
    return xxh64(ids, seed) < min(int(fraction * 2**64), 2**64 - 1)

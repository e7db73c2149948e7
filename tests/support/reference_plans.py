"""Naive planners, splits and a reader of their files: the oracle for plans; shares no code with packtok."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass
from pathlib import Path

from reference import crc32c, require, u64s


def best_fit_blocks(lengths: list[int], context_length: int) -> list[list[tuple[int, int]]]:
    """Returns blocks as (start, stop) of their pieces, by best-fit decreasing with a search of all bins.

    For at most one window of pieces, as in docs/reference/packings_and_splits.md.
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
    """Returns blocks of consecutive tokens, each from the start of a document, as (start, stop)."""
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
    """Returns start and stop of every document, without gaps."""
    stops = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    return list(zip([0, *stops], stops, strict=False))


@dataclass(frozen=True)
class PlanFile:
    """Contents of a plan file: the header's numbers and its blocks, or its runs as (document, token)."""

    kind: int
    options: tuple[int, int]
    counts: tuple[int, ...]
    blocks: list[list[tuple[int, int]]]
    runs: list[tuple[int, int]]


def read_plan_file(path: Path) -> PlanFile:
    """Decodes a plan or a split, as specified in docs/reference/packings_and_splits.md.

    Raises:
        ValueError: If the file does not follow the specification.
    """
    file = path.read_bytes()
    magic, version, kind, option_0, option_1 = struct.unpack_from("<8sIIQQ", file)
    counts = struct.unpack_from("<5Q", file, 64)
    body_bytes, body_crc, *reserved, header_crc = struct.unpack_from("<QIIII", file, 104)
    body = file[128:]
    require(magic == b"\x89pktplan" and version == 1 and reserved == [0, 0], "magic, version or reserved")
    require(header_crc == crc32c(file[:124]), "CRC of the header")
    require(len(body) == body_bytes and crc32c(body) == body_crc, "body")
    blocks, runs = [], []
    if kind in (1, 2):
        num_blocks, num_pieces = counts[:2]
        pieces = [
            (start, start + length) for start, length in struct.iter_unpack("<QI", body[: 12 * num_pieces])
        ]
        firsts = u64s(body[12 * num_pieces :])
        require(len(firsts) == num_blocks + 1 and firsts[0] == 0 and firsts[-1] == num_pieces, "first pieces")
        blocks = [pieces[first:stop] for first, stop in itertools.pairwise(firsts)]
    else:
        held_out = (0, 0)
        records = list(struct.iter_unpack("<4Q", body))
        require(len(records) == counts[0] + 1 and not any(counts[1:]), "counts of a split")
        for i, (document, token, *validation) in enumerate(records):
            if i > 0 and i % 2 == 0:
                document_before, token_before, *_ = records[i - 1]
                held_out = (held_out[0] + document - document_before, held_out[1] + token - token_before)
            require(tuple(validation) == held_out, f"run {i}")
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
    """XXH64, as specified in https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md."""
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
    """Returns whether a split by hash holds ``document`` out."""
    ids = struct.pack(f"<{len(document)}I", *document)
    return xxh64(ids, seed) < min(int(fraction * 2**64), 2**64 - 1)

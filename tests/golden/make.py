"""Creates the golden files next to it, with Python's own pickle and the reference reader and writer.

``python tests/golden/make.py`` adds missing files. Existing files never change.
"""

from __future__ import annotations

import json
import pickle
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

import reference  # noqa: E402
import reference_plans  # noqa: E402

DOCUMENTS = [[1, 2, 3], [], [250, 255], [7]]
EXAMPLE_DOCUMENTS = [[15496, 11, 995, 50256], [50256], [3666, 50256]]
EXAMPLE_METADATA = {
    "writer": {"name": "packtok", "version": "0.1.0"},
    "tokenizer": {"name": "gpt2", "fingerprint": "sha256:00", "vocab_size": 50257},
    "eod": {"token": "<|endoftext|>", "id": 50256},
    "counts": {
        "documents": 3,
        "tokens": 7,
        "lines": 4,
        "packed": 2,
        "empty": 1,
        "blank": 1,
        "rejected": 0,
        "eods_in_text": 0,
    },
    "options": {
        "field": ".text",
        "add_special_tokens": True,
        "special_tokens_in_text": "parse",
        "empty_document": "keep",
        "max_document_bytes": 1073741824,
    },
    "stopped_early": False,
}
EXAMPLE_SOURCES = [
    {"path": "a.jsonl", "bytes": 61, "crc32c": 305419896},
    {"path": "b/c.jsonl.zst", "bytes": 20},
]
# Source and offset of each document.
EXAMPLE_ORIGINS = [(0, 0), (0, 25), (1, 4_000_000_000)]
# Whether each token counts in the loss.
EXAMPLE_MASK = [True, False, True, True, False, False, True]
PLANNED_LENGTHS = [25, 4, 1, 0, 12, 8]
EDGES = [
    0,
    255,
    256,
    65535,
    65536,
    2**31 - 1,
    2**31,
    2**32,
    2**39 - 1,
    2**39,
    2**40,
    2**63 - 1,
    2**63,
    2**64 - 1,
]


def pairs(num_pairs: int) -> list[tuple[int, int]]:
    """Returns adjacent spans whose lengths cross the widths of pickled integers."""
    spans, start = [], 0
    for i in range(num_pairs):
        length = i * 7919 % 1000 * 2
        spans.append((start, length))
        start += length
    return spans


def fixed_stride(spans: list[tuple[int, int]]) -> bytes:
    """Encodes the list as one batch in which every pair takes 21 bytes."""
    body = b"".join(
        b"\x8a\x08" + struct.pack("<Q", a) + b"\x8a\x08" + struct.pack("<Q", b) + b"\x86" for a, b in spans
    )
    return b"\x80\x04](" + body + b"e."


def known_sections(documents: list[list[int]], width: int) -> list[tuple[int, int, bytes]]:
    """Returns the four sections of the worked example."""
    stops = [0]
    for document in documents:
        stops.append(stops[-1] + len(document) * width)
    data = b"".join(token.to_bytes(width, "little") for document in documents for token in document)
    sources = "".join(_compact(source) + "\n" for source in EXAMPLE_SOURCES)
    return [
        (1, 1, struct.pack(f"<{len(stops)}Q", *stops)),
        (2, 0, struct.pack("<I", reference.crc32c(data))),
        (3, 0, _compact(EXAMPLE_METADATA).encode()),
        (4, 0, sources.encode()),
    ]


def loss_mask(counted: list[bool]) -> bytes:
    """Returns the section of a loss mask: the bits of eight tokens in a byte, the lowest first."""
    bits = sum(is_counted << token for token, is_counted in enumerate(counted))
    return bits.to_bytes((len(counted) + 7) // 8, "little")


def plan_file(kind: int, options: tuple[int, int], counts: list[int], body: bytes) -> bytes:
    """Returns a plan or a split of data whose fingerprint is 32 times the byte 7."""
    header = struct.pack("<8sIIQQ32s", b"\x89pktplan", 1, kind, *options, b"\x07" * 32)
    header += struct.pack("<5QQIII", *counts, len(body), reference.crc32c(body), 0, 0)
    return header + struct.pack("<I", reference.crc32c(header)) + body


def plan(kind: int, block_tokens: int, blocks: list[list[tuple[int, int]]], dropped: int) -> bytes:
    """Returns a plan of `PLANNED_LENGTHS` with blocks given as (start, stop) of their pieces."""
    pieces = [piece for block in blocks for piece in block]
    firsts = [sum(len(block) for block in blocks[:i]) for i in range(len(blocks) + 1)]
    placed = sum(stop - start for start, stop in pieces)
    padding = len(blocks) * block_tokens - placed
    counts = [len(blocks), len(pieces), dropped, padding, sum(PLANNED_LENGTHS)]
    body = b"".join(struct.pack("<QI", start, stop - start) for start, stop in pieces)
    return plan_file(kind, (block_tokens, 0), counts, body + struct.pack(f"<{len(firsts)}Q", *firsts))


def split(records: list[tuple[int, int, int, int]]) -> bytes:
    """Returns a split by hash with seed 5, with these records of what precedes each run."""
    body = b"".join(struct.pack("<4Q", *record) for record in records)
    return plan_file(3, (5, 2**63), [len(records) - 1, 0, 0, 0, 0], body)


def golden() -> dict[str, bytes]:
    """Returns all golden files by name."""
    files = {
        f"pairs_{n}.pickle": pickle.dumps(pairs(n), protocol=4) for n in (0, 1, 2, 999, 1000, 1001, 2001)
    }
    files["pairs_edges.pickle"] = pickle.dumps([(edge, edge) for edge in EDGES], protocol=4)
    # Every third tuple occurs again: the pickler writes a reference to the first one.
    shared = pairs(1200)
    shared += shared[::3]
    for protocol in (2, 4):
        files[f"shared_protocol{protocol}.pickle"] = pickle.dumps(shared, protocol=protocol)
    large = pickle.dumps(pairs(100_000), protocol=4)
    files["pairs_100000.txt"] = f"{len(large)} {reference.crc32c(large):08x}\n".encode()
    for width in (1, 2, 4):
        files[f"plain_u{width * 8}.pbin"] = reference.modalities_bytes(DOCUMENTS, width)
    files["plain_legacy.pbin"] = reference.modalities_bytes(DOCUMENTS, 2, origin=12)
    files["plain_empty.pbin"] = reference.modalities_bytes([], 2)
    plain = reference.modalities_bytes(DOCUMENTS, 2)
    head, spans = plain[: 12 + 12], pickle.loads(plain[12 + 12 :])
    files["plain_fixed_stride.pbin"] = head + fixed_stride(spans)
    for protocol in (2, 3, 5):
        files[f"plain_protocol{protocol}.pbin"] = head + pickle.dumps(spans, protocol=protocol)
    example = reference.modalities_bytes(EXAMPLE_DOCUMENTS, 2)
    sections = known_sections(EXAMPLE_DOCUMENTS, 2)
    origins = reference.origins_section(EXAMPLE_ORIGINS)
    files["example.pbin"] = reference.with_trailer(example, sections)
    files["origins.pbin"] = reference.with_trailer(example, [*sections, (reference.ORIGINS, 0, origins)])
    files["loss_mask.pbin"] = reference.with_trailer(example, [*sections, (6, 0, loss_mask(EXAMPLE_MASK))])
    files["offsets_only.pbin"] = reference.with_trailer(example, sections[:1])
    files["unknown_optional.pbin"] = reference.with_trailer(example, [*sections, (99, 0, b"from the future")])
    files["unknown_required.pbin"] = reference.with_trailer(example, [*sections, (99, 1, b"from the future")])
    files["best_fit.plan"] = plan(1, 10, reference_plans.best_fit_blocks(PLANNED_LENGTHS, 10), 0)
    megatron = [[block] for block in reference_plans.megatron_spans(PLANNED_LENGTHS, 10)]
    files["megatron.plan"] = plan(2, 10, megatron, 25)
    # Documents 1 and 2 of the lengths 3, 0, 2, 4 are held out.
    files["split_by_hash.plan"] = split([(0, 0, 0, 0), (1, 3, 0, 0), (3, 5, 2, 2), (4, 9, 2, 2)])
    return files


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def main() -> None:
    """Writes the golden files that are missing."""
    for name, content in golden().items():
        path = HERE / name
        if not path.exists():
            path.write_bytes(content)
            print(f"made {name}, {len(content)} bytes")


if __name__ == "__main__":
    main()

"""Reads, changes and converts SentencePiece ``.model`` files to tokenizer.json; needs no protobuf."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

UNIGRAM, BPE = 1, 2
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6


def convert(model: Path, target: Path) -> Path:
    """Writes ``target``, the tokenizer.json of the SentencePiece model at ``model``."""
    model_fields = list(fields(model.read_bytes()))
    pieces = [_piece(values_of(value)) for number, value in model_fields if number == 1]
    trainer = values_of(next(value for number, value in model_fields if number == 2))
    rules = values_of(next(value for number, value in model_fields if number == 3))
    byte_fallback = bool(trainer.get(35, 0))
    if trainer.get(3, UNIGRAM) == BPE:
        description = _bpe(pieces, byte_fallback)
    else:
        description = _unigram(pieces, byte_fallback)
    added = [
        {"id": i, "content": piece, "single_word": False, "lstrip": False, "rstrip": False}
        | {"normalized": False, "special": kind != USER_DEFINED}
        for i, (piece, _, kind) in enumerate(pieces)
        if kind in (UNKNOWN, CONTROL, USER_DEFINED)
    ]
    document = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added}
    document |= {"normalizer": _normalizer(rules), "post_processor": None} | description
    target.write_text(json.dumps(document), encoding="utf-8")
    return target


def _normalizer(rules: dict[int, Any]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    if rules.get(2):
        charsmap = base64.b64encode(rules[2]).decode("ascii")
        steps.append({"type": "Precompiled", "precompiled_charsmap": charsmap})
    if rules.get(4, 1):
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    if rules.get(3, 1):
        steps.append({"type": "Prepend", "prepend": "▁"})
    steps.append({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})
    return {"type": "Sequence", "normalizers": steps}


Piece = tuple[str, float, int]


def _bpe(pieces: list[Piece], byte_fallback: bool) -> dict[str, Any]:
    vocab = {piece: i for i, (piece, _, _) in enumerate(pieces)}
    model = {"type": "BPE", "dropout": None, "continuing_subword_prefix": None, "end_of_word_suffix": None}
    model |= {"fuse_unk": True, "byte_fallback": byte_fallback, "ignore_merges": False}
    model |= {"unk_token": next(piece for piece, _, kind in pieces if kind == UNKNOWN)}
    model |= {"vocab": vocab, "merges": [list(pair) for pair in _merges(pieces, vocab)]}
    return {"model": model, "pre_tokenizer": None, "decoder": None}


def _merges(pieces: list[Piece], vocab: dict[str, int]) -> list[tuple[str, str]]:
    """Returns all pairs that form a piece, best score first; SentencePiece ranks a merge by its result."""
    merges = []
    for piece, score, kind in pieces:
        if kind != NORMAL:
            continue
        for at in range(1, len(piece)):
            left, right = piece[:at], piece[at:]
            if left in vocab and right in vocab:
                merges.append((-score, vocab[left], vocab[right], left, right))
    return [(left, right) for *_, left, right in sorted(merges)]


def _unigram(pieces: list[Piece], byte_fallback: bool) -> dict[str, Any]:
    unk_id = next(i for i, (_, _, kind) in enumerate(pieces) if kind == UNKNOWN)
    model = {"type": "Unigram", "unk_id": unk_id, "byte_fallback": byte_fallback}
    model |= {"vocab": [[piece, score] for piece, score, _ in pieces]}
    return {"model": model, "pre_tokenizer": None, "decoder": None}


def _piece(values: dict[int, Any]) -> Piece:
    score = struct.unpack("<f", values[2])[0] if 2 in values else 0.0
    return values[1].decode("utf-8"), score, values.get(3, NORMAL)


def values_of(message: bytes) -> dict[int, Any]:
    """Returns the value of each field of a protobuf message; the last one if a field is repeated."""
    return dict(fields(message))


def message(values: Mapping[int, list[Any]]) -> bytes:
    """Encodes a protobuf message from the values of each field: integers, or bytes, also for floats."""
    parts = []
    for number, of_field in values.items():
        for value in of_field:
            if isinstance(value, int):
                parts.append(_varint_of(number << 3) + _varint_of(value))
            elif (number, len(value)) == (2, 4):
                parts.append(_varint_of(number << 3 | 5) + value)
            else:
                parts.append(_varint_of(number << 3 | 2) + _varint_of(len(value)) + value)
    return b"".join(parts)


def _varint_of(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yields number and value of every field of a protobuf message: integers, and bytes for all others."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == 2:
            num_bytes, at = _varint(message, at)
        else:
            num_bytes = {1: 8, 5: 4}[kind]
        yield number, message[at : at + num_bytes]
        at += num_bytes


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at

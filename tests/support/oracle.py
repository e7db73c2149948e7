"""Naive expected contents of a corpus: lines by Python's json, ids by the tokenizers wheel.

Shares no code with packtok. Tests compare the files that packtok writes with these results.

The wheel takes minutes for a whole corpus. Its results are therefore kept as one checksum per corpus and
tokenizer in ``golden/oracle_ids.json``. It runs again if a file has another checksum, and always with
``PACKTOK_ORACLE=live``, which also adds missing checksums.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from repository import GOLDEN
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

import packtok

EOD = "<|endoftext|>"
BATCH = 2000
CHECKSUMS = GOLDEN / "oracle_ids.json"
IS_LIVE = os.environ.get("PACKTOK_ORACLE") == "live"


def lines_of(path: Path) -> list[bytes]:
    """Returns the lines of a plain or compressed file, without line ends."""
    if path.suffix == ".zst":
        with path.open("rb") as file:
            reader = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(
                file, read_across_frames=True
            )
            data = io.BufferedReader(reader).read()
    else:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return [line.removesuffix(b"\r") for line in (lines if lines[-1] else lines[:-1])]


def texts_of(path: Path, key: str = "text") -> list[str]:
    """Returns the texts of a corpus without bad lines."""
    return [json.loads(line)[key] for line in lines_of(path)]


def text_of(line: bytes) -> str | None:
    """Returns the value of ``text`` in a line; ``None`` if the line is not a document."""
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
        text = value["text"]
    except (ValueError, KeyError, TypeError):
        return None
    return text if isinstance(text, str) else None


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def load(path: Path) -> Tokenizer:
    """Returns the tokenizer in a file, without its truncation and padding."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def encode(tokenizer: Tokenizer, texts: list[str], *, add_special_tokens: bool = True) -> Iterator[list[int]]:
    """Yields the ids of every text."""
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        for encoding in tokenizer.encode_batch_fast(batch, add_special_tokens=add_special_tokens):
            yield encoding.ids


def close(ids: list[int], eod_id: int) -> list[int]:
    """Returns a document: its ids, followed by EOD unless they end with it."""
    return ids if ids and ids[-1] == eod_id else [*ids, eod_id]


def documents(
    tokenizer: Tokenizer, texts: list[str], eod: str = EOD, *, add_special_tokens: bool = True
) -> Iterator[list[int]]:
    """Yields the expected result of packing ``texts``, without texts that have no ids."""
    eod_id = tokenizer.token_to_id(eod)
    for ids in encode(tokenizer, texts, add_special_tokens=add_special_tokens):
        if ids:
            yield close(ids, eod_id)


def assert_holds(path: str | Path, expected: Iterable[list[int]]) -> None:
    """Asserts that the pbin at ``path`` contains exactly the documents ``expected``."""
    reader = packtok.PbinReader(str(path))
    num_documents, start = 0, 0
    for i, document in enumerate(expected):
        assert i < len(reader), f"document {i} is missing"
        ids = reader[i].tolist()
        assert ids == document, f"document {i}: {_difference(ids, document)}"
        start += len(document)
        num_documents = i + 1
    assert (len(reader), reader.num_tokens) == (num_documents, start)


def assert_holds_known(path: str | Path, key: str, expected: Callable[[], Iterable[list[int]]]) -> None:
    """Same as ``assert_holds``; calls ``expected`` only if the checksum kept under ``key`` differs."""
    known = json.loads(CHECKSUMS.read_text(encoding="utf-8"))
    if not IS_LIVE and known.get(key) == _checksum_of_file(path):
        return
    documents = list(expected())
    assert_holds(path, documents)
    _assert_checksum_known(key, _checksum(documents), known)


def assert_ids_known(
    ids: np.ndarray[Any, Any],
    offsets: np.ndarray[Any, Any],
    key: str,
    expected: Callable[[], Iterable[list[int]]],
) -> None:
    """Same for ids in memory: those of text ``i`` are ``ids[offsets[i]:offsets[i + 1]]``."""
    known = json.loads(CHECKSUMS.read_text(encoding="utf-8"))
    if not IS_LIVE and known.get(key) == _checksum_of_arrays(np.diff(offsets), ids):
        return
    documents = list(expected())
    for i, document in enumerate(documents):
        ids_of_text = ids[offsets[i] : offsets[i + 1]].tolist()
        assert ids_of_text == document, f"text {i}: {_difference(ids_of_text, document)}"
    _assert_checksum_known(key, _checksum(documents), known)


def _assert_checksum_known(key: str, checksum: str, known: dict[str, str]) -> None:
    """Asserts that ``key`` has this checksum; in live mode, a missing key is added to the file."""
    if IS_LIVE and key not in known:
        known[key] = checksum
        CHECKSUMS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert known.get(key) == checksum, f"the wheel's checksum of {key!r} is not in {CHECKSUMS}"


def _checksum(documents: list[list[int]]) -> str:
    """Returns the SHA-256 of the number of ids of each document, as u64, followed by all ids, as u32."""
    checksum = hashlib.sha256(np.array([len(document) for document in documents], "<u8"))
    for document in documents:
        checksum.update(np.array(document, "<u4"))
    return checksum.hexdigest()


def _checksum_of_arrays(lengths: np.ndarray[Any, Any], ids: np.ndarray[Any, Any]) -> str:
    """Same for adjacent ids in one array."""
    checksum = hashlib.sha256(lengths.astype("<u8"))
    checksum.update(ids.astype("<u4"))
    return checksum.hexdigest()


def _checksum_of_file(path: str | Path) -> str:
    """Same for the documents in a pbin."""
    reader = packtok.PbinReader(str(path))
    lengths = np.array([len(reader[i]) for i in range(len(reader))], "<u8")
    return _checksum_of_arrays(lengths, reader.tokens(0, reader.num_tokens))


def _difference(ids: list[int], expected: list[int]) -> str:
    pairs = zip(ids, expected, strict=False)
    at = next((at for at, (id_, other) in enumerate(pairs) if id_ != other), min(len(ids), len(expected)))
    return f"from token {at}: found {ids[at : at + 8]}, expected {expected[at : at + 8]}"


def write_lines(path: Path, texts: Iterable[str], key: str = "text") -> Path:
    """Writes a corpus of ``texts``, one JSON object per line."""
    lines = [json.dumps({key: text}, ensure_ascii=False) + "\n" for text in texts]
    path.write_text("".join(lines), encoding="utf-8", newline="\n")
    return path


def letters_of_bytes() -> list[str]:
    """Returns the character that byte-level vocabularies use for each byte."""
    # As in GPT-2: printable characters of Latin-1 stand for themselves, the others are U+0100 and up.
    themselves = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in themselves]
    letters = {byte: chr(byte) for byte in themselves}
    letters |= {byte: chr(0x100 + i) for i, byte in enumerate(others)}
    assert set(letters.values()) == set(ByteLevel.alphabet())
    return [letters[byte] for byte in range(256)]


def byte_level(
    path: Path,
    *,
    vocab_size: int = 300,
    added: tuple[str, ...] = (EOD, "<|bos|>"),
    post_processor: dict[str, Any] | None = None,
    merges: tuple[tuple[str, str], ...] = (("t", "h"), ("th", "e"), ("Ġ", "a")),
) -> Path:
    """Writes a small byte-level BPE tokenizer.json; ``added`` tokens follow the ids below ``vocab_size``."""
    symbols = sorted(ByteLevel.alphabet())
    vocab = symbols + ["".join(merge) for merge in merges]
    vocab += [f"<extra{i}>" for i in range(len(vocab), vocab_size)]
    tokens = [
        {"id": len(vocab) + i, "content": content, "single_word": False, "lstrip": False, "rstrip": False}
        | {"normalized": False, "special": True}
        for i, content in enumerate(added)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None}
    model |= {"end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    model |= {"vocab": {token: i for i, token in enumerate(vocab)}, "merges": [list(pair) for pair in merges]}
    document = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens}
    document |= {"normalizer": None, "pre_tokenizer": byte_level, "post_processor": post_processor}
    document |= {"decoder": byte_level, "model": model}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def template(
    *, before: tuple[str, ...] = (), after: tuple[str, ...] = (), ids: dict[str, int]
) -> dict[str, Any]:
    """Returns a post-processor that puts tokens around every document."""

    def special(name: str) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": 0}}

    text = {"Sequence": {"id": "A", "type_id": 0}}
    single = [*map(special, before), text, *map(special, after)]
    special_tokens = {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in (*before, *after)}
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": special_tokens,
    }


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key in which ``part2`` precedes ``part10``."""
    runs = [run for run in re.split(r"([0-9]+)", name) if run]
    return [(0, int(run), run) if run.isdigit() else (1, 0, run) for run in runs]

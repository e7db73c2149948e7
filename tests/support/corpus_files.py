"""Writes corpora in each format that packtok reads."""

from __future__ import annotations

import csv
import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import cbor2
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

SEPARATOR = "\x1e\n"
GROUP_ROWS = 40


def documents(count: int, seed: int = 1, words: int = 60) -> list[str]:
    """Returns texts with quotes, separators and line ends of every format, and empty ones."""
    rng = random.Random(seed)
    pieces = ["the", "fox", "\n", '"', ",", "\t", "naïve", "数", "\r\n", "=", "{}", ";", "a b c", "\\"]
    texts = [" ".join(rng.choices(pieces, k=rng.randrange(words))) for _ in range(count)]
    texts[3] = ""
    return texts


def table(texts: list[str | None], kind: pa.DataType | None = None) -> pa.Table:
    ids = pa.array(range(len(texts)), pa.int64())
    return pa.table({"id": ids, "text": pa.array(texts, kind or pa.string())})


def write_parquet(path: Path, texts: list[str | None]) -> None:
    pq.write_table(table(texts), path, row_group_size=GROUP_ROWS, compression="zstd")


def write_arrow(path: Path, texts: list[str | None], *, is_stream: bool = False, **options: object) -> None:
    content = table(texts)
    new = pa.ipc.new_stream if is_stream else pa.ipc.new_file
    with new(str(path), content.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(content, max_chunksize=GROUP_ROWS)


def write_csv(path: Path, texts: list[str], delimiter: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["id", "text"])
        writer.writerows(enumerate(texts))


def write_text(path: Path, texts: list[str]) -> None:
    path.write_bytes("".join(text + SEPARATOR for text in texts).encode())


def write_cbor(path: Path, texts: list[str]) -> None:
    samples = ({"id": i, "ids": [1.5, None, True], "text": text} for i, text in enumerate(texts))
    path.write_bytes(b"".join(map(cbor2.dumps, samples)))


def write_jsonl(path: Path, texts: list[str]) -> None:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))


def zipped(write: Callable[[Path, list[str]], None]) -> Callable[[Path, list[str]], None]:
    """Returns a writer that compresses the output of another writer, by the name of the file."""

    def write_zipped(path: Path, texts: list[str]) -> None:
        write(path, texts)
        compress = gzip.compress if path.suffix == ".gz" else zstandard.compress
        path.write_bytes(compress(path.read_bytes()))

    return write_zipped


WRITERS: dict[str, Callable[[Path, list[str]], None]] = {
    "c.parquet": write_parquet,
    "c.arrow": write_arrow,
    "zstd.feather": lambda path, texts: write_arrow(path, texts, compression="zstd"),
    "stream.arrow": lambda path, texts: write_arrow(path, texts, is_stream=True),
    "c.csv": write_csv,
    "c.csv.gz": zipped(write_csv),
    "c.tsv": lambda path, texts: write_csv(path, texts, "\t"),
    "c.txt": write_text,
    "c.txt.zst": zipped(write_text),
    "c.cbor": write_cbor,
    "c.cbor.gz": zipped(write_cbor),
}

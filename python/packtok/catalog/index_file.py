"""The tables of an index, and its bytes.

Next to the rows and the full-text index there is an array for each facet and for each order of the results,
with a number for each dataset: counting and sorting 100,000 datasets then takes a millisecond, which SQL does
not reach.
"""

import json
import sqlite3
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from packtok import _packtok
from packtok.catalog.entries import Broken
from packtok.catalog.facets import FACETS, UNKNOWN, facet_values, year_of

# Version of the tables; an index of another version is built again.
VERSION = 2
_SCHEMA = """
PRAGMA user_version = {version};
PRAGMA page_size = 8192;
CREATE TABLE dataset (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, modified_ns INTEGER NOT NULL, bytes INTEGER NOT NULL,
    name TEXT NOT NULL, context TEXT NOT NULL, parent TEXT, content TEXT NOT NULL, tokenizer TEXT,
    documents INTEGER, tokens INTEGER, language TEXT, license TEXT, date TEXT NOT NULL,
    own_name TEXT NOT NULL, entry TEXT NOT NULL
);
CREATE TABLE broken (
    path TEXT PRIMARY KEY, modified_ns INTEGER NOT NULL, bytes INTEGER NOT NULL, reason TEXT NOT NULL
);
CREATE TABLE facet (facet TEXT, code INTEGER, value TEXT NOT NULL, PRIMARY KEY (facet, code)) WITHOUT ROWID;
CREATE TABLE numbers (name TEXT PRIMARY KEY, numbers BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5 (
    name, description, source, corpora, context, content = '', prefix = '1 2 3', tokenize = 'unicode61'
);
"""
_INDEXES = """
CREATE INDEX dataset_name ON dataset (name);
CREATE INDEX dataset_parent ON dataset (parent) WHERE parent IS NOT NULL;
"""
_COLUMNS = (
    *("path", "modified_ns", "bytes", "name", "context", "parent", "content", "tokenizer", "documents"),
    *("tokens", "language", "license", "date", "own_name", "entry"),
)
# Where SQLite keeps the number of the application, which is free to use: here, the CRC-32 of all other bytes.
_CRC_AT = slice(68, 72)


def index_content(entries: Sequence[dict[str, Any]], broken: Iterable[Broken]) -> bytes:
    """Returns the bytes of an index, which is made in memory and so needs no locks."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA.format(version=VERSION))
        marks = ", ".join("?" for _ in _COLUMNS)
        connection.executemany(
            f"INSERT INTO dataset VALUES (?, {marks})",
            ([i, *(entry[column] for column in _COLUMNS)] for i, entry in enumerate(entries, 1)),
        )
        columns = "rowid, name, description, source, corpora, context"
        connection.executemany(
            f"INSERT INTO words ({columns}) VALUES (?, ?, ?, ?, ?, ?)",
            ([i, *_words(entry)] for i, entry in enumerate(entries, 1)),
        )
        connection.executemany(
            "INSERT OR REPLACE INTO broken VALUES (?, ?, ?, ?)",
            ([one.path, one.modified_ns, one.bytes, one.reason] for one in broken),
        )
        _add_numbers(connection, entries)
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        connection.executescript(_INDEXES)
        connection.commit()
        return _with_crc(connection.serialize())


def _words(entry: dict[str, Any]) -> list[str]:
    shown = json.loads(entry["entry"])
    return [
        *(entry["name"], shown.get("description", ""), shown.get("download_source", "")),
        *(" ".join(shown.get("corpuses", [])), entry["context"].replace("/", " ")),
    ]


def _add_numbers(connection: sqlite3.Connection, entries: Sequence[dict[str, Any]]) -> None:
    """Adds the codes of each facet, the most frequent value first, and the orders of all datasets."""
    values = [facet_values(entry) for entry in entries]
    numbers = _orders(entries)
    for facet in FACETS:
        found = Counter(one[facet] for one in values)
        frequent = sorted(found, key=lambda value: (-found[value], value))
        codes = {value: code for code, value in enumerate(frequent)}
        connection.executemany(
            "INSERT INTO facet VALUES (?, ?, ?)", ((facet, code, value) for value, code in codes.items())
        )
        numbers[facet] = [codes[one[facet]] for one in values]
    packed = ((name, struct.pack(f"<{len(each)}I", *each)) for name, each in numbers.items())
    connection.executemany("INSERT INTO numbers VALUES (?, ?)", packed)


def _orders(entries: Sequence[dict[str, Any]]) -> dict[str, list[int]]:
    """Returns the datasets, counted from 0, by name, with most tokens first, and with the latest first."""
    names = [entry["name"].casefold() for entry in entries]
    rank = {name: i for i, name in enumerate(_packtok.natural_sorted(list(set(names))))}
    everything = range(len(entries))
    tokens = [-1 if entry["tokens"] is None else entry["tokens"] for entry in entries]
    dates = ["" if year_of(entry["date"]) == UNKNOWN else entry["date"].strip() for entry in entries]
    return {
        "by name": sorted(everything, key=lambda i: rank[names[i]]),
        "by tokens": sorted(everything, key=lambda i: tokens[i], reverse=True),
        "by date": sorted(everything, key=lambda i: dates[i], reverse=True),
    }


def _with_crc(content: bytes) -> bytes:
    changed = bytearray(content)
    changed[_CRC_AT] = struct.pack(">I", _crc(content))
    return bytes(changed)


def is_intact(content: bytes) -> bool:
    """Returns whether the bytes of an index are those that were written."""
    return content[_CRC_AT] == struct.pack(">I", _crc(content))


def _crc(content: bytes) -> int:
    """Returns the CRC-32 of all bytes, those of the CRC-32 itself taken as zeros."""
    view = memoryview(content)
    before = zlib.crc32(bytes(4), zlib.crc32(view[: _CRC_AT.start]))
    return zlib.crc32(view[_CRC_AT.stop :], before)

"""The tables of an index, and its bytes.

``dataset`` has a row for each metadata file, ``words`` is the full-text index over the rows, and ``facets``
has the values that a search with facets counts and sorts. Ids are the same in all three: 1 to the number of
datasets, in the order of their folders. ``vocabulary`` has all words in one text, because FTS5 takes long to
list them.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from packtok import _packtok
from packtok.catalog.entries import Broken, with_inherited
from packtok.catalog.facets import FACETS, UNKNOWN, facet_texts, year_of
from packtok.catalog.words import text_to_index

# Version of the tables; an index of another version is built again.
VERSION = 5
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
CREATE TABLE facets (
    id INTEGER PRIMARY KEY, content TEXT NOT NULL, language TEXT NOT NULL, license TEXT NOT NULL,
    tokenizer TEXT NOT NULL, tokens TEXT NOT NULL, date TEXT NOT NULL, raw INTEGER NOT NULL,
    by_name INTEGER NOT NULL, by_tokens INTEGER NOT NULL, by_date INTEGER NOT NULL
);
CREATE VIRTUAL TABLE words USING fts5 (
    name, description, source, corpora, folders, content = '', prefix = '1 2 3', tokenize = 'unicode61'
);
CREATE TABLE vocabulary (words TEXT NOT NULL);
"""
_INDEXES = """
CREATE INDEX dataset_name ON dataset (name);
CREATE INDEX dataset_parent ON dataset (parent) WHERE parent IS NOT NULL;
"""
_COLUMNS = (
    "path",
    "modified_ns",
    "bytes",
    "name",
    "context",
    "parent",
    "content",
    "tokenizer",
    "documents",
    "tokens",
    "language",
    "license",
    "date",
    "own_name",
    "entry",
)


def index_content(entries: Sequence[dict[str, Any]], broken: Iterable[Broken]) -> bytes:
    """Returns the bytes of an index, which is made in memory and so needs no locks.

    The table ``dataset`` has the values of each metadata file alone, so that an entry can be used again when
    only its raw dataset changed. The other tables have the inherited values too.
    """
    ids = {entry["path"]: i for i, entry in enumerate(entries, 1)}
    parents = [ids.get(entry["parent"]) for entry in entries]
    shown = [
        with_inherited(entry, None if parent is None else entries[parent - 1])
        for entry, parent in zip(entries, parents, strict=True)
    ]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA.format(version=VERSION))
        marks = ", ".join("?" for _ in _COLUMNS)
        connection.executemany(
            f"INSERT INTO dataset VALUES (?, {marks})",
            ([i, *(entry[column] for column in _COLUMNS)] for i, entry in enumerate(entries, 1)),
        )
        columns = "rowid, name, description, source, corpora, folders"
        connection.executemany(
            f"INSERT INTO words ({columns}) VALUES (?, ?, ?, ?, ?, ?)",
            ([i, *_words(entry)] for i, entry in enumerate(shown, 1)),
        )
        connection.executemany(
            "INSERT OR REPLACE INTO broken VALUES (?, ?, ?, ?)",
            ([file.path, file.modified_ns, file.bytes, file.reason] for file in broken),
        )
        ranks = zip(*_ranks(shown), strict=True)
        marks = ", ".join("?" for _ in range(len(FACETS) + 5))
        connection.executemany(
            f"INSERT INTO facets VALUES ({marks})",
            (
                [i, *facet_texts(entry).values(), parent or i, *rank]
                for i, (entry, parent, rank) in enumerate(zip(shown, parents, ranks, strict=True), 1)
            ),
        )
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, words, row)")
        connection.execute(
            "INSERT INTO vocabulary SELECT coalesce(group_concat(term, char(10)), '') FROM temp.terms"
        )
        connection.executescript(_INDEXES)
        connection.commit()
        return connection.serialize()


def _words(entry: dict[str, Any]) -> list[str]:
    metadata = json.loads(entry["entry"])
    texts = [
        entry["name"],
        metadata.get("description", ""),
        metadata.get("download_source", ""),
        " ".join(metadata.get("corpuses", [])),
        # The folders: those of the context, and that of the dataset.
        " ".join(entry["path"].split("/")[:-1]),
    ]
    return list(map(text_to_index, texts))


def _ranks(entries: Sequence[dict[str, Any]]) -> tuple[list[int], list[int], list[int]]:
    """Returns the ranks of all datasets by name, with most tokens first, and with the latest date first."""
    names = [entry["name"].casefold() for entry in entries]
    of_name = {name: i for i, name in enumerate(_packtok.natural_sorted(list(set(names))))}
    tokens = [-1 if entry["tokens"] is None else entry["tokens"] for entry in entries]
    dates = ["" if year_of(entry["date"]) == UNKNOWN else entry["date"].strip() for entry in entries]
    everything = range(len(entries))
    orders = (
        sorted(everything, key=lambda i: of_name[names[i]]),
        sorted(everything, key=lambda i: tokens[i], reverse=True),
        sorted(everything, key=lambda i: dates[i], reverse=True),
    )
    by_name, by_tokens, by_date = (sorted(everything, key=order.__getitem__) for order in orders)
    return by_name, by_tokens, by_date


def is_complete(connection: sqlite3.Connection) -> bool:
    """Returns whether SQLite can read every page of an index, and all tables have the same datasets."""
    numbers = " UNION ".join(
        f"SELECT count(*), coalesce(max({key}), 0) FROM {table}"
        for table, key in (("dataset", "id"), ("facets", "id"), ("words", "rowid"))
    )
    try:
        report = connection.execute("PRAGMA integrity_check").fetchall()
        counts = connection.execute(numbers).fetchall()
    except sqlite3.DatabaseError:
        return False
    if [tuple(line) for line in report] != [("ok",)] or len(counts) != 1:
        return False
    count, highest_id = counts[0]
    return bool(count == highest_id)

"""The index of a base directory: one SQLite file with what the metadata files say, and a search over it.

The metadata files are the source of truth: the index can be deleted at any time. It is never changed. A new
one is made in memory and published by rename, and readers open it as immutable, so that no process takes a
lock on a network file system, where locks often fail.
"""

import json
import sqlite3
import urllib.parse
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.catalog.garden import Described, dataset_name, described_below
from packtok.catalog.schema import load_details, load_metadata
from packtok.errors import ConfigError, PacktokError

INDEX_NAME = "packtok_index.sqlite"
# Version of the tables; an index of another version is built again.
_VERSION = 1
_SCHEMA = """
PRAGMA user_version = {version};
PRAGMA page_size = 8192;
CREATE TABLE dataset (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, modified_ns INTEGER NOT NULL, bytes INTEGER NOT NULL,
    name TEXT NOT NULL, context TEXT NOT NULL, parent TEXT, tokenizer TEXT, documents INTEGER, tokens INTEGER,
    language TEXT, license TEXT, own_name TEXT NOT NULL, entry TEXT NOT NULL
);
CREATE TABLE broken (
    path TEXT PRIMARY KEY, modified_ns INTEGER NOT NULL, bytes INTEGER NOT NULL, reason TEXT NOT NULL
);
CREATE VIRTUAL TABLE words USING fts5 (
    name, description, source, corpora, context, content = '', prefix = '2 3', tokenize = 'unicode61'
);
"""
_INDEXES = "CREATE INDEX dataset_name ON dataset (name);"
_COLUMNS = (
    *("path", "modified_ns", "bytes", "name", "context", "parent", "tokenizer", "documents", "tokens"),
    *("language", "license", "own_name", "entry"),
)


@dataclass(frozen=True)
class Broken:
    """A metadata file that cannot be read."""

    path: str
    modified_ns: int
    bytes: int
    reason: str


def entries_of(base: Path, known: "Index | None" = None) -> Iterator[dict[str, Any] | Broken]:
    """Yields an entry for each metadata file below ``base``, from ``known`` if the file did not change."""
    names: dict[str, str] = {}
    for described in described_below(base):
        entry = None if known is None else known.unchanged(described)
        if entry is None:
            entry = _read(base, described)
        if isinstance(entry, dict):
            names[described.path] = entry["own_name"]
            parent_name = None if described.parent is None else names.get(described.parent)
            entry = {**entry, "name": dataset_name(described, entry["own_name"], parent_name)}
        yield entry


def _read(base: Path, described: Described) -> dict[str, Any] | Broken:
    file = base / described.path
    try:
        metadata = load_metadata(file)
        details = load_details(file)
    except (ConfigError, OSError) as error:
        return Broken(described.path, described.modified_ns, described.bytes, str(error))
    info = metadata.tokenized_info
    return {
        "path": described.path,
        "modified_ns": described.modified_ns,
        "bytes": described.bytes,
        "own_name": metadata.name,
        "context": described.context,
        "parent": described.parent,
        "tokenizer": None if info is None else info.tokenizer,
        "documents": details.get("documents"),
        "tokens": details.get("tokens"),
        "language": details.get("language"),
        "license": details.get("license"),
        "entry": json.dumps(metadata.to_dict()),
    }


def build_index(base: Path) -> dict[str, Any]:
    """Writes the index of ``base``; returns its ``path``, the number of ``datasets``, and ``broken`` files.

    Raises:
        OSError: If the index cannot be written; an existing one is then unchanged.
    """
    path = base / INDEX_NAME
    with _existing(path) as known:
        found = list(entries_of(base, known))
    broken = [one for one in found if isinstance(one, Broken)]
    _packtok.publish_bytes(path, _content((one for one in found if isinstance(one, dict)), broken))
    return {
        "path": str(path),
        "datasets": len(found) - len(broken),
        "broken": [{"path": one.path, "reason": one.reason} for one in broken],
    }


def _content(entries: Iterable[dict[str, Any]], broken: list[Broken]) -> bytes:
    """Returns the bytes of an index, which is made in memory and so needs no locks."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA.format(version=_VERSION))
        marks = ", ".join("?" for _ in _COLUMNS)
        for i, entry in enumerate(entries, 1):
            values = [entry[column] for column in _COLUMNS]
            connection.execute(f"INSERT INTO dataset VALUES (?, {marks})", [i, *values])
            shown = json.loads(entry["entry"])
            words = (
                *(entry["name"], shown.get("description", ""), shown.get("download_source", "")),
                *(" ".join(shown.get("corpuses", [])), entry["context"].replace("/", " ")),
            )
            columns = "rowid, name, description, source, corpora, context"
            connection.execute(f"INSERT INTO words ({columns}) VALUES (?, ?, ?, ?, ?, ?)", [i, *words])
        for one in broken:
            row = [one.path, one.modified_ns, one.bytes, one.reason]
            connection.execute("INSERT INTO broken VALUES (?, ?, ?, ?)", row)
        connection.executescript(_INDEXES)
        connection.commit()
        return connection.serialize()


class Index:
    """An open index."""

    def __init__(self, path: Path) -> None:
        self.path = path
        quoted = urllib.parse.quote(str(path.absolute()))
        try:
            self._connection = sqlite3.connect(f"file:{quoted}?mode=ro&immutable=1", uri=True)
            self._connection.row_factory = sqlite3.Row
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.Error as error:
            raise PacktokError(f"{path}: not an index: {error}; run packtok data index") from None
        if version != _VERSION:
            raise PacktokError(
                f"{path}: index version {version}, expected {_VERSION}; run packtok data index"
            )

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def unchanged(self, described: Described) -> dict[str, Any] | Broken | None:
        """Returns the entry of a metadata file that has not changed; ``None`` if it has, or is new."""
        key = (described.path, described.modified_ns, described.bytes)
        where = "path = ? AND modified_ns = ? AND bytes = ?"
        row = self._connection.execute(f"SELECT * FROM dataset WHERE {where}", key).fetchone()
        if row is not None:
            return dict(row)
        row = self._connection.execute(f"SELECT * FROM broken WHERE {where}", key).fetchone()
        return None if row is None else Broken(**dict(row))

    def paths_of(self, name: str) -> list[str]:
        """Returns the metadata files of the datasets with a name."""
        return [row["path"] for row in self._all("SELECT path FROM dataset WHERE name = ? ORDER BY id", name)]

    def names(self) -> list[str]:
        """Returns all names, in the order of their folders."""
        return [row["name"] for row in self._all("SELECT name FROM dataset ORDER BY id")]

    def entries(self) -> list[dict[str, Any]]:
        """Returns all entries, in the order of their folders."""
        return self._all("SELECT * FROM dataset ORDER BY id")

    def search(self, words: str) -> list[dict[str, Any]]:
        """Returns the entries that contain words that start with all of ``words``, best first."""
        quoted = [f'"{word.replace(chr(34), chr(34) * 2)}"*' for word in words.split()]
        if not quoted:
            return self.entries()
        return self._all(
            "SELECT dataset.* FROM words JOIN dataset ON dataset.id = words.rowid WHERE words MATCH ? "
            "ORDER BY bm25(words, 10, 2, 1, 5, 3), dataset.id",
            " ".join(quoted),
        )

    def _all(self, query: str, *arguments: Any) -> list[dict[str, Any]]:
        try:
            return [dict(row) for row in self._connection.execute(query, arguments)]
        except sqlite3.DatabaseError as error:
            raise PacktokError(
                f"{self.path}: the index is damaged: {error}; run packtok data index"
            ) from None


@contextmanager
def _existing(path: Path) -> Iterator[Index | None]:
    """Yields the index at ``path``; ``None`` if there is none that can be used."""
    try:
        index = Index(path) if path.exists() else None
    except PacktokError:
        index = None
    try:
        yield index
    finally:
        if index is not None:
            index.close()

"""The index of a base directory: one SQLite file with what the metadata files say, and a search over it.

The metadata files are the source of truth: the index can be deleted at any time. It is never changed. A new
one is made in memory and published by rename, and readers open it as immutable, so that no process takes a
lock on a network file system, where locks often fail.
"""

import os
import sqlite3
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packtok import _packtok
from packtok.catalog.discovery import Described, described_below
from packtok.catalog.entries import Broken, entries_of
from packtok.catalog.index_file import VERSION, index_content, is_intact
from packtok.errors import PacktokError

if TYPE_CHECKING:
    from packtok.catalog.search import Columns, Found, Query

INDEX_NAME = "packtok_index.sqlite"
_MAX_IDS = 1000
# Weights of name, description, source, corpora and context.
_SCORE = "bm25(words, 10, 2, 1, 5, 3)"


def build_index(base: Path) -> dict[str, Any]:
    """Writes the index of ``base``; returns its ``path``, the number of ``datasets``, and ``broken`` files.

    An intact index is left as it is if no metadata file was added, changed or removed.

    Raises:
        OSError: If the index cannot be written; an existing one is then unchanged.
    """
    path = base / INDEX_NAME
    described = list(described_below(base))
    with _existing(path) as known:
        if known is not None and known.is_of(described):
            broken = known.broken()
        else:
            known_entries = {} if known is None else known.by_file()
            found = list(entries_of(base, described, lambda one: known_entries.get(_file(one))))
            broken = [one for one in found if isinstance(one, Broken)]
            content = index_content([one for one in found if isinstance(one, dict)], broken)
            _packtok.publish_bytes(path, content)
    return {
        "path": str(path),
        "datasets": len(described) - len(broken),
        "broken": [{"path": one.path, "reason": one.reason} for one in broken],
    }


def _file(described: Described | Broken) -> tuple[str, int, int]:
    return described.path, described.modified_ns, described.bytes


class Index:
    """An open index.

    Threads may share it: the connection is used by one at a time, and arrays never change.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._columns: Columns | None = None
        self._identity = _identity(path)
        quoted = urllib.parse.quote(str(path.absolute()))
        try:
            self._connection = sqlite3.connect(
                f"file:{quoted}?mode=ro&immutable=1", uri=True, check_same_thread=False
            )
            self._connection.row_factory = sqlite3.Row
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.Error as error:
            raise PacktokError(f"{path}: not an index: {error}; run packtok data index") from None
        if version != VERSION:
            raise PacktokError(f"{path}: index version {version}, expected {VERSION}; run packtok data index")

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def is_current(self) -> bool:
        """Returns whether no other index was published since this one was opened."""
        return self._identity is not None and self._identity == _identity(self.path)

    def is_of(self, described: list[Described]) -> bool:
        """Returns whether the file is intact and has been made from these metadata files as they are now."""
        columns = "path, modified_ns, bytes"
        files = self._rows(f"SELECT {columns} FROM dataset UNION ALL SELECT {columns} FROM broken")
        return sorted(map(tuple, files)) == sorted(map(_file, described)) and is_intact(
            self.path.read_bytes()
        )

    def by_file(self) -> dict[tuple[str, int, int], dict[str, Any] | Broken]:
        """Returns all entries by path, time and length of their metadata files."""
        found: dict[tuple[str, int, int], dict[str, Any] | Broken] = {
            (one["path"], one["modified_ns"], one["bytes"]): one for one in self.entries()
        }
        return found | {_file(one): one for one in self.broken()}

    def broken(self) -> list[Broken]:
        """Returns the metadata files that could not be read."""
        return [Broken(**one) for one in self._all("SELECT * FROM broken ORDER BY rowid")]

    def entry(self, path: str) -> dict[str, Any] | None:
        """Returns the entry of a metadata file, given its path relative to the base; ``None`` if none is."""
        found = self._all("SELECT * FROM dataset WHERE path = ?", _bindable(path))
        return found[0] if found else None

    def children(self, path: str) -> list[dict[str, Any]]:
        """Returns the entries of the tokenized forms of the dataset that a metadata file describes."""
        return self._all("SELECT * FROM dataset WHERE parent = ? ORDER BY id", _bindable(path))

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
        from packtok.catalog.search import match_expression

        expression = match_expression(words)
        if expression is None:
            return self.entries()
        return self._all(
            "SELECT dataset.* FROM words JOIN dataset ON dataset.id = words.rowid WHERE words MATCH ? "
            f"ORDER BY {_SCORE}, dataset.id",
            expression,
        )

    def find(self, query: "Query") -> "Found":
        """Returns the datasets that a query finds, with the values of the facets and their counts."""
        from packtok.catalog.search import find

        return find(self, query)

    def columns(self) -> "Columns":
        """Returns the arrays for facets and orders, which are read once."""
        if self._columns is None:
            from packtok.catalog.search import columns_of

            values = [
                tuple(row) for row in self._rows("SELECT facet, code, value FROM facet ORDER BY facet, code")
            ]
            numbers = {row["name"]: row["numbers"] for row in self._rows("SELECT * FROM numbers")}
            try:
                self._columns = columns_of(values, numbers)
            except (TypeError, ValueError) as error:
                raise self._damaged(error) from None
        return self._columns

    def matches(self, expression: str) -> str:
        """Returns the ids of the matches of an FTS5 expression, joined by commas."""
        ((ids,),) = self._rows("SELECT group_concat(rowid) FROM words WHERE words MATCH ?", expression)
        return ids or ""

    def matches_by_score(self, expression: str) -> list[int]:
        """Returns the ids of the matches of an FTS5 expression, best first."""
        return [
            i
            for (i,) in self._rows(
                f"SELECT rowid FROM words WHERE words MATCH ? ORDER BY {_SCORE}, rowid", expression
            )
        ]

    def entries_of_ids(self, ids: list[int]) -> list[dict[str, Any]]:
        """Returns the entries with these ids, in the same order."""
        found: dict[int, dict[str, Any]] = {}
        # In parts, because SQLite limits the number of variables.
        for start in range(0, len(ids), _MAX_IDS):
            part = ids[start : start + _MAX_IDS]
            marks = ", ".join("?" for _ in part)
            rows = self._all(f"SELECT * FROM dataset WHERE id IN ({marks})", *part)
            found |= {one["id"]: one for one in rows}
        if len(found) != len(ids):
            raise self._damaged("rows are missing")
        return [found[i] for i in ids]

    def _all(self, query: str, *arguments: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in self._rows(query, *arguments)]

    def _rows(self, query: str, *arguments: Any) -> list[Any]:
        with self._lock:
            try:
                return self._connection.execute(query, arguments).fetchall()
            except sqlite3.DatabaseError as error:
                raise self._damaged(error) from None

    def _damaged(self, reason: object) -> PacktokError:
        return PacktokError(f"{self.path}: the index is damaged: {reason}; run packtok data index")


def _identity(path: Path) -> tuple[int, ...] | None:
    """Returns what tells a file from the one that replaces it; ``None`` if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _bindable(text: str) -> str:
    """Returns a text that SQLite accepts: one with halves of surrogate pairs is in no index."""
    return text.encode(errors="replace").decode()


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

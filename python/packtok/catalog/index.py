"""The index of a base directory: a SQLite file with the content of the metadata files, and its search.

The metadata files are the source of truth, so the index can be deleted at any time. An index is never
changed. A new one is made in memory and published by rename, and readers open it as immutable, so that no
process takes a lock on a network file system, where locks often fail.
"""

import os
import sqlite3
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.catalog.discovery import Described, described_below
from packtok.catalog.entries import Broken, entries_of, with_inherited
from packtok.catalog.facets import FACETS
from packtok.catalog.index_file import VERSION, index_content, is_complete
from packtok.catalog.search import (
    Query,
    SearchResult,
    corrected_expression,
    corrections_of,
    match_expression,
)
from packtok.catalog.words import Vocabulary
from packtok.errors import PacktokError

INDEX_NAME = "packtok_index.sqlite"
_MAX_IDS = 1000
# With more matches than this, scores cost more than they are worth: words that occur everywhere rank nothing.
_MAX_SCORED = 2_000
# Weights of name, description, source, corpora and folders.
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
            entries = list(entries_of(base, described, lambda file: known_entries.get(_file(file))))
            broken = [entry for entry in entries if isinstance(entry, Broken)]
            content = index_content([entry for entry in entries if isinstance(entry, dict)], broken)
            _packtok.publish_bytes(path, content)
    return {
        "path": str(path),
        "datasets": len(described) - len(broken),
        "broken": [{"path": file.path, "reason": file.reason} for file in broken],
    }


def _file(described: Described | Broken) -> tuple[str, int, int]:
    return described.path, described.modified_ns, described.bytes


class Index:
    """An open index.

    Threads may share it: one thread at a time uses the connection, and arrays never change.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        # `packtok.catalog.columns.Columns`, imported when a search needs it, because it imports NumPy.
        self._columns: Any = None
        self._vocabulary: Vocabulary | None = None
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
        """Returns whether the index was made from these metadata files as they are now."""
        columns = "path, modified_ns, bytes"
        files = self._rows(f"SELECT {columns} FROM dataset UNION ALL SELECT {columns} FROM broken")
        return sorted(map(tuple, files)) == sorted(map(_file, described))

    def is_complete(self) -> bool:
        """Returns whether SQLite can read the whole file, and no table lacks rows."""
        with self._lock:
            return is_complete(self._connection)

    def by_file(self) -> dict[tuple[str, int, int], dict[str, Any] | Broken]:
        """Returns all entries, without inherited values, by path, time and length of their metadata files."""
        entries: dict[tuple[str, int, int], dict[str, Any] | Broken] = {
            (entry["path"], entry["modified_ns"], entry["bytes"]): entry
            for entry in self._all("SELECT * FROM dataset")
        }
        return entries | {_file(file): file for file in self.broken()}

    def broken(self) -> list[Broken]:
        """Returns the metadata files that could not be read."""
        return [Broken(**row) for row in self._all("SELECT * FROM broken ORDER BY rowid")]

    def entry(self, path: str) -> dict[str, Any] | None:
        """Returns the entry of a metadata file, given its path relative to the base; ``None`` if none is."""
        entries = self._shown("SELECT * FROM dataset WHERE path = ?", _bindable(path))
        return entries[0] if entries else None

    def children(self, path: str) -> list[dict[str, Any]]:
        """Returns the entries of the tokenized forms of the dataset that a metadata file describes."""
        return self._shown("SELECT * FROM dataset WHERE parent = ? ORDER BY id", _bindable(path))

    def paths_of(self, name: str) -> list[str]:
        """Returns the metadata files of the datasets with a name."""
        return [row["path"] for row in self._all("SELECT path FROM dataset WHERE name = ? ORDER BY id", name)]

    def names(self) -> list[str]:
        """Returns all names, in the order of their folders."""
        return [row["name"] for row in self._all("SELECT name FROM dataset ORDER BY id")]

    def entries(self) -> list[dict[str, Any]]:
        """Returns all entries, in the order of their folders."""
        return self._shown("SELECT * FROM dataset ORDER BY id")

    def search(self, words: str) -> list[dict[str, Any]]:
        """Returns the entries that contain words that start with all of ``words``, best first."""
        expression, _ = self._expression(words)
        if expression is None:
            return self.entries()
        return self._shown(
            "SELECT dataset.* FROM words JOIN dataset ON dataset.id = words.rowid WHERE words MATCH ? "
            f"ORDER BY {_SCORE}, dataset.id",
            expression,
        )

    def find(self, query: Query) -> SearchResult:
        """Returns the datasets that a query finds, with the values of the facets and their counts."""
        from packtok.catalog.columns import Columns, rows_of_ids

        try:
            if self._columns is None:
                self._columns = Columns(self._rows("SELECT * FROM facets ORDER BY id"))
            expression, corrections = self._expression(query.words)
            matches = None if expression is None else rows_of_ids(self._matches(expression))
            matched = self._columns.mask(matches)
        except (IndexError, TypeError, ValueError) as error:
            raise self._damaged(error) from None
        selected, facets = self._columns.select(matched, {facet: getattr(query, facet) for facet in FACETS})
        if query.sort == "best" and expression is not None:
            order = self._best_first(expression, matches)
        else:
            order = self._columns.order(query.sort)
        sorted_rows = order[selected[order]]
        if query.is_grouped:
            sorted_rows = self._columns.grouped(sorted_rows)
        page = sorted_rows[query.offset : query.offset + query.limit]
        return SearchResult(
            len(sorted_rows), self._entries_of_ids([int(i) + 1 for i in page]), facets, corrections
        )

    def _expression(self, words: str) -> tuple[str | None, dict[str, list[str]]]:
        """Returns the FTS5 expression for words, and the typos that were corrected since it found nothing."""
        expression = match_expression(words)
        any_match = "SELECT 1 FROM words WHERE words MATCH ? LIMIT 1"
        if expression is None or self._rows(any_match, expression):
            return expression, {}
        if self._vocabulary is None:
            rows = self._rows("SELECT words FROM vocabulary")
            if len(rows) != 1:
                raise self._damaged("the vocabulary is missing")
            self._vocabulary = Vocabulary(rows[0][0])
        corrections = corrections_of(words, self._vocabulary)
        return (corrected_expression(words, corrections) if corrections else expression), corrections

    def _best_first(self, expression: str, matches: Any) -> Any:
        """Returns matches by score; too many keep folder order, after those with all words in the name."""
        from packtok.catalog.columns import others_last, rows_of_ids

        if len(matches) > _MAX_SCORED:
            return others_last(rows_of_ids(self._matches(f"name : ({expression})")), matches)
        # `group_concat` does not promise an order.
        scored = f"SELECT rowid FROM words WHERE words MATCH ? ORDER BY {_SCORE}, rowid"
        return rows_of_ids(",".join(str(i) for (i,) in self._rows(scored, expression)))

    def _matches(self, expression: str) -> str:
        """Returns the ids of the matches of an FTS5 expression, joined by commas.

        SQLite joins them six times as fast as Python receives rows.
        """
        ((ids,),) = self._rows("SELECT group_concat(rowid) FROM words WHERE words MATCH ?", expression)
        return ids or ""

    def _entries_of_ids(self, ids: list[int]) -> list[dict[str, Any]]:
        """Returns the entries with these ids, in the order of the ids."""
        by_id: dict[int, dict[str, Any]] = {}
        # The ids are passed in parts, because SQLite limits the number of variables.
        for start in range(0, len(ids), _MAX_IDS):
            part = ids[start : start + _MAX_IDS]
            marks = ", ".join("?" for _ in part)
            rows = self._shown(f"SELECT * FROM dataset WHERE id IN ({marks})", *part)
            by_id |= {row["id"]: row for row in rows}
        if len(by_id) != len(ids):
            raise self._damaged("rows are missing")
        return [by_id[i] for i in ids]

    def _shown(self, query: str, *arguments: Any) -> list[dict[str, Any]]:
        """Returns rows of the table ``dataset`` with the values that tokenized forms inherit."""
        rows = self._all(query, *arguments)
        parents = {row["path"]: row for row in rows}
        missing = list({row["parent"] for row in rows} - {None, *parents})
        for start in range(0, len(missing), _MAX_IDS):
            part = missing[start : start + _MAX_IDS]
            marks = ", ".join("?" for _ in part)
            of_parents = self._all(f"SELECT * FROM dataset WHERE path IN ({marks})", *part)
            parents |= {row["path"]: row for row in of_parents}
        return [with_inherited(row, parents.get(row["parent"])) for row in rows]

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
    """Returns a value that distinguishes a file from its replacement; ``None`` if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _bindable(text: str) -> str:
    """Returns a text that SQLite accepts. A text with halves of surrogate pairs is in no index."""
    return text.encode(errors="replace").decode()


@contextmanager
def _existing(path: Path) -> Iterator[Index | None]:
    """Yields the index at ``path``; ``None`` if there is none, or it is damaged."""
    try:
        index = Index(path) if path.exists() else None
    except PacktokError:
        index = None
    try:
        yield index if index is not None and index.is_complete() else None
    finally:
        if index is not None:
            index.close()

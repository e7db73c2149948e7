"""Facts that the data of a dataset itself provides: format, columns, files, documents and checksums."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.catalog.corpora import corpus_input, separate_corpora
from packtok.catalog.schema import DatasetMetadata
from packtok.progress import Progress

# Counts the documents of a folder or file whose texts are in a field: the report of `packtok.count`.
Count = Callable[[Path, str], dict[str, Any]]


@dataclass(frozen=True)
class Guesses:
    """The facts that are known before all texts of a dataset are read."""

    path: str
    format: str
    num_files: int
    source_bytes: int
    fields: tuple[str, ...]
    """Columns or fields that contain texts in the first file."""
    content_field: str | None
    """The field that probably contains the documents' texts; ``None`` if there are no fields."""
    ignored: tuple[Mapping[str, str], ...] = ()
    """Files that are not read, each with ``path`` and ``reason``."""


@dataclass(frozen=True)
class Estimate:
    """The number of documents, counted for a limited time; an estimate is rounded to three digits."""

    documents: int
    is_exact: bool


def guess(path: str, ignore: Sequence[str] = ()) -> Guesses:
    """Returns the facts about the texts of a folder or file that are known before all texts are read.

    ``ignore`` are globs of files that are no data.

    Raises:
        PacktokError: If packtok cannot read the data.
        OSError: If the system cannot.
    """
    description = _packtok.describe_corpus([path], None, ignore)
    fields = tuple(description["columns"])
    usual = (name for name in ("text", "content", "raw_content") if name in fields)
    content_field = next(usual, fields[0] if fields else None)
    return Guesses(
        path,
        description["format"],
        description["num_sources"],
        description["source_bytes"],
        fields,
        content_field,
        tuple(description["ignored"]),
    )


def estimated(
    guesses: Guesses, count: Callable[[Path, str, Progress], Any], seconds: float
) -> Estimate | None:
    """Counts documents for a limited time, and estimates the rest by the bytes that were read.

    Args:
        guesses: What the data tells.
        count: Counts the documents of a folder or file whose texts are in a field.
        seconds: When to stop.

    Returns:
        The number, or ``None`` if nothing was counted in that time.
    """
    last: dict[str, int] = {}
    end = time.monotonic() + seconds

    def on_progress(counts: dict[str, int]) -> None:
        last.update(counts)
        if time.monotonic() > end:
            raise _OutOfTimeError

    try:
        counted = count(Path(guesses.path), guesses.content_field or "text", on_progress)
    except _OutOfTimeError:
        if not last["documents"] or not last["bytes_read"]:
            return None
        number = last["documents"] * last["total_bytes"] // last["bytes_read"]
        # More digits would suggest an exact number.
        return Estimate(round(number, min(0, 3 - len(str(number)))), is_exact=False)
    return Estimate(counted["total"]["documents"], is_exact=True)


class _OutOfTimeError(Exception):
    """Stops a count."""


def described(metadata: DatasetMetadata, ignore: Sequence[str] = ()) -> dict[str, Any]:
    """Returns format, bytes and fields of a dataset, without reading its documents."""
    description = _packtok.describe_corpus([str(metadata.dataset_folder)], None, ignore)
    return {
        "format": description["format"],
        "source_bytes": description["source_bytes"],
        "fields": description["columns"],
    }


def surveyed(metadata: DatasetMetadata, count: Count, ignore: Sequence[str] = ()) -> dict[str, Any]:
    """Reads all texts of a dataset, and returns its files with their checksums and documents."""
    details: dict[str, Any] = {"documents": 0, "text_bytes": 0, "source_bytes": 0, "fields": [], "files": []}
    per_corpus = {}
    undivided: list[str | None] = [None]
    for corpus in separate_corpora(metadata) or undivided:
        folder = corpus_input(metadata, corpus)
        counted = count(folder, metadata.content_field)
        columns = _packtok.describe_corpus([str(folder)], None, ignore)["columns"]
        details["fields"] += [name for name in columns if name not in details["fields"]]
        files = [_file(source, metadata.dataset_folder) for source in counted["sources"]]
        sums = {
            "documents": counted["total"]["documents"],
            "text_bytes": counted["total"]["text_bytes"],
            "source_bytes": sum(file["bytes"] for file in files),
        }
        if corpus is not None:
            per_corpus[corpus] = sums
        details["format"] = counted["sources"][0]["format"]
        details["files"] += files
        for name, value in sums.items():
            details[name] += value
    return details | ({"corpora": per_corpus} if per_corpus else {})


def _file(source: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    base = folder if folder.is_dir() else folder.parent
    return {
        "path": Path(os.path.relpath(source["path"], base)).as_posix(),
        "bytes": source["source_bytes"],
        "crc32c": None if source["crc32c"] is None else f"{source['crc32c']:08x}",
        "documents": source["documents"],
    }


def pattern_of(content_field: str) -> str:
    """Returns the jq pattern of a metadata file's content field, such as ``.text`` for ``text``."""
    names = content_field.split(".")
    return "".join(
        f".{name}" if name.isidentifier() and name.isascii() else f".{json.dumps(name)}" for name in names
    )

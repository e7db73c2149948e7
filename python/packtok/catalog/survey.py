"""What the data of a dataset itself tells: its format, columns, files, documents and checksums."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.catalog.corpora import corpus_input, separate_corpora
from packtok.catalog.questions import Answers
from packtok.catalog.schema import DatasetMetadata

# Counts the documents of a folder or file whose texts are in a field: the report of `packtok.count`.
Count = Callable[[Path, str], dict[str, Any]]


def guess(answers: Answers) -> None:
    """Adds what the data itself tells, if it is text that packtok can read."""
    path = Path(answers["dataset_path"])
    if answers["data_content"] != "text" or not path.exists():
        return
    try:
        columns = _packtok.describe_corpus([str(path)])["columns"]
    except (_packtok.PacktokError, OSError, ValueError):
        # The error is reported when the texts are read.
        return
    if columns:
        answers["guessed_field"] = next(
            (name for name in ("text", "content", "raw_content") if name in columns), columns[0]
        )


def described(metadata: DatasetMetadata) -> dict[str, Any]:
    """Returns format and bytes of a dataset, without reading its documents."""
    found = _packtok.describe_corpus([str(metadata.dataset_folder)])
    return {"format": found["format"], "source_bytes": found["source_bytes"]}


def surveyed(metadata: DatasetMetadata, count: Count) -> dict[str, Any]:
    """Reads all texts of a dataset, and returns its files with their checksums and documents."""
    found: dict[str, Any] = {"documents": 0, "text_bytes": 0, "source_bytes": 0, "files": []}
    per_corpus = {}
    whole: list[str | None] = [None]
    for corpus in separate_corpora(metadata) or whole:
        folder = corpus_input(metadata, corpus)
        counted = count(folder, metadata.content_field)
        files = [_file(one, metadata.dataset_folder) for one in counted["sources"]]
        sums = {
            "documents": counted["total"]["documents"],
            "text_bytes": counted["total"]["text_bytes"],
            "source_bytes": sum(one["bytes"] for one in files),
        }
        if corpus is not None:
            per_corpus[corpus] = sums
        found["format"] = counted["sources"][0]["format"]
        found["files"] += files
        for name, value in sums.items():
            found[name] += value
    return found | ({"corpora": per_corpus} if per_corpus else {})


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

"""Reads the metadata files below a base directory: each becomes an entry, which is a row of the index."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from packtok.catalog.discovery import Described, dataset_name
from packtok.catalog.schema import load_details, load_metadata
from packtok.errors import ConfigError

# The largest integer of SQLite.
_MAX_INTEGER = (1 << 63) - 1
# Files that are named after their folders.
_USUAL_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model")
# The descriptions that packtok and tatm write.
_GENERATED = re.compile(r"\s*(Tokenized dataset created (with|using) \w+)?\s*")
# A longer description is not repeated in the entry of each tokenized form.
_MAX_INHERITED_CHARS = 64 << 10


@dataclass(frozen=True)
class Broken:
    """A metadata file that cannot be read."""

    path: str
    modified_ns: int
    bytes: int
    reason: str


# Returns the entry of a metadata file that an earlier run read and that has not changed since.
Known = Callable[[Described], dict[str, Any] | Broken | None]


def entries_of(
    base: Path, files: Iterable[Described], known: Known = lambda _: None
) -> Iterator[dict[str, Any] | Broken]:
    """Yields an entry for each of the metadata ``files`` below ``base``, from ``known`` if it is there."""
    names: dict[str, str] = {}
    for described in files:
        entry = known(described)
        if entry is None:
            entry = _read(base, described)
        if isinstance(entry, dict):
            names[described.path] = entry["own_name"]
            parent_name = None if described.parent is None else names.get(described.parent)
            entry = {**entry, "name": dataset_name(described, entry["own_name"], parent_name)}
        yield entry


def with_inherited(entry: dict[str, Any], parent: dict[str, Any] | None) -> dict[str, Any]:
    """Returns the entry of a tokenized form with the facts that only its raw dataset describes.

    Its own date is that of tokenizing, and its own description is usually the same for all forms.
    """
    if parent is None:
        return entry
    inherited = {
        "language": entry["language"] or parent["language"],
        "license": entry["license"] or parent["license"],
        "date": parent["date"] or entry["date"],
    }
    if len(parent["entry"]) <= _MAX_INHERITED_CHARS:
        metadata = json.loads(entry["entry"])
        if is_generated(metadata["description"]):
            metadata["description"] = json.loads(parent["entry"])["description"]
            inherited["entry"] = json.dumps(metadata, ensure_ascii=False)
    return {**entry, **inherited}


def is_generated(description: str) -> bool:
    """Returns whether a description is empty, or one that packtok and tatm write themselves."""
    return _GENERATED.fullmatch(description) is not None


def tokenizer_name(text: str) -> str:
    """Returns the name of a tokenizer that metadata name by a path of the machine that packed."""
    suffixes = (".json", ".model")
    if not text.startswith(("/", ".", "~")) and not text.endswith(suffixes):
        return text
    path = PurePosixPath(text)
    is_usual = path.name in _USUAL_TOKENIZER_FILES and path.parent.name not in ("", "..", "~")
    name = path.parent.name if is_usual else path.name
    return next((name.removesuffix(suffix) for suffix in suffixes if name.endswith(suffix)), name) or text


def _read(base: Path, described: Described) -> dict[str, Any] | Broken:
    modified_ns = described.modified_ns
    try:
        entry = _entry(base / described.path, described)
        # A file name that is not UTF-8, or half of a surrogate pair in JSON, cannot be stored in a database.
        json.dumps(entry, ensure_ascii=False).encode()
    except OSError as error:
        # The entry gets no time, so the file is read again: the next read may succeed although the file is
        # the same.
        modified_ns, reason = 0, str(error)
    except ConfigError as error:
        reason = str(error)
    except UnicodeEncodeError as error:
        reason = f"{base / described.path}: {error.object[error.start]!a} is not a character"
    else:
        return entry
    path, reason = (text.encode(errors="backslashreplace").decode() for text in (described.path, reason))
    return Broken(path, modified_ns, described.bytes, reason)


def _entry(file: Path, described: Described) -> dict[str, Any]:
    metadata = load_metadata(file)
    details = load_details(file)
    info = metadata.tokenized_info
    return {
        "path": described.path,
        "modified_ns": described.modified_ns,
        "bytes": described.bytes,
        "own_name": metadata.name,
        "context": described.context,
        "parent": described.parent,
        "content": metadata.data_content,
        "tokenizer": None if info is None else tokenizer_name(info.tokenizer),
        "documents": _count(details.get("documents")),
        "tokens": _count(details.get("tokens")),
        "language": _text(details.get("language")),
        "license": _text(details.get("license")),
        "date": metadata.date_downloaded,
        "entry": json.dumps(metadata.to_dict(), ensure_ascii=False),
    }


def _count(value: Any) -> int | None:
    """Returns a number of documents or tokens; ``None`` for anything else, because the file is unchecked."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_INTEGER
    return value if is_count else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None

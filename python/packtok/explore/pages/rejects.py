"""The documents that packing rejected: the first lines of the files that list them, with place and reason."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from packtok._packtok import REJECTS_SUFFIX
from packtok.explore.files import NotServedError, Root

MAX_REJECTS_SHOWN = 20
# A line has a path and a reason. Longer ones than this are not shown.
_MAX_BYTES = 64 << 10
_MAX_CHARS = 300
# What the number of a record is called, by the kind of its file.
_PLACES = {"line": "line", "row": "row", "document": "document", "line_in_shard": "line of the shard"}


@dataclass(frozen=True)
class Reject:
    """A document that was rejected."""

    source: str
    place: str
    reason: str


@dataclass(frozen=True)
class Rejects:
    """The first rejected documents of some token files."""

    first: list[Reject]
    has_more: bool
    files: list[str]
    """The names of the files that list them, below the folder."""


def rejects_of(root: Root, names: Sequence[str]) -> Rejects | None:
    """Returns the documents that were rejected for token files; ``None`` if no file lists them."""
    listings = []
    first: list[Reject] = []
    has_more = False
    for name in names:
        try:
            file = root.open(f"{name}{REJECTS_SUFFIX}")
        except NotServedError:
            continue
        listings.append(file.name)
        *lines, rest = file.part(0, _MAX_BYTES).split(b"\n")
        shown = [reject for line in lines if (reject := _reject(line)) is not None]
        has_more |= bool(rest) or len(first) + len(shown) > MAX_REJECTS_SHOWN or len(shown) < len(lines)
        first += shown[: MAX_REJECTS_SHOWN - len(first)]
    return Rejects(first, has_more, listings) if listings else None


def _reject(line: bytes) -> Reject | None:
    """Returns a line of the file; ``None`` if it is not as packtok writes it."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    numbers = [f"{text} {record[key]:,}" for key, text in _PLACES.items() if isinstance(record.get(key), int)]
    if isinstance(record.get("offset_bytes"), int):
        numbers.append(f"byte {record['offset_bytes']:,}")
    return Reject(_text(record.get("source")), ", ".join(numbers), _text(record.get("reason")))


def _text(value: object) -> str:
    text = value if isinstance(value, str) else ""
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]} …"

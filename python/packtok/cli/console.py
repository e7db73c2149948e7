"""Output of the commands: results to stdout, remarks and errors to stderr; untrusted text is escaped."""

import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from packtok.cli import standard_streams
from packtok.config.redact import Redactor
from packtok.remedies import worded_here

# Controls, formatting characters (which can reorder or hide text), line separators, surrogates, private use.
_ESCAPED_CATEGORIES = {"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"}

# The most files that are listed in a line.
_FILES_SHOWN = 5

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def printable(text: str, *, keep: str = "") -> str:
    """Returns ``text`` with everything that controls a terminal escaped; ``keep`` lists exceptions."""
    return "".join(char if char in keep or not _acts_on_terminal(char) else _escaped(char) for char in text)


def _acts_on_terminal(char: str) -> bool:
    return not (" " <= char <= "~") and unicodedata.category(char) in _ESCAPED_CATEGORIES


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def remark(text: str) -> None:
    """Prints one line to stderr, after the program's name. If stderr fails, the work continues."""
    try:
        print(f"packtok: {printable(worded_here(text))}", file=sys.stderr, flush=True)
    except OSError:
        standard_streams.discard(sys.stderr)


def remark_unless(quiet: bool) -> Callable[[str], None]:
    """Returns `remark`, or a function that prints nothing if ``quiet``."""
    return (lambda _: None) if quiet else remark


def remarks(texts: Iterable[str]) -> None:
    """Prints each text as a warning."""
    for text in texts:
        remark(f"warning: {text}")


def table(rows: Iterable[tuple[str, str]]) -> None:
    """Prints two columns. The second is never truncated, so piped output is complete."""
    lines = list(rows)
    width = max((len(name) for name, _ in lines), default=0)
    for name, text in lines:
        print(f"{name:<{width}}  {printable(text)}".rstrip())


def as_json(result: Any) -> None:
    """Prints a result as one JSON document, in ASCII, so that it cannot control the terminal."""
    print(json.dumps(result, indent=2), flush=True)


def count(number: int) -> str:
    """Returns ``number`` with thousands separators."""
    return f"{number:,}"


def ignored(files: Sequence[Mapping[str, str]]) -> str:
    """Returns the number of files that were not read, and the first ones with the reasons."""
    entries = [f"{file['path']} ({file['reason']})" for file in files]
    return f"{len(files):,}: {listed(entries, len(files))}"


def listed(names: Sequence[str], number: int) -> str:
    """Returns the first of ``number`` names, and how many more there are."""
    more = f" and {number - _FILES_SHOWN:,} more" if number > _FILES_SHOWN else ""
    return f"{', '.join(names[:_FILES_SHOWN])}{more}"


def size(num_bytes: int) -> str:
    """Returns a readable size: exact in bytes, and rounded in a larger unit."""
    if num_bytes < 1000:
        return f"{num_bytes} bytes"
    scale, unit = next(pair for pair in _UNITS if num_bytes >= pair[0])
    return f"{num_bytes / scale:.1f} {unit} ({num_bytes:,} bytes)"


def message(error: BaseException) -> str:
    """Returns the messages of an error and of its causes, joined by colons, without secrets."""
    parts: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        text = _text(cause)
        if text and not any(text in part for part in parts):
            parts.append(text)
        cause = cause.__cause__
    return Redactor()(": ".join(parts))


def with_notes(text: str, error: BaseException) -> str:
    """Returns ``text`` and the notes of an error, joined by semicolons."""
    return "; ".join([text, *getattr(error, "__notes__", ())])


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{_name(error.filename)}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _name(filename: str | bytes | int) -> str:
    return filename.decode("utf-8", "backslashreplace") if isinstance(filename, bytes) else str(filename)

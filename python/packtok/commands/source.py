"""Implements `packtok source check`: checks a source plug-in for its author."""

import time
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from packtok.plugins.find import find_plugin
from packtok.plugins.plugin import Plugin

MAX_DIFFERENCES = 20


def check_source(
    source: str, corpora: str | Sequence[str], *, field: str = ".text", max_documents: int | None = None
) -> dict[str, Any]:
    """Runs a source plug-in several times, and checks that it is what packtok relies on.

    The documents must be the same every time. With the parameter ``start``, it must leave out that number of
    documents; this is checked at the start, in the middle and at the end of each part. Documents must be
    texts, and parts must have distinct names.

    Args:
        source: The plug-in, as for `packtok.pack`.
        corpora: The corpora to read.
        field: As for `packtok.pack`, for the plug-in ``datasets``.
        max_documents: Number of documents of each part to check. Default: all.

    Returns:
        A dict with ``source``, ``is_resumable``, ``parts`` (for each, ``corpus``, ``part``, ``documents``,
        ``bytes``, ``bad`` and ``seconds`` of one run), the sums ``documents`` and ``bytes``, and ``faults``,
        a list of sentences that is empty if the plug-in is right.

    Raises:
        ConfigError: If there is no such plug-in.
    """
    names = [corpora] if isinstance(corpora, str) else list(corpora)
    plugin = find_plugin(source, dict.fromkeys(names, field))
    check = _Check(plugin, max_documents)
    for corpus in names:
        check.corpus(corpus)
    return {
        "source": plugin.name,
        "is_resumable": plugin.is_resumable,
        "documents": sum(part["documents"] for part in check.parts),
        "bytes": sum(part["bytes"] for part in check.parts),
        "parts": check.parts,
        "faults": _shortened(check.faults),
    }


def _shortened(faults: list[str]) -> list[str]:
    left_out = len(faults) - MAX_DIFFERENCES
    return [*faults[:MAX_DIFFERENCES], *([f"and {left_out:,} more"] if left_out > 0 else [])]


class _Check:
    """The results so far."""

    def __init__(self, plugin: Plugin, max_documents: int | None) -> None:
        self._plugin = plugin
        self._max_documents = max_documents
        self.parts: list[dict[str, Any]] = []
        self.faults: list[str] = []

    def corpus(self, corpus: str) -> None:
        """Checks the list of parts of a corpus, and each part."""
        try:
            parts, again = self._plugin.parts(corpus), self._plugin.parts(corpus)
        except Exception as error:
            self.faults.append(f"{corpus}: listing its parts fails: {_message(error)}")
            return
        if parts != again:
            self.faults.append(f"{corpus}: its parts differ from one call to the next: {parts} and {again}")
        wrong = [part for part in parts or () if not isinstance(part, str) or not part]
        if parts is not None and (wrong or not parts or len(set(parts)) < len(parts)):
            self.faults.append(f"{corpus}: its parts are {parts}; expected distinct names, at least one")
            return
        for part in [None] if parts is None else parts:
            self._part(corpus, part)

    def _part(self, corpus: str, part: str | None) -> None:
        place = corpus if part is None else f"{corpus}/{part}"
        started = time.monotonic()
        try:
            # Hashes are kept instead of texts, so that a large corpus can be checked.
            first = [_digest(document) for document in self._read(corpus, part, 0)]
            seconds = time.monotonic() - started
            second = [_digest(document) for document in self._read(corpus, part, 0)]
        except Exception as error:
            self.faults.append(f"{place}: fails: {_message(error)}")
            return
        bad = [i for i, (_, _, kind) in enumerate(first) if kind is not None]
        self.parts.append(
            {
                "corpus": corpus,
                "part": part,
                "documents": len(first),
                "bytes": sum(num_bytes for _, num_bytes, _ in first),
                "bad": len(bad),
                "seconds": seconds,
            }
        )
        if bad:
            self.faults.append(f"{place}: document {bad[0] + 1} is {first[bad[0]][2]}; expected a text")
        self._compare(f"{place}: a second run yields", first, second)
        if self._plugin.is_resumable:
            self._starts(corpus, part, place, first)

    def _starts(self, corpus: str, part: str | None, place: str, first: list[Any]) -> None:
        num = len(first)
        for start in sorted({0, min(1, num), num // 2, max(num - 1, 0), num}):
            try:
                digests = [_digest(document) for document in self._read(corpus, part, start)]
            except Exception as error:
                self.faults.append(f"{place}: with start={start} it fails: {_message(error)}")
                continue
            self._compare(f"{place}: with start={start} it yields", first[start:], digests, start)

    def _compare(self, subject: str, expected: list[Any], digests: list[Any], start: int = 0) -> None:
        for i, (expected_digest, digest) in enumerate(zip(expected, digests, strict=False)):
            if expected_digest != digest:
                self.faults.append(f"{subject} another document {start + i + 1}")
                return
        if len(expected) != len(digests):
            self.faults.append(f"{subject} {len(digests):,} documents; expected {len(expected):,}")

    def _read(self, corpus: str, part: str | None, start: int) -> Iterable[Any]:
        stop = None if self._max_documents is None else max(self._max_documents - start, 0)
        return islice(self._plugin.open(corpus, part, start), stop)


def _digest(document: Any) -> tuple[int, int, str | None]:
    """Returns a hash and the bytes of a document, and the type of a document that is not a text."""
    if isinstance(document, str):
        data = document.encode("utf-8", "surrogatepass")
        return hash(data), len(data), _utf8_fault(data)
    if isinstance(document, bytes):
        return hash(document), len(document), _utf8_fault(document)
    return 0, 0, "None" if document is None else f"of type {type(document).__name__}"


def _utf8_fault(data: bytes) -> str | None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start + 1}"
    return None


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"

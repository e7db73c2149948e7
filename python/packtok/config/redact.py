"""Keeps secrets out of everything that is shown or written.

Two kinds of text are secret: values that a config took from the environment, and the credentials and query
strings of URLs. The former are replaced by the interpolation that fetched them, the latter by ``***``.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from packtok.errors import rewrite_exception

# Shorter values, such as a rank or "yes", are not secret, and replacing them would garble numbers and names.
MIN_SECRET_CHARS = 4

_URL = re.compile(
    # Everything up to the last @ counts as credentials, because passwords may contain any character.
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^\s'\"<>]*@)?(?P<rest>[^\s?#'\"<>]*)"
    # Trailing punctuation belongs to the sentence that contains the URL.
    r"(?P<query>[?#](?:[^\s'\"<>]*[^\s'\"<>,:;.)])?)?"
)


@dataclass(frozen=True)
class Redactor:
    """Replaces the given secrets, longest first, and the secret parts of any URL."""

    pairs: tuple[tuple[str, str], ...] = ()
    _ordered: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ordered = sorted(dict(self.pairs).items(), key=lambda pair: (-len(pair[0]), pair))
        object.__setattr__(
            self, "_ordered", tuple(pair for pair in ordered if len(pair[0]) >= MIN_SECRET_CHARS)
        )

    def __repr__(self) -> str:
        return f"Redactor({len(self._ordered)} secrets)"

    def __call__(self, text: str) -> str:
        """Returns ``text`` without the secrets."""
        for secret, replacement in self._ordered:
            text = text.replace(secret, replacement)
        return _URL.sub(_public_url, text)

    def tree(self, value: Any) -> Any:
        """Returns ``value`` with every string in its lists and dicts redacted."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            return {self.tree(key): self.tree(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.tree(item) for item in value)
        return value

    def secrets(self, texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Returns all (secret, replacement) pairs, including those of URLs in ``texts``; longest first."""
        pairs = dict(self._ordered)
        for text in texts:
            for match in _URL.finditer(text):
                if (public := _public_url(match)) != match.group():
                    pairs[match.group()] = public
        return tuple(sorted(pairs.items(), key=lambda pair: (-len(pair[0]), pair)))

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Redacts the text of any exception that leaves the block, and of its causes."""
        try:
            yield
        except BaseException as error:
            rewrite_exception(error, self.tree)
            raise


def _public_url(match: re.Match[str]) -> str:
    user = "***@" if match["user"] else ""
    return f"{match['scheme']}{user}{match['rest']}"

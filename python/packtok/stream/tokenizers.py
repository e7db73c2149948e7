"""Tokenizers that a stream accepts, and their special tokens."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from packtok._packtok import Tokenizer
from packtok.stream import functions

__all__ = ["Tokenized", "special_ids", "tokenizer_of"]


def tokenizer_of(tokenizer: Any) -> Tokenizer | None:
    """The tokenizer with packtok's engine, or ``None`` for a callable."""
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    if isinstance(tokenizer, str | os.PathLike):
        return Tokenizer.from_pretrained(tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return Tokenizer(
            backend.to_str().encode(), getattr(tokenizer, "name_or_path", "") or "tokenizer.json"
        )
    if not callable(tokenizer):
        raise TypeError(
            f"tokenizer is of type {type(tokenizer).__name__}, expected a tokenizer or a callable"
        )
    return None


def special_ids(tokenizer: Any) -> tuple[int | None, int | None]:
    """The ids of BOS and EOS."""
    if isinstance(tokenizer, str | os.PathLike):
        tokenizer = Tokenizer.from_pretrained(tokenizer)
    if isinstance(tokenizer, Tokenizer):
        eos = tokenizer.eos_token
        found = None, None if eos is None else tokenizer.token_to_id(eos)
    else:
        found = getattr(tokenizer, "bos_token_id", None), getattr(tokenizer, "eos_token_id", None)
    if found == (None, None):
        raise ValueError(f"{tokenizer!r} has neither a BOS nor an EOS token; add their ids with add_bos_eos")
    return found


class Tokenized:
    """Calls a tokenizer that is not packtok's."""

    def __init__(
        self, tokenizer: Callable[..., Mapping[str, Any]], options: dict[str, Any], column: str
    ) -> None:
        self._tokenizer, self._options, self._column = tokenizer, options, column
        self.__qualname__ = functions.name_of(tokenizer)

    def __call__(self, sample: dict[str, Any]) -> dict[str, Any]:
        """Returns a copy of the sample with the tokenizer's columns."""
        return {**sample, **self._tokenizer(sample[self._column], **self._options)}

"""Tokenizers that a stream accepts, and their special tokens."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from packtok._packtok import Tokenizer
from packtok.stream import functions

__all__ = ["Tokenized", "check_without_effect", "form_of", "special_ids", "tokenizer_of"]

# The forms of tokens in the core, by return_tensors.
_FORMS = {None: "list", "pt": "tensor_row", "np": "array_row"}
# Values of arguments of Hugging Face's tokenizers that do not change what they return for one text.
_WITHOUT_EFFECT: dict[str, tuple[Any, ...]] = {
    "padding": (False, None, "do_not_pad"),
    "stride": (0,),
    "is_split_into_words": (False,),
    "pad_to_multiple_of": (None,),
    "padding_side": (None, "left", "right"),
    "return_token_type_ids": (False, None),
    "return_overflowing_tokens": (False,),
    "return_special_tokens_mask": (False,),
    "return_offsets_mapping": (False,),
    "return_length": (False,),
    "verbose": (False, True),
}


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


def form_of(return_tensors: Any) -> str:
    """Returns the form of the tokens for ``return_tensors`` of a tokenizer.

    Raises:
        ValueError: If it is not known.
    """
    if getattr(return_tensors, "value", return_tensors) not in _FORMS:
        raise ValueError(f"return_tensors is {return_tensors!r}, expected 'pt', 'np' or None")
    return _FORMS[getattr(return_tensors, "value", return_tensors)]


def check_without_effect(arguments: Mapping[str, Any]) -> None:
    """Checks that arguments of a tokenizer do not change what packtok's engine returns.

    Raises:
        ValueError: If one does, or is unknown; names it.
    """
    for name, value in sorted(arguments.items()):
        if not any(value is known or value == known for known in _WITHOUT_EFFECT.get(name, ())):
            raise ValueError(
                f"tokenizer_kwargs has {name}={value!r}, which packtok's engine does not support; leave it "
                "out, or give a callable"
            )


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

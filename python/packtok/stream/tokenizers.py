"""Tokenizers that a stream accepts, and their special tokens."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from packtok._packtok import Tokenizer
from packtok.choices import check_choice
from packtok.stream import functions
from packtok.tokenizer.find import find_tokenizer

__all__ = ["Tokenized", "check_without_effect", "form_of", "special_ids", "tokenizer_of"]

# The forms of tokens in the core, by return_tensors.
_FORMS = {"pt": "tensor_row", "np": "array_row", None: "list"}
# Values of arguments of Hugging Face's tokenizers that do not affect the result for one text.
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


def tokenizer_of(tokenizer: Any, *, add_special_tokens_from_config: bool = False) -> Tokenizer | None:
    """Returns the tokenizer with packtok's engine, or ``None`` for a callable."""
    if isinstance(tokenizer, str | os.PathLike):
        return Tokenizer.from_pretrained(
            tokenizer, add_special_tokens_from_config=add_special_tokens_from_config
        )
    if add_special_tokens_from_config:
        raise ValueError(
            "add_special_tokens_from_config is for the path or name of a tokenizer, found "
            f"{type(tokenizer).__name__}; load it with packtok.Tokenizer.from_pretrained"
        )
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
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
    name = getattr(return_tensors, "value", return_tensors)
    check_choice("return_tensors", name, tuple(_FORMS))
    return _FORMS[name]


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
    """Returns the ids of BOS and EOS.

    The BOS of packtok's tokenizers is the one that files next to the tokenizer name, or the special token
    that the tokenizer itself adds at the start.
    """
    bos = eos = None
    if isinstance(tokenizer, str | os.PathLike):
        named = find_tokenizer(os.fspath(tokenizer))
        bos, eos, tokenizer = named.bos_token, named.eos_token, named.tokenizer
    if isinstance(tokenizer, Tokenizer):
        bos, eos = bos or tokenizer.bos_token, eos or tokenizer.eos_token
        bos_id = _added_bos(tokenizer) if bos is None else tokenizer.token_to_id(bos)
        ids = bos_id, None if eos is None else tokenizer.token_to_id(eos)
    else:
        ids = getattr(tokenizer, "bos_token_id", None), getattr(tokenizer, "eos_token_id", None)
    if ids == (None, None):
        raise ValueError(f"{tokenizer!r} has neither a BOS nor an EOS token; add their ids with add_bos_eos")
    return ids


def _added_bos(tokenizer: Tokenizer) -> int | None:
    ids, bare = (tokenizer.encode("a", add_special_tokens=adds).tolist() for adds in (True, False))
    special = {id for _, id in tokenizer.special_tokens}
    return ids[0] if ids and ids[0] in special and ids[:1] != bare[:1] else None


class Tokenized:
    """Calls a tokenizer that is not packtok's."""

    def __init__(
        self, tokenizer: Callable[..., Mapping[str, Any]], options: dict[str, Any], column: str
    ) -> None:
        self._tokenizer, self._options, self._column = tokenizer, options, column
        self.__qualname__ = functions.name_of(tokenizer)

    def stream_identity(self) -> dict[str, Any]:
        """Returns the record of the tokenizer and its arguments for a state."""
        return {
            "function": functions.name_of(self),
            "arguments": _described(self._tokenizer),
            "target_column": self._column,
            "tokenizer_kwargs": functions.described(self._options, contents=True),
        }

    def __call__(self, sample: dict[str, Any]) -> dict[str, Any]:
        """Returns a copy of the sample with the tokenizer's columns."""
        return {**sample, **self._tokenizer(sample[self._column], **self._options)}


def _described(tokenizer: Any) -> str:
    """Returns a record of a tokenizer: its fingerprint, vocabulary, or arguments and attributes."""
    fingerprint = getattr(tokenizer, "fingerprint", None)
    if isinstance(fingerprint, str):
        return fingerprint
    if hasattr(tokenizer, "get_vocab"):
        special = getattr(tokenizer, "special_tokens_map", {})
        return functions.described([sorted(tokenizer.get_vocab().items()), special], contents=True)
    return functions.described_function(tokenizer, contents=True)

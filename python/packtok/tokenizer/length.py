"""How Transformers truncates and pads texts: the side, and the token of padding.

A key of `tokenizer_config.json` takes precedence over the section of `tokenizer.json`.
"""

from collections.abc import Mapping
from typing import Any

from packtok.errors import ConfigError
from packtok.tokenizer.find import TokenizerLookup
from packtok.tokenizer.neighbours import Side, content_of, section_of_file

# Classes of Transformers 4 that pad on the left unless a file names another side.
_PAD_LEFT = ("CodeLlamaTokenizer", "CohereTokenizer", "GemmaTokenizer", "LlamaTokenizer", "XLNetTokenizer")
_DIRECTIONS: dict[Any, Side] = {"Left": "left", "Right": "right"}


def truncation_side(lookup: TokenizerLookup) -> Side:
    """Returns the side at which a tokenizer truncates texts.

    Raises:
        TokenizerError: If its `tokenizer_config.json` names another one than left and right.
    """
    named = lookup.neighbours.side("truncation_side")
    return named or _DIRECTIONS.get(section_of_file(lookup.tokenizer, "truncation").get("direction"), "right")


def padding(lookup: TokenizerLookup, length: int, special_tokens: object) -> dict[str, Any]:
    """Returns how a tokenizer pads texts to ``length`` ids, for the compiled module.

    Args:
        lookup: The tokenizer.
        length: Number of ids of padded texts.
        special_tokens: Tokens by role, of which ``pad_token`` takes precedence, or their list.

    Raises:
        ConfigError: If the tokenizer has no token for it.
        TokenizerError: If its `tokenizer_config.json` names another side than left and right.
    """
    section = section_of_file(lookup.tokenizer, "padding")
    named = special_tokens.get("pad_token") if isinstance(special_tokens, Mapping) else None
    token = named or lookup.neighbours.pad_token or content_of(section.get("pad_token"))
    id = None if token is None else lookup.tokenizer.token_to_id(token)
    if id is None:
        problem = "names no pad_token" if token is None else f"does not have its pad_token {token!r}"
        raise ConfigError(
            f"--padding: tokenizer.config.padding is 'max_length', but {lookup.tokenizer.name} {problem}; "
            "name one of its tokens as pad_token in tokenizer.config.special_tokens"
        )
    side = lookup.neighbours.side("padding_side") or _DIRECTIONS.get(section.get("direction"))
    return {"length": length, "id": id, "side": side or _side_of_class(lookup)}


def _side_of_class(lookup: TokenizerLookup) -> Side:
    """Returns the default of the class that `tokenizer_config.json` names."""
    name = lookup.neighbours.config.get("tokenizer_class")
    return "left" if isinstance(name, str) and name.removesuffix("Fast") in _PAD_LEFT else "right"

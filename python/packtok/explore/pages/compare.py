"""The same text under other tokenizers: those that are built in, and those next to files below the folder."""

from dataclasses import dataclass

from packtok._packtok import Tokenizer
from packtok.errors import TokenizerError
from packtok.explore.files import NotServedError
from packtok.explore.html.tokens import Piece, pieces_of
from packtok.explore.site import Site

_MAX_BELOW = 30


@dataclass(frozen=True)
class Comparison:
    """A text as the tokens of a tokenizer, or the reason why there are none."""

    name: str
    pieces: list[Piece]
    reason: str = ""


@dataclass(frozen=True)
class Count:
    """How many tokens a text has under a tokenizer."""

    name: str
    tokens: int | None
    bytes_per_token: float | None
    is_own: bool = False
    reason: str = ""


def tokenizer_names(site: Site) -> dict[str, str]:
    """Returns the tokenizers to compare with: a value for the parameter, and the name to show."""
    below = {} if site.catalog is None else site.catalog.tokenizers(_MAX_BELOW)
    built_in = {name: name for name in Tokenizer.builtin_names()}
    return built_in | {f"file:{path}": name for path, name in below.items()}


def compared(site: Site, key: str, text: str, special_tokens_in_text: str) -> Comparison:
    """Returns a text as tokens of the tokenizer that a parameter names.

    Raises:
        NotServedError: If the parameter names none.
        TokenizerError: If the tokenizer cannot be loaded or refuses the text.
    """
    tokenizer = _tokenizer(site, key)
    ids = _encoded(tokenizer, text, special_tokens_in_text)
    special = frozenset(token_id for _, token_id in tokenizer.special_tokens)
    return Comparison(tokenizer.name, pieces_of(tokenizer, ids, special))


def counts(site: Site, text: str, special_tokens_in_text: str, own: tuple[str, int]) -> list[Count]:
    """Returns the number of tokens of a text under each tokenizer, smallest first."""
    num_bytes = len(text.encode())
    rows = [Count(own[0], own[1], num_bytes / own[1] if own[1] else None, is_own=True)]
    for key, name in tokenizer_names(site).items():
        if name == own[0]:
            continue
        try:
            ids = _encoded(_tokenizer(site, key), text, special_tokens_in_text)
        except (TokenizerError, NotServedError) as error:
            rows.append(Count(name, None, None, reason=str(error)))
        else:
            rows.append(Count(name, len(ids), num_bytes / len(ids) if ids else None))
    return sorted(rows, key=lambda row: (row.tokens is None, row.tokens))


def _tokenizer(site: Site, key: str) -> Tokenizer:
    if key not in tokenizer_names(site):
        raise NotServedError(f"{key}: no such tokenizer")
    kind, _, path = key.partition("file:")
    return site.tokenizers.from_file(path) if not kind and path else site.tokenizers.builtin(key)


def _encoded(tokenizer: Tokenizer, text: str, special_tokens_in_text: str) -> list[int]:
    mode = special_tokens_in_text if special_tokens_in_text in ("parse", "text") else "text"
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False, special_tokens_in_text=mode).tolist()
    return ids

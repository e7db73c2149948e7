"""The same text under other tokenizers: those that are built in, and those next to files below the folder."""

import functools
from collections import Counter
from dataclasses import dataclass

from packtok._packtok import Tokenizer
from packtok.errors import TokenizerError
from packtok.explore.contents.catalog import TokenizerFile
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


@dataclass(frozen=True)
class Own:
    """The tokenizer of the file that is shown."""

    name: str
    fingerprint: str
    tokens: int
    """Number of its tokens in the text."""


def tokenizer_names(site: Site) -> dict[str, str]:
    """Returns the tokenizers to compare with: a value for the parameter, and the name to show."""
    built_in = {name: name for name in Tokenizer.builtin_names()}
    below = _below(site)
    numbers = Counter([*built_in, *(file.name for file in below)])
    return built_in | {
        f"file:{file.path}": file.name if numbers[file.name] == 1 else f"{file.name} ({_folder(file.path)})"
        for file in below
    }


def tokenizer_of(site: Site, key: str) -> Tokenizer:
    """Returns the tokenizer that a value of the parameter names.

    Raises:
        NotServedError: If it names none.
        TokenizerError: If the tokenizer cannot be loaded, or is not the one that its dataset records.
    """
    if key in Tokenizer.builtin_names():
        return site.tokenizers.builtin(key)
    file = next((file for file in _below(site) if key == f"file:{file.path}"), None)
    if file is None:
        raise NotServedError(f"{key}: no such tokenizer")
    tokenizer = site.tokenizers.from_file(file.path)
    if file.fingerprint not in (None, tokenizer.fingerprint):
        raise TokenizerError(
            f"{file.path} has the fingerprint {tokenizer.fingerprint}, but the dataset next to it was "
            f"tokenized with {file.fingerprint}"
        )
    return tokenizer


def other_label(key: str, name: str, own_name: str) -> str:
    """Returns the label of a tokenizer that differs from the own one of a file, which may have its name."""
    return name if name != own_name else f"{name} ({'built in' if key == name else key})"


def compared(site: Site, key: str, text: str, special_tokens_in_text: str) -> Comparison:
    """Returns a text as tokens of the tokenizer that a parameter names.

    Raises:
        NotServedError: If the parameter names none.
        TokenizerError: If the tokenizer cannot be loaded or refuses the text.
    """
    tokenizer = tokenizer_of(site, key)
    ids = _encoded(tokenizer, text, special_tokens_in_text)
    special = frozenset(token_id for _, token_id in tokenizer.special_tokens)
    return Comparison(tokenizer_names(site)[key], pieces_of(tokenizer, ids, special))


def counts(site: Site, text: str, special_tokens_in_text: str, own: Own) -> list[Count]:
    """Returns the number of tokens of a text under each tokenizer, smallest first.

    Tokenizers with the same fingerprint are one, whatever their names are.
    """
    num_bytes = len(text.encode())
    rows = [Count(own.name, own.tokens, num_bytes / own.tokens if own.tokens else None, is_own=True)]
    fingerprints = {own.fingerprint}
    for key, name in tokenizer_names(site).items():
        try:
            tokenizer = tokenizer_of(site, key)
            if tokenizer.fingerprint in fingerprints:
                continue
            fingerprints.add(tokenizer.fingerprint)
            ids = _encoded(tokenizer, text, special_tokens_in_text)
        except (TokenizerError, NotServedError) as error:
            rows.append(Count(name, None, None, reason=str(error)))
        else:
            rows.append(
                Count(other_label(key, name, own.name), len(ids), num_bytes / len(ids) if ids else None)
            )
    return sorted(rows, key=lambda row: (row.tokens is None, row.tokens))


def _below(site: Site) -> list[TokenizerFile]:
    """Returns the tokenizer files below the folder, without copies of built-in tokenizers."""
    files = [] if site.catalog is None else site.catalog.tokenizers(_MAX_BELOW)
    built_in = {*Tokenizer.builtin_names()}
    return [
        file
        for file in files
        if file.name not in built_in or file.fingerprint not in (None, builtin_fingerprint(file.name))
    ]


@functools.cache
def builtin_fingerprint(name: str) -> str:
    """Returns the fingerprint of a tokenizer that is built in."""
    return Tokenizer.builtin(name).fingerprint


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _encoded(tokenizer: Tokenizer, text: str, special_tokens_in_text: str) -> list[int]:
    mode = special_tokens_in_text if special_tokens_in_text in ("parse", "text") else "text"
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False, special_tokens_in_text=mode).tolist()
    return ids

"""Finds a tokenizer by name: a path, a built-in vocabulary or a name on the Hugging Face hub.

A path can be a `tokenizer.json`, Mistral's `tekken.json`, a SentencePiece `.model`, or a folder with one of
them.

`packtok.tokenizer.neighbours` reads the special tokens in the files next to a tokenizer. Other keys in these
files that would change ids in other libraries are reported, so that no difference is silent.
"""

import difflib
import errno
import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok._packtok import Tokenizer
from packtok.config.options import HfTokenizer
from packtok.errors import ConfigError, TokenizerError
from packtok.tokenizer.neighbours import (
    ADD_FLAG,
    NEIGHBOUR_FILES,
    NamedToken,
    Neighbours,
    added,
    content_of,
    listed,
    presence,
    read_neighbours,
    with_named_tokens,
)

TOKENIZER_FILE = "tokenizer.json"
TEKKEN_FILE = "tekken.json"
MODEL_SUFFIX = ".model"
# Common file names, which do not describe the tokenizer; the name of the folder is used instead.
_USUAL_FILES = (TOKENIZER_FILE, TEKKEN_FILE, "tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
DEFAULT_EOD = "<|endoftext|>"
# The library that reads tekken files has this token in its code, too.
TEKKEN_EOS = "</s>"

_HUB_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*(/[\w.-]+)?")

# The least similarity to a built-in name for a suggestion: "t5-base" does not mean "r50k_base".
_SIMILARITY = 0.8
# Number of tokens with differing ids that a message lists.
_NUM_IDS = 3

# Key of tokenizer_config.json, and two texts that get the same ids if and only if the key is true.
_SAME_IDS_IF_TRUE = {
    "add_prefix_space": ("a", " a"),
    "do_lower_case": ("A", "a"),
    "strip_accents": ("\u00e9", "e"),
}


@dataclass(frozen=True)
class TokenizerLookup:
    """A tokenizer and information from the files next to it."""

    tokenizer: Tokenizer
    eos_token: str | None
    warnings: tuple[str, ...]
    path: Path | None = None
    """The file that the tokenizer was read from; ``None`` for a built-in tokenizer."""
    bos_token: str | None = None
    """The BOS token, if the files next to the tokenizer name one."""
    neighbours: Neighbours = field(default_factory=lambda: Neighbours({}))
    """The files next to the tokenizer."""


def find_tokenizer(name: str, add_special_tokens_from_config: bool = False) -> TokenizerLookup:
    """Returns the tokenizer called ``name``: a path, otherwise a built-in name, otherwise a name on the hub.

    Args:
        name: The path or the name.
        add_special_tokens_from_config: Whether the tokens that the files next to it name are added to it.

    Raises:
        TokenizerError: If there is no tokenizer of that name, or it cannot be used.
        OSError: If a file cannot be read.
    """
    path = _existing_file(name)
    if path is not None:
        display_name = _name_of(Path(os.path.abspath(name)))
        return tokenizer_of_file(os.fspath(path), display_name, add_special_tokens_from_config)
    if name in Tokenizer.builtin_names():
        tokenizer = _packtok.builtin_tokenizer(name)
        return TokenizerLookup(tokenizer, DEFAULT_EOD, (), bos_token=tokenizer.bos_token)
    if Path(name).is_dir():
        raise TokenizerError(_no_tokenizer_in(Path(name)))
    if not _HUB_NAME.fullmatch(name) or name.endswith((".json", MODEL_SUFFIX)):
        raise FileNotFoundError(errno.ENOENT, "no such tokenizer file or folder", name)
    return _from_hub(name, add_special_tokens_from_config)


def tokenizer_of_file(
    path: str, name: str | None = None, add_special_tokens_from_config: bool = False
) -> TokenizerLookup:
    """Returns the tokenizer in a file, with the facts from the files next to it.

    Args:
        path: The file.
        name: Name of the tokenizer for users. Default: the path.
        add_special_tokens_from_config: As in `find_tokenizer`.

    Raises:
        TokenizerError: If a file cannot be used.
        OSError: If a file cannot be read.
    """
    file = Path(path)
    tokenizer = _packtok.read_tokenizer(path, path if name is None else name)
    if file.name.startswith(Path(TEKKEN_FILE).stem) and tokenizer.token_to_id(TEKKEN_EOS) is not None:
        return TokenizerLookup(tokenizer, TEKKEN_EOS, (), file)
    has_neighbours = file.name == TOKENIZER_FILE or _is_model_of_folder(file)
    neighbours = read_neighbours(_beside(file) if has_neighbours else lambda _: None)
    return _with_neighbours(tokenizer, neighbours, file, add_special_tokens_from_config)


def warn(lookup: TokenizerLookup) -> None:
    """Warns the caller of this function's caller of all differences, because a `Tokenizer` prints nothing."""
    for text in lookup.warnings:
        warnings.warn(text, stacklevel=2)


def default_eod(lookup: TokenizerLookup) -> str:
    """Returns the default EOD token.

    It is the tokenizer's EOS, else ``<|endoftext|>``, else the token that the post-processor appends.

    Raises:
        ConfigError: If the tokenizer has none of them; the message lists its special tokens.
    """
    if lookup.eos_token is not None:
        return lookup.eos_token
    tokenizer = lookup.tokenizer
    if tokenizer.token_to_id(DEFAULT_EOD) is not None:
        return DEFAULT_EOD
    appended = _packtok.appended_id(tokenizer.name, tokenizer.to_json().decode())
    token = None if appended is None else tokenizer.id_to_token(appended)
    if token is not None:
        return token
    raise ConfigError(
        f"--eod: is missing, and tokenizer {tokenizer.name} has no EOS token; give it, or "
        f"settings.eod_token in a config; special tokens are {_special_tokens(tokenizer)}"
    )


def with_special_tokens(lookup: TokenizerLookup, config: HfTokenizer) -> TokenizerLookup:
    """Returns a tokenizer in which the tokens that ``special_tokens`` of a config names are special.

    Raises:
        ConfigError: If a token is not in the vocabulary, and tokens are not to be added.
    """
    place = "tokenizer.config.special_tokens"
    matching = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    named = [NamedToken(token, place, True, matching) for token in _named_tokens(config.special_tokens)]
    states = dict(zip((token.content for token in named), presence(lookup.tokenizer, named), strict=True))
    absent = [token for token, state in states.items() if state == "absent"]
    if absent and not config.add_special_tokens_from_config:
        raise ConfigError(
            f"{place} names {listed(absent)}, which would grow the vocabulary of {lookup.tokenizer.name}; "
            "give "
            f"{ADD_FLAG} to add it, or leave it out; special tokens are {_special_tokens(lookup.tokenizer)}"
        )
    special = {token for token, _ in lookup.tokenizer.special_tokens}
    differing = [
        token.content for token in named if token.content in special and states[token.content] == "differing"
    ]
    remarks = lookup.warnings
    if differing and not config.add_special_tokens_from_config:
        remarks += (
            f"{place} names special tokens that are matched in another way in the tokenizer: "
            f"{listed(differing)}; the tokenizer takes precedence; give {ADD_FLAG} to change it, as "
            "Transformers does",
        )
        named = [token for token in named if token.content not in differing]
    return replace(lookup, tokenizer=added(lookup.tokenizer, named), warnings=remarks)


def _named_tokens(special_tokens: Mapping[str, str | list[str]] | tuple[str, ...] | None) -> list[str]:
    values = special_tokens.values() if isinstance(special_tokens, Mapping) else special_tokens or ()
    return [token for value in values for token in ([value] if isinstance(value, str) else value) if token]


def _special_tokens(tokenizer: Tokenizer) -> str:
    return listed(token for token, _ in tokenizer.special_tokens)


def tokenizer_next_to(path: str | os.PathLike[str]) -> str | None:
    """Returns the tokenizer file next to a pbin, or ``None``."""
    file = Path(f"{os.fspath(path)}.{TOKENIZER_FILE}")
    return str(file) if file.is_file() else None


def _beside(path: Path) -> Callable[[str], Path | None]:
    """Returns a function that finds a file by its name next to another."""

    def find(name: str) -> Path | None:
        neighbour = path.parent / name
        return neighbour if neighbour.is_file() else None

    return find


def _is_model_of_folder(path: Path) -> bool:
    """Returns whether a file is the one SentencePiece model of its folder."""
    if path.suffix != MODEL_SUFFIX:
        return False
    return path.name in _USUAL_FILES or len(_models_in(path.parent)) == 1


def _existing_file(name: str) -> Path | None:
    path = Path(name)
    paths = [path / file for file in (TOKENIZER_FILE, TEKKEN_FILE)] if path.is_dir() else [path]
    models = _models_in(path) if path.is_dir() else []
    return next((path for path in paths if path.is_file()), models[0] if len(models) == 1 else None)


def _models_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(f"*{MODEL_SUFFIX}") if path.is_file())


def _name_of(path: Path) -> str:
    """Returns the name of the parent folder if the file has a usual name, otherwise the name of the file.

    ``path`` is absolute, so that the name does not depend on the current folder.
    """
    if path.name in _USUAL_FILES:
        path = path.parent
    return path.name or TOKENIZER_FILE


def _no_tokenizer_in(folder: Path) -> str:
    nothing = f"{folder}: no {TOKENIZER_FILE} in this folder"
    models = _models_in(folder)
    if not models:
        return nothing
    names = ", ".join(path.name for path in models)
    return f"{nothing}, and more than one model: {names}; give one of them"


def _with_neighbours(tokenizer: Tokenizer, neighbours: Neighbours, path: Path, adds: bool) -> TokenizerLookup:
    tokenizer, remarks = with_named_tokens(tokenizer, neighbours, adds=adds)
    config = neighbours.config
    # The EOS of a SentencePiece model comes first.
    own, named = tokenizer.eos_token, neighbours.eos_token
    eos_token = own or named
    if eos_token is not None and tokenizer.token_to_id(eos_token) is None:
        eos_token = None
    before = _special_keys(tokenizer, config, path.name)
    if own is not None and named not in (None, own):
        before.append(f"eos_token is {named!r}, but {path.name} names {own!r}; {path.name} takes precedence")
    before = [f"{neighbours.config_path}: {text}" for text in before]
    after = [f"{neighbours.config_path}: {text}" for text in _text_keys(tokenizer, config, path.name)]
    remarks = [*before, *_other_ids(tokenizer, neighbours, path.name), *remarks, *after]
    return TokenizerLookup(tokenizer, eos_token, tuple(remarks), path, neighbours.bos_token, neighbours)


def _special_keys(tokenizer: Tokenizer, config: Mapping[str, Any], file: str) -> list[str]:
    remarks: list[str] = []
    if not config:
        return remarks
    places: dict[str, Callable[[list[int]], int]] = {"bos": lambda ids: ids[0], "eos": lambda ids: ids[-1]}
    ids = tokenizer.encode("a", add_special_tokens=True).tolist()
    for role, at in places.items():
        key, is_requested = f"add_{role}_token", config.get(f"add_{role}_token")
        token = content_of(config.get(f"{role}_token"))
        if not isinstance(is_requested, bool) or token is None:
            continue
        adds = bool(ids) and at(ids) == tokenizer.token_to_id(token)
        if adds != is_requested:
            does = "adds" if adds else "does not add"
            remarks.append(
                f"{key} is {_yaml(is_requested)}, but {file} {does} {token!r}; {file} takes precedence"
            )
    if config.get("split_special_tokens") is True:
        remarks.append("split_special_tokens is true and has no effect; use special_tokens_in_text: text")
    return remarks


def _other_ids(tokenizer: Tokenizer, neighbours: Neighbours, file: str) -> list[str]:
    """Returns remarks on tokens to which the files next to the tokenizer give other ids."""
    remarks = [
        f"{place} gives {token!r} the id {declared}, {file} {known}; {file} takes precedence"
        for place, token, declared in neighbours.ids()
        if (known := tokenizer.token_to_id(token)) is not None and known != declared
    ]
    more = len(remarks) - _NUM_IDS
    return [*remarks[:_NUM_IDS], *([f"{more:,} more tokens have other ids there"] if more > 0 else [])]


def _text_keys(tokenizer: Tokenizer, config: Mapping[str, Any], file: str) -> list[str]:
    remarks = []
    for key, (text_a, text_b) in _SAME_IDS_IF_TRUE.items():
        is_requested = config.get(key)
        if not isinstance(is_requested, bool):
            continue
        ids = [tokenizer.encode(text, add_special_tokens=False).tolist() for text in (text_a, text_b)]
        if (ids[0] == ids[1]) != is_requested:
            remarks.append(
                f"{key} is {_yaml(is_requested)}, but {file} behaves differently; {file} takes precedence"
            )
    if config.get("truncation_side") == "left":
        remarks.append("truncation_side is left; packing truncates on the left, streams on the right")
    return remarks


def _yaml(value: bool) -> str:
    return "true" if value else "false"


def _from_hub(name: str, adds: bool) -> TokenizerLookup:
    from packtok.tokenizer.hub import fetch_tokenizer

    try:
        path, neighbour_paths = fetch_tokenizer(name, NEIGHBOUR_FILES)
    except TokenizerError as error:
        names = Tokenizer.builtin_names()
        near = difflib.get_close_matches(name, names, n=1, cutoff=_SIMILARITY)
        near = near or [builtin for builtin in names if builtin.startswith(name)]
        if not near:
            raise
        raise TokenizerError(f"{error}; did you mean {near[0]}, which is built in?") from error.__cause__
    return _with_neighbours(
        _packtok.read_tokenizer(path, name), read_neighbours(neighbour_paths.get), path, adds
    )

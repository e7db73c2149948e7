"""Finds a tokenizer by name: a path, a built-in vocabulary or a name on the Hugging Face hub.

A path can be a `tokenizer.json`, Mistral's `tekken.json`, a SentencePiece `.model`, or a folder with one of
them.

A `tokenizer_config.json` often exists next to a `tokenizer.json`. Only the names of special tokens are read
from it. Other keys that would change ids in other libraries are reported, so that no difference is silent.
"""

import difflib
import errno
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packtok._packtok import Tokenizer
from packtok.config.options import HfTokenizer
from packtok.errors import ConfigError, TokenizerError

TOKENIZER_FILE = "tokenizer.json"
TEKKEN_FILE = "tekken.json"
MODEL_SUFFIX = ".model"
# File names that say nothing about the tokenizer. The folder's name is used instead.
_USUAL_FILES = (TOKENIZER_FILE, TEKKEN_FILE, "tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
CONFIG_FILE = "tokenizer_config.json"
DEFAULT_EOD = "<|endoftext|>"
# Hard-coded in the library that reads tekken files, too.
TEKKEN_EOS = "</s>"

_HUB_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*(/[\w.-]+)?")

# Key of tokenizer_config.json, and two texts that get the same ids if and only if the key is true.
_SAME_IDS_IF_TRUE = {
    "add_prefix_space": ("a", " a"),
    "do_lower_case": ("A", "a"),
    "strip_accents": ("\u00e9", "e"),
}


@dataclass(frozen=True)
class FoundTokenizer:
    """A tokenizer and information from the files next to it."""

    tokenizer: Tokenizer
    eos_token: str | None
    warnings: tuple[str, ...]
    path: Path | None = None
    """The file it was read from; ``None`` for a built-in tokenizer."""


def find_tokenizer(name: str) -> FoundTokenizer:
    """Returns the tokenizer called ``name``: a path, otherwise a built-in name, otherwise a name on the hub.

    Raises:
        TokenizerError: If there is no tokenizer of that name, or it cannot be used.
        OSError: If a file cannot be read.
    """
    path = _existing_file(name)
    if path is not None:
        return _from_file(path, _name_of(Path(os.path.abspath(name))))
    if name in Tokenizer.builtin_names():
        return FoundTokenizer(Tokenizer.builtin(name), DEFAULT_EOD, ())
    if Path(name).is_dir():
        raise TokenizerError(_no_tokenizer_in(Path(name)))
    if not _HUB_NAME.fullmatch(name) or name.endswith((".json", MODEL_SUFFIX)):
        raise FileNotFoundError(errno.ENOENT, "no such tokenizer file or folder", name)
    return _from_hub(name)


def default_eod(found: FoundTokenizer) -> str:
    """Returns the default EOD token: the tokenizer's EOS if it has one, otherwise ``<|endoftext|>``.

    Raises:
        ConfigError: If the tokenizer has neither; the message lists its special tokens.
    """
    if found.eos_token is not None:
        return found.eos_token
    if found.tokenizer.token_to_id(DEFAULT_EOD) is not None:
        return DEFAULT_EOD
    raise ConfigError(
        f"--eod: is missing, and tokenizer {found.tokenizer.name} has no EOS token; give it, or "
        f"settings.eod_token in a config; special tokens are {_listed(found.tokenizer)}"
    )


def check_special_tokens(found: FoundTokenizer, config: HfTokenizer) -> None:
    """Raises a `ConfigError` if ``special_tokens`` names a token that is not in the tokenizer."""
    known = {token for token, _ in found.tokenizer.added_tokens} | {
        token for token, _ in found.tokenizer.special_tokens
    }
    for token in _named_tokens(config.special_tokens):
        if token not in known:
            raise ConfigError(
                f"tokenizer.config.special_tokens names {token!r}, which is not an added token of "
                f"{found.tokenizer.name}; add it to the tokenizer.json; special tokens are "
                f"{_listed(found.tokenizer)}"
            )


def _named_tokens(special_tokens: Mapping[str, str | list[str]] | tuple[str, ...] | None) -> list[str]:
    values = special_tokens.values() if isinstance(special_tokens, Mapping) else special_tokens or ()
    return [token for value in values for token in ([value] if isinstance(value, str) else value)]


def _listed(tokenizer: Tokenizer) -> str:
    return ", ".join(repr(token) for token, _ in tokenizer.special_tokens) or "none"


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


def _from_file(path: Path, name: str) -> FoundTokenizer:
    tokenizer = Tokenizer.from_file(str(path), name=name)
    if path.name.startswith(Path(TEKKEN_FILE).stem) and tokenizer.token_to_id(TEKKEN_EOS) is not None:
        return FoundTokenizer(tokenizer, TEKKEN_EOS, (), path)
    beside = path.parent / CONFIG_FILE
    if path.name != TOKENIZER_FILE or not beside.is_file():
        return FoundTokenizer(tokenizer, tokenizer.eos_token, (), path)
    return _with_config(tokenizer, beside, path)


def _with_config(tokenizer: Tokenizer, path: Path, tokenizer_path: Path) -> FoundTokenizer:
    try:
        config = json.loads(path.read_bytes())
    except ValueError as error:
        raise TokenizerError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(config, dict):
        raise TokenizerError(f"{path}: expected a JSON object, found {type(config).__name__}")
    found = [
        text for check in (_special_keys, _added_tokens, _text_keys) for text in check(tokenizer, config)
    ]
    return FoundTokenizer(
        tokenizer,
        _content(config.get("eos_token")),
        tuple(f"{path}: {text}" for text in found),
        tokenizer_path,
    )


def _content(token: Any) -> str | None:
    """Returns the text of a token, which the file stores as a string or in an object."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def _special_keys(tokenizer: Tokenizer, config: Mapping[str, Any]) -> list[str]:
    found = []
    places: dict[str, Callable[[list[int]], int]] = {"bos": lambda ids: ids[0], "eos": lambda ids: ids[-1]}
    ids = tokenizer.encode("a", add_special_tokens=True).tolist()
    for role, at in places.items():
        key, wanted = f"add_{role}_token", config.get(f"add_{role}_token")
        token = _content(config.get(f"{role}_token"))
        if not isinstance(wanted, bool) or token is None:
            continue
        adds = bool(ids) and at(ids) == tokenizer.token_to_id(token)
        if adds != wanted:
            does = "adds" if adds else "does not add"
            found.append(
                f"{key} is {_yaml(wanted)}, but tokenizer.json {does} {token!r}; tokenizer.json takes "
                "precedence"
            )
    if config.get("split_special_tokens") is True:
        found.append("split_special_tokens is true and has no effect; use special_tokens_in_text: text")
    return found


def _added_tokens(tokenizer: Tokenizer, config: Mapping[str, Any]) -> list[str]:
    found = []
    decoder = config.get("added_tokens_decoder")
    for declared, token in (decoder if isinstance(decoder, dict) else {}).items():
        text = _content(token)
        if text is None:
            continue
        known = tokenizer.token_to_id(text)
        if known is None:
            found.append(
                f"added_tokens_decoder has {text!r}, which is not in tokenizer.json; it is not added"
            )
        elif str(known) != declared:
            found.append(
                f"added_tokens_decoder gives {text!r} the id {declared}, tokenizer.json {known}; "
                "tokenizer.json takes precedence"
            )
    return found


def _text_keys(tokenizer: Tokenizer, config: Mapping[str, Any]) -> list[str]:
    found = []
    for key, (one, other) in _SAME_IDS_IF_TRUE.items():
        wanted = config.get(key)
        if not isinstance(wanted, bool):
            continue
        ids = [tokenizer.encode(text, add_special_tokens=False).tolist() for text in (one, other)]
        if (ids[0] == ids[1]) != wanted:
            found.append(
                f"{key} is {_yaml(wanted)}, but tokenizer.json behaves differently; tokenizer.json takes "
                "precedence"
            )
    if config.get("truncation_side") == "left":
        found.append(
            "truncation_side is left and has no effect; tokenizer.json sets the side, which is right by "
            "default"
        )
    return found


def _yaml(value: bool) -> str:
    return "true" if value else "false"


def _from_hub(name: str) -> FoundTokenizer:
    from packtok.tokenizer.hub import fetch_tokenizer

    try:
        tokenizer_path, config_path = fetch_tokenizer(name)
    except TokenizerError as error:
        near = difflib.get_close_matches(name, Tokenizer.builtin_names(), n=1)
        if not near:
            raise
        raise TokenizerError(f"{error}; did you mean {near[0]}, which is built in?") from error.__cause__
    tokenizer = Tokenizer.from_file(str(tokenizer_path), name=name)
    if config_path is None:
        return FoundTokenizer(tokenizer, None, (), tokenizer_path)
    return _with_config(tokenizer, config_path, tokenizer_path)

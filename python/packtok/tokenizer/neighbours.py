"""The files next to a tokenizer: the tokens that they name, and how Transformers adds these.

Transformers reads `tokenizer_config.json` and, unless that has ``added_tokens_decoder``,
`special_tokens_map.json` and `added_tokens.json`. Tokens that are no added tokens of the tokenizer are then
added to it: those of ``added_tokens_decoder`` or `added_tokens.json` by their ids, then the special tokens by
their roles, then those without a role. This is the rule of version 5, in which a key such as ``image_token``
is a role, too; the order is that of version 4.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from packtok import _packtok
from packtok._packtok import Tokenizer
from packtok.errors import TokenizerError

CONFIG_FILE = "tokenizer_config.json"
MAP_FILE = "special_tokens_map.json"
ADDED_FILE = "added_tokens.json"
NEIGHBOUR_FILES = (CONFIG_FILE, MAP_FILE, ADDED_FILE)
ADD_FLAG = "--add-special-tokens-from-config"

Side = Literal["left", "right"]
_ROLES = tuple(f"{role}_token" for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))
_WITHOUT_ROLE = ("extra_special_tokens", "additional_special_tokens")
_DECODER = "added_tokens_decoder"
# The key ends like the key of a role, and may hold a secret.
_NO_ROLE = "use_auth_token"
_NUM_LISTED = 10
# Remarks on named tokens, by the state of the token in the tokenizer.
_REMARKS = {
    "absent": (
        "{} names tokens that the tokenizer does not have: {}; they are not added; give "
        f"{ADD_FLAG} to add them, as Transformers does"
    ),
    "ordinary": (
        "{} names tokens that the tokenizer has as ordinary tokens only: {}; they are not special tokens; "
        f"give {ADD_FLAG} to make them special, as Transformers does"
    ),
    "differing": (
        "{} has tokens that are matched in another way than in the tokenizer: {}; the tokenizer takes "
        f"precedence; give {ADD_FLAG} to change it, as Transformers does"
    ),
}


@dataclass(frozen=True)
class NamedToken:
    """A token that a file next to a tokenizer names."""

    content: str
    place: str
    """The file and the key that name the token."""
    special: bool
    matching: Mapping[str, bool] | None
    """How the token is matched in texts; ``None`` if the file does not record it."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the token in the form of the compiled module."""
        # Special tokens are not normalized unless the file sets it.
        matching = None if self.matching is None else {"normalized": not self.special, **self.matching}
        return {"content": self.content, "special": self.special, "matching": matching}


@dataclass(frozen=True)
class Neighbours:
    """The parsed files next to a tokenizer, by name, with the path of each."""

    files: Mapping[str, tuple[Path, Mapping[str, Any]]]

    @property
    def config(self) -> Mapping[str, Any]:
        """The content of `tokenizer_config.json`; empty if there is none."""
        return self._content(CONFIG_FILE)

    @property
    def bos_token(self) -> str | None:
        """The token that the files name as BOS."""
        return self._named("bos_token")

    @property
    def eos_token(self) -> str | None:
        """The token that the files name as EOS."""
        return self._named("eos_token")

    @property
    def pad_token(self) -> str | None:
        """The token that the files name for padding."""
        return self._named("pad_token")

    def side(self, key: str) -> Side | None:
        """Returns the side that a key of `tokenizer_config.json` names.

        Raises:
            TokenizerError: If it is neither left nor right.
        """
        side = self.config.get(key)
        if side not in (None, "left", "right"):
            raise TokenizerError(f"{self.config_path}: {key} is {side!r}; expected 'left' or 'right'")
        return side

    def _named(self, role: str) -> str | None:
        named = (self._content(name).get(role) for name in (CONFIG_FILE, MAP_FILE))
        return next((text for token in named if (text := content_of(token)) is not None), None)

    @property
    def config_path(self) -> str:
        """The path of `tokenizer_config.json`."""
        return self._path_or_name(CONFIG_FILE)

    def ids(self) -> list[tuple[str, str, int]]:
        """Returns the tokens that a file lists with their ids: file and key, token and id."""
        decoder = self.config.get(_DECODER)
        listed = decoder.items() if isinstance(decoder, dict) else ()
        place = f"{self.config_path}: {_DECODER}"
        ids = [(place, text, _id_of(id)) for id, token in listed if (text := content_of(token)) is not None]
        return ids + [(token.place, token.content, id) for token, id in self._added_with_ids()]

    def tokens(self, tokenizer: Tokenizer, pad_token: str | None = None) -> list[NamedToken]:
        """Returns the tokens that Transformers adds to a tokenizer, in its order.

        Args:
            tokenizer: The tokenizer.
            pad_token: The token of its padding, which Transformers takes if no file says what it is.
        """
        own = {token for token, _ in tokenizer.added_tokens}
        roles, others = self._special_tokens(pad_token)
        special = {token.content for token in (*roles, *others)}
        listed = {}
        for token in self._listed(tokenizer):
            listed[token.content] = replace(token, special=token.special or token.content in special)
        named = dict(listed)
        for token in (*roles, *others):
            # A file that names the role of an added token does not change how the token is matched.
            named.setdefault(token.content, replace(token, matching=None) if token.content in own else token)
        return list(named.values())

    def unread(self) -> list[NamedToken]:
        """Returns the tokens of files that Transformers ignores because of ``added_tokens_decoder``."""
        if not self._has_decoder:
            return []
        roles, others = _by_role(self._path_or_name(MAP_FILE), self._content(MAP_FILE))
        return [*roles.values(), *others, *self._added()]

    @property
    def _has_decoder(self) -> bool:
        return isinstance(self.config.get(_DECODER), dict)

    def _content(self, name: str) -> Mapping[str, Any]:
        return self.files[name][1] if name in self.files else {}

    def _path_or_name(self, name: str) -> str:
        return str(self.files[name][0]) if name in self.files else name

    def _special_tokens(self, pad_token: str | None) -> tuple[list[NamedToken], list[NamedToken]]:
        """Returns the special tokens with a role, in the order of the roles, and those without."""
        roles, others = _by_role(self._path_or_name(CONFIG_FILE), self.config)
        keys = set(self.config)
        if not self._has_decoder:
            more, more_others = _by_role(self._path_or_name(MAP_FILE), self._content(MAP_FILE))
            roles, others = {**roles, **more}, [*others, *more_others]
            keys |= set(self._content(MAP_FILE))
        if pad_token and "pad_token" not in keys:
            roles["pad_token"] = NamedToken(pad_token, "padding", True, None)
        order = [*_ROLES, *(key for key in roles if key not in _ROLES)]
        return [roles[key] for key in order if key in roles], others

    def _listed(self, tokenizer: Tokenizer) -> list[NamedToken]:
        """Returns the tokens that a file lists with their ids, in the order of the ids."""
        if not self._has_decoder:
            taken = {id for _, id in tokenizer.added_tokens}
            # If both files use an id, Transformers takes the token of tokenizer.json.
            return [token for token, id in self._added_with_ids() if id not in taken]
        place = f"{self._path_or_name(CONFIG_FILE)}: {_DECODER}"
        decoder = ((_id_of(id), token) for id, token in self.config[_DECODER].items())
        return [
            named
            for _, token in sorted(decoder, key=lambda item: item[0])
            if (named := _named(token, place, special=False)) is not None
        ]

    def _added(self) -> list[NamedToken]:
        return [token for token, _ in self._added_with_ids()]

    def _added_with_ids(self) -> Iterator[tuple[NamedToken, int]]:
        entries = ((token, _id_of(id)) for token, id in self._content(ADDED_FILE).items())
        for token, id in sorted(entries, key=lambda item: item[1]):
            if token:
                yield NamedToken(token, self._path_or_name(ADDED_FILE), False, None), id


def read_neighbours(find: Callable[[str], Path | None]) -> Neighbours:
    """Reads the files next to a tokenizer.

    Args:
        find: Returns the path of the file with a name; ``None`` if there is none.

    Raises:
        TokenizerError: If a file is not a JSON object.
    """
    paths = {name: path for name in NEIGHBOUR_FILES if (path := find(name)) is not None}
    return Neighbours({name: (path, _object(path)) for name, path in paths.items()})


def with_named_tokens(
    tokenizer: Tokenizer, neighbours: Neighbours, *, adds: bool
) -> tuple[Tokenizer, list[str]]:
    """Returns a tokenizer with the tokens that the files next to it name, and remarks on other tokens.

    Args:
        tokenizer: The tokenizer without the files.
        neighbours: The files.
        adds: Whether tokens are added; without it, each one that the tokenizer lacks is reported.
    """
    if adds:
        tokenizer = added(tokenizer, neighbours.tokens(tokenizer, _pad_token(tokenizer)))
    named = [] if adds else neighbours.tokens(tokenizer)
    remarks = [
        _REMARKS[state].format(place, listed(tokens))
        for (place, state), tokens in _groups(tokenizer, named).items()
    ]
    known = {token.content for token in named}
    unread = [token for token in neighbours.unread() if token.content not in known]
    remarks += [
        f"{place} names tokens that the tokenizer does not have: {listed(tokens)}; Transformers does not "
        f"read this file next to {_DECODER}, and they are not added"
        for (place, state), tokens in _groups(tokenizer, unread).items()
        if state == "absent"
    ]
    return tokenizer, remarks


def presence(tokenizer: Tokenizer, tokens: Sequence[NamedToken]) -> list[str]:
    """Returns whether each token is ``"absent"``, ``"ordinary"``, ``"differing"`` or the ``"same"``."""
    return _packtok.presence_of_tokens(tokenizer, _json(tokens)) if tokens else []


def added(tokenizer: Tokenizer, tokens: Sequence[NamedToken]) -> Tokenizer:
    """Returns the tokenizer with tokens added, or the same one if it has them all."""
    special = {token for token, _ in tokenizer.special_tokens}
    own = {token for token, _ in tokenizer.added_tokens}
    becomes = [token.content in own and token.special and token.content not in special for token in tokens]
    states = zip(presence(tokenizer, tokens), becomes, strict=True)
    if all(state == "same" and not is_new for state, is_new in states):
        return tokenizer
    return _packtok.with_tokens(tokenizer, _json(tokens))


def content_of(token: Any) -> str | None:
    """Returns the text of a token, which files store as a string or in an object."""
    text = token.get("content") if isinstance(token, Mapping) else token
    return text if isinstance(text, str) else None


def listed(tokens: Iterable[str]) -> str:
    """Returns tokens for a message, at most ten of them."""
    tokens = list(dict.fromkeys(tokens))
    more = len(tokens) - _NUM_LISTED
    names = ", ".join(map(repr, tokens[:_NUM_LISTED]))
    return (f"{names} and {more:,} more" if more > 0 else names) or "none"


def _object(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_bytes())
        # A lone surrogate is not a character, so no token can contain it.
        json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise TokenizerError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise TokenizerError(f"{path}: expected a JSON object, found {type(content).__name__}")
    return content


def _by_role(path: str, content: Mapping[str, Any]) -> tuple[dict[str, NamedToken], list[NamedToken]]:
    """Returns the special tokens that a file names by their roles, and those without a role."""
    roles = {key: token for key, token in content.items() if key.endswith("_token") and key != _NO_ROLE}
    without = [(key, content.get(key)) for key in _WITHOUT_ROLE]
    named, others = {}, []
    for key, value in without:
        roles |= value if isinstance(value, dict) else {}
        listed = value if isinstance(value, list) else ()
        others += [
            named_token for token in listed if (named_token := _named(token, f"{path}: {key}")) is not None
        ]
    for key, token in roles.items():
        if (named_token := _named(token, f"{path}: {key}")) is not None:
            named[key] = named_token
    return named, others


def _named(token: Any, place: str, *, special: bool = True) -> NamedToken | None:
    text = content_of(token)
    if not text:
        return None
    if not isinstance(token, Mapping):
        return NamedToken(text, place, special, None)
    matching = {key: token.get(key) is True for key in ("single_word", "lstrip", "rstrip")}
    if isinstance(token.get("normalized"), bool):
        matching["normalized"] = token["normalized"]
    return NamedToken(text, place, special or token.get("special") is True, matching)


def _id_of(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return -1


def _pad_token(tokenizer: Tokenizer) -> str | None:
    """Returns the token with which a tokenizer.json pads."""
    return content_of(section_of_file(tokenizer, "padding").get("pad_token"))


def section_of_file(tokenizer: Tokenizer, key: str) -> Mapping[str, Any]:
    """Returns a section of a tokenizer.json, or an empty one. Parses the file, which takes up to a second."""
    section = json.loads(tokenizer.to_json()).get(key)
    return section if isinstance(section, dict) else {}


def _groups(tokenizer: Tokenizer, tokens: Sequence[NamedToken]) -> dict[tuple[str, str], list[str]]:
    """Returns the tokens that differ from those of the tokenizer, by place and by their state in it."""
    groups: dict[tuple[str, str], list[str]] = {}
    for token, state in zip(tokens, presence(tokenizer, tokens), strict=True):
        if state != "same":
            groups.setdefault((token.place, state), []).append(token.content)
    return groups


def _json(tokens: Sequence[NamedToken]) -> str:
    return json.dumps([token.to_dict() for token in tokens])

"""Words a config error in one sentence: the full name of the key, the found and the expected value."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

Location = tuple[str, ...]

# Expected values, by pydantic's type of error. pydantic's own wording assumes knowledge of its manual.
_EXPECTED = {
    "int_type": "an integer",
    "string_type": "a string",
    "bool_type": "true or false",
    "model_type": "a mapping of keys",
    "tuple_type": "a list",
    "string_too_short": "at least one character",
    "string_unicode": "UTF-8; rename the file, or give its folder",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "text": "{text}",
}
# How similar two spellings of one key are at least.
_SAME_WORD = 0.85


@dataclass(frozen=True)
class Schema:
    """The keys of a config, and the wording of errors in it."""

    known_keys: Mapping[Location, tuple[str, ...]]
    """Keys of each section, by the path to it."""
    expected: Mapping[str, str] = field(default_factory=dict)
    """Expected values by type of error, where they differ from the general wording."""
    flag_of: Mapping[str, str] = field(default_factory=dict)
    """Flag that sets a key, by the key's full name; messages start with it."""

    def worded(self, error: ValidationError, section: Location = ()) -> str:
        """Returns the message for the first error in a section."""
        errors = error.errors(include_url=False)
        # Report a misspelled key first, because it explains why the correct one is missing.
        first = next((detail for detail in errors if detail["type"] == "extra_forbidden"), errors[0])
        location = (*section, *(str(part) for part in first["loc"]))
        if first["type"] == "extra_forbidden":
            return self.unknown(location)
        if first["type"] == "missing":
            return self.missing(dotted(location))
        text = {**_EXPECTED, **self.expected}.get(first["type"], first["msg"][:1].lower() + first["msg"][1:])
        known = location[: self._depth(location)]
        statement = f"{dotted(known)} is {first['input']!r}; expected {text.format(**first.get('ctx', {}))}"
        return self.prefix(dotted(known).partition("[")[0]) + statement

    def prefix(self, key: str) -> str:
        """Returns ``--flag: `` if a flag sets the key."""
        return f"{self.flag_of[key]}: " if key in self.flag_of else ""

    def missing(self, key: str, example: str = "") -> str:
        """Returns the message for a missing required key."""
        if key not in self.flag_of:
            return f"{key} is missing"
        return f"{self.prefix(key)}is missing; give it{example}, or {key} in a config"

    def unknown(self, location: Location) -> str:
        """Returns the message for an unknown key, with the most similar known key."""
        *section, key = location
        known = self.known_keys.get(tuple(section), ())
        everywhere = {name: place for place, names in self.known_keys.items() for name in names}
        # A key of another section only if it is hardly misspelled: `settings.tokenzer`.
        near = difflib.get_close_matches(key, everywhere, n=1, cutoff=_SAME_WORD)
        if near and near[0] not in known:
            section = [*everywhere[near[0]]]
        else:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        if near:
            return f"{dotted(location)} is not a known key; did you mean {dotted((*section, near[0]))}?"
        return f"{dotted(location)} is not a known key; known keys are {', '.join(sorted(known))}"

    def _depth(self, location: Location) -> int:
        """Returns how many parts of a pydantic location are keys; names of attempted types follow them."""
        depth = 1
        while depth < len(location) and location[depth] in self.known_keys.get(location[:depth], ()):
            depth += 1
        return depth + sum(part.isdigit() for part in location[depth : depth + 1])


def dotted(location: Location) -> str:
    """Returns the full name of a key: ``settings.src_path[0]``."""
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in location).lstrip(".")

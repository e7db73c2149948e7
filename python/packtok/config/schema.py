"""What is wrong with a config, in one sentence: the key's full name, what was found, what is expected."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

Location = tuple[str, ...]

# What pydantic's kinds of errors expect; what it says itself is for people who read its manual.
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
    "said": "{text}",
}


@dataclass(frozen=True)
class Schema:
    """The keys of a config, and the words for what can be wrong with them."""

    known_keys: Mapping[Location, tuple[str, ...]]
    """The keys of each section by the path to it."""
    expected: Mapping[str, str] = field(default_factory=dict)
    """What a kind of error expects, where these keys have a word of their own for it."""
    flag_of: Mapping[str, str] = field(default_factory=dict)
    """The flag that gives a key, by the key's full name; messages begin with it."""

    def worded(self, error: ValidationError, section: Location = ()) -> str:
        """The first thing that is wrong in a section."""
        errors = error.errors(include_url=False)
        # A misspelt key is the reason why the right one is missing, so it goes first.
        first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
        location = (*section, *(str(part) for part in first["loc"]))
        if first["type"] == "extra_forbidden":
            return self.unknown(location)
        if first["type"] == "missing":
            return self.missing(dotted(location))
        text = {**_EXPECTED, **self.expected}.get(first["type"], first["msg"][:1].lower() + first["msg"][1:])
        known = location[: self._depth(location)]
        found = f"{dotted(known)} is {first['input']!r}; expected {text.format(**first.get('ctx', {}))}"
        return self.prefix(dotted(known).partition("[")[0]) + found

    def prefix(self, key: str) -> str:
        """``--flag: `` if a flag gives the key."""
        return f"{self.flag_of[key]}: " if key in self.flag_of else ""

    def missing(self, key: str, example: str = "") -> str:
        """Says that a key which must be there is not."""
        if key not in self.flag_of:
            return f"{key} is missing"
        return f"{self.prefix(key)}is missing; give it{example}, or {key} in a config"

    def unknown(self, location: Location) -> str:
        """Names a key that nobody knows, and the nearest that is known."""
        *section, key = location
        known = self.known_keys.get(tuple(section), ())
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        if near:
            return f"{dotted(location)} is not a known key; did you mean {dotted((*section, near[0]))}?"
        return f"{dotted(location)} is not a known key; known keys are {', '.join(sorted(known))}"

    def _depth(self, location: Location) -> int:
        """How much of a pydantic location are keys; behind it come names of types that were tried."""
        depth = 1
        while depth < len(location) and location[depth] in self.known_keys.get(location[:depth], ()):
            depth += 1
        return depth + sum(part.isdigit() for part in location[depth : depth + 1])


def dotted(location: Location) -> str:
    """The full name of a key: ``settings.src_path[0]``."""
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in location).lstrip(".")

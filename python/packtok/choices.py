"""Arguments that have a fixed set of values: their check, and the most similar value for a message."""

import difflib
from collections.abc import Iterable, Sequence

__all__ = ["check_choice", "suggestion"]


def check_choice(
    name: str, value: object, choices: Sequence[object], error: type[Exception] = ValueError
) -> None:
    """Raises ``error`` unless ``value`` is one of ``choices``, which are strings, bools or ``None``."""
    # `in` would fail, because comparing an array with a string gives no bool.
    if any(isinstance(value, type(choice)) and value == choice for choice in choices):
        return
    *first, last = map(repr, choices)
    expected = f"{', '.join(first)} or {last}" if first else last
    raise error(f"{name} is {value!r}, expected {expected}")


def suggestion(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Returns ``; did you mean 'x'?`` with the most similar known name; empty if none is similar.

    ``cutoff`` is the least similarity, from 0 to 1.
    """
    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else ""

"""The check of every argument that has a fixed set of values; the error message names the argument."""

from collections.abc import Sequence

__all__ = ["check_choice"]


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

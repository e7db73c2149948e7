"""Integers that callers pass: bools, floats and values out of range are refused by the argument's name."""

from numbers import Integral

__all__ = ["checked_integer", "integer"]


def integer(name: str, value: object) -> int:
    """``value`` as an int; NumPy's integers are integers, bools are not.

    Raises:
        ValueError: If it is anything else.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name} is {value!r}, expected an integer")
    return int(value)


def checked_integer(name: str, value: object, *, least: int = 0, below: int = 1 << 63) -> int:
    """``value`` as an int from ``least`` to ``below - 1``.

    Raises:
        ValueError: If it is anything else.
    """
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if number is None or not least <= number < below:
        raise ValueError(f"{name} is {value!r}, expected an integer from {least} to {below - 1}")
    return number

"""Checks of integer arguments; the error message names the argument."""

from numbers import Integral

__all__ = ["checked_integer", "integer"]


def integer(name: str, value: object) -> int:
    """Returns ``value`` as an int. NumPy integers are accepted, bools and floats are not.

    Raises:
        ValueError: If ``value`` is not an integer.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name} is {value!r}, expected an integer")
    return int(value)


def checked_integer(name: str, value: object, *, least: int = 0, below: int = 1 << 63) -> int:
    """Returns ``value`` as an int in ``least..below``.

    Raises:
        ValueError: If ``value`` is not an integer or is out of range.
    """
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if number is None or not least <= number < below:
        raise ValueError(f"{name} is {value!r}, expected an integer from {least} to {below - 1}")
    return number

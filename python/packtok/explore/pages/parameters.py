"""The parameters of a page, from its URL; each has a default, and a wrong one is an error that names it."""

from starlette.datastructures import QueryParams


class ParameterError(Exception):
    """A parameter that the page cannot use; the message names it."""


def integer(parameters: QueryParams, name: str, default: int, *, least: int = 0, most: int = 1 << 62) -> int:
    """Returns a parameter that is a number, or ``default`` if it is missing or empty.

    Raises:
        ParameterError: If it is no number from ``least`` to ``most``.
    """
    text = parameters.get(name, "").strip().replace(",", "").replace("_", "")
    if not text:
        return default
    is_number = text.isascii() and text.removeprefix("-").isdecimal() and len(text) <= 20
    if not is_number or not least <= int(text) <= most:
        raise ParameterError(f"{name} is {text[:40]!r}, expected a number from {least:,} to {most:,}")
    return int(text)


def choice(parameters: QueryParams, name: str, choices: tuple[str, ...]) -> str:
    """Returns a parameter that has a few values; the first of ``choices`` is its default.

    Raises:
        ParameterError: If it has another value.
    """
    text = parameters.get(name, "") or choices[0]
    if text not in choices:
        raise ParameterError(f"{name} is {text[:40]!r}, expected {' or '.join(choices)}")
    return text

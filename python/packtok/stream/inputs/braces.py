"""Expands braces as a shell does: ``{a,b}`` and ``{00..99}``."""

import re
from collections.abc import Iterator

__all__ = ["braceexpand"]

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?|([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?\d+))?")


def braceexpand(pattern: str) -> Iterator[str]:
    """Yields the strings that ``pattern`` stands for, in order.

    Numbers with leading zeros keep their width. Braces without a comma or a range stay as they are, and a
    backslash takes the meaning from the character after it.
    """
    braces = _first_braces(pattern)
    if braces is None:
        yield re.sub(r"\\(.)", r"\1", pattern)
        return
    start, stop, parts = braces
    for middle in _range(pattern[start + 1 : stop]) if len(parts) == 1 else _all(parts):
        for end in braceexpand(pattern[stop + 1 :]):
            yield re.sub(r"\\(.)", r"\1", pattern[:start]) + middle + end


def _all(parts: list[str]) -> Iterator[str]:
    for part in parts:
        yield from braceexpand(part)


def _first_braces(pattern: str) -> tuple[int, int, list[str]] | None:
    """Returns where the first braces with a meaning are, and their parts."""
    for start in range(len(pattern)):
        if pattern[start] != "{" or _is_escaped(pattern, start):
            continue
        depth, last, parts = 0, start + 1, []
        for at in range(start, len(pattern)):
            if _is_escaped(pattern, at):
                continue
            depth += {"{": 1, "}": -1}.get(pattern[at], 0)
            if (pattern[at] == "," and depth == 1) or depth == 0:
                parts.append(pattern[last:at])
                last = at + 1
            if depth == 0:
                if len(parts) > 1 or _RANGE.fullmatch(parts[0]):
                    return start, at, parts
                break
    return None


def _is_escaped(pattern: str, at: int) -> bool:
    before = pattern[:at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _range(text: str) -> Iterator[str]:
    match = _RANGE.fullmatch(text)
    assert match is not None
    first, last, step, first_letter, last_letter, letter_step = match.groups()
    if first_letter is not None:
        for code in _numbers(ord(first_letter), ord(last_letter), letter_step):
            yield chr(code)
        return
    has_zeros = any(re.match(r"-?0\d", end) for end in (first, last))
    width = max(len(first), len(last)) if has_zeros else 0
    for number in _numbers(int(first), int(last), step):
        yield f"{number:0{width}d}" if width else str(number)


def _numbers(first: int, last: int, step: str | None) -> range:
    size = max(abs(int(step or 1)), 1)
    return range(first, last + 1, size) if first <= last else range(first, last - 1, -size)

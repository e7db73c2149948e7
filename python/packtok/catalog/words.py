"""The words of the full-text index: how texts are divided, and which indexed words a typo may stand for.

SQLite's tokenizer divides texts at spaces and signs. Runs of Chinese, Japanese and Korean characters have
neither between words, and it drops emoji, so both are rewritten for the index and for a search alike.
"""

import re
from collections.abc import Callable, Iterator
from unicodedata import normalize

_RUN = re.compile(
    "[\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff]+"
)
_EMOJI = re.compile("[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")
# Shorter words have too many neighbours.
_MIN_CHARACTERS = 4
_MAX_NEIGHBOURS = 8


def text_to_index(text: str) -> str:
    """Returns a text as it is indexed: its runs as pairs of characters, of which the last stands alone."""
    return _divided(text, lambda run: [*_pairs(run), run[-1]])


def text_to_find(text: str) -> str:
    """Returns the words of a search as they are looked up: a run as its pairs, or its only character."""
    return _divided(text, lambda run: _pairs(run) or [run])


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]


def _divided(text: str, divide: Callable[[str], list[str]]) -> str:
    if text.isascii():
        return text
    spaced = _RUN.sub(lambda match: f" {' '.join(divide(match[0]))} ", normalize("NFC", text))
    return _EMOJI.sub(lambda match: f" emoji{ord(match[0]):x} ", spaced)


class Vocabulary:
    """The words of an index, in which words with one typo are found.

    Args:
        words: The words, separated by line ends.
    """

    def __init__(self, words: str) -> None:
        # Python searches megabytes of text in the time that it needs to compare some thousand words.
        self._lines = f"\n{words}\n"

    def has_start(self, start: str) -> bool:
        """Returns whether a word starts with ``start``."""
        return f"\n{start}" in self._lines

    def neighbours(self, word: str) -> list[str]:
        """Returns words that one typo turns into ``word``, as `is_one_typo` has it."""
        if len(word) < _MIN_CHARACTERS:
            return []
        # A typo in one half leaves the other half as it is; two characters may be swapped across the middle.
        half = len(word) // 2
        candidates = {*self._with(f"\n{word[: half - 1]}"), *self._with(f"{word[half + 1 :]}\n")}
        return sorted(found for found in candidates if is_one_typo(found, word))[:_MAX_NEIGHBOURS]

    def _with(self, part: str) -> Iterator[str]:
        """Returns the words whose lines have ``part``, which is at their start or end."""
        at = self._lines.find(part)
        while at >= 0:
            start = self._lines.rfind("\n", 0, at + 1) + 1
            yield self._lines[start : self._lines.find("\n", start)]
            at = self._lines.find(part, at + 1)


def is_one_typo(first: str, second: str) -> bool:
    """Returns whether words differ by one character: missing, other, or swapped with the next one."""
    if abs(len(first) - len(second)) > 1 or first == second:
        return False
    i = next((i for i, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), None)
    if i is None:
        return True
    if len(first) != len(second):
        longer, shorter = sorted((first, second), key=len, reverse=True)
        return longer[i + 1 :] == shorter[i:]
    swapped = first[i : i + 2] == second[i : i + 2][::-1]
    return first[i + 1 :] == second[i + 1 :] or (swapped and first[i + 2 :] == second[i + 2 :])

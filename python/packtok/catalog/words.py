"""The words of the full-text index: how texts are divided, and which indexed words a typo may stand for.

SQLite's tokenizer divides texts at spaces and signs. Runs of Chinese, Japanese and Korean characters have
neither between words, and it drops emoji, so both are rewritten for the index and for a search alike.
"""

import bisect
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
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
        words: The words in the order of their characters.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._words = sorted(words)
        self._reversed = sorted(word[::-1] for word in self._words)

    def has_start(self, start: str) -> bool:
        """Returns whether a word starts with ``start``."""
        return next(_starting(self._words, start), None) is not None

    def neighbours(self, word: str) -> list[str]:
        """Returns words that one typo turns into ``word``, as `is_one_typo` has it."""
        if len(word) < _MIN_CHARACTERS:
            return []
        # A typo in one half leaves the other half as it is; two characters may be swapped across the middle.
        half = len(word) // 2
        candidates = {
            *_starting(self._words, word[: half - 1]),
            *(found[::-1] for found in _starting(self._reversed, word[half + 1 :][::-1])),
        }
        return sorted(found for found in candidates if is_one_typo(found, word))[:_MAX_NEIGHBOURS]


def _starting(words: list[str], start: str) -> Iterator[str]:
    first = bisect.bisect_left(words, start)
    return takewhile(lambda word: word.startswith(start), (words[i] for i in range(first, len(words))))


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

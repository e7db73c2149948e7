"""The facets of a dataset: the few values by which users narrow a search down."""

import re
from collections.abc import Mapping
from typing import Any

FACETS = ("content", "language", "license", "tokenizer", "tokens", "date")
UNKNOWN = "unknown"
NOT_TOKENIZED = "not tokenized"
# Names of the powers of a thousand, as the Hugging Face hub writes sizes.
_UNITS = ("", "K", "M", "B", "T")
_SMALLEST, _LARGEST = 3, 15
_YEAR = re.compile(r"\s*(\d{4})(?!\d)")


def facet_texts(entry: Mapping[str, Any]) -> dict[str, str]:
    """Returns the text of each facet for an entry of the index; `values_of` returns the values in it."""
    return {
        "content": entry["content"],
        "language": ", ".join(languages(entry["language"])) or UNKNOWN,
        "license": entry["license"] or UNKNOWN,
        "tokenizer": entry["tokenizer"] or NOT_TOKENIZED,
        "tokens": token_range(entry["tokens"]),
        "date": year_of(entry["date"]),
    }


def values_of(facet: str, text: str) -> list[str]:
    """Returns the values in the text of a facet: a dataset may have several languages."""
    return languages(text) if facet == "language" else [text]


def languages(text: str | None) -> list[str]:
    """Returns the languages that a text lists with commas, each once."""
    listed = (language.strip() for language in (text or "").split(","))
    return list(dict.fromkeys(filter(None, listed)))


def token_range(tokens: int | None) -> str:
    """Returns the range between two powers of ten that a number of tokens is in, such as ``1M-10M``."""
    if tokens is None:
        return UNKNOWN
    power = len(str(tokens)) - 1
    if power < _SMALLEST:
        return f"0-{_power(_SMALLEST)}"
    if power >= _LARGEST:
        return f"{_power(_LARGEST)} or more"
    return f"{_power(power)}-{_power(power + 1)}"


def _power(power: int) -> str:
    unit = min(power // 3, len(_UNITS) - 1)
    return f"{10 ** (power - 3 * unit)}{_UNITS[unit]}"


def year_of(date: str) -> str:
    """Returns the year that a date starts with; ``unknown`` if it starts with something else."""
    match = _YEAR.match(date)
    return match[1] if match else UNKNOWN

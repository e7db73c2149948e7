"""Bytes per token: bytes of texts in UTF-8, divided by tokens without the special ones around a text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TextCounts:
    """Bytes and tokens of the texts of some documents."""

    bytes: int
    tokens: int
    is_estimate: bool = False
    """Whether they were counted in decoded text, or only for a sample of the documents."""

    @property
    def bytes_per_token(self) -> float | None:
        """The quotient; ``None`` without tokens."""
        return self.bytes / self.tokens if self.tokens else None


def recorded_text_counts(metadata: Iterable[Mapping[str, Any]]) -> TextCounts | None:
    """Returns the counts that the trailers of all files record; ``None`` if one of them does not."""
    counts = [(trailer.get("counts") or {}).get("text") for trailer in metadata]
    known = [text for text in counts if text is not None]
    if not counts or len(known) < len(counts):
        return None
    return TextCounts(sum(text["bytes"] for text in known), sum(text["tokens"] for text in known))

"""The decorator `packtok.source`, with which the author of a plug-in declares its parts."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Iterable[Any]])
Parts = Callable[[str], Iterable[str]]

PARTS_ATTRIBUTE = "packtok_parts"


def source(*, parts: Parts) -> Callable[[F], F]:
    """Declares the parts of the corpora that a source plug-in reads.

    Each part becomes a source of its own, like a file: parts can be packed by different shards. The decorated
    function is called with the name of a part as its second argument.

    Args:
        parts: A function from the name of a corpus to the names of its parts, in order.

    Example:
        >>> @packtok.source(parts=lambda corpus: ["a", "b"])
        ... def documents(corpus, part, start=0):
        ...     texts = [f"text {number} of {part}" for number in range(3)]
        ...     return texts[start:]
    """

    def declared(function: F) -> F:
        setattr(function, PARTS_ATTRIBUTE, parts)
        return function

    return declared

"""A source plug-in, as the compiled module calls it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from packtok.plugins.declare import Parts


@dataclass(frozen=True)
class Plugin:
    """A source plug-in, as the compiled module calls it."""

    name: str
    """Its name in messages and in the output's trailer, without a folder."""
    function: Callable[..., Iterable[Any]]
    """Called with a corpus, then a part if there are parts, and ``start`` if it is resumable."""
    list_parts: Parts | None
    is_resumable: bool

    def parts(self, corpus: str) -> list[str] | None:
        """Returns the names of a corpus's parts, in order; ``None`` if it has no parts."""
        if self.list_parts is None:
            return None
        parts = self.list_parts(corpus)
        if isinstance(parts, str):
            raise TypeError(f"the parts are a str; expected a list of names: [{parts!r}]")
        return list(parts)

    def open(self, corpus: str, part: str | None, start: int) -> Iterable[Any]:
        """Returns the documents of a part, without the first ``start`` ones."""
        arguments = (corpus,) if part is None else (corpus, part)
        keywords = {"start": start} if self.is_resumable else {}
        documents = self.function(*arguments, **keywords)
        if isinstance(documents, str | bytes) or not isinstance(documents, Iterable):
            kind = type(documents).__name__
            raise TypeError(f"the function returned a {kind}; expected an iterable of texts")
        return documents

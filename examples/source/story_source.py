"""A source plug-in: yields the texts of a corpus of JSON lines, with a part for each language.

    packtok pack --source story_source.py:documents --input ../corpus.jsonl -t gpt2 -o stories.pbin

It shows all that a plug-in can declare. For JSON lines themselves, packtok needs no plug-in.
"""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import packtok


def languages(corpus: str) -> list[str]:
    """Returns the parts of a corpus: its languages, in an order that never changes."""
    return sorted({story["lang"] for story in stories(corpus)})


@packtok.source(parts=languages)
def documents(corpus: str, part: str, start: int = 0) -> Iterator[str]:
    """Yields the texts in one language, without the first ``start`` ones."""
    texts = (story["text"] for story in stories(corpus) if story["lang"] == part)
    return islice(texts, start, None)


def stories(corpus: str) -> Iterator[dict[str, Any]]:
    """Yields the lines of the file."""
    with Path(corpus).open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)

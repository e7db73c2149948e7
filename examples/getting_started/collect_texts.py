"""Writes the texts of a checkout of packtok as JSON lines, split into train and test documents.

The texts are real and need no download: packtok's documentation and source code, and the texts of
examples/corpus.jsonl. For your own texts, write a program like this one: packtok needs one JSON object with a
field "text" on each line.
"""

import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

_ROOT = Path(__file__).resolve().parent.parent.parent
_SOURCES = ["docs", "crates", "python", "examples/corpus.jsonl"]
_SUFFIXES = {".md", ".py", ".rs"}


def documents(source: Path) -> Iterator[tuple[str, str]]:
    """Yields the name and text of each document in ``source``, a folder of text or a JSON lines file."""
    if source.is_dir():
        for path in sorted(path for path in source.rglob("*") if path.suffix in _SUFFIXES):
            yield path.relative_to(source.parent).as_posix(), path.read_text(encoding="utf-8")
    else:
        for i, line in enumerate(source.read_text(encoding="utf-8").splitlines()):
            yield f"{source.name}:{i}", json.loads(line)["text"]


def is_for_test(name: str) -> bool:
    """Returns whether a document is held out. The name decides, so that a document stays on its side."""
    return zlib.crc32(name.encode()) % 20 == 0


def main(
    output: Annotated[Path, typer.Argument(help="The folder for train.jsonl and test.jsonl.")],
    sources: Annotated[list[Path] | None, typer.Argument(help="By default packtok's own texts.")] = None,
) -> None:
    """Writes the texts in SOURCES to OUTPUT, one JSON object with a field "text" per line."""
    try:
        counts = write(output, sources or [_ROOT / name for name in _SOURCES])
    except OSError as error:
        print(f"collect_texts.py: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    print(f"{output}: {counts[0]} documents for training, {counts[1]} for the test")


def write(output: Path, sources: list[Path]) -> list[int]:
    """Writes the documents of ``sources``; returns how many are for training and how many for testing.

    Raises:
        OSError: If a source cannot be read or ``output`` cannot be written.
    """
    output.mkdir(parents=True, exist_ok=True)
    counts = [0, 0]
    with (
        (output / "train.jsonl").open("w", encoding="utf-8") as train,
        (output / "test.jsonl").open("w", encoding="utf-8") as test,
    ):
        for source in sources:
            for name, text in documents(source):
                (test if is_for_test(name) else train).write(json.dumps({"text": text}) + "\n")
                counts[is_for_test(name)] += 1
    return counts


if __name__ == "__main__":
    typer.run(main)

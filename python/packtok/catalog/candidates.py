"""The names that the corpora of a dataset may have: those of its folders and of its configs."""

import functools
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from packtok.errors import ConfigError

__all__ = ["configs_in", "corpora_in"]

# Corpora are at most this many folders below the dataset, and so many folders are looked at.
_MAX_DEPTH = 3
_MAX_FOLDERS = 10_000


@functools.lru_cache(maxsize=1)
def corpora_in(dataset_path: str) -> tuple[str, ...]:
    """Returns the names that corpora may have: folders below the dataset, top first, and configs."""
    folders = islice(_folders_below(dataset_path), _MAX_FOLDERS)
    return tuple(dict.fromkeys([*folders, *configs_in(dataset_path)]))


def _folders_below(folder: str) -> Iterator[str]:
    level = [folder]
    for _ in range(_MAX_DEPTH):
        level = [path for parent in level for path in _folders_in(parent)]
        yield from (os.path.basename(path) for path in level)


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(
                entry.path for entry in entries if not entry.name.startswith(".") and entry.is_dir()
            )
    except OSError:
        return []


def configs_in(dataset_path: str) -> list[str]:
    """Returns the configs that the README.md of a Hugging Face dataset lists; empty if it lists none."""
    # Imported here, because the command line needs the questions and not what cards need.
    from packtok.catalog.cards.answers import answers_of_card

    try:
        return list(answers_of_card(Path(dataset_path, "README.md")).get("corpus", ()))
    except (ConfigError, OSError):
        return []

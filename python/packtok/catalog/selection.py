"""Datasets as they are named on the command line: ``DATASET`` or ``DATASET:corpus``."""

import os
from dataclasses import dataclass
from pathlib import Path

from packtok.catalog.corpora import corpus_input
from packtok.catalog.schema import DatasetMetadata, load_metadata
from packtok.errors import ConfigError


@dataclass(frozen=True)
class Selected:
    """A dataset, or one of its corpora."""

    metadata: DatasetMetadata
    corpus: str | None

    @property
    def name(self) -> str:
        """The name of the dataset, followed by a colon and the corpus if there is one."""
        return self.metadata.name if self.corpus is None else f"{self.metadata.name}:{self.corpus}"

    @property
    def input(self) -> Path:
        """The folder or file of its documents."""
        return corpus_input(self.metadata, self.corpus)


def select(text: str) -> Selected:
    """Returns the described dataset at a path, or a corpus of it.

    Args:
        text: A metadata file, or a folder with one; then, after a colon, the name of a corpus.

    Raises:
        ConfigError: If there is no such corpus, or the dataset does not consist of texts.
        FileNotFoundError: If there is no metadata file.
    """
    path, corpus = _split(text)
    metadata = load_metadata(path)
    if metadata.tokenized_info is not None:
        raise ConfigError(f"{metadata.path}: the dataset is tokenized already; give one of texts")
    if metadata.data_content != "text":
        raise ConfigError(f"{metadata.path}: the data is {metadata.data_content}, not text")
    return Selected(metadata, corpus)


def _split(text: str) -> tuple[str, str | None]:
    """Returns the path and the corpus; a colon in the path of an existing file separates nothing."""
    if os.path.exists(text) or ":" not in text:
        return text, None
    path, _, corpus = text.rpartition(":")
    return path, corpus

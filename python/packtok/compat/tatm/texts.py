"""`get_data`: the texts of a described dataset, read by the compiled module."""

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from packtok._packtok import Texts
from packtok.catalog.schema import DatasetMetadata
from packtok.catalog.selection import (
    DEFAULT_SPLIT,
    Selected,
    refuse_several_configs,
    select,
    select_corpus,
)
from packtok.catalog.survey import pattern_of
from packtok.config import load_config
from packtok.sources import StrPath

__all__ = ["TatmData", "TatmTextData", "get_data"]


class TatmData:
    """The data that metadata describes, under the name of tatm's class."""

    def __init__(self, metadata: DatasetMetadata) -> None:
        self.metadata = metadata

    def get_source(self) -> str:
        """Returns the name of the data."""
        return self.metadata.name


class TatmTextData(TatmData):
    """The texts of a described dataset, or of one of its corpora, in order.

    Iterating gives a dict for each document with its text under the content field of the metadata, as in
    tatm. The texts are those that `packtok.tokenize` reads. Every iteration starts at the first document.

    Args:
        metadata: The description of the dataset.
        corpus: The name of a corpus. Default: all.

    Raises:
        ConfigError: If the dataset does not consist of texts, or there is no such corpus.
        FileNotFoundError: If the data does not exist.
    """

    def __init__(
        self,
        metadata: DatasetMetadata,
        corpus: str | None = None,
        *,
        split: str | None = None,
        ignore: Sequence[str] = (),
    ) -> None:
        super().__init__(metadata)
        self.corpus = corpus
        self._selected = select_corpus(metadata, corpus, _warn)
        refuse_several_configs(self._selected)
        self._split, self._ignore = split, ignore
        self._next: Iterator[Any] | None = None

    @classmethod
    def from_metadata(cls, metadata: DatasetMetadata, corpus: str | None = None) -> "TatmTextData":
        """Returns the texts of a described dataset."""
        return cls(metadata, corpus)

    def get_source(self) -> str:
        """Returns the name of the dataset, followed by a colon and the corpus if there is one."""
        return self._selected.name

    def texts(self) -> Iterator[str]:
        """Returns the texts without dicts around them."""
        return self._texts(None)

    def __iter__(self) -> Iterator[dict[str, str]]:
        return self._texts(self.metadata.content_field)

    def _texts(self, key: str | None) -> Iterator[Any]:
        return _texts_of(self._selected, key, self._split, self._ignore)

    def __next__(self) -> dict[str, str]:
        if self._next is None:
            self._next = iter(self)
        record: dict[str, str] = next(self._next)
        return record

    def __repr__(self) -> str:
        return f"TatmTextData({self.get_source()!r})"


def get_data(
    identifier: StrPath | DatasetMetadata, *, split: str | None = None, ignore: Sequence[str] = ()
) -> TatmTextData:
    """Returns the texts of a described dataset, to be iterated over.

    Args:
        identifier: A name, a metadata file, a folder with one, or the metadata itself; ``name:corpus`` and
            ``path:corpus`` select a corpus.
        split: The split to read of a dataset that has several, or ``"all"``. Default: ``"train"``.
        ignore: Globs of files to leave out, as for `packtok.pack`.

    Raises:
        ConfigError: If the dataset does not consist of texts, or there is no such corpus.
        FileNotFoundError: If there is no such path or name.

    Example:
        >>> from packtok.data import TatmDataMetadata
        >>> keys = dict.fromkeys(["name", "description", "date_downloaded", "download_source"], "")
        >>> stories = TatmDataMetadata(**keys, data_content="text", dataset_path="corpus.jsonl")
        >>> text = next(packtok.get_data(stories))["text"]
        >>> text[:20]
        'The lighthouse at th'
    """
    if isinstance(identifier, DatasetMetadata):
        return TatmTextData(identifier, split=split, ignore=ignore)
    selected = select(os.fspath(identifier), _warn)
    return TatmTextData(selected.metadata, selected.corpus, split=split, ignore=ignore)


def _warn(remark: str) -> None:
    warnings.warn(remark, stacklevel=5)


def _texts_of(selected: Selected, key: str | None, split: str | None, ignore: Sequence[str]) -> Iterator[Any]:
    """Returns the texts of a corpus; with a key, as dicts that have the text under it."""
    pattern = pattern_of(selected.metadata.content_field)
    if selected.is_config:
        corpus = selected.plugin_input
        texts = _of_config(corpus if split is None else f"{corpus}@{split}", pattern)
        return texts if key is None else ({key: text} for text in texts)
    options = {
        "input": str(selected.input),
        "output": "-",
        "field": pattern,
        "split": split or DEFAULT_SPLIT,
        "ignore": ignore,
    }
    # The placeholders have no effect: nothing is written, and no tokenizer is loaded.
    return Texts(load_config(None, {**options, "tokenizer": "gpt2"}).spec(), key)


def _of_config(corpus: str, pattern: str) -> Iterator[str]:
    from packtok.plugins.hf_datasets import datasets_plugin

    plugin = datasets_plugin({corpus: pattern})
    for part in plugin.parts(corpus) or ():
        yield from plugin.open(corpus, part, 0)

"""Datasets as they are named on the command line: ``DATASET`` or ``DATASET:corpus``."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

from packtok.catalog.candidates import configs_in
from packtok.catalog.corpora import check_corpus_name, corpus_input, is_config, path_or_name, plugin_input
from packtok.catalog.names import Remark, find_dataset
from packtok.catalog.places import remarks_on_paths
from packtok.catalog.schema import DatasetMetadata
from packtok.errors import ConfigError

# The split that is read if a dataset has several.
DEFAULT_SPLIT = "train"


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

    @property
    def is_config(self) -> bool:
        """Whether the corpus is a config that Hugging Face `datasets` reads."""
        if self.corpus is None:
            return False
        check_corpus_name(self.metadata, self.corpus)
        return is_config(self.metadata, self.corpus)

    @property
    def plugin_input(self) -> str:
        """The corpus as a source plug-in receives it."""
        return plugin_input(self.metadata, self.corpus)


def refuse_several_configs(selected: Selected) -> None:
    """Raises a `ConfigError` that lists the configs of a dataset if it has several and none is selected."""
    metadata = selected.metadata
    known = metadata.corpuses if metadata.corpus_separation_strategy == "configs" else []
    if selected.corpus is None and len(known) > 1:
        path = metadata.folder if metadata.path is not None else metadata.name
        raise ConfigError(
            f"{path_or_name(metadata)}: the dataset has several configs: {', '.join(known)}; give one, such "
            f"as {path}:{known[0]}"
        )


def select(text: str, remark: Remark = lambda _: None) -> Selected:
    """Returns the described dataset at a path or with a name, or a corpus of it.

    Args:
        text: A metadata file, a folder with one, or a name; then, after a colon, the name of a corpus.
        remark: Receives a remark if names are looked up without an index.

    Raises:
        ConfigError: If there is no such corpus, or the dataset does not consist of texts.
        FileNotFoundError: If there is no metadata file.
    """
    name, corpus = _split(text)
    return select_corpus(find_dataset(name, remark), corpus, remark)


def select_corpus(metadata: DatasetMetadata, corpus: str | None, remark: Remark = lambda _: None) -> Selected:
    """Returns a dataset, or a corpus of it.

    Args:
        metadata: The description of the dataset.
        corpus: The name of the corpus; ``None`` for all.
        remark: Receives a remark if a relative path starts at the current folder.

    Raises:
        ConfigError: If the dataset does not consist of texts.
    """
    if metadata.tokenized_info is not None:
        raise ConfigError(f"{path_or_name(metadata)}: the dataset is tokenized already; give one of texts")
    if metadata.data_content != "text":
        raise ConfigError(f"{path_or_name(metadata)}: the data is {metadata.data_content}, not text")
    for text in remarks_on_paths(metadata):
        remark(text)
    return Selected(_with_configs(metadata), corpus)


def _with_configs(metadata: DatasetMetadata) -> DatasetMetadata:
    """Returns the metadata with the configs that ``README.md`` lists as corpora, if it has no corpora."""
    configs = [] if metadata.corpuses else configs_in(str(metadata.dataset_folder))
    if not configs:
        return metadata
    return dataclasses.replace(metadata, corpuses=configs, corpus_separation_strategy="configs")


def _split(text: str) -> tuple[str, str | None]:
    """Returns the dataset and the corpus; a colon in the path of an existing file separates nothing."""
    if os.path.exists(text) or ":" not in text:
        return text, None
    name, _, corpus = text.rpartition(":")
    return name, corpus

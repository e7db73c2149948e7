"""The inputs of a described dataset: its folder, or the folder of one of its corpora."""

import errno
from pathlib import Path

from packtok.catalog.places import missing_data
from packtok.catalog.schema import DatasetMetadata
from packtok.choices import suggestion
from packtok.errors import ConfigError


def corpus_input(metadata: DatasetMetadata, corpus: str | None = None) -> Path:
    """Returns the folder or file with the documents of a dataset, or of one of its corpora.

    Raises:
        ConfigError: If there is no corpus of that name, or the corpora are configs of `datasets`.
        FileNotFoundError: If the dataset does not exist.
    """
    if (missing := missing_data(metadata)) is not None:
        raise FileNotFoundError(errno.ENOENT, missing, path_or_name(metadata))
    if corpus is None:
        return metadata.dataset_folder
    check_corpus_name(metadata, corpus)
    if is_config(metadata, corpus):
        raise ConfigError(
            f"{path_or_name(metadata)}: corpus {corpus!r} is a config of a Hugging Face dataset and no "
            "folder; read it with --source datasets"
        )
    return _folder_of(metadata, corpus)


def is_config(metadata: DatasetMetadata, corpus: str) -> bool:
    """Returns whether a corpus is a config of `datasets`; without a strategy, whether it is no folder."""
    if metadata.corpus_separation_strategy is None:
        return not _folder_of(metadata, corpus).exists()
    return metadata.corpus_separation_strategy == "configs"


def plugin_input(metadata: DatasetMetadata, corpus: str | None = None) -> str:
    """Returns a dataset, or one of its corpora, as a source plug-in receives it: ``FOLDER[:CORPUS]``.

    Raises:
        ConfigError: If there is no corpus of that name.
    """
    if corpus is None:
        return str(metadata.dataset_folder)
    check_corpus_name(metadata, corpus)
    return f"{metadata.dataset_folder}:{corpus}"


def _folder_of(metadata: DatasetMetadata, corpus: str) -> Path:
    return metadata.dataset_folder / (metadata.corpus_data_dir_parent or "") / corpus


def separate_corpora(metadata: DatasetMetadata) -> list[str]:
    """Returns the corpora that are folders of their own; empty if the dataset is one corpus."""
    return metadata.corpuses if metadata.corpus_separation_strategy == "data_dirs" else []


def check_corpus_name(metadata: DatasetMetadata, corpus: str) -> None:
    """Raises a `ConfigError` that lists the known corpora if ``corpus`` is none of them."""
    if corpus in metadata.corpuses:
        return
    hint = suggestion(corpus, metadata.corpuses)
    known = ", ".join(map(repr, metadata.corpuses)) or "none"
    raise ConfigError(f"{path_or_name(metadata)}: no corpus {corpus!r}; the dataset has {known}{hint}")


def path_or_name(metadata: DatasetMetadata) -> str:
    """Returns the path of the metadata, or its name if it was not read from a file."""
    return metadata.name if metadata.path is None else str(metadata.path)

"""Finds the token files of a dataset, from its name, its path or its metadata; imports no torch."""

import glob
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok._packtok import is_url
from packtok.catalog.base import find_base
from packtok.catalog.names import find_dataset
from packtok.catalog.places import remarks_on_paths, token_prefix
from packtok.catalog.schema import (
    METADATA_NAMES,
    METADATA_SUFFIXES,
    DatasetMetadata,
    load_details,
    load_metadata,
)
from packtok.data.raw_files import files_with_prefix
from packtok.errors import ConfigError
from packtok.shard_folder import ShardFolder
from packtok.sources import FORMAT_SUFFIXES, Source, StrPath, find_files, indexed_files, is_manifest
from packtok.tokenizer.find import TOKENIZER_FILE

__all__ = [
    "PaddedFiles",
    "TokenFiles",
    "files_of_dataset",
    "files_of_source",
    "is_described",
    "listed_pbins",
    "padded_files",
]

_PBIN_SUFFIX = ".pbin"
# The first line of a manifest has a path and six numbers.
_MOST_LINE_BYTES = 1 << 16
Remark = Callable[[str], None]


@dataclass(frozen=True)
class TokenFiles:
    """The token files of a dataset."""

    files: dict[str, Any]
    """The arguments ``paths``, ``manifest`` or ``entries``, and ``read_as``, of `packtok._packtok.Blocks`."""
    metadata: DatasetMetadata | None = None
    """The description by which the files were found; ``None`` if they were not found by one."""
    eos_token: int | None = None
    """The id that ends every document in files without a header, if it is recorded."""

    def read_as(self, format: str | None, input_dtype: str | None, boundaries: str | None) -> "TokenFiles":
        """Returns the files with what the caller says about them; the arguments are those of `PbinReader`.

        Raises:
            ConfigError: If metadata say how the files are read.
        """
        given = (format, input_dtype, boundaries)
        if given == (None, None, None):
            return self
        if self.is_raw:
            raise ConfigError(
                f"{self.files['entries'][0][0]}: the metadata of the dataset say how its files are read; "
                "remove format, input_dtype and boundaries"
            )
        return replace(self, files={**self.files, "read_as": given})

    @property
    def is_raw(self) -> bool:
        """Whether the files have no header."""
        return "entries" in self.files

    @property
    def reading(self) -> tuple[str | None, str | None, str | None]:
        """How `PbinReader` opens the files: format, type of ids and boundaries."""
        if self.is_raw and self.metadata is not None and self.metadata.tokenized_info is not None:
            return "raw", self.metadata.tokenized_info.dtype, None
        reading: tuple[str | None, str | None, str | None] = self.files.get("read_as", (None, None, None))
        return reading

    @property
    def vocab_size(self) -> int | None:
        """The size of the vocabulary in the metadata."""
        info = None if self.metadata is None else self.metadata.tokenized_info
        return None if info is None else info.vocab_size


@dataclass(frozen=True)
class PaddedFiles:
    """The files of a dataset of tatm, and what is known of them."""

    paths: list[str]
    dtype: str
    """NumPy's name of the type of the ids."""
    eos_token: int | None
    """The id that ends every document; ``None`` if the tokenizer appends none, or is not there."""
    tokenizer: str | None
    """The file of the tokenizer; ``None`` if it is not there."""
    num_padding: int
    """The number of zeros at the ends of the files."""


def padded_files(folder: str, remark: Remark) -> PaddedFiles | None:
    """Returns the files of a folder that tatm wrote; ``None`` for any other folder.

    Raises:
        ConfigError: If the metadata is invalid or files are missing.
    """
    if not os.path.isdir(folder) or _is_of_other_format(folder) or not is_described(folder):
        return None
    token_files = files_of_dataset(folder, remark)
    if not token_files.is_raw or token_files.metadata is None or token_files.metadata.tokenized_info is None:
        return None
    entries = token_files.files["entries"]
    paths = [os.fspath(path) for path, *_ in entries]
    tokenizer = Path(paths[0]).parent / TOKENIZER_FILE
    eos_token = token_files.eos_token
    if eos_token is None and tokenizer.is_file():
        eos_token = _packtok.appended_id(str(tokenizer), tokenizer.read_bytes().decode(errors="replace"))
    return PaddedFiles(
        paths=paths,
        dtype=token_files.metadata.tokenized_info.dtype,
        eos_token=eos_token,
        tokenizer=str(tokenizer) if tokenizer.is_file() else None,
        num_padding=sum(
            file_bytes // token_bytes - tokens for _, file_bytes, token_bytes, _, tokens, *_ in entries
        ),
    )


def _is_of_other_format(folder: str) -> bool:
    """Returns whether a folder has files that tatm does not write, so that metadata do not describe them."""
    endings = tuple(set(FORMAT_SUFFIXES.values()) - {".bin", ".npy"})
    return indexed_files(Path(folder)) is not None or any(
        name.endswith(endings) for name in os.listdir(folder)
    )


def files_of_dataset(source: StrPath | DatasetMetadata, remark: Remark) -> TokenFiles:
    """Returns the files of a described dataset, or those at a path, as `packtok.get_dataset` takes them.

    Raises:
        ConfigError: If there is no dataset with the name, it is not tokenized, or files are missing.
        FileNotFoundError: If there is no such path.
    """
    if isinstance(source, DatasetMetadata):
        return _described(source, remark)
    text = os.fspath(source)
    if _is_of_token_files(text):
        return TokenFiles(dict(find_files(text)))
    return _described(find_dataset(text, remark), remark)


def files_of_source(source: Source, remark: Remark) -> TokenFiles:
    """Returns the files of a source of `packtok.TokenDataset`: pbins, or those of a described dataset.

    Raises:
        ConfigError: As `files_of_dataset`; or if a list is empty, or a glob matches nothing.
        FileNotFoundError: If there is no such path.
    """
    if isinstance(source, str | os.PathLike) and is_described(os.fspath(source)):
        return files_of_dataset(source, remark)
    return TokenFiles(dict(find_files(source)))


def is_described(text: str) -> bool:
    """Returns whether a description lists the files: the text is its path, or may be its name."""
    if is_url(text):
        return False
    if os.path.isdir(text):
        names = set(os.listdir(text))
        if any(name.endswith(_PBIN_SUFFIX) for name in names) or names.isdisjoint(METADATA_NAMES):
            return False
        # The folder of a dataset of texts may have pbins in folders below it, which need no description.
        return load_metadata(text).tokenized_info is not None
    if os.path.isfile(text):
        return text.endswith(METADATA_SUFFIXES) and not _is_manifest(text)
    return not text.startswith(("/", ".")) and not glob.has_magic(text) and find_base() is not None


def _is_of_token_files(path: str) -> bool:
    """Returns whether the path or URL names token files without a description."""
    if is_url(path):
        return True
    if os.path.isdir(path):
        names = set(os.listdir(path))
        if any(name.startswith("metadata.") for name in names):
            return False
        if _packtok.PLAN_NAME in names:
            _check_finished(Path(path))
        if not any(name.endswith(_PBIN_SUFFIX) for name in names):
            _refuse_unfinished(path, names)
        endings = tuple(FORMAT_SUFFIXES.values())
        # Compressed files have other endings, and their index lists them.
        return any(name.endswith(endings) for name in names) or indexed_files(Path(path)) is not None
    return os.path.isfile(path) and (not path.endswith(METADATA_SUFFIXES) or _is_manifest(path))


def _refuse_unfinished(folder: str, names: Iterable[str]) -> None:
    """Raises a `ConfigError` if a run that packs into the folder is unfinished."""
    started = [name for name in names if f"{_PBIN_SUFFIX}." in name]
    if started:
        raise ConfigError(
            f"{folder}: has no tokens yet, but {sorted(started)[0]} of an unfinished run; run the command "
            "that writes the folder again, which resumes it"
        )


def _check_finished(folder: Path) -> None:
    """Raises a `ConfigError` unless all shards of a run are in the folder."""
    shards = ShardFolder.open(folder)
    num_finished, num_shards = len(shards.finished()), shards.plan.num_shards
    if num_finished < num_shards:
        raise ConfigError(
            f"{folder}: {num_finished:,} of {num_shards:,} shards are finished; run the command that writes "
            "them again, and give its output"
        )


def _is_manifest(path: str) -> bool:
    """Returns whether a JSON file is a manifest and not the metadata of a dataset."""
    if not is_manifest(path):
        return False
    with open(path, "rb") as file:
        return b'"file_bytes"' in file.readline(_MOST_LINE_BYTES)


def _described(metadata: DatasetMetadata, remark: Remark) -> TokenFiles:
    info, where = metadata.tokenized_info, metadata.path or "the metadata"
    if info is None:
        raise ConfigError(
            f"{where}: the dataset is not tokenized; run packtok tokenize, and give the folder that it writes"
        )
    suffix = info.file_extension.removeprefix(".")
    details = {} if metadata.path is None else load_details(metadata.path)
    if listed := listed_pbins(details):
        return TokenFiles({"paths": [str(metadata.folder / name) for name in listed]}, metadata)
    for text in remarks_on_paths(metadata):
        remark(text)
    files = files_with_prefix(str(token_prefix(metadata, info)[0]), info.dtype, suffix)
    eos_token = details.get("eos_token_id")
    return TokenFiles(files, metadata, eos_token if isinstance(eos_token, int) else None)


def listed_pbins(details: dict[str, Any]) -> list[str]:
    """Returns the names of the token files in a file of details; empty unless all are pbins.

    They are those of the dataset. A dataset without such a list has the files with its prefix.
    """
    match details:
        case {"files": [*files]}:
            names = [
                file["path"] for file in files if isinstance(file, dict) and isinstance(file.get("path"), str)
            ]
            return names if all(name.endswith(_PBIN_SUFFIX) for name in names) else []
    return []

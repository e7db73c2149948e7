"""`get_dataset`: the dataset for training of a described, tokenized dataset."""

import glob
import os
from pathlib import Path
from typing import Any, Unpack

from packtok._packtok import PbinReader, is_url
from packtok.catalog.names import find_dataset
from packtok.catalog.schema import DatasetMetadata, load_details
from packtok.data.tatm import ItemOptions, TatmMemmapDataset, files_with_prefix
from packtok.errors import ConfigError
from packtok.sources import StrPath, find_files, is_manifest

__all__ = ["get_dataset"]

_PBIN_SUFFIX = ".pbin"
# The first line of a manifest has a path and six numbers.
_MOST_LINE_BYTES = 1 << 16


def get_dataset(
    metadata: StrPath | DatasetMetadata, context_length: int, **options: Unpack[ItemOptions]
) -> TatmMemmapDataset:
    """Returns the items of a tokenized dataset, from its name or its path.

    Args:
        metadata: A name; a folder or a metadata file of `packtok.tokenize` or tatm; the metadata itself; a
            pbin or its URL, a folder of pbins, or a manifest. A text that is an existing path, or starts with
            ``/`` or ``.``, is not a name.
        context_length: Number of tokens per item.
        **options: As those of `packtok.data.TatmMemmapDataset`. ``vocab_size`` is that of the metadata or the
            pbin by default.

    Raises:
        ConfigError: If there is no dataset with the name, it is not tokenized, files are missing, or an
            option is invalid.
        FileNotFoundError: If there is no such path.
        PbinFormatError: If a file is damaged.

    Example:
        >>> dataset = packtok.get_dataset("train.pbin", 128)
        >>> dataset[0].token_ids.shape
        (128,)
    """
    files, vocab_size = _found(metadata)
    options.setdefault("vocab_size", vocab_size)
    return TatmMemmapDataset.of_files(files, context_length, **options)


def _found(metadata: StrPath | DatasetMetadata) -> tuple[dict[str, Any], int | None]:
    """Returns the files, as arguments of `packtok._packtok.Blocks`, and the size of the vocabulary."""
    if not isinstance(metadata, DatasetMetadata):
        text = os.fspath(metadata)
        if _is_of_token_files(text):
            files: dict[str, Any] = dict(find_files(text))
            return files, _vocab_size(files)
        metadata = find_dataset(text)
    return _described_files(metadata)


def _is_of_token_files(path: str) -> bool:
    """Returns whether the path or URL names pbins without a description."""
    if is_url(path):
        return True
    if os.path.isdir(path):
        names = set(os.listdir(path))
        return not any(name.startswith("metadata.") for name in names) and any(
            name.endswith(_PBIN_SUFFIX) for name in names
        )
    return os.path.isfile(path) and (path.endswith(_PBIN_SUFFIX) or _is_manifest(path))


def _is_manifest(path: str) -> bool:
    """Returns whether a JSON file is a manifest and not the metadata of a dataset."""
    if not is_manifest(path):
        return False
    with open(path, "rb") as file:
        return b'"file_bytes"' in file.readline(_MOST_LINE_BYTES)


def _described_files(metadata: DatasetMetadata) -> tuple[dict[str, Any], int | None]:
    info, where = metadata.tokenized_info, metadata.path or "the metadata"
    if info is None:
        raise ConfigError(
            f"{where}: the dataset is not tokenized; run packtok tokenize, and give the folder that it writes"
        )
    suffix = info.file_extension.removeprefix(".")
    details = {} if metadata.path is None else load_details(metadata.path)
    listed = [str(metadata.folder / one["path"]) for one in details.get("files", ())]
    if listed and all(path.endswith(_PBIN_SUFFIX) for path in listed):
        files: dict[str, Any] = {"paths": listed}
    else:
        files = files_with_prefix(str(_prefix(metadata, info.file_prefix, suffix)), info.dtype, suffix)
    return files, info.vocab_size if info.vocab_size is not None else _vocab_size(files)


def _prefix(metadata: DatasetMetadata, prefix: str, suffix: str) -> Path:
    """Returns the start of the paths of the files.

    tatm records an absolute path. In a folder that was moved since, the files are next to the metadata.
    """
    recorded = metadata.folder / prefix
    beside = metadata.folder / Path(prefix).name
    is_moved = not glob.glob(f"{glob.escape(str(recorded))}*.{suffix}")
    return beside if is_moved else recorded


def _vocab_size(files: dict[str, Any]) -> int | None:
    """Returns the size of the vocabulary that the first of a list of pbins records."""
    metadata = PbinReader(files["paths"][0]).metadata if "paths" in files else None
    return None if metadata is None else metadata.get("tokenizer", {}).get("vocab_size")

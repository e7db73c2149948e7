"""`get_dataset`: the dataset for training of a described, tokenized dataset."""

import glob
import os
import warnings
from pathlib import Path
from typing import Any, Unpack

from packtok import _packtok
from packtok._packtok import PbinReader, is_url
from packtok.catalog.names import find_dataset
from packtok.catalog.schema import DatasetMetadata, load_details
from packtok.data.raw_files import files_with_prefix
from packtok.data.tatm import ItemOptions, TatmMemmapDataset
from packtok.errors import ConfigError
from packtok.shard_folder import ShardFolder
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
    dataset = TatmMemmapDataset.of_files(files, context_length, **options)
    if dataset.vocab_size is None:
        dataset.vocab_size = vocab_size if vocab_size is not None else _recorded_vocab_size(files, dataset)
    return dataset


def _found(metadata: StrPath | DatasetMetadata) -> tuple[dict[str, Any], int | None]:
    """Returns the files, as arguments of `packtok._packtok.Blocks`, and the size of the vocabulary."""
    if not isinstance(metadata, DatasetMetadata):
        text = os.fspath(metadata)
        if _is_of_token_files(text):
            return dict(find_files(text)), None
        metadata = find_dataset(text, lambda remark: warnings.warn(remark, stacklevel=5))
    return _described_files(metadata)


def _is_of_token_files(path: str) -> bool:
    """Returns whether the path or URL names pbins without a description."""
    if is_url(path):
        return True
    if os.path.isdir(path):
        names = set(os.listdir(path))
        if any(name.startswith("metadata.") for name in names):
            return False
        if _packtok.PLAN_NAME in names:
            _check_finished(Path(path))
        return any(name.endswith(_PBIN_SUFFIX) for name in names)
    return os.path.isfile(path) and (path.endswith(_PBIN_SUFFIX) or _is_manifest(path))


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


def _described_files(metadata: DatasetMetadata) -> tuple[dict[str, Any], int | None]:
    info, where = metadata.tokenized_info, metadata.path or "the metadata"
    if info is None:
        raise ConfigError(
            f"{where}: the dataset is not tokenized; run packtok tokenize, and give the folder that it writes"
        )
    suffix = info.file_extension.removeprefix(".")
    details = {} if metadata.path is None else load_details(metadata.path)
    listed = [str(metadata.folder / name) for name in _listed(details)]
    if listed and all(path.endswith(_PBIN_SUFFIX) for path in listed):
        files: dict[str, Any] = {"paths": listed}
    else:
        files = files_with_prefix(str(_prefix(metadata, info.file_prefix, suffix)), info.dtype, suffix)
    return files, info.vocab_size


def _prefix(metadata: DatasetMetadata, prefix: str, suffix: str) -> Path:
    """Returns the start of the paths of the files.

    tatm records an absolute path. In a folder that was moved since, the files are next to the metadata.
    """
    recorded = metadata.folder / prefix
    beside = metadata.folder / Path(prefix).name
    is_moved = not glob.glob(f"{glob.escape(str(recorded))}*.{suffix}")
    return beside if is_moved else recorded


def _listed(details: dict[str, Any]) -> list[str]:
    """Returns the names of the token files that packtok wrote."""
    match details:
        case {"files": [*files]}:
            return [
                one["path"] for one in files if isinstance(one, dict) and isinstance(one.get("path"), str)
            ]
    return []


def _recorded_vocab_size(files: dict[str, Any], dataset: TatmMemmapDataset) -> int | None:
    """Returns the size of the vocabulary that the first pbin records."""
    # Files without a header record nothing.
    metadata = None if "entries" in files else PbinReader(dataset.paths[0]).metadata
    return None if metadata is None else metadata.get("tokenizer", {}).get("vocab_size")

"""`get_dataset`: the dataset for training of a described, tokenized dataset.

This module is separate from the dataset, because workers that unpickle a dataset need no catalogue.
"""

import warnings
from typing import Any, Unpack

from packtok._packtok import PbinReader
from packtok.catalog.schema import DatasetMetadata
from packtok.compat.tatm.dataset import ItemOptions, TatmMemmapDataset, check_options
from packtok.data.token_sources import files_of_dataset
from packtok.sources import StrPath

__all__ = ["get_dataset"]


def get_dataset(
    metadata: StrPath | DatasetMetadata,
    context_length: int,
    *,
    format: str | None = None,
    input_dtype: str | None = None,
    boundaries: str | None = None,
    **options: Unpack[ItemOptions],
) -> TatmMemmapDataset:
    """Returns the items of a tokenized dataset, from its name or its path.

    Args:
        metadata: A name; a folder or a metadata file of `packtok.tokenize` or tatm; the metadata itself; a
            pbin or its URL, a folder of pbins, or a manifest. A text that is an existing path, or starts with
            ``/`` or ``.``, is not a name.
        context_length: Number of tokens per item. The first example of docs/guides/coming_from_tatm.md makes
            a batch for ``nn.Embedding``, which needs ``token_output_format="torch"``.
        format: As in `packtok.TokenDataset`.
        input_dtype: As in `packtok.TokenDataset`.
        boundaries: As in `packtok.TokenDataset`.
        **options: As those of `packtok.data.TatmMemmapDataset`. ``vocab_size`` is that of the metadata or the
            pbin by default.

    Raises:
        ConfigError: If there is no dataset with the name, it is not tokenized, files are missing, or an
            option is invalid.
        FileNotFoundError: If there is no such path or name.
        TypeError: If there is no such option.
        PbinFormatError: If a file is damaged.

    Example:
        >>> dataset = packtok.get_dataset("train.pbin", 128)
        >>> dataset[0].token_ids.shape
        (128,)
    """
    check_options("get_dataset", options)
    token_files = files_of_dataset(metadata, lambda remark: warnings.warn(remark, stacklevel=5))
    token_files = token_files.read_as(format, input_dtype, boundaries)
    if options.get("eos_token") is None and token_files.eos_token is not None:
        options = {**options, "eos_token": token_files.eos_token}
    dataset = TatmMemmapDataset.of_files(token_files.files, context_length, **options)
    if dataset.vocab_size is None:
        dataset.vocab_size = token_files.vocab_size
    if dataset.vocab_size is None:
        dataset.vocab_size = _recorded_vocab_size(token_files.files, dataset)
    return dataset


def _recorded_vocab_size(files: dict[str, Any], dataset: TatmMemmapDataset) -> int | None:
    """Returns the size of the vocabulary that the first pbin records."""
    # Files without a header record nothing.
    if "entries" in files:
        return None
    metadata = PbinReader(dataset.paths[0], *files.get("read_as", ())).metadata
    return None if metadata is None else metadata.get("tokenizer", {}).get("vocab_size")

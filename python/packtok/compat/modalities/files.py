"""Modalities' functions that shuffle and filter files and prepare instructions, by their names and arguments.

With a seed, the order is that of Modalities. Unlike there, an output is published complete and never removed
first, and larger files take no more memory, apart from 4 bytes a document. Errors are those of packtok: an
existing output is a `FileExistsError`.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from packtok.commands import instruction, shuffle
from packtok.remedies import entry_point
from packtok.sources import StrPath

__all__ = [
    "FileExistencePolicy",
    "create_filtered_tokenized_dataset",
    "create_instruction_tuning_data",
    "create_shuffled_dataset_chunk",
    "create_shuffled_jsonl_dataset_chunk",
    "filter_dataset",
    "shuffle_jsonl_data",
    "shuffle_tokenized_data",
]

# The types in which Modalities' datasets return token ids, by bytes of a token in the file.
_DTYPES: dict[int, npt.DTypeLike] = {1: np.uint8, 2: np.int32, 4: np.int64}


class FileExistencePolicy(Enum):
    """The treatment of an output that already exists."""

    SKIP = "skip"
    """The output is kept if it is proven to be the result; otherwise an error is raised."""
    ERROR = "error"
    """An error is raised."""
    OVERRIDE = "override"
    """The output is replaced in one step when the new file is complete."""


@entry_point()
def shuffle_tokenized_data(
    input_data_path: StrPath,
    output_data_path: StrPath,
    batch_size: int = 100,
    file_existence_policy: FileExistencePolicy = FileExistencePolicy.ERROR,
    seed: int | None = None,
) -> None:
    """Shuffles the documents of a pbin.

    Args:
        input_data_path: The pbin.
        output_data_path: The pbin to write.
        batch_size: Has no effect.
        file_existence_policy: What to do if the output exists.
        seed: Seed of the order of Python's `random.Random`. Default: packtok's order with a random seed,
            which the trailer records.

    Raises:
        FileExistsError: If the output exists.
        PacktokError: If the input is damaged, or the existing output is not the result.
        ValueError: If the output is the input.
    """
    existing = _existing(file_existence_policy)
    shuffle.shuffle_file("pbin", input_data_path, output_data_path, seed=seed, existing=existing)


@entry_point()
def shuffle_jsonl_data(
    input_data_path: StrPath,
    output_data_path: StrPath,
    file_existence_policy: FileExistencePolicy = FileExistencePolicy.ERROR,
    seed: int | None = None,
) -> None:
    """Shuffles the lines of a JSONL file. A last line without a newline gets one.

    Args:
        input_data_path: The file.
        output_data_path: The file to write.
        file_existence_policy: What to do if the output exists.
        seed: Seed of the order of Python's `random.Random`. Default: packtok's order with a random seed.

    Raises:
        FileExistsError: If the output exists.
        PacktokError: If the input is compressed, or the existing output is not the result.
        ValueError: If the output is the input.
    """
    existing = _existing(file_existence_policy)
    shuffle.shuffle_file("jsonl", input_data_path, output_data_path, seed=seed, existing=existing)


@entry_point()
def create_shuffled_dataset_chunk(
    file_path_list: Sequence[StrPath],
    output_chunk_file_path: StrPath,
    chunk_id: int,
    num_chunks: int,
    file_existence_policy: FileExistencePolicy = FileExistencePolicy.ERROR,
    global_seed: int | None = None,
) -> None:
    """Shuffles one chunk of each of several pbins into a pbin.

    Args:
        file_path_list: The pbins, in order.
        output_chunk_file_path: The pbin to write.
        chunk_id: The chunk, from 0.
        num_chunks: The number of chunks that each pbin is divided into.
        file_existence_policy: What to do if the output exists.
        global_seed: Seed that is hashed with ``chunk_id`` to the seed of NumPy's generator. Default:
            packtok's order with a random seed, which the trailer records.

    Raises:
        FileExistsError: If the output exists.
        PacktokError: If a pbin is damaged, pbins are incompatible, or the existing output is not the result.
        ValueError: If there is no such chunk, it has no documents, or the output is an input.
    """
    shuffle.shuffle_chunk(
        "pbin",
        file_path_list,
        output_chunk_file_path,
        chunk_id=chunk_id,
        num_chunks=num_chunks,
        global_seed=global_seed,
        existing=_existing(file_existence_policy),
    )


@entry_point()
def create_shuffled_jsonl_dataset_chunk(
    file_path_list: Sequence[StrPath],
    output_chunk_file_path: StrPath,
    chunk_id: int,
    num_chunks: int,
    file_existence_policy: FileExistencePolicy = FileExistencePolicy.ERROR,
    global_seed: int | None = None,
) -> None:
    """Shuffles one chunk of each of several JSONL files into a file; see `create_shuffled_dataset_chunk`."""
    shuffle.shuffle_chunk(
        "jsonl",
        file_path_list,
        output_chunk_file_path,
        chunk_id=chunk_id,
        num_chunks=num_chunks,
        global_seed=global_seed,
        existing=_existing(file_existence_policy),
    )


@entry_point()
def filter_dataset(
    src_path: StrPath,
    dst_path: StrPath,
    filter_func: Callable[[tuple[int, dict[str, npt.NDArray[np.int_]]]], bool],
    *,
    file_existence_policy: FileExistencePolicy = FileExistencePolicy.ERROR,
) -> None:
    """Writes the documents of a pbin for which a function is true, in order; there may be none.

    Other than in Modalities, an existing output is not replaced unless ``file_existence_policy`` says so. If
    all documents are kept, the output is a copy of the input.

    Args:
        src_path: The pbin.
        dst_path: The pbin to write.
        filter_func: Called with the number of a document and a dict whose ``"input_ids"`` are its token ids.
        file_existence_policy: What to do if the output exists. With `FileExistencePolicy.SKIP`, the filter
            runs and the existing file is compared with the result.

    Raises:
        FileExistsError: If the output exists.
        PacktokError: If the input is damaged, or the existing output is not the result.
        ValueError: If the output is the input.
    """

    def keeps(i: int, tokens: npt.NDArray[Any]) -> bool:
        return filter_func((i, {"input_ids": tokens.astype(_DTYPES[tokens.dtype.itemsize])}))

    shuffle.filter_pbin(src_path, dst_path, keeps, existing=_existing(file_existence_policy))


@entry_point()
def create_filtered_tokenized_dataset(
    input_data_path: StrPath,
    filter_routine: Callable[[int], bool],
    output_data_path: StrPath,
    file_existence_policy: FileExistencePolicy = FileExistencePolicy.ERROR,
) -> None:
    """Writes the documents of a pbin whose numbers a function accepts, in order.

    Args:
        input_data_path: The pbin.
        filter_routine: Called with the number of each document.
        output_data_path: The pbin to write.
        file_existence_policy: As in `filter_dataset`.

    Raises:
        FileExistsError: If the output exists.
        PacktokError: If the input is damaged, or the existing output is not the result.
        ValueError: If no document is kept, or the output is the input. Nothing is written then.
    """
    shuffle.filter_pbin(
        input_data_path,
        output_data_path,
        lambda i, _tokens: filter_routine(i),
        existing=_existing(file_existence_policy),
        requires_documents=True,
    )


def _existing(policy: FileExistencePolicy) -> str:
    policy = FileExistencePolicy(policy)
    return "replace" if policy is FileExistencePolicy.OVERRIDE else policy.value


def create_instruction_tuning_data(config_file_path: StrPath) -> None:
    """Renders conversations, splits them and packs each part, as `packtok.prepare_instruction_tuning_data`.

    Args:
        config_file_path: Modalities' config.
    """
    instruction.prepare_instruction_tuning_data(config_file_path)

"""Implements the commands that shuffle pbins and JSONL files: chooses generator and seed."""

import secrets
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy.typing as npt

from packtok import _packtok
from packtok.choices import check_choice
from packtok.errors import ConfigError
from packtok.integers import integer
from packtok.progress import Progress
from packtok.resuming import LOST_NOTE, explaining
from packtok.sources import StrPath

Kind = Literal["pbin", "jsonl"]
ORDERS = ("modalities", "packtok")
# Few digits to type, and exact in JSON readers that have no integers.
RANDOM_SEED_BITS = 48
MAX_SEED_BITS = 64
# Documents per decision of a filter, before they are written.
DOCUMENTS_PER_CALL = 1024


def shuffle_file(
    kind: Kind,
    input_path: StrPath,
    output_path: StrPath,
    *,
    seed: int | None = None,
    order: str | None = None,
    existing: str = "error",
    on_progress: Progress | None = None,
    memory: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Shuffles the documents of a pbin or the lines of a JSONL file and returns a report.

    Files that are small compared with the memory of a machine are shuffled in memory, others through a
    temporary file next to the output. The memory is 4 bytes a document, 16 more if there is a loss mask, and
    at most 500 MB.

    Args:
        kind: ``"pbin"`` or ``"jsonl"``.
        input_path: The file.
        output_path: The file to write.
        seed: Seed of the order. Default: a random one, in packtok's order; the report has it.
        order: ``"modalities"``, the order of `random.Random(seed).shuffle`, or ``"packtok"``, that of
            `packtok.Permutation`. Default: that of Modalities if there is a seed.
        existing: ``"error"``, ``"skip"`` or ``"replace"``.
        on_progress: As in `packtok.pack`.
        memory: Bytes of a file that is shuffled in memory, and of the parts of a larger one. For tests.

    Raises:
        PacktokError: If the input is damaged, or an existing output is not the result.
    """
    generator, digits = _generator("python", seed, order)
    return _shuffled(
        kind,
        [input_path],
        output_path,
        generator,
        digits,
        seed is not None,
        None,
        existing,
        on_progress,
        memory,
    )


def shuffle_chunk(
    kind: Kind,
    files: Sequence[StrPath],
    output_path: StrPath,
    *,
    chunk_id: int,
    num_chunks: int,
    global_seed: int | None = None,
    order: str | None = None,
    existing: str = "error",
    on_progress: Progress | None = None,
    memory: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Shuffles the documents of one chunk of each file into a file and returns a report.

    Args:
        kind: ``"pbin"`` or ``"jsonl"``.
        files: The files, in order. Each is divided into ``num_chunks`` chunks of equal numbers of documents.
        output_path: The file to write.
        chunk_id: The chunk, from 0.
        num_chunks: The number of chunks.
        global_seed: As ``seed`` of `shuffle_file`. With Modalities' order, it and ``chunk_id`` are hashed to
            the seed of NumPy's generator.
        order: As in `shuffle_file`.
        existing: As in `shuffle_file`.
        on_progress: As in `packtok.pack`.
        memory: As in `shuffle_file`.

    Raises:
        ValueError: If there is no such chunk, or it has no documents.
        PacktokError: As in `shuffle_file`, or if the files are incompatible.
    """
    chunk = _natural("chunk_id", chunk_id), _natural("num_chunks", num_chunks)
    generator, digits = _generator("numpy", global_seed, order)
    if generator == "numpy":
        digits = _packtok.chunk_seed(str(global_seed), chunk[0])
    is_given = global_seed is not None
    return _shuffled(
        kind, files, output_path, generator, digits, is_given, chunk, existing, on_progress, memory
    )


def read_file_list(kind: Kind, path: StrPath, root: StrPath) -> list[str]:
    """Returns the files of a list with one path on each line.

    Args:
        kind: ``"pbin"`` or ``"jsonl"``, which replaces the suffix of each path.
        path: The list.
        root: The folder that the paths are relative to.

    Raises:
        FileNotFoundError: If a file does not exist.
        PacktokError: If the list names no files.
    """
    return [str(file) for file in _packtok.read_file_list(str(path), str(root), kind)]


def filter_pbin(
    input_path: StrPath,
    output_path: StrPath,
    keeps: Callable[[int, npt.NDArray[Any]], bool],
    *,
    existing: str = "error",
    requires_documents: bool = False,
) -> dict[str, Any]:
    """Writes the documents of a pbin for which a function is true, in order, and returns a report.

    Args:
        input_path: The pbin.
        output_path: The file to write. It is a copy of the input if all documents are kept.
        keeps: Called with the number and the read-only token ids of each document.
        existing: ``"error"``, ``"skip"`` (the existing file is compared with the result) or ``"replace"``.
        requires_documents: Whether a result without documents is an error.

    Raises:
        PacktokError: If the input is damaged, or an existing output is not the result.
        ValueError: If a document is required and none is kept.
    """
    result = _packtok.PbinFilter(str(input_path), str(output_path), existing=existing)
    reader = _packtok.PbinReader(str(input_path))
    for start in range(0, len(reader), DOCUMENTS_PER_CALL):
        numbers = range(start, min(start + DOCUMENTS_PER_CALL, len(reader)))
        result.decide(bytes(bool(keeps(i, reader[i])) for i in numbers))
    if requires_documents and result.num_taken == 0:
        raise ValueError(
            f"{input_path}: the filter keeps none of {len(reader)} documents; nothing was written"
        )
    report: dict[str, Any] = result.finish()
    return report


def _shuffled(
    kind: Kind,
    inputs: Sequence[StrPath],
    output: StrPath,
    generator: str,
    digits: str,
    is_seed_given: bool,
    chunk: tuple[int, int] | None,
    existing: str,
    on_progress: Progress | None,
    memory: tuple[int, int] | None,
) -> dict[str, Any]:
    with explaining(lambda: LOST_NOTE):
        report: dict[str, Any] = _packtok.shuffle_files(
            kind=kind,
            inputs=[str(path) for path in inputs],
            output=str(output),
            existing=existing,
            generator=generator,
            seed=digits,
            is_seed_given=is_seed_given,
            chunk=chunk,
            on_progress=on_progress,
            memory=memory,
        )
    order = "packtok" if report.pop("generator") == "packtok" else "modalities"
    return {**report, "order": order, "seed": int(report["seed"], 0)}


def _generator(theirs: str, seed: int | None, order: str | None) -> tuple[str, str]:
    """Returns the generator and its seed in hexadecimal digits."""
    if order is not None:
        check_choice("--order", order, ORDERS, ConfigError)
    if seed is None:
        if order == "modalities":
            raise ConfigError("--order: is modalities, which needs a seed")
        return "packtok", f"{secrets.randbits(RANDOM_SEED_BITS):x}"
    seed = integer("seed", seed)
    if order != "packtok":
        # Python and NumPy's chunks take the magnitude, or a hash, of any integer.
        return theirs, f"{abs(seed):x}"
    if not 0 <= seed < 1 << MAX_SEED_BITS:
        raise ConfigError(f"--order: is packtok, whose seeds are 0 to 2**64 - 1; the seed is {seed}")
    return "packtok", f"{seed:x}"


def _natural(name: str, number: int) -> int:
    number = integer(name, number)
    if number < 0:
        raise ValueError(f"--{name.replace('_', '-')}: is {number}, expected at least 0")
    return number

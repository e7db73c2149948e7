"""`packtok data shuffle_…` and `create_shuffled_…`: shuffle pbins and JSONL files, whole or in chunks."""

from typing import Annotated, Literal

import typer

from packtok.cli import console
from packtok.cli.merge import show_counts
from packtok.cli.options import (
    ExistingOption,
    JsonOption,
    PolicyOption,
    QuietOption,
    check_inputs,
    check_output,
    existing_policy,
)
from packtok.cli.progress import progress

InputOption = Annotated[
    str, typer.Option("--input_data_path", "--input-data-path", metavar="FILE", help="The file to shuffle.")
]
OutputOption = Annotated[
    str, typer.Option("--output_data_path", "--output-data-path", metavar="FILE", help="The file to write.")
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed", help="Seed of the order. Default: a random one, in packtok's order; it is reported."
    ),
]
OrderOption = Annotated[
    Literal["modalities", "packtok"] | None,
    typer.Option(
        "--order",
        help="Which order the seed has. [default: modalities with a seed, packtok without one]",
    ),
]
BatchSizeOption = Annotated[
    int | None, typer.Option("--batch_size", "--batch-size", help="Accepted, without effect.")
]
ListOption = Annotated[
    str,
    typer.Option(
        "--input_file_list_path",
        "--input-file-list-path",
        metavar="FILE",
        help="A file with one path on each line, whose suffix is replaced.",
    ),
]
RootOption = Annotated[
    str,
    typer.Option(
        "--input_data_root_path",
        "--input-data-root-path",
        metavar="DIR",
        help="The folder that the paths are relative to.",
    ),
]
ChunkOutputOption = Annotated[
    str,
    typer.Option(
        "--output_chunk_file_path", "--output-chunk-file-path", metavar="FILE", help="The file to write."
    ),
]
ChunkIdOption = Annotated[
    int, typer.Option("--chunk_id", "--chunk-id", help="The chunk of every file, from 0.")
]
NumChunksOption = Annotated[
    int,
    typer.Option("--num_chunks", "--num-chunks", help="The number of chunks that each file is divided into."),
]
GlobalSeedOption = Annotated[
    int | None,
    typer.Option(
        "--global_seed",
        "--global-seed",
        help="Seed of all chunks. Default: a random one, in packtok's order; it is reported.",
    ),
]


def shuffle_tokenized_data(
    input_data_path: InputOption,
    output_data_path: OutputOption,
    batch_size: BatchSizeOption = None,
    existing: ExistingOption = None,
    file_existence_policy: PolicyOption = None,
    seed: SeedOption = None,
    order: OrderOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Shuffle the documents of a pbin, also of one that is larger than the memory."""
    if batch_size is not None and not quiet:
        console.remark("note: --batch_size has no effect; packtok sizes its work by bytes")
    _shuffle_file(
        "pbin",
        (input_data_path, output_data_path),
        existing_policy(existing, file_existence_policy) or "error",
        (seed, order),
        as_json=as_json,
        quiet=quiet,
    )


def shuffle_jsonl_data(
    input_data_path: InputOption,
    output_data_path: OutputOption,
    existing: ExistingOption = None,
    file_existence_policy: PolicyOption = None,
    seed: SeedOption = None,
    order: OrderOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Shuffle the lines of a JSONL file, also of one that is larger than the memory."""
    _shuffle_file(
        "jsonl",
        (input_data_path, output_data_path),
        existing_policy(existing, file_existence_policy) or "error",
        (seed, order),
        as_json=as_json,
        quiet=quiet,
    )


def create_shuffled_dataset_chunk(
    input_file_list_path: ListOption,
    input_data_root_path: RootOption,
    output_chunk_file_path: ChunkOutputOption,
    chunk_id: ChunkIdOption,
    num_chunks: NumChunksOption,
    existing: ExistingOption = None,
    file_existence_policy: PolicyOption = None,
    global_seed: GlobalSeedOption = None,
    order: OrderOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Shuffle one chunk of each of several pbins into a pbin."""
    _shuffle_chunk(
        "pbin",
        (input_file_list_path, input_data_root_path, output_chunk_file_path),
        (chunk_id, num_chunks),
        existing_policy(existing, file_existence_policy) or "error",
        (global_seed, order),
        as_json=as_json,
        quiet=quiet,
    )


def create_shuffled_jsonl_chunk(
    input_file_list_path: ListOption,
    input_data_root_path: RootOption,
    output_chunk_file_path: ChunkOutputOption,
    chunk_id: ChunkIdOption,
    num_chunks: NumChunksOption,
    existing: ExistingOption = None,
    file_existence_policy: PolicyOption = None,
    global_seed: GlobalSeedOption = None,
    order: OrderOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Shuffle one chunk of each of several JSONL files into a file."""
    _shuffle_chunk(
        "jsonl",
        (input_file_list_path, input_data_root_path, output_chunk_file_path),
        (chunk_id, num_chunks),
        existing_policy(existing, file_existence_policy) or "error",
        (global_seed, order),
        as_json=as_json,
        quiet=quiet,
    )


def _shuffle_file(
    kind: Literal["pbin", "jsonl"],
    paths: tuple[str, str],
    existing: str,
    seed: tuple[int | None, str | None],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from packtok.commands import shuffle as command

    check_inputs("--input-data-path", paths[:1])
    check_output("--output-data-path", paths[1])
    with progress(quiet=quiet) as on_progress:
        counts = command.shuffle_file(
            kind, *paths, seed=seed[0], order=seed[1], existing=existing, on_progress=on_progress
        )
    show_counts(counts, as_json=as_json, quiet=quiet)


def _shuffle_chunk(
    kind: Literal["pbin", "jsonl"],
    paths: tuple[str, str, str],
    chunk: tuple[int, int],
    existing: str,
    seed: tuple[int | None, str | None],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from packtok.commands import shuffle as command

    check_inputs("--input-file-list-path", paths[:1])
    check_inputs("--input-data-root-path", paths[1:2])
    check_output("--output-chunk-file-path", paths[2])
    with progress(quiet=quiet) as on_progress:
        counts = command.shuffle_chunk(
            kind,
            command.read_file_list(kind, *paths[:2]),
            paths[2],
            chunk_id=chunk[0],
            num_chunks=chunk[1],
            global_seed=seed[0],
            order=seed[1],
            existing=existing,
            on_progress=on_progress,
        )
    show_counts(counts, as_json=as_json, quiet=quiet)

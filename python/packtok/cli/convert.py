"""`packtok convert`: writes the documents of token files in another format."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.merge import show_counts
from packtok.cli.options import (
    AcceptLossOption,
    AddTokensOption,
    BoundariesOption,
    ExistingOption,
    InputDtypeOption,
    JsonOption,
    OutdirOption,
    QuietOption,
    TokenFormatOption,
    TokenizerOption,
    WrittenFormat,
    check_inputs,
    check_output,
)
from packtok.cli.progress import engine_checks, progress


def convert(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Token files, which are joined, or a folder of them."),
    ],
    *,
    to: Annotated[WrittenFormat, typer.Option("--to", help="The format to write.")],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="The file or common name to write; with --to litdata, mds, npy or parquet, and of a folder, "
            "a folder.",
        ),
    ],
    format: TokenFormatOption = None,
    input_dtype: InputDtypeOption = None,
    boundaries: BoundariesOption = None,
    link: Annotated[
        bool,
        typer.Option(
            "--link",
            help="With --to megatron, datatrove, dolma or raw: link the tokens instead of copying them.",
        ),
    ] = False,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            help="Write shards of at most so many tokens. "
            "[default: 2^30 with --to npy, 2^27 with parquet, 2^24 with litdata and mds]",
        ),
    ] = None,
    multiple_of: Annotated[
        int | None,
        typer.Option(
            "--multiple-of", help="Cut shards at multiples of so many tokens, not between documents."
        ),
    ] = None,
    accept_loss: AcceptLossOption = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            help="The type of ids to write: with --to cepe-npy int64 or uint32; with dolma, litdata, llm-c, "
            "mds, npy and raw uint16 or uint32. [default: int64; what the vocabulary needs]",
        ),
    ] = None,
    tokenizer: TokenizerOption = None,
    add_special_tokens_from_config: AddTokensOption = False,
    context_length: Annotated[
        int | None,
        typer.Option("--context-length", metavar="N", help="With --to packed-parquet: the inputs of a row."),
    ] = None,
    loss_markers: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--loss-markers",
            metavar="BEGIN END",
            help="With --to packed-parquet: the tokens between which labels count in the loss.",
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard", metavar="k/N|auto", help="Write every Nth output, from k on; auto: k and N from Slurm."
        ),
    ] = None,
    join: Annotated[
        bool, typer.Option("--join", help="Complete what tasks with --shard have written, by an index.")
    ] = False,
    outdir: OutdirOption = None,
    existing: ExistingOption = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", help="Shards that are written at once. [default: all CPUs]", min=1),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the documents of token files in another format, without tokenizing again."""
    from packtok.commands import convert as command
    from packtok.commands.task_run import task_run

    check_inputs("FILE", files)
    check_output("--output", output, is_folder=True)
    options: dict[str, Any] = {
        "to": to,
        "format": format,
        "input_dtype": input_dtype,
        "boundaries": boundaries,
        "link": link,
        "max_tokens": max_tokens,
        "multiple_of": multiple_of,
        "accept_loss": accept_loss or (),
        "dtype": dtype,
        "tokenizer": tokenizer,
        "add_special_tokens_from_config": add_special_tokens_from_config,
        "context_length": context_length,
        "loss_markers": loss_markers,
        "existing": existing or "error",
        "threads": threads,
    }
    with engine_checks(quiet=quiet), progress(quiet=quiet) as on_progress:
        if outdir is not None:
            if to == "packed-parquet":
                raise typer.BadParameter(
                    "--outdir has no effect with --to packed-parquet, which has no shards"
                )
            counts = task_run("convert", files, output, outdir, options).run(
                shard, join=join, on_progress=on_progress
            )
        else:
            counts = command.convert(
                files,
                output,
                **options,
                shard=shard,
                join=join,
                on_start=None if quiet else showing_kept(),
                on_progress=on_progress,
            )
    show_counts(counts, as_json=as_json, quiet=quiet)


def showing_kept() -> Callable[[dict[str, list[str]]], None]:
    """Returns a function that prints what an output keeps, unless the last one shown keeps the same."""
    shown: list[str] = []

    def show(kept: dict[str, list[str]]) -> None:
        forms = (
            ("kept_in_files", "keeps {} in the files"),
            ("kept_beside", "{} beside them"),
            ("lost", "loses {}"),
        )
        text = "; ".join(form.format(", ".join(kept[name])) for name, form in forms if kept[name])
        if text not in shown:
            shown.append(text)
            console.remark(text)

    return show

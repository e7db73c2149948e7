"""`packtok reshape`: selects, changes and reorders the documents of token files."""

from typing import Annotated, Any, Literal

import typer

from packtok.cli import console
from packtok.cli.convert import showing_kept
from packtok.cli.merge import show_counts
from packtok.cli.options import (
    AcceptLossOption,
    AddTokensOption,
    BoundariesOption,
    ExistingOption,
    InputDtypeOption,
    JsonOption,
    QuietOption,
    TokenFormat,
    TokenFormatOption,
    TokenizerOption,
    check_inputs,
    check_output,
)
from packtok.cli.progress import engine_checks, progress


def reshape(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Token files, which are joined, or a folder of them."),
    ],
    *,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="The file to write; of other formats, as in packtok convert.",
        ),
    ],
    to: Annotated[TokenFormat, typer.Option("--to", help="The format to write.")] = "pbin",
    chunk: Annotated[
        str | None,
        typer.Option("--chunk", metavar="K/N", help="Keep chunk K, from 0, of N equal chunks of each file."),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            "--remove",
            metavar="LIST",
            help="Leave documents out: a file with one on each line, or with commas: numbers from 0, "
            "SOURCE:PLACE, sha256:HASH of a text; repeatable.",
        ),
    ] = None,
    filter: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="EXPR",
            help="Keep documents for which this is true, such as 'length >= 64 and count(eod) == 1'; names: "
            "number, length, hash, source, offset, eod, bos, count(ID), matches(source, GLOB); repeatable.",
        ),
    ] = None,
    split: Annotated[
        Literal["train", "validation"] | None, typer.Option("--split", help="Keep one side of a split.")
    ] = None,
    validation_fraction: Annotated[
        float | None,
        typer.Option("--validation-fraction", metavar="F", help="Share held out by the hash of the ids."),
    ] = None,
    validation_last: Annotated[
        int | None, typer.Option("--validation-last", metavar="N", help="Number of last documents held out.")
    ] = None,
    split_seed: Annotated[int, typer.Option("--split-seed", help="Seed of the hash.")] = 0,
    sample: Annotated[
        list[str] | None,
        typer.Option(
            "--sample",
            metavar="HOW",
            help="documents=N, tokens=N, or GLOB=W: each document of matching sources W times; repeatable.",
        ),
    ] = None,
    retokenize: Annotated[
        str | None,
        typer.Option("--retokenize", metavar="TOKENIZER", help="Decode, and encode with this tokenizer."),
    ] = None,
    eod_token: Annotated[
        str | None,
        typer.Option(
            "--eod-token", metavar="TOKEN", help="With --retokenize. [default: the tokenizer's EOS]"
        ),
    ] = None,
    bos_token: Annotated[
        str | None, typer.Option("--bos-token", metavar="TOKEN", help="With --retokenize. [default: none]")
    ] = None,
    truncate: Annotated[
        int | None, typer.Option("--truncate", metavar="N", help="Cut documents to N tokens, EOD included.")
    ] = None,
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Write documents in a random order.")] = False,
    block_tokens: Annotated[
        int | None,
        typer.Option(
            "--block-tokens",
            metavar="N",
            help="Shuffle blocks of consecutive documents with N tokens or more.",
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option("--rows", metavar="N", help="Join the documents and cut them into rows of N tokens."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of --sample and --shuffle. [default: 0]")
    ] = None,
    format: TokenFormatOption = None,
    input_dtype: InputDtypeOption = None,
    boundaries: BoundariesOption = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", help="As in packtok convert: tokens of a shard.")
    ] = None,
    multiple_of: Annotated[
        int | None, typer.Option("--multiple-of", help="As in packtok convert: cut shards at multiples.")
    ] = None,
    accept_loss: AcceptLossOption = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="As in packtok convert: the type of ids to write.")
    ] = None,
    tokenizer: TokenizerOption = None,
    add_special_tokens_from_config: AddTokensOption = False,
    existing: ExistingOption = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", help="Threads that decode and encode. [default: all CPUs]", min=1),
    ] = None,
    shard: Annotated[str | None, typer.Option("--shard", hidden=True, help="For packtok run.")] = None,
    join: Annotated[bool, typer.Option("--join", hidden=True, help="For packtok run.")] = False,
    outdir: Annotated[str | None, typer.Option("--outdir", hidden=True, help="For packtok run.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Select, change and reorder the documents of token files; steps run in the order of these options."""
    from packtok.commands import reshape as command
    from packtok.commands.task_run import task_run

    check_inputs("FILE", files)
    check_output("--output", output, is_folder=True)
    if outdir is None and (shard is not None or join):
        raise typer.BadParameter(
            "--shard and --join are for packtok run; use --chunk K/N to reshape in parts"
        )
    options: dict[str, Any] = {
        "to": to,
        "chunk": chunk,
        "remove": remove or (),
        "filter": filter or (),
        "split": split,
        "validation_fraction": validation_fraction,
        "validation_last": validation_last,
        "split_seed": split_seed,
        "sample": sample or (),
        "retokenize": retokenize,
        "eod_token": eod_token,
        "bos_token": bos_token,
        "truncate": truncate,
        "shuffle": shuffle,
        "block_tokens": block_tokens,
        "rows": rows,
        "seed": seed,
        "format": format,
        "input_dtype": input_dtype,
        "boundaries": boundaries,
        "max_tokens": max_tokens,
        "multiple_of": multiple_of,
        "accept_loss": accept_loss or (),
        "dtype": dtype,
        "tokenizer": tokenizer,
        "add_special_tokens_from_config": add_special_tokens_from_config,
        "existing": existing or "error",
        "threads": threads,
    }
    with engine_checks(quiet=quiet), progress(quiet=quiet) as on_progress:
        if outdir is not None:
            counts = task_run("reshape", files, output, outdir, options).run(
                shard, join=join, on_progress=on_progress
            )
        else:
            counts = command.reshape(
                files,
                output,
                **options,
                on_start=None if quiet else showing_kept(),
                on_progress=on_progress,
            )
    if "steps" not in counts:
        show_counts(counts, as_json=as_json, quiet=quiet)
        return
    show_counts(counts if as_json else _lines(counts), as_json=as_json, quiet=quiet)


def _lines(report: dict[str, Any]) -> dict[str, Any]:
    """Returns the report with one line for each step, and without what is only for programs."""
    names = ("output", "files", "documents_in", "tokens_in")
    lines = {name: report[name] for name in names}
    for number, step in enumerate(report["steps"], 1):
        lines[f"step {number}"] = _step_text(step)
    names = ("documents", "tokens", "file_bytes", "skipped_existing")
    return {**lines, **{name: report[name] for name in names}, "warnings": report["warnings"]}


def _step_text(step: dict[str, Any]) -> str:
    text: str = step["step"] if step.get("value") is None else f"{step['step']} {step['value']}"
    for documents, tokens, verb in (
        ("left_out", "left_out_tokens", "leaves out"),
        ("repeated", "repeated_tokens", "repeats"),
    ):
        if step[tokens] or step[documents]:
            text += (
                f"; {verb} {console.count(step[documents])} documents, {console.count(step[tokens])} tokens"
            )
    return text

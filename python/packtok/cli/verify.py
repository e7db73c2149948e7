"""`packtok verify`: checks token files for damage and against their corpus."""

import os
from typing import Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.merge import show_counts
from packtok.cli.options import (
    AddTokensOption,
    BoundariesOption,
    InputDtypeOption,
    JsonOption,
    QuietOption,
    SourceOption,
    TokenFormatOption,
    TokenizerOption,
    check_inputs,
    flag,
)
from packtok.cli.progress import engine_checks, progress


def verify(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The token file, or the folder of them, to check.")
    ],
    format: TokenFormatOption = None,
    input_dtype: InputDtypeOption = None,
    boundaries: BoundariesOption = None,
    tokenizer: TokenizerOption = None,
    add_special_tokens_from_config: AddTokensOption = False,
    corpus: Annotated[
        str | None,
        typer.Option(metavar="CONFIG", help="Tokenize the corpus of this config again and compare."),
    ] = None,
    origins: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Read the record that each document came from, below this folder, tokenize it and compare. "
            "Needs a file packed with --origins.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="With a folder: every file of this list must have its NPY file."),
    ] = None,
    root: Annotated[str | None, flag("root")] = None,
    sample: Annotated[
        str, typer.Option(help="How much of the corpus to compare: a percentage, or all.")
    ] = "all",
    source: SourceOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check a token file or folder, optionally against its corpus. Exit code 1 if anything is wrong."""
    from packtok.commands import verify as command

    fraction = fraction_of(sample)
    named: dict[str, Any] = {
        "tokenizer": tokenizer,
        "add_special_tokens_from_config": add_special_tokens_from_config,
    }
    reading: dict[str, Any] = {"format": format, "input_dtype": input_dtype, "boundaries": boundaries}
    check_inputs("FILE", [file])
    if os.path.isdir(file) or against is not None:
        if corpus is not None or origins is not None:
            raise typer.BadParameter(f"--corpus and --origins need a pbin, and {file} is not one")
        if any(value is not None for value in reading.values()):
            raise typer.BadParameter(
                f"--format, --input-dtype and --boundaries are for a single file, and {file} is a folder"
            )
        _verify_folder(file, against, root, named, as_json=as_json, quiet=quiet)
        return
    if root is not None:
        raise typer.BadParameter("--root needs --against")
    check_inputs("--origins", () if origins is None else [origins])
    with engine_checks(quiet=quiet), progress(quiet=quiet) as on_progress:
        counts = command.verify(file, **reading, **named, on_progress=on_progress)
        if corpus is not None:
            compared = command.verify_corpus(
                file, corpus, sample=fraction, **named, source=source, on_progress=on_progress
            )
            counts["compared with the corpus"] = compared["compared"]
        if origins is not None:
            compared = command.verify_origins(
                file, origins, sample=fraction, **named, on_progress=on_progress
            )
            counts["compared with their origins"] = compared["compared"]
    show_counts(counts, as_json=as_json, quiet=quiet)
    if not quiet and not as_json:
        print(console.printable(f"{file} is valid"))


def _verify_folder(
    folder: str,
    against: str | None,
    root: str | None,
    named: dict[str, Any],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from packtok.commands.token_folder import verify_folder

    check_inputs("--against", () if against is None else [against])
    with engine_checks(quiet=quiet), progress(quiet=quiet) as on_progress:
        counts = verify_folder(folder, against=against, root=root, **named, on_progress=on_progress)
    missing, faults = counts["missing"], counts["faults"]
    if as_json:
        console.as_json(counts)
    else:
        for file in missing:
            print(console.printable(f"missing: {file['npy']} ({file['reason']})"))
        for fault in faults:
            print(console.printable(fault["error"]))
        if not quiet:
            rows = {name: value for name, value in counts.items() if name not in ("missing", "faults")}
            show_counts(rows, as_json=False, quiet=False)
    if missing or faults:
        raise typer.Exit(1)
    if not quiet and not as_json:
        print(console.printable(f"{folder} is valid"))


def fraction_of(sample: str) -> float:
    """Parses ``all`` or a percentage such as ``1%`` into a number above 0 and at most 1."""
    if sample == "all":
        return 1.0
    number, percent, suffix = sample.partition("%")
    try:
        fraction = float(number) / 100
    except ValueError:
        fraction = 0.0
    if not percent or suffix or not 0 < fraction <= 1:
        raise typer.BadParameter(f"--sample {sample}: expected all, or a percentage such as 1%")
    return fraction

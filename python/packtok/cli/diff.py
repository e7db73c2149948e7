"""`packtok diff`: compares the documents of two token files."""

from typing import Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.options import (
    BoundariesOption,
    InputDtypeOption,
    JsonOption,
    QuietOption,
    TokenFormatOption,
    check_inputs,
)
from packtok.cli.progress import progress


def diff(
    first: Annotated[str, typer.Argument(metavar="FIRST", help="A token file of any format, or a folder.")],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="Another one.")],
    *,
    format: TokenFormatOption = None,
    input_dtype: InputDtypeOption = None,
    boundaries: BoundariesOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare the documents of two token files or folders; exit code 1 if they differ."""
    from packtok.commands import diff as command

    check_inputs("FIRST", [first])
    check_inputs("SECOND", [second])
    with progress(quiet=quiet) as on_progress:
        report = command.diff(
            first,
            second,
            format=format,
            input_dtype=input_dtype,
            boundaries=boundaries,
            on_progress=on_progress,
        )
    difference = report["difference"]
    if as_json:
        console.as_json(report)
    elif difference is not None:
        print(console.printable(_described(report)))
    elif not quiet:
        documents, tokens = (console.count(report["first"][name]) for name in ("documents", "tokens"))
        print(f"same {documents} documents, {tokens} tokens")
    if difference is not None:
        raise typer.Exit(1)


def _described(report: dict[str, Any]) -> str:
    first, second, difference = report["first"], report["second"], report["difference"]
    if difference["token"] is None:
        return (
            f"{first['path']} has {console.count(first['documents'])} documents, {second['path']} has "
            f"{console.count(second['documents'])}; those of both are the same"
        )
    ids = ["no token" if difference[name] is None else difference[name] for name in ("first", "second")]
    return (
        f"document {difference['document']}, token {difference['token']}: {ids[0]} in {first['path']}, "
        f"{ids[1]} in {second['path']}"
    )

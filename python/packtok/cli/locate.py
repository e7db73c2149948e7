"""`packtok locate`: which documents the batch of a step holds."""

import json
from typing import Annotated, Any

import typer

from packtok.cli import console


def locate(
    config: Annotated[str, typer.Argument(metavar="CONFIG", help="YAML with the keys dataset and loader.")],
    step: Annotated[int, typer.Option("--step", "-s", help="The step, counted from 0 over the whole run.")],
    epoch: Annotated[int | None, typer.Option(help="Count the step from 0 in this epoch.")] = None,
    state: Annotated[
        str | None, typer.Option(help="A saved loader state, as JSON or in a checkpoint; goes before loader.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON per row.")] = False,
) -> None:
    """Show which documents the batch of a step holds, row by row."""
    from packtok import locating

    try:
        rows = locating.locate(config, step, epoch=epoch, state=state)
    except IndexError as error:
        raise ValueError(str(error)) from None
    for row in rows:
        print(json.dumps(row) if as_json else _line(row))


def _line(row: dict[str, Any]) -> str:
    documents = ", ".join(
        f"{console.printable(str(part['path']))}:{part['document']}[{part['start']}:{part['stop']}]"
        for part in row["documents"]
    )
    return f"epoch {row['epoch']} rank {row['rank']} row {row['row']} item {row['item']}: {documents}"

"""`packtok locate`: shows which documents the batch of a step contains."""

from typing import Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.options import JsonOption, check_inputs


def locate(
    config: Annotated[
        str, typer.Argument(metavar="CONFIG", help="YAML file with the keys dataset and loader.")
    ],
    step: Annotated[int, typer.Option("--step", "-s", help="The step, counted from 0 over the whole run.")],
    epoch: Annotated[int | None, typer.Option(help="Count the step from 0 in this epoch.")] = None,
    state: Annotated[
        str | None, typer.Option(help="A saved loader state, as JSON or in a checkpoint; overrides loader.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show which documents the batch of a step contains, row by row."""
    from packtok.commands import locate as command

    check_inputs("CONFIG", [config])
    check_inputs("--state", () if state is None else [state])
    try:
        rows = command.locate(config, step, epoch=epoch, state=state)
    except IndexError as error:
        raise ValueError(str(error)) from None
    if as_json:
        console.as_json(rows)
        return
    for row in rows:
        print(_line(row))


def _line(row: dict[str, Any]) -> str:
    documents = ", ".join(_document(part) for part in row["documents"])
    return f"epoch {row['epoch']} rank {row['rank']} row {row['row']} item {row['item']}: {documents}"


def _document(part: dict[str, Any]) -> str:
    place = f"{part['path']}:{part['document']}[{part['start']}:{part['stop']}]"
    if origin := part.get("origin"):
        place += f" (from {origin['source']}: {origin['unit']} {origin['offset']})"
    return console.printable(place)

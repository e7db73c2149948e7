"""`packtok stream`: commands for streams."""

import json
from pathlib import Path
from typing import Annotated

import typer

from packtok.cli import console
from packtok.cli.options import JsonOption

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Commands for streams.")


@app.callback()
def _stream() -> None:
    pass


@app.command()
def show(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="A state saved as JSON.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Print what a state of packtok.stream describes: its steps, their arguments, and its lanes."""
    from packtok.commands.stream import show_state

    facts = show_state(state)
    if as_json:
        console.as_json(facts)
        return
    lanes = (
        f", {len(facts['lanes'])} lanes of at most {facts['lane_bytes']:,} bytes" if facts["lanes"] else ""
    )
    position = f"position of {facts['position_bytes']:,} bytes{lanes}"
    print(f"version {facts['version']}, {facts['bytes']:,} bytes: {position}, then {facts['skip']:,} samples")
    for number, step in enumerate(facts["steps"], 1):
        arguments = [f"{name}={json.dumps(value)}" for name, value in step.items() if name != "op"]
        print(console.printable(f"{number:>3}  {step.get('op')}({', '.join(arguments)})"))

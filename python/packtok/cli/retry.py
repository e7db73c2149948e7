"""`packtok retry`: packs the missing shards of a run with new tasks."""

from typing import Annotated

import typer

from packtok.cli.options import JsonOption, check_inputs
from packtok.cli.run import ConfOption, SubmitOption, show_run


def retry(
    outdir: Annotated[str, typer.Argument(metavar="OUTDIR", help="The folder of shards.")],
    conf: ConfOption = None,
    submit: SubmitOption = True,
    as_json: JsonOption = False,
) -> None:
    """Submit the missing shards of a `packtok run` again; settings can be changed."""
    from packtok.commands import run as command

    check_inputs("OUTDIR", [outdir])
    show_run(
        lambda on_start, on_progress: command.retry(
            outdir, settings=conf or (), submit=submit, on_start=on_start, on_progress=on_progress
        ),
        as_json=as_json,
    )

"""`packtok retry`: packs the missing shards of a run with new tasks."""

from typing import Annotated

import typer

from packtok.cli.options import JsonOption, check_inputs
from packtok.cli.run import ConfOption, SubmitOption, show_run


def retry(
    outdir: Annotated[
        str, typer.Argument(metavar="OUTDIR", help="The output of the run, or the folder of its shards.")
    ],
    conf: ConfOption = None,
    submit: SubmitOption = True,
    as_json: JsonOption = False,
) -> None:
    """Submit the missing shards of a run again; files of --conf replace those of the run."""
    from packtok.commands import run as command

    check_inputs("OUTDIR", [outdir])
    show_run(
        lambda on_start, on_progress: command.retry(
            outdir, settings=conf or (), submit=submit, on_start=on_start, on_progress=on_progress
        ),
        as_json=as_json,
    )

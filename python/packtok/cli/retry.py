"""`packtok retry`: what a run left missing is submitted again."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from packtok.cli.run import ConfOption, SubmitOption, carry_out


def retry(
    outdir: Annotated[str, typer.Argument(metavar="OUTDIR", help="The folder of shards.")],
    conf: ConfOption = None,
    submit: SubmitOption = True,
) -> None:
    """Submit the shards that are missing, as `packtok run` was asked to; settings can be changed."""
    from packtok.launch.settings import changed
    from packtok.launch.submit import relaunch

    launch = relaunch(Path(outdir))
    carry_out(replace(launch, settings=changed(launch.settings, conf or ())), script=None, submit=submit)

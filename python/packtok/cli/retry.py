"""`packtok retry`: packs the missing shards of a run with new tasks."""

from pathlib import Path
from typing import Annotated

import typer

from packtok.cli.on_ray import ray_at_hand
from packtok.cli.options import JsonOption, check_inputs
from packtok.cli.run import ConfOption, SubmitOption, carry_out


def retry(
    outdir: Annotated[str, typer.Argument(metavar="OUTDIR", help="The folder of shards.")],
    conf: ConfOption = None,
    submit: SubmitOption = True,
    as_json: JsonOption = False,
) -> None:
    """Submit the missing shards of a `packtok run` again; settings can be changed."""
    from packtok.launch.settings import changed
    from packtok.launch.submit import relaunch

    check_inputs("OUTDIR", [outdir])
    launch = relaunch(Path(outdir))
    settings = changed(launch.settings, conf or ())
    with ray_at_hand(settings, submit=submit) as ray:
        changed_launch = launch.model_copy(update={"settings": settings})
        carry_out(changed_launch, ray, script=None, submit=submit, as_json=as_json)

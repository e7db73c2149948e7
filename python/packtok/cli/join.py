"""`packtok join`: joins the shards in a folder into one pbin."""

from typing import Annotated

import typer

from packtok.cli.merge import show_counts
from packtok.cli.options import (
    ExistingOption,
    JsonOption,
    MaxRejectsOption,
    PolicyOption,
    QuietOption,
    check_inputs,
    check_output,
    existing_policy,
)
from packtok.cli.progress import progress

Folder = Annotated[
    str, typer.Argument(metavar="FOLDER", help="The folder that packtok pack --shard wrote to.")
]
Output = Annotated[str, typer.Option("--output", "-o", help="The file to write.")]


def join(
    folder: Folder,
    output: Output,
    manifest: Annotated[
        bool,
        typer.Option("--manifest", help="Write only a manifest, from which datasets open the shards."),
    ] = False,
    existing: ExistingOption = None,
    file_existence_policy: PolicyOption = None,
    max_rejects: MaxRejectsOption = None,
    staging: Annotated[
        str | None,
        typer.Option(
            help="Folder for temporary copies of files from or for a URL. [default: in the user's cache]"
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Join all shards into the file that packing without shards would write."""
    from packtok.commands import join as command

    check_inputs("FOLDER", [folder])
    check_output("--output", output)
    check_output("--staging", staging, is_folder=True)
    policy = existing_policy(existing, file_existence_policy) or "error"
    with progress(quiet=quiet) as on_progress:
        counts = command.join(
            folder,
            output,
            manifest=manifest,
            existing=policy,
            on_progress=on_progress,
            staging=staging,
            max_rejects=max_rejects,
        )
    show_counts(counts, as_json=as_json, quiet=quiet)

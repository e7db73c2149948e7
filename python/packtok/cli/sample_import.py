"""`packtok sample import`: rewrites folders of CEPE's scripts without pickles."""

from typing import Annotated, Literal

import typer

from packtok.cli import console
from packtok.cli.options import JsonOption, QuietOption, check_inputs, check_output
from packtok.cli.progress import progress


def import_(
    old: Annotated[
        str, typer.Argument(metavar="OLD", help="An MDS folder, or a folder with MDS folders below it.")
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The folder to write to; must not exist.")],
    dtype: Annotated[
        Literal["uint16", "uint32", "int32", "int64"] | None,
        typer.Option(
            "--dtype",
            help="Type of token ids; int32 for torch < 2.3. [default: uint16 if all ids fit, else uint32]",
        ),
    ] = None,
    compression: Annotated[
        str | None, typer.Option("--compression", metavar="zstd:LEVEL", help="Compress the shards.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Rewrite samples that CEPE's scripts pickled as samples without pickles.

    Reads arrays of numbers and lists of them, and never executes what a pickle names.
    """
    from packtok.commands.sample_import import import_samples

    check_inputs("OLD", [old])
    check_output("NEW", new, is_folder=True)
    with progress(quiet=quiet) as on_progress:
        report = import_samples(old, new, dtype=dtype, compression=compression, on_progress=on_progress)
    if as_json:
        console.as_json(report)
        return
    before, after = (
        sum(folder[key] for folder in report["folders"]) for key in ("bytes_before", "bytes_after")
    )
    samples = sum(folder["samples"] for folder in report["folders"])
    print(
        console.printable(
            f"{report['output']}: {console.count(samples)} samples in "
            f"{console.count(len(report['folders']))} folders, "
            f"{console.count(before)} bytes before, {console.count(after)} now"
        )
    )

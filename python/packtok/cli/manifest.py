"""`packtok manifest`: the list of pbins by which a dataset of many files opens at once."""

from typing import Annotated, Literal

import typer

from packtok.cli.merge import show_counts
from packtok.cli.options import QuietOption

Files = Annotated[
    list[str], typer.Argument(metavar="FILES...", help="Pbins, folders of *.pbin, or globs in quotes.")
]
Output = Annotated[str, typer.Option("--output", "-o", help="The manifest to write, as JSON lines.")]
ManifestExisting = Annotated[
    Literal["error", "replace"], typer.Option("--existing", help="What to do if the manifest exists.")
]


def manifest(
    files: Files, output: Output, existing: ManifestExisting = "error", quiet: QuietOption = False
) -> None:
    """List pbins with their lengths and checksums, so that datasets open without touching the files."""
    from packtok.manifest import write_manifest

    show_counts(dict(write_manifest(files, output, existing=existing)), quiet=quiet)

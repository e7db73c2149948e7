"""`packtok manifest`: lists token files, so that a dataset of many files opens without opening the files."""

from typing import Annotated, Literal

import typer

from packtok.cli.merge import show_counts
from packtok.cli.options import (
    BoundariesOption,
    InputDtypeOption,
    JsonOption,
    QuietOption,
    TokenFormatOption,
    check_inputs,
    check_output,
)

Files = Annotated[
    list[str], typer.Argument(metavar="FILES...", help="Token files, folders of them, or globs in quotes.")
]
Output = Annotated[str, typer.Option("--output", "-o", help="The manifest to write, as JSON lines.")]
ManifestExisting = Annotated[
    Literal["error", "replace"], typer.Option("--existing", help="What to do if the manifest exists.")
]


def manifest(
    files: Files,
    output: Output,
    *,
    format: TokenFormatOption = None,
    input_dtype: InputDtypeOption = None,
    boundaries: BoundariesOption = None,
    existing: ManifestExisting = "error",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List token files with their lengths and checksums, so that datasets open without reading the files."""
    from packtok.commands.manifest import write_manifest

    check_inputs("FILES", files)
    check_output("--output", output)
    counts = write_manifest(
        files, output, format=format, input_dtype=input_dtype, boundaries=boundaries, existing=existing
    )
    show_counts(counts, as_json=as_json, quiet=quiet)

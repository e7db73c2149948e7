"""`packtok source`: commands for authors of source plug-ins."""

from typing import Annotated

import typer

from packtok.cli import console
from packtok.cli.options import JsonOption, QuietOption, flag

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Commands for authors of source plug-ins."
)


@app.callback()
def _source() -> None:
    pass


@app.command()
def check(
    source: Annotated[str, typer.Argument(metavar="PLUG-IN", help="Such as my_source.py:documents.")],
    corpora: Annotated[list[str], typer.Argument(metavar="CORPUS...", help="Corpora to read.")],
    *,
    field: Annotated[str, flag("field")] = ".text",
    max_documents: Annotated[
        int | None, typer.Option("--max-documents", min=1, help="Check only so many documents of each part.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a source plug-in several times and compare; exit code 1 if anything is wrong."""
    from packtok.commands.source import check_source

    report = check_source(source, corpora, field=field, max_documents=max_documents)
    if as_json:
        console.as_json(report)
    else:
        for fault in report["faults"]:
            print(console.printable(fault))
        seconds = sum(part["seconds"] for part in report["parts"])
        rate = f", {report['bytes'] / 1e6 / seconds:,.1f} MB/s" if seconds > 0 else ""
        resumable = "resumes with start" if report["is_resumable"] else "resumes from the start"
        if not quiet:
            counts = f"{len(report['parts']):,} parts, {report['documents']:,} documents{rate}"
            print(console.printable(f"{report['source']}: {counts}; {resumable}"))
    if report["faults"]:
        raise typer.Exit(1)

"""`packtok merge`: several pbins become one."""

from typing import Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.options import (
    Existing,
    ExistingOption,
    PolicyOption,
    QuietOption,
    TokenizerOption,
    existing_policy,
)
from packtok.cli.progress import progress

Paths = Annotated[
    list[str],
    typer.Argument(metavar="PART... OUT", help="Files, or folders of *.pbin, and last the file to write."),
]


def merge(
    paths: Paths,
    tokenizer: TokenizerOption = None,
    existing: ExistingOption = None,
    file_existence_policy: PolicyOption = None,
    quiet: QuietOption = False,
) -> None:
    """Join pbins into one; each is verified while it is read."""
    merge_with(paths, existing_policy(existing, file_existence_policy), tokenizer=tokenizer, quiet=quiet)


def merge_packed_data(paths: Paths, quiet: QuietOption = False) -> None:
    """Join pbins into one; the same as `packtok merge`."""
    merge_with(paths, None, tokenizer=None, quiet=quiet)


def merge_with(paths: list[str], existing: Existing | None, *, tokenizer: str | None, quiet: bool) -> None:
    """Joins all but the last of ``paths`` into the last and prints what was done."""
    from packtok import merging

    if len(paths) < 2:
        raise typer.BadParameter("expected at least one PART and then OUT")
    with progress(quiet=quiet) as on_progress:
        counts = merging.merge(
            paths[:-1], paths[-1], existing=existing or "error", tokenizer=tokenizer, on_progress=on_progress
        )
    show_counts(counts, quiet=quiet)


def show_counts(counts: dict[str, Any], *, quiet: bool) -> None:
    """Prints the counts of the compiled module as a table, its warnings to stderr."""
    console.remarks(counts.get("warnings", ()))
    if not quiet:
        rows = ((name.replace("_", " "), _shown(item)) for name, item in counts.items() if name != "warnings")
        console.table((name, text) for name, text in rows if text)


def _shown(item: Any) -> str:
    if isinstance(item, bool):
        return "yes" if item else "no"
    if isinstance(item, int):
        return console.count(item)
    if isinstance(item, float):
        return f"{item:.1f}"
    if isinstance(item, list | tuple):
        return ", ".join(str(one) for one in item)
    return "" if item is None else str(item)

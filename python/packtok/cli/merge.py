"""`packtok merge`: joins several pbins into one."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.options import (
    AcceptLossOption,
    AddTokensOption,
    BoundariesOption,
    ExistingOption,
    InputDtypeOption,
    JsonOption,
    PolicyOption,
    QuietOption,
    TokenFormatOption,
    TokenizerOption,
    check_inputs,
    check_output,
    existing_policy,
)
from packtok.cli.progress import engine_checks, progress

Paths = Annotated[
    list[str],
    typer.Argument(metavar="PART... OUT", help="Token files, or folders of them, then the pbin to write."),
]


def merge(
    paths: Paths,
    *,
    format: TokenFormatOption = None,
    input_dtype: InputDtypeOption = None,
    boundaries: BoundariesOption = None,
    tokenizer: TokenizerOption = None,
    add_special_tokens_from_config: AddTokensOption = False,
    accept_loss: AcceptLossOption = None,
    existing: ExistingOption = None,
    file_existence_policy: PolicyOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Join token files into one pbin; pbins are verified while they are read."""
    from packtok.commands import merge as command

    policy = existing_policy(existing, file_existence_policy)
    if len(paths) < 2:
        raise typer.BadParameter("expected at least one PART, then OUT")
    check_inputs("PART", paths[:-1])
    check_output("OUT", paths[-1])
    with engine_checks(quiet=quiet), progress(quiet=quiet) as on_progress:
        counts = command.merge(
            paths[:-1],
            paths[-1],
            format=format,
            input_dtype=input_dtype,
            boundaries=boundaries,
            existing=policy or "error",
            tokenizer=tokenizer,
            add_special_tokens_from_config=add_special_tokens_from_config,
            accept_loss=accept_loss or (),
            on_progress=on_progress,
        )
    show_counts(counts, as_json=as_json, quiet=quiet)


def show_counts(counts: Mapping[str, Any], *, as_json: bool, quiet: bool) -> None:
    """Prints the counts of the compiled module as a table or as JSON, and its warnings to stderr."""
    console.remarks(counts.get("warnings", ()))
    if as_json:
        console.as_json(dict(counts))
    elif not quiet:
        rows = (
            (name.replace("_", " "), _value_text(item)) for name, item in counts.items() if name != "warnings"
        )
        console.table((name, text) for name, text in rows if text)


def _value_text(item: Any) -> str:
    if isinstance(item, bool):
        return "yes" if item else "no"
    if isinstance(item, int):
        return console.count(item)
    if isinstance(item, float):
        return f"{item:.1f}"
    if isinstance(item, list | tuple):
        return ", ".join(str(element) for element in item)
    return "" if item is None else str(item)

"""`packtok plan`: the flags of `packtok pack`, and the number of shards."""

from typing import Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.merge import show_counts
from packtok.cli.options import (
    PACK_FLAGS,
    JsonOption,
    PolicyOption,
    QuietOption,
    existing_policy,
    with_options,
)
from packtok.cli.pack import (
    Config,
    PrintConfigOption,
    SetOption,
    checked_config,
    show_config,
)
from packtok.cli.progress import engine_checks
from packtok.distributed import MAX_SHARDS

Shards = Annotated[
    int, typer.Option("--shards", "-n", min=1, max=MAX_SHARDS, help="Number of shards, of about equal size.")
]


@with_options(*(keyword for keyword in PACK_FLAGS if keyword != "report"))
def plan(
    config: Config = None,
    *,
    file_existence_policy: PolicyOption = None,
    set_values: SetOption = None,
    print_config: PrintConfigOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    shards: Shards,
    **options: Any,
) -> None:
    """Plan how to pack a corpus in shards; write the plan into the folder --output."""
    from packtok.commands import plan as command

    options["existing"] = existing_policy(options["existing"], file_existence_policy)
    checked = checked_config(
        config, options, set_values or [], reads_corpus=not print_config, takes_folder=True
    )
    if print_config:
        show_config(checked, as_json=as_json)
        return
    with engine_checks(quiet=quiet):
        counts = command.plan(checked, shards=shards, on_warnings=console.remarks)
    if not as_json:
        ignored = counts["ignored"]
        counts = {**counts, "sources": None, "ignored": console.ignored(ignored) if ignored else None}
    show_counts(counts, as_json=as_json, quiet=quiet)

"""`packtok plan`: the flags of `packtok pack`, and into how many shards the corpus is divided."""

import inspect
from typing import Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.merge import show_counts
from packtok.cli.options import existing_policy
from packtok.cli.pack import check_whole, checked_config, pack, show_config
from packtok.cli.progress import engine_checks
from packtok.distributed import MAX_SHARDS

Shards = Annotated[
    int, typer.Option("--shards", "-n", min=1, max=MAX_SHARDS, help="How many parts of about equal size.")
]

# What only packing has.
_NOT_PLANNED = ("shard", "report")


def plan(**arguments: Any) -> None:
    """Plan how a corpus is packed in shards; write the plan into the folder --output."""
    from packtok.commands.pack import prepare

    shards, config = arguments.pop("shards"), arguments.pop("config")
    as_json, quiet = arguments.pop("as_json"), arguments.pop("quiet")
    print_config, set_values = arguments.pop("print_config"), arguments.pop("set_values")
    policy = arguments.pop("file_existence_policy")
    arguments["existing"] = existing_policy(arguments["existing"], policy)
    checked = checked_config(config, arguments, set_values or [])
    if print_config:
        show_config(checked, as_json=as_json)
        return
    check_whole(checked, is_folder=True)
    with engine_checks(quiet=quiet):
        packing = prepare(checked)
    console.remarks(packing.notes)
    show_counts(packing.plan(shards), as_json=as_json, quiet=quiet)


def _signature() -> inspect.Signature:
    """The parameters of `pack` that make sense here, and the number of shards."""
    named = inspect.Parameter.KEYWORD_ONLY
    of_pack = inspect.signature(pack).parameters.values()
    kept = [one.replace(kind=named) for one in of_pack if one.name not in _NOT_PLANNED]
    shards = inspect.Parameter("shards", named, annotation=Shards)
    return inspect.Signature([*kept, shards], return_annotation=None)


# Typer asks the function for its parameters; written out, they would have to be kept like those of `pack`.
plan.__signature__ = _signature()  # type: ignore[attr-defined]
plan.__annotations__ = {name: one.annotation for name, one in _signature().parameters.items()}

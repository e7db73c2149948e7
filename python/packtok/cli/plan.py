"""`packtok plan`: the flags of `packtok pack`, and into how many shards the corpus is divided."""

import inspect
from typing import Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.merge import show_counts
from packtok.cli.options import existing_policy
from packtok.cli.pack import checked_config, pack

Shards = Annotated[int, typer.Option("--shards", "-n", min=1, help="How many parts of about equal size.")]

# What only packing has.
_NOT_PLANNED = ("shard", "report")


def plan(**arguments: Any) -> None:
    """Plan how a corpus is packed in shards; write the plan into the folder --output."""
    from packtok.packing import prepare

    shards, config, quiet = (arguments.pop(name) for name in ("shards", "config", "quiet"))
    print_config, set_values = arguments.pop("print_config"), arguments.pop("set_values")
    policy = arguments.pop("file_existence_policy")
    arguments["existing"] = existing_policy(arguments["existing"], policy)
    checked = checked_config(config, arguments, set_values or [])
    if print_config:
        print(checked.to_yaml(), end="")
        return
    packing = prepare(checked)
    console.remarks(packing.notes)
    show_counts(packing.plan(shards), quiet=quiet)


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

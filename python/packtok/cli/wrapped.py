"""The command that `packtok run` gives its tasks: `pack` unchanged, `tokenize` with the options of tatm."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from packtok.cli.options import PACK_FLAGS, existing_policy
from packtok.cli.pack import overrides, pack

_NOT_FOR_SHARDS = {
    "shard": "packtok run starts a task for each shard",
    "print_config": "use it with packtok pack, without run",
    "as_json": "put it before the command: packtok run --json pack",
}


@dataclass(frozen=True)
class Wrapped:
    """A command for the tasks of a run."""

    config: str | None
    """Path of the config file."""
    overrides: dict[str, Any]
    """Values by dotted key that override the config."""
    arguments: tuple[str, ...]
    """Arguments of `packtok pack` that stand for both, without the output."""
    remarks: tuple[str, ...] = ()
    """Options that have no effect, each with the reason."""


def wrapped(command: list[str]) -> Wrapped:
    """Parses the command after the options of `packtok run`."""
    if not command:
        raise typer.BadParameter("a command is missing; add pack and its arguments")
    name, *arguments = command
    if name == "pack":
        return _pack(arguments)
    if name == "tokenize":
        return _tokenize(arguments)
    raise typer.BadParameter(
        f"{name}: only pack and tokenize can be run; put options of run before the command"
    )


def _pack(arguments: list[str], remarks: tuple[str, ...] = ()) -> Wrapped:
    from packtok.commands.run import pack_arguments

    params = _parsed(pack, "pack", arguments)
    for name, reason in _NOT_FOR_SHARDS.items():
        if params[name]:
            flag = "--json" if name == "as_json" else f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"{flag} cannot be given here; {reason}")
    options = {
        # A repeatable option that was not given is an empty list here.
        name: None if isinstance(value, list | tuple) and not value else value
        for name, value in params.items()
        if name in PACK_FLAGS
    }
    options["existing"] = existing_policy(params["existing"], params["file_existence_policy"])
    config, set_values = params["config"], params["set_values"] or ()
    return Wrapped(
        config, overrides(options, set_values), pack_arguments(config, options, set_values), remarks
    )


def _tokenize(arguments: list[str]) -> Wrapped:
    params = _parsed(_tatm_tokenize, "tokenize", arguments)
    remarks = [
        f"--{name.replace('_', '-')} has no effect: {reason}"
        for name, reason in (
            ("num_workers", "--cpus-per-task sets the threads of each task"),
            ("token_dtype", "the tokenizer's largest id sets the width of the ids"),
        )
        if params[name] is not None
    ]
    passed = [f"--input={path}" for path in params["datasets"]]
    passed += [f"--tokenizer={params['tokenizer']}"]
    passed += [f"--output={params['output_dir'].rstrip('/') or '/'}/{params['file_prefix']}.pbin"]
    passed += [f"--{name}={params[name]}" for name in ("field", "eod") if params[name] is not None]
    return _pack(passed, tuple(remarks))


def _tatm_tokenize(
    datasets: Annotated[list[str], typer.Argument(metavar="DATASETS...", help="Files, globs and folders.")],
    tokenizer: Annotated[str, typer.Option(help="tokenizer.json or its folder, built-in name, or hub name.")],
    output_dir: Annotated[str, typer.Option(help="Folder of the output.")] = ".",
    file_prefix: Annotated[str, typer.Option(help="Name of the output, without .pbin.")] = "tokenized",
    field: Annotated[str | None, typer.Option(help="jq filter that returns a document's text.")] = None,
    eod: Annotated[str | None, typer.Option(help="Token that closes each document.")] = None,
    num_workers: Annotated[int | None, typer.Option(help="Has no effect.")] = None,
    token_dtype: Annotated[str | None, typer.Option(help="Has no effect.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Has no effect.")] = False,
) -> None:
    """Pack data sets into one pbin, with the option names of tatm."""


def _parsed(function: Any, name: str, arguments: list[str]) -> dict[str, Any]:
    """Returns the values of a command's parameters."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(function)
    return typer.main.get_command(app).make_context(f"packtok run {name}", list(arguments)).params

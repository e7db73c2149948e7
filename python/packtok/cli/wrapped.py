"""The command that `packtok run` gives its tasks: `pack` unchanged, `tokenize` with the options of tatm."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from packtok.cli.options import PACK_FLAGS, existing_policy
from packtok.cli.pack import pack

# Options that concern the run as a whole, or only the terminal.
_OF_THE_WHOLE = ("output", "existing", "file_existence_policy", "quiet", "report", "print_config", "as_json")
_NOT_FOR_SHARDS = {
    "shard": "packtok run starts a task for each shard",
    "print_config": "use it with packtok pack, without run",
    "as_json": "put it before the command: packtok run --json pack",
}


@dataclass(frozen=True)
class Wrapped:
    """A command for the tasks of a run."""

    arguments: tuple[str, ...]
    """Arguments of `packtok pack`, without the output."""
    config: str | None
    options: dict[str, Any]
    """All options of `packtok pack` that belong in its config."""
    set_values: tuple[str, ...]
    remarks: tuple[str, ...] = ()


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
    context = _parsed(pack, "pack", arguments)
    params = context.params
    for name, reason in _NOT_FOR_SHARDS.items():
        if params[name]:
            flag = "--json" if name == "as_json" else f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"{flag} cannot be given here; {reason}")
    return Wrapped(
        arguments=tuple(_written(context)),
        config=params["config"],
        options={
            # A repeatable option that was not given is an empty list here.
            name: None if isinstance(value, list | tuple) and not value else value
            for name, value in params.items()
            if name in PACK_FLAGS
        }
        | {"existing": existing_policy(params["existing"], params["file_existence_policy"])},
        set_values=tuple(params["set_values"] or ()),
        remarks=remarks,
    )


def _tokenize(arguments: list[str]) -> Wrapped:
    params = _parsed(_tatm_tokenize, "tokenize", arguments).params
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


def _parsed(function: Any, name: str, arguments: list[str]) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(function)
    return typer.main.get_command(app).make_context(f"packtok run {name}", list(arguments))


def _written(context: Any) -> list[str]:
    """Returns the given parameters as arguments, each in one unambiguous form."""
    written = []
    for parameter in context.command.params:
        name = parameter.name or ""
        value, source = context.params.get(name), context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE" or name in _OF_THE_WHOLE:
            continue
        if parameter.param_type_name == "argument":
            # After the options, it could be parsed as one of them.
            written.append(f"./{value}" if str(value).startswith("-") else str(value))
        elif getattr(parameter, "is_flag", False):
            written.append((parameter.opts if value else parameter.secondary_opts)[0])
        else:
            values = value if isinstance(value, list | tuple) else [value]
            flag = max(parameter.opts, key=len)
            written += [f"{flag}={item}" for item in values]
    return written

"""The command that `packtok run` gives its tasks: `pack` or `tokenize`, with their options."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from packtok.cli import console
from packtok.cli.options import PACK_FLAGS, check_output, existing_policy
from packtok.cli.pack import check_whole, checked_overrides, overrides, pack
from packtok.cli.tokenize import (
    OPTIONS_OF_PACK,
    are_undescribed,
    check_npy,
    check_undescribed,
    pbin_in,
    tokenize,
    undescribed_remarks,
)

if TYPE_CHECKING:
    from packtok.commands.run_command import RunCommand
    from packtok.launch.settings import LaunchSettings

_NOT_FOR_SHARDS = {
    "shard": "packtok run starts a task for each shard",
    "shard_id": "packtok run starts a task for each shard",
    "num_shards": "put --shards before the command",
    "join": "packtok run joins the shards",
    "merge": "packtok run merges the shards",
    "outdir": "put it before the command",
    "print_config": "use it with packtok pack, without run",
    "as_json": "put it before the command: packtok run --json {command}",
}


@dataclass(frozen=True)
class Wrapped:
    """A command for the tasks of a run."""

    arguments: tuple[str, ...]
    """Arguments of the command for a task, without the output or the folder of the shards."""
    prepare: "Callable[[LaunchSettings, str | None], RunCommand]"
    """Checks all inputs and returns the command, for these settings and this folder of the shards."""
    config: str | None = None
    """With ``pack``, the path of the config file."""
    overrides: dict[str, Any] | None = None
    """With ``pack``, values by dotted key that override the config."""
    num_workers: int | None = None
    """With ``tokenize``, the number of tasks that run at once."""
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
    if name == "sample":
        return _sample(arguments)
    if name == "logits":
        return _logits(arguments)
    raise typer.BadParameter(
        f"{name}: only pack, tokenize, sample and logits can be run; put options of run before the command"
    )


def _pack(arguments: list[str], num_workers: int | None = None, remarks: tuple[str, ...] = ()) -> Wrapped:
    from packtok.commands.run_command import pack_arguments, pack_command

    params = _parsed(pack, "pack", arguments)
    options = {
        # A repeatable option that was not given is an empty list here.
        name: None if isinstance(value, list | tuple) and not value else value
        for name, value in params.items()
        if name in PACK_FLAGS
    }
    options["existing"] = existing_policy(params["existing"], params["file_existence_policy"])
    config, set_values = params["config"], params["set_values"] or ()
    values = overrides(options, set_values)
    passed = pack_arguments(config, options, set_values)

    def prepare(settings: "LaunchSettings", outdir: str | None) -> "RunCommand":
        checked = checked_overrides(config, values)
        check_whole(checked)
        return pack_command(checked, passed, settings, outdir)

    return Wrapped(passed, prepare, config, values, num_workers, remarks)


def _tokenize(arguments: list[str]) -> Wrapped:
    from packtok.commands.run_command import tokenize_arguments, tokenize_command
    from packtok.commands.tokenize import DEFAULT_TOKENIZER, prepare_tokenization

    params = _parsed(tokenize, "tokenize", arguments)
    datasets = list(params["datasets"])
    if params["to"] is not None:
        return _tokenize_npy(datasets, params)
    if params["field"] is not None or are_undescribed(datasets):
        return _pack_undescribed(datasets, params)
    own = {name: params[name] for name in ("tokenizer", "output_dir", "file_prefix", "token_dtype", "parts")}
    options = {name: params[name] for name in OPTIONS_OF_PACK if params[name] is not None}
    passed = tokenize_arguments(
        datasets, {**own, "tokenizer": own["tokenizer"] or DEFAULT_TOKENIZER}, options
    )

    def prepare(settings: "LaunchSettings", outdir: str | None) -> "RunCommand":
        check_output("--output-dir", own["output_dir"], is_folder=True)
        prepared = prepare_tokenization(
            datasets,
            outdir=outdir,
            existing=params["existing"] or "error",
            remark=console.remark,
            **own,
            **options,
        )
        return tokenize_command(prepared, passed, settings)

    return Wrapped(passed, prepare, num_workers=params["num_workers"])


def _tokenize_npy(inputs: list[str], params: dict[str, Any]) -> Wrapped:
    """Returns the command that tokenizes a corpus into NPY files."""
    from packtok.commands.run_command import npy_command, tokenize_arguments
    from packtok.commands.tokenize_npy import prepare_npy_tokenization

    check_npy(params["token_dtype"], params["parts"], params["file_prefix"])
    own = {name: params[name] for name in ("tokenizer", "output_dir", "dtype")}
    options = {name: params[name] for name in (*OPTIONS_OF_PACK, "field") if params[name] is not None}
    options = {name: value for name, value in options.items() if value not in ([], ())}
    passed = tokenize_arguments(inputs, {"to": params["to"], **own}, options)

    def prepare(settings: "LaunchSettings", outdir: str | None) -> "RunCommand":
        check_output("--output-dir", own["output_dir"], is_folder=True)
        prepared = prepare_npy_tokenization(
            inputs,
            outdir=outdir,
            existing=params["existing"] or "error",
            remark=console.remark,
            **own,
            **options,
        )
        return npy_command(prepared, passed, settings)

    return Wrapped(passed, prepare, num_workers=params["num_workers"])


def _pack_undescribed(datasets: list[str], params: dict[str, Any]) -> Wrapped:
    """Returns the command that packs inputs without metadata into ``<output_dir>/<file_prefix>.pbin``."""
    from packtok.commands.run_command import pack_arguments
    from packtok.commands.tokenize import DEFAULT_TOKENIZER, name_of_tokenizer, split_of

    check_undescribed(datasets, params["parts"])
    options = {name: params[name] for name in (*OPTIONS_OF_PACK, "tokenizer", "field")}
    options["tokenizer"] = params["tokenizer"] or DEFAULT_TOKENIZER
    whole = [f"--output={pbin_in(params['output_dir'], params['file_prefix'])}"]
    if params["existing"] is not None:
        whole.append(f"--existing={params['existing']}")
    options["split"] = split_of(options, options["source"])
    passed = pack_arguments(None, {**options, "input": datasets})
    wrapped = _pack([*passed, *whole], params["num_workers"], undescribed_remarks(params["token_dtype"]))
    if params["tokenizer"] is not None:
        return wrapped

    def prepare(settings: "LaunchSettings", outdir: str | None) -> "RunCommand":
        name_of_tokenizer(None)
        return wrapped.prepare(settings, outdir)

    return replace(wrapped, prepare=prepare)


def _sample(arguments: list[str]) -> Wrapped:
    from packtok.cli import sample
    from packtok.commands.run_command import sample_command

    group: Any = typer.main.get_command(sample.app)
    if not arguments or arguments[0].startswith("-"):
        # Shows the help, or rejects the option.
        group.make_context("packtok run sample", list(arguments))
    name, command, rest = group.resolve_command(group.context_class(group), list(arguments))
    if name == "import":
        raise typer.BadParameter("sample import cannot be run; it has no shards")
    params = _params(command, f"sample {name}", rest)
    passed = (name, *_arguments(command, params))

    def prepare(settings: "LaunchSettings", outdir: str | None) -> "RunCommand":
        return sample_command(sample.prepared(name, {**params, "outdir": outdir}), passed, settings)

    return Wrapped(passed, prepare)


def _logits(arguments: list[str]) -> Wrapped:
    from packtok.cli.logits import arguments_of_run, logits
    from packtok.commands.run_command import logits_command

    command = _command(logits, "logits")
    params = _params(command, "logits", arguments)
    passed = _arguments(command, params)

    def prepare(settings: "LaunchSettings", outdir: str | None) -> "RunCommand":
        from packtok.commands.logits import prepare_logits

        prepared = prepare_logits(**arguments_of_run(params), outdir=outdir)
        return logits_command(prepared, passed, settings, yes=params["yes"])

    return Wrapped(passed, prepare)


def _arguments(command: Any, params: dict[str, Any]) -> tuple[str, ...]:
    """Returns the arguments of a command for a task, each in one unambiguous form."""
    options, positional = [], []
    for param in command.params:
        value = params.get(param.name)
        if param.param_type_name == "argument":
            # A name like that could be parsed as an option.
            positional += [] if value is None else [f"./{value}" if value.startswith("-") else value]
        elif value is not None and value != param.default:
            flag = max(param.opts, key=len)
            options.append(flag if value is True else f"{flag}={value}")
    return (*options, *positional)


def _command(function: Any, name: str) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(function)
    return typer.main.get_command(app)


def _parsed(function: Any, name: str, arguments: list[str]) -> dict[str, Any]:
    return _params(_command(function, name), name, arguments)


def _params(command: Any, name: str, arguments: list[str]) -> dict[str, Any]:
    """Returns the values of a command's parameters.

    Raises:
        BadParameter: If an option is not for the command of a run.
    """
    params: dict[str, Any] = command.make_context(f"packtok run {name}", list(arguments)).params
    for option, reason in _NOT_FOR_SHARDS.items():
        value = params.get(option)
        # Shard 0 is a value too.
        if value is not None and value is not False:
            flag = "--json" if option == "as_json" else f"--{option.replace('_', '-')}"
            raise typer.BadParameter(f"{flag} cannot be given here; {reason.format(command=name)}")
    return params

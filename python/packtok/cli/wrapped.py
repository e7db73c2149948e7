"""The command that `packtok run` gives its tasks, with its options."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from packtok.cli import Commands, console
from packtok.cli.options import PACK_FLAGS, check_inputs, check_output, existing_policy
from packtok.cli.pack import checked_config
from packtok.cli.tokenize import (
    OPTIONS_OF_PACK,
    are_undescribed,
    check_npy,
    check_undescribed,
    pbin_in,
    undescribed_remarks,
)

if TYPE_CHECKING:
    from packtok.commands.run_command import RunCommand
    from packtok.launch.settings import LaunchSettings
    from packtok.launch.tasks import Arguments

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


# Parameters of convert and reshape that do not say what is written.
_OF_ONE_CALL = ("files", "output", "shard", "join", "outdir", "as_json", "quiet")


@dataclass(frozen=True)
class Wrapped:
    """A command for the tasks of a run."""

    arguments: "Arguments"
    """Arguments of the command for a task, without the output or the folder of the shards."""
    prepare: "Callable[[LaunchSettings, str | None], RunCommand]"
    """Checks all inputs and returns the command, for these settings and this folder of the shards."""
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
    if name in ("convert", "reshape"):
        return _reshaping(name, arguments)
    raise typer.BadParameter(
        f"{name}: only pack, tokenize, sample, logits, convert and reshape can be run; put options of run "
        "before the command"
    )


def _pack(arguments: list[str]) -> Wrapped:
    params = _parsed("pack", arguments)
    options = _values_of(params, PACK_FLAGS)
    options["existing"] = existing_policy(params["existing"], params["file_existence_policy"])
    return _packing(params["config"], options, params["set_values"] or ())


def _packing(
    config: str | None, options: dict[str, Any], set_values: Sequence[str] = (), **others: Any
) -> Wrapped:
    """Returns the command that packs, with these other fields."""
    from packtok.commands.run_command import pack_arguments, pack_command

    passed = pack_arguments(config, options, set_values)

    def prepare(settings: "LaunchSettings", outdir: str | None) -> "RunCommand":
        checked = checked_config(config, options, set_values, reads_corpus=True, takes_folder=False)
        return pack_command(checked, passed, settings, outdir)

    return Wrapped(passed, prepare, **others)


def _values_of(params: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Returns the values of these parameters that were given; a repeatable option may be an empty list."""
    return {name: value for name in names if (value := params[name]) not in (None, [], ())}


def _tokenize(arguments: list[str]) -> Wrapped:
    from packtok.commands.run_command import tokenize_arguments, tokenize_command
    from packtok.commands.tokenize import DEFAULT_TOKENIZER, prepare_tokenization

    params = _parsed("tokenize", arguments)
    datasets = list(params["datasets"])
    if params["to"] is not None:
        return _tokenize_npy(datasets, params)
    if params["field"] is not None or are_undescribed(datasets):
        return _pack_undescribed(datasets, params)
    own = {name: params[name] for name in ("tokenizer", "output_dir", "file_prefix", "token_dtype", "parts")}
    options = _values_of(params, OPTIONS_OF_PACK)
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

    if params["to"] == "npy":
        raise typer.BadParameter(
            "tokenize --to npy cannot be run; run tokenize without --to, then use packtok convert --to npy"
        )
    check_npy(params["to"], params["token_dtype"], params["parts"], params["file_prefix"])
    own = {name: params[name] for name in ("tokenizer", "output_dir", "dtype")}
    options = _values_of(params, (*OPTIONS_OF_PACK, "field"))
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
    from packtok.commands.tokenize import DEFAULT_TOKENIZER, name_of_tokenizer, split_of

    check_undescribed(datasets, params["parts"])
    options = _values_of(params, (*OPTIONS_OF_PACK, "tokenizer", "field", "existing"))
    options |= {
        "input": datasets,
        "output": pbin_in(params["output_dir"], params["file_prefix"]),
        "tokenizer": params["tokenizer"] or DEFAULT_TOKENIZER,
        "split": split_of(options, params["source"]),
    }
    remarks = undescribed_remarks(params["token_dtype"])
    wrapped = _packing(None, options, num_workers=params["num_workers"], remarks=remarks)
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
        # make_context shows the help or rejects the option.
        group.make_context("packtok run sample", list(arguments))
    name, command, remaining = group.resolve_command(group.context_class(group), list(arguments))
    if name == "import":
        raise typer.BadParameter("sample import cannot be run; it has no shards")
    params = _params(command, f"sample {name}", remaining)
    passed = _arguments(command, params, name)

    def prepare(settings: "LaunchSettings", outdir: str | None) -> "RunCommand":
        return sample_command(sample.prepared(name, {**params, "outdir": outdir}), passed, settings)

    return Wrapped(passed, prepare)


def _logits(arguments: list[str]) -> Wrapped:
    from packtok.cli.logits import arguments_of_run
    from packtok.commands.run_command import logits_command

    command = Commands()["logits"]
    params = _params(command, "logits", arguments)
    passed = _arguments(command, params)

    def prepare(settings: "LaunchSettings", outdir: str | None) -> "RunCommand":
        from packtok.commands.logits import prepare_logits

        prepared = prepare_logits(**arguments_of_run(params), outdir=outdir)
        return logits_command(prepared, passed, settings, yes=params["yes"])

    return Wrapped(passed, prepare)


def _reshaping(name: str, arguments: list[str]) -> Wrapped:
    from packtok.commands.run_command import reshape_command
    from packtok.commands.task_run import task_run

    command = Commands()[name]
    params = _params(command, name, arguments)
    if params["to"] == "packed-parquet":
        raise typer.BadParameter("convert --to packed-parquet cannot be run; it has no shards")
    passed = _arguments(command, params)
    options = {option: value for option, value in params.items() if option not in _OF_ONE_CALL}
    options["existing"] = params["existing"] or "error"

    def prepare(settings: "LaunchSettings", outdir: str | None) -> "RunCommand":
        check_inputs("FILE", params["files"])
        check_output("--output", params["output"], is_folder=True)
        kind: Any = name
        tasks = task_run(kind, params["files"], params["output"], outdir, options)
        return reshape_command(tasks, passed, settings)

    return Wrapped(passed, prepare)


def _arguments(command: Any, params: dict[str, Any], *first: str) -> "Arguments":
    """Returns the arguments of a command for a task, after the positional arguments ``first``."""
    from packtok.launch.tasks import Arguments, Value

    positional = list(first)
    options: dict[str, Value] = {}
    for param in command.params:
        value = params.get(param.name)
        if value is None:
            continue
        if param.param_type_name == "argument":
            positional += [value] if isinstance(value, str) else value
        elif value != param.default and value not in ([], ()):
            # The name of a parameter can differ from that of its option.
            name = max(param.opts, key=len).removeprefix("--").replace("-", "_")
            if isinstance(value, list | tuple):
                options[name] = tuple(map(str, value))
            else:
                options[name] = value if isinstance(value, bool | int) else str(value)
    return Arguments(positional=tuple(positional), options=options)


def _parsed(name: str, arguments: list[str]) -> dict[str, Any]:
    return _params(Commands()[name], name, arguments)


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

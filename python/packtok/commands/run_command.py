"""The commands that `packtok run` gives its tasks: arguments, plan, and the file that the run writes last."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.commands.logits import LogitsRun
from packtok.commands.sample import Existing, Sampling
from packtok.commands.task_run import TaskRun
from packtok.commands.tokenize import Tokenization, refuse_complete
from packtok.commands.tokenize_npy import NpyTokenization
from packtok.config import PackConfig
from packtok.config.options import OPTIONS
from packtok.errors import ConfigError
from packtok.launch.settings import LaunchSettings
from packtok.launch.tasks import Arguments, CommandName, Join, Value
from packtok.packer import run as packer

# Options that concern the run as a whole, so tasks do not get them.
_OF_THE_WHOLE = ("output", "existing", "report")


@dataclass(frozen=True)
class RunCommand:
    """A command for the tasks of a run."""

    name: CommandName
    arguments: Arguments
    """Arguments of the command, without those of one shard."""
    output: str
    """The file that the run writes last."""
    outdir: Path
    """The folder of the shards."""
    plan: Callable[[int], tuple[str, ...]]
    """Writes the plan for this number of shards and returns the remarks on the packing."""
    join: Join = field(default_factory=Join)
    """How the run ends."""
    num_shards: int | None = None
    """The number of shards if the command determines it."""


def pack_command(
    config: PackConfig, arguments: Arguments, settings: LaunchSettings, outdir: str | None = None
) -> RunCommand:
    """Returns the command ``packtok pack``.

    Args:
        config: The checked config.
        arguments: Arguments of `packtok pack` that stand for it, without the output.
        settings: Settings of the cluster.
        outdir: Folder for the shards. Default: the output's name plus ``.shards``.

    Raises:
        ConfigError: If a path cannot be used.
    """
    output, folder = _paths(config, outdir)
    planned = config.with_output(os.fspath(folder), config.settings.existing)

    def plan(shards: int) -> tuple[str, ...]:
        notes: list[str] = []
        packer.plan(planned, shards, on_warnings=notes.extend)
        return tuple(notes)

    return RunCommand("pack", arguments, output, folder, plan, _join(config, settings.slurm.join))


def tokenize_command(
    tokenization: Tokenization, arguments: Arguments, settings: LaunchSettings
) -> RunCommand:
    """Returns the command ``packtok tokenize``, whose run ends with the metadata.

    Args:
        tokenization: The prepared run.
        arguments: Arguments of `packtok tokenize` that stand for it, without the folder of the shards.
        settings: Settings of the cluster.

    Raises:
        ConfigError: If the settings do not fit the command.
        FileExistsError: If the output folder is a complete dataset that was not made from these shards.
    """
    slurm, parts = settings.slurm, tokenization.parts
    if slurm.join == "manifest":
        raise ConfigError(
            "--join: slurm.join is 'manifest', but tokenize writes a manifest with --parts; give "
            "tokenize --parts N, without --join"
        )
    if parts is not None and slurm.shards not in (None, parts):
        raise ConfigError(
            f"--array-tasks: slurm.shards is {slurm.shards}, but --parts is {parts}, and each part is a "
            "shard; leave out slurm.shards"
        )
    folder = Path(os.path.abspath(tokenization.outdir))
    _check_folder(folder)
    existing = tokenization.existing
    if existing == "error" and not os.path.lexists(folder / _packtok.PLAN_NAME):
        refuse_complete(tokenization.folder)

    def plan(shards: int) -> tuple[str, ...]:
        folder.mkdir(parents=True, exist_ok=True)
        tokenization.plan(shards)
        return tokenization.packing.notes

    output = os.path.abspath(tokenization.metadata_path)
    join = Join(existing=_policy_of_join(existing))
    return RunCommand("tokenize", arguments, output, folder, plan, join, parts)


def npy_command(tokenization: NpyTokenization, arguments: Arguments, settings: LaunchSettings) -> RunCommand:
    """Returns the command ``packtok tokenize --to cepe-npy``, whose run ends with the NPY files.

    Args:
        tokenization: The prepared run.
        arguments: Arguments of `packtok tokenize` that stand for it, without the folder of the shards.
        settings: Settings of the cluster.

    Raises:
        ConfigError: If the settings do not fit the command.
    """
    if settings.slurm.join == "manifest":
        raise ConfigError(
            "--join: slurm.join is 'manifest', but tokenize --to cepe-npy writes a file for each input file; "
            "leave out --join"
        )
    folder = Path(os.path.abspath(tokenization.outdir))
    _check_folder(folder)

    def plan(shards: int) -> tuple[str, ...]:
        tokenization.write_plan(shards)
        return tokenization.packing.notes

    output = os.path.abspath(tokenization.summary_path)
    join = Join(existing=tokenization.existing)
    return RunCommand("tokenize", arguments, output, folder, plan, join)


def sample_command(sampling: Sampling, arguments: Arguments, settings: LaunchSettings) -> RunCommand:
    """Returns the command ``packtok sample``, whose run ends with publishing all samples.

    Args:
        sampling: The checked arguments; its folder of markers is that of the run.
        arguments: Arguments of `packtok sample` that stand for it, without those of one shard.
        settings: Settings of the cluster.

    Raises:
        ConfigError: If the settings do not fit the command, or no tokenizer is found.
    """
    command = _of_marked_tasks("sample", sampling, arguments, settings)
    # Fails before any task starts if the tokenizer that the tasks need cannot be found.
    sampling.find_tokenizer()
    # Tasks reject existing outputs. The join accepts them: a join that was killed may have published some.
    policy: dict[str, Join] = {"error": Join(existing="skip"), "replace": Join(existing="replace")}
    return replace(command, join=policy.get(sampling.spec["existing"], Join()))


def logits_command(
    signals: LogitsRun, arguments: Arguments, settings: LaunchSettings, *, yes: bool = False
) -> RunCommand:
    """Returns the command ``packtok logits``, whose run ends with the merged folder.

    Args:
        signals: The checked arguments; its folder of markers is that of the run.
        arguments: Arguments of `packtok logits` that stand for it, without those of one shard.
        settings: Settings of the cluster.
        yes: As in `packtok.logits`.

    Raises:
        ConfigError: If the settings do not fit the command, or the vocabulary of the model does not fit.
        PacktokError: If the model is not supported.
    """
    command = _of_marked_tasks("logits", signals, arguments, settings)
    # Fails before any task loads the model.
    notes = signals.check_model(yes=yes)

    def plan(shards: int) -> tuple[str, ...]:
        return (*command.plan(shards), *notes)

    return replace(command, plan=plan)


def reshape_command(tasks: TaskRun, arguments: Arguments, settings: LaunchSettings) -> RunCommand:
    """Returns the command ``packtok convert`` or ``packtok reshape``.

    The tasks of a conversion share its outputs. Reshaping is one task.

    Args:
        tasks: The run of the tasks.
        arguments: Arguments of the command for a task, without those of one shard.
        settings: Settings of the cluster.

    Raises:
        ConfigError: If the settings do not fit the command, or there are no token files.
    """
    command = _of_marked_tasks(tasks.name, tasks, arguments, settings)

    def plan(shards: int) -> tuple[str, ...]:
        replace(tasks, outdir=command.outdir).start(shards)
        return ()

    command = replace(command, plan=plan)
    if tasks.name == "convert":
        return command
    if settings.slurm.shards not in (None, 1):
        raise ConfigError(
            f"--array-tasks: slurm.shards is {settings.slurm.shards}, but reshape is one task; leave it out"
        )
    return replace(command, num_shards=1)


def _of_marked_tasks(
    name: CommandName, work: Sampling | LogitsRun | TaskRun, arguments: Arguments, settings: LaunchSettings
) -> RunCommand:
    """Returns a command whose tasks write elsewhere and leave markers in the folder of the run."""
    if settings.slurm.join == "manifest":
        raise ConfigError(
            f"--join: slurm.join is 'manifest', but {name} writes no pbins to list; leave out --join"
        )
    output = os.path.abspath(work.output)
    folder = Path(f"{output}.shards" if work.outdir is None else os.path.abspath(work.outdir))
    _check_folder(folder)

    def plan(shards: int) -> tuple[str, ...]:
        replace(work, outdir=folder).write_plan(shards)
        return ()

    return RunCommand(name, arguments, output, folder, plan)


def pack_arguments(
    config: str | None, options: Mapping[str, Any], set_values: Sequence[str] = ()
) -> Arguments:
    """Returns the arguments of `packtok pack` for a task.

    Args:
        config: Path of the config file.
        options: As in `packtok.pack`; those that concern the run as a whole are left out.
        set_values: Arguments of ``--set``.
    """
    values: dict[str, Value] = {}
    settings = []
    for name, option in OPTIONS.items():
        value = options.get(name)
        if value is None or name in _OF_THE_WHOLE:
            continue
        if option.flags is None:
            settings.append(f"{option.key}={value}")
        elif value is not False or option.has_no_form:
            values[name] = _value(value)
    if settings or set_values:
        values["set"] = (*settings, *set_values)
    return Arguments(positional=() if config is None else (config,), options=values)


def tokenize_arguments(
    datasets: Sequence[str], own: Mapping[str, Any], options: Mapping[str, Any]
) -> Arguments:
    """Returns the arguments of `packtok tokenize` for a task.

    Args:
        datasets: As in `packtok.tokenize`.
        own: The other arguments of `packtok.tokenize`; ``None`` counts as not given.
        options: Options of `packtok.pack` among them.
    """
    own_options = {name: _value(value) for name, value in own.items() if value is not None}
    return Arguments(positional=tuple(datasets), options=own_options | pack_arguments(None, options).options)


def _value(value: Any) -> Value:
    if isinstance(value, bool | int):
        return value
    return str(value) if isinstance(value, str | os.PathLike) else tuple(map(str, value))


def _paths(config: PackConfig, outdir: str | None) -> tuple[str, Path]:
    """Returns the output of the whole run and the folder of its shards."""
    if config.settings.report is not None:
        raise ConfigError(
            "--report: settings.report is set, but packtok run writes no report; remove it, and use "
            "packtok status"
        )
    output = config.settings.dst_path
    if outdir is not None and _packtok.is_url(outdir):
        raise ConfigError(f"--outdir: {outdir} is in an object store; give a folder that all nodes share")
    if not _packtok.is_url(output):
        output = os.path.abspath(output)
    elif outdir is None:
        raise ConfigError(
            f"--outdir: is missing, and the output {output} is in an object store; give a folder for the "
            "shards that all nodes share"
        )
    folder = Path(os.path.abspath(outdir or f"{output}.shards"))
    _check_folder(folder)
    return output, folder


def _check_folder(folder: Path) -> None:
    if os.path.lexists(folder) and not folder.is_dir():
        raise ConfigError(f"--outdir: {folder} is a file; give a folder for the shards")


def _policy_of_join(existing: Existing) -> Existing | None:
    """Returns the policy of the join: for ``"error"``, the one that the command has without a policy."""
    return None if existing == "error" else existing


def _join(config: PackConfig, kind: str) -> Join:
    return Join(
        existing=_policy_of_join(config.settings.existing),
        max_rejects=config.max_rejects,
        manifest=kind == "manifest",
    )

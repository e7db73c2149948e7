"""How the tasks of each command are called, and the command that ends a run.

No other module distinguishes the commands.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from packtok.packer.staging import exists
from packtok.shard_folder import ShardFolder, TaskFolder

CommandName = Literal["pack", "tokenize", "sample", "logits", "convert", "reshape"]
Value = bool | int | str | tuple[str, ...]


class Arguments(BaseModel):
    """The arguments of a command, which become words only where a process or a script is made."""

    model_config = ConfigDict(strict=True, frozen=True)

    positional: tuple[str, ...] = ()
    options: dict[str, Value] = {}
    """Values by the name of the option: ``num_cpus`` is ``--num-cpus``. A tuple repeats the option."""

    def words(self) -> list[str]:
        """Returns the arguments as words of a command line, each in one unambiguous form."""
        # A file name with a hyphen at its start could be parsed as an option.
        words = [f"./{text}" if text[:1] == "-" else text for text in self.positional]
        for name, value in self.options.items():
            flag = name.replace("_", "-")
            if isinstance(value, bool):
                words.append(f"--{flag}" if value else f"--no-{flag}")
            else:
                values = value if isinstance(value, tuple) else (value,)
                words += [f"--{flag}={item}" for item in values]
        return words


class Join(BaseModel):
    """How a run ends: the options of `packtok join`, or of the same command that joins."""

    model_config = ConfigDict(strict=True, frozen=True)

    existing: Literal["error", "skip", "replace"] | None = None
    max_rejects: str | None = None
    manifest: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """The options that are set, by keyword of `packtok.join`."""
        return {name: value for name, value in self.model_dump().items() if value not in (None, False)}

    @property
    def is_requested(self) -> bool:
        """Whether the request says how to join, so that a run that is complete joins again.

        A limit on rejects alone does not.
        """
        return self.existing is not None or self.manifest


@dataclass(frozen=True)
class Task:
    """One shard of a run. The texts may be shell variables."""

    outdir: str
    """The folder of the shards."""
    shard: str
    num_shards: int
    num_cpus: str
    arguments: Arguments
    """The arguments of the request."""

    def with_cpus(self, options: list[str]) -> list[str]:
        """Adds the number of threads, unless the request sets it."""
        if "num_cpus" in self.arguments.options:
            return options
        # Without the option, packtok uses all visible cores, which on many clusters are those of the whole
        # node.
        return [*options, f"--num-cpus={self.num_cpus}"]


@dataclass(frozen=True)
class TaskCommand:
    """How the tasks of a command are called."""

    of_task: Callable[[Task], list[str]]
    """Returns the options of a task, which follow the arguments of the request."""
    of_join: Callable[[str, int], list[str]] | None = None
    """Returns the options with which the same command ends the run, for the folder and the number of shards.
    ``None`` if `packtok join` ends it.
    """
    policy_of_join: Literal["skip"] | None = None
    """``--existing`` of the joining command if the request says nothing about it."""
    keeps_output: bool = False
    """Whether the output may exist, because what is complete in it is kept."""
    verb: str = "packs"
    """The verb for the work on a shard, for reports."""


def _pack(task: Task) -> list[str]:
    # Overrides the config: finished shards are kept, whatever the config says about an existing output file.
    return task.with_cpus([f"--output={task.outdir}", "--existing=error", f"--shard={task.shard}"])


def _tokenize(task: Task) -> list[str]:
    return [f"--outdir={task.outdir}", f"--shard={task.shard}", f"--num-workers={task.num_cpus}"]


def _other(task: Task) -> list[str]:
    return task.with_cpus([f"--outdir={task.outdir}", f"--shard={task.shard}/{task.num_shards}"])


def _reshape(task: Task) -> list[str]:
    options = [f"--outdir={task.outdir}", f"--shard={task.shard}/{task.num_shards}"]
    return options if "threads" in task.arguments.options else [*options, f"--threads={task.num_cpus}"]


def _join_of_same(outdir: str, _: int) -> list[str]:
    return [f"--outdir={outdir}", "--join"]


# --existing=skip, because a job that is requeued after it has written the output must not fail.
COMMANDS: dict[CommandName, TaskCommand] = {
    "pack": TaskCommand(_pack),
    "tokenize": TaskCommand(_tokenize, _join_of_same, "skip"),
    "sample": TaskCommand(_other, _join_of_same, keeps_output=True, verb="computes"),
    "logits": TaskCommand(
        _other,
        lambda outdir, count: [f"--outdir={outdir}", "--merge", f"--num-shards={count}"],
        keeps_output=True,
        verb="computes",
    ),
    "convert": TaskCommand(_reshape, _join_of_same, keeps_output=True, verb="converts"),
    "reshape": TaskCommand(_reshape, _join_of_same, keeps_output=True, verb="reshapes"),
}


def is_written(folder: ShardFolder | TaskFolder, output: str) -> bool:
    """Returns whether the run has written all of its output."""
    return folder.report() is not None if isinstance(folder, TaskFolder) else exists(output)

"""How the tasks of each command are called, and the command that ends a run.

No other module distinguishes the commands.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from packtok.packer.staging import exists
from packtok.shard_folder import ShardFolder, TaskFolder

CommandName = Literal["pack", "tokenize", "sample", "logits"]


@dataclass(frozen=True)
class Task:
    """One shard of a run. The texts may be shell variables."""

    outdir: str
    """The folder of the shards."""
    shard: str
    num_shards: int
    num_cpus: str
    arguments: Sequence[str]
    """Those of the request."""

    def with_cpus(self, options: list[str]) -> list[str]:
        """Adds the number of threads, unless the request sets it."""
        if any(text.startswith("--num-cpus=") for text in self.arguments):
            return options
        # Otherwise packtok uses all visible cores, which on many clusters are those of the whole node.
        return [*options, f"--num-cpus={self.num_cpus}"]


@dataclass(frozen=True)
class TaskCommand:
    """How the tasks of a command are called."""

    of_task: Callable[[Task], list[str]]
    """Returns the options of a task, which follow the arguments of the request."""
    of_join: Callable[[str, int], list[str]] | None = None
    """Returns the options with which the same command ends the run, for the folder and the number of shards.
    ``None``: `packtok join` ends it."""
    policy_of_join: tuple[str, ...] = ()
    """The options of the joining command if the request has none."""
    keeps_output: bool = False
    """Whether the output may exist, because what is complete in it is kept."""
    verb: str = "packs"
    """What a job does with its shards, for reports."""


def _pack(task: Task) -> list[str]:
    # Keep finished shards, whatever the config says about an existing output file.
    return task.with_cpus([f"--output={task.outdir}", "--existing=error", f"--shard={task.shard}"])


def _tokenize(task: Task) -> list[str]:
    return [f"--outdir={task.outdir}", f"--shard={task.shard}", f"--num-workers={task.num_cpus}"]


def _other(task: Task) -> list[str]:
    return task.with_cpus([f"--outdir={task.outdir}", f"--shard={task.shard}/{task.num_shards}"])


# A job that is requeued after it has written the output must not fail, hence --existing=skip.
COMMANDS: dict[CommandName, TaskCommand] = {
    "pack": TaskCommand(_pack),
    "tokenize": TaskCommand(
        _tokenize, lambda outdir, _: [f"--outdir={outdir}", "--join"], ("--existing=skip",)
    ),
    "sample": TaskCommand(
        _other, lambda outdir, _: [f"--outdir={outdir}", "--join"], keeps_output=True, verb="computes"
    ),
    "logits": TaskCommand(
        _other,
        lambda outdir, count: [f"--outdir={outdir}", "--merge", f"--num-shards={count}"],
        keeps_output=True,
        verb="computes",
    ),
}


def is_written(folder: ShardFolder | TaskFolder, output: str) -> bool:
    """Returns whether the run has written all of its output."""
    return folder.report() is not None if isinstance(folder, TaskFolder) else exists(output)

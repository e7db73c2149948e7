"""Runs `packtok convert` and `packtok reshape` as tasks of a cluster, which leave markers in a folder."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from packtok.commands.convert import convert
from packtok.commands.reshape import reshape
from packtok.distributed import find_shard
from packtok.errors import ConfigError, PacktokError
from packtok.progress import Progress
from packtok.shard_folder import TaskFile, TaskFolder, planned_shards, read_plan
from packtok.sources import INDEX_FILE, token_files_at

# Options that do not change what is written.
_NOT_IN_PLAN = ("existing", "threads")
# Endings of the tokens of a name that several files share.
_TOKENS_ENDINGS = (".bin", ".ds", ".npy")


@dataclass(frozen=True)
class TaskRun:
    """A conversion or reshaping whose parts are written by tasks."""

    name: Literal["convert", "reshape"]
    inputs: tuple[str, ...]
    output: str
    options: Mapping[str, Any]
    """The keywords of `packtok.convert` or `packtok.reshape` that are given."""
    outdir: Path | None
    """The folder of the markers."""

    def run(self, shard: str | None, *, join: bool, on_progress: Progress | None) -> dict[str, Any]:
        """Writes a part, or what completes the output when all parts are written; returns the report.

        Raises:
            ConfigError: If the shard is invalid.
            PacktokError: If the folder has the plan of another run, or parts are missing.
        """
        if self.outdir is None:
            raise ValueError("there is no folder for the markers")
        if shard is None and not join:
            raise ConfigError("--outdir: needs --shard or --join; without them there are no shards")
        if shard is None:
            return self._join(self.outdir, on_progress)
        task = find_shard(shard)
        count = task.num_shards or task.default_num_shards or planned_shards(self.outdir)
        if count is None or not task.shard_index < count:
            raise ConfigError(f"--shard: is {shard}; expected k/N with k below N")
        if self.name == "reshape" and count > 1:
            raise ConfigError(f"--shard: is {shard}; reshape is one task")
        folder = self.write_plan(count)
        # What completes the output may be there from a run whose files are written again.
        folder.reopen()
        began = time.monotonic()
        part = {"shard": f"{task.shard_index}/{count}"} if self.name == "convert" else {}
        report, files = self._call(part, on_progress)
        folder.finish_task(
            task.shard_index,
            files,
            samples=report["documents"],
            tokens=report["tokens"],
            seconds=time.monotonic() - began,
        )
        return report

    def write_plan(self, num_shards: int) -> TaskFolder:
        """Writes the plan of the tasks if it is missing, and returns their folder.

        Raises:
            PacktokError: If the folder has the plan of another run.
        """
        if self.outdir is None:
            raise ValueError("there is no folder for the plan")
        format = self.options.get("format")
        paths = [path for source in self.inputs for path in token_files_at(Path(source), format)]
        sizes = [_size(path) for path in paths]
        options = {name: value for name, value in self.options.items() if name not in _NOT_IN_PLAN}
        listed = json.dumps([*zip(map(os.path.abspath, paths), sizes, strict=True)])
        facts = {
            "command": self.name,
            "output": os.path.abspath(self.output),
            "options": json.loads(json.dumps(options, default=str)),
            "files": hashlib.sha256(listed.encode()).hexdigest(),
        }
        replaces = self.options.get("existing") == "replace"
        return TaskFolder.create(self.outdir, facts, num_shards, sum(sizes), replace=replaces)

    def start(self, num_shards: int) -> TaskFolder:
        """Writes the plan of a run. One that replaces its output starts with all tasks."""
        folder = self.write_plan(num_shards)
        if self.options.get("existing") == "replace":
            folder.clear()
        return folder

    def _join(self, outdir: Path, on_progress: Progress | None) -> dict[str, Any]:
        folder = self.write_plan(read_plan(outdir).num_shards)
        if (report := folder.report()) is not None:
            return report
        if missing := folder.without_marker():
            raise PacktokError(
                f"{outdir}: {len(missing):,} of {folder.plan.num_shards:,} tasks are missing, the first is "
                f"{missing[0]}; run them, then join again"
            )
        if self.name == "convert":
            report, files = self._call({"join": True}, on_progress)
            index = Path(self.output) / INDEX_FILE
            files += [_task_file(index)] if index.is_file() else []
        else:
            finished = folder.finished().values()
            report = {
                "output": self.output,
                "documents": sum(task.documents for task in finished),
                "tokens": sum(task.tokens for task in finished),
            }
            files = []
        folder.finish_join(files, report)
        return report

    def _call(
        self, part: Mapping[str, Any], on_progress: Progress | None
    ) -> tuple[dict[str, Any], list[TaskFile]]:
        """Returns the report of a part, and its files."""
        call: Callable[..., dict[str, Any]] = convert if self.name == "convert" else reshape
        # A task that is started again compares and keeps what it has written.
        policy = {"existing": "skip"} if self.options.get("existing", "error") == "error" else {}
        files: list[Path] = []
        report = call(
            list(self.inputs),
            self.output,
            **{**self.options, **policy},
            **part,
            on_written=files.append,
            on_progress=on_progress,
        )
        return report, [_task_file(file) for file in files]


def task_run(
    name: Literal["convert", "reshape"],
    inputs: Sequence[str],
    output: str,
    outdir: str | None,
    options: Mapping[str, Any],
) -> TaskRun:
    """Returns the run of a command; options that are None, False or empty count as not given."""
    given = {
        option: value
        for option, value in options.items()
        if value is not None and value is not False and value != ()
    }
    return TaskRun(name, tuple(inputs), output, given, None if outdir is None else Path(outdir))


def _task_file(path: Path) -> TaskFile:
    return TaskFile([path], path.stat().st_size)


def _size(path: str) -> int:
    """Returns the bytes of a token file, or of the tokens of several files that share the name."""
    for ending in ("", *_TOKENS_ENDINGS):
        if os.path.exists(path + ending):
            return os.stat(path + ending).st_size
    return os.stat(path).st_size

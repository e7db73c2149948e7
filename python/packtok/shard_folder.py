"""Reads the state of a folder of shards: its plan, and the markers of the finished shards.

`ShardFolder` contains packed shards. `TaskFolder` contains only the markers of tasks that write elsewhere, as
those of `packtok sample` and `packtok logits` do.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from packtok import _packtok
from packtok.errors import PacktokError

# File names of the plan of a `TaskFolder`, and of the marker that the last command writes after publishing.
TASKS_NAME = "tasks.json"
_JOINED_NAME = "joined.json"
_TASKS_VERSION = 1
# Commands whose tasks count documents and not samples.
_OF_DOCUMENTS = ("convert", "reshape")


@dataclass(frozen=True)
class Plan:
    """The header of a plan."""

    fingerprint: str
    num_shards: int
    total_bytes: int


@dataclass(frozen=True)
class Finished:
    """The contents of a finished shard's marker."""

    documents: int
    """Documents, or what the folder's ``unit`` names."""
    tokens: int
    source_bytes: int
    seconds: float


def read_plan(outdir: Path) -> Plan:
    """Returns the header of the plan in a folder of shards.

    Raises:
        PacktokError: If there is no plan, or it has another version.
        OSError: If it cannot be read.
    """
    if outdir.exists() and not outdir.is_dir():
        raise PacktokError(f"{outdir}: is a file; give the folder that contains the shards")
    if (outdir / TASKS_NAME).is_file():
        return _read_tasks(outdir)[0]
    plan = _packtok.read_plan(outdir)
    if plan is None:
        raise PacktokError(f"{outdir}: no {_packtok.PLAN_NAME} found, so this is not a folder of shards")
    return Plan(*plan)


def find_shard_folder(path: Path) -> Path:
    """Returns the folder of shards at ``path``, or the one that a run writing to ``path`` uses.

    Args:
        path: A folder of shards, the output of a run, or a folder that contains one such output.

    Raises:
        PacktokError: If there are several.
    """
    default_folder = Path(f"{path}.shards")
    if is_shard_folder(path) or not (path.is_dir() or is_shard_folder(default_folder)):
        return path
    if is_shard_folder(default_folder):
        return default_folder
    inside = sorted(folder for folder in path.glob("*.shards") if is_shard_folder(folder))
    if len(inside) > 1:
        names = ", ".join(folder.name for folder in inside)
        raise PacktokError(f"{path}: contains several folders of shards: {names}; give one of them")
    return inside[0] if inside else path


def is_shard_folder(path: Path) -> bool:
    """Returns whether a folder has a plan."""
    return any(os.path.lexists(path / name) for name in (_packtok.PLAN_NAME, TASKS_NAME))


def planned_shards(outdir: Path | None) -> int | None:
    """Returns the number of shards of the plan in a folder; ``None`` without a folder or a plan."""
    return read_plan(outdir).num_shards if outdir is not None and is_shard_folder(outdir) else None


def open_shard_folder(outdir: Path) -> "ShardFolder | TaskFolder":
    """Returns the folder of shards at ``outdir``, of whichever kind it is.

    Raises:
        PacktokError: If it has no plan.
    """
    return TaskFolder.open(outdir) if (outdir / TASKS_NAME).is_file() else ShardFolder.open(outdir)


@dataclass
class ShardFolder:
    """A folder of packed shards. Caches the markers it has read."""

    unit: ClassVar[str] = "documents"
    """The unit of which the shards consist."""

    outdir: Path
    plan: Plan
    _known: dict[int, Finished] = field(default_factory=dict)

    @classmethod
    def open(cls, outdir: Path) -> "ShardFolder":
        """Returns the folder of shards at ``outdir``.

        Raises:
            PacktokError: If it has no plan.
        """
        return cls(outdir, read_plan(outdir))

    def finished(self) -> dict[int, Finished]:
        """Returns the finished shards by number: whose marker matches the plan and the file size."""
        sizes = _sizes(self.outdir)
        finished: dict[int, Finished] = {}
        for shard in range(self.plan.num_shards):
            name = _packtok.shard_name(shard, self.plan.num_shards)
            if name in sizes and _packtok.marker_name(name) in sizes:
                done = self._known.get(shard) or self._read(name)
                if done is not None:
                    finished[shard] = done
        self._known = finished
        return finished

    def _read(self, name: str) -> Finished | None:
        try:
            marker = _packtok.find_marker(self.outdir / name)
        except PacktokError:
            # Another program wrote this file; packing the shard again replaces it.
            return None
        if marker is None or marker["plan"] != self.plan.fingerprint:
            return None
        counts = marker["counts"]
        return Finished(counts["documents"], counts["tokens"], marker["source_bytes"], marker["seconds"])


def _sizes(folder: Path) -> dict[str, int]:
    """Returns the size of each shard file in ``folder``, from one directory listing."""
    sizes = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_packtok.SHARD_PREFIX) and entry.is_file():
                try:
                    sizes[entry.name] = entry.stat().st_size
                except FileNotFoundError:
                    continue
    return sizes


@dataclass(frozen=True)
class TaskFile:
    """A file of a task: the task need not run again as long as the file exists."""

    places: Sequence[str | os.PathLike[str]]
    """Its possible paths: before and after it is published."""
    size: int

    def to_dict(self, outdir: Path) -> dict[str, Any]:
        """Returns the paths relative to ``outdir``, so that folder and output can be moved together."""
        return {"places": [os.path.relpath(place, outdir) for place in self.places], "bytes": self.size}


@dataclass
class TaskFolder:
    """A folder with the markers of tasks. Caches the markers it has read."""

    outdir: Path
    plan: Plan
    unit: str
    """As in `ShardFolder`."""
    _known: dict[int, Finished] = field(default_factory=dict)

    @classmethod
    def open(cls, outdir: Path) -> "TaskFolder":
        """Returns the folder at ``outdir``.

        Raises:
            PacktokError: If it has no plan of tasks.
        """
        plan, facts = _read_tasks(outdir)
        return cls(outdir, plan, "documents" if facts.get("command") in _OF_DOCUMENTS else "samples")

    @classmethod
    def create(
        cls,
        outdir: Path,
        facts: Mapping[str, Any],
        num_shards: int,
        total_bytes: int,
        *,
        replace: bool = False,
    ) -> "TaskFolder":
        """Returns the folder at ``outdir`` with the plan of these tasks, which is written if it is missing.

        Args:
            outdir: The folder.
            facts: What distinguishes the run from others: JSON values by name.
            num_shards: Number of tasks.
            total_bytes: Size of the input.
            replace: Whether the plan of another run is replaced.

        Raises:
            PacktokError: If the folder has the plan of another run.
        """
        facts = json.loads(json.dumps({**facts, "shards": num_shards}))
        path = outdir / TASKS_NAME
        if path.is_file():
            _, existing_facts = _read_tasks(outdir)
            name = next(
                (name for name in {**existing_facts, **facts} if existing_facts.get(name) != facts.get(name)),
                None,
            )
            if name is None:
                return cls.open(outdir)
            if not replace:
                raise PacktokError(
                    f"{outdir}: the existing plan does not match: {name} is "
                    f"{json.dumps(existing_facts.get(name))}, "
                    f"expected {json.dumps(facts.get(name))}; remove the folder, or choose another --outdir "
                    "(outdir)"
                )
            (outdir / _JOINED_NAME).unlink(missing_ok=True)
        outdir.mkdir(parents=True, exist_ok=True)
        content = {"packtok_tasks": _TASKS_VERSION, "facts": facts, "total_bytes": total_bytes}
        _packtok.publish_bytes(path, json.dumps(content, indent=1).encode() + b"\n")
        return cls.open(outdir)

    def finish_task(
        self, shard: int, files: Sequence[TaskFile], *, samples: int, tokens: int, seconds: float
    ) -> None:
        """Writes the marker of a task that is done."""
        # The progress counts tasks as shares of equal size.
        total, number = self.plan.total_bytes, self.plan.num_shards
        content = {
            "plan": self.plan.fingerprint,
            "files": [file.to_dict(self.outdir) for file in files],
            "samples": samples,
            "tokens": tokens,
            "source_bytes": total * (shard + 1) // number - total * shard // number,
            "seconds": seconds,
        }
        _packtok.publish_bytes(self._marker(shard), json.dumps(content).encode())

    def reopen(self) -> None:
        """Removes the marker of the last command, because a task writes again."""
        (self.outdir / _JOINED_NAME).unlink(missing_ok=True)

    def clear(self) -> None:
        """Removes all markers, so that all tasks are to be done."""
        self.reopen()
        for shard in range(self.plan.num_shards):
            self._marker(shard).unlink(missing_ok=True)
        self._known = {}

    def finish_join(self, files: Sequence[TaskFile], report: Mapping[str, Any]) -> None:
        """Writes the marker of the command that published ``files``, with its report."""
        content = {
            "plan": self.plan.fingerprint,
            "files": [file.to_dict(self.outdir) for file in files],
            "report": report,
        }
        _packtok.publish_bytes(self.outdir / _JOINED_NAME, json.dumps(content).encode())

    def report(self) -> dict[str, Any] | None:
        """Returns the report of the command that published all files; ``None`` if one is missing."""
        content = self._read(self.outdir / _JOINED_NAME)
        return None if content is None else content["report"]

    def finished(self) -> dict[int, Finished]:
        """Returns the finished tasks by number: whose marker matches the plan, and whose files exist."""
        is_written = self.report() is not None
        finished: dict[int, Finished] = {}
        for shard in range(self.plan.num_shards):
            done = self._known.get(shard) or self._finished(shard, is_written=is_written)
            if done is not None:
                finished[shard] = done
        self._known = finished
        return finished

    def without_marker(self) -> list[int]:
        """Returns the tasks that were never done, whether or not their files are still there."""
        tasks = range(self.plan.num_shards)
        return [shard for shard in tasks if self._read(self._marker(shard), with_files=False) is None]

    def _marker(self, shard: int) -> Path:
        return self.outdir / f"shard-{shard:05}-of-{self.plan.num_shards:05}.done.json"

    def _finished(self, shard: int, *, is_written: bool) -> Finished | None:
        content = self._read(self._marker(shard), with_files=not is_written)
        if content is None:
            return Finished(0, 0, 0, 0.0) if is_written else None
        return Finished(*(content[name] for name in ("samples", "tokens", "source_bytes", "seconds")))

    def _read(self, path: Path, *, with_files: bool = True) -> dict[str, Any] | None:
        """Returns a marker of this plan whose files exist."""
        try:
            content: dict[str, Any] = json.loads(path.read_bytes())
            if content["plan"] != self.plan.fingerprint:
                return None
            is_complete = not with_files or all(self._exists(file) for file in content["files"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return content if is_complete else None

    def _exists(self, file: Mapping[str, Any]) -> bool:
        for place in file["places"]:
            try:
                size = os.stat(self.outdir / place).st_size
            except FileNotFoundError:
                continue
            if size == file["bytes"]:
                return True
        return False


def _read_tasks(outdir: Path) -> tuple[Plan, dict[str, Any]]:
    """Returns the plan in a folder of tasks, and the facts of its run."""
    path = outdir / TASKS_NAME
    try:
        content = json.loads(path.read_bytes())
        facts = content["facts"]
        if content["packtok_tasks"] != _TASKS_VERSION:
            raise ValueError
        fingerprint = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        return Plan(fingerprint, int(facts["shards"]), int(content["total_bytes"])), facts
    except FileNotFoundError:
        raise PacktokError(f"{outdir}: no {TASKS_NAME} found, so this is not a folder of tasks") from None
    except (ValueError, KeyError, TypeError):
        raise PacktokError(
            f"{path}: is not what this version of packtok writes; remove the folder and start the run again"
        ) from None

"""Reads the state of a folder of shards: its plan, and the markers of the finished shards."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from packtok import _packtok
from packtok.errors import PacktokError


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
    beside = Path(f"{path}.shards")
    if _is_shard_folder(path) or not (path.is_dir() or _is_shard_folder(beside)):
        return path
    if _is_shard_folder(beside):
        return beside
    inside = sorted(one for one in path.glob("*.shards") if _is_shard_folder(one))
    if len(inside) > 1:
        names = ", ".join(one.name for one in inside)
        raise PacktokError(f"{path}: contains several folders of shards: {names}; give one of them")
    return inside[0] if inside else path


def _is_shard_folder(path: Path) -> bool:
    return os.path.lexists(path / _packtok.PLAN_NAME)


@dataclass
class ShardFolder:
    """A folder of shards. Caches the markers it has read."""

    outdir: Path
    plan: Plan
    _seen: dict[int, Finished] = field(default_factory=dict)

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
        found: dict[int, Finished] = {}
        for shard in range(self.plan.num_shards):
            name = _packtok.shard_name(shard, self.plan.num_shards)
            if name in sizes and _packtok.marker_name(name) in sizes:
                done = self._seen.get(shard) or self._read(name)
                if done is not None:
                    found[shard] = done
        self._seen = found
        return found

    def _read(self, name: str) -> Finished | None:
        try:
            marker = _packtok.find_marker(self.outdir / name)
        except PacktokError:
            # packtok did not write this file; packing the shard again replaces it.
            return None
        if marker is None or marker["plan"] != self.plan.fingerprint:
            return None
        counts = marker["counts"]
        return Finished(counts["documents"], counts["tokens"], marker["source_bytes"], marker["seconds"])


def _sizes(folder: Path) -> dict[str, int]:
    """Returns the size of each shard file in ``folder``, from one directory listing."""
    found = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_packtok.SHARD_PREFIX) and entry.is_file():
                try:
                    found[entry.name] = entry.stat().st_size
                except FileNotFoundError:
                    continue
    return found

"""Folders of teacher signals: names, parts that can be resumed, and merging parts.

A part is a folder of MDS files, each of which is published when it is complete. Until the part is finished, a
journal lists the files with their hashes; `index.json` and the marker are published last.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from packtok._packtok import MdsWriter, mds_marker, publish_bytes, publish_mds_index
from packtok.errors import PacktokError

__all__ = [
    "JOURNAL",
    "Arrays",
    "Part",
    "free_bytes",
    "keeps_files",
    "last_part",
    "merge_parts",
    "output_folder",
    "part_folder",
]

# The columns of a sample.
Arrays = dict[str, npt.NDArray[Any]]
JOURNAL = ".packtok-logits.json"
_INDEX = "index.json"
# Details in which the markers of the parts of one output differ.
_OF_PART = ("shard",)


def last_part(model_dir: str) -> str:
    """Returns the last part of a model's path or name, which the names of output folders contain."""
    # The path becomes absolute, because "." and ".." name no model.
    path = Path(model_dir)
    return (path.resolve() if path.is_dir() else path).name


def output_folder(
    input_dir: str,
    model_name: str,
    *,
    num_encoder: int,
    num_decoder: int,
    retrieval: str | None,
    retrieval_k: int,
) -> Path:
    """Returns the folder that CEPE's script would write to."""
    # Path drops a final slash, after which the suffix would name a file in the folder.
    if retrieval is not None:
        return Path(f"{Path(retrieval)}-ret_k{retrieval_k}-dec{num_decoder}-{model_name}")
    return Path(f"{Path(input_dir)}-logits-enc{num_encoder}-dec{num_decoder}-{model_name}")


def part_folder(output: Path, domain: str, shard: int) -> Path:
    """Returns the folder of a part."""
    return output / f"{domain}-{shard}"


def keeps_files(folder: Path) -> bool:
    """Returns whether a run that was interrupted left finished files of a part."""
    try:
        return bool(json.loads((folder / JOURNAL).read_bytes())["files"])
    except FileNotFoundError:
        return (folder / _INDEX).exists()
    except ValueError:
        return False


@dataclass
class Part:
    """The folder of a part while it is written."""

    folder: Path
    marker: Mapping[str, Any]
    """The marker of the finished part, without the fields that publishing fills in."""
    entries: list[dict[str, Any]]
    """The finished files, as the index lists them."""
    is_finished: bool

    @classmethod
    @contextlib.contextmanager
    def open(cls, folder: Path, marker: Mapping[str, Any]) -> Iterator["Part"]:
        """Opens a part, which no other process can then write to, and checks the files that it has.

        A part that lost a file after it was finished is unfinished again, unless it was merged.

        Raises:
            PacktokError: If the folder has signals of another kind, or another process writes to it.
            OSError: If it cannot be read or written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            if (folder / _INDEX).exists():
                _check_same(folder, mds_marker(folder), marker)
                if _is_merged(folder) or _has_all_files(folder):
                    (folder / JOURNAL).unlink(missing_ok=True)
                    yield cls(folder, marker, [], is_finished=True)
                    return
                cls(folder, marker, _entries(folder), is_finished=False)._reopen()
            part = cls(folder, marker, [], is_finished=False)
            part._resume()
            yield part

    @property
    def num_samples(self) -> int:
        """Number of samples in finished files."""
        return sum(entry["samples"] for entry in self.entries)

    def write(self, columns: Mapping[str, str], samples: Iterator[Arrays]) -> None:
        """Writes the samples of the next file."""
        writer = MdsWriter(self.folder, dict(columns), size_limit=None, first_shard=len(self.entries))
        try:
            for sample in samples:
                writer.write(sample)
            self.entries += writer.finish(publish_index=False)
        except BaseException:
            writer.discard()
            raise
        self._record()

    def finish(self) -> None:
        """Publishes the marker and the index."""
        publish_mds_index(self.folder, self.entries, marker=dict(self.marker))
        (self.folder / JOURNAL).unlink(missing_ok=True)

    def _reopen(self) -> None:
        """Makes a finished part an unfinished one with the same files."""
        self._record()
        (self.folder / _INDEX).unlink()

    def _record(self) -> None:
        content = {"marker": self.marker, "files": self.entries}
        publish_bytes(self.folder / JOURNAL, json.dumps(content).encode())

    def _resume(self) -> None:
        journal = self.folder / JOURNAL
        try:
            content = json.loads(journal.read_bytes())
        except FileNotFoundError:
            if others := sorted(
                path.name for path in self.folder.iterdir() if path.name.startswith("shard.")
            ):
                raise PacktokError(
                    f"{self.folder}: contains {others[0]}, but no {JOURNAL} of an unfinished run; remove "
                    "the folder"
                ) from None
            self._record()
            return
        except ValueError as error:
            raise PacktokError(f"{journal}: is damaged; remove the folder {self.folder}") from error
        if not content["files"]:
            # An empty journal loses nothing.
            self._record()
            return
        _check_same(self.folder, content["marker"], self.marker)
        for entry in content["files"]:
            # A run writes the files after a damaged one again.
            if not _is_intact(self.folder, entry):
                break
            self.entries.append(entry)


def _entries(folder: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((folder / _INDEX).read_bytes())["shards"]
    return entries


def _is_merged(folder: Path) -> bool:
    """Returns whether the folder of all parts is complete."""
    # A merge may have moved the files of the part into this folder.
    return (folder.with_name(folder.name.rpartition("-")[0]) / _INDEX).exists()


def _has_all_files(folder: Path) -> bool:
    """Returns whether a folder has the files in its index, by their sizes."""
    stored = [entry["zip_data"] or entry["raw_data"] for entry in _entries(folder)]
    return all(_size(folder / file["basename"]) == file["bytes"] for file in stored)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    # The folder itself is locked, so that no lock file remains.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PacktokError(
                f"{folder}: another process writes to this folder; wait until it ends"
            ) from None
        except OSError as error:
            # Some network file systems have no locks.
            if error.errno not in (errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK, errno.EBADF, errno.EINVAL):
                raise
        yield
    finally:
        os.close(descriptor)


def _is_intact(folder: Path, entry: Mapping[str, Any]) -> bool:
    stored = entry["zip_data"] or entry["raw_data"]
    try:
        with (folder / stored["basename"]).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return bool(digest == stored["hashes"]["sha256"])
    except FileNotFoundError:
        return False


def _check_same(folder: Path, marker: Mapping[str, Any] | None, expected: Mapping[str, Any]) -> None:
    difference = _difference(marker, expected)
    if difference is not None:
        raise PacktokError(
            f"{folder}: contains other teacher signals: {difference}; remove the folder, or rename it to "
            "keep them"
        )


def _difference(marker: Mapping[str, Any] | None, expected: Mapping[str, Any]) -> str | None:
    """Returns the first fact in which two markers differ."""
    if marker is None:
        return "there is no packtok.json"
    facts, expected_facts = _facts(marker), _facts(expected)
    for name in sorted({*facts, *expected_facts}):
        if facts.get(name) != expected_facts.get(name):
            return f"{name} is {_json(facts.get(name))}, expected {_json(expected_facts.get(name))}"
    return None


def _facts(marker: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: marker.get(name) for name in ("kind", "plan", "side", "domain", "start", "stop")}
    return own | dict(marker.get("details") or {})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)


def merge_parts(output: Path, domain: str, num_shards: int | None = None) -> dict[str, Any]:
    """Makes one folder of all parts of a domain, without rewriting samples, and returns the counts.

    The files become hard links, or are moved where there are none. The parts stay unless they are moved.

    Args:
        output: The folder of the parts.
        domain: Its name.
        num_shards: Number of parts. Default: what the first part says.

    Raises:
        PacktokError: If parts are missing, unfinished, or do not belong together.
        OSError: If a file cannot be linked.
    """
    markers = _markers(output, domain, num_shards)
    first, last = markers[0], markers[-1]
    merged_marker = {
        **{name: first[name] for name in ("kind", "plan", "side", "domain", "start")},
        "stop": last["stop"],
        "details": {
            name: value for name, value in first["details"].items() if name not in (*_OF_PART, "num_shards")
        },
    }
    folder = output / domain
    folder.mkdir(exist_ok=True)
    with _locked(folder):
        is_kept = (folder / _INDEX).exists()
        if is_kept:
            _check_same(folder, mds_marker(folder), merged_marker)
            entries = _entries(folder)
            is_kept = _has_all_files(folder)
        if not is_kept:
            entries = _linked(output, domain, len(markers), folder)
            (folder / _INDEX).unlink(missing_ok=True)
            publish_mds_index(folder, entries, marker=merged_marker)
    return {
        "output": str(folder),
        "parts": len(markers),
        "files": len(entries),
        "samples": merged_marker["stop"] - merged_marker["start"],
        "kept": is_kept,
    }


def _markers(output: Path, domain: str, num_shards: int | None) -> list[dict[str, Any]]:
    """Returns the markers of all parts, which belong together."""
    if num_shards is None:
        num_shards = _num_shards(output, domain)
    markers: list[dict[str, Any]] = []
    faults = []
    for shard in range(num_shards):
        folder = part_folder(output, domain, shard)
        marker = mds_marker(folder) if (folder / _INDEX).exists() else None
        if marker is None:
            faults.append(f"{folder.name} is {'not finished' if folder.exists() else 'missing'}")
        else:
            markers.append(marker)
    if faults:
        listed = ", ".join(faults[:5]) + (f" and {len(faults) - 5:,} more" if len(faults) > 5 else "")
        raise PacktokError(f"{output}: {listed}; compute these shards first")
    for shard, marker in enumerate(markers):
        _check_part(part_folder(output, domain, shard), marker, markers, shard)
    return markers


def _num_shards(output: Path, domain: str) -> int:
    # The pattern excludes parts of a domain whose name starts with this one.
    pattern = re.compile(re.escape(domain) + "-[0-9]+")
    parts = sorted(path for path in output.glob("*") if pattern.fullmatch(path.name))
    for part in parts:
        marker = mds_marker(part) if (part / _INDEX).exists() else None
        if marker is not None and marker["details"].get("num_shards"):
            return int(marker["details"]["num_shards"])
    problem = f"{parts[0].name} is not finished" if parts else f"has no part of {domain}"
    raise PacktokError(f"{output}: {problem}; compute its shards first")


def _check_part(folder: Path, marker: Mapping[str, Any], markers: list[dict[str, Any]], shard: int) -> None:
    first = markers[0]
    start = markers[shard - 1]["stop"] if shard else first["details"].get("start", first["start"])
    expected = {
        **marker,
        **{name: first[name] for name in ("kind", "plan", "side", "domain")},
        "start": start,
        "details": first["details"] | {"shard": shard, "num_shards": len(markers)},
    }
    if shard == len(markers) - 1:
        expected["stop"] = first["details"]["start"] + first["details"]["num_samples"]
    if (difference := _difference(marker, expected)) is not None:
        raise PacktokError(
            f"{folder}: does not belong to the other parts: {difference}; remove it and compute this shard "
            "again"
        )


def _linked(output: Path, domain: str, num_parts: int, folder: Path) -> list[dict[str, Any]]:
    """Links the files of all parts into a folder and returns their entries in its index.

    If linking fails, it removes the links, and the folder if that is then empty.
    """
    entries: list[dict[str, Any]] = []
    links: list[Path] = []
    try:
        for shard in range(num_parts):
            part = part_folder(output, domain, shard)
            for entry in _entries(part):
                raw = entry["raw_data"]
                name = f"shard.{len(entries):05}.mds"
                fault = _link(part / raw["basename"], folder / name, raw["bytes"], links)
                if fault is not None:
                    raise PacktokError(f"{fault}; compute it again with --shard {shard}/{num_parts}")
                entries.append({**entry, "raw_data": {**raw, "basename": name}})
    except BaseException:
        for link in links:
            link.unlink(missing_ok=True)
        # A folder with files of an earlier merge stays.
        with contextlib.suppress(OSError):
            folder.rmdir()
        raise
    return entries


def _link(source: Path, target: Path, num_bytes: int, links: list[Path]) -> str | None:
    """Links or moves a file and adds links to ``links``; returns the fault of the file, if any."""
    # A killed merge may have moved the file already.
    place = source if source.exists() else target
    size = _size(place)
    if size is None:
        return f"{source}: is missing"
    if size != num_bytes:
        return f"{source}: has {size:,} bytes, expected {num_bytes:,}"
    if place == target or (target.exists() and target.samefile(source)):
        return None
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
        links.append(target)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
            raise
        os.rename(source, target)
    return None


def free_bytes(folder: Path) -> int:
    """Returns the free space of the file system that a folder, which may not exist, is or will be in."""
    for place in (folder, *folder.absolute().parents):
        if place.exists():
            return shutil.disk_usage(place).free
    return 0

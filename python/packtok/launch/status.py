"""Where a launch stands: markers first, the queue second, for it may forget, be wrong or not answer."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packtok.errors import SlurmError
from packtok.launch.folder import Finished, ShardFolder
from packtok.launch.record import Record, Submission, read_record
from packtok.launch.script import compact, log_folder
from packtok.launch.slurm import QueuedTask, Slurm

LAST_BYTES = 4096


@dataclass(frozen=True)
class Failure:
    """A shard that a job was to pack and did not finish."""

    shard: int
    state: str | None
    """What Slurm says of the task, as long as it remembers it."""
    log: str | None
    last_line: str | None


@dataclass(frozen=True)
class Status:
    """Where a launch stands; every shard is in exactly one of the lists."""

    outdir: Path
    num_shards: int
    done: tuple[int, ...]
    running: tuple[int, ...]
    queued: tuple[int, ...]
    failed: tuple[Failure, ...]
    missing: tuple[int, ...]
    """Not finished, and no job is known to be about to pack them; if ``unknown``, nobody can tell."""
    documents: int
    tokens: int
    source_bytes: int
    total_bytes: int
    bytes_per_second: float | None
    """Of all tasks that run now, judged by those that have finished."""
    output: str | None
    is_joined: bool
    join_state: str | None
    unknown: str | None = None
    """Why the queue could not be asked."""

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at this pace."""
        if self.bytes_per_second is None:
            return None
        return max(0, self.total_bytes - self.source_bytes) / self.bytes_per_second

    @property
    def is_over(self) -> bool:
        """Whether nothing will change unless somebody submits something."""
        under_way = self.running or self.queued or self.join_state in ("PENDING", "RUNNING", "COMPLETING")
        return self.unknown is None and not under_way

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        return {
            "outdir": str(self.outdir),
            "shards": self.num_shards,
            "done": list(self.done),
            "running": list(self.running),
            "queued": list(self.queued),
            "failed": [vars(failure) for failure in self.failed],
            "missing": list(self.missing),
            "documents": self.documents,
            "tokens": self.tokens,
            "source_bytes": self.source_bytes,
            "total_bytes": self.total_bytes,
            "bytes_per_second": self.bytes_per_second,
            "seconds_left": self.seconds_left,
            "output": self.output,
            "joined": self.is_joined,
            "join_state": self.join_state,
            "unknown": self.unknown,
        }


@dataclass
class Watcher:
    """Looks at one folder again and again, and reads each marker once."""

    folder: ShardFolder
    slurm: Callable[[Record], Slurm] = field(
        default=lambda record: Slurm(record.settings.slurm.slurm_bin_dir)
    )

    def look(self) -> Status:
        """Where the launch stands now.

        Raises:
            OSError: If the folder cannot be read.
        """
        record = read_record(self.folder.outdir)
        tasks, unknown = _queue(record, self.slurm)
        # After the queue, so that a task that ended in between counts as finished and not as failed.
        finished = self.folder.finished()
        return _status(self.folder, record, finished, tasks, unknown)


def _queue(record: Record | None, slurm: Callable[[Record], Slurm]) -> tuple[list[QueuedTask], str | None]:
    if record is None or not record.submissions:
        return [], None
    try:
        return slurm(record).queue(one.job for one in record.submissions), None
    except SlurmError as error:
        return [], str(error)


def _status(
    folder: ShardFolder,
    record: Record | None,
    finished: dict[int, Finished],
    tasks: list[QueuedTask],
    unknown: str | None,
) -> Status:
    submissions = record.submissions if record is not None else ()
    states = _states(submissions, tasks)
    running, queued, failed, missing = [], [], [], []
    for shard in range(folder.plan.num_shards):
        if shard in finished:
            continue
        state = states.get(shard)
        last = next((one for one in reversed(submissions) if one.covers(shard)), None)
        if state in ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"):
            queued.append(shard)
        elif state is not None and not _has_ended(state):
            running.append(shard)
        elif last is not None and unknown is None:
            failed.append(_failure(folder.outdir, shard, last, state))
        else:
            missing.append(shard)
    joins = [task for task in tasks if any(o.kind == "join" and o.job == task.job for o in submissions)]
    return Status(
        outdir=folder.outdir,
        num_shards=folder.plan.num_shards,
        done=tuple(sorted(finished)),
        running=tuple(running),
        queued=tuple(queued),
        failed=tuple(failed),
        missing=tuple(missing),
        documents=sum(one.documents for one in finished.values()),
        tokens=sum(one.tokens for one in finished.values()),
        source_bytes=sum(one.source_bytes for one in finished.values()),
        total_bytes=folder.plan.total_bytes,
        bytes_per_second=_pace(finished, len(running)),
        output=record.output if record is not None else None,
        is_joined=record is not None and os.path.lexists(record.output),
        join_state=joins[-1].state if joins else None,
        unknown=unknown,
    )


def _has_ended(state: str) -> bool:
    return QueuedTask("", None, state, "").has_ended


def _states(submissions: tuple[Submission, ...], tasks: list[QueuedTask]) -> dict[int, str]:
    """What the queue says of each shard; of several jobs one that still runs goes first, then the latest."""
    packing = {one.job: (i, one) for i, one in enumerate(submissions) if one.kind != "join"}
    known = sorted((task for task in tasks if task.job in packing), key=lambda task: packing[task.job][0])
    found: dict[int, str] = {}
    for task in [*(t for t in known if t.has_ended), *(t for t in known if not t.has_ended)]:
        found |= dict.fromkeys(packing[task.job][1].shards_of(task.array_task), task.state)
    return found


def _failure(outdir: Path, shard: int, submission: Submission, state: str | None) -> Failure:
    name = (
        f"{submission.job}_{shard - submission.first_shard}" if submission.kind == "array" else submission.job
    )
    log = log_folder(outdir) / f"{name}.out"
    last_line = _last_line(log)
    return Failure(shard, state, str(log) if last_line is not None else None, last_line)


def _last_line(log: Path) -> str | None:
    """The last line of a log that says something; ``None`` if there is no log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_BYTES))
            lines = file.read().decode("utf-8", "backslashreplace").splitlines()
    except OSError:
        return None
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _pace(finished: dict[int, Finished], num_running: int) -> float | None:
    seconds = sum(one.seconds for one in finished.values())
    if num_running == 0 or seconds <= 0:
        return None
    pace = num_running * sum(one.source_bytes for one in finished.values()) / seconds
    return pace if pace > 0 else None


def summary(status: Status) -> list[tuple[str, str]]:
    """A status as a table of two columns."""
    rows = [("shards", f"{len(status.done):,} of {status.num_shards:,} done")]
    failed = [failure.shard for failure in status.failed]
    for name, shards in (
        ("running", status.running),
        ("queued", status.queued),
        ("failed", failed),
        ("not known" if status.unknown else "missing", status.missing),
    ):
        if shards:
            rows.append((name, f"{len(shards):,}: {compact(shards)}"))
    rows += [
        ("documents", f"{status.documents:,}"),
        ("tokens", f"{status.tokens:,}"),
        ("input", f"{status.source_bytes / 1e6:,.1f} of {status.total_bytes / 1e6:,.1f} MB"),
    ]
    if status.bytes_per_second is not None and status.seconds_left is not None:
        minutes, seconds = divmod(round(status.seconds_left), 60)
        hours, minutes = divmod(minutes, 60)
        rows.append(
            ("pace", f"{status.bytes_per_second / 1e6:,.1f} MB/s, {hours}:{minutes:02}:{seconds:02} left")
        )
    if status.output is not None:
        state = "there" if status.is_joined else _join_words(status)
        rows.append(("output", f"{status.output}: {state}"))
    rows += [
        ("log", f"shard {one.shard}, {one.state or 'ended'}: {one.log}: {one.last_line}")
        for one in status.failed[:5]
        if one.log
    ]
    if status.unknown is not None:
        rows.append(("Slurm", status.unknown))
    return rows


def _join_words(status: Status) -> str:
    if status.join_state in ("PENDING", "RUNNING", "COMPLETING"):
        return f"not there yet; the job that joins is {status.join_state}"
    return "not there"


def poll(watcher: Watcher, seconds: float, show: Callable[[Status], None]) -> Status:
    """Shows the status again and again until the launch is over, and returns the last."""
    while True:
        status = watcher.look()
        show(status)
        if status.is_over:
            return status
        time.sleep(seconds)

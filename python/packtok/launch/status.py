"""Status of a launch. Markers take precedence over the queue, which can be outdated, wrong or unavailable."""

import os
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packtok.errors import SlurmError
from packtok.launch.record import Record, Submission, read_record
from packtok.launch.script import compact, log_folder
from packtok.launch.slurm import QueuedTask, Slurm
from packtok.launch.tasks import is_written
from packtok.shard_folder import Finished, ShardFolder, TaskFolder

LAST_BYTES = 4096
# Number of failed shards whose logs are read; failures on a cluster often share one cause.
MAX_LOGS = 100
MAX_CHARS = 80


@dataclass(frozen=True)
class Failure:
    """A shard whose job ended without finishing it."""

    shard: int
    state: str | None
    """Slurm's state of the task while Slurm remembers it, or the reason why Slurm holds it."""
    log: str | None
    last_line: str | None


@dataclass(frozen=True)
class Status:
    """The status of a launch; every shard is in exactly one of the lists."""

    outdir: Path
    num_shards: int
    done: tuple[int, ...]
    running: tuple[int, ...]
    queued: tuple[int, ...]
    waiting_for: tuple[str, ...]
    """Slurm's reasons why queued tasks do not run."""
    failed: tuple[Failure, ...]
    missing: tuple[int, ...]
    """Not finished, and not part of a known queued or running job; unreliable if ``unknown`` is set."""
    documents: int
    tokens: int
    source_bytes: int
    total_bytes: int
    bytes_per_second: float | None
    """The rate of all running tasks together, estimated from finished tasks."""
    output: str | None
    is_joined: bool
    join_state: str | None
    held: tuple[str, ...]
    """Tasks that Slurm holds forever; `packtok retry` releases them."""
    unknown: str | None = None
    """The reason why the queue is not available."""
    unit: str = "documents"
    """The unit that ``documents`` counts."""

    @property
    def seconds_left(self) -> float | None:
        """Estimated remaining seconds at the current rate."""
        if self.bytes_per_second is None:
            return None
        return max(0, self.total_bytes - self.source_bytes) / self.bytes_per_second

    @property
    def is_over(self) -> bool:
        """Whether the status will not change without another submission."""
        # A join that depends on a held task never starts either.
        waits = self.join_state == "PENDING" and not self.held
        joins = waits or self.join_state in ("RUNNING", "COMPLETING")
        return self.unknown is None and not (self.running or self.queued or joins)

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as JSON-serializable values."""
        return {
            "outdir": str(self.outdir),
            "shards": self.num_shards,
            "done": list(self.done),
            "running": list(self.running),
            "queued": list(self.queued),
            "waiting_for": list(self.waiting_for),
            "failed": [vars(failure) for failure in self.failed],
            "missing": list(self.missing),
            self.unit: self.documents,
            "tokens": self.tokens,
            "source_bytes": self.source_bytes,
            "total_bytes": self.total_bytes,
            "bytes_per_second": self.bytes_per_second,
            "seconds_left": self.seconds_left,
            "output": self.output,
            "joined": self.is_joined,
            "join_state": self.join_state,
            "held": list(self.held),
            "over": self.is_over,
            "unknown": self.unknown,
        }


@dataclass
class Watcher:
    """Polls one folder, and reads each marker only once."""

    folder: ShardFolder | TaskFolder
    slurm: Callable[[Record], Slurm] = field(
        default=lambda record: Slurm(record.settings.slurm.slurm_bin_dir)
    )

    def look(self) -> Status:
        """Returns the current status of the launch.

        Raises:
            OSError: If the folder cannot be read.
        """
        record = read_record(self.folder.outdir)
        tasks, unknown = _queue(record, self.slurm)
        # Markers are read after the queue: a task that ends in between counts as finished, not as failed.
        finished = self.folder.finished()
        return _status(self.folder, record, finished, tasks, unknown)


def _queue(record: Record | None, slurm: Callable[[Record], Slurm]) -> tuple[list[QueuedTask], str | None]:
    if record is None or not record.submissions:
        return [], None
    try:
        return slurm(record).queue(submission.job for submission in record.submissions), None
    except SlurmError as error:
        return [], str(error)


def _status(
    folder: ShardFolder | TaskFolder,
    record: Record | None,
    finished: dict[int, Finished],
    tasks: list[QueuedTask],
    unknown: str | None,
) -> Status:
    submissions = record.submissions if record is not None else ()
    running, queued, failed, missing = _sorted_out(folder, submissions, finished, tasks, unknown)
    joins = {submission.job for submission in submissions if submission.kind == "join"}
    joining = [task.state for task in tasks if task.job in joins]
    is_complete = len(finished) == folder.plan.num_shards
    return Status(
        outdir=folder.outdir,
        num_shards=folder.plan.num_shards,
        done=tuple(sorted(finished)),
        running=tuple(running),
        queued=tuple(queued),
        waiting_for=tuple(sorted({task.reason for task in queued.values()})),
        failed=tuple(failed),
        missing=tuple(missing),
        documents=sum(shard.documents for shard in finished.values()),
        tokens=sum(shard.tokens for shard in finished.values()),
        source_bytes=sum(shard.source_bytes for shard in finished.values()),
        total_bytes=folder.plan.total_bytes,
        bytes_per_second=_pace(finished, len(running)),
        output=record.output if record is not None else None,
        is_joined=record is not None and is_complete and is_written(folder, record.output),
        join_state=joining[-1] if joining else None,
        held=tuple(task.number for task in tasks if task.is_held_by_slurm),
        unknown=unknown,
        unit=folder.unit,
    )


def _sorted_out(
    folder: ShardFolder | TaskFolder,
    submissions: tuple[Submission, ...],
    finished: Container[int],
    tasks: list[QueuedTask],
    unknown: str | None,
) -> tuple[list[int], dict[int, QueuedTask], list[Failure], list[int]]:
    """Divides the unfinished shards into running, queued, failed and missing ones."""
    of_shard = _tasks_of_shards(submissions, tasks)
    last = {
        shard: submission
        for submission in submissions
        if submission.kind != "join"
        for shard in submission.shards_of(array_task=None)
    }
    running: list[int] = []
    queued: dict[int, QueuedTask] = {}
    failed: list[Failure] = []
    missing: list[int] = []
    for shard in range(folder.plan.num_shards):
        if shard in finished:
            continue
        task = of_shard.get(shard)
        if task is not None and task.is_under_way:
            if task.is_waiting:
                queued[shard] = task
            else:
                running.append(shard)
        elif shard in last and unknown is None:
            with_log = len(failed) < MAX_LOGS
            failed.append(_failure(folder.outdir, shard, last[shard], task, with_log=with_log))
        else:
            missing.append(shard)
    return running, queued, failed, missing


def _tasks_of_shards(submissions: tuple[Submission, ...], tasks: list[QueuedTask]) -> dict[int, QueuedTask]:
    """Returns the queue's entry for each shard; if there are several, one that runs, otherwise the latest."""
    packing = {
        submission.job: (i, submission)
        for i, submission in enumerate(submissions)
        if submission.kind != "join"
    }
    known = sorted((task for task in tasks if task.job in packing), key=lambda task: packing[task.job][0])
    by_shard: dict[int, QueuedTask] = {}
    for task in [*(t for t in known if t.has_ended), *(t for t in known if not t.has_ended)]:
        by_shard |= dict.fromkeys(packing[task.job][1].shards_of(task.array_task), task)
    return by_shard


def _failure(
    outdir: Path, shard: int, submission: Submission, task: QueuedTask | None, *, with_log: bool
) -> Failure:
    is_array = submission.kind == "array"
    name = f"{submission.job}_{shard - submission.first_shard}" if is_array else submission.job
    log = log_folder(outdir) / f"{name}.out"
    last_line = _last_line(log) if with_log else None
    state = None if task is None else task.reason if task.is_held_by_slurm else task.state
    return Failure(shard, state, str(log) if last_line is not None else None, last_line)


def _last_line(log: Path) -> str | None:
    """Returns the last non-empty line of a log; ``None`` if there is no log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_BYTES))
            lines = file.read().decode("utf-8", "backslashreplace").splitlines()
    except OSError:
        return None
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _pace(finished: dict[int, Finished], num_running: int) -> float | None:
    seconds = sum(shard.seconds for shard in finished.values())
    if num_running == 0 or seconds <= 0:
        return None
    pace = num_running * sum(shard.source_bytes for shard in finished.values()) / seconds
    return pace if pace > 0 else None


def summary(status: Status) -> list[tuple[str, str]]:
    """Returns a status as a table of two columns."""
    rows = [("shards", f"{len(status.done):,} of {status.num_shards:,} done")]
    failed = [failure.shard for failure in status.failed]
    why = f" ({', '.join(status.waiting_for)})" if status.waiting_for else ""
    for name, shards, more in (
        ("running", status.running, ""),
        ("queued", status.queued, why),
        ("failed", failed, ""),
        ("unknown" if status.unknown else "missing", status.missing, ""),
    ):
        if shards:
            rows.append((name, f"{len(shards):,}: {_some(shards)}{more}"))
    rows += [
        (status.unit, f"{status.documents:,}"),
        ("tokens", f"{status.tokens:,}"),
        ("input", f"{status.source_bytes / 1e6:,.1f} of {status.total_bytes / 1e6:,.1f} MB"),
    ]
    if status.bytes_per_second is not None and status.seconds_left is not None:
        minutes, seconds = divmod(round(status.seconds_left), 60)
        hours, minutes = divmod(minutes, 60)
        rows.append(
            ("speed", f"{status.bytes_per_second / 1e6:,.1f} MB/s, {hours}:{minutes:02}:{seconds:02} left")
        )
    if status.output is not None:
        state = "written" if status.is_joined else _join_words(status)
        rows.append(("output", f"{status.output}: {state}"))
    rows += [
        ("log", f"shard {failure.shard}, {failure.state or 'ended'}: {failure.log}: {failure.last_line}")
        for failure in status.failed[:5]
        if failure.log
    ]
    if status.held:
        rows.append(
            (
                "held",
                f"{len(status.held):,} tasks by Slurm; to release them, run packtok retry {status.outdir}",
            )
        )
    if status.unknown is not None:
        rows.append(("Slurm", status.unknown))
    return rows


def _some(shards: Sequence[int]) -> str:
    """Formats shards in Slurm's notation, cut to one line; ``--json`` lists all of them."""
    text = compact(shards)
    return text if len(text) <= MAX_CHARS else text[: text.rindex(",", 0, MAX_CHARS)] + ", …"


def _join_words(status: Status) -> str:
    if status.join_state in ("PENDING", "RUNNING", "COMPLETING"):
        return f"not written yet; the join job is {status.join_state}"
    return "not written"


def poll(watcher: Watcher, seconds: float, show: Callable[[Status], None]) -> Status:
    """Shows the status repeatedly until the launch is over, and returns the last status."""
    while True:
        status = watcher.look()
        show(status)
        if status.is_over:
            return status
        time.sleep(seconds)

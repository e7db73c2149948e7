"""Submitting what is missing: which shards that is, in which jobs, and what follows them."""

import errno
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packtok import _packtok
from packtok.config.redact import Redactor
from packtok.errors import OUTPUT_EXISTS, PacktokError
from packtok.launch.record import Record, Submission, read_record, write_record
from packtok.launch.script import (
    Launch,
    Script,
    array_script,
    compact,
    join_script,
    log_folder,
    ray_script,
    runs,
    srun_script,
)
from packtok.launch.settings import LaunchSettings
from packtok.launch.slurm import QueuedTask, Slurm
from packtok.shard_folder import ShardFolder, read_plan
from packtok.store.staging import exists

# So many that a task that is lost or slow costs little, and so few that starting them costs nothing.
SHARDS_PER_NODE = 8


@dataclass(frozen=True)
class Job:
    """A job that is to be submitted."""

    script: Path
    arguments: tuple[str, ...]
    given: tuple[str, ...]
    submission: Submission


@dataclass(frozen=True)
class Todo:
    """What a launch has left to do."""

    jobs: tuple[Job, ...]
    """Those that pack; none if all shards are finished or under way."""
    join: Job | None
    behind: tuple[str, ...]
    """Jobs under way that the join waits for as well."""
    finished: int
    under_way: tuple[int, ...]
    held: tuple[str, ...] = ()
    """Tasks submitted earlier that Slurm holds back until somebody lets them go."""


@dataclass(frozen=True)
class Submitted:
    """What was submitted."""

    todo: Todo
    submissions: tuple[Submission, ...]
    replaced: tuple[str, ...]
    """Jobs that were to join and were taken back, since a later one does."""


def num_shards(outdir: Path, settings: LaunchSettings, num_nodes: int | None = None) -> int:
    """How many shards are asked for, else how many the plan has, else `SHARDS_PER_NODE` for each node.

    Args:
        outdir: The folder of the shards, which may have a plan.
        settings: All settings.
        num_nodes: How many nodes there are, where that is known.
    """
    if settings.slurm.shards is not None:
        return settings.slurm.shards
    if os.path.lexists(outdir / _packtok.PLAN_NAME):
        return read_plan(outdir).num_shards
    return SHARDS_PER_NODE * (num_nodes or settings.slurm.nodes or 1)


def check(launch: Launch) -> None:
    """Refuses what would only fail in the end, or must not stand in a script.

    Raises:
        ValueError: If an argument is a URL with credentials in it, or a path has a backslash.
        FileExistsError: If the output exists, may not be replaced, and does not come from these shards.
    """
    redactor = Redactor()
    for argument in (*launch.pack_arguments, launch.output, str(launch.outdir)):
        if redactor(argument) != argument:
            raise ValueError(
                f"{redactor(argument)}: contains credentials, which others could read in the script; set "
                "them in the environment"
            )
    if "\\" in str(launch.outdir):
        raise ValueError(f"{launch.outdir}: contains a backslash, which Slurm interprets; use another path")
    is_new = not os.path.lexists(launch.outdir / _packtok.PLAN_NAME)
    if is_new and exists(launch.output) and not _may_exist(launch):
        raise FileExistsError(errno.EEXIST, OUTPUT_EXISTS, launch.output)


def _may_exist(launch: Launch) -> bool:
    return any(argument.startswith("--existing=") for argument in launch.join_arguments)


def plan_jobs(launch: Launch, *, script: Path | None = None, slurm: Slurm | None = None) -> Todo:
    """Writes the scripts and says which jobs are to be submitted: one task for each shard that is missing.

    Args:
        launch: What is to be packed; its plan is in the folder already.
        script: Where the script that packs goes; by default into the folder of shards.
        slurm: Who is asked which shards are under way; nobody is if it is ``None``.

    Raises:
        PacktokError: If the folder has no plan, or one of another number of shards.
        SlurmError: If the queue cannot be asked.
        OSError: If a script cannot be written.
    """
    finished = ShardFolder.open(launch.outdir).finished()
    tasks = _tasks_under_way(launch, slurm)
    unfinished = [(task, k) for task, shards in tasks for k in shards if k not in finished]
    # A shard that is finished is not under way, whatever the queue has of it: a controller that was started
    # again may believe for long that a task runs which has ended.
    under_way = {shard for _, shard in unfinished}
    behind = tuple(sorted({task.job for task, _ in unfinished}, key=int))
    held = tuple(task.number for task, _ in tasks if task.is_held_by_slurm)
    missing = [k for k in range(launch.num_shards) if k not in finished and k not in under_way]
    # The folder of the logs has to be there before Slurm opens the first.
    log_folder(launch.outdir).mkdir(exist_ok=True)
    jobs = _packing_jobs(launch, missing, script or launch.outdir / "pack.sbatch", slurm) if missing else []
    join = None
    if _needs_join_job(launch, is_packing=bool(jobs or behind)):
        join = _job(launch.outdir / "join.sbatch", join_script(launch), [], Submission(job="", kind="join"))
    return Todo(tuple(jobs), join, behind, len(finished), tuple(sorted(under_way)), held)


def _needs_join_job(launch: Launch, *, is_packing: bool) -> bool:
    if launch.settings.slurm.join == "none":
        return False
    if is_packing:
        # With srun, and with Ray, the job that packs joins as well.
        return launch.settings.engine == "slurm" and launch.settings.slurm.mode == "array"
    return not exists(launch.output) or "--existing=replace" in launch.join_arguments


def _tasks_under_way(launch: Launch, slurm: Slurm | None) -> list[tuple[QueuedTask, list[int]]]:
    """Tasks submitted earlier that have not ended, each with the shards that it is to pack."""
    record = read_record(launch.outdir)
    if slurm is None or record is None:
        return []
    submitted = {one.job: one for one in record.submissions}
    tasks = [task for task in slurm.queue(submitted) if not task.has_ended]
    return [(task, list(submitted[task.job].shards_of(task.array_task))) for task in tasks]


def _packing_jobs(launch: Launch, missing: list[int], path: Path, slurm: Slurm | None) -> list[Job]:
    settings = launch.settings.slurm
    if launch.settings.engine == "ray":
        submission = Submission(job="", kind="ray", shards=tuple(runs(missing)))
        return [_job(path, ray_script(launch), [], submission)]
    if settings.mode == "srun":
        submission = Submission(job="", kind="srun", shards=tuple(runs(missing)))
        return [_job(path, srun_script(launch, missing), [], submission)]
    size = (slurm or Slurm(settings.slurm_bin_dir)).max_array_size()
    script = array_script(launch)
    firsts = sorted({shard // size * size for shard in missing})
    at_once = settings.at_once or settings.nodes
    limit = f"%{max(1, at_once // len(firsts))}" if at_once is not None else ""
    jobs = []
    for first in firsts:
        shards = [shard for shard in missing if first <= shard < first + size]
        arguments = [f"--array={compact(shard - first for shard in shards)}{limit}"]
        if first:
            arguments.append(f"--export=ALL,PACKTOK_FIRST_SHARD={first}")
        submission = Submission(job="", kind="array", first_shard=first, shards=tuple(runs(shards)))
        jobs.append(_job(path, script, arguments, submission))
    return jobs


def _job(path: Path, script: Script, arguments: Sequence[str], submission: Submission) -> Job:
    _packtok.publish_bytes(path, script.text.encode("utf-8", "surrogateescape"))
    given = tuple({*script.given, *(text.partition("=")[0] for text in arguments)})
    return Job(path, (*script.arguments, *arguments), given, submission)


def submit(launch: Launch, todo: Todo, slurm: Slurm) -> Submitted:
    """Submits the jobs and writes them down, each at once, so that none is forgotten if the next is refused.

    Tasks that Slurm holds back are let go.

    Raises:
        SlurmError: If Slurm refuses one or does not answer.
    """
    record = read_record(launch.outdir)
    before = list(record.submissions if record is not None else ())
    submissions: list[Submission] = []

    def send(job: Job, arguments: Sequence[str] = ()) -> str:
        number = slurm.submit([*job.arguments, *arguments, str(job.script)], job.given)
        # A controller that lost its memory in a crash gives numbers again; the number is not the old job's.
        before[:] = [one for one in before if one.job != number]
        submissions.append(job.submission.model_copy(update={"job": number}))
        write_record(launch.outdir, Record.of(launch, (*before, *submissions)))
        return number

    for task in todo.held:
        slurm.release(task)

    numbers = [send(job) for job in todo.jobs]
    replaced: tuple[str, ...] = ()
    if todo.join is not None:
        # Not afterok: if a task fails, that job would never start and never say which shards are missing.
        behind = [*todo.behind, *numbers]
        send(todo.join, [f"--dependency=afterany:{':'.join(behind)}"] if behind else [])
        replaced = _take_back(slurm, [one.job for one in before if one.kind == "join"])
    return Submitted(todo, tuple(submissions), replaced)


def _take_back(slurm: Slurm, joins: Sequence[str]) -> tuple[str, ...]:
    """Cancels jobs that would join before the tasks of today have ended."""
    waiting = [task.job for task in slurm.queue(joins) if task.state == "PENDING"]
    for job in waiting:
        slurm.cancel(job)
    return tuple(waiting)


def lines(todo: Todo, slurm: Slurm) -> list[str]:
    """Shell commands that do what `submit` does."""
    texts = []
    for i, job in enumerate(todo.jobs):
        command = shlex.join(slurm.submit_line([*job.arguments, str(job.script)], job.given))
        texts.append(f"job{i}=$({command})" if todo.join is not None else command)
    if todo.join is not None:
        behind = ":".join([*todo.behind, *(f"${{job{i}%%;*}}" for i in range(len(todo.jobs)))])
        after = [f'--dependency="afterany:{behind}"'] if behind else []
        command = shlex.join(slurm.submit_line(todo.join.arguments, todo.join.given))
        texts.append(" ".join([command, *after, shlex.quote(str(todo.join.script))]))
    return texts


def relaunch(outdir: Path) -> Launch:
    """The launch that was recorded in a folder of shards.

    Raises:
        PacktokError: If there is none.
    """
    absolute = Path(os.path.abspath(outdir))
    record = read_record(absolute)
    if record is None:
        raise PacktokError(f"{outdir}: no run.json found; packtok run writes it when it submits jobs")
    return record.launch(absolute)

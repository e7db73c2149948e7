"""Submits missing shards: determines which ones, divides them into jobs, and adds the join."""

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
from packtok.launch.tasks import COMMANDS, is_written
from packtok.packer.staging import exists
from packtok.shard_folder import is_shard_folder, open_shard_folder, planned_shards

# Shards are large enough that starting tasks costs little, and small enough that a lost or slow task costs
# little.
SHARDS_PER_NODE = 8


@dataclass(frozen=True)
class Job:
    """A job to submit."""

    script: Path
    arguments: tuple[str, ...]
    options: tuple[str, ...]
    submission: Submission


@dataclass(frozen=True)
class Todo:
    """The remaining work of a launch."""

    jobs: tuple[Job, ...]
    """Jobs that pack; empty if all shards are finished or under way."""
    join: Job | None
    jobs_under_way: tuple[str, ...]
    """Jobs under way that the join also depends on."""
    finished: int
    under_way: tuple[int, ...]
    held: tuple[str, ...] = ()
    """Tasks submitted earlier that Slurm holds until they are released."""


@dataclass(frozen=True)
class Submitted:
    """The result of a submission."""

    todo: Todo
    submissions: tuple[Submission, ...]
    replaced: tuple[str, ...]
    """Join jobs that were cancelled because a later one replaces them."""


def num_shards(outdir: Path, settings: LaunchSettings, num_nodes: int | None = None) -> int:
    """Returns the number of shards: as set, otherwise as planned, otherwise `SHARDS_PER_NODE` per node.

    Args:
        outdir: The folder of the shards, which may contain a plan.
        settings: All settings.
        num_nodes: Number of nodes, if it is known.
    """
    if settings.slurm.shards is not None:
        return settings.slurm.shards
    return planned_shards(outdir) or SHARDS_PER_NODE * (num_nodes or settings.slurm.nodes or 1)


def check(launch: Launch) -> None:
    """Rejects a launch that would fail only at the end, or arguments that a script must not contain.

    Raises:
        ValueError: If an argument is a URL with credentials, or a path contains a backslash.
        FileExistsError: If the output exists, must not be replaced, and was not made from these shards.
    """
    redactor = Redactor()
    for argument in (*launch.arguments.words(), launch.output, str(launch.outdir)):
        if redactor(argument) != argument:
            raise ValueError(
                f"{redactor(argument)}: contains credentials, which others could read in the script; set "
                "them in the environment"
            )
    if "\\" in str(launch.outdir):
        raise ValueError(f"{launch.outdir}: contains a backslash, which Slurm interprets; use another path")
    is_new = not is_shard_folder(launch.outdir)
    if is_new and not _may_exist(launch) and exists(launch.output):
        raise FileExistsError(errno.EEXIST, OUTPUT_EXISTS, launch.output)


def _may_exist(launch: Launch) -> bool:
    return COMMANDS[launch.command].keeps_output or launch.join.existing is not None


def plan_jobs(launch: Launch, *, script: Path | None = None, slurm: Slurm | None = None) -> Todo:
    """Writes the scripts and returns the jobs to submit: one task for each missing shard.

    Args:
        launch: What to pack. The folder already contains the plan.
        script: Path of the packing script. Default: in the folder of shards.
        slurm: Used to find out which shards are under way. With ``None``, all unfinished shards count as
            missing.

    Raises:
        PacktokError: If the folder has no plan, or one with another number of shards.
        SlurmError: If Slurm does not respond.
        OSError: If a script cannot be written.
    """
    folder = open_shard_folder(launch.outdir)
    finished = folder.finished()
    tasks = _tasks_under_way(launch, slurm)
    unfinished = [(task, k) for task, shards in tasks for k in shards if k not in finished]
    # A finished shard is not under way, even if the queue lists it: a restarted controller may list tasks as
    # running long after they have ended.
    under_way = {shard for _, shard in unfinished}
    jobs_under_way = tuple(sorted({task.job for task, _ in unfinished}, key=int))
    held = tuple(task.number for task, _ in tasks if task.is_held_by_slurm)
    missing = [k for k in range(launch.num_shards) if k not in finished and k not in under_way]
    # Slurm does not create the folder for logs.
    log_folder(launch.outdir).mkdir(exist_ok=True)
    path = script or launch.outdir / f"{launch.command}.sbatch"
    jobs = _packing_jobs(launch, missing, path, slurm) if missing else []
    join = None
    is_packing = bool(jobs or jobs_under_way)
    if _needs_join_job(launch, is_packing=is_packing, is_written=is_written(folder, launch.output)):
        join = _job(launch.outdir / "join.sbatch", join_script(launch), [], Submission(job="", kind="join"))
    return Todo(tuple(jobs), join, jobs_under_way, len(finished), tuple(sorted(under_way)), held)


def _needs_join_job(launch: Launch, *, is_packing: bool, is_written: bool) -> bool:
    if launch.settings.slurm.join == "none":
        return False
    if is_packing:
        # With srun and with Ray, the packing job also joins.
        return launch.settings.engine == "slurm" and launch.settings.slurm.mode == "array"
    return not is_written or launch.join.existing == "replace"


def _tasks_under_way(launch: Launch, slurm: Slurm | None) -> list[tuple[QueuedTask, list[int]]]:
    """Returns earlier tasks that have not ended, each with the shards it packs."""
    record = read_record(launch.outdir)
    if slurm is None or record is None:
        return []
    submitted = {submission.job: submission for submission in record.submissions}
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
    options = tuple({*script.options, *(text.partition("=")[0] for text in arguments)})
    return Job(path, (*script.arguments, *arguments), options, submission)


def submit_jobs(launch: Launch, todo: Todo, slurm: Slurm) -> Submitted:
    """Submits the jobs, and records each at once, so that none is lost if Slurm rejects the next.

    Releases tasks that Slurm holds.

    Raises:
        SlurmError: If Slurm rejects a job or does not respond.
    """
    record = read_record(launch.outdir)
    before = list(record.submissions if record is not None else ())
    submissions: list[Submission] = []

    def send(job: Job, arguments: Sequence[str] = ()) -> str:
        number = slurm.submit([*job.arguments, *arguments, str(job.script)], job.options)
        # A controller that lost its state reuses job ids, so the id no longer belongs to an old job.
        before[:] = [submission for submission in before if submission.job != number]
        submissions.append(job.submission.model_copy(update={"job": number}))
        write_record(launch.outdir, Record.of(launch, (*before, *submissions)))
        return number

    for task in todo.held:
        slurm.release(task)

    numbers = [send(job) for job in todo.jobs]
    replaced: tuple[str, ...] = ()
    if todo.join is not None:
        # "afterany", not "afterok": if a task failed, the join would never start and never list the missing
        # shards.
        dependencies = [*todo.jobs_under_way, *numbers]
        send(todo.join, [f"--dependency=afterany:{':'.join(dependencies)}"] if dependencies else [])
        replaced = _take_back(slurm, [submission.job for submission in before if submission.kind == "join"])
    return Submitted(todo, tuple(submissions), replaced)


def _take_back(slurm: Slurm, joins: Sequence[str]) -> tuple[str, ...]:
    """Cancels earlier join jobs, which would start before the new tasks have ended."""
    waiting = [task.job for task in slurm.queue(joins) if task.state == "PENDING"]
    for job in waiting:
        slurm.cancel(job)
    return tuple(waiting)


def lines(todo: Todo, slurm: Slurm) -> list[str]:
    """Returns shell commands that are equivalent to `submit_jobs`."""
    texts = []
    for i, job in enumerate(todo.jobs):
        command = shlex.join(slurm.submit_line([*job.arguments, str(job.script)], job.options))
        texts.append(f"job{i}=$({command})" if todo.join is not None else command)
    if todo.join is not None:
        dependencies = ":".join([*todo.jobs_under_way, *(f"${{job{i}%%;*}}" for i in range(len(todo.jobs)))])
        after = [f'--dependency="afterany:{dependencies}"'] if dependencies else []
        command = shlex.join(slurm.submit_line(todo.join.arguments, todo.join.options))
        texts.append(" ".join([command, *after, shlex.quote(str(todo.join.script))]))
    return texts


def relaunch(outdir: Path) -> Launch:
    """Returns the launch that is recorded in a folder of shards.

    Raises:
        PacktokError: If there is no record.
    """
    absolute = Path(os.path.abspath(outdir))
    record = read_record(absolute)
    if record is None:
        raise PacktokError(f"{outdir}: no run.json found; packtok run writes it when it submits jobs")
    return record.launch(absolute)

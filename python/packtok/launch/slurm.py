"""Runs Slurm's programs, each with a timeout. Only this module calls them.

If the controller is down, the programs wait for minutes. A timeout means that the answer is unknown, and is
reported as such.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from packtok.errors import SlurmError

SUBMIT_SECONDS, ASK_SECONDS = 60.0, 10.0
# Slurm's default; the task ids of an array are below this limit.
DEFAULT_MAX_ARRAY_SIZE = 1001

WAITING_STATES = frozenset(("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"))
ENDED_STATES = frozenset(
    ("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED")
) | {"REVOKED", "TIMEOUT"}
# The reason of a task that no node started, for example because the controller restarted without its state.
HELD_REASON = "launch failed requeued held"


@dataclass(frozen=True)
class QueuedTask:
    """The queue's information about one job, or about one task of an array."""

    job: str
    array_task: int | None
    state: str
    reason: str

    @property
    def is_waiting(self) -> bool:
        """Whether the task has not started, or was requeued and has not restarted."""
        return self.state in WAITING_STATES

    @property
    def has_ended(self) -> bool:
        """Whether the task will not run any more."""
        return self.state in ENDED_STATES

    @property
    def is_held_by_slurm(self) -> bool:
        """Whether Slurm itself holds the task forever. Tasks that a user holds do not count."""
        return self.is_waiting and self.reason.replace("_", " ") == HELD_REASON

    @property
    def is_under_way(self) -> bool:
        """Whether the task runs, or will run without intervention."""
        return not self.has_ended and not self.is_held_by_slurm

    @property
    def number(self) -> str:
        """The number of the task in Slurm's programs."""
        return self.job if self.array_task is None else f"{self.job}_{self.array_task}"


class Slurm:
    """Slurm's programs, in a folder or in ``PATH``."""

    def __init__(self, bin_dir: str | None = None) -> None:
        self._bin_dir = bin_dir

    def program(self, name: str) -> str:
        """Returns the path of a program."""
        return os.path.join(self._bin_dir, name) if self._bin_dir else name

    def submit_line(self, arguments: Sequence[str], options: Iterable[str]) -> list[str]:
        """Returns the command that submits a script; ``options`` are those in the script itself.

        ``SBATCH_*`` variables would override the script's options, so the variables of ``options`` are unset.
        """
        hidden = sorted(name for name in _overriding(options) if name in os.environ)
        unset = ["env", *(part for name in hidden for part in ("-u", name))] if hidden else []
        return [*unset, self.program("sbatch"), "--parsable", *arguments]

    def submit(self, arguments: Sequence[str], options: Iterable[str]) -> str:
        """Submits a script and returns the job id.

        Raises:
            SlurmError: If Slurm rejects it or does not respond.
        """
        command = self.submit_line(arguments, options)
        try:
            done = _call(command, SUBMIT_SECONDS, _outside_of_jobs(os.environ))
        except subprocess.TimeoutExpired:
            raise SlurmError(
                f"sbatch did not answer within {SUBMIT_SECONDS:.0f} s; the job may or may not be submitted: "
                "check with squeue --me once the controller answers"
            ) from None
        match = re.match(r"(\d+)(;|$)", done.stdout.strip())
        if done.returncode != 0 or match is None:
            raise SlurmError(f"{shlex.join(command)}: {_reason(done)}")
        return match[1]

    def queue(self, jobs: Iterable[str]) -> list[QueuedTask]:
        """Returns the queue's entries for these jobs, task by task, including tasks that ended recently.

        Raises:
            SlurmError: If Slurm does not respond.
        """
        job_ids = frozenset(jobs)
        if not job_ids:
            return []
        options = ["--noheader", "--array", "--states=all", "--format=%F|%K|%T|%r"]
        done = self._ask("squeue", *options, f"--jobs={','.join(sorted(job_ids, key=int))}")
        # squeue fails if it is asked for a single unknown job, but omits unknown jobs from a list of several.
        if done.returncode != 0 and "Invalid job id" in done.stderr:
            return []
        if done.returncode != 0:
            raise SlurmError(f"squeue: {_reason(done)}")
        return [_task(line) for line in done.stdout.splitlines() if line.strip()]

    def cancel(self, job: str) -> None:
        """Cancels a job; does nothing if it has ended.

        Raises:
            SlurmError: If Slurm rejects it or does not respond.
        """
        done = self._ask("scancel", "--quiet", job)
        if done.returncode != 0 and "Invalid job id" not in done.stderr:
            raise SlurmError(f"scancel {job}: {_reason(done)}")

    def release(self, task: str) -> None:
        """Releases a task that Slurm holds; does nothing if it has ended.

        Raises:
            SlurmError: If Slurm does not respond.
        """
        self._ask("scontrol", "release", task)

    def max_array_size(self) -> int:
        """Returns the limit for task ids of an array; ids are below it."""
        try:
            done = self._ask("scontrol", "show", "config")
        except SlurmError:
            return DEFAULT_MAX_ARRAY_SIZE
        match = re.search(r"^MaxArraySize\s*=\s*(\d+)", done.stdout, re.M)
        return int(match[1]) if match else DEFAULT_MAX_ARRAY_SIZE

    def _ask(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        # SQUEUE_FORMAT and similar variables would change the output for the user's own display.
        env = {key: text for key, text in os.environ.items() if not key.startswith("SQUEUE_")}
        try:
            return _call([self.program(name), *arguments], ASK_SECONDS, env)
        except subprocess.TimeoutExpired:
            raise SlurmError(
                f"{name} did not answer within {ASK_SECONDS:.0f} s; Slurm's controller may be down"
            ) from None


def _call(command: Sequence[str], seconds: float, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise SlurmError(
            f"{command[0]}: not found; run packtok where the Slurm commands are installed, or set "
            "slurm.slurm_bin_dir"
        ) from None


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """Returns the reason that a program printed, in one line."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    lines = [re.sub(r"^\w+: (error: )?", "", line) for line in lines]
    return "; ".join(lines) or f"ended with exit code {done.returncode} without output"


def _task(line: str) -> QueuedTask:
    job, task, state, reason = line.split("|", 3)
    return QueuedTask(job, int(task) if task.isdigit() else None, state, reason)


_VARIABLE_OF = {
    "--time": "SBATCH_TIMELIMIT",
    "--array": "SBATCH_ARRAY_INX",
    "--mem": "SBATCH_MEM_PER_NODE",
    "--nodes": "SBATCH_NODES",
}


def _overriding(options: Iterable[str]) -> set[str]:
    """Returns the environment variables with which sbatch would override these options of a script."""
    names = {
        _VARIABLE_OF.get(option, f"SBATCH_{option.removeprefix('--').replace('-', '_').upper()}")
        for option in options
    }
    # Requeueing has a second variable.
    return names | ({"SBATCH_NO_REQUEUE"} if "--requeue" in options else set())


def _outside_of_jobs(env: Mapping[str, str]) -> dict[str, str]:
    """Returns ``env`` without the variables that Slurm set for an enclosing job.

    A submitted job inherits them, and would use the memory, CPUs and restart count of the enclosing job.
    """
    user_variables = ("SLURM_CONF", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT")
    return {
        name: text for name, text in env.items() if not name.startswith("SLURM_") or name in user_variables
    }

"""Slurm's programs: the only place that calls them, each time with a limit on how long it may take.

A controller that is gone makes them wait for minutes, so what they would have said is then not known, and
that is what is reported.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from packtok.errors import SlurmError

SUBMIT_SECONDS, ASK_SECONDS = 60.0, 10.0
# What Slurm has where it is not configured otherwise; ids in an array stay below it.
DEFAULT_MAX_ARRAY_SIZE = 1001

WAITING_STATES = frozenset(("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"))
ENDED_STATES = frozenset(
    ("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED")
) | {"REVOKED", "TIMEOUT"}
# What becomes of a task that a node would not start, say for one that a forgetful controller started there.
HELD_REASON = "launch failed requeued held"


@dataclass(frozen=True)
class QueuedTask:
    """What the queue says of one job, or of one task of an array."""

    job: str
    array_task: int | None
    state: str
    reason: str

    @property
    def is_waiting(self) -> bool:
        """Whether it has not begun, or not again."""
        return self.state in WAITING_STATES

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it will run any more."""
        return self.state in ENDED_STATES

    @property
    def is_held_by_slurm(self) -> bool:
        """Whether Slurm itself keeps it back, and will for ever; what a person holds is that person's."""
        return self.is_waiting and self.reason.replace("_", " ") == HELD_REASON

    @property
    def is_under_way(self) -> bool:
        """Whether it runs, or will of itself."""
        return not self.has_ended and not self.is_held_by_slurm

    @property
    def number(self) -> str:
        """The number by which Slurm's programs know it."""
        return self.job if self.array_task is None else f"{self.job}_{self.array_task}"


class Slurm:
    """Slurm's programs, in a folder or wherever ``PATH`` has them."""

    def __init__(self, bin_dir: str | None = None) -> None:
        self._bin_dir = bin_dir

    def program(self, name: str) -> str:
        """The path by which a program is called."""
        return os.path.join(self._bin_dir, name) if self._bin_dir else name

    def submit_line(self, arguments: Sequence[str], given: Iterable[str]) -> list[str]:
        """The command that submits a script; ``given`` are the options that it has itself.

        The environment's ``SBATCH_*`` would go before what a script says, so those that would are left out.
        """
        hidden = sorted(name for name in _overriding(given) if name in os.environ)
        unset = ["env", *(part for name in hidden for part in ("-u", name))] if hidden else []
        return [*unset, self.program("sbatch"), "--parsable", *arguments]

    def submit(self, arguments: Sequence[str], given: Iterable[str]) -> str:
        """Submits a script and returns the job's number.

        Raises:
            SlurmError: If Slurm refuses it or does not answer.
        """
        command = self.submit_line(arguments, given)
        try:
            done = _call(command, SUBMIT_SECONDS, _outside_of_jobs(os.environ))
        except subprocess.TimeoutExpired:
            raise SlurmError(
                f"sbatch did not answer within {SUBMIT_SECONDS:.0f} s; the job may or may not be submitted: "
                "check with squeue --me once the controller answers"
            ) from None
        found = re.match(r"(\d+)(;|$)", done.stdout.strip())
        if done.returncode != 0 or found is None:
            raise SlurmError(f"{shlex.join(command)}: {_said(done)}")
        return found[1]

    def queue(self, jobs: Iterable[str]) -> list[QueuedTask]:
        """What the queue has of these jobs, task by task, also those that ended a short while ago.

        Raises:
            SlurmError: If it cannot be asked.
        """
        wanted = frozenset(jobs)
        if not wanted:
            return []
        options = ["--noheader", "--array", "--states=all", "--format=%F|%K|%T|%r"]
        done = self._ask("squeue", *options, f"--jobs={','.join(sorted(wanted, key=int))}")
        # Of one job alone that Slurm has forgotten it says so; of several it leaves out those.
        if done.returncode != 0 and "Invalid job id" in done.stderr:
            return []
        if done.returncode != 0:
            raise SlurmError(f"squeue: {_said(done)}")
        return [_task(line) for line in done.stdout.splitlines() if line.strip()]

    def cancel(self, job: str) -> None:
        """Takes a job out of the queue; one that has ended is left alone.

        Raises:
            SlurmError: If Slurm refuses it or does not answer.
        """
        done = self._ask("scancel", "--quiet", job)
        if done.returncode != 0 and "Invalid job id" not in done.stderr:
            raise SlurmError(f"scancel {job}: {_said(done)}")

    def release(self, task: str) -> None:
        """Lets a task start that Slurm held back; one that has ended meanwhile is left alone.

        Raises:
            SlurmError: If Slurm does not answer.
        """
        self._ask("scontrol", "release", task)

    def max_array_size(self) -> int:
        """One more than the largest id that an array may have here."""
        try:
            done = self._ask("scontrol", "show", "config")
        except SlurmError:
            return DEFAULT_MAX_ARRAY_SIZE
        found = re.search(r"^MaxArraySize\s*=\s*(\d+)", done.stdout, re.M)
        return int(found[1]) if found else DEFAULT_MAX_ARRAY_SIZE

    def _ask(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        # The user's own SQUEUE_FORMAT and the like are for the user's own eyes.
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


def _said(done: subprocess.CompletedProcess[str]) -> str:
    """What a program gave as the reason, in one line."""
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
    """The variables of the environment by which sbatch would overrule these options of a script."""
    names = {
        _VARIABLE_OF.get(one, f"SBATCH_{one.removeprefix('--').replace('-', '_').upper()}") for one in options
    }
    # Requeueing and memory have a second variable, which says the contrary or something else.
    return names | ({"SBATCH_NO_REQUEUE"} if "--requeue" in options else set())


def _outside_of_jobs(env: Mapping[str, str]) -> dict[str, str]:
    """``env`` without what Slurm has set in it for the job in which this runs, if it does.

    A job inherits it, and would take the outer one's memory, CPUs and restarts for its own.
    """
    kept = ("SLURM_CONF", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT")
    return {name: text for name, text in env.items() if not name.startswith("SLURM_") or name in kept}

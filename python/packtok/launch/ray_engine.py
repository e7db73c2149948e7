"""Packs shards as tasks of a Ray cluster. Only this module uses Ray.

Documents do not go through Ray. A task starts the same command that a Slurm task would start, which
reads the corpus from the shared file system and writes its shard there. Ray chooses the node, and restarts
the task on another one if a node or a worker is lost.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from packtok.errors import PacktokError
from packtok.launch.script import Launch, log_folder
from packtok.progress import Progress
from packtok.shard_folder import ShardFolder, TaskFolder, open_shard_folder

POLL_SECONDS, CONNECT_SECONDS = 1.0, 10.0
TASK_POLL_SECONDS = 0.05
# Time that tasks get to stop.
STOP_SECONDS = 30.0
MAX_CHARS = 300


def is_at_hand() -> bool:
    """Returns whether the environment names a Ray cluster."""
    return bool(os.environ.get("RAY_ADDRESS"))


@contextlib.contextmanager
def connected() -> Iterator[Any]:
    """Connects to the cluster in ``RAY_ADDRESS`` (``local`` starts one here) and yields the module ``ray``.

    Raises:
        PacktokError: If Ray is not installed, or the cluster does not respond.
    """
    ray = _ray()
    address = os.environ.get("RAY_ADDRESS", "")
    try:
        _check_address(address)
        ray.init(address=address, log_to_driver=False, logging_level="error", include_dashboard=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise PacktokError(
            f"RAY_ADDRESS is {address}: no Ray cluster answers there: {_one_line(error)}"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Fails at once if nothing listens at the address; Ray itself would retry for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "/" not in address:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()


def _ray() -> Any:
    # Set before Ray is imported, because Ray would otherwise contact the network.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A later version of Ray makes this the default; until then, Ray warns at every start.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise PacktokError("the ray engine needs Ray; run pip install 'packtok[ray]'") from None
    return ray


def num_nodes(ray: Any) -> int:
    """Returns the number of live nodes in the cluster."""
    return sum(bool(node["Alive"]) for node in ray.nodes())


def pack_shards(
    ray: Any, launch: Launch, shards: Sequence[int], on_progress: Progress | None = None
) -> dict[int, str]:
    """Packs the given shards; returns those that failed, each with the reason.

    Args:
        ray: The connected module.
        launch: What to pack. The folder already contains the plan.
        shards: Their numbers.
        on_progress: Called every second with the counts of the finished shards.

    Raises:
        PacktokError: If no node of the cluster has enough CPUs for one task.
    """
    settings = launch.settings
    _check_size(ray, settings.slurm.cpus_per_task)
    log_folder(launch.outdir).mkdir(exist_ok=True)
    task = ray.remote(
        num_cpus=settings.slurm.cpus_per_task,
        # Retries are for lost nodes and workers: an error of packtok itself would only repeat.
        max_retries=settings.slurm.max_restarts,
        retry_exceptions=False,
        scheduling_strategy="SPREAD",
    )(run_command)
    folder = open_shard_folder(launch.outdir)
    waiting = deque(shards)
    running: dict[Any, int] = {}
    failures: dict[int, str] = {}
    try:
        while waiting or running:
            while waiting and len(running) < (settings.ray.num_workers or len(shards)):
                shard = waiting.popleft()
                cpus = str(settings.slurm.cpus_per_task)
                command = launch.task_command(str(launch.outdir), str(shard), cpus)
                running[task.remote(command, launch.working_folder, str(log_of(launch.outdir, shard)))] = (
                    shard
                )
            ended, _ = ray.wait(list(running), timeout=POLL_SECONDS)
            for finished_task in ended:
                shard = running.pop(finished_task)
                if (failure := _failure(ray, finished_task)) is not None:
                    failures[shard] = failure
            if on_progress is not None:
                on_progress(_counts(folder))
    except BaseException:
        _stop(ray, list(running))
        raise
    return failures


def log_of(outdir: Path, shard: int) -> Path:
    """Returns the log of the task that packs a shard."""
    return log_folder(outdir) / f"ray_{shard}.out"


def run_command(command: Sequence[str], folder: str, log: str) -> str | None:
    """Runs packtok with these arguments in ``folder``; returns why it failed, or ``None``. Runs on a node."""
    with open(log, "ab") as file:
        start = file.tell()
        # Ray's workers block SIGINT, and child processes inherit the signal mask.
        held_back = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "packtok", *command],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held_back)
        try:
            # The loop polls, because Ray cancels a task with an exception, which would not interrupt a
            # blocking wait.
            while (code := process.poll()) is None:
                time.sleep(TASK_POLL_SECONDS)
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
    if code == 0:
        return None
    with open(log, "rb") as file:
        file.seek(start)
        lines = file.read().decode("utf-8", "backslashreplace").splitlines()
    texts = [line.strip() for line in lines if line.strip()]
    if code < 0:
        return f"packtok was killed by signal {-code}"
    if not texts:
        return f"packtok ended with exit code {code} without output"
    return texts[-1].removeprefix("packtok: ")


def _check_size(ray: Any, cpus_per_task: int) -> None:
    largest = max((int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]), default=0)
    if largest < cpus_per_task:
        raise PacktokError(
            f"slurm.cpus_per_task is {cpus_per_task}, but the largest node of the Ray cluster has {largest} "
            f"CPUs, so no task could start; give --cpus-per-task {max(largest, 1)} "
            f"(slurm.cpus_per_task: {max(largest, 1)})"
        )


def _failure(ray: Any, task: Any) -> str | None:
    try:
        failure: str | None = ray.get(task)
    except ray.exceptions.RayError as error:
        return _one_line(error)
    return failure


def _stop(ray: Any, tasks: list[Any]) -> None:
    """Asks tasks to stop, which saves their progress, and waits for up to `STOP_SECONDS`."""
    for task in tasks:
        with contextlib.suppress(Exception):
            ray.cancel(task)
    if tasks:
        with contextlib.suppress(Exception):
            ray.wait(tasks, num_returns=len(tasks), timeout=STOP_SECONDS)


def _counts(folder: ShardFolder | TaskFolder) -> dict[str, int]:
    finished = folder.finished().values()
    return {
        "bytes_read": sum(shard.source_bytes for shard in finished),
        "total_bytes": folder.plan.total_bytes,
        folder.unit: sum(shard.documents for shard in finished),
        "tokens": sum(shard.tokens for shard in finished),
    }


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # The cause is at the end of Ray's own message.
    text = lines[-1] if lines else type(error).__name__
    return text[:MAX_CHARS]

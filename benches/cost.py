"""Runs commands on given cores and measures CPU time, wall time and memory of all their processes.

`bars.py` and `peers/compare.py` decide what to run and what the figures mean.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.1


@dataclass(frozen=True)
class Cost:
    """The cost of one run, including its children; `output` is its standard output."""

    cpu_seconds: float
    user_seconds: float
    wall_seconds: float
    largest_rss_bytes: int
    tree_pss_bytes: int
    output: str


def run(command: Sequence[str | Path], cores: str | None = None, *, sample_memory: bool = False) -> Cost:
    """Runs a command to its end, on ``cores`` (in the format of `taskset`) or on all cores.

    CPU time is user and system time of all its processes; user time is also returned separately.
    `largest_rss_bytes` is the peak of the largest process, as reported by the kernel. `tree_pss_bytes` is the
    peak of the sum over all processes, with shared pages counted once, sampled ten times a second if
    `sample_memory` is set, and 0 otherwise.

    Raises:
        RuntimeError: If the command fails; contains the end of its standard error.
    """
    pinned = [] if cores is None else ["taskset", "-c", cores]
    arguments = [*pinned, *map(str, command)]
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        started = time.perf_counter()
        process = subprocess.Popen(arguments, stdout=stdout, stderr=stderr)
        done = threading.Event()
        peak = [0]
        sampler = threading.Thread(target=_sample, args=(process.pid, done, peak))
        if sample_memory:
            sampler.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall_seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        done.set()
        if sample_memory:
            sampler.join()
        stdout.seek(0)
        stderr.seek(0)
        if process.returncode != 0:
            end = stderr.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"{' '.join(arguments)}: exit code {process.returncode}\n{end}")
        output = stdout.read().decode()
    return Cost(
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        user_seconds=usage.ru_utime,
        wall_seconds=wall_seconds,
        largest_rss_bytes=usage.ru_maxrss * 1024,
        tree_pss_bytes=peak[0],
        output=output,
    )


def run_side_by_side(commands: Sequence[tuple[Sequence[str | Path], str]]) -> float:
    """Runs all commands at once, each on its cores; returns the seconds until the last one ended."""
    failures: list[Exception] = []

    def run_on(command: Sequence[str | Path], cores: str) -> None:
        try:
            run(command, cores)
        except (OSError, RuntimeError) as error:
            failures.append(error)

    threads = [threading.Thread(target=run_on, args=pair) for pair in commands]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return time.perf_counter() - started


def spread(values: Iterable[float], form: str = ".2f") -> str:
    """Formats the median and the range of some values."""
    ordered = sorted(values)
    median = statistics.median(ordered)
    return f"{median:{form}} ({ordered[0]:{form}} to {ordered[-1]:{form}})"


def machine() -> str:
    """Returns processor, number of usable cores, kernel and load, in one line."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.split(": ")[1] for line in lines if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    system = f"Linux {os.uname().release}, Python {sys.version.split()[0]}"
    return f"{models[0] if models else 'unknown processor'}, {cores} cores, {system}, load {load:.1f}"


def _sample(pid: int, done: threading.Event, peak: list[int]) -> None:
    while not done.wait(SAMPLE_SECONDS):
        peak[0] = max(peak[0], sum(map(_pss_bytes, _tree(pid))))


def _tree(pid: int) -> list[int]:
    """Returns a process and all of its descendants."""
    pids = [pid]
    for parent in pids:
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                pids.extend(map(int, (task / "children").read_text().split()))
        except OSError:
            continue
    return pids


def _pss_bytes(pid: int) -> int:
    """Returns the process's proportional share of memory; 0 if it has exited."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))

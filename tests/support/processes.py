"""Packtok as a separate process that is signalled, limited or measured, and corpora for that."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

MAIN = "from packtok.cli import main; main()"
PROGRAM = [sys.executable, "-c", MAIN]
# Filters that return `.text` but take about a tenth of a millisecond, or a millisecond, so that a test finds
# a process at work although the corpus is small.
SLOW_FIELD = "(reduce range(400) as $i (0; . + $i)) as $sum | .text"
SLOWER_FIELD = "(reduce range(4000) as $i (0; . + $i)) as $sum | .text"
_ALPHABET = "abcdefghijklmnopqrstuvwxyzäöüßéñΩ数"
_BLOCK_BYTES = 1 << 20
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Ended:
    """The result of a process."""

    code: int
    out: str
    err: str
    peak_bytes: int
    seconds: float


def start(
    *arguments: object, cwd: Path, within: tuple[str, ...] = (), env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Starts ``packtok`` with these arguments, within the command ``within`` if it is given."""
    return subprocess.Popen(
        [*within, *PROGRAM, *map(str, arguments)],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


# The system's usage of a child includes its parent's memory at the fork; this does not.
_MEASURED = """
from packtok.cli import main
try:
    main()
finally:
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    open(PEAK, "w").write(status["VmHWM"].split()[0])
"""


def measure(*arguments: object, cwd: Path) -> Ended:
    """Runs ``packtok`` to its end and measures the peak memory of this one process."""
    with tempfile.TemporaryDirectory() as folder:
        peak = Path(folder) / "peak_kib"
        program = _MEASURED.replace("PEAK", repr(str(peak)))
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", program, *map(str, arguments)],
            cwd=cwd,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        seconds = time.monotonic() - started
        peak_bytes = int(peak.read_text()) * 1024
    return Ended(done.returncode, done.stdout, done.stderr, peak_bytes, seconds)


def unfinished(folder: Path) -> list[Path]:
    """Returns the files in ``folder`` that belong to unfinished outputs."""
    return sorted(path for path in folder.iterdir() if path.name.endswith((".tmp", ".partial")))


def is_packing(pid: int, folder: Path) -> bool:
    """Returns whether a process has started an output in ``folder``."""
    for path in folder.glob("*.partial/owner"):
        try:
            if json.loads(path.read_bytes())["pid"] == pid and (path.parent / "data").exists():
                return True
        except (OSError, ValueError):
            pass  # the process is ending or starting
    return False


def wait_until_packing(process: subprocess.Popen[str], folder: Path) -> bool:
    """Waits until a process has started an output in ``folder``; false if it ended without doing so."""
    while not is_packing(process.pid, folder):
        if process.poll() is not None:
            return False
        time.sleep(0.001)
    return True


def processes_of_shard(outdir: Path, shard: int) -> list[int]:
    """Returns the processes that run ``packtok pack`` or ``tokenize`` for a shard in this folder."""
    number = f"--shard={shard}".encode()
    folders = {f"--output={outdir}".encode(), f"--outdir={outdir}".encode()}
    pids = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            arguments = set(Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0"))
            if number in arguments and folders & arguments:
                pids.append(int(name))
    return pids


def children(pid: int) -> list[int]:
    """Returns the children of a process; none if it has ended."""
    threads, pids = [], []
    with contextlib.suppress(OSError):
        threads = os.listdir(f"/proc/{pid}/task")
    for thread in threads:
        # A thread may end while those before it are read.
        with contextlib.suppress(OSError):
            pids += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return pids


def write_datasets(folder: Path, num_bytes: int) -> list[str]:
    """Writes two described datasets with different content fields and returns them, by absolute path."""
    from packtok.commands.data import create_metadata

    datasets = []
    for name, field in (("Lines", "text"), ("Bodies", "body")):
        path = folder / name
        path.mkdir(parents=True)
        corpus = write_corpus(path / "a.jsonl", num_bytes // 2)
        corpus.write_bytes(corpus.read_bytes().replace(b'{"text"', f'{{"{field}"'.encode()))
        answers = {"output": str(path / "metadata.json"), "dataset_path": str(path)}
        create_metadata({**answers, "name": name, "content_field": field})
        datasets.append(str(path))
    return datasets


def dataset_files(folder: Path) -> dict[str, bytes]:
    """Returns the files of a tokenized dataset, without those of a run and the times in its markers."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() and path.name != "run.json" and not path.name.endswith((".sbatch", ".done.json"))
    }


def is_sent(pid: int, number: signal.Signals) -> bool:
    """Returns whether a stopped process was sent a signal; true for one that has already exited."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return True
    fields = dict(line.split(":", 1) for line in lines)
    return bool((int(fields["SigPnd"], 16) | int(fields["ShdPnd"], 16)) >> (number - 1) & 1)


def wait_for(
    condition: Callable[[], bool],
    what: str,
    *,
    seconds: float,
    poll_seconds: float = POLL_SECONDS,
    describe: Callable[[], str] = lambda: "",
) -> None:
    """Polls until ``condition`` holds; raises an error with ``what`` if it does not hold in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"after {seconds:g} s it is not so that {what}; {describe()}")
        time.sleep(poll_seconds)


def texts(seed: int) -> Iterator[str]:
    """Yields texts of a few to a few hundred invented words; equal for equal seeds."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(_ALPHABET, k=rng.randint(1, 9))) for _ in range(4000)]
    while True:
        yield " ".join(rng.choices(words, k=rng.randint(3, 300)))


def write_corpus(path: Path, num_bytes: int, *, bad_every: int | None = None, seed: int = 1) -> Path:
    """Writes complete lines until the file has ``num_bytes``; every ``bad_every``-th is not a document."""
    lines, block_bytes = [], 0
    for i, text in enumerate(texts(seed), 1):
        is_bad = bad_every is not None and i % bad_every == 0
        line = b'{"text": 5}\n' if is_bad else json.dumps({"text": text}, ensure_ascii=False).encode() + b"\n"
        lines.append(line)
        block_bytes += len(line)
        if block_bytes >= min(num_bytes, _BLOCK_BYTES):
            break
    block = b"".join(lines)
    with path.open("wb") as file:
        for _ in range(-(-num_bytes // len(block))):
            file.write(block)
    return path


def write_one_line(path: Path, num_bytes: int) -> Path:
    """Writes one line with one document of about ``num_bytes`` bytes, which contains escapes, as most do."""
    source = texts(seed=7)
    block = "\\n".join(next(source) for _ in range(1000)).encode()
    with path.open("wb") as file:
        file.write(b'{"text": "')
        for _ in range(-(-num_bytes // len(block))):
            file.write(block)
        file.write(b'"}\n')
    return path


def names(folder: Path) -> list[str]:
    """Returns the sorted names in ``folder``."""
    return sorted(path.name for path in folder.iterdir())


def in_a_mount_namespace(*command: object, cwd: Path) -> str:
    """Returns the output of a command that may mount; skips if the system does not allow it."""
    within = ["unshare", "--user", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*within, "true"], check=False).returncode != 0:
        within = ["unshare", "--mount"]
        if os.geteuid() != 0 or subprocess.run([*within, "true"], check=False).returncode != 0:
            pytest.skip("needs the right to mount a small tmpfs (unshare --user --mount), not there")
    done = subprocess.run([*within, *map(str, command)], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_for_spans(process: subprocess.Popen[str], folder: Path, count: int) -> None:
    """Waits until a run has recorded its progress this many times, or has ended."""
    journal = folder / "o.pbin.partial" / "journal"
    if not wait_until_packing(process, folder):
        return
    num_lines = 0
    # The first line describes the run.
    while process.poll() is None and num_lines <= count:
        time.sleep(0.001)
        # The run removes the journal when it ends.
        with contextlib.suppress(FileNotFoundError):
            num_lines = journal.read_bytes().count(b"\n")

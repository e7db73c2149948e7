"""Measures planning the shards of a million files, and a task that packs one of the shards by the plan.

The files are sparse, so they need inodes (a million, in a thousand folders) but hardly any space. Planning
stats every file, so much of the cost is that of the file system, whose cache contains the new files.
"""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from cost import machine, run, spread

NUM_FOLDERS, FILES_PER_FOLDER = 1000, 1000
BAR_SECONDS, BAR_BYTES = 5.0, 500e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--work", type=Path, help="folder to write in; a temporary one")
    arguments = parser.parse_args()
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        sys.exit(0 if measure(Path(folder), arguments.repetitions) else 1)


def measure(work: Path, repetitions: int) -> bool:
    """Prints the figures and returns whether the bar is met."""
    write_files(work / "corpus")
    seconds, cpu_seconds, peaks, task_seconds = [], [], [], []
    for i in range(repetitions):
        folder = work / f"out{i}"
        planned = run([*packtok("plan", work / "corpus", folder), "--shards", "100000"])
        seconds.append(planned.wall_seconds)
        cpu_seconds.append(planned.cpu_seconds)
        peaks.append(planned.largest_rss_bytes / 1e6)
        task = run([*packtok("pack", work / "corpus", folder), "--shard", "50000"])
        task_seconds.append(task.wall_seconds)
    holds = statistics.median(seconds) <= BAR_SECONDS and statistics.median(peaks) * 1e6 <= BAR_BYTES
    num_files, verdict = NUM_FOLDERS * FILES_PER_FOLDER, "ok" if holds else "MISSED"
    measured = f"{spread(seconds)} s ({spread(cpu_seconds)} s CPU), {spread(peaks, '.0f')} MB"
    bar = f"<= {BAR_SECONDS:.0f} s, <= {BAR_BYTES / 1e6:.0f} MB"
    print(f"{verdict:6} planning {num_files:,} files: {measured}; bar: {bar}")
    print(f"       a task of ten files by that plan, from start to end: {spread(task_seconds)} s")
    return holds


def packtok(command: str, corpus: Path, folder: Path) -> list[str | Path]:
    program = Path(sys.executable).with_name("packtok")
    return [program, command, "-q", "-i", corpus, "-o", folder, "-t", "gpt2", "--on-bad-document", "skip"]


def write_files(corpus: Path) -> None:
    """Writes a tree of sparse files of some hundred zero bytes each."""
    for i in range(NUM_FOLDERS):
        folder = corpus / f"subset{i % 10}" / f"chunk{i}"
        folder.mkdir(parents=True)
        for j in range(FILES_PER_FOLDER):
            file = os.open(folder / f"part{j}.jsonl", os.O_CREAT | os.O_WRONLY)
            os.ftruncate(file, 100 + j)
            os.close(file)


if __name__ == "__main__":
    main()

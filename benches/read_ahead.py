"""Measures how long a shuffled loop waits for batches of an uncached file, with and without read-ahead.

    python benches/read_ahead.py [--work FOLDER] [--tokens N] [--step-milliseconds M]

Run by a Python that has packtok and torch. The file contains random tokens and is in a temporary folder,
which should be on the disk to be measured. Its pages are dropped from the page cache before each run. The
runs take turns; each row is one run. A step of the loop sleeps for the time of a model's computation.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import packtok

CONTEXT_LENGTH = 2048
NUM_ROWS = 64
NUM_STEPS = 200
WAYS = {"as it comes": (0, "normal"), "advised": (0, "random"), "4 batches ahead": (4, "normal")}


def main() -> None:
    arguments = parse()
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        path = Path(folder) / "random.pbin"
        write_random(path, arguments.tokens)
        for turn in range(arguments.turns):
            for way, (read_ahead, advice) in WAYS.items():
                drop_pages(path)
                waits = sorted(run(path, read_ahead, advice, turn, arguments.step_milliseconds / 1000))
                mean, median, late = (
                    statistics.mean(waits),
                    statistics.median(waits),
                    waits[-len(waits) // 20],
                )
                print(
                    f"{way:16} mean {mean:6.2f} ms, median {median:6.2f} ms, slowest 5 % from {late:6.2f} ms"
                )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder to write in; a temporary one")
    parser.add_argument("--tokens", type=int, default=500_000_000)
    parser.add_argument("--step-milliseconds", type=float, default=10)
    parser.add_argument("--turns", type=int, default=3)
    return parser.parse_args()


def write_random(path: Path, num_tokens: int) -> None:
    """Packs one document of random tokens, piece by piece."""
    random = np.random.default_rng(1)
    with path.open("wb") as file:
        file.write((2 * num_tokens).to_bytes(8, "little") + (2).to_bytes(4, "little"))
        for start in range(0, num_tokens, 1 << 24):
            num = min(1 << 24, num_tokens - start)
            file.write(random.integers(0, 50_000, num, dtype=np.uint16).tobytes())
        # A pickled list of one pair: offset 0, and the length as eight bytes.
        file.write(b"\x80\x04]K\x00\x8a\x08" + (2 * num_tokens).to_bytes(8, "little") + b"\x86a.")


def drop_pages(path: Path) -> None:
    """Drops the file's pages from the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(path: Path, read_ahead: int, advice: str, seed: int, step_seconds: float) -> list[float]:
    """Returns the milliseconds that each of the first steps waited for its batch."""
    dataset = packtok.TokenDataset(path, CONTEXT_LENGTH)
    dataset.advise(advice)
    batches = iter(packtok.DataLoader(dataset, NUM_ROWS, shuffle=True, seed=seed, read_ahead=read_ahead))
    waits = []
    for _ in range(NUM_STEPS):
        started = time.perf_counter()
        next(batches)
        waits.append(1000 * (time.perf_counter() - started))
        time.sleep(step_seconds)
    return waits


if __name__ == "__main__":
    main()

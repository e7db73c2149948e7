"""Measures how soon packtok answers: Ctrl-C while it packs, and a page of a document of 500 MB.

    python benches/answers.py [--repetitions 5] [--work FOLDER]

Run by a Python that has packtok, on an idle machine. Prints the median and the range of each; exit code 1 if
a median is above its bar.
"""

import argparse
import json
import pickle
import random
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from cost import machine

PROGRAM = [sys.executable, "-m", "packtok"]
CORPUS_BYTES, DOCUMENT_BYTES, PAGED_BYTES = 400_000_000, 100_000_000, 500_000_000
INTERRUPT_SECONDS, PAGE_SECONDS = 1.0, 0.1


def main() -> int:
    """Runs all measurements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--work", type=Path, help="folder to write in; a temporary one")
    arguments = parser.parse_args()
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory(dir=arguments.work) as name:
        folder = Path(name)
        many = write_lines(folder / "many.jsonl", CORPUS_BYTES, 2_000)
        single = write_lines(folder / "one.jsonl", DOCUMENT_BYTES, DOCUMENT_BYTES)
        cases: list[tuple[str, float, Callable[[], float]]] = [
            ("Ctrl-C while packing many documents", INTERRUPT_SECONDS, lambda: interrupt_seconds(many)),
            ("Ctrl-C inside a document of 100 MB", INTERRUPT_SECONDS, lambda: interrupt_seconds(single)),
        ]
        met = [measure(*case, arguments.repetitions) for case in cases]
        with Explored(folder) as explored:
            case = ("a page of a document of 500 MB", PAGE_SECONDS, explored.page_seconds)
            met.append(measure(*case, arguments.repetitions))
    return 0 if all(met) else 1


def measure(what: str, bar: float, seconds: Callable[[], float], repetitions: int) -> bool:
    """Prints the times of a case, and returns whether the median meets the bar."""
    times = sorted(seconds() for _ in range(repetitions))
    median = statistics.median(times)
    verdict = "ok" if median <= bar else "MISSED"
    print(f"{verdict:6} {what}: {median:.3f} s [{times[0]:.3f}, {times[-1]:.3f}]; bar: {bar} s", flush=True)
    return median <= bar


def write_lines(path: Path, num_bytes: int, text_bytes: int) -> Path:
    """Writes documents of ``text_bytes`` of words until the file has ``num_bytes``."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(1, 9))) for _ in range(4_000)]
    text = " ".join(rng.choices(words, k=2_000))
    line = json.dumps({"text": (text * (text_bytes // len(text) + 1))[:text_bytes]}) + "\n"
    with path.open("w") as file:
        for _ in range(-(-num_bytes // len(line))):
            file.write(line)
    return path


def interrupt_seconds(corpus: Path) -> float:
    """Returns the seconds from the signal to the end of a run that has packed for a moment."""
    output = corpus.with_suffix(".pbin")
    command = [*PROGRAM, "pack", "-i", corpus, "-o", output, "-t", "gpt2", "--restart", "--quiet"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while not Path(f"{output}.partial", "data").exists():
        if process.poll() is not None:
            raise RuntimeError("the run has ended")
        time.sleep(0.001)
    time.sleep(0.3)
    started = time.perf_counter()
    process.send_signal(signal.SIGINT)
    if process.wait() != 130:
        raise RuntimeError(f"exit code {process.returncode}; the corpus is too small for this machine")
    return time.perf_counter() - started


class Explored:
    """`packtok explore` with a file of one document, whose tokens are a hole in a sparse file: zeros that
    take no space.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "long.pbin"
        with path.open("wb") as file:
            file.write(struct.pack("<QI", PAGED_BYTES, 2))
            file.truncate(12 + PAGED_BYTES)
            file.seek(0, 2)
            file.write(pickle.dumps([(0, PAGED_BYTES)]))
        command = [*PROGRAM, "explore", path, "-t", "gpt2", "--port", "0", "--json"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._rng = random.Random(2)

    def __enter__(self) -> "Explored":
        assert self._process.stdout is not None
        self._url: str = json.loads(self._process.stdout.readline())["url"].rstrip("/")
        self.page_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def page_seconds(self) -> float:
        """Returns the seconds of a request for a page at a random place."""
        start = self._rng.randrange(PAGED_BYTES // 2 - 1_000)
        started = time.perf_counter()
        with urllib.request.urlopen(f"{self._url}/documents/long.pbin?from={start}") as answer:
            answer.read()
        return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())

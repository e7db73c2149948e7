"""Measures a stream: first batch, memory, states, resuming, threads and lanes; prints a line for each.

    python benches/stream.py CORPUS.jsonl TOKENIZER.json [--large-bytes 2000000000] [--url s3://BUCKET/NAME]

Run by a Python that has packtok, on a machine with two idle cores. The pipeline is that of the tutorial: rows
of 1,024 tokens, a shuffle buffer of 1,000, batches of 8. The corpus is repeated to the large size; with --url
it is also uploaded, and states are measured there.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

import packtok
from packtok._packtok import upload
from packtok.stream import CheckpointableDataset, merge_states

ROWS, BUFFER, BATCH = 1024, 1000, 8
BATCHES = 20_000
# Batches that are skipped before a measurement: after them, threads have started and caches are warm.
WARM_UP = 2000
TURNS = 5
LANES = 8


def pipeline(corpus: Path | str, tokenizer: packtok.Tokenizer) -> CheckpointableDataset:
    """Returns the tutorial's pipeline, up to the shuffle buffer."""
    files = CheckpointableDataset.from_files(corpus, repeat=True)
    return files.tokenize(tokenizer).concat_chunk(ROWS).shuffle(BUFFER)


def rss_bytes() -> int:
    """Returns the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def cpu_seconds(work: Callable[[], object]) -> float:
    """Returns the CPU seconds of a call, of all threads."""
    started = time.process_time()
    work()
    return time.process_time() - started


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """Runs on these cores only; threads that start meanwhile, too."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def batches_per_second(dataset: CheckpointableDataset, *, with_states: bool = False) -> float:
    """Returns the rate of batches after a warm-up; with a state after every batch if requested."""
    with dataset.iter() as iterator:
        iterator.skip(WARM_UP)
        started = time.perf_counter()
        for _ in range(BATCHES):
            next(iterator)
            if with_states:
                iterator.state_dict()
        return BATCHES / (time.perf_counter() - started)


def first_batch(corpus: Path, file: Path) -> None:
    """Prints the time to the first batch in a new process, and its memory above the imports."""
    before = rss_bytes()
    started = time.perf_counter()
    tokenizer = packtok.Tokenizer.from_file(file)
    iterator = pipeline(corpus, tokenizer).batch(BATCH).iter()
    next(iterator)
    seconds = time.perf_counter() - started
    for _ in range(2000):
        next(iterator)
    print(f"first batch {seconds:.3f} s; memory above the imports {(rss_bytes() - before) / 1e6:.0f} MB")


def states(corpus: Path | str, num_bytes: int, tokenizer: packtok.Tokenizer) -> None:
    """Prints the cost and size of states, and the time to resume from them to the first batch."""
    dataset = pipeline(corpus, tokenizer).batch(BATCH)
    iterator, done = dataset.iter(), 1
    for percent in (1, 90):
        # About four bytes of text per token.
        target = int(percent / 100 * num_bytes / (4 * ROWS * BATCH))
        iterator.skip(target - done)
        done = target
        times = []
        for _ in range(100):
            started = time.perf_counter()
            state = iterator.state_dict()
            times.append(time.perf_counter() - started)
        expected = next(iterator)["input_ids"]
        started = time.perf_counter()
        resumed = dataset.iter(json.loads(json.dumps(state)))
        batch = next(resumed)["input_ids"]
        seconds = time.perf_counter() - started
        assert torch.equal(batch, expected)
        print(
            f"at {percent} %: state {statistics.median(times) * 1e3:.4f} ms, at most {max(times) * 1e3:.3f}, "
            f"{len(json.dumps(state)):,} bytes, "
            f"resumed in {seconds:.3f} s"
        )


def rates(corpus: Path, tokenizer: packtok.Tokenizer) -> None:
    """Prints the speed-up of two cores, and the cost of a state after every batch."""
    dataset = pipeline(corpus, tokenizer).batch(BATCH)
    rates: dict[str, list[float]] = {"one": [], "two": [], "states": []}
    for _ in range(TURNS):
        with on_cores({0}):
            rates["one"].append(batches_per_second(dataset))
            rates["states"].append(batches_per_second(dataset, with_states=True))
        rates["two"].append(batches_per_second(dataset))
    one_core, two_cores, with_states = (statistics.median(rates[name]) for name in ("one", "two", "states"))
    print(f"two cores {two_cores / one_core:.2f} x one core ({one_core:.0f} batches/s)")
    print(f"a state after every batch costs {(1 - with_states / one_core) * 100:.1f} %")


def waits(corpus: Path, tokenizer: packtok.Tokenizer) -> None:
    """Prints how long a consumer that takes batches at half the rate waits."""
    dataset = pipeline(corpus, tokenizer).batch(BATCH)
    interval = 2 / batches_per_second(dataset)
    seconds = []
    with dataset.iter() as iterator:
        iterator.skip(WARM_UP)
        due = time.perf_counter()
        for _ in range(BATCHES // 4):
            due += interval
            while time.perf_counter() < due:
                time.sleep(max(0, due - time.perf_counter()))
            started = time.perf_counter()
            next(iterator)
            seconds.append(time.perf_counter() - started)
    percentile = statistics.quantiles(seconds, n=100)[98]
    print(
        f"a consumer at half the rate, a batch in {interval * 1e3:.2f} ms, waits {percentile * 1e3:.2f} ms "
        f"at the 99th percentile, {statistics.median(seconds) * 1e3:.3f} ms in the middle"
    )


def lanes(corpus: Path, tokenizer: packtok.Tokenizer) -> None:
    """Prints the CPU time of 8 ranks on 8 lanes against one rank, for the same global batches."""
    rows = pipeline(corpus, tokenizer)

    def run(num_ranks: int) -> float:
        ranks = [
            rows.distribute(LANES, rank, num_ranks).batch(global_batch_size=LANES * BATCH).iter()
            for rank in range(num_ranks)
        ]

        def serve(count: int) -> None:
            for _ in range(count // LANES):
                for rank in ranks:
                    next(rank)

        # Every rank has caches of its own, and filling them belongs to its start-up.
        serve(LANES * WARM_UP)
        seconds = cpu_seconds(lambda: serve(BATCHES))
        merge_states(rank.state_dict() for rank in ranks)
        for rank in ranks:
            rank.close()
        return seconds

    ratios = []
    for _ in range(TURNS):
        alone = run(1)
        ratios.append(run(LANES) / alone)
    print(f"{LANES} ranks on {LANES} lanes take {statistics.median(ratios):.2f} x the CPU time of one rank")


def main() -> None:
    """Runs all measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("--large-bytes", type=int, default=2_000_000_000)
    parser.add_argument("--url", help="an object to write and to read")
    parser.add_argument("--first-batch", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.first_batch:
        first_batch(arguments.corpus, arguments.tokenizer)
        return
    again = [sys.executable, __file__, str(arguments.corpus), str(arguments.tokenizer), "--first-batch"]
    for _ in range(3):
        subprocess.run(again, check=True)
    tokenizer = packtok.Tokenizer.from_file(arguments.tokenizer)
    rates(arguments.corpus, tokenizer)
    waits(arguments.corpus, tokenizer)
    lanes(arguments.corpus, tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.jsonl"
        content = arguments.corpus.read_bytes()
        with large.open("wb") as file:
            for _ in range(-(-arguments.large_bytes // len(content))):
                file.write(content)
        size = large.stat().st_size
        states(large, size, tokenizer)
        if arguments.url:
            upload(large, arguments.url, replace=True)
            states(arguments.url, size, tokenizer)


if __name__ == "__main__":
    main()

"""Measures packtok against its own performance bars and prints a table; exit code 1 if a bar is missed.

    python benches/bars.py [--only pack threads memory open shards peers] [--modalities-python ENV/bin/python]

Run by a Python that has packtok, on a machine with two idle cores. Every corpus is repeated to at least a
gigabyte. Startup time, measured by packing ten lines, is always subtracted. Commands that are compared take
turns, and medians count. Files are in a temporary folder; ``--work`` with a folder in memory excludes the
disk.
"""

import argparse
import itertools
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cost import machine, run, run_side_by_side, spread
from programs import Command, compiled, packtok_pack

CORPORA = ["prose", "code", "multi"]
GIGABYTE = 1_000_000_000
PAIR_BYTES = 200_000_000
TINY_LINES = 10
TOKENIZER = "gpt2"
NUM_OPEN_DOCUMENTS = 5_000_000
NUM_SHARDS = 64


@dataclass(frozen=True)
class Bar:
    """One measurement, its required value, and whether it is met."""

    what: str
    measured: str
    bar: str
    holds: bool


def exit_code(bars: Sequence[Bar]) -> int:
    """Prints all bars; returns 1 if one is missed, else 0."""
    print()
    for bar in bars:
        print(f"{'ok' if bar.holds else 'MISSED':6} {bar.what}: {bar.measured}; bar: {bar.bar}")
    return 0 if all(bar.holds for bar in bars) else 1


@dataclass(frozen=True)
class Bench:
    """State shared by all measurements."""

    work: Path
    repetitions: int
    modalities_python: Path | None

    def corpus(self, name: str, min_bytes: int) -> tuple[Path, dict[str, int]]:
        """Returns the corpus of that name and length, and its counts; created on first use."""
        path = self.work / f"{name}-{min_bytes}.jsonl"
        counts_path = path.with_suffix(".json")
        if not counts_path.exists():
            counts_path.write_text(run(compiled("write_corpus", name, path, str(min_bytes))).output)
        counts: dict[str, int] = json.loads(counts_path.read_text())
        return path, counts

    def tiny(self, name: str) -> Path:
        """Returns the first lines of a corpus, to measure startup time."""
        path = self.work / f"{name}-tiny.jsonl"
        with self.corpus(name, 0)[0].open("rb") as lines:
            path.write_bytes(b"".join(itertools.islice(lines, TINY_LINES)))
        return path

    def drop(self, *corpora: Path) -> None:
        """Removes corpora to free space; they are created again when needed."""
        for corpus in corpora:
            corpus.unlink(missing_ok=True)
            corpus.with_suffix(".json").unlink(missing_ok=True)

    def pack(self, corpora: list[Path], num_cpus: int, output: str = "out.pbin") -> Command:
        return packtok_pack(corpora, self.work / output, TOKENIZER, num_cpus)

    def drop_outputs(self) -> None:
        """Removes earlier outputs: freeing a replaced file of a gigabyte takes long."""
        for output in self.work.glob("*.pbin*"):
            output.unlink()

    def cpu_and_user_seconds(self, command: Command, cores: str) -> np.ndarray:
        """Returns CPU and user seconds of a run that has no file to replace."""
        self.drop_outputs()
        cost = run(command, cores)
        return np.array([cost.cpu_seconds, cost.user_seconds])

    def times(self) -> range:
        return range(self.repetitions)


def main() -> None:
    arguments = parse()
    print(machine(), flush=True)
    bars = []
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        bench = Bench(Path(folder), arguments.repetitions, arguments.modalities_python)
        for name in arguments.only:
            for bar in MEASUREMENTS[name](bench):
                bars.append(bar)
                verdict = "ok" if bar.holds else "MISSED"
                print(f"{verdict:6} {bar.what}: {bar.measured}; bar: {bar.bar}", flush=True)
    sys.exit(0 if all(bar.holds for bar in bars) else 1)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    names = list(MEASUREMENTS)
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="some of: %(choices)s")
    parser.add_argument("--modalities-python", type=Path, help="python that has modalities; needed for peers")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--work", type=Path, help="folder to write in; a temporary one")
    arguments = parser.parse_args()
    if "peers" in arguments.only and arguments.modalities_python is None:
        parser.error("peers needs --modalities-python; name the others with --only to do without")
    return arguments


def pack_against_encode_only(bench: Bench) -> Iterator[Bar]:
    """Compares packing on one core with only encoding the same texts; each corpus, and all of them.

    With the reference engine, total CPU time counts. The fast engine is so fast that the system's copying of
    input and output is no longer small, so user time counts. The other time is shown too.
    """
    for engine, bar, counted in (("reference", ">= 80 %", 0), ("fast", "<= 1.33x user CPU", 1)):
        least = 0.80 if engine == "reference" else 1 / 1.33
        pack_seconds = encode_seconds = 0.0
        for name in CORPORA:
            percents, rates = encode_only_percents(bench, engine, name)
            ratio = np.median(percents[counted]) / 100
            encode_rate, pack_rate = rates[counted]
            measured = (
                f"{spread(percents[0], '.1f')} % of CPU, {spread(percents[1], '.1f')} % of user time, "
                f"{len(percents[0])} pairs; {pack_rate:.1f} of {encode_rate:.1f} MB/s"
            )
            yield Bar(f"pack against encode-only, {engine}, {name}", measured, bar, bool(ratio >= least))
            encode_seconds += 1 / encode_rate
            pack_seconds += 1 / (encode_rate * ratio)
        ratio = encode_seconds / pack_seconds
        what = f"pack against encode-only, {engine}, the same bytes of each"
        yield Bar(what, f"{ratio:.1%}", bar, bool(ratio >= least))


def encode_only_percents(bench: Bench, engine: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns encoding in percent of packing for each pair of runs, and the median rates of both in MB/s of
    text.

    The first array is by CPU time, the second by user time. The runs of a pair are short and follow each
    other, so that a longer slowdown of the machine affects both. All pairs together are at least a gigabyte.
    """
    once, _ = bench.corpus(name, 0)
    corpus, counts = bench.corpus(name, PAIR_BYTES)
    tiny = bench.tiny(name)
    encode = [compiled("encode_only", TOKENIZER, once, str(n), engine) for n in (0, counts["repeat"])]
    pack = [[*bench.pack([path], 1), "--engine", engine] for path in (tiny, corpus)]
    run(encode[0])
    startups = [[bench.cpu_and_user_seconds(command[0], "0") for command in (encode, pack)] for _ in range(5)]
    num_pairs = -(-GIGABYTE // PAIR_BYTES) * bench.repetitions
    # Indexed by pair, by encoding and packing, and by CPU and user seconds.
    pairs = np.array(
        [
            [bench.cpu_and_user_seconds(command[1], "0") for command in (encode, pack)]
            for _ in range(num_pairs)
        ]
    ) - np.median(startups, axis=0)
    bench.drop(once, corpus)
    percents = (100 * pairs[:, 0] / pairs[:, 1]).T
    return percents, counts["text_bytes"] / np.median(pairs, axis=0).T / 1e6


def two_threads(bench: Bench) -> Iterator[Bar]:
    """Compares the wall time of two threads on a corpus and its copy with that of two one-thread runs."""
    for name in CORPORA:
        corpus, counts = bench.corpus(name, GIGABYTE)
        copy = bench.work / f"{name}-copy.jsonl"
        copy.hardlink_to(corpus)
        tiny = bench.tiny(name)
        alone_rates: list[float] = []
        two_rates: list[float] = []
        for _ in bench.times():
            alone, two = [], []
            for paths in ([tiny], [corpus, copy]):
                bench.drop_outputs()
                side_by_side = [(bench.pack(paths[:1], 1, f"{core}.pbin"), core) for core in ("0", "1")]
                alone.append(run_side_by_side(side_by_side))
                bench.drop_outputs()
                two.append(run(bench.pack(paths, 2), "0,1").wall_seconds)
            for (startup, total), rates in ((alone, alone_rates), (two, two_rates)):
                rates.append(2 * counts["text_bytes"] / (total - startup) / 1e6)
        copy.unlink()
        bench.drop(corpus)
        ratio = statistics.median(two_rates) / statistics.median(alone_rates)
        measured = f"{ratio:.1%}: {spread(two_rates, '.1f')} of {spread(alone_rates, '.1f')} MB/s"
        yield Bar(f"two threads against two runs, {name}", measured, ">= 92 %", ratio >= 0.92)


def memory(bench: Bench) -> Iterator[Bar]:
    """Measures the process's peak memory for short and long corpora, of long and of very short documents."""
    for name in ["prose", "short"]:
        small, _ = bench.corpus(name, GIGABYTE // 20)
        large, _ = bench.corpus(name, 2 * GIGABYTE)
        for num_cpus in (1, 2):
            peaks = [
                statistics.median(
                    run(bench.pack([path], num_cpus)).largest_rss_bytes / 1e6 for _ in bench.times()
                )
                for path in (small, large)
            ]
            limit, growth = 180 + 64 * num_cpus, peaks[1] / peaks[0]
            what = f"peak memory, {name}, {num_cpus} threads"
            measured = f"{peaks[0]:.0f} MB for 50 MB, {peaks[1]:.0f} MB for 2 GB of input ({growth - 1:+.1%})"
            holds = max(peaks) <= limit and growth <= 1.10
            yield Bar(what, measured, f"<= {limit} MB, within 10 %", holds)
        bench.drop(small, large)


def open_file(bench: Bench) -> Iterator[Bar]:
    """Measures time and memory to open a file of five million documents, after opening another."""
    corpus, _ = bench.corpus("short", NUM_OPEN_DOCUMENTS * 20)
    tiny = bench.tiny("short")
    run(bench.pack([corpus], 2, "documents.pbin"))
    run(bench.pack([tiny], 1, "tiny.pbin"))
    opener = Path(__file__).resolve().parent / "open_once.py"
    command: Command = [sys.executable, opener, bench.work / "tiny.pbin", bench.work / "documents.pbin"]
    reports = [json.loads(run(command, "0").output) for _ in bench.times()]
    bench.drop(corpus)
    documents = reports[0]["documents"]
    milliseconds = [1000 * report["seconds"] for report in reports]
    megabytes = [report["rss_bytes"] / 1e6 for report in reports]
    holds = statistics.median(milliseconds) <= 1 and statistics.median(megabytes) <= 1
    measured = f"{spread(milliseconds, '.3f')} ms, {spread(megabytes, '.3f')} MB"
    yield Bar(f"opening {documents:,} documents", measured, "<= 1 ms, <= 1 MB", holds)


def shards(bench: Bench) -> Iterator[Bar]:
    """Compares the CPU time of packing in shards and joining with packing at once plus one verifying read."""
    corpus, _ = bench.corpus("prose", GIGABYTE)
    program = Path(__file__).resolve().parent / "shards_once.py"
    overheads = []
    for i in bench.times():
        work = bench.work / f"shards{i}"
        work.mkdir()
        command: Command = [sys.executable, program, TOKENIZER, corpus, work, str(NUM_SHARDS)]
        cpu = json.loads(run(command, "0").output)
        shutil.rmtree(work)
        overheads.append((cpu["shards"] + cpu["join"]) / (cpu["pack"] + cpu["verify"]) - 1)
    bench.drop(corpus)
    overhead = statistics.median(overheads)
    what = f"{NUM_SHARDS} shards and joining against packing at once and verifying, prose"
    yield Bar(what, f"{spread([100 * value for value in overheads], '+.1f')} %", "<= 5 %", overhead <= 0.05)


def peers(bench: Bench) -> Iterator[Bar]:
    """Compares bytes per CPU second with Modalities, which runs only once, to limit the duration."""
    compare = Path(__file__).resolve().parent / "peers/compare.py"
    command: Command = [sys.executable, compare, "--json", "--work", bench.work]
    command += ["--repetitions", str(bench.repetitions), "--long-bytes", str(GIGABYTE)]
    command += ["--modalities-python", bench.modalities_python or ""]
    rates = json.loads(run(command).output)
    speeds = {tool: [rate["mb_per_cpu_second"] for rate in of_tool] for tool, of_tool in rates.items()}
    ratio = statistics.median(speeds["packtok"]) / statistics.median(speeds["modalities"])
    measured = f"{ratio:.1f}x: {spread(speeds['packtok'])} against {spread(speeds['modalities'])} MB/s"
    yield Bar("against Modalities, prose, per CPU second", measured, ">= 40x", ratio >= 40)


MEASUREMENTS: dict[str, Callable[[Bench], Iterator[Bar]]] = {
    "pack": pack_against_encode_only,
    "threads": two_threads,
    "memory": memory,
    "open": open_file,
    "shards": shards,
    "peers": peers,
}

if __name__ == "__main__":
    main()

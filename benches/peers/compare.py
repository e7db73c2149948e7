"""Packs one corpus with Modalities and with packtok and compares their cost.

    python benches/peers/compare.py --modalities-python ENV/bin/python --corpus prose

Both get one core, one worker, the same lines and the same tokenizer.json, and take turns. Startup time is
measured by packing a corpus of ten lines, and subtracted. Modalities' raw index is created in advance and
does not count. Before anything is compared, packtok's file must start with all of Modalities' file.

If Modalities takes half a minute, packtok takes half a second, too little for an accurate measurement. With
--long-bytes, packtok's rate is measured on the corpus repeated to that length.
"""

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cost import Cost, machine, run, spread
from programs import Command, compiled, packtok_pack

PEERS = Path(__file__).resolve().parent
REPOSITORY = PEERS.parents[1]
TINY_LINES = 10


@dataclass(frozen=True)
class Rates:
    """One repetition of one tool; MB are millions of bytes of JSON lines."""

    startup_cpu_seconds: float
    cpu_seconds: float
    mb_per_cpu_second: float
    largest_rss_mb: float
    tree_pss_mb: float


@dataclass(frozen=True)
class Job:
    """One corpus and the location of its files."""

    corpus: Path
    work: Path
    tokenizer: Path

    def path(self, suffix: str) -> Path:
        return self.work / f"{self.corpus.stem}{suffix}"

    def modalities(self, python: Path, command: str) -> Command:
        index, output = self.path(".idx"), self.path(".modalities.pbin")
        return [python, PEERS / "modalities_data.py", command, self.corpus, index, output, self.tokenizer]

    def packtok(self) -> Command:
        return packtok_pack([self.corpus], self.path(".packtok.pbin"), self.tokenizer, 1)


def main() -> None:
    arguments = parse()
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        corpus = Path(folder) / "corpus.jsonl"
        write_corpus(arguments.corpus, corpus, arguments.min_bytes)
        tiny = Path(folder) / "tiny.jsonl"
        with corpus.open("rb") as lines:
            tiny.write_bytes(b"".join(itertools.islice(lines, TINY_LINES)))
        tokenizer = Path(arguments.tokenizer).resolve()
        jobs = [Job(path, Path(folder), tokenizer) for path in (tiny, corpus)]
        if arguments.long_bytes:
            long = Path(folder) / "long.jsonl"
            write_corpus(arguments.corpus, long, arguments.long_bytes)
            jobs.append(Job(long, Path(folder), tokenizer))
        rates = compare(jobs, arguments.modalities_python, arguments.repetitions, arguments.core)
    if arguments.json:
        print(json.dumps({tool: [asdict(result) for result in all_] for tool, all_ in rates.items()}))
    else:
        show(rates, arguments)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    shared = Path(os.environ.get("PACKTOK_SHARED", REPOSITORY.parent / "shared"))
    gpt2 = shared / "data/tokenizers/gpt2"
    parser.add_argument("--modalities-python", type=Path, required=True, help="python that has modalities")
    parser.add_argument("--corpus", default="prose", help="prose, code, multi or a file; %(default)s")
    parser.add_argument("--min-bytes", type=int, default=0, help="repeat the corpus until it is this long")
    parser.add_argument("--long-bytes", type=int, default=0, help="length of the corpus for packtok's rate")
    parser.add_argument("--tokenizer", default=gpt2, help="folder of tokenizer.json; %(default)s")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--core", default="0", help="the core that both are bound to")
    parser.add_argument("--work", type=Path, help="folder to write in; a temporary one")
    parser.add_argument("--json", action="store_true", help="print the figures of each repetition")
    return parser.parse_args()


def write_corpus(name: str, path: Path, min_bytes: int) -> None:
    """Creates the corpus at `path`: links a file, or writes one of the benches' corpora."""
    if Path(name).is_file():
        path.symlink_to(Path(name).resolve())
        return
    run(compiled("write_corpus", name, path, str(min_bytes)))


def compare(jobs: list[Job], python: Path, repetitions: int, core: str) -> dict[str, list[Rates]]:
    """Packs the tiny and the whole corpus with both tools, in turns, and a long one with packtok."""
    tiny_job, job = jobs[:2]
    for each_job in (tiny_job, job):
        run(each_job.modalities(python, "index"), core)
    rates: dict[str, list[Rates]] = {"modalities": [], "packtok": []}
    for _ in range(repetitions):
        tiny, whole = (
            run(each_job.modalities(python, "pack"), core, sample_memory=True) for each_job in (tiny_job, job)
        )
        rates["modalities"].append(rate(tiny, whole, job))
        ours = [run(each_job.packtok(), core, sample_memory=True) for each_job in jobs]
        rates["packtok"].append(rate(ours[0], ours[-1], jobs[-1]))
        require_equal(job)
    return rates


def rate(tiny: Cost, whole: Cost, job: Job) -> Rates:
    net = whole.cpu_seconds - tiny.cpu_seconds
    return Rates(
        startup_cpu_seconds=tiny.cpu_seconds,
        cpu_seconds=whole.cpu_seconds,
        mb_per_cpu_second=job.corpus.stat().st_size / net / 1e6,
        largest_rss_mb=whole.largest_rss_bytes / 1e6,
        tree_pss_mb=whole.tree_pss_bytes / 1e6,
    )


def require_equal(job: Job) -> None:
    """Raises unless both tools did the same work."""
    peer, ours = job.path(".modalities.pbin").read_bytes(), job.path(".packtok.pbin")
    with ours.open("rb") as file:
        if file.read(len(peer)) != peer:
            raise SystemExit(f"{ours} does not begin with the bytes of {job.path('.modalities.pbin')}")


def show(rates: dict[str, list[Rates]], arguments: argparse.Namespace) -> None:
    print(machine())
    print(
        f"{arguments.corpus}, core {arguments.core}, {arguments.repetitions} repetitions, medians (range)\n"
    )
    columns = [
        ("MB/s per CPU second", "mb_per_cpu_second", ".2f"),
        ("CPU s", "cpu_seconds", ".2f"),
        ("start-up CPU s", "startup_cpu_seconds", ".2f"),
        ("largest process, MB", "largest_rss_mb", ".0f"),
        ("all processes, MB", "tree_pss_mb", ".0f"),
    ]
    for title, name, form in columns:
        for tool, of_tool in rates.items():
            print(f"{title:22} {tool:11} {spread((getattr(result, name) for result in of_tool), form)}")
    speeds = {
        tool: statistics.median(result.mb_per_cpu_second for result in of_tool)
        for tool, of_tool in rates.items()
    }
    print(f"\nratio per CPU second: {speeds['packtok'] / speeds['modalities']:.1f}")


if __name__ == "__main__":
    main()

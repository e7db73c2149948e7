"""Measures what `--origins` costs: bytes per document, packing time, access and verification.

    python benches/origins.py CORPUS.jsonl [...] [--repetitions 9] [--work FOLDER]

Run by a Python that has packtok, with an idle core. Each corpus is repeated to 200 MB. Runs that are compared
take turns on one core, and the ratio is that of the medians of their CPU times, without startup.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from cost import machine, run, spread
from programs import Command, packtok_pack

import packtok

REPEATED_BYTES = 200_000_000
TINY_LINES = 10
TOKENIZER = "gpt2"
NUM_ACCESSES = 200_000
SAMPLE = "2%"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=Path, metavar="CORPUS.jsonl")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--work", type=Path, help="folder to write in; a temporary one")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {0})
    print(machine())
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        for corpus in arguments.corpora:
            measure(corpus, Path(folder), arguments.repetitions)


def measure(corpus: Path, work: Path, repetitions: int) -> None:
    """Prints the figures of one corpus."""
    source = work / "corpus" / "c.jsonl"
    source.parent.mkdir(exist_ok=True)
    content = corpus.read_bytes()
    source.write_bytes(content * -(-REPEATED_BYTES // len(content)))
    tiny = work / "tiny.jsonl"
    tiny.write_bytes(b"".join(content.splitlines(keepends=True)[:TINY_LINES]))
    del content

    without: list[float] = []
    having: list[float] = []
    for _ in range(repetitions):
        for flags, seconds in (([], without), (["--origins"], having)):
            startup, total = (cpu_of([*pack(path, work), *flags], work) for path in (tiny, source))
            seconds.append(total - startup)
    ratio = statistics.median(having) / statistics.median(without)
    times = f"{spread(having)} of {spread(without)} s"
    print(f"{corpus.name}: packing with origins takes {ratio:.4f} of the time: {times}")

    output = work / "o.pbin"
    run([*pack(source, work), "--origins"])
    reader = packtok.PbinReader(output)
    run(pack(source, work))
    added = reader.file_bytes - packtok.PbinReader(output).file_bytes
    print(f"{corpus.name}: {added / len(reader):.2f} bytes per document, {len(reader):,} documents")
    run([*pack(source, work), "--origins"])
    print(f"{corpus.name}: origin(i) takes {access_us(packtok.PbinReader(output)):.2f} us")
    print(f"{corpus.name}: {verification(output, source, work)}")


def pack(corpus: Path, work: Path) -> Command:
    return packtok_pack([corpus], work / "o.pbin", TOKENIZER, 1)


def cpu_of(command: Command, work: Path) -> float:
    """Returns the CPU seconds of a run that has no file to replace."""
    for output in work.glob("o.pbin*"):
        output.unlink()
    return run(command, "0").cpu_seconds


def access_us(reader: packtok.PbinReader) -> float:
    """Returns the median time of `origin` in microseconds, in an order without locality."""
    num_documents = len(reader)
    numbers = [i * 7919 % num_documents for i in range(NUM_ACCESSES)]
    rounds = []
    for _ in range(5):
        started = time.perf_counter()
        for i in numbers:
            reader.origin(i)
        rounds.append((time.perf_counter() - started) / NUM_ACCESSES * 1e6)
    return statistics.median(rounds)


def verification(output: Path, source: Path, work: Path) -> str:
    """Returns how fast `verify --origins` is, relative to `verify --corpus`, for a sample and for all."""
    config = work / "config.json"
    settings = {"src_path": str(source), "dst_path": str(output), "origins": True, "num_cpus": 1}
    config.write_text(json.dumps({"settings": settings, "tokenizer": TOKENIZER}))
    verify: Command = [Path(sys.executable).with_name("packtok"), "verify", output, "--quiet"]
    ratios = []
    for sample in (SAMPLE, "20%"):
        by_corpus, by_origins = [], []
        for _ in range(3):
            alone = run(verify, "0").cpu_seconds
            by_corpus.append(run([*verify, "--corpus", config, "--sample", sample], "0").cpu_seconds - alone)
            by_origins.append(
                run([*verify, "--origins", source.parent, "--sample", sample], "0").cpu_seconds - alone
            )
        ratio = statistics.median(by_corpus) / statistics.median(by_origins)
        ratios.append(f"{ratio:.2f} for a sample of {sample}")
    return f"speed of verify --origins relative to verify --corpus: {', '.join(ratios)}"


if __name__ == "__main__":
    main()

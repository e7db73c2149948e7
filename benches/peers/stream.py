"""Compares the streaming tutorial of packtok with packing the same text, and with epochraft.

    python benches/peers/stream.py [--epochraft-python ENV/bin/python] [--corpus prose code multi]

The tutorial reads files, tokenizes with GPT-2's tokenizer, adds EOS, and makes batches of 8 rows of 1,024
tokens through a shuffle buffer of 1,000. Run by a Python that has packtok. epochraft needs an environment of
its own: `pip install epochraft==0.1.0.dev20231107 'cbor2<6' transformers`. Start-up, measured with ten
documents, is subtracted. Programs take turns on one core, and medians count.
"""

import argparse
import io
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cost import Cost, machine, run

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
TOKENIZER = SHARED / "tokenizers" / "gpt2"
TINY_DOCUMENTS = 10
CORE = "0"

# Each prints the number of tokens of all batches.
STEPS = """
dataset = dataset.concat_chunk(1024).shuffle(1000).batch(8)
print(sum(batch["input_ids"].numel() for batch in dataset))
"""
PROGRAMS = {
    "packtok stream": """
import sys
import packtok
from packtok.stream import CheckpointableDataset
class Eos:
    bos_token_id, eos_token_id = None, 50256
dataset = CheckpointableDataset.from_files(sys.argv[1], shuffle_shards=True)
dataset = dataset.tokenize(packtok.Tokenizer.from_file(sys.argv[2])).ensure_bos_eos(Eos)
"""
    + STEPS,
    "packtok pack": """
import sys
import packtok
report = packtok.pack(
    input=sys.argv[1], output=sys.argv[1] + ".pbin", tokenizer=sys.argv[2], eod="<|endoftext|>", num_cpus=1,
    existing="replace",
)
print(report.tokens)
""",
    "epochraft": """
import sys
from epochraft import CheckpointableDataset
from transformers import PreTrainedTokenizerFast
tokenizer = PreTrainedTokenizerFast(tokenizer_file=sys.argv[2], eos_token="<|endoftext|>")
dataset = CheckpointableDataset.from_files(sys.argv[1], shuffle_shards=True)
dataset = dataset.tokenize(tokenizer, parallel=False).ensure_bos_eos(tokenizer)
"""
    + STEPS,
}
# MB of text: enough that start-up is a small part, for each program's speed.
MEGABYTES = {"packtok stream": 200, "packtok pack": 200, "epochraft": 20}


def main() -> None:
    """Prints a line for each corpus and program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochraft-python", type=Path, help="python that has epochraft; left out without")
    parser.add_argument("--corpus", nargs="+", default=["prose", "code", "multi"])
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    print(machine())
    pythons = {name: Path(sys.executable) for name in PROGRAMS}
    if arguments.epochraft_python is None:
        del pythons["epochraft"]
    else:
        pythons["epochraft"] = arguments.epochraft_python
    with tempfile.TemporaryDirectory() as folder:
        for corpus in arguments.corpus:
            compare(corpus, Path(folder) / corpus, pythons, arguments.repetitions)


def compare(corpus: str, work: Path, pythons: Mapping[str, Path], repetitions: int) -> None:
    """Prints the speed of each program on a corpus, and its ratio to the stream."""
    work.mkdir()
    lines = lines_of(corpus)
    tiny, _ = write(work / "tiny.jsonl", lines[:TINY_DOCUMENTS], 0)
    given = {name: write(work / f"{name}.jsonl", lines, MEGABYTES[name] * 1_000_000) for name in pythons}
    costs: dict[str, list[Cost]] = {name: [] for name in pythons}
    starts: dict[str, list[Cost]] = {name: [] for name in pythons}
    for _ in range(repetitions):
        for name, python in pythons.items():
            starts[name].append(measured(python, name, tiny))
            costs[name].append(measured(python, name, given[name][0]))
    start_seconds = {name: median_seconds(starts[name]) for name in pythons}
    speeds = {
        name: given[name][1] / 1e6 / (median_seconds(costs[name]) - start_seconds[name]) for name in pythons
    }
    for name, speed in speeds.items():
        before, peak = (max(one.largest_rss_bytes for one in every[name]) / 1e6 for every in (starts, costs))
        print(
            f"{corpus:6} {name:15} {speed:7.1f} MB of text per CPU second, stream "
            f"{speeds['packtok stream'] / speed:6.2f} x, start {start_seconds[name]:.2f} s, "
            f"peak {peak:.0f} MB, {peak - before:+.0f} MB against ten documents",
            flush=True,
        )


def median_seconds(costs: Sequence[Cost]) -> float:
    """Returns the median CPU seconds."""
    return statistics.median(cost.cpu_seconds for cost in costs)


def measured(python: Path, name: str, corpus: Path) -> Cost:
    """Returns the cost of a program on a corpus."""
    return run([python, "-c", PROGRAMS[name], corpus, TOKENIZER / "tokenizer.json"], CORE)


def lines_of(corpus: str) -> list[tuple[str, int]]:
    """Returns the lines of a shared corpus with the bytes of their texts."""
    import zstandard

    with (SHARED / "corpora" / f"{corpus}.jsonl.zst").open("rb") as file:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), encoding="utf-8")
        return [(line, len(json.loads(line)["text"].encode())) for line in lines]


def write(path: Path, lines: list[tuple[str, int]], num_bytes: int) -> tuple[Path, int]:
    """Writes the lines, repeated until their texts have ``num_bytes``; returns the bytes of the texts."""
    written = 0
    with path.open("w", encoding="utf-8") as file:
        while True:
            for line, text_bytes in lines:
                file.write(line)
                written += text_bytes
                if 0 < num_bytes <= written:
                    return path, written
            if num_bytes <= written:
                return path, written


if __name__ == "__main__":
    main()

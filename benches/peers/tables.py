"""Compares packing and reading of Parquet with JSON lines and with other readers, on one core.

    python benches/peers/tables.py [--corpus prose code multi] [--repeat 4] [--repetitions 5]

Run by a Python that has packtok, pyarrow, datatrove and datasets. Start-up, measured with ten rows, is
subtracted. Programs take turns on one core, and medians count.
"""

import argparse
import io
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cost import Cost, machine, run
from programs import Command, packtok_pack

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "corpora"
ROW_GROUP_ROWS = 10_000
TINY_ROWS = 10
CORE = "0"

# Each program reads all texts of the file in sys.argv[1] and prints their number.
READERS = {
    "packtok": """
import sys
from packtok import _packtok
from packtok.commands.count import corpus_config
spec = corpus_config(sys.argv[1], "gpt2", {"num_cpus": 1}).spec()
total = _packtok.count_tokens(spec, [], None)["total"]
print(total["documents"] + total["empty"])
""",
    "datatrove": """
import sys
from pathlib import Path
from datatrove.pipeline.readers import ParquetReader
path = Path(sys.argv[1])
reader = ParquetReader(str(path.parent), glob_pattern=path.name, text_key="text", id_key="id")
num = bytes_read = 0
for document in reader():
    num += 1
    bytes_read += len(document.text)
print(num)
""",
    "datasets": """
import os, sys
from datasets import load_dataset
num = bytes_read = 0
for row in load_dataset("parquet", data_files=sys.argv[1], split="train", streaming=True):
    num += 1
    bytes_read += len(row["text"])
print(num, flush=True)
# Its threads crash the interpreter's regular exit.
os._exit(0)
""",
    "pyarrow, batches": """
import sys
import pyarrow.parquet as pq
num = 0
for batch in pq.ParquetFile(sys.argv[1]).iter_batches(columns=["text"]):
    num += batch.num_rows
print(num)
""",
}


def main() -> None:
    """Prints a line for each comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", nargs="+", default=["prose", "code", "multi"])
    parser.add_argument("--repeat", type=int, default=4, help="how often a corpus of 50 MB is repeated")
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.corpus:
            work = Path(folder) / name
            work.mkdir()
            texts = texts_of(name) * arguments.repeat
            num_bytes = sum(len(text.encode()) for text in texts)
            write(work / "whole", texts)
            write(work / "tiny", texts[:TINY_ROWS])
            compare_packing(name, work, num_bytes, arguments.repetitions)
            compare_reading(name, work, num_bytes, len(texts), arguments.repetitions)


def texts_of(name: str) -> list[str]:
    """Returns the texts of a shared corpus."""
    import zstandard

    with (SHARED / f"{name}.jsonl.zst").open("rb") as file:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), encoding="utf-8")
        return [json.loads(line)["text"] for line in lines]


def write(path: Path, texts: list[str]) -> None:
    """Writes the texts as zstd Parquet and as JSONL.zst."""
    import zstandard

    rows = pa.table({"id": [str(i) for i in range(len(texts))], "text": texts})
    pq.write_table(rows, path.with_suffix(".parquet"), row_group_size=ROW_GROUP_ROWS, compression="zstd")
    with (
        path.with_suffix(".jsonl.zst").open("wb") as file,
        zstandard.ZstdCompressor().stream_writer(file) as out,
    ):
        for i, text in enumerate(texts):
            out.write(json.dumps({"id": str(i), "text": text}, ensure_ascii=False).encode() + b"\n")


def medians(
    commands: dict[str, Callable[[str], Command]], times: int, check: str | None
) -> dict[str, list[float]]:
    """Returns the user seconds of each command in each turn, without those of its start-up."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            costs: list[Cost] = [run(command(size), CORE) for size in ("tiny", "whole")]
            if check is not None and costs[1].output.strip() != check:
                raise RuntimeError(f"{name} read {costs[1].output.strip()} texts, expected {check}")
            seconds[name].append(costs[1].cpu_seconds - costs[0].cpu_seconds)
    return seconds


def compare_packing(corpus: str, work: Path, num_bytes: int, times: int) -> None:
    """Packs the same texts from both formats and compares the token files."""

    def pack(suffix: str) -> Callable[[str], Command]:
        output = work / f"{suffix}.pbin"
        return lambda size: packtok_pack([work / f"{size}.{suffix}"], output, "gpt2", 1)

    seconds = medians({"parquet": pack("parquet"), "jsonl.zst": pack("jsonl.zst")}, times, None)
    data = [read_data(work / f"{suffix}.pbin") for suffix in seconds]
    if data[0] != data[1]:
        raise RuntimeError(f"{corpus}: the two formats gave different tokens")
    ratios = [lines / table for table, lines in zip(seconds["parquet"], seconds["jsonl.zst"], strict=True)]
    show(f"{corpus}: packing Parquet, of JSONL.zst", ratios, seconds, num_bytes)


def read_data(path: Path) -> bytes:
    """Returns the data segment of a pbin."""
    content = path.read_bytes()
    return content[12 : 12 + int.from_bytes(content[:8], "little")]


def compare_reading(corpus: str, work: Path, num_bytes: int, num_texts: int, times: int) -> None:
    """Reads the Parquet file with each reader."""

    def read(program: str) -> Callable[[str], Command]:
        return lambda size: [sys.executable, "-c", program, work / f"{size}.parquet"]

    seconds = medians({name: read(program) for name, program in READERS.items()}, times, str(num_texts))
    for name in READERS:
        if name != "packtok":
            ratios = [other / own for own, other in zip(seconds["packtok"], seconds[name], strict=True)]
            show(f"{corpus}: reading Parquet, times {name}", ratios, seconds, num_bytes)


def show(what: str, ratios: list[float], seconds: dict[str, list[float]], num_bytes: int) -> None:
    """Prints the median and range of ratios, and the speeds that they compare."""
    speeds = ", ".join(
        f"{name} {num_bytes / 1e6 / statistics.median(seconds_of_name):,.0f} MB/s"
        for name, seconds_of_name in seconds.items()
    )
    print(
        f"{what}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); {speeds}",
        flush=True,
    )


if __name__ == "__main__":
    main()

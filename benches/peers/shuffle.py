"""Shuffles files with Modalities and with packtok, and large ones with packtok and `cp`.

    python benches/peers/shuffle.py --modalities-python ENV/bin/python
    python benches/peers/shuffle.py --large 4000 --work FOLDER

The first compares CPU seconds of one core, without start-up: pbins of 40 and of 550 tokens a document, and
JSONL. Both tools shuffle a small file first, then the file several times, with the same seed. packtok's file
must start with all of Modalities' file.

The second compares packtok with `cp --reflink=never` and a sync, in seconds and peak memory, for files of so
many MB. The two run in turns, with a ratio for each turn. FOLDER needs three times as much space.
"""

import argparse
import os
import pickle
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cost import Cost, machine, run, spread

from packtok.commands.shuffle import shuffle_chunk, shuffle_file

TIMES = 5

# Arguments: the kind of the files, a small input, the input, the output, how many times. Prints CPU seconds.
MEASURED = """
import resource, sys
from pathlib import Path
kind, tiny, source, output, times = sys.argv[1:]
shuffle(kind, tiny, output)
before = resource.getrusage(resource.RUSAGE_SELF)
for _ in range(int(times)):
    shuffle(kind, source, output)
after = resource.getrusage(resource.RUSAGE_SELF)
print((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / int(times))
"""
MODALITIES = """
from modalities.api import FileExistencePolicy, shuffle_jsonl_data, shuffle_tokenized_data
def shuffle(kind, source, output):
    if kind == "pbin":
        shuffle_tokenized_data(Path(source), Path(output), 100, FileExistencePolicy.OVERRIDE, 7)
    else:
        shuffle_jsonl_data(Path(source), Path(output), FileExistencePolicy.OVERRIDE, 7)
"""
PACKTOK = """
from packtok.commands.shuffle import shuffle_file
def shuffle(kind, source, output):
    shuffle_file(kind, source, output, seed=7, existing="replace")
"""
LARGE = """
import sys
from packtok.commands.shuffle import shuffle_file
shuffle_file(*sys.argv[1:], seed=7)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
# Other than the peak that the system counts for a child, it is not that of its parent.
print(status["VmHWM"].split()[0])
"""
# Name, kind, and mean tokens or bytes of a document.
INPUTS = (("40 tokens", "pbin", 40), ("550 tokens", "pbin", 550), ("lines of 200 bytes", "jsonl", 200))
PIECE_BYTES = 1 << 24
PART_BYTES = 100_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--modalities-python", type=Path, help="python that has modalities")
    parser.add_argument("--megabytes", type=int, default=80, help="size of the files; %(default)s")
    parser.add_argument("--large", type=int, default=0, help="MB of files that are compared with cp")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--work", type=Path, help="folder to write in; a temporary one")
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        if arguments.modalities_python is not None:
            compare(Path(folder), arguments)
        if arguments.large:
            compare_with_cp(Path(folder), arguments)


def write(path: Path, kind: str, num_bytes: int, mean: int) -> Path:
    """Writes a file with about `num_bytes` of documents: a pbin as Modalities writes it, or lines."""
    if kind == "jsonl":
        rng = random.Random(mean)
        text = "".join(rng.choices("abcdefgh ", k=1 << 16))
        with path.open("w") as file:
            while num_bytes > 0:
                start = rng.randrange(1 << 15)
                line = f'{{"text": "{text[start : start + rng.randrange(2 * mean - 24)]}"}}\n'
                num_bytes -= file.write(line)
        return path
    lengths = list(lengths_of_documents(num_bytes, mean))
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    with path.open("wb") as file:
        file.write(starts[-1].to_bytes(8, "little") + (2).to_bytes(4, "little"))
        for start in range(0, starts[-1], PIECE_BYTES):
            file.write(os.urandom(min(PIECE_BYTES, starts[-1] - start)))
        pickle.dump(list(zip(starts, lengths, strict=False)), file, protocol=4)
    return path


def lengths_of_documents(num_bytes: int, mean_tokens: int) -> Iterator[int]:
    rng = random.Random(mean_tokens)
    while num_bytes > 0:
        length = 2 * rng.randrange(1, 2 * mean_tokens)
        num_bytes -= length
        yield length


def compare(folder: Path, arguments: argparse.Namespace) -> None:
    tools = {"modalities": (arguments.modalities_python, MODALITIES), "packtok": (sys.executable, PACKTOK)}
    for name, kind, mean in INPUTS:
        tiny = write(folder / f"tiny.{kind}", kind, 10 * mean, mean)
        whole = write(folder / f"whole.{kind}", kind, arguments.megabytes * 1_000_000, mean)
        if kind == "pbin":
            # The output has a trailer with checksums, as packtok writes it.
            tiny, whole = (with_trailer(path) for path in (tiny, whole))
        seconds: dict[str, list[float]] = {tool: [] for tool in tools}
        for _ in range(arguments.repetitions):
            for tool, (python, code) in tools.items():
                output = folder / f"{tool}.{kind}"
                command = [python, "-c", code + MEASURED, kind, tiny, whole, output, str(TIMES)]
                seconds[tool].append(float(run(command, "0").output))
            require_equal(folder / f"modalities.{kind}", folder / f"packtok.{kind}")
        print(f"\n{name}, {whole.stat().st_size / 1e6:.0f} MB, CPU seconds without start-up")
        for tool, of_tool in seconds.items():
            print(f"{tool:11} {spread(of_tool, '.3f')}")
        medians = {tool: statistics.median(of_tool) for tool, of_tool in seconds.items()}
        print(f"ratio {medians['modalities'] / medians['packtok']:.1f}")


def with_trailer(path: Path) -> Path:
    """Returns the pbin with a trailer, which packtok adds when it copies documents."""
    copy = path.with_suffix(".trailer.pbin")
    shuffle_file("pbin", path, copy, seed=1, existing="replace")
    path.unlink()
    return copy


def repeated(part: Path, megabytes: int) -> Path:
    """Returns a file of that many MB that repeats the documents of a part; removes the part."""
    whole = part.with_stem("large")
    num_parts = megabytes * 1_000_000 // PART_BYTES
    if part.suffix == ".pbin":
        shuffle_chunk("pbin", [part] * num_parts, whole, chunk_id=0, num_chunks=1)
    else:
        content = part.read_bytes()
        with whole.open("wb") as file:
            for _ in range(num_parts):
                file.write(content)
    part.unlink()
    return whole


def require_equal(theirs: Path, ours: Path) -> None:
    with theirs.open("rb") as expected, ours.open("rb") as actual:
        while piece := expected.read(PIECE_BYTES):
            if actual.read(len(piece)) != piece:
                raise SystemExit(f"{ours} does not begin with the bytes of {theirs}")


def compare_with_cp(folder: Path, arguments: argparse.Namespace) -> None:
    for kind, mean in (("pbin", 40), ("pbin", 550), ("jsonl", 2000)):
        output = folder / f"shuffled.{kind}"
        source = repeated(write(folder / f"part.{kind}", kind, PART_BYTES, mean), arguments.large)
        num_documents = arguments.large * 1_000_000 // (2 * mean if kind == "pbin" else mean)
        copied: list[Cost] = []
        shuffled: list[Cost] = []
        for _ in range(arguments.repetitions):
            command = f"cp --reflink=never '{source}' '{output}' && sync '{output}'"
            copied.append(run(["sh", "-c", command]))
            output.unlink()
            shuffled.append(run([sys.executable, "-c", LARGE, kind, source, output]))
            output.unlink()
        source.unlink()
        print(f"\n{kind}, {arguments.large} MB, {mean} tokens or bytes a document, seconds")
        for name, costs in (("cp and sync", copied), ("packtok", shuffled)):
            wall = spread((cost.wall_seconds for cost in costs), ".1f")
            print(f"{name:11} {wall}, CPU {spread((cost.cpu_seconds for cost in costs), '.1f')}")
        turns = zip(copied, shuffled, strict=True)
        ratios = spread((packtok.wall_seconds / cp.wall_seconds for cp, packtok in turns), ".1f")
        peak = max(1024 * int(cost.output) for cost in shuffled)
        beside = (peak - 4 * num_documents) / 1e6
        print(f"ratio {ratios}; peak {peak / 1e6:.0f} MB, {beside:.0f} MB beside 4 bytes a document")


if __name__ == "__main__":
    main()

"""Shuffles files with Modalities and with packtok, and large ones with packtok and `cp`.

    python benches/peers/shuffle.py --modalities-python ENV/bin/python
    python benches/peers/shuffle.py --large 4000 --work FOLDER

The first compares CPU seconds of one core: pbins of 40 and of 550 tokens a document, and JSONL. Start-up time
is measured with files of ten documents, and subtracted. Both get the same seed, and packtok's file must start
with all of Modalities' file. Each packtok process shuffles its file several times: once takes too little time
to measure.

The second compares packtok with `cp --reflink=never` and a sync, in seconds and peak memory, for files of so
many MB. FOLDER needs three times as much space.
"""

import argparse
import os
import pickle
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cost import Cost, machine, run, spread

TIMES = 5
SEED = 7

# Arguments: the kind of the files, input, output, how many times.
MODALITIES = """
import sys
from pathlib import Path
from modalities.api import FileExistencePolicy, shuffle_jsonl_data, shuffle_tokenized_data
kind, source, output, times = sys.argv[1:]
for _ in range(int(times)):
    if kind == "pbin":
        shuffle_tokenized_data(Path(source), Path(output), 100, FileExistencePolicy.OVERRIDE, 7)
    else:
        shuffle_jsonl_data(Path(source), Path(output), FileExistencePolicy.OVERRIDE, 7)
"""
PACKTOK = """
import sys
from packtok.commands.shuffle import shuffle_file
kind, source, output, times = sys.argv[1:]
for _ in range(int(times)):
    shuffle_file(kind, source, output, seed=7, existing="replace")
"""


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


# Name, kind, and mean tokens or bytes of a document.
INPUTS = (("40 tokens", "pbin", 40), ("550 tokens", "pbin", 550), ("lines of 200 bytes", "jsonl", 200))
PIECE_BYTES = 1 << 24


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
    tools = {
        "modalities": (arguments.modalities_python, MODALITIES, 1),
        "packtok": (Path(sys.executable), PACKTOK, TIMES),
    }
    for name, kind, mean in INPUTS:
        tiny = write(folder / f"tiny.{kind}", kind, 10 * mean, mean)
        whole = write(folder / f"whole.{kind}", kind, arguments.megabytes * 1_000_000, mean)
        if kind == "pbin":
            # As packtok writes them, with checksums to verify and origins unknown.
            tiny, whole = (with_trailer(path) for path in (tiny, whole))
        seconds: dict[str, list[float]] = {tool: [] for tool in tools}
        for _ in range(arguments.repetitions):
            for tool, (python, code, times) in tools.items():
                costs = [
                    run([python, "-c", code, kind, path, folder / f"{tool}.{kind}", str(times)], "0")
                    for path in (tiny, whole)
                ]
                seconds[tool].append((costs[1].cpu_seconds - costs[0].cpu_seconds) / times)
            require_equal(folder / f"modalities.{kind}", folder / f"packtok.{kind}")
        megabytes = whole.stat().st_size / 1e6
        print(f"\n{name}, {megabytes:.0f} MB, CPU seconds without start-up")
        for tool, of_tool in seconds.items():
            print(f"{tool:11} {spread(of_tool, '.3f')}")
        print(f"ratio {min(seconds['modalities']) / min(seconds['packtok']):.1f}")


def with_trailer(path: Path) -> Path:
    """Returns the pbin with a trailer, which packtok adds when it copies documents."""
    from packtok.commands.shuffle import shuffle_file

    copy = path.with_suffix(".trailer.pbin")
    shuffle_file("pbin", path, copy, seed=1, existing="replace")
    path.unlink()
    return copy


def require_equal(theirs: Path, ours: Path) -> None:
    with theirs.open("rb") as expected, ours.open("rb") as found:
        while piece := expected.read(PIECE_BYTES):
            if found.read(len(piece)) != piece:
                raise SystemExit(f"{ours} does not begin with the bytes of {theirs}")


def compare_with_cp(folder: Path, arguments: argparse.Namespace) -> None:
    for kind, mean in (("pbin", 40), ("pbin", 550), ("jsonl", 2000)):
        source = write(folder / f"large.{kind}", kind, arguments.large * 1_000_000, mean)
        output = folder / f"shuffled.{kind}"
        if kind == "pbin":
            source = with_trailer(source)
        num_documents = arguments.large * 1_000_000 // (2 * mean if kind == "pbin" else mean)
        copied: list[Cost] = []
        shuffled: list[Cost] = []
        for _ in range(arguments.repetitions):
            command = f"cp --reflink=never '{source}' '{output}' && sync '{output}'"
            copied.append(run(["sh", "-c", command], "0"))
            output.unlink()
            shuffled.append(run([Path(sys.executable), "-c", PACKTOK, kind, source, output, "1"], "0"))
            output.unlink()
        source.unlink()
        print(f"\n{kind}, {arguments.large} MB, {mean} tokens or bytes a document, seconds")
        for name, costs in (("cp and sync", copied), ("packtok", shuffled)):
            wall = spread((one.wall_seconds for one in costs), ".1f")
            print(f"{name:11} {wall}, CPU {spread((one.cpu_seconds for one in costs), '.1f')}")
        ratio = min(one.wall_seconds for one in shuffled) / min(one.wall_seconds for one in copied)
        peak = max(one.largest_rss_bytes for one in shuffled)
        beside = (peak - 4 * num_documents) / 1e6
        print(f"ratio {ratio:.1f}; peak {peak / 1e6:.0f} MB, {beside:.0f} MB beside 4 bytes a document")


if __name__ == "__main__":
    main()

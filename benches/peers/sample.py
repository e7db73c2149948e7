"""Writes samples with packtok and with mosaicml-streaming's MDSWriter.

    python benches/peers/sample.py --mds-python ENV/bin/python
    python benches/peers/sample.py --memory 1000 10000

ENV has mosaicml-streaming 0.13.0. The first compares CPU and wall seconds on one core for samples of 1,024
and 8,192 tokens; runs of the two alternate. Both write the same files, which is checked byte for byte, with
the same hashes. What differs: packtok draws the samples from a pbin, which includes a pass over all
documents for the plan, and syncs each file to disk; MDSWriter gets the samples as arrays in memory and
leaves the files to the system's cache. Time is measured within the process, after the imports and, for
MDSWriter, after the samples are read. The bytes of the files are compared with those of CEPE's scripts: the
same samples, pickled as int64.

The second reports packtok's peak memory for pbins of so many MB.
"""

import argparse
import json
import pickle
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cost import Cost, machine, run, spread

DOCUMENT_TOKENS = 40_000
# The end of a program; prints its CPU and wall seconds.
SECONDS = "print(time.process_time() - cpu, time.perf_counter() - wall)"
# Arguments: folder of token files, output, context, decoder, number of samples.
PACKTOK = f"""
import sys, time
import packtok
packtok.draw_samples
tokens, output, context, decoder, count = sys.argv[1:]
cpu, wall = time.process_time(), time.perf_counter()
packtok.draw_samples(
    {{
        "windows": {{"from": "documents", "context": int(context), "decoder": int(decoder)}},
        "domains": {{"a": 1}},
        "samples": {{"train": int(count)}},
        "splits": {{"test": 0, "train": 1, "retrieval": 0}},
    }},
    output, tokens=tokens, num_cpus=1, allow_short=True,
)
{SECONDS}
"""
# Arguments: file of samples, output, context, decoder, type.
MDS_WRITER = f"""
import sys, time
import numpy as np
from streaming import MDSWriter
source, output, context, decoder, dtype = sys.argv[1:]
context, decoder = int(context), int(decoder)
samples = np.fromfile(source, dtype=dtype).reshape(-1, context + decoder)
columns = {{"token_ids": f"ndarray:{{dtype}}", "prev_token_ids": f"ndarray:{{dtype}}", "domain": "str"}}
cpu, wall = time.process_time(), time.perf_counter()
with MDSWriter(out=output, columns=columns, hashes=["sha256", "xxh64"], size_limit=1 << 26) as writer:
    for sample in samples:
        writer.write({{"token_ids": sample[context:], "prev_token_ids": sample[:context], "domain": "a"}})
{SECONDS}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mds-python", type=Path, help="python that has mosaicml-streaming")
    parser.add_argument("--megabytes", type=int, default=400, help="size of the samples; %(default)s")
    parser.add_argument("--memory", type=int, nargs="*", default=[], help="MB of pbins")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--work", type=Path, help="folder to write in; a temporary one")
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        if arguments.mds_python is not None:
            for tokens in (1024, 8192):
                compare(
                    Path(folder), tokens, arguments.mds_python, arguments.megabytes, arguments.repetitions
                )
        for megabytes in arguments.memory:
            measure_memory(Path(folder), megabytes)


def compare(folder: Path, tokens: int, python: Path, megabytes: int, repetitions: int) -> None:
    """Prints the cost of samples of ``tokens`` tokens with both, after a comparison of the files."""
    context = decoder = tokens // 2
    count = megabytes * 1_000_000 // (2 * tokens)
    source = folder / f"tokens{tokens}"
    # Windows overlap by half, and each document ends with a partial window.
    write_pbin(source / "a" / "0.pbin", int(count * decoder * 1.3) + DOCUMENT_TOKENS)
    ours, theirs, samples = folder / "packtok", folder / "mds", folder / "samples"
    figures: dict[str, list[float]] = {"packtok": [], "MDSWriter": []}
    walls: dict[str, list[float]] = {"packtok": [], "MDSWriter": []}
    for number in range(repetitions):
        for name in figures:
            shutil.rmtree(ours if name == "packtok" else theirs, ignore_errors=True)
            if name == "packtok":
                numbers = (context, decoder, count)
                cost = run([sys.executable, "-c", PACKTOK, source, ours, *map(str, numbers)], cores="0")
                peak = cost.largest_rss_bytes
                if number == 0:
                    collect(ours / "train" / "a", samples, tokens, count)
            else:
                command = [python, "-c", MDS_WRITER, samples, theirs, str(context), str(decoder), "uint16"]
                cost = run(command, cores="0")
            cpu_seconds, wall_seconds = map(float, cost.output.split()[-2:])
            figures[name].append(cpu_seconds)
            walls[name].append(wall_seconds)
    check_equal(ours / "train" / "a", theirs)
    ratio = spread([b / a for a, b in zip(figures["packtok"], figures["MDSWriter"], strict=True)])
    written = sum(path.stat().st_size for path in theirs.glob("*.mds"))
    pickled = len(pickle.dumps(np.zeros(context, np.int64))) + len(pickle.dumps(np.zeros(decoder, np.int64)))
    print(
        f"{tokens} tokens, {count:,} samples, {written / 1e6:,.0f} MB, equal files: "
        f"packtok {spread(figures['packtok'])} s, MDSWriter {spread(figures['MDSWriter'])} s, {ratio}x; "
        f"wall {spread(walls['packtok'])} and {spread(walls['MDSWriter'])} s; "
        f"peak {peak / 1e6:,.0f} MB; {written / count / pickled:.3f} of the bytes of pickled int64"
    )


def write_pbin(path: Path, num_tokens: int) -> None:
    """Writes documents of random tokens."""
    path.parent.mkdir(parents=True)
    generator = np.random.default_rng(7)
    num_documents = num_tokens // DOCUMENT_TOKENS
    with path.open("wb") as file:
        file.write(struct.pack("<QI", num_documents * DOCUMENT_TOKENS * 2, 2))
        for _ in range(num_documents):
            file.write(generator.integers(0, 32_000, DOCUMENT_TOKENS, dtype=np.uint16).tobytes())
        size = DOCUMENT_TOKENS * 2
        file.write(pickle.dumps([(number * size, size) for number in range(num_documents)]))


def collect(folder: Path, path: Path, tokens: int, count: int) -> None:
    """Writes the tokens of all samples of an MDS folder into one file."""
    written = 0
    with path.open("wb") as out:
        for sample in samples_of(folder):
            # Three sizes and the domain, then the shape of each array, of 1 + 2 bytes.
            context = sample[12 + 1 :][3 : 3 + tokens]
            decoder = sample[12 + 1 + 3 + tokens :][3 : 3 + tokens]
            out.write(context + decoder)
            written += 1
    if written != count:
        raise SystemExit(f"{folder}: {written} samples, expected {count}")


def samples_of(folder: Path) -> Iterator[bytes]:
    for path in sorted(folder.glob("shard.*.mds")):
        content = path.read_bytes()
        (number,) = struct.unpack_from("<I", content)
        bounds = struct.unpack_from(f"<{number + 1}I", content, 4)
        for i in range(number):
            yield content[bounds[i] : bounds[i + 1]]


def check_equal(ours: Path, theirs: Path) -> None:
    names = sorted(path.name for path in theirs.glob("*.mds"))
    if names != sorted(path.name for path in ours.glob("*.mds")):
        raise SystemExit(f"{ours} and {theirs} have different files")
    for name in names:
        if (ours / name).read_bytes() != (theirs / name).read_bytes():
            raise SystemExit(f"{ours / name} and {theirs / name} differ")
    files = [
        [shard["raw_data"] for shard in json.loads((folder / "index.json").read_text())["shards"]]
        for folder in (ours, theirs)
    ]
    if files[0] != files[1] or set(files[0][0]["hashes"]) != {"sha256", "xxh64"}:
        raise SystemExit(f"{ours} and {theirs} have different hashes")


def measure_memory(folder: Path, megabytes: int) -> None:
    """Prints packtok's peak memory for a pbin of this size; the samples have as many tokens."""
    source, out = folder / f"memory{megabytes}", folder / "out"
    write_pbin(source / "a" / "0.pbin", megabytes * 500_000)
    count = megabytes * 500_000 // 1024
    costs: list[Cost] = []
    for kind in ("documents", "stream"):
        script = PACKTOK.replace('"documents"', repr(kind))
        costs.append(run([sys.executable, "-c", script, source, out, "512", "512", str(count)]))
        shutil.rmtree(out)
    peaks = ", ".join(f"{cost.largest_rss_bytes / 1e6:,.0f} MB" for cost in costs)
    seconds = ", ".join(f"{cost.cpu_seconds:,.1f}" for cost in costs)
    print(f"{megabytes:,} MB of tokens, documents and stream: peak {peaks}; {seconds} CPU s")
    shutil.rmtree(source)


if __name__ == "__main__":
    main()

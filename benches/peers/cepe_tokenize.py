"""Tokenizes a corpus into NPY files with packtok and with a loop that does what CEPE's script does.

    python benches/peers/cepe_tokenize.py --corpus prose.jsonl --tokenizer llama2/tokenizer.json

All get one core and take turns. The loop (`cepe_loop.py`) calls `tokenizers` for ten documents at a time and
`numpy.save`, as the script does with Transformers, whose own cost it lacks. It runs on the first
`--loop-megabytes` of the corpus, where packtok's file must have the same bytes. Startup, measured with ten
lines, is subtracted.

The bars: `tokenize --to cepe-npy` is at least 20 times as fast as the loop; uint32 takes at most 15 % longer
than `packtok pack` of the same corpus, int64 40 %.
"""

import argparse
import itertools
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cost import machine, run, spread
from programs import Command, packtok_pack

PEERS = Path(__file__).resolve().parent
TINY_LINES = 10
MEGABYTE = 1_000_000


def main() -> None:
    """Runs all repetitions and prints the rates."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True, help="JSON lines, repeated to --megabytes")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--loop-megabytes", type=int, default=25)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--core", default="0")
    parser.add_argument("--work", type=Path, help="Folder for files of several gigabytes")
    options = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        measure(options, Path(folder))


def measure(options: argparse.Namespace, folder: Path) -> None:
    """Measures all programs in turn."""
    corpora = {
        "whole": write(options.corpus, folder / "whole.jsonl", options.megabytes * MEGABYTE),
        "part": write(options.corpus, folder / "part.jsonl", options.loop_megabytes * MEGABYTE),
        "tiny": write(options.corpus, folder / "tiny.jsonl", 0),
    }
    rates: dict[str, list[float]] = {}
    for _ in range(options.repetitions):
        for name, sizes in PROGRAMS.items():
            large, startup = (
                run(command(name, corpora[size], folder, options.tokenizer), options.core).cpu_seconds
                for size in (sizes, "tiny")
            )
            rate = corpora[sizes].stat().st_size / MEGABYTE / (large - startup)
            rates.setdefault(name, []).append(rate)
    run(command("int64", corpora["part"], folder, options.tokenizer))
    content, expected = (
        path.read_bytes() for path in (folder / "int64" / "part.npy", folder / "part.loop.npy")
    )
    assert content == expected, "packtok and the loop differ"
    for name, values in rates.items():
        print(f"{name:8} {spread(values)} MB of JSON lines per second of CPU time")
    best = {name: max(values) for name, values in rates.items()}
    print(f"int64 / loop: {best['int64'] / best['loop']:.1f} (bar: 20)")
    print(f"uint32: {100 * (best['pack'] / best['uint32'] - 1):.1f} % longer than pack (bar: 15 %)")
    print(f"int64: {100 * (best['pack'] / best['int64'] - 1):.1f} % longer than pack (bar: 40 %)")
    print(json.dumps(rates))


# The corpus of each program.
PROGRAMS = {"loop": "part", "pack": "whole", "uint32": "whole", "int64": "whole"}


def command(name: str, corpus: Path, folder: Path, tokenizer: Path) -> Command:
    """Returns the command of a program, after removing its earlier output."""
    if name == "loop":
        return [sys.executable, PEERS / "cepe_loop.py", corpus, corpus.with_suffix(".loop.npy"), tokenizer]
    if name == "pack":
        command = packtok_pack([corpus], folder / "out.pbin", tokenizer, 1)
        return [*command, "--bos", "<s>", "--eod", "</s>", "--no-add-special-tokens"]
    output = folder / name
    shutil.rmtree(output, ignore_errors=True)
    program = Path(sys.executable).with_name("packtok")
    arguments = ["--to", "cepe-npy", "--dtype", name, "--num-workers", "1", "--quiet"]
    return [program, "tokenize", corpus, "-t", tokenizer, "--output-dir", output, *arguments]


def write(corpus: Path, path: Path, num_bytes: int) -> Path:
    """Repeats the lines of a corpus; writes ten of them for 0 bytes."""
    written = 0
    with path.open("wb") as file:
        for i, line in enumerate(lines(corpus)):
            if written >= num_bytes and i >= TINY_LINES:
                return path
            written += file.write(line)
    return path


def lines(corpus: Path) -> Iterator[bytes]:
    """Yields the lines of a corpus again and again."""
    for _ in itertools.count():
        with corpus.open("rb") as file:
            yield from file


if __name__ == "__main__":
    main()

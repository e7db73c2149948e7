"""Encodes corpora with packtok's engine and with its peers and compares their speed.

    python benches/peers/engines.py [--make-environment FOLDER] [--simd avx2] [--corpora code FOLDER_OF_TEXT]
    python benches/peers/engines.py --from-python --make-environment FOLDER

Run by a Python that has packtok. Each engine runs in a fresh process on one core, repeatedly and in turns
with the others. Medians count, in megabytes of text per second of CPU time: of the first pass, of its last
fifth (new documents, frequent words known), and of the best later pass (every word known). packtok, the
reference engine and fastokens are called from Rust (`engines/src/main.rs`), the others from Python in an
environment that is created in FOLDER if it does not exist. With `--from-python`, all are called from Python,
with all documents in one call (`--batch`) of `encode_batch` or similar, and return what their users get.

A corpus is one of those in the shared data folder, or any folder: each UTF-8 file in it is a document, up to
`--megabytes` of text. Exit code 1 if a bar is missed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bars import Bar
from cost import machine, run, spread
from loader_environments import environment
from programs import Command, compiled

PEERS = Path(__file__).resolve().parent
IN_RUST = ("packtok", "reference", "fastokens")
IN_PYTHON = ("gigatoken", "tiktoken", "tokenizers")
# Engines of --from-python; this script's Python runs the first one.
ALL_IN_PYTHON = ("packtok", "fastokens", "gigatoken")
# Engines for SentencePiece models; no other engine reads them.
FOR_MODELS = ("sentencepiece",)
REQUIREMENTS = (
    "fastokens==0.3.5",
    "gigatoken==0.10.0",
    "numpy==2.4.6",
    "sentencepiece==0.2.3",
    "tiktoken==0.14.0",
    "tokenizers==0.23.3",
)
# Python's package takes a minute where other engines take a second.
PASSES = {"tokenizers": 1, "tiktoken": 2}
CASES = ("first pass", "its last fifth", "warm")
# Required ratios to the best peer: for each case, those of prose, code and multi.
BARS = {
    "gpt2": ((2.2, 2.2, 2.2), (2.2, 2.2, 2.2), (1.9, 1.9, 1.9)),
    "cl100k_base": ((2.0, 2.0, 2.0), (1.9, 1.9, 1.9), (1.8, 1.7, 1.9)),
    "llama2": ((6.0, 4.0, 5.0), (6.0, 4.0, 5.0), (9.0, 9.0, 9.0)),
}
# Required ratio for the first pass with other vector instructions, and the engine to compare with.
BARS_OF_SIMD = {"avx2": (1.4, None), "portable": (1.0, "reference")}
# Called from Python, packtok must be faster than both peers in each cell.
BAR_FROM_PYTHON = 1.0
CORPORA = ("prose", "code", "multi")
LLAMA2 = PEERS.parents[2] / "shared/data/tokenizers/llama2/tokenizer.json"


@dataclass(frozen=True)
class Passes:
    """The output of one process, in MB/s for each of `CASES`; `warm` is missing after one pass."""

    rates: tuple[float | None, ...]
    load_seconds: float
    num_ids: int

    @classmethod
    def of(cls, printed: str) -> "Passes":
        report = json.loads(printed)
        text_bytes, (first, *later) = report["text_bytes"], report["seconds"]
        fifth = report["last_fifth_seconds"]
        rates = (
            text_bytes / first / 1e6,
            report["last_fifth_bytes"] / fifth / 1e6 if fifth else None,
            text_bytes / min(later) / 1e6 if later else None,
        )
        return cls(rates, report["load_seconds"], report["num_ids"])


def main() -> None:
    arguments = parse()
    print(machine(), flush=True)
    program = None if arguments.from_python else built(arguments.simd)
    bars: list[Bar] = []
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        for argument in arguments.tokenizers:
            name, tokenizer = name_and_file(argument, Path(folder))
            for corpus in arguments.corpora:
                lines = written(corpus, Path(folder), arguments.megabytes)
                measured = measure(arguments, program, tokenizer, lines)
                show(name, lines.stem, measured)
                if arguments.from_python:
                    bars += verdicts_from_python(name, lines.stem, measured)
                else:
                    bars += verdicts(name, lines.stem, measured, arguments.simd)
    print()
    for bar in bars:
        print(f"{'ok    ' if bar.holds else 'MISSED'} {bar.what}: {bar.measured}; bar: {bar.bar}")
    sys.exit(0 if all(bar.holds for bar in bars) else 1)


def built(simd: str | None) -> Path:
    """Builds the program that calls engines from Rust; a back end restricts its vector instructions."""
    folder = PEERS / "engines"
    target = folder / "target" / (simd or "best")
    flags = {} if simd is None else {"RUSTFLAGS": f'--cfg packtok_simd="{simd}"'}
    subprocess.run(
        ["cargo", "build", "--quiet", "--release", "--target-dir", target],
        cwd=folder,
        env=os.environ | flags,
        check=True,
    )
    return target / "release" / "packtok-engine-passes"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tokenizers",
        nargs="+",
        default=[*BARS, "o200k_base"],
        help="built-in names, llama2, .json or .model files",
    )
    parser.add_argument(
        "--corpora", nargs="+", default=list(CORPORA), help=f"{', '.join(CORPORA)}, or folders of text"
    )
    parser.add_argument("--megabytes", type=int, default=50, help="of text to take from a folder")
    parser.add_argument("--from-python", action="store_true", help="call all engines from Python")
    parser.add_argument(
        "--batch", type=int, default=0, help="documents to a call from Python; 0 means all (--from-python)"
    )
    parser.add_argument("--make-environment", type=Path, metavar="FOLDER", help="of the tools in Python")
    parser.add_argument("--simd", choices=list(BARS_OF_SIMD), help="packtok's vector instructions")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--core", default="1", help="the core that all are bound to")
    parser.add_argument("--work", type=Path, help="folder to write in; a temporary one")
    return parser.parse_args()


def name_and_file(argument: str, work: Path) -> tuple[str, Path]:
    """Returns the name of a tokenizer and its file, which is written to `work` if it is built in."""
    import packtok

    if argument == LLAMA2.parent.name:
        argument = str(LLAMA2)
    path = Path(argument)
    if path.suffix in (".json", ".model"):
        return path.parent.name if path.suffix == ".json" else path.name, path
    file = work / f"{argument}.json"
    file.write_bytes(packtok.Tokenizer.builtin(argument).to_json())
    return argument, file


def written(corpus: str, work: Path, megabytes: int) -> Path:
    """Returns the JSON lines of a corpus, written to `work` if they do not exist."""
    if corpus in CORPORA:
        lines = work / f"{corpus}.jsonl"
        if not lines.exists():
            run(compiled("write_corpus", corpus, lines, "0"))
        return lines
    folder = Path(corpus)
    lines = work / f"{folder.resolve().name}.jsonl"
    if lines.exists():
        return lines
    text_bytes = 0
    with lines.open("w", encoding="utf-8") as file:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            try:
                text = path.read_text(encoding="utf-8")
            except ValueError:
                continue
            text_bytes += len(text.encode())
            if text_bytes > megabytes * 1_000_000:
                break
            file.write(json.dumps({"text": text}) + "\n")
    return lines


def measure(
    arguments: argparse.Namespace, program: Path | None, tokenizer: Path, lines: Path
) -> dict[str, list[Passes]]:
    """Returns the passes of each engine for each repetition, measured in turns."""
    is_model = tokenizer.suffix == ".model"
    commands: dict[str, Command] = {}
    if program is not None:
        in_rust = IN_RUST[:2] if is_model else IN_RUST
        commands = {engine: [program, engine] for engine in in_rust}
    if arguments.make_environment is not None:
        environment(arguments.make_environment, REQUIREMENTS)
        python = arguments.make_environment / "bin/python"
        # tiktoken supports only byte-level vocabularies.
        is_of_bytes = is_model or not json.loads(tokenizer.read_bytes())["model"].get("byte_fallback")
        in_python = FOR_MODELS if is_model else IN_PYTHON
        if arguments.from_python:
            in_python = ALL_IN_PYTHON
        fitting = [engine for engine in in_python if engine != "tiktoken" or is_of_bytes]
        for engine in fitting:
            by = sys.executable if engine == "packtok" else python
            commands[engine] = [by, PEERS / "engine_passes.py", engine]
    # The tools read these variables at startup; one thread is compared.
    os.environ |= {"FASTOKENS_BPE_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    measured: dict[str, list[Passes]] = {engine: [] for engine in commands}
    for repetition in range(arguments.repetitions):
        for engine, command in commands.items():
            if engine in PASSES and repetition > 0:
                continue
            passes = str(PASSES.get(engine, 3))
            batch = [str(arguments.batch)] if arguments.from_python else []
            cost = run([*command, tokenizer, lines, passes, *batch], arguments.core)
            measured[engine].append(Passes.of(cost.output))
    return measured


def show(name: str, corpus: str, measured: dict[str, list[Passes]]) -> None:
    print(f"\n{name}, {corpus}: MB of text per CPU second, median (range)")
    print(f"{'':12}" + "".join(f"{case:>26}" for case in CASES) + f"{'load, s':>10}{'ids':>14}")
    for engine, passes in measured.items():
        cells = [rates(passes, case) for case in range(len(CASES))]
        load = statistics.median(repetition.load_seconds for repetition in passes)
        row = "".join(f"{spread(cell, '.0f') if cell else '':>26}" for cell in cells)
        print(f"{engine:12}{row}{load:10.2f}{passes[0].num_ids:14,}", flush=True)


def verdicts_from_python(name: str, corpus: str, measured: dict[str, list[Passes]]) -> Iterator[Bar]:
    """Yields bars for packtok, called from Python, against each peer."""
    for case in range(len(CASES)):
        medians = {
            engine: statistics.median(of_case)
            for engine, passes in measured.items()
            if (of_case := rates(passes, case))
        }
        ours = medians.pop("packtok", None)
        for peer, rate in medians.items():
            assert ours is not None, "packtok has the cases that its peers have"
            what = f"{name}, {corpus}, {CASES[case]}, from Python, against {peer}"
            holds = ours >= BAR_FROM_PYTHON * rate
            yield Bar(what, f"{ours / rate:.2f}", f">= {BAR_FROM_PYTHON}", holds)


def rates(repetitions: list[Passes], case: int) -> list[float]:
    """Returns the rates of all repetitions that have this case."""
    return [rate for repetition in repetitions if (rate := repetition.rates[case]) is not None]


def verdicts(name: str, corpus: str, measured: dict[str, list[Passes]], simd: str | None) -> Iterator[Bar]:
    """Yields bars for packtok against the fastest other engine in each case."""
    bars_of_cases = BARS.get(name, ()) if corpus in CORPORA else ()
    only = None
    if simd is not None and bars_of_cases:
        bar, only = BARS_OF_SIMD[simd]
        bars_of_cases = ((bar,) * len(CORPORA),)
    for case, bars in zip(range(len(CASES)), bars_of_cases, strict=False):
        medians = {
            engine: statistics.median(of_case)
            for engine, passes in measured.items()
            if (of_case := rates(passes, case))
        }
        ours = medians.pop("packtok")
        peer = only or max(medians, key=lambda engine: medians[engine])
        ratio, bar = ours / medians[peer], bars[CORPORA.index(corpus)]
        what = f"{name}, {corpus}, {CASES[case]}{f', {simd}' if simd else ''}, against {peer}"
        yield Bar(what, f"{ratio:.2f}", f">= {bar}", ratio >= bar)


if __name__ == "__main__":
    main()

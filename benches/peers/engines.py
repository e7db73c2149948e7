"""Encodes corpora with packtok's engine and with its peers and compares their speed.

    python benches/peers/engines.py --make-environment FOLDER [--corpora code FOLDER_OF_TEXT]
    python benches/peers/engines.py --make-environment FOLDER --large
    python benches/peers/engines.py [--simd avx2]

Run by a Python that has packtok. Each engine runs in a fresh process on one core, repeatedly and in turns
with the others. Medians count, in megabytes of text per second of CPU time: of the first pass, of its last
fifth (new documents, frequent words known), and of the second pass (every word known). What an engine does
at its first call counts as part of the first pass, loading the tokenizer does not.

packtok, fastokens and the reference engine are called from Rust (`engines/src/main.rs`), one document a call;
that includes growing tables. With `--make-environment`, packtok, fastokens, gigatoken, snaptokens, tiktoken
and tokenizers are also called from Python as their users call them, with all documents in one call
(`--batch`), in an environment that is created in FOLDER if it does not exist.

A corpus is one of those in the shared data folder, or any folder: each UTF-8 file in it is a document, up to
`--megabytes` of text. `--large` encodes two corpora of up to 400 MB once instead: the source of Linux, and
documentation, from packages of Debian, which are downloaded to the working folder with `apt-get download`.
Their slices of 50 MB are printed, and the steady state is the median of all slices but the first.

The bars are the worst cells that are allowed. Exit code 1 if a bar is missed.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bars import Bar, exit_code
from cost import machine, run, spread
from loader_environments import environment
from programs import Command, compiled

PEERS = Path(__file__).resolve().parent
IN_RUST = ("packtok", "reference", "fastokens")
# The first one is run by this script's Python.
IN_PYTHON = ("packtok", "fastokens", "gigatoken", "snaptokens", "tiktoken", "tokenizers")
# Engines for SentencePiece models; no other engine reads them.
FOR_MODELS = ("packtok", "sentencepiece")
REQUIREMENTS = (
    "fastokens==0.3.5",
    "gigatoken==0.10.0",
    "numpy==2.4.6",
    "sentencepiece==0.2.3",
    "snaptokens==0.2.6",
    "tiktoken==0.14.0",
    "tokenizers==0.23.3",
)
# Python's package takes a minute where other engines take a second.
PASSES = {"tokenizers": 1, "tiktoken": 2, "reference": 1}
CASES = ("first pass", "its last fifth", "second pass")
STEADY = "steady state"


@dataclass(frozen=True)
class Ratios:
    """Required ratios to the best peer."""

    first: float
    second: float
    steady: float


BARS = {
    "gpt2": Ratios(2.0, 1.5, 1.6),
    "cl100k_base": Ratios(2.0, 1.5, 1.6),
    "o200k_base": Ratios(2.0, 1.5, 1.6),
    "llama2": Ratios(5.0, 8.0, 6.0),
}
# Where packtok is restricted to other vector instructions, for all of these tokenizers but llama2.
BARS_OF_SIMD = {"avx2": Ratios(1.5, 1.2, 1.2), "portable": Ratios(1.0, 1.0, 1.0)}
# For any other tokenizer.
OTHER_BAR = Ratios(1.5, 1.0, 1.0)
CORPORA = ("prose", "code", "multi")
# Packages of Debian 12, and the folder in each that has the text.
LARGE = {
    "linux": {"linux-source-6.1": "usr/src"},
    "documentation": {
        "linux-doc-6.1": "usr/share/doc",
        "openjdk-17-doc": "usr/share/doc",
        "libboost1.81-doc": "usr/share/doc",
    },
}
LARGE_MEGABYTES = 400
# Documents to a call: with all in one call, there would be no slices.
LARGE_BATCH = 64
LLAMA2 = PEERS.parents[2] / "shared/data/tokenizers/llama2/tokenizer.json"


@dataclass(frozen=True)
class Passes:
    """The output of one process, in MB/s for each of `CASES`; a later pass or slices may be missing."""

    rates: tuple[float | None, ...]
    slices: tuple[float, ...]
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
            text_bytes / later[0] / 1e6 if later else None,
        )
        slices = tuple(done / seconds / 1e6 for done, seconds in report.get("slices", ()))
        return cls(rates, slices, report["load_seconds"], report["num_ids"])


def main() -> None:
    arguments = parse()
    print(machine(), flush=True)
    program = built(arguments.simd)
    bars: list[Bar] = []
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        corpora = LARGE if arguments.large else arguments.corpora
        for argument in arguments.tokenizers:
            name, tokenizer = name_and_file(argument, Path(folder))
            for corpus in corpora:
                lines = written(corpus, Path(folder), arguments.megabytes)
                for caller, commands in commands_of(arguments, program, tokenizer).items():
                    measured = measure(arguments, commands, tokenizer, lines)
                    show(name, lines.stem, caller, measured)
                    bars += verdicts(name, lines.stem, caller, measured, arguments.simd)
    sys.exit(exit_code(bars))


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
        default=list(BARS),
        help="built-in names, llama2, .json or .model files",
    )
    parser.add_argument(
        "--corpora", nargs="+", default=list(CORPORA), help=f"{', '.join(CORPORA)}, or folders of text"
    )
    parser.add_argument("--megabytes", type=int, default=50, help="of text to take from a folder")
    parser.add_argument("--large", action="store_true", help="one pass over each of two large corpora")
    parser.add_argument("--batch", type=int, default=0, help="documents to a call from Python; 0 means all")
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
    lines = work / f"{Path(corpus).resolve().name}.jsonl"
    if lines.exists():
        return lines
    if corpus in LARGE:
        folder, megabytes = unpacked(corpus, work), LARGE_MEGABYTES
    else:
        folder = Path(corpus)
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if corpus in LARGE:
        # The drivers of one manufacturer are a large part of Linux, and adjacent.
        random.Random(0).shuffle(paths)
    text_bytes = 0
    with lines.open("w", encoding="utf-8") as file:
        for path in paths:
            try:
                text = path.read_text(encoding="utf-8")
            except ValueError:
                continue
            text_bytes += len(text.encode())
            if text_bytes > megabytes * 1_000_000:
                break
            file.write(json.dumps({"text": text}) + "\n")
    return lines


def unpacked(corpus: str, work: Path) -> Path:
    """Returns the folder with the files of some packages of Debian, which are downloaded."""
    folder = work / corpus
    for package, texts in LARGE[corpus].items():
        of_package = folder / package
        of_package.mkdir(parents=True)
        subprocess.run(["apt-get", "-q", "download", package], cwd=of_package, check=True)
        (file,) = of_package.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", file, of_package], check=True)
        for archive in (of_package / texts).glob("*.tar.*"):
            subprocess.run(["tar", "-xf", archive, "-C", of_package], check=True)
            archive.unlink()
        file.unlink()
    return folder


def commands_of(
    arguments: argparse.Namespace, program: Path, tokenizer: Path
) -> dict[str, dict[str, Command]]:
    """Returns the command of each engine, by the language that calls it."""
    is_model = tokenizer.suffix == ".model"
    in_rust = () if arguments.large else IN_RUST[:2] if is_model else IN_RUST
    commands: dict[str, dict[str, Command]] = {"Rust": {engine: [program, engine] for engine in in_rust}}
    if arguments.make_environment is not None:
        environment(arguments.make_environment, REQUIREMENTS)
        python = arguments.make_environment / "bin/python"
        # tiktoken supports only byte-level vocabularies; a large corpus takes it and tokenizers minutes.
        is_of_bytes = is_model or not json.loads(tokenizer.read_bytes())["model"].get("byte_fallback")
        left_out = set(PASSES) if arguments.large else set() if is_of_bytes else {"tiktoken"}
        engines = [engine for engine in (FOR_MODELS if is_model else IN_PYTHON) if engine not in left_out]
        commands["Python"] = {
            engine: [sys.executable if engine == "packtok" else python, PEERS / "engine_passes.py", engine]
            for engine in engines
        }
    return {caller: of_caller for caller, of_caller in commands.items() if of_caller}


def measure(
    arguments: argparse.Namespace, commands: dict[str, Command], tokenizer: Path, lines: Path
) -> dict[str, list[Passes]]:
    """Returns the passes of each engine for each repetition, measured in turns."""
    # The tools read these variables at startup; one thread is compared.
    os.environ |= {"FASTOKENS_BPE_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    measured: dict[str, list[Passes]] = {engine: [] for engine in commands}
    for repetition in range(arguments.repetitions):
        for engine, command in commands.items():
            if engine not in measured or (engine in PASSES and repetition > 0):
                continue
            passes = "1" if arguments.large else str(PASSES.get(engine, 2))
            is_python = PEERS / "engine_passes.py" in command
            batch = [str(LARGE_BATCH if arguments.large else arguments.batch)] if is_python else []
            try:
                cost = run([*command, tokenizer, lines, passes, *batch], arguments.core)
            except RuntimeError as error:
                if engine == "packtok":
                    raise
                print(f"{engine} does not load {tokenizer}: {str(error).strip().splitlines()[-1]}")
                del measured[engine]
                continue
            measured[engine].append(Passes.of(cost.output))
    return measured


def show(name: str, corpus: str, caller: str, measured: dict[str, list[Passes]]) -> None:
    print(f"\n{name}, {corpus}, from {caller}: MB of text per CPU second, median (range)")
    print(f"{'':12}" + "".join(f"{case:>26}" for case in CASES) + f"{'load, s':>10}{'ids':>14}")
    for engine, passes in measured.items():
        cells = [rates(passes, case) for case in range(len(CASES))]
        load = statistics.median(repetition.load_seconds for repetition in passes)
        row = "".join(f"{spread(cell, '.0f') if cell else '':>26}" for cell in cells)
        print(f"{engine:12}{row}{load:10.2f}{passes[0].num_ids:14,}", flush=True)
        for repetition in passes:
            if repetition.slices:
                print(f"{'':12}slices: {' '.join(f'{rate:.0f}' for rate in repetition.slices)}", flush=True)


def rates(repetitions: list[Passes], case: int) -> list[float]:
    """Returns the rates of all repetitions that have this case."""
    return [rate for repetition in repetitions if (rate := repetition.rates[case]) is not None]


def steady(repetitions: list[Passes]) -> list[float]:
    """Returns the rates of all slices but the first of each repetition."""
    return [rate for repetition in repetitions for rate in repetition.slices[1:]]


def verdicts(
    name: str, corpus: str, caller: str, measured: dict[str, list[Passes]], simd: str | None
) -> Iterator[Bar]:
    """Yields bars for packtok against the fastest other engine in each case."""
    bar = BARS.get(name, OTHER_BAR)
    if simd is not None and name != "llama2":
        bar = BARS_OF_SIMD[simd]
    cells = {
        CASES[0]: (bar.first, {engine: rates(passes, 0) for engine, passes in measured.items()}),
        CASES[2]: (bar.second, {engine: rates(passes, 2) for engine, passes in measured.items()}),
        STEADY: (bar.steady, {engine: steady(passes) for engine, passes in measured.items()}),
    }
    for case, (ratio, of_engines) in cells.items():
        medians = {engine: statistics.median(cell) for engine, cell in of_engines.items() if cell}
        ours = medians.pop("packtok", None)
        if ours is None or not medians:
            continue
        peer = max(medians, key=lambda engine: medians[engine])
        with_simd = f", {simd}" if simd and caller == "Rust" else ""
        what = f"{name}, {corpus}, {case}, from {caller}{with_simd}, against {peer}"
        yield Bar(what, f"{ours / medians[peer]:.2f}", f">= {ratio}", ours >= ratio * medians[peer])


if __name__ == "__main__":
    main()

"""Packs large corpora once; compares that with encoding alone, gigatoken's `encode_files` and Modalities.

    python benches/peers/pack_files.py --make-environment FOLDER [--modalities-python PYTHON]

Run by a Python that has packtok. All programs run on one core, in turns, in fresh processes, and read the
same JSON lines; megabytes are those of the file. `packtok pack` writes a pbin. `encode_files` keeps the ids
in memory and writes nothing. *Encoding alone* is packtok's engine on texts that are in memory already.
Modalities packs the first `PEER_MEGABYTES` with gpt2, which take it a quarter of a minute. CPU time of
starting and of loading the tokenizer (for encoding alone, of reading the corpus too) is subtracted.

Without `--corpora`, the corpora are the large ones of `engines.py`, which are downloaded.
"""

import argparse
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bars import Bar, exit_code
from compare import Job
from cost import Cost, machine, run, spread
from engines import LARGE, LARGE_MEGABYTES, LLAMA2, REQUIREMENTS, written
from loader_environments import environment
from programs import Command, compiled, packtok_pack

TINY_LINES = 10
PEER_MEGABYTES = 25
PACK, ALONE, GIGATOKEN, MODALITIES = "packtok pack", "encoding alone", "gigatoken", "Modalities"
# Modalities needs more than a tokenizer.json.
GPT2 = LLAMA2.parents[1] / "gpt2"
GIGATOKEN_PROGRAM = """
import sys
import gigatoken
ids = gigatoken.Tokenizer(sys.argv[1]).encode_files([sys.argv[2]], parallel=False)
print(len(ids.layout.content))
"""


@dataclass
class Measured:
    """All runs of a program."""

    rates: list[float] = field(default_factory=list)
    """MB of JSON lines per CPU second."""
    peaks: list[float] = field(default_factory=list)
    """Peak memory of the largest process, in MB."""

    def add(self, megabytes: float, whole: Cost, start: Cost) -> None:
        self.rates.append(megabytes / (whole.cpu_seconds - start.cpu_seconds))
        self.peaks.append(whole.largest_rss_bytes / 1e6)


def main() -> None:
    arguments = parse()
    print(machine(), flush=True)
    environment(arguments.make_environment, (*REQUIREMENTS, "awkward"))
    # One thread, as the others have.
    os.environ |= {"RAYON_NUM_THREADS": "1"}
    bars: list[Bar] = []
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        work = Path(folder)
        for corpus in arguments.corpora:
            is_file = Path(corpus).is_file()
            lines = Path(corpus) if is_file else written(corpus, work, LARGE_MEGABYTES)
            for name in arguments.tokenizers:
                measured = measure(arguments, name, lines, work)
                show(name, lines, measured)
                bars += verdicts(f"{name}, {lines.stem}", measured)
    sys.exit(exit_code(bars))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--make-environment", type=Path, required=True, metavar="FOLDER", help="of gigatoken")
    parser.add_argument("--modalities-python", type=Path, help="python that has Modalities")
    parser.add_argument("--corpora", nargs="+", default=list(LARGE), help="JSON lines, or large corpora")
    parser.add_argument("--tokenizers", nargs="+", default=["gpt2", "cl100k_base"], help="built-in names")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--core", default="1", help="the core that all are bound to")
    parser.add_argument("--work", type=Path, help="folder to write in; a temporary one")
    return parser.parse_args()


def measure(arguments: argparse.Namespace, name: str, lines: Path, work: Path) -> dict[str, Measured]:
    """Runs all programs in turns."""
    import packtok

    tokenizer, pbin = work / "tokenizer.json", work / "packed.pbin"
    tokenizer.write_bytes(packtok.Tokenizer.builtin(name).to_json())
    tiny = first_lines(lines, work / "tiny.jsonl", max_lines=TINY_LINES)
    python = arguments.make_environment / "bin/python"

    def of_gigatoken(path: Path) -> Command:
        return [python, "-c", GIGATOKEN_PROGRAM, tokenizer, path]

    def alone(repetitions: int) -> Command:
        return compiled("encode_only", name, lines, str(repetitions))

    run(alone(0))
    measured = {program: Measured() for program in (PACK, ALONE, GIGATOKEN)}
    megabytes = lines.stat().st_size / 1e6
    for _ in range(arguments.repetitions):
        start = run(packtok_pack([tiny], pbin, tokenizer, 1), arguments.core)
        measured[PACK].add(megabytes, run(packtok_pack([lines], pbin, tokenizer, 1), arguments.core), start)
        start = run(alone(0), arguments.core)
        measured[ALONE].add(megabytes, run(alone(1), arguments.core), start)
        start = run(of_gigatoken(tiny), arguments.core)
        whole = run(of_gigatoken(lines), arguments.core)
        measured[GIGATOKEN].add(megabytes, whole, start)
    reader = packtok.PbinReader(pbin)
    # Each document has an EOD.
    num_ids = reader.num_tokens - len(reader)
    if int(whole.output) != num_ids:
        print(f"gigatoken makes {int(whole.output):,} ids, packtok {num_ids:,}")
    if arguments.modalities_python is not None and name == GPT2.name:
        part = first_lines(lines, work / "part.jsonl", max_bytes=PEER_MEGABYTES * 1_000_000)
        measured[MODALITIES] = of_modalities(arguments, tiny, part, work)
    return measured


def of_modalities(arguments: argparse.Namespace, tiny: Path, part: Path, work: Path) -> Measured:
    """Packs a part of the corpus with Modalities and GPT-2's tokenizer."""
    jobs = [Job(path, work, GPT2) for path in (tiny, part)]
    for job in jobs:
        run(job.modalities(arguments.modalities_python, "index"), arguments.core)
    measured = Measured()
    for _ in range(arguments.repetitions):
        start, whole = (
            run(job.modalities(arguments.modalities_python, "pack"), arguments.core) for job in jobs
        )
        measured.add(part.stat().st_size / 1e6, whole, start)
    return measured


def first_lines(lines: Path, path: Path, *, max_lines: int = 10**9, max_bytes: int = 10**12) -> Path:
    """Writes the first lines of a corpus to `path`."""
    num_bytes = 0
    with lines.open("rb") as source, path.open("wb") as file:
        for number, line in enumerate(source):
            num_bytes += len(line)
            if number >= max_lines or num_bytes > max_bytes:
                break
            file.write(line)
    return path


def show(name: str, lines: Path, measured: dict[str, Measured]) -> None:
    print(f"\n{name}, {lines.stem}, {lines.stat().st_size / 1e6:.0f} MB of JSON lines, medians (range)")
    print(f"{'':16}{'MB per CPU second':>24}{'peak memory, MB':>24}")
    for program, of_program in measured.items():
        print(
            f"{program:16}{spread(of_program.rates, '.1f'):>24}{spread(of_program.peaks, '.0f'):>24}",
            flush=True,
        )


def verdicts(what: str, measured: dict[str, Measured]) -> list[Bar]:
    """Returns what is required of `packtok pack`."""
    pack = measured[PACK]
    bars = []
    for program, least in ((ALONE, 0.8), (GIGATOKEN, 1.5), (MODALITIES, 100.0)):
        if program in measured:
            ratio = statistics.median(pack.rates) / statistics.median(measured[program].rates)
            bars.append(Bar(f"{what}: pack / {program}", f"{ratio:.2f}", f">= {least}", ratio >= least))
    ratio = statistics.median(pack.peaks) / statistics.median(measured[GIGATOKEN].peaks)
    bars.append(Bar(f"{what}: memory / {GIGATOKEN}", f"{ratio:.3f}", "<= 0.25", ratio <= 0.25))
    return bars


if __name__ == "__main__":
    main()

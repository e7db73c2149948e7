"""Serves one corpus with packtok and with its peers and compares what items and batches cost.

    python benches/peers/loaders.py --make-environments FOLDER

To be run by a Python that has packtok and torch. Each tool runs in an environment of its own (made in FOLDER if
it is not there; `loader_environments.py` has the versions), in one process bound to one core, on files that it
wrote itself from the same ids. It first shows items, which must be stretches of the corpus; then all tools of a
group take turns, each serving shuffled items for a moment, over and over. Medians count. What each tool does is
in `loader_TOOL.py`; what a turn is, in `loader_worker.py`. Exit code 1 if a bar is missed.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bars import Bar
from cost import machine, run, spread
from loader_check import Stream
from loader_environments import REQUIREMENTS, make_environments, python_of
from loader_pbin import boundaries, tokens
from loader_server import Server, Unusable
from programs import Command, compiled, packtok_pack

from packtok.manifest import write_manifest

TOKENIZER = "gpt2"
OURS = ("packtok", "memcpy", "by_hand")
ITEMS_SHOWN = [0, 1, 5, 77, 1000, 2345, 4000]
ROWS_SHOWN = list(range(0, 64 * 50, 50))
MANY_FILES = 10_000
LINES_PER_FILE = 30
TIMES_OPENED = 5

BLOCKS = "blocks"
DOCUMENTS = "documents"
BATCHES = "batches"
BOUNDED = "with boundaries"
FILES = (
    "blocks of one file",
    "blocks of many files",
    "blocks across many files",
    "batches of one file",
    "batches of many files",
)
TITLES = {
    BLOCKS: "single items of 2049 tokens (2048 where a tool has no overlap)",
    DOCUMENTS: "single items that are documents",
    BATCHES: "batches of 64 x 2048, input_ids and labels, int64",
    BOUNDED: "the same with position_ids and boundaries of documents",
}
# What an item is: a view of the file, or memory of its own.
COPIES = {"modalities": "int32 copy", "litdata": "int32 copy"}
GIVES = {"megatron": "position_ids", "olmo": "cu_seqlens", "datatrove": "position_ids"}


@dataclass(frozen=True)
class Rates:
    """What one tool did in each turn of a case."""

    tool: str
    case: str
    open_seconds: float
    per_cpu_second: list[float] = field(default_factory=list)
    per_second: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Items per CPU second."""
        return statistics.median(self.per_cpu_second)


def main() -> None:
    arguments = parse()
    if arguments.make_environments:
        make_environments(arguments.make_environments, arguments.peers)
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        bench = Bench(Path(folder), arguments)
        with bench:
            groups = [bench.measured(case) for case in arguments.groups]
            rates = {(one.tool, one.case): one for group in groups for one in group}
            bars = list(verdicts(rates))
        if arguments.json:
            print(json.dumps(as_json(bench, rates, bars), indent=1))
        else:
            show(bench, groups, bars, arguments)
    sys.exit(0 if all(bar.holds for bar in bars) else 1)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    groups, peers = [*TITLES, "files"], list(REQUIREMENTS)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--make-environments", type=Path, metavar="FOLDER", help="make those that are missing")
    where.add_argument("--environments", type=Path, metavar="FOLDER", help="of them, FOLDER/PEER/bin/python")
    parser.add_argument("--peers", nargs="*", choices=peers, default=peers, help="some of: %(choices)s")
    parser.add_argument("--groups", nargs="+", choices=groups, default=groups, help="some of: %(choices)s")
    parser.add_argument("--corpus", default="prose", help="prose, code, multi or a pbin; %(default)s")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.2, help="of a turn; %(default)s")
    parser.add_argument("--core", default="0", help="the core that all are bound to")
    parser.add_argument("--work", type=Path, help="folder to write in; a temporary one")
    parser.add_argument("--json", action="store_true", help="print the figures of each turn")
    return parser.parse_args()


class Bench:
    """The corpus, a server for each tool, and what was found out about those that could not be used."""

    def __init__(self, work: Path, arguments: argparse.Namespace) -> None:
        self._work = work
        self._arguments = arguments
        self._environments: Path = arguments.make_environments or arguments.environments
        self._servers: dict[str, Server] = {}
        self.unusable: dict[str, str] = {}
        self.import_seconds: dict[str, float] = {}

    def __enter__(self) -> "Bench":
        self._corpus = packed(self._arguments.corpus, self._work / "corpus.pbin")
        self._stream = Stream(tokens(self._corpus), boundaries(self._corpus))
        for tool in [*OURS, *self._arguments.peers]:
            try:
                self._start(tool)
            except (OSError, RuntimeError) as error:
                self.unusable[tool] = str(error)
        return self

    def __exit__(self, *exception: object) -> None:
        for server in self._servers.values():
            server.stop()

    def _start(self, tool: str) -> None:
        folder = self._work / tool
        folder.mkdir()
        python = Path(sys.executable) if tool in OURS else python_of(self._environments, tool)
        worker: Command = [python, Path(__file__).with_name("loader_worker.py"), tool]
        if tool not in OURS and tool != "modalities":
            run([*worker, "prepare", self._corpus, folder])
        self._servers[tool] = Server([*worker, "serve", self._corpus, folder], self._arguments.core)
        self.import_seconds[tool] = self._servers[tool].import_seconds

    def measured(self, group: str) -> list[Rates]:
        """All tools that have the cases of a group, in turns."""
        if group == "files":
            many_files(self._work)
        cases = FILES if group == "files" else (group,)
        if group == BATCHES:
            cases = (BATCHES, "memcpy")
        found = []
        for tool, server in self._servers.items():
            for case in cases:
                if case in server.cases:
                    found += self._opened(tool, case, check=group != "files" and case != "memcpy")
        for _ in range(self._arguments.turns):
            for one in found:
                cost = self._servers[one.tool].ask({"run": one.case, "seconds": self._arguments.seconds})
                one.per_cpu_second.append(cost["items"] / cost["cpu_seconds"])
                one.per_second.append(cost["items"] / cost["wall_seconds"])
        return found

    def _opened(self, tool: str, case: str, *, check: bool) -> list[Rates]:
        """The case of a tool, open, warm and seen to serve the corpus; none if it cannot be used."""
        server = self._servers[tool]
        try:
            seconds = [server.ask({"open": case})["open_seconds"] for _ in range(TIMES_OPENED)]
            if check:
                self._check(server, case)
            server.ask({"run": case, "seconds": self._arguments.seconds})
        except (Unusable, ValueError) as error:
            self.unusable[f"{tool}, {case}"] = str(error)
            return []
        return [Rates(tool, case, statistics.median(seconds))]

    def _check(self, server: Server, case: str) -> None:
        to = self._work / "shown.npz"
        single = case in (BLOCKS, DOCUMENTS)
        server.ask({"show": case, "items": ITEMS_SHOWN if single else ROWS_SHOWN, "to": str(to)})
        with np.load(to) as file:
            shown = dict(file)
        if single:
            for row in shown.values():
                self._stream.check_view(row)
            return
        documents = shown.pop("documents", None)
        stream = self._stream if documents is None else self._stream.reordered(documents)
        stream.check_batch(shown)


def packed(corpus: str, path: Path) -> Path:
    """The corpus as a pbin: a file as it is, one of the benches' corpora packed."""
    if Path(corpus).is_file():
        return Path(corpus).resolve()
    lines = path.with_suffix(".jsonl")
    run(compiled("write_corpus", corpus, lines, "0"))
    run(packtok_pack([lines], path, TOKENIZER, 1))
    lines.unlink()
    return path


def many_files(work: Path) -> None:
    """A small pbin ten thousand times with a manifest, and all of it in one file."""
    lines, one = work / "small.jsonl", work / "small.pbin"
    run(compiled("write_corpus", "prose", lines, "0"))
    with lines.open("rb") as file:
        some = b"".join(line for line, _ in zip(file, range(LINES_PER_FILE), strict=False))
    lines.write_bytes(some)
    run(packtok_pack([lines], one, TOKENIZER, 1))
    folder = work / "many"
    folder.mkdir()
    for i in range(MANY_FILES):
        shutil.copyfile(one, folder / f"{i}.pbin")
    write_manifest([folder], work / "many.manifest")
    packtok = Path(sys.executable).with_name("packtok")
    run([packtok, "merge", folder, "--output", work / "one.pbin"])


def verdicts(rates: dict[tuple[str, str], Rates]) -> Iterator[Bar]:
    """The bars that packtok has set itself, those of them that were measured."""
    for case in (BLOCKS, DOCUMENTS):
        yield from against_peers(rates, case, 3)
        if ("modalities", case) in rates:
            yield at_least(f"{case} against Modalities", rates, ("packtok", case), ("modalities", case), 10)
    yield from against_peers(rates, BATCHES, 5)
    if ("packtok", BATCHES) in rates:
        yield at_least("batches against memcpy", rates, ("packtok", BATCHES), ("memcpy", "memcpy"), 0.5)
    yield from against_peers(rates, BOUNDED, 20)
    if ("packtok", BATCHES) in rates and ("packtok", BOUNDED) in rates:
        yield at_least("boundaries against none", rates, ("packtok", BOUNDED), ("packtok", BATCHES), 0.6)
    if ("packtok", FILES[0]) in rates:
        for many, one in ((FILES[1], FILES[0]), (FILES[4], FILES[3])):
            yield at_least(f"{many} against one", rates, ("packtok", many), ("packtok", one), 0.95)
        milliseconds = max(1000 * rates["packtok", case].open_seconds for case in (FILES[1], FILES[4]))
        holds = milliseconds <= 50
        yield Bar(f"opening {MANY_FILES:,} files by a manifest", f"{milliseconds:.1f} ms", "<= 50 ms", holds)


def against_peers(rates: dict[tuple[str, str], Rates], case: str, bar: float) -> Iterator[Bar]:
    """packtok against the fastest of the tools; what is written by hand is shown, but is no tool."""
    peers = [one for one in rates.values() if one.case == case and one.tool not in OURS]
    if peers and ("packtok", case) in rates:
        fastest = max(peers, key=lambda one: one.median).tool
        what = f"{case} against the fastest peer, {fastest}"
        yield at_least(what, rates, ("packtok", case), (fastest, case), bar)


def at_least(
    what: str, rates: dict[tuple[str, str], Rates], one: tuple[str, str], other: tuple[str, str], bar: float
) -> Bar:
    """How many times as fast the one is as the other, turn by turn."""
    pairs = zip(rates[one].per_cpu_second, rates[other].per_cpu_second, strict=True)
    ratios = [ours / theirs for ours, theirs in pairs]
    form, limit = (".1f", f">= {bar:g}x") if bar > 1 else (".0%", f">= {bar:.0%}")
    return Bar(what, spread(ratios, form), limit, statistics.median(ratios) >= bar)


def show(bench: Bench, groups: list[list[Rates]], bars: list[Bar], arguments: argparse.Namespace) -> None:
    print(machine())
    print(
        f"{arguments.corpus}, core {arguments.core}, {arguments.turns} turns of {arguments.seconds} s, medians\n"
    )
    for group, rates in zip(arguments.groups, groups, strict=True):
        print(TITLES.get(group, f"{MANY_FILES:,} files and one file of the same tokens"))
        print(f"  {'':36} {'items per CPU second':>38} {'per second':>12} {'us each':>9} {'open, ms':>9}")
        for one in sorted(rates, key=lambda one: -one.median):
            notes = {BLOCKS: COPIES, DOCUMENTS: COPIES, BOUNDED: GIVES}.get(group, {}).get(one.tool)
            name = one.case if group == "files" else one.tool + (f" ({notes})" if notes else "")
            print(
                f"  {name:36} {spread(one.per_cpu_second, ',.0f'):>38} {statistics.median(one.per_second):12,.0f}"
                f" {1e6 / one.median:9.3f} {1000 * one.open_seconds:9.2f}"
            )
        print()
    imports = ", ".join(f"{tool} {seconds:.1f}" for tool, seconds in bench.import_seconds.items())
    print(f"seconds to import: {imports}")
    for what, why in bench.unusable.items():
        print(f"not measured: {what}: {why}")
    for bar in bars:
        print(f"{'ok' if bar.holds else 'MISSED':6} {bar.what}: {bar.measured}; bar: {bar.bar}")


def as_json(bench: Bench, rates: dict[tuple[str, str], Rates], bars: list[Bar]) -> dict[str, object]:
    return {
        "machine": machine(),
        "rates": [asdict(one) for one in rates.values()],
        "bars": [asdict(bar) for bar in bars],
        "import_seconds": bench.import_seconds,
        "not_measured": bench.unusable,
    }


if __name__ == "__main__":
    main()

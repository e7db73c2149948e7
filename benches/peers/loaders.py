"""Serves one corpus with packtok and with its peers and compares the cost of items and batches.

    python benches/peers/loaders.py --make-environments FOLDER

Run by a Python that has packtok and torch. Each tool runs in its own environment (created in FOLDER if it
does not exist; `loader_environments.py` has the versions), in one process pinned to one core, on files that
it wrote itself from the same ids. It first shows items, which must be parts of the corpus. Then the tools of
a group take turns repeatedly, each serving shuffled items for a moment. Medians count. `loader_TOOL.py`
defines what each tool does, and `loader_worker.py` what a turn is. Exit code 1 if a bar is missed.
"""

import argparse
import json
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
from loader_corpus import MANY_FILES, many_files, packed
from loader_environments import REQUIREMENTS, make_environments, python_of
from loader_pbin import boundaries, tokens
from loader_server import Server, ToolError
from programs import Command

OURS = ("packtok", "by_hand")
# A batch with items from all parts of a corpus of some thousand items.
SHOWN = list(range(0, 64 * 50, 50))
TIMES_OPENED = 5

BLOCKS = "blocks"
DOCUMENTS = "documents"
BATCHES = "batches"
MEMCPY = "memcpy"
BOUNDED = "with boundaries"
MANY = "files"
# For packtok, `BLOCKS` and `DOCUMENTS` are views with ``zero_copy=True``; these cases are its default items.
DEFAULTS = {BLOCKS: "blocks as copies", DOCUMENTS: "documents as copies"}
# The cases of the groups that have several.
CASES = {
    **{case: (case, copies) for case, copies in DEFAULTS.items()},
    BATCHES: (BATCHES, MEMCPY),
    MANY: (
        "blocks of one file",
        "blocks of many files",
        "blocks across many files",
        "batches of one file",
        "batches of many files",
    ),
}
TITLES = {
    BLOCKS: "single items of 2049 tokens (2048 where a tool has no overlap)",
    DOCUMENTS: "single items that are documents",
    BATCHES: "batches of 64 x 2048, input_ids and labels, int64",
    BOUNDED: "the same with position_ids and boundaries of documents",
    MANY: f"{MANY_FILES:,} files opened by a manifest, and one file of the same tokens",
}
# Type of an item: a view of the file, or a copy.
COPIES = {"packtok": "zero_copy=True", "modalities": "int32 copy", "litdata": "int32 copy"}
GIVES = {"megatron": "position_ids", "olmo": "cu_seqlens", "datatrove": "position_ids"}


@dataclass(frozen=True)
class Rates:
    """Measurements of one tool in each turn of a case."""

    tool: str
    case: str
    open_seconds: float
    per_cpu_second: list[float] = field(default_factory=list)
    per_second: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Returns items per CPU second."""
        return statistics.median(self.per_cpu_second)


def main() -> None:
    arguments = parse()
    if arguments.make_environments:
        make_environments(arguments.make_environments, arguments.peers)
    rates: dict[tuple[str, str], Rates] = {}
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder, Bench(Path(folder), arguments) as bench:
        if not arguments.json:
            show_machine(bench, arguments)
        for group in arguments.groups:
            measured = bench.measured(group)
            rates.update({(rate.tool, rate.case): rate for rate in measured})
            if not arguments.json:
                show_rates(group, measured)
    bars = list(verdicts(rates))
    if arguments.json:
        print(json.dumps(as_json(bench, rates, bars), indent=1))
    else:
        show_verdicts(bench, bars)
    sys.exit(0 if all(bar.holds for bar in bars) else 1)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    groups, peers = list(TITLES), list(REQUIREMENTS)
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
    """The corpus, a server for each tool, and the reasons why some tools could not be used."""

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
        """Returns the rates of all tools that have the cases of a group, measured in turns."""
        stream = self._stream
        if group == MANY:
            path = many_files(self._work)
            stream = Stream(tokens(path), boundaries(path))
        opened = []
        for tool, server in self._servers.items():
            for case in CASES.get(group, (group,)):
                if case in server.cases:
                    opened += self._opened(tool, case, stream)
        for _ in range(self._arguments.turns):
            self._take_turns(opened)
        return opened

    def _take_turns(self, cases: list[Rates]) -> None:
        for case in cases:
            cost = self._servers[case.tool].ask({"run": case.case, "seconds": self._arguments.seconds})
            case.per_cpu_second.append(cost["items"] / cost["cpu_seconds"])
            case.per_second.append(cost["items"] / cost["wall_seconds"])

    def _opened(self, tool: str, case: str, stream: Stream) -> list[Rates]:
        """Opens, checks and warms up the case of a tool; empty if the tool cannot be used."""
        server = self._servers[tool]
        try:
            seconds = [server.ask({"open": case})["open_seconds"] for _ in range(TIMES_OPENED)]
            self._check(server, case, stream)
            server.ask({"run": case, "seconds": self._arguments.seconds})
        except (ToolError, ValueError) as error:
            self.unusable[f"{tool}, {case}"] = str(error)
            return []
        return [Rates(tool, case, statistics.median(seconds))]

    def _check(self, server: Server, case: str, stream: Stream) -> None:
        to = self._work / "shown.npz"
        server.ask({"show": case, "items": SHOWN, "to": str(to)})
        with np.load(to) as file:
            batch = dict(file)
        if "input_ids" not in batch:
            for row in batch.values():
                stream.check_view(row)
            return
        documents = batch.pop("documents", None)
        (stream if documents is None else stream.reordered(documents)).check_batch(batch)


def verdicts(rates: dict[tuple[str, str], Rates]) -> Iterator[Bar]:
    """Yields packtok's bars that were measured."""
    for case in (BLOCKS, DOCUMENTS):
        yield from against_peers(rates, case, 3)
        if ("modalities", case) in rates:
            what = f"{case}, views against Modalities' copies"
            yield at_least(what, rates, ("packtok", case), ("modalities", case), 10)
            what = f"{case}, packtok's copies against Modalities' copies"
            yield at_least(what, rates, ("packtok", DEFAULTS[case]), ("modalities", case), 1)
    yield from against_peers(rates, BATCHES, 5)
    if ("packtok", BATCHES) in rates:
        yield at_least("batches against memcpy", rates, ("packtok", BATCHES), ("packtok", MEMCPY), 0.5)
    yield from against_peers(rates, BOUNDED, 20)
    if ("packtok", BATCHES) in rates and ("packtok", BOUNDED) in rates:
        yield at_least("boundaries against none", rates, ("packtok", BOUNDED), ("packtok", BATCHES), 0.6)
    yield from many_against_one(rates)


def many_against_one(rates: dict[tuple[str, str], Rates]) -> Iterator[Bar]:
    """Yields bars for ten thousand files, which must open and serve as fast as one file, to within 5 %."""
    opened = []
    for what in ("blocks", "batches"):
        many, single = ("packtok", f"{what} of many files"), ("packtok", f"{what} of one file")
        if many in rates:
            yield at_least(f"{what} of many files against one", rates, many, single, 0.95)
            opened.append(1000 * rates[many].open_seconds)
    if opened:
        what = f"opening {MANY_FILES:,} files by a manifest"
        yield Bar(what, f"{max(opened):.1f} ms", "<= 50 ms", max(opened) <= 50)


def against_peers(rates: dict[tuple[str, str], Rates], case: str, bar: float) -> Iterator[Bar]:
    """Yields packtok against the fastest tool; self-written code is shown, but does not count as a tool."""
    peers = [peer for peer in rates.values() if peer.case == case and peer.tool not in OURS]
    if peers and ("packtok", case) in rates:
        fastest = max(peers, key=lambda peer: peer.median).tool
        what = f"{case} against the fastest peer, {fastest}"
        yield at_least(what, rates, ("packtok", case), (fastest, case), bar)


def at_least(
    what: str,
    rates: dict[tuple[str, str], Rates],
    first: tuple[str, str],
    second: tuple[str, str],
    bar: float,
) -> Bar:
    """Returns the ratio of two speeds, turn by turn."""
    pairs = zip(rates[first].per_cpu_second, rates[second].per_cpu_second, strict=True)
    ratios = [ours / theirs for ours, theirs in pairs]
    form, limit = (".1f", f">= {bar:g}x") if bar > 1 else (".0%", f">= {bar:.0%}")
    return Bar(what, spread(ratios, form), limit, statistics.median(ratios) >= bar)


def show_machine(bench: Bench, arguments: argparse.Namespace) -> None:
    turns = f"{arguments.turns} turns of {arguments.seconds} s"
    print(machine())
    print(f"{arguments.corpus}, core {arguments.core}, {turns}, medians (range)")
    imports = ", ".join(f"{tool} {seconds:.1f}" for tool, seconds in bench.import_seconds.items())
    print(f"seconds to import: {imports}")


def show_rates(group: str, rates: list[Rates]) -> None:
    print(f"\n{TITLES[group]}")
    print(f"  {'':36} {'items per CPU second':>38} {'per second':>12} {'us each':>9} {'open, ms':>9}")
    for row in sorted(rates, key=lambda row: -row.median):
        notes = {BLOCKS: COPIES, DOCUMENTS: COPIES, BOUNDED: GIVES}.get(row.case, {}).get(row.tool)
        name = (row.tool if row.case == group else row.case) + (f" ({notes})" if notes else "")
        rate, wall = spread(row.per_cpu_second, ",.0f"), statistics.median(row.per_second)
        each, opened = 1e6 / row.median, 1000 * row.open_seconds
        print(f"  {name:36} {rate:>38} {wall:12,.0f} {each:9.3f} {opened:9.2f}", flush=True)


def show_verdicts(bench: Bench, bars: list[Bar]) -> None:
    print()
    for what, why in bench.unusable.items():
        print(f"not measured: {what}: {why}")
    for bar in bars:
        print(f"{'ok' if bar.holds else 'MISSED':6} {bar.what}: {bar.measured}; bar: {bar.bar}")


def as_json(bench: Bench, rates: dict[tuple[str, str], Rates], bars: list[Bar]) -> dict[str, object]:
    return {
        "machine": machine(),
        "rates": [asdict(rate) for rate in rates.values()],
        "bars": [asdict(bar) for bar in bars],
        "import_seconds": bench.import_seconds,
        "not_measured": bench.unusable,
    }


if __name__ == "__main__":
    main()

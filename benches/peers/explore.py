"""Measures the index of described datasets and the search with facets, and compares it with datasette.

    python benches/peers/explore.py FOLDER [--datasets 10000] [--datasette ENV/bin/datasette] [--server]

FOLDER receives the described datasets, in a folder for each number of them, which are made once. Figures:
building the index, building it again when nothing changed, and searches. With ``--server`` they are requests
to `packtok explore`, which answers with a page, otherwise calls of `Index.find`. With ``--datasette`` each
search takes turns with the same one by HTTP in datasette (`pip install datasette==0.65.5` in an environment
of its own), which has the same rows, the facets as indexed columns, and the same full-text index; totals and
counts must be equal. It answers with JSON, and with ``--server`` also with its page, which the bar is on.

Everything runs on the core that `taskset` gives. Each search runs three times, apart from each other, and the
99th percentile is that of all times; in brackets, that of the median time of each search, which excludes what
other programs on the machine cause. CPU time is that of the server, as the kernel's scheduler counts it; bars
are on the time that a client waits. Exit code 1 if a bar is missed.
"""

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cost import machine
from explore_folders import broad_queries, make_folders, queries, write_rows

from packtok.catalog.facets import FACETS
from packtok.catalog.index import INDEX_NAME, Index, build_index
from packtok.catalog.search import Query

REPEATS = 3
# Bars: the number of datasets, and milliseconds at the 99th percentile; only the first is compared.
BARS = {10_000: 20.0, 100_000: 60.0}
BUILD_SECONDS, UNCHANGED_SECONDS, OF_DATASETTE = 5.0, 0.5, 1 / 5
SETTINGS = {"facet_time_limit_ms": 60_000, "sql_time_limit_ms": 60_000, "default_facet_size": 50}


@dataclass
class Times:
    """Milliseconds of each repetition of each search."""

    of: list[list[float]] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    """Milliseconds of CPU time of the server for each request."""

    def summary(self) -> str:
        """Returns median and 99th percentile."""
        every = [milliseconds for times in self.of for milliseconds in times]
        text = (
            f"median {statistics.median(every):.2f} ms, p99 {self.p99():.2f} ms ({self.p99_of_medians():.2f})"
        )
        if not any(self.cpu):
            return text
        return f"{text}; CPU median {statistics.median(self.cpu):.2f}, p99 {_percentile(self.cpu):.2f} ms"

    def p99(self) -> float:
        """Returns the 99th percentile of all times."""
        return _percentile([milliseconds for times in self.of for milliseconds in times])

    def p99_of_medians(self) -> float:
        """Returns the 99th percentile of the median time of each search."""
        return _percentile([statistics.median(times) for times in self.of])


def _percentile(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, len(times) * 99 // 100)]


class Server:
    """A program that serves HTTP, and one connection to it."""

    def __init__(self, command: list[str | Path], port: int | None) -> None:
        output = subprocess.PIPE if port is None else subprocess.DEVNULL
        self._process = subprocess.Popen(
            [str(word) for word in command], stdout=output, stderr=subprocess.DEVNULL, text=True
        )
        if self._process.stdout is not None:
            port = urllib.parse.urlsplit(self._process.stdout.readline().strip()).port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for _ in range(600):
            try:
                self._connection.connect()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"{command[0]} does not answer")

    def get(self, target: str) -> bytes:
        """Returns the body of the answer, which must be 200."""
        self._connection.request("GET", target)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{target}: {answer.status} {body[:300]!r}")
        return body

    def cpu_ms(self) -> float:
        """Returns the CPU time of all threads of the program."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e6

    def close(self) -> None:
        """Ends the program."""
        self._connection.close()
        self._process.terminate()
        self._process.wait()


def datasette_target(query: Query, suffix: str = ".json") -> str:
    """Returns the request to datasette for a search; for its page without ``suffix``."""
    wanted: list[tuple[str, str]] = [("_size", str(query.limit)), ("_nosuggest", "1"), ("_facet_size", "50")]
    words = " ".join(f'"{word}"*' for word in query.words.split())
    wanted += [("_search", words), ("_searchmode", "raw")] if words else []
    for facet in FACETS:
        wanted.append(("_facet", f"{facet}_facet"))
        wanted += [(f"{facet}_facet__exact", value) for value in getattr(query, facet)]
    return f"/rows/dataset{suffix}?{urllib.parse.urlencode(wanted)}"


def page_target(query: Query) -> str:
    """Returns the request to `packtok explore` for a search."""
    wanted = [("q", query.words), ("sort", query.sort)]
    wanted += [(facet, value) for facet in FACETS for value in getattr(query, facet)]
    return f"/?{urllib.parse.urlencode(wanted)}"


def timed(work: Callable[[], Any]) -> float:
    """Returns the milliseconds that some work takes."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3


def check_equal(index: Index, datasette: Server, searches: list[Query]) -> None:
    """Compares totals, and the counts of facets without a choice; datasette restricts the counts of the
    others.
    """
    for query in searches:
        result = index.find(query)
        answer = json.loads(datasette.get(datasette_target(query)))
        assert answer["filtered_table_rows_count"] == result.total, query
        for facet in FACETS:
            if not getattr(query, facet):
                results = answer["facet_results"][f"{facet}_facet"]["results"]
                assert {value["value"]: value["count"] for value in results} == dict(result.facets[facet]), (
                    query
                )


Case = tuple[Callable[[Query], Any], Server | None]


def run_searches(cases: dict[str, Case], searches: list[Query]) -> dict[str, Times]:
    """Returns the times of each case; they take turns."""
    times = {case: Times([[] for _ in searches]) for case in cases}
    for _ in range(REPEATS):
        for i, query in enumerate(searches):
            for case, (work, server) in cases.items():
                before = 0.0 if server is None else server.cpu_ms()
                times[case].of[i].append(timed(lambda work=work, query=query: work(query)))
                times[case].cpu.append(0.0 if server is None else server.cpu_ms() - before)
    return times


def measure_build(base: Path, num_datasets: int) -> list[bool]:
    """Prints the times to build the index, and returns which bars are met."""
    (base / INDEX_NAME).unlink(missing_ok=True)
    first = timed(lambda: build_index(base)) / 1e3
    again = statistics.median(timed(lambda: build_index(base)) / 1e3 for _ in range(3))
    size = (base / INDEX_NAME).stat().st_size / 1e6
    print(f"index of {num_datasets:,} datasets: {first:.2f} s, {size:.1f} MB; nothing changed: {again:.3f} s")
    return [first <= BUILD_SECONDS, again <= UNCHANGED_SECONDS] if num_datasets == min(BARS) else []


def measure_searches(arguments: argparse.Namespace, base: Path) -> list[bool]:
    """Prints the times of searches, and returns which bars are met."""
    met = []
    with ExitStack() as stack:
        index = stack.enter_context(closing(Index(base / INDEX_NAME)))
        values = {
            facet: [value for value, _ in counts] for facet, counts in index.find(Query()).facets.items()
        }
        cases: dict[str, Case] = {"packtok": (index.find, None)}
        if arguments.server:
            command = [sys.executable, "-m", "packtok", "explore", "--base-dir", base, "--port", "0"]
            page = stack.enter_context(closing(Server(command, None)))
            cases = {"packtok explore": (lambda query: page.get(page_target(query)), page)}
        searches = list(queries(arguments.queries, values))
        if arguments.datasette:
            rows = base.parent / f"rows-{base.name}" / "rows.db"
            rows.parent.mkdir(exist_ok=True)
            write_rows(index.entries(), rows)
            settings = [word for name, value in SETTINGS.items() for word in ("--setting", name, value)]
            command = [arguments.datasette, "serve", "-i", rows, "--port", arguments.port, *settings]
            datasette = stack.enter_context(closing(Server(command, arguments.port)))
            check_equal(index, datasette, searches[: arguments.checked])
            cases["datasette"] = (lambda query: datasette.get(datasette_target(query)), datasette)
            if arguments.server:
                work = lambda query: datasette.get(datasette_target(query, ""))  # noqa: E731
                cases["datasette's page"] = (work, datasette)
        mix = run_searches(cases, searches)
        own = next(iter(cases))
        broad = run_searches({own: cases[own]}, broad_queries())[own]
        for case, times in mix.items():
            print(f"  {case}, {len(searches)} searches: {times.summary()}")
        print(f"  {own}, broad words and none, every sort: {broad.summary()}")
        if (bar := BARS.get(arguments.datasets)) is not None:
            met += [times.p99() <= bar for times in (mix[own], broad)]
        for other in list(mix)[1:]:
            ratio, p99 = ratios(mix[own], mix[other])
            cpu = statistics.median(mix[own].cpu) / statistics.median(mix[other].cpu)
            in_cpu = f", CPU {cpu:.3f}" if cpu else ""
            print(f"  of the time of {other}: {ratio:.3f} (median), {p99:.3f} (p99){in_cpu}")
        if len(mix) > 1:
            met.append(max(ratios(mix[own], mix[list(mix)[-1]])) <= OF_DATASETTE)
    return met


def ratios(own: Times, other: Times) -> tuple[float, float]:
    """Returns the median ratio of the times of a search, and the ratio of the 99th percentiles."""
    pairs = zip(own.of, other.of, strict=True)
    each = [statistics.median(first) / statistics.median(second) for first, second in pairs]
    return statistics.median(each), own.p99_of_medians() / other.p99_of_medians()


def main() -> int:
    """Runs the measurements that the arguments request."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--datasets", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--datasette", type=Path, metavar="PROGRAM")
    parser.add_argument("--port", type=int, default=8765, help="for datasette")
    parser.add_argument("--checked", type=int, default=200, help="searches whose results are compared")
    parser.add_argument("--server", action="store_true", help="measure packtok explore by HTTP")
    arguments = parser.parse_args()
    print(machine(), f"cores {sorted(os.sched_getaffinity(0))}")
    base = arguments.folder / str(arguments.datasets)
    if not base.exists():
        made = base.with_suffix(".part")
        make_folders(made, arguments.datasets)
        made.rename(base)
    met = measure_build(base, arguments.datasets) + measure_searches(arguments, base)
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Measures the table of documents of `packtok explore` on a file of 10 M documents.

    python benches/table.py [--documents 10000000] [--work FOLDER]

Run by a Python that has packtok, on an idle machine. The first page by length is measured on new servers,
with the file in the system's cache and without; then 400 pages by HTTP, each with another number, sort or
filter. Exit code 1 if a bar is missed.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from cost import machine

import packtok

PROGRAM = [sys.executable, "-m", "packtok"]
PAGES, FIRST_PAGES = 400, 5
FIRST_SECONDS, PAGE_SECONDS = 1.0, 0.2
ROWS = 50


def main() -> int:
    """Runs all measurements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=10_000_000)
    parser.add_argument("--work", type=Path, help="folder to write in; a temporary one")
    arguments = parser.parse_args()
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory(dir=arguments.work) as name:
        path, lengths = write_documents(Path(name), arguments.documents)
        met = [first_page(path, lengths, is_cached=is_cached) for is_cached in (True, False)]
        return 0 if all([*met, other_pages(path, lengths)]) else 1


def write_documents(folder: Path, number: int) -> tuple[Path, np.ndarray]:
    """Packs documents of 2 to about 2,000 tokens, and returns the file and the lengths."""
    rng = np.random.default_rng(0)
    words = np.minimum(rng.lognormal(2.2, 1.0, number).astype(int) + 1, 2_000)
    text = "a" + " a" * 2_000
    with (folder / "corpus.jsonl").open("w") as file:
        for count in words.tolist():
            file.write('{"text": "' + text[: 2 * count - 1] + '"}\n')
    path = folder / "many.pbin"
    packtok.pack(input=folder / "corpus.jsonl", output=path, tokenizer="gpt2")
    (folder / "corpus.jsonl").unlink()
    # Each word is a token, and the EOD is another.
    return path, words + 1


@contextmanager
def server(path: Path) -> Iterator[str]:
    """Runs `packtok explore`, and returns the address of the table."""
    command = [*PROGRAM, "explore", path, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        try:
            # The first page of a server waits for its imports.
            seconds(f"{url}table/{path.name}", {})
            yield f"{url}table/{path.name}"
        finally:
            process.terminate()


def first_page(path: Path, lengths: np.ndarray, *, is_cached: bool) -> bool:
    """Measures the first page by length of new servers."""
    times = []
    for _ in range(FIRST_PAGES):
        with server(path) as url:
            if not is_cached:
                forget(path)
            times.append(seconds(url, {"sort": "longest"}))
            check(url, lengths, {"sort": "longest", "page": 2})
    cache = "cached" if is_cached else "not cached"
    return report(f"first page by length, file {cache}, greatest", max(times), times, FIRST_SECONDS)


def other_pages(path: Path, lengths: np.ndarray) -> bool:
    """Measures pages of a server that has sorted the lengths."""
    rng = random.Random(1)
    with server(path) as url:
        seconds(url, {"sort": "longest"})
        times = []
        for _ in range(PAGES):
            query = random_query(rng, lengths)
            times.append(seconds(url, query))
        for _ in range(20):
            check(url, lengths, random_query(rng, lengths))
    percentile = statistics.quantiles(times, n=100)[98]
    return report("any page, 99th percentile", percentile, times, PAGE_SECONDS)


def random_query(rng: random.Random, lengths: np.ndarray) -> dict[str, object]:
    """Returns the parameters of a page that has documents."""
    query: dict[str, object] = {"sort": rng.choice(["number", "longest", "shortest"])}
    least, most = sorted(int(lengths[rng.randrange(len(lengths))]) for _ in range(2))
    if rng.random() < 0.6:
        query |= {"least": least, "most": most}
        total = int(np.count_nonzero((lengths >= least) & (lengths <= most)))
    else:
        total = len(lengths)
    return query | {"page": rng.randrange(-(-total // ROWS)) + 1}


def check(url: str, lengths: np.ndarray, query: dict[str, object]) -> None:
    """Compares a page with the sorted lengths.

    Raises:
        ValueError: If the page has other documents.
    """
    inside = (lengths >= query.get("least", 0)) & (lengths <= query.get("most", 1 << 62))
    numbers = np.flatnonzero(inside)
    if query["sort"] != "number":
        sign = -1 if query["sort"] == "longest" else 1
        numbers = numbers[np.argsort(sign * lengths[numbers], kind="stable")]
    start = (int(str(query["page"])) - 1) * ROWS
    with urllib.request.urlopen(address(url, query | {"format": "json"})) as answer:
        documents = [row["document"] for row in json.load(answer)["rows"]]
    if documents != numbers[start : start + ROWS].tolist():
        raise ValueError(f"{query}: the page has other documents")


def seconds(url: str, query: dict[str, object]) -> float:
    """Returns the seconds of a request."""
    started = time.perf_counter()
    with urllib.request.urlopen(address(url, query)) as answer:
        answer.read()
    return time.perf_counter() - started


def address(url: str, query: dict[str, object]) -> str:
    """Returns the address of a page."""
    return url + "?" + "&".join(f"{key}={value}" for key, value in query.items())


def forget(path: Path) -> None:
    """Removes a file from the system's cache, as far as no process maps it."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def report(what: str, measured: float, times: list[float], bar: float) -> bool:
    """Prints a measurement, and returns whether it meets its bar."""
    verdict = "ok" if measured <= bar else "MISSED"
    spread = f"median {statistics.median(times):.3f}, [{min(times):.3f}, {max(times):.3f}]"
    print(f"{verdict:6} {what}: {measured:.3f} s; {spread}, {len(times)} pages; bar: {bar} s", flush=True)
    return measured <= bar


if __name__ == "__main__":
    sys.exit(main())

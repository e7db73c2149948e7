"""Shows what streams keep of a promise: stopped at any batch, they resume exactly, on any number of ranks.

    python benches/peers/stream_promise.py [--make-environments FOLDER] [--corpus prose] [--peers ...]

Run by a Python that has packtok. Each stream is that of `stream.py`: rows of 1,024 tokens, a shuffle buffer
of 1,000, batches of 8. MosaicML Streaming has no tokenizer, so it shuffles rows that are stored in advance.

A process makes 20 batches, saves a state, and makes 20 more. New processes load the state, from pickle and
from JSON, and make 20 batches, which are compared with those. The same is done with two processes that share
the batches, but four continue: a batch counts as equal if all ranks together return the same rows. packtok
merges the states of the ranks. For the others, each of the four ranks loads the state of one of the two;
three choices are tried, and the best is printed. Where one process does not resume exactly, both are read to
the end, and the rows that never return are counted.
"""

import argparse
import contextlib
import hashlib
import itertools
import json
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import stream
from cost import machine

BATCHES = 20
LANES = 4
FEW, MANY = 2, 4
MEGABYTES = 20
# A process that takes longer has failed.
SECONDS = 300
REQUIREMENTS = {**stream.REQUIREMENTS, "mosaicml-streaming": ("mosaicml-streaming==0.13.0",)}
# The state that rank r of four loads, from the states of two ranks.
OWN, FIRST, LAST = "of rank r modulo 2", "of rank 0", "of the last rank"
# The batches are lists of digests of their rows; the report is the result of a process.
Batches = list[list[str]]
Report = dict[str, Any]


class Packtok:
    """packtok.stream."""

    note = ""

    def __init__(self, corpus: Path, tokenizer: Path, rank: int, num_ranks: int | None) -> None:
        if num_ranks is None:
            self._dataset = stream.packtok_batches(corpus, tokenizer)
        else:
            # A rank computes only its own lanes if the data are repeated.
            rows = stream.packtok_rows(corpus, tokenizer, repeat=True)
            distributed = rows.distribute(LANES, rank, num_ranks)
            self._dataset = distributed.batch(global_batch_size=stream.BATCH)

    def start(self, states: Sequence[Any]) -> Iterator[Any]:
        from packtok.stream import merge_states

        self._iterator: Any = self._dataset.iter(merge_states(states) if states else None)
        return iter(self._iterator)

    def state(self) -> Any:
        return self._iterator.state_dict()


class Epochraft:
    """epochraft, with `stride` for ranks."""

    note = "every rank computes all rows"

    def __init__(self, corpus: Path, tokenizer: Path, rank: int, num_ranks: int | None) -> None:
        self._dataset = stream.epochraft_batches(corpus, tokenizer, rank, num_ranks or 1)

    def start(self, states: Sequence[Any]) -> Iterator[Any]:
        self._iterator: Any = self._dataset.iter(states[0] if states else None)
        return iter(self._iterator)

    def state(self) -> Any:
        return self._iterator.state_dict()


class Grain:
    """grain: its elastic iterator, which is its way to another number of ranks; if that fails, the lines of
    each rank.
    """

    note = ""

    def __init__(self, corpus: Path, tokenizer: Path, rank: int, num_ranks: int | None) -> None:
        self._dataset = stream.grain_batches(corpus, tokenizer, rank, num_ranks or 1)
        if num_ranks is not None:
            from grain import experimental, sharding

            share = sharding.ShardOptions(shard_index=rank, shard_count=num_ranks)
            try:
                rows = stream.grain_rows(corpus, tokenizer)
                elastic = experimental.ElasticIterator(rows, stream.BATCH, share)
                next(iter(elastic))
                self._dataset = elastic
            except Exception as error:
                self.note = f"ElasticIterator: {short(error)}"

    def start(self, states: Sequence[Any]) -> Iterator[Any]:
        self._iterator: Any = iter(self._dataset)
        if states:
            self._iterator.set_state(states[0])
        return iter(self._iterator)

    def state(self) -> Any:
        return self._iterator.get_state()


class Stateful:
    """A loader with a state of its own."""

    note = ""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def start(self, states: Sequence[Any]) -> Iterator[Any]:
        if states:
            self._loader.load_state_dict(states[0])
        return iter(self._loader)

    def state(self) -> Any:
        return self._loader.state_dict()


class Nodes(Stateful):
    """torchdata.nodes, with the lines of each rank."""

    note = "no way of its own"

    def __init__(self, corpus: Path, tokenizer: Path, rank: int, num_ranks: int | None) -> None:
        super().__init__(stream.nodes_batches(corpus, tokenizer, rank, num_ranks or 1))


class Datasets(Stateful):
    """Hugging Face's stream, with its own division by nodes."""

    note = "split_dataset_by_node"

    def __init__(self, corpus: Path, tokenizer: Path, rank: int, num_ranks: int | None) -> None:
        super().__init__(stream.datasets_batches(corpus, tokenizer, rank, num_ranks or 1))


class Mosaic(Stateful):
    """MosaicML Streaming: shuffles stored rows, and divides them among the ranks of the environment."""

    note = "stored rows only"

    def __init__(self, corpus: Path, tokenizer: Path, rank: int, num_ranks: int | None) -> None:
        from streaming import StreamingDataLoader, StreamingDataset

        size = stream.BATCH // (num_ranks or 1)
        stored = str(corpus.with_suffix(".mds"))
        dataset = StreamingDataset(local=stored, shuffle=True, shuffle_seed=stream.SEED, batch_size=size)
        super().__init__(StreamingDataLoader(dataset, batch_size=size))

    @staticmethod
    def prepare(corpus: Path, tokenizer: Path) -> None:
        """Stores the rows."""
        import numpy as np
        from streaming import MDSWriter

        encode = stream.encoder(tokenizer)
        with corpus.open(encoding="utf-8") as file:
            ids = np.array(encode([json.loads(line)["text"] for line in file]))
        rows = ids[: len(ids) // stream.ROW * stream.ROW].reshape(-1, stream.ROW)
        with MDSWriter(out=str(corpus.with_suffix(".mds")), columns={"input_ids": "ndarray:int64"}) as writer:
            for row in rows:
                writer.write({"input_ids": row})


TOOLS: dict[str, type[Any]] = {
    "packtok": Packtok,
    "epochraft": Epochraft,
    "grain": Grain,
    "torchdata.nodes": Nodes,
    "datasets": Datasets,
    "mosaicml-streaming": Mosaic,
}


def short(error: BaseException) -> str:
    """Returns the kind and the start of the first line of an error."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:90]}"


def take(batches: Iterator[Any], count: int | None = BATCHES) -> Batches:
    """Returns the digests of the rows of the next batches, or of all that are left."""
    return [
        [hashlib.blake2b(row.tobytes(), digest_size=8).hexdigest() for row in rows_of(batch)]
        for batch in itertools.islice(batches, count)
    ]


def rows_of(batch: Mapping[str, Any]) -> Any:
    """Returns the rows of a batch as an array."""
    import numpy as np

    return np.asarray(batch["input_ids"]).astype("int64")


def serve(name: str, corpus: Path, job: Mapping[str, Any]) -> Report:
    """Makes batches; saves the state in the middle, or loads one first."""
    if job["prepares"]:
        TOOLS[name].prepare(corpus, stream.TOKENIZER)
        return {}
    tool = TOOLS[name](corpus, stream.TOKENIZER, job["rank"], job["num_ranks"])
    count = None if job["to_end"] else BATCHES
    if job["loads"]:
        states = [load(Path(path)) for path in job["loads"]]
        started = time.perf_counter()
        batches = tool.start(states)
        first = take(batches, 1)
        seconds = time.perf_counter() - started
        return {"batches": first + take(batches, count and count - 1), "seconds": seconds}
    batches = tool.start([])
    report: Report = {"note": tool.note, "before": take(batches)}
    saved = Path(job["saves"])
    state = tool.state()
    saved.with_suffix(".pickle").write_bytes(pickle.dumps(state))
    try:
        saved.with_suffix(".json").write_text(json.dumps(state))
    except (TypeError, ValueError) as error:
        report["json_error"] = short(error)
    return report | {"batches": take(batches, count)}


def load(path: Path) -> Any:
    """Returns a saved state."""
    return json.loads(path.read_text()) if path.suffix == ".json" else pickle.loads(path.read_bytes())


def run(python: Path, name: str, corpus: Path, jobs: Sequence[Mapping[str, Any]]) -> list[Report]:
    """Runs a process for each rank, all at once, and returns their reports, or their errors."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []
    for job in jobs:
        rank, num_ranks = str(job["rank"]), str(job["num_ranks"] or 1)
        ranks = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": num_ranks, "LOCAL_WORLD_SIZE": num_ranks}
        variables = {**os.environ, **ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        command = [str(python), __file__, "--serve", name, str(corpus), json.dumps(job)]
        processes.append(
            subprocess.Popen(
                command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
    reports = []
    for process in processes:
        try:
            output, errors = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
        if process.returncode == 0:
            reports.append(json.loads(output.splitlines()[-1]))
        else:
            reports.append({"error": f"exit code {process.returncode}: {errors[-300:]}"})
    return reports


def job(
    rank: int, num_ranks: int | None, *, saves: Path | None = None, loads: Sequence[Path] = (), **more: bool
) -> Report:
    """Describes the work of a process."""
    paths = {"saves": saves and str(saves), "loads": list(map(str, loads))}
    return {"rank": rank, "num_ranks": num_ranks, "prepares": False, "to_end": False, **paths, **more}


def equal_batches(expected: Sequence[Report], reports: Sequence[Report]) -> int | str:
    """Returns how many batches of all ranks have the same rows, or the first error.

    On one rank, the rows must have the same order.
    """
    for report in (*expected, *reports):
        if "error" in report:
            return str(report["error"])
    return sum(together(expected, i) == together(reports, i) for i in range(BATCHES))


def together(reports: Sequence[Report], number: int) -> list[str]:
    """Returns the rows of a batch of all ranks."""
    rows = [row for report in reports for row in report["batches"][number]]
    return rows if len(reports) == 1 else sorted(rows)


def rows_in(batches: Batches) -> Counter[str]:
    """Returns the number of times that each row occurs."""
    return Counter(row for batch in batches for row in batch)


def measure(name: str, python: Path, corpus: Path, work: Path) -> list[str]:
    """Returns the row of a tool in the table."""
    saved = work / f"{name}-alone"
    reference = run(python, name, corpus, [job(0, None, saves=saved)])
    if "error" in reference[0]:
        return [name, reference[0]["error"]]
    pickled, text = saved.with_suffix(".pickle"), saved.with_suffix(".json")
    resumed = run(python, name, corpus, [job(0, None, loads=[pickled])])
    equal = equal_batches(reference, resumed)
    words = in_words(equal)
    if isinstance(equal, int) and equal < BATCHES:
        words += f"; {lost_and_again(name, python, corpus, work)}"
    cells = [name, words]
    if "json_error" in reference[0]:
        cells.append(f"no: {reference[0]['json_error']}")
    else:
        from_json = run(python, name, corpus, [job(0, None, loads=[text])])
        cells.append(in_words(equal_batches(reference, from_json)))
    seconds = resumed[0].get("seconds")
    cells += [f"{pickled.stat().st_size:,}", "" if seconds is None else f"{seconds:.2f} s"]
    return [*cells, on_more_ranks(name, python, corpus, work)]


def lost_and_again(name: str, python: Path, corpus: Path, work: Path) -> str:
    """Returns how many rows a resumed process never returns, and how many it repeats."""
    saved = work / f"{name}-to-end"
    (reference,) = run(python, name, corpus, [job(0, None, saves=saved, to_end=True)])
    loads = [saved.with_suffix(".pickle")]
    (resumed,) = run(python, name, corpus, [job(0, None, loads=loads, to_end=True)])
    expected, received = rows_in(reference["batches"]), rows_in(resumed["batches"])
    lost = (expected - received).total()
    again = (received - expected).total()
    return f"{lost:,} of {expected.total():,} rows lost, {again:,} again"


def on_more_ranks(name: str, python: Path, corpus: Path, work: Path) -> str:
    """Returns the result of four ranks with the states of two: the best of all choices."""
    states = [work / f"{name}-{rank}-of-{FEW}" for rank in range(FEW)]
    jobs = [job(rank, FEW, saves=saved) for rank, saved in enumerate(states)]
    reference = run(python, name, corpus, jobs)
    for report in reference:
        if "error" in report:
            return f"no: {report['error']}"
    pickled = [state.with_suffix(".pickle") for state in states]
    choices: dict[str, list[Sequence[Path]]] = {
        OWN: [[pickled[rank % FEW]] for rank in range(MANY)],
        FIRST: [pickled[:1]] * MANY,
        LAST: [pickled[-1:]] * MANY,
    }
    if name == "packtok":
        choices = {"merged": [pickled] * MANY}
    results = {}
    for choice, loaded in choices.items():
        reports = run(python, name, corpus, [job(rank, MANY, loads=loaded[rank]) for rank in range(MANY)])
        results[choice] = equal_batches(reference, reports)
        if results[choice] == BATCHES:
            break
    best = max(results, key=lambda choice: results[choice] if isinstance(results[choice], int) else -1)
    notes = {report["note"] for report in reference} - {""}
    return "; ".join([f"{in_words(results[best])} (states {best})", *notes])


def in_words(equal: int | str) -> str:
    """Returns the number of equal batches in words."""
    if isinstance(equal, str):
        return f"no: {equal}"
    return f"yes, {equal} of {BATCHES}" if equal == BATCHES else f"no, {equal} of {BATCHES}"


def main() -> None:
    """Prints a row for each tool."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--make-environments", type=Path, metavar="FOLDER")
    parser.add_argument("--corpus", default="prose")
    parser.add_argument("--peers", nargs="*", choices=list(REQUIREMENTS), default=list(REQUIREMENTS))
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        name, corpus, work_json = arguments.serve
        with contextlib.redirect_stdout(sys.stderr):
            report = serve(name, Path(corpus), json.loads(work_json))
        print(json.dumps(report), flush=True)
        return
    pythons = {"packtok": Path(sys.executable)}
    if arguments.make_environments:
        chosen = {peer: REQUIREMENTS[peer] for peer in arguments.peers}
        pythons |= stream.environments(arguments.make_environments, chosen)
    print(machine())
    print("| | same ranks | from JSON | bytes of the state | resumed in | 2 ranks, then 4 |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        lines = stream.lines_of(arguments.corpus)
        corpus, _ = stream.write(work / "corpus.jsonl", lines, MEGABYTES * 1_000_000)
        for name, python in pythons.items():
            if hasattr(TOOLS[name], "prepare"):
                run(python, name, corpus, [job(0, None, prepares=True)])
            print(f"| {' | '.join(measure(name, python, corpus, work))} |", flush=True)


if __name__ == "__main__":
    main()

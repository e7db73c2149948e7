"""Compares the streaming tutorial of packtok with packing the same text, and with four other streams.

    python benches/peers/stream.py [--make-environments FOLDER] [--corpus prose code multi] [--repetitions 5]

The tutorial reads files, tokenizes with GPT-2's tokenizer, adds EOS, and makes batches of 8 rows of 1,024
tokens through a shuffle buffer of 1,000. Run by a Python that has packtok. The peers do the same: epochraft
with its own operators; grain, torchdata.nodes and `datasets` with calls of `tokenizers` for many documents,
their fastest way. Each has an environment of its own in FOLDER, which is created if it is not there; without
FOLDER, packtok is measured alone.

packtok reads 200 MB of text, most of which repeats the corpus, and in its first pass the corpus once; the
peers read the first 20 MB of it once. CPU time counts from the first batch to the last: imports and loading
the tokenizer are not in it, but every program starts anew, with empty caches. Programs take turns on one
core, ratios are computed for each turn, and medians count. Before that, the rows that each peer makes of 2 MB
are compared with packtok's.
"""

import argparse
import contextlib
import io
import itertools
import json
import math
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))
from cost import machine, run, spread
from loader_environments import TORCH, environment

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
TOKENIZER = SHARED / "tokenizers" / "gpt2" / "tokenizer.json"
REQUIREMENTS = {
    "epochraft": ("epochraft==0.1.0.dev20231107", "cbor2<6", "transformers==5.24.0", "tokenizers==0.23.3"),
    "grain": ("grain==0.2.18", "tokenizers==0.23.3"),
    "torchdata.nodes": ("torchdata==0.11.0", "tokenizers==0.23.3"),
    "datasets": ("datasets==5.2.0", "tokenizers==0.23.3"),
}
STREAM, FIRST_PASS, PACK = "packtok stream", "packtok first pass", "packtok pack"
# MB of text, for each program's speed. A corpus has 50.
MEGABYTES = {STREAM: 200, FIRST_PASS: 50, PACK: 200}
PEER_MEGABYTES, CHECKED_MEGABYTES = 20, 2
TINY_DOCUMENTS = 10
CORE = "0"

EOS, ROW, BUFFER, BATCH, SEED = 50256, 1024, 1000, 8, 42
# Texts per call of `tokenizers`; another number makes no difference. `datasets` drops the end of every call,
# so it keeps its default.
CALL_DOCUMENTS, DATASETS_CALL_DOCUMENTS = 64, 1000


def packtok_rows(corpus: Path, tokenizer: Path, *, repeat: bool = False) -> Any:
    """packtok's stream up to the shuffle buffer."""
    import packtok
    from packtok.stream import CheckpointableDataset

    files = CheckpointableDataset.from_files(corpus, repeat, shuffle_shards=True)
    documents = files.tokenize(packtok.Tokenizer.from_file(tokenizer)).ensure_bos_eos(_Special)
    return documents.concat_chunk(ROW).shuffle(BUFFER)


def packtok_batches(corpus: Path, tokenizer: Path) -> Any:
    return packtok_rows(corpus, tokenizer).batch(BATCH)


class _Special:
    bos_token_id, eos_token_id = None, EOS


def epochraft_batches(corpus: Path, tokenizer: Path, rank: int = 0, num_ranks: int = 1) -> Any:
    """epochraft's stream. Every rank computes all rows and returns its own."""
    from epochraft import CheckpointableDataset
    from transformers import PreTrainedTokenizerFast

    fast = PreTrainedTokenizerFast(tokenizer_file=str(tokenizer), eos_token="<|endoftext|>")
    files = CheckpointableDataset.from_files(str(corpus), shuffle_shards=True)
    documents = files.tokenize(fast, parallel=False).ensure_bos_eos(fast)
    rows = documents.concat_chunk(ROW).shuffle(BUFFER)
    if num_ranks > 1:
        rows = rows.stride(num_ranks, rank)
    return rows.batch(BATCH // num_ranks)


def encoder(tokenizer: Path) -> Callable[[list[str]], list[int]]:
    """Returns a function that tokenizes texts in one call, and joins their ids with EOS after each."""
    # The programs run on one core.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(str(tokenizer))

    def joined(texts: list[str]) -> list[int]:
        ids: list[int] = []
        for encoding in loaded.encode_batch_fast(texts, add_special_tokens=False):
            text_ids = encoding.ids
            ids += text_ids
            if not text_ids or text_ids[-1] != EOS:
                ids.append(EOS)
        return ids

    return joined


class GrainLines:
    """The lines of a file by their number, as grain's sources are."""

    def __init__(self, path: Path) -> None:
        import numpy as np

        self._bytes = np.memmap(path, dtype=np.uint8, mode="r")
        self._starts = [0, *(np.flatnonzero(self._bytes == ord("\n")) + 1).tolist()]

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, index: Any) -> bytes:
        line: bytes = self._bytes[self._starts[index] : self._starts[index + 1]].tobytes()
        return line


def grain_rows(corpus: Path, tokenizer: Path, rank: int = 0, num_ranks: int = 1) -> Any:
    """grain's stream up to the shuffled rows, from the lines of one rank.

    Rebatching the tokens is faster than `ConcatThenSplitIterDataset`, and no threads are faster on one core.
    """
    import grain
    import numpy as np
    from grain import experimental

    encode = encoder(tokenizer)

    def tokens(lines: list[bytes]) -> dict[str, Any]:
        return {"input_ids": np.array(encode([json.loads(line)["text"] for line in lines]))}

    lines = grain.MapDataset.source(GrainLines(corpus))[rank::num_ranks]
    documents = lines.batch(CALL_DOCUMENTS, batch_fn=list).map(tokens)
    streamed = documents.to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0))
    rows = experimental.RebatchIterDataset(streamed, ROW, drop_remainder=True)
    return experimental.WindowShuffleIterDataset(rows, window_size=BUFFER, seed=SEED)


def grain_batches(corpus: Path, tokenizer: Path, rank: int = 0, num_ranks: int = 1) -> Any:
    return grain_rows(corpus, tokenizer, rank, num_ranks).batch(BATCH // num_ranks)


class NodesLines:
    """The lines of a file that belong to a rank, from a byte on, as `IterableWrapper` resumes them."""

    def __init__(self, path: Path, rank: int, num_ranks: int) -> None:
        self._path, self._rank, self._num_ranks = path, rank, num_ranks
        self._position = (0, 0)

    def __iter__(self) -> Iterator[bytes]:
        start, first = self._position
        with self._path.open("rb") as file:
            file.seek(start)
            for number, line in enumerate(file, first):
                start += len(line)
                self._position = (start, number + 1)
                if number % self._num_ranks == self._rank:
                    yield line

    def state_dict(self) -> dict[str, Any]:
        return {"position": list(self._position)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        start, first = state["position"]
        self._position = (start, first)


def nodes_batches(corpus: Path, tokenizer: Path, rank: int = 0, num_ranks: int = 1) -> Any:
    """The stream of torchdata's nodes, from the lines of one rank."""
    import numpy as np
    import torch
    from torchdata.nodes import Batcher, IterableWrapper, Loader, Mapper

    encode = encoder(tokenizer)

    def tokens(lines: list[bytes]) -> Any:
        return np.array(encode([json.loads(line)["text"] for line in lines]))

    def batch(rows: list[Any]) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.from_numpy(np.stack(rows))}

    lines = IterableWrapper(NodesLines(corpus, rank, num_ranks))
    documents = Mapper(Batcher(lines, CALL_DOCUMENTS, drop_last=False), tokens)
    rows = Batcher(shuffled_node(rows_node(documents)), BATCH // num_ranks, drop_last=False)
    return Loader(Mapper(rows, batch))


def rows_node(source: Any) -> Any:
    """A node that divides the tokens of all documents into rows; torchdata has none."""
    import numpy as np
    from torchdata.nodes import BaseNode

    class Rows(BaseNode[Any]):
        def reset(self, initial_state: dict[str, Any] | None = None) -> None:
            super().reset(initial_state)
            source.reset(initial_state and initial_state["source"])
            self._rest = np.array(initial_state["rest"] if initial_state else [], dtype=np.int64)

        def next(self) -> Any:
            while len(self._rest) < ROW:
                self._rest = np.concatenate([self._rest, next(source)])
            row, self._rest = self._rest[:ROW], self._rest[ROW:]
            return row

        def get_state(self) -> dict[str, Any]:
            return {"source": source.state_dict(), "rest": self._rest.tolist()}

    return Rows()


def shuffled_node(source: Any) -> Any:
    """A node with a shuffle buffer, which its state contains; torchdata has none."""
    import random

    import numpy as np
    from torchdata.nodes import BaseNode

    class Shuffled(BaseNode[Any]):
        def reset(self, initial_state: dict[str, Any] | None = None) -> None:
            super().reset(initial_state)
            source.reset(initial_state and initial_state["source"])
            self._random = random.Random(SEED)
            self._buffer: list[Any] = []
            if initial_state:
                version, numbers, gauss = initial_state["random"]
                self._random.setstate((version, tuple(numbers), gauss))
                self._buffer = [np.array(row, dtype=np.int64) for row in initial_state["buffer"]]

        def next(self) -> Any:
            self._buffer += itertools.islice(source, BUFFER - len(self._buffer))
            if not self._buffer:
                raise StopIteration
            chosen = self._random.randrange(len(self._buffer))
            self._buffer[chosen], self._buffer[-1] = self._buffer[-1], self._buffer[chosen]
            return self._buffer.pop()

        def get_state(self) -> dict[str, Any]:
            buffer = [row.tolist() for row in self._buffer]
            return {"source": source.state_dict(), "buffer": buffer, "random": self._random.getstate()}

    return Shuffled()


def datasets_batches(corpus: Path, tokenizer: Path, rank: int = 0, num_ranks: int = 1) -> Any:
    """Hugging Face's stream: rows are made within each call of the tokenizer, as in its examples."""
    import numpy as np
    from datasets import load_dataset
    from datasets.distributed import split_dataset_by_node

    encode = encoder(tokenizer)

    def rows(documents: Mapping[str, list[str]]) -> dict[str, Any]:
        ids = encode(documents["text"])
        num_rows = len(ids) // ROW
        return {"input_ids": np.array(ids[: num_rows * ROW]).reshape(num_rows, ROW)}

    lines = load_dataset("json", data_files=str(corpus), split="train", streaming=True)
    lines = split_dataset_by_node(lines, rank, num_ranks)
    columns = list(json.loads(corpus.open(encoding="utf-8").readline()))
    mapped = lines.map(rows, batched=True, batch_size=DATASETS_CALL_DOCUMENTS, remove_columns=columns)
    return mapped.shuffle(seed=SEED, buffer_size=BUFFER).with_format("numpy").batch(BATCH // num_ranks)


PIPELINES: dict[str, Callable[[Path, Path], Any]] = {
    STREAM: packtok_batches,
    FIRST_PASS: packtok_batches,
    "epochraft": epochraft_batches,
    "grain": grain_batches,
    "torchdata.nodes": nodes_batches,
    "datasets": datasets_batches,
}


def serve(name: str, corpus: Path, tokenizer: Path, *, checks: bool) -> dict[str, float]:
    """Runs one program; returns its tokens, the sum of the ids if they are checked, and its cost."""
    if name == PACK:
        return serve_pack(corpus, tokenizer)
    batches = PIPELINES[name](corpus, tokenizer)
    num_tokens = sum_of_ids = 0
    started, before = time.process_time(), peak_bytes()
    for batch in batches:
        ids = batch["input_ids"]
        num_tokens += math.prod(ids.shape)
        if checks:
            sum_of_ids += int(ids.sum())
    seconds = time.process_time() - started
    return {"tokens": num_tokens, "sum": sum_of_ids, "seconds": seconds, "grown": peak_bytes() - before}


def serve_pack(corpus: Path, tokenizer: Path) -> dict[str, float]:
    """Packs a corpus. Packing its first documents, which also loads the tokenizer, is subtracted."""
    import packtok

    def pack(text: Path) -> tuple[float, int]:
        started = time.process_time()
        report = packtok.pack(
            input=text,
            output=text.with_suffix(".pbin"),
            tokenizer=str(tokenizer),
            eod="<|endoftext|>",
            num_cpus=1,
            existing="replace",
        )
        return time.process_time() - started, report.tokens

    tiny = corpus.with_suffix(".tiny.jsonl")
    with corpus.open("rb") as file:
        tiny.write_bytes(b"".join(itertools.islice(file, TINY_DOCUMENTS)))
    pack(tiny)
    start_seconds, _ = pack(tiny)
    before = peak_bytes()
    seconds, num_tokens = pack(corpus)
    grown = peak_bytes() - before
    return {"tokens": num_tokens, "sum": 0, "seconds": seconds - start_seconds, "grown": grown}


def peak_bytes() -> int:
    """Returns the largest resident memory that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Prints a line for each corpus and program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--make-environments", type=Path, metavar="FOLDER")
    parser.add_argument("--peers", nargs="*", choices=list(REQUIREMENTS), default=list(REQUIREMENTS))
    parser.add_argument("--corpus", nargs="+", default=["prose", "code", "multi"])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--checks", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        name, corpus, tokenizer = arguments.serve
        # Some of the tools print.
        with contextlib.redirect_stdout(sys.stderr):
            report = serve(name, Path(corpus), Path(tokenizer), checks=arguments.checks)
        print(json.dumps(report))
        return
    print(machine())
    pythons = dict.fromkeys(MEGABYTES, Path(sys.executable))
    if arguments.make_environments:
        chosen = {peer: REQUIREMENTS[peer] for peer in arguments.peers}
        pythons |= environments(arguments.make_environments, chosen)
    with tempfile.TemporaryDirectory() as folder:
        for corpus in arguments.corpus:
            compare(corpus, Path(folder) / corpus, pythons, arguments.repetitions)


def environments(folder: Path, requirements: Mapping[str, tuple[str, ...]]) -> dict[str, Path]:
    """Returns the interpreter of each peer; creates missing environments."""
    shared = environment(folder / "torch", TORCH)
    for name, packages in requirements.items():
        environment(folder / name, packages, shared)
    return {name: (folder / name / "bin/python").absolute() for name in requirements}


def compare(corpus: str, work: Path, pythons: Mapping[str, Path], repetitions: int) -> None:
    """Prints the speed of each program on a corpus, and the ratio of the stream to it."""
    work.mkdir()
    lines = lines_of(corpus)
    check(corpus, write(work / "checked.jsonl", lines, CHECKED_MEGABYTES * 1_000_000)[0], pythons)
    corpora = {
        name: write(work / f"{name}.jsonl", lines, MEGABYTES.get(name, PEER_MEGABYTES) * 1_000_000)
        for name in pythons
    }
    reports: dict[str, list[dict[str, float]]] = {name: [] for name in pythons}
    for _ in range(repetitions):
        for name, python in pythons.items():
            reports[name].append(measured(python, name, corpora[name][0]))
    speeds = {
        name: [corpora[name][1] / 1e6 / report["seconds"] for report in every]
        for name, every in reports.items()
    }
    for name, rates in speeds.items():
        print(
            f"{corpus:6} {name:18} {spread(rates, '.1f')} MB of text per CPU second; "
            f"stream {ratio(speeds[STREAM], rates)} x, first pass {ratio(speeds[FIRST_PASS], rates)} x; "
            f"memory {max(report['grown'] for report in reports[name]) / 1e6:+.0f} MB",
            flush=True,
        )


def check(corpus: str, text: Path, pythons: Mapping[str, Path]) -> None:
    """Compares the rows of each peer with packtok's: the number of tokens, and the sum of their ids.

    `datasets` drops the last part of a row of each call, so only the number is compared, and not exactly.

    Raises:
        RuntimeError: If a peer does other work.
    """
    checked = {
        name: measured(python, name, text, "--checks")
        for name, python in pythons.items()
        if name not in (FIRST_PASS, PACK)
    }
    expected = checked[STREAM]["tokens"], checked[STREAM]["sum"]
    for name, report in checked.items():
        num_tokens, sum_of_ids = report["tokens"], report["sum"]
        is_part = name == "datasets" and 0.97 * expected[0] < num_tokens <= expected[0]
        if (num_tokens, sum_of_ids) != expected and not is_part:
            totals = f"{num_tokens} tokens of sum {sum_of_ids}"
            raise RuntimeError(f"{corpus}: {name} made {totals}, packtok {expected[0]} of {expected[1]}")


def ratio(fast: Sequence[float], slow: Sequence[float]) -> str:
    """Returns the ratio of two programs: median and range of all turns."""
    return spread((first / second for first, second in zip(fast, slow, strict=True)), ".2f")


def measured(python: Path, name: str, corpus: Path, *more: str) -> dict[str, float]:
    """Returns the report of a program on a corpus."""
    output = run([python, __file__, "--serve", name, corpus, TOKENIZER, *more], CORE).output
    report: dict[str, float] = json.loads(output.splitlines()[-1])
    return report


def lines_of(corpus: str) -> list[tuple[str, int]]:
    """Returns the lines of a shared corpus with the bytes of their texts."""
    import zstandard

    with (SHARED / "corpora" / f"{corpus}.jsonl.zst").open("rb") as file:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), encoding="utf-8")
        return [(line, len(json.loads(line)["text"].encode())) for line in lines]


def write(path: Path, lines: list[tuple[str, int]], num_bytes: int) -> tuple[Path, int]:
    """Writes the lines, repeated until their texts have ``num_bytes``; returns the bytes of the texts."""
    written = 0
    with path.open("w", encoding="utf-8") as file:
        while True:
            for line, text_bytes in lines:
                file.write(line)
                written += text_bytes
                if 0 < num_bytes <= written:
                    return path, written
            if num_bytes <= written:
                return path, written


if __name__ == "__main__":
    main()

"""Compares conversions and reshaping with `cp`, items of other formats with those of pbins, and peers.

    python benches/peers/formats.py [--gigabytes 4] [--repetitions 3] [--work FOLDER] [--environments FOLDER]

Run by a Python that has packtok, with idle cores and three times the space of the data. What is compared
takes turns, and ratios are those of medians of wall times: `cp --reflink=never` and `sync` move the same
bytes, and the disk bounds both. Reading and writing by the peers is measured by CPU time on one core, in
environments that `loader_environments.py` makes.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from loader_environments import make_environments, python_of

sys.path.append(str(Path(__file__).resolve().parents[1]))
from cost import machine, run, spread

import packtok

LONG, SHORT = 550, 50
VOCABULARY = 50257
PEER_TOKENS = 50_000_000
LINKED_DOCUMENTS = 5_000_000
NUM_FILES = 10_000
NUM_ITEMS = 100_000
CONTEXT_LENGTH = 2048

# Each program prints the CPU time of its work, without imports.
MEGATRON_WRITES = """
import itertools, sys, time
import numpy as np
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
data, ends = np.fromfile(sys.argv[1], np.uint16), np.fromfile(sys.argv[2], np.uint64).tolist()
started = time.process_time()
builder = IndexedDatasetBuilder(sys.argv[3] + ".bin", dtype=np.uint16)
for start, end in itertools.pairwise([0, *ends]):
    builder.add_document(data[start:end], [end - start])
builder.finalize(sys.argv[3] + ".idx")
print(time.process_time() - started)
"""
PACKTOK_WRITES = """
import sys, time
from packtok import convert
started = time.process_time()
convert(sys.argv[1], sys.argv[2], to=sys.argv[3], existing="replace")
print(time.process_time() - started)
"""
MEGATRON_READS = """
import sys, time
from megatron.core.datasets.indexed_dataset import IndexedDataset
started = time.process_time()
dataset = IndexedDataset(sys.argv[1])
num_tokens = sum(len(dataset[i]) for i in range(len(dataset)))
print(time.process_time() - started)
"""
PACKTOK_READS = """
import sys, time
import numpy
from packtok import PbinReader
started = time.process_time()
reader = PbinReader(sys.argv[1])
num_tokens = sum(len(reader[i]) for i in range(len(reader)))
print(time.process_time() - started)
"""
LITDATA_WRITES = """
import itertools, shutil, sys, time
import numpy as np
import torch
from litdata.streaming.cache import Cache
from litdata.streaming.item_loader import TokensLoader
data, ends = np.fromfile(sys.argv[1], np.uint16), np.fromfile(sys.argv[2], np.uint64).tolist()
shutil.rmtree(sys.argv[3], ignore_errors=True)
started = time.process_time()
cache = Cache(sys.argv[3], chunk_bytes="64MB", item_loader=TokensLoader())
for number, (start, end) in enumerate(itertools.pairwise([0, *ends])):
    cache[number] = torch.from_numpy(data[start:end])
cache.done()
cache.merge()
print(time.process_time() - started)
"""
LITDATA_READS = """
import sys, time
from litdata import StreamingDataset
from litdata.streaming.item_loader import TokensLoader
dataset = StreamingDataset(sys.argv[1], item_loader=TokensLoader(block_size=2048))
dataset[0]
started = time.process_time()
num_tokens = sum(len(dataset[i]) for i in range(len(dataset)))
print(time.process_time() - started)
"""
DATATROVE_READS = """
import sys, time
from datatrove.utils.dataset import DatatroveFileDataset
started = time.process_time()
dataset = DatatroveFileDataset(sys.argv[1], 2048, token_size=2)
num_tokens = sum(len(dataset[i]["input_ids"]) for i in range(len(dataset)))
print(time.process_time() - started)
"""
PACKTOK_BATCHES = """
import sys, time
import packtok
dataset = packtok.TokenDataset(sys.argv[1], 2048)
dataset[0]
started = time.process_time()
for start in range(0, len(dataset) - 32, 32):
    dataset.__getitems__(range(start, start + 32))
print(time.process_time() - started)
"""
MDS_WRITES = """
import sys, time
import numpy as np
from streaming import MDSWriter
data = np.fromfile(sys.argv[1], np.uint16).astype(sys.argv[3])
started = time.process_time()
with MDSWriter(out=sys.argv[2], columns={"tokens": f"ndarray:{sys.argv[3]}"}, exist_ok=True) as writer:
    for start in range(0, len(data) // 1024 * 1024, 1024):
        writer.write({"tokens": data[start : start + 1024]})
print(time.process_time() - started)
"""

MDS_CONVERTED = """
import sys, time
from packtok import convert
started = time.process_time()
convert(sys.argv[1], sys.argv[2], to="mds", dtype=sys.argv[3], existing="replace")
print(time.process_time() - started)
"""

# Each program defines a reader: `read` opens a path and returns its items, `tokens` returns those of an item.
MDS_READER = """
from streaming import StreamingDataset
def read(path):
    dataset = StreamingDataset(local=path, batch_size=1)
    return (dataset[i] for i in range(len(dataset)))
def tokens(item):
    return item["tokens"]
"""
MDS_STREAM_READER = """
from streaming import StreamingDataset
def read(path):
    return StreamingDataset(local=path, batch_size=1, num_canonical_nodes=1, shuffle=False)
def tokens(item):
    return item["tokens"]
"""
OLMO_READER = """
import numpy as np
from olmo_core.data.numpy_dataset import NumpyFSLDataset
def read(path):
    ids = {"pad_token_id": 50256, "eos_token_id": 50256, "vocab_size": 50257}
    dataset = NumpyFSLDataset(path, sequence_length=2048, include_instance_metadata=False, **ids)
    dataset.prepare()
    return (dataset[i] for i in range(len(dataset)))
def tokens(item):
    return item["input_ids"]
"""
NEMO_READER = """
import itertools
from nemo_automodel.components.datasets.llm.nanogpt_dataset import NanogptDataset, load_bin_shard
def read(path):
    # The dataset starts again after its last row.
    return itertools.islice(NanogptDataset(path, 2048), len(load_bin_shard(path)) // 2049)
def tokens(item):
    return item["input_ids"] + item["labels"][-1:]
"""
DOCUMENT_READER = """
from pathlib import Path
import numpy
from packtok import PbinReader
def read(path):
    readers = map(PbinReader, sorted(Path(path).glob("*.mds")))
    return (reader[i] for reader in readers for i in range(len(reader)))
def tokens(item):
    return item
"""
# With aligned labels, rows do not overlap, as those of these peers.
ROW_READER = """
import sys
from packtok import TokenDataset
def read(path):
    dataset = TokenDataset(path, int(sys.argv[2]), labels="aligned")
    starts = range(0, len(dataset), 32)
    return (dataset.__getitems__(range(start, min(start + 32, len(dataset)))) for start in starts)
def tokens(items):
    return items.batch["input_ids"]
"""
# One of these follows a reader.
HASHES = """
import hashlib, sys
import numpy as np
digest = hashlib.sha256()
for item in read(sys.argv[1]):
    digest.update(np.asarray(tokens(item)).astype(np.int64).tobytes())
print(digest.hexdigest())
"""
TIMES = """
import sys, time
started = time.process_time()
for item in read(sys.argv[1]):
    pass
print(time.process_time() - started)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--work", type=Path, help="folder to write in; a temporary one")
    parser.add_argument(
        "--environments", type=Path, help="folder of the peers; without it, they are left out"
    )
    parser.add_argument("--only", choices=("copies", "items", "peers", "readers"), help="only this part")
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(dir=arguments.work) as name:
        folder = Path(name)
        num_tokens = int(arguments.gigabytes * 1e9) // 2
        if arguments.only in (None, "copies"):
            compare_with_copies(folder, num_tokens, arguments.repetitions)
        if arguments.only in (None, "items"):
            compare_items(folder, arguments.repetitions)
        if arguments.environments is not None and arguments.only in (None, "peers"):
            make_environments(arguments.environments, ["megatron", "datatrove", "litdata"])
            compare_with_peers(folder, arguments.environments, arguments.repetitions)
        if arguments.environments is not None and arguments.only in (None, "readers"):
            make_environments(arguments.environments, ["mds", "olmo", "nemo"])
            compare_with_readers(folder, arguments.environments, arguments.repetitions)


def write_pbin(folder: Path, num_tokens: int, mean_length: int) -> Path:
    """Writes random ids as a pbin, beside them as ``raw`` with ``ends``; returns the pbin."""
    folder.mkdir()
    random = np.random.default_rng(0)
    with (folder / "raw").open("wb") as file:
        for start in range(0, num_tokens, 1 << 24):
            num = min(1 << 24, num_tokens - start)
            file.write(random.integers(0, VOCABULARY, num, np.uint16).tobytes())
    lengths = random.integers(1, 2 * mean_length, 2 * num_tokens // mean_length)
    ends = np.cumsum(lengths)
    ends = np.append(ends[ends < num_tokens], num_tokens)
    ends.astype(np.uint64).tofile(folder / "ends")
    # No tokenizer: random ids are those of none.
    raw = {"input_dtype": "uint16", "boundaries": f"file={folder / 'ends'}"}
    packtok.convert(folder / "raw", folder / "a.pbin", to="pbin", **raw)
    return folder / "a.pbin"


def compare_with_copies(folder: Path, num_tokens: int, repetitions: int) -> None:
    """Prints the speed of conversions and of reshaping, relative to copying the file of the tokens."""
    pbin = write_pbin(folder / "copies", num_tokens, LONG)
    out = folder / "out"

    def copy() -> None:
        subprocess.run(["cp", "--reflink=never", pbin, out / "copy"], check=True)
        subprocess.run(["sync", out / "copy"], check=True)

    def convert(source: Path, to: str, **options: object) -> Callable[[], object]:
        return lambda: packtok.convert(source, out / "a", to=to, **options)

    def reshape(source: Path, **steps: object) -> Callable[[], object]:
        return lambda: packtok.reshape(source, out / "a.pbin", **steps)

    raw = {"input_dtype": "uint16", "boundaries": f"file={pbin.with_name('ends')}"}
    cases: dict[str, Callable[[], object]] = {
        "pbin to raw": convert(pbin, "raw"),
        "raw to pbin": convert(pbin.with_name("raw"), "pbin", **raw),
        "pbin to datatrove": convert(pbin, "datatrove"),
        "pbin to megatron": convert(pbin, "megatron"),
        "filter by length": reshape(pbin, filter="length >= 300"),
        "filter by count": reshape(pbin, filter="count(11) == 0"),
        "split by hash": reshape(pbin, split="train", validation_fraction=0.1),
    }
    for name, call in cases.items():
        copies, calls = in_turns(repetitions, out, copy, call)
        report(name, statistics.median(copies) / statistics.median(calls), calls, "of cp")
    for to, name in (("megatron", "a.idx"), ("datatrove", "a.ds")):
        packtok.convert(pbin, folder / "other" / "a", to=to)
        source = folder / "other" / name
        of_pbin, of_other = in_turns(
            repetitions, out, reshape(pbin, shuffle=True), reshape(source, shuffle=True)
        )
        ratio = statistics.median(of_pbin) / statistics.median(of_other)
        report(f"shuffle from {to}", ratio, of_other, "of the shuffle from a pbin")
        shutil.rmtree(folder / "other")
    shutil.rmtree(folder / "copies")
    many = write_pbin(folder / "many", LINKED_DOCUMENTS * 10, 10)
    link = lambda: packtok.convert(many, out / "a", to="megatron", link=True)  # noqa: E731
    (seconds,) = in_turns(repetitions, out, link)
    print(f"link of {LINKED_DOCUMENTS} documents: {spread(seconds)} s")
    shutil.rmtree(folder / "many")


def in_turns(repetitions: int, out: Path, *calls: Callable[[], object]) -> tuple[list[float], ...]:
    """Returns the wall times of each call, which write to ``out``, an empty folder."""
    seconds: tuple[list[float], ...] = tuple([] for _ in calls)
    for _ in range(repetitions):
        for call, times in zip(calls, seconds, strict=True):
            out.mkdir()
            started = time.perf_counter()
            call()
            times.append(time.perf_counter() - started)
            shutil.rmtree(out)
    return seconds


def report(name: str, ratio: float, seconds: list[float], of: str) -> None:
    print(f"{name}: {ratio:.0%} {of} ({spread(seconds)} s)", flush=True)


def compare_items(folder: Path, repetitions: int) -> None:
    """Prints the speed of random items, and of opening many files, relative to pbins."""
    pbin = write_pbin(folder / "items", 50_000_000, LONG)
    sources = {"pbin": pbin}
    for to, name in (("megatron", "a.idx"), ("datatrove", "a.ds"), ("npy", "a/shard_00000.npy")):
        packtok.convert(pbin, folder / to / "a", to=to)
        sources[to] = folder / to / name
    datasets = {to: packtok.TokenDataset(str(path), CONTEXT_LENGTH) for to, path in sources.items()}
    random = np.random.default_rng(1)
    items = random.integers(0, len(datasets["pbin"]), NUM_ITEMS).tolist()
    seconds: dict[str, list[float]] = {to: [] for to in sources}
    for _ in range(repetitions):
        for to, dataset in datasets.items():
            started = time.process_time()
            for start in range(0, NUM_ITEMS, 32):
                dataset.__getitems__(items[start : start + 32])
            seconds[to].append(time.process_time() - started)
    for to in sources:
        ratio = statistics.median(seconds["pbin"]) / statistics.median(seconds[to])
        report(f"items of {to}", ratio, seconds[to], "of items of a pbin")
    compare_opening(folder, repetitions)


def compare_opening(folder: Path, repetitions: int) -> None:
    """Prints the time of opening a manifest of many files, relative to one of pbins."""
    pbin = write_pbin(folder / "small", 2_000, SHORT)
    manifests = {}
    for to, suffix in (("pbin", ".pbin"), ("megatron", ".idx")):
        files = folder / f"{to}_files"
        files.mkdir()
        for i in range(NUM_FILES):
            if to == "pbin":
                shutil.copyfile(pbin, files / f"{i}.pbin")
            else:
                packtok.convert(pbin, files / str(i), to=to)
        manifests[to] = folder / f"{to}.json"
        packtok.write_manifest([str(path) for path in files.glob(f"*{suffix}")], manifests[to])
    seconds: dict[str, list[float]] = {to: [] for to in manifests}
    for _ in range(repetitions):
        for to, manifest in manifests.items():
            started = time.process_time()
            packtok.TokenDataset(str(manifest), CONTEXT_LENGTH)
            seconds[to].append(time.process_time() - started)
    ratio = statistics.median(seconds["pbin"]) / statistics.median(seconds["megatron"])
    report(f"opening {NUM_FILES} files of megatron", ratio, seconds["megatron"], "of opening pbins")


def compare_with_peers(folder: Path, environments: Path, repetitions: int) -> None:
    """Prints how many times as fast as the peers packtok writes and reads their files."""
    megatron = python_of(environments, "megatron")
    for mean_length in (SHORT, LONG):
        pbin = write_pbin(folder / f"peers{mean_length}", PEER_TOKENS, mean_length)
        here = pbin.parent
        ours, theirs = here / "ours", here / "theirs"
        kind = f"Megatron, {mean_length} tokens a document"
        compare(
            f"writing {kind}",
            [megatron, "-c", MEGATRON_WRITES, here / "raw", here / "ends", theirs],
            [sys.executable, "-c", PACKTOK_WRITES, pbin, ours, "megatron"],
            repetitions,
        )
        compare(
            f"reading {kind}",
            [megatron, "-c", MEGATRON_READS, ours],
            [sys.executable, "-c", PACKTOK_READS, f"{ours}.idx"],
            repetitions,
        )
    packtok.convert(pbin, here / "d", to="datatrove")
    compare(
        f"reading datatrove, rows of {CONTEXT_LENGTH}",
        [python_of(environments, "datatrove"), "-c", DATATROVE_READS, here / "d.ds"],
        [sys.executable, "-c", PACKTOK_BATCHES, here / "d.ds"],
        repetitions,
    )
    litdata = python_of(environments, "litdata")
    ours, theirs = here / "l", here / "l_of_peer"
    compare(
        f"writing litdata, {LONG} tokens a document",
        [litdata, "-c", LITDATA_WRITES, here / "raw", here / "ends", theirs],
        [sys.executable, "-c", PACKTOK_WRITES, pbin, ours, "litdata"],
        repetitions,
    )
    compare(
        f"reading litdata, rows of {CONTEXT_LENGTH}",
        [litdata, "-c", LITDATA_READS, ours],
        [sys.executable, "-c", PACKTOK_BATCHES, ours],
        repetitions,
    )


def compare_with_readers(folder: Path, environments: Path, repetitions: int) -> None:
    """Prints how many times as fast as readers of other formats packtok opens and reads the same files."""
    pbin = write_pbin(folder / "readers", PEER_TOKENS, LONG)
    here = pbin.parent
    packtok.convert(pbin, here / "o", to="dolma")
    packtok.convert(pbin, here / "c", to="llm-c")
    mds, olmo, nemo = (python_of(environments, peer) for peer in ("mds", "olmo", "nemo"))
    cases: list[tuple[str, Path, str, str, list[str | Path]]] = [
        ("OLMo-core, rows of 2048", olmo, OLMO_READER, ROW_READER, [here / "o.npy", "2048"]),
        ("llm.c by NeMo AutoModel, rows of 2049", nemo, NEMO_READER, ROW_READER, [here / "c.bin", "2049"]),
    ]
    rows, ours = here / "rows.pbin", here / "ours"
    packtok.reshape(pbin, rows, rows=1024, existing="replace")
    for dtype in ("uint16", "int32"):
        compare(
            f"writing MDS, samples of 1024 {dtype}",
            [mds, "-c", MDS_WRITES, here / "raw", here / dtype, dtype],
            [sys.executable, "-c", MDS_CONVERTED, rows, ours, "uint32" if dtype == "int32" else dtype],
            repetitions,
        )
        name = f"MDS by index, samples of 1024 {dtype}"
        cases.append((name, mds, MDS_READER, DOCUMENT_READER, [here / dtype]))
        if packtok.diff(ours, here / dtype)["difference"] is not None:
            raise SystemExit(f"MDS, {dtype}: packtok writes other tokens")
    name = "MDS by iteration, samples of 1024 uint16"
    cases.append((name, mds, MDS_STREAM_READER, DOCUMENT_READER, [here / "uint16"]))
    for name, python, theirs, ours, arguments in cases:
        peer_hash = run([python, "-c", theirs + HASHES, *arguments]).output.splitlines()[-1]
        our_hash = run([sys.executable, "-c", ours + HASHES, *arguments]).output.splitlines()[-1]
        if our_hash != peer_hash:
            raise SystemExit(f"{name}: packtok reads other tokens")
        compare(
            f"reading {name}",
            [python, "-c", theirs + TIMES, *arguments],
            [sys.executable, "-c", ours + TIMES, *arguments],
            repetitions,
        )


def compare(name: str, peer: list[str | Path], ours: list[str | Path], repetitions: int) -> None:
    """Prints how many times as fast as the peer packtok is, by the seconds that the programs print."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repetitions):
        for command, times in zip((peer, ours), seconds, strict=True):
            times.append(float(run(command, "0").output.splitlines()[-1]))
    ratio = statistics.median(seconds[0]) / statistics.median(seconds[1])
    print(f"{name}: {ratio:.1f} times the peer ({spread(seconds[1], '.3f')} s)", flush=True)


if __name__ == "__main__":
    main()

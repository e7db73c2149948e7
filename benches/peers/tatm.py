"""Compares items of `packtok.get_dataset` with those of tatm and of `packtok.TokenDataset`, on one core.

    python benches/peers/tatm.py CHECKOUT [--rounds 7] [--seconds 0.5]

CHECKOUT is a checkout of https://github.com/KempnerInstitute/tatm; tatm is in no registry. Run by a Python
that has packtok, torch, PyYAML and Pillow: only tatm's modules for datasets and metadata are imported, not
those that need Ray and OpenMetadata.

All read the same 16 million tokens, the example corpus repeated, as items of 2,048 tokens in shuffled order:
tatm from a file without header, as it writes them, packtok from a pbin. Items are compared first. Then the
cases take turns in one process. Rates are items per CPU second; medians count. Exit code 1 if a bar is
missed.

Before that, tatm must read the metadata that `packtok.tokenize` and `packtok data create-metadata` write, and
`tatm_faults.py` shows faults of tatm that packtok does not have.
"""

import argparse
import contextlib
import importlib
import os
import random
import statistics
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cost import machine
from tatm_faults import show_faults

import packtok
from packtok.data import TatmMemmapDataset

CONTEXT_LENGTH = 2048
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "corpus.jsonl"
# 16 million tokens.
TIMES = 700
# The EOD of GPT-2's tokenizer.
EOS = 50_256
Item = Callable[[int], Any]

# Bars: the case, the case that it is compared with, and the least ratio of their rates.
BARS = (
    ("get_dataset, tokens only", "TokenDataset", 0.8),
    ("get_dataset", "tatm, default", 20.0),
    ("get_dataset, mask", "tatm, NumPy and mask", 5.0),
)
# Comparisons without a bar: like formats, and the files that tatm wrote.
ALSO = (
    ("get_dataset", "TokenDataset"),
    ("get_dataset, torch", "tatm, default"),
    ("get_dataset, torch and mask", "tatm, torch and mask"),
    ("get_dataset on tatm's file", "tatm, default"),
)


def main() -> int:
    """Checks, compares and prints; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="CPU time of a turn")
    parser.add_argument("--core", type=int, default=0)
    arguments = parser.parse_args()
    tatm = import_tatm(arguments.checkout)
    print(machine())
    os.sched_setaffinity(0, {arguments.core})
    importlib.import_module("torch").set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        check_metadata(tatm, Path(folder))
        show_faults(tatm, Path(folder) / "faults")
        write_tokens(Path(folder))
        items, num_items = cases(tatm, Path(folder))
        check_items(items, num_items)
        rates = measure(items, num_items, arguments.rounds, arguments.seconds)
    return report(rates)


def import_tatm(checkout: Path) -> types.SimpleNamespace:
    """Returns tatm's classes for datasets and metadata, without running the `__init__` of its packages."""
    source = checkout / "src" / "tatm"
    if not source.is_dir():
        raise SystemExit(f"{checkout}: no folder src/tatm; give a checkout of tatm")
    for name, folder in (("tatm", source), ("tatm.data", source / "data")):
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    # An empty module replaces the one that looks up names, which is not needed here.
    sys.modules["tatm.data.metadata_store"] = types.ModuleType("tatm.data.metadata_store")
    sys.modules["tatm.data"].metadata_store = sys.modules["tatm.data.metadata_store"]  # type: ignore[attr-defined]
    sys.modules["tatm"].data = sys.modules["tatm.data"]  # type: ignore[attr-defined]
    metadata = importlib.import_module("tatm.data.metadata")
    datasets = importlib.import_module("tatm.data.datasets")
    return types.SimpleNamespace(
        Dataset=datasets.TatmMemmapDataset,
        get_dataset=datasets.get_dataset,
        Metadata=metadata.TatmDataMetadata,
        create_metadata=metadata.create_metadata_interactive,
    )


def check_metadata(tatm: types.SimpleNamespace, folder: Path) -> None:
    """Makes tatm read packtok's metadata of a corpus and of its tokens."""
    from packtok.catalog.schema import load_metadata

    raw = folder / "raw"
    raw.mkdir()
    (raw / "a.jsonl").write_text('{"text": "some text"}\n' * 10)
    for suffix in ("json", "yaml"):
        path = raw / f"metadata.{suffix}"
        options = ["--yes", "--name", "Raw", "--dataset-path", str(raw), "--output", str(path)]
        packtok_command("data", "create-metadata", *options, "--output-format", suffix)
        read = tatm.Metadata.from_file(path)
        ours = load_metadata(path)
        assert (read.name, read.content_field, read.dataset_path) == ("Raw", "text", str(ours.folder)), read
        path.rename(path.with_suffix(f".{suffix}.done"))
    (raw / "metadata.json.done").rename(raw / "metadata.json")
    packtok.tokenize([str(raw)], "gpt2", str(folder / "tokenized"))
    read = tatm.Metadata.from_directory(folder / "tokenized")
    assert read.tokenized_info.vocab_size == 50_257, read
    assert read.tokenized_info.dtype == "uint16", read
    print("tatm reads the metadata of create-metadata and tokenize")


def packtok_command(*arguments: str) -> None:
    from packtok.cli import app

    with contextlib.redirect_stdout(None):
        app(list(arguments), standalone_mode=False)


def write_tokens(folder: Path) -> None:
    """Packs the example corpus many times, and writes the same tokens as a file of tatm."""
    corpus = folder / "corpus.jsonl"
    corpus.write_bytes(EXAMPLES.read_bytes() * TIMES)
    packtok.pack(input=corpus, output=folder / "train.pbin", tokenizer="gpt2", num_cpus=1)
    reader = packtok.PbinReader(folder / "train.pbin")
    reader.tokens(0, reader.num_tokens).tofile(folder / "tatm_0.bin")
    print(f"{reader.num_tokens:,} tokens, {len(reader):,} documents, {reader.dtype}")


def cases(tatm: types.SimpleNamespace, folder: Path) -> tuple[dict[str, Item], int]:
    """Returns the function that reads an item in each case, and the number of whole items."""
    pbin = folder / "train.pbin"

    def ours(**options: Any) -> Item:
        return packtok.get_dataset(pbin, CONTEXT_LENGTH, **options).__getitem__

    def theirs(**options: Any) -> Item:
        dataset = tatm.Dataset(str(folder / "tatm_"), CONTEXT_LENGTH, eos_token=EOS, **options)
        return dataset.__getitem__  # type: ignore[no-any-return]

    tokens = packtok.TokenDataset(pbin, CONTEXT_LENGTH)
    own_reader = TatmMemmapDataset(folder / "tatm_", CONTEXT_LENGTH, eos_token=EOS)
    return {
        "TokenDataset": tokens.__getitem__,
        "get_dataset, tokens only": ours(create_doc_ids=False),
        "get_dataset": ours(),
        "get_dataset, torch": ours(token_output_format="torch"),
        "get_dataset, mask": ours(create_doc_mask=True),
        "get_dataset, torch and mask": ours(create_doc_mask=True, token_output_format="torch"),
        "get_dataset on tatm's file": own_reader.__getitem__,
        "tatm, default": theirs(),
        "tatm, NumPy and mask": theirs(token_output_format="numpy", create_doc_mask=True),
        "tatm, torch and mask": theirs(create_doc_mask=True),
    }, len(tokens)


def check_items(items: dict[str, Item], num_items: int) -> None:
    """Compares some items of all cases with those of tatm."""
    for i in (0, 1, num_items // 2, num_items - 1):
        expected = items["tatm, NumPy and mask"](i)
        for name, read in items.items():
            item = read(i)
            if name == "TokenDataset":
                fields = {"token_ids": item["input_ids"]}
            else:
                fields = {
                    field: item[field]
                    for field in ("token_ids", "document_ids", "document_mask")
                    if name != "get_dataset, tokens only" or field == "token_ids"
                }
            for field, value in fields.items():
                if value is not None and not (np.asarray(value) == expected[field]).all():
                    raise RuntimeError(f"{name}: {field} of item {i} differs from tatm's")


def measure(items: dict[str, Item], num_items: int, rounds: int, seconds: float) -> dict[str, list[float]]:
    """Returns the items per CPU second of each case in each round."""
    rates: dict[str, list[float]] = {name: [] for name in items}
    for turn in range(rounds):
        for name, read in items.items():
            rates[name].append(rate(read, order(num_items, turn), seconds))
    return rates


def order(num_items: int, seed: int) -> Iterator[int]:
    draw = random.Random(seed)
    while True:
        yield from draw.sample(range(num_items), num_items)


def rate(read: Item, wanted: Iterator[int], seconds: float) -> float:
    """Reads items for some CPU time; returns their number per second."""
    batch = [next(wanted) for _ in range(10)]
    num, started = 0, time.process_time()
    while (elapsed := time.process_time() - started) < seconds:
        for i in batch:
            read(i)
        num += len(batch)
        batch = [next(wanted) for _ in range(len(batch))]
    return num / elapsed


def report(rates: dict[str, list[float]]) -> int:
    """Prints rates, and ratios of rounds; returns 1 if a bar is missed."""
    for name, values in rates.items():
        print(
            f"{name:28} {statistics.median(values):10,.0f} items/s ({min(values):,.0f} to {max(values):,.0f})"
        )
    status = 0
    for name, other, least in (*BARS, *((name, other, None) for name, other in ALSO)):
        ratios = [ours / theirs for ours, theirs in zip(rates[name], rates[other], strict=True)]
        ratio = statistics.median(ratios)
        verdict = "" if least is None else f", bar {least}: {'met' if ratio >= least else 'MISSED'}"
        status |= least is not None and ratio < least
        print(f"{name} / {other}: {ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f}){verdict}")
    return status


if __name__ == "__main__":
    sys.exit(main())

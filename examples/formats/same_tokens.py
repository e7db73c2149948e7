"""Packs a corpus once, and trains a small model for a few steps on the files of several trainers.

    python examples/formats/same_tokens.py [FOLDER] [--steps 5]

Each format is converted or linked from one pbin and read by its own trainer's reader, if that is installed:
Megatron Core, datatrove, OLMo-core, NumPy as KempnerForge, Hugging Face datasets as TRL. All readers must
give the same tokens, which is checked by their hash, and so the same losses.
"""

import argparse
import hashlib
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import packtok

CORPUS = Path(__file__).resolve().parents[1] / "corpus.jsonl"
TOKENIZER, VOCABULARY = "gpt2", 50257
CONTEXT_LENGTH = 64
ROWS = 8


def tokens_of_pbin(folder: Path) -> Iterable[Any]:
    """Returns the documents of the pbin."""
    reader = packtok.PbinReader(folder / "corpus.pbin")
    return (reader[i] for i in range(len(reader)))


def tokens_of_megatron(folder: Path) -> Iterable[Any]:
    """Returns the sequences that Megatron Core reads."""
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    # Nothing is copied: `.bin` is a link to the pbin.
    packtok.convert(folder / "corpus.pbin", folder / "megatron/corpus", to="megatron", link=True)
    dataset = IndexedDataset(str(folder / "megatron/corpus"))
    return (dataset[i] for i in range(len(dataset)))


def tokens_of_datatrove(folder: Path) -> Iterable[Any]:
    """Returns the rows that datatrove reads, of one token each."""
    from datatrove.utils.dataset import DatatroveFileDataset

    packtok.convert(folder / "corpus.pbin", folder / "datatrove/corpus", to="datatrove")
    # Its rows have one token more than their length, and none is left over with rows of one token.
    dataset = DatatroveFileDataset(str(folder / "datatrove/corpus.ds"), 0, token_size=2)
    return (dataset[i]["input_ids"] for i in range(len(dataset)))


def tokens_of_olmo_core(folder: Path) -> Iterable[Any]:
    """Returns the items that OLMo-core reads, of one token each."""
    from olmo_core.data.numpy_dataset import NumpyFSLDataset

    packtok.convert(folder / "corpus.pbin", folder / "dolma/corpus", to="dolma")
    dataset = NumpyFSLDataset(
        str(folder / "dolma/corpus.npy"),
        sequence_length=1,
        pad_token_id=VOCABULARY - 1,
        eos_token_id=VOCABULARY - 1,
        vocab_size=VOCABULARY,
        dtype=np.uint16,
        include_instance_metadata=False,
    )
    dataset.prepare()
    return (dataset[i]["input_ids"] for i in range(len(dataset)))


def tokens_of_arrays(folder: Path) -> Iterable[Any]:
    """Returns the arrays that KempnerForge maps."""
    # KempnerForge maps each file of the folder in the order of names.
    packtok.convert(folder / "corpus.pbin", folder / "npy", to="npy")
    return (np.load(path, mmap_mode="r") for path in sorted((folder / "npy").glob("*.npy")))


def tokens_of_datasets(folder: Path) -> Iterable[Any]:
    """Returns the rows that Hugging Face datasets reads."""
    from datasets import load_dataset

    packtok.convert(folder / "corpus.pbin", folder / "parquet", to="parquet")
    return (row["input_ids"] for row in load_dataset(str(folder / "parquet"), split="train"))


READERS: dict[str, Callable[[Path], Iterable[Any]]] = {
    "packtok": tokens_of_pbin,
    "Megatron Core": tokens_of_megatron,
    "datatrove": tokens_of_datatrove,
    "OLMo-core": tokens_of_olmo_core,
    "KempnerForge's arrays": tokens_of_arrays,
    "Hugging Face datasets": tokens_of_datasets,
}


def main() -> None:
    """Compares all readers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="folder to write in; a temporary one")
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        compare(arguments.folder or Path(temporary), arguments.steps)


def compare(folder: Path, steps: int) -> None:
    """Prints hash and losses of each reader.

    Raises:
        SystemExit: If a reader gives other tokens.
    """
    folder.mkdir(parents=True, exist_ok=True)
    packtok.pack(
        input=str(CORPUS), output=str(folder / "corpus.pbin"), tokenizer=TOKENIZER, existing="replace"
    )
    expected = None
    for name, read in READERS.items():
        try:
            parts = [np.asarray(part).ravel().astype(np.int64) for part in read(folder)]
        except ModuleNotFoundError as error:
            print(f"{name}: {error.name} is not installed")
            continue
        tokens = np.concatenate(parts)
        digest = hashlib.sha256(tokens.tobytes()).hexdigest()[:16]
        losses = losses_of(tokens, steps)
        print(f"{name}: {len(tokens)} tokens, {digest}, losses {' '.join(f'{x:.4f}' for x in losses)}")
        expected = expected or (digest, losses)
        if (digest, losses) != expected:
            raise SystemExit(f"{name} reads other tokens")


def losses_of(tokens: np.ndarray[Any, Any], steps: int) -> list[float]:
    """Trains a small model on the first tokens and returns the loss of each step."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(VOCABULARY, 16), torch.nn.Linear(16, VOCABULARY))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    losses = []
    for step in range(steps):
        start = step * ROWS * CONTEXT_LENGTH
        rows = torch.from_numpy(tokens[start : start + ROWS * CONTEXT_LENGTH].reshape(ROWS, -1))
        logits = model(rows[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 6))
    return losses


if __name__ == "__main__":
    main()

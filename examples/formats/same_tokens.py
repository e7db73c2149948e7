"""Packs a corpus once, and trains a small model for a few steps on the files of several trainers.

    python examples/formats/same_tokens.py [FOLDER] [--steps 5]

Each format is converted or linked from one pbin and read by its own trainer's reader, if that is installed:
Megatron Core, datatrove, OLMo-core, litdata, mosaicml-streaming, KempnerForge (a checkout on PYTHONPATH),
NumPy, Hugging Face datasets, TRL. All readers must give the same tokens, which is checked by their hash, and
so the same losses.
"""

import argparse
import functools
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
Reader = Callable[[Path], Iterable[Any]]


def convert(folder: Path, output: str, **options: Any) -> str:
    """Converts the pbin, and returns the path of the output."""
    packtok.convert(folder / "corpus.pbin", folder / output, existing="replace", **options)
    return str(folder / output)


def tokens_of_pbin(folder: Path) -> Iterable[Any]:
    """Returns the documents of the pbin."""
    reader = packtok.PbinReader(folder / "corpus.pbin")
    return (reader[i] for i in range(len(reader)))


def tokens_of_megatron(folder: Path) -> Iterable[Any]:
    """Returns the sequences that Megatron Core reads."""
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    # Nothing is copied: `.bin` is a link to the pbin.
    dataset = IndexedDataset(convert(folder, "megatron/corpus", to="megatron", link=True))
    return (dataset[i] for i in range(len(dataset)))


def tokens_of_datatrove(folder: Path) -> Iterable[Any]:
    """Returns the rows that datatrove reads, of one token each."""
    from datatrove.utils.dataset import DatatroveFileDataset

    output = convert(folder, "datatrove/corpus", to="datatrove")
    # Its rows have one token more than their length, and none is left over with rows of one token.
    dataset = DatatroveFileDataset(f"{output}.ds", 0, token_size=2)
    return (dataset[i]["input_ids"] for i in range(len(dataset)))


def tokens_of_olmo_core(folder: Path) -> Iterable[Any]:
    """Returns the items that OLMo-core reads, of one token each."""
    from olmo_core.data.numpy_dataset import NumpyFSLDataset

    output = convert(folder, "dolma/corpus", to="dolma")
    dataset = NumpyFSLDataset(
        f"{output}.npy",
        sequence_length=1,
        pad_token_id=VOCABULARY - 1,
        eos_token_id=VOCABULARY - 1,
        vocab_size=VOCABULARY,
        dtype=np.uint16,
        include_instance_metadata=False,
    )
    dataset.prepare()
    return (dataset[i]["input_ids"] for i in range(len(dataset)))


def tokens_of_litdata(folder: Path) -> Iterable[Any]:
    """Returns the blocks that litdata streams, of one token each."""
    from litdata.streaming import StreamingDataset, TokensLoader

    output = convert(folder, "litdata", to="litdata")
    # It drops the tokens of a chunk that do not fill a block; none are dropped with blocks of one token.
    return StreamingDataset(output, item_loader=TokensLoader(block_size=1))


def tokens_of_streaming(folder: Path) -> Iterable[Any]:
    """Returns the samples that mosaicml-streaming reads for LLM Foundry."""
    from streaming import StreamingDataset

    dataset = StreamingDataset(local=convert(folder, "mds", to="mds"), batch_size=1)
    return (dataset[i]["tokens"] for i in range(len(dataset)))


def tokens_of_kempnerforge(folder: Path) -> Iterable[Any]:
    """Returns the samples that KempnerForge maps, each with the last of its labels."""
    from kempnerforge.data import MemoryMappedDataset

    output = convert(folder, "kempnerforge", to="npy")
    # It drops the tokens of a file that do not fill a sample, and samples of one token have no input. So the
    # sample length is the smallest divisor of the number of tokens that is above one.
    num_tokens = packtok.PbinReader(folder / "corpus.pbin").num_tokens
    length = next(length for length in range(2, num_tokens + 1) if num_tokens % length == 0)
    dataset = MemoryMappedDataset(output, length, "*.npy")
    samples = (dataset[i] for i in range(len(dataset)))
    return (torch.cat([sample["input_ids"], sample["labels"][-1:]]) for sample in samples)


def tokens_of_arrays(folder: Path) -> Iterable[Any]:
    """Returns the arrays that NumPy maps."""
    output = convert(folder, "npy", to="npy")
    return (np.load(path, mmap_mode="r") for path in sorted(Path(output).glob("*.npy")))


def tokens_of_datasets(folder: Path) -> Iterable[Any]:
    """Returns the rows that Hugging Face datasets reads."""
    from datasets import load_dataset

    output = convert(folder, "parquet", to="parquet")
    return (row["input_ids"] for row in load_dataset(output, split="train"))


def tokens_of_trl(folder: Path, steps: int) -> Iterable[Any]:
    """Trains a tiny model with TRL and returns the rows that TRL prepared for it."""
    from datasets import load_dataset
    from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel
    from trl import SFTConfig, SFTTrainer

    output = convert(folder, "trl", to="parquet")
    dataset = load_dataset(output, split="train")
    longest = max(map(len, dataset["input_ids"]))
    config = GPT2Config(vocab_size=VOCABULARY, n_positions=longest, n_embd=16, n_layer=1, n_head=1)
    trainer = SFTTrainer(
        GPT2LMHeadModel(config),
        SFTConfig(
            str(folder / "trl_output"),
            max_steps=steps,
            per_device_train_batch_size=1,
            # By default, documents are truncated to 1,024 tokens.
            max_length=None,
            use_cpu=True,
            bf16=False,
            report_to="none",
            disable_tqdm=True,
            save_strategy="no",
        ),
        train_dataset=dataset,
        processing_class=AutoTokenizer.from_pretrained(output),
    )
    trainer.train()
    return (row["input_ids"] for row in trainer.train_dataset)


READERS: dict[str, Reader] = {
    "packtok": tokens_of_pbin,
    "Megatron Core": tokens_of_megatron,
    "datatrove": tokens_of_datatrove,
    "OLMo-core": tokens_of_olmo_core,
    "litdata": tokens_of_litdata,
    "mosaicml-streaming": tokens_of_streaming,
    "KempnerForge": tokens_of_kempnerforge,
    "NumPy": tokens_of_arrays,
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
    readers: dict[str, Reader] = {**READERS, "TRL": functools.partial(tokens_of_trl, steps=steps)}
    expected = None
    for name, read in readers.items():
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

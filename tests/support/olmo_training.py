"""Trains a small OLMo on `packtok.get_dataset`, with OLMo's own dataset, collator and model, on the CPU.

    python olmo_training.py DATASET          the package ai2-olmo 0.6.0, which has no `custom_dataset`
    python olmo_training.py DATASET --hook   OLMo's main branch, by `custom_dataset` in its config

Run by a Python that has ai2-olmo; for ``--hook`` with a checkout of OLMo and a folder with packtok first in
PYTHONPATH. DATASET is anything that `packtok.get_dataset` takes. Prints the losses as a line of JSON.
"""

import argparse
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from olmo.config import DataConfig, ModelConfig, TrainConfig
from olmo.data.collator import DataCollator
from olmo.data.iterable_dataset import IterableDataset
from olmo.model import OLMo
from torch.utils.data import DataLoader

import packtok

LENGTH = 64
BATCH_SIZE = 4
STEPS = 8


class Renamed:
    """Items under the names that the collator of 0.6.0 expects; the hook's `collate_config` renames them."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, i: int) -> dict[str, Any]:
        item = self._dataset[i]
        return {"input_ids": item.token_ids, "attention_bias": item.document_mask}


def model_config(vocab_size: int) -> ModelConfig:
    return ModelConfig(
        d_model=32,
        n_heads=2,
        n_layers=2,
        mlp_ratio=2,
        rope=True,
        vocab_size=vocab_size,
        embedding_size=vocab_size,
        max_sequence_length=LENGTH,
        attention_dropout=0.0,
        residual_dropout=0.0,
        embedding_dropout=0.0,
        pad_token_id=0,
        init_device="cpu",
    )


def batches_of_package(dataset: Any, config: ModelConfig) -> Iterable[dict[str, Any]]:
    """Returns the batches of ai2-olmo 0.6.0."""
    config = TrainConfig(model=config)
    with tempfile.TemporaryDirectory() as folder:
        source = IterableDataset(Renamed(dataset), BATCH_SIZE, seed=1, drop_last=True, work_dir=folder)
        yield from DataLoader(
            source, batch_size=BATCH_SIZE, drop_last=True, collate_fn=DataCollator.from_train_config(config)
        )


def batches_of_hook(path: str, config: ModelConfig) -> Iterable[dict[str, Any]]:
    """Returns the batches that OLMo makes of the block `custom_dataset` of its config."""
    from olmo.config import CustomDatasetConfig
    from olmo.data import build_train_dataloader

    block = {
        "name": "packtok.get_dataset",
        "args": {"metadata": path, "context_length": LENGTH, "create_doc_mask": True},
        "collate_config": {
            "input_id_field": "token_ids",
            "attention_bias_field": "document_mask",
            "index_field": "index",
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        whole = TrainConfig(
            model=config,
            data=DataConfig(custom_dataset=CustomDatasetConfig(**block), num_workers=0, drop_last=True),
            save_folder=folder,
            save_overwrite=True,
            global_train_batch_size=BATCH_SIZE,
            device_train_batch_size=BATCH_SIZE,
            seed=1,
        )
        # Configs from YAML have this type.
        yield from build_train_dataloader(TrainConfig.new(**whole.asdict()))


def check(batch: dict[str, Any], dataset: Any) -> None:
    """Fails unless the rows of ``batch`` are the items with the indices in it."""
    for row, i in enumerate(batch["index"].tolist()):
        item = dataset[i]
        assert batch["input_ids"].dtype == torch.int64
        assert batch["input_ids"][row].tolist() == item.token_ids.tolist()
        assert np.array_equal(batch["attention_bias"][row, 0].numpy(), item.document_mask)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--hook", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    dataset = packtok.get_dataset(arguments.dataset, LENGTH)
    config = model_config(dataset.vocab_size or 50257)
    model = OLMo(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    if arguments.hook:
        batches = batches_of_hook(str(Path(arguments.dataset).resolve()), config)
    else:
        batches = batches_of_package(dataset, config)
    losses = []
    for _, batch in zip(range(STEPS), batches, strict=False):
        check(batch, dataset)
        logits = model(batch["input_ids"], attention_bias=batch["attention_bias"]).logits
        loss = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), batch["input_ids"][:, 1:].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(json.dumps({"items": len(dataset), "losses": losses}))


if __name__ == "__main__":
    main()

"""Trains a small model with OLMo-core 3's own loader and trainer on `PbinDocumentSource`, on the CPU.

    python tests/support/olmo_core_training.py '["a.pbin", "b.pbin"]'

Run by a Python that has ai2-olmo-core, with a folder with packtok in PYTHONPATH, in a folder to write in.
Prints the values that the source and the loaders return, and the losses, as a line of JSON.
"""

import json
import pickle
import sys
from typing import Any

import torch
from olmo_core.data import DataCollator
from olmo_core.data.composable import (
    ComposableDataLoader,
    ConcatAndChunkInstanceSource,
    ConcatAndChunkInstanceSourceConfig,
    InstanceSource,
    PackingInstanceSource,
)
from olmo_core.nn.transformer import TransformerConfig
from olmo_core.optim import AdamWConfig
from olmo_core.train import Duration, TrainerConfig, prepare_training_environment
from olmo_core.train.callbacks import Callback
from olmo_core.train.train_module import TransformerTrainModule

from packtok.integrations.olmo_core import PbinDocumentSource, PbinDocumentSourceConfig

LENGTH = 16
ROWS = 4
STEPS = 40
losses: list[float] = []


class Losses(Callback):  # type: ignore[misc]
    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        losses.extend(value for name, value in metrics.items() if "CE loss" in name)


def loader_of(instances: InstanceSource, source: PbinDocumentSource, **options: Any) -> ComposableDataLoader:
    tokenizer = source.tokenizer
    collator = DataCollator(pad_token_id=tokenizer.pad_token_id, vocab_size=tokenizer.vocab_size)
    return ComposableDataLoader(
        instances,
        collator=collator,
        tokenizer=tokenizer,
        work_dir="work",
        global_batch_size=ROWS * LENGTH,
        display_source_visualization=False,
        **options,
    )


def rows(loader: ComposableDataLoader) -> list[list[int]]:
    """Returns the rows of the first epoch."""
    loader.reshuffle(1)
    rows = [row for batch in loader for row in batch["input_ids"].tolist()]
    loader.reset()
    return rows


def train(loader: ComposableDataLoader, vocab_size: int) -> None:
    config = TransformerConfig.llama_like(d_model=32, n_layers=1, n_heads=2, vocab_size=vocab_size)
    module = TransformerTrainModule(
        config.build(init_device="cpu"),
        AdamWConfig(lr=1e-2),
        rank_microbatch_size=ROWS * LENGTH,
        max_sequence_length=LENGTH,
        device=torch.device("cpu"),
    )
    trainer = TrainerConfig(
        save_folder="save",
        save_overwrite=True,
        max_duration=Duration.steps(STEPS),
        metrics_collect_interval=1,
        no_checkpoints=True,
        no_evals=True,
        device="cpu",
    ).with_callback("losses", Losses())
    trainer.build(module, loader).fit()


def main() -> None:
    paths = json.loads(sys.argv[1])
    source = PbinDocumentSource(paths, work_dir="work")
    packed = PackingInstanceSource(
        source, sequence_length=LENGTH, tokenizer=source.tokenizer, work_dir="work"
    )
    # Processes that start after this line are spawned.
    prepare_training_environment(seed=0, backend=None)
    copy = pickle.loads(pickle.dumps(source))
    assert copy.fingerprint == source.fingerprint
    reordered = PbinDocumentSource(paths[::-1], work_dir="work")
    assert reordered.fingerprint != source.fingerprint
    # From a config, as OLMo-core's scripts create sources.
    (built,) = PbinDocumentSourceConfig(source=paths).build("work")
    assert built.fingerprint == source.fingerprint
    config = ConcatAndChunkInstanceSourceConfig(
        sources=[PbinDocumentSourceConfig(source=paths)], sequence_length=LENGTH
    )
    assert len(config.build("work")) == source.num_tokens // LENGTH

    chunks = ConcatAndChunkInstanceSource(source, sequence_length=LENGTH, work_dir="work")
    view = source.get_token_range(0, 5)["input_ids"]
    report = {
        "num_tokens": source.num_tokens,
        "offsets": list(source.get_document_offsets()),
        "ranges": [source[at : at + 50]["input_ids"].tolist() for at in range(0, source.num_tokens - 50, 7)],
        "all": copy.get_token_range(0, source.num_tokens)["input_ids"].tolist(),
        "is view": not view.flags.writeable and not view.flags.owndata,
        "chunks": rows(loader_of(chunks, source, shuffle=False)),
        "packed": [row["input_ids"].tolist() for row in packed],
        "in workers": rows(loader_of(chunks, source, num_workers=1)) == rows(loader_of(chunks, source)),
        "pickle bytes": len(pickle.dumps(source)),
    }
    train(loader_of(chunks, source), source.tokenizer.padded_vocab_size())
    print(json.dumps({**report, "losses": losses}))


if __name__ == "__main__":
    main()

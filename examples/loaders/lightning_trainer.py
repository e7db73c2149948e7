"""packtok's data in Lightning, whose checkpoints keep the position in the data.

    python lightning_trainer.py train.pbin

Lightning saves and loads the state of any loader that has one. It must not replace packtok's sampler, hence
``use_distributed_sampler=False``. Save checkpoints with its callback: a checkpoint saved after ``fit`` ended
at ``max_steps`` counts the unfinished epoch as finished.
"""

import sys
from pathlib import Path

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.nn import functional

import packtok


class TinyModel(lightning.LightningModule):
    """Predicts each token from the one before."""

    def __init__(self, path: str, vocab_size: int, batch_size: int) -> None:
        super().__init__()
        self.path = path
        self.batch_size = batch_size
        self.logits = nn.Embedding(vocab_size, vocab_size)
        self.losses: list[float] = []

    def train_dataloader(self) -> packtok.DataLoader:
        """Creates the loader. Lightning calls this once the processes run, so that each finds its rank."""
        dataset = packtok.TokenDataset(self.path, context_length=64)
        return packtok.DataLoader(dataset, global_batch_size=self.batch_size, shuffle=True, seed=1)

    def training_step(self, batch: dict[str, torch.Tensor], _: int) -> torch.Tensor:
        """Returns the loss of a batch."""
        logits = self.logits(batch["input_ids"])
        loss = functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Returns plain Adam."""
        return torch.optim.Adam(self.parameters(), lr=1e-2)


def trainer(folder: Path, *, steps: int, save_every: int) -> lightning.Trainer:
    """Returns a trainer that keeps all of its checkpoints, named by step, in ``folder``."""
    checkpoints = ModelCheckpoint(
        folder, "{step}", every_n_train_steps=save_every, save_top_k=-1, enable_version_counter=False
    )
    return lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_steps=steps,
        max_epochs=-1,
        use_distributed_sampler=False,
        callbacks=[checkpoints],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


def main(path: str) -> None:
    """Trains for ten steps, then again from the checkpoint of step 5."""
    metadata = packtok.PbinReader(path).metadata or {}
    whole, resumed = (TinyModel(path, metadata["tokenizer"]["vocab_size"], batch_size=8) for _ in range(2))
    folder = Path("lightning")
    trainer(folder, steps=10, save_every=5).fit(whole)
    trainer(folder, steps=10, save_every=5).fit(resumed, ckpt_path=folder / "step=5.ckpt", weights_only=True)
    print(whole.losses[5:])
    print(resumed.losses)


if __name__ == "__main__":
    main(sys.argv[1])

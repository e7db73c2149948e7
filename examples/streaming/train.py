"""Trains a tiny model on files that are read, tokenized and shuffled while it trains.

    torchrun --standalone --nproc-per-node 2 train.py 's3://bucket/corpus/*.jsonl' --folder runs/tiny

The same command continues a run that was stopped or killed, with any number of processes that divides the
lanes and the global batch: all of them see the batches that an uninterrupted run would have seen.
"""

import hashlib
import os
from pathlib import Path
from typing import Annotated, Any

import torch
import torch.distributed as dist
import typer
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import packtok
from packtok.stream import CheckpointableDataset, merge_states

CONTEXT_LENGTH = 64
WIDTH = 32
# Fixed for a run, and multiples of every number of processes that it may use: here 1, 2, 3, 4, 6 and 12.
LANES = 12
GLOBAL_BATCH_SIZE = 12


def stream(data: list[str], tokenizer: packtok.Tokenizer) -> CheckpointableDataset:
    """Returns this process's part of each global batch; the process group says which one."""
    files = CheckpointableDataset.from_files(data, repeat=True, shuffle_shards=True)
    documents = files.tokenize(tokenizer).ensure_bos_eos(tokenizer)
    rows = documents.concat_chunk(CONTEXT_LENGTH + 1).shuffle(100)
    return rows.distribute(lanes=LANES).batch(global_batch_size=GLOBAL_BATCH_SIZE)


class TinyModel(nn.Module):
    """Predicts each token from those before it."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, WIDTH)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.recurrent = nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Returns the mean loss of the predictions in all rows."""
        hidden, _ = self.recurrent(self.embedding(input_ids[:, :-1]))
        logits = functional.linear(hidden, self.embedding.weight)
        return functional.cross_entropy(logits.flatten(0, 1), input_ids[:, 1:].flatten())


class Run:
    """A run's model, optimizer and position in the data, and the folder with its checkpoint and losses."""

    def __init__(self, data: list[str], tokenizer: packtok.Tokenizer, folder: Path) -> None:
        """Starts after the last checkpoint in ``folder``, or at the beginning if there is none."""
        torch.manual_seed(0)
        self.model = TinyModel(tokenizer.vocab_size)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.step = 0
        self.checkpoint, self.log = folder / "checkpoint.pt", folder / "losses.csv"
        self.batches = stream(data, tokenizer).iter(self._load() if self.checkpoint.exists() else None)
        # Averages the gradients. As all processes have as many rows, these are those of the global batch.
        self.parallel = DistributedDataParallel(self.model)
        if dist.get_rank() == 0:
            print(f"{dist.get_world_size()} processes start after step {self.step}", flush=True)
            folder.mkdir(parents=True, exist_ok=True)
            lines = self.log.read_text().splitlines(keepends=True) if self.log.exists() else []
            # A killed run may have logged steps after its checkpoint.
            self.log.write_text("".join(lines[: self.step + 1]) or "step,loss,digest\n")

    def take_step(self) -> None:
        """Trains on the next global batch and logs its loss."""
        input_ids = next(self.batches)["input_ids"]
        self.optimizer.zero_grad()
        loss = self.parallel(input_ids)
        loss.backward()
        self.optimizer.step()
        self.step += 1
        mean = loss.detach() / dist.get_world_size()
        dist.all_reduce(mean)
        digest = digest_of_global_batch(input_ids)
        if dist.get_rank() == 0:
            with self.log.open("a") as file:
                file.write(f"{self.step},{mean.item():.6f},{digest}\n")

    def save(self) -> None:
        """Replaces the checkpoint. A crash leaves the old one or the new one."""
        is_first = dist.get_rank() == 0
        states: list[Any] | None = [None] * dist.get_world_size() if is_first else None
        dist.gather_object(self.batches.state_dict(), states)
        if states is None:
            return
        content = {
            "step": self.step,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            # The lanes of all processes, so that another number of processes can continue.
            "stream": merge_states(states),
        }
        unfinished = self.checkpoint.with_suffix(".tmp")
        torch.save(content, unfinished)
        os.replace(unfinished, self.checkpoint)

    def _load(self) -> dict[str, Any]:
        """Restores the model and the optimizer; returns the state of the stream."""
        content = torch.load(self.checkpoint, weights_only=True)
        self.model.load_state_dict(content["model"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.step = content["step"]
        state: dict[str, Any] = content["stream"]
        return state


def digest_of_global_batch(input_ids: torch.Tensor) -> str:
    """Returns a digest of the rows of all processes; only to show that a resumed run sees the same data."""
    parts = [torch.empty_like(input_ids) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, input_ids)
    # Processes take rows in turns.
    rows = torch.stack(parts, dim=1).flatten(0, 1)
    return hashlib.sha256(rows.numpy().tobytes()).hexdigest()[:16]


def main(
    data: Annotated[list[str], typer.Argument(help="Files, globs, folders or URLs of object stores.")],
    folder: Annotated[Path, typer.Option(help="For the checkpoint and losses.")] = Path("runs/tiny"),
    steps: Annotated[int, typer.Option(min=1)] = 40,
    save_every: Annotated[int, typer.Option(min=1)] = 8,
    tokenizer: Annotated[str, typer.Option(help="A name, or a folder with tokenizer.json.")] = "gpt2",
) -> None:
    """Trains until step STEPS, after the checkpoint in FOLDER if there is one."""
    dist.init_process_group("gloo")
    run = Run(data, packtok.Tokenizer.from_pretrained(tokenizer), folder)
    while run.step < steps:
        run.take_step()
        if run.step % save_every == 0 or run.step == steps:
            run.save()
    run.batches.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    typer.run(main)

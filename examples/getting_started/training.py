"""A model in training: its parts, a training step, evaluation, and the contents of a checkpoint."""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import checkpoint
import packtok
from losses import Row
from model import GPT
from packtok import document_mask
from process_group import Launcher, OrphanedError, summed
from reporting import Report
from settings import Data, Settings, SettingsError

Batch = dict[str, torch.Tensor]


class Run:
    """A model in training: its state, a training step, an evaluation, saving and loading."""

    def __init__(self, settings: Settings, device: torch.device, launcher: Launcher) -> None:
        self.settings = settings
        self.device = device
        self.launcher = launcher
        self.step = 0
        vocab_size, self.eod_id = ids_of(settings.data)
        self.model_options = {
            **settings.model.model_dump(),
            "vocab_size": vocab_size,
            "context_length": settings.data.context_length,
        }
        torch.manual_seed(settings.training.seed)
        self.model = GPT(**self.model_options).to(device)
        if settings.training.compile:
            # In place, so that checkpoints have the same names. Each size of a batch is compiled by itself:
            # code for any size would depend on which sizes came first, and so on where a run was resumed.
            self.model.compile(dynamic=False)
        self.optimizer = torch.optim.AdamW(self._parameter_groups(), betas=(0.9, 0.95))
        self.loader = self._loader(settings.data.train, shuffle=True, at_epoch_end="carry")
        self.test_loader = self._loader(settings.data.test, at_epoch_end="short")
        self.ddp = DistributedDataParallel(
            self.model, device_ids=[device.index] if device.type == "cuda" else None
        )

    def _loader(self, path: str, **options: Any) -> packtok.DataLoader:
        data, training = self.settings.data, self.settings.training
        dataset = packtok.TokenDataset(
            path,
            data.context_length,
            packing=data.packing,
            position_ids=data.document_mask,
            document_mask="compact" if data.document_mask else None,
        )
        try:
            return packtok.DataLoader(
                dataset,
                global_batch_size=training.global_batch_size,
                seed=training.seed,
                pin_memory=self.device.type == "cuda",
                **_worker_options(training.num_workers),
                **options,
            )
        except ValueError as error:
            raise SettingsError(f"{path}: {error}") from None

    def _parameter_groups(self) -> list[dict[str, Any]]:
        """Returns the matrices, with weight decay, and the other parameters, without."""
        training = self.settings.training
        matrices = [parameter for parameter in self.model.parameters() if parameter.ndim > 1]
        others = [parameter for parameter in self.model.parameters() if parameter.ndim <= 1]
        return [
            {"params": matrices, "weight_decay": training.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]

    def warm_up(self) -> None:
        """Runs one forward and backward pass and discards its gradients.

        After its first pass, DistributedDataParallel reorders its gradient buckets, which changes the
        rounding of sums over more than two processes. A resumed run must sum in the order of a run that never
        stopped. With the fields and the size of a step's first part, the model is compiled here for all of
        them.
        """
        training = self.settings.training
        num_rows = training.global_batch_size // dist.get_world_size()
        rows = torch.zeros(
            min(num_rows, training.micro_batch_size or num_rows),
            self.settings.data.context_length,
            dtype=torch.int64,
        )
        fields = {"input_ids": rows, "labels": rows}
        if self.settings.data.document_mask:
            fields |= {"position_ids": rows, "document_mask": rows.to(torch.int32)}
        self._loss_sum(self.ddp, fields).backward()
        self.optimizer.zero_grad()

    def take_step(self, batch: Batch) -> Row:
        """Trains on one global batch, whose rows for this process are ``batch``; returns its mean loss.

        Raises:
            OrphanedError: On all processes, before the step, if the launcher of one of them has ended.
        """
        learning_rate = self._learning_rate()
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        # One sum for both numbers. All processes detect an orphan in the same step and end together.
        numbers = [(batch["labels"] != -100).sum().item(), self.launcher.has_ended()]
        num_labels, num_orphans = summed(torch.tensor(numbers, dtype=torch.int64, device=self.device))
        if num_orphans:
            raise OrphanedError(
                f"torchrun has ended and left this run behind; stopped after step {self.step}, "
                "add --resume to continue from the last checkpoint"
            )
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for part, is_last in self._parts(batch):
            with nullcontext() if is_last else self.ddp.no_sync():
                loss = self._loss_sum(self.ddp, part)
                # DistributedDataParallel averages gradients over processes; the loss is a mean over labels.
                (loss * dist.get_world_size() / num_labels).backward()
            total += loss.detach()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.training.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        return Row(self.step, "train", (summed(total) / num_labels).item(), learning_rate, norm.item())

    def _learning_rate(self) -> float:
        """Returns the learning rate: rises for ``warmup_steps``, then falls along a cosine to a tenth."""
        training = self.settings.training
        if self.step < training.warmup_steps:
            return training.learning_rate * (self.step + 1) / training.warmup_steps
        done = (self.step - training.warmup_steps) / max(1, training.steps - training.warmup_steps)
        return training.learning_rate * (0.55 + 0.45 * math.cos(math.pi * done))

    def _parts(self, batch: Batch) -> Iterator[tuple[Batch, bool]]:
        """Yields the rows of ``batch`` in parts that fit into memory, each with whether it is the last."""
        num_rows = len(batch["input_ids"])
        size = self.settings.training.micro_batch_size or num_rows
        for first in range(0, num_rows, size):
            stop = first + size
            yield {name: field[first:stop] for name, field in batch.items()}, stop >= num_rows

    def _loss_sum(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        batch = {name: field.to(self.device, non_blocking=True) for name, field in batch.items()}
        mask = document_mask(batch["document_mask"]) if "document_mask" in batch else None
        is_mixed = self.settings.training.precision == "bfloat16"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=is_mixed):
            logits = model(batch["input_ids"], batch.get("position_ids"), mask)
        # Padding has the label -100, which cross_entropy ignores.
        return functional.cross_entropy(
            logits.flatten(0, 1).float(), batch["labels"].flatten(), reduction="sum"
        )

    @torch.no_grad()
    def test_loss(self) -> float:
        """Returns the mean loss over all labels of the test set; each item is evaluated once.

        With ``evaluate_batches``, only the first global batches of that number are.
        """
        self.model.eval()
        total = torch.zeros(2, dtype=torch.float64, device=self.device)
        for batch in islice(self.test_loader, self.settings.output.evaluate_batches):
            # In the last batch, some processes have fewer rows than others, or none.
            for part, _ in self._parts(batch) if len(batch["input_ids"]) else ():
                total[0] += self._loss_sum(self.model, part)
                total[1] += (part["labels"] != -100).sum()
        self.model.train()
        loss, num_labels = summed(total).tolist()
        return loss / num_labels

    def save(self) -> None:
        """Writes a checkpoint of everything that the next step depends on."""
        content = {
            "step": self.step,
            "model": self.model.state_dict(),
            "model_options": self.model_options,
            "eod_id": self.eod_id,
            "optimizer": self.optimizer.state_dict(),
            "loader": self.loader.state_dict(),
        }
        output = self.settings.output
        checkpoint.save(content, Path(output.folder), self.step, keep=output.keep_checkpoints)

    def load(self, step: int) -> None:
        """Restores the checkpoint taken after ``step`` steps; the number of processes may differ.

        Raises:
            SettingsError: If it is the checkpoint of another model, or of other data or batches.
        """
        path = checkpoint.path_of(Path(self.settings.output.folder), step)
        content = checkpoint.load(path, self.device)
        for name, expected in content["model_options"].items():
            if (value := self.model_options[name]) != expected:
                raise SettingsError(f"{path}: its model has {name} {expected}, the config's has {value}")
        try:
            self.loader.load_state_dict(content["loader"])
        except ValueError as error:
            raise SettingsError(f"{path}: {error}") from None
        self.model.load_state_dict(content["model"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.step = content["step"]

    def train(self, report: Report) -> None:
        """Takes the remaining steps, over as many epochs as needed."""
        while self.step < self.settings.training.steps:
            for batch in self.loader:
                report.add(self.take_step(batch))
                self._evaluate_and_save(report)
                if self.step == self.settings.training.steps:
                    break

    def _evaluate_and_save(self, report: Report) -> None:
        output, is_last = self.settings.output, self.step == self.settings.training.steps
        if is_last or self.step % output.evaluate_every == 0:
            report.add(Row(self.step, "test", self.test_loss()))
        if (is_last or self.step % output.checkpoint_every == 0) and dist.get_rank() == 0:
            report.sync()
            self.save()


def _worker_options(num_workers: int) -> dict[str, Any]:
    """Spawns workers, once for all epochs.

    ``fork``, torch's default before Python 3.14, copies this process with every lock that a thread of the
    process group holds at that moment. In rare cases, a worker then waits for such a lock forever.
    """
    if num_workers == 0:
        return {}
    return {
        "num_workers": num_workers,
        "multiprocessing_context": "spawn",
        "persistent_workers": True,
    }


def ids_of(data: Data) -> tuple[int, int]:
    """Returns the vocabulary size of the data's tokenizer and its EOD id.

    Raises:
        SettingsError: If the files do not name one tokenizer.
    """
    train, test = (packtok.PbinReader(path).metadata or {} for path in (data.train, data.test))
    if not all(train.get(name) and train[name] == test.get(name) for name in ("tokenizer", "eod")):
        raise SettingsError(
            f"{data.train} and {data.test} are not packed with the same tokenizer and EOD; "
            "pack them again with the same"
        )
    return train["tokenizer"]["vocab_size"], train["eod"]["id"]

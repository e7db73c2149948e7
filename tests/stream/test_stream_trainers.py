"""Streams in other trainers: a resumed run sees the same batches as one without a stop, and skips none."""

from __future__ import annotations

import bisect
import importlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")
import torch
import torch.distributed as dist
from extent import extent
from stories import TOKENIZER, story
from torch import nn
from torch.nn import functional

import packtok
from packtok.stream import CheckpointableDataset, CheckpointableIterator, merge_states

VOCAB_SIZE, ROW_LENGTH, BATCH_SIZE, EPOCH_STEPS, STEPS = 512, 64, 32, 7, 16
# A state has the position at the start of a job. A job tokenizes at most 1,024 documents, and functions get
# 64 of them at once.
MAX_REPEATED = 1024 + 2 * 64


class Corpus:
    """Documents in a file, and the documents that a stream has read since the list was cleared."""

    def __init__(self, path: Path) -> None:
        rng = random.Random(5)
        # Numbers make all texts distinct.
        self.texts = [f"{i}. {story(rng)[:20]}" for i in range(3000)]
        self.path = path
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in self.texts))
        self.read: list[str] = []

    def note(self, sample: dict[str, str]) -> dict[str, str]:
        """Notes that a document was read."""
        self.read.append(sample["text"])
        return sample

    def dataset(self) -> CheckpointableDataset:
        """Returns a stream of batches, whose rows are those of all documents in their order."""
        files = CheckpointableDataset.from_files(self.path, repeat=True).map(self.note)
        rows = files.tokenize(TOKENIZER).concat_chunk(ROW_LENGTH)
        return rows.distribute(lanes=1).batch(global_batch_size=BATCH_SIZE)

    def num_repeated(self, step: int) -> int:
        """Returns how many documents before those of the first batch after ``step`` were read."""
        tokenizer = packtok.Tokenizer.from_file(TOKENIZER)
        ends = list(itertools.accumulate(len(tokenizer.encode(text)) for text in self.texts))
        needed = bisect.bisect(ends, step * BATCH_SIZE * ROW_LENGTH)
        return needed - self.texts.index(self.read[0])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus(tmp_path_factory.mktemp("trainers") / "stories.jsonl")


@pytest.fixture(scope="module")
def expected(corpus: Corpus) -> list[list[list[int]]]:
    """Returns the batches of a run without a stop."""
    with corpus.dataset().iter() as batches:
        return [batch["input_ids"].tolist() for batch in itertools.islice(batches, STEPS)]


def state_of_all_ranks(batches: CheckpointableIterator) -> dict[str, Any]:
    """Returns one state for all ranks, which each of them calls."""
    if not dist.is_initialized():
        return batches.state_dict()
    states: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(states, batches.state_dict())
    return merge_states(states)


# --- Lightning, whose checkpoints keep the state of a loader that has one ---


class StreamLoader:
    """Batches of a stream; Lightning saves and loads the state."""

    def __init__(self, dataset: CheckpointableDataset, epoch_batches: int) -> None:
        self._batches = dataset.iter()
        self._epoch_batches = epoch_batches

    def __len__(self) -> int:
        """Returns the number of batches in an epoch of Lightning. Without it, Lightning fetches one batch
        ahead.
        """
        return self._epoch_batches

    def __iter__(self) -> CheckpointableIterator:
        return self._batches

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of all ranks. Lightning calls this on each rank and saves what rank 0 returns."""
        return state_of_all_ranks(self._batches)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from the state, with any number of ranks."""
        self._batches.load_state_dict(state)


def lightning_run(corpus: Corpus, folder: Path, checkpoint: Path | None = None) -> tuple[Any, list[float]]:
    """Trains with Lightning, with checkpoints after each step; returns the batches and losses."""
    lightning = pytest.importorskip("lightning", reason="needs lightning")
    callbacks = pytest.importorskip("lightning.pytorch.callbacks")

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.logits = nn.Embedding(VOCAB_SIZE, VOCAB_SIZE)
            self.seen: list[list[list[int]]] = []
            self.losses: list[float] = []

        def train_dataloader(self) -> StreamLoader:
            return StreamLoader(corpus.dataset(), EPOCH_STEPS)

        def training_step(self, batch: dict[str, torch.Tensor], _: int) -> torch.Tensor:
            ids = batch["input_ids"]
            loss = functional.cross_entropy(self.logits(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            self.seen.append(ids.tolist())
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=1e-2)

    torch.manual_seed(0)
    model = Model()
    saved = callbacks.ModelCheckpoint(
        folder, "{step}", every_n_train_steps=1, save_top_k=-1, enable_version_counter=False
    )
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_steps=STEPS,
        max_epochs=-1,
        callbacks=[saved],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    with warnings.catch_warnings():
        # Lightning warns about torch's deprecations.
        warnings.simplefilter("ignore")
        trainer.fit(model, ckpt_path=checkpoint, weights_only=True)
    return model.seen, model.losses


@pytest.fixture(scope="module")
def lightning_whole(
    corpus: Corpus, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Any, list[float]]:
    folder = tmp_path_factory.mktemp("lightning")
    return (folder, *lightning_run(corpus, folder))


# Steps in the first epoch, at its end, after it, and in the second epoch.
@pytest.mark.parametrize("step", extent([3, EPOCH_STEPS, EPOCH_STEPS + 1, 12], [EPOCH_STEPS, 12]))
def test_lightning_resumes_a_stream(
    corpus: Corpus, expected: Any, lightning_whole: tuple[Path, Any, list[float]], tmp_path: Path, step: int
) -> None:
    folder, seen, losses = lightning_whole
    assert seen == expected
    corpus.read.clear()
    resumed, found = lightning_run(corpus, tmp_path, folder / f"step={step}.ckpt")
    assert resumed == expected[step:]
    assert found == losses[step:]
    assert 0 <= corpus.num_repeated(step) <= MAX_REPEATED


# --- the Trainer of Hugging Face, with the state in a file of its checkpoints ---

STATE_FILE = "stream.json"


def hugging_face_run(
    corpus: Corpus, folder: Path, checkpoint: Path | bool | None = None
) -> tuple[Any, list[float]]:
    """Trains with the Trainer, with checkpoints after each step; returns the batches and losses.

    With ``True``, resumes from the checkpoint that the Trainer chooses.
    """
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    seen: list[list[list[int]]] = []

    class StreamTrainer(transformers.Trainer):  # type: ignore[misc, name-defined]
        """Trains on the batches of a stream, from the checkpoint's position."""

        def train(self, resume_from_checkpoint: str | bool | None = None, **arguments: Any) -> Any:
            if resume_from_checkpoint is True:
                utilities = importlib.import_module("transformers.trainer_utils")
                resume_from_checkpoint = utilities.get_last_checkpoint(self.args.output_dir) or True
            self.checkpoint = resume_from_checkpoint
            return super().train(resume_from_checkpoint, **arguments)

        def get_train_dataloader(self) -> CheckpointableIterator:
            if not self.args.ignore_data_skip:
                raise ValueError("set ignore_data_skip=True: the stream resumes by itself")
            path = Path(self.checkpoint) / STATE_FILE if self.checkpoint else None
            state = None if path is None else json.loads(path.read_text())
            # An iterator, because accelerate fetches one batch of a DataLoader ahead.
            self.batches: CheckpointableIterator = self.train_dataset.iter(state)
            return self.batches

        def training_step(self, model: nn.Module, inputs: Any, *arguments: Any) -> torch.Tensor:
            seen.append(inputs["input_ids"].tolist())
            inputs["labels"] = inputs["input_ids"]
            return super().training_step(model, inputs, *arguments)  # type: ignore[no-any-return]

    class StreamState(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        """Saves the state of all ranks in each checkpoint."""

        def __init__(self, trainer: StreamTrainer) -> None:
            self.trainer = trainer

        def on_save(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
            merged = state_of_all_ranks(self.trainer.batches)
            if state.is_world_process_zero:
                path = Path(args.output_dir) / f"checkpoint-{state.global_step}" / STATE_FILE
                path.write_text(json.dumps(merged))

    config = transformers.LlamaConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=ROW_LENGTH,
    )
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        max_steps=STEPS // 2,
        gradient_accumulation_steps=2,
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        logging_steps=1,
        save_steps=1,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        # Without this option, the Trainer fetches and discards the batches before the checkpoint.
        ignore_data_skip=True,
    )
    trainer = StreamTrainer(
        model_init=lambda: transformers.LlamaForCausalLM(config),
        args=arguments,
        train_dataset=corpus.dataset(),
    )
    trainer.add_callback(StreamState(trainer))
    trainer.train(resume_from_checkpoint=str(checkpoint) if isinstance(checkpoint, Path) else checkpoint)
    return seen, [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def test_hugging_face_trainer_resumes_a_stream(corpus: Corpus, expected: Any, tmp_path: Path) -> None:
    seen, losses = hugging_face_run(corpus, tmp_path / "whole")
    assert seen == expected
    for step in (3, 7):
        corpus.read.clear()
        checkpoint = tmp_path / "whole" / f"checkpoint-{step}"
        resumed, found = hugging_face_run(corpus, tmp_path / "resumed", checkpoint)
        # A step has two batches.
        assert resumed == expected[2 * step :]
        # The log of a resumed run starts with that of the checkpoint.
        assert found == losses
        assert 0 <= corpus.num_repeated(2 * step) <= MAX_REPEATED
    # The Trainer chooses the last checkpoint; that of step 5 is made the last one.
    for folder in (tmp_path / "whole").glob("checkpoint-[678]"):
        shutil.rmtree(folder)
    resumed, found = hugging_face_run(corpus, tmp_path / "whole", checkpoint=True)
    assert (resumed, found) == (expected[2 * 5 :], losses)
    (tmp_path / "whole/checkpoint-8" / STATE_FILE).unlink()
    with pytest.raises(FileNotFoundError, match=rf"checkpoint-8/{STATE_FILE}"):
        hugging_face_run(corpus, tmp_path / "whole", checkpoint=True)


RANKS_CHANGE = """
import sys, torch.distributed as dist
from packtok.stream import CheckpointableDataset
numbers = CheckpointableDataset.from_sequence([{"n": i} for i in range(8)], repeat=True)
before = numbers.distribute(2)
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(sys.argv[2]), world_size=2)
print(next(numbers.distribute(2).iter())["n"])
try:
    before.iter()
except ValueError as error:
    print(error)
"""


def test_a_stream_that_was_divided_before_the_process_group_started_is_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RANKS_CHANGE, str(tmp_path / "store")]
    environment = {name: text for name, text in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    ranks = [
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True, env=environment)
        for rank in range(2)
    ]
    for rank, process in enumerate(ranks):
        assert process.communicate(timeout=300)[0] == (
            f"{4 * rank}\ndistribute found rank 0 of 1, but this process is rank {rank} of 2 now; call it "
            "after "
            "the process group has started: with Lightning, build the dataset in train_dataloader\n"
        )

"""packtok's data in the Trainer of Hugging Face's transformers, resumed at the position of the checkpoint.

    python hf_trainer.py train.pbin

Its models shift labels themselves, so they get ``labels="aligned"``. By default the Trainer resumes by
fetching and discarding all earlier batches; here the loader's state is in each checkpoint instead.
"""

import json
import sys
from pathlib import Path
from typing import Any

from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

import packtok

STATE_FILE = "packtok_loader.json"


class PacktokTrainer(Trainer):
    """A Trainer whose training batches come from packtok."""

    def get_train_dataloader(self) -> packtok.DataLoader:
        """Returns this rank's batches, from the position of the checkpoint that `train` resumes from."""
        self.loader = packtok.DataLoader(
            self.train_dataset,
            batch_size=self.args.per_device_train_batch_size,
            shuffle=True,
            seed=self.args.data_seed or self.args.seed,
            num_workers=self.args.dataloader_num_workers,
            pin_memory=self.args.dataloader_pin_memory,
        )
        return self.loader


class LoaderState(TrainerCallback):
    """Keeps the loader's state in the Trainer's checkpoints."""

    def __init__(self, trainer: PacktokTrainer) -> None:
        self.trainer = trainer

    def on_save(self, args: TrainingArguments, state: Any, *_: Any, **__: Any) -> None:
        """Saves the state in the checkpoint that was just written."""
        if state.is_world_process_zero:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            (folder / STATE_FILE).write_text(json.dumps(self.trainer.loader.state_dict()))

    def on_train_begin(self, args: TrainingArguments, *_: Any, **__: Any) -> None:
        """Restores the state from the checkpoint."""
        if args.resume_from_checkpoint:
            text = (Path(args.resume_from_checkpoint) / STATE_FILE).read_text()
            self.trainer.loader.load_state_dict(json.loads(text))


def trainer(path: str, folder: Path, *, steps: int, resume_from: Path | None = None) -> PacktokTrainer:
    """Returns a Trainer for a tiny model."""
    metadata = packtok.PbinReader(path).metadata or {}
    config = LlamaConfig(
        vocab_size=metadata["tokenizer"]["vocab_size"],
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
    )
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=8,
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        logging_steps=1,
        save_steps=5,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        # The loader's state restores the position; otherwise the Trainer would skip batches again.
        ignore_data_skip=True,
        resume_from_checkpoint=None if resume_from is None else str(resume_from),
    )
    made = PacktokTrainer(
        model_init=lambda: LlamaForCausalLM(config),
        args=arguments,
        train_dataset=packtok.TokenDataset(path, context_length=64, labels="aligned"),
    )
    made.add_callback(LoaderState(made))
    return made


def losses(trained: Trainer) -> list[float]:
    """Returns the loss of each step."""
    return [entry["loss"] for entry in trained.state.log_history if "loss" in entry]


def main(path: str) -> None:
    """Stops after five steps and resumes with another Trainer."""
    folder = Path("hf_trainer")
    trainer(path, folder, steps=5).train()
    checkpoint = folder / "checkpoint-5"
    resumed = trainer(path, folder, steps=10, resume_from=checkpoint)
    resumed.train(resume_from_checkpoint=str(checkpoint))
    print(losses(resumed))


if __name__ == "__main__":
    main(sys.argv[1])

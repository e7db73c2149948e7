"""The examples in examples/loaders: in each framework, a resumed run sees the same as one without a stop."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")
import torch
from extent import extent
from repository import EXAMPLES
from stories import TOKENIZER
from stories import main as make_stories

import packtok

BATCH_SIZE = 8
STEPS_PER_EPOCH = 7
NUM_STEPS = 16


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / "loaders" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns a pbin with slightly more than seven batches of rows of 64 tokens."""
    folder = tmp_path_factory.mktemp("loaders")
    make_stories(folder / "train.jsonl", stories=50, seed=1)
    packtok.pack(input=folder / "train.jsonl", output=folder / "train.pbin", tokenizer=TOKENIZER)
    path = str(folder / "train.pbin")
    assert len(packtok.TokenDataset(path, 64)) // BATCH_SIZE == STEPS_PER_EPOCH
    return path


def expected_inputs(path: str) -> list[torch.Tensor]:
    """Returns the first epoch's batches, item by item in the order of `packtok.Permutation`."""
    dataset = packtok.TokenDataset(path, 64)
    order = list(packtok.Permutation(len(dataset), 1, 0))
    rows = [dataset[i]["input_ids"] for i in order[: STEPS_PER_EPOCH * BATCH_SIZE]]
    return list(torch.stack(rows).split(BATCH_SIZE))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_torch_loader_skips_seen_batches(path: str, num_workers: int) -> None:
    train = example("plain_torch").train
    expected = expected_inputs(path)
    for steps_done in (0, 3):
        inputs = list(train(path, batch_size=BATCH_SIZE, steps_done=steps_done, num_workers=num_workers))
        assert len(inputs) == STEPS_PER_EPOCH - steps_done
        assert all(map(torch.equal, inputs, expected[steps_done:]))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_torchdata_loader_resumes_where_it_stopped(path: str, num_workers: int) -> None:
    pytest.importorskip("torchdata.stateful_dataloader", reason="needs torchdata")
    loader = example("stateful_torchdata").loader
    expected = expected_inputs(path)
    stopped = loader(path, batch_size=BATCH_SIZE, num_workers=num_workers)
    batches = iter(stopped)
    inputs = [next(batches)["input_ids"] for _ in range(3)]
    resumed = loader(path, batch_size=BATCH_SIZE, num_workers=num_workers)
    resumed.load_state_dict(stopped.state_dict())
    inputs += [batch["input_ids"] for batch in resumed]
    assert len(inputs) == STEPS_PER_EPOCH
    assert all(map(torch.equal, inputs, expected))


def test_completed_epoch_is_not_resumed_without_batches(path: str) -> None:
    served, resumed = (packtok.DataLoader(packtok.TokenDataset(path, 64), BATCH_SIZE) for _ in range(2))
    for _, _batch in zip(range(STEPS_PER_EPOCH), served, strict=False):
        pass
    assert (served.state_dict()["epoch"], served.state_dict()["num_global_samples"]) == (1, 0)
    resumed.load_state_dict(served.state_dict())
    batches = iter(resumed)
    # Lightning sets the epoch after it has started to iterate.
    resumed.set_epoch(1)
    assert len(list(batches)) == STEPS_PER_EPOCH


@pytest.fixture(scope="module")
def lightning_run(
    path: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ModuleType, Path, list[float]]:
    """Returns the example's module, a run's checkpoints after each step, and its losses."""
    pytest.importorskip("lightning", reason="needs lightning")
    module, folder = example("lightning_trainer"), tmp_path_factory.mktemp("lightning")
    whole = _same_model(module, path)
    _fit(module.trainer(folder, steps=NUM_STEPS, save_every=1), whole)
    assert len(whole.losses) == NUM_STEPS
    return module, folder, whole.losses


# In the middle of the first epoch, at its end, and in the middle of the second.
@pytest.mark.parametrize("step", [3, STEPS_PER_EPOCH, 10])
def test_lightning_resumes_with_the_same_losses(
    path: str, tmp_path: Path, lightning_run: tuple[ModuleType, Path, list[float]], step: int
) -> None:
    module, folder, losses = lightning_run
    resumed = module.TinyModel(path, vocab_size=512, batch_size=BATCH_SIZE)
    trainer = module.trainer(tmp_path, steps=NUM_STEPS, save_every=NUM_STEPS)
    _fit(trainer, resumed, ckpt_path=folder / f"step={step}.ckpt", weights_only=True)
    assert resumed.losses == losses[step:]


def _fit(trainer: Any, model: Any, **options: Any) -> None:
    with warnings.catch_warnings():
        # Lightning warns about few workers and about torch's deprecations.
        warnings.simplefilter("ignore")
        trainer.fit(model, **options)


def _same_model(module: ModuleType, path: str) -> Any:
    torch.manual_seed(0)
    return module.TinyModel(path, vocab_size=512, batch_size=BATCH_SIZE)


@pytest.mark.parametrize("stop", extent([5, 10], [5]))
def test_hf_trainer_resumes_with_the_same_losses(path: str, tmp_path: Path, stop: int) -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    module = example("hf_trainer")
    whole = module.trainer(path, tmp_path / "whole", steps=NUM_STEPS)
    whole.train()
    stopped = module.trainer(path, tmp_path / "stopped", steps=stop)
    stopped.train()
    checkpoint = tmp_path / "stopped" / f"checkpoint-{stop}"
    resumed = module.trainer(path, tmp_path / "stopped", steps=NUM_STEPS, resume_from=checkpoint)
    resumed.train(resume_from_checkpoint=str(checkpoint))
    assert len(module.losses(whole)) == NUM_STEPS
    # The log of a resumed run starts with that of the checkpoint.
    assert module.losses(resumed) == module.losses(whole)


def test_aligned_labels_give_hf_models_the_loss_of_shifted_labels(path: str) -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=512, max_position_embeddings=64, **sizes)).eval()
    for packing in ("concat", "document"):
        aligned, shifted = (
            packtok.TokenDataset(path, 64, packing=packing, labels=labels).__getitems__(range(16)).batch
            for labels in ("aligned", "shifted")
        )
        with torch.no_grad():
            logits = model(input_ids=shifted["input_ids"]).logits
            loss = model(input_ids=aligned["input_ids"], labels=aligned["labels"]).loss
        # If the model shifts the labels, the last input has none; shifted labels need one more token.
        own = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), shifted["labels"][:, :-1].flatten()
        )
        torch.testing.assert_close(loss, own, rtol=1e-6, atol=0)

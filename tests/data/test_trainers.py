"""Trainers of other projects take a few steps on packtok's data, each in its own environment."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pbins
import pytest
from peers import python_of, trained
from repository import CORPUS

import packtok


@pytest.fixture
def pbin(tmp_path: Path) -> Path:
    path = tmp_path / "train.pbin"
    packtok.pack(input=CORPUS, output=path, tokenizer="gpt2")
    return path


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Returns a folder with packtok and nothing else, for other environments."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "packtok").symlink_to(Path(packtok.__file__).parent)
    return folder


@pytest.mark.whole
def test_olmo_trains_on_get_dataset(pbin: Path, package: Path) -> None:
    """Uses the dataset, collator and model of ai2-olmo 0.6.0, on NumPy 1, and the masks of the items."""
    python = python_of("olmo", "ai2-olmo 0.6.0")
    report = trained(python, "olmo_training.py", pbin, package=package)
    assert report["items"] == len(packtok.get_dataset(pbin, 64))
    losses = report["losses"]
    assert len(losses) == 8
    assert losses[-1] < losses[0] - 0.5


@pytest.mark.whole
def test_olmo_core_trains_on_the_documents_of_pbins(tmp_path: Path, package: Path) -> None:
    """Uses OLMo-core 3's instance sources, data loader and trainer."""
    python = python_of("olmo_core", "ai2-olmo-core 3")
    eod, length, batch_rows = 99, 16, 4
    draw = random.Random(1)
    documents = [[*draw.choices(range(1, eod), k=draw.randrange(1, 40)), eod] for _ in range(120)]
    # A document without tokens has no offsets; an EOD id inside a document does not end it.
    documents[70:70] = [[], [5, eod, 6, eod]]
    pbins.write(tmp_path / "a.pbin", documents[:60], eod_id=eod, tokenizer="t")
    pbins.write(tmp_path / "b.pbin", documents[60:], eod_id=eod, tokenizer="t")
    files = '["a.pbin", "b.pbin"]'
    report = trained(python, "olmo_core_training.py", files, package=package, cwd=tmp_path)
    tokens = [token for document in documents for token in document]
    bounds = [0, *itertools.accumulate(map(len, documents))]
    assert report["num_tokens"] == len(tokens)
    assert report["offsets"] == [[a, b] for a, b in itertools.pairwise(bounds) if b > a]
    assert report["all"] == tokens
    assert report["ranges"] == [tokens[at : at + 50] for at in range(0, len(tokens) - 50, 7)]
    assert report["is view"]
    assert report["pickle bytes"] < 1000
    chunks = [tokens[at : at + length] for at in range(0, len(tokens) - length + 1, length)]
    # The loader leaves out an incomplete batch.
    assert report["chunks"] == chunks[: len(chunks) // batch_rows * batch_rows]
    assert report["in workers"]
    # The packing truncates documents that are longer than a row.
    rows = [" ".join(map(str, row)) for row in report["packed"]]
    assert all(any(" ".join(map(str, document[:length])) in row for row in rows) for document in documents)
    losses = report["losses"]
    assert max(losses[-5:]) < min(losses[:5])


def test_modalities_trains_from_its_config(tmp_path: Path) -> None:
    """Uses the dataset, sampler, data loader, model, loss and optimizer that Modalities' config names."""
    python = python_of("modalities", "modalities")
    draw = random.Random(1)
    documents = [[*draw.choices(range(1, 99), k=draw.randrange(1, 40)), 99] for _ in range(120)]
    path = pbins.write(tmp_path / "train.pbin", documents, eod_id=99)
    length, batch_rows = 16, 8
    config = modalities_config(str(path), length, batch_rows)
    (tmp_path / "train.yaml").write_text(json.dumps(config))
    report = trained(python, "modalities_training.py", "train.yaml", cwd=tmp_path)
    # packtok's dataset of the same name gives the same rows.
    dataset = packtok.PackedMemMapDatasetContinuous(path, "ids", length + 1, True)
    rows = {tuple(dataset[i]["ids"].tolist()) for i in range(len(dataset))}
    num_batches = len(dataset) // batch_rows
    served = [
        (*inputs, targets[-1])
        for batch in report["batches"][:num_batches]
        for inputs, targets in zip(*batch, strict=True)
    ]
    assert len(set(served)) == num_batches * batch_rows
    assert set(served) <= rows
    losses = report["losses"]
    assert len(losses) == 3 * num_batches
    assert max(losses[-5:]) < min(losses[:5])


def modalities_config(path: str, length: int, batch_rows: int) -> dict[str, object]:
    """Returns a config of Modalities for a small model on the file at ``path``."""

    def component(key: str, variant: str, **config: object) -> dict[str, object]:
        return {"component_key": key, "variant_key": variant, "config": config}

    def instance(name: str) -> dict[str, str]:
        return {"instance_key": name, "pass_type": "BY_REFERENCE"}

    norm = {"norm_type": "layer_norm", "config": {"normalized_shape": 128}}
    dataset = component(
        "dataset",
        "packed_mem_map_dataset_continuous",
        raw_data_path=path,
        sequence_length=length,
        sample_key="input_ids",
    )
    sampler = component(
        "sampler",
        "resumable_distributed_sampler",
        dataset=instance("train_dataset"),
        rank=0,
        num_replicas=1,
        shuffle=True,
    )
    return {
        "train_dataset": dataset,
        "train_dataloader": component(
            "data_loader",
            "default",
            num_workers=0,
            pin_memory=False,
            dataloader_tag="train",
            dataset=instance("train_dataset"),
            batch_sampler=component("batch_sampler", "default", batch_size=batch_rows, sampler=sampler),
            collate_fn=component(
                "collate_fn", "gpt_2_llm_collator", sample_key="input_ids", target_key="target_ids"
            ),
        ),
        "device_mesh": component(
            "device_mesh",
            "default",
            device_type="cpu",
            data_parallel_replicate_degree=1,
            data_parallel_shard_degree=1,
            world_size=1,
        ),
        "model": component(
            "model",
            "fsdp2_wrapped",
            model=instance("model_raw"),
            device_mesh=instance("device_mesh"),
            block_names=["GPT2Block"],
            mixed_precision_settings={"param_dtype": "FP_32", "reduce_dtype": "FP_32"},
        ),
        "model_raw": component(
            "model",
            "gpt2",
            sample_key="input_ids",
            prediction_key="logits",
            poe_type="ABSOLUTE",
            sequence_length=length,
            vocab_size=128,
            n_layer=1,
            n_head_q=2,
            n_head_kv=2,
            n_embd=128,
            ffn_hidden=256,
            dropout=0.0,
            bias=True,
            activation_type="gelu",
            attention_implementation="pytorch_flash",
            attention_config={"qkv_transforms": []},
            attention_norm_config=norm,
            ffn_norm_config=norm,
            lm_head_norm_config=norm,
            use_weight_tying=True,
            use_meta_device=False,
            seed=0,
        ),
        "loss_fn": component(
            "loss", "clm_cross_entropy_loss", target_key="target_ids", prediction_key="logits"
        ),
        "optimizer": component(
            "optimizer",
            "adam_w",
            lr=0.01,
            betas=[0.9, 0.95],
            eps=1e-8,
            weight_decay=0.0,
            weight_decay_groups_excluded=[],
            wrapped_model=instance("model"),
        ),
    }

"""Trains a small model with the components of a config of Modalities, on the CPU.

    python tests/support/modalities_training.py CONFIG

Run by a Python that has modalities. Modalities builds data loader, model, loss and optimizer from CONFIG. The
loop is plain, because Modalities' trainer needs CUDA. Prints the batches and the losses as a line of JSON.
"""

import json
import sys
from pathlib import Path

import torch
from modalities.batch import InferenceResultBatch
from modalities.config.component_factory import ComponentFactory
from modalities.config.config import load_app_config_dict
from modalities.config.pydantic_if_types import (
    PydanticLLMDataLoaderIFType,
    PydanticLossIFType,
    PydanticOptimizerIFType,
    PydanticPytorchModuleType,
)
from modalities.registry.components import COMPONENTS
from modalities.registry.registry import Registry
from pydantic import BaseModel

EPOCHS = 3


class Components(BaseModel):
    """The components that the loop uses."""

    train_dataloader: PydanticLLMDataLoaderIFType
    model: PydanticPytorchModuleType
    loss_fn: PydanticLossIFType
    optimizer: PydanticOptimizerIFType


def main() -> None:
    # Modalities' optimizers accept sharded models only; a single process has the only shard.
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    config = load_app_config_dict(config_file_path=Path(sys.argv[1]))
    factory = ComponentFactory(registry=Registry(COMPONENTS))
    built = factory.build_components(config_dict=config, components_model_type=Components)
    batches, losses = [], []
    for _ in range(EPOCHS):
        for batch in built.train_dataloader:
            built.optimizer.zero_grad()
            predictions = built.model(batch.samples)
            loss = built.loss_fn(InferenceResultBatch(batch.targets, predictions))
            loss.backward()
            built.optimizer.step()
            batches.append([batch.samples["input_ids"].tolist(), batch.targets["target_ids"].tolist()])
            losses.append(loss.item())
    print("\n" + json.dumps({"batches": batches, "losses": losses}))


if __name__ == "__main__":
    main()

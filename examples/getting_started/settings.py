"""Defines and reads a training config: OmegaConf merges YAML and options, pydantic validates them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from yaml import YAMLError

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


class _Section(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Data(_Section):
    """The training and test data; the section ``data``."""

    train: str
    test: str
    context_length: Count
    packing: Literal["concat", "document"] = "concat"
    document_mask: bool = False


class Model(_Section):
    """The size of the model; the section ``model``. The vocabulary is that of the data."""

    num_layers: Count
    width: Count
    num_heads: Count


class Training(_Section):
    """Optimization settings; the section ``training``."""

    steps: Count
    global_batch_size: Count
    micro_batch_size: Count | None = None
    learning_rate: Positive
    warmup_steps: Annotated[int, Field(ge=0)] = 0
    weight_decay: NotNegative = 0.1
    clip_norm: Positive = 1.0
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    num_workers: Annotated[int, Field(ge=0)] = 0


class Output(_Section):
    """The outputs of the run; the section ``output``."""

    folder: str
    checkpoint_every: Count
    keep_checkpoints: Count = 2
    evaluate_every: Count
    evaluate_batches: Count | None = None
    wandb_project: str | None = None


class Settings(_Section):
    """All settings of a run."""

    data: Data
    model: Model
    training: Training
    output: Output


class SettingsError(ValueError):
    """A config that cannot be read or is invalid; the message names the key and the reason."""


def load_settings(path: Path, overrides: Sequence[str] = ()) -> Settings:
    """Returns the config in the YAML file at ``path``, with overrides such as ``training.steps=10`` applied.

    Raises:
        SettingsError: If a key is unknown or missing or a value is not allowed.
        OSError: If the file cannot be read.
    """
    try:
        config = OmegaConf.merge(OmegaConf.load(path), OmegaConf.from_dotlist(list(overrides)))
        return Settings.model_validate(OmegaConf.to_container(config, resolve=True))
    except (OmegaConfBaseException, YAMLError) as error:
        raise SettingsError(f"{path}: {str(error).splitlines()[0]}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"{path}: {key}: {first['msg'].lower()}, found {first['input']!r}") from None

"""Teachers: loads causal language models, and computes their logits a slice of positions at a time.

The backbone of a model runs once for a batch; its head runs over slices of positions, so that the logits of
all positions never exist at once.
"""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from packtok.errors import ConfigError, PacktokError
from packtok.logits.model_files import (
    AFTER_HEAD,
    UNUSABLE_CONFIG,
    WEIGHTS,
    check_class,
    check_weights,
    model_folder,
)
from packtok.logits.output import last_part

__all__ = ["DTYPES", "Teacher", "load_teacher"]

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
# Tokens of the run that compares our logits with those of the model.
_CHECKED_TOKENS = 8


@dataclass(frozen=True)
class Teacher:
    """A model whose predictions become targets."""

    model: Any
    name: str
    """The last part of the model's path or of its name on the hub."""
    fingerprint: str
    """SHA-256 over its config and the SHA-256 of its weight files."""
    folder: Path

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        device: torch.device = self.model.device
        return device

    @property
    def head_size(self) -> int:
        """Number of logits of a position. Rows beyond the tokenizer's vocabulary are padding."""
        size: int = self.model.get_output_embeddings().weight.shape[0]
        return size

    @property
    def num_embeddings(self) -> int:
        """Number of ids that the model accepts as input."""
        size: int = self.model.get_input_embeddings().weight.shape[0]
        return size

    def hidden(self, input_ids: Tensor) -> Tensor:
        """Returns the states (B, L, H) before the head for ids (B, L).

        No attention mask is used: in a causal model, padding on the right has no effect on the positions
        before it.
        """
        states: Tensor = self.model.base_model(input_ids=input_ids, use_cache=False).last_hidden_state
        return states

    def logits(self, hidden: Tensor, vocab_size: int | None = None) -> Tensor:
        """Returns float32 logits (N, V) for states (N, H); V is ``vocab_size`` if the head has more rows."""
        logits = self.model.get_output_embeddings()(hidden)[:, :vocab_size].float()
        return AFTER_HEAD[type(self.model).__name__](logits, self.model.config)


def load_teacher(
    model_dir: str, dtype: Literal["bf16", "fp32"] = "bf16", device: str | None = None
) -> Teacher:
    """Loads a causal language model from safetensors files, without running code that comes with it.

    Args:
        model_dir: A folder, or a name on the hub that is in its local cache.
        dtype: Type of the weights and of the computation up to the logits, which are float32.
        device: Such as ``cuda:1``. Default: ``cuda`` if there is a GPU, otherwise ``cpu``.

    Raises:
        ConfigError: If there is no such model or device.
        PacktokError: If the model cannot be loaded, or its class is not known.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = model_folder(model_dir)
    place = _device(device)
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise PacktokError(f"{folder}: {UNUSABLE_CONFIG}") from error
    check_weights(folder)
    check_class(folder, getattr(config, "architectures", None))
    with ThreadPoolExecutor(1) as pool:
        fingerprint = pool.submit(_fingerprint, folder)
        try:
            model = AutoModelForCausalLM.from_pretrained(
                folder,
                config=config,
                dtype=DTYPES[dtype],
                trust_remote_code=False,
                use_safetensors=True,
                local_files_only=True,
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise PacktokError(f"{folder}: the model cannot be loaded") from error
        placed: Any = model
        placed = placed.to(place).eval()
        teacher = Teacher(placed, last_part(model_dir), fingerprint.result(), folder)
    _check_logits(teacher)
    return teacher


def _device(name: str | None) -> torch.device:
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        # Torch without CUDA raises AssertionError.
        raise ConfigError(
            f"--device: {name} is not available; expected a device such as cpu or cuda:0"
        ) from None
    return device


def _check_logits(teacher: Teacher) -> None:
    """Compares our logits with those of the model, for a few tokens.

    A new version of Transformers may change the logits of a class.
    """
    name = type(teacher.model).__name__
    if name not in AFTER_HEAD:
        raise PacktokError(f"{teacher.folder}: Transformers loaded a {name}, whose logits are not known")
    ids = torch.arange(_CHECKED_TOKENS, device=teacher.device)[None] % teacher.num_embeddings
    with torch.inference_mode():
        expected = teacher.model(input_ids=ids, use_cache=False).logits[0].float()
        logits = teacher.logits(teacher.hidden(ids)[0])
    # A model rounds to its type after each step, packtok does not.
    relative = 1e-4 if teacher.model.dtype == torch.float32 else 0.05
    difference = (logits - expected).abs().max().item() if logits.shape == expected.shape else float("inf")
    if not difference <= relative * max(1.0, expected.abs().max().item()):
        raise PacktokError(
            f"{teacher.folder}: this version of Transformers computes logits of {name} in another way: they "
            f"differ by {difference:.3g} from those of head and backbone"
        )


def _fingerprint(folder: Path) -> str:
    files = sorted(folder.glob(WEIGHTS))
    with ThreadPoolExecutor(4) as pool:
        hashes = dict(zip((file.name for file in files), pool.map(_sha256, files), strict=True))
    config = json.loads((folder / "config.json").read_bytes())
    # These keys describe how the config was saved, and change from one version of Transformers to another.
    for name in ("transformers_version", "_name_or_path", "torch_dtype", "dtype"):
        config.pop(name, None)
    return hashlib.sha256(json.dumps([config, hashes], sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

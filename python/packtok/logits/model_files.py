"""The facts about a teacher that its files show without loading it: folder, class, vocabulary size.

Some models change logits after the head. `AFTER_HEAD` lists what each known class does; other classes are
refused, since a wrong guess would give wrong targets without an error.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packtok.errors import ConfigError, PacktokError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "AFTER_HEAD",
    "UNUSABLE_CONFIG",
    "WEIGHTS",
    "check_class",
    "check_files",
    "check_weights",
    "model_folder",
]

AfterHead = Callable[["Tensor", Any], "Tensor"]
WEIGHTS = "*.safetensors"
UNUSABLE_CONFIG = "the model's config cannot be used; models that need code of their own are not supported"


def _unchanged(logits: "Tensor", _config: Any) -> "Tensor":
    return logits


def _soft_cap(logits: "Tensor", config: Any) -> "Tensor":
    cap = config.final_logit_softcapping
    return logits if cap is None else logits.div_(cap).tanh_().mul_(cap)


def _scale(logits: "Tensor", config: Any) -> "Tensor":
    return logits.mul_(config.logit_scale)


def _divide(logits: "Tensor", config: Any) -> "Tensor":
    return logits.div_(config.logits_scaling)


# The functions that model classes apply to float32 logits after the head. They may work in place.
AFTER_HEAD: dict[str, AfterHead] = {
    **dict.fromkeys(
        (
            "ArceeForCausalLM",
            "BloomForCausalLM",
            "DeepseekV3ForCausalLM",
            "FalconForCausalLM",
            "GPT2LMHeadModel",
            "GPTBigCodeForCausalLM",
            "GPTJForCausalLM",
            "GPTNeoForCausalLM",
            "GPTNeoXForCausalLM",
            "GemmaForCausalLM",
            "Glm4ForCausalLM",
            "GlmForCausalLM",
            "LlamaForCausalLM",
            "MistralForCausalLM",
            "MixtralForCausalLM",
            "NemotronForCausalLM",
            "OPTForCausalLM",
            "Olmo2ForCausalLM",
            "Olmo3ForCausalLM",
            "OlmoForCausalLM",
            "Phi3ForCausalLM",
            "PhiForCausalLM",
            "Qwen2ForCausalLM",
            "Qwen2MoeForCausalLM",
            "Qwen3ForCausalLM",
            "Qwen3MoeForCausalLM",
            "SmolLM3ForCausalLM",
            "StableLmForCausalLM",
            "Starcoder2ForCausalLM",
        ),
        _unchanged,
    ),
    **dict.fromkeys(("Gemma2ForCausalLM", "Gemma3ForCausalLM"), _soft_cap),
    **dict.fromkeys(("CohereForCausalLM", "Cohere2ForCausalLM"), _scale),
    **dict.fromkeys(("GraniteForCausalLM", "GraniteMoeForCausalLM"), _divide),
}


def model_folder(model_dir: str) -> Path:
    """Returns the folder of a model: ``model_dir`` itself, or that of a name in the hub's local cache.

    Raises:
        ConfigError: If there is none.
    """
    if Path(model_dir).is_dir():
        return Path(model_dir)
    if Path(model_dir).exists():
        raise ConfigError(f"--model-dir: {model_dir} is a file; give the folder of a model")
    from huggingface_hub import snapshot_download

    try:
        # HFValidationError is a ValueError, LocalEntryNotFoundError an OSError.
        return Path(snapshot_download(model_dir, local_files_only=True))
    except (OSError, ValueError):
        raise ConfigError(
            f"--model-dir: {model_dir} is neither a folder nor in the hub's local cache; give a folder, or "
            f"download it with: hf download {model_dir}"
        ) from None


def check_files(folder: Path) -> int | None:
    """Checks a model as far as its files show without their content, and returns its number of ids.

    Returns:
        What ``config.json`` says; ``None`` if it does not.

    Raises:
        PacktokError: If the model cannot be used.
    """
    try:
        config = json.loads((folder / "config.json").read_bytes())
        names, size = config.get("architectures"), config.get("vocab_size")
    except (OSError, ValueError, AttributeError) as error:
        raise PacktokError(f"{folder}: {UNUSABLE_CONFIG}") from error
    check_weights(folder)
    check_class(folder, names)
    return size if isinstance(size, int) else None


def check_weights(folder: Path) -> None:
    """Checks that a model has safetensors files.

    Raises:
        PacktokError: If it has none.
    """
    if not any(folder.glob(WEIGHTS)):
        raise PacktokError(
            f"{folder}: has no {WEIGHTS} file; other weights can execute code when they are loaded, so "
            "convert them with save_pretrained first"
        )


def check_class(folder: Path, architectures: Any) -> None:
    """Checks that the class which a config names is a known one.

    Raises:
        PacktokError: If it is not.
    """
    names = list(architectures or ())
    if len(names) != 1 or names[0] not in AFTER_HEAD:
        classes = ", ".join(names) or "no class"
        raise PacktokError(
            f"{folder}: config.json names {classes}; what this class does to logits after the head is not "
            f"known. Known classes: {', '.join(sorted(AFTER_HEAD))}"
        )

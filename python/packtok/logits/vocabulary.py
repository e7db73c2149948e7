"""Checks that a teacher and the samples have one vocabulary."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packtok.errors import ConfigError, TokenizerError
from packtok.tokenizer.find import TOKENIZER_FILE, find_tokenizer

__all__ = ["MAX_TOPK", "Vocabulary", "check_topk", "checked_vocabulary"]

# With more ids, the rounding of each probability to float16 can add up to more than 1e-3.
MAX_TOPK = 16384


@dataclass(frozen=True)
class Vocabulary:
    """The ids that targets can have."""

    size: int
    """Rows of the teacher's head from here on are padding."""
    warnings: tuple[str, ...] = ()


def checked_vocabulary(
    model: Path, num_ids: int, marker: Mapping[str, Any] | None, *, yes: bool
) -> Vocabulary:
    """Returns the vocabulary of samples, after comparing it with that of the teacher.

    The samples' marker records the tokenizer. If it does not, the teacher's tokenizer counts; without one,
    all rows of its head.

    Args:
        model: The folder of the teacher, which may contain a tokenizer.
        num_ids: Rows of its head.
        marker: The marker of the samples.
        yes: Whether different tokenizers are a warning instead of an error.

    Raises:
        ConfigError: If the model cannot have been trained with the samples' tokenizer.
    """
    recorded = (marker or {}).get("details", {}).get("tokenizer") or {}
    size, fingerprint = recorded.get("vocab_size"), recorded.get("fingerprint")
    own = _tokenizer_of(model)
    warnings = []
    if fingerprint is not None and own is not None and own.fingerprint != fingerprint:
        text = (
            f"{model}: the model's tokenizer has the fingerprint {own.fingerprint[:12]}, but the "
            f"samples were made with {recorded.get('name')}, whose fingerprint is {fingerprint[:12]}"
        )
        if not yes:
            raise ConfigError(f"{text}; give --yes if both have the same ids")
        warnings.append(text)
    if size is None:
        warnings.append(
            "the samples do not record their tokenizer, so that it cannot be compared with the model's"
        )
        size = num_ids if own is None else min(own.vocab_size, num_ids)
    elif own is None:
        warnings.append(f"{model}: has no {TOKENIZER_FILE}; only the size of the vocabulary was compared")
    if size > num_ids:
        raise ConfigError(
            f"{model}: the model has {num_ids} ids, but the samples' tokenizer has "
            f"{size}; give the model that belongs to the tokenizer"
        )
    return Vocabulary(size, tuple(warnings))


def _tokenizer_of(folder: Path) -> Any:
    if not (folder / TOKENIZER_FILE).is_file():
        return None
    try:
        return find_tokenizer(str(folder / TOKENIZER_FILE)).tokenizer
    except TokenizerError:
        # A tokenizer that packtok cannot use has no fingerprint to compare.
        return None


def check_topk(k: int, num_ids: int = MAX_TOPK) -> None:
    """Checks the number of most probable ids for a vocabulary of ``num_ids`` ids.

    Raises:
        ConfigError: If it is out of range.
    """
    if not 1 <= k <= MAX_TOPK:
        raise ConfigError(f"--topk: is {k}, expected 1 to {MAX_TOPK}")
    if k > num_ids:
        raise ConfigError(f"--topk: is {k}, but the vocabulary has {num_ids} ids; give at most as many")

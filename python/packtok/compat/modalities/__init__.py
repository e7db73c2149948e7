"""Modalities' functions and classes by their names and arguments.

Names are imported on first use: the functions need no torch, and the datasets no configs.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packtok.compat.modalities.collators import LossMaskingCollateFnWrapper
    from packtok.compat.modalities.files import (
        FileExistencePolicy,
        create_filtered_tokenized_dataset,
        create_instruction_tuning_data,
        create_shuffled_dataset_chunk,
        create_shuffled_jsonl_dataset_chunk,
        filter_dataset,
        shuffle_jsonl_data,
        shuffle_tokenized_data,
    )

__all__ = [
    "FileExistencePolicy",
    "LossMaskingCollateFnWrapper",
    "create_filtered_tokenized_dataset",
    "create_instruction_tuning_data",
    "create_shuffled_dataset_chunk",
    "create_shuffled_jsonl_dataset_chunk",
    "filter_dataset",
    "shuffle_jsonl_data",
    "shuffle_tokenized_data",
]


def __getattr__(name: str) -> Any:
    import importlib

    from packtok.extras import needing_torch

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "packtok.compat.modalities.files"
    if name == "LossMaskingCollateFnWrapper":
        home = "packtok.compat.modalities.collators"
    with needing_torch(f"packtok.compat.modalities.{name}"):
        value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

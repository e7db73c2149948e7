"""Datasets, samplers and loaders for PyTorch over packed files.

The names in `__all__` include those of ``tatm.data``, so that its users change only the import. All are
imported on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packtok.compat.tatm.dataset import TatmMemmapDataset
    from packtok.compat.tatm.described import get_dataset
    from packtok.compat.tatm.items import torch_collate_fn
    from packtok.compat.tatm.metadata import (
        CorpusSeparationStrategy,
        DataContentType,
        TatmDataMetadata,
        TokenizedMetadataComponenet,
    )
    from packtok.compat.tatm.texts import TatmData, TatmTextData, get_data
    from packtok.data.distillation import distillation_loss
    from packtok.data.encoder_decoder import ContextDataCollator, EncoderDecoderDataset

__all__ = [
    "ContextDataCollator",
    "CorpusSeparationStrategy",
    "DataContentType",
    "EncoderDecoderDataset",
    "TatmData",
    "TatmDataMetadata",
    "TatmMemmapDataset",
    "TatmTextData",
    "TokenizedMetadataComponenet",
    "distillation_loss",
    "get_data",
    "get_dataset",
    "torch_collate_fn",
]

_HOME = {
    "ContextDataCollator": "packtok.data.encoder_decoder",
    "EncoderDecoderDataset": "packtok.data.encoder_decoder",
    "CorpusSeparationStrategy": "packtok.compat.tatm.metadata",
    "DataContentType": "packtok.compat.tatm.metadata",
    "TatmData": "packtok.compat.tatm.texts",
    "TatmDataMetadata": "packtok.compat.tatm.metadata",
    "TatmMemmapDataset": "packtok.compat.tatm.dataset",
    "TatmTextData": "packtok.compat.tatm.texts",
    "TokenizedMetadataComponenet": "packtok.compat.tatm.metadata",
    "distillation_loss": "packtok.data.distillation",
    "get_data": "packtok.compat.tatm.texts",
    "get_dataset": "packtok.compat.tatm.described",
    "torch_collate_fn": "packtok.compat.tatm.items",
}


def __getattr__(name: str) -> Any:
    import importlib

    from packtok.extras import needing_torch

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing_torch(f"packtok.data.{name}"):
        value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value

"""Datasets, samplers and loaders for PyTorch over packed files.

The names in `__all__` include those of ``tatm.data``, so that its users change only the import. All are
imported on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packtok.data.described import get_dataset
    from packtok.data.distillation import distillation_loss
    from packtok.data.encoder_decoder import ContextDataCollator, EncoderDecoderDataset
    from packtok.data.tatm import TatmMemmapDataset
    from packtok.data.tatm_items import torch_collate_fn
    from packtok.data.tatm_metadata import (
        CorpusSeparationStrategy,
        DataContentType,
        TatmDataMetadata,
        TokenizedMetadataComponenet,
    )
    from packtok.data.text_data import TatmData, TatmTextData, get_data

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
    "CorpusSeparationStrategy": "packtok.data.tatm_metadata",
    "DataContentType": "packtok.data.tatm_metadata",
    "TatmData": "packtok.data.text_data",
    "TatmDataMetadata": "packtok.data.tatm_metadata",
    "TatmMemmapDataset": "packtok.data.tatm",
    "TatmTextData": "packtok.data.text_data",
    "TokenizedMetadataComponenet": "packtok.data.tatm_metadata",
    "distillation_loss": "packtok.data.distillation",
    "get_data": "packtok.data.text_data",
    "get_dataset": "packtok.data.described",
    "torch_collate_fn": "packtok.data.tatm_items",
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

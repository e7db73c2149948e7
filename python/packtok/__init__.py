"""Packs text corpora into token files for language-model training: exact, safe, fast.

The names below are the whole public interface. Those that need OmegaConf, pydantic or torch are imported when they
are first used, so that importing the package stays cheap.
"""

from typing import TYPE_CHECKING, Any

from packtok._packtok import PbinReader, Tokenizer, __version__
from packtok.errors import ConfigError, DocumentError, PacktokError, PbinFormatError, TokenizerError

if TYPE_CHECKING:
    from packtok.config import PackConfig
    from packtok.dataset import (
        CombinedDataset,
        PackedMemMapDatasetBase,
        PackedMemMapDatasetContinuous,
        PackedMemMapDatasetMegatron,
    )
    from packtok.manifest import write_manifest
    from packtok.packing import PackReport, pack

__all__ = [
    "CombinedDataset",
    "ConfigError",
    "DocumentError",
    "PackConfig",
    "PackReport",
    "PackedMemMapDatasetBase",
    "PackedMemMapDatasetContinuous",
    "PackedMemMapDatasetMegatron",
    "PacktokError",
    "PbinFormatError",
    "PbinReader",
    "Tokenizer",
    "TokenizerError",
    "__version__",
    "pack",
    "write_manifest",
]

_HOME = {
    "CombinedDataset": "packtok.dataset",
    "PackConfig": "packtok.config",
    "PackReport": "packtok.packing",
    "PackedMemMapDatasetBase": "packtok.dataset",
    "PackedMemMapDatasetContinuous": "packtok.dataset",
    "PackedMemMapDatasetMegatron": "packtok.dataset",
    "pack": "packtok.packing",
    "write_manifest": "packtok.manifest",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

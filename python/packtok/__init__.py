"""Packs text corpora into token files for language-model training: exact, safe, fast.

The names below are the whole public interface. Those that need OmegaConf and pydantic are imported when they
are first used, so that importing the package stays cheap.
"""

from typing import TYPE_CHECKING, Any

from packtok._packtok import PbinReader, Permutation, Tokenizer, __version__
from packtok.errors import ConfigError, DocumentError, PacktokError, PbinFormatError, TokenizerError

if TYPE_CHECKING:
    from packtok.config import PackConfig
    from packtok.loader import DataLoader
    from packtok.packing import PackReport, pack
    from packtok.sampler import ResumableBatchSampler, ResumableDistributedSampler

__all__ = [
    "ConfigError",
    "DataLoader",
    "DocumentError",
    "PackConfig",
    "PackReport",
    "PacktokError",
    "PbinFormatError",
    "PbinReader",
    "Permutation",
    "ResumableBatchSampler",
    "ResumableDistributedSampler",
    "Tokenizer",
    "TokenizerError",
    "__version__",
    "pack",
]

_HOME = {
    "DataLoader": "packtok.loader",
    "PackConfig": "packtok.config",
    "PackReport": "packtok.packing",
    "ResumableBatchSampler": "packtok.sampler",
    "ResumableDistributedSampler": "packtok.sampler",
    "pack": "packtok.packing",
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

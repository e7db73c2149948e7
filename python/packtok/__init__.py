"""Packs text corpora into token files for language-model training: exact, safe, fast.

The names in `__all__` are the whole public interface. Names that need OmegaConf, pydantic or torch are
imported on first use, so that importing the package stays cheap.
"""

from typing import TYPE_CHECKING, Any

from packtok import interrupts, limits

# Before all other imports, which take long enough for Ctrl-C to arrive during them, and need most memory.
interrupts.answer_if_program()
limits.report_if_program()

from packtok._packtok import Origin, PbinReader, Permutation, Tokenizer, __version__  # noqa: E402
from packtok.errors import (  # noqa: E402
    ConfigError,
    DocumentError,
    PacktokError,
    PbinFormatError,
    TokenizerError,
)

if TYPE_CHECKING:
    from packtok import collate, stream
    from packtok.commands.convert import convert
    from packtok.commands.count import count
    from packtok.commands.index import index
    from packtok.commands.instruction import prepare_instruction_tuning_data
    from packtok.commands.join import join
    from packtok.commands.locate import locate
    from packtok.commands.manifest import write_manifest
    from packtok.commands.merge import merge
    from packtok.commands.pack import pack
    from packtok.commands.plan import plan
    from packtok.commands.run import retry, run
    from packtok.commands.sample import draw_samples, pack_samples
    from packtok.commands.sample_import import import_samples
    from packtok.commands.source import check_source
    from packtok.commands.tokenize import tokenize
    from packtok.commands.verify import verify, verify_corpus, verify_origins
    from packtok.compat.modalities.collators import LossMaskingCollateFnWrapper
    from packtok.compat.modalities.datasets import (
        CombinedDataset,
        PackedMemMapDatasetBase,
        PackedMemMapDatasetContinuous,
        PackedMemMapDatasetMegatron,
    )
    from packtok.compat.tatm.described import get_dataset
    from packtok.compat.tatm.texts import get_data
    from packtok.config import PackConfig
    from packtok.data.fields import document_mask
    from packtok.data.loader import DataLoader
    from packtok.data.mixture import Mixture
    from packtok.data.sampler import ResumableBatchSampler, ResumableDistributedSampler
    from packtok.data.token_dataset import TokenDataset
    from packtok.packer.report import PackReport
    from packtok.plugins.declare import source

__all__ = [
    "CombinedDataset",
    "ConfigError",
    "DataLoader",
    "DocumentError",
    "LossMaskingCollateFnWrapper",
    "Mixture",
    "Origin",
    "PackConfig",
    "PackReport",
    "PackedMemMapDatasetBase",
    "PackedMemMapDatasetContinuous",
    "PackedMemMapDatasetMegatron",
    "PacktokError",
    "PbinFormatError",
    "PbinReader",
    "Permutation",
    "ResumableBatchSampler",
    "ResumableDistributedSampler",
    "TokenDataset",
    "Tokenizer",
    "TokenizerError",
    "__version__",
    "check_source",
    "collate",
    "convert",
    "count",
    "document_mask",
    "draw_samples",
    "get_data",
    "get_dataset",
    "import_samples",
    "index",
    "join",
    "locate",
    "merge",
    "pack",
    "pack_samples",
    "plan",
    "prepare_instruction_tuning_data",
    "retry",
    "run",
    "source",
    "stream",
    "tokenize",
    "verify",
    "verify_corpus",
    "verify_origins",
    "write_manifest",
]

_HOME = {
    "CombinedDataset": "packtok.compat.modalities.datasets",
    "DataLoader": "packtok.data.loader",
    "LossMaskingCollateFnWrapper": "packtok.compat.modalities.collators",
    "Mixture": "packtok.data.mixture",
    "PackConfig": "packtok.config",
    "PackReport": "packtok.packer.report",
    "PackedMemMapDatasetBase": "packtok.compat.modalities.datasets",
    "PackedMemMapDatasetContinuous": "packtok.compat.modalities.datasets",
    "PackedMemMapDatasetMegatron": "packtok.compat.modalities.datasets",
    "ResumableBatchSampler": "packtok.data.sampler",
    "ResumableDistributedSampler": "packtok.data.sampler",
    "TokenDataset": "packtok.data.token_dataset",
    "document_mask": "packtok.data.fields",
    "get_data": "packtok.compat.tatm.texts",
    "get_dataset": "packtok.compat.tatm.described",
    "check_source": "packtok.commands.source",
    "convert": "packtok.commands.convert",
    "count": "packtok.commands.count",
    "draw_samples": "packtok.commands.sample",
    "pack_samples": "packtok.commands.sample",
    "import_samples": "packtok.commands.sample_import",
    "index": "packtok.commands.index",
    "join": "packtok.commands.join",
    "locate": "packtok.commands.locate",
    "merge": "packtok.commands.merge",
    "pack": "packtok.commands.pack",
    "plan": "packtok.commands.plan",
    "prepare_instruction_tuning_data": "packtok.commands.instruction",
    "retry": "packtok.commands.run",
    "run": "packtok.commands.run",
    "source": "packtok.plugins.declare",
    "tokenize": "packtok.commands.tokenize",
    "verify": "packtok.commands.verify",
    "verify_corpus": "packtok.commands.verify",
    "verify_origins": "packtok.commands.verify",
    "write_manifest": "packtok.commands.manifest",
}

_MODULES = ("collate", "stream")


def __getattr__(name: str) -> Any:
    import importlib

    from packtok.extras import needing_torch

    with needing_torch(f"packtok.{name}"):
        if name in _MODULES:
            return importlib.import_module(f"packtok.{name}")
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

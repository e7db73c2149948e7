"""Packed files as a document source of OLMo-core 3: the public names of `packtok.compat.olmo_core`."""

from packtok.compat.olmo_core import PbinDocumentSource, PbinDocumentSourceConfig

__all__ = ["PbinDocumentSource", "PbinDocumentSourceConfig"]

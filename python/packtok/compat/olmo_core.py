"""Packed files as a document source of OLMo-core 3, for its own instance sources and data loader.

Needs ``pip install 'ai2-olmo-core>=3,<4'``.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
from olmo_core.data import TokenizerConfig
from olmo_core.data.composable.token_source import DocumentSource, DocumentSourceConfig, TokenRange

from packtok._packtok import Blocks, PbinReader
from packtok.errors import ConfigError
from packtok.fingerprint import digest
from packtok.sources import Source, StrPath, find_files

__all__ = ["PbinDocumentSource", "PbinDocumentSourceConfig"]


@dataclass
class PbinDocumentSourceConfig(DocumentSourceConfig):  # type: ignore[misc]
    """Config of `PbinDocumentSource`, for the configs of OLMo-core's instance sources.

    Args:
        source: As in `PbinDocumentSource`.
        label: As in `PbinDocumentSource`.
    """

    source: Any
    label: str | None = None

    def build(self, work_dir: StrPath) -> list["PbinDocumentSource"]:
        """Returns the source, in a list as OLMo-core expects it."""
        return [PbinDocumentSource(self.source, work_dir=work_dir, label=self.label)]


class PbinDocumentSource(DocumentSource):  # type: ignore[misc]
    """The documents of pbins, in the order of the files.

    Token ranges within one file are read-only views of the file. Document boundaries come from the index, so
    an EOD id inside a document does not end it. Pickles as paths. Threads can share it.

    Args:
        source: A pbin, a list of pbins, a folder, a glob or a manifest.
        work_dir: Local folder in which OLMo-core's instance sources cache files.
        label: Name of the source in OLMo-core's messages.

    Raises:
        ConfigError: If no file matches.
        PbinFormatError: If a file is damaged.

    Example:
        ::

            from olmo_core.data.composable import ConcatAndChunkInstanceSource
            from packtok.integrations.olmo_core import PbinDocumentSource

            source = PbinDocumentSource("train.pbin", work_dir="work")
            instances = ConcatAndChunkInstanceSource(source, sequence_length=2048, work_dir="work")
    """

    Config = PbinDocumentSourceConfig

    def __init__(self, source: Source, *, work_dir: StrPath, label: str | None = None) -> None:
        super().__init__(work_dir=work_dir, label=label)
        # The blocks provide the fingerprint, and the paths that a manifest lists.
        stream = Blocks(**find_files(source), packing="whole")
        stream.check_loss_columns()
        self._fingerprint = digest([type(self).__name__, stream.fingerprint])
        self._readers = [PbinReader(path) for path in stream.paths]
        self._starts = list(accumulate((reader.num_tokens for reader in self._readers), initial=0))

    @property
    def fingerprint(self) -> str:
        """SHA-256, as hex, of the names, lengths and checksums of the files; folders do not matter."""
        return self._fingerprint

    @property
    def num_tokens(self) -> int:
        """Number of tokens in all files."""
        return self._starts[-1]

    @property
    def tokenizer(self) -> TokenizerConfig:
        """The tokenizer's sizes and ids that OLMo-core's collator and loader need; padding is EOD.

        Raises:
            ConfigError: If the first file does not record its vocabulary size and EOD id, as files written by
                Modalities.
        """
        metadata = self._readers[0].metadata or {}
        try:
            vocab_size, eod_id = metadata["tokenizer"]["vocab_size"], metadata["eod"]["id"]
        except KeyError as error:
            raise ConfigError(
                f"{self._readers[0].path}: the file does not record {error}; create a "
                "olmo_core.data.TokenizerConfig with vocab_size, eos_token_id and pad_token_id"
            ) from None
        return TokenizerConfig(vocab_size=vocab_size, eos_token_id=eod_id, pad_token_id=eod_id)

    def children(self) -> list[DocumentSource]:
        """Returns no sources: the tokens come from files."""
        return []

    def get_token_range(self, start_idx: int, end_idx: int) -> TokenRange:
        """Returns ``{"input_ids": tokens}``; the tokens are a view unless they are in several files.

        Raises:
            IndexError: If the range exceeds the source.
            ValueError: If the range is empty.
        """
        start, stop = self.validate_indices(start_idx, end_idx)
        first = bisect_right(self._starts, start) - 1
        parts: list[npt.NDArray[Any]] = []
        for i in range(first, len(self._readers)):
            offset = self._starts[i]
            if offset >= stop:
                break
            within = max(start, offset) - offset, min(stop, self._starts[i + 1]) - offset
            parts.append(self._readers[i].tokens(*within))
        return {"input_ids": parts[0] if len(parts) == 1 else np.concatenate(parts)}

    def get_document_offsets(self) -> Iterator[tuple[int, int]]:
        """Yields the first token and the one after the last of each document; empty ones are left out."""
        for offset, reader in zip(self._starts, self._readers, strict=False):
            start = offset
            for i in range(len(reader)):
                stop = start + len(reader[i])
                if stop > start:
                    yield start, stop
                start = stop

    def __repr__(self) -> str:
        return f"PbinDocumentSource({[str(reader.path) for reader in self._readers]})"

"""The input of a teacher: the end of a sample's context, or retrieved passages, then decoder tokens."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from packtok._packtok import MdsReader
from packtok.errors import ConfigError, PacktokError

__all__ = ["Inputs", "Sample"]

Ids = npt.NDArray[np.int64]
# The columns of retrieved passages, (k, L), and of their lengths, (k,).
_PASSAGES, _LENGTHS = "retrieved_token_ids", "retrieved_lengths"


@dataclass(frozen=True)
class Sample:
    """The input of the teacher for one sample."""

    ids: Ids
    """Context, then decoder tokens."""
    num_context: int
    labels: Ids
    """For each decoder token, the one after it; -1 for the last if there is none."""


@dataclass(frozen=True)
class Inputs:
    """The samples of a domain as inputs of a teacher."""

    folder: Path
    samples: Any
    """An `MdsReader`."""
    num_decoder: int
    num_encoder: int
    passages: Any = None
    """An `MdsReader` of retrieved passages, which then are the context."""
    num_passages: int = 0

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        num_decoder: int,
        num_encoder: int,
        retrieval: Path | None = None,
        num_passages: int = 0,
    ) -> "Inputs":
        """Opens the samples in ``folder``, and retrieved passages for each of them.

        Raises:
            PacktokError: If a folder lacks columns, or they have not equally many samples.
            OSError: If a folder cannot be read.
        """
        samples = _reader(folder, ("token_ids",) if retrieval else ("token_ids", "prev_token_ids"))
        passages = None
        if retrieval is not None:
            passages = _reader(retrieval, (_PASSAGES,))
            if len(passages) != len(samples):
                raise PacktokError(
                    f"{retrieval}: has {len(passages):,} samples, but {folder} has {len(samples):,}; they "
                    "must belong together"
                )
        return cls(folder, samples, num_decoder, num_encoder, passages, num_passages)

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the indexes, which contain the hashes of all files."""
        digest = hashlib.sha256()
        for reader in (self.samples, self.passages):
            if reader is not None:
                digest.update((Path(reader.folder) / "index.json").read_bytes())
        return digest.hexdigest()

    @property
    def tokens_per_sample(self) -> int:
        """An upper bound of the tokens of a sample."""
        if self.passages is None or not len(self):
            return self.num_encoder + self.num_decoder
        shape = self.passages[0][_PASSAGES].shape
        return int(np.prod((min(shape[0], self.num_passages), *shape[1:]))) + self.num_decoder

    def sample(self, i: int, num_ids: int) -> Sample:
        """Returns sample ``i`` of the folder, for a teacher that knows the ids below ``num_ids``.

        Raises:
            PacktokError: If it is too short, or has an id that the teacher does not know.
        """
        sample = self.samples[i]
        decoder = sample["token_ids"]
        if decoder.ndim != 1 or len(decoder) < self.num_decoder:
            raise PacktokError(
                f"{self.folder}: sample {i}: token_ids has shape {decoder.shape}, expected at least "
                f"{self.num_decoder} tokens; give a smaller --num-decoder-tokens"
            )
        context = self._context(sample, i) if self.passages is None else self._retrieved(i)
        ids = np.concatenate([context, decoder[: self.num_decoder]]).astype(np.int64)
        if not ((ids >= 0) & (ids < num_ids)).all():
            position = int(np.argmax((ids < 0) | (ids >= num_ids)))
            raise PacktokError(
                f"{self.folder}: sample {i}: token {position} of the input has id {ids[position]}, but the "
                f"model knows ids up to {num_ids - 1}; give the model that belongs to the tokenizer"
            )
        labels = np.full(self.num_decoder, -1, np.int64)
        following = decoder[1 : self.num_decoder + 1]
        labels[: len(following)] = following
        return Sample(ids, len(context), labels)

    def _context(self, sample: Any, i: int) -> Any:
        context = sample["prev_token_ids"]
        if context.ndim != 1 or len(context) < self.num_encoder:
            raise PacktokError(
                f"{self.folder}: sample {i}: prev_token_ids has shape {context.shape}, expected at least "
                f"{self.num_encoder} tokens; give a smaller --num-encoder-tokens"
            )
        # ids[-num_encoder:] would be all tokens if num_encoder is 0.
        return context[len(context) - self.num_encoder :]

    def _retrieved(self, i: int) -> Any:
        row = self.passages[i]
        passages = row[_PASSAGES]
        if passages.ndim != 2 or len(passages) < self.num_passages:
            raise PacktokError(
                f"{self.passages.folder}: sample {i}: {_PASSAGES} has shape {passages.shape}, expected at "
                f"least {self.num_passages} passages; give a smaller --retrieval-k"
            )
        lengths = row.get(_LENGTHS, np.full(len(passages), passages.shape[1]))
        chosen = zip(passages[: self.num_passages], lengths, strict=False)
        return np.concatenate([np.zeros(0, np.int64), *(passage[:length] for passage, length in chosen)])


def _reader(folder: Path, columns: tuple[str, ...]) -> MdsReader:
    if not folder.is_dir():
        raise ConfigError(
            f"{folder}: there is no such folder of samples; give the folder of the domains as --input-dir "
            "and one of their names as --domain"
        )
    reader = MdsReader(folder)
    if len(reader) and (missing := [name for name in columns if name not in reader.columns]):
        raise PacktokError(
            f"{folder}: the samples have no column {missing[0]}; they have {', '.join(reader.columns)}"
        )
    return reader

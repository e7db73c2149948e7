"""Contexts of encoder-decoder samples: retrieved passages, cut and padded to one size, and their masks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[Any]


@dataclass(frozen=True)
class Passages:
    """Passages of different lengths.

    Args:
        ids: Shape (k, L); what follows a passage in its row has no meaning.
        lengths: Shape (k,).
    """

    ids: Ids
    lengths: npt.NDArray[np.int64]

    @classmethod
    def joined(cls, first: "Passages", second: "Passages") -> "Passages":
        """Returns each passage of ``first``, followed by the passage of ``second`` with the same number."""
        width = first.ids.shape[1]
        ids = np.concatenate([first.ids, second.ids], axis=1)
        lengths = first.lengths + second.lengths
        columns = np.arange(ids.shape[1])
        starts = first.lengths[:, None]
        source = np.where(columns < starts, columns, columns - starts + width)
        return cls(np.take_along_axis(ids, np.minimum(source, ids.shape[1] - 1), axis=1), lengths)

    def padded(self, size: int, pad_token_id: int) -> tuple[Ids, npt.NDArray[np.float64]]:
        """Returns ids of shape (k, size) and their mask, in float64 as CEPE's loader gives it."""
        is_token = np.arange(size) < self.lengths[:, None]
        ids = np.full((len(self.ids), size), pad_token_id, self.ids.dtype)
        width = min(size, self.ids.shape[1])
        ids[:, :width] = self.ids[:, :width]
        ids[~is_token] = pad_token_id
        return ids, is_token.astype(np.float64)


def passages_of(retrieved: Mapping[str, Any], count: int) -> tuple[Passages, Passages]:
    """Returns the first ``count`` passages of a sample, and their neighbours."""
    passages = []
    for prefix in ("retrieved", "retrieved_neighbor"):
        ids = retrieved[f"{prefix}_token_ids"][:count]
        lengths = retrieved.get(f"{prefix}_lengths")
        if lengths is None:
            lengths = np.full(len(ids), ids.shape[1])
        passages.append(Passages(ids, lengths[:count].astype(np.int64)))
    return passages[0], passages[1]


def masked(mask: Ids, lengths: Sequence[int | None]) -> Ids:
    """Returns a copy of ``mask`` of shape (…, contexts, size) with tokens at the end of contexts masked.

    ``lengths`` has the number for each context; None masks all.
    """
    size = mask.shape[-1]
    num_unmasked = np.array([0 if length is None else size - length for length in lengths])
    return np.where(np.arange(size) < num_unmasked[:, None], mask, np.zeros((), mask.dtype))

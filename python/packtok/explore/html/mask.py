"""A picture of the attention mask of a row: one triangle for each document, as SVG of limited size."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

MAX_SHAPES = 200


@dataclass(frozen=True)
class Bounds:
    """The first position of each segment of a row, the one after its last, and whether it is padding."""

    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]
    is_padding: npt.NDArray[np.bool_]


def bounds_of(document_ids: npt.NDArray[np.int32]) -> Bounds:
    """Returns the bounds of the segments of a row, from the document of each position."""
    starts = np.flatnonzero(np.diff(document_ids, prepend=document_ids[0] - 1))
    return Bounds(starts, np.append(starts[1:], len(document_ids)), document_ids[starts] < 0)


def mask_svg(bounds: Bounds, *, separates: bool, max_shapes: int = MAX_SHAPES) -> Markup:
    """Returns the picture of a mask: queries from top to bottom, keys from left to right.

    Args:
        bounds: The segments of the row.
        separates: Whether attention stays within documents, as with `packtok.document_mask`. Otherwise it is
            causal over the whole row, and the triangles of the documents are only outlined.
        max_shapes: Documents shorter than this part of the row are drawn together.
    """
    length = int(bounds.stops[-1])
    num_documents = int((~bounds.is_padding).sum())
    documents = "document" if num_documents == 1 else "documents"
    reach = "within each document" if separates else "over the whole row"
    paths = "".join(
        f'<path class="{name}" d="{"".join(shapes)}"/>'
        for name, shapes in _shapes(bounds, length / max_shapes).items()
    )
    return Markup(
        f'<svg class="mask{"" if separates else " causal"}" viewBox="0 0 {length} {length}" width="240" '
        f'height="240" role="img" aria-label="Attention {reach}: {num_documents:,} {documents} in '
        f'{length:,} positions"><path class="all" d="M0 0V{length}H{length}z"/>{paths}</svg>'
    )


def _shapes(bounds: Bounds, limit: float) -> dict[str, list[str]]:
    """Returns triangles by class. Documents in a row shorter than ``limit`` are one line on the diagonal."""
    lengths = bounds.stops - bounds.starts
    is_short = (lengths < limit) & ~bounds.is_padding
    edges = [0, *(np.flatnonzero(np.diff(is_short)) + 1).tolist(), len(lengths)]
    shapes: dict[str, list[str]] = {}
    for i, j in pairwise(edges):
        if is_short[i]:
            width = int(lengths[i:j].max())
            first, last = int(bounds.starts[i]), int(bounds.stops[j - 1])
            line = f"M{first} {first}V{min(first + width, last)}L{max(last - width, first)} {last}H{last}z"
            shapes.setdefault("short", []).append(line)
            continue
        for k in range(i, j):
            name = "pad" if bounds.is_padding[k] else f"s{k % 2}"
            start, stop = bounds.starts[k], bounds.stops[k]
            shapes.setdefault(name, []).append(f"M{start} {start}V{stop}H{stop}z")
    return shapes

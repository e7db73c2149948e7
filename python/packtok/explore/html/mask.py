"""A picture of the attention mask of an item: one triangle for each document, as SVG of limited size."""

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

# Documents shorter than this part of the item are drawn together, so that a picture has few shapes.
_MAX_SHAPES = 200


def bounds_of(document_ids: npt.NDArray[np.int32]) -> list[tuple[int, int, bool]]:
    """Returns the first position of each segment, the one after its last, and whether it is padding."""
    starts = np.flatnonzero(np.diff(document_ids, prepend=document_ids[0] - 1))
    stops = np.append(starts[1:], len(document_ids))
    padding = document_ids[starts] < 0
    return list(zip(starts.tolist(), stops.tolist(), padding.tolist(), strict=True))


def mask_svg(segments: Sequence[tuple[int, int, bool]]) -> Markup:
    """Returns the mask of `packtok.data.document_mask`: queries from top to bottom, keys from left to right.

    Args:
        segments: As `bounds_of` returns them.
    """
    length = segments[-1][1]
    num_documents = sum(not is_padding for _, _, is_padding in segments)
    documents = "documents" if num_documents > 1 else "document"
    paths = "".join(
        f'<path class="{name}" d="{"".join(shapes)}"/>' for name, shapes in _shapes(segments, length).items()
    )
    return Markup(
        f'<svg class="mask" viewBox="0 0 {length} {length}" width="240" height="240" role="img" '
        f'aria-label="Attention mask of {num_documents:,} {documents} in {length:,} positions">'
        f'<path class="all" d="M0 0V{length}H{length}z"/>{paths}</svg>'
    )


def _shapes(segments: Iterable[tuple[int, int, bool]], length: int) -> dict[str, list[str]]:
    """Returns triangles by class. Consecutive short documents are one line along the diagonal."""
    limit = length / _MAX_SHAPES
    shapes: dict[str, list[str]] = {}
    number = 0
    for is_short, run in groupby(
        segments, lambda segment: not segment[2] and segment[1] - segment[0] < limit
    ):
        members = list(run)
        if is_short:
            width = max(stop - start for start, stop, _ in members)
            first, last = members[0][0], members[-1][1]
            line = f"M{first} {first}V{min(first + width, last)}L{max(last - width, first)} {last}H{last}z"
            shapes.setdefault("short", []).append(line)
            number += len(members)
            continue
        for start, stop, is_padding in members:
            name = "pad" if is_padding else f"s{number % 2}"
            shapes.setdefault(name, []).append(f"M{start} {start}V{stop}H{stop}z")
            number += 1
    return shapes

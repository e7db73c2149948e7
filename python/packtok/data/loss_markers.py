"""The ids of the two tokens between which labels count in the loss."""

import os
from collections.abc import Sequence
from pathlib import Path

from packtok import _packtok
from packtok.integers import checked_integer

__all__ = ["marker_ids"]


def marker_ids(markers: Sequence[int | str], path: str | os.PathLike[str]) -> tuple[int, int]:
    """Returns the ids of the begin and the end marker.

    Args:
        markers: Each an id, or a token of the tokenizer next to the data.
        path: The first file of the data.

    Raises:
        ValueError: If they are not two different tokens.
    """
    if isinstance(markers, str) or len(markers) != 2:
        raise ValueError(f"loss_markers is {markers!r}; expected two, the begin and the end marker")
    begin, end = (_id_of(marker, Path(path)) for marker in markers)
    if begin == end:
        raise ValueError(
            f"loss_markers is {markers!r}: the begin and end markers have the same id {begin}; give two "
            "different tokens"
        )
    return begin, end


def _id_of(marker: int | str, path: Path) -> int:
    if not isinstance(marker, str):
        return checked_integer("loss_markers", marker, below=1 << 32)
    file = _tokenizer_of(path)
    if file is None:
        raise ValueError(f"{path}: no tokenizer next to the file has the marker {marker!r}; give its id")
    token_id = _packtok.read_tokenizer(os.fspath(file), os.fspath(file)).token_to_id(marker)
    if token_id is None:
        raise ValueError(
            f"{file}: has no token {marker!r}; give a marker that is one of its tokens, or give an id"
        )
    return token_id


def _tokenizer_of(path: Path) -> Path | None:
    """Returns the tokenizer of a pbin, or of the folder of shards that contains the pbin."""
    files = (path.with_name(f"{path.name}.tokenizer.json"), path.with_name(_packtok.PLAN_TOKENIZER_NAME))
    return next((file for file in files if file.is_file()), None)

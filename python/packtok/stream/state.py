"""The state of a stream: a dict that JSON can hold, with positions and no data."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from packtok.stream import recipe

__all__ = ["StateDict", "position_of", "state_of"]

StateDict = dict[str, Any]
_VERSION = 1
_REMEDY = "load what state_dict returned, or start without a state"


def state_of(position: bytes, description: Sequence[Any]) -> StateDict:
    """Returns the state with this position."""
    encoded = base64.b64encode(position).decode("ascii")
    return {"version": _VERSION, "recipe": description, "position": encoded}


def position_of(state: object, description: Sequence[Any], allow: Sequence[str]) -> bytes:
    """Returns the position in ``state``, which it does not change.

    Raises:
        ValueError: If it is no state, or one of another recipe.
    """
    if not isinstance(state, Mapping):
        raise ValueError(f"the state is of type {type(state).__name__}, expected a dict; {_REMEDY}")
    if state.get("version") != _VERSION:
        raise ValueError(f"the state has version {state.get('version')!r}, expected {_VERSION}; {_REMEDY}")
    saved = state.get("recipe")
    if not isinstance(saved, list) or not all(isinstance(one, Mapping) for one in saved):
        raise ValueError(f"the state has no recipe; {_REMEDY}")
    if found := recipe.difference(saved, description, allow):
        raise ValueError(
            f"the state is of another recipe: {found}; load it into its own recipe, or name what may differ "
            "in allow, as in allow=['shuffle.seed']"
        )
    try:
        return base64.b64decode(state.get("position"), validate=True)  # type: ignore[arg-type]
    except (binascii.Error, TypeError, ValueError):
        raise ValueError(f"the state has no position; {_REMEDY}") from None

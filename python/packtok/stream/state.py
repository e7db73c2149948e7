"""The state of a stream: a dict that JSON can hold, with positions and no data."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from packtok.integers import checked_integer
from packtok.stream import comparison

__all__ = ["Position", "StateDict", "merge_states", "position_of", "state_of"]

StateDict = dict[str, Any]
# The position that all ranks share, and the positions in the lanes that this rank reads.
Position = tuple[bytes, dict[int, bytes]]
_VERSION = 1
_REMEDY = "load what state_dict returned, or start without a state"


def state_of(position: Position, description: Sequence[Any]) -> StateDict:
    """Returns the state with this position."""
    shared, lanes = position
    state: StateDict = {"version": _VERSION, "recipe": description, "position": _encoded(shared)}
    if lanes:
        state["lanes"] = {str(lane): _encoded(own) for lane, own in lanes.items()}
    return state


def merge_states(states: Iterable[Mapping[str, Any]]) -> StateDict:
    """Returns one state with the lanes of the states of all ranks, which any number of ranks can load.

    Raises:
        ValueError: If there are no states, or they are not of the same recipe and step.
    """
    listed = list(states)
    if not listed:
        raise ValueError("there are no states to merge; give those of all ranks")
    first = listed[0]
    for number, state in enumerate(listed):
        own, expected = state.get("recipe"), first.get("recipe")
        if _is_recipe(own) and _is_recipe(expected):
            compared = comparison.compared(own, expected)
            if compared.argument:
                raise ValueError(
                    f"state {number} is of another recipe than state 0: {compared.difference}; merge states "
                    "of one recipe, and give a function that differs between ranks a version"
                )
        for name in ("version", "recipe", "position"):
            if state.get(name) != first.get(name):
                raise ValueError(
                    f"{name} of state {number} differs from that of state 0; merge states of one step"
                )
    lanes = {lane: own for state in listed for lane, own in state.get("lanes", {}).items()}
    return {**first, "lanes": lanes}


def position_of(state: object, description: Sequence[Any], allow: Sequence[str]) -> tuple[Position, int]:
    """Returns the position in ``state``, which it does not change, and how many samples to skip after it.

    Raises:
        ValueError: If it is no state, or one of another recipe.
    """
    if not isinstance(state, Mapping):
        raise ValueError(f"the state is of type {type(state).__name__}, expected a dict; {_REMEDY}")
    if state.get("version") != _VERSION:
        raise ValueError(f"the state has version {state.get('version')!r}, expected {_VERSION}; {_REMEDY}")
    saved = state.get("recipe")
    if not _is_recipe(saved):
        raise ValueError(f"the state has no recipe; {_REMEDY}")
    comparison.check_allowed(allow, saved, description)
    compared = comparison.compared(saved, description, allow)
    if compared.difference:
        remedy = f", or permit it with allow=[{compared.argument!r}]" if compared.argument else ""
        raise ValueError(
            f"the state is of another recipe: {compared.difference}; load it into its own recipe{remedy}"
        )
    if compared.unrecorded:
        warnings.warn(
            "the state is of an earlier version, which did not record "
            f"{', '.join(dict.fromkeys(compared.unrecorded))}: make sure that they are as they were",
            stacklevel=2,
        )
    try:
        lanes = {int(lane): _decoded(own) for lane, own in state.get("lanes", {}).items()}
        return (_decoded(state.get("position")), lanes), checked_integer("skip", state.get("skip", 0))
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f"the state has no valid position; {_REMEDY}") from None


def _is_recipe(value: object) -> TypeGuard[list[Mapping[str, Any]]]:
    return isinstance(value, list) and all(isinstance(step, Mapping) for step in value)


def _encoded(position: bytes) -> str:
    return base64.b64encode(position).decode("ascii")


def _decoded(text: Any) -> bytes:
    return base64.b64decode(text, validate=True)

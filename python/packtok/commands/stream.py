"""Implements `packtok stream show`: describes the state of a stream."""

import json
from pathlib import Path
from typing import Any

from packtok.errors import ConfigError

__all__ = ["show_state"]


def show_state(path: str | Path) -> dict[str, Any]:
    """Describes a state of `packtok.stream` that was saved as JSON; nothing is read but the file.

    Returns:
        A dict with ``version``, ``bytes`` of the file, ``steps`` (for each, ``op`` and its arguments),
        ``lanes`` (their numbers), ``position_bytes`` and ``lane_bytes`` (the largest), and ``skip``, the
        samples to pass over after the position.

    Raises:
        ConfigError: If the file is not JSON, or not such a state.
        OSError: If it cannot be read.
    """
    from packtok.stream.state import position_of

    data = Path(path).read_bytes()
    try:
        state = json.loads(data)
        steps = state["recipe"] if isinstance(state, dict) else []
        (position, lanes), skip = position_of(state, steps, ())
    except (KeyError, ValueError, RecursionError) as error:
        reason = "it has no recipe" if isinstance(error, KeyError) else str(error)
        raise ConfigError(f"{path}: not the state of a stream as JSON: {reason}") from None
    return {
        "version": state["version"],
        "bytes": len(data),
        "steps": steps,
        "lanes": sorted(lanes),
        "position_bytes": len(position),
        "lane_bytes": max(map(len, lanes.values()), default=0),
        "skip": skip,
    }

"""What the state of a sampler or loader holds, and whether it fits where it is loaded.

Every field is checked before anything changes: a state with one wrong number would otherwise serve an empty
epoch, or other items than the run that saved it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from packtok.data.epochs import AT_EPOCH_ENDS, Epochs
from packtok.integers import checked_integer

__all__ = ["ORDER_VERSION", "STATE_VERSION", "check_form", "checked_place"]

STATE_VERSION = 1
# Goes up when an order changes, which the permutation promises not to do.
ORDER_VERSION = 1

_REMEDY = "load what state_dict returned, or start without a state"


def check_form(state: object) -> Mapping[str, Any]:
    """``state`` if it has the fields of a state, each of the right type and in its range.

    Raises:
        ValueError: If it has not.
    """
    if not isinstance(state, Mapping):
        raise ValueError(
            f"the state is of type {type(state).__name__}, expected a dict; load what state_dict returned"
        )
    # First: in another version the fields may be others.
    version = _field("version", state.get("version", STATE_VERSION), checked_integer)
    if version != STATE_VERSION:
        raise ValueError(
            f"the state has version {version}, expected {STATE_VERSION}; load it with the release of packtok "
            "that saved it, or start without a state"
        )
    if missing := [name for name in _FIELDS if name not in state and name not in _OPTIONAL]:
        raise _no_state(f"it lacks {', '.join(missing)}")
    if unknown := [key for key in state if key not in _FIELDS]:
        raise _no_state(f"{', '.join(map(repr, unknown))} is not a known field")
    for name, check in _FIELDS.items():
        if name in state:
            _field(name, state[name], check)
    return state


def checked_place(state: object, own: Mapping[str, Any], epochs: Epochs) -> tuple[int, int, int]:
    """The epoch of ``state``, the position at which that epoch started, and the position reached.

    Args:
        state: What was saved.
        own: The state of the sampler that it is loaded into.
        epochs: The epochs of that sampler.

    Raises:
        ValueError: If the state is damaged, or was taken with other data or in another order.
    """
    saved = check_form(state)
    differing = [
        f"{name} is {saved[name]!r} in the state and {own[name]!r} here"
        for name in _SAME
        if saved[name] != own[name]
    ]
    if differing:
        raise ValueError(
            f"the state does not match: {'; '.join(differing)}; resume with the values of the state, or "
            "start without it"
        )
    # Without a global batch each rank takes one sample in a step, and the number of ranks may differ now.
    step = saved["global_batch_size"] or saved.get("num_replicas", epochs.share.num_replicas)
    epochs = epochs.with_global_batch_size(step)
    epoch, start = saved["epoch"], saved.get("skip_num_global_samples", 0)
    _field("skip_num_global_samples", start, lambda _, skip: epochs.check_skip(epoch, skip))
    position, stop = saved["num_global_samples"], start + epochs.num_steps(epoch, start) * step
    if not start <= position <= stop or (position - start) % step:
        steps = f"a multiple of {step}" if start == 0 else f"{start} plus a multiple of {step}"
        raise _unusable(
            f"num_global_samples is {position}, expected {steps}, the global batch, up to {stop}, the end of "
            f"epoch {epoch}"
        )
    return epoch, start, position


def _field(name: str, value: object, check: Callable[[str, Any], Any]) -> Any:
    """What ``check`` makes of a field.

    Raises:
        ValueError: What it raises, as a fault of the state.
    """
    try:
        return check(name, value)
    except ValueError as error:
        raise _unusable(str(error)) from None


def _no_state(what: str) -> ValueError:
    return ValueError(f"not a state of a packtok sampler or loader: {what}; {_REMEDY}")


def _unusable(what: str) -> ValueError:
    return ValueError(f"the state cannot be loaded: {what}; {_REMEDY}")


def _positive(name: str, value: object) -> int:
    return checked_integer(name, value, least=1)


def _seed(name: str, value: object) -> int:
    return checked_integer(name, value, below=1 << 64)


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}, expected a string or None")


def _epoch_end(name: str, value: object) -> None:
    if not isinstance(value, str) or value not in AT_EPOCH_ENDS:
        raise ValueError(f"{name} is {value!r}, expected {' or '.join(map(repr, AT_EPOCH_ENDS))}")


def _or_none(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda name, value: None if value is None else check(name, value)


_FIELDS: dict[str, Callable[[str, Any], Any]] = {
    "version": checked_integer,
    "order": checked_integer,
    "data": _or_none(_text),
    "num_items": _positive,
    "seed": _or_none(_seed),
    "global_batch_size": _or_none(_positive),
    "at_epoch_end": _epoch_end,
    "epoch": checked_integer,
    "num_global_samples": checked_integer,
    "skip_num_global_samples": checked_integer,
    "num_replicas": _positive,
}
# Where the epoch started, if not at 0; and how many ranks there were, where they decide what a step is.
_OPTIONAL = ("skip_num_global_samples", "num_replicas")
# Where these differ, a position means something else.
_SAME = ("order", "data", "num_items", "seed", "global_batch_size", "at_epoch_end")

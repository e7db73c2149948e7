"""Checks the state of a sampler or loader against the one that loads it.

Every field is checked before anything changes. Otherwise a single wrong number could yield an empty epoch, or
other items than those of the run that saved the state.
"""

from collections.abc import Callable, Mapping
from typing import Any

from packtok.choices import check_choice
from packtok.data.epochs import AT_EPOCH_ENDS, Epochs
from packtok.integers import checked_integer

__all__ = ["check_form", "checked_place", "state_of"]

STATE_VERSION = 1
# Increases if an order changes, which the permutation promises not to do.
ORDER_VERSION = 1

_REMEDY = "load what state_dict returned, or start without a state"


def state_of(
    epochs: Epochs, data: str | None, global_batch_size: int | None, *, epoch: int, start: int, position: int
) -> dict[str, Any]:
    """Returns the state of a sampler.

    Args:
        epochs: The epochs of the sampler.
        data: The fingerprint of the dataset, if it has one.
        global_batch_size: Samples per step over all ranks; ``None`` if they are served one by one.
        epoch: The current epoch.
        start: The position at which the epoch started.
        position: The current position.
    """
    state = {
        "version": STATE_VERSION,
        "order": ORDER_VERSION,
        "data": data,
        "num_items": epochs.num_items,
        "seed": epochs.seed,
        "global_batch_size": global_batch_size,
        "at_epoch_end": epochs.at_epoch_end,
        "epoch": epoch,
        "num_global_samples": position,
    }
    if start:
        state["skip_num_global_samples"] = start
    if global_batch_size is None:
        state["num_replicas"] = epochs.share.num_replicas
    return state


def check_form(state: object) -> Mapping[str, Any]:
    """Returns ``state`` if it has all fields of a state, each with the right type and in range.

    Raises:
        ValueError: If it does not.
    """
    if not isinstance(state, Mapping):
        raise ValueError(
            f"the state is of type {type(state).__name__}, expected a dict; load what state_dict returned"
        )
    # Checked first, because another version may have other fields.
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
    """Returns the epoch of ``state``, the position at which that epoch started, and the current position.

    Args:
        state: The saved state.
        own: The state of the sampler that loads it.
        epochs: The epochs of that sampler.

    Raises:
        ValueError: If the state is damaged, or was saved with other data or another order.
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
    # Without a global batch, a step is one sample per rank, and the number of ranks may have changed.
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
    """Returns the result of ``check`` for a field.

    Raises:
        ValueError: With the message of ``check``, as an error of the state.
    """
    try:
        return check(name, value)
    except ValueError as error:
        raise _unusable(str(error)) from None


def _no_state(problem: str) -> ValueError:
    return ValueError(f"not a state of a packtok sampler or loader: {problem}; {_REMEDY}")


def _unusable(problem: str) -> ValueError:
    return ValueError(f"the state cannot be loaded: {problem}; {_REMEDY}")


def _positive(name: str, value: object) -> int:
    return checked_integer(name, value, least=1)


def _seed(name: str, value: object) -> int:
    return checked_integer(name, value, below=1 << 64)


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}, expected a string or None")


def _epoch_end(name: str, value: object) -> None:
    check_choice(name, value, AT_EPOCH_ENDS)


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
# Optional fields: the start of the epoch if it is not 0, and the number of ranks if it determines a step.
_OPTIONAL = ("skip_num_global_samples", "num_replicas")
# If one of these fields differs, a position means something else.
_SAME = ("order", "data", "num_items", "seed", "global_batch_size", "at_epoch_end")

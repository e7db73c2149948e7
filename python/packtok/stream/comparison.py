"""Compares the recipe of a state with that of a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from packtok.stream.spec import Spec, Step

__all__ = ["Comparison", "check_allowed", "compared", "divided_as"]

# Arguments that states of earlier versions do not record.
_LATER = frozenset(
    {"pack_chunk.window", "call.arguments", "call.target_column", "call.tokenizer_kwargs", "batch.collate_fn"}
)
# Arguments that only states of earlier versions record. A source records them now.
_EARLIER = frozenset({"tokenize.on_bad_document"})
# The division of files among lanes of earlier versions, which do not record it: a file that cannot be cut
# belongs to the lane of its first byte.
_EARLIER_DIVISION = "by_first_byte"


@dataclass
class Comparison:
    """The result of a comparison."""

    difference: str | None = None
    """The first difference in words."""
    argument: str | None = None
    """The argument that differs, as ``op.argument``; ``None`` if the steps differ."""
    unrecorded: list[str] = field(default_factory=list)
    """The arguments that a state of an earlier version does not record."""


def check_allowed(allow: Sequence[str], *recipes: Sequence[Step]) -> None:
    """Checks the names of arguments that may differ.

    Raises:
        ValueError: If none of ``recipes`` has such an argument.
    """
    known = {argument for steps in recipes for argument in _arguments(steps)}
    for name in [allow] if isinstance(allow, str) else allow:
        if name not in known:
            raise ValueError(
                f"allow has {name!r}, which is no argument of this recipe; it has {', '.join(sorted(known))}"
            )


def _arguments(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        yield from (f"{step.get('op')}.{name}" for name in step if name != "op")
        if isinstance(step.get("recipe"), list):
            yield from _arguments(step["recipe"])


def divided_as(spec: Spec, state: object) -> Spec:
    """Returns ``spec`` with the division of files among lanes that ``state`` was saved with."""
    steps = state.get("recipe") if isinstance(state, Mapping) else None
    saved = [step for step in steps or () if isinstance(step, Mapping) and step.get("op") == "distribute"]
    if not saved or saved[0].get("division"):
        return spec
    return replace(
        spec,
        steps=[
            {**step, "division": _EARLIER_DIVISION} if step["op"] == "distribute" else step
            for step in spec.steps
        ],
    )


def compared(saved: Sequence[Step], own: Sequence[Step], allow: Sequence[str] = ()) -> Comparison:
    """Compares two descriptions. ``allow`` names arguments that may differ, as ``op.argument``."""
    comparison = Comparison()
    for number, (theirs, ours) in enumerate(zip(map(_upgraded, saved), own, strict=False), 1):
        if theirs.get("op") != ours["op"]:
            comparison.difference = f"step {number} is {theirs.get('op')}, expected {ours['op']}"
            return comparison
        for name in _differing(theirs, ours, allow, comparison):
            comparison.argument = f"{ours['op']}.{name}"
            comparison.difference = _in_words(name, number, theirs, ours, allow)
            return comparison
    if len(saved) != len(own):
        comparison.difference = f"it has {len(saved)} steps, expected {len(own)}"
    return comparison


def _upgraded(step: Step) -> Step:
    """Returns a step of an earlier version with the arguments that follow from others."""
    if step.get("op") == "pack_chunk" and "strategy" not in step:
        return {**step, "strategy": "next_fit" if "discard_long" in step else "best_fit"}
    return step


def _differing(theirs: Step, ours: Step, allow: Sequence[str], comparison: Comparison) -> Iterator[str]:
    """Yields the names of arguments that differ and must be equal."""
    # "strategy" comes first, because other arguments follow from it.
    names = sorted({*theirs, *ours}, key=lambda name: (name != "strategy", name))
    for name in names:
        argument = f"{ours['op']}.{name}"
        saved_value, own_value = _listed(theirs.get(name)), _listed(ours.get(name))
        if argument in allow or argument in _EARLIER or saved_value == own_value:
            continue
        if name not in theirs and argument in _LATER:
            comparison.unrecorded.append(argument)
        elif (
            isinstance(theirs.get(name), Mapping)
            and _are_pairs(own_value)
            and saved_value == sorted(saved_value) == sorted(own_value)
        ):
            # JSON with sorted keys has lost the order of files.
            comparison.unrecorded.append(f"the order of {argument}")
        elif name == "recipe" and isinstance(saved_value, list):
            inner = compared(saved_value, own_value, allow)
            comparison.unrecorded += inner.unrecorded
            if inner.difference:
                yield name
        else:
            yield name


def _in_words(name: str, number: int, theirs: Step, ours: Step, allow: Sequence[str]) -> str:
    saved_value, own_value = theirs.get(name), ours.get(name)
    if name == "recipe":
        return (
            f"in the cache of step {number}, {compared(saved_value or [], own_value or [], allow).difference}"
        )
    if name == "files" and (difference := _file_difference(saved_value, own_value)):
        return f"{difference} (step {number})"
    return f"{name} of step {number} ({ours['op']}) is {saved_value!r}, expected {own_value!r}"


def _listed(value: Any) -> Any:
    """Returns the files of earlier versions as pairs of name and bytes; anything else as it is."""
    return [list(pair) for pair in value.items()] if isinstance(value, Mapping) else value


def _file_difference(theirs: Any, ours: Any) -> str | None:
    """Returns the first file that differs, with its bytes, if both sides list files by name."""
    theirs, ours = _listed(theirs), _listed(ours)
    if not _are_pairs(theirs) or not _are_pairs(ours):
        return None
    old, new = dict(theirs), dict(ours)
    for name in [*old, *new]:
        if name not in new:
            return f"it has the file {name}, which is not there"
        if name not in old:
            return f"it lacks the file {name}"
        if old[name] != new[name]:
            return f"the file {name} had {old[name]} bytes, and has {new[name]}"
    return "the files are in another order"


def _are_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in value)

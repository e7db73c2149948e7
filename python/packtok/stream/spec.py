"""The specification of a stream: a plain dict for each operator, which the core reads as JSON.

The core knows which operator may follow which, and how a state describes each: `packtok-stream`, `spec.rs`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

from packtok._packtok import check_stream, describe_stream

__all__ = ["Flow", "Spec", "Step", "after"]

Step = Mapping[str, Any]


class Flow(TypedDict):
    """The properties of a stream that the core knows before it runs."""

    is_endless: bool
    is_batched: bool
    """Whether samples are batches of the core, which no function has seen yet."""
    is_distributed: bool
    has_endless_lanes: bool
    keeps_outputs: bool
    """Whether states hold outputs of a function."""


@dataclass(frozen=True)
class Spec:
    """A stream as a list of steps."""

    steps: Sequence[Step]
    """A dict for each operator: ``op``, its arguments, and ``from``, the numbers of the steps that it reads
    from. They come before it, and the last step is the stream."""
    objects: Sequence[Any] = ()
    """The tokenizers, functions and sources that JSON cannot describe. Steps have their numbers as
    ``object``."""
    found_rank: tuple[int, int] | None = None
    """Rank and number of ranks, if they are those that the process had when ``distribute`` was called."""
    flow: Flow = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Checks the steps.

        Raises:
            ValueError: If an argument is not valid, or a step cannot follow another.
        """
        object.__setattr__(self, "flow", check_stream(self.json()))

    def json(self) -> str:
        """Returns the steps as the core reads them."""
        return json.dumps(self.steps)

    def description(self) -> list[dict[str, Any]]:
        """Returns the record of the stream for a state: operators, and arguments that change the output."""
        return describe_stream(self.json())

    def then(
        self,
        op: str,
        arguments: Mapping[str, Any],
        object: Any = None,
        found_rank: tuple[int, int] | None = None,
    ) -> Spec:
        """Returns the stream of an operator that reads from this one."""
        spec = after([self], op, arguments, object)
        return spec if found_rank is None else replace(spec, found_rank=found_rank)

    def with_arguments(self, **arguments: Any) -> Spec:
        """Returns this stream with other arguments of its last operator."""
        return replace(self, steps=[*self.steps[:-1], {**self.steps[-1], **arguments}])


def after(inputs: Sequence[Spec], op: str, arguments: Mapping[str, Any], object: Any = None) -> Spec:
    """Returns the stream of an operator that reads from ``inputs``; of a source, if there are none.

    Raises:
        ValueError: If an argument is not valid, or the operator cannot follow one of the inputs.
    """
    steps: list[Step] = []
    objects: list[Any] = []
    last_steps = []
    for spec in inputs:
        moved = [_moved(step, len(steps), len(objects)) for step in spec.steps]
        steps += moved
        objects += spec.objects
        last_steps.append(len(steps) - 1)
    step = {"op": op, "from": last_steps, **arguments}
    if object is not None:
        step["object"] = len(objects)
        objects.append(object)
    found_rank = next((spec.found_rank for spec in inputs if spec.found_rank), None)
    return Spec([*steps, step], objects, found_rank)


def _moved(step: Step, num_steps: int, num_objects: int) -> Step:
    """Returns a step with the numbers that it has after so many other steps and objects."""
    moved = {**step, "from": [number + num_steps for number in step["from"]]}
    if "object" in step:
        moved["object"] = step["object"] + num_objects
    return moved

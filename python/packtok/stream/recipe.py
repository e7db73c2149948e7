"""Recipes: the nodes of a stream as data, and their description in a state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = [
    "Node",
    "described",
    "difference",
    "digest",
    "distribution",
    "divided_as",
    "flattened",
    "is_batched",
    "is_endless",
    "keeps_outputs",
    "share_of",
]


@dataclass(frozen=True)
class Node:
    """One node of a stream and those that it reads from."""

    op: str
    """The operation, named after the method."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The arguments of the operation in the core."""
    upstream: Sequence[Node] = ()
    reads_many: bool = False
    """Whether the core takes a list of nodes to read from, even if it has one."""
    object: Any = None
    """A tokenizer, function or source, which the core is given as it is."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """What a state records in addition to the arguments: what identifies the object or the files."""
    is_rank_found: bool = False
    """Whether rank and number of ranks are those that the process had when the recipe was made."""


def flattened(node: Node) -> tuple[str, list[Any]]:
    """Returns the nodes as JSON, each after those that it reads from, and their objects.

    Documents of files are checked: when they are tokenized, or by a step of its own.
    """
    nodes: list[dict[str, Any]] = []
    objects: list[Any] = []
    _add(_checked(node), nodes, objects)
    return json.dumps(nodes), objects


def _checked(node: Node) -> Node:
    if node.op != "from_files":
        return node
    return Node("check", {"on_bad_document": node.identity["on_bad_document"]}, (node,))


def _add(node: Node, nodes: list[dict[str, Any]], objects: list[Any]) -> int:
    checks = node.op in ("check", "tokenize")
    upstream = node.upstream if checks else [_checked(one) for one in node.upstream]
    numbers = [_add(one, nodes, objects) for one in upstream]
    given: dict[str, Any] = {"op": node.op, **node.arguments}
    if node.reads_many:
        given["from"] = numbers
    elif numbers:
        given["from"] = numbers[0]
    if node.object is not None:
        given["object"] = len(objects)
        objects.append(node.object)
    nodes.append(given)
    return len(nodes) - 1


# By the lane that owns the first byte of a file that cannot be cut.
_OLD_DIVISION = "by_first_byte"
# What decides how fast a stream is, but not what comes out.
_NOT_IDENTITY = frozenset(
    {"window", "job_samples", "drops_record", "inputs", "bytes", "paths", "rank", "num_ranks", "is_endless"}
    | {"form", "stacks", "zstd_window_log"}
)


def described(node: Node) -> list[dict[str, Any]]:
    """Returns what a state records of a recipe: operations and the arguments that change the output."""
    found = [one for before in node.upstream for one in described(before)]
    kept = {name: value for name, value in node.arguments.items() if name not in _NOT_IDENTITY}
    if kept.get("division") == _OLD_DIVISION:
        # States of earlier versions, which had no other one, do not name it.
        del kept["division"]
    if "global_batch_size" in node.identity:
        # The size for one rank follows from it.
        del kept["batch_size"]
    return [*found, json.loads(json.dumps({"op": node.op, **kept, **node.identity}))]


def difference(saved: Sequence[Any], own: Sequence[Any], allow: Sequence[str]) -> str | None:
    """Returns the first difference of two descriptions in words, or ``None``.

    ``allow`` names arguments that may differ, as ``op.argument``.
    """
    for number, (theirs, ours) in enumerate(zip(saved, own, strict=False)):
        if theirs.get("op") != ours["op"]:
            return f"step {number + 1} is {theirs.get('op')}, expected {ours['op']}"
        for name in sorted({*theirs, *ours}):
            if theirs.get(name) != ours.get(name) and f"{ours['op']}.{name}" not in allow:
                if name == "files" and (found := _file_difference(theirs.get(name), ours.get(name))):
                    return f"{found} (step {number + 1})"
                shown = f"{theirs.get(name)!r}, expected {ours.get(name)!r}"
                return f"{name} of step {number + 1} ({ours['op']}) is {shown}"
    if len(saved) != len(own):
        return f"it has {len(saved)} steps, expected {len(own)}"
    return None


def _file_difference(theirs: Any, ours: Any) -> str | None:
    """The first file that differs, with its bytes, if both are listed by name."""
    if not isinstance(theirs, Mapping) or not isinstance(ours, Mapping):
        return None
    for name in [*theirs, *ours]:
        if name not in ours:
            return f"it has the file {name}, which is not there"
        if name not in theirs:
            return f"it lacks the file {name}"
        if theirs[name] != ours[name]:
            return f"the file {name} had {theirs[name]} bytes, and has {ours[name]}"
    return "the files are in another order"


def is_batched(node: Node) -> bool:
    """Returns whether samples are batches of the core, which no function has seen yet."""
    if node.op == "batch":
        return True
    passes_on = node.op in ("take", "stride", "enumerate", "shuffle", "distribute", "concat", "interleave")
    return passes_on and any(is_batched(one) for one in node.upstream)


def is_endless(node: Node) -> bool:
    """Returns whether the samples of a node have no end."""
    if node.op in ("from_files", "from_pbin", "from_samples"):
        return bool({**node.arguments, **node.identity}["repeat"])
    if node.op == "take":
        return False
    ends = [is_endless(one) for one in node.upstream]
    return any(ends) if node.op == "concat" else all(ends)


def keeps_outputs(node: Node) -> bool:
    """Returns whether states hold outputs of a function of this node or one before it."""
    own = bool(node.arguments.get("keeps_outputs"))
    return own or any(keeps_outputs(one) for one in node.upstream)


def distribution(node: Node) -> Node | None:
    """Returns the node that divides the samples of ``node`` among ranks, if one does."""
    if node.op == "distribute":
        return node
    return next((found for one in node.upstream if (found := distribution(one))), None)


def share_of(node: Node) -> tuple[int, int] | None:
    """Returns rank and number of ranks, if the samples of a node are divided among ranks."""
    found = distribution(node)
    return None if found is None else (found.arguments["rank"], found.arguments["num_ranks"])


def divided_as(node: Node, state: Any) -> Node:
    """Returns ``node`` with the division of files among lanes that ``state`` was saved with."""
    steps = state.get("recipe") if isinstance(state, Mapping) else None
    saved = [one for one in steps or () if isinstance(one, Mapping) and one.get("op") == "distribute"]
    if not saved or saved[0].get("division"):
        return node
    return _replaced(node)


def _replaced(node: Node) -> Node:
    if node.op == "distribute":
        return replace(node, arguments={**node.arguments, "division": _OLD_DIVISION})
    return replace(node, upstream=[_replaced(one) for one in node.upstream])


def digest(values: Sequence[Any]) -> str:
    """Returns a short digest of values that JSON can hold."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]

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
    "digest",
    "distribution",
    "divided_as",
    "flattened",
    "is_batched",
    "is_endless",
    "keeps_outputs",
    "of_samples",
    "on_bad_document",
    "share_of",
]


@dataclass(frozen=True)
class Node:
    """A node of a stream, and the nodes that it reads from."""

    op: str
    """The operation, named after the method."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The arguments of the operation in the core that change the samples. A state records them."""
    execution: Mapping[str, Any] = field(default_factory=dict)
    """The other arguments of the operation in the core: how fast it is, what ``identity`` stands for, and
    which rank this is. A state does not record them."""
    upstream: Sequence[Node] = ()
    reads_many: bool = False
    """Whether the core takes a list of nodes to read from, even if it has one."""
    object: Any = None
    """A tokenizer, function or source, which the core is given as it is."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """The entries that a state records in addition to the arguments, because they identify the object or the
    files.
    """
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
    return Node("check", upstream=(node,))


def _add(node: Node, nodes: list[dict[str, Any]], objects: list[Any]) -> int:
    checks = node.op in ("check", "tokenize")
    upstream = node.upstream if checks else [_checked(one) for one in node.upstream]
    numbers = [_add(one, nodes, objects) for one in upstream]
    given: dict[str, Any] = {"op": node.op, **node.arguments, **node.execution}
    if node.reads_many:
        given["from"] = numbers
    elif numbers:
        given["from"] = numbers[0]
    if node.object is not None:
        given["object"] = len(objects)
        objects.append(node.object)
    nodes.append(given)
    return len(nodes) - 1


# The division of earlier versions: a file that cannot be cut belongs to the lane of its first byte.
_OLD_DIVISION = "by_first_byte"


def described(node: Node) -> list[dict[str, Any]]:
    """Returns the record of a recipe for a state: operations, and the arguments that change the output."""
    found = [one for before in node.upstream for one in described(before)]
    arguments = dict(node.arguments)
    if arguments.get("division") == _OLD_DIVISION:
        # Earlier versions, which had only this division, do not record it.
        del arguments["division"]
    return [*found, json.loads(json.dumps({"op": node.op, **arguments, **node.identity}))]


def of_samples(source: Any, identity: Mapping[str, Any], on_bad_document: str = "fail") -> Node:
    """Returns the node of a source in Python."""
    execution = {"on_bad_document": on_bad_document}
    return Node("from_samples", execution=execution, object=source, identity=identity)


def on_bad_document(node: Node) -> str:
    """Returns the policy of a node's sources for documents without a text: ``"fail"`` if any has it."""
    own = {**node.arguments, **node.execution}.get("on_bad_document")
    found = [own] if own else [on_bad_document(one) for one in node.upstream]
    return "skip" if set(found) == {"skip"} else "fail"


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
    return None if found is None else (found.execution["rank"], found.execution["num_ranks"])


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

"""The run that a config describes: its batches, and the documents and fields of their rows; imports no torch.

`packtok.DataLoader` serves the same rows as tensors.
"""

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np

from packtok import _packtok
from packtok.choices import check_choice
from packtok.config.interpolation import Resolvers, read_yaml
from packtok.data.epochs import AT_EPOCH_ENDS, Epochs, check_batches, order_seed
from packtok.data.state import check_form, checked_place, state_of
from packtok.data.token_items import TokenItems, common_pad_token_id, token_items
from packtok.data.weights import check_sources, exact_weights, mixture_fingerprint, source_name
from packtok.distributed import Share
from packtok.errors import ConfigError
from packtok.integers import checked_integer

__all__ = ["IGNORED", "Run", "RunRow", "open_run"]

IGNORED = -100
"""The label of positions that do not count."""
_DATASETS = ("TokenDataset", "Mixture")
_LOADER_KEYS = ("global_batch_size", "shuffle", "seed", "at_epoch_end", "num_replicas")
_STATE_KEYS = {"version", "order", "data", "global_batch_size", "at_epoch_end", "num_global_samples"}
_MIXTURE_KEYS = ("sources", "seed", "num_items", "shuffle")
# Arguments of `TokenDataset` that change its tensors, and none of their values.
_TENSOR_KEYS = ("dtype", "pin_memory")
# A state is some hundred bytes long; a larger file is a checkpoint.
_MAX_STATE_BYTES = 16 << 20


@dataclass(frozen=True)
class RunRow:
    """A row of a global batch."""

    epoch: int
    rank: int
    row: int
    """Its place in the batch of the rank."""
    item: int
    """The item of the dataset of the run."""


@dataclass(frozen=True)
class _Mixed:
    """How the items of several sources follow each other."""

    draws: _packtok.Mixture
    weights: list[int]
    seed: int | None
    num_items: int


class Run:
    """The data of a run and their order.

    Args:
        names: The name of each source.
        sources: The items of each source.
        mixed: The order of several sources; ``None`` for one dataset.
        options: The arguments of `packtok.DataLoader` that determine the order, and ``num_replicas``.
    """

    def __init__(
        self,
        names: Sequence[str],
        sources: Sequence[TokenItems],
        mixed: _Mixed | None,
        options: Mapping[str, Any],
    ) -> None:
        self.names = tuple(names)
        self.sources = tuple(sources)
        self.next_step: tuple[int, int] | None = None
        """The epoch and the step in it that follow a saved state."""
        self._mixed = mixed
        kind = "TokenDataset" if mixed is None else "Mixture"
        share = Share(0, options.get("num_replicas", 1))
        seed = order_seed(
            shuffle=options.get("shuffle", False),
            seed=options.get("seed", 0),
            kind=kind,
            orders_itself=mixed is not None,
        )
        at_epoch_end = options.get("at_epoch_end", "drop")
        check_choice("at_epoch_end", at_epoch_end, AT_EPOCH_ENDS)
        # Without a batch size, `packtok.DataLoader` gives each rank one item in each step.
        size = options.get("global_batch_size") or share.num_replicas
        size = checked_integer("global_batch_size", size, least=1)
        self.epochs = Epochs(self.num_items, seed, size, at_epoch_end, share)
        check_batches(self.epochs, kind, batch_size=None, has_batches=True)

    @property
    def num_items(self) -> int:
        """Number of items of the dataset."""
        return len(self.sources[0].blocks) if self._mixed is None else self._mixed.num_items

    @property
    def num_replicas(self) -> int:
        """Number of ranks that divide each batch."""
        return self.epochs.share.num_replicas

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the dataset."""
        prints = [source.fingerprint for source in self.sources]
        mixed = self._mixed
        return prints[0] if mixed is None else mixture_fingerprint(prints, mixed.weights, mixed.seed)

    def resume(self, state: Mapping[str, Any]) -> None:
        """Checks a saved state, and sets the next step.

        Raises:
            ValueError: If the state belongs to other data or another order.
        """
        size = self.epochs.global_batch_size
        own = state_of(self.epochs, self.fingerprint, size, epoch=0, start=0, position=0)
        epoch, _, position = checked_place(state, own, self.epochs)
        # Batches after a skip that is no multiple of a batch are no steps of the epoch.
        self.next_step = None if position % size else (epoch, position // size)

    def batch(self, step: int, epoch: int | None = None) -> list[RunRow]:
        """Returns the rows of a step's global batch, ordered by row and then by rank.

        Args:
            step: Counted from 0 within ``epoch``, or, without it, over all epochs.
            epoch: The epoch.

        Raises:
            IndexError: If there is no such step.
        """
        epoch, items = self.epochs.global_batch(step, epoch)
        ranks = self.num_replicas
        return [RunRow(epoch, i % ranks, i // ranks, item) for i, item in enumerate(items)]

    def source_of(self, item: int) -> tuple[int, int]:
        """Returns the number of an item's source, and the number of the item in it."""
        if self._mixed is None:
            return 0, item
        sources, items = self._mixed.draws.draws([item])
        return int(sources[0]), int(items[0])

    def locate(self, item: int) -> list[tuple[str, int, int, int]]:
        """Returns the documents in an item as (path, document in the file, start token, stop token)."""
        source, own = self.source_of(item)
        return self.sources[source].blocks.locate(own)

    def fields(self, item: int) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the inputs, labels, positions and documents of an item, as `TokenDataset` gives them."""
        source, own = self.source_of(item)
        items = self.sources[source]
        shape = (1, items.context_length)
        fields: dict[str, Any] = {name: np.empty(shape, np.int64) for name in _INT64_FIELDS}
        fields["document_ids"] = np.empty(shape, np.int32)
        items.blocks.fill(
            [own],
            **fields,
            pad_token_id=items.pad_token_id,
            aligned=items.aligned,
            loss_markers=items.loss_markers,
        )
        return {name: array[0] for name, array in fields.items()}


_INT64_FIELDS = ("input_ids", "labels", "position_ids")


def open_run(config: str, state: str | None = None) -> Run:
    """Opens the data that a config describes.

    Args:
        config: A YAML file, as `packtok.commands.locate.locate` takes it.
        state: File with a loader's state, as JSON or in a ``torch.save`` checkpoint, which needs torch. It
            overrides ``loader``, and the data is checked against it.

    Raises:
        ConfigError: If the config is invalid.
        ValueError: If the state belongs to other data.
    """
    values = Resolvers(Path(config)).resolve(read_yaml(Path(config)))
    names, sources, mixed = _opened(config, _section(config, values, "dataset"))
    options = _loader_options(config, _section(config, values, "loader"))
    saved = None if state is None else _read_state(state)
    if saved is not None:
        options |= _options_of(saved)
    run = Run(names, sources, mixed, options)
    if state is not None and saved is not None:
        with _naming(state):
            run.resume(saved)
    return run


def _read_state(path: str) -> Mapping[str, Any]:
    """Returns the only loader state in a JSON file or a checkpoint.

    Raises:
        ConfigError: If the file contains no state, or several different ones.
        ValueError: If a field of the state is invalid.
    """
    with Path(path).open("rb") as file:
        # A checkpoint can be many GB large, but only the state in it is needed.
        content = file.read(_MAX_STATE_BYTES + 1)
    try:
        tree = _checkpoint(path) if len(content) > _MAX_STATE_BYTES else json.loads(content)
    except (ValueError, RecursionError):
        tree = _checkpoint(path)
    states = list(_states(tree))
    if not states or any(state != states[0] for state in states):
        problem = "several different states" if states else "no state"
        raise ConfigError(f"{path}: contains {problem} of a packtok.DataLoader; save one as JSON")
    with _naming(path):
        return check_form(states[0])


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Prefixes the message of a ValueError with the path of the state's file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _checkpoint(path: str) -> Any:
    from packtok.extras import needing_torch

    with needing_torch(f"{path}: reading a checkpoint"):
        import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (RuntimeError, EOFError, UnpicklingError) as error:
        raise ConfigError(f"{path}: neither JSON nor a torch.save checkpoint") from error


def _states(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Yields every mapping in ``tree`` that has the keys of a state."""
    if isinstance(tree, Mapping):
        if tree.keys() >= _STATE_KEYS:
            yield tree
        for value in tree.values():
            yield from _states(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _states(value)


def _options_of(state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "global_batch_size": state["global_batch_size"],
        "shuffle": state["seed"] is not None,
        "seed": state["seed"] or 0,
        "at_epoch_end": state["at_epoch_end"],
    }


def _section(config: str, values: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = values.get(name, {})
    if not isinstance(section, dict):
        raise ConfigError(f"{config}: {name}: expected a mapping, found {section!r}")
    return dict(section)


def _loader_options(config: str, options: dict[str, Any]) -> dict[str, Any]:
    if unknown := [key for key in options if key not in _LOADER_KEYS]:
        raise ConfigError(
            f"{config}: loader.{unknown[0]}: unknown key; known keys are {', '.join(_LOADER_KEYS)}"
        )
    return options


def _opened(config: str, options: dict[str, Any]) -> tuple[list[str], list[TokenItems], _Mixed | None]:
    """Returns the names and the items of the sources of a dataset, and their order if it is a mixture."""
    kind = options.pop("type", "TokenDataset")
    check_choice(f"{config}: dataset.type", kind, _DATASETS, ConfigError)
    arguments = [*inspect.signature(token_items).parameters, *_TENSOR_KEYS]
    first = _MIXTURE_KEYS if kind == "Mixture" else ("paths",)
    known = list(dict.fromkeys([*first, *(name for name in arguments if name != "paths")]))
    for key in options:
        if key not in known:
            raise ConfigError(f"{config}: dataset.{key}: unknown key; known keys are {', '.join(known)}")
    for name in (first[0], "context_length"):
        if name not in options:
            raise ConfigError(f"{config}: dataset.{name}: is missing")
    options = {key: value for key, value in options.items() if key not in _TENSOR_KEYS}
    try:
        if kind == "Mixture":
            return _mixture(config, options)
        return ["data"], [token_items(**options)], None
    except TypeError as error:
        raise ConfigError(f"{config}: dataset: {error}") from None


def _mixture(config: str, options: dict[str, Any]) -> tuple[list[str], list[TokenItems], _Mixed]:
    """Returns the sources of a `packtok.Mixture` of paths."""
    own = {name: options.pop(name) for name in _MIXTURE_KEYS if name in options}
    sources = own["sources"]
    if not isinstance(sources, Mapping) or not sources:
        raise ConfigError(
            f"{config}: dataset.sources: expected a mapping of weights by path, found {sources!r}"
        )
    if wrong := [path for path in sources if not isinstance(path, str | PathLike)]:
        raise ConfigError(f"{config}: dataset.sources: expected paths as keys, found {wrong[0]!r}")
    shuffle = own.get("shuffle", True)
    if not isinstance(shuffle, bool):
        raise ConfigError(f"{config}: dataset.shuffle is {shuffle!r}, expected true or false")
    names = [source_name(source, i) for i, source in enumerate(sources)]
    check_sources(names, sources, options)
    weights = exact_weights(dict(zip(names, sources.values(), strict=True)))
    items = [token_items(source, **options) for source in sources]
    common_pad_token_id(source.pad_token_id for source in items if source.packing != "concat")
    if any(source.loss_markers != items[0].loss_markers for source in items):
        raise ValueError("the sources have different ids for loss_markers; give ids that all of them use")
    lengths = [len(source.blocks) for source in items]
    seed = checked_integer("seed", own.get("seed", 0), below=1 << 64) if shuffle else None
    num_items = own.get("num_items")
    total = sum(lengths) if num_items is None else checked_integer("num_items", num_items, least=1)
    return names, items, _Mixed(_packtok.Mixture(weights, lengths=lengths, seed=seed), weights, seed, total)

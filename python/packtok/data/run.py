"""The run that a config describes: its batches, and the documents and fields of their rows; imports no torch.

`packtok.DataLoader` serves the same rows as tensors.
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from packtok.choices import check_choice, suggestion
from packtok.config.interpolation import Resolvers, read_yaml
from packtok.data.epochs import AT_EPOCH_ENDS, Epochs, check_batches, order_seed
from packtok.data.state import checked_place, state_of
from packtok.data.state_file import naming, read_state
from packtok.data.token_items import TokenItems, common_pad_token_id, token_items
from packtok.data.weights import Mixing, check_sources, exact_weights, mixing, source_name
from packtok.distributed import Share
from packtok.errors import ConfigError
from packtok.integers import checked_integer
from packtok.sources import StrPath

__all__ = ["IGNORED", "Run", "RunRow", "open_run"]

IGNORED = -100
"""The label of positions that do not count."""
_DATASETS = ("TokenDataset", "Mixture")
_LOADER_KEYS = ("global_batch_size", "shuffle", "seed", "at_epoch_end", "num_replicas")
_MIXTURE_KEYS = ("sources", "seed", "num_items", "shuffle")
# Arguments of `TokenDataset` that change its tensors, but no values in them: what a config can say of them.
_TENSOR_KEYS: dict[str, tuple[Any, ...]] = {"dtype": ("int64", "int32"), "pin_memory": (False, True)}


@dataclass(frozen=True)
class RunRow:
    """A row of a global batch."""

    epoch: int
    rank: int
    row: int
    """Its place in the batch of the rank."""
    item: int
    """The item of the dataset of the run."""


class Run:
    """The data of a run and their order.

    Args:
        names: The name of each source.
        sources: The items of each source.
        mixing: The sequence of the items of several sources; ``None`` for one dataset.
        options: The arguments of `packtok.DataLoader` that determine the order, and ``num_replicas``.
    """

    def __init__(
        self,
        names: Sequence[str],
        sources: Sequence[TokenItems],
        mixing: Mixing | None,
        options: Mapping[str, Any],
    ) -> None:
        self.names = tuple(names)
        self.sources = tuple(sources)
        self.next_step: tuple[int, int] | None = None
        """The epoch and the step in it that follow a saved state."""
        self.skipped: tuple[int, int] | None = None
        """The epoch of a saved state and the samples it skipped, if `batch` has other steps for it."""
        self._mixing = mixing
        self._draws = None if mixing is None else mixing.draws()
        kind = "TokenDataset" if mixing is None else "Mixture"
        share = Share(0, options.get("num_replicas", 1))
        seed = order_seed(
            shuffle=options.get("shuffle", False),
            seed=options.get("seed", 0),
            kind=kind,
            orders_itself=mixing is not None,
        )
        at_epoch_end = options.get("at_epoch_end", "drop")
        check_choice("at_epoch_end", at_epoch_end, AT_EPOCH_ENDS)
        # Without a batch size, `packtok.DataLoader` gives each rank one item in each step.
        size = options.get("global_batch_size")
        size = share.num_replicas if size is None else size
        size = checked_integer("global_batch_size", size, least=1)
        self.epochs = Epochs(self.num_items, seed, size, at_epoch_end, share)
        check_batches(self.epochs, kind, batch_size=None, has_batches=True)

    @property
    def num_items(self) -> int:
        """Number of items of the dataset."""
        return len(self.sources[0].blocks) if self._mixing is None else self._mixing.num_items

    @property
    def num_replicas(self) -> int:
        """Number of ranks that divide each batch."""
        return self.epochs.share.num_replicas

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the dataset."""
        prints = [source.fingerprint for source in self.sources]
        return prints[0] if self._mixing is None else self._mixing.fingerprint(prints)

    def resume(self, state: Mapping[str, Any]) -> None:
        """Checks a saved state, and sets the next step.

        Raises:
            ValueError: If the state belongs to other data or another order.
        """
        size = self.epochs.global_batch_size
        own = state_of(self.epochs, self.fingerprint, size, epoch=0, start=0, position=0)
        epoch, start, position = checked_place(state, own, self.epochs)
        if start % size:
            self.skipped = epoch, start
        elif position // size < self.epochs.num_steps(epoch, 0):
            self.next_step = epoch, position // size
        else:
            self.next_step = epoch + 1, 0

    def batch(self, step: int, epoch: int | None = None, rank: int | None = None) -> list[RunRow]:
        """Returns the rows of a step's global batch, ordered by row and then by rank.

        Args:
            step: Counted from 0 within ``epoch``, or, without it, over all epochs.
            epoch: The epoch.
            rank: The only rank whose rows are returned. Default: all ranks.

        Raises:
            IndexError: If there is no such step.
        """
        epoch, items = self.epochs.global_batch(step, epoch)
        ranks = self.num_replicas
        places = range(len(items)) if rank is None else range(rank, len(items), ranks)
        return [RunRow(epoch, i % ranks, i // ranks, items[i]) for i in places]

    def source_of(self, item: int) -> tuple[int, int]:
        """Returns the number of an item's source, and the number of the item in it."""
        if self._draws is None:
            return 0, item
        sources, items = self._draws.draws([item])
        return int(sources[0]), int(items[0])

    def items_of(self, item: int) -> TokenItems:
        """Returns the items of the source of an item."""
        return self.sources[self.source_of(item)[0]]

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


def open_run(config: str, state: str | None = None, *, scratch_dir: StrPath | None = None) -> Run:
    """Opens the data that a config describes.

    Args:
        config: A YAML file, as `packtok.commands.locate.locate` takes it.
        state: File with a loader's state, as JSON or in a ``torch.save`` checkpoint, which needs torch. It
            overrides ``loader``, and the data is checked against it.
        scratch_dir: Folder for plans and splits that training has not made yet, so that nothing is written
            next to the data. Default: they are made where training makes them.

    Raises:
        ConfigError: If the config is invalid.
        ValueError: If the state belongs to other data.
    """
    values = Resolvers(Path(config)).resolve(read_yaml(Path(config)))
    options = _loader_options(config, _section(config, values, "loader"))
    names, sources, mixing = _opened(config, _section(config, values, "dataset"), scratch_dir)
    saved = None if state is None else read_state(state)
    if saved is not None:
        options |= _options_of(saved)
    run = Run(names, sources, mixing, options)
    if state is not None and saved is not None:
        with naming(state):
            run.resume(saved)
    return run


def _options_of(state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "global_batch_size": state["global_batch_size"],
        "shuffle": state["seed"] is not None,
        "seed": state["seed"] or 0,
        "at_epoch_end": state["at_epoch_end"],
    }


def _section(config: str, values: Mapping[str, Any], name: str) -> dict[str, Any]:
    if name not in values:
        # Other sections can hold values that these two refer to, so that only a misspelled name is an error.
        for other in values:
            if hint := suggestion(str(other), [name], cutoff=0.8):
                raise ConfigError(f"{config}: {other}: unknown section{hint}")
    section = values.get(name, {})
    if not isinstance(section, dict):
        raise ConfigError(f"{config}: {name}: expected a mapping, found {section!r}")
    return dict(section)


def _loader_options(config: str, options: dict[str, Any]) -> dict[str, Any]:
    _check_keys(f"{config}: loader", options, _LOADER_KEYS)
    return options


def _check_keys(section: str, options: Iterable[str], known: Sequence[str]) -> None:
    for key in options:
        if key not in known:
            hint = suggestion(str(key), known) or f"; known keys are {', '.join(known)}"
            raise ConfigError(f"{section}.{key}: unknown key{hint}")


def _opened(
    config: str, options: dict[str, Any], scratch_dir: StrPath | None
) -> tuple[list[str], list[TokenItems], Mixing | None]:
    """Returns the names and the items of the sources of a dataset, and their sequence if it is a mixture."""
    kind = options.pop("type", "TokenDataset")
    check_choice(f"{config}: dataset.type", kind, _DATASETS, ConfigError)
    arguments = [name for name in inspect.signature(token_items).parameters if name != "scratch_dir"]
    first = _MIXTURE_KEYS if kind == "Mixture" else ("paths",)
    known = list(dict.fromkeys([*first, *(name for name in arguments if name != "paths"), *_TENSOR_KEYS]))
    _check_keys(f"{config}: dataset", options, known)
    for name in (first[0], "context_length"):
        if name not in options:
            raise ConfigError(f"{config}: dataset.{name}: is missing")
    for key, choices in _TENSOR_KEYS.items():
        if key in options:
            check_choice(f"{config}: dataset.{key}", options.pop(key), choices, ConfigError)
    try:
        if kind == "Mixture":
            return _mixture(config, options, scratch_dir)
        return ["data"], [token_items(**options, scratch_dir=scratch_dir)], None
    except TypeError as error:
        raise ConfigError(f"{config}: dataset: {error}") from None


def _mixture(
    config: str, options: dict[str, Any], scratch_dir: StrPath | None
) -> tuple[list[str], list[TokenItems], Mixing]:
    """Returns the sources of a `packtok.Mixture` of paths."""
    own = {name: options.pop(name) for name in _MIXTURE_KEYS if name in options}
    sources = own.pop("sources")
    if not isinstance(sources, Mapping) or not sources:
        raise ConfigError(
            f"{config}: dataset.sources: expected a mapping of weights by path, found {sources!r}"
        )
    if wrong := [path for path in sources if not isinstance(path, str | PathLike)]:
        raise ConfigError(f"{config}: dataset.sources: expected paths as keys, found {wrong[0]!r}")
    names = [source_name(source, i) for i, source in enumerate(sources)]
    check_sources(names, sources, options)
    weights = exact_weights(dict(zip(names, sources.values(), strict=True)))
    items = [token_items(source, **options, scratch_dir=scratch_dir) for source in sources]
    common_pad_token_id(source.pad_token_id for source in items if source.packing != "concat")
    if any(source.loss_markers != items[0].loss_markers for source in items):
        raise ValueError("the sources have different ids for loss_markers; give ids that all of them use")
    return names, items, mixing(names, weights, [len(source.blocks) for source in items], **own)

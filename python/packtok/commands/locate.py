"""The function of `packtok locate`: the documents of a step's batch, from a config or a saved state."""

import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from packtok.config.interpolation import Resolvers, read_yaml
from packtok.data.state import check_form
from packtok.errors import ConfigError

_DATASETS = ("TokenDataset", "Mixture")
_LOADER_KEYS = ("global_batch_size", "shuffle", "seed", "at_epoch_end", "num_replicas")
_STATE_KEYS = {"version", "order", "data", "global_batch_size", "at_epoch_end", "num_global_samples"}
# A state has some hundred bytes; what is larger than this is a checkpoint.
_MAX_STATE_BYTES = 16 << 20


def locate(
    config: str, step: int, *, epoch: int | None = None, state: str | None = None
) -> list[dict[str, Any]]:
    """The rows of a step's global batch and the documents that they have tokens of.

    Args:
        config: A YAML file. ``dataset`` holds the arguments of `packtok.TokenDataset`, or of the dataset that
            its key ``type`` names; ``loader`` those of `packtok.DataLoader` that the order depends on, and
            ``num_replicas``. Other keys are not read.
        step: Counted from 0 over the whole run, or in ``epoch``.
        epoch: The epoch.
        state: A file that holds a loader's state, as JSON or within a checkpoint of ``torch.save``: it goes
            before ``loader``, and the data is checked against it.

    Returns:
        As `packtok.DataLoader.locate`, documents as dicts with ``path``, ``document`` (in that file),
        ``start`` and ``stop`` (in tokens, from the document's start).

    Raises:
        ConfigError: If the config is wrong.
        ValueError: If the data is not that of the state.
        IndexError: If there is no such step.
    """
    from packtok.data.loader import DataLoader

    values = Resolvers(Path(config)).resolve(read_yaml(Path(config)))
    dataset = _dataset(config, _section(config, values, "dataset"))
    options = _loader_options(config, _section(config, values, "loader"))
    saved = None if state is None else read_state(state)
    if saved is not None:
        options |= _options_of(saved)
    loader = DataLoader(dataset, rank=0, **{"num_replicas": 1, **options})
    if state is not None and saved is not None:
        with _naming(state):
            loader.load_state_dict(saved)
    names = ("path", "document", "start", "stop")
    return [
        {**row, "documents": [dict(zip(names, part, strict=True)) for part in row["documents"]]}
        for row in loader.locate(step, epoch=epoch)
    ]


def read_state(path: str) -> Mapping[str, Any]:
    """The one loader's state in a JSON file or a checkpoint.

    Raises:
        ConfigError: If the file holds none, or several that differ.
        ValueError: If a field of the state is wrong.
    """
    with Path(path).open("rb") as file:
        # A checkpoint can have many GB, and only its state is read.
        content = file.read(_MAX_STATE_BYTES + 1)
    try:
        tree = _checkpoint(path) if len(content) > _MAX_STATE_BYTES else json.loads(content)
    except ValueError:
        tree = _checkpoint(path)
    states = list(_states(tree))
    if not states or any(state != states[0] for state in states):
        found = "several different states" if states else "no state"
        raise ConfigError(f"{path}: contains {found} of a packtok.DataLoader; save one as JSON")
    with _naming(path):
        return check_form(states[0])


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Puts the file of a state before what is wrong with the state."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _checkpoint(path: str) -> Any:
    import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (RuntimeError, EOFError, UnpicklingError) as error:
        raise ConfigError(f"{path}: neither JSON nor a torch.save checkpoint") from error


def _states(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Every mapping in ``tree`` that has the keys of a state."""
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


def _dataset(config: str, options: dict[str, Any]) -> Any:
    import packtok

    kind = options.pop("type", "TokenDataset")
    if kind not in _DATASETS:
        raise ConfigError(f"{config}: dataset.type is {kind!r}, expected {' or '.join(_DATASETS)}")
    made = getattr(packtok, kind)
    known = inspect.signature(made).parameters
    for key in options:
        if key not in known:
            raise ConfigError(f"{config}: dataset.{key}: unknown key; known keys are {', '.join(known)}")
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in options:
            raise ConfigError(f"{config}: dataset.{name}: is missing")
    try:
        return made(**options)
    except TypeError as error:
        raise ConfigError(f"{config}: dataset: {error}") from None

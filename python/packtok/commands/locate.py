"""Implements `packtok locate`: finds the documents of a step's batch, from a config or a saved state."""

import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from packtok._packtok import PbinReader
from packtok.choices import check_choice
from packtok.config.interpolation import Resolvers, read_yaml
from packtok.data.state import check_form
from packtok.errors import ConfigError

_DATASETS = ("TokenDataset", "Mixture")
_LOADER_KEYS = ("global_batch_size", "shuffle", "seed", "at_epoch_end", "num_replicas")
_STATE_KEYS = {"version", "order", "data", "global_batch_size", "at_epoch_end", "num_global_samples"}
# A state is some hundred bytes long; a larger file is a checkpoint.
_MAX_STATE_BYTES = 16 << 20


def locate(
    config: str, step: int, *, epoch: int | None = None, state: str | None = None
) -> list[dict[str, Any]]:
    """Returns the rows of a step's global batch with the documents of each row.

    Args:
        config: A YAML file. ``dataset`` contains the arguments of `packtok.TokenDataset`, or of the dataset
            that its key ``type`` names. ``loader`` contains ``num_replicas`` and the arguments of
            `packtok.DataLoader` that determine the order. Other keys are ignored.
        step: Counted from 0 within ``epoch``, or, without it, over the whole run.
        epoch: The epoch.
        state: File with a loader's state, as JSON or in a ``torch.save`` checkpoint. It overrides ``loader``,
            and the data is checked against it.

    Returns:
        As `packtok.DataLoader.locate`, with documents as dicts of ``path``, ``document`` (index in that
        file), ``start`` and ``stop`` (in tokens from the start of the document), and ``origin`` if the file
        records where its documents came from, as in `packtok.Origin.to_dict`.

    Raises:
        ConfigError: If the config is invalid.
        ValueError: If the state belongs to other data.
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
    readers: dict[Any, PbinReader] = {}
    return [
        {**row, "documents": [_document(part, readers) for part in row["documents"]]}
        for row in loader.locate(step, epoch=epoch)
    ]


def _document(part: tuple[Any, int, int, int], readers: dict[Any, PbinReader]) -> dict[str, Any]:
    """Returns a part of a row as a dict; ``readers`` has the files that are open."""
    path, document, start, stop = part
    if path not in readers:
        readers[path] = PbinReader(path)
    origin = readers[path].origin(document)
    came_from = {} if origin is None else {"origin": origin.to_dict()}
    return {"path": path, "document": document, "start": start, "stop": stop, **came_from}


def read_state(path: str) -> Mapping[str, Any]:
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


def _dataset(config: str, options: dict[str, Any]) -> Any:
    import packtok

    kind = options.pop("type", "TokenDataset")
    check_choice(f"{config}: dataset.type", kind, _DATASETS, ConfigError)
    dataset_class = getattr(packtok, kind)
    own = dict(inspect.signature(dataset_class).parameters)
    known = list(own)
    if own.pop("options", None):
        # A mixture passes these options to the datasets of its sources.
        of_datasets = inspect.signature(packtok.TokenDataset).parameters
        known = [*own, *(name for name in of_datasets if name != "paths")]
    for key in options:
        if key not in known:
            raise ConfigError(f"{config}: dataset.{key}: unknown key; known keys are {', '.join(known)}")
    for name, parameter in own.items():
        if parameter.default is parameter.empty and name not in options:
            raise ConfigError(f"{config}: dataset.{name}: is missing")
    try:
        return dataset_class(**options)
    except TypeError as error:
        raise ConfigError(f"{config}: dataset: {error}") from None

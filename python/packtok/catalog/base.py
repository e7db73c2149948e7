"""The base directory of a cluster's datasets, and the configuration in it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packtok.catalog.schema import DatasetMetadata, metadata_of_dict, parsed_json, read_mapping
from packtok.errors import ConfigError

# Environment variables that name the base directory; the first one that is set counts.
BASE_VARIABLES = ("PACKTOK_BASE_DIR", "TATM_BASE_DIR")
CONFIG_PATH = Path("config", "config.yaml")
# The key of the file of tatm's JSON backend: the one in tatm's documentation, and the one in its code.
_STORE_KEYS = ("metadata_backend_file", "metadata_store_path")


@dataclass(frozen=True)
class Base:
    """A base directory, and the store of names that its configuration gives."""

    folder: Path
    store: Path | None


def find_base(environment: Mapping[str, str] = os.environ) -> Base | None:
    """Returns the base directory; ``None`` if no variable names one.

    Raises:
        ConfigError: If the directory does not exist, or its configuration is invalid or has a backend that
            packtok does not support.
    """
    name = next((name for name in BASE_VARIABLES if environment.get(name)), None)
    if name is None:
        return None
    folder = Path(environment[name])
    if not folder.is_dir():
        raise ConfigError(f"{name}: {folder} is not a folder; set it to the base directory of the datasets")
    return Base(folder, _store_of(folder / CONFIG_PATH))


def _store_of(config: Path) -> Path | None:
    """Returns the file with names and metadata that a configuration gives, if it gives one."""
    if not config.exists():
        return None
    backend = read_mapping(config).get("metadata_backend") or {}
    kind = backend.get("type") if isinstance(backend, dict) else backend
    if kind is None:
        return None
    if kind != "json":
        raise ConfigError(
            f"{config}: metadata_backend.type is {kind!r}, which packtok does not support; remove it, and "
            "run packtok data index, which finds the metadata files themselves"
        )
    arguments = backend.get("args") or {}
    paths = [arguments[key] for key in _STORE_KEYS if key in arguments]
    path = Path(paths[0]) if paths else Path("metadata.json")
    return config.parent / path


def stored_metadata(store: Path, name: str) -> DatasetMetadata | None:
    """Returns the metadata that tatm's JSON backend has for a name; ``None`` if it has none.

    Raises:
        ConfigError: If the file or the metadata in it is invalid.
    """
    entry: Any = read_mapping(store).get(name)
    if entry is None:
        return None
    if isinstance(entry, str):
        entry = parsed_json(entry, Path(f"{store}: {name!r}"))
    if not isinstance(entry, dict):
        raise ConfigError(f"{store}: {name!r} is a {type(entry).__name__}, expected a mapping")
    return metadata_of_dict(entry, store)

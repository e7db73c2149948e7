"""Metadata under the names of tatm, for scripts that make or read it in Python."""

import json
import os
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, Self

from packtok.catalog.schema import (
    DatasetMetadata,
    TokenizedInfo,
    find_metadata,
    metadata_of_dict,
    read_mapping,
    yaml_text,
)
from packtok.sources import StrPath

__all__ = [
    "CorpusSeparationStrategy",
    "DataContentType",
    "TatmDataMetadata",
    "TokenizedMetadataComponenet",
]

# tatm's spelling.
TokenizedMetadataComponenet = TokenizedInfo


class DataContentType(StrEnum):
    """The kind of content of a dataset."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    OTHER = "other"


class CorpusSeparationStrategy(StrEnum):
    """How corpora are separated."""

    DATA_DIRS = "data_dirs"
    CONFIGS = "configs"


class TatmDataMetadata(DatasetMetadata):
    """The description of a dataset, with tatm's methods; see `packtok.catalog.schema.DatasetMetadata`.

    Raises:
        ConfigError: If a value is invalid.
    """

    def __init__(self, **values: Any) -> None:
        path, unknown = values.pop("path", None), values.pop("unknown", {})
        plain = {key: _plain(value) for key, value in {**values, **unknown}.items()}
        checked = metadata_of_dict(plain, Path("TatmDataMetadata"))
        super().__init__(**{**vars(checked), "path": path})

    @classmethod
    def from_file(cls, path: StrPath) -> Self:
        """Reads a metadata file, JSON or YAML."""
        file = find_metadata(path)
        return cls(**read_mapping(file), path=file)

    @classmethod
    def from_json(cls, json_path: StrPath) -> Self:
        """Reads a metadata file."""
        return cls.from_file(json_path)

    @classmethod
    def from_yaml(cls, yaml_path: StrPath) -> Self:
        """Reads a metadata file."""
        return cls.from_file(yaml_path)

    @classmethod
    def from_directory(cls, directory: StrPath) -> Self:
        """Reads the metadata file in a folder."""
        return cls.from_file(directory)

    def as_json(self) -> str:
        """Returns the keys as JSON."""
        return json.dumps(self.to_dict())

    def as_yaml(self) -> str:
        """Returns the keys as YAML."""
        return yaml_text(self.to_dict())

    def to_json(self, filename: StrPath) -> None:
        """Writes a metadata file; as YAML if its name says so."""
        self.save(os.fspath(filename))

    def to_yaml(self, filename: StrPath) -> None:
        """Writes a metadata file; as JSON unless its name says otherwise."""
        self.save(os.fspath(filename))

    def __str__(self) -> str:
        return self.as_json()


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, TokenizedInfo):
        return {key: item for key, item in vars(value).items() if key != "unknown" and item is not None}
    return os.fspath(value) if isinstance(value, os.PathLike) else value

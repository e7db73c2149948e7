"""Metadata files of datasets, in tatm's format, and packtok's own details next to them.

A dataset is described by ``metadata.json``, ``metadata.yaml`` or ``metadata.yml`` with the keys of tatm
0.2.2, which refuses all others. packtok's own facts (files, checksums, counts) are in a file of the same name
that ends with ``.packtok.json``: ``metadata.packtok.json`` next to ``metadata.yaml``.
"""

import dataclasses
import errno
import functools
import json
import os
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from packtok import _packtok
from packtok.choices import check_choice
from packtok.errors import ConfigError

DataContent = Literal["text", "image", "audio", "video", "other"]
SeparationStrategy = Literal["data_dirs", "configs"]
MetadataFormat = Literal["json", "yaml"]

# In the order of the lookup in a folder.
METADATA_NAMES = ("metadata.json", "metadata.yaml", "metadata.yml")
METADATA_SUFFIXES = (".json", ".yaml", ".yml")
DETAILS_SUFFIX = ".packtok.json"
# The name in earlier versions, which had one file of details for all metadata files of a folder.
_SHARED_DETAILS_NAME = f"metadata{DETAILS_SUFFIX}"
# Version of the file with packtok's own keys.
DETAILS_VERSION = 1
# Bytes of a token by the dtype in ``tokenized_info``.
BYTES_OF_DTYPE = {"uint8": 1, "uint16": 2, "uint32": 4}
_MAX_BYTES = 64 << 20
_READ_BYTES = 64 << 10
# With aliases, a few lines of YAML can expand to billions of values.
_MAX_YAML_VALUES = 1_000_000
# Python refuses to print integers of more than 4,300 digits.
_MAX_INTEGER_BITS = 14_000


@dataclass(kw_only=True)
class TokenizedInfo:
    """How a tokenized dataset was made; the key ``tokenized_info``."""

    tokenizer: str
    file_prefix: str
    """Start of the paths of the token files: relative to the metadata file, or absolute."""
    dtype: str = "uint16"
    file_extension: str = "bin"
    parent_datasets: list[str] = field(default_factory=list)
    vocab_size: int | None = None
    tatm_version: str | None = None
    tokenizers_version: str | None = None
    unknown: dict[str, Any] = field(default_factory=dict)
    """Keys that neither tatm nor packtok knows, kept as they are."""


@dataclass(kw_only=True)
class DatasetMetadata:
    """The description of a dataset.

    Paths are as in the file; `dataset_folder` resolves them.
    """

    name: str
    description: str
    date_downloaded: str
    download_source: str
    data_content: DataContent
    dataset_path: str | None = None
    """Folder of the data; default: the folder of the metadata file."""
    content_field: str = "text"
    corpuses: list[str] = field(default_factory=list)
    corpus_separation_strategy: SeparationStrategy | None = None
    corpus_data_dir_parent: str | None = None
    tokenized_info: TokenizedInfo | None = None
    unknown: dict[str, Any] = field(default_factory=dict)
    """Keys that neither tatm nor packtok knows, kept as they are."""
    path: Path | None = None
    """The file that the metadata was read from."""

    @property
    def folder(self) -> Path:
        """The folder from which relative paths start: that of the file, otherwise the current folder."""
        return Path() if self.path is None else self.path.parent

    @property
    def dataset_folder(self) -> Path:
        """The folder or file of the data.

        A relative path starts at the metadata file or, if only that exists, at the current folder.
        """
        if self.dataset_path is None:
            return self.folder
        own_path, current = self.folder / self.dataset_path, Path(self.dataset_path)
        return current if not own_path.exists() and current.exists() else own_path

    def to_dict(self) -> dict[str, Any]:
        """Returns the keys of the file, without those that are not set."""
        return _written(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the metadata atomically, as YAML if the file name ends with ``.yaml`` or ``.yml``."""
        _packtok.publish_bytes(path, _text(self.to_dict(), Path(path)).encode())


def load_metadata(path: str | os.PathLike[str]) -> DatasetMetadata:
    """Reads a metadata file, or the one in a folder.

    Raises:
        ConfigError: If the file is not JSON or YAML, or a key is missing or has an invalid value.
        FileNotFoundError: If there is no such file, or the folder contains none.
    """
    file = find_metadata(path)
    return metadata_of_dict(read_mapping(file), file)


def metadata_of_dict(values: dict[str, Any], path: Path) -> DatasetMetadata:
    """Returns the metadata with the keys ``values``, which were read from ``path``.

    Raises:
        ConfigError: If a key is missing or has an invalid value.
    """
    metadata: DatasetMetadata = _instance(DatasetMetadata, values, path, "")
    return dataclasses.replace(metadata, path=path)


def find_metadata(path: str | os.PathLike[str]) -> Path:
    """Returns the metadata file at ``path`` or in the folder ``path``.

    Raises:
        FileNotFoundError: If there is none.
    """
    location = Path(path)
    if not location.is_dir():
        if not location.exists():
            raise FileNotFoundError(errno.ENOENT, "no such metadata file or folder", str(location))
        return location
    for name in METADATA_NAMES:
        if (location / name).is_file():
            return location / name
    raise FileNotFoundError(
        2,
        f"the folder contains no {', '.join(METADATA_NAMES[:-1])} or {METADATA_NAMES[-1]}; packtok data "
        "create-metadata writes one",
        str(location),
    )


def details_name(metadata_name: str) -> str:
    """Returns the name of the file with packtok's own keys, given that of the metadata file next to it."""
    stem, suffix = os.path.splitext(metadata_name)
    return f"{stem if suffix in METADATA_SUFFIXES else metadata_name}{DETAILS_SUFFIX}"


def is_description(name: str) -> bool:
    """Returns whether a file with this name describes data and contains none."""
    return name in METADATA_NAMES or name.endswith(DETAILS_SUFFIX)


def check_output(path: Path, *, replace: bool) -> None:
    """Checks that a metadata file can be written without changing another description.

    Raises:
        ConfigError: If its name is not that of a metadata file.
        FileExistsError: If it exists and is not to be replaced, or a file that differs from it in the ending
            only exists, because both would have the same file of details.
    """
    if path.suffix not in METADATA_SUFFIXES or path.name.endswith(DETAILS_SUFFIX):
        raise ConfigError(
            f"{path}: is no name for a metadata file, expected one that ends with .json, .yaml or .yml, and "
            f"not with {DETAILS_SUFFIX}"
        )
    if not replace and path.exists():
        raise FileExistsError(
            17, "the metadata file already exists; give another, or --existing replace", str(path)
        )
    for suffix in METADATA_SUFFIXES:
        other = path.with_suffix(suffix)
        if other != path and other.exists():
            raise FileExistsError(
                17,
                f"{other.name} in this folder is a metadata file too, and both would share "
                f"{details_name(path.name)}; give another name, or remove {other.name}",
                str(path),
            )


def load_details(metadata_path: Path) -> dict[str, Any]:
    """Returns packtok's own facts about a dataset; empty if there is no such file.

    Raises:
        ConfigError: If the file is not JSON, or of a later version.
    """
    path = _existing_details(metadata_path)
    if path is None:
        return {}
    values = read_mapping(path)
    version = values.get("packtok_metadata")
    if version != DETAILS_VERSION:
        raise ConfigError(f"{path}: packtok_metadata is {version!r}, expected {DETAILS_VERSION}")
    return values


def save_details(metadata_path: Path, values: Mapping[str, Any]) -> None:
    """Writes packtok's own facts about a dataset, next to its metadata file."""
    text = json.dumps({"packtok_metadata": DETAILS_VERSION, **values}, indent=2) + "\n"
    _packtok.publish_bytes(metadata_path.with_name(details_name(metadata_path.name)), text.encode())


def _existing_details(metadata_path: Path) -> Path | None:
    own = metadata_path.with_name(details_name(metadata_path.name))
    if own.is_file():
        return own
    shared = metadata_path.with_name(_SHARED_DETAILS_NAME)
    if not shared.is_file() or any(metadata_path.with_name(name).exists() for name in METADATA_NAMES):
        return None
    return shared


def read_mapping(path: Path) -> dict[str, Any]:
    """Returns the content of a JSON or YAML file that is a mapping.

    Raises:
        ConfigError: If the file is anything else.
    """
    return mapping_of_bytes(read_bytes(path, _MAX_BYTES, "a metadata file"), path)


def mapping_of_bytes(content: bytes, path: Path) -> dict[str, Any]:
    """Returns the mapping in the content of a JSON or YAML file at ``path``.

    Raises:
        ConfigError: If the content is anything else.
    """
    text = text_of_bytes(content, path)
    is_yaml = path.suffix in (".yaml", ".yml")
    values = parsed_yaml(text, path) if is_yaml else parsed_json(text, path)
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ConfigError(f"{path}: is a {type(values).__name__}, expected a mapping of names to values")
    return values


def read_bytes(path: Path, max_bytes: int, expected: str) -> bytes:
    """Returns the content of a file that should be ``expected``.

    Raises:
        ConfigError: If it is longer than ``max_bytes``.
    """
    parts, left = [], max_bytes + 1
    with path.open("rb") as file:
        # The file is read in parts, because a read allocates as many bytes as it may return.
        while left and (part := file.read(min(left, _READ_BYTES))):
            parts.append(part)
            left -= len(part)
    if not left:
        raise ConfigError(f"{path}: is larger than {max_bytes >> 20} MiB, but {expected} was expected")
    return b"".join(parts)


def text_of_bytes(content: bytes, path: Path) -> str:
    """Returns the text in the content of a file at ``path``.

    Raises:
        ConfigError: If it is not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None


def parsed_json(text: str, path: Path) -> Any:
    """Returns the value of a JSON text, which was read from ``path``.

    Raises:
        ConfigError: If it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        # A ValueError other than JSONDecodeError means an integer with thousands of digits.
        raise ConfigError(f"{path}: not valid JSON: {error}") from None


def parsed_yaml(text: str, path: Path) -> Any:
    """Returns the value of a YAML text, which was read from ``path``; dates are texts.

    Raises:
        ConfigError: If it is not YAML, has tags that are not YAML's own, is nested too deeply, or stands for
            too many values.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        """Reads dates as texts, because JSON has no dates."""

    Loader.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        values = yaml.load(text, Loader)
    # The loader raises the other exceptions for values that do not fit an explicit tag, such as `!!int x`.
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    _check_yaml(values, path)
    return values


def _check_yaml(value: Any, path: Path) -> None:
    """Checks that a value expands to a limited number of values, all of which JSON can express."""
    waiting, num_values = [value], 0
    while waiting:
        item = waiting.pop()
        num_values += 1
        if num_values > _MAX_YAML_VALUES:
            raise ConfigError(
                f"{path}: stands for more than {_MAX_YAML_VALUES:,} values; remove aliases from it"
            )
        if isinstance(item, dict | list):
            waiting += item.values() if isinstance(item, dict) else item
        elif isinstance(item, int) and item.bit_length() > _MAX_INTEGER_BITS:
            raise ConfigError(f"{path}: contains an integer of more than 4,000 digits")
        elif item is not None and not isinstance(item, str | int | float):
            kind = type(item).__name__
            raise ConfigError(f"{path}: contains a value of type {kind}, which JSON cannot express")


def _text(values: dict[str, Any], path: Path) -> str:
    if path.suffix not in (".yaml", ".yml"):
        return json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    return yaml_text(values)


def yaml_text(values: dict[str, Any]) -> str:
    """Returns keys and values as YAML."""
    import yaml

    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    return text


_NOT_KEYS = ("unknown", "path")


def _written(instance: Any) -> dict[str, Any]:
    values = {}
    for attribute in dataclasses.fields(instance):
        value = getattr(instance, attribute.name)
        if attribute.name in _NOT_KEYS or value is None:
            continue
        values[attribute.name] = _written(value) if dataclasses.is_dataclass(value) else value
    return {**values, **instance.unknown}


def _instance(shape: Any, values: dict[str, Any], path: Path, prefix: str) -> Any:
    hints = _hints(shape)
    known: dict[str, Any] = {}
    for attribute in dataclasses.fields(shape):
        if attribute.name in _NOT_KEYS:
            continue
        value = values.get(attribute.name)
        is_required = (
            attribute.default is dataclasses.MISSING and attribute.default_factory is dataclasses.MISSING
        )
        if value is None:
            if is_required:
                raise ConfigError(f"{path}: key {prefix}{attribute.name} is missing; add it, it may be empty")
            continue
        known[attribute.name] = _checked(value, hints[attribute.name], path, f"{prefix}{attribute.name}")
    unknown = {key: value for key, value in values.items() if key not in {*hints} - {*_NOT_KEYS}}
    return shape(**known, unknown=unknown)


# The types are cached: an index reads 10,000 files, and each call would evaluate the type hints again.
_hints = functools.cache(typing.get_type_hints)


def _checked(value: Any, hint: Any, path: Path, key: str) -> Any:
    """Returns the value of a key if it has the type ``hint``."""
    expected = [member for member in typing.get_args(hint) if member is not type(None)]
    shape = expected[0] if len(expected) == 1 and typing.get_origin(hint) is not list else hint
    if dataclasses.is_dataclass(shape):
        if not isinstance(value, dict):
            raise ConfigError(f"{path}: key {key} is {value!r}, expected a mapping")
        return _instance(shape, value, path, f"{key}.")
    if typing.get_origin(shape) is Literal:
        check_choice(f"{path}: key {key}", value, typing.get_args(shape), ConfigError)
    elif typing.get_origin(shape) is list:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ConfigError(f"{path}: key {key} is {value!r}, expected a list of texts")
    elif not isinstance(value, shape) or isinstance(value, bool):
        expected_name = "an integer" if shape is int else "a text"
        raise ConfigError(f"{path}: key {key} is {value!r}, expected {expected_name}")
    return value

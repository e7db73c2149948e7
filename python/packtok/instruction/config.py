"""The config of `packtok data prepare_instruction_tuning_data`, which is that of Modalities, checked.

Knows nothing of conversations; `packtok.instruction.chat` renders them, `packtok.instruction.parts` writes
them.
"""

import errno
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from packtok.config.interpolation import Resolvers, read_yaml, references
from packtok.config.redact import Redactor
from packtok.config.schema import Schema, dotted
from packtok.errors import ConfigError

PARTITIONS = ("train", "val", "test")
# Characters of the config's SHA-256 in names, as in Modalities.
_HASH_CHARS = 7
_SUFFIX = ".jsonl"
_STRICT = ConfigDict(strict=True, frozen=True, extra="forbid")
_Text = Annotated[str, Field(min_length=1)]
_Percent = Annotated[int, Field(ge=0, le=100)]


class _Splitting(BaseModel):
    model_config = _STRICT
    train: _Percent
    val: _Percent
    test: _Percent


class _SplitConfig(BaseModel):
    model_config = _STRICT
    splitting: _Splitting
    seed: int


class _Settings(BaseModel):
    model_config = _STRICT
    src_path: _Text
    dst_path: _Text
    messages_key: str
    split_config: _SplitConfig
    pbin_creation_config_file_path: _Text


class _Transformation(BaseModel):
    model_config = _STRICT
    role_mapping: dict[str, str]


class _Config(BaseModel):
    model_config = _STRICT
    settings: _Settings
    instruction_data_transformation: _Transformation
    jinja2_chat_template: str
    chat_template_data: dict[str, Any]


def _keys(shape: type[BaseModel]) -> tuple[str, ...]:
    return tuple(shape.model_fields)


_SCHEMA = Schema(
    {
        (): _keys(_Config),
        ("settings",): _keys(_Settings),
        ("settings", "split_config"): _keys(_SplitConfig),
        ("settings", "split_config", "splitting"): _keys(_Splitting),
        ("instruction_data_transformation",): _keys(_Transformation),
    },
    expected={"dict_type": "a mapping of keys"},
)


@dataclass(frozen=True)
class InstructionConfig:
    """A config whose interpolations are resolved, and what its files are called."""

    path: Path
    content: bytes
    """The bytes of the file."""
    src_path: Path
    dst_path: Path
    messages_key: str
    percentages: Mapping[str, int]
    """The percentage of conversations in each partition, in the order of the draws."""
    seed: int
    pack_config_path: Path
    role_mapping: Mapping[str, str]
    template: str
    template_data: Mapping[str, Any]
    redactor: Redactor

    @property
    def hash(self) -> str:
        """The start of the config's SHA-256, which is in all names."""
        return hashlib.sha256(self.content).hexdigest()[:_HASH_CHARS]

    @property
    def folder(self) -> Path:
        """The folder of the output."""
        return self.dst_path.parent / f"{self.src_path.stem}_{self.hash}"

    @property
    def config_name(self) -> str:
        """The name of the config's copy."""
        return f"instruction_chat_template_config.{self.hash}.yaml"

    def name(self, partition: str, suffix: str) -> str:
        """Returns the name of a partition's file."""
        return f"{self.dst_path.stem}_{partition}.{self.hash}{suffix}"

    def pack_config_name(self, partition: str) -> str:
        """Returns the name of the config that a partition is packed with."""
        return f"pbin_config_{partition}.{self.hash}.yaml"


def load_instruction_config(path: Path) -> InstructionConfig:
    """Reads and checks a config.

    Raises:
        ConfigError: If a key is unknown or missing or a value is not allowed.
        OSError: If the config or a file that it names cannot be read.
    """
    resolvers = Resolvers(path)
    try:
        raw = read_yaml(path)
        referenced = references(raw)
        values = resolvers.resolve(raw)
        known = {key: item for key, item in values.items() if key in _keys(_Config) or key not in referenced}
        redactor = Redactor(tuple(resolvers.secrets.items()))
        return _of(path, _checked(known), redactor)
    except ConfigError as error:
        text = Redactor(tuple(resolvers.secrets.items()))(str(error))
        prefix = "" if text.startswith(str(path)) else f"{path}: "
        raise ConfigError(prefix + text) from None


def _checked(values: Mapping[str, Any]) -> _Config:
    for key in ("split_config", "pbin_creation_config_file_path"):
        # Modalities accepts a config without these keys, and fails later.
        if isinstance(settings := values.get("settings"), Mapping) and settings.get(key) is None:
            raise ConfigError(_SCHEMA.missing(dotted(("settings", key))))
    try:
        config = _Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_SCHEMA.worded(error)) from None
    splitting = config.settings.split_config.splitting
    total = splitting.train + splitting.val + splitting.test
    if total != 100:
        raise ConfigError(
            f"settings.split_config.splitting: train, val and test are percentages; their sum is {total}, "
            "expected 100"
        )
    if Path(config.settings.dst_path).suffix != _SUFFIX:
        raise ConfigError(
            f"settings.dst_path is {config.settings.dst_path!r}; expected a name that ends in {_SUFFIX}"
        )
    return config


def _of(path: Path, config: _Config, redactor: Redactor) -> InstructionConfig:
    settings = config.settings
    for key in ("src_path", "pbin_creation_config_file_path"):
        if not Path(file := getattr(settings, key)).is_file():
            raise FileNotFoundError(errno.ENOENT, f"settings.{key}: no such file", redactor(file))
    return InstructionConfig(
        path=path,
        content=path.read_bytes(),
        src_path=Path(settings.src_path),
        dst_path=Path(settings.dst_path),
        messages_key=settings.messages_key,
        percentages={name: getattr(settings.split_config.splitting, name) for name in PARTITIONS},
        seed=settings.split_config.seed,
        pack_config_path=Path(settings.pbin_creation_config_file_path),
        role_mapping=config.instruction_data_transformation.role_mapping,
        template=config.jinja2_chat_template,
        template_data=config.chat_template_data,
        redactor=redactor,
    )

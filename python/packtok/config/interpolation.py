"""Reads YAML and resolves its ``${...}``: OmegaConf's own interpolations and Modalities' resolvers.

Values from the environment are recorded, so that they can be kept out of all output. OmegaConf's resolvers
are global to the process. They are therefore registered only while a config is resolved, and the previous
ones are restored.
"""

import io
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.basecontainer import BaseContainer
from omegaconf.errors import OmegaConfBaseException

from packtok._packtok import is_corpus_name
from packtok.errors import ConfigError

_RANKS = ("LOCAL_RANK", "WORLD_SIZE", "RANK")
_REFERENCE = re.compile(r"\$\{(?:oc\.[\w.]+:)?\s*\.*([\w-]+)\s*(?=[.}\[,])")
_MAX_CONFIG_BYTES = 16 << 20
_CORPUS_HINT = "give the corpus with --input or in a config; packtok pack --print-config prints a config"
_LOCK = threading.Lock()


def read_yaml(path: Path) -> DictConfig:
    """Returns the mapping in a YAML file, with unresolved interpolations.

    Raises:
        ConfigError: If the file is not UTF-8, not YAML or not a mapping, is a folder, has the name of a
            corpus or is larger than 16 MiB.
        OSError: If it cannot be read.
    """
    if is_corpus_name(path.name):
        raise ConfigError(f"{path}: is a corpus, but a config was expected; {_CORPUS_HINT}")
    if path.is_dir():
        raise ConfigError(f"{path}: is a folder, but a config was expected; {_CORPUS_HINT}")
    with path.open("rb") as file:
        # The length is bounded, because a device such as /dev/zero never ends.
        content = file.read(_MAX_CONFIG_BYTES + 1)
    if len(content) > _MAX_CONFIG_BYTES:
        raise ConfigError(f"{path}: is larger than 16 MiB, but a config was expected; {_CORPUS_HINT}")
    try:
        config = OmegaConf.load(io.StringIO(content.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8; save the config as UTF-8") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}{_place(error)}: not valid YAML: {_problem(error)}") from None
    except OmegaConfBaseException as error:
        raise ConfigError(f"{path}: {_first_line(error)}") from None
    except OSError as error:
        # OmegaConf raises an OSError without errno for a file that contains a single number or date.
        if error.errno is not None:
            raise
        raise ConfigError(f"{path}: expected a mapping of keys, found a single value") from None
    if not isinstance(config, DictConfig):
        raise ConfigError(f"{path}: expected a mapping of keys such as settings and tokenizer")
    return config


def parse_value(text: str) -> Any:
    """Parses ``text`` as a YAML value, with unresolved interpolations."""
    try:
        parsed = OmegaConf.from_dotlist([f"value={text}"])
    except (yaml.YAMLError, OmegaConfBaseException) as error:
        raise ConfigError(f"{text!r} is not a YAML value: {_first_line(error)}") from None
    return OmegaConf.to_container(parsed, resolve=False)["value"]  # type: ignore[index,call-overload]


def references(config: DictConfig) -> frozenset[str]:
    """Returns the first component of every key that interpolations in ``config`` refer to."""
    return frozenset(
        name
        for text in _strings(OmegaConf.to_container(config, resolve=False))
        for name in _REFERENCE.findall(text)
    )


@dataclass
class Resolvers:
    """The resolvers for one config, and the secrets that they returned."""

    config_path: Path | None
    secrets: dict[str, str] = field(default_factory=dict)

    def resolve(self, config: DictConfig) -> dict[str, Any]:
        """Returns ``config`` as plain Python values.

        Raises:
            ConfigError: If an interpolation cannot be resolved or a value is ``???``; names the key.
        """
        try:
            with _registered(self._table()):
                values: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
        except OmegaConfBaseException as error:
            raise ConfigError(f"{error.full_key or 'config'}: {_cause(error)}") from None
        return {str(key): value for key, value in values.items()}

    def _table(self) -> dict[str, Callable[..., Any]]:
        return {
            "node_env": _node_env,
            "modalities_env": self._modalities_env,
            "cuda_env": self._cuda_env,
            "oc.env": self._oc_env,
        }

    def _modalities_env(self, name: str) -> str:
        if name in ("config_file_path", "config_folder_path"):
            if self.config_path is None:
                raise ConfigError(f"${{modalities_env:{name}}} needs a config file")
            return str(self.config_path if name == "config_file_path" else self.config_path.parent)
        if name in ("experiments_root_path", "experiment_id"):
            raise ConfigError(
                f"${{modalities_env:{name}}} is not available when packing; write the value itself"
            )
        raise ConfigError(
            f"${{modalities_env:{name}}} is unknown; expected config_file_path or config_folder_path"
        )

    def _cuda_env(self, name: str) -> int | str | None:
        value = os.environ.get(name)
        if name in _RANKS:
            if value is None:
                raise ConfigError(f"${{cuda_env:{name}}} is not set in the environment")
            return _rank(name, value)
        if value is not None:
            self.secrets[value] = f"${{cuda_env:{name}}}"
        return value

    def _oc_env(self, name: str, *default: Any) -> Any:
        value = os.environ.get(name)
        if value is not None:
            self.secrets[value] = f"${{oc.env:{name}}}"
            return value
        if not default:
            raise ConfigError(f"${{oc.env:{name}}} is not set in the environment")
        return default[0]


def _node_env(name: str) -> int:
    if name != "num_cpus":
        raise ConfigError(f"${{node_env:{name}}} is unknown; expected num_cpus")
    from packtok import _packtok

    return _packtok.available_cpus()


def _rank(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ConfigError(f"${{cuda_env:{name}}} is not an integer") from None


@contextmanager
def _registered(table: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    known: dict[str, Any] = BaseContainer._resolvers
    with _LOCK:
        before = {name: known.get(name) for name in table}
        try:
            for name, resolver in table.items():
                known[name] = _as_omegaconf_calls_it(resolver)
            yield
        finally:
            for name, resolver_before in before.items():
                if resolver_before is None:
                    known.pop(name, None)
                else:
                    known[name] = resolver_before


def _as_omegaconf_calls_it(resolver: Callable[..., Any]) -> Callable[..., Any]:
    def call(config: Any, parent: Any, node: Any, args: tuple[Any, ...], args_str: tuple[str, ...]) -> Any:
        return resolver(*args)

    return call


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""


def _problem(error: yaml.YAMLError) -> str:
    return str(getattr(error, "problem", None) or _first_line(error))


def _cause(error: OmegaConfBaseException) -> str:
    # OmegaConf prepends this to the message of a resolver's exception, and does not chain the exception
    # itself.
    text = _first_line(error).removeprefix("ConfigError raised while resolving interpolation: ")
    return text[:1].lower() + text[1:]


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")

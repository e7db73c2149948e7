"""Settings of a launch: their structure, and how files, overrides and flags are layered.

Keys and layers are those of tatm, so that its files work unchanged. packtok has additional keys and files.
Every error names the key, and the file if the value came from one.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from packtok.config.interpolation import Resolvers, parse_value, read_yaml
from packtok.config.schema import Schema
from packtok.distributed import MAX_SHARDS
from packtok.errors import ConfigError

__all__ = [
    "Environment",
    "LaunchSettings",
    "Ray",
    "Slurm",
    "changed",
    "load_settings",
    "load_without_files",
]


def _one_line(value: str) -> str:
    if re.search(r"[\x00-\x1f\x7f]", value):
        raise PydanticCustomError(
            "text", "{text}", {"text": "text without line breaks and control characters"}
        )
    return value


def _as_list(value: Any) -> Any:
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _joined(value: Any) -> Any:
    """Joins several constraints with commas for Slurm; tatm accepts a list."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value


def _as_text(value: Any) -> Any:
    # Numbers without a unit: megabytes, or GPUs.
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _not_a_number(value: Any) -> Any:
    # YAML parses 12:30:00 as 45000 (base 60), which Slurm would interpret as minutes.
    if isinstance(value, int):
        text = "text in quotes such as '12:30:00', or '90' for minutes (YAML reads it as a number)"
        raise PydanticCustomError("text", "{text}", {"text": text})
    return value


def _flag(value: str) -> str:
    if not value.startswith("-"):
        raise PydanticCustomError("text", "{text}", {"text": "a whole argument such as --reservation=NAME"})
    return value


Count = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(min_length=1), AfterValidator(_one_line)]
Spelled = Annotated[Text, BeforeValidator(_as_text)]
Names = Annotated[tuple[Text, ...], BeforeValidator(_as_list)]


class _Section(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Slurm(_Section):
    """Where and how the jobs run; the section ``slurm``."""

    partition: Text | None = None
    account: Text | None = None
    qos: Text | None = None
    slurm_bin_dir: Text | None = None
    constraint: Annotated[Text | None, BeforeValidator(_joined)] = None
    nodes: Count | None = None
    cpus_per_task: Count = 8
    mem: Spelled | None = None
    time: Annotated[Text | None, BeforeValidator(_not_a_number)] = None
    gpus_per_node: Spelled | None = None
    job_name: Text = "packtok"
    log_file: Text | None = None
    error_file: Text | None = None
    sbatch_args: Annotated[tuple[Annotated[Text, AfterValidator(_flag)], ...], BeforeValidator(_as_list)] = ()
    mode: Literal["array", "srun"] = "array"
    shards: Annotated[int, Field(ge=1, le=MAX_SHARDS)] | None = None
    at_once: Count | None = None
    join: Literal["file", "manifest", "none"] = "file"
    max_restarts: Annotated[int, Field(ge=0)] = 5
    signal_seconds: Annotated[int, Field(ge=1, le=65535)] = 120


class Environment(_Section):
    """The environment that a job prepares before it calls packtok; the section ``environment``."""

    modules: Names = ()
    conda_env: Text | None = None
    venv: Text | None = None
    singularity_image: Text | None = None


class Ray(_Section):
    """Number of Ray tasks; the section ``ray``. ``slurm.cpus_per_task`` sets their size."""

    num_workers: Count | None = None
    """Maximum number of concurrent tasks. Default: as many as the cluster has room for."""


class LaunchSettings(_Section):
    """All settings that determine how `packtok run` submits work, validated and resolved."""

    backend: Literal["slurm"] = "slurm"
    engine: Literal["slurm", "ray"] = "slurm"
    """The engine that starts the tasks: Slurm, or Ray, which can run in a Slurm job."""
    slurm: Slurm = Slurm()
    ray: Ray = Ray()
    environment: Environment = Environment()
    metadata_backend: Any = None
    """tatm's data set catalogue, accepted because tatm's files may name it; ignored."""


_SCHEMA = Schema(
    {
        (): tuple(LaunchSettings.model_fields),
        ("slurm",): tuple(Slurm.model_fields),
        ("ray",): tuple(Ray.model_fields),
        ("environment",): tuple(Environment.model_fields),
    },
    flag_of={
        "engine": "--engine",
        "ray.num_workers": "--num-workers",
        "slurm.shards": "--array-tasks",
        "slurm.at_once": "--array-tasks",
        "slurm.sbatch_args": "--sbatch-arg",
        **{
            f"slurm.{name}": f"--{name.replace('_', '-')}"
            for name in (
                "nodes",
                "cpus_per_task",
                "mem",
                "time",
                "partition",
                "account",
                "qos",
                "constraint",
                "gpus_per_node",
                "mode",
                "join",
                "log_file",
                "error_file",
            )
        },
    },
)
# Alternative spellings, each with the actual key.
_MEANT = {
    "constraints": "constraint",
    "cpus": "cpus_per_task",
    "memory": "mem",
    "time_limit": "time",
    "array_tasks": "shards",
}


def load_settings(
    confs: Sequence[str] = (), flags: Mapping[str, Any] | None = None, *, system: Path = Path("/etc")
) -> LaunchSettings:
    """Returns the settings of all layers; later layers override earlier ones.

    The layers are ``/etc/tatm/config.yaml`` and ``/etc/packtok/config.yaml``; ``config/config.yaml`` in
    ``$TATM_BASE_DIR`` and in ``$PACKTOK_BASE_DIR``; ``packtok/config.yaml`` in ``$XDG_CONFIG_HOME`` or
    ``~/.config``; the files ``$TATM_BASE_CONFIG`` and ``$PACKTOK_BASE_CONFIG``; the files in ``confs``; the
    overrides in ``confs``; ``flags``.

    Args:
        confs: Files, and overrides such as ``slurm.qos=long``, as in ``--conf``.
        flags: Values by dotted key; ``None`` counts as not given.
        system: Folder to use instead of ``/etc``.

    Raises:
        ConfigError: If a key or a value is invalid.
        OSError: If a named file cannot be read.
    """
    return _layered(OmegaConf.create({}), _layers(system), confs, flags or {})


def load_without_files(
    confs: Sequence[str], flags: Mapping[str, Any] | None = None, below: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the layers of `load_settings` without the files in ``confs``; interpolations stay.

    Args:
        confs: As in `load_settings`.
        flags: As in `load_settings`.
        below: What to use instead of the files that are read without being named in ``confs``.
    """
    overrides = [conf for conf in confs if "=" in conf]
    files = _layers(Path("/etc")) if below is None else []
    merged = _merged_layers(OmegaConf.create(dict(below or {})), files, overrides, flags or {})
    tree: dict[str, Any] = OmegaConf.to_container(merged, resolve=False)  # type: ignore[assignment]
    return tree


def changed(
    settings: LaunchSettings, confs: Sequence[str], without_files: Mapping[str, Any] | None = None
) -> LaunchSettings:
    """Returns ``settings`` with the files and overrides of ``--conf`` applied.

    Args:
        settings: The settings of a run.
        confs: Files, which replace those of the run, and overrides.
        without_files: What remains of ``settings`` without the files of the run; ``None`` if it is not known,
            and then files only change keys.

    Raises:
        ConfigError: If a key or a value is invalid.
        OSError: If a named file cannot be read.
    """
    below = settings.model_dump(mode="json")
    if without_files is not None and any("=" not in conf for conf in confs):
        below = dict(without_files)
    return _layered(OmegaConf.create(below), [], confs, {})


def _layered(
    merged: Any, files: Sequence[Path], confs: Sequence[str], flags: Mapping[str, Any]
) -> LaunchSettings:
    settings = _checked(_merged_layers(merged, files, confs, flags), "")
    _refuse_conflicts(settings.environment)
    return settings


def _merged_layers(
    merged: Any, files: Sequence[Path], confs: Sequence[str], flags: Mapping[str, Any]
) -> DictConfig:
    """Returns the layers on top of ``merged``, with unresolved interpolations."""
    for path in [*files, *(Path(conf) for conf in confs if "=" not in conf)]:
        merged = _merged(merged, _with_meant_keys(read_yaml(path)))
        # Checked after each file, so that an error names the file that caused it.
        _checked(merged, f"{path}: ")
    for override in (conf for conf in confs if "=" in conf):
        _set(merged, *_assignment(override))
    for key, value in flags.items():
        if value is not None:
            _set(merged, key, value)
    layered: DictConfig = merged
    return layered


def _layers(system: Path) -> list[Path]:
    """Returns the files that are read without being named on the command line."""
    bases = [os.environ.get(f"{name}_BASE_DIR") for name in ("TATM", "PACKTOK")]
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    looked_for = [
        *(system / name / "config.yaml" for name in ("tatm", "packtok")),
        *(Path(base) / "config" / "config.yaml" for base in bases if base),
        Path(home) / "packtok" / "config.yaml",
    ]
    named = [os.environ.get(f"{name}_BASE_CONFIG") for name in ("TATM", "PACKTOK")]
    # Files named in the environment must exist; those at default locations need not.
    return [*(path for path in looked_for if path.exists()), *(Path(name) for name in named if name)]


def _merged(below: Any, layer: DictConfig) -> Any:
    try:
        return OmegaConf.merge(below, layer)
    except OmegaConfBaseException as error:
        raise ConfigError(f"the settings cannot be merged: {str(error).splitlines()[0]}") from None


def _with_meant_keys(layer: DictConfig) -> DictConfig:
    """Returns ``layer`` with alternative spellings replaced, so that each key has one value in all layers."""
    tree: Any = OmegaConf.to_container(layer, resolve=False)
    section = tree.get("slurm")
    if isinstance(section, dict):
        tree["slurm"] = {_MEANT.get(key, key): value for key, value in section.items()}
    created: DictConfig = OmegaConf.create(tree)
    return created


def _assignment(override: str) -> tuple[str, Any]:
    key, _, text = override.partition("=")
    if not key:
        raise ConfigError(f"--conf {override}: expected a file, or KEY=VALUE such as slurm.partition=long")
    section, _, name = key.partition(".")
    if section == "slurm" and name in _MEANT:
        key = f"slurm.{_MEANT[name]}"
    # Not parsed as YAML, which would read a time such as 12:30:00 as a number.
    return key, text if key in ("slurm.time", "slurm.mem") else parse_value(text)


def _set(config: Any, key: str, value: Any) -> None:
    try:
        OmegaConf.update(
            config, key, list(value) if isinstance(value, tuple) else value, merge=False, force_add=True
        )
    except (OmegaConfBaseException, TypeError) as error:
        raise ConfigError(f"{key} cannot be set: {str(error).splitlines()[0]}") from None


def _checked(config: Any, prefix: str) -> LaunchSettings:
    try:
        values = Resolvers(None).resolve(config)
        sections = {key: value for key, value in values.items() if value is not None}
        return LaunchSettings.model_validate(_without_nulls(sections))
    except ConfigError as error:
        raise ConfigError(f"{prefix}{error}") from None
    except ValidationError as error:
        raise ConfigError(f"{prefix}{_SCHEMA.worded(error)}") from None


def _without_nulls(values: Mapping[str, Any]) -> dict[str, Any]:
    """Removes keys with the value null, so that they get their default."""
    return {
        key: {name: item for name, item in value.items() if item is not None}
        if isinstance(value, Mapping) and key in ("slurm", "ray", "environment")
        else value
        for key, value in values.items()
    }


def _refuse_conflicts(environment: Environment) -> None:
    ways = [name for name in ("conda_env", "venv", "singularity_image") if getattr(environment, name)]
    if len(ways) > 1:
        names = " and ".join(f"environment.{name}" for name in ways)
        raise ConfigError(f"{names} are set; a job can use only one of them, so set the others to null")

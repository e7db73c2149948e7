"""Recipes of samples: YAML or mappings, checked, and the two recipes of CEPE that ship with packtok."""

import os
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Literal

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from packtok.config.interpolation import read_yaml
from packtok.config.schema import Schema
from packtok.errors import ConfigError
from packtok.sources import StrPath

SHIPPED = ("ab", "concat")
_FOLDER = Path(__file__).parent / "recipes"
_MAX_COUNT = 2**53


def count(value: Any) -> int:
    """Returns a count, which may be written as ``2e6``.

    Raises:
        ValueError: If it is not a whole number from 0 to 2^53.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(_NOT_A_COUNT)
    try:
        number = Decimal(str(value).replace("_", ""))
    except InvalidOperation:
        raise ValueError(_NOT_A_COUNT) from None
    if not number.is_finite() or not 0 <= number <= _MAX_COUNT or number != number.to_integral_value():
        raise ValueError(_NOT_A_COUNT)
    return int(number)


_NOT_A_COUNT = "a whole number from 0 to 2^53, such as 1000 or 2e6"


def _count(value: Any) -> int:
    try:
        return count(value)
    except ValueError:
        raise PydanticCustomError("count", "{}", {}) from None


Count = Annotated[int, BeforeValidator(_count)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Windows(_Model):
    """The kind of samples: windows of single documents, or of a stream of all documents."""

    from_: Literal["documents", "stream"] = Field(alias="from")
    context: Count
    decoder: Count
    min_tokens: Count | None = None
    """Documents with fewer tokens are not used; by default as many as a window has."""


class Counts(_Model):
    """The number of samples of each side."""

    test: Count = 0
    train: Count = 0


class Retrieval(_Model):
    """The retrieval corpus."""

    samples: Count
    """Chunks of a shard."""
    shards: Count = 100
    chunk: Count = 512


class Splits(_Model):
    """The share of all documents on each side."""

    test: Share = 0.01
    train: Share = 0.49
    retrieval: Share = 0.5


class Domain(_Model):
    """A domain: its share of the samples, and its files unless they are found by their folder's name."""

    proportion: Share
    files: str | tuple[str, ...] | None = None


def _domain(value: Any) -> Any:
    return {"proportion": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


class Recipe(_Model):
    """Everything that determines the samples, but for the files and the form of the output."""

    windows: Windows
    domains: dict[str, Annotated[Domain, BeforeValidator(_domain)]] = Field(min_length=1)
    samples: Counts = Counts()
    retrieval: Retrieval | None = None
    splits: Splits = Splits()
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 42


_SCHEMA = Schema(
    {
        (): tuple(Recipe.model_fields),
        ("windows",): ("from", "context", "decoder", "min_tokens"),
        ("samples",): tuple(Counts.model_fields),
        ("retrieval",): tuple(Retrieval.model_fields),
        ("splits",): tuple(Splits.model_fields),
    },
    expected={
        "count": _NOT_A_COUNT,
        "float_type": "a number from 0 to 1",
        "float_parsing": "a number from 0 to 1",
        "dict_type": "a mapping of names to proportions",
        "too_short": "at least one domain",
    },
)


def load_recipe(recipe: "str | os.PathLike[str] | Mapping[str, Any] | Recipe", **changes: Any) -> Recipe:
    """Returns a checked recipe.

    Args:
        recipe: ``"ab"`` or ``"concat"``, CEPE's; the path of a YAML file; or a mapping of the same structure.
        **changes: Values by dotted key with underscores for dots, as ``windows__context``; ``None`` changes
            nothing.

    Raises:
        ConfigError: If a key is unknown or missing, or a value is not allowed.
        OSError: If the file cannot be read.
    """
    where = ""
    if isinstance(recipe, Recipe):
        values: Any = recipe.model_dump(by_alias=True, exclude_none=True)
    elif isinstance(recipe, Mapping):
        values = {key: dict(value) if isinstance(value, Mapping) else value for key, value in recipe.items()}
    else:
        path = _FOLDER / f"{recipe}.yaml" if recipe in SHIPPED else Path(recipe)
        where = f"{path}: "
        try:
            values = OmegaConf.to_container(read_yaml(path), resolve=True)
        except OmegaConfBaseException as error:
            raise ConfigError(f"{where}{str(error).splitlines()[0]}") from None
    for name, value in changes.items():
        if value is not None:
            section, _, key = name.rpartition("__")
            target = values.setdefault(section, {}) if section else values
            if isinstance(target, dict):
                target[key] = value
    try:
        checked = Recipe.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{where}{_SCHEMA.worded(error)}") from None
    _check(checked, where)
    return checked


def _check(recipe: Recipe, where: str) -> None:
    for name in recipe.domains:
        if not name or name != os.path.basename(name) or name in (".", ".."):
            raise ConfigError(f"{where}domains: {name!r} cannot be the name of a folder")
    for subject, shares in (
        ("proportions of the domains", [domain.proportion for domain in recipe.domains.values()]),
        ("splits", list(recipe.splits.model_dump().values())),
    ):
        if abs(sum(shares) - 1) > 1e-9:
            raise ConfigError(f"{where}{subject} sum to {sum(shares):.12g}; expected 1")


def files_of(recipe: Recipe, tokens: StrPath | None) -> tuple[dict[str, list[str]], list[str]]:
    """Returns the token files of each domain, and those of no domain.

    A file belongs to the domain that the first folder on its way below ``tokens`` is named after, or the
    file itself.

    Args:
        recipe: The recipe, whose domains may list files.
        tokens: The folder with the files of all other domains.

    Raises:
        ConfigError: If a domain has no files.
    """
    from packtok.sample.files import expanded, files_below

    files_by_domain: dict[str, list[str]] = {name: [] for name in recipe.domains}
    searched = [name for name, domain in recipe.domains.items() if domain.files is None]
    others = []
    if searched and tokens is None:
        raise ConfigError(
            f"domain {searched[0]!r} has no files; set --tokens (tokens), or list files in the recipe"
        )
    if searched and tokens is not None:
        for path, parts in files_below(Path(tokens)):
            domain = next((part for part in parts if part in searched), None)
            if domain is None:
                others.append(path)
            else:
                files_by_domain[domain].append(path)
    for name, described in recipe.domains.items():
        if described.files is not None:
            listed = [described.files] if isinstance(described.files, str) else described.files
            files_by_domain[name] = expanded(listed, tokens)
    for name, files in files_by_domain.items():
        if not files and recipe.domains[name].proportion > 0:
            raise ConfigError(
                f"{tokens}: no folder or file of domain {name!r} with pbins or npys; expected {name}/*.pbin"
            )
    return files_by_domain, others

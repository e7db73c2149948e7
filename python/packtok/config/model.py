"""Validates a section of a config against the table of options and creates an instance of its class."""

import dataclasses
import os
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic_core import PydanticCustomError

from packtok import _packtok
from packtok.config.option import Limits, limits_of

_Section = TypeVar("_Section")
_STRICT = ConfigDict(strict=True, frozen=True, extra="forbid")


def validated(shape: type[_Section], values: Mapping[str, Any]) -> _Section:
    """Returns ``values`` as an instance of the section's class.

    Raises:
        pydantic.ValidationError: If a key is unknown or missing, or a value is not allowed.
    """
    section: _Section = _instance(shape, _model_of(shape).model_validate(values))
    return section


def _instance(shape: Any, checked: BaseModel) -> Any:
    values = {name: getattr(checked, name) for name in type(checked).model_fields}
    for name, hint in typing.get_type_hints(shape).items():
        if dataclasses.is_dataclass(hint):
            values[name] = _instance(hint, values[name])
    return shape(**values)


def _model_of(shape: Any) -> type[BaseModel]:
    """Returns the model of a class of options, which is created once."""
    return _created_model(shape)


@cache
def _created_model(shape: Any) -> type[BaseModel]:
    hints = typing.get_type_hints(shape)
    fields: dict[str, Any] = {
        field.name: (
            _checked_type(hints[field.name], limits_of(field)),
            ... if field.default is dataclasses.MISSING else field.default,
        )
        for field in dataclasses.fields(shape)
    }
    return create_model(shape.__name__, __config__=_STRICT, **fields)


def _checked_type(hint: Any, limits: Limits) -> Any:
    """Returns a field's type with all of its checks, in pydantic's terms."""
    if dataclasses.is_dataclass(hint):
        return _model_of(hint)
    if limits.kind == "reject limit":
        return Annotated[int | str, BeforeValidator(_reject_limit)] | None
    if limits.kind == "padding":
        return Annotated[hint, BeforeValidator(_padding)]
    if limits.kind == "paths":
        return Annotated[tuple[_Text, ...], BeforeValidator(_as_paths), Field(min_length=1)]
    if limits.kind == "globs":
        return Annotated[tuple[_Text, ...], BeforeValidator(_as_paths)]
    if isinstance(hint, types.UnionType):
        members = [_checked_type(member, limits) for member in typing.get_args(hint)]
        return typing.Union[tuple(members)]  # noqa: UP007 - of as many members as there are
    if hint is str:
        return Annotated[_Text, AfterValidator(_no_url)] if limits.kind == "local path" else _Text
    if hint is int and limits != Limits():
        return Annotated[int, Field(ge=limits.at_least, le=limits.at_most)]
    return hint


# No option accepts an empty string.
_Text = Annotated[str, Field(min_length=1)]


def _as_paths(value: Any) -> Any:
    if isinstance(value, str | os.PathLike):
        return (os.fspath(value),)
    if isinstance(value, list | tuple):
        return tuple(os.fspath(item) if isinstance(item, os.PathLike) else item for item in value)
    return value


def _no_url(value: str) -> str:
    # As a path, a URL would create folders whose names contain its credentials.
    if "://" in value:
        raise PydanticCustomError("url", "a path")
    return value


def _padding(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return "longest" if value else "do_not_pad"
    return value


def _reject_limit(value: Any) -> Any:
    # YAML values such as 0.01 or True are rejected with the same message.
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else repr(value)
    try:
        checked = _packtok.checked_reject_limit(text)
    except ValueError as error:
        raise PydanticCustomError("text", "{text}", {"text": str(error)}) from None
    return checked if checked.endswith("%") else int(checked)

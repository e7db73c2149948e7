"""What can be said about an option of `packtok pack`, and how `packtok.config.options` says it."""

import dataclasses
import types
import typing
from dataclasses import MISSING, dataclass
from typing import Any, Literal

MIB, GIB = 1 << 20, 1 << 30
# The compiled module takes numbers of at most 63 bits.
MAX_COUNT = 2**63 - 1
_METADATA = "packtok"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a value has to be besides its type."""

    at_least: int | None = None
    at_most: int | None = None
    kind: Literal["paths", "local path", "reject limit"] | None = None
    """A check of its own, in `packtok.config.model`."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """All that is said about an option anywhere."""

    section: str
    """``settings`` or ``tokenizer.config``."""
    name: str
    """Its key in the section."""
    keyword: str
    """Its name for `packtok.pack` and the compiled module, and in flags."""
    type: Any
    default: Any
    """`dataclasses.MISSING` if it must be given."""
    limits: Limits
    flags: tuple[str, ...] | None
    """All spellings of its flag, the first one for messages; ``None`` if it has no flag."""
    has_no_form: bool
    """Whether ``--no-`` and the name turn it off."""
    metavar: str | None
    help: str
    """One sentence for ``--help``."""
    meaning: str
    """What the documentation says, in Markdown."""
    default_text: str | None
    """The default in words, where the value says too little."""
    accepts: str | None
    """The type that `packtok.pack` accepts, where it is wider than `type`."""
    changes_bytes: bool
    """Whether the output's bytes depend on it."""
    is_for_core: bool
    """Whether it goes to the compiled module under its keyword."""

    @property
    def key(self) -> str:
        """Its full name in a config, such as ``settings.num_cpus``."""
        return f"{self.section}.{self.name}"

    @property
    def default_help(self) -> str | None:
        """The default as ``--help`` shows it; ``None`` if it shows none."""
        if self.default_text is not None:
            return self.default_text
        if self.default in (MISSING, None) or (self.default is False and not self.has_no_form):
            return None
        if isinstance(self.default, bool):
            return "yes" if self.default else "no"
        return _size(self.default) if isinstance(self.default, int) else str(self.default)

    @property
    def default_meaning(self) -> str:
        """The default as the documentation shows it, in Markdown."""
        if self.default_text is not None:
            return self.default_text
        if self.default is MISSING:
            return ""
        if isinstance(self.default, bool | str):
            return f"`{str(self.default).lower()}`"
        return "none" if self.default is None else _size(self.default)

    @property
    def inner_type(self) -> Any:
        """The type of a value that is given: without ``None``."""
        members = [one for one in typing.get_args(self.type) if one is not types.NoneType]
        is_optional = typing.get_origin(self.type) in (types.UnionType, typing.Union)
        if not is_optional:
            return self.type
        return members[0] if len(members) == 1 else typing.Union[tuple(members)]  # noqa: UP007


def _size(number: int) -> str:
    for unit, name in ((GIB, "GiB"), (MIB, "MiB")):
        if number % unit == 0:
            return f"{number // unit} {name}"
    return str(number)


def option(
    help: str,
    *,
    changes_bytes: bool,
    meaning: str | None = None,
    default: Any = MISSING,
    default_text: str | None = None,
    keyword: str | None = None,
    flags: tuple[str, ...] | None = (),
    metavar: str | None = None,
    limits: Limits = Limits(),
    accepts: str | None = None,
    is_for_core: bool = True,
) -> Any:
    """A field of a section that is an option; the arguments are the fields of `Option`.

    Without ``meaning``, the documentation says what ``--help`` says. Without ``flags``, there is one: ``--``
    and the keyword with hyphens.
    """
    said = dict(locals())
    del said["default"]
    return dataclasses.field(default=default, metadata={_METADATA: said})


def ignored(reason: str, *, default: Any = None, limits: Limits = Limits()) -> Any:
    """A key of Modalities that is checked as Modalities checks it and then has no effect."""
    return dataclasses.field(default=default, metadata={"ignored": reason, "limits": limits})


def options_of(section: str, shape: Any) -> list[Option]:
    """The options among the fields of a section's class, in their order."""
    hints = typing.get_type_hints(shape)
    found = []
    for field in dataclasses.fields(shape):
        if _METADATA not in field.metadata:
            continue
        said = dict(field.metadata[_METADATA])
        keyword = said.pop("keyword") or field.name
        flags = said.pop("flags")
        said["meaning"] = said["meaning"] or said["help"][:1].lower() + said["help"][1:].rstrip(".")
        found.append(
            Option(
                section=section,
                name=field.name,
                keyword=keyword,
                type=hints[field.name],
                default=field.default,
                flags=(f"--{keyword.replace('_', '-')}",) if flags == () else flags,
                has_no_form=flags == () and hints[field.name] is bool,
                **said,
            )
        )
    return found


def limits_of(field: dataclasses.Field[Any]) -> Limits:
    """What a value of a section's field has to be besides its type."""
    said = field.metadata.get(_METADATA, field.metadata)
    limits: Limits = said.get("limits", Limits())
    return limits


def reason_to_ignore(field: dataclasses.Field[Any]) -> str | None:
    """Why a field of a section has no effect; ``None`` if it has one."""
    reason: str | None = field.metadata.get("ignored")
    return reason

"""The properties of an option of `packtok pack`, and how `packtok.config.options` declares them."""

import dataclasses
import types
import typing
from dataclasses import MISSING, dataclass
from typing import Any, Literal

MIB, GIB = 1 << 20, 1 << 30
# The compiled module accepts numbers of up to 63 bits.
MAX_COUNT = 2**63 - 1
_METADATA = "packtok"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Constraints on a value in addition to its type."""

    at_least: int | None = None
    at_most: int | None = None
    kind: Literal["paths", "globs", "local path", "padding", "reject limit"] | None = None
    """A special check, implemented in `packtok.config.model`."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """All properties of an option."""

    section: str
    """``settings`` or ``tokenizer.config``."""
    name: str
    """Key in the section."""
    keyword: str
    """Name in `packtok.pack`, in the compiled module and in flags."""
    type: Any
    default: Any
    """`dataclasses.MISSING` if the option is required."""
    limits: Limits
    flags: tuple[str, ...] | None
    """All spellings of its flag, of which messages use the first; ``None`` if it has no flag."""
    has_no_form: bool
    """Whether a ``--no-`` flag turns the option off."""
    metavar: str | None
    help: str
    """One sentence for ``--help``."""
    meaning: str
    """Description for the documentation, in Markdown."""
    default_text: str | None
    """Description of the default, if the value itself is not clear enough."""
    accepts: str | None
    """The type that `packtok.pack` accepts, if it is wider than `type`."""
    changes_bytes: bool
    """Whether the output's bytes depend on the option."""
    is_for_core: bool
    """Whether the option is passed to the compiled module under its keyword."""

    @property
    def key(self) -> str:
        """The full name of the option in a config, such as ``settings.num_cpus``."""
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
        """The type of the value without ``None``."""
        members = [member for member in typing.get_args(self.type) if member is not types.NoneType]
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
    """Declares a field of a section as an option; the arguments are the fields of `Option`.

    ``meaning`` defaults to ``help``. ``flags`` defaults to a single flag, ``--`` and the keyword with
    hyphens.
    """
    arguments = dict(locals())
    del arguments["default"]
    return dataclasses.field(default=default, metadata={_METADATA: arguments})


def ignored(reason: str, *, default: Any = None, limits: Limits = Limits()) -> Any:
    """Declares a Modalities key that is validated as in Modalities and then has no effect."""
    return dataclasses.field(default=default, metadata={"ignored": reason, "limits": limits})


def options_of(section: str, shape: Any) -> list[Option]:
    """Returns the options among the fields of a section's class, in their order."""
    hints = typing.get_type_hints(shape)
    options = []
    for field in dataclasses.fields(shape):
        if _METADATA not in field.metadata:
            continue
        arguments = dict(field.metadata[_METADATA])
        keyword = arguments.pop("keyword") or field.name
        flags = arguments.pop("flags")
        text = arguments["help"]
        arguments["meaning"] = arguments["meaning"] or text[:1].lower() + text[1:].rstrip(".")
        options.append(
            Option(
                section=section,
                name=field.name,
                keyword=keyword,
                type=hints[field.name],
                default=field.default,
                flags=(f"--{keyword.replace('_', '-')}",) if flags == () else flags,
                has_no_form=flags == () and hints[field.name] is bool,
                **arguments,
            )
        )
    return options


def limits_of(field: dataclasses.Field[Any]) -> Limits:
    """Returns the constraints on a section's field in addition to its type."""
    arguments = field.metadata.get(_METADATA, field.metadata)
    limits: Limits = arguments.get("limits", Limits())
    return limits


def reason_to_ignore(field: dataclasses.Field[Any]) -> str | None:
    """Returns why a field of a section has no effect; ``None`` if it has one."""
    reason: str | None = field.metadata.get("ignored")
    return reason

"""Flags that several commands share, each declared once, and checks of path arguments."""

import glob
import inspect
import os
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal, TypeVar

import typer

from packtok import _packtok
from packtok.config.option import Option
from packtok.config.options import OPTIONS
from packtok.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])
Existing = Literal["error", "skip", "replace"]
FileExistencePolicy = Literal["error", "skip", "override"]


def flag(keyword: str) -> Any:
    """Returns the flag of an option of `pack`, as a Typer option."""
    option = OPTIONS[keyword]
    default = f" [default: {option.default_help}]" if option.default_help is not None else ""
    # Typer derives --name and --no-name from the parameter's name.
    names = () if option.has_no_form else option.flags or ()
    return typer.Option(*names, metavar=option.metavar, help=option.help + default)


def with_options(*keywords: str) -> Callable[[F], F]:
    """Adds the flags of these options of `pack` to a command, which receives them as ``**options``."""

    def decorated(command: F) -> F:
        return with_parameters(command, [_parameter(OPTIONS[keyword]) for keyword in keywords])

    return decorated


def with_parameters(command: F, added: Iterable[inspect.Parameter]) -> F:
    """Replaces the ``**`` parameter of a command by keyword parameters that Typer sees."""
    signature = inspect.signature(command)
    own = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    first = [parameter for parameter in own if parameter.kind is not parameter.KEYWORD_ONLY]
    last = [parameter for parameter in own if parameter.kind is parameter.KEYWORD_ONLY]
    parameters = [*first, *added, *last]
    # Typer reads both attributes.
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _parameter(option: Option) -> inspect.Parameter:
    """Returns the command parameter for an option."""
    shape: Any = option.inner_type
    if typing.get_origin(shape) is tuple:
        shape = list[str]
    elif typing.get_origin(shape) is typing.Union:
        shape = str
    annotation = Annotated[shape | None, flag(option.keyword)]
    return inspect.Parameter(
        option.keyword, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


# Options of `pack` that have flags.
PACK_FLAGS = tuple(option.keyword for option in OPTIONS.values() if option.flags)

ExistingOption = Annotated[Existing | None, flag("existing")]
IgnoreOption = Annotated[list[str] | None, flag("ignore")]
SourceOption = Annotated[str | None, flag("source")]
TokenizerOption = Annotated[str | None, flag("tokenizer")]
AddTokensOption = Annotated[bool, flag("add_special_tokens_from_config")]
OnBadOption = Annotated[Literal["fail", "skip"] | None, flag("on_bad_document")]
MaxDocumentBytesOption = Annotated[int | None, flag("max_document_bytes")]
MaxRejectsOption = Annotated[str | None, flag("max_rejects")]
PolicyOption = Annotated[
    FileExistencePolicy | None,
    typer.Option("--file_existence_policy", help="Modalities' name for --existing; override means replace."),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Hide progress and print the result in one line.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
TokenFormat = Literal[
    "pbin",
    "cepe-npy",
    "megatron",
    "datatrove",
    "dolma",
    "llm-c",
    "litdata",
    "mds",
    "npy",
    "raw",
    "tatm",
    "parquet",
    "arrow",
]
OutdirOption = Annotated[
    str | None,
    typer.Option(
        "--outdir",
        metavar="FOLDER",
        help="With --shard or --join: where tasks leave markers, for packtok status.",
    ),
]
# What `packtok convert` writes: also what is only written.
WrittenFormat = Literal[TokenFormat, "packed-parquet"]
TokenFormatOption = Annotated[
    TokenFormat | None, typer.Option("--format", help="The format of the token file. [default: by content]")
]
InputDtypeOption = Annotated[
    str | None,
    typer.Option(
        "--input-dtype", metavar="DTYPE", help="The type of ids in a file without a header: uint16, ..."
    ),
]
AcceptLossOption = Annotated[
    list[str] | None,
    typer.Option("--accept-loss", metavar="NAME", help="Lose what the output cannot hold; repeatable."),
]
BoundariesOption = Annotated[
    str | None,
    typer.Option(
        "--boundaries",
        metavar="WHERE",
        help="Where documents start if the file does not say it: eos=ID, bos=ID or file=PATH.",
    ),
]


def existing_policy(existing: Existing | None, policy: FileExistencePolicy | None) -> Existing | None:
    """Returns the policy set by either of the two flags, or ``None`` if neither is given."""
    named: Existing | None = "replace" if policy == "override" else policy
    if existing is not None and named is not None and existing != named:
        raise typer.BadParameter(
            f"--existing {existing} and --file_existence_policy {policy} differ; give only one"
        )
    return existing or named


def check_inputs(name: str, paths: Iterable[str]) -> None:
    """Rejects paths that a shell or another program would interpret, but packtok would take literally.

    Args:
        name: The flag or argument with the paths.
        paths: Files, globs, folders and URLs.

    Raises:
        ConfigError: If one is empty, is ``-`` for standard input, or starts with ``~``.
    """
    for path in paths:
        if path == "-" and not os.path.lexists(path):
            raise ConfigError(
                f"{name}: - means standard input, which is not supported; write the data to a file first"
            )
        _check(name, path)


def check_corpus(name: str, paths: Sequence[str]) -> None:
    """Same as `check_inputs`, for a corpus, whose plain paths must exist.

    Raises:
        ConfigError: As in `check_inputs`.
        FileNotFoundError: If a file or folder does not exist.
    """
    check_inputs(name, paths)
    check_existing(name, paths)


def check_existing(name: str, paths: Iterable[str]) -> None:
    """Rejects plain paths of a corpus that do not exist.

    Raises:
        FileNotFoundError: If a file or folder does not exist.
    """
    for path in paths:
        if not (_packtok.is_url(path) or glob.has_magic(path) or os.path.lexists(path.removeprefix("@"))):
            raise FileNotFoundError(f"{name}: {path}: No such file or directory")


def check_output(name: str, path: str | None, *, is_folder: bool = False) -> None:
    """Same as `check_inputs`, for an optional output file or folder.

    Raises:
        ConfigError: If it is empty, is ``-`` for standard output, starts with ``~``, or is a folder instead
            of a file.
    """
    if path is None:
        return
    if path.endswith("/") and not is_folder:
        raise ConfigError(f"{name}: {path} is a folder; give a file in it")
    if path == "-":
        raise ConfigError(
            f"{name}: - means standard output, which is not supported; give a file (./- for a file named -)"
        )
    _check(name, path)


def _check(name: str, path: str) -> None:
    if not path.strip():
        raise ConfigError(f"{name}: is empty; give a file or folder")
    if path.startswith("~") and not os.path.lexists(path.partition("/")[0]):
        raise ConfigError(
            f"{name}: {path}: only a shell expands ~, without quotes and at the start of a word; write "
            f"{os.path.expanduser(path)}"
        )

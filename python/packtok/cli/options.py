"""Flags that several commands share, each declared once, and what no path may be."""

import glob
import os
from collections.abc import Iterable
from typing import Annotated, Literal

import typer

from packtok.errors import ConfigError

Existing = Literal["error", "skip", "replace"]
FileExistencePolicy = Literal["error", "skip", "override"]

ExistingOption = Annotated[
    Existing | None, typer.Option(help="What to do if the output exists. [default: error]")
]
PolicyOption = Annotated[
    FileExistencePolicy | None,
    typer.Option("--file_existence_policy", help="Modalities' name for --existing; override is replace."),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show no progress, and the result in one line.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
TokenizerOption = Annotated[
    str | None,
    typer.Option("--tokenizer", "-t", help="tokenizer.json or its folder, built-in name, or hub name."),
]
CorpusFieldOption = Annotated[
    str | None, typer.Option("--field", "-f", help="jq filter that gives a document's text. [default: .text]")
]
ThreadsOption = Annotated[
    int | None, typer.Option("--num-cpus", "--threads", "-j", help="Threads. [default: all allowed]")
]
OnBadOption = Annotated[
    Literal["fail", "skip"] | None,
    typer.Option(help="Stop at a bad document, or leave it out and report it."),
]

MaxRejectsOption = Annotated[
    str | None,
    typer.Option(
        metavar="N|P%",
        help="Fail if more documents are rejected, of all or in all. [default: fail if all are]",
    ),
]


def existing_policy(existing: Existing | None, policy: FileExistencePolicy | None) -> Existing | None:
    """The one policy that the two names for it ask for, or ``None`` if neither was given."""
    named: Existing | None = "replace" if policy == "override" else policy
    if existing is not None and named is not None and existing != named:
        raise typer.BadParameter(
            f"--existing {existing} and --file_existence_policy {policy} differ; give only one"
        )
    return existing or named


def check_inputs(name: str, paths: Iterable[str]) -> None:
    """Refuses what a shell or another program would understand, and packtok would look for under that name.

    Args:
        name: The flag or argument that has the paths.
        paths: Files, globs, folders and URLs.

    Raises:
        ConfigError: If one is empty, ``-`` for standard input, or begins with ``~``.
    """
    for path in paths:
        if path == "-" and not os.path.lexists(path):
            raise ConfigError(
                f"{name}: - would be standard input, which is not read; write it to a file first"
            )
        _check(name, path)


def check_corpus(name: str, paths: Iterable[str]) -> None:
    """`check_inputs` for a corpus, of which every plain path must be there.

    Raises:
        ConfigError: As `check_inputs`.
        FileNotFoundError: If a file or folder is not there.
    """
    from packtok.stores import is_url

    paths = list(paths)
    check_inputs(name, paths)
    for path in paths:
        if not (is_url(path) or glob.has_magic(path) or os.path.lexists(path)):
            raise FileNotFoundError(f"{name}: {path}: No such file or directory")


def check_output(name: str, path: str | None, *, is_folder: bool = False) -> None:
    """The same for a file, or a folder, that is written, which may be left out.

    Raises:
        ConfigError: If it is empty, ``-`` for standard output, begins with ``~``, or is a folder for a file.
    """
    if path is None:
        return
    if path.endswith("/") and not is_folder:
        raise ConfigError(f"{name}: {path} is a folder; name a file in it")
    if path == "-":
        raise ConfigError(
            f"{name}: - would be standard output, and packtok writes files; name one (./- for a file named -)"
        )
    _check(name, path)


def _check(name: str, path: str) -> None:
    if not path.strip():
        raise ConfigError(f"{name}: is empty; name a file or folder")
    if path.startswith("~") and not os.path.lexists(path.partition("/")[0]):
        raise ConfigError(
            f"{name}: {path}: only a shell takes ~ for the home folder, without quotes and at the start of a "
            f"word; write {os.path.expanduser(path)}"
        )

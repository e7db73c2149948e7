"""Flags that several commands share, each declared once."""

from typing import Annotated, Literal

import typer

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


def existing_policy(existing: Existing | None, policy: FileExistencePolicy | None) -> Existing | None:
    """The one policy that the two names for it ask for, or ``None`` if neither was given."""
    named: Existing | None = "replace" if policy == "override" else policy
    if existing is not None and named is not None and existing != named:
        raise typer.BadParameter(
            f"--existing {existing} and --file_existence_policy {policy} differ; give only one"
        )
    return existing or named

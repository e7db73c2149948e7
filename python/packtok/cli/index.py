"""`packtok index`: writes the raw index of a JSONL file."""

from typing import Annotated

import typer

from packtok.cli.merge import show_counts
from packtok.cli.options import (
    Existing,
    ExistingOption,
    JsonOption,
    OnBadOption,
    PolicyOption,
    QuietOption,
    check_inputs,
    check_output,
    existing_policy,
)
from packtok.cli.progress import progress

Source = Annotated[str, typer.Argument(metavar="SRC", help="The JSONL file.")]
IndexPath = Annotated[
    str | None,
    typer.Option(
        "--index-path", "--index_path", help="The index to write. [default: SRC with the suffix .idx]"
    ),
]


def index(
    src: Source,
    index_path: IndexPath = None,
    on_bad_document: OnBadOption = None,
    existing: ExistingOption = None,
    file_existence_policy: PolicyOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the raw index of a JSONL file, in the format that Modalities reads."""
    policy = existing_policy(existing, file_existence_policy)
    bad = on_bad_document or "fail"
    index_with(src, index_path, policy, on_bad_document=bad, as_json=as_json, quiet=quiet)


def create_raw_index(
    src: Source,
    index_path: IndexPath = None,
    file_existence_policy: PolicyOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the raw index of a JSONL file; the same as `packtok index`."""
    policy = existing_policy(None, file_existence_policy)
    index_with(src, index_path, policy, on_bad_document="fail", as_json=as_json, quiet=quiet)


def index_with(
    src: str,
    index_path: str | None,
    existing: Existing | None,
    *,
    on_bad_document: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Writes the index and prints the counts."""
    from packtok.commands import index as command

    check_inputs("SRC", [src])
    check_output("--index-path", index_path)
    with progress(quiet=quiet) as on_progress:
        counts = command.index(
            src,
            index_path,
            on_bad_document=on_bad_document,
            existing=existing or "error",
            on_progress=on_progress,
        )
    show_counts(counts, as_json=as_json, quiet=quiet)

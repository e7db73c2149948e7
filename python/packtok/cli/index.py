"""`packtok index`: writes the raw index of a JSONL file."""

from typing import Annotated

import typer

from packtok.cli.merge import show_counts
from packtok.cli.options import (
    ExistingOption,
    JsonOption,
    MaxDocumentBytesOption,
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
    max_document_bytes: MaxDocumentBytesOption = None,
    existing: ExistingOption = None,
    file_existence_policy: PolicyOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the raw index of a JSONL file, in the format that Modalities reads."""
    from packtok.commands import index as command

    policy = existing_policy(existing, file_existence_policy)
    check_inputs("SRC", [src])
    check_output("--index-path", index_path)
    limit = {} if max_document_bytes is None else {"max_document_bytes": max_document_bytes}
    with progress(quiet=quiet) as on_progress:
        counts = command.index(
            src,
            index_path,
            on_bad_document=on_bad_document or "fail",
            existing=policy or "error",
            on_progress=on_progress,
            **limit,
        )
    show_counts(counts, as_json=as_json, quiet=quiet)

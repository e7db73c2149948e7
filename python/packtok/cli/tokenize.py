"""`packtok tokenize`: tokenizes described datasets into a described dataset of token files."""

from typing import Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.options import JsonOption, QuietOption, with_options
from packtok.cli.progress import engine_checks, progress
from packtok.distributed import MAX_SHARDS


@with_options(
    *("format", "text_separator", "eod", "bos", "add_special_tokens", "special_tokens_in_text"),
    *("empty_document", "on_bad_document", "max_rejects", "max_document_bytes", "max_documents", "restart"),
)
def tokenize(
    datasets: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET[:CORPUS]...",
            help="Metadata files, folders with one, or names; in the order to pack.",
        ),
    ],
    *,
    tokenizer: Annotated[
        str, typer.Option("--tokenizer", "-t", metavar="NAME|FILE", help="As for packtok pack.")
    ],
    output_dir: Annotated[
        str, typer.Option("--output-dir", "-o", metavar="FOLDER", help="The folder to write to.")
    ] = ".",
    file_prefix: Annotated[
        str, typer.Option("--file-prefix", help="Start of the names of the token files.")
    ] = "tokenized",
    token_dtype: Annotated[
        str | None, typer.Option("--token-dtype", help="Widest tokens to accept: uint8, uint16, uint32.")
    ] = None,
    num_workers: Annotated[
        int | None,
        typer.Option(
            "--num-workers", "-j", min=1, help="Threads. [default: all CPUs that this process may use]"
        ),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option("--parts", min=1, max=MAX_SHARDS, help="Write this many pbins and a manifest of them."),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    **options: Any,
) -> None:
    """Tokenize described datasets into a folder that is a described dataset itself."""
    from packtok.commands import tokenize as command

    given = {name: value for name, value in options.items() if value is not None}
    with engine_checks(quiet=quiet), progress(quiet=quiet) as on_progress:
        written = command.tokenize(
            datasets,
            tokenizer,
            output_dir,
            file_prefix=file_prefix,
            token_dtype=token_dtype,
            parts=parts,
            num_cpus=num_workers,
            on_progress=on_progress,
            remark=console.remark_unless(quiet),
            **given,
        )
    if as_json:
        console.as_json(written)
        return
    details = written["details"]
    counts = f"{console.count(details['documents'])} documents, {console.count(details['tokens'])} tokens"
    print(console.printable(f"{output_dir}: {written['name']}: {counts}"))

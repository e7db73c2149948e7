"""`packtok tokenize`: tokenizes described datasets into a described dataset of token files."""

from typing import Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.options import JsonOption, QuietOption, check_output, with_options
from packtok.cli.pack import show_report
from packtok.cli.progress import engine_checks, progress
from packtok.distributed import MAX_SHARDS

# Options of `pack` that `tokenize` has too.
OPTIONS_OF_PACK = (
    *("source", "format", "text_separator", "eod", "bos", "add_special_tokens", "special_tokens_in_text"),
    *("empty_document", "on_bad_document", "max_rejects", "max_document_bytes", "max_documents", "origins"),
    "restart",
)


@with_options(*OPTIONS_OF_PACK)
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
            "--num-workers",
            "-j",
            min=1,
            help="Threads; with packtok run, tasks that run at once. [default: all CPUs of this process]",
        ),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option("--parts", min=1, max=MAX_SHARDS, help="Write this many pbins and a manifest of them."),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="k/N|k|auto",
            help="Pack only shard k of N, from 0, for --join; auto: k from Slurm.",
        ),
    ] = None,
    join: Annotated[
        bool, typer.Option("--join", help="Join the shards when all are packed, and write the metadata.")
    ] = False,
    outdir: Annotated[
        str | None,
        typer.Option(
            help="Folder of the shards. [default: the pbin's name plus .shards; with --parts, --output-dir]"
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    **options: Any,
) -> None:
    """Tokenize described datasets into a folder that is a described dataset itself."""
    from packtok.commands import tokenize as command
    from packtok.distributed import find_shard

    if shard is not None and join:
        raise typer.BadParameter("--shard and --join are given; give only one")
    if outdir is not None and shard is None and not join:
        raise typer.BadParameter("--outdir needs --shard or --join; without them there are no shards")
    check_output("--output-dir", output_dir, is_folder=True)
    check_output("--outdir", outdir, is_folder=True)
    if shard is None:
        command.refuse_complete(output_dir)
    with engine_checks(quiet=quiet), progress(quiet=quiet) as on_progress:
        prepared = command.prepare_tokenization(
            datasets,
            tokenizer,
            output_dir,
            file_prefix=file_prefix,
            token_dtype=token_dtype,
            parts=parts,
            outdir=outdir,
            num_cpus=num_workers,
            remark=console.remark_unless(quiet),
            **{name: value for name, value in options.items() if value is not None},
        )
        if shard is not None:
            report = prepared.pack_shard(find_shard(shard), on_progress)
        elif join:
            written = prepared.finish(on_progress)
        else:
            written = prepared.run(on_progress)
    if shard is not None:
        show_report(report, 0, as_json=as_json, quiet=quiet)
    else:
        _show(written, output_dir, as_json=as_json)


def _show(written: dict[str, Any], output_dir: str, *, as_json: bool) -> None:
    if as_json:
        console.as_json(written)
        return
    details = written["details"]
    counts = f"{console.count(details['documents'])} documents, {console.count(details['tokens'])} tokens"
    print(console.printable(f"{output_dir}: {written['name']}: {counts}"))

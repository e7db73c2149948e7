"""`packtok tokenize`: tokenizes described datasets into a described dataset of token files."""

import os
from glob import has_magic
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from packtok.cli import console
from packtok.cli.merge import show_counts
from packtok.cli.options import (
    Existing,
    ExistingOption,
    JsonOption,
    QuietOption,
    check_corpus,
    check_output,
    with_options,
)
from packtok.cli.pack import checked_config, pack_with, show_report
from packtok.cli.progress import engine_checks, progress
from packtok.distributed import MAX_SHARDS

DEFAULT_PREFIX = "tokenized"

# Options of `pack` that `tokenize` has too.
OPTIONS_OF_PACK = (
    "source",
    "format",
    "ignore",
    "root",
    "split",
    "text_separator",
    "eod",
    "bos",
    "add_special_tokens",
    "special_tokens_in_text",
    "empty_document",
    "on_bad_document",
    "max_rejects",
    "max_document_bytes",
    "max_documents",
    "origins",
    "zstd_window_log",
    "add_special_tokens_from_config",
    "restart",
)


@with_options(*OPTIONS_OF_PACK)
def tokenize(
    datasets: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET[:CORPUS]...",
            help="Metadata files, folders with one, or names; or files, folders, globs and @LIST without "
            "metadata.",
        ),
    ],
    *,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer", "-t", metavar="NAME|FILE", help="As for packtok pack. [default: t5-base]"
        ),
    ] = None,
    output_dir: Annotated[
        str, typer.Option("--output-dir", "-o", metavar="FOLDER", help="The folder to write to.")
    ] = ".",
    file_prefix: Annotated[
        str, typer.Option("--file-prefix", help="Start of the names of the token files.")
    ] = DEFAULT_PREFIX,
    to: Annotated[
        Literal["cepe-npy", "npy"] | None,
        typer.Option(
            "--to",
            help="cepe-npy: one NPY file for each input file, as CEPE's scripts; npy: a folder of shards, as "
            "KempnerForge reads it. [default: one pbin]",
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            help="With --to cepe-npy: int64 or uint32, with npy: uint16 or uint32. "
            "[default: int64; what the vocabulary needs]",
        ),
    ] = None,
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
    existing: ExistingOption = None,
    field: Annotated[
        str | None,
        typer.Option("--field", "-f", metavar="FILTER", help="The text in inputs without metadata."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Accepted because tatm has it; has no effect.")
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

    # Only tatm distinguishes more than two levels.
    del verbose
    if shard is not None and join:
        raise typer.BadParameter("--shard and --join are given; give only one")
    if outdir is not None and shard is None and not join:
        raise typer.BadParameter("--outdir needs --shard or --join; without them there are no shards")
    check_output("--output-dir", output_dir, is_folder=True)
    check_output("--outdir", outdir, is_folder=True)
    pack_options = {name: value for name, value in options.items() if value is not None}
    if to is not None:
        check_npy(to, token_dtype, parts, file_prefix)
        own = {"tokenizer": tokenizer, "output_dir": output_dir, "dtype": dtype, "outdir": outdir}
        pack_options |= {"field": field, "num_cpus": num_workers}
        tokenize_to = _tokenize_shards if to == "npy" else _tokenize_npy
        tokenize_to(datasets, own, pack_options, existing, shard, join=join, as_json=as_json, quiet=quiet)
        return
    if dtype is not None:
        raise typer.BadParameter("--dtype needs --to; the tokenizer sets the width of a pbin")
    if field is not None or are_undescribed(datasets):
        check_undescribed(datasets, parts)
        console.remarks(undescribed_remarks(token_dtype))
        pack_options["tokenizer"] = command.name_of_tokenizer(tokenizer)
        pack_options |= {"field": field, "num_cpus": num_workers, "existing": existing}
        pack_options["split"] = command.split_of(pack_options, pack_options.get("source"))
        pbin = pbin_in(output_dir, file_prefix)
        _tokenize_undescribed(
            datasets, pack_options, pbin, shard, outdir, join=join, as_json=as_json, quiet=quiet
        )
        return
    if shard is None and existing in (None, "error"):
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
            existing=existing or "error",
            num_cpus=num_workers,
            remark=console.remark_unless(quiet),
            **pack_options,
        )
        is_kept = prepared.keeps
        if shard is not None:
            report = prepared.pack_shard(find_shard(shard), on_progress)
        elif join:
            written = prepared.finish(on_progress)
        else:
            written = prepared.run(on_progress)
    if shard is not None:
        console.remarks(report.warnings)
        show_report(report, as_json=as_json, quiet=quiet)
    else:
        _show(written, output_dir, is_kept=is_kept, as_json=as_json)


def check_npy(to: str, token_dtype: str | None, parts: int | None, file_prefix: str) -> None:
    """Raises a `BadParameter` if an option is given that has no meaning with --to."""
    refused_flags = {
        "--token-dtype": (token_dtype, "give --dtype"),
        "--parts": (parts, "there are several files"),
        "--file-prefix": (
            None if file_prefix == DEFAULT_PREFIX else file_prefix,
            "the names of the files are fixed",
        ),
    }
    for flag, (value, remedy) in refused_flags.items():
        if value is not None:
            raise typer.BadParameter(f"{flag} cannot be given with --to {to}; {remedy}")


def _tokenize_npy(
    inputs: list[str],
    own: dict[str, Any],
    options: dict[str, Any],
    existing: Existing | None,
    shard: str | None,
    *,
    join: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Tokenizes into NPY files, or packs a shard of them."""
    from packtok.commands.tokenize_npy import prepare_npy_tokenization
    from packtok.distributed import find_shard

    check_corpus("DATASET", inputs)
    with engine_checks(quiet=quiet), progress(quiet=quiet) as on_progress:
        prepared = prepare_npy_tokenization(
            inputs, **own, existing=existing or "error", remark=console.remark_unless(quiet), **options
        )
        if shard is not None:
            report = prepared.pack_shard(find_shard(shard), on_progress)
        elif join:
            counts = prepared.finish(on_progress)
        else:
            counts = prepared.run(on_progress)
    if shard is not None:
        console.remarks(report.warnings)
        show_report(report, as_json=as_json, quiet=quiet)
    else:
        show_counts(counts, as_json=as_json, quiet=quiet)


def _tokenize_shards(
    inputs: list[str],
    own: dict[str, Any],
    options: dict[str, Any],
    existing: Existing | None,
    shard: str | None,
    *,
    join: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Tokenizes into a folder of shards."""
    from packtok.commands.tokenize_shards import tokenize_shards

    if shard is not None or join or own.pop("outdir") is not None:
        raise typer.BadParameter(
            "--shard, --join and --outdir cannot be given with --to npy; tokenize without --to, then use "
            "packtok convert --to npy"
        )
    check_corpus("DATASET", inputs)
    with engine_checks(quiet=quiet), progress(quiet=quiet) as on_progress:
        counts = tokenize_shards(
            inputs, **own, existing=existing or "error", on_progress=on_progress, **options
        )
    show_counts(counts, as_json=as_json, quiet=quiet)


def are_undescribed(datasets: list[str]) -> bool:
    """Returns whether the arguments are files, folders, globs and URLs of a corpus without metadata.

    Raises:
        BadParameter: If only some are.
    """
    undescribed = [dataset for dataset in datasets if _is_undescribed(dataset)]
    if undescribed and len(undescribed) < len(datasets):
        described = next(dataset for dataset in datasets if dataset not in undescribed)
        raise typer.BadParameter(
            f"{undescribed[0]} has no metadata, but {described} is described; tokenize them separately, or "
            "run packtok data create-metadata first"
        )
    return bool(undescribed)


def _is_undescribed(text: str) -> bool:
    from packtok import _packtok
    from packtok.catalog.schema import METADATA_NAMES

    if text.startswith("@"):
        return True
    if os.path.isdir(text):
        return not any((Path(text) / name).is_file() for name in METADATA_NAMES)
    if os.path.lexists(text):
        return not text.endswith((".json", ".yaml", ".yml"))
    return _packtok.is_url(text) or has_magic(text)


def check_undescribed(datasets: list[str], parts: int | None) -> None:
    """Raises a `BadParameter` if an option is given that needs metadata."""
    if parts is not None:
        raise typer.BadParameter(
            f"--parts needs described datasets, and {datasets[0]} has no metadata; run packtok data "
            "create-metadata first"
        )


def undescribed_remarks(token_dtype: str | None) -> tuple[str, ...]:
    """Returns a remark on each option that has no effect on inputs without metadata."""
    if token_dtype is None:
        return ()
    return ("--token-dtype has no effect: the tokenizer's largest id sets the width of the ids",)


def pbin_in(output_dir: str, file_prefix: str) -> str:
    """Returns the file that inputs without metadata are packed into."""
    return f"{output_dir.rstrip('/') or '/'}/{file_prefix}.pbin"


def _tokenize_undescribed(
    inputs: list[str],
    options: dict[str, Any],
    pbin: str,
    shard: str | None,
    outdir: str | None,
    *,
    join: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Packs inputs without metadata into a pbin, as `packtok pack` and `packtok join` do."""
    from packtok.commands import join as command
    from packtok.commands.output_folder import output_folder

    folder = outdir or f"{pbin}.shards"
    if join:
        with progress(quiet=quiet) as on_progress:
            counts = command.join(
                folder,
                pbin,
                existing=options.get("existing") or "error",
                max_rejects=options.get("max_rejects"),
                on_progress=on_progress,
            )
        show_counts(counts, as_json=as_json, quiet=quiet)
        return
    output = pbin if shard is None else folder
    is_unsharded = shard is None
    checked = checked_config(
        None,
        {**options, "input": inputs, "output": output},
        reads_corpus=is_unsharded,
        takes_folder=not is_unsharded,
    )
    with output_folder(Path(os.path.dirname(output))):
        pack_with(checked, shard, as_json=as_json, quiet=quiet)


def _show(written: dict[str, Any], output_dir: str, *, is_kept: bool, as_json: bool) -> None:
    from packtok.catalog.names import indexed_name

    if as_json:
        console.as_json(written)
        return
    details = written["details"]
    counts = f"{console.count(details['documents'])} documents, {console.count(details['tokens'])} tokens"
    name = indexed_name(Path(output_dir))
    state = " (kept: complete and what this command would write)" if is_kept else ""
    print(
        console.printable(": ".join([output_dir, *([name] if name is not None else []), f"{counts}{state}"]))
    )

"""`packtok sample`: samples of token files for encoder-decoder training."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from packtok.cli import console
from packtok.cli.options import JsonOption, QuietOption, check_inputs, check_output
from packtok.cli.progress import progress
from packtok.cli.sample_import import import_
from packtok.errors import ConfigError

if TYPE_CHECKING:
    from packtok.commands.sample import Sampling


class SampleGroup(TyperGroup):
    """A group that takes any other first word for the path of a recipe."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Finds the requested command, or `recipe`."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            return "recipe", self.get_command(ctx, "recipe"), args
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=SampleGroup,
    help="Draw samples from token files: ab and concat are CEPE's, RECIPE.yaml one of your own.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Out = Annotated[str, typer.Argument(metavar="OUT", help="The folder to write to.")]
Dec = Annotated[str, typer.Argument(metavar="DEC", help="Tokens of the decoder.")]
Eval = Annotated[str, typer.Argument(metavar="EVAL", help="Samples of the test side; 2e6 is a number.")]
Train = Annotated[str, typer.Argument(metavar="TRAIN", help="Samples of the train side.")]
Tokens = Annotated[
    str | None,
    typer.Option(
        "--tokens", metavar="DIR", help="Folder with the token files, in folders named after the domains."
    ),
]
TokenizerName = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        "-t",
        metavar="NAME|FILE",
        help="Decodes the retrieval corpus. [default: beside the files]",
    ),
]
DtypeOption = Annotated[
    Literal["uint16", "uint32", "int32"] | None,
    typer.Option("--dtype", help="Type of the ids; int32 for torch < 2.3. [default: as the token files]"),
]
CompressionOption = Annotated[
    str | None, typer.Option("--compression", metavar="zstd:LEVEL", help="Compress the MDS files.")
]
OriginOption = Annotated[
    bool, typer.Option("--origin", help="Add the columns source and start: file and position of a sample.")
]
ShortOption = Annotated[
    bool, typer.Option("--allow-short", "--allow_short", help="Accept fewer samples than requested.")
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        metavar="k/N|k|auto", help="Write only part k of N, from 0, for --join; auto: k from Slurm."
    ),
]
JoinOption = Annotated[bool, typer.Option("--join", help="Publish what all parts have written.")]
OutdirOption = Annotated[
    str | None,
    typer.Option(help="Folder in which each part leaves a marker for packtok status. [default: none]"),
]
ExistingOutputs = Annotated[
    Literal["error", "skip", "replace"],
    typer.Option(
        "--existing", help="skip keeps finished outputs of the same plan; another plan is an error."
    ),
]
CpusOption = Annotated[
    int | None,
    typer.Option(
        "--num-cpus", "--num_cpus", "-j", min=1, help="Threads. [default: all CPUs of this process]"
    ),
]
ChunkOption = Annotated[
    int | None,
    typer.Option("--retrieval-chunk", "--retrieval_chunk", min=1, help="Tokens of a chunk. [default: 512]"),
]
ShardsOption = Annotated[
    int | None,
    typer.Option(
        "--retrieval-shards", "--retrieval_shards", min=0, help="Shards; 0 for none. [default: 100]"
    ),
]


@app.command()
def ab(
    out: Out,
    total: Annotated[str, typer.Argument(metavar="TOTAL", help="Tokens of a sample; exceeds DEC.")],
    dec: Dec,
    eval_: Eval,
    train: Train,
    tokens: Tokens = None,
    dtype: DtypeOption = None,
    compression: CompressionOption = None,
    origin: OriginOption = False,
    allow_short: ShortOption = False,
    shard: ShardOption = None,
    join: JoinOption = False,
    outdir: OutdirOption = None,
    existing: ExistingOutputs = "skip",
    num_cpus: CpusOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Samples of documents of at least TOTAL tokens of arxiv and book, as CEPE's sample_mds_ab.py."""
    _draw(
        "ab",
        quiet=quiet,
        as_json=as_json,
        out=out,
        total=total,
        dec=dec,
        eval_=eval_,
        train=train,
        tokens=tokens,
        dtype=dtype,
        compression=compression,
        origin=origin,
        allow_short=allow_short,
        shard=shard,
        join=join,
        outdir=outdir,
        existing=existing,
        num_cpus=num_cpus,
    )


@app.command()
def concat(
    out: Out,
    enc: Annotated[str, typer.Argument(metavar="ENC", help="Tokens of the context.")],
    dec: Dec,
    eval_: Eval,
    train: Train,
    retrieval: Annotated[
        str, typer.Argument(metavar="RETRIEVAL", help="Chunks of each shard of the retrieval corpus.")
    ],
    only: Annotated[
        str | None,
        typer.Argument(metavar="[SHARD]", help="The only retrieval shard to write. [default: all]"),
    ] = None,
    tokens: Tokens = None,
    tokenizer: TokenizerName = None,
    retrieval_chunk: ChunkOption = None,
    retrieval_shards: ShardsOption = None,
    dtype: DtypeOption = None,
    compression: CompressionOption = None,
    origin: OriginOption = False,
    allow_short: ShortOption = False,
    shard: ShardOption = None,
    join: JoinOption = False,
    outdir: OutdirOption = None,
    existing: ExistingOutputs = "skip",
    num_cpus: CpusOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Samples of concatenated documents of seven domains, as CEPE's sample_mds_concat.py."""
    _draw(
        "concat",
        quiet=quiet,
        as_json=as_json,
        out=out,
        enc=enc,
        dec=dec,
        eval_=eval_,
        train=train,
        retrieval=retrieval,
        only=only,
        tokens=tokens,
        tokenizer=tokenizer,
        retrieval_chunk=retrieval_chunk,
        retrieval_shards=retrieval_shards,
        dtype=dtype,
        compression=compression,
        origin=origin,
        allow_short=allow_short,
        shard=shard,
        join=join,
        outdir=outdir,
        existing=existing,
        num_cpus=num_cpus,
    )


@app.command(hidden=True)
def recipe(
    path: Annotated[str, typer.Argument(metavar="RECIPE.yaml", help="The recipe.")],
    out: Annotated[str, typer.Option("--output", "-o", metavar="OUT", help="The folder to write to.")],
    tokens: Tokens = None,
    tokenizer: TokenizerName = None,
    only: Annotated[
        int | None,
        typer.Option("--retrieval-shard", "--retrieval_shard", min=0, help="The only one to write."),
    ] = None,
    retrieval_chunk: ChunkOption = None,
    retrieval_shards: ShardsOption = None,
    dtype: DtypeOption = None,
    compression: CompressionOption = None,
    origin: OriginOption = False,
    allow_short: ShortOption = False,
    shard: ShardOption = None,
    join: JoinOption = False,
    outdir: OutdirOption = None,
    existing: ExistingOutputs = "skip",
    num_cpus: CpusOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Samples of a recipe: packtok sample RECIPE.yaml -o OUT."""
    _draw(
        "recipe",
        quiet=quiet,
        as_json=as_json,
        path=path,
        out=out,
        only=only,
        tokens=tokens,
        tokenizer=tokenizer,
        retrieval_chunk=retrieval_chunk,
        retrieval_shards=retrieval_shards,
        dtype=dtype,
        compression=compression,
        origin=origin,
        allow_short=allow_short,
        shard=shard,
        join=join,
        outdir=outdir,
        existing=existing,
        num_cpus=num_cpus,
    )


@app.command()
def pack(
    out: Out,
    tokens: Annotated[
        str, typer.Option("--tokens", metavar="DIR", help="Folder with a folder of token files per domain.")
    ],
    length: Annotated[str, typer.Option("--length", "-l", help="The most tokens of a row.")] = "65536",
    min_length: Annotated[
        str, typer.Option("--min-length", "--min_length", help="Leave out documents with fewer tokens.")
    ] = "0",
    by_length: Annotated[
        str | None,
        typer.Option(
            "--by-length",
            "--by_length",
            metavar="N,N...",
            help="Cut documents into pieces of these lengths, which divide --length.",
        ),
    ] = None,
    compression: CompressionOption = None,
    shard: ShardOption = None,
    join: JoinOption = False,
    outdir: OutdirOption = None,
    existing: ExistingOutputs = "skip",
    num_cpus: CpusOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Rows of whole long documents, packed by best fit, as ProLong's training reads them."""
    _draw(
        "pack",
        quiet=quiet,
        as_json=as_json,
        out=out,
        tokens=tokens,
        length=length,
        min_length=min_length,
        by_length=by_length,
        compression=compression,
        shard=shard,
        join=join,
        outdir=outdir,
        existing=existing,
        num_cpus=num_cpus,
    )


app.command("import")(import_)


def _count(name: str, text: str) -> int:
    from packtok.sample.recipe import count

    try:
        return count(text)
    except ValueError as error:
        raise ConfigError(f"{name}: is {text!r}; expected {error}") from None


def prepared(name: str, arguments: Mapping[str, Any]) -> "Sampling":
    """Checks the arguments of a command of this group and finds its files.

    Args:
        name: ``"ab"``, ``"concat"``, ``"recipe"`` or ``"pack"``.
        arguments: Their values by parameter of the command.

    Raises:
        ConfigError: If an argument is invalid.
    """
    from packtok.commands.sample import prepare_packing, prepare_samples

    check_output("OUT", arguments["out"], is_folder=True)
    check_output("--outdir", arguments["outdir"], is_folder=True)
    if arguments["tokens"] is not None:
        check_inputs("--tokens", [arguments["tokens"]])
    common = {key: arguments[key] for key in ("tokens", "compression", "existing", "outdir")}
    if name == "pack":
        by_length = [] if arguments["by_length"] is None else arguments["by_length"].split(",")
        return prepare_packing(
            arguments["out"],
            length=_count("--length", arguments["length"]),
            min_length=_count("--min-length", arguments["min_length"]),
            by_length=[_count("--by-length", text) for text in by_length],
            **common,
        )
    common |= {key: arguments[key] for key in ("dtype", "origin", "allow_short")}
    if name == "ab":
        return prepare_samples("ab", arguments["out"], **_numbers_of_ab(arguments), **common)
    common |= {key: arguments[key] for key in ("tokenizer", "retrieval_chunk", "retrieval_shards")}
    if name == "concat":
        return prepare_samples("concat", arguments["out"], **_numbers_of_concat(arguments), **common)
    check_inputs("RECIPE", [arguments["path"]])
    return prepare_samples(arguments["path"], arguments["out"], retrieval_shard=arguments["only"], **common)


def _numbers_of_ab(arguments: Mapping[str, Any]) -> dict[str, Any]:
    total, decoder = _count("TOTAL", arguments["total"]), _count("DEC", arguments["dec"])
    if total <= decoder:
        raise ConfigError(f"TOTAL: is {total}; it must exceed DEC, which is {decoder}")
    return {
        "context": total - decoder,
        "decoder": decoder,
        "test": _count("EVAL", arguments["eval_"]),
        "train": _count("TRAIN", arguments["train"]),
    }


def _numbers_of_concat(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "context": _count("ENC", arguments["enc"]),
        "decoder": _count("DEC", arguments["dec"]),
        "test": _count("EVAL", arguments["eval_"]),
        "train": _count("TRAIN", arguments["train"]),
        "retrieval": _count("RETRIEVAL", arguments["retrieval"]),
        "retrieval_shard": None if arguments["only"] is None else _count("SHARD", arguments["only"]),
    }


def _draw(name: str, *, as_json: bool, quiet: bool, **arguments: Any) -> None:
    """Carries out a command of this group and prints its report."""
    shard, join = arguments["shard"], arguments["join"]
    if shard is not None and join:
        raise typer.BadParameter("--shard and --join are given; give only one")
    with progress(quiet=quiet, idle="planning") as on_progress:
        sampling = prepared(name, arguments)
        report = sampling.run(shard, join=join, num_cpus=arguments["num_cpus"], on_progress=on_progress)
    if as_json:
        console.as_json(report)
    elif name == "pack":
        _show_rows(report, quiet=quiet)
    else:
        _show(report, quiet=quiet)


def _show_rows(report: dict[str, Any], *, quiet: bool) -> None:
    done = "part written" if report["is_part"] else "complete"
    rows, count = console.count(report["rows"]), console.count(report["tokens"])
    print(console.printable(f"{report['output']}: {rows} rows, {count} tokens, {done}"))
    names = ("documents", "rows", "short_rows", "cut", "too_short", "too_short_tokens", "left_over_tokens")
    if not quiet:
        _show_table(("domain",), names, report["domains"])


def _show(report: dict[str, Any], *, quiet: bool) -> None:
    done = "part written" if report["is_part"] else "complete"
    counts = {name: report[f"{name}_samples"] for name in ("test", "train", "retrieval")}
    numbers = ", ".join(f"{console.count(number)} {name}" for name, number in counts.items())
    suffix = f" ({report['kept']} finished outputs were kept)" if report["kept"] else ""
    print(console.printable(f"{report['output']}: {numbers} samples, {done}{suffix}"))
    if quiet:
        return
    names = ("documents", "too_short", "available", "used", "over_quota", "tail_tokens")
    _show_table(("side", "domain"), names, report["sides"])
    if report["files_of_no_domain"]:
        files = report["files_of_no_domain"]
        print(console.printable(f"files of no domain: {console.listed(files[:5], len(files))}"))


def _show_table(labels: tuple[str, ...], names: tuple[str, ...], lines: list[dict[str, Any]]) -> None:
    """Prints columns of labels and of numbers, with a line of their names."""
    rows = [[*labels, *(name.replace("_", " ") for name in names)]]
    rows += [
        [*(line[label] for label in labels), *(console.count(line[name]) for name in names)] for line in lines
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = zip(row, widths, strict=True)
        padded_cells = [
            cell.ljust(width) if i < len(labels) else cell.rjust(width)
            for i, (cell, width) in enumerate(cells)
        ]
        print(console.printable("  ".join(padded_cells).rstrip()))

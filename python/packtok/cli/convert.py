"""`packtok convert`: writes the documents of token files in another format."""

from typing import Annotated

import typer

from packtok.cli.merge import show_counts
from packtok.cli.options import (
    AcceptLossOption,
    AddTokensOption,
    BoundariesOption,
    ExistingOption,
    InputDtypeOption,
    JsonOption,
    QuietOption,
    TokenFormat,
    TokenFormatOption,
    TokenizerOption,
    check_inputs,
    check_output,
)
from packtok.cli.progress import engine_checks, progress


def convert(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Token files, which are joined, or a folder of them."),
    ],
    *,
    to: Annotated[TokenFormat, typer.Option("--to", help="The format to write.")],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="The file or common name to write; with --to litdata, npy or parquet, and of a folder, a "
            "folder.",
        ),
    ],
    format: TokenFormatOption = None,
    input_dtype: InputDtypeOption = None,
    boundaries: BoundariesOption = None,
    link: Annotated[
        bool,
        typer.Option(
            "--link",
            help="With --to megatron, datatrove, dolma or raw: link the tokens instead of copying them.",
        ),
    ] = False,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            help="Write shards of at most so many tokens. "
            "[default: 2^30 with --to npy, 2^27 with parquet, 2^24 with litdata]",
        ),
    ] = None,
    multiple_of: Annotated[
        int | None,
        typer.Option(
            "--multiple-of", help="Cut shards at multiples of so many tokens, not between documents."
        ),
    ] = None,
    accept_loss: AcceptLossOption = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            help="The type of ids to write: with --to cepe-npy int64 or uint32; with dolma, litdata, llm-c, "
            "npy and raw uint16 or uint32. [default: int64; what the vocabulary needs]",
        ),
    ] = None,
    tokenizer: TokenizerOption = None,
    add_special_tokens_from_config: AddTokensOption = False,
    existing: ExistingOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the documents of token files in another format, without tokenizing again."""
    from packtok.commands import convert as command

    check_inputs("FILE", files)
    check_output("--output", output, is_folder=True)
    with engine_checks(quiet=quiet), progress(quiet=quiet) as on_progress:
        counts = command.convert(
            files,
            output,
            to=to,
            format=format,
            input_dtype=input_dtype,
            boundaries=boundaries,
            link=link,
            max_tokens=max_tokens,
            multiple_of=multiple_of,
            accept_loss=accept_loss or (),
            dtype=dtype,
            tokenizer=tokenizer,
            add_special_tokens_from_config=add_special_tokens_from_config,
            existing=existing or "error",
            on_progress=on_progress,
        )
    show_counts(counts, as_json=as_json, quiet=quiet)

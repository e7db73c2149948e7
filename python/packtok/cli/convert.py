"""`packtok convert`: writes the documents of a token file in another format."""

from typing import Annotated, Literal

import typer

from packtok.cli.merge import show_counts
from packtok.cli.options import (
    AddTokensOption,
    ExistingOption,
    JsonOption,
    QuietOption,
    TokenizerOption,
    check_inputs,
    check_output,
)
from packtok.cli.progress import engine_checks, progress


def convert(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The token file, or a folder of them.")],
    *,
    to: Annotated[
        Literal["pbin", "cepe-npy", "megatron", "datatrove"],
        typer.Option("--to", help="The format to write."),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="OUT", help="The file or common name to write; of a folder, a folder."
        ),
    ],
    format: Annotated[
        Literal["pbin", "cepe-npy", "megatron", "datatrove"] | None,
        typer.Option("--format", help="The format to read. [default: by content]"),
    ] = None,
    link: Annotated[
        bool, typer.Option("--link", help="With --to megatron: link the pbin instead of copying it.")
    ] = False,
    accept_loss: Annotated[
        list[str] | None,
        typer.Option("--accept-loss", metavar="NAME", help="Lose what OUT cannot hold; repeatable."),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="With --to cepe-npy: int64 or uint32. [default: int64]")
    ] = None,
    tokenizer: TokenizerOption = None,
    add_special_tokens_from_config: AddTokensOption = False,
    existing: ExistingOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the documents of a token file in another format, without tokenizing again."""
    from packtok.commands import convert as command

    check_inputs("FILE", [file])
    check_output("--output", output, is_folder=True)
    with engine_checks(quiet=quiet), progress(quiet=quiet) as on_progress:
        counts = command.convert(
            file,
            output,
            to=to,
            format=format,
            link=link,
            accept_loss=accept_loss or (),
            dtype=dtype,
            tokenizer=tokenizer,
            add_special_tokens_from_config=add_special_tokens_from_config,
            existing=existing or "error",
            on_progress=on_progress,
        )
    show_counts(counts, as_json=as_json, quiet=quiet)

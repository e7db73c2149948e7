"""`packtok explore`: serves a page with datasets, and documents down to the token."""

import json
import sys
from typing import Annotated

import typer

from packtok.cli import console
from packtok.cli.options import (
    AddTokensOption,
    BoundariesOption,
    InputDtypeOption,
    JsonOption,
    TokenFormatOption,
)


def explore(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]",
            help="A token file, or the base directory. [default: the base directory, or the files of --run]",
        ),
    ] = None,
    base_dir: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Folder of the datasets. [default: $PACKTOK_BASE_DIR]"),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address; every one but a loopback address requires an access token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any free port.")] = 8000,
    tokenizer: Annotated[
        str | None,
        typer.Option("--tokenizer", "-t", metavar="NAME|FILE", help="For files that do not name theirs."),
    ] = None,
    add_special_tokens_from_config: AddTokensOption = False,
    format: TokenFormatOption = None,
    input_dtype: InputDtypeOption = None,
    boundaries: BoundariesOption = None,
    token_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File with the access token. [default: a random token, if needed]"),
    ] = None,
    socket: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Unix socket to listen on instead, for this user only."),
    ] = None,
    base_path: Annotated[
        str, typer.Option(metavar="PATH", help="Path below which a proxy serves the pages.")
    ] = "",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Host name that a proxy forwards; can be repeated."),
    ] = None,
    run: Annotated[
        str | None, typer.Option(metavar="CONFIG", help="Show the batches of a run; as in packtok locate.")
    ] = None,
    state: Annotated[
        str | None, typer.Option(metavar="FILE", help="A saved loader state of the run; overrides loader.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show datasets and their documents, down to the token, in the browser, until Ctrl-C."""
    from packtok.commands import explore as command

    def show(url: str, token: str | None) -> None:
        print(json.dumps({"url": url}) if as_json else url, flush=True)
        if token is not None:
            console.remark("the page asks for this access token, which is shown only once:")
            print(token, file=sys.stderr, flush=True)

    command.explore(
        path,
        base_dir=base_dir,
        host=host,
        port=port,
        tokenizer=tokenizer,
        add_special_tokens_from_config=add_special_tokens_from_config,
        format=format,
        input_dtype=input_dtype,
        boundaries=boundaries,
        token_file=token_file,
        socket=socket,
        base_path=base_path,
        allow_host=allow_host or (),
        run=run,
        state=state,
        on_ready=show,
    )

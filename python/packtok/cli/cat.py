"""`packtok cat`: documents of a pbin as text or ids."""

from typing import TYPE_CHECKING, Annotated

import typer

from packtok.cli import console
from packtok.cli.options import TokenizerOption

if TYPE_CHECKING:
    from packtok import Tokenizer


def cat(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The pbin.")],
    documents: Annotated[
        str, typer.Option("--documents", "-d", help="One number, or a range such as 0:3.")
    ] = "0:1",
    ids: Annotated[bool, typer.Option("--ids/--text", help="Print ids, or the decoded text.")] = False,
    tokenizer: TokenizerOption = None,
) -> None:
    """Print documents of a pbin, decoded by the tokenizer beside it or by --tokenizer."""
    from packtok import PbinReader

    reader = PbinReader(file)
    numbers = document_numbers(documents, len(reader))
    decoder = None if ids else _decoder(file, tokenizer)
    for i in numbers:
        tokens = reader[i].tolist()
        if decoder is None:
            print(f"{i}:", *tokens)
        else:
            print(f"--- document {i:,}, {len(tokens):,} tokens")
            print(console.printable(decoder.decode(tokens), keep="\n\t"))


def document_numbers(text: str, num_documents: int) -> range:
    """What ``3``, ``0:3``, ``:3`` or ``-2:`` mean in a file of ``num_documents``."""
    first, colon, last = text.partition(":")
    try:
        start = int(first) if first else None
        stop = int(last) if last else None
    except ValueError:
        raise typer.BadParameter(f"--documents {text}: expected a number, or a range such as 0:3") from None
    if colon:
        return range(num_documents)[start:stop]
    if start is None or not -num_documents <= start < num_documents:
        raise typer.BadParameter(
            f"--documents {text}: the file has {num_documents:,} documents, counted from 0"
        )
    return range(num_documents)[start : start + 1 or None]


def _decoder(file: str, name: str | None) -> "Tokenizer":
    from packtok.merging import beside
    from packtok.tokenizer import find_tokenizer

    name = name or beside(file)
    if name is None:
        raise typer.BadParameter(f"{file}: no tokenizer lies beside it; give --tokenizer, or print --ids")
    return find_tokenizer(name).tokenizer

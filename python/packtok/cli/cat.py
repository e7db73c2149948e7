"""`packtok cat`: prints documents of a token file as text or ids."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from packtok.cli import console
from packtok.cli.options import (
    AddTokensOption,
    BoundariesOption,
    InputDtypeOption,
    JsonOption,
    TokenFormatOption,
    TokenizerOption,
    check_inputs,
)
from packtok.cli.progress import engine_checks

if TYPE_CHECKING:
    from packtok import PbinReader, Tokenizer


def cat(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A token file, of any format.")],
    documents: Annotated[
        str, typer.Option("--documents", "-d", help="One number, or a range such as 0:3.")
    ] = "0:1",
    ids: Annotated[bool, typer.Option("--ids/--text", help="Print ids, or the decoded text.")] = False,
    tokenizer: TokenizerOption = None,
    add_special_tokens_from_config: AddTokensOption = False,
    format: TokenFormatOption = None,
    input_dtype: InputDtypeOption = None,
    boundaries: BoundariesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print documents of a token file, decoded with the tokenizer next to it or with --tokenizer."""
    from packtok import PbinReader

    check_inputs("FILE", [file])
    reader = PbinReader(file, format, input_dtype, boundaries)
    numbers = document_numbers(documents, len(reader))
    decoder = None if ids else _decoder(reader, tokenizer, add_special_tokens_from_config)
    if as_json:
        _show_json(reader, numbers, decoder)
        return
    for i in numbers:
        tokens = reader[i].tolist()
        if decoder is None:
            print(f"{i}:", *tokens)
        else:
            origin = reader.origin(i)
            came_from = "" if origin is None else f", from {console.printable(str(origin))}"
            print(f"--- document {i:,}, {len(tokens):,} tokens{came_from}")
            print(console.printable(decoder.decode(tokens), keep="\n\t"))


def _show_json(reader: "PbinReader", numbers: range, decoder: "Tokenizer | None") -> None:
    """Prints a JSON list, with one document at a time in memory."""
    separator = "[\n"
    for i in numbers:
        tokens = reader[i].tolist()
        content = {"ids": tokens} if decoder is None else {"text": decoder.decode(tokens)}
        origin = reader.origin(i)
        came_from = {} if origin is None else {"origin": origin.to_dict()}
        document = {"document": i, "tokens": len(tokens), **came_from, **content}
        print(separator, json.dumps(document), sep="", end="")
        separator = ",\n"
    print("\n]" if numbers else "[]", flush=True)


def document_numbers(text: str, num_documents: int) -> range:
    """Parses ``3``, ``0:3``, ``:3`` or ``-2:`` for a file with ``num_documents``."""
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


def _decoder(reader: "PbinReader", name: str | None, adds: bool) -> "Tokenizer":
    from packtok.commands.convert import tokenizer_beside
    from packtok.tokenizer.find import find_tokenizer

    file = str(reader.path)
    name = name or tokenizer_beside(file)
    if name is None:
        raise typer.BadParameter(
            f"{file}: no tokenizer found next to the file; give --tokenizer, or use --ids"
        )
    with engine_checks(quiet=False):
        decoder = find_tokenizer(name, adds).tokenizer
    file_tokenizer = (reader.metadata or {}).get("tokenizer")
    if file_tokenizer and file_tokenizer["fingerprint"] != decoder.fingerprint:
        console.remark(
            f"warning: {reader.path} was packed with tokenizer {file_tokenizer['name']}, not {name}; the "
            "text may differ from that of the documents"
        )
    return decoder

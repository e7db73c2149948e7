"""`packtok inspect`: shows headers, trailers and descriptions of token files; reads no tokens."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.options import (
    BoundariesOption,
    InputDtypeOption,
    JsonOption,
    TokenFormatOption,
    check_inputs,
)
from packtok.text_counts import recorded_text_counts

if TYPE_CHECKING:
    from packtok import PbinReader
    from packtok.data.token_sources import TokenFiles

BAR_CHARS = 40
SOURCES_SHOWN = 10


def inspect(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A token file, or a tokenized dataset: folder, metadata file, name."
        ),
    ],
    chunk_tokens: Annotated[
        int | None,
        typer.Option(
            "--chunk-tokens", min=1, help="With a folder of NPY files: length of the chunks. [default: 4096]"
        ),
    ] = None,
    format: TokenFormatOption = None,
    input_dtype: InputDtypeOption = None,
    boundaries: BoundariesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a pbin or a tokenized dataset contains: tokens, documents, tokenizer, sources, lengths."""
    from packtok import PbinReader
    from packtok.commands.npy_folder import is_token_folder
    from packtok.data.token_sources import files_of_dataset, is_described

    check_inputs("FILE", [file])
    if is_token_folder(file):
        _show_folder(file, chunk_tokens, as_json=as_json)
        return
    if chunk_tokens is not None:
        raise typer.BadParameter(f"--chunk-tokens needs a folder of NPY files, and {file} is not one")
    if os.path.isdir(file) or is_described(file):
        _show_dataset(describe_dataset(file, files_of_dataset(file, console.remark)), as_json=as_json)
        return
    facts = describe(PbinReader(file, format, input_dtype, boundaries))
    if as_json:
        console.as_json(facts)
        return
    console.table(_rows(facts))
    for line in histogram(facts["document_tokens"]):
        print(line)


def _show_folder(folder: str, chunk_tokens: int | None, *, as_json: bool) -> None:
    from packtok.commands.token_folder import CHUNK_TOKENS, inspect_folder

    facts = inspect_folder(folder, chunk_tokens=chunk_tokens or CHUNK_TOKENS)
    if as_json:
        console.as_json(facts)
        return
    rows = [*facts["domains"], {"domain": "all", **facts["total"]}]
    chunks = f"chunks of {facts['chunk_tokens']:,}"
    console.table(
        (
            domain["domain"],
            f"{domain['files']:,} files, {domain['documents']:,} documents, {domain['tokens']:,} tokens, "
            f"{domain['chunks']:,} {chunks}",
        )
        for domain in rows
    )


def _show_dataset(facts: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        console.as_json(facts)
        return
    rows = [
        ("dataset", ", ".join(filter(None, (facts["name"], facts["path"])))),
        ("tokenizer", f"{facts['tokenizer'] or 'unknown'}, {_or_unknown(facts['vocab_size'])} ids"),
        ("token width", f"{facts['token_bytes']} bytes"),
        ("documents", _or_unknown(facts["documents"])),
        ("tokens", console.count(facts["tokens"])),
    ]
    if facts["padding_tokens"]:
        rows.append(("padding", f"{console.count(facts['padding_tokens'])} zeros at the ends of files"))
    files = facts["files"]
    rows.append(("files", console.count(len(files))))
    rows += [
        ("", f"{file['path']}, {console.size(file['file_bytes'])}, {file['tokens']:,} tokens")
        for file in files[:SOURCES_SHOWN]
    ]
    if len(files) > SOURCES_SHOWN:
        rows.append(("", f"and {len(files) - SOURCES_SHOWN:,} more; --json lists all"))
    console.table(rows)


def _or_unknown(number: int | None) -> str:
    return "unknown" if number is None else console.count(number)


def describe_dataset(path: str, token_files: "TokenFiles") -> dict[str, Any]:
    """Returns everything `packtok inspect` shows of a dataset, as JSON-serializable values.

    Files without a header record no documents, so their number is ``None``.
    """
    metadata = token_files.metadata
    info = None if metadata is None else metadata.tokenized_info
    files = [_pbin(file) for file in token_files.files.get("paths", ())]
    files += [_raw_file(entry) for entry in token_files.files.get("entries", ())]
    documents = [file["documents"] for file in files]
    return {
        "path": path if metadata is None else str(metadata.path),
        "name": None if metadata is None else metadata.name,
        "tokenizer": None if info is None else info.tokenizer,
        "vocab_size": token_files.vocab_size,
        "token_bytes": files[0]["token_bytes"],
        "documents": None if None in documents else sum(documents),
        "tokens": sum(file["tokens"] for file in files),
        "padding_tokens": sum(file["padding_tokens"] for file in files),
        "files": files,
    }


def _pbin(path: str) -> dict[str, Any]:
    from packtok import PbinReader

    reader = PbinReader(path)
    return {
        "path": path,
        "file_bytes": reader.file_bytes,
        "token_bytes": reader.dtype.itemsize,
        "documents": len(reader),
        "tokens": reader.num_tokens,
        "padding_tokens": 0,
    }


def _raw_file(entry: Sequence[Any]) -> dict[str, Any]:
    path, file_bytes, token_bytes, _, tokens, *_ = entry
    return {
        "path": os.fspath(path),
        "file_bytes": file_bytes,
        "token_bytes": token_bytes,
        "documents": None,
        "tokens": tokens,
        "padding_tokens": file_bytes // token_bytes - tokens,
    }


def describe(reader: "PbinReader") -> dict[str, Any]:
    """Returns everything `packtok inspect` shows, as JSON-serializable values."""
    return {
        "path": str(reader.path),
        "dialect": reader.dialect,
        "trailer": reader.metadata is not None,
        "token_bytes": reader.dtype.itemsize,
        "documents": len(reader),
        "tokens": reader.num_tokens,
        "data_bytes": reader.data_bytes,
        "file_bytes": reader.file_bytes,
        "loss_mask": reader.has_loss_mask,
        "metadata": reader.metadata,
        "sources": reader.sources,
        "document_tokens": [
            {"from": start, "below": stop, "documents": number}
            for start, stop, number in reader.document_lengths_histogram()
        ],
    }


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("file", f"{facts['path']}, {console.size(facts['file_bytes'])}"),
        ("consistent", _consistency(facts)),
        ("token width", f"{facts['token_bytes']} bytes"),
        ("documents", console.count(facts["documents"])),
        ("tokens", console.count(facts["tokens"])),
    ]
    if facts["loss_mask"]:
        rows.append(("loss mask", "recorded: TokenDataset sets labels that do not count to -100"))
    rows += _metadata_rows(facts["metadata"] or {})
    sources = facts["sources"]
    rows.append(("sources", console.count(len(sources)) if sources else "unknown"))
    rows += [("", f"{source['path']}, {console.size(source['bytes'])}") for source in sources[:SOURCES_SHOWN]]
    if len(sources) > SOURCES_SHOWN:
        rows.append(("", f"and {len(sources) - SOURCES_SHOWN:,} more; --json lists all"))
    return rows


def _consistency(facts: dict[str, Any]) -> str:
    if facts["trailer"]:
        return "yes: header, index and trailer agree; packtok verify checks every byte"
    return f"header and index agree; no trailer for further checks ({facts['dialect']})"


def _metadata_rows(metadata: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns rows for the trailer's metadata; joined and older files may have less of it."""
    rows = []
    if tokenizer := metadata.get("tokenizer"):
        named = (
            f"{tokenizer['name']}, {tokenizer['vocab_size']:,} ids, fingerprint {tokenizer['fingerprint']}"
        )
        rows.append(("tokenizer", named))
    for role in ("eod", "bos"):
        if token := metadata.get(role):
            rows.append((role.upper(), f"{token['token']} = {token['id']:,}"))
    if counts := metadata.get("counts"):
        parts = " + ".join(f"{counts[name]:,} {name}" for name in ("packed", "empty", "blank", "rejected"))
        rows += [
            ("lines", f"{counts['lines']:,} = {parts}"),
            ("EODs in texts", console.count(counts["eods_in_text"])),
        ]
        rows += _text_rows(metadata)
    if options := metadata.get("options"):
        rows.append(("options", ", ".join(f"{name} {_value_text(item)}" for name, item in options.items())))
    if metadata.get("stopped_early"):
        rows.append(("stopped", "at a limit on documents or tokens; the corpus has more"))
    if writer := metadata.get("writer"):
        rows.append(("written by", f"{writer['name']} {writer['version']}"))
    for step in metadata.get("steps", ()):
        named = step["step"] if step.get("value") is None else f"{step['step']} {step['value']}"
        rows.append(("step", f"{named}; leaves out {step['left_out']:,} documents"))
    for part in metadata.get("parts", ()):
        rows.append(("part", f"{part['name']}, {part['documents']:,} documents, {part['tokens']:,} tokens"))
    return rows


def _text_rows(metadata: dict[str, Any]) -> list[tuple[str, str]]:
    text = recorded_text_counts([metadata])
    if text is None or text.bytes_per_token is None:
        return []
    named = f"{text.bytes:,} bytes, {text.tokens:,} tokens, {text.bytes_per_token:.2f} bytes per token"
    return [("texts", named)]


def _value_text(item: Any) -> str:
    if isinstance(item, bool):
        return "yes" if item else "no"
    return console.count(item) if isinstance(item, int) else str(item)


def histogram(buckets: list[dict[str, int]]) -> list[str]:
    """Returns one line per bucket: lengths in tokens, a bar, and the number of documents."""
    most = max((bucket["documents"] for bucket in buckets), default=0)
    if most == 0:
        return []
    labels = [f"{bucket['from']:,}-{bucket['below'] - 1:,}" for bucket in buckets]
    width = max(len(label) for label in labels)
    lines = ["tokens per document"]
    for label, bucket in zip(labels, buckets, strict=True):
        number = bucket["documents"]
        # Show at least one character for every non-empty bucket.
        bar = "█" * max(round(BAR_CHARS * number / most), 1 if number else 0)
        lines.append(f"{label:>{width}}  {bar:<{BAR_CHARS}}  {number:,}")
    return lines

"""`packtok inspect`: shows the contents of a pbin from its header and trailer, without reading its tokens."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.options import JsonOption, check_inputs

if TYPE_CHECKING:
    from packtok import PbinReader

BAR_CHARS = 40
SOURCES_SHOWN = 10


def inspect(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The pbin.")],
    as_json: JsonOption = False,
) -> None:
    """Show what a pbin contains: tokens, documents, tokenizer, sources, lengths."""
    from packtok import PbinReader

    check_inputs("FILE", [file])
    facts = describe(PbinReader(file))
    if as_json:
        console.as_json(facts)
        return
    console.table(_rows(facts))
    for line in histogram(facts["document_tokens"]):
        print(line)


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
        ("consistent", _whole(facts)),
        ("token width", f"{facts['token_bytes']} bytes"),
        ("documents", console.count(facts["documents"])),
        ("tokens", console.count(facts["tokens"])),
    ]
    rows += _metadata_rows(facts["metadata"] or {})
    sources = facts["sources"]
    rows.append(("sources", console.count(len(sources)) if sources else "unknown"))
    rows += [("", f"{source['path']}, {console.size(source['bytes'])}") for source in sources[:SOURCES_SHOWN]]
    if len(sources) > SOURCES_SHOWN:
        rows.append(("", f"and {len(sources) - SOURCES_SHOWN:,} more; --json lists all"))
    return rows


def _whole(facts: dict[str, Any]) -> str:
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
    if options := metadata.get("options"):
        rows.append(("options", ", ".join(f"{name} {_shown(item)}" for name, item in options.items())))
    if metadata.get("stopped_early"):
        rows.append(("stopped", "at a limit on documents or tokens; the corpus has more"))
    if writer := metadata.get("writer"):
        rows.append(("written by", f"{writer['name']} {writer['version']}"))
    for part in metadata.get("parts", ()):
        rows.append(("part", f"{part['name']}, {part['documents']:,} documents, {part['tokens']:,} tokens"))
    return rows


def _shown(item: Any) -> str:
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

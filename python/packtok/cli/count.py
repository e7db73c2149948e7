"""`packtok count`: prints the number of tokens of a corpus, per source and in total, for tokenizers."""

import re
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.options import JsonOption, QuietOption, check_corpus, check_inputs, with_options
from packtok.cli.progress import engine_checks, progress
from packtok.config.options import SCAN_OPTIONS

ROWS_SHOWN = 20
BAR_CHARS = 40
# Minimum width for the names of sources; with less, plain lines are printed instead of a table.
SOURCE_CHARS = 20


@with_options("add_special_tokens", "special_tokens_in_text", "add_special_tokens_from_config", *SCAN_OPTIONS)
def count(
    corpus: Annotated[list[str], typer.Argument(metavar="CORPUS", help="Files, globs and folders.")],
    tokenizer: Annotated[
        list[str],
        typer.Option(
            "--tokenizer",
            "-t",
            metavar="NAME|FILE",
            help="tokenizer.json or its folder, built-in name, or hub name. Repeatable.",
        ),
    ],
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    **options: Any,
) -> None:
    """Count the documents, bytes and tokens of a corpus, without EODs."""
    from packtok.commands import count as command

    if options["source"] is None:
        check_corpus("CORPUS", corpus)
    check_inputs("--tokenizer", tokenizer)
    with engine_checks(quiet=quiet), progress(quiet=quiet) as on_progress:
        report = command.count(corpus, tokenizer, on_progress=on_progress, **options)
    console.remarks(report["notes"])
    if as_json:
        console.as_json(report)
    elif quiet:
        print(console.printable(_line(report)))
    else:
        _show(report)


def _show(report: dict[str, Any]) -> None:
    names = [tokenizer["name"] for tokenizer in report["tokenizers"]]
    header, rows = table(report)
    if sys.stdout.isatty():
        show_rich(header, rows)
    else:
        for line in aligned([header, *rows]):
            print(line)
    if report["ignored"]:
        print(console.printable(f"ignored  {console.ignored(report['ignored'])}"))
    if report["stopped_early"]:
        print("stopped at --max-documents; the corpus has more")
    print()
    for line in chart(names, report["total"]["bytes_per_token"]):
        print(line)
    total = report["total"]
    lines = " + ".join(f"{total[name]:,} {name}" for name in ("documents", "empty", "blank", "rejected"))
    print(f"\nlines {total['lines']:,} = {lines}; {report['seconds']:.1f} s on {report['num_cpus']} threads")


def _line(report: dict[str, Any]) -> str:
    total = report["total"]
    parts = [
        f"{tokenizer['name']} {tokens:,} tokens, {_ratio(ratio)} bytes per token"
        for tokenizer, tokens, ratio in zip(
            report["tokenizers"], total["tokens"], total["bytes_per_token"], strict=True
        )
    ]
    return "; ".join([f"{total['documents']:,} documents, {total['text_bytes']:,} bytes", *parts])


def table(report: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Returns header and rows as text: one row per source or group of sources, the last for the total."""
    header = ["source", "documents", "bytes"]
    for tokenizer in report["tokenizers"]:
        name = console.printable(tokenizer["name"])
        header += [f"{name} tokens", "bytes/token"]
    reached = [source for source in report["sources"] if source["lines"] or not report["stopped_early"]]
    groups = grouped(reached)
    return header, [_row(label, counted) for label, counted in [*groups, ("total", report["total"])]]


def _row(label: str, counted: dict[str, Any]) -> list[str]:
    row = [console.printable(label), f"{counted['documents']:,}", f"{counted['text_bytes']:,}"]
    for tokens, ratio in zip(counted["tokens"], counted["bytes_per_token"], strict=True):
        row += [f"{tokens:,}", _ratio(ratio)]
    return row


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"


def grouped(sources: Sequence[dict[str, Any]], rows: int = ROWS_SHOWN) -> list[tuple[str, dict[str, Any]]]:
    """Returns single sources, or groups them by folder if there are too many, keeping the largest folders."""
    if len(sources) <= rows:
        return [(source["path"], source) for source in sources]
    folders: dict[str, list[dict[str, Any]]] = {}
    for source in sources:
        folders.setdefault(str(PurePath(source["path"]).parent), []).append(source)
    groups = [(f"{folder}: {len(members):,} files", added(members)) for folder, members in folders.items()]
    if len(groups) <= rows:
        return groups
    by_size = sorted(range(len(groups)), key=lambda i: -groups[i][1]["text_bytes"])
    largest = set(by_size[: rows - 1])
    others = [counted for i, (_, counted) in enumerate(groups) if i not in largest]
    return [group for i, group in enumerate(groups) if i in largest] + [
        (f"{len(others):,} more folders", added(others))
    ]


def added(members: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the sum of the counts of several sources."""
    sums = {name: sum(member[name] for member in members) for name in ("documents", "text_bytes")}
    tokens = [sum(numbers) for numbers in zip(*(member["tokens"] for member in members), strict=True)]
    ratios = [sums["text_bytes"] / number if number else None for number in tokens]
    return {**sums, "tokens": tokens, "bytes_per_token": ratios}


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns lines with the first column left-aligned and the others right-aligned, without truncation."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0])] + [cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True)]
        )
        for row in rows
    ]


def chart(names: Sequence[str], ratios: Sequence[float | None]) -> list[str]:
    """Returns a bar chart of the bytes per token of each tokenizer; a longer bar means fewer tokens."""
    most = max((ratio for ratio in ratios if ratio), default=0.0)
    labels = [console.printable(name) for name in names]
    width = max(len(name) for name in labels)
    lines = ["bytes per token"]
    for name, ratio in zip(labels, ratios, strict=True):
        bar = "█" * (max(round(BAR_CHARS * ratio / most), 1) if ratio else 0)
        lines.append(f"{name:>{width}}  {bar:<{BAR_CHARS}}  {_ratio(ratio)}")
    return lines


def show_rich(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table for terminals, or plain lines if the numbers do not fit the terminal's width."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    screen = Console()
    # A title has two lines, because names of tokenizers are longer than numbers.
    titles = [re.sub(r" tokens$", "\ntokens", re.sub(r"^bytes/", "bytes/\n", name)) for name in header]
    columns = [[*title.split("\n"), *cells] for title, *cells in zip(titles, *rows, strict=True)]
    widths = [max(len(cell) for cell in column) + 3 for column in columns]
    if sum(widths[1:]) + SOURCE_CHARS > screen.width:
        for line in aligned([header, *rows]):
            print(line)
        return
    grid = Table(box=box.SIMPLE_HEAD)
    for i, title in enumerate(titles):
        # Text objects, so that rich does not parse names of files and tokenizers as markup.
        grid.add_column(Text(title), justify="left" if i == 0 else "right", overflow="fold", no_wrap=i > 0)
    for i, row in enumerate(rows):
        is_last = i == len(rows) - 1
        grid.add_row(*map(Text, row), end_section=i == len(rows) - 2, style="bold" if is_last else "")
    screen.print(grid)

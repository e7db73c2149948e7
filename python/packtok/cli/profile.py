"""`packtok data profile`: what the documents of token files contain."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.options import (
    BoundariesOption,
    InputDtypeOption,
    JsonOption,
    QuietOption,
    TokenFormatOption,
    TokenizerOption,
    check_inputs,
)
from packtok.cli.progress import progress

# Figures about texts, with the name of what occurs.
COUNTED = {
    "emails": "e-mail addresses",
    "phones": "phone numbers",
    "keys": "secret keys",
    "control_characters": "control characters",
    "replacement_characters": "U+FFFD",
}
_SCRIPTS_SHOWN = 6
_TOKENS_SHOWN = 8
_WORD_CHARS = 40


def profile(
    path: Annotated[
        str,
        typer.Argument(metavar="PATH", help="Token files: a file, folder or manifest, or a dataset by name."),
    ],
    sample_size: Annotated[
        int | None,
        typer.Option("--sample-size", metavar="TOKENS", help="Tokens to examine. [default: 10000000]"),
    ] = None,
    tokenizer: TokenizerOption = None,
    format: TokenFormatOption = None,
    input_dtype: InputDtypeOption = None,
    boundaries: BoundariesOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show what documents contain: duplicates, scripts, repetition, personal data, tokens."""
    from packtok._packtok import PROFILE_TOKENS
    from packtok.commands.profile import profile_documents

    check_inputs("PATH", [path])
    with progress(quiet=quiet) as on_progress:
        facts = profile_documents(
            path,
            sample_size=PROFILE_TOKENS if sample_size is None else sample_size,
            tokenizer=tokenizer,
            format=format,
            input_dtype=input_dtype,
            boundaries=boundaries,
            on_progress=on_progress,
            remark=console.remark_unless(quiet),
        )
    if as_json:
        console.as_json(facts)
    else:
        console.table(_rows(facts))


def _rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    has_files = len(facts["files"]) > 1

    def named(places: list[Mapping[str, Any]], extra: Callable[[Any], str] = lambda _: "") -> str:
        """Returns documents by number, with the number of the file before it if there are several."""
        if not places:
            return ""
        names = [
            (f"{place['file']}:" if has_files else "") + str(place["document"]) + extra(place)
            for place in places
        ]
        return f": {', '.join(names)}"

    sample = facts["sample"]
    yield "files", console.count(len(facts["files"]))
    yield "documents", f"{facts['documents']:,}, {facts['tokens']:,} tokens"
    yield "sample", f"{sample['documents']:,} documents, {sample['tokens']:,} tokens"
    empty = facts["empty"]
    yield "empty", f"{empty['documents']:,} documents{named(empty['examples'])}"
    duplicates = facts["duplicates"]
    share = _percent(duplicates["documents"], duplicates["compared_documents"])
    yield (
        "duplicates",
        f"{duplicates['documents']:,} of {duplicates['compared_documents']:,} documents ({share}), "
        f"{duplicates['tokens']:,} tokens",
    )
    for equal in duplicates["examples"]:
        yield "", f"{equal['copies']:,} copies of {equal['tokens']:,} tokens{named(equal['documents'])}"

    def repeats(name: str, figure: Mapping[str, Any]) -> tuple[str, str]:
        shares = named(figure["examples"], lambda example: f" ({example['share']:.0%})")
        share = _percent(figure["repeated"], figure["total"])
        return name, f"{share}; {figure['documents']:,} documents above {figure['limit']:.0%}{shares}"

    text = facts["text"]
    if text is not None:
        yield repeats("repeated lines", text["repeated_lines"])
    yield repeats("repeated n-grams", facts["repeated_ngrams"])
    if text is not None:
        yield from _text_rows(text, named)
    yield from _vocabulary_rows(facts["vocabulary"])


def _text_rows(text: Mapping[str, Any], named: Callable[..., str]) -> Iterator[tuple[str, str]]:
    scripts = [
        f"{script['script']} {_percent(script['occurrences'], text['letters'])}"
        for script in text["scripts"][:_SCRIPTS_SHOWN]
    ]
    yield "scripts", ", ".join(scripts) or "no letters"
    for script in text["scripts"][1:_SCRIPTS_SHOWN]:
        yield "", f"{script['script']} in {script['documents']:,} documents{named(script['examples'])}"
    for key, name in COUNTED.items():
        figure = text[key]
        where = (
            f" in {figure['documents']:,} documents{named(figure['examples'])}" if figure["documents"] else ""
        )
        yield name, f"{figure['occurrences']:,}{where}"
    for i, word in enumerate(text["longest_words"]):
        start = word["start"][:_WORD_CHARS] + ("…" if word["characters"] > _WORD_CHARS else "")
        yield "" if i else "longest words", f"{word['characters']:,} characters{named([word])}, {start}"


def _vocabulary_rows(vocabulary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    def names(tokens: list[Mapping[str, Any]]) -> str:
        shown = [str(token["id"] if token["name"] is None else token["name"]) for token in tokens]
        return " ".join(shown[:_TOKENS_SHOWN])

    yield "ids used", f"{vocabulary['used']:,}; most: {names(vocabulary['most_used'])}"
    if vocabulary["never_used"] is not None:
        yield "ids never used", f"{vocabulary['never_used']:,}: {names(vocabulary['never_used_examples'])}"


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0 %"

"""`packtok tokenizer …`: describes a tokenizer and its engine, and compares the engines' ids."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.options import (
    AddTokensOption,
    JsonOption,
    QuietOption,
    check_corpus,
    check_inputs,
    with_options,
)
from packtok.cli.progress import CHECKING, engine_checks, progress
from packtok.config.options import SCAN_OPTIONS

if TYPE_CHECKING:
    from packtok.tokenizer.find import TokenizerLookup

app = typer.Typer(
    help="Inspect a tokenizer, and compare its engine with the reference engine.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[
    str,
    typer.Argument(metavar="TOKENIZER", help="tokenizer.json or its folder, built-in name, or hub name."),
]
TOKENS_SHOWN = 12
# How the time to encode a text grows.
LINEAR = "linear in the length of a text"
NOT_LINEAR = (
    "may be worse than linear in the length of a text; a pattern fails after ten million attempts to match "
    "at one position, and the document is an error"
)


@app.command()
def inspect(
    tokenizer: Name,
    *,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Also show the speed of each engine on one core, on a built-in sample of prose, code and "
            "eight languages.",
        ),
    ] = False,
    add_special_tokens_from_config: AddTokensOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show a tokenizer's vocabulary, special tokens, engine and components."""
    from packtok.config.redact import Redactor
    from packtok.tokenizer.find import find_tokenizer

    check_inputs("TOKENIZER", [tokenizer])
    with engine_checks(quiet=False):
        lookup = find_tokenizer(tokenizer, add_special_tokens_from_config)
        facts = Redactor().tree(describe(lookup))
        if measure:
            facts["speeds"] = lookup.tokenizer.measured_speeds()
    if as_json:
        console.as_json(facts)
    else:
        console.table(_rows(facts))


def describe(lookup: "TokenizerLookup") -> dict[str, Any]:
    """Returns everything `packtok tokenizer inspect` shows, as JSON-serializable values."""
    from packtok._packtok import string_access

    tokenizer = lookup.tokenizer
    special = {token for token, _ in tokenizer.special_tokens}
    return {
        "name": tokenizer.name,
        "path": None if lookup.path is None else str(lookup.path),
        "fingerprint": tokenizer.fingerprint,
        "vocab_size": tokenizer.vocab_size,
        "token_bytes": tokenizer.token_bytes,
        "eos_token": lookup.eos_token,
        "engine": tokenizer.engine,
        "engine_reason": tokenizer.engine_reason,
        "is_linear": tokenizer.is_linear,
        "strings": dict(zip(("read_as", "reason"), string_access(), strict=True)),
        "added_tokens": [
            {"token": token, "id": id, "special": token in special} for token, id in tokenizer.added_tokens
        ],
        "components": tokenizer.components(),
        "notes": [*lookup.warnings, *tokenizer.notes],
    }


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    width, strings = facts["token_bytes"], facts["strings"]
    reason = strings["reason"]
    rows = [
        ("name", facts["name"]),
        ("file", facts["path"] or "none: built in"),
        ("fingerprint", facts["fingerprint"]),
        ("vocabulary", f"{facts['vocab_size']:,} ids, of {width} byte{'s' * (width > 1)} each in a pbin"),
        ("EOS", repr(facts["eos_token"]) if facts["eos_token"] is not None else "none named"),
        ("engine", f"{facts['engine']}: {facts['engine_reason']}"),
        ("time", LINEAR if facts["is_linear"] else NOT_LINEAR),
        ("Python strings", f"read as {strings['read_as']}" + (f", because {reason}" if reason else "")),
        *(
            ("speed", f"{speed['bytes_per_second'] / 1e6:,.1f} MB/s with {speed['engine']}, on one core")
            for speed in facts.get("speeds", ())
        ),
    ]
    rows += _token_rows("special", [token for token in facts["added_tokens"] if token["special"]])
    rows += _token_rows("added", [token for token in facts["added_tokens"] if not token["special"]])
    for component in facts["components"]:
        original, became = component["found"], component["became"]
        rows.append((component["name"], original if original == "none" else f"{original}: {became}"))
    return rows + [("note", note) for note in facts["notes"]]


def _token_rows(name: str, tokens: list[dict[str, Any]]) -> list[tuple[str, str]]:
    if not tokens:
        return [(name, "none")]
    text = ", ".join(f"{token['token']!r} = {token['id']:,}" for token in tokens[:TOKENS_SHOWN])
    more = len(tokens) - TOKENS_SHOWN
    return [(name, text + (f", and {more:,} more; --json lists all" if more > 0 else ""))]


@app.command()
@with_options(*SCAN_OPTIONS)
def verify(
    tokenizer: Name,
    corpus: Annotated[
        list[str] | None,
        typer.Option(
            "--corpus",
            "-c",
            metavar="PATH",
            help="File, glob or folder whose documents are also compared. Repeatable.",
        ),
    ] = None,
    *,
    add_special_tokens_from_config: AddTokensOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    **options: Any,
) -> None:
    """Compare the ids of the tokenizer's engine with the reference engine. Exit code 1 if any differ."""
    from packtok.commands import tokenizer as command

    check_inputs("TOKENIZER", [tokenizer])
    check_corpus("--corpus", corpus or ())
    with engine_checks(quiet=quiet), progress(quiet=quiet, idle=CHECKING) as on_progress:
        report = command.verify_tokenizer(
            tokenizer,
            corpus or (),
            add_special_tokens_from_config=add_special_tokens_from_config,
            on_progress=on_progress,
            **options,
        )
    if as_json:
        console.as_json(report)
        return
    if report["oracle"] is None:
        nothing = f"nothing to compare: {tokenizer} uses {report['engine']}, which is the reference engine"
        print(console.printable(nothing))
        return
    if not quiet:
        console.table(_compared(report, corpus is not None))
    print(f"{report['engine']} and {report['oracle']} give the same ids")


def _compared(report: dict[str, Any], has_corpus: bool) -> list[tuple[str, str]]:
    rows = [("built-in texts", console.count(report["built_in_texts"]))]
    if not has_corpus:
        return rows
    parts = " + ".join(f"{report[name]:,} {name}" for name in ("documents", "empty", "blank", "rejected"))
    return [*rows, ("lines", f"{report['lines']:,} = {parts}"), ("tokens", console.count(report["tokens"]))]

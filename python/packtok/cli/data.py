"""`packtok data …`: descriptions of datasets, and the commands under their Modalities names."""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from packtok.catalog.questions import QUESTIONS, NoAnswerError, Question
from packtok.cli import console
from packtok.cli.index import index as raw_index
from packtok.cli.instruction import prepare_instruction_tuning_data
from packtok.cli.merge import merge
from packtok.cli.options import (
    IgnoreOption,
    JsonOption,
    QuietOption,
    check_inputs,
    check_output,
    with_parameters,
)
from packtok.cli.pack import pack
from packtok.cli.profile import profile
from packtok.cli.progress import progress
from packtok.cli.shuffle import (
    create_shuffled_dataset_chunk,
    create_shuffled_jsonl_chunk,
    shuffle_jsonl_data,
    shuffle_tokenized_data,
)

if TYPE_CHECKING:
    from packtok.catalog.survey import Estimate, Guesses

app = typer.Typer(
    help="Describe datasets; and commands under their Modalities names.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
# Aliases of complete commands: an option that a message suggests for the command also exists for its alias.
app.command("create_raw_index", help="Write the raw index of a JSONL file; the same as `packtok index`.")(
    raw_index
)
app.command("pack_encoded_data", help="Pack the corpus of a config; the same as `packtok pack CONFIG`.")(pack)
app.command("merge_packed_data", help="Join pbins into one; the same as `packtok merge`.")(merge)
app.command("shuffle_tokenized_data")(shuffle_tokenized_data)
app.command("shuffle_jsonl_data")(shuffle_jsonl_data)
app.command("create_shuffled_dataset_chunk")(create_shuffled_dataset_chunk)
app.command("create_shuffled_jsonl_chunk")(create_shuffled_jsonl_chunk)
app.command("prepare_instruction_tuning_data")(prepare_instruction_tuning_data)
app.command("profile")(profile)


def _with_questions(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command a flag for every question, in place of its ``**answers``."""
    added = [
        inspect.Parameter(
            question.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                list[str] | None if question.is_list else str | None,
                typer.Option(question.flag, help=_help(question)),
            ],
        )
        for question in QUESTIONS
    ]
    return with_parameters(command, added)


def _help(question: Question) -> str:
    if not question.choices:
        return question.help
    return f"{question.help[:-1]}: {', '.join(question.choices)}."


@app.command("files")
def files(
    root: Annotated[str, typer.Argument(metavar="ROOT", help="The folder to list.")],
    *,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="The list to write."),
    ] = "all_jsonl.txt",
    absolute: Annotated[
        bool, typer.Option("--absolute", help="Absolute paths, instead of paths relative to ROOT.")
    ] = False,
    format: Annotated[
        str, typer.Option("--format", help="Format of the files, compressed or not.")
    ] = "jsonl",
    ignore: IgnoreOption = None,
    existing: Annotated[
        str, typer.Option("--existing", help="If the list exists: error, skip, replace.")
    ] = "error",
    as_json: JsonOption = False,
) -> None:
    """List the corpus files below a folder in natural order, for @LIST."""
    from packtok.commands.data import list_files

    check_inputs("ROOT", [root])
    check_output("--output", output)
    counts = list_files(
        root, output, absolute=absolute, format=format, ignore=ignore or (), existing=existing
    )
    if as_json:
        console.as_json(counts)
    else:
        size = console.size(counts["bytes"])
        print(console.printable(f"{output}: {console.count(counts['files'])} files, {size}"))


@app.command("create-metadata")
@_with_questions
def create_metadata(
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; take the defaults.")] = False,
    card: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FILE", help="A Croissant or Hub card with answers; flags win over it."
        ),
    ] = None,
    existing: Annotated[
        str, typer.Option("--existing", help="If the file exists: error, replace.")
    ] = "error",
    count: Annotated[
        bool, typer.Option("--count/--no-count", help="Read the texts, to count and checksum them.")
    ] = True,
    ignore: IgnoreOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    **answers: Any,
) -> None:
    """Describe a dataset in a metadata file, by answering questions or with flags."""
    from packtok.commands import data as command

    # Asked before the progress bar starts, because the bar takes over the terminal.
    with _completion():
        shows = not yes and sys.stdin.isatty()
        answered = command.answer_questions(
            answers,
            None if yes else ask,
            _show_guesses if shows else None,
            card,
            ignore=ignore or (),
            existing=existing,
            complain=lambda error: console.remark(console.message(error)),
            remark=console.remark,
        )
    with progress(quiet=quiet) as on_progress:
        created = command.create_metadata(
            answered, existing=existing, count=count, ignore=ignore or (), on_progress=on_progress
        )
    if as_json:
        console.as_json(created)
    else:
        print(console.printable(created["path"]))


@app.command("validate")
def validate(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A metadata file, or a folder with one.")],
    quick: Annotated[bool, typer.Option("--quick", help="Compare names and sizes only.")] = False,
    ignore: IgnoreOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check a metadata file against the data it describes. Exit code 1 if they differ."""
    from packtok.commands import data as command

    with progress(quiet=quiet) as on_progress:
        problems = command.validate_metadata(
            path,
            quick=quick,
            ignore=ignore or (),
            on_progress=on_progress,
            remark=console.remark_unless(quiet),
        )
    if as_json:
        console.as_json({"path": path, "differences": problems})
    elif problems:
        for problem in problems:
            print(console.printable(problem))
    elif not quiet:
        print(console.printable(f"{path} matches its data"))
    if problems:
        raise typer.Exit(1)


@app.command("card")
def card(
    dataset: Annotated[
        str, typer.Argument(metavar="PATH", help="A folder or file of metadata, a name, or a pbin.")
    ],
    format: Annotated[str, typer.Option("--format", help="croissant, markdown.")] = "croissant",
    output: Annotated[str | None, typer.Option("--output", "-o", help="Default: standard output.")] = None,
    existing: Annotated[
        str, typer.Option("--existing", help="If the file exists: error, replace.")
    ] = "error",
    checksums: Annotated[
        str | None,
        typer.Option("--checksums", metavar="FILE", help="Output of sha256sum; its files are not read."),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Describe a dataset or a pbin for other catalogues: Croissant, or a card of the Hugging Face hub."""
    from packtok.commands import data as command

    with progress(quiet=quiet) as on_progress:
        written = command.write_card(
            dataset,
            format=format,
            output=output,
            existing=existing,
            checksums=checksums,
            on_progress=on_progress,
            remark=console.remark_unless(quiet),
        )
    if as_json:
        console.as_json(written)
    elif output is None:
        print(console.printable(written["card"], keep="\n"), end="")
    elif not quiet:
        print(console.printable(output))


@app.command("index")
def index(as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Write the index of the base directory ($PACKTOK_BASE_DIR), from its metadata files."""
    from packtok.commands import data as command

    written = command.index_datasets()
    for broken in written["broken"]:
        console.remark(f"warning: not indexed: {broken['reason']}")
    if as_json:
        console.as_json(written)
    elif not quiet:
        print(console.printable(f"{written['path']}: {console.count(written['datasets'])} datasets"))


@app.command("list")
def list_datasets(as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """List the datasets in the base directory ($PACKTOK_BASE_DIR)."""
    from packtok.commands import data as command

    _show_entries(command.list_datasets(remark=console.remark_unless(quiet)), as_json=as_json)


@app.command("search")
def search(
    words: Annotated[
        list[str], typer.Argument(metavar="WORDS...", help="Starts of words that must all occur.")
    ],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Search names, descriptions, sources and corpora of the datasets in the base directory."""
    from packtok.commands import data as command

    _show_entries(command.list_datasets(" ".join(words), console.remark_unless(quiet)), as_json=as_json)


@app.command("show")
def show(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of a dataset, or the path of its metadata.")
    ],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show the metadata of a dataset."""
    from packtok.commands import data as command

    facts = command.show_dataset(name, console.remark_unless(quiet))
    if as_json:
        console.as_json(facts)
        return
    rows = [("path", facts["path"]), *_rows(facts["metadata"]), *_rows(facts["details"])]
    console.table([(key, text) for key, text in rows if text])


def _rows(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if key in ("files", "tokenizer_config", "packtok_metadata"):
            continue
        if isinstance(value, dict):
            yield from _rows(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            yield f"{prefix}{key}", ", ".join(map(str, value))
        else:
            yield f"{prefix}{key}", console.count(value) if isinstance(value, int) else str(value or "")


def _show_entries(entries: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        console.as_json(entries)
        return
    for entry in entries:
        counts = [
            f"{console.count(entry[key])} {key}" for key in ("documents", "tokens") if entry[key] is not None
        ]
        print(console.printable("  ".join([entry["name"], *counts, entry["path"]])))


def _show_guesses(guesses: "Guesses", documents: "Estimate | Exception | None") -> None:
    """Shows the facts about the data, so that the user can compare them with the expected ones."""
    files = f"{console.count(guesses.num_files)}, {console.size(guesses.source_bytes)}"
    rows = [("Found in", guesses.path), ("format", guesses.format), ("files", files)]
    if isinstance(documents, Exception):
        rows.append(("documents", f"cannot be read: {console.message(documents)}"))
    elif documents is not None:
        about = "" if documents.is_exact else "about "
        rows.append(("documents", f"{about}{console.count(documents.documents)}"))
    if guesses.ignored:
        rows.append(("ignored", console.ignored(guesses.ignored)))
    rows.append(("fields", ", ".join(guesses.fields) or "none"))
    console.table(rows)
    sys.stdout.flush()


def ask(question: Question, default: str, offered: Sequence[str] = ()) -> str:
    """Asks a question on the terminal, or reads the answer from the next line of standard input.

    Raises:
        NoAnswerError: If there are no more lines, and tatm asks the question too.
    """
    _complete_with(question, offered)
    try:
        return input(f"{_prompt(question, default)}: ")
    except EOFError:
        if not question.is_of_tatm and not sys.stdin.isatty():
            return ""
        raise NoAnswerError(
            f"no answer to {question.text!r}; give {question.flag}, or --yes for the defaults"
        ) from None


def _prompt(question: Question, default: str) -> str:
    if question.choices:
        choices = [f"[{choice}]" if choice == default else choice for choice in question.choices]
        return f"{question.text} ({', '.join(choices)})"
    return f"{question.text} [{default}]" if default else question.text


def _readline() -> ModuleType | None:
    """Returns the module that edits lines, if standard input is a terminal and the system has it."""
    if not sys.stdin.isatty():
        return None
    try:
        import readline
    except ImportError:
        return None
    return readline


@contextmanager
def _completion() -> Iterator[None]:
    """Lets the tab key complete answers, if standard input is a terminal."""
    readline = _readline()
    if readline is None:
        yield
        return
    before, delimiters = readline.get_completer(), readline.get_completer_delims()
    readline.set_completer_delims("")
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        readline.set_completer(before)
        readline.set_completer_delims(delimiters)


def _complete_with(question: Question, offered: Sequence[str]) -> None:
    readline = _readline()
    if readline is None:
        return

    def completed(text: str, state: int) -> str | None:
        if question.is_path:
            import glob
            import os

            completions = [path + os.sep * os.path.isdir(path) for path in glob.glob(glob.escape(text) + "*")]
        else:
            completions = [answer for answer in offered if answer.startswith(text)]
        return sorted(completions)[state] if state < len(completions) else None

    readline.set_completer(completed)

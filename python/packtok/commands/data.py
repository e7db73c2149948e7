"""Implements ``packtok data``: describes datasets, and checks the descriptions against the data."""

import dataclasses
import errno
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packtok import _packtok
from packtok.catalog.checks import Checks
from packtok.catalog.index import build_index
from packtok.catalog.names import Remark, all_entries, find_dataset, required_base, search_entries
from packtok.catalog.places import remarks_on_paths
from packtok.catalog.questions import Ask, answer_all, metadata_of
from packtok.catalog.schema import find_metadata, load_details, load_metadata, save_details
from packtok.catalog.survey import (
    Count,
    Estimate,
    Guesses,
    described,
    estimated,
    pattern_of,
    surveyed,
)
from packtok.catalog.validation import differences
from packtok.choices import check_choice
from packtok.commands.count import corpus_config
from packtok.config.keywords import ScanOptions
from packtok.errors import ConfigError, PacktokError
from packtok.progress import Progress
from packtok.sources import StrPath

if TYPE_CHECKING:
    from packtok.catalog.cards.facts import Facts

# Time for which documents are counted while a user waits for the next question.
COUNT_SECONDS = 2.0
# Receives the facts about the data and the estimate of its documents, or the error that ended the count.
ShowGuesses = Callable[[Guesses, Estimate | Exception | None], None]


def list_files(
    root: StrPath,
    output: StrPath,
    *,
    absolute: bool = False,
    format: str | None = "jsonl",
    ignore: Sequence[StrPath] = (),
    existing: str = "error",
) -> dict[str, Any]:
    """Writes the list of the corpus files below a folder, in natural order, and returns their counts.

    Args:
        root: The folder.
        output: The list to write; ``@LIST`` among the inputs of other functions stands for its files.
        absolute: Whether lines are absolute paths, and not relative to ``root``.
        format: The format of the files, compressed or not; ``None`` for the format that all of them have.
        ignore: Globs of files and folders to leave out.
        existing: If the list exists: ``"error"``; ``"skip"`` keeps it if it is the same; ``"replace"``.

    Raises:
        ConfigError: If the folder is none, or an argument is invalid.
        FileExistsError: If the list exists and ``existing`` is ``"error"``.
        PacktokError: If ``existing`` is ``"skip"`` and the list is another one.
    """
    check_choice("--existing", existing, ("error", "skip", "replace"), ConfigError)
    if not os.path.isdir(root):
        raise ConfigError(f"{os.fspath(root)}: is not a folder; give the folder of the corpus")
    files = _packtok.npy_files(
        [_as_folder(os.fspath(root))],
        format=format,
        ignore=[os.fspath(pattern) for pattern in ignore],
        split=None,
        root=None,
    )
    paths = [os.path.abspath(file["path"]) if absolute else file["relative"] for file in files]
    content = _packtok.written_list(paths).encode()
    if os.path.lexists(output) and existing != "replace":
        _keep_list(Path(output), content, existing)
    else:
        _packtok.publish_bytes(output, content)
    return {
        "output": os.fspath(output),
        "files": len(files),
        "bytes": sum(file["bytes"] for file in files),
    }


def _as_folder(root: str) -> str:
    return f"./{root}" if root.startswith("@") else root


def _keep_list(path: Path, content: bytes, existing: str) -> None:
    """Checks that an existing list can be kept."""
    if existing == "error":
        raise FileExistsError(errno.EEXIST, _packtok.OUTPUT_EXISTS, str(path))
    if path.read_bytes() != content:
        raise PacktokError(
            f"{path}: the existing list differs from what this command would write; set --existing "
            "(existing) to replace, or choose another --output (output)"
        )


def answer_questions(
    answers: Mapping[str, Any] | None = None,
    ask: Ask | None = None,
    show_guesses: ShowGuesses | None = None,
    card: StrPath | None = None,
    *,
    ignore: Sequence[str] = (),
    existing: str = "error",
    complain: Callable[[Exception], None] = lambda _: None,
    remark: Remark = lambda _: None,
) -> dict[str, Any]:
    """Returns an answer to each question of ``packtok data create-metadata``.

    Args:
        answers: Answers by the names of the flags, with underscores.
        ask: Asks the questions that have no answer; ``None`` takes their defaults.
        show_guesses: Called before the question for the content field with what the data tells. Documents
            are counted for `COUNT_SECONDS` only.
        card: A Croissant or Hub card, whose answers count where ``answers`` has none.
        ignore: Globs of files that are no data.
        existing: As in `create_metadata`.
        complain: With ``ask``, receives the reason why an answer is refused, before it is asked for again.
        remark: Receives a remark if the vocabulary of a tokenizer is not known.

    Raises:
        ConfigError: If an answer is not allowed, or the card is broken.
        FileExistsError: As in `create_metadata`.
        FileNotFoundError: As in `create_metadata`.
    """
    _check_existing(existing)

    def show(guesses: Guesses) -> None:
        if show_guesses is not None:
            show_guesses(guesses, _documents(guesses, ignore))

    known = {name: answer for name, answer in (answers or {}).items() if answer is not None and answer != []}
    if card is not None:
        known = _answers_of_card(Path(card), known)
    replaces = existing == "replace"
    checks = Checks(
        known, replaces=replaces, asks=ask is not None, ignore=ignore, on_guesses=show, remark=remark
    )
    return answer_all(known, ask, checks, complain)


def _documents(guesses: Guesses, ignore: Sequence[str]) -> Estimate | Exception | None:
    try:
        return estimated(
            guesses, lambda path, field, show: _counter(show, ignore)(path, field), COUNT_SECONDS
        )
    except (PacktokError, OSError, ValueError) as error:
        return error


def _answers_of_card(card: Path, known: Mapping[str, Any]) -> dict[str, Any]:
    from packtok.catalog.cards.answers import answers_of_card

    answers = answers_of_card(card)
    if "corpus" in known:
        # The strategy of the card describes the separation of the corpora in the card, not of the given ones.
        answers.pop("corpus_separation_strategy", None)
    return {**answers, **known}


def create_metadata(
    answers: Mapping[str, Any] | None = None,
    *,
    existing: str = "error",
    count: bool = True,
    card: StrPath | None = None,
    ignore: Sequence[str] = (),
    on_progress: Progress | None = None,
    remark: Remark = lambda _: None,
) -> dict[str, Any]:
    """Describes a dataset in a metadata file, and what was counted in a file next to it.

    The other file has the same name and ends with ``.packtok.json``.

    Args:
        answers: Answers by the names of the flags of ``packtok data create-metadata``, with underscores; the
            others have their defaults.
        existing: ``"error"``, or ``"replace"`` to replace an existing metadata file.
        count: Whether to read the texts, to count documents and compute checksums.
        card: A Croissant or Hub card, whose answers count where ``answers`` has none.
        ignore: Globs of files that are no data. They are recorded, for `validate_metadata`.
        on_progress: As in `packtok.pack`.
        remark: Receives a remark if the vocabulary of a tokenizer is not known.

    Returns:
        A dict with ``path``, ``metadata`` (the content of the file) and ``details`` (that of the other one).

    Raises:
        ConfigError: If an answer is not allowed.
        FileExistsError: If the metadata file exists, or one that differs in the ending of its name only.
        FileNotFoundError: If the dataset does not exist.
    """
    all_answers = answer_questions(answers, card=card, existing=existing, ignore=ignore, remark=remark)
    metadata = metadata_of(all_answers)
    path = Path(all_answers["output"])
    details: dict[str, Any] = {key: all_answers[key] for key in ("language", "license") if all_answers[key]}
    facts = all_answers.get("tokenizer_facts")
    if metadata.tokenized_info is not None and facts is not None and facts.eos_id is not None:
        details["eos_token_id"] = facts.eos_id
    if metadata.data_content == "text" and metadata.tokenized_info is None:
        counter = _counter(on_progress, ignore)
        details |= surveyed(metadata, counter, ignore) if count else described(metadata, ignore)
        if ignore:
            details["ignore"] = list(ignore)
    # The details are written first, because the metadata file declares the dataset as described.
    save_details(path, details)
    metadata.save(path)
    return {"path": str(path), "metadata": metadata.to_dict(), "details": details}


def _check_existing(existing: str) -> None:
    check_choice("--existing", existing, ("error", "replace"), ConfigError)


def validate_metadata(
    path: StrPath,
    *,
    quick: bool = False,
    ignore: Sequence[str] = (),
    on_progress: Progress | None = None,
    remark: Remark = lambda _: None,
) -> list[str]:
    """Compares a metadata file with the data that it describes, and returns the differences.

    Args:
        path: The metadata file, or a folder with one.
        quick: Whether to compare only names and sizes of files, without reading them.
        ignore: Globs of files that are no data. Default: those that were given when it was described.
        on_progress: As in `packtok.pack`.
        remark: Receives a remark if a relative path starts at the current folder.

    Raises:
        FileNotFoundError: If there is no metadata file.
    """
    file = find_metadata(path)
    try:
        metadata, details = load_metadata(file), load_details(file)
    except ConfigError as error:
        return [str(error)]
    for text in remarks_on_paths(metadata):
        remark(text)
    recorded = details.get("ignore")
    if not ignore and isinstance(recorded, list):
        ignore = [str(glob) for glob in recorded if glob]
    count = None if quick else _counter(on_progress, ignore)
    return differences(metadata, details, file, count=count, ignore=ignore, on_progress=on_progress)


def write_card(
    dataset: str,
    *,
    format: str = "croissant",
    output: StrPath | None = None,
    existing: str = "error",
    checksums: StrPath | None = None,
    on_progress: Progress | None = None,
    remark: Remark = lambda _: None,
) -> dict[str, Any]:
    """Describes a dataset for other catalogues, in Croissant 1.1 or as a card of the Hugging Face hub.

    Paths in the card start in the folder of the dataset, where the card belongs. The same dataset has the
    same card: there are no times and no absolute paths in it.

    Args:
        dataset: A folder or file of metadata, a name, or a pbin.
        format: ``"croissant"`` or ``"markdown"``.
        output: The file to write; by default, none is written.
        existing: ``"error"``, or ``"replace"`` to replace an existing file.
        checksums: A file as `sha256sum` writes it. Files that it lists are not read.
        on_progress: As in `packtok.pack`.
        remark: Receives a remark if there is no index.

    Returns:
        A dict with ``path``, which is ``None`` without ``output``, the ``card``, and the ``folder`` where it
        belongs.

    Raises:
        ConfigError: If there is no such dataset, or its files have changed since it was described.
        FileExistsError: If the output exists.
    """
    from packtok.catalog.cards.facts import facts_of
    from packtok.catalog.cards.hashes import hashed, known_hashes

    check_choice("--format", format, ("croissant", "markdown"), ConfigError)
    _check_existing(existing)
    if output is not None and existing != "replace" and Path(output).exists():
        raise FileExistsError(
            errno.EEXIST, "the card already exists; give another, or --existing replace", str(output)
        )
    facts = facts_of(dataset, remark)
    known = {} if checksums is None else known_hashes(Path(checksums))
    card = _card(dataclasses.replace(facts, files=hashed(facts.files, known, on_progress)), format)
    if output is not None:
        _packtok.publish_bytes(output, card.encode())
    return {
        "path": None if output is None else str(output),
        "folder": str(facts.root),
        "card": card,
    }


def _card(facts: "Facts", format: str) -> str:
    from packtok.catalog.cards.croissant import croissant
    from packtok.catalog.cards.markdown import markdown

    return croissant(facts) if format == "croissant" else markdown(facts)


def _counter(on_progress: Progress | None, ignore: Sequence[str] = ()) -> Count:
    """Returns a function that counts documents without tokens."""

    def count(folder: Path, content_field: str) -> dict[str, Any]:
        # Rows without text are skipped: whoever packs the dataset decides about them.
        options: ScanOptions = {
            "field": pattern_of(content_field),
            "on_bad_document": "skip",
            "ignore": ignore,
        }
        spec = corpus_config(folder, "gpt2", options).spec()
        counted: dict[str, Any] = _packtok.count_tokens(spec, [], on_progress)
        return counted

    return count


def index_datasets() -> dict[str, Any]:
    """Writes the index of the base directory; returns ``path``, ``datasets`` and ``broken`` metadata files.

    Raises:
        ConfigError: If no base directory is set.
        OSError: If the index cannot be written.
    """
    return build_index(required_base().folder)


def list_datasets(words: str | None = None, remark: Remark = lambda _: None) -> list[dict[str, Any]]:
    """Returns the datasets in the base directory, or those that match ``words``, best first.

    Args:
        words: Starts of words that must all occur in the name, description, source, corpora or folders.
        remark: Receives a remark if there is no index.

    Raises:
        ConfigError: If no base directory is set.
        PacktokError: If words are given and there is no index.
    """
    base = required_base()
    entries = all_entries(base, remark) if words is None else search_entries(base, words)
    return [_entry_facts(entry, base.folder) for entry in entries]


def show_dataset(name: str, remark: Remark = lambda _: None) -> dict[str, Any]:
    """Returns ``path``, ``metadata`` and ``details`` of the dataset with a name, or at a path.

    Raises:
        ConfigError: If there is no such dataset, or there are several with the name.
    """
    metadata = find_dataset(name, remark)
    details = {} if metadata.path is None else load_details(metadata.path)
    return {"path": str(metadata.path), "metadata": metadata.to_dict(), "details": details}


def _entry_facts(entry: Mapping[str, Any], base: Path) -> dict[str, Any]:
    names = ("name", "context", "tokenizer", "documents", "tokens", "language", "license")
    return {**{name: entry[name] for name in names}, "path": str(base / entry["path"])}

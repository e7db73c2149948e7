"""Implements `packtok reshape`: selects, changes and reorders the documents of token files."""

import fnmatch
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from packtok import _packtok
from packtok.choices import check_choice
from packtok.commands.convert import (
    Reading,
    accepted_losses,
    check_formats,
    checked_id_type,
    describe_output,
    kept_in,
    kept_of_output,
    name_files,
    paths_of,
    sharding_of,
    threads_or_cpus,
    tokenizer_beside,
    with_description,
)
from packtok.commands.through_stores import through_stores
from packtok.document_filter import DocumentFilter, filter_documents
from packtok.errors import ConfigError
from packtok.integers import checked_integer
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.resuming import LOST_NOTE, explaining
from packtok.sources import StrPath, token_files_at
from packtok.tokenizer.find import default_eod, find_tokenizer

# Kinds of `sample`; any other name is a glob of sources.
AMOUNTS = ("documents", "tokens")
# Documents that a warning names.
MAX_NAMED = 10


@entry_point()
@through_stores
def reshape(
    input: StrPath | Sequence[StrPath],
    output: StrPath,
    *,
    to: str = "pbin",
    chunk: str | None = None,
    remove: StrPath | Sequence[StrPath] = (),
    filter: DocumentFilter | Sequence[DocumentFilter] = (),
    split: Literal["train", "validation"] | None = None,
    validation_fraction: float | None = None,
    validation_last: int | None = None,
    split_seed: int = 0,
    sample: str | Sequence[str] = (),
    retokenize: str | None = None,
    eod_token: str | None = None,
    bos_token: str | None = None,
    truncate: int | None = None,
    shuffle: bool = False,
    block_tokens: int | None = None,
    rows: int | None = None,
    seed: int | None = None,
    format: str | None = None,
    input_dtype: str | None = None,
    boundaries: str | None = None,
    max_tokens: int | None = None,
    multiple_of: int | None = None,
    accept_loss: str | Sequence[str] = (),
    dtype: str | None = None,
    tokenizer: str | None = None,
    add_special_tokens_from_config: bool = False,
    existing: Literal["error", "skip", "replace"] = "error",
    threads: int | None = None,
    on_start: Callable[[dict[str, list[str]]], None] | None = None,
    on_written: Callable[[Path], None] | None = None,
    on_progress: Progress | None = None,
    memory: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Selects, changes and reorders the documents of token files, without their texts.

    The steps are applied in the order of the arguments, from ``chunk`` to ``rows``, whatever their order
    in the call; another order needs two calls. Without a step, the documents are joined. Documents keep their
    origins, and the file records the steps.

    Args:
        input: A token file, several, whose documents are joined, or a folder of them.
        output: The file to write; of other formats than pbin, as in `packtok.convert`.
        to: The format to write, one of `packtok convert --help`.
        chunk: ``"K/N"``: documents of chunk K, from 0, of N equal chunks of each file.
        remove: Documents to leave out: a file with an entry on each line, or entries with commas. An entry is
            the number of a document among all, from 0; its origin, ``"SOURCE:PLACE"``, as `packtok cat` shows
            it; or ``"sha256:"`` and the hash of its text in UTF-8, without BOS and EOD.
        filter: Which documents to keep: an expression such as ``"length >= 64 and count(eod) == 1"``, over
            ``number``, ``length``, ``hash``, ``source``, ``offset``, ``count(ID)`` and
            ``matches(source, GLOB)``; or a function that takes `Documents`, a batch, and returns an array of
            bools. Of several, each document must pass all.
        split: The side of a split to keep, as `TokenDataset` splits.
        validation_fraction: The share of documents to hold out, by a hash of their ids.
        validation_last: The number of last documents to hold out.
        split_seed: The seed of the hash.
        sample: ``"documents=N"`` or ``"tokens=N"``, random documents; or weights of sources, ``"GLOB=W"``:
            each document of the matching sources is used W times, of which the fraction is a random share.
        retokenize: The tokenizer that documents are decoded for and encoded with again.
        eod_token: The token that ends documents then. Default: that of the tokenizer.
        bos_token: The token that starts documents then. Default: none.
        truncate: The most tokens of a document. A longer one is cut, and its EOD kept.
        shuffle: Whether documents get a random order.
        block_tokens: With ``shuffle``, what is reordered is blocks: as many consecutive documents as have so
            many tokens together.
        rows: Joins the documents and cuts them into rows of so many tokens, which become the documents of the
            output. Tokens at the end that do not fill a row are left out. Rows have no origins.
        seed: The seed of ``sample`` and ``shuffle``. Default: 0.
        format: As in `packtok.convert`, for the input.
        input_dtype: As in `packtok.convert`.
        boundaries: As in `packtok.convert`.
        max_tokens: As in `packtok.convert`.
        multiple_of: As in `packtok.convert`.
        accept_loss: As in `packtok.convert`.
        dtype: As in `packtok.convert`.
        tokenizer: The tokenizer of the ids. Default: what the trailer or the marker records.
        add_special_tokens_from_config: As in `packtok.pack`, for ``tokenizer`` and ``retokenize``.
        existing: ``"error"``; ``"skip"``, which keeps the output after comparing it; ``"replace"``.
        threads: Threads that decode and encode, and shards that are written at once. Default: the CPUs that
            the process may use.
        on_start: As in `packtok.convert`.
        on_written: Called with each file of tokens when all are written.
        on_progress: As in `packtok.pack`.
        memory: Bytes of data that are shuffled in memory, and of the parts of larger data. For tests.

    Returns:
        ``output``, ``files``, ``documents_in``, ``tokens_in``, ``documents``, ``tokens`` and ``file_bytes``;
        ``steps``, each with the documents and tokens that it has left out or repeated, which add up;
        ``truncated``, ``removed`` and ``retokenized``, if there are such steps; ``kept_in_files``,
        ``kept_beside`` and ``lost``, as `packtok.convert` returns them; and ``warnings``.

    Raises:
        ConfigError: If an argument is invalid.
        FileExistsError: If the output exists and ``existing`` is ``"error"``.
        PbinFormatError: If the input is damaged, or has ids that the tokenizer lacks.
    """
    check_formats(to, format)
    _check_pairs(
        split, validation_fraction, validation_last, shuffle, block_tokens, retokenize, eod_token, bos_token
    )
    if rows is not None:
        rows = _checked_rows(rows, remove)
    sharding = sharding_of(to, max_tokens, multiple_of, link=False)
    id_type = checked_id_type(dtype, to)
    if seed is not None and not (shuffle or sample):
        raise ConfigError("--seed (seed): has no effect without --sample (sample) or --shuffle (shuffle)")
    seed = checked_integer("--seed (seed)", seed or 0, below=1 << 64)
    inputs = paths_of(input)
    remarks: list[str] = []
    inputs, reading, tokenizer = with_description(
        inputs, Reading(format, input_dtype, boundaries), tokenizer, remarks.append
    )
    paths = _token_files(inputs, format)
    num_threads = threads_or_cpus(threads)

    def find(name: str) -> Any:
        return find_tokenizer(name, add_special_tokens_from_config)

    own = None if tokenizer is None else find(tokenizer).tokenizer
    target = None if retokenize is None else find(retokenize)

    def tokenizer_of_ids() -> Any:
        """The tokenizer of the ids, given or beside the files; None if it is neither."""
        if own is not None:
            return own
        beside = next((file for path in paths if (file := tokenizer_beside(path)) is not None), None)
        return None if beside is None else find_tokenizer(beside).tokenizer

    with explaining(lambda: LOST_NOTE):
        reshaper = _packtok.Reshaper(paths, **asdict(reading), tokenizer=own)
        _select(
            reshaper,
            chunk=chunk,
            lists=_listed(remove),
            filter=filter,
            decoder=tokenizer_of_ids,
            num_threads=num_threads,
        )
        _split(reshaper, split, validation_fraction, validation_last, split_seed)
        _sample(reshaper, [sample] if isinstance(sample, str) else sample, seed)
        if truncate is not None:
            truncate = checked_integer("--truncate (truncate)", truncate, least=1)
        change = None
        if target is not None:
            change = _retokenizing(reshaper, tokenizer_of_ids(), target, eod_token, bos_token)
        report = reshaper.write(
            inputs=paths,
            output=os.fspath(output),
            to=to,
            sharding=sharding,
            accept_loss=accepted_losses(accept_loss),
            dtype=id_type,
            existing=existing,
            truncate_to=truncate,
            retokenize=change,
            shuffle=(seed, block_tokens) if shuffle else None,
            row_tokens=rows,
            num_threads=num_threads,
            on_start=kept_of_output(on_start),
            on_progress=on_progress,
            memory=memory,
        )
    converted = report.pop("converted", None)
    described = converted or {"to": to, "output": report["output"], "meaning": reshaper.meaning}
    written = own if target is None else target.tokenizer
    warnings = remarks + _warnings(report) + report.pop("notes")
    warnings += describe_output(map(Path, paths), Path(output), described, written, existing)
    name_files(report["files"], on_written)
    kept = kept_in([report.pop("kept")])
    return {**report, "files": len(report["files"]), **kept, "warnings": warnings}


def _check_pairs(
    split: str | None,
    validation_fraction: float | None,
    validation_last: int | None,
    shuffle: bool,
    block_tokens: int | None,
    retokenize: str | None,
    eod_token: str | None,
    bos_token: str | None,
) -> None:
    """Raises a `ConfigError` if an option needs another one that is missing."""
    num_rules = (validation_fraction is not None) + (validation_last is not None)
    if num_rules != (split is not None):
        raise ConfigError(
            "--split (split): needs one of --validation-fraction (validation_fraction) and --validation-last "
            "(validation_last), and they need it"
        )
    if split is not None:
        check_choice("--split (split)", split, ("train", "validation"), ConfigError)
    if block_tokens is not None:
        if not shuffle:
            raise ConfigError("--block-tokens (block_tokens): has no effect without --shuffle (shuffle)")
        checked_integer("--block-tokens (block_tokens)", block_tokens, least=1)
    for name, token in (("--eod-token (eod_token)", eod_token), ("--bos-token (bos_token)", bos_token)):
        if token is not None and retokenize is None:
            raise ConfigError(f"{name}: has no effect without --retokenize (retokenize)")


def _checked_rows(rows: int, remove: StrPath | Sequence[StrPath]) -> int:
    if _listed(remove):
        raise ConfigError(
            "--rows (rows): cannot be combined with --remove (remove), which compares the documents of the "
            "output; reshape twice"
        )
    return checked_integer("--rows (rows)", rows, least=1, below=1 << 31)


def _token_files(inputs: list[Path], format: str | None) -> list[str]:
    """Returns the token files, those of folders too."""
    return [file for path in inputs for file in token_files_at(path, format)]


def _select(
    reshaper: _packtok.Reshaper,
    *,
    chunk: str | None,
    lists: list[str],
    filter: DocumentFilter | Sequence[DocumentFilter],
    decoder: Callable[[], Any],
    num_threads: int,
) -> None:
    """Leaves out documents of other chunks, then those of lists, then those that a filter rejects."""
    if chunk is not None:
        reshaper.chunk(*_chunk(chunk))
    if lists:
        reshaper.remove(lists, decoder(), num_threads)
    for chosen in [filter] if isinstance(filter, str) or callable(filter) else filter:
        filter_documents(reshaper, chosen)


def _split(
    reshaper: _packtok.Reshaper,
    split: str | None,
    validation_fraction: float | None,
    validation_last: int | None,
    split_seed: int,
) -> None:
    if split is not None and validation_fraction is not None:
        seed = checked_integer("--split-seed (split_seed)", split_seed, below=1 << 64)
        reshaper.split_by_hash(split, _fraction(validation_fraction), seed)
    elif split is not None and validation_last is not None:
        reshaper.split_last(split, checked_integer("--validation-last (validation_last)", validation_last))


def _chunk(text: str) -> tuple[int, int]:
    index, separator, count = text.partition("/")
    if not (separator and index.isdecimal() and count.isdecimal()):
        raise ConfigError(f"--chunk (chunk): is {text!r}; expected K/N, such as 0/4")
    if int(count) == 0:
        raise ConfigError(f"--chunk (chunk): is {text!r}; expected at least one chunk, such as 0/1")
    if not int(index) < int(count):
        raise ConfigError(f"--chunk (chunk): is {text!r}; expected 0/{count} to {int(count) - 1}/{count}")
    return int(index), int(count)


def _listed(remove: StrPath | Sequence[StrPath]) -> list[str]:
    lists = [remove] if isinstance(remove, str | os.PathLike) else remove
    return [os.fspath(entry) for entry in lists]


def _fraction(value: float) -> float:
    if not 0 <= value <= 1:
        raise ConfigError(
            f"--validation-fraction (validation_fraction): is {value}; expected a number from 0 to 1"
        )
    return float(value)


def _sample(reshaper: _packtok.Reshaper, sample: Sequence[str], seed: int) -> None:
    """Takes a sample: a number of documents or tokens, or documents by the weights of their sources."""
    pairs = [_amount(text) for text in sample]
    amounts = [pair for pair in pairs if pair[0] in AMOUNTS]
    if amounts and len(pairs) > 1:
        raise ConfigError(
            "--sample (sample): documents=N and tokens=N stand alone; give one, or weights only"
        )
    if amounts:
        ((unit, amount),) = amounts
        if amount != int(amount):
            raise ConfigError(f"--sample (sample): is {unit}={amount}; expected an integer")
        take = reshaper.sample_documents if unit == "documents" else reshaper.sample_tokens
        take(int(amount), seed)
    elif pairs:
        names = reshaper.source_names
        for pattern, _ in pairs:
            if not fnmatch.filter(names, pattern):
                some = ", ".join(names[:MAX_NAMED])
                raise ConfigError(f"--sample (sample): no source matches {pattern!r}; there are {some}")
        weights = [next((w for glob, w in pairs if fnmatch.fnmatchcase(name, glob)), 1.0) for name in names]
        reshaper.sample_by_weight(weights, seed, ", ".join(sample))


def _amount(text: str) -> tuple[str, float]:
    name, separator, number = text.rpartition("=")
    try:
        amount = float(number) if separator and name else -1.0
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf"):
        raise ConfigError(f"--sample (sample): is {text!r}; expected documents=N, tokens=N or GLOB=WEIGHT")
    return name, amount


def _retokenizing(
    reshaper: _packtok.Reshaper, own: Any, target: Any, eod_token: str | None, bos_token: str | None
) -> tuple[Any, Any, tuple[str, int], tuple[str, int] | None]:
    """Returns the old and the new tokenizer, and the new EOD and BOS with their ids."""
    if own is None:
        raise ConfigError(
            "--retokenize (retokenize): needs the tokenizer of the ids, which is not beside the files; set "
            "--tokenizer (tokenizer)"
        )
    recorded = reshaper.meaning["tokenizer"]
    if recorded is not None and recorded["fingerprint"] != own.fingerprint:
        raise ConfigError(
            f"--tokenizer (tokenizer): {own.name} is not the tokenizer of the files, {recorded['name']}"
        )
    bos_before = reshaper.meaning["bos"]
    if bos_before is not None and bos_token is None:
        raise ConfigError(
            f"--retokenize (retokenize): the documents start with BOS, {bos_before['token']!r}; set "
            "--bos-token (bos_token) to that of the new tokenizer"
        )

    def token(name: str, text: str) -> tuple[str, int]:
        id = target.tokenizer.token_to_id(text)
        if id is None:
            raise ConfigError(f"{name}: the tokenizer {target.tokenizer.name} has no token {text!r}")
        return text, id

    try:
        eod_text = eod_token or default_eod(target)
    except ConfigError:
        raise ConfigError(
            f"--eod-token (eod_token): is missing, and the tokenizer {target.tokenizer.name} has no EOS token"
        ) from None
    eod = token("--eod-token (eod_token)", eod_text)
    bos = None if bos_token is None else token("--bos-token (bos_token)", bos_token)
    return own, target.tokenizer, eod, bos


def _warnings(report: dict[str, Any]) -> list[str]:
    """Returns what a user should know about listed documents, and about texts that changed."""
    warnings = []
    output = report["output"]
    if (removed := report.get("removed")) is not None:
        if removed["num_unmatched"]:
            counted = f"{removed['num_unmatched']} of {removed['entries']} entries name no document"
            warnings.append(f"--remove (remove): {counted}: {_some(removed['unmatched'])}")
        if removed["num_same_ids"]:
            warnings.append(
                f"{output}: {removed['num_same_ids']} documents have the same ids as one that was removed by "
                "its number or origin; remove them, too, by the hash of their text: "
                f"{_some(removed['same_ids'])}"
            )
    retokenized = report.get("retokenized")
    if retokenized is not None and retokenized["not_restored"]:
        warnings.append(
            f"{output}: the texts of {retokenized['not_restored']} documents do not give their ids again, so "
            "that they may differ from those of the corpus; documents of the input: "
            f"{_some(retokenized['not_restored_documents'])}"
        )
    return warnings


def _some(names: Sequence[object]) -> str:
    more = ", …" if len(names) > MAX_NAMED else ""
    return ", ".join(map(str, names[:MAX_NAMED])) + more

"""Compares the metadata of a dataset with its data."""

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.catalog.corpora import corpus_input, separate_corpora
from packtok.catalog.places import missing_data, token_file_pattern, token_prefix
from packtok.catalog.schema import DatasetMetadata, TokenizedInfo
from packtok.catalog.survey import Count, surveyed
from packtok.catalog.token_ids import checked_dtype, known_vocab_size
from packtok.progress import Progress


def differences(
    metadata: DatasetMetadata,
    details: Mapping[str, Any],
    file: Path,
    *,
    count: Count | None,
    ignore: Sequence[str] = (),
    on_progress: Progress | None = None,
) -> list[str]:
    """Returns how the data differs from ``metadata``, which was read from ``file``, and its ``details``.

    Without ``count``, only the names and sizes of the files are compared. ``ignore`` are globs of files that
    are no data. ``on_progress`` receives the progress of reading the ids of token files without a header.
    """
    if (missing := missing_data(metadata)) is not None:
        return [f"{file}: {missing}"]
    problems = _corpus_problems(metadata, file)
    if metadata.tokenized_info is not None:
        problems += _token_file_problems(details, file)
        # The check of the token files already reports a missing or damaged file.
        if not problems:
            problems += _id_problems(metadata, metadata.tokenized_info, file, count is None, on_progress)
        return problems
    if metadata.data_content != "text" or problems:
        return problems
    try:
        problems += _field_problems(metadata, details, file, ignore)
        if not problems:
            problems += _file_problems(metadata, details, file, count, ignore)
    except (_packtok.PacktokError, OSError, ValueError) as error:
        problems.append(f"{file}: {error}")
    return problems


def _corpus_problems(metadata: DatasetMetadata, file: Path) -> list[str]:
    folders = [(corpus, corpus_input(metadata, corpus)) for corpus in separate_corpora(metadata)]
    return [
        f"{file}: corpus {corpus!r}: {folder} is not a folder"
        for corpus, folder in folders
        if not folder.is_dir()
    ]


def _token_file_problems(details: Mapping[str, Any], file: Path) -> list[str]:
    problems = []
    for entry in details.get("files", []):
        path = file.parent / entry["path"]
        try:
            reader = _packtok.PbinReader(path)
        except (_packtok.PacktokError, OSError) as error:
            problems.append(f"{path}: {error}")
            continue
        actual = {
            "bytes": path.stat().st_size,
            "documents": len(reader),
            "tokens": reader.num_tokens,
            "trailer_crc32c": reader.trailer_crc32c,
        }
        problems += [
            f"{path}: {key} is {value}, expected {entry.get(key)}"
            for key, value in actual.items()
            if value != entry.get(key)
        ]
    return problems


def _id_problems(
    metadata: DatasetMetadata, info: TokenizedInfo, file: Path, is_quick: bool, on_progress: Progress | None
) -> list[str]:
    """Returns how the type of the tokens differs from that in the token files."""
    prefix, _ = token_prefix(metadata, info)
    paths = _packtok.natural_sorted(glob.glob(token_file_pattern(prefix, info)))
    if not paths:
        return [f"{file}: tokenized_info: no file {prefix}*.{info.file_extension}"]
    try:
        vocab_size = known_vocab_size(info, Path(paths[0]).parent)
        fault = checked_dtype(paths, info.dtype, vocab_size, whole=not is_quick, on_progress=on_progress)
    except (_packtok.PacktokError, OSError) as error:
        return [f"{file}: {error}"]
    return [] if fault is None else [f"{file}: tokenized_info.dtype is {info.dtype}, but {fault}"]


def _field_problems(
    metadata: DatasetMetadata, details: Mapping[str, Any], file: Path, ignore: Sequence[str]
) -> list[str]:
    problems = []
    undivided: list[str | None] = [None]
    for corpus in separate_corpora(metadata) or undivided:
        described = _packtok.describe_corpus([str(corpus_input(metadata, corpus))], None, ignore)
        columns = described["columns"]
        if described["format"] != "text" and metadata.content_field not in columns:
            names = ", ".join(map(repr, columns)) or "no text"
            problems.append(
                f"{file}: content_field {metadata.content_field!r} is not in the data, which has {names}"
            )
        expected = details.get("format", described["format"])
        if described["format"] != expected:
            problems.append(f"{file}: the format is {described['format']}, expected {expected}")
    return problems


def _file_problems(
    metadata: DatasetMetadata,
    details: Mapping[str, Any],
    file: Path,
    count: Count | None,
    ignore: Sequence[str],
) -> list[str]:
    if "files" not in details:
        return []
    expected = {entry["path"]: entry for entry in details["files"]}
    base = metadata.dataset_folder if metadata.dataset_folder.is_dir() else metadata.dataset_folder.parent
    if count is None:
        actual = {
            name: {"path": name, "bytes": (base / name).stat().st_size}
            for name in expected
            if (base / name).is_file()
        }
    else:
        actual = {entry["path"]: entry for entry in surveyed(metadata, count, ignore)["files"]}
    problems = [f"{base / name}: the file is missing" for name in expected if name not in actual]
    problems += [f"{base / name}: the file is not in {file}" for name in actual if name not in expected]
    for name in expected:
        for key, value in actual.get(name, {}).items():
            if value != expected[name].get(key):
                problems.append(f"{base / name}: {key} is {value}, expected {expected[name].get(key)}")
    return problems

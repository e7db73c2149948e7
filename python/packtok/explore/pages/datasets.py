"""The page of a dataset: its description, where it came from, what was made from it, and how to load it."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from reprlib import Repr
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok._packtok import is_corpus_name, natural_sorted
from packtok.catalog.entries import is_generated, tokenizer_name
from packtok.explore.contents.catalog import Dataset
from packtok.explore.contents.packed import MAX_GROUP_FILES, MAX_HISTOGRAM_DOCUMENTS, Packed
from packtok.explore.contents.ratio import text_counts
from packtok.explore.files import NotServedError
from packtok.explore.html.texts import markdown
from packtok.explore.pages.answers import is_json, json_response
from packtok.explore.pages.health import (
    Check,
    difference,
    health_of_dataset,
    health_of_file,
    health_of_texts,
)
from packtok.explore.pages.histogram import Histogram, Lengths, histogram_of, lengths_of
from packtok.explore.pages.loading import Command, command_of_rejects, commands_of_dataset, commands_of_file
from packtok.explore.pages.rejects import Rejects, rejects_of
from packtok.explore.pages.search import entry_facts
from packtok.explore.site import Site
from packtok.text_counts import TextCounts

MAX_FILES_SHOWN = 100
_MAX_HISTOGRAM_FILES = 64
_MAX_LOOKED_UP = 1000
# Exact lengths take 8 bytes of memory for each document.
_MAX_LENGTHS = 10_000_000
# Metadata may contain any number.
_MAX_COUNT = 1 << 63
_MAX_VALUES = 50
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 200
_DETAILS_SHOWN = (
    "documents",
    "tokens",
    "lines",
    "packed",
    "empty",
    "blank",
    "rejected",
    "text_bytes",
    "source_bytes",
    "format",
    "language",
    "license",
    "packtok_version",
    "tokenizer_fingerprint",
)


@dataclass(frozen=True)
class ListedFile:
    """A file of a dataset, with what its metadata and the file itself say."""

    name: str
    path: str | None
    """Path below the base if it can be looked into."""
    bytes: int | None
    documents: int | None
    tokens: int | None
    checksum: str | None
    fault: str | None
    """What is wrong with the file, if something is."""


def dataset_page(site: Site, folder: str, parameters: QueryParams) -> Response:
    """Returns the page of the dataset in a folder."""
    if site.catalog is None:
        served = "the files of the run are" if site.single is None else f"the file {site.single} is"
        raise NotServedError(f"{folder}: only {served} served")
    dataset = site.catalog.dataset(folder)
    paths = site.catalog.token_files(dataset)
    packed, unreadable = _opened(site, paths)
    files = _files(site, dataset, paths, packed, unreadable)
    rejects = rejects_of(site.root, paths[:MAX_FILES_SHOWN])
    children = dataset.children[:MAX_FILES_SHOWN]
    health = _health(site, dataset, files, packed)
    shown = _shown(dataset, packed, paths)
    histogram = _histogram(site, packed, len(paths))
    counts = text_counts(packed, site.tokenizers.decoder, are_all=len(packed) == len(paths))
    commands = [*commands_of_dataset(site, dataset, paths), *_listing(site, rejects)]
    inherited = _inherited(dataset)
    if is_json(parameters):
        return json_response(
            {
                "name": dataset.name,
                "folder": dataset.folder,
                "path": str(site.root.folder / dataset.file),
                "metadata": dataset.metadata.to_dict(),
                "details": {key: value for key, value in dataset.details.items() if key != "files"},
                "health": [asdict(check) for check in health],
                **_ratio_facts(counts),
                "rejects": None if rejects is None else asdict(rejects),
                "raw": None if dataset.parent is None else entry_facts(site, dataset.parent),
                "inherited": inherited,
                "tokenized": [entry_facts(site, child) for child in children],
                "num_tokenized": len(dataset.children),
                "files": [asdict(file) for file in files[:MAX_FILES_SHOWN]],
                "num_files": len(files),
                "numbered": shown,
                **_length_facts(histogram),
                "commands": [asdict(command) for command in commands],
            }
        )
    return site.pages.html(
        "dataset.html",
        dataset=dataset,
        metadata=dataset.metadata,
        description=markdown(inherited.get("description") or dataset.metadata.description),
        inherited=inherited,
        info=dataset.metadata.tokenized_info,
        tokenizer=_tokenizer(dataset),
        facts=_facts(dataset, inherited),
        text_counts=counts,
        ratios=[_recorded_ratio(site.catalog.details(child)) for child in children],
        children=children,
        files=files[:MAX_FILES_SHOWN],
        num_files=len(files),
        health=health,
        corpora=_corpora(dataset),
        shown=shown,
        has_rows=next(text_files(site, dataset), None) is not None,
        histogram=histogram,
        rejects=rejects,
        commands=commands,
    )


def _inherited(dataset: Dataset) -> dict[str, str]:
    """Returns what a tokenized form has from its raw dataset only, as in the list of datasets."""
    parent = dataset.parent
    if parent is None or parent["folder"] is None:
        return {}
    own = {"language": dataset.details.get("language"), "license": dataset.details.get("license")}
    inherited = {key: parent[key] for key, value in own.items() if not value}
    # Its own date is that of tokenizing.
    inherited["date"] = parent["date"]
    if is_generated(dataset.metadata.description):
        inherited["description"] = json.loads(parent["entry"])["description"]
    return {key: str(value) for key, value in inherited.items() if value}


def _shown(dataset: Dataset, packed: Sequence[Packed], paths: Sequence[str]) -> str | None:
    """Returns the path for pages of documents and items: of the dataset if all files can be numbered."""
    if 1 < len(paths) <= MAX_GROUP_FILES and len(packed) == min(len(paths), _MAX_HISTOGRAM_FILES):
        return dataset.folder
    return packed[0].name if packed else None


def _tokenizer(dataset: Dataset) -> str | None:
    info = dataset.metadata.tokenized_info
    return None if info is None else tokenizer_name(info.tokenizer)


def _length_facts(histogram: Histogram | None) -> dict[str, Any]:
    return {"document_tokens": None, "lengths": None} if histogram is None else histogram.facts


def file_page(site: Site, name: str, parameters: QueryParams) -> Response:
    """Returns the page of one pbin."""
    packed = site.files.open(name)
    decoder = site.tokenizers.decoder(packed)
    counts = packed.metadata.get("counts") or {}
    rejects = rejects_of(site.root, [name])
    health = health_of_file(packed, decoder)
    histogram = _histogram(site, [packed], 1)
    commands = [*commands_of_file(site, packed), *_listing(site, rejects)]
    text = text_counts([packed], site.tokenizers.decoder)
    sources = packed.sources.first[:MAX_FILES_SHOWN]
    reader = packed.reader
    if is_json(parameters):
        return json_response(
            {
                "path": packed.name,
                "dataset": site.dataset_of(name),
                "dialect": reader.dialect,
                "trailer": reader.metadata is not None,
                "trailer_crc32c": reader.trailer_crc32c,
                "token_bytes": reader.dtype.itemsize,
                "documents": packed.num_documents,
                "tokens": reader.num_tokens,
                "data_bytes": reader.data_bytes,
                "file_bytes": reader.file_bytes,
                "loss_mask": reader.has_loss_mask,
                "metadata": packed.metadata,
                "sources": sources,
                "num_sources": packed.sources.number,
                **_ratio_facts(text),
                "rejects": None if rejects is None else asdict(rejects),
                "health": [asdict(check) for check in health],
                "no_text": decoder.reason or None,
                **_length_facts(histogram),
                "commands": [asdict(command) for command in commands],
            }
        )
    return site.pages.html(
        "file.html",
        packed=packed,
        group=site.files.group(name, [name]),
        trail=site.trail(name),
        metadata=packed.metadata,
        decoder=decoder,
        health=health,
        sources=sources,
        num_sources=packed.sources.number,
        text_counts=text,
        histogram=histogram,
        options={key: _value_text(value) for key, value in _first(packed.metadata.get("options") or {})},
        counts={key: value for key, value in _first(counts) if isinstance(value, int)},
        rejects=rejects,
        commands=commands,
    )


def _listing(site: Site, rejects: Rejects | None) -> list[Command]:
    return [] if rejects is None else [command_of_rejects(site, rejects)]


def _opened(site: Site, paths: Sequence[str]) -> tuple[list[Packed], dict[str, str]]:
    """Returns the first pbins among some files, and the reasons why others cannot be opened.

    Files after the first ones are only looked up.
    """
    packed, unreadable = [], {}
    for i, path in enumerate(paths):
        try:
            if i < _MAX_HISTOGRAM_FILES:
                packed.append(site.files.open(path))
            elif i < _MAX_LOOKED_UP:
                site.root.open(path)
        except NotServedError as error:
            unreadable[path] = str(error).removeprefix(f"{path}: ")
    return packed, unreadable


def _health(
    site: Site, dataset: Dataset, files: Sequence[ListedFile], packed: Sequence[Packed]
) -> list[Check]:
    faults = {file.name: file.fault for file in files if file.fault is not None}
    if dataset.metadata.tokenized_info is None:
        num_checked = min(len(files), _MAX_LOOKED_UP) if data_folder(site, dataset) is not None else 0
        return health_of_texts(faults, num_checked, len(files))
    num_opened = min(len(files), _MAX_HISTOGRAM_FILES)
    return health_of_dataset(dataset, packed, faults, len(files), num_opened)


def data_folder(site: Site, dataset: Dataset) -> str | None:
    """Returns the folder of a dataset's texts below the base; ``None`` if it is elsewhere."""
    base = str(site.root.folder)
    path = os.path.normpath(os.path.join(base, dataset.folder, dataset.metadata.dataset_path or ""))
    if "\0" in path or not Path(path).is_relative_to(base):
        return None
    folder = os.path.relpath(path, base)
    try:
        site.root.open(folder)
    except NotServedError:
        return folder
    # The data is one file.
    return os.path.dirname(folder)


def text_files(site: Site, dataset: Dataset) -> Iterator[str]:
    """Yields the paths of a raw dataset's files of texts below the folder that is served."""
    folder = None if dataset.metadata.tokenized_info is not None else data_folder(site, dataset)
    if folder is None:
        return
    listed = dataset.details.get("files")
    names = [
        file["path"]
        for file in (listed if isinstance(listed, list) else [])
        if isinstance(file, dict) and isinstance(file.get("path"), str)
    ]
    for name in names or natural_sorted(site.root.names(folder)):
        path = os.path.normpath(f"{folder}/{name}").lstrip("/")
        # Metadata may name any file below the folder, such as one with a password.
        if is_corpus_name(path) and site.root.has_file(path):
            yield path


def _histogram(site: Site, packed: Sequence[Packed], num_files: int) -> Histogram | None:
    if not packed or len(packed) < num_files or any(file.faults for file in packed):
        return None
    num_documents = sum(file.num_documents for file in packed)
    if num_documents > MAX_HISTOGRAM_DOCUMENTS:
        return None
    lengths = None
    if num_documents <= _MAX_LENGTHS:
        key = tuple(file.identity for file in packed)
        lengths = site.lengths.value(key, lambda: _lengths(packed))
    return histogram_of([file.histogram for file in packed], lengths)


def _lengths(packed: Sequence[Packed]) -> Lengths | None:
    parts = [lengths for file in packed if (lengths := file.lengths()) is not None]
    limits = {start for file in packed for start, _, _ in file.histogram}
    return lengths_of(parts, limits) if len(parts) == len(packed) else None


def _facts(dataset: Dataset, inherited: Mapping[str, str]) -> list[tuple[str, Any]]:
    """Returns the values of the metadata that have no place of their own on the page."""
    metadata = dataset.metadata
    facts: list[tuple[str, Any]] = [
        ("downloaded", metadata.date_downloaded),
        ("source", metadata.download_source),
        ("content", metadata.data_content),
        ("content field", metadata.content_field),
        ("data", metadata.dataset_path),
    ]
    facts += [(key.replace("_", " "), dataset.details.get(key)) for key in _DETAILS_SHOWN]
    info = metadata.tokenized_info
    if info is not None:
        facts += [("token type", info.dtype), ("vocabulary", info.vocab_size)]
        facts += [(key, _value_text(value)) for key, value in _first(info.unknown)]
    facts += [(key, _value_text(value)) for key, value in _first(metadata.unknown)]
    if dataset.parent is not None:
        raw = f"inherited from {dataset.parent['name']}"
        facts += [
            ("downloaded" if key == "date" else key, f"{value}, {raw}")
            for key, value in inherited.items()
            if key != "description"
        ]
    known = [(key, value) for key, value in facts if value not in (None, "")]
    return [(key, f"{value:,}" if isinstance(value, int) else _value_text(value)) for key, value in known]


def _first(values: dict[str, Any]) -> list[tuple[str, Any]]:
    """Returns the first values of those that a file may have any number of."""
    return list(islice(values.items(), _MAX_VALUES))


def _value_text(value: Any) -> str:
    """Returns a value of any shape and size in one short line."""
    if isinstance(value, str):
        return value[:1000]
    return json.dumps(value) if value is None or isinstance(value, bool | int | float) else _SHORT.repr(value)


def _files(
    site: Site,
    dataset: Dataset,
    paths: Sequence[str],
    packed: Sequence[Packed],
    unreadable: Mapping[str, str],
) -> list[ListedFile]:
    listed = dataset.details.get("files")
    by_name = {
        file["path"]: file
        for file in (listed if isinstance(listed, list) else [])
        if isinstance(file, dict) and isinstance(file.get("path"), str)
    }
    if dataset.metadata.tokenized_info is None:
        return _texts(site, dataset, by_name)
    faults = dict(unreadable)
    names = {path: path.removeprefix(f"{dataset.folder}/") for path in paths}
    for file in packed:
        if fault := _fault(file, by_name.get(names[file.name], {})):
            faults[file.name] = fault
    return [
        _listed(name, None if path in unreadable else path, by_name.get(name, {}), faults.get(path))
        for path, name in names.items()
    ]


def _fault(packed: Packed, recorded: dict[str, Any]) -> str | None:
    """Returns what is wrong with a token file, given what the details of its dataset record."""
    reader = packed.reader
    actual = {
        "bytes": reader.file_bytes,
        "documents": len(reader),
        "tokens": reader.num_tokens,
        "trailer_crc32c": reader.trailer_crc32c,
    }
    return packed.faults[0] if packed.faults else difference(recorded, actual)


def _texts(site: Site, dataset: Dataset, by_name: dict[str, dict[str, Any]]) -> list[ListedFile]:
    """Returns the files of texts that the details list; the first ones are looked up."""
    folder = data_folder(site, dataset)
    files = []
    for i, (name, facts) in enumerate(by_name.items()):
        fault = None
        if folder is not None and i < _MAX_LOOKED_UP:
            try:
                file = site.root.open(f"{folder}/{name}")
            except NotServedError:
                fault = "no such file below the folder that is served"
            else:
                fault = difference(facts, {"bytes": file.identity.bytes})
        files.append(_listed(name, None, facts, fault))
    return files


def _listed(name: str, path: str | None, facts: dict[str, Any], fault: str | None) -> ListedFile:
    def number(key: str) -> int | None:
        value = facts.get(key)
        return value if isinstance(value, int) else None

    trailer = number("trailer_crc32c")
    checksum = facts.get("crc32c") if trailer is None else f"{trailer:08x} (trailer)"
    return ListedFile(
        name,
        path,
        number("bytes"),
        number("documents"),
        number("tokens"),
        checksum[:80] if isinstance(checksum, str) else None,
        fault,
    )


def _corpora(dataset: Dataset) -> list[tuple[str, Any, Any]]:
    """Returns the corpora with their documents and bytes, if those were counted."""
    counted = dataset.details.get("corpora")
    by_name = counted if isinstance(counted, dict) else {}
    rows = []
    for name in dataset.metadata.corpuses[:MAX_FILES_SHOWN]:
        facts = by_name.get(name)
        facts = facts if isinstance(facts, dict) else {}
        rows.append((name, facts.get("documents"), facts.get("text_bytes")))
    return rows


def _ratio_facts(counts: TextCounts | None) -> dict[str, Any]:
    """Returns the bytes per token as JSON."""
    if counts is None:
        return {"bytes_per_token": None, "is_estimate": None}
    return {"bytes_per_token": counts.bytes_per_token, "is_estimate": counts.is_estimate}


def _recorded_ratio(details: dict[str, Any]) -> float | None:
    """Returns the bytes per token of the texts of a tokenized dataset, if its details record them."""
    text = details.get("text")
    if not isinstance(text, dict):
        return None
    numbers = [text.get(name) for name in ("bytes", "tokens")]
    known = [number for number in numbers if isinstance(number, int) and 0 < number < _MAX_COUNT]
    return TextCounts(known[0], known[1]).bytes_per_token if len(known) == 2 else None

"""The page of a dataset: its description, where it came from, what was made from it, and how to load it."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from reprlib import Repr
from typing import Any

from starlette.responses import Response

from packtok.explore.contents.catalog import Dataset
from packtok.explore.contents.packed import MAX_HISTOGRAM_DOCUMENTS, Packed
from packtok.explore.files import NotServedError
from packtok.explore.html.texts import markdown
from packtok.explore.pages.histogram import Histogram, histogram_of
from packtok.explore.pages.loading import commands_of_dataset, commands_of_file
from packtok.explore.site import Site

MAX_FILES_SHOWN = 100
_MAX_HISTOGRAM_FILES = 64
# Metadata may contain any number.
_MAX_COUNT = 1 << 63
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


def dataset_page(site: Site, folder: str) -> Response:
    """Returns the page of the dataset in a folder."""
    if site.catalog is None:
        raise NotServedError(f"{folder}: only the file {site.single} is served")
    dataset = site.catalog.dataset(folder)
    paths = site.catalog.token_files(dataset)
    packed, unreadable = _opened(site, paths[:_MAX_HISTOGRAM_FILES])
    files = _files(dataset, paths, unreadable)
    children = dataset.children[:MAX_FILES_SHOWN]
    return site.pages.html(
        "dataset.html",
        dataset=dataset,
        metadata=dataset.metadata,
        description=markdown(dataset.metadata.description),
        info=dataset.metadata.tokenized_info,
        facts=_facts(dataset),
        bytes_per_token=_bytes_per_token(site, dataset),
        ratios=[_ratio(dataset.details.get("text_bytes"), child["tokens"]) for child in children],
        children=children,
        files=files[:MAX_FILES_SHOWN],
        num_files=len(files),
        unreadable=list(unreadable.values()),
        corpora=_corpora(dataset),
        shown=dataset.folder if len(paths) > 1 and not unreadable else packed[0].name if packed else None,
        histogram=_histogram(packed, len(paths)),
        commands=commands_of_dataset(site.root.folder, dataset, paths),
    )


def file_page(site: Site, name: str) -> Response:
    """Returns the page of one pbin."""
    packed = site.files.open(name)
    decoder = site.tokenizers.decoder(packed)
    counts = packed.metadata.get("counts") or {}
    return site.pages.html(
        "file.html",
        packed=packed,
        group=site.files.group(name, [name]),
        trail=site.trail(name),
        metadata=packed.metadata,
        decoder=decoder,
        sources=packed.sources.first[:MAX_FILES_SHOWN],
        num_sources=packed.sources.number,
        bytes_per_token=packed.bytes_per_token(),
        histogram=_histogram([packed], 1),
        options={key: _value_text(value) for key, value in (packed.metadata.get("options") or {}).items()},
        counts={key: value for key, value in counts.items() if isinstance(value, int)},
        commands=commands_of_file(site.path_of(packed)),
    )


def _opened(site: Site, paths: Sequence[str]) -> tuple[list[Packed], dict[str, str]]:
    """Returns the pbins among some files, and the reasons why the others cannot be opened."""
    packed, unreadable = [], {}
    for path in paths:
        try:
            packed.append(site.files.open(path))
        except NotServedError as error:
            unreadable[path] = str(error)
    return packed, unreadable


def _histogram(packed: Sequence[Packed], num_files: int) -> Histogram | None:
    if not packed or len(packed) < num_files:
        return None
    if sum(file.num_documents for file in packed) > MAX_HISTOGRAM_DOCUMENTS:
        return None
    return histogram_of([file.histogram for file in packed])


def _facts(dataset: Dataset) -> list[tuple[str, Any]]:
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
        facts += [(key, _value_text(value)) for key, value in list(info.unknown.items())[:50]]
    facts += [(key, _value_text(value)) for key, value in list(metadata.unknown.items())[:50]]
    known = [(key, value) for key, value in facts if value not in (None, "")]
    return [(key, f"{value:,}" if isinstance(value, int) else _value_text(value)) for key, value in known]


def _value_text(value: Any) -> str:
    """Returns a value of any shape and size in one short line."""
    if isinstance(value, str):
        return value[:1000]
    return json.dumps(value) if value is None or isinstance(value, bool | int | float) else _SHORT.repr(value)


def _files(dataset: Dataset, paths: Sequence[str], unreadable: Collection[str]) -> list[ListedFile]:
    listed = dataset.details.get("files")
    by_name = {
        file["path"]: file
        for file in (listed if isinstance(listed, list) else [])
        if isinstance(file, dict) and isinstance(file.get("path"), str)
    }
    if dataset.metadata.tokenized_info is None:
        return [_listed(name, None, file) for name, file in by_name.items()]
    names = [path.removeprefix(f"{dataset.folder}/") for path in paths]
    return [
        _listed(name, None if path in unreadable else path, by_name.get(name, {}))
        for name, path in zip(names, paths, strict=True)
    ]


def _listed(name: str, path: str | None, facts: dict[str, Any]) -> ListedFile:
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


def _bytes_per_token(site: Site, dataset: Dataset) -> tuple[float, str] | None:
    """Returns the bytes per token, and the kind of bytes."""
    tokens = dataset.details.get("tokens")
    if dataset.parent is not None and dataset.parent["folder"] is not None and site.catalog is not None:
        parent = site.catalog.details(dataset.parent)
        if parent.get("documents") == dataset.details.get("documents"):
            ratio = _ratio(parent.get("text_bytes"), tokens)
            if ratio is not None:
                return ratio, "of text"
    ratio = _ratio(dataset.details.get("source_bytes"), tokens)
    return None if ratio is None else (ratio, "of source files")


def _ratio(num_bytes: Any, tokens: Any) -> float | None:
    is_known = all(isinstance(number, int) and 0 < number < _MAX_COUNT for number in (num_bytes, tokens))
    return num_bytes / tokens if is_known else None

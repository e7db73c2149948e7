"""The page of the record that a document was made from, if its source is below the folder that is served."""

import csv
import gzip
import os
import time
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok._packtok import Origin, is_corpus_name
from packtok.explore.contents.packed import Packed
from packtok.explore.files import NotServedError, OpenFile
from packtok.explore.html.rendering import link
from packtok.explore.pages.answers import answer
from packtok.explore.pages.datasets import data_folder
from packtok.explore.pages.documents import RecordedOrigin, recorded_origin
from packtok.explore.pages.parameters import integer
from packtok.explore.site import Site

_MAX_RECORD_BYTES = 64 << 10
_BLOCK_BYTES = 1 << 20
# The time to decompress a source up to a record.
_SECONDS = 2.0
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_DELIMITERS = {"csv": ",", "tsv": "\t"}


class NoRecordError(Exception):
    """The record of a document cannot be shown; the message is the reason."""


@dataclass(frozen=True)
class SourceRecord:
    """The record that a document was made from."""

    path: str
    """Path of the source below the folder."""
    text: str
    """The record as it is in the source, or its start. Bytes that belong to no character are replaced."""
    is_cut: bool
    format: str
    field: str | None
    """The field that is the text of the document; ``None`` if the whole record is."""


def record_page(site: Site, name: str, parameters: QueryParams) -> Response:
    """Returns the page of the record that a document of a file or dataset was made from."""
    group = site.group(name)
    document = integer(parameters, "document", 0, most=max(0, group.num_documents - 1))
    if not group.num_documents:
        raise NotServedError(f"{name} has no documents")
    file, number = group.place(document)
    packed = site.files.open(file)
    origin = recorded_origin(packed, number)
    record, reason = None, None
    try:
        record = _record(site, packed, origin)
    except NoRecordError as error:
        reason = str(error)
    facts = {
        "path": group.name,
        "document": document,
        "origin": origin.facts,
        "source": None if record is None else record.path,
        "format": None if record is None else record.format,
        "field": None if record is None else record.field,
        "record": None if record is None else record.text,
        "is_cut": None if record is None else record.is_cut,
        "reason": reason,
    }
    trail = [*site.trail(name), (f"Document {document:,}", str(link("documents", name, document=document)))]
    return answer(
        parameters,
        lambda: facts,
        lambda: site.pages.html(
            "record.html",
            group=group,
            document=document,
            trail=trail,
            origin=origin,
            record=record,
            reason=reason,
            max_bytes=_MAX_RECORD_BYTES,
        ),
    )


def _record(site: Site, packed: Packed, recorded: RecordedOrigin) -> SourceRecord:
    """Returns the record of a document.

    Raises:
        NoRecordError: If it cannot be shown.
    """
    if recorded.fault:
        raise NoRecordError(f"the origin of the document cannot be read: {recorded.fault}")
    if recorded.origin is None:
        raise NoRecordError(
            f"{packed.name} does not record where its documents came from; pack it with packtok pack "
            "--origins"
        )
    source = _source(packed, recorded.origin)
    options = packed.metadata.get("options") or {}
    format_ = str(source.get("format") or options.get("format"))
    if format_ not in ("jsonl", "csv", "tsv", "text"):
        raise NoRecordError(
            f"the source {source['path']} is {format_}, of which the page shows no single record; its "
            f"{recorded.origin.unit} is {recorded.origin.offset:,}"
        )
    file = _source_file(site, packed, source)
    content = _bytes_at(file, recorded.origin.offset)
    record = _first_record(content, format_, options.get("text_separator"))
    is_cut = len(record) == len(content) > _MAX_RECORD_BYTES
    text = record[:_MAX_RECORD_BYTES].decode("utf-8", "ignore" if is_cut else "replace")
    fields = options.get("input_fields") or [options.get("field")]
    field = fields[min(int(source.get("input") or 0), len(fields) - 1)]
    return SourceRecord(file.name, text, is_cut, format_, None if format_ == "text" else field)


def _source(packed: Packed, origin: Origin) -> dict[str, Any]:
    """Returns what a file records about a source."""
    first = packed.sources.first
    if origin.source_index < len(first):
        return first[origin.source_index]
    return packed.reader.sources[origin.source_index]


def _source_file(site: Site, packed: Packed, source: dict[str, Any]) -> OpenFile:
    """Returns a source, which is looked for in the raw dataset, next to the file, and in the base directory.

    A trailer may be from elsewhere and name any file below the folder, so only a file is opened whose name is
    one of a corpus, and whose length is the recorded one.

    Raises:
        NoRecordError: If it is in none of these places.
    """
    path = PurePosixPath(str(source["path"]))
    if site.single is not None:
        raise NoRecordError(f"only {site.single} is served, so that its source {path} is not read")
    if path.is_absolute() or ".." in path.parts or not is_corpus_name(path.name):
        raise NoRecordError(f"the source {path} is not below the folder that is served")
    other_length = None
    for folder in _folders(site, packed):
        try:
            file = site.root.open(os.path.normpath(f"{folder}/{path}").lstrip("/"))
        except NotServedError:
            continue
        if file.identity.bytes == source["bytes"]:
            return file
        other_length = file
    if other_length is not None:
        raise NoRecordError(
            f"the source {other_length.name} has {other_length.identity.bytes:,} bytes, and it had "
            f"{source['bytes']:,} when it was packed"
        )
    raise NoRecordError(
        f"the source {path} is neither in the raw dataset of the file, nor next to the file, nor in the "
        "folder that is served"
    )


def _folders(site: Site, packed: Packed) -> list[str]:
    """Returns the folders below the one that is served in which sources of a file may be."""
    folders = [packed.name.rpartition("/")[0], "."]
    dataset = site.dataset_of(packed.name)
    if site.catalog is not None and dataset is not None:
        parent = site.catalog.dataset(dataset).parent
        if parent is not None and parent["folder"] is not None:
            try:
                folder = data_folder(site, site.catalog.described(parent["folder"]))
            except NotServedError:
                folder = None
            folders = folders if folder is None else [folder, *folders]
    return folders


def _bytes_at(file: OpenFile, offset: int) -> bytes:
    """Returns the bytes of a source from an offset on, which counts bytes after decompression.

    Raises:
        NoRecordError: If the source cannot be decompressed that far.
    """
    head = file.part(0, 4)
    if head == _ZSTD:
        raise NoRecordError(
            f"the source {file.name} is compressed with zstd, which the page reads only from its start; the "
            f"record is at byte {offset:,} after decompression"
        )
    if head[:2] != _GZIP:
        return file.part(offset, _MAX_RECORD_BYTES + 1)
    stop = time.monotonic() + _SECONDS
    try:
        with gzip.open(file.path) as source:
            while offset and (block := source.read(min(offset, _BLOCK_BYTES))):
                offset -= len(block)
                if time.monotonic() > stop:
                    raise NoRecordError(
                        f"the record is too far from the start of {file.name}, which is compressed"
                    )
            return source.read(_MAX_RECORD_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise NoRecordError(f"the source {file.name} cannot be decompressed: {error}") from None


def _first_record(content: bytes, format_: str, separator: str | None) -> bytes:
    """Returns the first record of the bytes of a source."""
    if format_ == "text":
        return content.partition(separator.encode())[0] if separator else content
    if format_ == "jsonl":
        return content.partition(b"\n")[0]
    # A row of a table may have several lines. Characters of one byte keep the lengths.
    lines = content.decode("latin-1").splitlines(keepends=True)
    reader = csv.reader(lines, delimiter=_DELIMITERS[format_])
    try:
        next(reader, None)
    except csv.Error:
        return content
    return "".join(lines[: reader.line_num]).rstrip("\r\n").encode("latin-1")

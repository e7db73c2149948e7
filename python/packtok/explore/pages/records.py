"""The page of the record that a document was made from, if its source is below the folder that is served."""

import os
import threading
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok._packtok import Origin, PacktokError, column_names, is_corpus_name, source_record
from packtok.explore.contents.packed import Packed
from packtok.explore.files import NotServedError, OpenFile
from packtok.explore.html.rendering import link
from packtok.explore.pages.answers import answer
from packtok.explore.pages.datasets import data_folder
from packtok.explore.pages.documents import RecordedOrigin, recorded_origin
from packtok.explore.pages.parameters import integer
from packtok.explore.site import Site

_MAX_RECORD_BYTES = 64 << 10
_MAX_COLUMNS = 100
# Longer rows of CSV and items of CBOR, which are read as a whole, are not shown.
_MAX_READ_BYTES = 16 << 20
# The time to find and read a record: of any page, and of one that was asked to take longer.
_SECONDS, _LONG_SECONDS = 2.0, 60.0
# One page at a time takes longer, so that the others have cores and threads.
_TAKES_LONG = threading.Lock()


class NoRecordError(Exception):
    """The record of a document cannot be shown; the message is the reason."""


class SlowRecordError(NoRecordError):
    """The record was not reached in the time of the page."""


@dataclass(frozen=True)
class SourceRecord:
    """The record that a document was made from."""

    path: str
    """Path of the source below the folder."""
    text: str | None
    """The line or text as it is in the source, or its start; ``None`` if the record has columns."""
    columns: list[dict[str, Any]] | None
    """The ``name``, ``text``, ``bytes`` and ``fault`` of each value, and whether it ``is_cut``."""
    num_columns: int
    is_cut: bool
    format: str
    field: str | None
    """The field that is the text of the document; ``None`` if the whole record is."""

    @property
    def text_path(self) -> list[str]:
        """The column that is the text, or the names that lead from a column to the text in it."""
        return column_names(self.field or "") or []


def record_page(site: Site, name: str, parameters: QueryParams) -> Response:
    """Returns the page of the record that a document of a file or dataset was made from."""
    group = site.group(name)
    document = integer(parameters, "document", 0, most=max(0, group.num_documents - 1))
    if not group.num_documents:
        raise NotServedError(f"{name} has no documents")
    file, number = group.place(document)
    packed = site.files.open(file)
    origin = recorded_origin(packed, number)
    takes_long = integer(parameters, "long", 0, most=1) == 1
    record, reason, can_take_longer = None, None, False
    try:
        record = _record(site, packed, origin, takes_long=takes_long)
    except NoRecordError as error:
        reason = str(error)
        can_take_longer = isinstance(error, SlowRecordError) and not takes_long
    facts = {
        "path": group.name,
        "document": document,
        "origin": origin.facts,
        "source": None if record is None else record.path,
        "format": None if record is None else record.format,
        "field": None if record is None else record.field,
        "record": None if record is None else record.text,
        "columns": None if record is None else record.columns,
        "is_cut": None if record is None else record.is_cut,
        "reason": reason,
        "can_take_longer": can_take_longer,
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
            can_take_longer=can_take_longer,
            long_seconds=round(_LONG_SECONDS),
            max_bytes=_MAX_RECORD_BYTES,
        ),
    )


def _record(site: Site, packed: Packed, recorded: RecordedOrigin, *, takes_long: bool) -> SourceRecord:
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
    file = _source_file(site, packed, source)
    separator = options.get("text_separator")
    seconds = _LONG_SECONDS if takes_long else _SECONDS
    if takes_long and not _TAKES_LONG.acquire(blocking=False):
        raise SlowRecordError("another page is reading for a long time; load this page again later")
    try:
        record = source_record(
            file.path,
            format_,
            offset=recorded.origin.offset,
            text_separator=separator if isinstance(separator, str) else None,
            max_columns=_MAX_COLUMNS,
            max_bytes=_MAX_RECORD_BYTES,
            max_record_bytes=_MAX_READ_BYTES,
            seconds=seconds,
        )
    except TimeoutError:
        raise SlowRecordError(
            f"the page reads for at most {seconds:g} seconds, and did not reach {recorded.origin.unit} "
            f"{recorded.origin.offset:,} of {file.name} in this time"
            + ("; read the file with a program" if takes_long else "")
        ) from None
    except (PacktokError, ValueError, OSError) as error:
        raise NoRecordError(str(error).replace(file.path, file.name)) from None
    finally:
        if takes_long:
            _TAKES_LONG.release()
    if record is None:
        raise NoRecordError(
            f"the source {file.name} ends before {recorded.origin.unit} {recorded.origin.offset:,}"
        )
    text, cells = record["text"], record["cells"]
    if text is not None and text["fault"]:
        raise NoRecordError(f"the record cannot be shown: {text['fault']}")
    fields = options.get("input_fields") or [options.get("field")]
    field = fields[min(int(source.get("input") or 0), len(fields) - 1)]
    columns = [{"name": name, **cell} for name, cell in zip(record["columns"], cells, strict=False)]
    return SourceRecord(
        path=file.name,
        text=None if text is None else text["text"],
        columns=columns if text is None else None,
        num_columns=record["num_columns"],
        is_cut=text["is_cut"] if text is not None else any(cell["is_cut"] for cell in cells),
        format=format_,
        field=None if format_ == "text" else field,
    )


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

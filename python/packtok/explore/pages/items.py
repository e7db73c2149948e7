"""The page of an item: what one row of a training batch holds, position by position."""

import os
import re
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok._packtok import Blocks, find_or_plan
from packtok.errors import PacktokError
from packtok.explore.contents.packed import FileGroup, Packed, ReadAs
from packtok.explore.contents.tokenizers import Decoder
from packtok.explore.files import NotServedError, OpenFile
from packtok.explore.html.tokens import NUM_BEFORE, Piece, pieces_of, tokens_html
from packtok.explore.pages.documents import Window
from packtok.explore.pages.parameters import ParameterError, choice, integer
from packtok.explore.site import Site

# The loader of each packing of the address; "chunks" are the items of `packtok.get_dataset`.
LOADERS = {
    "concat": "TokenDataset, concat",
    "document": "TokenDataset, document",
    "best_fit": "TokenDataset, best_fit",
    "chunks": "get_dataset",
}
IGNORED = -100
# One thread at a time opens all files of a dataset, so that the process has descriptors for them.
_DESCRIPTORS = threading.Lock()
_DEFAULT_LENGTH, _MAX_LENGTH = 512, 1 << 20
_WINDOW_POSITIONS = 256
# Planning more documents, or more parts of long documents, takes seconds, and memory for each of them.
_MAX_PLANNED_PARTS = 5_000_000
_SEGMENTS_SHOWN = 500


@dataclass(frozen=True)
class Position:
    """One input of an item."""

    index: int
    piece: Piece
    segment: int
    """The document of the item that the position belongs to, from 0; -1 in padding."""
    in_segment: int
    label: Piece | None
    """The token to predict; ``None`` if the position has no label."""
    is_next_document: bool
    """Whether the label is the first token of another document."""

    @property
    def details(self) -> str:
        """The label, for the line of facts about a token."""
        if self.segment < 0:
            return "padding"
        label = "no label" if self.label is None else f"label {self.label.id:,}"
        return f"position {self.in_segment:,} of its document · {label}"


@dataclass(frozen=True)
class Segment:
    """A part of an item: tokens of one document, or padding."""

    document: int | None
    """Its number in the file or dataset of the page."""
    file: str
    """Path of its file; empty for padding."""
    start: int
    """First token in the document."""
    stop: int
    first: int
    """First position in the item."""
    length: int

    @property
    def is_padding(self) -> bool:
        """Whether the segment is padding."""
        return self.document is None


@dataclass(frozen=True)
class Run:
    """Consecutive positions of one segment, as HTML."""

    segment: Segment
    html: Markup


def item_page(site: Site, name: str, parameters: QueryParams) -> Response:
    """Returns the page of an item of a file or dataset."""
    group = site.group(name)
    packing = choice(parameters, "packing", tuple(LOADERS))
    context_length = integer(parameters, "context_length", _DEFAULT_LENGTH, least=1, most=_MAX_LENGTH)
    values: dict[str, Any] = {
        "group": group,
        "call": _call(site, group, packing, context_length),
        "dataset": _larger_dataset(site, group),
        "trail": site.trail(name),
        "packing": packing,
        "context_length": context_length,
        "loaders": LOADERS,
    }
    try:
        if packing == "best_fit":
            # A plan is mapped while its items are open, so they are not kept.
            items = _items(site, group, packing, context_length)
        else:
            key = (group.identities, name, packing, context_length)
            items = site.blocks.value(key, lambda: _items(site, group, packing, context_length))
    except ValueError as error:
        return site.pages.html("no_item.html", reason=str(error), **values)
    blocks = items.blocks
    most = len(blocks) - 1
    if most < 0:
        kind = "dataset" if group.is_dataset else "file"
        return site.pages.html("no_item.html", reason=f"{name}: the {kind} has no documents", **values)
    item = integer(parameters, "item", 0, most=most)
    start = integer(parameters, "from", 0, most=context_length - 1)
    window = Window(start, min(start + _WINDOW_POSITIONS, context_length), context_length, _WINDOW_POSITIONS)
    fields = _filled(blocks, item, context_length, packing)
    segments = _Segments(items, group, item, fields["document_ids"])
    packed = site.files.open(segments[0].file or group.files[0])
    decoder = site.tokenizers.decoder(packed)
    fields["ends"] = segments.ends(site)
    before = _before(packed, group, segments[0], fields, window)
    positions = _positions(decoder, packed, fields, window, before)
    return site.pages.html(
        "item.html",
        item=item,
        window=window,
        decoder=decoder,
        last=most,
        segments=segments.first(_SEGMENTS_SHOWN),
        num_segments=len(segments),
        positions=positions,
        runs=list(_runs(positions, segments)),
        num_labels=int((fields["labels"] != IGNORED).sum()),
        num_padding=int((fields["document_ids"] < 0).sum()),
        **values,
    )


@dataclass(frozen=True)
class Items:
    """The items of a group of files."""

    blocks: Blocks
    files: dict[str, int]
    """The place in the group of each file, by the path that the blocks were made from."""


def _call(site: Site, group: FileGroup, packing: str, context_length: int) -> str:
    """Returns the call in Python that makes the items of the page."""
    path = str(site.path_of_group(group))
    if packing == "chunks":
        return f"packtok.get_dataset({path!a}, {context_length})"
    option = "" if packing == "concat" else f', packing="{packing}"'
    return f"packtok.TokenDataset({path!a}, {context_length}{option})"


def _larger_dataset(site: Site, group: FileGroup) -> str | None:
    """Returns the folder of the dataset with several files of which the page shows one."""
    folder = site.dataset_of(group.name)
    if group.is_dataset or folder is None or site.catalog is None:
        return None
    try:
        files = site.catalog.token_files(site.catalog.described(folder))
    except NotServedError:
        return None
    return folder if len(files) > 1 and group.name in files else None


def _items(site: Site, group: FileGroup, packing: str, context_length: int) -> Items:
    """Returns the items of files, as `packtok.TokenDataset` or `packtok.get_dataset` makes them."""
    if len(group.files) == 1:
        # A file of another format is opened by its name.
        packed = site.files.open(group.files[0])
        return _items_of(site, group, packing, context_length, [packed.path], packed.read_as)
    with _DESCRIPTORS:
        files = site.files.opened(group)
        return _items_of(site, group, packing, context_length, [file.path for file in files])


def _items_of(
    site: Site,
    group: FileGroup,
    packing: str,
    context_length: int,
    paths: list[str],
    read_as: ReadAs | None = None,
) -> Items:
    try:
        blocks = _blocks(site, group, packing, context_length, {"paths": paths, "read_as": read_as})
    except (PacktokError, ValueError) as error:
        # The message has the path that was opened; the page shows the name instead.
        named = dict(zip(paths, group.files, strict=True))
        pattern = "|".join(map(re.escape, sorted(named, key=len, reverse=True)))
        raise ValueError(re.sub(pattern, lambda match: named[match[0]], str(error))) from None
    return Items(blocks, {path: i for i, path in enumerate(paths)})


def _blocks(site: Site, group: FileGroup, packing: str, context_length: int, files: dict[str, Any]) -> Blocks:
    if packing == "chunks":
        return Blocks(**files, packing="chunks", context_length=context_length, by_file=True)
    if packing == "concat":
        return Blocks(**files, packing="rows", context_length=context_length)
    if packing == "document":
        # One token more than inputs, because the last input needs a label.
        return Blocks(**files, packing="document", block_size=context_length + 1)
    key = (group.identities, group.name, context_length)
    plan = site.plans.value(key, lambda: _plan(group, context_length, files))
    return Blocks(**files, packing="planned", plan_path=plan.path)


def _plan(group: FileGroup, context_length: int, files: dict[str, Any]) -> OpenFile:
    """Returns the plan of `best_fit`. Nothing is written next to the data, and the file has no name."""
    parts = group.num_documents + group.num_tokens // context_length
    if parts > _MAX_PLANNED_PARTS:
        raise ParameterError(
            f"packing is 'best_fit', and its plan has about {parts:,} parts of documents, too many for a "
            f"page; the limit is {_MAX_PLANNED_PARTS:,}"
        )
    documents = Blocks(**files, packing="whole")
    with tempfile.TemporaryDirectory(prefix="packtok-explore-") as folder:
        path = find_or_plan(documents, planner="best_fit", block_size=context_length, folders=[folder])
        return OpenFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC), group.name)


def _filled(blocks: Blocks, item: int, context_length: int, packing: str) -> dict[str, Any]:
    """Returns the fields of an item, by name. Items of `packtok.get_dataset` have no labels."""
    shapes = {"input_ids": np.int64, "position_ids": np.int64, "document_ids": np.int32}
    fields: dict[str, Any] = {name: np.empty((1, context_length), dtype) for name, dtype in shapes.items()}
    labels = np.full((1, context_length), IGNORED, np.int64)
    if packing == "chunks":
        blocks.fill([item], **fields)
    else:
        blocks.fill([item], **fields, labels=labels, pad_token_id=blocks.eod_id or 0, ignore_index=IGNORED)
    return {name: array[0] for name, array in (fields | {"labels": labels}).items()}


class _Segments:
    """The documents in an item, and its padding. A page shows few of the documents of a long item."""

    def __init__(self, items: Items, group: FileGroup, item: int, ids: npt.NDArray[np.int32]) -> None:
        self._located = items.blocks.locate(item)
        self._places, self._group = items.files, group
        self._ids = ids
        self._starts = np.flatnonzero(np.diff(ids, prepend=ids[0] - 1))
        self._stops = np.append(self._starts[1:], len(ids))

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, i: int) -> Segment:
        first, stop = int(self._starts[i]), int(self._stops[i])
        k = int(self._ids[first])
        if k < 0:
            return Segment(None, "", 0, 0, first, stop - first)
        path, number, start, _ = self._located[k]
        place = self._places[path]
        document = self._group.starts[place] + number
        return Segment(document, self._group.files[place], start, start + stop - first, first, stop - first)

    def first(self, number: int) -> list[Segment]:
        """Returns the first segments, at most ``number``."""
        return [self[i] for i in range(min(number, len(self)))]

    def ends(self, site: Site) -> npt.NDArray[np.bool_]:
        """Returns the positions that have the last token of a document, or the last padding."""
        ends = np.append(np.diff(self._ids) != 0, True)
        last = self[len(self) - 1]
        if last.document is not None:
            _, number = self._group.place(last.document)
            ends[-1] = last.stop == len(site.files.open(last.file).reader[number])
        return ends

    def at(self, position: int) -> Segment:
        """Returns the segment that contains a position of the item."""
        return self[int(np.searchsorted(self._starts, position, "right")) - 1]


def _before(
    packed: Packed, group: FileGroup, first: Segment, fields: dict[str, Any], window: Window
) -> list[int]:
    """Returns the last tokens before the window: of the item, or of the document that the item cuts."""
    ids: list[int] = fields["input_ids"][max(0, window.start - NUM_BEFORE) : window.start].tolist()
    if window.start == 0 and first.document is not None:
        tokens = packed.reader[group.place(first.document)[1]]
        ids = tokens[max(0, first.start - NUM_BEFORE) : first.start].tolist()
    return ids


def _positions(
    decoder: Decoder, packed: Packed, fields: dict[str, Any], window: Window, before: Sequence[int]
) -> list[Position]:
    part = slice(window.start, window.stop)
    inputs, labels = fields["input_ids"][part].tolist(), fields["labels"][part].tolist()

    def pieces(ids: Sequence[int], before: Sequence[int]) -> list[Piece]:
        return pieces_of(decoder.tokenizer, ids, decoder.special_ids, packed.eod_id, before=before)

    # A label follows the input at its position.
    labelled = [token for token, label in zip(inputs, labels, strict=True) if label != IGNORED]
    target_pieces = iter(pieces([label for label in labels if label != IGNORED], labelled[:1]))
    targets = [None if label == IGNORED else next(target_pieces) for label in labels]
    segments = fields["document_ids"]
    positions = []
    for i, piece, target in zip(
        range(window.start, window.stop), pieces(inputs, before), targets, strict=True
    ):
        is_last = bool(fields["ends"][i])
        position = int(fields["position_ids"][i])
        positions.append(
            Position(i, piece, int(segments[i]), position, target, is_last and target is not None)
        )
    return positions


def _runs(positions: Sequence[Position], segments: _Segments) -> list[Run]:
    runs = []
    for _, run in groupby(positions, lambda position: position.segment):
        members = list(run)
        segment = segments.at(members[0].index)
        details = [member.details for member in members]
        html = tokens_html([member.piece for member in members], members[0].index, more=details)
        runs.append(Run(segment, html))
    return runs

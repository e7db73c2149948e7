"""The page of an item: what one row of a training batch holds, position by position."""

import tempfile
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
from packtok.explore.contents.packed import Packed
from packtok.explore.contents.tokenizers import Decoder
from packtok.explore.html.tokens import NUM_BEFORE, Piece, pieces_of, tokens_html
from packtok.explore.pages.documents import Window
from packtok.explore.pages.parameters import ParameterError, choice, integer
from packtok.explore.site import Site

PACKINGS = ("concat", "document", "best_fit")
IGNORED = -100
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
    """Returns the page of an item of the pbin ``name``."""
    packed = site.files.open(name)
    packing = choice(parameters, "packing", PACKINGS)
    context_length = integer(parameters, "context_length", _DEFAULT_LENGTH, least=1, most=_MAX_LENGTH)
    values: dict[str, Any] = {
        "packed": packed,
        "trail": site.trail(name),
        "packing": packing,
        "context_length": context_length,
        "packings": PACKINGS,
    }
    key = (packed.identity, name, packing, context_length)
    try:
        blocks = site.blocks.value(key, lambda: _blocks(packed, packing, context_length))
    except ValueError as error:
        return site.pages.html("no_item.html", reason=str(error).replace(packed.path, name), **values)
    most = len(blocks) - 1
    if most < 0:
        return site.pages.html("no_item.html", reason=f"{name}: the file has no documents", **values)
    item = integer(parameters, "item", 0, most=most)
    start = integer(parameters, "from", 0, most=context_length - 1)
    window = Window(start, min(start + _WINDOW_POSITIONS, context_length), context_length, _WINDOW_POSITIONS)
    decoder = site.tokenizers.decoder(packed)
    fields = _filled(blocks, item, context_length, packed.eod_id)
    segments = _Segments(blocks, item, fields["document_ids"])
    fields["ends"] = segments.ends(packed)
    before = _before(packed, segments[0], fields, window)
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
        blocks=blocks,
        **values,
    )


def _blocks(packed: Packed, packing: str, context_length: int) -> Blocks:
    """Returns the items of a file, as `TokenDataset` makes them."""
    files: dict[str, Any] = {"paths": [packed.path], "read_as": packed.read_as}
    if packing == "concat":
        return Blocks(**files, packing="rows", context_length=context_length)
    if packing == "document":
        # One token more than inputs, because the last input needs a label.
        return Blocks(**files, packing="document", block_size=context_length + 1)
    parts = packed.num_documents + packed.reader.num_tokens // context_length
    if parts > _MAX_PLANNED_PARTS:
        raise ParameterError(
            f"packing is 'best_fit', and its plan has about {parts:,} parts of documents, too many for a "
            f"page; the limit is {_MAX_PLANNED_PARTS:,}"
        )
    documents = Blocks(**files, packing="whole")
    # The plan is mapped, so its file can be removed at once. Nothing is written next to the data.
    with tempfile.TemporaryDirectory(prefix="packtok-explore-") as folder:
        plan = find_or_plan(documents, planner="best_fit", block_size=context_length, folders=[folder])
        return Blocks(**files, packing="planned", plan_path=plan)


def _filled(blocks: Blocks, item: int, context_length: int, eod_id: int | None) -> dict[str, Any]:
    """Returns the fields of an item, by name."""
    shapes = {"input_ids": np.int64, "labels": np.int64, "position_ids": np.int64, "document_ids": np.int32}
    fields: dict[str, Any] = {name: np.empty((1, context_length), dtype) for name, dtype in shapes.items()}
    blocks.fill([item], **fields, pad_token_id=eod_id or 0, ignore_index=IGNORED)
    return {name: array[0] for name, array in fields.items()}


class _Segments:
    """The documents in an item, and its padding. A page shows few of the documents of a long item."""

    def __init__(self, blocks: Blocks, item: int, ids: npt.NDArray[np.int32]) -> None:
        self._located = blocks.locate(item)
        self._ids = ids
        self._starts = np.flatnonzero(np.diff(ids, prepend=ids[0] - 1))
        self._stops = np.append(self._starts[1:], len(ids))

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, i: int) -> Segment:
        first, stop = int(self._starts[i]), int(self._stops[i])
        k = int(self._ids[first])
        if k < 0:
            return Segment(None, 0, 0, first, stop - first)
        _, document, start, _ = self._located[k]
        return Segment(document, start, start + stop - first, first, stop - first)

    def first(self, number: int) -> list[Segment]:
        """Returns the first segments, at most ``number``."""
        return [self[i] for i in range(min(number, len(self)))]

    def ends(self, packed: Packed) -> npt.NDArray[np.bool_]:
        """Returns the positions that have the last token of a document, or the last padding."""
        ends = np.append(np.diff(self._ids) != 0, True)
        last = self[len(self) - 1]
        if last.document is not None:
            ends[-1] = last.stop == len(packed.reader[last.document])
        return ends

    def at(self, position: int) -> Segment:
        """Returns the segment that contains a position of the item."""
        return self[int(np.searchsorted(self._starts, position, "right")) - 1]


def _before(packed: Packed, first: Segment, fields: dict[str, Any], window: Window) -> list[int]:
    """Returns the last tokens before the window: of the item, or of the document that the item cuts."""
    ids: list[int] = fields["input_ids"][max(0, window.start - NUM_BEFORE) : window.start].tolist()
    if window.start == 0 and first.document is not None:
        ids = packed.reader[first.document][max(0, first.start - NUM_BEFORE) : first.start].tolist()
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

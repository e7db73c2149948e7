"""The content of a row for the pages of an item and of a batch: documents, mask, inputs and labels."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from packtok.data.run import IGNORED
from packtok.explore.contents.packed import Packed
from packtok.explore.contents.tokenizers import Decoder
from packtok.explore.html.mask import MAX_SHAPES, bounds_of, mask_svg
from packtok.explore.html.rendering import link
from packtok.explore.html.tokens import NUM_BEFORE, Piece, pairs_html, pieces_of, preview_html
from packtok.explore.pages.documents import Window

WINDOW_POSITIONS = 256
_DOCUMENTS_SHOWN = 12
# Positions of an answer as JSON; a row may have two billion.
MAX_JSON_POSITIONS = 1 << 16
MAX_JSON_DOCUMENTS = 4096
_FIELDS = ("input_ids", "labels", "position_ids", "document_ids")


@dataclass(frozen=True)
class RowFile:
    """A file that a row has documents of."""

    name: str
    packed: Packed | None
    """``None`` if it cannot be opened, such as one in a store."""
    decoder: Decoder
    pages: str | None
    """The file or dataset whose pages show its documents; ``None`` if it is not served."""
    first: int = 0
    """The number on those pages of the first document of the file."""


@dataclass(frozen=True)
class Segment:
    """A part of a row: tokens of one document, or padding."""

    file: RowFile | None
    """``None`` for padding."""
    document: int
    """Its number in the file."""
    start: int
    """First token in the document."""
    stop: int
    first: int
    """First position in the row."""
    length: int

    @property
    def is_padding(self) -> bool:
        """Whether the segment is padding."""
        return self.file is None

    @property
    def number(self) -> int:
        """The number of the document on its page."""
        return self.document + (0 if self.file is None else self.file.first)

    @property
    def url(self) -> Markup | None:
        """The page of the document, if there is one."""
        if self.file is None or self.file.pages is None:
            return None
        return link("documents", self.file.pages, document=self.number, from_=self.start or None)


@dataclass(frozen=True)
class Position:
    """One input of a row."""

    index: int
    piece: Piece
    segment: int
    """The document of the row that the position belongs to, from 0; -1 in padding."""
    in_segment: int
    label: Piece | None
    """The token to predict; ``None`` if the position has no label."""
    is_next_document: bool
    """Whether the label is the first token of another document."""

    @property
    def details(self) -> str:
        """The label, for the line of facts about a token."""
        label = "no label" if self.label is None else f"label {self.label.id:,}"
        return f"position {self.in_segment:,} of its document · {label}"


@dataclass(frozen=True)
class Run:
    """Consecutive positions of one segment, as HTML; empty for padding."""

    segment: Segment
    html: Markup


@dataclass(frozen=True)
class Part:
    """The positions of a window of a row."""

    window: Window
    decoder: Decoder
    positions: list[Position]
    runs: list[Run]


class Row:
    """The fields of a row, and the documents in it. A page shows few of the documents of a long row.

    Args:
        fields: ``input_ids``, ``labels``, ``position_ids`` and ``document_ids``.
        located: Its documents as (path, document in the file, start token, stop token).
        file_of: Returns the file at a path.
        has_labels: Whether the loader gives labels.
        is_aligned: Whether each label is the input at its position.
        separated_by: The options of the dataset by which attention can stay within documents.
        names_files: Whether the page names the file of each document.
    """

    def __init__(
        self,
        fields: Mapping[str, npt.NDArray[Any]],
        located: Sequence[tuple[str, int, int, int]],
        file_of: Callable[[str], RowFile],
        *,
        has_labels: bool,
        is_aligned: bool,
        separated_by: Sequence[str],
        names_files: bool,
    ) -> None:
        self.has_labels = has_labels
        self.separated_by = separated_by
        self.names_files = names_files
        self._fields = fields
        self._located = located
        self._file_of = file_of
        self._files: dict[str, RowFile] = {}
        self._is_aligned = is_aligned
        self._bounds = bounds_of(fields["document_ids"])

    @property
    def length(self) -> int:
        """Number of inputs."""
        return len(self._fields["input_ids"])

    @cached_property
    def num_labels(self) -> int:
        """Number of positions with a label."""
        return int((self._fields["labels"] != IGNORED).sum())

    @cached_property
    def num_padding(self) -> int:
        """Number of positions of padding."""
        return int((self._fields["document_ids"] < 0).sum())

    @property
    def num_documents(self) -> int:
        """Number of documents that inputs belong to."""
        return int((~self._bounds.is_padding).sum())

    @cached_property
    def documents(self) -> list[Segment]:
        """The first documents."""
        return [self._segment(i) for i in range(min(self.num_documents, _DOCUMENTS_SHOWN))]

    def mask(self, max_shapes: int = MAX_SHAPES) -> Markup:
        """Returns the picture of the attention mask."""
        return mask_svg(self._bounds, separates=bool(self.separated_by), max_shapes=max_shapes)

    def window(self, start: int) -> Window:
        """Returns the window of the page that starts at a position."""
        return Window(start, min(start + WINDOW_POSITIONS, self.length), self.length, WINDOW_POSITIONS)

    def part(self, window: Window) -> Part:
        """Returns the positions of a window. Padding has one place, whatever its length."""
        shown = self._segments_in(window.start, window.stop)
        files = [segment.file for segment in shown if segment.file is not None]
        decoder = _common_decoder(files or [segment.file for segment in self.documents[:1] if segment.file])
        eod_id = next((file.packed.eod_id for file in files if file.packed is not None), None)
        positions = self._positions(decoder, eod_id, window, shown[0])
        return Part(window, decoder, positions, list(_runs(positions, shown)))

    def preview(self, num_positions: int) -> tuple[Markup, str]:
        """Returns the first inputs as HTML, and why their text is not shown, if it is not."""
        stop = min(num_positions, self.length - self.num_padding)
        if not stop:
            return Markup(), ""
        part = self.part(Window(0, stop, self.length, num_positions))
        return preview_html([position.piece for position in part.positions]), part.decoder.reason

    def facts(self, start: int) -> dict[str, Any]:
        """Returns the numbers of the row, and its fields from a position on, for JSON."""
        positions = slice(start, start + MAX_JSON_POSITIONS)
        return {
            "context_length": self.length,
            "num_labels": self.num_labels if self.has_labels else None,
            "num_documents": len(self._located),
            "num_padding": self.num_padding,
            "first_position": start,
            **{name: self._fields[name][positions].tolist() for name in _FIELDS},
        }

    def _segment(self, i: int) -> Segment:
        first, stop = int(self._bounds.starts[i]), int(self._bounds.stops[i])
        if self._bounds.is_padding[i]:
            return Segment(None, 0, 0, 0, first, stop - first)
        path, document, start, _ = self._located[int(self._fields["document_ids"][first])]
        if path not in self._files:
            self._files[path] = self._file_of(path)
        return Segment(self._files[path], document, start, start + stop - first, first, stop - first)

    def _segments_in(self, start: int, stop: int) -> list[Segment]:
        first = int(np.searchsorted(self._bounds.starts, start, "right")) - 1
        last = int(np.searchsorted(self._bounds.starts, stop - 1, "right"))
        return [self._segment(i) for i in range(first, last)]

    def _positions(
        self, decoder: Decoder, eod_id: int | None, window: Window, first: Segment
    ) -> list[Position]:
        part = slice(window.start, window.stop)
        inputs, labels, ids, places = (
            self._fields[name][part].tolist()
            for name in ("input_ids", "labels", "document_ids", "position_ids")
        )

        def pieces(tokens: Sequence[int], before: Sequence[int]) -> list[Piece]:
            return pieces_of(decoder.tokenizer, tokens, decoder.special_ids, eod_id, before=before)

        shown = pieces(inputs, self._before(window, first))
        if self._is_aligned:
            targets = iter([piece for piece, label in zip(shown, labels, strict=True) if label != IGNORED])
        else:
            # A label follows the input at its position.
            labelled = [token for token, label in zip(inputs, labels, strict=True) if label != IGNORED]
            targets = iter(pieces([label for label in labels if label != IGNORED], labelled[:1]))
        positions = []
        for i, (piece, label) in enumerate(zip(shown, labels, strict=True)):
            index = window.start + i
            target = None if label == IGNORED else next(targets)
            is_next = target is not None and not self._is_aligned and bool(self._ends[index])
            positions.append(Position(index, piece, ids[i], places[i], target, is_next))
        return positions

    @cached_property
    def _ends(self) -> npt.NDArray[np.bool_]:
        """The positions that have the last token of a document, or the last padding."""
        ends = np.append(np.diff(self._fields["document_ids"]) != 0, True)
        last = self._segment(len(self._bounds.starts) - 1)
        if last.file is not None and last.file.packed is not None:
            ends[-1] = last.stop == len(last.file.packed.reader[last.document])
        return ends

    def _before(self, window: Window, first: Segment) -> list[int]:
        """Returns the last tokens before a window: of the row, or of the document that the row cuts."""
        tokens, start = self._fields["input_ids"], window.start
        if start == 0 and first.file is not None and first.file.packed is not None:
            tokens, start = first.file.packed.reader[first.document], first.start
        before: list[int] = tokens[max(0, start - NUM_BEFORE) : start].tolist()
        return before


def _common_decoder(files: Sequence[RowFile]) -> Decoder:
    """Returns the tokenizer that made all files, or the reason why there is none."""
    if unknown := [file.decoder for file in files if file.decoder.tokenizer is None]:
        return unknown[0]
    if len({file.decoder.tokenizer.fingerprint for file in files if file.decoder.tokenizer is not None}) > 1:
        return Decoder(None, "its documents were packed with different tokenizers")
    return files[0].decoder if files else Decoder(None)


def _runs(positions: Sequence[Position], segments: Sequence[Segment]) -> Iterable[Run]:
    by_segment = groupby(positions, lambda position: position.segment)
    for segment, (_, run) in zip(segments, by_segment, strict=True):
        members = list(run)
        html = Markup() if segment.is_padding else _pairs(members)
        yield Run(segment, html)


def _pairs(members: Sequence[Position]) -> Markup:
    return pairs_html(
        [(member.piece, member.label) for member in members],
        members[0].index,
        more=[member.details for member in members],
    )

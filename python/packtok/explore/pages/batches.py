"""The pages of a batch of a run, and of a row of it: its documents, inputs, labels and attention mask."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok.data.run import IGNORED, Run, RunRow
from packtok.explore.contents.packed import Packed
from packtok.explore.contents.tokenizers import Decoder
from packtok.explore.files import NotServedError
from packtok.explore.html.mask import bounds_of, mask_svg
from packtok.explore.html.rendering import link
from packtok.explore.html.tokens import NUM_BEFORE, Piece, pieces_of
from packtok.explore.pages.answers import answer
from packtok.explore.pages.documents import Window
from packtok.explore.pages.parameters import ParameterError, integer
from packtok.explore.site import Site, site_of_file

_ROWS_SHOWN = 32
_DOCUMENTS_SHOWN = 100
_WINDOW_POSITIONS = 256


@dataclass(frozen=True)
class Cell:
    """A position of a row, or all its padding."""

    position: int
    input: Piece | None
    """``None`` for padding."""
    label: Piece | None
    """``None`` if the position has no label."""
    length: int = 1


@dataclass(frozen=True)
class ShownRow:
    """A row on the page of its batch."""

    row: RunRow
    facts: dict[str, Any]
    url: Markup
    mask: Markup
    documents: list[tuple[str, str | None]]
    """The text and the URL of each of the first documents; files outside the folder have no pages."""


def batch_page(site: Site, name: str, parameters: QueryParams) -> Response:
    """Returns the page of a rank's batch in a step of the run, or of one of its rows."""
    run = site.run
    if run is None or name:
        raise NotServedError("no run is served; start packtok explore with --run")
    epoch, step = _place(run, parameters)
    rank = integer(parameters, "rank", 0, most=run.num_replicas - 1)
    try:
        rows = [row for row in run.batch(step, epoch) if row.rank == rank]
    except IndexError as error:
        raise ParameterError(str(error)) from None
    place: dict[str, Any] = {"epoch": epoch, "step": step, "rank": rank}
    values: dict[str, Any] = {
        **place,
        "num_steps": run.epochs.num_steps(epoch, 0),
        "num_ranks": run.num_replicas,
        "num_rows": len(rows),
        "next_step": run.next_step,
        "separates": run.sources[0].separated_by,
    }
    if "row" in parameters:
        number = integer(parameters, "row", 0, most=max(0, len(rows) - 1))
        if not rows:
            raise ParameterError(f"row is {number}, but rank {rank} has no row in this step")
        return _row_page(site, run, rows[number], parameters, values)
    first = integer(parameters, "from", 0, most=max(0, len(rows) - 1))
    shown = [_shown(site, run, row, place) for row in rows[first : first + _ROWS_SHOWN]]
    following = first + _ROWS_SHOWN if first + _ROWS_SHOWN < len(rows) else None
    return answer(
        parameters,
        {**place, "num_rows": len(rows), "first_row": first, "rows": [row.facts for row in shown]},
        lambda: site.pages.html("batch.html", rows=shown, following=following, **values),
    )


def _place(run: Run, parameters: QueryParams) -> tuple[int, int]:
    """Returns the epoch, and the step in it. By default, it follows the saved state."""
    if not parameters.get("epoch") and not parameters.get("step") and run.next_step is not None:
        return run.next_step
    step = integer(parameters, "step", 0)
    if parameters.get("epoch"):
        return integer(parameters, "epoch", 0, most=1 << 40), step
    # As in `packtok locate`, a step without an epoch is counted over the whole run.
    epoch, own = run.epochs.order.epoch_of(step)
    return epoch, own


def _facts(run: Run, row: RunRow) -> dict[str, Any]:
    """Returns a row as `packtok locate` gives it, with its source and the number of its labels."""
    source, own = run.source_of(row.item)
    names = ("path", "document", "start", "stop")
    documents = [dict(zip(names, part, strict=True)) for part in run.locate(row.item)]
    return {**asdict(row), "source": run.names[source], "item_of_source": own, "documents": documents}


def _shown(site: Site, run: Run, row: RunRow, place: dict[str, Any]) -> ShownRow:
    facts = _facts(run, row)
    mask = mask_svg(bounds_of(run.fields(row.item)["document_ids"]))
    url = link("batch", **place, row=row.row)
    return ShownRow(row, facts, url, mask, _document_links(site, facts["documents"]))


def _document_links(site: Site, documents: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    links: list[tuple[str, str | None]] = []
    for part in documents[:_DOCUMENTS_SHOWN]:
        text = f"{os.path.basename(part['path'])}:{part['document']}[{part['start']}:{part['stop']}]"
        name = _name(site, str(part["path"]))
        url = None if name is None else link("documents", name, document=part["document"])
        links.append((text, url))
    return links


def _name(site: Site, path: str) -> str | None:
    """Returns the path of a file below the folder that is served, if it is there."""
    resolved, prefix = os.path.realpath(path), f"{site.root.folder}/".replace("//", "/")
    name = resolved.removeprefix(prefix)
    return name if resolved.startswith(prefix) and site.root.contains(name) else None


def _row_page(site: Site, run: Run, row: RunRow, parameters: QueryParams, values: dict[str, Any]) -> Response:
    facts, fields = _facts(run, row), run.fields(row.item)
    length = len(fields["input_ids"])
    arrays = {name: array.tolist() for name, array in fields.items()}

    def page() -> Response:
        start = integer(parameters, "from", 0, most=length - 1)
        window = Window(start, min(start + _WINDOW_POSITIONS, length), length, _WINDOW_POSITIONS)
        packed, decoder = _decoder(site, str(facts["documents"][0]["path"]))
        source = run.sources[run.source_of(row.item)[0]]
        return site.pages.html(
            "row.html",
            row=row,
            facts=facts,
            documents=_document_links(site, facts["documents"]),
            num_documents=len(facts["documents"]),
            num_labels=int((fields["labels"] != IGNORED).sum()),
            num_padding=int((fields["document_ids"] < 0).sum()),
            mask=mask_svg(bounds_of(fields["document_ids"])),
            cells=_cells(decoder, packed, arrays, window, is_aligned=source.aligned),
            decoder=decoder,
            window=window,
            **values,
        )

    return answer(parameters, {**facts, **arrays}, page)


def _decoder(site: Site, path: str) -> tuple[Packed, Decoder]:
    """Returns a file of the run, which need not be below the folder that is served, and its tokenizer."""
    own = site.results.value(("run", path), lambda: site_of_file(Path(path)))
    packed = own.files.open(str(own.single))
    decoder = own.tokenizers.decoder(packed)
    return packed, decoder if decoder.tokenizer is not None else site.tokenizers.decoder(packed)


def _cells(
    decoder: Decoder, packed: Packed, arrays: dict[str, list[int]], window: Window, *, is_aligned: bool
) -> list[Cell]:
    """Returns the positions of a window; its padding is one cell."""
    part = slice(window.start, window.stop)
    inputs, labels, ids = (arrays[name][part] for name in ("input_ids", "labels", "document_ids"))
    before = arrays["input_ids"][max(0, window.start - NUM_BEFORE) : window.start]
    num_inputs = sum(number >= 0 for number in ids)

    def pieces(tokens: list[int], before: list[int]) -> list[Piece]:
        return pieces_of(decoder.tokenizer, tokens, decoder.special_ids, packed.eod_id, before=before)

    shown = pieces(inputs[:num_inputs], before)
    labelled = [token for token, label in zip(inputs, labels, strict=True) if label != IGNORED]
    # A shifted label follows the input at its position.
    targets = iter(
        pieces([label for label in labels if label != IGNORED], before if is_aligned else labelled[:1])
    )
    cells = [
        Cell(window.start + i, piece, None if labels[i] == IGNORED else next(targets))
        for i, piece in enumerate(shown)
    ]
    if num_inputs < len(ids):
        cells.append(Cell(window.start + num_inputs, None, None, len(ids) - num_inputs))
    return cells

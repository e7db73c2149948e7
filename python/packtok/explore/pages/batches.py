"""The pages of a batch of a run, and of a row of it: documents, inputs, labels and attention masks."""

import os
from dataclasses import asdict, dataclass
from typing import Any

from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok.data.run import Run, RunRow
from packtok.errors import PacktokError
from packtok.explore.contents.packed import Packed, ReadAs
from packtok.explore.contents.tokenizers import Decoder
from packtok.explore.files import NotServedError
from packtok.explore.html.rendering import link
from packtok.explore.pages.answers import answer
from packtok.explore.pages.parameters import ParameterError, integer
from packtok.explore.pages.rows import MAX_JSON_DOCUMENTS, Row, RowFile
from packtok.explore.site import Site

_ROWS_SHOWN = 16
# Positions of each row whose text a page shows, and the parts of its picture.
_PREVIEW_POSITIONS = 64
_PREVIEW_SHAPES = 60


@dataclass(frozen=True)
class ShownRow:
    """A row on the page of its batch."""

    place: RunRow
    source: str
    """The source of a mixture and the item in it; empty for one dataset."""
    row: Row
    url: Markup
    text: Markup
    """Its first inputs."""
    reason: str
    """Why the text is not shown, if it is not."""

    @property
    def mask(self) -> Markup:
        """The picture of its attention mask, with few shapes."""
        return self.row.mask(_PREVIEW_SHAPES)


def batch_page(site: Site, name: str, parameters: QueryParams) -> Response:
    """Returns the page of a rank's batch in a step of the run, or of one of its rows."""
    run = site.run
    if run is None or name:
        raise NotServedError("no run is served; start packtok explore with --run")
    epoch, step = _step(run, parameters)
    rank = integer(parameters, "rank", 0, most=run.num_replicas - 1)
    try:
        rows = run.batch(step, epoch, rank)
    except IndexError as error:
        raise ParameterError(str(error)) from None
    place: dict[str, Any] = {"epoch": epoch, "step": step, "rank": rank}
    values: dict[str, Any] = {
        **place,
        "num_steps": run.epochs.num_steps(epoch, 0),
        "num_ranks": run.num_replicas,
        "num_rows": len(rows),
        "next_step": run.next_step,
        "skipped": run.skipped if run.skipped is not None and run.skipped[0] == epoch else None,
        "separated_by": run.sources[0].separated_by,
        "has_positions": run.sources[0].has_positions,
    }
    if "row" in parameters:
        if not rows:
            raise ParameterError(f"rank {rank} has no row in step {step} of epoch {epoch}")
        number = integer(parameters, "row", 0, most=len(rows) - 1)
        return _row_page(site, run, rows[number], parameters, values)
    first = integer(parameters, "from", 0, most=max(0, len(rows) - 1))
    shown = rows[first : first + _ROWS_SHOWN]

    def facts() -> dict[str, Any]:
        counts = {"num_steps": values["num_steps"], "num_ranks": run.num_replicas, "num_rows": len(rows)}
        return {**place, **counts, "first_row": first, "rows": [_row_facts(run, row) for row in shown]}

    def page() -> Response:
        previews = [_shown(site, run, row, place) for row in shown]
        return site.pages.html(
            "batch.html",
            rows=previews,
            reasons=list(dict.fromkeys(preview.reason for preview in previews if preview.reason)),
            first=first,
            previous=max(0, first - _ROWS_SHOWN) if first else None,
            following=first + _ROWS_SHOWN if first + _ROWS_SHOWN < len(rows) else None,
            **values,
        )

    return answer(parameters, facts, page)


def _row_page(
    site: Site, run: Run, place: RunRow, parameters: QueryParams, values: dict[str, Any]
) -> Response:
    row = _row(site, run, place)
    start = integer(parameters, "from", 0, most=row.length - 1)
    return answer(
        parameters,
        lambda: {
            **{key: values[key] for key in ("epoch", "step", "rank")},
            **_row_facts(run, place),
            "aligned": run.items_of(place.item).aligned,
            "separated_by": list(row.separated_by),
            **row.facts(start),
        },
        lambda: site.pages.html(
            "batch_row.html",
            place=place,
            source=_source(run, place),
            row=row,
            part=row.part(row.window(start)),
            **values,
        ),
    )


def _step(run: Run, parameters: QueryParams) -> tuple[int, int]:
    """Returns the epoch, and the step in it. By default, it follows the saved state."""
    if not parameters.get("epoch") and not parameters.get("step") and run.next_step is not None:
        return run.next_step
    step = integer(parameters, "step", 0)
    if parameters.get("epoch"):
        return integer(parameters, "epoch", 0, most=1 << 40), step
    # As in `packtok locate`, a step without an epoch is counted over the whole run.
    epoch, own = run.epochs.order.epoch_of(step)
    return epoch, own


def _row_facts(run: Run, place: RunRow) -> dict[str, Any]:
    """Returns a row as `packtok locate` gives it, with its source."""
    source, item = run.source_of(place.item)
    names = ("path", "document", "start", "stop")
    located = run.locate(place.item)
    documents = [dict(zip(names, part, strict=True)) for part in located[:MAX_JSON_DOCUMENTS]]
    return {
        **asdict(place),
        "source": run.names[source],
        "item_of_source": item,
        "num_documents": len(located),
        "documents": documents,
    }


def _source(run: Run, place: RunRow) -> str:
    """Returns the source of a row of a mixture, and the item in it; empty for one dataset."""
    source, item = run.source_of(place.item)
    return "" if len(run.sources) == 1 else f"item {item:,} of {run.names[source]}"


def _shown(site: Site, run: Run, place: RunRow, batch: dict[str, Any]) -> ShownRow:
    row = _row(site, run, place)
    text, reason = row.preview(_PREVIEW_POSITIONS)
    url = link("batch", **batch, row=place.row)
    return ShownRow(place, _source(run, place), row, url, text, reason)


def _row(site: Site, run: Run, place: RunRow) -> Row:
    items = run.items_of(place.item)
    return Row(
        run.fields(place.item),
        run.locate(place.item),
        lambda path: _file(site, str(path), items.read_as),
        has_labels=True,
        is_aligned=items.aligned,
        separated_by=items.separated_by,
        names_files=True,
    )


def _file(site: Site, path: str, read_as: ReadAs) -> RowFile:
    """Returns a file of the run, which need not be below the folder that is served."""
    name = os.path.basename(path)
    try:
        packed, decoder = site.run_files.open(path, read_as)
    # One in a store has no path on this machine.
    except (PacktokError, OSError) as error:
        return RowFile(name, None, Decoder(None, f"{name} cannot be opened: {error}"), None)
    return RowFile(name, packed, decoder, _served_name(site, packed, path))


def _served_name(site: Site, packed: Packed, path: str) -> str | None:
    """Returns the path below the folder that is served of a file, if its documents have pages there."""
    folder = f"{site.root.folder}/".replace("//", "/")
    resolved = os.path.realpath(path)
    if not resolved.startswith(folder):
        return None
    name = resolved.removeprefix(folder)
    try:
        served = site.files.open(name)
    except NotServedError:
        return None
    # Documents have other numbers if the file is read in another way.
    return name if served.identity == packed.identity and served.read_as == packed.read_as else None

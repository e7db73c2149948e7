"""The first records of the files of a raw dataset, with all their columns."""

from itertools import islice
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok._packtok import source_rows
from packtok.errors import PacktokError
from packtok.explore.files import NotServedError, OpenFile
from packtok.explore.pages.answers import answer
from packtok.explore.pages.datasets import text_files
from packtok.explore.pages.parameters import integer
from packtok.explore.site import Site

PAGE_ROWS = 25
# Lines are read from the start of a file for each page.
MAX_ROWS = 1000
_MAX_ROW_BYTES = 1_000_000
_MAX_COLUMNS = 100
_MAX_CELL_CHARS = 500
# A character has at most four bytes.
_MAX_CELL_BYTES = 4 * _MAX_CELL_CHARS
_MAX_FILES = 500
_SECONDS = 2.0


def rows_page(site: Site, folder: str, parameters: QueryParams) -> Response:
    """Returns the page of the first rows of a file of a raw dataset."""
    if site.catalog is None:
        raise NotServedError(f"{folder}: only the file {site.single} is served")
    dataset = site.catalog.dataset(folder)
    files = list(islice(text_files(site, dataset), _MAX_FILES))
    if not files:
        raise NotServedError(f"{folder}: no file of texts of this dataset is below the folder that is served")
    i = integer(parameters, "file", 0, most=len(files) - 1)
    start = integer(parameters, "from", 0, most=MAX_ROWS - PAGE_ROWS)
    file = site.root.open(files[i])
    excerpt = _rows(file, start)
    has_more = excerpt["has_more"]
    content_field = dataset.metadata.content_field
    following = start + PAGE_ROWS
    facts = {
        "folder": folder,
        "files": files,
        "file": file.name,
        "format": excerpt["format"],
        "content_field": content_field,
        # A plain text has no columns.
        "columns": [content_field] if excerpt["format"] == "text" else excerpt["columns"],
        "num_columns": max(1, excerpt["num_columns"]),
        "from": start,
        "rows": [_cells(row) for row in excerpt["rows"]],
        "faults": [_fault(row) for row in excerpt["rows"]],
        "next": following if has_more and following <= MAX_ROWS - PAGE_ROWS else None,
        "stopped": excerpt["stopped"],
    }
    return answer(
        parameters,
        lambda: facts,
        lambda: site.pages.html(
            "raw_rows.html",
            dataset=dataset,
            number=i,
            step=PAGE_ROWS,
            most=MAX_ROWS,
            has_more=has_more,
            max_bytes=_MAX_ROW_BYTES,
            facts=facts,
        ),
    )


def _rows(file: OpenFile, start: int) -> dict[str, Any]:
    """Returns the records of a page."""
    try:
        excerpt = source_rows(
            file.path,
            file.name,
            first=start,
            num_rows=PAGE_ROWS,
            max_columns=_MAX_COLUMNS,
            max_bytes=_MAX_CELL_BYTES,
            max_record_bytes=_MAX_ROW_BYTES,
            seconds=_SECONDS,
        )
    except (PacktokError, ValueError, OSError) as error:
        raise NotServedError(str(error).replace(file.path, file.name)) from None
    if excerpt["is_late"]:
        excerpt["stopped"] = (
            f"the page reads for at most {_SECONDS:g} seconds, and the next rows of {file.name} need more "
            "time"
        )
    elif excerpt["stopped"] is not None:
        excerpt["stopped"] = excerpt["stopped"].replace(file.path, file.name)
    return excerpt


def _cells(row: dict[str, Any]) -> list[str | None] | None:
    """Returns the values of a record as texts; ``None`` for a record from which packtok reads no text."""
    if row["fault"] is not None:
        return None
    cells = row["cells"] if row["text"] is None else [row["text"]]
    return [_text(cell) for cell in cells]


def _fault(row: dict[str, Any]) -> dict[str, str | None] | None:
    """Returns why packtok reads no text from a record, and the start of the record."""
    if row["fault"] is None:
        return None
    return {"reason": row["fault"], "text": None if row["text"] is None else _text(row["text"])}


def _text(cell: dict[str, Any]) -> str | None:
    """Returns a value as a text that fits into a cell; ``None`` for a missing one."""
    if cell["fault"] is not None:
        return f"({cell['fault']})"
    text: str | None = cell["text"]
    if text is None or not (cell["is_cut"] or len(text) > _MAX_CELL_CHARS):
        return text
    length = "" if cell["bytes"] is None else f" ({cell['bytes']:,} bytes)"
    return f"{text[:_MAX_CELL_CHARS]} …{length}"

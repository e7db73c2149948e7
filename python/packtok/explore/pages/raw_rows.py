"""The first rows of the files of a raw dataset, as packtok reads them."""

import functools
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok._packtok import Texts, describe_corpus, is_corpus_name
from packtok.catalog.survey import pattern_of
from packtok.config.load import load_config
from packtok.errors import PacktokError
from packtok.explore.contents.catalog import Dataset
from packtok.explore.files import NotServedError, OpenFile
from packtok.explore.pages.answers import answer
from packtok.explore.pages.datasets import text_files
from packtok.explore.pages.parameters import integer
from packtok.explore.site import Site

PAGE_ROWS = 25
# Rows are read from the start of a file for each page.
MAX_ROWS = 1000
_MAX_ROW_BYTES = 1_000_000
_MAX_COLUMNS = 20
_MAX_CELL_CHARS = 500
_MAX_FILES = 500


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
    with _as_corpus(file) as path:
        try:
            format_ = str(describe_corpus([path])["format"])
            rows = list(islice(_rows(path, format_, dataset), start, start + PAGE_ROWS + 1))
        except (PacktokError, ValueError, OSError) as error:
            raise NotServedError(str(error).replace(path, file.name)) from None
    has_more = len(rows) > PAGE_ROWS
    columns, cells = _table(rows[:PAGE_ROWS], dataset.metadata.content_field)
    following = start + PAGE_ROWS
    facts = {
        "folder": folder,
        "files": files,
        "file": file.name,
        "format": format_,
        "content_field": dataset.metadata.content_field,
        "columns": columns,
        "from": start,
        "rows": cells,
        "next": following if has_more and following <= MAX_ROWS - PAGE_ROWS else None,
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


@contextmanager
def _as_corpus(file: OpenFile) -> Iterator[str]:
    """Yields a path of an open file that has the end of its name, which tells the format.

    The rest of a name could be read as a glob.
    """
    suffixes = PurePosixPath(file.name).suffixes
    ending = suffixes[-1] if is_corpus_name(f"rows{suffixes[-1]}") else "".join(suffixes[-2:])
    with tempfile.TemporaryDirectory(prefix="packtok-explore-") as folder:
        path = os.path.join(folder, f"rows{ending}")
        os.symlink(file.path, path)
        yield path


def _rows(path: str, format_: str, dataset: Dataset) -> Iterator[str]:
    """Yields rows: lines of JSON, or the texts of other formats."""
    pattern = "tojson" if format_ == "jsonl" else pattern_of(dataset.metadata.content_field)
    # In a config, a field from metadata could be an expression, such as ${node_env:num_cpus}.
    for text in Texts(json.dumps(json.loads(_spec()) | {"input": [path], "field": pattern})):
        yield str(text)


@functools.cache
def _spec() -> str:
    """Returns the options of reading, as JSON. Nothing is written, and no tokenizer is loaded."""
    options = {
        "input": "-",
        "output": "-",
        "tokenizer": "gpt2",
        "on_bad_document": "skip",
        "max_document_bytes": _MAX_ROW_BYTES,
    }
    return load_config(None, options).spec()


def _table(rows: list[str], content_field: str) -> tuple[list[str], list[list[str | None]]]:
    """Returns the columns of some rows, and the cells of each row as texts; ``None`` for a missing value."""
    records = [_object(row) for row in rows]
    if not records or not all(isinstance(record, dict) for record in records):
        return [content_field], [[_cell(row)] for row in rows]
    columns = list(dict.fromkeys(key for record in records for key in record or ()))[:_MAX_COLUMNS]
    cells = [
        [_cell(record[key]) if key in record else None for key in columns]
        for record in records
        if record is not None
    ]
    return columns, cells


def _object(row: str) -> dict[str, Any] | None:
    if not row.startswith("{"):
        return None
    try:
        record = json.loads(row)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _cell(value: Any) -> str:
    """Returns a value as a text that fits into a cell."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    more = f" … ({len(text):,} characters)" if len(text) > _MAX_CELL_CHARS else ""
    return text[:_MAX_CELL_CHARS] + more

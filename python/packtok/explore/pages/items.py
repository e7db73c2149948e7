"""The page of an item: what one row of a training batch holds, position by position."""

import os
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok._packtok import Blocks, find_or_plan
from packtok.data.run import IGNORED
from packtok.explore.contents.packed import FileGroup
from packtok.explore.files import NotServedError, OpenFile
from packtok.explore.pages.answers import answer
from packtok.explore.pages.parameters import ParameterError, choice, integer
from packtok.explore.pages.rows import MAX_JSON_DOCUMENTS, Row, RowFile
from packtok.explore.site import Site

# The loader of each packing of the address; "chunks" are the items of `packtok.get_dataset`.
LOADERS = {
    "concat": "TokenDataset, concat",
    "document": "TokenDataset, document",
    "best_fit": "TokenDataset, best_fit",
    "chunks": "get_dataset",
}
_DEFAULT_LENGTH, _MAX_LENGTH = 512, 1 << 20
# Planning more documents, or more parts of long documents, takes seconds, and memory for each of them.
_MAX_PLANNED_PARTS = 5_000_000


def item_page(site: Site, name: str, parameters: QueryParams) -> Response:
    """Returns the page of an item of a file or dataset."""
    group = site.group(name)
    packing = choice(parameters, "packing", tuple(LOADERS))
    labels = choice(parameters, "labels", ("shifted", "aligned"))
    context_length = integer(parameters, "context_length", _DEFAULT_LENGTH, least=1, most=_MAX_LENGTH)
    values: dict[str, Any] = {
        "group": group,
        "call": _call(site, group, packing, context_length, labels),
        "dataset": _larger_dataset(site, group),
        "trail": site.trail(name),
        "loaders": LOADERS,
        "packing": packing,
        "labels": labels,
        "context_length": context_length,
    }
    try:
        if packing == "best_fit":
            # A plan is mapped while its items are open, so they are not kept.
            items = _items(site, group, packing, context_length)
        else:
            key = (group.identities, name, packing, context_length)
            items = site.blocks.value(key, lambda: _items(site, group, packing, context_length))
    except ValueError as error:
        return _no_item(site, parameters, str(error), values)
    most = len(items.blocks) - 1
    if most < 0:
        kind = "dataset" if group.is_dataset else "file"
        return _no_item(site, parameters, f"{name}: the {kind} has no documents", values)
    item = integer(parameters, "item", 0, most=most)
    row = _row(site, group, items, item, packing, labels, context_length)
    start = integer(parameters, "from", 0, most=row.length - 1)
    return answer(
        parameters,
        lambda: {
            "path": group.name,
            "item": item,
            "num_items": most + 1,
            "packing": packing,
            "call": values["call"],
            "aligned": labels == "aligned",
            "documents": [
                {"path": group.files[items.files[path]], "document": document, "start": first, "stop": last}
                for path, document, first, last in items.blocks.locate(item)[:MAX_JSON_DOCUMENTS]
            ],
            **row.facts(start),
        },
        lambda: site.pages.html(
            "item.html", item=item, last=most, row=row, part=row.part(row.window(start)), **values
        ),
    )


def _no_item(site: Site, parameters: QueryParams, reason: str, values: dict[str, Any]) -> Response:
    return answer(
        parameters,
        lambda: {"path": values["group"].name, "num_items": 0, "reason": reason, "call": values["call"]},
        lambda: site.pages.html("no_item.html", reason=reason, **values),
    )


def _row(
    site: Site, group: FileGroup, items: "Items", item: int, packing: str, labels: str, context_length: int
) -> Row:
    # A row that a page refers to may live on for a while, and must not keep a plan mapped.
    places = items.files

    def file_of(path: str) -> RowFile:
        place = places[path]
        packed = site.files.open(group.files[place])
        name = group.files[place].rpartition("/")[2]
        return RowFile(name, packed, site.tokenizers.decoder(packed), group.name, group.starts[place])

    is_chunks = packing == "chunks"
    return Row(
        _filled(items.blocks, item, context_length, packing, is_aligned=labels == "aligned"),
        items.blocks.locate(item),
        file_of,
        has_labels=not is_chunks,
        is_aligned=labels == "aligned",
        # `packtok.get_dataset` gives the mask by default, and `TokenDataset` on request.
        separated_by=("document_mask",),
        names_files=len(group.files) > 1,
    )


@dataclass(frozen=True)
class Items:
    """The items of a group of files."""

    blocks: Blocks
    files: dict[str, int]
    """The place in the group of each file, by the path that the blocks were made from."""


def _call(site: Site, group: FileGroup, packing: str, context_length: int, labels: str) -> str:
    """Returns the call in Python that makes the items of the page."""
    path = str(site.path_of_group(group))
    if packing == "chunks":
        return f"packtok.get_dataset({path!a}, {context_length})"
    option = "" if packing == "concat" else f', packing="{packing}"'
    aligned = ', labels="aligned"' if labels == "aligned" else ""
    return f"packtok.TokenDataset({path!a}, {context_length}{option}{aligned})"


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
    with site.files.paths(group) as (paths, read_as):
        blocks = _blocks(site, group, packing, context_length, {"paths": paths, "read_as": read_as})
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


def _filled(
    blocks: Blocks, item: int, context_length: int, packing: str, *, is_aligned: bool
) -> dict[str, Any]:
    """Returns the fields of an item, by name. Items of `packtok.get_dataset` have no labels."""
    shapes = {"input_ids": np.int64, "position_ids": np.int64, "document_ids": np.int32}
    fields: dict[str, Any] = {name: np.empty((1, context_length), dtype) for name, dtype in shapes.items()}
    labels = np.full((1, context_length), IGNORED, np.int64)
    if packing == "chunks":
        blocks.fill([item], **fields)
    else:
        pad_token_id = blocks.eod_id or 0
        blocks.fill([item], **fields, labels=labels, pad_token_id=pad_token_id, aligned=is_aligned)
    return {name: array[0] for name, array in (fields | {"labels": labels}).items()}

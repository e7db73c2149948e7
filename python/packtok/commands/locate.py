"""Implements `packtok locate`: finds the documents of a step's batch, from a config or a saved state."""

from dataclasses import asdict
from typing import Any

from packtok._packtok import PbinReader
from packtok.data.run import open_run
from packtok.data.token_items import ReadAs


def locate(
    config: str, step: int, *, epoch: int | None = None, state: str | None = None
) -> list[dict[str, Any]]:
    """Returns the rows of a step's global batch with the documents of each row.

    Args:
        config: A YAML file. ``dataset`` contains the arguments of `packtok.TokenDataset`, or of the dataset
            that its key ``type`` names. ``loader`` contains ``num_replicas`` and the arguments of
            `packtok.DataLoader` that determine the order. Other keys are ignored.
        step: Counted from 0 within ``epoch``, or, without it, over the whole run.
        epoch: The epoch.
        state: File with a loader's state, as JSON or in a ``torch.save`` checkpoint. It overrides ``loader``,
            and the data is checked against it.

    Returns:
        As `packtok.DataLoader.locate`, with documents as dicts of ``path``, ``document`` (index in that
        file), ``start`` and ``stop`` (in tokens from the start of the document), and ``origin`` if the file
        records where its documents came from, as in `packtok.Origin.to_dict`.

    Raises:
        ConfigError: If the config is invalid.
        ValueError: If the state belongs to other data.
        IndexError: If there is no such step.
    """
    run = open_run(config, state)
    readers: dict[Any, PbinReader] = {}
    return [
        {
            **asdict(row),
            "documents": [
                _document(part, run.items_of(row.item).read_as, readers) for part in run.locate(row.item)
            ],
        }
        for row in run.batch(step, epoch)
    ]


def _document(
    part: tuple[Any, int, int, int], read_as: ReadAs, readers: dict[Any, PbinReader]
) -> dict[str, Any]:
    """Returns a part of a row as a dict; ``readers`` has the files that are open."""
    path, document, start, stop = part
    if path not in readers:
        readers[path] = PbinReader(path, *read_as)
    origin = readers[path].origin(document)
    came_from = {} if origin is None else {"origin": origin.to_dict()}
    return {"path": path, "document": document, "start": start, "stop": stop, **came_from}

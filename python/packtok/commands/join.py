"""Implements `packtok join`: joins the shards of a corpus into one file."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.commands.manifest import write_manifest
from packtok.errors import ConfigError
from packtok.packer.staging import Staging, fetch_shards
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.sources import StrPath


@entry_point()
def join(
    folder: StrPath,
    output: StrPath,
    *,
    manifest: bool = False,
    existing: str = "error",
    on_progress: Progress | None = None,
    staging: StrPath | None = None,
    max_rejects: int | str | None = None,
) -> Mapping[str, Any]:
    """Joins the shards in a folder into the file that packing without shards would write.

    Args:
        folder: Folder or URL with all shards.
        output: The pbin to write.
        manifest: Whether to write only a manifest to ``output``, with which datasets open the shards as one.
        existing: ``"error"``, ``"skip"`` or ``"replace"``. Manifests do not support ``"skip"``.
        on_progress: As in `packtok.pack`.
        staging: Folder for local copies of files from or for a URL. Default: in the user's cache.
        max_rejects: Maximum number of rejected documents in all shards: a number, or a percentage such as
            ``"0.5%"``. Default: the limit with which the shards were packed.

    Raises:
        ConfigError: If ``max_rejects`` is neither a number nor a percentage.
        PacktokError: If shards are missing, damaged, or of another plan or version, or if more documents are
            rejected than ``max_rejects`` allows.
        FileExistsError: If the output exists.
    """
    limit = _reject_limit(max_rejects)
    if _packtok.is_url(os.fspath(folder)):
        return _join_from_store(
            os.fspath(folder), os.fspath(output), manifest, existing, on_progress, staging, limit
        )
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise NotADirectoryError(f"{os.fspath(folder)}: is a file; give the folder that contains the shards")
    if manifest:
        shards = _packtok.list_shards(os.fspath(folder), limit)
        return write_manifest(shards, Path(output), existing=existing)
    if _packtok.is_url(os.fspath(output)):
        return _join_into_store(os.fspath(folder), os.fspath(output), existing, on_progress, staging, limit)
    return _packtok.join_shards(
        folder=os.fspath(folder),
        output=os.fspath(output),
        existing=existing,
        max_rejects=limit,
        on_progress=on_progress,
    )


def _reject_limit(value: int | str | None) -> str | None:
    if value is None:
        return None
    try:
        return _packtok.checked_reject_limit(str(value))
    except ValueError as error:
        raise ConfigError(f"--max-rejects: is {value!r}; expected {error}") from None


def _join_from_store(
    url: str,
    output: str,
    manifest: bool,
    existing: str,
    on_progress: Progress | None,
    staging: StrPath | None,
    max_rejects: str | None,
) -> Mapping[str, Any]:
    """Downloads the shards and joins them; the copies are kept until they are joined."""
    if manifest:
        raise ConfigError(
            f"{url}: cannot write a manifest of shards in an object store; download them, or join them"
        )
    fetched = Staging.of(url, None if staging is None else os.fspath(staging), "join")
    fetch_shards(fetched)
    counts = join(
        fetched.folder,
        output,
        existing=existing,
        on_progress=on_progress,
        staging=staging,
        max_rejects=max_rejects,
    )
    fetched.remove()
    return counts


def _join_into_store(
    folder: str,
    url: str,
    existing: str,
    on_progress: Progress | None,
    staging: StrPath | None,
    max_rejects: str | None,
) -> Mapping[str, Any]:
    """Joins the shards in the staging folder and uploads the file."""
    base = None if staging is None else os.fspath(staging)
    local = Staging.of_output(url, base, ["join", os.path.abspath(folder)], existing=existing)
    counts = _packtok.join_shards(
        folder=folder,
        output=os.fspath(local.path),
        existing="skip",
        max_rejects=max_rejects,
        on_progress=on_progress,
    )
    local.send(replace=existing == "replace")
    return {**counts, "output": url, "tokenizer_path": f"{url}.tokenizer.json", "skipped_existing": False}

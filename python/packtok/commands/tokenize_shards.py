"""Implements ``packtok tokenize --to npy``: packs a corpus and converts the pbin to a folder of shards."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from packtok.commands.convert import METADATA_FILE, checked_id_type, convert
from packtok.commands.output_folder import output_folder
from packtok.commands.pack import pack
from packtok.errors import ConfigError
from packtok.progress import Progress
from packtok.sources import StrPath

# The folder of the pbin, which is removed when the shards are complete.
_WORK_NAME = ".tokenized"


@contextlib.contextmanager
def _removed_after_failure(folder: Path, *, applies: bool) -> Iterator[None]:
    """Removes the folder if the block fails: the pbin of another run would be compared with the next one."""
    try:
        yield
    except Exception:
        if applies:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def tokenize_shards(
    inputs: Sequence[str],
    tokenizer: str | None,
    output_dir: StrPath,
    *,
    dtype: str | None = None,
    existing: Literal["error", "skip", "replace"] = "error",
    on_progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Tokenizes a corpus into NPY shards, as KempnerForge reads them; returns the report of the conversion.

    An interrupted run keeps its progress, and the same call resumes it.

    Args:
        inputs: Files, folders, globs and ``@LIST``.
        tokenizer: As in `packtok.pack`.
        output_dir: The folder to write to.
        dtype: As in `packtok.convert`.
        existing: If the folder is complete: ``"error"``; ``"skip"``, which compares it; ``"replace"``.
        on_progress: As in `packtok.pack`.
        **options: Options of `packtok.pack`.

    Raises:
        ConfigError: If an argument is invalid.
        FileExistsError: If the folder is complete and ``existing`` is ``"error"``.
    """
    if tokenizer is None:
        raise ConfigError("--tokenizer: is missing; --to npy needs it")
    folder = Path(output_dir)
    checked_id_type(dtype, "npy")
    is_complete = os.path.lexists(folder / METADATA_FILE)
    if existing == "error" and is_complete:
        raise FileExistsError(
            errno.EEXIST,
            "the folder is complete already; choose another --output-dir (output_dir), or set --existing "
            "(existing) to skip or replace",
            str(folder / METADATA_FILE),
        )
    pbin = folder / _WORK_NAME / "tokenized.pbin"
    # What an interrupted run has completed is kept after it is compared.
    policy: Literal["skip", "replace"] = "replace" if existing == "replace" else "skip"
    with output_folder(pbin.parent), _removed_after_failure(pbin.parent, applies=is_complete):
        given = {name: value for name, value in options.items() if value is not None}
        pack(
            input=list(inputs),
            output=pbin,
            tokenizer=tokenizer,
            existing=policy,
            on_progress=on_progress,
            **given,
        )
        report = convert(pbin, folder, to="npy", dtype=dtype, existing=policy, on_progress=on_progress)
    shutil.rmtree(pbin.parent)
    return report

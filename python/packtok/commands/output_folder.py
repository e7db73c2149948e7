"""The folder that a command writes to: created before the work, removed if the work leaves nothing there."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def output_folder(folder: Path) -> Iterator[None]:
    """Creates a folder with its parents; removes the created ones that are empty if the block fails."""
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        # The innermost folder comes first. A folder that is not empty has the progress of the work.
        for path in created:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise

"""The folder that a command writes to: created before the work, removed if the work leaves nothing there."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def output_folder(folder: Path) -> Iterator[None]:
    """Creates a folder with its parents. If the block fails, those that it created are removed if empty."""
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        # From the innermost one outwards; a folder that is not empty has the progress of the work.
        for path in created:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise

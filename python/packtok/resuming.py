"""The note on an interruption that says whether the same call resumes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from packtok._packtok import KEPT_NOTE

__all__ = ["KEPT_NOTE", "LOST_NOTE", "explaining"]

LOST_NOTE = "nothing was kept; run the same command again to start over"


@contextmanager
def explaining(note: Callable[[], str], *, of_all_steps: bool = False) -> Iterator[None]:
    """Adds a note to an interruption of the block.

    Args:
        note: Returns the note, such as `KEPT_NOTE` or `LOST_NOTE`, once the work has stopped.
        of_all_steps: Whether the note replaces those of the steps, which speak of their own outputs.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        if of_all_steps:
            error.__notes__ = []
        # An interruption that came too late has a note already: the output is complete.
        if not getattr(error, "__notes__", None):
            error.add_note(note())
        raise

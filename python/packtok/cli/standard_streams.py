"""Standard input, output and error of the program, which may be closed, full or broken pipes.

A service may start the program with closed streams. They become the null device: commands do their work, and
no file that is opened later gets the number of a stream and receives what is printed.
"""

import os
import sys
from pathlib import Path
from typing import TextIO

_NAMES = ("stdin", "stdout", "stderr")


def open_closed() -> None:
    """Replaces closed streams by the null device."""
    for number in range(len(_NAMES)):
        try:
            os.fstat(number)
        except OSError:
            # os.open takes the lowest free number, which is this one, because all lower ones are open.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for name in _NAMES:
        stream = getattr(sys, name)
        if stream is None or stream.closed:
            mode = "r" if name == "stdin" else "w"
            # The descriptor stays open as long as the program runs.
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def discard(stream: TextIO) -> None:
    """Connects a stream that fails to the null device, so that its buffered output causes no later error."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)

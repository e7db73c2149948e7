"""Standard input, output and error of the program, which may be closed, full or broken pipes.

A service may start the program with closed streams. They become the null device: commands do their work, and
files that they open later do not get the numbers of the streams, where prints would go into them.
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
            # The lowest free number, because all lower ones are open.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for name in _NAMES:
        stream = getattr(sys, name)
        if stream is None or stream.closed:
            mode = "r" if name == "stdin" else "w"
            # Open as long as the program runs.
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def discard(stream: TextIO) -> None:
    """Connects a stream that fails to the null device, so that what it still holds is no error later."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)

"""Ctrl-C in the program `packtok`: one line and exit code 130, also while it starts and while it ends.

A command that runs gets `KeyboardInterrupt`, so that it can keep what it has done. Before that, while modules
are imported, nothing has to be kept, and an import might turn the exception into another: there the process
ends at once.
"""

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
LINE = b"packtok: interrupted\n"


def answer_if_program() -> None:
    """Calls `answer_at_once` if this process is the program: `packtok`, or `python -m packtok`."""
    name = os.path.basename(sys.argv[0]) if sys.argv else ""
    is_module = name == "-m" and any(one in ("packtok", "-mpacktok") for one in sys.orig_argv)
    if name == "packtok" or is_module:
        answer_at_once()


def answer_at_once() -> None:
    """From here on Ctrl-C ends the process, unless whoever started it has it ignored."""
    _replace(signal.default_int_handler, _quit)


def raise_exceptions() -> None:
    """From here on Ctrl-C raises `KeyboardInterrupt`."""
    _replace(_quit, signal.default_int_handler)


def ignore() -> None:
    """From here on Ctrl-C changes nothing: the outcome is known and is being reported."""
    _replace(signal.default_int_handler, signal.SIG_IGN)


def _replace(found: object, handler: object) -> None:
    # Another handler, or none, is somebody else's choice; threads other than the first have no say.
    if signal.getsignal(signal.SIGINT) == found:
        try:
            signal.signal(signal.SIGINT, handler)  # type: ignore[arg-type]
        except ValueError:
            return


def _quit(_number: int, _frame: FrameType | None) -> None:
    os.write(2, LINE)
    os._exit(INTERRUPTED)

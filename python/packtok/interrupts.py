"""Ctrl-C in the `packtok` program: one line on stderr and exit code 130, also during startup and shutdown.

A running command gets `KeyboardInterrupt`, so that it can save its progress. While modules are imported there
is no progress to save, and an import could convert the exception into another one, so the process exits at
once.
"""

import atexit
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

INTERRUPTED = 130
LINE = b"packtok: interrupted\n"


def answer_if_program() -> None:
    """Calls `answer_at_once` if this process is the program."""
    if is_program():
        answer_at_once()


def is_program() -> bool:
    """Returns whether this process is the program: `packtok` or `python -m packtok`."""
    name = os.path.basename(sys.argv[0]) if sys.argv else ""
    return name == "packtok" or (
        name == "-m" and any(argument in ("packtok", "-mpacktok") for argument in sys.orig_argv)
    )


def answer_at_once() -> None:
    """Makes Ctrl-C exit the process immediately, unless the parent process set SIGINT to be ignored."""
    _replace(signal.default_int_handler, _quit)


def raise_exceptions() -> None:
    """Makes Ctrl-C raise `KeyboardInterrupt`."""
    _replace(_quit, signal.default_int_handler)


def ignore() -> None:
    """Makes Ctrl-C have no effect, because the outcome is known and is being reported."""
    _replace(signal.default_int_handler, signal.SIG_IGN)


def run_module(main: Callable[[], None]) -> None:
    """Runs the program as `python -m`, with the exit code that it reports.

    CPython ends such a process by SIGINT if `KeyboardInterrupt` has passed through `exec` of a text, which
    dataclasses use, even if the program has handled it.
    """
    try:
        main()
    except SystemExit as ended:
        if ended.code != INTERRUPTED:
            raise
        atexit._run_exitfuncs()
        os._exit(INTERRUPTED)


def _replace(expected: object, handler: object) -> None:
    # A handler that the caller installed stays. Only the main thread can set handlers.
    if signal.getsignal(signal.SIGINT) == expected:
        try:
            signal.signal(signal.SIGINT, handler)  # type: ignore[arg-type]
        except ValueError:
            return


def _quit(_number: int, _frame: FrameType | None) -> None:
    # Standard error may be closed.
    with contextlib.suppress(OSError):
        os.write(2, LINE)
    os._exit(INTERRUPTED)

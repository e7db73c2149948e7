"""The code that runs in the processes of functions. It imports no torch, because they need none."""

import os
import pickle
import signal
import threading
from collections.abc import Callable
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

__all__ = ["Key", "WithGenerator", "call", "packed", "start"]

# The lane and the number of a sample in it; the lane is ``None`` for a row of all lanes.
Key = tuple[int | None, int]

_REMEDY = "define it in a module that other processes can import, or set executor_type='thread'"

_function: Callable[..., Any] | None = None
_why_not = ""


def packed(function: Callable[..., Any], name: str) -> bytes:
    """Returns a function as bytes.

    Raises:
        TypeError: If it cannot be pickled.
    """
    try:
        return pickle.dumps(function)
    except Exception as error:
        raise TypeError(f"{name} cannot be sent to other processes ({error}); {_REMEDY}") from error


def start(function: bytes, name: str, started: Connection) -> None:
    """Starts a process that calls ``function``, and that ends when its parent ends in any way."""
    global _function, _why_not
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent.join,), daemon=True).start()
    started.send_bytes(b"1")
    started.close()
    try:
        _function = pickle.loads(function)
    except Exception as error:
        where = " of __main__, as in a notebook or an interactive session," if b"__main__" in function else ""
        _why_not = f"{name}{where} cannot be loaded by other processes ({error}); {_REMEDY}"


def _end_after(wait: Callable[[], None]) -> None:
    # The wait ends even if the parent was killed, because the system closes the parent's end of the pipe.
    wait()
    os.kill(os.getpid(), signal.SIGKILL)


def call(*arguments: Any) -> Any:
    """Returns the result of the function.

    Raises:
        ImportError: If this process could not load the function.
    """
    if _function is None:
        raise ImportError(_why_not)
    return _function(*arguments)


class WithGenerator:
    """Calls a function with a sample and a generator that depends on the sample's position alone."""

    def __init__(self, function: Callable[..., Any], seed: int) -> None:
        self._function, self._seed = function, seed

    def __call__(self, sample: Any, key: Key) -> Any:
        """Returns the result of the function."""
        lane, number = key
        entropy = [self._seed, 0 if lane is None else lane + 1, number]
        return self._function(sample, np.random.default_rng(entropy))

"""The type of progress callbacks."""

from collections.abc import Callable

Progress = Callable[[dict[str, int]], None]
"""Receives ``bytes_read``, ``total_bytes``, ``documents`` and ``tokens``; an exception ends the run.

While samples are written, ``documents`` is 0 and ``samples`` is their number.
"""

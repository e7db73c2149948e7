"""The exceptions of packtok. Those of the compiled module are defined there and re-exported here."""

import os
from collections.abc import Callable
from typing import Any

from packtok._packtok import OUTPUT_EXISTS, DocumentError, PacktokError, PbinFormatError, TokenizerError

__all__ = [
    "OUTPUT_EXISTS",
    "ConfigError",
    "DocumentError",
    "PacktokError",
    "PbinFormatError",
    "SlurmError",
    "TokenizerError",
    "UnknownNameError",
    "rewrite_exception",
]


class ConfigError(ValueError):
    """A config or an option is invalid; the message names the key."""


class UnknownNameError(ConfigError, FileNotFoundError):
    """A text that is neither the name of a dataset nor a path."""


class SlurmError(PacktokError):
    """Slurm rejects a request, is not available or does not respond."""


def rewrite_exception(error: BaseException, rewrite: Callable[[Any], Any]) -> None:
    """Replaces the texts of an exception and of its causes.

    Args:
        error: The exception.
        rewrite: Returns what to put instead of the arguments of an exception, a tuple, or of a file name.
    """
    visited: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        exception = pending.pop()
        if exception is None or id(exception) in visited:
            continue
        visited.add(id(exception))
        pending += [exception.__cause__, exception.__context__]
        exception.args = rewrite(exception.args)
        if isinstance(exception, OSError):
            # An OSError composes its message of these attributes, and ignores its args.
            for name in ("filename", "filename2", "strerror"):
                # In errors of the compiled module, file names are paths.
                if isinstance(text := getattr(exception, name), str | os.PathLike):
                    setattr(exception, name, rewrite(os.fsdecode(text)))

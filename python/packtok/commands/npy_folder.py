"""Folders of NPY files as ``packtok tokenize --to cepe-npy`` writes them: which they are, names and dtypes.

A module of its own, because commands that read such a folder must not import those that pack one.
"""

from pathlib import Path

from packtok.catalog.schema import METADATA_NAMES
from packtok.errors import ConfigError
from packtok.sources import StrPath, npy_files

FORMAT = "cepe-npy"
DEFAULT_DTYPE = "int64"
# The file that is written last: the common content of all markers below the folder.
SUMMARY_NAME = "tokens.done.json"


def checked_dtype(dtype: str | None) -> str:
    """Returns the dtype of the elements.

    Raises:
        ConfigError: If it is neither int64 nor uint32.
    """
    if dtype in (None, "int64", "uint32"):
        return dtype or DEFAULT_DTYPE
    reason = (
        "; the number of documents and their lengths are in the same array as the ids, and can exceed 65535"
        if dtype in ("uint16", "uint8")
        else ""
    )
    raise ConfigError(f"--dtype: is {dtype}; expected int64 or uint32{reason}")


def is_token_folder(path: StrPath) -> bool:
    """Returns whether a path is a folder of NPY files, and not a dataset with metadata or pbins."""
    folder = Path(path)
    if not folder.is_dir():
        return False
    if (folder / SUMMARY_NAME).is_file():
        return True
    if any((folder / name).is_file() for name in METADATA_NAMES):
        return False
    return bool(npy_files(folder))

"""The token files of tatm, which have no header: lengths without padding, and the id that ends documents."""

import glob
import os
import warnings
from pathlib import Path
from typing import Any

from packtok._packtok import appended_id, natural_sorted, raw_entries
from packtok.catalog.schema import BYTES_OF_DTYPE
from packtok.choices import check_choice
from packtok.errors import ConfigError
from packtok.integers import checked_integer
from packtok.sources import is_npy

__all__ = ["files_with_prefix", "report_padding", "separator_id", "with_last_separator"]

# Stack level of the caller of `get_dataset`, for warnings of this module.
_STACK_LEVEL = 5


def report_padding(files: dict[str, Any], stack_level: int = _STACK_LEVEL) -> int:
    """Returns the number of tokens of zero padding in files without a header; warns if there are any.

    ``stack_level`` is that of the user's code, seen from here.
    """
    cut = {
        os.fspath(path): file_bytes // token_bytes - tokens
        for path, file_bytes, token_bytes, _, tokens, *_ in files.get("entries", ())
    }
    padded = {path: num for path, num in cut.items() if num}
    if padded:
        num_cut, path = sum(padded.values()), max(padded, key=lambda path: padded[path])
        warnings.warn(
            f"cut {num_cut:,} tokens of zero padding at the end of {len(padded):,} of {len(cut):,} files, "
            f"most of them in {path}",
            stacklevel=stack_level,
        )
    return sum(cut.values())


def with_last_separator(files: dict[str, Any]) -> dict[str, Any]:
    """Returns the files with one more token if they have padding: a separator 0 looks like padding."""
    entries = [
        (path, file_bytes, token_bytes, documents, min(tokens + 1, file_bytes // token_bytes), *rest)
        for path, file_bytes, token_bytes, documents, tokens, *rest in files["entries"]
    ]
    return {**files, "entries": entries}


def separator_id(files: dict[str, Any], eos_token: int | None, stack_level: int = _STACK_LEVEL) -> int | None:
    """Returns the id that ends every document in files without a header.

    Raises:
        ConfigError: If it is not given and the tokenizer is not there.
    """
    if eos_token is not None:
        return checked_integer("eos_token", eos_token, below=1 << 32)
    # Imported here, because workers do not need this module.
    from packtok.tokenizer.find import TOKENIZER_FILE

    tokenizer = Path(files["entries"][0][0]).parent / TOKENIZER_FILE
    if not tokenizer.exists():
        raise ConfigError(
            f"eos_token is missing, and {tokenizer} does not exist to find it; give the id that ends every "
            "document, or set create_doc_ids=False"
        )
    separator = appended_id(str(tokenizer), tokenizer.read_bytes().decode(errors="replace"))
    if separator is None:
        warnings.warn(
            f"{tokenizer}: the tokenizer appends no token to a document, so documents cannot be told apart; "
            "give eos_token if they end with one",
            stacklevel=stack_level,
        )
    return separator


def files_with_prefix(prefix: str, dtype: str, suffix: str) -> dict[str, Any]:
    """Returns the files ``prefix*.suffix`` in natural order, as arguments of `packtok._packtok.Blocks`.

    Args:
        prefix: Start of their paths.
        dtype: Dtype of the tokens in files without a header.
        suffix: ``"pbin"`` for pbins, ``"npy"`` for arrays with or without a header of NumPy; files with any
            other have no header.

    Raises:
        ConfigError: If there are none, or the dtype is unknown.
    """
    pattern = f"{glob.escape(prefix)}*.{suffix}"
    paths = natural_sorted([path for path in glob.glob(pattern) if os.path.isfile(path)])
    if not paths:
        raise ConfigError(f"{prefix}*.{suffix}: no file matches")
    if suffix == "pbin" or (suffix == "npy" and all(map(is_npy, paths))):
        return {"paths": paths}
    check_choice("dtype", dtype, tuple(BYTES_OF_DTYPE), ConfigError)
    return {"entries": raw_entries(paths, BYTES_OF_DTYPE[dtype])}

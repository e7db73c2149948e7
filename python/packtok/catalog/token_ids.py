"""The ids in token files without a header: their type, and the vocabulary that they fit.

Such files record neither. If the type is too narrow, half of the ids that are read are zero; if it is too
wide, two ids become one, which exceeds the vocabulary. The compiled module reads the ids.
"""

import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packtok._packtok import (
    PbinReader,
    Tokenizer,
    appended_id,
    largest_ids,
    natural_sorted,
    raw_entries,
)
from packtok.catalog.schema import BYTES_OF_DTYPE, TokenizedInfo
from packtok.progress import Progress
from packtok.tokenizer.find import TOKENIZER_FILE, find_tokenizer

__all__ = [
    "TokenizerFacts",
    "checked_dtype",
    "facts_of_tokenizer",
    "fitting_dtype",
    "known_vocab_size",
    "token_files_of",
]

# The limit is small, because a user waits for the next question while the files are read.
_HEAD_BYTES = 64 << 20
# With fewer tokens, zeros and small ids may occur by chance.
_LEAST_TOKENS = 16


@dataclass(frozen=True)
class TokenizerFacts:
    """The facts about token files that follow from their tokenizer."""

    name: str
    vocab_size: int
    eos_id: int | None
    """The id that the tokenizer appends to a text; if it appends none, the id of its EOS token."""


def facts_of_tokenizer(name: str) -> TokenizerFacts:
    """Returns the facts that follow from a tokenizer, which is a path, built in, or on the hub.

    Raises:
        TokenizerError: If there is no such tokenizer.
        OSError: If a file cannot be read.
    """
    lookup = find_tokenizer(name)
    tokenizer = lookup.tokenizer
    appended = appended_id(tokenizer.name, tokenizer.to_json().decode())
    eos = None if lookup.eos_token is None else tokenizer.token_to_id(lookup.eos_token)
    return TokenizerFacts(tokenizer.name, tokenizer.vocab_size, eos if appended is None else appended)


def known_vocab_size(info: TokenizedInfo, folder: Path) -> int | None:
    """Returns the size of the vocabulary from the metadata, or from the tokenizer in the folder."""
    path = folder / TOKENIZER_FILE
    if info.vocab_size is not None or not path.is_file():
        return info.vocab_size
    return Tokenizer.from_file(str(path)).vocab_size


def token_files_of(answers: Mapping[str, Any]) -> list[str]:
    """Returns the token files that the answers to the questions describe, in natural order."""
    name = f"*.{glob.escape(answers['token_file_extension'].removeprefix('.'))}"
    for folder in (Path(answers["output"]).parent, Path(answers["dataset_path"])):
        prefix = glob.escape(os.path.join(folder, answers["token_file_prefix"]))
        if paths := [path for path in glob.glob(prefix + name) if os.path.isfile(path)]:
            return natural_sorted(paths)
    return []


def fitting_dtype(files: Sequence[str], vocab_size: int | None) -> str | None:
    """Returns the type that the start of the files has for certain; ``None`` if it may be uint16.

    Raises:
        PbinFormatError: If a file is damaged.
        OSError: If one cannot be read.
    """
    if files[0].endswith(".pbin"):
        return str(PbinReader(files[0]).dtype)
    largest = _Largest.of_start(files[0])
    fitting = largest.fitting(vocab_size)
    return None if "uint16" in fitting or not fitting else fitting[-1]


def checked_dtype(
    files: Sequence[str],
    dtype: str,
    vocab_size: int | None,
    *,
    whole: bool = False,
    on_progress: Progress | None = None,
) -> str | None:
    """Returns why the ids of files cannot have a type, and which type fits; ``None`` if they can.

    Args:
        files: Their paths; if they are pbins, the headers are compared.
        dtype: The type.
        vocab_size: Number of ids of the tokenizer, if it is known.
        whole: Whether to read all files, and not only the start of the first.
        on_progress: As in `packtok.pack`.

    Raises:
        PbinFormatError: If a file is damaged.
        OSError: If one cannot be read.
        ValueError: If the type is unknown.
    """
    if files[0].endswith(".pbin"):
        dtypes = {str(PbinReader(path).dtype) for path in files}
        wrong = sorted(dtypes - {dtype})
        return f"the files have tokens of {' and '.join(wrong)}" if wrong else None
    if dtype not in BYTES_OF_DTYPE:
        return f"expected one of {', '.join(BYTES_OF_DTYPE)}"
    largest = _Largest.of_all(files, on_progress) if whole else _Largest.of_start(files[0])
    fault = largest.fault(dtype, vocab_size)
    if fault is None:
        return None
    fitting = largest.fitting(vocab_size)
    return f"{fault}; {fitting[-1]} fits" if fitting else f"{fault}; no type fits, so check the tokenizer"


@dataclass(frozen=True)
class _Largest:
    """The largest ids by the bytes of a token."""

    ids: Mapping[int, int]
    file_bytes: Sequence[int]
    """Lengths of the files."""
    num_bytes: int
    """Bytes that were read."""

    @classmethod
    def of_start(cls, path: str) -> "_Largest":
        """Reads the start of a file."""
        ((_, file_bytes, token_bytes, documents, tokens, *rest),) = raw_entries([path], 1)
        entry: Any = (path, file_bytes, token_bytes, documents, min(tokens, _HEAD_BYTES), *rest)
        return cls._of_entries([entry], None)

    @classmethod
    def of_all(cls, files: Sequence[str], on_progress: Progress | None) -> "_Largest":
        """Reads files to their padding."""
        return cls._of_entries(raw_entries(files, 1), on_progress)

    @classmethod
    def _of_entries(cls, entries: Sequence[Any], on_progress: Progress | None) -> "_Largest":
        # The files are read as tokens of one byte, so that every length is valid.
        ids = largest_ids(entries, on_progress)
        return cls(
            dict(zip((1, 2, 4), ids, strict=True)),
            [entry[1] for entry in entries],
            sum(entry[4] for entry in entries),
        )

    def fitting(self, vocab_size: int | None) -> list[str]:
        """Returns the types that the ids can have and that hold the vocabulary, the widest last."""
        return [
            dtype
            for dtype, width in BYTES_OF_DTYPE.items()
            if self.fault(dtype, vocab_size) is None and (vocab_size or 0) <= 256**width
        ]

    def fault(self, dtype: str, vocab_size: int | None) -> str | None:
        """Returns why the ids cannot have a type; ``None`` if they can."""
        width = BYTES_OF_DTYPE[dtype]
        if not self._is_multiple_of(width):
            return f"a file is no whole number of tokens of {width} bytes"
        for wider in (4, 2):
            if wider <= width or not self._is_multiple_of(wider) or self.num_bytes < _LEAST_TOKENS * wider:
                continue
            if 0 < self.ids[wider] < 256**width:
                return "every second id is 0" if wider == 2 * width else "three of four ids are 0"
            if vocab_size is not None and 256**width < vocab_size and 0 < self.ids[wider] < vocab_size:
                return f"the vocabulary has {vocab_size:,} ids, which need uint{8 * wider}"
        if vocab_size is not None and self.ids[width] >= vocab_size:
            return f"the largest id is {self.ids[width]:,}, and the vocabulary has {vocab_size:,} ids"
        return None

    def _is_multiple_of(self, width: int) -> bool:
        return all(num % width == 0 for num in self.file_bytes)

"""The bytes and tokens of the texts of token files: as their trailers record them, or estimated."""

from collections.abc import Callable, Sequence

import numpy as np

from packtok.errors import PacktokError
from packtok.explore.contents.packed import Packed
from packtok.explore.contents.tokenizers import Decoder
from packtok.text_counts import TextCounts, recorded_text_counts

# The documents of a sample, in all files together, and the tokens that are read of each.
_SAMPLE_DOCUMENTS = 64
_SAMPLE_TOKENS = 2000


def text_counts(
    files: Sequence[Packed], decoder_of: Callable[[Packed], Decoder], *, are_all: bool = True
) -> TextCounts | None:
    """Returns the bytes and tokens of the texts of files, or of a sample of their documents.

    Args:
        files: The files.
        decoder_of: Returns the tokenizer of a file.
        are_all: Whether they are all files of the dataset.

    Returns:
        The counts; ``None`` if the trailers do not record them and the texts cannot be decoded.
    """
    recorded = recorded_text_counts(file.metadata for file in files)
    if recorded is not None:
        return TextCounts(recorded.bytes, recorded.tokens, is_estimate=not are_all)
    try:
        return _sampled(files, decoder_of)
    except (PacktokError, ValueError):
        # The health line says what is damaged.
        return None


def _sampled(files: Sequence[Packed], decoder_of: Callable[[Packed], Decoder]) -> TextCounts | None:
    num_bytes, num_tokens = 0, 0
    for file in files:
        decoder = decoder_of(file)
        if decoder.tokenizer is None:
            return None
        number = min(file.num_documents, max(1, _SAMPLE_DOCUMENTS // len(files)))
        for i in range(number):
            ids = file.reader[i * file.num_documents // number][:_SAMPLE_TOKENS]
            of_text = ids[~np.isin(ids, list(decoder.special_ids))]
            num_bytes += len(decoder.tokenizer.decode(of_text).encode())
            num_tokens += len(of_text)
    return TextCounts(num_bytes, num_tokens, is_estimate=True) if num_tokens else None

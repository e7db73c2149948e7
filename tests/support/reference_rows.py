"""Naive blocks and rows of batches: the oracle for datasets; shares no code with packtok."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One row of a batch, and the lengths of its documents' segments, with padding as the last one."""

    input_ids: list[int]
    labels: list[int]
    position_ids: list[int]
    document_ids: list[int]
    loss_mask: list[bool]
    segments: list[int]


def fixed_blocks(tokens: list[int], block_size: int, overlap: int) -> list[list[int]]:
    """Returns blocks of ``block_size`` tokens that overlap by ``overlap``; the tail is dropped."""
    starts = range(0, len(tokens) - block_size + 1, block_size - overlap)
    return [tokens[start : start + block_size] for start in starts]


def concat_rows(documents: list[list[int]], context_length: int, *, aligned: bool = False) -> list[Row]:
    """Returns rows of the stream of all documents; the label is the next token of the stream."""
    stream = [(token, number) for number, document in enumerate(documents) for token in document]
    rows = []
    for start in range(0, len(stream) - context_length, context_length):
        inputs = stream[start : start + context_length]
        following = [token for token, _ in stream[start + 1 : start + context_length + 1]]
        rows.append(_row(inputs, following, context_length, 0, aligned=aligned))
    return rows


def document_rows(
    documents: list[list[int]], context_length: int, pad_token_id: int, *, aligned: bool = False
) -> list[Row]:
    """Returns one row for each document, cut or padded."""
    return [
        piece_rows([[(number, 0, context_length)]], documents, context_length, pad_token_id, aligned=aligned)[
            0
        ]
        for number in range(len(documents))
    ]


def piece_rows(
    blocks: list[list[tuple[int, int, int]]],
    documents: list[list[int]],
    context_length: int,
    pad_token_id: int,
    *,
    aligned: bool = False,
) -> list[Row]:
    """Returns rows of pieces (document, start, stop); a label is the next token of its document, if any."""
    rows = []
    for pieces in blocks:
        inputs: list[tuple[int, int]] = []
        following: list[int | None] = []
        for number, start, stop in pieces:
            document = documents[number]
            inputs += [(token, number) for token in document[start:stop]]
            ends = [*document[1:], None] if document else []
            following += ends[start:stop]
        rows.append(_row(inputs, following, context_length, pad_token_id, aligned=aligned))
    return rows


def _row(
    inputs: list[tuple[int, int]],
    following: Sequence[int | None],
    context_length: int,
    pad_token_id: int,
    *,
    aligned: bool,
) -> Row:
    """Returns a row of (token, document) pairs with their labels, padded to ``context_length``."""
    padding = context_length - len(inputs)
    labels = [token for token, _ in inputs] if aligned else list(following)
    position_ids: list[int] = []
    document_ids: list[int] = []
    segments: list[int] = []
    for i, (_, number) in enumerate(inputs):
        if i == 0 or inputs[i - 1][1] != number:
            segments.append(0)
        position_ids.append(segments[-1])
        document_ids.append(len(segments) - 1)
        segments[-1] += 1
    return Row(
        [token for token, _ in inputs] + [pad_token_id] * padding,
        [-100 if label is None else label for label in labels] + [-100] * padding,
        position_ids + list(range(padding)),
        document_ids + [-1] * padding,
        [label is not None for label in labels] + [False] * padding,
        segments + [padding] * (padding > 0),
    )


def counted(documents: Sequence[Sequence[int]], begin: int, end: int) -> list[list[bool]]:
    """Returns for each token whether its label counts: whether the last marker before it in its document is a
    begin marker.
    """
    result = []
    for document in documents:
        is_open = False
        result.append([])
        for token in document:
            result[-1].append(is_open and token not in (begin, end))
            if token in (begin, end):
                is_open = token == begin
    return result

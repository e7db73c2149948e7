"""The page of tokens by kind: what a sample of documents needs tokens for, under one or more tokenizers."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok._packtok import Permutation, Tokenizer
from packtok.errors import TokenizerError
from packtok.explore.contents.packed import FileGroup
from packtok.explore.files import NotServedError
from packtok.explore.pages.answers import answer
from packtok.explore.pages.compare import other_label, tokenizer_names, tokenizer_of
from packtok.explore.site import Site

# The sample ends at the first of these limits; its last document may exceed that of bytes.
MAX_DOCUMENTS = 1000
MAX_BYTES = 1_000_000
# A longer document is in the sample with its first tokens.
MAX_DOCUMENT_TOKENS = 2000
_MAX_NAME_CHARS = 4096
# The kinds that `Tokenizer.count_kinds` returns, in the order of the page.
_LABELS = {
    "word": "Words",
    "number": "Numbers",
    "white_space": "White space",
    "symbol": "Punctuation, symbols",
    "bytes": "Parts of characters",
    "empty": "Without text",
}


@dataclass(frozen=True)
class Sample:
    """A part of the documents of a file or dataset, as text and as tokens of their own tokenizer."""

    name: str
    """The name of the tokenizer."""
    tokenizer: Tokenizer
    texts: list[str]
    """The text of each document, without special tokens."""
    num_bytes: int
    ids: npt.NDArray[np.uint32]
    """The tokens of all documents, without the EODs that close them."""
    num_eods: int


@dataclass(frozen=True)
class Kinds:
    """How many tokens of each kind the text of a sample has under a tokenizer."""

    name: str
    fingerprint: str | None
    is_own: bool
    tokens: int | None
    """Number of tokens that are not special; ``None`` if the tokenizer cannot encode the text."""
    special: int | None
    """Number of special tokens: those of the file; those for unknown text under another tokenizer."""
    bytes_per_token: float | None
    kinds: dict[str, int]
    """Number of tokens of each kind but special ones."""
    reason: str = ""
    """Why the tokenizer cannot encode the text."""


def kinds_page(site: Site, name: str, parameters: QueryParams) -> Response:
    """Returns the page of tokens by kind of a file or dataset."""
    group = site.group(name)
    decoder = site.tokenizers.decoder(site.files.open(group.files[0]))
    chosen = list(dict.fromkeys(filter(None, parameters.getlist("compare"))))
    rows: list[Kinds] = []
    sample = None
    if decoder.tokenizer is not None and group.num_documents:
        sample = sample_of(site, group, decoder.tokenizer)
        rows = _rows(site, sample, chosen)
    view: dict[str, Any] = {
        "reason": decoder.reason,
        "documents": None if sample is None else len(sample.texts),
        "bytes": None if sample is None else sample.num_bytes,
        "max_document_tokens": MAX_DOCUMENT_TOKENS,
    }

    def facts() -> dict[str, Any]:
        counts = {"name": name, "num_documents": group.num_documents}
        return {**counts, **view, "tokenizers": [asdict(row) for row in rows]}

    return answer(parameters, facts, lambda: _html(site, group, rows, chosen, view))


def _html(
    site: Site, group: FileGroup, rows: Sequence[Kinds], chosen: Sequence[str], view: dict[str, Any]
) -> Response:
    if not group.num_documents:
        return site.pages.html("empty.html", group=group, trail=site.trail(group.name))
    used = {kind for row in rows for kind, tokens in row.kinds.items() if tokens}
    # Every tokenizer has the other kinds, so that their columns do not come and go.
    labels = {kind: text for kind, text in _LABELS.items() if kind != "empty" or kind in used}
    return site.pages.html(
        "kinds.html",
        group=group,
        trail=site.trail(group.name),
        rows=rows,
        labels=labels,
        tokenizers=tokenizer_names(site),
        chosen=chosen,
        **view,
    )


def sample_of(site: Site, group: FileGroup, tokenizer: Tokenizer) -> Sample:
    """Returns a sample of the documents, the same for the same documents.

    Documents are taken in the order of a permutation with a fixed seed.

    Args:
        site: What is served.
        group: The documents.
        tokenizer: The tokenizer of the first file.

    Raises:
        NotServedError: If a file has another tokenizer.
        TokenizerError: If a token is too long for a page.
    """
    order = Permutation(group.num_documents, 0, 0).fill(0, 1, min(MAX_DOCUMENTS, group.num_documents))
    texts: list[str] = []
    ids: list[npt.NDArray[np.unsignedinteger]] = []
    num_bytes = num_eods = 0
    checked: set[int] = set()
    for document in order.tolist():
        file, number = group.place(document)
        packed = site.files.open(file)
        if packed.fingerprint != site.files.open(group.files[0]).fingerprint:
            raise NotServedError(
                f"{file} was packed with another tokenizer than {group.files[0]}; open the files one by one"
            )
        tokens = packed.reader[number]
        # An EOD need not be a special token of the tokenizer.
        if packed.eod_id is not None and len(tokens) and tokens[-1] == packed.eod_id:
            tokens = tokens[:-1]
            num_eods += 1
        tokens = tokens[:MAX_DOCUMENT_TOKENS]
        new = {*tokens.tolist()} - checked
        _check_lengths(tokenizer, new)
        checked |= new
        texts.append(tokenizer.decode(tokens, skip_special_tokens=True))
        ids.append(tokens)
        num_bytes += len(texts[-1].encode())
        if num_bytes >= MAX_BYTES:
            break
    name = site.files.open(group.files[0]).tokenizer_name or tokenizer.name
    return Sample(name, tokenizer, texts, num_bytes, np.concatenate(ids), num_eods)


def _check_lengths(tokenizer: Tokenizer, ids: Iterable[int]) -> None:
    """Checks the lengths of tokens before their text is made, which may repeat them."""
    for token_id in ids:
        length = len(tokenizer.id_to_token(token_id) or "")
        if length > _MAX_NAME_CHARS:
            raise TokenizerError(
                f"tokenizer {tokenizer.name}: token {token_id:,} has {length:,} characters, too many for a "
                f"page; the limit is {_MAX_NAME_CHARS:,}"
            )


def _rows(site: Site, sample: Sample, chosen: Sequence[str]) -> list[Kinds]:
    """Returns the kinds under the own and the chosen tokenizers of a sample, fewest tokens first."""
    rows = [_counted(sample, sample.name, sample.tokenizer, sample.ids, num_eods=sample.num_eods)]
    fingerprints = {sample.tokenizer.fingerprint}
    names = {key: other_label(key, name, sample.name) for key, name in tokenizer_names(site).items()}
    for key in chosen:
        if key not in names:
            raise NotServedError(f"{key}: no such tokenizer")
        try:
            tokenizer = tokenizer_of(site, key)
            if tokenizer.fingerprint in fingerprints:
                continue
            fingerprints.add(tokenizer.fingerprint)
            # One thread leaves the others to other pages.
            ids, _ = tokenizer.encode_batch(
                sample.texts, add_special_tokens=False, special_tokens_in_text="text", threads=1
            )
            rows.append(_counted(sample, names[key], tokenizer, ids))
        except (TokenizerError, NotServedError) as error:
            rows.append(Kinds(names[key], None, False, None, None, None, {}, str(error)))
    return sorted(rows, key=lambda row: (row.tokens is None, row.tokens))


def _counted(
    sample: Sample,
    name: str,
    tokenizer: Tokenizer,
    ids: npt.NDArray[np.unsignedinteger],
    *,
    num_eods: int | None = None,
) -> Kinds:
    """Returns the kinds of the tokens of a sample.

    Args:
        sample: The sample.
        name: The name of the tokenizer.
        tokenizer: The tokenizer.
        ids: The tokens, without the EODs that close documents.
        num_eods: Number of these EODs; ``None`` if these are not the tokens of the file.
    """
    kinds = tokenizer.count_kinds(ids)
    special = kinds.pop("special") + (num_eods or 0)
    tokens = sum(kinds.values())
    ratio = sample.num_bytes / tokens if tokens else None
    return Kinds(name, tokenizer.fingerprint, num_eods is not None, tokens, special, ratio, kinds)

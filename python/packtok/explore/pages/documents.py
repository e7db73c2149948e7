"""The page of a document: a window of its tokens, and the same text under another tokenizer."""

import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse, Response

from packtok._packtok import Origin, Tokenizer
from packtok.errors import PacktokError, TokenizerError
from packtok.explore.contents.packed import FileGroup, Packed
from packtok.explore.contents.tokenizers import Decoder
from packtok.explore.files import NotServedError
from packtok.explore.html.rendering import link
from packtok.explore.html.tokens import NUM_BEFORE, Piece, pieces_of, tokens_html
from packtok.explore.pages.answers import is_json, json_response, text_of, token_facts
from packtok.explore.pages.compare import Comparison, Own, compared, counts, tokenizer_names
from packtok.explore.pages.parameters import integer
from packtok.explore.site import Site
from packtok.text_counts import TextCounts

WINDOW_TOKENS = 1000
MAX_WINDOW_TOKENS = 5000
# Parameters that links to other documents and windows repeat.
_LINK_KEYS = ("compare", "counts", "window", "format")


@dataclass(frozen=True)
class Window:
    """A part of a document."""

    start: int
    stop: int
    length: int
    """Tokens of the whole document."""
    step: int
    """Tokens of a full window."""

    @property
    def is_whole(self) -> bool:
        """Whether the window is the whole document."""
        return self.start == 0 and self.stop == self.length

    @property
    def previous(self) -> int | None:
        """Start of the window before this one."""
        return max(0, self.start - self.step) if self.start else None

    @property
    def next(self) -> int | None:
        """Start of the window after this one."""
        return self.stop if self.stop < self.length else None


def document_page(site: Site, name: str, parameters: QueryParams) -> Response:
    """Returns the page of a document of a file or dataset, or a redirect to the requested document."""
    group = site.group(name)
    if target := _target(site, group, parameters):
        return target
    most = group.num_documents - 1
    if most < 0 and is_json(parameters):
        return json_response({"path": group.name, "documents": 0})
    if most < 0:
        return site.pages.html("empty.html", group=group, trail=site.trail(name))
    document = integer(parameters, "document", 0, most=most)
    file, number = group.place(document)
    packed = site.files.open(file)
    tokens = packed.reader[number]
    window = _window(parameters, len(tokens))
    decoder = site.tokenizers.decoder(packed)
    ids = tokens[window.start : window.stop].tolist()
    before = tokens[max(0, window.start - NUM_BEFORE) : window.start].tolist()
    pieces = pieces_of(decoder.tokenizer, ids, decoder.special_ids, packed.eod_id, before=before)
    origin = recorded_origin(packed, number)
    others = _others(site, packed, decoder, pieces, window, parameters)
    decoded = _decoded_counts(pieces)
    if is_json(parameters):
        return json_response(
            {
                "path": group.name,
                "document": document,
                "documents": group.num_documents,
                "file": {"path": packed.name, "document": number},
                "tokens": len(tokens),
                "tokenizer": packed.tokenizer_name,
                "origin": origin.facts,
                "from": window.start,
                "until": window.stop,
                "bytes": decoded.bytes if decoder.tokenizer else None,
                "special": sum(bool(piece.kind) for piece in pieces),
                "text": text_of(pieces) if decoder.tokenizer else None,
                "no_text": decoder.reason or None,
                **token_facts(pieces),
                "compare": _comparison_facts(others["comparison"]),
                "counts": [asdict(count) for count in others["counts"]],
            }
        )
    return site.pages.html(
        "document.html",
        group=group,
        packed=packed,
        number=number,
        trail=site.trail(name),
        document=document,
        last=most,
        window=window,
        decoder=decoder,
        html=tokens_html(pieces, window.start),
        decoded=decoded,
        num_special=sum(bool(piece.kind) for piece in pieces),
        origin=origin,
        sources=packed.sources,
        keep=_link_parameters(parameters),
        **others,
    )


def _decoded_counts(pieces: Sequence[Piece]) -> TextCounts:
    """Returns the bytes and tokens of the text that was decoded, without special tokens."""
    of_text = [piece for piece in pieces if not piece.kind]
    return TextCounts(sum(piece.num_bytes for piece in of_text), len(of_text), is_estimate=True)


def _target(site: Site, group: FileGroup, parameters: QueryParams) -> Response | None:
    """Returns a redirect to a random document or to one of a source; ``None`` for a document by number."""
    keep = _link_parameters(parameters)
    if "random" in parameters and group.num_documents:
        seed = parameters.get("seed") or None
        # With a seed, each visit shows the same document; without one, each visit shows another.
        document = random.Random(seed).randrange(group.num_documents)
    elif parameters.get("source"):
        if len(group.files) > 1:
            raise NotServedError(f"{group.name}: each file numbers its own sources; open one of the files")
        packed = site.files.open(group.files[0])
        source = integer(parameters, "source", 0, most=max(0, packed.sources.number - 1))
        document = first_of_source(packed, source)
    else:
        return None
    return RedirectResponse(str(link("documents", group.name, document=document, **keep).unescape()), 303)


def _link_parameters(parameters: QueryParams) -> dict[str, str]:
    return {key: parameters[key] for key in _LINK_KEYS if parameters.get(key)}


def _window(parameters: QueryParams, length: int) -> Window:
    step = integer(parameters, "window", WINDOW_TOKENS, least=1, most=MAX_WINDOW_TOKENS)
    start = integer(parameters, "from", 0, most=max(0, length - 1))
    return Window(start, min(start + step, length), length, step)


def _of_text(
    packed: Packed, tokenizer: Tokenizer, pieces: Sequence[Piece], window: Window
) -> Sequence[Piece]:
    """Returns the tokens of the text: without those that packing added at the start and the end.

    Special tokens elsewhere were in the text.
    """
    before: list[int] = []
    after: list[int] = []
    if (packed.metadata.get("options") or {}).get("add_special_tokens"):
        before, after = _added_by(tokenizer)
    if (bos := packed.metadata.get("bos")) and before[:1] != [bos["id"]]:
        before = [bos["id"], *before]
    if pieces and pieces[-1].kind == "eod" and window.next is None:
        pieces = pieces[:-1]
    ids = [piece.id for piece in pieces]
    start = len(before) if window.start == 0 and before and ids[: len(before)] == before else 0
    is_after = window.next is None and after and ids[start:][-len(after) :] == after
    return pieces[start : len(pieces) - len(after) if is_after else None]


def _added_by(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Returns the ids that a tokenizer adds before and after each text."""
    text = tokenizer.encode("a", add_special_tokens=False).tolist()
    ids = tokenizer.encode("a", add_special_tokens=True).tolist()
    start = next((i for i in range(len(ids)) if ids[i : i + len(text)] == text), None)
    return ([], []) if start is None or not text else (ids[:start], ids[start + len(text) :])


def _others(
    site: Site,
    packed: Packed,
    decoder: Decoder,
    pieces: Sequence[Piece],
    window: Window,
    parameters: QueryParams,
) -> dict[str, Any]:
    """Returns the comparison with another tokenizer and the counts of all tokenizers, if requested."""
    names = tokenizer_names(site)
    key = parameters.get("compare", "")
    values: dict[str, Any] = {"tokenizers": names, "comparison": None, "comparison_html": None, "counts": []}
    if decoder.tokenizer is None or not (key or parameters.get("counts")):
        return values
    parse = (packed.metadata.get("options") or {}).get("special_tokens_in_text", "parse")
    own = _of_text(packed, decoder.tokenizer, pieces, window)
    if long := next((piece for piece in own if piece.more_bytes), None):
        reason = f"token {long.id:,} has {long.num_bytes:,} bytes, too many to compare the text"
        return values | {"comparison": Comparison(names.get(key, "Other tokenizers"), [], reason)}
    text = text_of(own)
    if key:
        comparison = _comparison(site, key, text, parse)
        values["comparison"] = comparison
        values["comparison_html"] = tokens_html(comparison.pieces, target="o")
    if parameters.get("counts"):
        values["counts"] = counts(
            site,
            text,
            parse,
            Own(packed.tokenizer_name or decoder.tokenizer.name, decoder.tokenizer.fingerprint, len(own)),
        )
    return values


def _comparison_facts(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    tokens = None if comparison.reason else len(comparison.pieces)
    facts = {"name": comparison.name, "tokens": tokens, "reason": comparison.reason or None}
    return facts | token_facts(comparison.pieces)


def _comparison(site: Site, key: str, text: str, parse: str) -> Comparison:
    try:
        return compared(site, key, text, parse)
    except TokenizerError as error:
        return Comparison(key, [], str(error))


@dataclass(frozen=True)
class RecordedOrigin:
    """What a file records about the origin of a document."""

    origin: Origin | None
    fault: str = ""
    """Why the origin cannot be read."""

    @property
    def text(self) -> str | None:
        """The origin in words; ``None`` if there is none."""
        origin = self.origin
        return None if origin is None else f"{origin.source}, {origin.unit} {origin.offset:,}"

    @property
    def facts(self) -> dict[str, Any] | None:
        """The origin as JSON, with the names of `packtok cat`."""
        if self.fault:
            return {"error": self.fault}
        return None if self.origin is None else self.origin.to_dict()


def recorded_origin(packed: Packed, document: int) -> RecordedOrigin:
    """Returns the origin of a document. A damaged one is no error: the document can still be read."""
    try:
        return RecordedOrigin(packed.reader.origin(document))
    except (PacktokError, ValueError) as error:
        return RecordedOrigin(None, str(error).replace(str(packed.path), packed.name))


def first_of_source(packed: Packed, source: int) -> int:
    """Returns the first document of a source, by binary search: documents are in the order of their sources.

    Raises:
        NotServedError: If the file has no origins, or the source has no documents.
    """

    def source_of(document: int) -> int:
        origin: Origin | None = packed.reader.origin(document)
        if origin is None:
            raise NotServedError(
                f"{packed.name} does not record where its documents came from; pack it with packtok pack "
                "--origins"
            )
        return origin.source_index

    document = bisect_left(range(packed.num_documents), source, key=source_of)
    if document == packed.num_documents or source_of(document) != source:
        raise NotServedError(f"no document of {packed.name} came from its source {source:,}")
    return document

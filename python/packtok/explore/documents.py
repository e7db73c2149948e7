"""The page of a document: a window of its tokens, and the same text under another tokenizer."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse, Response

from packtok.errors import TokenizerError
from packtok.explore.compare import Comparison, compared, counts, tokenizer_names
from packtok.explore.origins import first_of_source, origin_text
from packtok.explore.packed import Packed
from packtok.explore.pages import link
from packtok.explore.parameters import integer
from packtok.explore.site import Site
from packtok.explore.tokenizers import Decoder
from packtok.explore.tokens import Piece, pieces_of, tokens_html

WINDOW_TOKENS = 1000
MAX_WINDOW_TOKENS = 5000


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
        """Whether it is the whole document."""
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
    """Returns the page of a document of the pbin ``name``, or a redirect to the one that was asked for."""
    packed = site.files.open(name)
    if target := _target(packed, parameters):
        return target
    most = packed.num_documents - 1
    if most < 0:
        return site.pages.html("empty.html", packed=packed, trail=site.trail(name))
    document = integer(parameters, "document", 0, most=most)
    tokens = packed.reader[document]
    window = _window(parameters, len(tokens))
    decoder = site.tokenizers.decoder(packed)
    ids = tokens[window.start : window.stop].tolist()
    pieces = pieces_of(decoder.tokenizer, ids, decoder.special_ids, packed.eod_id)
    others = _others(site, packed, decoder, pieces, parameters, is_end=window.next is None)
    return site.pages.html(
        "document.html",
        packed=packed,
        trail=site.trail(name),
        document=document,
        last=most,
        window=window,
        decoder=decoder,
        html=tokens_html(pieces, window.start),
        window_bytes=sum(len(piece.content) for piece in pieces),
        num_special=sum(bool(piece.kind) for piece in pieces),
        origin=origin_text(packed, document),
        sources=packed.reader.sources[:200],
        keep={"compare": parameters.get("compare", ""), "counts": parameters.get("counts", "")},
        **others,
    )


def _target(packed: Packed, parameters: QueryParams) -> Response | None:
    """Returns a redirect to a document at random or of a source; ``None`` if it is given by its number."""
    keep = {key: parameters[key] for key in ("compare", "counts") if parameters.get(key)}
    if "random" in parameters and packed.num_documents:
        seed = parameters.get("seed") or None
        # A seed gives the same document each time; without one, each visit gives another.
        document = random.Random(seed).randrange(packed.num_documents)
    elif parameters.get("source"):
        source = integer(parameters, "source", 0, most=max(0, len(packed.reader.sources) - 1))
        document = first_of_source(packed, source)
    else:
        return None
    return RedirectResponse(str(link("documents", packed.name, document=document, **keep).unescape()), 303)


def _window(parameters: QueryParams, length: int) -> Window:
    step = integer(parameters, "window", WINDOW_TOKENS, least=1, most=MAX_WINDOW_TOKENS)
    start = integer(parameters, "from", 0, most=max(0, length - 1))
    return Window(start, min(start + step, length), length, step)


def _others(
    site: Site,
    packed: Packed,
    decoder: Decoder,
    pieces: Sequence[Piece],
    parameters: QueryParams,
    *,
    is_end: bool,
) -> dict[str, Any]:
    """Returns the comparison with another tokenizer and the counts of all of them, if they are asked for."""
    names = tokenizer_names(site)
    wanted = parameters.get("compare", "")
    found: dict[str, Any] = {"tokenizers": names, "comparison": None, "comparison_html": None, "counts": []}
    if decoder.tokenizer is None:
        return found
    parse = (packed.metadata.get("options") or {}).get("special_tokens_in_text", "parse")
    # The EOD that closes the document is no part of its text; others were in the text.
    own = pieces[:-1] if is_end and pieces and pieces[-1].kind == "eod" else pieces
    text = b"".join(piece.content for piece in own).decode("utf-8", "replace")
    if wanted:
        comparison = _comparison(site, wanted, text, parse)
        found["comparison"] = comparison
        found["comparison_html"] = tokens_html(comparison.pieces, target="o")
    if parameters.get("counts"):
        found["counts"] = counts(site, text, parse, (decoder.tokenizer.name, len(own)))
    return found


def _comparison(site: Site, wanted: str, text: str, parse: str) -> Comparison:
    try:
        return compared(site, wanted, text, parse)
    except TokenizerError as error:
        return Comparison(wanted, [], str(error))

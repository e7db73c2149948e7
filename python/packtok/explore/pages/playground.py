"""The playground: a text that the user pastes, as the tokens of one or two tokenizers.

The text is sent with POST, so that it is in no address, log or history, and it is kept nowhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok._packtok import Tokenizer
from packtok.errors import TokenizerError
from packtok.explore.forms import FormError
from packtok.explore.html.tokens import NUM_BEFORE, Piece, contents_of, pieces_of, tokens_html
from packtok.explore.pages.answers import answer, token_facts
from packtok.explore.pages.compare import builtin_fingerprint, tokenizer_names, tokenizer_of
from packtok.explore.pages.documents import MAX_WINDOW_TOKENS, WINDOW_TOKENS, Window
from packtok.explore.pages.parameters import ParameterError, integer
from packtok.explore.site import Site

MAX_TEXT_BYTES = 1_000_000
# A form has up to three bytes for each byte of a text, and the other fields.
MAX_FORM_BYTES = 3 * MAX_TEXT_BYTES + (16 << 10)
# The tokenizer of the only file, or that of `--tokenizer`, unless it is built in.
_OWN = "own"


@dataclass(frozen=True)
class Encoded:
    """A text as the tokens of a tokenizer, or the reason why there are none."""

    ids: list[int]
    ends: npt.NDArray[np.int64]
    """The byte at which each token starts, and the number of bytes."""
    is_exact: bool
    """Whether the bytes of the tokens are those of the text."""
    tokenizer: Tokenizer | None
    reason: str = ""

    def differing(self, other: "Encoded") -> npt.NDArray[np.int64]:
        """Returns the tokens of which another tokenizer makes other parts of the text."""
        # Texts have less than 2**31 bytes.
        spans, others = ((tokens.ends[:-1] << 32) | tokens.ends[1:] for tokens in (self, other))
        return np.flatnonzero(np.isin(spans, others, invert=True))


@dataclass(frozen=True)
class Shown:
    """The tokens that a page shows, and facts about all of them."""

    name: str
    encoded: Encoded
    bytes_per_token: float | None
    start: int
    """The first token that is shown."""
    pieces: list[Piece]
    html: Markup
    num_differing: int | None
    """Number of tokens that the other tokenizer divides differently; ``None`` if that is unknown."""

    @property
    def facts(self) -> dict[str, Any]:
        """The facts as JSON."""
        tokenizer = self.encoded.tokenizer
        return {
            "name": self.name,
            "fingerprint": None if tokenizer is None else tokenizer.fingerprint,
            "tokens": None if tokenizer is None else len(self.encoded.ids),
            "bytes_per_token": self.bytes_per_token,
            "from": self.start,
            **token_facts(self.pieces),
            "differing": self.num_differing,
            "reason": self.encoded.reason or None,
        }


def playground_page(site: Site, parameters: QueryParams) -> Response:
    """Returns the page before a text is sent.

    Raises:
        ParameterError: If the address has a text.
    """
    if "text" in parameters:
        raise ParameterError("text is in the address, where others can see it; send it as a form, with POST")
    names = _names(site)
    return answer(
        parameters,
        lambda: {"tokenizers": [{"key": key, "name": name} for key, name in names.items()]},
        lambda: _page(site, names, parameters),
    )


def text_page(site: Site, parameters: QueryParams) -> Response:
    """Returns the page of a text that was sent with a form.

    Raises:
        FormError: If the text is too long.
    """
    names = _names(site)
    # Browsers send each end of a line as two characters.
    text = parameters.get("text", "").replace("\r\n", "\n")
    num_bytes = len(text.encode())
    if num_bytes > MAX_TEXT_BYTES:
        raise FormError(
            413,
            f"the text has {num_bytes:,} bytes, more than the {MAX_TEXT_BYTES:,} of this page; send a part "
            "of it, or pack it and look at the file",
        )
    keys = [key for key in (_first_key(site, names, parameters), parameters.get("compare")) if key]
    encoded = [_encoded(site, key, text) for key in keys]
    window, starts, stops = _windows(parameters, encoded)
    shown = []
    is_compared = len(keys) == 2 and _are_aligned(encoded)
    for i, (key, tokens) in enumerate(zip(keys, encoded, strict=True)):
        ringed = tokens.differing(encoded[1 - i]) if is_compared else None
        shown.append(_shown(names[key], tokens, starts[i], stops[i], num_bytes, "to"[i], ringed))
    return answer(
        parameters,
        lambda: {
            "text_bytes": num_bytes,
            "from": window.start,
            "until": window.stop,
            "tokenizers": [tokens.facts for tokens in shown],
        },
        lambda: _page(site, names, parameters, text=text, num_bytes=num_bytes, window=window, shown=shown),
    )


def _page(site: Site, names: dict[str, str], parameters: QueryParams, **values: Any) -> Response:
    return site.pages.html(
        "playground.html",
        names=names,
        key=_first_key(site, names, parameters),
        other=parameters.get("compare", ""),
        step=_step(parameters),
        has_rings=any(tokens.num_differing for tokens in values.get("shown", ())),
        **{"text": "", "shown": [], "window": None, "num_bytes": 0} | values,
    )


def _names(site: Site) -> dict[str, str]:
    """Returns the tokenizers to choose from: a value for a parameter, and the name to show."""
    names = tokenizer_names(site)
    own = site.own_tokenizer()
    if own is None or _is_builtin(own):
        return names
    return {_OWN: f"{own.name} ({'this file' if site.single else '--tokenizer'})", **names}


def _is_builtin(tokenizer: Tokenizer) -> bool:
    is_named = tokenizer.name in Tokenizer.builtin_names()
    return is_named and builtin_fingerprint(tokenizer.name) == tokenizer.fingerprint


def _first_key(site: Site, names: dict[str, str], parameters: QueryParams) -> str:
    """Returns the key of the first tokenizer; the default is the one that belongs to what is served."""
    own = site.own_tokenizer()
    default = own.name if own is not None and _is_builtin(own) else next(iter(names))
    return parameters.get("tokenizer") or default


def _encoded(site: Site, key: str, text: str) -> Encoded:
    try:
        own = site.own_tokenizer() if key == _OWN else None
        tokenizer = tokenizer_of(site, key) if own is None else own
        # By default of the tokenizer, as packing does it, a special token in the text is a token or text.
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).tolist()
    except TokenizerError as error:
        return Encoded([], np.zeros(1, np.int64), False, None, str(error))
    contents, long = contents_of(tokenizer, ids)
    ends = np.cumsum([0, *map(len, contents)], dtype=np.int64)
    return Encoded(ids, ends, not long and b"".join(contents) == text.encode(), tokenizer)


def _are_aligned(encoded: Sequence[Encoded]) -> bool:
    """Returns whether the tokens of all tokenizers are parts of the text."""
    return all(tokens.is_exact for tokens in encoded)


def _windows(parameters: QueryParams, encoded: Sequence[Encoded]) -> tuple[Window, list[int], list[int]]:
    """Returns the part of the text that is shown, and its first and last tokens under each tokenizer.

    The parts are those of the first tokenizer, unless they have too many tokens of the second one. Tokens
    that are no parts of the text have the same numbers in both.
    """
    step = _step(parameters)
    first, last = encoded[0], encoded[-1]
    if not _are_aligned(encoded):
        length = max(len(tokens.ids) for tokens in encoded)
        start = integer(parameters, "from", 0, most=max(0, length - 1))
        window = Window(start, min(start + step, length), length, step)
        return window, [start] * 2, [window.stop] * 2
    length = len(first.ids)
    start = integer(parameters, "from", 0, most=max(0, length - 1))
    other_start = int(np.searchsorted(last.ends, first.ends[start]))
    end = last.ends[min(other_start + step, len(last.ids))]
    stop = int(np.searchsorted(first.ends, end, "right")) - 1
    window = Window(start, min(start + step, length, max(stop, start + 1)), length, step)
    other_stop = int(np.searchsorted(last.ends, first.ends[window.stop]))
    return window, [start, other_start], [window.stop, other_stop]


def _step(parameters: QueryParams) -> int:
    return integer(parameters, "window", WINDOW_TOKENS, least=1, most=MAX_WINDOW_TOKENS)


def _shown(
    name: str,
    encoded: Encoded,
    start: int,
    stop: int,
    num_bytes: int,
    target: str,
    ringed: npt.NDArray[np.int64] | None,
) -> Shown:
    ids = encoded.ids
    special = frozenset[int]()
    if encoded.tokenizer is not None:
        special = frozenset(token_id for _, token_id in encoded.tokenizer.special_tokens)
    before = ids[max(0, start - NUM_BEFORE) : start]
    pieces = pieces_of(encoded.tokenizer, ids[start:stop], special, before=before)
    return Shown(
        name,
        encoded,
        num_bytes / len(ids) if ids else None,
        start,
        pieces,
        tokens_html(pieces, start, target=target, ringed=() if ringed is None else {*ringed.tolist()}),
        None if ringed is None else len(ringed),
    )

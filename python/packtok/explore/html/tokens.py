"""Tokens as a page shows them: the bytes and the text of each, and what kind of token it is."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby

from markupsafe import Markup, escape

from packtok._packtok import Tokenizer
from packtok.explore.html.texts import visible

# Neighbouring tokens have different colours; the order repeats.
NUM_COLOURS = 4
# Number of earlier tokens needed for decoding: a character has at most 4 bytes, each of which may be a token.
NUM_BEFORE = 5
_KINDS = {"eod": "EOD", "special": "special token"}
_BYTES_SHOWN = 32
# The longest tokens of common tokenizers, runs of spaces, have 128 characters.
_CHARS_SHOWN = 128
# A file of a few hundred bytes can repeat one long token, so only the start of such a token is kept.
_MAX_NAME_CHARS = 512


@dataclass(frozen=True)
class Piece:
    """A token, its bytes and its text."""

    id: int
    content: bytes
    """Its bytes; only the first ones if its name is too long for a page."""
    kind: str = ""
    """``eod``, ``special``, or empty."""
    text: str = ""
    """The characters that start in this token; bytes that belong to no character are surrogates."""
    continues: bool = False
    """Whether its first bytes belong to a character of an earlier token."""
    is_open: bool = False
    """Whether the last character of the text has bytes in later tokens."""
    more_bytes: int = 0
    """Number of bytes after ``content``."""
    more_chars: int = 0
    """Number of characters after ``text``."""

    @property
    def num_bytes(self) -> int:
        """Number of bytes of the whole token."""
        return len(self.content) + self.more_bytes

    @property
    def details(self) -> str:
        """The facts that a page shows about the token besides its text."""
        parts = [f"id {self.id:,}"]
        if self.kind:
            parts.append(_KINDS[self.kind])
        if size := self.num_bytes:
            ending = " …" if size > _BYTES_SHOWN else ""
            hexadecimal = self.content[:_BYTES_SHOWN].hex(" ").upper() + ending
            parts.append(f"{size:,} {'byte' if size == 1 else 'bytes'}: {hexadecimal}")
        if self.continues:
            parts.append("starts inside a character")
        if self.is_open:
            parts.append(f"has a part of {visible(self.text[-1])}")
        return " · ".join(parts)


def pieces_of(
    tokenizer: Tokenizer | None,
    ids: Sequence[int],
    special: Collection[int] = (),
    eod_id: int | None = None,
    *,
    before: Sequence[int] = (),
) -> list[Piece]:
    """Returns the tokens with these ids; without a tokenizer, they have no bytes.

    Args:
        tokenizer: The tokenizer.
        ids: The ids.
        special: Ids of special tokens.
        eod_id: The id of EOD.
        before: The last `NUM_BEFORE` ids before them: some decoders remove the space at the start of a text.
    """
    contents: list[bytes] = [b""] * len(ids)
    long: dict[int, LongToken] = {}
    if tokenizer is not None:
        contents, long = contents_of(tokenizer, ids, before=before)
    kinds = ["eod" if token_id == eod_id else "special" if token_id in special else "" for token_id in ids]
    pieces = [
        Piece(token_id, content, kind)
        if (more := long.get(token_id)) is None
        else Piece(token_id, content, kind, more_bytes=more.more_bytes, more_chars=more.more_chars)
        for token_id, content, kind in zip(ids, contents, kinds, strict=True)
    ]
    return [
        piece for is_valid, run in groupby(pieces, _is_valid) for piece in _with_text(list(run), is_valid)
    ]


@dataclass(frozen=True)
class LongToken:
    """The start of a token whose name is too long for a page."""

    content: bytes
    more_bytes: int
    more_chars: int


def contents_of(
    tokenizer: Tokenizer, ids: Sequence[int], *, before: Sequence[int] = ()
) -> tuple[list[bytes], dict[int, LongToken]]:
    """Returns the bytes of each token, and the long tokens by id; only the start of these is returned.

    Args:
        tokenizer: The tokenizer.
        ids: The ids.
        before: The last `NUM_BEFORE` ids before them.
    """
    all_ids = [*before, *ids]
    long = {
        token_id: _long_token(*tokenizer.pieces([token_id]))
        for token_id in {*all_ids}
        if len(tokenizer.id_to_token(token_id) or "") > _MAX_NAME_CHARS
    }
    # The bytes of a long token would be copied for each place, so another token stands there.
    short = next((token_id for token_id in all_ids if token_id not in long), None)
    if short is None:
        return [long[token_id].content for token_id in ids], long
    contents = tokenizer.pieces([short if token_id in long else token_id for token_id in all_ids])
    pairs = zip(ids, contents[len(before) :], strict=True)
    return [long[token_id].content if token_id in long else content for token_id, content in pairs], long


def _long_token(content: bytes) -> LongToken:
    start, text = content[:_MAX_NAME_CHARS], content.decode("utf-8", "replace")
    if text.encode() == content:
        # No character is cut.
        start = start.decode("utf-8", "ignore").encode()
    more_chars = len(text) - len(start.decode("utf-8", "replace"))
    return LongToken(start, len(content) - len(start), more_chars)


def _is_valid(piece: Piece) -> bool:
    """Returns whether the bytes of a token are characters by themselves."""
    try:
        piece.content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _with_text(run: list[Piece], is_valid: bool) -> list[Piece]:
    """Adds the text of tokens. A character with bytes in several tokens belongs to the first of them."""
    if is_valid:
        return [replace(piece, text=piece.content.decode()) for piece in run]
    stops = list(accumulate(len(piece.content) for piece in run))
    texts = [""] * len(run)
    is_open, continues = [False] * len(run), [False] * len(run)
    start, token = 0, 0
    for char in b"".join(piece.content for piece in run).decode("utf-8", "surrogateescape"):
        while start >= stops[token]:
            token += 1
        texts[token] += char
        start += len(char.encode("utf-8", "surrogateescape"))
        last = token
        while start > stops[last]:
            is_open[token] = True
            last += 1
            continues[last] = True
    rows = zip(run, texts, continues, is_open, strict=True)
    return [replace(piece, text=text, continues=after, is_open=before) for piece, text, after, before in rows]


class _Shown(dict[int, str]):
    """A table for `str.translate` that turns characters into HTML in which all of them are visible."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char == " ":
            html = "<i> </i>"
        elif char == "\n":
            html = '<i class="n">\n</i>'
        elif char == "\t":
            html = '<i class="h">\t</i>'
        elif 0xDC80 <= code <= 0xDCFF:
            html = f'<i class="x">{code - 0xDC00:02X}</i>'
        elif visible(char) != char or (char.isspace() and char != "\u3000"):
            html = f'<i class="x">U+{code:04X}</i>'
        else:
            html = str(escape(char))
        self[code] = html
        return html


_SHOWN = _Shown()


def piece_html(piece: Piece) -> str:
    """Returns the text of a token as HTML: white space is marked, and invisible characters are named."""
    if not piece.content:
        return f'<i class="x">{piece.id}</i>'
    # The mark is drawn by the stylesheet, so that it is not copied with the text.
    before = '<i class="p r"></i>' if piece.continues else ""
    if not piece.is_open:
        return before + _text_html(piece.text, piece.more_chars)
    last = piece.text[-1].translate(_SHOWN)
    return f'{before}{_text_html(piece.text[:-1], piece.more_chars)}<i class="p">{last}</i>'


def _text_html(text: str, more_chars: int) -> str:
    if len(text) <= _CHARS_SHOWN:
        return text.translate(_SHOWN)
    more = f'<i class="x">and {len(text) - _CHARS_SHOWN + more_chars:,} more characters</i>'
    return text[:_CHARS_SHOWN].translate(_SHOWN) + more


def tokens_html(
    pieces: Sequence[Piece],
    first_position: int = 0,
    *,
    target: str = "t",
    more: Sequence[str] = (),
    ringed: Collection[int] = (),
) -> Markup:
    """Returns tokens as HTML: each is one element that can have the focus.

    Args:
        pieces: The tokens.
        first_position: Position of the first one, for the details.
        target: Start of the ids of the elements.
        more: More details of each token.
        ringed: Positions of tokens that another tokenizer divides differently.
    """
    added = more or [""] * len(pieces)
    return Markup("".join(_tokens(pieces, first_position, target, added, ringed)))


def pairs_html(
    pairs: Sequence[tuple[Piece, Piece | None]], first_position: int, *, more: Sequence[str]
) -> Markup:
    """Returns tokens as HTML, as `tokens_html` does, each with its label below.

    Args:
        pairs: The tokens and their labels; ``None`` for a token without label.
        first_position: Position of the first one.
        more: More details of each token.
    """
    tokens = _tokens([piece for piece, _ in pairs], first_position, "t", more)
    parts = []
    for token, (_, label) in zip(tokens, pairs, strict=True):
        if label is None:
            parts.append(f'<span class="pair none">{token}<span class="label">–</span></span>')
        else:
            parts.append(f'<span class="pair">{token}<span class="label">{piece_html(label)}</span></span>')
    return Markup("".join(parts))


def preview_html(pieces: Sequence[Piece]) -> Markup:
    """Returns tokens as HTML without details, which is a few bytes for each."""
    return Markup(
        "".join(
            f'<span class="{_names(piece, i)}">{piece_html(piece)}</span>' for i, piece in enumerate(pieces)
        )
    )


def _tokens(
    pieces: Sequence[Piece],
    first_position: int,
    target: str,
    more: Sequence[str],
    ringed: Collection[int] = (),
) -> Iterator[str]:
    for position, (piece, added) in enumerate(zip(pieces, more, strict=True), first_position):
        is_ringed = position in ringed
        facts = (f"token {position:,}", piece.details, added, "divided differently" if is_ringed else "")
        details = escape(" · ".join(filter(None, facts)))
        names = f"{_names(piece, position)}{' d' if is_ringed else ''}"
        # The direction of a text is that of its first letter, but not of the name of a special token.
        direction = ' dir="ltr"' if piece.kind else ""
        yield (
            f'<span class="{names}" id="{target}{position}" tabindex="0" '
            f'data-d="{details}"{direction}>{piece_html(piece)}</span>'
        )


def _names(piece: Piece, position: int) -> str:
    """Returns the classes of a token."""
    return " ".join(filter(None, ("t", f"c{position % NUM_COLOURS}", piece.kind)))

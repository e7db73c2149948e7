"""Untrusted text for a page: characters that hide or reorder text become visible; Markdown becomes HTML."""

import functools
import unicodedata
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

# Controls, formatting characters, line separators, surrogates, private use, and unassigned ones.
_HIDDEN_CATEGORIES = {"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"}
_LINK_SCHEMES = ("http://", "https://", "mailto:")
MAX_MARKDOWN_CHARS = 64 << 10
# Names, paths and values; a path may have 4,096 bytes.
MAX_TEXT_CHARS = 4096


class _Visible(dict[int, str | int]):
    """A table for `str.translate` that escapes invisible characters."""

    def __init__(self, keep: str = "") -> None:
        super().__init__({ord(char): char for char in keep})

    def __missing__(self, code: int) -> str | int:
        char = chr(code)
        is_hidden = unicodedata.category(char) in _HIDDEN_CATEGORIES
        self[code] = char.encode("unicode_escape").decode("ascii") if is_hidden else code
        return self[code]


_VISIBLE, _VISIBLE_LINES = _Visible(), _Visible("\n\t")


def shortened(text: str) -> str:
    """Returns the start of a text that is too long for a place of a page."""
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]} … ({len(text):,} characters)"


def visible(text: str, *, keep_lines: bool = False) -> str:
    """Returns ``text`` with escapes in place of characters that are invisible or reorder others."""
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_VISIBLE_LINES if keep_lines else _VISIBLE)


# Cached, because rendering an unusual text can take a second.
@functools.lru_cache(maxsize=32)
def markdown(text: str) -> Markup:
    """Returns Markdown as HTML, without HTML in it, pictures, and links other than to the web and to mail."""
    start = text[:MAX_MARKDOWN_CHARS]
    ending = "\n\n…" if len(text) > len(start) else ""
    html: str = _markdown().render(visible(start, keep_lines=True) + ending)
    return Markup(html)


@functools.cache
def _markdown() -> MarkdownIt:
    # Pictures would be loaded from other hosts.
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 12}).enable("table").disable("image")
    parser.validateLink = _is_allowed_link  # type: ignore[method-assign]
    parser.core.ruler.push("headings", _lower_headings)
    parser.core.ruler.push("scrolling", _focusable)
    for kind in ("fence", "code_block"):
        parser.add_render_rule(kind, _focusable_code)
    parser.add_render_rule("link_open", _link_without_referrer)
    return parser


def _is_allowed_link(url: str) -> bool:
    return url.lower().startswith(_LINK_SCHEMES)


def _lower_headings(state: StateCore) -> None:
    """Moves headings below the two levels of the page, each at most one level below the heading before it."""
    level = 2
    for token in state.tokens:
        if token.type == "heading_open":
            level = min(int(token.tag[1]) + 2, level + 1, 6)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{level}"


def _focusable(state: StateCore) -> None:
    """Makes tables reachable by the keyboard, which scrolls the wide ones."""
    for token in state.tokens:
        if token.type == "table_open":
            token.attrSet("tabindex", "0")


def _focusable_code(
    renderer: RendererHTML, tokens: Sequence[Token], i: int, options: OptionsDict, env: EnvType
) -> str:
    """Returns a block of code that the keyboard can reach and scroll."""
    plain = renderer.fence if tokens[i].type == "fence" else renderer.code_block
    return plain(tokens, i, options, env).replace("<pre>", '<pre tabindex="0">', 1)


def _link_without_referrer(
    renderer: RendererHTML, tokens: Sequence[Token], i: int, options: OptionsDict, env: EnvType
) -> str:
    tokens[i].attrSet("rel", "noreferrer nofollow")
    return renderer.renderToken(tokens, i, options, env)

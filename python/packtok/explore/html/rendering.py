"""Makes HTML from templates: all texts are escaped, and characters that hide or reorder text are shown."""

import json
import math
import re
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from packtok.explore.html.texts import shortened, visible
from packtok.explore.html.tokens import Piece, piece_html

_HERE = Path(__file__).parent
_SUMMARY_CHARS = 240
_MAX_COMMAND_CHARS = 16 << 10
# A longer description is shown on its own page only.
_MAX_ENTRY_CHARS = 64 << 10
# The Markdown that short texts usually contain. Any other markup is shown as text, which does no harm.
_LINK = re.compile(r"!?\[([^\]\[]*)\]\([^()\s]*\)")
_MARKUP = re.compile(r"^[#>\s]+|[*`]+", re.M)
_LOCAL_URL = re.compile(r'(\b(?:href|src|action)=")/')
_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


class Pages:
    """The templates, and the values that all of them show.

    Args:
        title: What is served, for the header.
        is_single: Whether no list of datasets is served.
    """

    base_path = ""
    """The path before that of each page, for a browser behind a proxy."""

    def __init__(self, title: str, *, is_single: bool) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_finalized,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters |= {
            "count": count,
            "size": size,
            "exact": exact,
            "lines": lines,
            "record_text": record_text,
            "piece": piece,
        }
        self._environment.globals |= {
            "site_title": title,
            "is_single": is_single,
            "link": link,
            "has_run": False,
        }

    def link_run(self) -> None:
        """Adds the link to the batches of a run to all pages."""
        self._environment.globals["has_run"] = True

    def prepare(self) -> None:
        """Compiles all templates in advance, so that the first page does not wait."""
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def html(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """Returns a page."""
        text = self._environment.get_template(template).render(values)
        if self.base_path:
            # Quotes in texts are escaped, so that only attributes match.
            text = _LOCAL_URL.sub(rf"\1{self.base_path}/", text)
        # A file name need not be UTF-8; its other bytes are shown as escapes already.
        return HTMLResponse(text.encode("utf-8", "backslashreplace"), status)


def _finalized(value: Any) -> Any:
    """Makes the characters of a value visible, before it is escaped, and shortens a long one."""
    return value if isinstance(value, Markup | int | float) else visible(shortened(str(value)))


def exact(text: str) -> Markup:
    """Returns a text for the value of an input, which must keep its characters."""
    return Markup.escape(text)


def lines(text: str) -> Markup:
    """Returns a text of several lines, to be copied. A part of a command would be a wrong one."""
    if len(text) > _MAX_COMMAND_CHARS:
        return Markup(f"too long for a page: {len(text):,} characters")
    return Markup.escape(visible(text, keep_lines=True))


def record_text(text: str) -> Markup:
    """Returns a text of several lines that the page has limited already."""
    return Markup.escape(visible(text, keep_lines=True))


def piece(token: Piece) -> Markup:
    """Returns a token for a cell of a table."""
    return Markup(f'<span class="tokens"><span class="t {token.kind}">{piece_html(token)}</span></span>')


def summary(entry: Mapping[str, Any]) -> str:
    """Returns the first paragraph of the description of an entry of the index, in one line."""
    text = entry["entry"]
    if not isinstance(text, str) or len(text) > _MAX_ENTRY_CHARS:
        return ""
    paragraphs = str(json.loads(text).get("description", "")).strip().split("\n\n", 1)
    plain = _MARKUP.sub("", _LINK.sub(r"\1", paragraphs[0][: 2 * _SUMMARY_CHARS]))
    description = " ".join(plain.split())
    return description if len(description) <= _SUMMARY_CHARS else f"{description[:_SUMMARY_CHARS].rstrip()} …"


def count(number: int | None) -> str:
    """Returns a number with thousands separators, or a dash if it is unknown."""
    return "–" if number is None else f"{number:,}"


def size(num_bytes: int | None) -> str:
    """Returns a number of bytes in a readable unit."""
    if num_bytes is None:
        return "–"
    if num_bytes < 1000:
        return f"{num_bytes} bytes"
    scale, unit = next(pair for pair in _UNITS if num_bytes >= pair[0])
    number = num_bytes / scale
    return f"{number:.{max(0, 2 - int(math.log10(number)))}f} {unit}"


def link(kind: str, name: str = "", **values: Any) -> Markup:
    """Returns the URL of a page: its kind, the path of a file or folder, and its parameters."""
    pairs = [(key.rstrip("_"), value) for key, item in values.items() for value in _listed(item)]
    query = urllib.parse.urlencode(pairs, errors="surrogateescape")
    path = urllib.parse.quote(name, errors="surrogateescape")
    return Markup.escape("/".join(["", *([kind] if kind else []), *([path] if path else [])]) or "/") + (
        Markup("?") + Markup.escape(query) if query else Markup("")
    )


def _listed(value: Any) -> list[Any]:
    if value is None or value == "":
        return []
    return list(value) if isinstance(value, list | tuple) else [value]

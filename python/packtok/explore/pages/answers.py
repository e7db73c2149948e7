"""A page as HTML or, with ``format=json`` in its address, its facts as JSON."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok.explore.html.tokens import Piece
from packtok.explore.pages.parameters import choice


def answer(
    parameters: QueryParams, facts: Callable[[], dict[str, Any]], page: Callable[[], Response]
) -> Response:
    """Returns the facts of a page as JSON if its address requests that, otherwise the page."""
    return json_response(facts()) if is_json(parameters) else page()


def is_json(parameters: QueryParams) -> bool:
    """Returns whether the address of a page requests JSON."""
    return choice(parameters, "format", ("html", "json")) == "json"


def json_response(facts: dict[str, Any], status: int = 200) -> Response:
    """Returns JSON. A name that is not UTF-8 is escaped, as ``os.fsdecode`` represents it.

    Metadata in YAML may have dates, which become texts.
    """
    text = json.dumps(facts, allow_nan=False, default=str)
    return Response(text, status, media_type="application/json")


def token_facts(pieces: Sequence[Piece]) -> dict[str, Any]:
    """Returns the ids of tokens, and the bytes of each as hexadecimal digits."""
    return {"ids": [piece.id for piece in pieces], "pieces": [piece.content.hex() for piece in pieces]}


def text_of(pieces: Sequence[Piece]) -> str:
    """Returns the text of tokens. Bytes that belong to no character are replaced."""
    return b"".join(piece.content for piece in pieces).decode("utf-8", "replace")

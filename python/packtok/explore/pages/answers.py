"""A page as HTML or, with ``format=json`` in its address, its facts as JSON."""

import json
from collections.abc import Callable
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok.explore.pages.parameters import choice


def answer(parameters: QueryParams, facts: dict[str, Any], page: Callable[[], Response]) -> Response:
    """Returns the facts of a page as JSON if its address requests that, otherwise the page."""
    if choice(parameters, "format", ("html", "json")) == "html":
        return page()
    # A file name need not be UTF-8; its other bytes are escapes in ASCII.
    return Response(json.dumps(facts, allow_nan=False), media_type="application/json")

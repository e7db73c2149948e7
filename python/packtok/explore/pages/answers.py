"""A page as HTML or, with ``format=json`` in its address, its facts as JSON."""

from collections.abc import Callable
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import JSONResponse, Response

from packtok.explore.pages.parameters import choice


def answer(parameters: QueryParams, facts: dict[str, Any], page: Callable[[], Response]) -> Response:
    """Returns the facts of a page as JSON if its address requests that, otherwise the page."""
    return JSONResponse(facts) if choice(parameters, "format", ("html", "json")) == "json" else page()

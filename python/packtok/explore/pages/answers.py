"""A page as HTML or, with ``format=json`` in its address, its facts as JSON."""

import json
from collections.abc import Callable
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import JSONResponse, Response

from packtok.explore.pages.parameters import choice


class _Json(JSONResponse):
    """JSON in ASCII: a name may have bytes that are no UTF-8, which are halves of surrogate pairs here."""

    def render(self, content: Any) -> bytes:
        """Returns the body."""
        return json.dumps(content, allow_nan=False).encode()


def answer(parameters: QueryParams, facts: dict[str, Any], page: Callable[[], Response]) -> Response:
    """Returns the facts of a page as JSON if its address requests that, otherwise the page."""
    return _Json(facts) if choice(parameters, "format", ("html", "json")) == "json" else page()

"""The page that finds a text in the documents of a file or dataset."""

import re
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok.explore.pages.answers import answer
from packtok.explore.pages.parameters import ParameterError, integer
from packtok.explore.site import Site

# At most 800 bytes of UTF-8, the limit of the search.
MAX_TEXT_CHARS = 200
_MAX_HITS = 50
_SECONDS = 2.0
# Tokens before a hit that the page of its document shows.
_TOKENS_BEFORE = 50


def find_page(site: Site, name: str, parameters: QueryParams) -> Response:
    """Returns the page with the documents that contain a text, from a position on."""
    group = site.group(name)
    text = parameters.get("text", "")
    if len(text) > MAX_TEXT_CHARS:
        raise ParameterError(f"text has {len(text):,} characters, expected at most {MAX_TEXT_CHARS}")
    # A form does not send a box that is not checked.
    ignores_case = not text or bool(parameters.get("ignore_case"))
    document = integer(parameters, "document", 0, most=max(0, group.num_documents - 1))
    token = integer(parameters, "token", 0)
    decoder = site.decoder(group)
    result: dict[str, Any] = {"hits": [], "next": None}
    if text and decoder.tokenizer is not None:
        texts = site.document_texts(group, decoder)
        result = texts.search(
            text,
            ignore_case=ignores_case,
            document=document,
            token=token,
            max_hits=_MAX_HITS,
            seconds=_SECONDS,
        )

    def page() -> Response:
        return site.pages.html(
            "find.html",
            group=group,
            trail=site.trail(name),
            text=text,
            ignores_case=ignores_case,
            document=document,
            token=token,
            decoder=decoder,
            hits=[_shown(hit) for hit in result["hits"]],
            next=result["next"],
        )

    return answer(parameters, lambda: {"text": text, "ignore_case": ignores_case, **result}, page)


def _shown(hit: dict[str, Any]) -> dict[str, Any]:
    """Returns a hit with its text in one line, and the token from which its document is shown."""
    line = {key: re.sub(r"\s+", " ", hit[key]) for key in ("before", "text", "after")}
    return {**hit, **line, "start": max(0, hit["token"] - _TOKENS_BEFORE)}

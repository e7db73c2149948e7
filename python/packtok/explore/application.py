"""The application: finds the page for a URL, and reports pages that cannot be shown."""

import asyncio
import functools
import os
import re
import sys
import traceback
import urllib.parse
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from packtok.errors import PacktokError
from packtok.explore.files import NotServedError
from packtok.explore.forms import FormError, form_body, form_fields
from packtok.explore.html.texts import visible
from packtok.explore.pages.answers import json_response
from packtok.explore.pages.batches import batch_page
from packtok.explore.pages.datasets import dataset_page, file_page
from packtok.explore.pages.documents import document_page
from packtok.explore.pages.find import find_page
from packtok.explore.pages.items import item_page
from packtok.explore.pages.kinds import kinds_page
from packtok.explore.pages.parameters import ParameterError
from packtok.explore.pages.playground import MAX_FORM_BYTES, playground_page, text_page
from packtok.explore.pages.profile import profile_page
from packtok.explore.pages.raw_rows import rows_page
from packtok.explore.pages.records import record_page
from packtok.explore.pages.search import search_page
from packtok.explore.pages.table import table_page
from packtok.explore.security import Guard
from packtok.explore.site import Site

_STATIC = Path(__file__).parent / "static"
_TYPES = {"style.css": "text/css", "script.js": "text/javascript", "icon.svg": "image/svg+xml"}
_THREADS = 4
_HEADINGS = {
    400: "That cannot be shown",
    404: "Not here",
    413: "That is too long",
    500: "That cannot be read",
}

Page = Callable[[Site, str, QueryParams], Response]
_PAGES: dict[str, Page] = {
    "": lambda site, _, parameters: search_page(site, parameters),
    "dataset": dataset_page,
    "file": file_page,
    "documents": document_page,
    "table": table_page,
    "kinds": kinds_page,
    "items": item_page,
    "batch": batch_page,
    "record": record_page,
    "rows": rows_page,
    "playground": lambda site, _, parameters: playground_page(site, parameters),
    "profile": profile_page,
    "find": find_page,
}
# Pages that get a form with POST. Its fields are parameters, like those in the address.
_FORMS: dict[str, Page] = {"playground": lambda site, _, parameters: text_page(site, parameters)}
# Pages that take seconds have threads of their own, so that other pages need not wait for one.
_SLOW_PAGES = ("profile", "find")
_SLOW_THREADS = 2


def application(
    site: Site,
    *,
    host: str,
    token: str | None = None,
    own_name: str | None = None,
    allowed_hosts: Collection[str] = (),
    base_path: str = "",
) -> ASGIApp:
    """Returns the application for a site, as a server runs it.

    Args:
        site: What to serve.
        host: The address that the server listens on.
        token: The access token; only a server on a loopback address may have none.
        own_name: The only host name under which browsers sign in. Default: every name that is served.
        allowed_hosts: Host names that proxies forward.
        base_path: The path of the server below a proxy, without a slash at its end. Requests may
            have it or not.
    """
    site.pages.base_path = base_path
    return Guard(
        _Application(site), site.pages, host=host, token=token, own_name=own_name, allowed_hosts=allowed_hosts
    )


class _Application:
    """Answers requests; pages are made in threads, because files and tokenizers block."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._threads = ThreadPoolExecutor(_THREADS, "packtok-explore")
        self._slow_threads = ThreadPoolExecutor(_SLOW_THREADS, "packtok-explore-slow")
        self._static = {name: (_STATIC / name).read_bytes() for name in _TYPES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        request = Request(scope, receive)
        kind, name = _kind_and_name(scope)
        if kind == "static":
            response = self._static_file(name)
        else:
            try:
                body = await form_body(request, MAX_FORM_BYTES) if request.method == "POST" else None
            except FormError as error:
                response = self._error(request.query_params, error.status, str(error))
            else:
                make = functools.partial(self._page, kind, name, request.query_params, body)
                threads = self._slow_threads if kind in _SLOW_PAGES else self._threads
                response = await asyncio.get_running_loop().run_in_executor(threads, make)
        await response(scope, receive, send)

    def _static_file(self, name: str) -> Response:
        if name not in self._static:
            return self._error(QueryParams(), 404, "There is no such page.")
        headers = {"Cache-Control": "public, max-age=3600"}
        return Response(self._static[name], media_type=_TYPES[name], headers=headers)

    def _page(self, kind: str, name: str, parameters: QueryParams, body: bytes | None) -> Response:
        """Returns a page, or a page about the error.

        Args:
            kind: The first part of the address.
            name: The rest of it.
            parameters: The parameters in the address.
            body: The form that was sent, if one was.
        """
        page = (_PAGES if body is None else _FORMS).get(kind)
        if page is None or (not kind and name):
            return self._error(parameters, 404, "There is no such page.")
        try:
            if body is not None:
                parameters = QueryParams([*parameters.multi_items(), *form_fields(body)])
            return page(self._site, name, parameters)
        except NotServedError as error:
            return self._error(parameters, 404, str(error))
        except ParameterError as error:
            return self._error(parameters, 400, str(error))
        except FormError as error:
            return self._error(parameters, error.status, str(error))
        except (PacktokError, OSError, ValueError, OverflowError) as error:
            # Files are opened by their descriptors. A reader of the page needs the name instead.
            message = re.sub(r"/proc/self/fd/\d+", lambda _: name, str(error))
            return self._error(parameters, 500, message.replace(f"{self._site.root.folder}/", ""))
        # One page with a fault must not end the others. A panic of the compiled module is no `Exception`, and
        # Ctrl-C reaches the main thread only.
        except BaseException as error:
            # A message about a form may quote its text, which is printed nowhere.
            print(_fault(kind, name, error, has_message=body is None), file=sys.stderr, flush=True)
            message = (
                f"This page has a fault ({type(error).__name__}): report it with the line that the server "
                "printed to standard error."
            )
            return self._error(parameters, 500, message, "This page failed")

    def _error(
        self, parameters: QueryParams, status: int, message: str, heading: str | None = None
    ) -> Response:
        if parameters.get("format") == "json":
            return json_response({"error": message[:2000]}, status)
        return self._site.pages.html(
            "error.html",
            status=status,
            code=status,
            heading=heading or _HEADINGS[status],
            message=message[:2000],
        )


def _fault(kind: str, name: str, error: BaseException, *, has_message: bool) -> str:
    """Returns one line about an unexpected error of a page, in which control characters are escaped."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = f": {error}" if has_message else ""
    message = f"{type(error).__name__}{text} ({place.filename}:{place.lineno})"
    return visible(f"packtok explore: /{kind}/{name}: {message}")[:2000]


def _kind_and_name(scope: Scope) -> tuple[str, str]:
    """Returns the kind of a page and the path of its file, whose name may have any bytes."""
    raw: bytes = scope.get("raw_path") or urllib.parse.quote(scope["path"]).encode()
    kind, _, name = raw.split(b"?")[0].lstrip(b"/").decode("latin-1").partition("/")
    return urllib.parse.unquote(kind), os.fsdecode(urllib.parse.unquote_to_bytes(name))

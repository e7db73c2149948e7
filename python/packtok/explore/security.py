"""Decides who may read the pages, and restricts the browser.

Other programs on this machine reach the loopback address, so the ``Host`` header is checked: a page of
another site whose name resolves to 127.0.0.1 is refused. Every other address needs an access token. The
browser gives it in a form and receives a cookie with a session of its own, so that the token is in no URL,
log or cookie.

Browsers send a cookie to all ports of its host, and on a shared machine another port is another user's. So a
server on a loopback address with a token has a random name below ``localhost``, which browsers resolve to
this machine, and signs browsers in under this name only. Nothing else reveals it: no response contains it.

Starlette's own middleware does not fit. `TrustedHostMiddleware` compares with a list of names, which cannot
contain 127.0.0.0/8; before Starlette 1.0 it also refuses ``[::1]:8000`` and accepts ``localhost:8000:1``.
`SessionMiddleware` needs another package and one cookie name for all ports; before Starlette 1.0 it renews
the cookie with each response, so that a session in use never ends.
"""

import hmac
import ipaddress
import re
import secrets
import stat
import time
from collections.abc import Collection
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from packtok.errors import ConfigError
from packtok.explore.forms import FormError, form_body, form_fields
from packtok.explore.html.rendering import Pages

COOKIE = "packtok_session"
LOGIN = "/login"
# The only pages to which a form is sent with POST, besides the one with the access token.
_FORM_PATHS = frozenset({"/playground"})
# The form needs the stylesheet, before there is a session.
_OPEN_PATHS = ("/static/",)
_MIN_TOKEN_CHARS = 20
_SESSION_SECONDS = 12 * 3600
_MAX_FORM_BYTES = 4096
_MAX_URL_BYTES = 16 << 10
# A name, or an address (in brackets if it has colons), and a port.
_HOST = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?", re.ASCII)
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def is_loopback(host: str) -> bool:
    """Returns whether only programs on this machine can reach an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def new_token() -> str:
    """Returns a random access token."""
    return secrets.token_urlsafe(32)


def new_name() -> str:
    """Returns a random host name that browsers resolve to their own machine."""
    return f"{secrets.token_hex(8)}.localhost"


def read_token(path: Path) -> str:
    """Reads an access token from a file.

    Raises:
        ConfigError: If other users can read the file, or the token is short or not printable ASCII.
        OSError: If the file cannot be read.
    """
    with path.open("rb") as file:
        mode = path.stat().st_mode
        content = file.read(_MAX_FORM_BYTES)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"--token-file: {path} can be read by other users; run chmod 600 on it")
    try:
        token = content.decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if len(token) < _MIN_TOKEN_CHARS or not token.isprintable() or " " in token:
        raise ConfigError(
            f"--token-file: {path} must contain one token of at least {_MIN_TOKEN_CHARS} printable ASCII "
            "characters without spaces"
        )
    return token


class Sessions:
    """The sessions of browsers that gave the token; none survives the server.

    A session is the time of its end, signed with a key of this server. Nothing is stored, so a process that
    replaces the one that started a session knows it too.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def start(self) -> str:
        """Returns the value of a new session."""
        return self._signed(f"{int(time.monotonic()) + _SESSION_SECONDS}.{secrets.token_urlsafe(8)}")

    def has(self, value: str) -> bool:
        """Returns whether this server started the session, and it has not ended."""
        text = value.rpartition(".")[0]
        if not hmac.compare_digest(self._signed(text).encode(), value.encode()):
            return False
        return int(text.partition(".")[0]) > time.monotonic()

    def _signed(self, text: str) -> str:
        return f"{text}.{hmac.digest(self._key, text.encode(), 'sha256').hex()}"


class Guard:
    """Answers requests without permission, and adds the headers to all responses.

    Args:
        app: The pages.
        pages: Makes the page with the form.
        host: The address that the server listens on.
        token: The access token; ``None`` lets everybody in who reaches the address.
        own_name: The only host name under which browsers sign in, if there is one.
        allowed_hosts: Host names that proxies forward.
    """

    def __init__(
        self,
        app: ASGIApp,
        pages: Pages,
        *,
        host: str,
        token: str | None,
        own_name: str | None,
        allowed_hosts: Collection[str],
    ) -> None:
        self._app = app
        self._pages = pages
        self._checks_host = is_loopback(host)
        self._token = token
        self._own_name = own_name
        self._allowed_hosts = frozenset(name.lower() for name in allowed_hosts)
        self._sessions = Sessions()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                # No cache may store a page of one user for another.
                headers.setdefault("Cache-Control", "no-store")
                if headers.get("location", "").startswith("/"):
                    headers["location"] = self._pages.base_path + headers["location"]
            await send(message)

        # Some proxies remove the path below which they serve, and others leave it.
        base = self._pages.base_path
        raw_path = scope["raw_path"]
        if base and scope["path"].startswith(f"{base}/") and raw_path.startswith(f"{base}/".encode()):
            scope = {**scope, "path": scope["path"][len(base) :], "raw_path": raw_path[len(base) :]}
        app = await self._answer(Request(scope, receive))
        await app(scope, receive, send_with_headers)

    async def _answer(self, request: Request) -> ASGIApp:
        path = request.scope["path"]
        name = _host_name(request.headers)
        is_own = name in self._allowed_hosts or (self._own_name is not None and name == self._own_name)
        if self._checks_host and not is_own and not is_loopback(name):
            return PlainTextResponse("the Host header is not a name of this machine\n", 421)
        if _is_embedded_elsewhere(request.headers):
            return PlainTextResponse("a page of another site asks for this\n", 403)
        if len(request.scope["raw_path"]) + len(request.scope["query_string"]) > _MAX_URL_BYTES:
            return PlainTextResponse("the address is too long\n", 414)
        if self._own_name is not None and not is_own and not self._has_token(request):
            return PlainTextResponse(
                "open the address that packtok explore printed, with its own host name; programs that send "
                "the access token may use this one\n",
                421,
            )
        is_login = path == LOGIN and self._token is not None
        if request.method == "POST" and is_login:
            return await self._login(request)
        allowed = ("GET", "HEAD", "POST") if path in _FORM_PATHS else ("GET", "HEAD")
        if request.method not in allowed:
            return PlainTextResponse(f"only {' and '.join(allowed)}\n", 405, {"Allow": ", ".join(allowed)})
        if request.method == "POST" and _is_form_of_another_site(request.headers):
            return PlainTextResponse("a page of another site sends this form\n", 403)
        if self._token is None or path.startswith(_OPEN_PATHS) or self._is_known(request):
            # A session replaces the token.
            return RedirectResponse("/", 303) if is_login else self._app
        return self._form("/" if is_login else _local_path(request))

    def _is_known(self, request: Request) -> bool:
        return self._has_token(request) or self._sessions.has(request.cookies.get(_cookie(request), ""))

    def _has_token(self, request: Request) -> bool:
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._is_token(credentials.strip())

    def _is_token(self, text: str) -> bool:
        return self._token is not None and hmac.compare_digest(text.encode(), self._token.encode())

    async def _login(self, request: Request) -> Response:
        try:
            fields = dict(form_fields(await form_body(request, _MAX_FORM_BYTES)))
        except FormError as error:
            return PlainTextResponse(f"{error}\n", error.status)
        target = _checked_path(fields.get("next", "/"))
        if not self._is_token(fields.get("token", "").strip()):
            return self._form(target, is_wrong=True)
        response = RedirectResponse(target, 303)
        response.set_cookie(
            _cookie(request),
            self._sessions.start(),
            max_age=_SESSION_SECONDS,
            path=self._pages.base_path or "/",
            httponly=True,
            samesite="strict",
        )
        return response

    def _form(self, target: str, *, is_wrong: bool = False) -> Response:
        response = self._pages.html("login.html", status=401, target=target, is_wrong=is_wrong)
        response.headers["WWW-Authenticate"] = 'Bearer realm="packtok explore"'
        return response


def _cookie(request: Request) -> str:
    # Browsers send cookies to all ports of a host, and each port may be another server of this program.
    return f"{COOKIE}_{request.scope['server'][1]}"


def _host_name(headers: Headers) -> str:
    """Returns the name in the ``Host`` header without the port; empty if it is none."""
    match = _HOST.fullmatch(headers.get("host", ""))
    return "" if match is None else match[1].lower()


def _is_embedded_elsewhere(headers: Headers) -> bool:
    """Returns whether a page of another site sends the request, and no user followed its link."""
    is_navigation = headers.get("sec-fetch-mode") == "navigate"
    return headers.get("sec-fetch-site") == "cross-site" and not is_navigation


def _is_form_of_another_site(headers: Headers) -> bool:
    """Returns whether a page of another origin sends a form, such as one of another port of this host."""
    sender = headers.get("sec-fetch-site")
    if sender is not None:
        return sender not in ("same-origin", "none")
    # Browsers without that header, and those that send it to encrypted or local addresses only. From a page
    # without a referrer, such as those of this server, the origin may be "null".
    origin = headers.get("origin", "null")
    return origin != "null" and origin.partition("://")[2] != headers.get("host")


def _local_path(request: Request) -> str:
    query = request.scope["query_string"].decode("latin-1")
    path = request.scope.get("raw_path", b"/").decode("latin-1")
    return _checked_path(f"{path}?{query}" if query else path)


def _checked_path(target: str) -> str:
    """Returns a path on this server, and the first page for everything else."""
    is_path = target.startswith("/") and not target.startswith("//") and "\\" not in target
    return target if is_path and target.isascii() and target.isprintable() else "/"

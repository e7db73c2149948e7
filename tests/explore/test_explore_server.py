"""`packtok explore` as a program: its first line, who may read its pages, and how it ends."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import select
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import PacktokCli
from explore_site import Page, Served, environment, served, write_corpus
from processes import MAIN

import packtok
from packtok.errors import ConfigError
from packtok.explore.application import application
from packtok.explore.security import Sessions, is_loopback, new_name, read_token
from packtok.explore.server import bound_socket, serve
from packtok.explore.site import Site, site_of_file

TOKEN = "a-long-token-for-tests-0123456789"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}


@pytest.fixture(scope="module")
def pbin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    corpus = write_corpus(folder / "c.jsonl", ["Hello world"])
    packtok.pack(input=corpus, output=folder / "a.pbin", tokenizer="gpt2")
    return folder / "a.pbin"


@pytest.fixture(scope="module")
def site(pbin: Path) -> Site:
    return site_of_file(pbin)


@pytest.fixture(scope="module")
def server(site: Site) -> Iterator[Served]:
    with served(site) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(site: Site) -> Iterator[Served]:
    """Returns a server that asks for `TOKEN`."""
    with served(site, host="0.0.0.0", token=TOKEN) as running:
        yield running


@dataclass
class Program:
    """A running `packtok explore`."""

    process: subprocess.Popen[str]
    first_line: str

    def stop(self) -> tuple[int, str, str]:
        """Sends Ctrl-C; returns the exit code and what was printed after the first line."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@contextlib.contextmanager
def program(*arguments: object, before: str = "") -> Iterator[Program]:
    """Runs `packtok explore`, after ``before`` has run in its process."""
    port = [] if "--socket" in arguments else ["--port", "0"]
    command = [sys.executable, "-c", f"{before}\n{MAIN}", "explore", *map(str, arguments), *port]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    try:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 60)[0]
        yield Program(process, process.stdout.readline())
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def port_of(url: str) -> int:
    match_ = re.fullmatch(r"http://[^/]+:(\d+)/\n?", url)
    assert match_ is not None, url
    return int(match_[1])


def test_interrupt_before_the_first_process_ends_quietly(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(signal, "pthread_sigmask", interrupt)
    with bound_socket("127.0.0.1", 0) as listener:
        serve(site, application(site, host="127.0.0.1"), listener, ready=lambda: None)


def test_first_line_is_the_url_and_ctrl_c_ends_quietly(pbin: Path) -> None:
    with program(pbin) as running:
        assert running.first_line.startswith("http://127.0.0.1:")
        server = Served(port_of(running.first_line))
        texts = [text for text, _ in server.page("/documents/a.pbin").tokens()]
        assert texts == ["Hello", " world", "<|endoftext|>"]
        assert running.stop() == (0, "", "")


def test_random_token_is_printed_once_and_json_has_the_url(pbin: Path) -> None:
    with program(pbin, "--host", "0.0.0.0", "--json") as running:
        url = json.loads(running.first_line)["url"]
        server = Served(port_of(url))
        assert server.get("/").status == 401
        assert server.get("/?token=wrong").status == 401
        code, out, err = running.stop()
    remark, token = err.splitlines()
    assert (code, out) == (0, "")
    assert remark == "packtok: the page asks for this access token, which is shown only once:"
    assert len(token) >= 40
    assert token not in url


def test_with_a_token_browsers_sign_in_under_a_random_name_only(pbin: Path, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text(TOKEN)
    secret.chmod(0o600)
    with program(pbin, "--token-file", secret) as running:
        server = Served(port_of(running.first_line))
        own = running.first_line.split("/")[2]
        name = own.partition(":")[0]
        form = server.get("/file/a.pbin", headers={"Host": own})
        login = server.get("/login", method="POST", body=f"token={TOKEN}", headers={"Host": own})
        assert (form.status, login.status) == (401, 303)
        cookie = {"Cookie": login.headers["set-cookie"].partition(";")[0]}
        assert server.get("/file/a.pbin", headers={"Host": own, **cookie}).status == 200
        # A browser sends a cookie without a domain to the host that set it only.
        assert "domain" not in login.headers["set-cookie"].lower()
        for other in (f"127.0.0.1:{server.port}", "localhost", f"x{own}", f"x.{own}", f"{name}.x"):
            for answer in (
                server.get("/file/a.pbin", headers={"Host": other, **cookie}),
                server.get("/login", method="POST", body=f"token={TOKEN}", headers={"Host": other}),
            ):
                assert (answer.status, "set-cookie" in answer.headers) == (421, False), other
                assert name not in f"{answer.headers}{answer.text}"
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert server.get("/file/a.pbin", headers=bearer).status == 200
    assert re.fullmatch(r"[0-9a-f]{16}\.localhost", name)
    assert new_name() not in (name, new_name())


def test_socket_is_for_this_user_only(pbin: Path, tmp_path: Path, packtok_cli: PacktokCli) -> None:
    path = tmp_path / "page.sock"
    with program(pbin, "--socket", path, "--json") as running:
        assert json.loads(running.first_line) == {"url": f"unix:{path}"}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        client = http.client.HTTPConnection("localhost:8000", timeout=60)
        client.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.sock.connect(str(path))
        client.request("GET", "/documents/a.pbin")
        answer = client.getresponse()
        assert (answer.status, b"Hello" in answer.read()) == (200, True)
        client.close()
        done = packtok_cli("explore", pbin, "--socket", path, code=2)
        assert done.stderr == f"packtok: --socket: a server listens at {path}; choose another path\n"
        assert running.stop() == (0, "", "")
    assert not path.exists()
    # A server that was killed leaves its file.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(path))
    with program(pbin, "--socket", path) as running:
        assert running.stop()[0] == 0


def test_missing_extra_is_one_line_that_says_what_to_install(pbin: Path) -> None:
    hidden = "import sys; sys.modules['starlette'] = None; " + MAIN
    command = [sys.executable, "-c", hidden, "explore", str(pbin)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "packtok: packtok explore needs the extra of that name; run pip install 'packtok[explore]'\n"
    )


def test_the_extra_is_imported_only_by_this_command() -> None:
    code = "import sys, packtok, packtok.cli, packtok.commands.data; print({*sys.modules} & {*sys.argv[1:]})"
    names = ["starlette", "uvicorn", "jinja2", "markdown_it", "packtok.explore"]
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_wrong_arguments_are_one_line(packtok_cli: PacktokCli, pbin: Path, tmp_path: Path) -> None:
    no_base = {"PACKTOK_BASE_DIR": "", "TATM_BASE_DIR": ""}
    with socket.create_server(("127.0.0.1", 0)) as other:
        used = other.getsockname()[1]
        token = tmp_path / "token"
        token.write_text("short")
        token.chmod(0o600)
        (tmp_path / "text.pbin").write_text("hello, this is no pbin")
        cases: list[tuple[tuple[object, ...], int, str]] = [
            (
                (),
                2,
                "nothing to show; give a pbin or the base directory of the datasets, or set PACKTOK_BASE_DIR",
            ),
            ((pbin, "--base-dir", tmp_path), 2, "PATH and --base-dir: give one of them"),
            (("--base-dir", pbin), 2, f"--base-dir: {pbin} is not a folder"),
            (("none.pbin",), 1, "none.pbin: No such file or directory"),
            (
                (pbin, "--port", used),
                2,
                f"--port: 127.0.0.1:{used} is in use; choose another port, ",
            ),
            ((pbin, "--host", "x.invalid"), 2, "--host: x.invalid has no address: "),
            (
                (pbin, "--token-file", token),
                2,
                f"--token-file: {token} must contain one token of at least 20 ",
            ),
            ((tmp_path / "text.pbin",), 1, "text.pbin: "),
            (
                (pbin, "--socket", token),
                2,
                f"--socket: {token} exists and is no socket; choose another path",
            ),
            (
                (pbin, "--socket", tmp_path / ("x" * 200)),
                2,
                f"--socket: {tmp_path / ('x' * 200)}: AF_UNIX path too long; choose a shorter path",
            ),
            ((pbin, "--base-path", "a"), 2, "--base-path: 'a' is no path of letters, digits and "),
            ((pbin, "--allow-host", "a:1"), 2, "--allow-host: 'a:1' is no host name; give it without a port"),
            ((pbin, "--socket", tmp_path / "none" / "s"), 1, f"{tmp_path}/none/s: No such file or directory"),
            (
                (pbin, "--socket", "s", "--port", "0"),
                2,
                "--socket: only this user can open it; remove --host, --port and --token-file",
            ),
        ]
        for arguments, code, message in cases:
            done = packtok_cli("explore", *arguments, cwd=tmp_path, code=code, env=no_base)
            assert done.stdout == ""
            (line,) = done.stderr.splitlines()
            assert line.startswith(f"packtok: {message}"), line


def test_pages_of_other_sites_may_link_and_not_load(server: Served) -> None:
    for from_site, mode, status in (
        ("cross-site", "no-cors", 403),
        ("cross-site", "cors", 403),
        ("cross-site", "navigate", 200),
        ("same-origin", "cors", 200),
        ("none", "navigate", 200),
    ):
        headers = {"Sec-Fetch-Site": from_site, "Sec-Fetch-Mode": mode}
        assert server.get("/file/a.pbin", headers=headers).status == status, headers


def test_host_header_must_name_this_machine(server: Served) -> None:
    for host in (
        "localhost",
        f"localhost:{server.port}",
        "127.0.0.1:80",
        "[::1]:8000",
        "LOCALHOST",
        "127.1.2.3",
    ):
        assert server.get("/file/a.pbin", headers={"Host": host}).status == 200, host
    for host in (
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8000",
        "",
        "x@127.0.0.1",
        "[::1",
        "0.0.0.0",
        "192.168.0.1",
        "[::1]x",
        "localhost:8000:1",
        "127.0.0.1 evil",
    ):
        answer = server.get("/file/a.pbin", headers={"Host": host})
        assert answer.status in (400, 421), host
        assert "Hello" not in answer.text


def test_every_response_has_the_headers(server: Served, guarded: Served) -> None:
    answers = [
        *(
            server.get(path)
            for path in ("/", "/file/a.pbin", "/documents/a.pbin", "/none", "/static/style.css")
        ),
        server.get("/", method="POST"),
        server.get("/", headers={"Host": "evil.example"}),
        server.get("/documents/a.pbin?document=x"),
        guarded.get("/"),
        guarded.get("/login", method="POST", body="token=x"),
        guarded.get("/login", method="POST", body=f"token={TOKEN}"),
    ]
    assert [answer.status for answer in answers] == [303, 200, 200, 404, 200, 405, 421, 400, 401, 401, 303]
    for answer in answers:
        policy = dict(
            part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert "unsafe" not in str(policy)
        assert {name: answer.headers[name] for name in _HEADERS} == _HEADERS
        assert "cache-control" in answer.headers
        assert "server" not in answer.headers


def test_token_opens_the_pages_by_form_and_by_header(guarded: Served) -> None:
    path = "/documents/a.pbin?document=0"
    unauthorized = guarded.get(path)
    assert (unauthorized.status, unauthorized.headers["www-authenticate"]) == (
        401,
        'Bearer realm="packtok explore"',
    )
    assert "Hello" not in unauthorized.text
    assert f'name="next" value="{path}"' in unauthorized.text
    assert guarded.get("/static/style.css").status == 200
    wrong = guarded.get("/login", method="POST", body="token=wrong&next=/file/a.pbin")
    assert (wrong.status, "set-cookie" in wrong.headers) == (401, False)
    assert "This is not the token." in wrong.text
    right = guarded.get("/login", method="POST", body=f"token={TOKEN}&next={path.replace('?', '%3F')}")
    assert (right.status, right.headers["location"]) == (303, path)
    cookie, *flags = right.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {*flags}
    assert TOKEN not in str(right.headers)
    opened = guarded.get(path, headers={"Cookie": cookie})
    assert opened.status == 200
    assert TOKEN not in opened.text
    assert guarded.get(path, headers={"Authorization": f"Bearer {TOKEN}"}).status == 200
    for headers in (
        {"Cookie": f"packtok_session_{guarded.port}={TOKEN}"},
        {"Cookie": f"packtok_session_{guarded.port}="},
        {"Cookie": f"packtok_session_{guarded.port}=\xe9"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer \xe9"},
    ):
        assert guarded.get(path, headers=headers).status == 401, headers
    assert guarded.get(f"/?token={TOKEN}").status == 401
    assert guarded.get(path, headers={"Cookie": cookie}, method="POST").status == 405


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil", "x", "", "/a\r\nX: y", "/é"]
)
def test_login_leads_to_pages_of_this_server_only(guarded: Served, target: str) -> None:
    from urllib.parse import urlencode

    answer = guarded.get("/login", method="POST", body=urlencode({"token": TOKEN, "next": target}))
    assert (answer.status, answer.headers["location"]) == (303, "/")


def test_large_or_odd_forms_are_refused(guarded: Served) -> None:
    assert guarded.get("/login", method="POST", body="token=" + "x" * 10_000).status == 413
    assert guarded.get("/login", method="POST", body="&" * 3000).status in (400, 401)
    assert guarded.get("/login", method="POST", body="").status == 401
    assert guarded.get("/login").status == 401


def test_sessions_end_and_cannot_be_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    # Only there: the event loops of servers that other tests run would sleep for hours.
    monkeypatch.setattr("packtok.explore.security.time", SimpleNamespace(monotonic=lambda: now[0]))
    sessions = Sessions()
    first = sessions.start()
    assert sessions.has(first)
    assert first != sessions.start()
    end, _, rest = first.partition(".")
    for value in (
        "",
        ".",
        "x",
        first[:-1],
        f"{first}0",
        f"{int(end) + 1}.{rest}",
        f"{end}.{rest[1:]}",
        "\xe9.x",
    ):
        assert not sessions.has(value), value
    assert not Sessions().has(first)
    now[0] = 13 * 3600
    assert not sessions.has(first)
    assert sessions.has(sessions.start())


# A page that shortens its file in place after it was opened, if a file named `truncate` is next to it.
_TRUNCATING = """
import os
from packtok.explore.contents.packed import PackedFiles
opened = PackedFiles.open
def opened_and_truncated(self, name):
    packed = opened(self, name)
    marker = self._root.folder / "truncate"
    if marker.exists():
        marker.unlink()
        os.truncate(self._root.folder / name, 0)
    return packed
PackedFiles.open = opened_and_truncated
"""


def test_file_that_is_truncated_in_place_does_not_end_the_server(pbin: Path, tmp_path: Path) -> None:
    content = pbin.read_bytes()
    copy, secret = tmp_path / "a.pbin", tmp_path / "token"
    copy.write_bytes(content)
    secret.write_text(TOKEN)
    secret.chmod(0o600)
    with program(copy, "--token-file", secret, before=_TRUNCATING) as running:
        server = Served(port_of(running.first_line))
        own = {"Host": running.first_line.split("/")[2]}
        login = server.get("/login", method="POST", body=f"token={TOKEN}", headers=own)
        session = {**own, "Cookie": login.headers["set-cookie"].partition(";")[0]}
        assert server.get("/documents/a.pbin", headers=session).status == 200
        (tmp_path / "truncate").touch()
        # The process that made the page is gone, and nothing answers.
        with pytest.raises(http.client.RemoteDisconnected):
            server.get("/documents/a.pbin", headers=session)
        assert server.get("/documents/a.pbin", headers=session).status == 404
        copy.write_bytes(content)
        again = server.get("/documents/a.pbin", headers=session)
        assert (again.status, "Hello" in again.text) == (200, True)
        code, out, err = running.stop()
    assert (code, out) == (0, "")
    assert err == (
        "packtok: a file was truncated while a page read it; pages that were requested are lost, and the "
        "server continues\n"
    )


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_remains_after_the_server(pbin: Path, sent: signal.Signals) -> None:
    with program(pbin) as running:
        assert Served(port_of(running.first_line)).get("/file/a.pbin").status == 200
        running.process.send_signal(sent)
        # Both processes hold the end of the pipe.
        assert running.process.communicate(timeout=60) == ("", "")
        assert running.process.returncode == -sent


def test_token_file_must_be_private(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    assert read_token(path) == TOKEN
    for mode in (0o640, 0o604, 0o660):
        path.chmod(mode)
        with pytest.raises(
            ConfigError, match=re.escape(f"{path} can be read by other users; run chmod 600 on it")
        ):
            read_token(path)
    for content in (b"", b"short", b"with space " * 5, b"\xff" * 40, b"x" * 30 + b"\ny"):
        path.chmod(0o600)
        path.write_bytes(content)
        with pytest.raises(ConfigError, match="must contain one token of at least 20 printable ASCII char"):
            read_token(path)


def test_only_loopback_addresses_need_no_token() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LocalHost")))
    assert not any(
        map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org", "", "127.0.0.1.example.org"))
    )


def test_many_requests_at_once_are_answered(server: Served, site: Site) -> None:
    from concurrent.futures import ThreadPoolExecutor

    paths = ["/file/a.pbin", "/documents/a.pbin", "/items/a.pbin?context_length=1", "/none"] * 10
    with ThreadPoolExecutor(8) as threads:
        assert [answer.status for answer in threads.map(server.get, paths)] == [200, 200, 200, 404] * 10
    assert os.path.exists(site.root.folder)


def test_connections_without_a_request_shut_nobody_out(site: Site) -> None:
    with served(site) as server, contextlib.ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(300)
        ]
        for i, connection in enumerate(connections[-200:]):
            # Headers, or the form with the token, that never end.
            started = b"GET / HTTP/1.1\r\nX: " if i % 2 else b"POST /x HTTP/1.1\r\nContent-Length: 9\r\n"
            connection.sendall(started)
        assert server.get("/file/a.pbin").status == 200
        # The oldest one was closed, and the last one was not.
        for connection, is_closed in ((connections[0], True), (connections[-1], False)):
            assert bool(select.select([connection], [], [], 0)[0]) == is_closed


@pytest.mark.parametrize(
    "started", [b"", b"GET / HT", b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nt"]
)
def test_request_must_be_complete_in_time(
    site: Site, started: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("packtok.explore.server._REQUEST_SECONDS", 0.2)
    with served(site, host="0.0.0.0", token=TOKEN) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(started)
            assert select.select([connection], [], [], 30)[0]
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
        assert server.get("/static/style.css").status == 200


def test_proxy_serves_the_pages_below_a_path_and_under_its_name(pbin: Path) -> None:
    proxy = {"allowed_hosts": ["hub.example.org"], "base_path": "/user/me/proxy/8000"}
    base, host = "/user/me/proxy/8000", {"Host": "Hub.example.org"}
    with served(site_of_file(pbin), **proxy) as server:
        # Some proxies remove the path, and others leave it.
        for prefix in ("", base):
            answer = server.get(f"{prefix}/documents/a.pbin", headers=host)
            page = Page(answer.text)
            assert (answer.status, page.tokens()[0][0]) == (200, "Hello")
            urls = [*page.links(), *page.attributes("script", "src"), *page.attributes("form", "action")]
            urls = [url for url in [*urls, *page.attributes("link", "href")] if not url.startswith("#")]
            assert len(urls) > 8
            for url in urls:
                assert url.startswith(f"{base}/"), url
                assert url.count(base) == 1, url
                assert server.get(url, headers=host).status in (200, 303), url
        for path in ("/", f"{base}/"):
            assert server.get(path, headers=host).headers["location"] == f"{base}/file/a.pbin"
        assert server.get("/documents/a.pbin", headers={"Host": "other.example.org"}).status == 421
        assert server.get("/user/me/documents/a.pbin", headers=host).status == 404
    with served(site_of_file(pbin), token=TOKEN, own_name=new_name(), **proxy) as server:
        answer = server.get(
            f"{base}/login", method="POST", body=f"token={TOKEN}&next=/file/a.pbin", headers=host
        )
        assert (answer.status, answer.headers["location"]) == (303, f"{base}/file/a.pbin")
        cookie, *flags = answer.headers["set-cookie"].split("; ")
        assert f"Path={base}" in flags
        assert server.get("/file/a.pbin", headers={**host, "Cookie": cookie}).status == 200

"""Implements ``packtok explore``: serves the page of a base directory or of one token file."""

import importlib.util
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import astuple
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from packtok.catalog.base import BASE_VARIABLES, find_base
from packtok.commands.convert import Reading, check_formats, tokenizer_beside
from packtok.data.run import Run, open_run
from packtok.errors import ConfigError
from packtok.sources import FORMAT_SUFFIXES, StrPath

if TYPE_CHECKING:
    from packtok._packtok import Tokenizer
    from packtok.explore.site import Site

_HOST, _PORT = "127.0.0.1", 8000
# Modules that the extra installs.
_NEEDED = ("starlette", "uvicorn", "jinja2", "markdown_it")


def explore(
    path: StrPath | None = None,
    *,
    base_dir: StrPath | None = None,
    host: str = _HOST,
    port: int = _PORT,
    tokenizer: str | None = None,
    add_special_tokens_from_config: bool = False,
    format: str | None = None,
    input_dtype: str | None = None,
    boundaries: str | None = None,
    token_file: StrPath | None = None,
    socket: StrPath | None = None,
    base_path: str = "",
    allow_host: Sequence[str] = (),
    run: str | None = None,
    state: str | None = None,
    on_ready: Callable[[str, str | None], None] = lambda _url, _token: None,
) -> None:
    """Serves a page that shows datasets, and documents down to the token, until Ctrl-C.

    Args:
        path: A token file, which is then all that is served, or the base directory.
        base_dir: The base directory; default: ``PACKTOK_BASE_DIR`` or ``TATM_BASE_DIR``, and without them the
            files of ``run``.
        host: Address to listen on. Every address but a loopback one requires an access token.
        port: Port to listen on; 0 takes any free port.
        tokenizer: Tokenizer of files that do not name theirs.
        add_special_tokens_from_config: As in `packtok.pack`, for ``tokenizer``.
        format: As in `packtok.convert`, for a token file.
        input_dtype: As in `packtok.convert`.
        boundaries: As in `packtok.convert`.
        token_file: File with the access token, which is then required on each address. Default: a random
            token, if one is required.
        socket: Path of a Unix socket to listen on instead, which only this user can open.
        base_path: Path below which a proxy serves the pages, such as ``/user/me/proxy/8000``.
        allow_host: Host names that a proxy forwards, besides those of this machine.
        run: A config as `packtok.commands.locate.locate` takes it, whose batches are shown.
        state: File with the state of a loader of the run, as there.
        on_ready: Receives the URL and a random token, if there is one, before the first request. With a
            token and a loopback address, the URL has a random host name, under which browsers sign in.

    Raises:
        ConfigError: If an argument is invalid, or the extra `explore` is not installed.
        OSError: If the address cannot be used.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError("packtok explore needs the extra of that name; run pip install 'packtok[explore]'")
    from packtok.explore.application import application
    from packtok.explore.security import is_loopback, new_name, new_token, read_token
    from packtok.explore.server import bound_path, bound_socket, serve, url_of

    if socket is not None and (host, port, token_file) != (_HOST, _PORT, None):
        raise ConfigError("--socket: only this user can open it; remove --host, --port and --token-file")
    if not re.fullmatch(r"(/[\w.~-]+)*/?", base_path, re.ASCII):
        raise ConfigError(
            f"--base-path: {base_path!r} is no path of letters, digits and ./_~- that starts with a slash"
        )
    for name in allow_host:
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            raise ConfigError(f"--allow-host: {name!r} is no host name; give it without a port")
    check_formats("pbin", format)
    reading = Reading(format, input_dtype, boundaries)
    if state is not None and run is None:
        raise ConfigError("--state: is a state of a run; give --run too")
    opened = None if run is None else _opened_run(run, state)
    site = site_to_serve(path, base_dir, tokenizer, add_special_tokens_from_config, reading, opened)
    token = None if token_file is None else read_token(Path(token_file))
    random_token = new_token() if token is None and not is_loopback(host) else None
    token = token or random_token
    own_name = new_name() if token is not None and is_loopback(host) else None
    app = application(
        site,
        host=host,
        token=token,
        own_name=own_name,
        allowed_hosts=allow_host,
        base_path=base_path.rstrip("/"),
    )
    with bound_socket(host, port) if socket is None else bound_path(Path(socket)) as listener:
        url = url_of(listener, own_name or host)
        serve(site, app, listener, ready=lambda: on_ready(url, random_token))


def _opened_run(config: str, state: str | None) -> Run:
    """Returns the run of a config. Nothing is written next to the data."""
    # A plan stays open without its name, so that nothing is left, however the server ends.
    with TemporaryDirectory(prefix="packtok-explore-") as folder:
        return open_run(config, state, scratch_dir=folder)


def site_to_serve(
    path: StrPath | None,
    base_dir: StrPath | None,
    tokenizer: str | None,
    adds: bool,
    reading: Reading,
    run: Run | None = None,
) -> "Site":
    """Returns the site that `explore` serves."""
    from packtok.explore.site import site_of_run
    from packtok.tokenizer.find import find_tokenizer

    if path is not None and base_dir is not None:
        raise ConfigError("PATH and --base-dir: give one of them")
    default_tokenizer = None if tokenizer is None else find_tokenizer(tokenizer, adds).tokenizer
    location = path if path is not None else base_dir
    if location is None:
        base = find_base()
        if base is None and run is not None:
            if reading != Reading():
                raise ConfigError(
                    "--format, --input-dtype, --boundaries: are for a token file; the config says how files "
                    "of the run are read"
                )
            return site_of_run(run, default_tokenizer)
        if base is None:
            raise ConfigError(
                "nothing to show; give a pbin or the base directory of the datasets, or set "
                f"{BASE_VARIABLES[0]}"
            )
        location = base.folder
    site = _site_of_path(Path(location), base_dir, tokenizer, default_tokenizer, reading)
    return site if run is None else site.with_run(run)


def _site_of_path(
    folder: Path,
    base_dir: StrPath | None,
    tokenizer: str | None,
    default_tokenizer: "Tokenizer | None",
    reading: Reading,
) -> "Site":
    from packtok.explore.site import site_of_file, site_of_folder
    from packtok.tokenizer.find import find_tokenizer, tokenizer_next_to

    if folder.is_dir():
        if reading != Reading():
            raise ConfigError(
                "--format, --input-dtype, --boundaries: are for a token file; the base directory is a folder"
            )
        return site_of_folder(folder, default_tokenizer)
    if base_dir is not None:
        raise ConfigError(f"--base-dir: {os.fspath(base_dir)} is not a folder")
    file = _named_file(folder)
    beside = None if tokenizer is not None or tokenizer_next_to(file) else tokenizer_beside(file)
    if beside is not None:
        default_tokenizer = find_tokenizer(beside).tokenizer
    site = site_of_file(file, default_tokenizer, astuple(reading))
    # The file is opened here, so that the command fails and not a page later.
    site.files.open(str(site.single))
    return site


def _named_file(path: Path) -> Path:
    """Returns the file at a path, or one of those of a dataset whose files share this name."""
    files = (Path(f"{path}{suffix}") for suffix in dict.fromkeys(FORMAT_SUFFIXES.values()))
    return path if path.exists() else next((file for file in files if file.is_file()), path)

"""Outputs in object stores: made in a folder of this machine, then sent, whole and if nobody was first.

A run that is killed leaves the folder, and the same command goes on there: what is packed is not packed
again.
"""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.config.redact import Redactor
from packtok.errors import ConfigError, PacktokError

PLAN, PLAN_TOKENIZER = _packtok.PLAN_NAME, _packtok.PLAN_TOKENIZER_NAME
# What may lie beside a pbin.
_BESIDE = (_packtok.REJECTS_SUFFIX, ".tokenizer.json")


def is_url(path: str) -> bool:
    """Whether a path is a URL, which names an object in a store."""
    return _packtok.is_url(path)


def exists(path: str) -> bool:
    """Whether there is something under a path or URL.

    Raises:
        OSError: If the store does not answer.
    """
    return _packtok.object_bytes(path) is not None if is_url(path) else os.path.lexists(path)


def check_url(url: str) -> None:
    """Refuses a URL that would put credentials where others can read them.

    Raises:
        ConfigError: If there is a user, a password or a query in it.
    """
    if Redactor()(url) != url:
        raise ConfigError(
            f"{Redactor()(url)}: the URL contains credentials or a query; set credentials in the "
            "environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )


def _default_base() -> Path:
    cache = _packtok.user_cache()
    if cache is None:
        raise ConfigError("--staging: is missing, and this user has no home folder; give a folder")
    return Path(cache, "staging")


@dataclass(frozen=True)
class Staging:
    """The folder in which what goes to a URL is made."""

    url: str
    folder: Path

    @classmethod
    def of(cls, url: str, base: str | None, key: Any) -> "Staging":
        """The folder for a URL, and for what decides the bytes that go there.

        Args:
            url: Where everything goes.
            base: The folder of all such folders; by default one in the user's cache.
            key: What tells this run from others to the same URL, as JSON can hold it.
        """
        check_url(url)
        text = json.dumps([url, key], sort_keys=True, default=str)
        name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        folder = Path(base or _default_base()) / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(url.rstrip("/"), folder)

    @classmethod
    def of_output(cls, url: str, base: str | None, key: Any, *, existing: str) -> "Staging":
        """The folder for an output of one file, unless what is there already forbids to make it.

        Raises:
            ConfigError: If ``existing`` is ``"skip"``, for the object would have to be read for that.
            FileExistsError: If there is an object and ``existing`` is ``"error"``.
            OSError: If the store does not answer.
        """
        check_url(url)
        if existing == "skip":
            raise ConfigError(f"existing is 'skip' and {url} is in an object store; use error or replace")
        if existing == "error" and exists(url):
            raise FileExistsError(
                errno.EEXIST, "the object already exists; choose another URL, or set existing to replace", url
            )
        return cls.of(url, base, key)

    @property
    def path(self) -> Path:
        """What is made for the URL itself."""
        return self.folder / self.url.rsplit("/", 1)[1]

    def url_of(self, name: str) -> str:
        """The URL of a file in the folder that the URL is."""
        return f"{self.url}/{name}"

    def send(self, *, replace: bool) -> None:
        """Sends the file and what lies beside it; the file itself last, and only if all else is there.

        Raises:
            FileExistsError: If the object exists and is not to be replaced.
            OSError: If the store refuses something or does not answer.
        """
        # What lies beside somebody else's file is not touched either.
        if not replace and exists(self.url):
            raise FileExistsError(errno.EEXIST, "the object already exists; choose another output", self.url)
        for suffix in _BESIDE:
            beside = Path(f"{self.path}{suffix}")
            if beside.exists():
                _packtok.upload(beside, f"{self.url}{suffix}", replace=True)
            elif replace:
                _packtok.delete_object(f"{self.url}{suffix}")
        _packtok.upload(self.path, self.url, replace=replace)
        self.remove()

    def empty(self) -> None:
        """Removes what an earlier run has left in the folder."""
        self.remove()
        self.folder.mkdir(mode=0o700)

    def remove(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def fetch_plan(staging: Staging) -> bool:
    """Fetches the plan from the folder of shards in the store; whether there is one."""
    if _packtok.object_bytes(staging.url_of(PLAN)) is None:
        return False
    _packtok.download(staging.url_of(PLAN), staging.folder / PLAN)
    return True


def share_plan(staging: Staging) -> None:
    """Sends the plan, unless another task was first, with the same one.

    Raises:
        PacktokError: If the plan in the store is another.
    """
    _send_if_absent(staging, PLAN)


def _send_if_absent(staging: Staging, name: str) -> None:
    path, url = staging.folder / name, staging.url_of(name)
    try:
        _packtok.upload(path, url, replace=False)
    except FileExistsError:
        if _content(url, staging) != path.read_bytes():
            raise PacktokError(
                f"{url}: belongs to another corpus or other options; choose another output, or remove it"
            ) from None


def _content(url: str, staging: Staging) -> bytes:
    """What a small object holds. Other tasks may use the folder, so that the file has a name of its own."""
    with tempfile.TemporaryDirectory(dir=staging.folder) as folder:
        path = Path(folder) / "object"
        _packtok.download(url, path)
        return path.read_bytes()


def finished_shard(staging: Staging, name: str, fingerprint: str) -> dict[str, Any] | None:
    """The marker of a shard that is whole in the store, by the name of its pbin; ``None`` if it is not."""
    url = staging.url_of(_packtok.marker_name(name))
    if _packtok.object_bytes(url) is None:
        return None
    marker: dict[str, Any] = json.loads(_content(url, staging))
    is_whole = marker["plan"] == fingerprint
    return (
        marker if is_whole and _packtok.object_bytes(staging.url_of(name)) == marker["file_bytes"] else None
    )


def send_shard(staging: Staging, name: str) -> None:
    """Sends a shard: the tokenizer, its rejects, its pbin, and last its marker; then they are removed here.

    Raises:
        OSError: If the store refuses something or does not answer.
    """
    names = [f"{name}{_packtok.REJECTS_SUFFIX}", name, _packtok.marker_name(name)]
    there = [one for one in names if (staging.folder / one).exists()]
    _send_if_absent(staging, PLAN_TOKENIZER)
    # Another copy of the task may have sent the same bytes.
    for one in there:
        _packtok.upload(staging.folder / one, staging.url_of(one), replace=True)
    for one in reversed(there):
        (staging.folder / one).unlink(missing_ok=True)


def fetch_shards(staging: Staging, tell: Callable[[str], None] = lambda _: None) -> None:
    """Fetches all that a folder of shards holds and that is not here yet.

    Raises:
        OSError: If the store refuses something or does not answer.
    """
    for url, num_bytes in _packtok.list_objects(staging.url):
        name = url.removeprefix(staging.url_of(""))
        path = staging.folder / name
        if "/" in name or (path.exists() and path.stat().st_size == num_bytes):
            continue
        tell(url)
        _packtok.download(url, path)

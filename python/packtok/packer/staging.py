"""Outputs in object stores: written to a local staging folder, then uploaded if no other run was first.

A killed run leaves its staging folder, and the same command resumes from it, without packing anything twice.
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
# Suffixes of files that can exist next to a pbin.
_BESIDE = (_packtok.REJECTS_SUFFIX, ".tokenizer.json")


def exists(path: str) -> bool:
    """Returns whether a file or object exists at a path or URL.

    Raises:
        OSError: If the store does not respond.
    """
    return _packtok.object_bytes(path) is not None if _packtok.is_url(path) else os.path.lexists(path)


def check_url(url: str) -> None:
    """Rejects a URL that contains credentials, which others could read.

    Raises:
        ConfigError: If the URL contains a user, a password or a query.
    """
    if Redactor()(url) != url:
        raise ConfigError(
            f"{Redactor()(url)}: the URL contains credentials or a query; set credentials in the "
            "environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )


def default_base() -> Path:
    """Returns the parent of all staging folders, unless another one is given."""
    cache = _packtok.user_cache()
    if cache is None:
        raise ConfigError("--staging: is missing, and this user has no home folder; give a folder")
    return Path(cache, "staging")


@dataclass(frozen=True)
class Staging:
    """The local folder for files that will be uploaded to a URL."""

    url: str
    folder: Path

    @classmethod
    def of(cls, url: str, base: str | None, key: Any) -> "Staging":
        """Returns the folder for a URL and for the options that determine the uploaded bytes.

        Args:
            url: The destination of the upload.
            base: Parent of all staging folders. Default: a folder in the user's cache.
            key: JSON-serializable value that distinguishes this run from others with the same URL.
        """
        check_url(url)
        text = json.dumps([url, key], sort_keys=True, default=str)
        name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        folder = Path(base or default_base()) / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(url.rstrip("/"), folder)

    @classmethod
    def of_output(cls, url: str, base: str | None, key: Any, *, existing: str) -> "Staging":
        """Returns the folder for an output of one file, unless an existing object rules out the upload.

        Raises:
            ConfigError: If ``existing`` is ``"skip"``, which would need to read the object in the store.
            FileExistsError: If the object exists and ``existing`` is ``"error"``.
            OSError: If the store does not respond.
        """
        check_url(url)
        if existing == "skip":
            raise ConfigError(f"existing is 'skip' and {url} is in an object store; use error or replace")
        if existing == "error" and exists(url):
            raise FileExistsError(
                errno.EEXIST,
                "the object already exists; choose another URL, or set --existing (existing) to replace",
                url,
            )
        return cls.of(url, base, key)

    @property
    def path(self) -> Path:
        """The local file for the URL itself."""
        return self.folder / self.url.rsplit("/", 1)[1]

    def url_of(self, name: str) -> str:
        """Returns the URL of a file, if the output URL is a folder."""
        return f"{self.url}/{name}"

    def send(self, *, replace: bool) -> None:
        """Uploads the file and those next to it. The file itself comes last, after all others.

        Raises:
            FileExistsError: If the object exists and is not to be replaced.
            OSError: If the store rejects a request or does not respond.
        """
        # Checked first, so that the files next to another run's output are not replaced.
        if not replace and exists(self.url):
            raise FileExistsError(errno.EEXIST, "the object already exists; choose another output", self.url)
        for suffix in _BESIDE:
            sidecar_file = Path(f"{self.path}{suffix}")
            if sidecar_file.exists():
                _packtok.upload(sidecar_file, f"{self.url}{suffix}", replace=True)
            elif replace:
                _packtok.delete_object(f"{self.url}{suffix}")
        _packtok.upload(self.path, self.url, replace=replace)
        self.remove()

    def empty(self) -> None:
        """Removes the contents of the folder, left by an earlier run."""
        self.remove()
        self.folder.mkdir(mode=0o700)

    def remove(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def fetch_plan(staging: Staging) -> bool:
    """Downloads the plan from the folder of shards in the store; returns whether there is one."""
    if _packtok.object_bytes(staging.url_of(PLAN)) is None:
        return False
    _packtok.download(staging.url_of(PLAN), staging.folder / PLAN)
    return True


def share_plan(staging: Staging) -> None:
    """Uploads the plan, unless another task already uploaded the same one.

    Raises:
        PacktokError: If the store contains a different plan.
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
    """Returns the contents of a small object. Uses a temporary file, as other tasks share the folder."""
    with tempfile.TemporaryDirectory(dir=staging.folder) as folder:
        path = Path(folder) / "object"
        _packtok.download(url, path)
        return path.read_bytes()


def finished_shard(staging: Staging, name: str, fingerprint: str) -> dict[str, Any] | None:
    """Returns the marker of the shard with pbin ``name``; ``None`` unless the shard is complete."""
    url = staging.url_of(_packtok.marker_name(name))
    if _packtok.object_bytes(url) is None:
        return None
    marker: dict[str, Any] = json.loads(_content(url, staging))
    if marker["plan"] != fingerprint:
        return None
    return marker if _packtok.object_bytes(staging.url_of(name)) == marker["file_bytes"] else None


def send_shard(staging: Staging, name: str) -> None:
    """Uploads a shard (tokenizer, rejects, pbin, and the marker last), then removes the local files.

    Raises:
        OSError: If the store rejects a request or does not respond.
    """
    names = [f"{name}{_packtok.REJECTS_SUFFIX}", name, _packtok.marker_name(name)]
    existing_names = [name for name in names if (staging.folder / name).exists()]
    _send_if_absent(staging, PLAN_TOKENIZER)
    # replace=True, because another instance of this task may already have uploaded the same bytes.
    for file_name in existing_names:
        _packtok.upload(staging.folder / file_name, staging.url_of(file_name), replace=True)
    for file_name in reversed(existing_names):
        (staging.folder / file_name).unlink(missing_ok=True)


def fetch_shards(staging: Staging, tell: Callable[[str], None] = lambda _: None) -> None:
    """Downloads all files of a folder of shards that the staging folder lacks.

    Raises:
        OSError: If the store rejects a request or does not respond.
    """
    for url, num_bytes in _packtok.list_objects(staging.url):
        name = url.removeprefix(staging.url_of(""))
        path = staging.folder / name
        if "/" in name or (path.exists() and path.stat().st_size == num_bytes):
            continue
        tell(url)
        _packtok.download(url, path)

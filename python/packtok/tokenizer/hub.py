"""Tokenizer files from the Hugging Face hub, from its cache if possible, otherwise downloaded.

This is the only module that imports `huggingface_hub`. It downloads nothing but a tokenizer.json and the
files next to it that name tokens.
"""

import socket
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from packtok.config.redact import Redactor
from packtok.errors import TokenizerError

_FILE = "tokenizer.json"
_UNREACHABLE = (
    "neither a path, nor built in, nor in the hub's cache, and the hub cannot be reached; download it with "
    "network access, or give the path of a tokenizer.json"
)


def fetch_tokenizer(name: str, neighbours: Iterable[str]) -> tuple[Path, dict[str, Path]]:
    """Returns the path of the hub's `tokenizer.json`, and those of the ``neighbours`` that it has, by name.

    Raises:
        TokenizerError: If `huggingface_hub` is not installed or a file is not available; names the remedy.
    """
    try:
        import huggingface_hub
    except ImportError:
        raise TokenizerError(
            f"tokenizer {name!r} is neither a path nor built in, and huggingface_hub, which is needed to "
            "download it, is not installed; run pip install 'packtok[hub]', or give the path of a "
            "tokenizer.json"
        ) from None
    del huggingface_hub
    path = _cached(name, _FILE, None) or _download(name, _FILE, None)
    # All files must come from one revision. The cache has a folder for each revision, named after it.
    revision = path.parent.name
    paths = {file: _neighbour(name, file, revision) for file in neighbours}
    return path, {
        file: neighbour_path for file, neighbour_path in paths.items() if neighbour_path is not None
    }


def _neighbour(name: str, file: str, revision: str) -> Path | None:
    """Returns the path of a file that a tokenizer may have."""
    from huggingface_hub import try_to_load_from_cache

    # The cache also records files that the hub does not have, by a value that is not a path.
    cached = try_to_load_from_cache(name, file, revision=revision)
    if cached is None:
        return _download_if_there(name, file, revision)
    return Path(cached) if isinstance(cached, str) else None


def _cached(name: str, file: str, revision: str | None) -> Path | None:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HFValidationError

    try:
        return Path(hf_hub_download(name, file, revision=revision, local_files_only=True))
    except EntryNotFoundError:
        return None
    except HFValidationError:
        raise TokenizerError(
            f"tokenizer {name!r} is neither a path, nor built in, nor a valid name on the hub"
        ) from None


def _download_if_there(name: str, file: str, revision: str) -> Path | None:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    if not _has_address():
        return None
    try:
        return Path(hf_hub_download(name, file, revision=revision))
    except (EntryNotFoundError, ConnectionError):
        # Not on the hub, or the hub is unreachable; the tokenizer works without this file.
        return None
    except (OSError, ValueError) as error:
        raise _error(name, file, error) from _root(error)


def _download(name: str, file: str, revision: str | None) -> Path:
    from huggingface_hub import hf_hub_download

    if not _has_address():
        raise TokenizerError(f"tokenizer {name!r}: {_UNREACHABLE}")
    try:
        return Path(hf_hub_download(name, file, revision=revision))
    except (OSError, ValueError) as error:
        # Every error of the hub and of its HTTP clients is an OSError or a ValueError.
        raise _error(name, file, error) from _root(error)


def _has_address() -> bool:
    """Returns whether the name of the hub's host can be resolved, or a proxy does that.

    Without this, every misspelt name takes half a minute on a machine without network access: the library
    repeats requests that fail in this way.
    """
    from huggingface_hub import constants

    host = urlsplit(constants.ENDPOINT).hostname
    if host is None or getproxies():
        return True
    try:
        socket.getaddrinfo(host, None)
    except socket.gaierror:
        return False
    return True


def _error(name: str, file: str, error: Exception) -> TokenizerError:
    from huggingface_hub import errors

    # The order matters, because some of these classes derive from others in the list.
    if isinstance(error, errors.GatedRepoError):
        text = "access is restricted on the hub; request access there and log in with `hf auth login`"
    elif isinstance(error, errors.RepositoryNotFoundError):
        text = (
            "neither a path, nor built in, nor found on the hub; if it is private, log in with `hf auth "
            "login`"
        )
    elif isinstance(error, errors.LocalEntryNotFoundError | ConnectionError):
        text = _UNREACHABLE
    elif isinstance(error, errors.EntryNotFoundError):
        text = f"the hub has no {file} under this name; give the path of a converted tokenizer.json"
    else:
        text = f"cannot download {file} from the hub"
    return TokenizerError(f"tokenizer {name!r}: {text}")


def _root(error: BaseException) -> BaseException:
    """Returns the root cause, without credentials; the exceptions in between only repeat it at length."""
    while error.__cause__ is not None:
        error = error.__cause__
    error.args = Redactor().tree(error.args)
    return error

"""Tokenizer files from the Hugging Face hub: from its cache if they are there, downloaded otherwise.

This is the only module that names `huggingface_hub`. Nothing but the two tokenizer files is ever fetched.
"""

from pathlib import Path

from packtok.errors import TokenizerError
from packtok.redact import Redactor

_FILES = ("tokenizer.json", "tokenizer_config.json")


def fetch_tokenizer(name: str) -> tuple[Path, Path | None]:
    """Paths of the hub's `tokenizer.json` and, where it has one, `tokenizer_config.json`.

    Raises:
        TokenizerError: If the package is missing, or the files cannot be had, and what can be done about it.
    """
    try:
        import huggingface_hub
    except ImportError:
        raise TokenizerError(
            f"tokenizer {name!r} is neither a path nor built in, and huggingface_hub, which could fetch it, "
            "is not installed; run pip install 'packtok[hub]', or give the path of a tokenizer.json"
        ) from None
    del huggingface_hub
    path = _cached(name, _FILES[0], None) or _download(name, _FILES[0], None)
    # Both files from one revision: the cache keeps each in a folder named after it.
    revision = path.parent.name
    config = _cached(name, _FILES[1], revision)
    return path, config or _download_if_there(name, _FILES[1], revision)


def _cached(name: str, file: str, revision: str | None) -> Path | None:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HFValidationError

    try:
        return Path(hf_hub_download(name, file, revision=revision, local_files_only=True))
    except EntryNotFoundError:
        return None
    except HFValidationError:
        raise TokenizerError(
            f"tokenizer {name!r} is no path, not built in, and no name the hub could have"
        ) from None


def _download_if_there(name: str, file: str, revision: str) -> Path | None:
    from huggingface_hub.errors import EntryNotFoundError, OfflineModeIsEnabled

    try:
        return _download(name, file, revision)
    except TokenizerError as error:
        # The file is optional; what is fatal is only a hub that answers and refuses.
        if isinstance(error.__cause__, EntryNotFoundError | OfflineModeIsEnabled | ConnectionError):
            return None
        raise


def _download(name: str, file: str, revision: str | None) -> Path:
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(name, file, revision=revision))
    except (OSError, ValueError) as error:
        # Every error of the hub and of its HTTP clients is one of these two.
        raise TokenizerError(f"tokenizer {name!r}: {_reason(error, file)}") from _redacted(error)


def _reason(error: Exception, file: str) -> str:
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return "access is restricted on the hub; ask for it there and log in with `hf auth login`"
    if isinstance(error, errors.RepositoryNotFoundError):
        return "neither a path, nor built in, nor found on the hub; if it is private, `hf auth login`"
    if isinstance(error, errors.LocalEntryNotFoundError | errors.OfflineModeIsEnabled | ConnectionError):
        return (
            "neither a path, nor built in, nor in the hub's cache, and the hub cannot be reached; "
            "fetch it where there is a network, or give the path of a tokenizer.json"
        )
    if isinstance(error, errors.EntryNotFoundError):
        return f"the hub has no {file} under this name; give the path of a converted tokenizer.json"
    return f"{file} cannot be fetched from the hub"


def _redacted(error: Exception) -> Exception:
    redactor = Redactor()
    error.args = redactor.tree(error.args)
    return error

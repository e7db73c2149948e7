"""Token files in object stores, for commands that read and write local files.

Inputs are fetched first, outputs uploaded last: what describes the tokens, then the tokens, then the index of
a folder. A killed command does not fetch a file again.
"""

import contextlib
import errno
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from packtok import _packtok
from packtok._packtok import is_url
from packtok.errors import ConfigError
from packtok.packer.staging import Staging, check_url
from packtok.sources import FORMAT_SUFFIXES, StrPath

# The folders beside token files that have what their formats have no room for, and OLMo's loss masks.
BESIDE = (".packtok", "label_masks")
INDEX_FILE = "index.json"
# The files that describe all token files of a folder.
OF_FOLDER = ("tokenizer.json", "tokenizer_config.json")
# The endings of the files of a dataset, which share the name before them.
ENDINGS = (*FORMAT_SUFFIXES.values(), ".idx", ".csv.gz")

F = TypeVar("F", bound=Callable[..., dict[str, Any]])


def through_stores(function: F) -> F:
    """Decorates a command that writes token files: inputs and output may also be URLs of object stores."""

    @functools.wraps(function)
    def called(
        input: StrPath | Sequence[StrPath], output: StrPath, *args: Any, **options: Any
    ) -> dict[str, Any]:
        paths = [input] if isinstance(input, str | os.PathLike) else input
        inputs = [os.fspath(path) for path in paths]
        if any(is_url(path) for path in (*inputs, os.fspath(output))):
            return _called_with_files(function, inputs, os.fspath(output), options)
        return function(input, output, *args, **options)

    return cast(F, called)


def _called_with_files(
    function: Callable[..., dict[str, Any]], inputs: list[str], output: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Calls a command with local files instead of objects.

    Raises:
        ConfigError: If an option needs files.
        FileExistsError: If there is an object under the name of the output, and it is not to be replaced.
        FileNotFoundError: If an input does not exist.
        OSError: If the store rejects a request or does not respond.
    """
    existing = options.get("existing", "error")
    _check_options(output, options)
    if is_url(output) and existing == "error" and (objects := _objects_of(output, with_tokenizer=False)):
        raise FileExistsError(
            errno.EEXIST,
            "the object already exists; choose another URL, or set --existing (existing) to replace",
            objects[0][0],
        )
    named = {name: value for name, value in options.items() if not callable(value)}
    first = next(path for path in (output, *inputs) if is_url(path))
    staging = Staging.of(first, None, [function.__name__, inputs, output, named])
    local = [
        str(_fetched(path, staging.folder / "in" / str(number))) if is_url(path) else path
        for number, path in enumerate(inputs)
    ]
    names = list(zip(local, inputs, strict=True))
    if not is_url(output):
        with _naming(names):
            report = function(local, output, **options)
        staging.remove()
        return _named_report(report, names)
    folder = staging.folder / "out"
    parent, name = output.rstrip("/").rsplit("/", 1)
    written: list[str] = []
    own = {"existing": "replace", "on_written": lambda path: written.append(os.path.abspath(path))}
    names.append((str(folder), parent))
    with _naming(names):
        report = function(local, folder / name, **{**options, **own})
    _send(folder, parent, written, replace=existing == "replace")
    staging.remove()
    return _named_report(report, names)


def _check_options(output: str, options: dict[str, Any]) -> None:
    """Raises a `ConfigError` if an option needs files."""
    needs_files = ["link"]
    if is_url(output):
        check_url(output)
        needs_files += ["shard", "join"]
        if options.get("existing") == "skip":
            raise ConfigError(f"existing is 'skip' and {output} is in an object store; use error or replace")
    for name in needs_files:
        if options.get(name):
            raise ConfigError(f"--{name} ({name}): needs files on a file system, not in an object store")


def _objects_of(url: str, *, with_tokenizer: bool) -> list[tuple[str, int]]:
    """Returns the objects of a token file and of those that share its name, or of a folder, with sizes."""
    url = url.rstrip("/")
    if in_folder := _packtok.list_objects(f"{url}/"):
        return in_folder
    parent, name = url.rsplit("/", 1)
    stem = next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)
    stems = (f"{stem}.", f"{_packtok.loss_mask_path(stem).stem}.")

    def is_part(path: str) -> bool:
        folder, _, file = path.rpartition("/")
        is_own = file == name or file.startswith(stems)
        return folder in ("", *BESIDE) and (is_own or (with_tokenizer and file in OF_FOLDER))

    objects = _packtok.list_objects(f"{parent}/")
    return [(found, size) for found, size in objects if is_part(found.removeprefix(f"{parent}/"))]


def _fetched(url: str, folder: Path) -> Path:
    """Downloads the objects of a token file or a folder that are not there; returns its local path."""
    check_url(url)
    objects = _objects_of(url, with_tokenizer=True)
    if all(found.rsplit("/", 1)[1] in OF_FOLDER for found, _ in objects):
        raise FileNotFoundError(errno.ENOENT, "there is no such object", url)
    parent, name = url.rstrip("/").rsplit("/", 1)
    for found, num_bytes in objects:
        path = folder / found.removeprefix(f"{parent}/")
        if path.is_file() and path.stat().st_size == num_bytes:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        _packtok.download(found, path)
    return folder / name


def _send(folder: Path, url: str, written: list[str], *, replace: bool) -> None:
    """Uploads all files of a folder; the files of tokens, which are ``written``, come last."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    tokens = set(written)

    def place(path: Path) -> tuple[bool, bool, str]:
        return path.name == INDEX_FILE, str(path.absolute()) in tokens, str(path)

    for path in sorted(files, key=place):
        is_described = str(path.absolute()) in tokens
        name = path.relative_to(folder).as_posix()
        _packtok.upload(path, f"{url}/{name}", replace=replace or not is_described)


def _with_urls(text: str, names: list[tuple[str, str]]) -> str:
    """Returns a text with the URLs of local paths."""
    for local, url in names:
        text = text.replace(local, url)
    return text


def _named_report(report: dict[str, Any], names: list[tuple[str, str]]) -> dict[str, Any]:
    warnings = [_with_urls(text, names) for text in report["warnings"]]
    return {**report, "output": _with_urls(str(report["output"]), names), "warnings": warnings}


@contextlib.contextmanager
def _naming(names: list[tuple[str, str]]) -> Iterator[None]:
    """Names objects instead of their local copies in errors."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str):
            error.filename = _with_urls(error.filename, names)
        raise
    except Exception as error:
        texts = (_with_urls(text, names) if isinstance(text, str) else text for text in error.args)
        error.args = tuple(texts)
        raise

"""Token files in object stores, for commands that read and write local files.

Inputs are fetched to a temporary folder first, outputs uploaded last: what describes the tokens, then the
tokens, then the index of a folder.
"""

import contextlib
import errno
import filecmp
import functools
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from packtok import _packtok
from packtok.errors import ConfigError, PacktokError
from packtok.packer.staging import check_url, default_base, exists
from packtok.sources import FORMAT_SUFFIXES, INDEX_FILE, SIDECAR_FOLDER, StrPath
from packtok.tokenizer.find import TOKENIZER_FILE
from packtok.tokenizer.neighbours import CONFIG_FILE

# The files that describe all token files of a folder.
OF_FOLDER = (TOKENIZER_FILE, CONFIG_FILE)
# The endings of files of tokens, and of those that describe them.
TOKEN_ENDINGS = tuple(sorted({*FORMAT_SUFFIXES.values(), ".bin"} - {".idx"}))
ENDINGS = (*TOKEN_ENDINGS, ".idx", ".bos.idx", ".csv.gz", ".ds.index", ".ds.metadata", ".ds.loss")
# What packtok writes beside a file.
MARKER_ENDINGS = (".pbin.tokenizer.json", ".npy.done.json", ".linked.json")
# The largest file that is compared with an object.
MAX_COMPARED_BYTES = 1 << 26

F = TypeVar("F", bound=Callable[..., dict[str, Any]])
Names = list[tuple[str, str]]


def through_stores(function: F) -> F:
    """Decorates a command that writes token files: inputs and output may also be URLs of object stores."""

    @functools.wraps(function)
    def called(input: StrPath | Sequence[StrPath], output: StrPath, **options: Any) -> dict[str, Any]:
        paths = [input] if isinstance(input, str | os.PathLike) else list(input)
        if any(map(_is_url, (*paths, output))):
            return _called_with_files(
                function, [os.fspath(path) for path in paths], os.fspath(output), options
            )
        return function(paths, output, **options)

    return cast(F, called)


def _is_url(path: StrPath) -> bool:
    text = os.fspath(path)
    # Names of files may be no text.
    return "://" in text and _packtok.is_url(text)


def _called_with_files(
    function: Callable[..., dict[str, Any]], inputs: list[str], output: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Calls a command with local files instead of objects.

    Raises:
        ConfigError: If a URL is not one of a store, or an option needs files.
        FileExistsError: If there is an object under the name of the output, and it is not to be replaced.
        FileNotFoundError: If an input does not exist.
        OSError: If the store rejects a request or does not respond.
    """
    existing = options.get("existing", "error")
    output = output.rstrip("/") if _is_url(output) else output
    _check(inputs, output, options)
    if _is_url(output) and existing == "error":
        for url in _objects_of(output, are_shards=True):
            if url.endswith(TOKEN_ENDINGS) and SIDECAR_FOLDER not in url:
                raise _exists_error(url)
    base = default_base()
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=base) as folder:
        local, names = list(inputs), []
        for number, path in enumerate(inputs):
            if _is_url(path):
                place = Path(folder, "in", str(number))
                local[number] = str(_fetched(path.rstrip("/"), place))
                names.append((str(place), path.rstrip("/").rsplit("/", 1)[0]))
        if not _is_url(output):
            with _naming(names):
                return _named_report(function(local, output, **options), names)
        parent, name = output.rsplit("/", 1)
        out = Path(folder, "out")
        names.append((str(out), parent))
        written: list[Path] = []
        own = {"existing": "replace", "on_written": lambda path: written.append(Path(path).absolute())}
        with _naming(names):
            report = function(local, out / name, **{**options, **own})
        report["warnings"] = [
            *report["warnings"],
            *_send(out, output, written, replace=existing == "replace"),
        ]
        on_written: Any = options.get("on_written")
        for file in written if on_written is not None else ():
            on_written(_with_urls(str(file), [(str(out.absolute()), parent)]))
        return _named_report(report, names)


def _check(inputs: list[str], output: str, options: dict[str, Any]) -> None:
    """Raises a `ConfigError` if a URL is not one of a store, or an option needs files."""
    for url in (*inputs, output):
        if not _is_url(url):
            continue
        check_url(url)
        if url.startswith(("http://", "https://")):
            raise ConfigError(f"{url}: expected a URL of s3, gs or az; download the file first")
    needs_files = ["link"]
    if _is_url(output):
        needs_files += ["shard", "join"]
        if options.get("existing") == "skip":
            raise ConfigError(f"existing is 'skip' and {output} is in an object store; use error or replace")
    for name in needs_files:
        if options.get(name):
            raise ConfigError(f"--{name} ({name}): needs files on a file system, not in an object store")


def _objects_of(url: str, *, are_shards: bool) -> list[str]:
    """Returns the objects of a token file and of those that share its name, or of a folder.

    With ``are_shards``, also those of the shards that an output of this name can have. Their names are asked
    for, because a bucket may have millions of other objects.
    """
    if in_folder := _packtok.list_objects(f"{url}/"):
        return [path for path, _ in in_folder]
    parent, name = url.rsplit("/", 1)
    stem = next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)
    objects = [url] if exists(url) else []
    objects += _with_endings(parent, stem, ENDINGS)
    if are_shards and (first := _with_endings(parent, _shard(stem, 0), ENDINGS)):
        endings = [ending for ending in ENDINGS if f"{parent}/{_shard(stem, 0)}{ending}" in first]
        shard, number = first, 0
        while shard:
            objects += shard
            number += 1
            shard = _with_endings(parent, _shard(stem, number), endings)
    own = re.compile(re.escape(stem) + (r"(_\d{5,})?" if are_shards else "") + r"\..*")
    beside = [path for path, _ in _packtok.list_objects(f"{parent}/{SIDECAR_FOLDER}/")]
    objects += [path for path in beside if own.fullmatch(path.rsplit("/", 1)[1])]
    return list(dict.fromkeys(objects))


def _shard(stem: str, number: int) -> str:
    return f"{stem}_{number:05}"


def _with_endings(parent: str, stem: str, endings: Iterable[str]) -> list[str]:
    """Returns the objects of this name with one of the endings, what describes them, and their loss mask."""
    names = [f"{stem}{ending}" for ending in (*endings, *MARKER_ENDINGS)]
    names += [os.fspath(_packtok.loss_mask_path(stem))]
    return [url for name in names if exists(url := f"{parent}/{name}")]


def _fetched(url: str, folder: Path) -> Path:
    """Downloads the objects of a token file or a folder, and returns its local path."""
    parent, name = url.rsplit("/", 1)
    objects = _objects_of(url, are_shards=False)
    if not objects:
        raise FileNotFoundError(errno.ENOENT, "there is no such object", url)
    for beside in (f"{parent}/{SIDECAR_FOLDER}", parent):
        objects += [url for file in OF_FOLDER if exists(url := f"{beside}/{file}")]
    for source in objects:
        path = folder / source.removeprefix(f"{parent}/")
        if ".." in path.parts:
            raise PacktokError(f"{source}: the name leads out of the folder; rename the object")
        path.parent.mkdir(parents=True, exist_ok=True)
        _packtok.download(source, path)
    return folder / name


def _send(folder: Path, output: str, written: list[Path], *, replace: bool) -> list[str]:
    """Uploads all files of a folder, those of tokens last; returns warnings.

    Raises:
        FileExistsError: If an object exists and is not to be replaced. Nothing is uploaded then.
    """
    url, tokens = output.rsplit("/", 1)[0], set(written)
    files = [path.absolute() for path in folder.rglob("*") if path.is_file()]
    urls = {path: f"{url}/{path.relative_to(folder.absolute()).as_posix()}" for path in files}
    warnings, finished = [], set()
    for path in files:
        is_shared = path.name in OF_FOLDER and path.parent.name == SIDECAR_FOLDER
        if (replace and not is_shared) or not exists(urls[path]):
            continue
        if path not in tokens and _is_same(path, urls[path]):
            finished.add(path)
        elif is_shared:
            finished.add(path)
            warnings.append(f"{urls[path]}: is that of another dataset in the folder, and was kept")
        else:
            raise _exists_error(urls[path])
    if replace:
        # Nothing may describe the tokens of another run.
        for stale in _objects_of(output, are_shards=True):
            name = stale.rsplit("/", 1)[1]
            is_ours = (
                SIDECAR_FOLDER in stale or name == INDEX_FILE or name.endswith((*ENDINGS, *MARKER_ENDINGS))
            )
            if is_ours and stale not in urls.values() and name not in OF_FOLDER:
                _packtok.delete_object(stale)

    def place(path: Path) -> tuple[bool, bool, str]:
        return path.name == INDEX_FILE, path in tokens, str(path)

    for path in sorted(set(files) - finished, key=place):
        _packtok.upload(path, urls[path], replace=replace)
    return warnings


def _is_same(path: Path, url: str) -> bool:
    """Returns whether a small file has the bytes of an object."""
    num_bytes = path.stat().st_size
    if num_bytes > MAX_COMPARED_BYTES or _packtok.object_bytes(url) != num_bytes:
        return False
    with tempfile.TemporaryDirectory() as folder:
        _packtok.download(url, Path(folder, "object"))
        return filecmp.cmp(path, Path(folder, "object"), shallow=False)


def _exists_error(url: str) -> FileExistsError:
    text = "the object already exists; choose another URL, or set --existing (existing) to replace"
    return FileExistsError(errno.EEXIST, text, url)


def _with_urls(text: str, names: Names) -> str:
    """Returns a text with the URLs of local paths."""
    for local, url in names:
        text = text.replace(local, url)
    return text


def _named_report(report: dict[str, Any], names: Names) -> dict[str, Any]:
    warnings = [_with_urls(text, names) for text in report["warnings"]]
    return {**report, "output": _with_urls(str(report["output"]), names), "warnings": warnings}


@contextlib.contextmanager
def _naming(names: Names) -> Iterator[None]:
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

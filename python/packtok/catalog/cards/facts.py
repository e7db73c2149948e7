"""The facts that a card contains, from metadata, details, trailers and files; no paths of this machine."""

import glob
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.catalog.corpora import separate_corpora
from packtok.catalog.names import Remark, find_dataset
from packtok.catalog.places import remarks_on_paths, token_file_pattern, token_prefix
from packtok.catalog.schema import DatasetMetadata, TokenizedInfo, is_description, load_details
from packtok.config.redact import Redactor
from packtok.errors import ConfigError
from packtok.text_counts import TextCounts, recorded_text_counts
from packtok.tokenizer.find import TOKENIZER_FILE

_METADATA_SUFFIXES = (".json", ".yaml", ".yml")
# Folders and files next to raw data that contain no data.
_NOT_DATA = ("tokenized", "README.md", "croissant.json")


@dataclass(frozen=True)
class Origin:
    """A raw file that a packed file was made from, as its trailer names it."""

    path: str
    bytes: int
    crc32c: str | None


@dataclass(frozen=True)
class CardFile:
    """A file of the dataset."""

    path: str
    """Relative to the folder that the card belongs into, with slashes."""
    file: Path
    bytes: int
    sha256: str | None = None
    documents: int | None = None
    corpus: str | None = None
    origins: tuple[Origin, ...] = ()
    is_data: bool = True
    """Whether it has documents or tokens, and is not the tokenizer."""


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """How the tokens of a tokenized dataset were made."""

    tokenizer: str
    fingerprint: str | None = None
    vocabulary: int | None = None
    dtype: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options that change the bytes, and the tokens that packtok adds."""
    packtok_version: str | None = None
    number: int | None = None
    text: TextCounts | None = None
    """Bytes and tokens of the texts, if all files record them."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All facts that a card contains."""

    root: Path
    """The folder that the card belongs into; paths of files start there."""
    name: str
    description: str = ""
    language: str | None = None
    license: str | None = None
    date: str = ""
    download_source: str = ""
    content: str = "text"
    content_field: str | None = None
    format: str | None = None
    """Format of raw data; ``None`` if it is unknown or the data is tokenized."""
    fields: tuple[str, ...] = ()
    documents: int | None = None
    text_bytes: int | None = None
    files: tuple[CardFile, ...] = ()
    parents: tuple[str, ...] = ()
    tokens: Tokens | None = None

    @property
    def data_bytes(self) -> int:
        """Length of all files with documents or tokens."""
        return sum(file.bytes for file in self.files if file.is_data)

    def origins(self) -> list[Origin]:
        """Returns the raw files of all packed files, each once."""
        return list(dict.fromkeys(origin for file in self.files for origin in file.origins))


def facts_of(text: str, remark: Remark = lambda _: None) -> Facts:
    """Returns the facts about a dataset in a folder, with a metadata file or with a name, or about a pbin.

    Raises:
        ConfigError: If there is no such dataset, or its files are not those that its details describe.
        PacktokError: If a pbin is damaged.
        OSError: If a file cannot be read.
    """
    path = Path(text)
    if path.is_file() and path.suffix not in _METADATA_SUFFIXES:
        return _of_pbin(path)
    metadata = find_dataset(text, remark)
    for message in remarks_on_paths(metadata):
        remark(message)
    details = {} if metadata.path is None else load_details(metadata.path)
    if metadata.tokenized_info is None:
        return _raw(metadata, details)
    return _tokenized(metadata, metadata.tokenized_info, details)


def _of_pbin(path: Path) -> Facts:
    file, reader = _packed(path, path.parent)
    tokens = _tokens_of(reader)
    return Facts(
        root=path.parent,
        name=path.stem,
        documents=len(reader),
        files=(file,),
        tokens=replace(tokens, number=reader.num_tokens, text=recorded_text_counts([reader.metadata or {}])),
    )


def _common(metadata: DatasetMetadata, details: Mapping[str, Any], root: Path) -> Facts:
    return Facts(
        root=root,
        name=metadata.name,
        description=metadata.description,
        language=_typed(details.get("language"), str),
        license=_typed(details.get("license"), str),
        date=metadata.date_downloaded,
        download_source=public(metadata.download_source),
        content=metadata.data_content,
        documents=_typed(details.get("documents"), int),
    )


def _raw(metadata: DatasetMetadata, details: Mapping[str, Any]) -> Facts:
    data = metadata.dataset_folder
    base = data if data.is_dir() else data.parent
    dataset_folder = Path(os.path.abspath(metadata.folder))
    is_inside = Path(os.path.abspath(base)).is_relative_to(dataset_folder)
    root = dataset_folder if metadata.path and is_inside else base
    folders = {
        "/".join(filter(None, (metadata.corpus_data_dir_parent, corpus, ""))): corpus
        for corpus in separate_corpora(metadata)
    }
    files = []
    own = None if metadata.path is None else metadata.path.name
    for name, listed in _listed(data, base, details, own).items():
        corpus = next((corpus for folder, corpus in folders.items() if name.startswith(folder)), None)
        documents = _typed(listed.get("documents"), int)
        file = _checked(base / name, root, listed)
        files.append(replace(file, documents=documents, corpus=corpus))
    fields = [field for field in _typed(details.get("fields"), list) or [] if isinstance(field, str)]
    return replace(
        _common(metadata, details, root),
        content_field=metadata.content_field,
        format=_typed(details.get("format"), str),
        fields=tuple(fields),
        text_bytes=_typed(details.get("text_bytes"), int),
        files=tuple(files),
    )


def _listed(
    data: Path, base: Path, details: Mapping[str, Any], own: str | None
) -> dict[str, Mapping[str, Any]]:
    """Returns the raw files relative to ``base``: those in the details, otherwise those in the folder.

    ``own`` is the name of the metadata file.
    """
    known = _known_files(details)
    if known:
        return {file["path"]: file for file in known}
    if not data.is_dir():
        return {data.name: {}}
    paths = []
    for folder, folders, names in os.walk(data):
        is_top = folder == str(data)
        folders[:] = [name for name in folders if name[0] != "." and not (is_top and name in _NOT_DATA)]
        data_names = (name for name in names if name[0] != "." and not (is_top and _is_about_data(name, own)))
        paths += [Path(os.path.relpath(os.path.join(folder, name), base)).as_posix() for name in data_names]
    return {name: {} for name in _packtok.natural_sorted(paths)}


def _is_about_data(name: str, own: str | None) -> bool:
    return name in _NOT_DATA or name == own or is_description(name)


def _known_files(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    files = _typed(details.get("files"), list) or []
    return [file for file in files if isinstance(file, dict) and isinstance(file.get("path"), str)]


def _checked(file: Path, root: Path, listed: Mapping[str, Any]) -> CardFile:
    """Returns a file, whose length must be the one that is listed.

    Raises:
        ConfigError: If it is not, or the file is not in the folder of the dataset.
    """
    path = Path(os.path.normpath(os.path.relpath(file, root)))
    if path.parts[0] == "..":
        raise ConfigError(f"{file}: is not in {root}, but a card describes one folder")
    size = file.stat().st_size
    if size != listed.get("bytes", size):
        raise ConfigError(
            f"{file}: the file has {size:,} bytes, expected {listed['bytes']}; packtok data validate shows "
            "all differences, and packtok data create-metadata --existing replace describes what is there now"
        )
    return CardFile(path.as_posix(), file, size)


def _tokenized(metadata: DatasetMetadata, info: TokenizedInfo, details: Mapping[str, Any]) -> Facts:
    folder = metadata.folder
    known = {file["path"]: file for file in _known_files(details)}
    if not known:
        paths = glob.glob(token_file_pattern(token_prefix(metadata, info)[0], info))
        known = {os.path.relpath(path, folder): {} for path in _packtok.natural_sorted(paths)}
    tokens = Tokens(tokenizer=public(info.tokenizer), vocabulary=info.vocab_size, dtype=info.dtype)
    files, number, trailers = [], 0, []
    for name, listed in known.items():
        checked = _checked(folder / name, folder, listed)
        if info.file_extension == "pbin":
            checked, reader = _packed(folder / name, folder)
            tokens = _tokens_of(reader)
            number += reader.num_tokens
            trailers.append(reader.metadata or {})
        files.append(checked)
    if (folder / TOKENIZER_FILE).is_file():
        files.append(replace(_checked(folder / TOKENIZER_FILE, folder, {}), is_data=False))
    total = number or _typed(details.get("tokens"), int)
    return replace(
        _common(metadata, details, folder),
        files=tuple(files),
        parents=tuple(info.parent_datasets),
        tokens=replace(tokens, number=total, text=recorded_text_counts(trailers)),
    )


def _packed(path: Path, root: Path) -> tuple[CardFile, _packtok.PbinReader]:
    reader = _packtok.PbinReader(path)
    # Paths are read once, because there may be a million.
    sources = reader.sources
    names = _public_paths(source["path"] for source in sources)
    origins = tuple(
        Origin(name, source["bytes"], None if source.get("crc32c") is None else f"{source['crc32c']:08x}")
        for name, source in zip(names, sources, strict=True)
    )
    return replace(_checked(path, root, {}), documents=len(reader), origins=origins), reader


def _tokens_of(reader: _packtok.PbinReader) -> Tokens:
    metadata = reader.metadata or {}
    tokenizer, writer = metadata.get("tokenizer") or {}, metadata.get("writer") or {}
    options = {**(metadata.get("options") or {})}
    options |= {role: metadata[role] for role in ("eod", "bos") if metadata.get(role)}
    return Tokens(
        tokenizer=public(tokenizer.get("name", "unknown")),
        fingerprint=tokenizer.get("fingerprint"),
        vocabulary=tokenizer.get("vocab_size"),
        dtype=str(reader.dtype),
        options=options,
        packtok_version=writer.get("version") if writer.get("name") == "packtok" else None,
    )


def _public_paths(paths: Iterable[str]) -> list[str]:
    """Returns paths of raw files without secrets in URLs and without folders of this machine.

    The parts that tell files apart are kept: absolute paths become relative to the folder that all files
    share.
    """
    listed = [Redactor()(path) for path in paths]
    absolute = [path for path in listed if os.path.isabs(path)]
    folder = os.path.commonpath([os.path.dirname(path) for path in absolute]) if absolute else ""
    return [os.path.relpath(path, folder) if os.path.isabs(path) else path for path in listed]


def public(text: str) -> str:
    """Returns a text without secrets in URLs; an absolute path is reduced to its last name."""
    return os.path.basename(text.rstrip("/")) if os.path.isabs(text) else Redactor()(text)


def _typed(value: Any, kind: type) -> Any:
    return value if isinstance(value, kind) and not isinstance(value, bool) else None

"""Where the paths in metadata lead: relative ones start at the metadata file, or at the current folder.

tatm resolves them from the current folder only. A path that leads to nothing next to the metadata file is
resolved from there too, and a path found in this way is reported, because it may lead to other data tomorrow.
"""

import glob
import os
from pathlib import Path

from packtok.catalog.schema import DatasetMetadata, TokenizedInfo

__all__ = [
    "missing_data",
    "remarks_on_paths",
    "token_file_pattern",
    "token_prefix",
    "written_path",
]


def written_path(data: Path, metadata_file: Path) -> str | None:
    """Returns the ``dataset_path`` to write for data, so that both can be moved together if that is possible.

    It is ``None`` for the folder of the metadata file, relative for data below it, and absolute elsewhere.
    """
    folder = Path(os.path.abspath(metadata_file)).parent
    for path, start in ((Path(os.path.abspath(data)), folder), (data.resolve(), folder.resolve())):
        if path.is_relative_to(start) and _is_same(path, data):
            relative = path.relative_to(start)
            return None if relative == Path() else relative.as_posix()
    return str(data.absolute())


def _is_same(path: Path, data: Path) -> bool:
    """Returns whether a path still leads to the data: ``..`` after a link leads elsewhere."""
    return not data.exists() or (path.exists() and path.samefile(data))


def remarks_on_paths(metadata: DatasetMetadata) -> list[str]:
    """Returns a remark for each relative path that leads to the current folder, or could lead there."""
    info = metadata.tokenized_info
    remarks = [_data_remark(metadata), None if info is None else token_prefix(metadata, info)[1]]
    return [remark for remark in remarks if remark is not None]


def _data_remark(metadata: DatasetMetadata) -> str | None:
    text = metadata.dataset_path
    if text is None or metadata.path is None or os.path.isabs(text):
        return None
    own_path, current = metadata.folder / text, Path(text)
    if not current.exists() or (own_path.exists() and own_path.samefile(current)):
        return None
    if own_path.exists():
        return (
            f"{metadata.path}: dataset_path {text!r} is next to the metadata file and in the current folder; "
            f"{own_path} is used"
        )
    return (
        f"{metadata.path}: dataset_path {text!r} is not next to the metadata file; {current.absolute()}, "
        "from the current folder, is used"
    )


def missing_data(metadata: DatasetMetadata) -> str | None:
    """Returns a message about missing data; ``None`` if the data exists."""
    if metadata.dataset_folder.exists():
        return None
    text = metadata.dataset_path
    if text is None or metadata.path is None or os.path.isabs(text):
        return f"dataset_path: {metadata.dataset_folder} does not exist"
    return (
        f"dataset_path: {text!r} exists neither in {metadata.folder} nor in the current folder, {Path.cwd()}"
    )


def token_prefix(metadata: DatasetMetadata, info: TokenizedInfo) -> tuple[Path, str | None]:
    """Returns the start of the paths of the token files, and a remark if that is in the current folder.

    tatm records an absolute path. In a folder that was moved since, the files are next to the metadata.
    """
    recorded, name = metadata.folder / info.file_prefix, Path(info.file_prefix).name
    for prefix in (recorded, metadata.dataset_folder / info.file_prefix, metadata.folder / name):
        if glob.glob(token_file_pattern(prefix, info)):
            return prefix, None
    current = Path(info.file_prefix)
    if metadata.path is None or not glob.glob(token_file_pattern(current, info)):
        return recorded, None
    remark = (
        f"{metadata.path}: file_prefix {info.file_prefix!r} is not next to the metadata file; "
        f"{current.absolute()}, from the current folder, is used"
    )
    return current, remark


def token_file_pattern(prefix: Path, info: TokenizedInfo) -> str:
    """Returns the glob of the token files whose paths start with ``prefix``."""
    return f"{glob.escape(str(prefix))}*.{glob.escape(info.file_extension.removeprefix('.'))}"

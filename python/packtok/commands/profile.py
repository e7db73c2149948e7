"""Implements ``packtok data profile``: what the documents of token files contain."""

from collections.abc import Callable
from typing import Any

from packtok import _packtok
from packtok._packtok import PROFILE_TOKENS, PbinReader, Tokenizer
from packtok.commands.convert import tokenizer_beside
from packtok.data.token_sources import files_of_source
from packtok.errors import ConfigError, PacktokError
from packtok.progress import Progress
from packtok.sources import StrPath
from packtok.tokenizer.find import find_tokenizer


def profile_documents(
    source: StrPath,
    *,
    sample_size: int = PROFILE_TOKENS,
    tokenizer: str | None = None,
    format: str | None = None,
    input_dtype: str | None = None,
    boundaries: str | None = None,
    on_progress: Progress | None = None,
    remark: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Reports what a sample of documents contains: duplicates, scripts, repetition, personal data, tokens.

    A document belongs to the sample by a hash of its content, so that all its copies are in it or none.
    `docs/reference/profile.md` defines the figures.

    Args:
        source: A token file, a folder or glob of them, a manifest, or a described dataset by path or name.
        sample_size: Expected number of tokens in the sample.
        tokenizer: The tokenizer of the files. Default: the file next to the first one, otherwise the
            built-in one that it was packed with. Without any, the figures about texts are ``None``.
        format: As in `packtok.convert`, for the files.
        input_dtype: As in `packtok.convert`.
        boundaries: As in `packtok.convert`.
        on_progress: As in `packtok.pack`.
        remark: Receives a remark if there is no tokenizer or no index of the datasets.

    Raises:
        ConfigError: If ``sample_size`` is below 1, or there is no such dataset.
        PacktokError: If a file cannot be read, does not record its documents, or was packed with another
            tokenizer.
    """
    if sample_size < 1:
        raise ConfigError(f"--sample-size (sample_size) is {sample_size}, expected at least 1 token")
    files = files_of_source(source, remark).read_as(format, input_dtype, boundaries).files
    # The paths are known when the files are open, but a tokenizer is needed to open them.
    paths = _packtok.DocumentTexts(**files, tokenizer=None).paths
    name, loaded = _tokenizer_of(str(paths[0]), tokenizer, files.get("read_as") or (None, None, None))
    if loaded is None:
        remark(f"{paths[0]}: no tokenizer found, so texts are not examined; set --tokenizer (tokenizer)")
    texts = _packtok.DocumentTexts(**files, tokenizer=loaded)
    profile = texts.profile(sample_tokens=sample_size, on_progress=on_progress)
    if profile["tokens"] and not profile["documents"]:
        raise PacktokError(
            f"{paths[0]}: does not record where documents start; set --boundaries (boundaries), or convert "
            "the dataset with packtok convert"
        )
    return {
        "files": [str(path) for path in paths],
        "tokenizer": name,
        **profile,
    }


def _tokenizer_of(
    path: str, name: str | None, read_as: tuple[str | None, str | None, str | None]
) -> tuple[str | None, Tokenizer | None]:
    """Returns the tokenizer of a file, and its name; ``None`` if it is not known."""
    recorded: dict[str, Any] = {}
    if not _packtok.is_url(path):
        recorded = (PbinReader(path, *read_as).metadata or {}).get("tokenizer") or {}
        name = name or tokenizer_beside(path)
    if name is None and recorded.get("name") in Tokenizer.builtin_names():
        name = recorded["name"]
    if name is None:
        return None, None
    tokenizer = find_tokenizer(name).tokenizer
    if recorded.get("fingerprint") not in (None, tokenizer.fingerprint):
        raise PacktokError(
            f"{path}: was packed with tokenizer {recorded['name']} of fingerprint {recorded['fingerprint']}, "
            f"but {name} has {tokenizer.fingerprint}; set --tokenizer (tokenizer) to its own one"
        )
    return recorded.get("name", tokenizer.name), tokenizer

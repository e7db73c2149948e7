"""Implements `packtok verify`: checks a pbin for damage, and compares it with its corpus."""

from typing import Any

from packtok import _packtok
from packtok.commands.merge import beside
from packtok.config import ConfigSource, load_config
from packtok.packing import prepare
from packtok.progress import Progress
from packtok.tokenizer.find import find_tokenizer


def verify(path: str, *, tokenizer: str | None = None, on_progress: Progress | None = None) -> dict[str, Any]:
    """Checks the consistency of a pbin and its tokenizer; returns its counts and what was ``checked``.

    Args:
        path: The pbin.
        tokenizer: Its tokenizer. Default: the file next to the pbin, if it exists.
        on_progress: As in `packtok.pack`.

    Raises:
        PbinFormatError: At the first error found.
    """
    name = tokenizer or beside(path)
    found = find_tokenizer(name).tokenizer if name is not None else None
    return _packtok.verify(path=path, tokenizer=found, on_progress=on_progress)


def verify_corpus(
    path: str,
    corpus: ConfigSource,
    *,
    sample: float = 1.0,
    tokenizer: str | None = None,
    source: str | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Tokenizes a corpus again and compares it with a pbin; returns ``documents`` and ``compared``.

    Args:
        path: The pbin.
        corpus: The config it was packed with.
        sample: Fraction of the documents to compare.
        tokenizer: Overrides the tokenizer in the config.
        source: The source plug-in it was packed with, as for `packtok.pack`.
        on_progress: As in `packtok.pack`.

    Raises:
        PacktokError: At the first difference.
    """
    # The pbin to verify serves as the output, so the config need not name one.
    overrides = {"settings.dst_path": path} | ({"tokenizer": tokenizer} if tokenizer else {})
    overrides |= {"settings.source": source} if source else {}
    packing = prepare(load_config(corpus, overrides))
    with packing.config.redactor.guard():
        return _packtok.verify_corpus(
            packing.spec, packing.found.tokenizer, on_progress, packing.plugin, sample=sample
        )

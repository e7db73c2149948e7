"""Implements `packtok tokenizer verify`: compares a tokenizer's engine with the `tokenizers` package."""

from collections.abc import Sequence
from typing import Any, Unpack

from packtok import _packtok
from packtok.commands.count import corpus_config
from packtok.config.keywords import ScanOptions
from packtok.errors import PacktokError
from packtok.progress import Progress
from packtok.sources import StrPath
from packtok.tokenizer.find import find_tokenizer


def verify_tokenizer(
    tokenizer: str,
    corpus: StrPath | Sequence[StrPath] = (),
    *,
    add_special_tokens_from_config: bool = False,
    on_progress: Progress | None = None,
    **options: Unpack[ScanOptions],
) -> dict[str, Any]:
    """Compares the ids of a tokenizer's engine with those of Python's `tokenizers` package.

    Args:
        tokenizer: A path, a built-in name or a name on the hub.
        corpus: Files, globs and folders whose documents are compared in addition to the built-in texts.
        add_special_tokens_from_config: As in `packtok.pack`.
        on_progress: As in `packtok.pack`.
        **options: The flags of ``packtok tokenizer verify``, under the same names.

    Returns:
        A dict with ``engine``, ``oracle`` (``None`` if the tokenizer uses that engine anyway, so that nothing
        was compared), ``built_in_texts``, ``tokens`` and the line counts of the corpus.

    Raises:
        PacktokError: At the first difference, with file, line, position and both ids; or if there is a corpus
            and all of its documents were rejected.
    """
    inputs = [corpus] if isinstance(corpus, str) or hasattr(corpus, "__fspath__") else list(corpus)
    config = corpus_config(inputs or "-", tokenizer, options)
    with config.redactor.guard():
        name = config.tokenizer.config.pretrained_model_name_or_path
        lookup = find_tokenizer(name, add_special_tokens_from_config)
        spec = config.spec() if inputs else config.spec(input=())
        report = _packtok.compare_engines(spec, lookup.tokenizer, on_progress)
    if report["oracle"] is not None and not report["built_in_texts"]:
        raise PacktokError(
            f"no document of the corpus was compared: {report['rejected']:,} were rejected; set --field "
            "(jq_pattern), or remove --on-bad-document (on_bad_document) to see why"
        )
    return report

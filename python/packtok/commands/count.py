"""Implements `packtok count`: counts the tokens of a corpus and writes nothing.

Options have the same names and checks as those of `pack`, and the corpus is read in the same way. The
compiled module does the counting.
"""

from collections.abc import Sequence
from typing import Any, Unpack

from packtok import _packtok
from packtok.config import PackConfig, load_config
from packtok.config.keywords import ScanOptions
from packtok.config.options import OPTIONS, SCAN_OPTIONS
from packtok.errors import ConfigError
from packtok.packer.pack_run import plugin_of
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.sources import StrPath
from packtok.tokenizer.find import TokenizerLookup, find_tokenizer


@entry_point(*(set(OPTIONS) - set(SCAN_OPTIONS)))
def count(
    corpus: StrPath | Sequence[StrPath],
    tokenizers: str | Sequence[str],
    *,
    add_special_tokens: bool | None = None,
    special_tokens_in_text: str | None = None,
    add_special_tokens_from_config: bool | None = None,
    on_progress: Progress | None = None,
    **options: Unpack[ScanOptions],
) -> dict[str, Any]:
    """Counts the documents, bytes and tokens of a corpus, per source and in total, for each tokenizer.

    Counts the tokens of the texts, without the EOD that packing appends to each document.

    Args:
        corpus: Files, globs and folders, as for packing.
        tokenizers: A path, a built-in name or a name on the hub, or a list of them.
        add_special_tokens: Whether to count tokens that the post-processor adds. Default: yes, as for
            packing.
        special_tokens_in_text: As for packing.
        add_special_tokens_from_config: As for packing, for every tokenizer.
        on_progress: As in `packtok.pack`. Its tokens are those of the first tokenizer.
        **options: The flags of ``packtok count``, under the same names.

    Returns:
        A dict with ``tokenizers``, ``sources``, ``ignored`` (the files that were not read, with the reasons),
        ``total``, ``stopped_early``, ``notes``, ``seconds`` and ``num_cpus``. Each source and the total
        have ``lines = documents + empty + blank + rejected``, ``text_bytes``, and lists with one number
        per tokenizer, ``tokens`` and ``bytes_per_token``.

    Raises:
        ConfigError: If an option is invalid.
        DocumentError: If a document is bad and ``on_bad_document`` is ``"fail"``.
        TokenizerError: If a tokenizer cannot be loaded.
    """
    if isinstance(tokenizers, str):
        tokenizers = [tokenizers]
    if not tokenizers:
        raise ConfigError("no tokenizer given; give one or more with --tokenizer, such as gpt2")
    config = corpus_config(
        corpus,
        tokenizers[0],
        options,
        add_special_tokens=add_special_tokens,
        special_tokens_in_text=special_tokens_in_text,
        add_special_tokens_from_config=add_special_tokens_from_config,
    )
    with config.redactor.guard():
        names = [config.tokenizer.config.pretrained_model_name_or_path, *tokenizers[1:]]
        adds = config.tokenizer.config.add_special_tokens_from_config
        lookups = [find_tokenizer(name, adds) for name in names]
        plugin = plugin_of(config)
        spec = config.spec(source=None if plugin is None else plugin.name)
        report = _packtok.count_tokens(
            spec,
            [lookup.tokenizer for lookup in lookups],
            on_progress,
            plugin,
            as_each_file=config.settings.special_tokens_in_text is None,
        )
    for counted in (*report["sources"], report["total"]):
        counted["bytes_per_token"] = [
            counted["text_bytes"] / tokens if tokens else None for tokens in counted["tokens"]
        ]
    report["tokenizers"] = [
        {
            "name": label,
            "fingerprint": lookup.tokenizer.fingerprint,
            "vocab_size": lookup.tokenizer.vocab_size,
        }
        | {"engine": lookup.tokenizer.engine}
        for label, lookup in zip(_labels(names, lookups), lookups, strict=True)
    ]
    report["notes"] = [note for lookup in lookups for note in (*lookup.warnings, *lookup.tokenizer.notes)]
    public: dict[str, Any] = config.redactor.tree(report)
    return public


def _labels(names: Sequence[str], lookups: Sequence[TokenizerLookup]) -> list[str]:
    """Returns the tokenizers' own names if they are distinct, otherwise the names the caller gave."""
    own = [lookup.tokenizer.name for lookup in lookups]
    return own if len(set(own)) == len(own) else list(names)


def corpus_config(
    corpus: StrPath | Sequence[StrPath], tokenizer: str, options: ScanOptions, **more: Any
) -> PackConfig:
    """Returns a pack config that describes how to read the corpus; its output is never written."""
    return load_config(
        None,
        {"input": corpus, "output": "-", "tokenizer": tokenizer, **options, **more},
    )

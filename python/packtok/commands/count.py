"""The function of `packtok count`: it reads a corpus and writes nothing.

Options are checked as those of packing are, under the same names, and the corpus is read in the same way; the
work is the compiled module's.
"""

from collections.abc import Sequence
from typing import Any, Unpack

from packtok import _packtok
from packtok.commands.pack import option_overrides
from packtok.config import PackConfig, load_config
from packtok.config.keywords import ScanOptions
from packtok.errors import ConfigError
from packtok.progress import Progress
from packtok.sources import StrPath
from packtok.tokenizer.find import FoundTokenizer, find_tokenizer


def count(
    corpus: StrPath | Sequence[StrPath],
    tokenizers: str | Sequence[str],
    *,
    add_special_tokens: bool | None = None,
    special_tokens_in_text: str | None = None,
    on_progress: Progress | None = None,
    **options: Unpack[ScanOptions],
) -> dict[str, Any]:
    """Counts documents, bytes and tokens of a corpus, by source and in all, for each tokenizer.

    The tokens are those of the texts; the EOD that packing puts behind each document is not among them.

    Args:
        corpus: Files, globs and folders, as for packing.
        tokenizers: A path, a built-in name or a name on the hub, or a list of them.
        add_special_tokens: Whether what a post-processor adds is counted, as when packing (default: yes).
        special_tokens_in_text: As for packing.
        on_progress: As in `packtok.pack`; its tokens are the first tokenizer's.
        **options: What the flags of ``packtok count`` say, under the same names.

    Returns:
        ``tokenizers``, ``sources``, ``total``, ``stopped_early``, ``notes``, ``seconds`` and ``num_cpus``. A
        source and the total have ``lines = documents + empty + blank + rejected``, ``text_bytes``, and one
        number for each tokenizer in ``tokens`` and ``bytes_per_token``.

    Raises:
        ConfigError: If an option is wrong.
        DocumentError: If a document is bad and ``on_bad_document`` is ``"fail"``.
        TokenizerError: If a tokenizer cannot be had.
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
    )
    with config.redactor.guard():
        names = [config.tokenizer.config.pretrained_model_name_or_path, *tokenizers[1:]]
        found = [find_tokenizer(name) for name in names]
        report = _packtok.count_tokens(config.spec(), [one.tokenizer for one in found], on_progress)
    for counted in (*report["sources"], report["total"]):
        counted["bytes_per_token"] = [
            counted["text_bytes"] / tokens if tokens else None for tokens in counted["tokens"]
        ]
    report["tokenizers"] = [
        {"name": label, "fingerprint": one.tokenizer.fingerprint, "vocab_size": one.tokenizer.vocab_size}
        | {"engine": one.tokenizer.engine}
        for label, one in zip(_labels(names, found), found, strict=True)
    ]
    report["notes"] = [note for one in found for note in (*one.warnings, *one.tokenizer.notes)]
    public: dict[str, Any] = config.redactor.tree(report)
    return public


def _labels(names: Sequence[str], found: Sequence[FoundTokenizer]) -> list[str]:
    """What each is called: its own name, or where two have one name, what it was asked for by."""
    own = [one.tokenizer.name for one in found]
    return own if len(set(own)) == len(own) else list(names)


def corpus_config(
    corpus: StrPath | Sequence[StrPath], tokenizer: str, options: ScanOptions, **more: Any
) -> PackConfig:
    """A pack config that says how the corpus is read; its output is never touched."""
    return load_config(
        None,
        option_overrides({"input": corpus, "output": "-", "tokenizer": tokenizer, **options, **more}),
    )

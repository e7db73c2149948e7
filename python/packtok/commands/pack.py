"""Implements `packtok pack`: from a config and a tokenizer to a pbin and a report."""

from typing import Unpack

from packtok.config import ConfigSource, load_config
from packtok.config.keywords import PackOptions
from packtok.distributed import find_shard
from packtok.packer import run as packer
from packtok.packer.report import PackReport
from packtok.packer.run import OnWarnings
from packtok.progress import Progress
from packtok.remedies import entry_point


@entry_point()
def pack(
    config: ConfigSource | None = None,
    /,
    *,
    shard: str | int | None = None,
    on_warnings: OnWarnings | None = None,
    on_progress: Progress | None = None,
    **options: Unpack[PackOptions],
) -> PackReport:
    """Packs a corpus, or one shard of it, into a pbin and returns a report.

    An interrupted run keeps its progress next to the output, and the same call resumes it.

    Args:
        config: A Modalities pack config: the path of a YAML file, a mapping of the same structure or a
            `PackConfig`. Can be omitted if the options contain all that is needed.
        shard: ``"k/N"``, ``k`` (with the number of shards in the output folder's plan) or ``"auto"``, which
            uses Slurm's variables. Only shard k of the corpus, counted from 0, is packed, and ``output`` is a
            folder.
        on_warnings: Called with a list of remarks before packing starts, and again with those of the run
            when it has ended; not called without remarks. The report has all of them.
        on_progress: Called about ten times a second with the ints ``bytes_read``, ``total_bytes``,
            ``documents``, ``tokens`` and ``resumed_bytes`` (the part of ``bytes_read`` that an earlier run
            packed).
        **options: The flags of ``packtok pack``, under the same names; ``None`` counts as not given.

    Returns:
        Counts, paths and warnings of the run.

    Raises:
        ConfigError: If a key or a value is invalid.
        DocumentError: If a document is bad and ``on_bad_document`` is ``"fail"``.
        FileExistsError: If the output exists and ``existing`` is ``"error"``.
        OSError: If a file cannot be read or written; no file is then created under the output's name.
        PacktokError: If more documents are rejected than ``max_rejects`` allows, or all of them; if another
            run is writing the output, or started it with other options.

    Example:
        >>> packtok.pack(input="corpus.jsonl", output="train.pbin", tokenizer="gpt2").tokens
        23765
    """
    chosen = None if shard is None else find_shard(shard)
    return packer.pack(load_config(config, options), chosen, on_warnings=on_warnings, on_progress=on_progress)

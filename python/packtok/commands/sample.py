"""Implements `packtok sample`: draws samples for encoder-decoder training, and packs long documents."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from packtok import _packtok
from packtok.distributed import find_shard
from packtok.errors import ConfigError
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.sample.files import files_below, tokenizer_beside
from packtok.sample.recipe import Recipe, files_of, load_recipe
from packtok.sources import StrPath
from packtok.tokenizer.find import find_tokenizer

Dtype = Literal["uint16", "uint32", "int32"]
# MDS files are held in memory while they are written.
SIZE_LIMIT = 1 << 26


@entry_point("input", "output")
def draw_samples(
    recipe: StrPath | Mapping[str, Any] | Recipe,
    output: StrPath,
    *,
    tokens: StrPath | None = None,
    context: int | None = None,
    decoder: int | None = None,
    test: int | None = None,
    train: int | None = None,
    retrieval: int | None = None,
    retrieval_shard: int | None = None,
    retrieval_chunk: int | None = None,
    retrieval_shards: int | None = None,
    tokenizer: str | None = None,
    dtype: Dtype | None = None,
    compression: str | None = None,
    origin: bool = False,
    allow_short: bool = False,
    existing: Literal["error", "skip", "replace"] = "skip",
    shard: str | int | None = None,
    join: bool = False,
    num_cpus: int | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Draws samples from token files into MDS folders ``output/{test,train}/DOMAIN``, and a retrieval corpus.

    Every document is on one side, by the hash of its tokens, with all of its duplicates. Which samples are
    taken depends on the tokens, the recipe and its seed, and not on files, other sides or processes.

    Args:
        recipe: ``"ab"`` or ``"concat"``, CEPE's recipes; the path of a YAML file; or a mapping like it.
        output: The folder to write to.
        tokens: The folder with the token files, in folders named after the domains.
        context: Tokens before those of the decoder; as all numbers, by default that of the recipe.
        decoder: Tokens of the decoder.
        test: Samples of the test side.
        train: Samples of the train side.
        retrieval: Chunks of each shard of the retrieval corpus.
        retrieval_shard: The only shard of the retrieval corpus to write. Default: all.
        retrieval_chunk: Tokens of a chunk.
        retrieval_shards: Number of shards of the retrieval corpus; 0 for none.
        tokenizer: Decodes the retrieval corpus. Default: the one next to the token files.
        dtype: Type of the ids. Default: the narrowest of uint16 and uint32 that fits the files.
        compression: ``"zstd:LEVEL"``. Default: none.
        origin: Whether samples have columns ``source`` and ``start``, file and position of the first token.
        allow_short: Whether fewer samples than requested are no error.
        existing: For finished outputs: ``"skip"`` keeps those of the same plan, and another is an error;
            ``"replace"`` replaces others; ``"error"``.
        shard: ``k/N`` or ``auto`` writes only part k of N of the files, for ``join``.
        join: Whether to publish what all shards have written.
        num_cpus: Number of threads, at most 4 of which are used. Default: all CPUs of this process.
        on_progress: As in `packtok.pack`.

    Returns:
        The numbers of samples, and for each side of each domain what became of its documents.

    Raises:
        ConfigError: If the recipe is invalid.
        FileExistsError: If an output is finished and ``existing`` is ``"error"``.
        PacktokError: If there are fewer samples than requested, an output has other samples, or a token file
            is damaged.
    """
    checked = load_recipe(
        recipe,
        windows__context=context,
        windows__decoder=decoder,
        samples__test=test,
        samples__train=train,
        retrieval__samples=retrieval,
        retrieval__shards=retrieval_shards,
        retrieval__chunk=retrieval_chunk,
    )
    files, others = files_of(checked, tokens)
    wanted = checked.retrieval
    if wanted is not None and (wanted.shards == 0 or wanted.samples == 0):
        wanted = None
    spec = {
        "output": os.fspath(output),
        "root": None if tokens is None else os.fspath(tokens),
        "domains": [
            {"name": name, "proportion": one.proportion, "files": files[name]}
            for name, one in checked.domains.items()
        ],
        "from": checked.windows.from_,
        "context": checked.windows.context,
        "decoder": checked.windows.decoder,
        "min_tokens": checked.windows.min_tokens or checked.windows.context + checked.windows.decoder,
        "splits": checked.splits.model_dump(),
        **checked.samples.model_dump(),
        "retrieval": None if wanted is None else {**wanted.model_dump(), "only": retrieval_shard},
        "seed": checked.seed,
        "dtype": dtype,
        "compression": compression,
        "origin": origin,
        "size_limit": SIZE_LIMIT,
        "allow_short": allow_short,
        "existing": existing,
    }
    found = None
    if wanted is not None and not join:
        listed = [file for one in files.values() for file in one]
        name = tokenizer or tokenizer_beside(listed, tokens)
        found = None if name is None else find_tokenizer(name).tokenizer
    report = _packtok.draw_samples(
        json.dumps(spec),
        found,
        shard=_shard(shard),
        join=join,
        num_threads=num_cpus or _packtok.available_cpus(),
        on_progress=on_progress,
    )
    return {**report, "files_of_no_domain": others}


@entry_point("input", "output")
def pack_samples(
    output: StrPath,
    *,
    tokens: StrPath,
    length: int = 65536,
    min_length: int = 0,
    by_length: Sequence[int] = (),
    compression: str | None = None,
    existing: Literal["error", "skip", "replace"] = "skip",
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Packs long documents into rows of an MDS folder per domain, as ProLong's training reads them.

    A row has ``input_ids``, ``indices`` (start and end of each document in it), ``length`` and ``domain``.
    Documents are packed by best fit. Only a document that is longer than a row is cut.

    Args:
        output: The folder to write to; domain ``a`` is written to ``output/a``.
        tokens: The folder with the token files. A domain is a folder in it, or a file.
        length: The most tokens of a row.
        min_length: Documents with fewer tokens are counted and not used.
        by_length: Lengths of pieces, which divide ``length``. Documents are cut into pieces of these lengths,
            the longest first; pieces of length n are packed into ``output/a/n-LENGTH``. What is left at the
            end of a document is counted and not used.
        compression: ``"zstd:LEVEL"``. Default: none.
        existing: As in `packtok.draw_samples`.
        on_progress: As in `packtok.pack`.

    Returns:
        Rows and tokens, and for each domain what became of its documents.

    Raises:
        ConfigError: If there are no token files.
        PacktokError: If an output has other rows, or a token file is damaged.
    """
    domains: dict[str, list[str]] = {}
    for path, parts in files_below(Path(tokens)):
        domains.setdefault(parts[0], []).append(path)
    spec = {
        "output": os.fspath(output),
        "domains": [{"name": name, "files": files} for name, files in domains.items()],
        "length": length,
        "min_length": min_length,
        "by_length": list(by_length),
        "compression": compression,
        "size_limit": SIZE_LIMIT,
        "existing": existing,
    }
    return _packtok.pack_samples(json.dumps(spec), on_progress)


def _shard(shard: str | int | None) -> tuple[int, int] | None:
    if shard is None:
        return None
    chosen = find_shard(shard)
    count = chosen.num_shards or chosen.default_num_shards
    if count is None:
        raise ConfigError(f"--shard: is {str(shard)!r}, without the number of shards; give k/N")
    return chosen.shard_index, count

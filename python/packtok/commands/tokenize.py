"""Implements ``packtok tokenize``: from described datasets to a described dataset of token files."""

import dataclasses
import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.catalog.names import Remark
from packtok.catalog.schema import (
    METADATA_NAMES,
    DatasetMetadata,
    TokenizedInfo,
    save_details,
)
from packtok.catalog.selection import Selected, select
from packtok.catalog.survey import pattern_of
from packtok.commands.manifest import write_manifest
from packtok.commands.pack import option_overrides
from packtok.distributed import ShardChoice
from packtok.errors import ConfigError
from packtok.packing import Packing, PackReport, prepare
from packtok.progress import Progress
from packtok.sources import StrPath

_BYTES_OF_DTYPE = {"uint8": 1, "uint16": 2, "uint32": 4}
TOKENIZER_NAME = "tokenizer.json"


def tokenize(
    datasets: str | Sequence[str],
    tokenizer: str,
    output_dir: StrPath = ".",
    *,
    file_prefix: str = "tokenized",
    token_dtype: str | None = None,
    parts: int | None = None,
    on_progress: Progress | None = None,
    remark: Remark = lambda _: None,
    **options: Any,
) -> dict[str, Any]:
    """Tokenizes described datasets, in the order given, into a folder that is a described dataset itself.

    The folder has ``<file_prefix>.pbin``, ``tokenizer.json`` and ``metadata.json``. The last is written last:
    a folder that has it is complete. An interrupted run keeps its progress, and the same call resumes it.

    Args:
        datasets: Metadata files, folders with one, or names; ``path:corpus`` and ``name:corpus`` select a
            corpus.
        tokenizer: A path, a built-in name or a name on the hub.
        output_dir: The folder to write to.
        file_prefix: Start of the names of the token files.
        token_dtype: The widest tokens that are accepted: ``"uint8"``, ``"uint16"`` or ``"uint32"``. The files
            have the narrowest that holds the vocabulary.
        parts: Number of pbins to write, with a manifest ``<file_prefix>.jsonl``. Default: one pbin without.
        on_progress: As in `packtok.pack`.
        remark: Receives a remark if names are looked up without an index.
        **options: Options of `packtok.pack`; input, output, field and tokenizer are given by the arguments.

    Returns:
        The content of ``metadata.json``, and of ``metadata.packtok.json`` under ``details``.

    Raises:
        ConfigError: If an argument is invalid, a corpus is unknown, or the vocabulary needs wider tokens.
        FileExistsError: If the folder is complete already.
        FileNotFoundError: If there is no metadata file.
    """
    folder = Path(output_dir)
    selected = [select(one, remark) for one in ([datasets] if isinstance(datasets, str) else datasets)]
    if not selected:
        raise ConfigError("no dataset given; give at least one metadata file or folder")
    _refuse_complete(folder)
    packing = _packing(selected, tokenizer, folder / f"{file_prefix}.pbin", options)
    _check_width(packing, token_dtype)
    folder.mkdir(parents=True, exist_ok=True)
    if parts is None:
        counts = _counts([packing.run_here(on_progress, None)])
        files = [f"{file_prefix}.pbin"]
    else:
        counts, files = _in_parts(packing, folder, file_prefix, parts, on_progress)
    found = packing.found.tokenizer
    _packtok.publish_bytes(folder / TOKENIZER_NAME, found.to_json())
    metadata = _metadata(
        selected, packing, tokenizer, file_prefix if parts is None else _packtok.SHARD_PREFIX
    )
    details = {
        **counts,
        "files": [_file(folder / name) for name in files],
        "packtok_version": _packtok.__version__,
        "tokenizer_fingerprint": found.fingerprint,
        "tokenizer_config": _without_vocabulary(json.loads(found.to_json())),
        "parents": [{"name": one.name, "content_field": one.metadata.content_field} for one in selected],
    }
    save_details(folder / METADATA_NAMES[0], details)
    metadata.save(folder / METADATA_NAMES[0])
    return {**metadata.to_dict(), "details": details}


def _refuse_complete(folder: Path) -> None:
    for name in METADATA_NAMES:
        if (folder / name).exists():
            raise FileExistsError(
                17,
                "the folder is a complete dataset already; choose another --output-dir",
                str(folder / name),
            )


def _packing(
    selected: Sequence[Selected], tokenizer: str, output: Path, options: Mapping[str, Any]
) -> Packing:
    for name in ("input", "output", "field", "tokenizer", "index_path", "report"):
        if name in options:
            raise TypeError(f"tokenize() has no option {name!r}; the datasets determine it")
    fields = [pattern_of(one.metadata.content_field) for one in selected]
    overrides = option_overrides(
        {
            # A file that an interrupted run has published is kept if it is what this run would write.
            "existing": "skip",
            **options,
            "input": [str(one.input) for one in selected],
            "output": output,
            "tokenizer": tokenizer,
            "field": fields[0],
        }
    )
    packing = prepare(None, overrides)
    differ = len(set(fields)) > 1
    return dataclasses.replace(packing, input_fields=tuple(fields)) if differ else packing


def _check_width(packing: Packing, token_dtype: str | None) -> None:
    if token_dtype is None:
        return
    if token_dtype not in _BYTES_OF_DTYPE:
        raise ConfigError(f"--token-dtype is {token_dtype!r}, expected one of {', '.join(_BYTES_OF_DTYPE)}")
    tokenizer = packing.found.tokenizer
    if tokenizer.token_bytes > _BYTES_OF_DTYPE[token_dtype]:
        raise ConfigError(
            f"--token-dtype is {token_dtype}, too narrow for the {tokenizer.vocab_size:,} ids of "
            f"{tokenizer.name}; give a wider one, or leave it out"
        )


def _in_parts(
    packing: Packing, folder: Path, file_prefix: str, parts: int, on_progress: Progress | None
) -> tuple[dict[str, Any], list[str]]:
    packing = packing.into(folder, packing.config.settings.existing)
    packing.plan_here(parts)
    reports = [
        packing.run_here(
            on_progress, ShardChoice(shard_index=shard, num_shards=parts, default_num_shards=None)
        )
        for shard in range(parts)
    ]
    names = [_packtok.shard_name(shard, parts) for shard in range(parts)]
    write_manifest([folder / name for name in names], folder / f"{file_prefix}.jsonl", existing="replace")
    return _counts(reports), names


def _counts(reports: Sequence[PackReport]) -> dict[str, Any]:
    names = ("documents", "tokens", "lines", "packed", "empty", "blank", "rejected", "source_bytes")
    return {name: sum(getattr(report, name) for report in reports) for name in names}


def _file(path: Path) -> dict[str, Any]:
    reader = _packtok.PbinReader(path)
    return {
        "path": path.name,
        "bytes": path.stat().st_size,
        "documents": len(reader),
        "tokens": reader.num_tokens,
        "trailer_crc32c": reader.trailer_crc32c,
    }


def _metadata(selected: Sequence[Selected], packing: Packing, tokenizer: str, prefix: str) -> DatasetMetadata:
    found = packing.found.tokenizer
    return DatasetMetadata(
        name=f"{selected[0].metadata.name}-tokenized_{found.name}",
        description="Tokenized dataset created with packtok",
        date_downloaded=datetime.date.today().isoformat(),
        download_source="Tokenized by packtok",
        data_content="text",
        content_field="NA",
        tokenized_info=TokenizedInfo(
            tokenizer=tokenizer,
            file_prefix=prefix,
            dtype=f"uint{8 * found.token_bytes}",
            file_extension="pbin",
            parent_datasets=[one.name for one in selected],
            vocab_size=found.vocab_size,
            tokenizers_version=_packtok.TOKENIZERS_VERSION,
        ),
    )


def _without_vocabulary(config: dict[str, Any]) -> dict[str, Any]:
    """Returns a tokenizer.json without its entries and merges, which are in the file itself."""
    model = {key: value for key, value in config["model"].items() if key not in ("vocab", "merges")}
    return {**config, "model": model}

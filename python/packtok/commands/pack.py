"""Implements `packtok pack`: from a config and a tokenizer to a pbin and a report."""

import difflib
import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from packtok import _packtok
from packtok.config import ConfigSource
from packtok.config.keywords import PackOptions
from packtok.config.options import OPTIONS, Settings
from packtok.distributed import ShardChoice, find_shard
from packtok.errors import ConfigError
from packtok.packer.into_store import pack_into_store
from packtok.packer.pack_run import PackReport, PackRun, prepare, refuse_file_as_folder
from packtok.packer.staging import is_url
from packtok.progress import Progress
from packtok.remedies import entry_point, here


@entry_point()
def pack(
    config: ConfigSource | None = None,
    /,
    *,
    shard: str | int | None = None,
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
    return run_packing(prepare(config, option_overrides(options)), on_progress, chosen)


def run_packing(
    packing: PackRun, on_progress: Progress | None = None, shard: ShardChoice | None = None
) -> PackReport:
    """Packs, writes the report file if ``report`` is set, and returns the report.

    Args:
        packing: The run to execute.
        on_progress: As in `pack`.
        shard: The shard to pack; the output is then a folder. Default: the whole corpus.
    """
    settings, redactor = packing.config.settings, packing.config.redactor
    with redactor.guard():
        check_report(settings)
        if shard is not None:
            refuse_file_as_folder(settings.dst_path)
        if is_url(settings.dst_path):
            report = pack_into_store(packing, on_progress, shard)
        else:
            report = packing.run_here(on_progress, shard)
        if settings.report is not None:
            _write_report(Path(settings.report), report)
    return report


def option_overrides(options: Mapping[str, Any]) -> dict[str, Any]:
    """Converts options by keyword to values by dotted config key, without those that are ``None``."""
    for name in options:
        if name not in OPTIONS:
            raise TypeError(_unknown(name))
    return {_override_key(name): value for name, value in options.items() if value is not None}


def _unknown(name: str) -> str:
    """Returns the message about an unknown keyword; for a key of a config it suggests the keyword."""
    function, known = here(OPTIONS)
    keyword_of = {option.name: keyword for keyword, option in OPTIONS.items()} | {one: one for one in known}
    near = difflib.get_close_matches(name, [one for one in keyword_of if keyword_of[one] in known], n=1)
    hint = f"; did you mean {keyword_of[near[0]]!r}?" if near else ""
    return f"{function}() has no option {name!r}{hint}"


def _override_key(name: str) -> str:
    # The name of a tokenizer also replaces a section that consists of a name only.
    return "tokenizer" if name == "tokenizer" else OPTIONS[name].key


def check_report(settings: Settings) -> None:
    """Checks before packing that the report can be written without overwriting other data.

    Raises:
        ConfigError: If the path is a folder, belongs to the output, or is an existing file but not a report.
        FileNotFoundError: If its folder does not exist.
    """
    if settings.report is None:
        return
    report = Path(settings.report)
    if not report.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the folder of the report does not exist", str(report.parent))
    if report.is_dir():
        raise ConfigError(f"--report: {report} is a folder; give a file in it")
    beside = ("", ".tokenizer.json", ".rejects.jsonl", ".partial")
    if any(report.absolute() == Path(f"{settings.dst_path}{end}").absolute() for end in beside):
        raise ConfigError(f"--report: {report} is a path of the output; choose another file")
    if os.path.lexists(report) and not _is_report(report):
        raise ConfigError(
            f"--report: {report} exists and is not a packtok report, so it is not replaced; choose another"
        )


def _is_report(path: Path) -> bool:
    """Returns whether a file is empty or was written by `_write_report`."""
    if not path.is_file():
        # A device such as /dev/null, or a dangling link.
        return False
    with path.open("rb") as file:
        start = file.read(4096)
    return start == b"" or start.startswith(b'{\n  "output": ')


def _write_report(path: Path, report: PackReport) -> None:
    text = json.dumps(report.to_dict(), indent=2) + "\n"
    _packtok.publish_bytes(path, text.encode("ascii"))

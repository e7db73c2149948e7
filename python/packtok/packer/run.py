"""The entry of this package: packs, or plans shards, according to a checked config.

The output is on this machine, or in an object store if it is a URL.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.config import PackConfig
from packtok.distributed import ShardChoice
from packtok.packer.into_store import pack_into_store, plan_into_store
from packtok.packer.pack_run import prepare, refuse_file_as_folder
from packtok.packer.report import PackReport, check_report, write_report
from packtok.progress import Progress

OnWarnings = Callable[[Sequence[str]], None]


def pack(
    config: PackConfig,
    shard: ShardChoice | None = None,
    *,
    on_warnings: OnWarnings | None = None,
    on_progress: Progress | None = None,
) -> PackReport:
    """Packs a corpus or one shard of it, and writes the report file if ``report`` is set.

    Args:
        config: The output is a folder if only a shard is packed.
        shard: The shard; ``None`` for the whole corpus.
        on_warnings: Called with remarks as soon as they are known; see `packtok.pack`.
        on_progress: See `packtok.pack`.
    """
    with config.redactor.guard():
        settings = config.settings
        check_report(settings)
        if shard is not None:
            refuse_file_as_folder(settings.dst_path)
        run = prepare(config)
        notes = run.notes
        _tell(on_warnings, notes)
        if _packtok.is_url(settings.dst_path):
            report = pack_into_store(run, on_progress, shard)
        else:
            report = run.run_here(on_progress, shard)
        _tell(on_warnings, report.warnings[len(notes) :])
        if settings.report is not None:
            write_report(Path(settings.report), report)
    return report


def plan(config: PackConfig, num_shards: int, *, on_warnings: OnWarnings | None = None) -> dict[str, Any]:
    """Writes the plan for packing in shards into the output folder; see `packtok.plan`."""
    run = prepare(config)
    _tell(on_warnings, run.notes)
    if _packtok.is_url(config.settings.dst_path):
        return plan_into_store(run, num_shards)
    return run.plan_here(num_shards)


def _tell(on_warnings: OnWarnings | None, warnings: Sequence[str]) -> None:
    if on_warnings is not None and warnings:
        on_warnings(warnings)

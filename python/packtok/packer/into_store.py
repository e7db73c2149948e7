"""Packing with an output in an object store: packs into the staging folder, then uploads to the URL."""

import dataclasses
from typing import Any

from packtok import _packtok
from packtok.distributed import ShardChoice
from packtok.errors import PacktokError
from packtok.packer.pack_run import PackRun
from packtok.packer.report import PackReport
from packtok.packer.staging import (
    PLAN,
    PLAN_TOKENIZER,
    Staging,
    fetch_plan,
    finished_shard,
    send_shard,
    share_plan,
)
from packtok.progress import Progress
from packtok.shard_folder import read_plan


def _base_and_key(run: PackRun) -> tuple[str | None, Any]:
    """Returns the parent of all staging folders, and a key of everything that determines the bytes."""
    key = [run.config.what_changes_bytes(), run.lookup.tokenizer.fingerprint]
    return run.config.settings.staging, key


def _staging(run: PackRun) -> Staging:
    """Returns the staging folder for the plan and the shards."""
    return Staging.of(run.config.settings.dst_path, *_base_and_key(run))


def pack_into_store(run: PackRun, on_progress: Progress | None, shard: ShardChoice | None) -> PackReport:
    """Packs into the staging folder and uploads the result to the output URL.

    Raises:
        ConfigError: If ``existing`` is ``"skip"``, which would need to read the object in the store.
        FileExistsError: If the object exists and ``existing`` is ``"error"``.
        OSError: If the store rejects a request or does not respond.
    """
    url, existing = run.config.settings.dst_path, run.config.settings.existing
    if shard is not None:
        return _shard_into_store(run, on_progress, shard)
    staging = Staging.of_output(url, *_base_and_key(run), existing=existing)
    if run.config.settings.restart:
        staging.empty()
    # "skip" verifies and keeps a complete file that an earlier run could not upload.
    report = run.into(staging.path, "skip").run_here(on_progress, None)
    staging.send(replace=existing == "replace")
    return _renamed(report, staging.url)


def _shard_into_store(run: PackRun, on_progress: Progress | None, shard: ShardChoice) -> PackReport:
    """Packs one shard in the staging folder and uploads it to the folder of shards at the URL."""
    staging = _staging(run)
    local_run = run.into(staging.folder, "error")
    num_shards = shard.num_shards
    if not fetch_plan(staging):
        num_shards = num_shards or shard.default_num_shards
        if num_shards is None:
            raise PacktokError(f"{staging.url}: no plan found; give --shard k/N, or run packtok plan first")
        local_run.plan_here(num_shards)
        share_plan(staging)
    else:
        # plan_here fails if the plan belongs to another corpus or other options.
        local_run.plan_here(num_shards or read_plan(staging.folder).num_shards)
    plan = read_plan(staging.folder)
    name = _packtok.shard_name(shard.shard_index, plan.num_shards)
    marker = finished_shard(staging, name, plan.fingerprint)
    if marker is not None:
        return _renamed(local_run.report_of(marker), staging.url_of(name), skipped_existing=True)
    report = local_run.run_here(on_progress, shard)
    send_shard(staging, name)
    return _renamed(report, staging.url_of(name))


def plan_into_store(run: PackRun, num_shards: int) -> dict[str, Any]:
    """Writes the plan for ``num_shards`` shards into the folder at the URL."""
    staging = _staging(run)
    had_plan = fetch_plan(staging)
    report = run.into(staging.folder, "error").plan_here(num_shards)
    if not had_plan:
        share_plan(staging)
    return report | {"plan": staging.url_of(PLAN), "skipped_existing": had_plan}


def _renamed(report: PackReport, url: str, *, skipped_existing: bool = False) -> PackReport:
    """Returns the report with the URLs of the uploaded files."""
    rejects = None if report.rejects_path is None else f"{url}{_packtok.REJECTS_SUFFIX}"
    folder = url.rsplit("/", 1)[0]
    tokenizer = f"{url}.tokenizer.json" if report.shard_index is None else f"{folder}/{PLAN_TOKENIZER}"
    return dataclasses.replace(
        report, output=url, tokenizer_path=tokenizer, rejects_path=rejects, skipped_existing=skipped_existing
    )

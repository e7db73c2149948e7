"""Implements `packtok plan`: divides a corpus into shards."""

from typing import Any, Unpack

from packtok.commands.pack import option_overrides
from packtok.config import ConfigSource
from packtok.config.keywords import PackOptions
from packtok.distributed import MAX_SHARDS
from packtok.errors import ConfigError
from packtok.packer.into_store import plan_into_store
from packtok.packer.pack_run import PackRun, prepare
from packtok.packer.staging import is_url
from packtok.remedies import entry_point


@entry_point()
def plan(
    config: ConfigSource | None = None, /, *, shards: int, **options: Unpack[PackOptions]
) -> dict[str, Any]:
    """Writes the plan for packing a corpus in shards into the output folder.

    Args:
        config: As in `packtok.pack`.
        shards: Number of shards of about equal size.
        **options: As in `packtok.pack`. The tasks that pack the shards need the same options.

    Returns:
        A dict with ``plan`` (its path), ``fingerprint``, ``num_shards``, ``num_sources``, ``sources`` (the
        first 1,000), ``source_bytes``, ``skipped_existing`` (whether the same plan existed already) and
        ``ignored`` (the files that are not read, with the reasons).

    Raises:
        PacktokError: If the folder contains a different plan.
    """
    if not 1 <= shards <= MAX_SHARDS:
        raise ConfigError(f"--shards: is {shards}; expected 1 to {MAX_SHARDS:,}")
    return plan_packing(prepare(config, option_overrides(options)), shards)


def plan_packing(packing: PackRun, shards: int) -> dict[str, Any]:
    """Writes the plan of a packing run to a folder or a URL; see `plan`."""
    if is_url(packing.config.settings.dst_path):
        return plan_into_store(packing, shards)
    return packing.plan_here(shards)

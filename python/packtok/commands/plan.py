"""Implements `packtok plan`: divides a corpus into shards."""

from typing import Any, Unpack

from packtok.config import ConfigSource, load_config
from packtok.config.keywords import PackOptions
from packtok.distributed import MAX_SHARDS
from packtok.errors import ConfigError
from packtok.packer import run as packer
from packtok.packer.run import OnWarnings
from packtok.remedies import entry_point


@entry_point()
def plan(
    config: ConfigSource | None = None,
    /,
    *,
    shards: int,
    on_warnings: OnWarnings | None = None,
    **options: Unpack[PackOptions],
) -> dict[str, Any]:
    """Writes the plan for packing a corpus in shards into the output folder.

    Args:
        config: As in `packtok.pack`.
        shards: Number of shards of about equal size.
        on_warnings: Called with a list of remarks on the config and the tokenizer, if there are any.
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
    return packer.plan(load_config(config, options), shards, on_warnings=on_warnings)

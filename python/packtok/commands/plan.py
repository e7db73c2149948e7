"""The function of `packtok plan`: a corpus is divided into shards."""

from typing import Any, Unpack

from packtok.commands.pack import option_overrides
from packtok.config import ConfigSource
from packtok.config.keywords import PackOptions
from packtok.distributed import MAX_SHARDS
from packtok.errors import ConfigError
from packtok.packing import Packing, prepare
from packtok.store.packing import plan_into_store
from packtok.store.staging import is_url


def plan(
    config: ConfigSource | None = None, /, *, shards: int, **options: Unpack[PackOptions]
) -> dict[str, Any]:
    """Writes the plan by which a corpus is packed in parts into the folder named as output.

    Args:
        config: As in `packtok.pack`.
        shards: Into how many parts of about equal size the corpus is divided.
        **options: As in `packtok.pack`; the tasks that pack the shards are given the same.

    Returns:
        ``plan`` (its path), ``fingerprint``, ``num_shards``, ``num_sources``, ``source_bytes`` and
        ``skipped_existing``, which says that the plan was there already.

    Raises:
        PacktokError: If the plan that is there is of something else.
    """
    if not 1 <= shards <= MAX_SHARDS:
        raise ConfigError(f"--shards: is {shards}; expected 1 to {MAX_SHARDS:,}")
    return plan_packing(prepare(config, option_overrides(options)), shards)


def plan_packing(packing: Packing, shards: int) -> dict[str, Any]:
    """Writes the plan of a packing run, to a folder or a URL; see `plan`."""
    if is_url(packing.config.settings.dst_path):
        return plan_into_store(packing, shards)
    return packing.plan_here(shards)

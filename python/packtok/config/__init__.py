"""Pack configs: their options, how they are read and checked, and what stays secret.

Covers everything from a YAML file, a mapping or keyword arguments to one validated `PackConfig`. The names
below are imported on first use, because importing pydantic, OmegaConf and YAML takes longer than most
commands run.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packtok.config.load import ConfigSource, PackConfig, load_config

__all__ = ["ConfigSource", "PackConfig", "load_config"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from packtok.config import load

    return getattr(load, name)

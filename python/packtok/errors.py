"""The exceptions of packtok. Those of the compiled module are defined there and re-exported here."""

from packtok._packtok import OUTPUT_EXISTS, DocumentError, PacktokError, PbinFormatError, TokenizerError

__all__ = [
    "OUTPUT_EXISTS",
    "ConfigError",
    "DocumentError",
    "PacktokError",
    "PbinFormatError",
    "SlurmError",
    "TokenizerError",
    "UnknownNameError",
]


class ConfigError(ValueError):
    """A config or an option is invalid; the message names the key."""


class UnknownNameError(ConfigError, FileNotFoundError):
    """A name is that of no dataset, and no path either."""


class SlurmError(PacktokError):
    """Slurm rejects a request, is not available or does not respond."""

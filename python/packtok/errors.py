"""The exceptions of packtok; those of the compiled module are defined there and only named here."""

from packtok._packtok import OUTPUT_EXISTS, DocumentError, PacktokError, PbinFormatError, TokenizerError

__all__ = [
    "OUTPUT_EXISTS",
    "ConfigError",
    "DocumentError",
    "PacktokError",
    "PbinFormatError",
    "SlurmError",
    "TokenizerError",
]


class ConfigError(ValueError):
    """A config or an option is wrong; the message names the key."""


class SlurmError(PacktokError):
    """Slurm refused something, is not there or does not answer."""

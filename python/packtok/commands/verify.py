"""Implements `packtok verify`: checks a pbin for damage, and compares it with its corpus."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from packtok import _packtok
from packtok.commands.convert import tokenizer_beside
from packtok.commands.token_folder import check_marked
from packtok.errors import ConfigError
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.tokenizer.find import find_tokenizer, tokenizer_next_to

if TYPE_CHECKING:
    from packtok.config import ConfigSource

# The largest window: the option of the run is not recorded, and a window that the run accepted must not fail
# here.
MAX_ZSTD_WINDOW_LOG = 31
# The name that the compiled module uses.
CHECKSUMS = "checksums"


@entry_point()
def verify(
    path: str,
    *,
    format: str | None = None,
    input_dtype: str | None = None,
    boundaries: str | None = None,
    tokenizer: str | None = None,
    add_special_tokens_from_config: bool = False,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Checks the consistency of a token file and its tokenizer; returns its counts and what was ``checked``.

    Args:
        path: The pbin, or another token file, which is compared with its marker, if it has one.
        format: As in `packtok.convert`, for the file.
        input_dtype: As in `packtok.convert`.
        boundaries: As in `packtok.convert`.
        tokenizer: Its tokenizer. Default: the file next to the pbin, if it exists.
        add_special_tokens_from_config: As in `packtok.pack`, for ``tokenizer``.
        on_progress: As in `packtok.pack`.

    Raises:
        PbinFormatError: At the first error found.
    """
    name = tokenizer or tokenizer_beside(path)
    adds = add_special_tokens_from_config
    loaded_tokenizer = find_tokenizer(name, adds).tokenizer if name is not None else None
    counts = _packtok.verify(
        path=path,
        format=format,
        input_dtype=input_dtype,
        boundaries=boundaries,
        tokenizer=loaded_tokenizer,
        on_progress=on_progress,
    )
    if CHECKSUMS in counts["unchecked"] and check_marked(path):
        counts["checked"].append(CHECKSUMS)
        counts["unchecked"].remove(CHECKSUMS)
    return counts


@entry_point()
def verify_corpus(
    path: str,
    corpus: "ConfigSource",
    *,
    sample: float = 1.0,
    tokenizer: str | None = None,
    add_special_tokens_from_config: bool = False,
    source: str | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Tokenizes a corpus again and compares it with a pbin; returns ``documents`` and ``compared``.

    Args:
        path: The pbin.
        corpus: The config it was packed with.
        sample: Fraction of the documents to compare.
        tokenizer: Overrides the tokenizer in the config.
        add_special_tokens_from_config: As in `packtok.pack`.
        source: The source plug-in it was packed with, as for `packtok.pack`.
        on_progress: As in `packtok.pack`.

    Raises:
        PacktokError: At the first difference.
    """
    # The config need not name an output: the pbin to verify stands for it.
    options = {
        "output": path,
        "tokenizer": tokenizer or None,
        "source": source or None,
        "add_special_tokens_from_config": add_special_tokens_from_config or None,
    }
    # Only this needs a config. Importing what reads it takes a fifth of the time of `packtok verify FILE`.
    from packtok.config import load_config
    from packtok.packer.pack_run import prepare

    packing = prepare(load_config(corpus, options))
    with packing.config.redactor.guard():
        return _packtok.verify_corpus(
            packing.spec, packing.lookup.tokenizer, on_progress, packing.plugin, sample=sample
        )


@entry_point()
def verify_origins(
    path: str,
    folder: str,
    *,
    sample: float = 1.0,
    tokenizer: str | None = None,
    add_special_tokens_from_config: bool = False,
    num_cpus: int | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Reads the record that each document came from, tokenizes it and compares the ids.

    Needs no config: a pbin packed with ``origins`` has everything but the corpus. Works for shards and joined
    files, and if other files of the corpus are gone.

    Args:
        path: The pbin.
        folder: The common folder of its sources, to which the paths in `PbinReader.sources` are relative; a
            path or URL.
        sample: Fraction of the documents to compare. Every document must have a record in any case.
        tokenizer: Its tokenizer. Default: the file next to the pbin, or that of the shards.
        add_special_tokens_from_config: As in `packtok.pack`, for ``tokenizer``.
        num_cpus: Number of threads. Default: all CPUs that this process may use.
        on_progress: As in `packtok.pack`.

    Returns:
        ``documents`` and ``compared``.

    Raises:
        PacktokError: At the first difference; if the file has no origins; if a source has another length.
        ConfigError: If no tokenizer is given or found.
    """
    name = tokenizer or tokenizer_next_to(path) or _of_shards(path)
    if name is None:
        raise ConfigError(f"{path}: no tokenizer found next to the file; give --tokenizer")
    return _packtok.verify_origins(
        find_tokenizer(name, add_special_tokens_from_config).tokenizer,
        on_progress,
        path=path,
        folder=folder,
        sample=sample,
        num_cpus=num_cpus or _packtok.available_cpus(),
        zstd_window_log=MAX_ZSTD_WINDOW_LOG,
    )


def _of_shards(path: str) -> str | None:
    """Returns the tokenizer file of the folder of shards that contains a pbin."""
    shard = Path(path)
    marker = shard.with_name(_packtok.marker_name(shard.name))
    file = shard.with_name(_packtok.PLAN_TOKENIZER_NAME)
    return str(file) if marker.is_file() and file.is_file() else None

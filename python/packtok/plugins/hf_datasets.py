"""The source plug-in ``datasets``: reads, as a stream, all data that Hugging Face `datasets` loads.

A corpus is ``PATH_OR_NAME[:CONFIG][@SPLIT]``, with the names that `datasets` has for configs and splits;
``all`` stands for all splits. Its parts are the shards of the dataset. No code of a dataset runs: `datasets`
has none since version 4.
"""

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from packtok import _packtok
from packtok.config.options import DATASETS
from packtok.config.redact import Redactor
from packtok.errors import ConfigError, PacktokError
from packtok.plugins.plugin import Plugin

DEFAULT_SPLIT = "train"
ALL_SPLITS = "all"
# The number is small, because texts can be long.
ROWS_AT_ONCE = 100
LEAST_MAJOR_VERSION = 4
# The limit cuts messages of the library that list all extensions that it knows.
_MAX_MESSAGE_CHARS = 300


def datasets_plugin(fields: Mapping[str, str]) -> Plugin:
    """Returns the plug-in.

    Args:
        fields: The jq pattern of each corpus, which must be the path of a column.

    Raises:
        ConfigError: If `datasets` is not installed, a pattern is not a plain path, or a corpus has no such
            config, split or column.
    """
    _import()
    columns = {corpus: _names(pattern) for corpus, pattern in fields.items()}
    # The cache serves one run only, because the files of a dataset can change.
    load = functools.cache(_load)
    for corpus, names in columns.items():
        # Wrong names are reported here, before anything is read.
        for split in load(corpus).values():
            with _errors_of_library(corpus):
                known = split.column_names or names[:1]
            _check_column(names[0], known)

    def parts(corpus: str) -> Sequence[str]:
        return [
            f"{prefix}{shard}" for prefix, split in load(corpus).items() for shard in range(split.num_shards)
        ]

    def documents(corpus: str, part: str, start: int = 0) -> Iterator[Any]:
        split, slash, shard = part.rpartition("/")
        return _texts(load(corpus)[split + slash], columns[corpus], int(shard), start)

    return Plugin(DATASETS, documents, parts, is_resumable=True)


def split_name(corpus: str) -> tuple[str, str | None, str]:
    """Returns path or name, config and split of a corpus."""
    dataset, at, split = corpus.rpartition("@")
    name, split = (dataset, split) if at and not os.path.exists(corpus) else (corpus, DEFAULT_SPLIT)
    if os.path.exists(name) or ":" not in name:
        return name, None, split
    name, _, config = name.rpartition(":")
    return name, config, split


def with_split(corpus: str, split: str) -> str:
    """Returns the corpus with a split, unless it has one."""
    return corpus if "@" in corpus and not os.path.exists(corpus) else f"{corpus}@{split}"


def _import() -> Any:
    try:
        import datasets
    except ImportError:
        raise ConfigError(
            "--source datasets needs Hugging Face datasets, which is not installed; run pip install "
            "'packtok[datasets]'"
        ) from None
    # Earlier versions run code that a dataset contains.
    if int(datasets.__version__.split(".")[0]) < LEAST_MAJOR_VERSION:
        raise ConfigError(
            f"--source datasets needs version {LEAST_MAJOR_VERSION} of datasets, found "
            f"{datasets.__version__}; run pip install 'packtok[datasets]'"
        )
    return datasets


def _names(pattern: str) -> list[str]:
    names = _packtok.column_names(pattern)
    if names is None:
        raise ConfigError(
            f"--field (jq_pattern) is {pattern!r}; with --source datasets it must be a plain path of names, "
            "such as .text"
        )
    return names


def _load(corpus: str) -> dict[str, Any]:
    """Returns the streamed splits of a corpus, by the start of the names of their parts.

    Errors list the known configs and splits.
    """
    datasets = _import()
    name, config, split = split_name(corpus)
    if name.startswith(("/", ".")) and not os.path.exists(name):
        raise ConfigError(f"--input: {name}: No such file or directory")
    with _errors_of_library(name):
        path, more = _loader_of(name)
        known = [] if more else datasets.get_dataset_config_names(path)
    if config is None and len(known) > 1 and "default" not in known:
        raise ConfigError(f"--input: {name} has several configs: {', '.join(known)}; give {name}:CONFIG")
    if config is not None and config not in known:
        raise ConfigError(f"--input: {name} has no config {config!r}; it has {', '.join(known) or 'none'}")
    with _errors_of_library(name):
        loaded = datasets.load_dataset(path, config, streaming=True, **more)
    if split == ALL_SPLITS:
        return {f"{name}/": stream for name, stream in loaded.items()}
    if split not in loaded:
        raise ConfigError(
            f"--input: {name} has no split {split!r}; it has {', '.join(loaded)}; give {name}@SPLIT"
        )
    return {"": loaded[split]}


@contextmanager
def _errors_of_library(name: str) -> Iterator[None]:
    """Turns every exception of `datasets` and of its readers into an exception with a single line.

    Raises:
        ConfigError: If the dataset is a script.
        PacktokError: If it cannot be loaded.
    """
    from datasets import logging

    verbosity = logging.get_verbosity()
    # The library also logs the errors that it raises.
    logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    except (ConfigError, PacktokError):
        raise
    # The library documents no base class of its errors, and its readers raise those of other libraries.
    except Exception as error:
        message = " ".join(Redactor()(str(error)).split())
        if "scripts are no longer supported" in message:
            raise ConfigError(
                f"--input: {name} is a dataset script, and scripts are no longer supported by datasets; read "
                "it with a source plug-in (--source my_source.py:function), or convert it to Parquet"
            ) from None
        if len(message) > _MAX_MESSAGE_CHARS:
            message = f"{message[:_MAX_MESSAGE_CHARS]}…"
        raise PacktokError(
            f"--input: {name}: datasets cannot read it: {type(error).__name__}: {message}"
        ) from None
    finally:
        logging.set_verbosity(verbosity)


def _loader_of(name: str) -> tuple[str, dict[str, Any]]:
    """Returns the arguments of `load_dataset`: a single file is read by the builder of its extension."""
    if not os.path.isfile(name):
        return name, {}
    from datasets.packaged_modules import _EXTENSION_TO_MODULE

    bare = name.removesuffix(".gz").removesuffix(".zst")
    builder = _EXTENSION_TO_MODULE.get(os.path.splitext(bare)[1].lower())
    if builder is None:
        known = ", ".join(sorted(_EXTENSION_TO_MODULE))
        raise ConfigError(f"--input: {name}: datasets has no builder for this file; it knows {known}")
    return builder[0], {"data_files": name, **builder[1]}


def _check_column(column: str, known: Sequence[str]) -> None:
    if column not in known:
        raise ConfigError(
            f"--field: no column {column!r}; the dataset has {', '.join(known)}; set it to one of them"
        )


def _texts(dataset: Any, names: list[str], shard: int, start: int) -> Iterator[Any]:
    """Yields the texts of a shard of the dataset, without the first ``start`` ones."""
    rows = dataset.shard(num_shards=dataset.num_shards, index=shard).select_columns(names[:1])
    if start:
        rows = rows.skip(start)
    # Rows are read in columns, so that a row creates no Python object besides its text.
    for batch in rows.with_format("arrow").iter(batch_size=ROWS_AT_ONCE):
        yield from _column(batch, names).to_pylist()


def _column(batch: Any, names: list[str]) -> Any:
    """Returns the column at a path of names.

    Raises:
        ConfigError: If there is none.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    _check_column(names[0], batch.column_names)
    column = batch.column(names[0])
    for depth, name in enumerate(names[1:], start=1):
        if not pa.types.is_struct(column.type):
            path = ".".join(names[:depth])
            raise ConfigError(f"--field: column {path} is of type {column.type} and has no field {name!r}")
        _check_column(name, [column.type.field(i).name for i in range(column.type.num_fields)])
        column = pc.struct_field(column, name)
    return column

"""The sources of streams: files, pbins, sequences, iterables, and datasets of other libraries."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from packtok._packtok import Blocks, corpus_files
from packtok.choices import check_choice
from packtok.config.options import OPTIONS
from packtok.integers import checked_integer
from packtok.remedies import entered, of_function
from packtok.sources import find_files
from packtok.stream import recipe
from packtok.stream.base import Base
from packtok.stream.inputs import huggingface, mosaicml, samples
from packtok.stream.inputs.braces import braceexpand
from packtok.stream.remote import without_credentials

__all__ = ["FROM_FILES", "FileFormat", "FromSources"]

FileFormat = Literal["auto", "jsonl", "parquet", "arrow", "csv", "tsv", "text", "cbor"]
OnBadDocument = Literal["fail", "skip"]
StrPath = str | os.PathLike[str]
_MAX_DOCUMENT_BYTES: int = OPTIONS["max_document_bytes"].default
# Files that a state lists by name; of more of them it has a digest.
_MAX_LISTED = 64


class FromSources(Base):
    """The methods that make a stream."""

    @classmethod
    def from_files(
        cls,
        urls: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        repeat: bool = False,
        shuffle_shards: bool = False,
        format: FileFormat = "auto",
        n_active_shards: int = 10,
        n_standby_shards: int = 2,
        timeout: float = 60.0,
        n_prefetch_samples: int = 10,
        seed: int = 42,
        *,
        text_column: str = "text",
        on_bad_document: OnBadDocument = "fail",
        shuffle: Literal["documents"] | None = None,
        ignore: StrPath | Sequence[StrPath] = (),
        max_document_bytes: int = _MAX_DOCUMENT_BYTES,
        zstd_window_log: int = OPTIONS["zstd_window_log"].default,
    ) -> Self:
        """Reads files in turns: one sample of each of ``n_active_shards``, and again.

        Args:
            urls: Paths, globs, folders or URLs; braces are expanded.
            repeat: Whether to start again at the end.
            shuffle_shards: Whether the files are in another order in every epoch.
            format: The format of all files; by default that of their names or contents.
            n_active_shards: Files that are open at once.
            n_standby_shards: Accepted for compatibility; files are opened when they are needed.
            timeout: Seconds that a URL of another scheme is tried for; stores are tried by their own policy.
            n_prefetch_samples: Accepted for compatibility; a file is read ahead in chunks.
            seed: The seed of the order of files.
            text_column: The column of a table, or the name for the text of a file of another format.
            on_bad_document: Whether a malformed document is an error, or is counted and left out.
            shuffle: With ``"documents"``, every epoch has a permutation of all documents, by ``seed``. For
                local, uncompressed files of JSON lines with an index that ``packtok index`` wrote.
            ignore: Globs of files and folders to leave out, as for ``packtok pack``.
            max_document_bytes: A longer record is a bad document.
            zstd_window_log: The largest window of a zstd file, as a power of two from 10 to 31: memory that
                a file may request.

        Raises:
            OSError: If a file is missing or unreadable.
            ValueError: If an argument is not valid, a folder has files that look like data and cannot be
                read, or nothing would be repeated.
        """
        del n_standby_shards, n_prefetch_samples
        given = [urls] if isinstance(urls, str | os.PathLike) else list(urls)
        inputs = [one for url in given for one in _expanded(url)]
        if not inputs:
            if repeat:
                raise ValueError("there are no files, so repeating them would never end; give at least one")
            return cls.from_sequence([])
        chosen = None if format == "auto" else format
        inputs, remote_files = without_credentials(inputs, timeout)
        globs = [ignore] if isinstance(ignore, str | os.PathLike) else ignore
        with entered(FROM_FILES):
            files = corpus_files(inputs, chosen, remote_files, [os.fspath(glob) for glob in globs])
        if repeat and not any(num_bytes for _, num_bytes in files):
            raise ValueError(
                "all files are empty, so repeating them would never end; give files with samples"
            )
        check_choice("on_bad_document", on_bad_document, ("fail", "skip"))
        seed = checked_integer("seed", seed)
        check_choice("shuffle", shuffle, ("documents", None))
        arguments = {
            "format": chosen,
            "text_column": text_column,
            "num_active": checked_integer("n_active_shards", n_active_shards, least=1),
            "repeat": repeat,
            "shuffle_seed": seed if shuffle_shards or shuffle else None,
            "shuffles_documents": shuffle == "documents",
            "on_bad_document": on_bad_document,
            "max_document_bytes": checked_integer("max_document_bytes", max_document_bytes, least=1),
        }
        execution = {
            "inputs": [path for path, _ in files],
            "bytes": [num_bytes for _, num_bytes in files],
            "zstd_window_log": checked_integer("zstd_window_log", zstd_window_log, least=10, below=32),
        }
        names = [[Path(path).name, num_bytes] for path, num_bytes in files]
        is_listed = len({name for name, _ in names}) == len(names) <= _MAX_LISTED
        identity = {
            "num_files": len(files),
            # By name, so that an error can say which one differs, if there are few.
            "files": names if is_listed else recipe.digest(names),
        }
        return cls(recipe.Node("from_files", arguments, execution, object=remote_files, identity=identity))

    @classmethod
    def from_pbin(
        cls, paths: StrPath | Sequence[StrPath], repeat: bool = False, shuffle: bool = False, seed: int = 42
    ) -> Self:
        """Yields the documents of pbins, with the column ``input_ids`` and their EOD.

        Args:
            paths: Files, folders, globs or a manifest, as for ``TokenDataset``.
            repeat: Whether to start again at the end.
            shuffle: Whether every epoch has a permutation of all documents.
            seed: The seed of the permutations.

        Raises:
            OSError: If a file is missing or unreadable.
            ValueError: If nothing would be repeated.
        """
        seed = checked_integer("seed", seed)
        blocks = Blocks(**find_files(paths), packing="whole")
        if repeat and not blocks.num_documents:
            raise ValueError("there are no documents, so repeating them would never end; pack some first")
        arguments = {"repeat": repeat, "shuffle_seed": seed if shuffle else None}
        execution = {"paths": [os.fspath(path) for path in blocks.paths]}
        identity = {"fingerprint": blocks.fingerprint}
        return cls(recipe.Node("from_pbin", arguments, execution, identity=identity))

    @classmethod
    def from_sequence(
        cls, sequence: Sequence[Any], repeat: bool = False, shuffle: bool = False, shuffle_seed: int = 42
    ) -> Self:
        """Yields the items of a sequence; with ``shuffle``, in another order in every epoch."""
        if repeat and len(sequence) == 0:
            raise ValueError(
                "the sequence is empty, so repeating it would never end; give at least one sample"
            )
        seed = shuffle_seed if shuffle else None
        source = samples.SequenceSamples(sequence, repeat=repeat, seed=seed)
        identity = {"source": "sequence", "length": len(sequence), "repeat": repeat, "shuffle_seed": seed}
        return cls(recipe.of_samples(source, identity))

    @classmethod
    def from_iterable(cls, iterable: Iterable[Any], repeat: bool = False) -> Self:
        """Yields the items of an iterable that is the same in every iteration.

        Resuming iterates from its start and discards.
        """
        source = samples.IterableSamples(iterable, repeat=repeat)
        identity = {"source": "iterable", "repeat": repeat}
        return cls(recipe.of_samples(source, identity))

    @classmethod
    def from_huggingface(cls, dataset: Any, repeat: bool = False) -> Self:
        """Yields the samples of a dataset of Hugging Face `datasets`.

        A streamed one (``IterableDataset``) resumes by its own state; a new epoch calls its ``set_epoch``.
        Shuffle it here, with ``shuffle``: `datasets` loses the content of its own buffer when it resumes.
        """
        if not huggingface.is_iterable_dataset(dataset):
            return cls.from_sequence(dataset, repeat=repeat)
        source = huggingface.IterableDatasetSamples(dataset, repeat=repeat)
        identity = {"source": "huggingface", "features": str(dataset.features), "repeat": repeat}
        return cls(recipe.of_samples(source, identity))

    @classmethod
    def from_mosaicml(cls, mosaicml_dataset: Any, repeat: bool = False) -> Self:
        """Yields the samples of MosaicML's ``StreamingDataset``, which resumes by its own state.

        Only one iterator at a time may read it.
        """
        source = mosaicml.StreamingDatasetSamples(mosaicml_dataset, repeat=repeat)
        identity = {"source": "mosaicml", "repeat": repeat}
        return cls(recipe.of_samples(source, identity))


# Errors of reading name its arguments.
FROM_FILES = of_function(FromSources.from_files.__func__)  # type: ignore[attr-defined]


def _expanded(url: str | os.PathLike[str]) -> list[str]:
    """The inputs that a URL stands for; an existing path is never expanded."""
    name = os.fspath(url)
    return [name] if os.path.exists(name) else list(braceexpand(name))

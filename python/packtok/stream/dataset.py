"""The dataset of a stream, from its sources to batches: each method adds a step to its specification."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack

import torch
from torch.utils.data import IterableDataset

from packtok._packtok import Blocks, corpus_files
from packtok.choices import check_choice
from packtok.config.options import OPTIONS
from packtok.data.fields import check_pin_memory
from packtok.data.weights import exact_weights
from packtok.distributed import MeshDim, cpus_of_process, find_share
from packtok.integers import checked_integer, integer
from packtok.remedies import entered, of_function
from packtok.sources import find_files
from packtok.stream import functions, tokenizers
from packtok.stream.batching import Batching
from packtok.stream.functions import Calls
from packtok.stream.inputs import cache, huggingface, mosaicml, samples
from packtok.stream.inputs.braces import braceexpand
from packtok.stream.iterator import CheckpointableIterator
from packtok.stream.remote import without_credentials
from packtok.stream.spec import Spec, after

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

__all__ = [
    "FROM_FILES",
    "CheckpointableDataset",
    "FileFormat",
    "ParallelExecutorType",
    "Sample",
    "TokenArray",
    "concat_datasets",
    "interleave_datasets",
]

Sample = dict[str, Any]
TokenArray = Any
FileFormat = Literal["auto", "jsonl", "parquet", "arrow", "csv", "tsv", "text", "cbor"]
OnBadDocument = Literal["fail", "skip"]
ParallelExecutorType = Literal["process", "thread"]
StrPath = str | os.PathLike[str]

_MAX_DOCUMENT_BYTES: int = OPTIONS["max_document_bytes"].default
_DEFAULT_BATCHING = Batching()
# Files that a state lists by name; more files are recorded as a digest.
_MAX_LISTED = 64


class FunctionOptions(TypedDict, total=False):
    """Options of the methods that call a function."""

    rng: bool
    """Whether the function's second argument is a NumPy generator that depends on the sample's position."""
    seed: int
    """The seed of these generators, by default 42."""
    version: str
    """The text that a state records instead of the function's name and arguments."""


class ParallelOptions(FunctionOptions, total=False):
    """Options of the methods that call a function ahead of the stream."""

    keep_outputs: bool
    """Whether states hold finished outputs, for a function that returns others when it is called again."""


class RowFields(TypedDict, total=False):
    """Fields of rows that follow from their documents; docs/guides/token_dataset.md describes each."""

    labels: bool | Literal["aligned"]
    """The token after each token, of shape (n,) int64; with ``"aligned"``, the token itself."""
    position_ids: bool
    """The position of each token in its document's part of the row, of shape (n,) int64."""
    document_ids: bool
    """The number of the document of each token in its row, of shape (n,) int32; -1 in padding."""
    loss_mask: bool
    """Whether each token has a label, of shape (n,) bool."""
    cu_seqlens: bool
    """The boundaries of documents, (k + 1,) int32, and the int ``max_seqlen``; of a batch, over all rows."""


class CheckpointableDataset(IterableDataset[Any]):
    """A stream of samples, as a recipe: nothing is read before it is iterated.

    Sources are class methods, operators are methods that return a new dataset.
    """

    def __init__(self, spec: Spec, batching: Batching = _DEFAULT_BATCHING) -> None:
        """Use the class methods instead."""
        self._spec = spec
        self._batching = batching

    # --- sources ---

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
        listed = [urls] if isinstance(urls, str | os.PathLike) else list(urls)
        inputs = [path for url in listed for path in _expanded(url)]
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
        names = [[Path(path).name, num_bytes] for path, num_bytes in files]
        is_listed = len({name for name, _ in names}) == len(names) <= _MAX_LISTED
        arguments = {
            "inputs": [path for path, _ in files],
            "bytes": [num_bytes for _, num_bytes in files],
            "zstd_window_log": checked_integer("zstd_window_log", zstd_window_log, least=10, below=32),
            "format": chosen,
            "text_column": text_column,
            "num_active": checked_integer("n_active_shards", n_active_shards, least=1),
            "repeat": repeat,
            "shuffle_seed": seed if shuffle_shards or shuffle else None,
            "shuffles_documents": shuffle == "documents",
            "on_bad_document": on_bad_document,
            "max_document_bytes": checked_integer("max_document_bytes", max_document_bytes, least=1),
            "num_files": len(files),
            # A state lists few files by name, so that an error can name the file that differs.
            "files": names if is_listed else _digest(names),
        }
        return cls(after([], "from_files", arguments, remote_files))

    @classmethod
    def from_pbin(
        cls,
        paths: StrPath | Sequence[StrPath],
        repeat: bool = False,
        shuffle: bool = False,
        seed: int = 42,
        *,
        format: str | None = None,
        input_dtype: str | None = None,
        boundaries: str | None = None,
    ) -> Self:
        """Yields the documents of token files, with the column ``input_ids`` and their EOD.

        Args:
            paths: Files, folders, globs or a manifest, as for ``TokenDataset``.
            repeat: Whether to start again at the end.
            shuffle: Whether every epoch has a permutation of all documents.
            seed: The seed of the permutations.
            format: As in ``TokenDataset``.
            input_dtype: As in ``TokenDataset``.
            boundaries: As in ``TokenDataset``.

        Raises:
            OSError: If a file is missing or unreadable.
            ValueError: If nothing would be repeated; at the first sample, if a file has a loss mask, which
                batches would not have.
        """
        seed = checked_integer("seed", seed)
        read_as = (format, input_dtype, boundaries)
        files: dict[str, Any] = {**find_files(paths), "read_as": read_as}
        blocks = Blocks(**files, packing="whole")
        if repeat and not blocks.num_documents:
            raise ValueError("there are no documents, so repeating them would never end; pack some first")
        arguments = {
            "paths": [os.fspath(path) for path in blocks.paths],
            "read_as": read_as,
            "repeat": repeat,
            "shuffle_seed": seed if shuffle else None,
            "fingerprint": blocks.fingerprint,
        }
        return cls(after([], "from_pbin", arguments))

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
        identity = {"length": len(sequence), "repeat": bool(repeat), "shuffle_seed": seed}
        return cls(_of_samples("sequence", source, identity))

    @classmethod
    def from_iterable(cls, iterable: Iterable[Any], repeat: bool = False) -> Self:
        """Yields the items of an iterable that is the same in every iteration.

        Resuming iterates from its start and discards.
        """
        source = samples.IterableSamples(iterable, repeat=repeat)
        return cls(_of_samples("iterable", source, {"repeat": bool(repeat)}))

    @classmethod
    def from_huggingface(cls, dataset: Any, repeat: bool = False) -> Self:
        """Yields the samples of a dataset of Hugging Face `datasets`.

        A streamed one (``IterableDataset``) resumes by its own state; a new epoch calls its ``set_epoch``.
        Shuffle it here, with ``shuffle``: `datasets` loses the content of its own buffer when it resumes.
        """
        if not huggingface.is_iterable_dataset(dataset):
            return cls.from_sequence(dataset, repeat=repeat)
        source = huggingface.IterableDatasetSamples(dataset, repeat=repeat)
        identity = {"features": str(dataset.features), "repeat": bool(repeat)}
        return cls(_of_samples("huggingface", source, identity))

    @classmethod
    def from_mosaicml(cls, mosaicml_dataset: Any, repeat: bool = False) -> Self:
        """Yields the samples of MosaicML's ``StreamingDataset``, which resumes by its own state.

        Only one iterator at a time may read it.
        """
        source = mosaicml.StreamingDatasetSamples(mosaicml_dataset, repeat=repeat)
        return cls(_of_samples("mosaicml", source, {"repeat": bool(repeat)}))

    # --- tokens and rows ---

    def tokenize(
        self,
        tokenizer: Any,
        tokenizer_kwargs: Mapping[str, Any] | None = None,
        target_column: str = "text",
        parallel: bool = True,
        max_workers: int = 1,
        prefetch_factor: int = 10,
        ordered: bool = True,
        executor_type: ParallelExecutorType = "thread",
        *,
        add_special_tokens_from_config: bool = False,
    ) -> Self:
        """Adds the columns ``input_ids`` and ``attention_mask``, lists, for the text in ``target_column``.

        ``tokenizer`` is a ``packtok.Tokenizer``, a path or name, or a fast tokenizer of Hugging Face: all use
        packtok's engine on all CPUs. Any other callable is called as it is, and returns a dict of columns.

        ``tokenizer_kwargs`` may contain ``add_special_tokens``, ``truncation`` with ``max_length``,
        ``return_attention_mask``, and ``return_tensors``, which makes columns of shape (1, n) as Hugging
        Face does. Any other argument may have the value that changes nothing, such as ``padding=False``.
        ``add_special_tokens_from_config`` is that of `packtok.Tokenizer.from_pretrained`.

        Raises:
            ValueError: If an argument of the tokenizer is not supported.
        """
        engine = tokenizers.tokenizer_of(
            tokenizer, add_special_tokens_from_config=add_special_tokens_from_config
        )
        if engine is None:
            return self._tokenized_by_call(
                tokenizer,
                tokenizer_kwargs,
                target_column,
                parallel,
                max_workers,
                prefetch_factor,
                executor_type,
            )
        del parallel, max_workers, prefetch_factor, ordered, executor_type
        options = dict(tokenizer_kwargs or {})
        add_special_tokens = options.pop("add_special_tokens", True)
        truncation, max_length = options.pop("truncation", False), options.pop("max_length", None)
        has_mask = options.pop("return_attention_mask", None) is not False
        form = tokenizers.form_of(options.pop("return_tensors", None))
        tokenizers.check_without_effect(options)
        check_choice("truncation", truncation, (True, False, "longest_first", "do_not_truncate"))
        truncation = truncation in (True, "longest_first")
        if truncation != (max_length is not None):
            raise ValueError(
                "truncation and max_length in tokenizer_kwargs need each other; give both or none"
            )
        arguments = {
            "add_special_tokens": bool(add_special_tokens),
            "truncate_to": max_length if truncation else None,
            "text_column": target_column,
            "mask_column": "attention_mask" if has_mask else None,
            "ensured": [None, None],
            "max_document_bytes": _max_document_bytes(self._spec),
            "drops_record": False,
            "form": form,
            "tokenizer": engine.fingerprint,
        }
        return self._then("tokenize", arguments, engine)

    def _tokenized_by_call(
        self,
        tokenizer: Callable[..., Mapping[str, Any]],
        tokenizer_kwargs: Mapping[str, Any] | None,
        target_column: str,
        parallel: bool,
        max_workers: int,
        prefetch_factor: int,
        executor_type: ParallelExecutorType,
    ) -> Self:
        call = tokenizers.Tokenized(tokenizer, dict(tokenizer_kwargs or {}), target_column)
        if not parallel:
            return self.map(call)
        return self.parallel_map(call, max_workers, prefetch_factor, True, executor_type)

    def add_bos_eos(
        self, bos_token_id: int | None, eos_token_id: int | None, target_column: str = "input_ids"
    ) -> Self:
        """Adds these ids at the start and at the end of every document, whether or not they are there.

        ``target_column`` becomes a tensor.

        Raises:
            ValueError: If one is above 2**32 - 1.
        """
        for name, id_ in (("bos_token_id", bos_token_id), ("eos_token_id", eos_token_id)):
            if id_ is not None and integer(name, id_) >= 1 << 32:
                raise ValueError(f"{name} is {id_}, expected at most 4294967295")
        return self._ends(bos_token_id, eos_token_id, target_column, always=True)

    def ensure_bos_eos(self, tokenizer: Any, target_column: str = "input_ids") -> Self:
        """Adds the tokenizer's BOS and EOS to every document that lacks them.

        If both are the same token and the document has it at its start or end, nothing is added; if it has
        neither, the token is added at the end. ``target_column`` becomes a tensor.

        Raises:
            ValueError: If the tokenizer has neither token.
        """
        bos_id, eos_id = tokenizers.special_ids(tokenizer)
        last = self._spec.steps[-1]
        is_plain = last["op"] == "tokenize" and last["ensured"] == [None, None]
        if is_plain and target_column == "input_ids":
            spec = self._spec.with_arguments(ensured=[bos_id, eos_id], form="tensor")
            return type(self)(spec, self._batching)
        return self._ends(bos_id, eos_id, target_column, always=False)

    def _ends(self, bos_id: int | None, eos_id: int | None, column: str, *, always: bool) -> Self:
        arguments = {"column": column, "ends": [bos_id, eos_id], "always": always}
        return self._then("ends", arguments)

    def chunk(
        self,
        chunk_length: int,
        target_columns: Sequence[str] = ("input_ids",),
        drop_remainder: bool = True,
        **fields: Unpack[RowFields],
    ) -> Self:
        """Divides every document into rows of ``chunk_length`` tokens; no row has tokens of two documents.

        Rows have ``fields`` in addition to ``target_columns``; the first of these is that of the ids.
        """
        return self._rows("chunk", chunk_length, target_columns, drop_remainder, fields)

    def concat_chunk(
        self,
        chunk_length: int,
        target_columns: Sequence[str] = ("input_ids",),
        drop_remainder: bool = True,
        **fields: Unpack[RowFields],
    ) -> Self:
        """Divides the tokens of all documents, one after the other, into rows of ``chunk_length`` tokens.

        Rows have ``fields`` in addition to ``target_columns``; the first of these is that of the ids. With
        labels, they are the items of ``TokenDataset`` for the same documents.
        """
        return self._rows("concat_chunk", chunk_length, target_columns, drop_remainder, fields)

    def pack_chunk(
        self,
        chunk_length: int,
        target_columns: Sequence[str] = ("input_ids",),
        discard_long_samples: bool = False,
        *,
        strategy: Literal["next_fit", "best_fit"] = "next_fit",
        window: int = 1000,
        **fields: Unpack[RowFields],
    ) -> Self:
        """Puts complete documents into rows of at most ``chunk_length`` tokens.

        ``"next_fit"`` puts as many as fit into a row, in their order; a longer document is truncated, or
        dropped with ``discard_long_samples``. ``"best_fit"`` reads ``window`` documents and combines those
        that fit together; a longer document is divided into full rows and a rest: no token is dropped.

        Rows have ``fields`` in addition to ``target_columns``; the first of these is that of the ids.

        Raises:
            ValueError: If an argument is not valid.
        """
        check_choice("strategy", strategy, ("next_fit", "best_fit"))
        more: dict[str, Any] = {"strategy": strategy, "discard_long": discard_long_samples}
        if strategy == "best_fit":
            if discard_long_samples:
                raise ValueError("best_fit divides long documents; leave discard_long_samples out")
            more = {"strategy": strategy, "window": checked_integer("window", window, least=1)}
        return self._rows("pack_chunk", chunk_length, target_columns, True, fields, **more)

    def pad(self, pad_values: Mapping[str, int], chunk_length: int, **fields: Unpack[RowFields]) -> Self:
        """Extends the columns of ``pad_values`` to ``chunk_length`` tokens with their values.

        ``fields`` that rows of this stream have, or that are requested here, cover the padding too. In
        samples that a function returned, only ``pad_values`` are extended.

        Raises:
            ValueError: If there are no columns; while iterating, if one is missing or longer, or if fields
                are requested for what a function returned.
        """
        if not pad_values:
            raise ValueError("pad_values is empty, expected at least one column")
        arguments = {
            "values": [[name, integer(name, value)] for name, value in pad_values.items()],
            "chunk_length": checked_integer("chunk_length", chunk_length, least=1),
            "fields": _row_fields(fields) if fields else None,
        }
        return self._then("pad", arguments)

    def _rows(
        self,
        op: str,
        length: int,
        columns: Sequence[str],
        drop_remainder: bool,
        fields: RowFields,
        **more: Any,
    ) -> Self:
        spec, names = self._spec, [columns] if isinstance(columns, str) else list(columns)
        if not names:
            raise ValueError("target_columns is empty, expected at least one column")
        if spec.steps[-1]["op"] == "tokenize":
            mask_column = spec.steps[-1]["mask_column"] if "attention_mask" in names else None
            spec = spec.with_arguments(mask_column=mask_column, drops_record=True)
        arguments = {
            "chunk_length": checked_integer("chunk_length", length, least=1),
            "columns": names,
            "drop_remainder": drop_remainder,
            "fields": _row_fields(fields),
            **more,
        }
        return type(self)(spec.then(op, arguments), self._batching)

    # --- functions ---

    def map(self, fn: Callable[..., Any], **options: Unpack[FunctionOptions]) -> Self:
        """Replaces each sample by what ``fn`` returns, which must not be ``None``."""
        return self._call("map", fn, functions.mapped, options)

    def filter(self, fn: Callable[..., Any], **options: Unpack[FunctionOptions]) -> Self:
        """Keeps the samples for which ``fn`` returns something true."""
        return self._call("filter", fn, functions.filtered, options)

    def filter_map(self, fn: Callable[..., Any], **options: Unpack[FunctionOptions]) -> Self:
        """Replaces each sample by what ``fn`` returns, and drops it if that is ``None``."""
        return self._call("filter_map", fn, functions.mapped_or_dropped, options)

    def parallel_map(
        self,
        fn: Callable[..., Any],
        max_workers: int | None = None,
        prefetch_factor: int = 10,
        ordered: bool = True,
        executor_type: ParallelExecutorType = "process",
        **options: Unpack[ParallelOptions],
    ) -> Self:
        """As ``map``, by several threads or processes."""
        arguments = (max_workers, prefetch_factor, ordered, executor_type, options)
        return self._called_ahead("map", fn, functions.mapped, *arguments)

    def parallel_filter(
        self,
        fn: Callable[..., Any],
        max_workers: int | None = None,
        prefetch_factor: int = 10,
        ordered: bool = True,
        executor_type: ParallelExecutorType = "process",
        **options: Unpack[ParallelOptions],
    ) -> Self:
        """As ``filter``, by several threads or processes."""
        arguments = (max_workers, prefetch_factor, ordered, executor_type, options)
        return self._called_ahead("filter", fn, functions.filtered, *arguments)

    def parallel_filter_map(
        self,
        fn: Callable[..., Any],
        max_workers: int | None = None,
        prefetch_factor: int = 10,
        ordered: bool = True,
        executor_type: ParallelExecutorType = "process",
        **options: Unpack[ParallelOptions],
    ) -> Self:
        """As ``filter_map``, by several threads or processes."""
        arguments = (max_workers, prefetch_factor, ordered, executor_type, options)
        return self._called_ahead("filter_map", fn, functions.mapped_or_dropped, *arguments)

    def _called_ahead(
        self,
        name: str,
        fn: Callable[..., Any],
        keep: Callable[[Any, Any], Any],
        max_workers: int | None,
        prefetch_factor: int,
        ordered: bool,
        executor_type: ParallelExecutorType,
        options: Mapping[str, Any],
    ) -> Self:
        del ordered  # The ordered result is one of the orders that ``ordered=False`` allows.
        if max_workers is None:
            max_workers = cpus_of_process()
        num_workers = checked_integer("max_workers", max_workers, least=1)
        num_samples = checked_integer("prefetch_factor", prefetch_factor, least=1)
        if executor_type not in ("process", "thread"):
            raise ValueError(f"executor_type is {executor_type!r}, expected 'process' or 'thread'")
        num_processes = num_workers if executor_type == "process" else 0
        ahead = {"num_workers": num_workers, "job_samples": num_samples}
        return self._call(name, fn, keep, options, num_processes, ahead)

    def _call(
        self,
        name: str,
        fn: Callable[..., Any],
        keep: Callable[[Any, Any], Any],
        options: Mapping[str, Any],
        num_processes: int = 0,
        ahead: Mapping[str, int] | None = None,
    ) -> Self:
        functions.check_options(options)
        keeps_outputs = bool(options.get("keep_outputs"))
        if keeps_outputs and ahead is None:
            raise TypeError("keep_outputs is an option of parallel functions; use parallel_map")
        seed = int(options.get("seed", 42)) if options.get("rng") else None
        version = options.get("version")
        identity = {"function": version} if version else functions.identity_of(fn)
        arguments = {"method": name, "seed": seed, "ahead": ahead, "keeps_outputs": keeps_outputs, **identity}
        calls = Calls(fn, keep, num_processes, seed, keeps_outputs=keeps_outputs, batching=self._batching)
        return self._then("call", arguments, calls)

    # --- order, batches and ranks ---

    def __add__(self, other: Any) -> CheckpointableDataset:  # type: ignore[override]
        return concat_datasets([self, other])

    def shuffle(self, buffer_size: int, seed: int = 42) -> CheckpointableDataset:
        """Shuffles through a buffer: a random sample of it leaves, and the next one takes its place."""
        arguments = {
            "buffer_size": checked_integer("buffer_size", buffer_size, least=1),
            "seed": checked_integer("seed", seed),
        }
        return self._then("shuffle", arguments)

    def batch(
        self,
        batch_size: int | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        drop_last: bool = False,
        *,
        global_batch_size: int | None = None,
        pin_memory: bool = False,
    ) -> CheckpointableDataset:
        """Groups samples; by default as torch's ``default_collate``, with ``cu_seqlens`` over all rows.

        After ``distribute``, ``global_batch_size`` is the number of samples of all ranks together, which the
        number of ranks must divide. ``batch_size`` is that of one rank.

        Rows of tokens of equal lengths are written to one piece of memory, which a later batch uses again
        once nothing refers to this one. With ``pin_memory``, which needs CUDA, they are written to pinned
        memory, and all other tensors of the batch are copied to it.
        """
        check_pin_memory(pin_memory=pin_memory)
        sizes = {"batch_size": batch_size, "global_batch_size": global_batch_size}
        arguments = {
            **{
                name: checked_integer(name, size, least=1) for name, size in sizes.items() if size is not None
            },
            "drop_last": drop_last,
            "collate_fn": None if collate_fn is None else functions.described_function(collate_fn),
        }
        # Batches of batches: a function makes the inner ones complete samples.
        source = self.map(_same) if self._spec.flow["is_batched"] else self
        return CheckpointableDataset(source._spec.then("batch", arguments), Batching(collate_fn, pin_memory))

    def distribute(
        self,
        lanes: int,
        rank: int | None = None,
        num_replicas: int | None = None,
        device_mesh: DeviceMesh | None = None,
        dp_dim: MeshDim | None = None,
        *,
        at_epoch_end: Literal["short", "drop"] = "short",
    ) -> CheckpointableDataset:
        """Divides the data into ``lanes``, runs what comes before in each of them, and joins their rows.

        Row p is row p // lanes of lane p % lanes, and rank r of R returns the rows whose number modulo R is
        r. The stream of all ranks depends on ``lanes``, but not on the number of ranks. If that divides
        ``lanes`` and the data are repeated, a rank reads its own lanes only; otherwise every rank computes
        all lanes, because which row follows the end of a lane depends on all of them.

        JSON lines, Parquet and Arrow are cut, so that lanes have equal parts. Any other file, and any
        compressed file, is read by one lane, so that lanes have about as many bytes; ``report`` has the bytes
        of each lane.

        After it, ``batch``, ``pad``, ``take``, ``stride``, ``enumerate`` and functions can follow; ``take``
        and ``enumerate`` count the rows of all ranks.

        Args:
            lanes: Into how many parts the data are divided; fixed for a run, a multiple of the ranks.
            rank: The rank; by default, that of the process group or of the environment.
            num_replicas: The number of ranks; needs ``rank``.
            device_mesh: A mesh whose dimension ``dp_dim`` divides the data.
            dp_dim: Name or number of a dimension of the mesh.
            at_epoch_end: What becomes of the last rows if they are fewer than the ranks. With ``"short"``,
                every row is returned once, and all ranks return as many batches: the last one of a rank may
                have fewer rows, or none. With ``"drop"``, these rows are left out.

        Raises:
            ValueError: If an argument is not valid.
        """
        check_choice("at_epoch_end", at_epoch_end, ("short", "drop"))
        share = find_share(rank, num_replicas, device_mesh=device_mesh, dp_dim=dp_dim)
        arguments = {
            "num_lanes": checked_integer("lanes", lanes, least=1),
            "may_be_short": at_epoch_end == "short",
            "division": "equal",
            "rank": share.rank,
            "num_ranks": share.num_replicas,
        }
        is_found = rank is None and device_mesh is None
        found_rank = (share.rank, share.num_replicas) if is_found else None
        return type(self)(self._spec.then("distribute", arguments, found_rank=found_rank), self._batching)

    def take(self, max_count: int) -> CheckpointableDataset:
        """Ends after ``max_count`` samples."""
        return self._then("take", {"max_count": checked_integer("max_count", max_count)})

    def skip(self, count: int) -> CheckpointableDataset:
        """Passes over the first ``count`` samples: ``take(n)`` and ``skip(n)`` divide a stream into two.

        A repeated stream passes over them once, and not in every epoch. They are read and computed, but not
        again when a state is loaded: call ``skip`` before ``tokenize`` if the tokens are not needed.

        Before ``distribute``, each lane counts its own samples, as for ``take``: ``lanes`` times ``count``
        samples are passed over in all, for any number of ranks. It cannot follow ``distribute``, because
        ranks would then have different numbers of rows.

        Raises:
            ValueError: If ``count`` is negative, or the samples are divided among ranks.
        """
        return self._then("skip", {"count": checked_integer("count", count)})

    def stride(self, interval: int, offset: int) -> CheckpointableDataset:
        """Yields the samples whose number modulo ``interval`` is ``offset``."""
        interval = checked_integer("interval", interval, least=1)
        offset = checked_integer("offset", offset, below=interval)
        return self._then("stride", {"interval": interval, "offset": offset})

    def cache(self) -> CheckpointableDataset:
        """Keeps the samples in memory once they were computed; all iterators of this dataset share them.

        Raises:
            ValueError: If the samples have no end, or are divided among ranks.
        """
        source = cache.CachedSamples(self.iter)
        identity = {"recipe": self._spec.steps, "repeat": False}
        return CheckpointableDataset(_of_samples("cache", source, identity))

    def enumerate(self, count_column: str = "step") -> CheckpointableDataset:
        """Adds the number of the sample, from 0, as a column."""
        return self._then("enumerate", {"column": count_column})

    # --- iteration ---

    def iter(
        self, state_dict: Mapping[str, Any] | None = None, *, allow: Sequence[str] = ()
    ) -> CheckpointableIterator:
        """Returns an iterator that starts at the beginning, or at ``state_dict``, which it does not change.

        Args:
            state_dict: What ``state_dict`` of an iterator of the same recipe returned.
            allow: Arguments that may differ from those of the state, as ``op.argument``.

        Raises:
            ValueError: If the state is damaged or of another recipe.
        """
        return CheckpointableIterator(self._spec, self._batching, state_dict, allow, FROM_FILES)

    def __iter__(self) -> CheckpointableIterator:
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            return self.iter()
        # Each worker of a DataLoader would repeat the work, because threads of this process do it.
        warnings.warn(
            f"the {worker.num_workers} workers of a DataLoader each compute the whole stream; set "
            "num_workers=0, because the threads of packtok.stream already work in the background",
            stacklevel=2,
        )
        return self.stride(worker.num_workers, worker.id).iter()

    def _then(self, op: str, arguments: Mapping[str, Any], object: Any = None) -> Self:
        return type(self)(self._spec.then(op, arguments, object), self._batching)


# Errors of reading name its arguments.
FROM_FILES = of_function(CheckpointableDataset.from_files.__func__)  # type: ignore[attr-defined]


def interleave_datasets(
    sources: Sequence[CheckpointableDataset],
    weights: Sequence[float] | None = None,
    chunk_size: int = 1024,
) -> CheckpointableDataset:
    """Interleaves datasets in fixed proportions, by the order of ``packtok.Mixture``; ends with the first.

    A dataset of weight 0 is never read. ``chunk_size`` is accepted for compatibility: the order has no table.

    Raises:
        ValueError: If there are no datasets, not one weight for each, or no weight above 0.
    """
    del chunk_size
    if not sources:
        raise ValueError("there are no datasets to interleave; give at least one")
    shares = [1.0] * len(sources) if weights is None else list(weights)
    if len(shares) != len(sources):
        raise ValueError(f"there are {len(shares)} weights for {len(sources)} datasets; give one for each")
    if not any(shares):
        raise ValueError("all weights are 0; give at least one above 0")
    names = {f"dataset {i}": weight for i, weight in enumerate(shares) if weight != 0}
    specs = [source._spec for source, weight in zip(sources, shares, strict=True) if weight != 0]
    spec = after(specs, "interleave", {"weights": exact_weights(names)})
    return CheckpointableDataset(spec, _common_batching(sources))


def concat_datasets(sources: Sequence[CheckpointableDataset]) -> CheckpointableDataset:
    """Yields the samples of one dataset after the other.

    Raises:
        ValueError: If there are no datasets.
    """
    if not sources:
        raise ValueError("there are no datasets to concatenate; give at least one")
    spec = after([source._spec for source in sources], "concat", {})
    return CheckpointableDataset(spec, _common_batching(sources))


def _of_samples(kind: str, source: Any, identity: Mapping[str, Any]) -> Spec:
    """Returns the stream of a source in Python."""
    return after([], "from_samples", {"source": kind, **identity}, source)


def _common_batching(sources: Sequence[CheckpointableDataset]) -> Batching:
    """Returns the batching that all sources share."""
    batchings = {source._batching for source in sources}
    if len(batchings) > 1:
        raise ValueError("the datasets have different collate_fn or pin_memory; combine them before batch")
    return batchings.pop()


def _expanded(url: str | os.PathLike[str]) -> list[str]:
    """Returns the inputs that a URL stands for; an existing path is never expanded."""
    name = os.fspath(url)
    return [name] if os.path.exists(name) else list(braceexpand(name))


def _row_fields(fields: RowFields) -> dict[str, Any]:
    """Returns the fields in the form of the core."""
    known = RowFields.__annotations__
    if unknown := sorted(set(fields) - set(known)):
        raise TypeError(f"unexpected argument {unknown[0]!r}; fields of rows are {', '.join(known)}")
    labels = fields.get("labels", False)
    kinds = {True: "next", False: None, "aligned": "aligned"}
    check_choice("labels", labels, tuple(kinds))
    return {**{name: bool(fields.get(name)) for name in known}, "labels": kinds[labels]}


def _max_document_bytes(spec: Spec) -> int:
    """Returns the longest record that any source of ``spec`` allows, at least the limit of `pack`."""
    limits: list[int] = [step.get("max_document_bytes", 0) for step in spec.steps]
    return max(_MAX_DOCUMENT_BYTES, *limits)


def _digest(files: Sequence[Any]) -> str:
    """Returns a short digest of the names and lengths of files."""
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]


def _same(sample: Any) -> Any:
    return sample

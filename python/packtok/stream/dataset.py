"""The dataset of a stream: sources and operators, each of which returns a new dataset."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.utils.data import IterableDataset

from packtok._packtok import Tokenizer, stream_files
from packtok.data.mixture import exact_weights
from packtok.distributed import MeshDim, cpus_of_process, find_share
from packtok.integers import checked_integer
from packtok.stream import functions, recipe, samples
from packtok.stream.braces import braceexpand
from packtok.stream.functions import Calls
from packtok.stream.iterator import CheckpointableIterator
from packtok.stream.tokens import ids_of

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

__all__ = [
    "CheckpointableDataset",
    "FileFormat",
    "ParallelExecutorType",
    "Sample",
    "TokenArray",
    "concat_datasets",
    "interleave_datasets",
]

FileFormat = Literal["auto", "jsonl", "parquet", "arrow", "csv", "tsv", "text"]
ParallelExecutorType = Literal["process", "thread"]
OnBadDocument = Literal["fail", "skip"]
Sample = dict[str, Any]
TokenArray = Any
_MAX_DOCUMENT_BYTES = 1 << 30
# Samples that a function on the caller's thread receives at once.
_CALLED_SAMPLES = 64
# What has no buffer, so that a state is the same for any number of ranks.
_AFTER_DISTRIBUTE = frozenset({"call", "batch", "take", "stride", "enumerate"})


class CheckpointableDataset(IterableDataset[Any]):
    """A stream of samples, as a recipe: nothing is read before it is iterated.

    Sources are static methods, operators are methods that return a new dataset.
    """

    def __init__(self, node: recipe.Node, collate_fn: Callable[[list[Any]], Any] | None = None) -> None:
        """Use the static methods instead."""
        self._node = node
        self._collate_fn = collate_fn

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
        return CheckpointableIterator(self._node, self._collate_fn, state_dict, allow)

    def __iter__(self) -> CheckpointableIterator:
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            return self.iter()
        # Threads of this process do the work, so workers of a DataLoader repeat it.
        warnings.warn(
            f"the {worker.num_workers} workers of a DataLoader each compute the whole stream; set "
            "num_workers=0, because the threads of packtok.stream already work in the background",
            stacklevel=2,
        )
        return self.stride(worker.num_workers, worker.id).iter()

    def __add__(self, other: Any) -> CheckpointableDataset:  # type: ignore[override]
        return concat_datasets([self, other])

    # --- sources ---

    @staticmethod
    def from_files(
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
    ) -> CheckpointableDataset:
        """Reads files in turns: one sample of each of ``n_active_shards``, and again.

        Args:
            urls: Paths, globs, folders or URLs; braces are expanded.
            repeat: Whether to start again at the end.
            shuffle_shards: Whether the files are in another order in every epoch.
            format: The format of all files; by default that of their names or contents.
            n_active_shards: Files that are open at once.
            n_standby_shards: Accepted for compatibility; files are opened when they are needed.
            timeout: Accepted for compatibility; stores are retried by their own policy.
            n_prefetch_samples: Accepted for compatibility; a file is read ahead in chunks.
            seed: The seed of the order of files.
            text_column: The column of a table, or the name for the text of a file of another format.
            on_bad_document: Whether a malformed document is an error, or is counted and left out.

        Raises:
            OSError: If a file is missing or unreadable.
            ValueError: If an argument is not valid, or nothing would be repeated.
        """
        del n_standby_shards, timeout, n_prefetch_samples
        given = [urls] if isinstance(urls, str | os.PathLike) else list(urls)
        inputs = [one for url in given for one in _expanded(url)]
        if not inputs:
            if repeat:
                raise ValueError("there are no files, so repeating them would never end; give at least one")
            return CheckpointableDataset.from_sequence([])
        chosen = None if format == "auto" else format
        files = stream_files(inputs, chosen)
        if repeat and not any(num_bytes for _, num_bytes in files):
            raise ValueError(
                "all files are empty, so repeating them would never end; give files with samples"
            )
        arguments = {
            "inputs": inputs,
            "format": chosen,
            "text_column": text_column,
            "num_active": checked_integer("n_active_shards", n_active_shards, least=1),
            "repeat": repeat,
            "shuffle_seed": seed if shuffle_shards else None,
            "max_document_bytes": _MAX_DOCUMENT_BYTES,
        }
        names = [(Path(path).name, num_bytes) for path, num_bytes in files]
        identity = {
            "num_files": len(files),
            "files": recipe.digest(names),
            "on_bad_document": on_bad_document,
        }
        return CheckpointableDataset(recipe.Node("from_files", arguments, identity=identity))

    @staticmethod
    def from_sequence(
        sequence: Sequence[Any], repeat: bool = False, shuffle: bool = False, shuffle_seed: int = 42
    ) -> CheckpointableDataset:
        """Yields the items of a sequence; with ``shuffle``, in another order in every epoch."""
        if repeat and len(sequence) == 0:
            raise ValueError(
                "the sequence is empty, so repeating it would never end; give at least one sample"
            )
        seed = shuffle_seed if shuffle else None
        source = samples.SequenceSamples(sequence, repeat=repeat, seed=seed)
        identity = {"source": "sequence", "length": len(sequence), "repeat": repeat, "shuffle_seed": seed}
        return CheckpointableDataset(recipe.Node("from_samples", object=source, identity=identity))

    @staticmethod
    def from_iterable(iterable: Iterable[Any], repeat: bool = False) -> CheckpointableDataset:
        """Yields the items of an iterable that is the same in every iteration.

        Resuming iterates from its start and discards.
        """
        source = samples.IterableSamples(iterable, repeat=repeat)
        identity = {"source": "iterable", "repeat": repeat}
        return CheckpointableDataset(recipe.Node("from_samples", object=source, identity=identity))

    # --- functions ---

    def map(self, fn: Callable[[Any], Any]) -> CheckpointableDataset:
        """Replaces each sample by what ``fn`` returns, which must not be ``None``."""
        return self._called("map", fn, functions.mapped)

    def filter(self, fn: Callable[[Any], Any]) -> CheckpointableDataset:
        """Keeps the samples for which ``fn`` returns something true."""
        return self._called("filter", fn, functions.filtered)

    def filter_map(self, fn: Callable[[Any], Any]) -> CheckpointableDataset:
        """Replaces each sample by what ``fn`` returns, and drops it if that is ``None``."""
        return self._called("filter_map", fn, functions.mapped_or_dropped)

    def parallel_map(
        self,
        fn: Callable[[Any], Any],
        max_workers: int | None = None,
        prefetch_factor: int = 10,
        ordered: bool = True,
        executor_type: ParallelExecutorType = "process",
    ) -> CheckpointableDataset:
        """As ``map``, by several threads or processes."""
        given = (max_workers, prefetch_factor, ordered, executor_type)
        return self._called_ahead("map", fn, functions.mapped, *given)

    def parallel_filter(
        self,
        fn: Callable[[Any], Any],
        max_workers: int | None = None,
        prefetch_factor: int = 10,
        ordered: bool = True,
        executor_type: ParallelExecutorType = "process",
    ) -> CheckpointableDataset:
        """As ``filter``, by several threads or processes."""
        given = (max_workers, prefetch_factor, ordered, executor_type)
        return self._called_ahead("filter", fn, functions.filtered, *given)

    def parallel_filter_map(
        self,
        fn: Callable[[Any], Any],
        max_workers: int | None = None,
        prefetch_factor: int = 10,
        ordered: bool = True,
        executor_type: ParallelExecutorType = "process",
    ) -> CheckpointableDataset:
        """As ``filter_map``, by several threads or processes."""
        given = (max_workers, prefetch_factor, ordered, executor_type)
        return self._called_ahead("filter_map", fn, functions.mapped_or_dropped, *given)

    # --- tokens ---

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
    ) -> CheckpointableDataset:
        """Adds the columns ``input_ids`` and ``attention_mask`` for the text in ``target_column``.

        ``tokenizer`` is a ``packtok.Tokenizer``, a path or name, or a fast tokenizer of Hugging Face: all use
        packtok's engine on all CPUs. Any other callable is called as it is, and returns a dict of columns.

        ``tokenizer_kwargs`` may contain ``add_special_tokens``, ``truncation`` with ``max_length``, and
        ``return_attention_mask``.

        Raises:
            ValueError: If an argument of the tokenizer is not supported.
        """
        found = _tokenizer_of(tokenizer)
        if found is None:
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
        has_mask = options.pop("return_attention_mask", True)
        if options:
            raise ValueError(
                f"tokenizer_kwargs has {', '.join(sorted(options))}, which packtok's engine does not "
                "support; leave it out, or give a callable"
            )
        if truncation and max_length is None:
            raise ValueError("truncation needs max_length in tokenizer_kwargs")
        arguments = {
            "add_special_tokens": bool(add_special_tokens),
            "truncate_to": max_length if truncation else None,
            "text_column": target_column,
            "mask_column": "attention_mask" if has_mask else None,
            "ensured": [None, None],
            "on_bad_document": self._node.identity.get("on_bad_document", "fail"),
            "max_document_bytes": _MAX_DOCUMENT_BYTES,
            "drops_record": False,
        }
        identity = {"tokenizer": found.fingerprint}
        return self._with(recipe.Node("tokenize", arguments, (self._node,), object=found, identity=identity))

    def _tokenized_by_call(
        self,
        tokenizer: Callable[..., Mapping[str, Any]],
        tokenizer_kwargs: Mapping[str, Any] | None,
        target_column: str,
        parallel: bool,
        max_workers: int,
        prefetch_factor: int,
        executor_type: ParallelExecutorType,
    ) -> CheckpointableDataset:
        call = _Tokenized(tokenizer, dict(tokenizer_kwargs or {}), target_column)
        if not parallel:
            return self.map(call)
        return self.parallel_map(call, max_workers, prefetch_factor, True, executor_type)

    def add_bos_eos(
        self, bos_tokens: int | None, eos_tokens: int | None, target_column: str = "input_ids"
    ) -> CheckpointableDataset:
        """Adds these ids at the start and at the end of every document, whether or not they are there."""
        return self.map(_Ensured(bos_tokens, eos_tokens, target_column, always=True))

    def ensure_bos_eos(self, tokenizer: Any, target_column: str = "input_ids") -> CheckpointableDataset:
        """Adds the tokenizer's BOS and EOS to every document that lacks them.

        If both are the same token and the document has it at its start or end, nothing is added; if it has
        neither, the token is added at the end.

        Raises:
            ValueError: If the tokenizer has neither token.
        """
        bos_id, eos_id = _special_ids(tokenizer)
        node = self._node
        is_plain = node.op == "tokenize" and node.arguments["ensured"] == [None, None]
        if is_plain and target_column == "input_ids":
            return self._with(replace(node, arguments={**node.arguments, "ensured": [bos_id, eos_id]}))
        return self.map(_Ensured(bos_id, eos_id, target_column, always=False))

    def chunk(
        self,
        chunk_length: int,
        target_columns: Sequence[str] = ("input_ids",),
        drop_remainder: bool = True,
    ) -> CheckpointableDataset:
        """Divides every document into rows of ``chunk_length`` tokens; no row has tokens of two documents."""
        return self._rows("chunk", chunk_length, target_columns, drop_remainder)

    def concat_chunk(
        self,
        chunk_length: int,
        target_columns: Sequence[str] = ("input_ids",),
        drop_remainder: bool = True,
    ) -> CheckpointableDataset:
        """Divides the tokens of all documents, one after the other, into rows of ``chunk_length`` tokens."""
        return self._rows("concat_chunk", chunk_length, target_columns, drop_remainder)

    def pack_chunk(
        self,
        chunk_length: int,
        target_columns: Sequence[str] = ("input_ids",),
        discard_long_samples: bool = False,
    ) -> CheckpointableDataset:
        """Puts as many documents as fit into a row of at most ``chunk_length`` tokens, in their order.

        A longer document is truncated, or dropped with ``discard_long_samples``.
        """
        return self._rows("pack_chunk", chunk_length, target_columns, True, discard_long=discard_long_samples)

    def pad(self, pad_values: Mapping[str, int], chunk_length: int) -> CheckpointableDataset:
        """Extends the columns of ``pad_values`` to ``chunk_length`` tokens with their values."""
        return self.map(_Padded(dict(pad_values), checked_integer("chunk_length", chunk_length, least=1)))

    # --- samples ---

    def shuffle(self, buffer_size: int, seed: int = 42) -> CheckpointableDataset:
        """Shuffles through a buffer: a random sample of it leaves, and the next one takes its place."""
        size = checked_integer("buffer_size", buffer_size, least=1)
        return self._with(recipe.Node("shuffle", {"buffer_size": size, "seed": seed}, (self._node,)))

    def batch(
        self,
        batch_size: int | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        drop_last: bool = False,
        *,
        global_batch_size: int | None = None,
    ) -> CheckpointableDataset:
        """Groups samples; by default as torch's ``default_collate``.

        After ``distribute``, ``global_batch_size`` is the number of samples of all ranks together, which the
        number of ranks must divide. ``batch_size`` is that of one rank.
        """
        if (batch_size is None) == (global_batch_size is None):
            raise ValueError("give either batch_size or global_batch_size")
        identity = {}
        if global_batch_size is not None:
            size = checked_integer("global_batch_size", global_batch_size, least=1)
            identity = {"global_batch_size": size}
            _, num_ranks = recipe.share_of(self._node) or (0, 1)
            if size % num_ranks:
                raise ValueError(f"global_batch_size is {size}, expected a multiple of the {num_ranks} ranks")
            size //= num_ranks
        else:
            size = checked_integer("batch_size", batch_size, least=1)
        arguments = {"batch_size": size, "drop_last": drop_last}
        node = recipe.Node("batch", arguments, (self._node,), identity=identity)
        return CheckpointableDataset(node, collate_fn)

    def distribute(
        self,
        lanes: int,
        rank: int | None = None,
        num_replicas: int | None = None,
        device_mesh: DeviceMesh | None = None,
        dp_dim: MeshDim | None = None,
    ) -> CheckpointableDataset:
        """Divides the data into ``lanes``, runs what comes before in each of them, and joins their rows.

        Row p is row p // lanes of lane p % lanes, and rank r of R returns the rows whose number modulo R is
        r. The stream of all ranks depends on ``lanes``, but not on the number of ranks. If that divides
        ``lanes`` and the data are repeated, a rank reads its own lanes only; otherwise every rank computes
        all lanes. If the data end, the last rows are left out if they are fewer than the ranks.

        After it, ``batch``, ``take``, ``stride``, ``enumerate`` and functions can follow; ``take`` and
        ``enumerate`` count the rows of all ranks.

        Args:
            lanes: Into how many parts the data are divided; fixed for a run, a multiple of the ranks.
            rank: The rank; by default, that of the process group or of the environment.
            num_replicas: The number of ranks; needs ``rank``.
            device_mesh: A mesh whose dimension ``dp_dim`` divides the data.
            dp_dim: Name or number of a dimension of the mesh.

        Raises:
            ValueError: If an argument is not valid.
        """
        share = find_share(rank, num_replicas, device_mesh=device_mesh, dp_dim=dp_dim)
        arguments = {
            "num_lanes": checked_integer("lanes", lanes, least=1),
            "rank": share.rank,
            "num_ranks": share.num_replicas,
            "is_endless": recipe.is_endless(self._node),
        }
        return self._with(recipe.Node("distribute", arguments, (self._node,)))

    def take(self, max_count: int) -> CheckpointableDataset:
        """Ends after ``max_count`` samples."""
        count = checked_integer("max_count", max_count)
        return self._with(recipe.Node("take", {"max_count": count}, (self._node,)))

    def stride(self, interval: int, offset: int) -> CheckpointableDataset:
        """Yields the samples whose number modulo ``interval`` is ``offset``."""
        interval = checked_integer("interval", interval, least=1)
        offset = checked_integer("offset", offset, below=interval)
        return self._with(recipe.Node("stride", {"interval": interval, "offset": offset}, (self._node,)))

    def enumerate(self, count_column: str = "step") -> CheckpointableDataset:
        """Adds the number of the sample, from 0, as a column."""
        return self._with(recipe.Node("enumerate", {"column": count_column}, (self._node,)))

    def _with(self, node: recipe.Node) -> CheckpointableDataset:
        if node.op not in _AFTER_DISTRIBUTE and any(recipe.share_of(one) for one in node.upstream):
            raise ValueError(
                f"{node.op} cannot follow distribute, because ranks would have other buffers; put it before"
            )
        return CheckpointableDataset(node, self._collate_fn)

    def _checked(self) -> recipe.Node:
        """The node before a function: records of files are checked, which tokenizing does by itself."""
        if self._node.op != "from_files":
            return self._node
        policy = self._node.identity["on_bad_document"]
        return recipe.Node("check", {"on_bad_document": policy}, (self._node,))

    def _called(
        self, name: str, fn: Callable[[Any], Any], keep: Callable[[Any, Any], Any]
    ) -> CheckpointableDataset:
        # After distribute, nothing may be ahead of the ranks' common row.
        is_distributed = recipe.share_of(self._node) is not None
        arguments = {"window": 0, "job_samples": 1 if is_distributed else _CALLED_SAMPLES}
        return self._call(name, fn, Calls(fn, keep), arguments)

    def _called_ahead(
        self,
        name: str,
        fn: Callable[[Any], Any],
        keep: Callable[[Any, Any], Any],
        max_workers: int | None,
        prefetch_factor: int,
        ordered: bool,
        executor_type: ParallelExecutorType,
    ) -> CheckpointableDataset:
        del ordered  # The order of the samples is one of those that are allowed without it.
        if max_workers is None:
            max_workers = cpus_of_process()
        num_workers = checked_integer("max_workers", max_workers, least=1)
        num_samples = checked_integer("prefetch_factor", prefetch_factor, least=1)
        if executor_type not in ("process", "thread"):
            raise ValueError(f"executor_type is {executor_type!r}, expected 'process' or 'thread'")
        if recipe.share_of(self._node) is not None:
            raise ValueError("a parallel function cannot follow distribute; put it before, or use map")
        num_processes = num_workers if executor_type == "process" else 0
        arguments = {"window": num_workers, "job_samples": num_samples}
        return self._call(name, fn, Calls(fn, keep, num_processes), arguments)

    def _call(
        self, name: str, fn: Callable[[Any], Any], calls: Calls, arguments: Mapping[str, Any]
    ) -> CheckpointableDataset:
        identity = {"method": name, "function": functions.name_of(fn)}
        return self._with(recipe.Node("call", arguments, (self._checked(),), object=calls, identity=identity))

    def _rows(
        self, op: str, length: int, columns: Sequence[str], drop_remainder: bool, **more: Any
    ) -> CheckpointableDataset:
        node, names = self._node, [columns] if isinstance(columns, str) else list(columns)
        if not names:
            raise ValueError("target_columns is empty, expected at least one column")
        if node.op == "tokenize":
            wanted = node.arguments["mask_column"] if "attention_mask" in names else None
            node = replace(node, arguments={**node.arguments, "drops_record": True, "mask_column": wanted})
        arguments = {
            "chunk_length": checked_integer("chunk_length", length, least=1),
            "columns": names,
            "drop_remainder": drop_remainder,
            **more,
        }
        return self._with(recipe.Node(op, arguments, (node,)))


def interleave_datasets(
    sources: Sequence[CheckpointableDataset], weights: Sequence[float] | None = None
) -> CheckpointableDataset:
    """Interleaves datasets in fixed proportions, by the order of ``packtok.Mixture``; ends with the first.

    A dataset of weight 0 is never read.

    Raises:
        ValueError: If there are no datasets, not one weight for each, or no weight above 0.
    """
    if not sources:
        raise ValueError("there are no datasets to interleave; give at least one")
    given = [1.0] * len(sources) if weights is None else list(weights)
    if len(given) != len(sources):
        raise ValueError(f"there are {len(given)} weights for {len(sources)} datasets; give one for each")
    if not any(given):
        raise ValueError("all weights are 0; give at least one above 0")
    names = {f"dataset {i}": weight for i, weight in enumerate(given) if weight != 0}
    arguments = {"weights": exact_weights(names)}
    nodes = tuple(source._node for source, weight in zip(sources, given, strict=True) if weight != 0)
    return CheckpointableDataset(recipe.Node("interleave", arguments, nodes, reads_many=True))


def concat_datasets(sources: Sequence[CheckpointableDataset]) -> CheckpointableDataset:
    """Yields the samples of one dataset after the other.

    Raises:
        ValueError: If there are no datasets.
    """
    if not sources:
        raise ValueError("there are no datasets to concatenate; give at least one")
    nodes = tuple(source._node for source in sources)
    return CheckpointableDataset(recipe.Node("concat", {}, nodes, reads_many=True))


def _expanded(url: str | os.PathLike[str]) -> list[str]:
    """The inputs that a URL stands for; an existing path is never expanded."""
    name = os.fspath(url)
    return [name] if os.path.exists(name) else list(braceexpand(name))


def _tokenizer_of(tokenizer: Any) -> Tokenizer | None:
    """The tokenizer with packtok's engine, or ``None`` for a callable."""
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    if isinstance(tokenizer, str | os.PathLike):
        return Tokenizer.from_pretrained(tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return Tokenizer(
            backend.to_str().encode(), getattr(tokenizer, "name_or_path", "") or "tokenizer.json"
        )
    if not callable(tokenizer):
        raise TypeError(
            f"tokenizer is of type {type(tokenizer).__name__}, expected a tokenizer or a callable"
        )
    return None


def _special_ids(tokenizer: Any) -> tuple[int | None, int | None]:
    """The ids of BOS and EOS."""
    if isinstance(tokenizer, str | os.PathLike):
        tokenizer = Tokenizer.from_pretrained(tokenizer)
    if isinstance(tokenizer, Tokenizer):
        eos = tokenizer.eos_token
        found = None, None if eos is None else tokenizer.token_to_id(eos)
    else:
        found = getattr(tokenizer, "bos_token_id", None), getattr(tokenizer, "eos_token_id", None)
    if found == (None, None):
        raise ValueError(f"{tokenizer!r} has neither a BOS nor an EOS token; add their ids with add_bos_eos")
    return found


class _Tokenized:
    """Calls a tokenizer that is not packtok's."""

    def __init__(self, tokenizer: Callable[..., Mapping[str, Any]], options: Sample, column: str) -> None:
        self._tokenizer, self._options, self._column = tokenizer, options, column
        self.__qualname__ = functions.name_of(tokenizer)

    def __call__(self, sample: Sample) -> Sample:
        return {**sample, **self._tokenizer(sample[self._column], **self._options)}


class _Ensured:
    """Adds BOS and EOS to a document, and extends its attention mask."""

    def __init__(self, bos_id: int | None, eos_id: int | None, column: str, *, always: bool) -> None:
        self._bos_id, self._eos_id, self._column, self._always = bos_id, eos_id, column, always
        self.__qualname__ = f"ensured({bos_id}, {eos_id}, {column!r}, always={always})"

    def __call__(self, sample: Sample) -> Sample:
        ids = torch.from_numpy(ids_of(sample[self._column]).astype("int64"))
        has_bos = len(ids) > 0 and ids[0] == self._bos_id
        has_eos = len(ids) > 0 and ids[-1] == self._eos_id
        bos, eos = self._bos_id, self._eos_id
        if not self._always:
            is_one = bos == eos
            bos = None if has_bos or is_one else bos
            eos = None if has_eos or (is_one and has_bos) else eos
        before = torch.tensor([] if bos is None else [bos], dtype=torch.int64)
        after = torch.tensor([] if eos is None else [eos], dtype=torch.int64)
        extended = {**sample, self._column: torch.cat([before, ids, after])}
        if "attention_mask" in sample and self._column == "input_ids":
            extended["attention_mask"] = torch.ones(len(ids) + len(before) + len(after), dtype=torch.int64)
        return extended


class _Padded:
    """Extends columns on the right."""

    def __init__(self, values: Mapping[str, int], length: int) -> None:
        self._values, self._length = values, length
        self.__qualname__ = f"padded({dict(values)}, {length})"

    def __call__(self, sample: Sample) -> Sample:
        padded = dict(sample)
        for column, value in self._values.items():
            if column not in sample:
                raise ValueError(f"a sample has no column {column!r} to pad; it has {', '.join(sample)}")
            row = torch.as_tensor(sample[column], dtype=torch.int64)
            if len(row) > self._length:
                raise ValueError(
                    f"column {column!r} has {len(row)} tokens, expected at most chunk_length {self._length}"
                )
            padded[column] = torch.nn.functional.pad(row, (0, self._length - len(row)), value=value)
        return padded

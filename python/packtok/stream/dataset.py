"""The dataset of a stream: what it is made of, how it is iterated, and how its samples are arranged."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch

from packtok.choices import check_choice
from packtok.data.fields import check_pin_memory
from packtok.data.mixture import exact_weights
from packtok.distributed import MeshDim, find_share
from packtok.integers import checked_integer
from packtok.stream import functions, recipe
from packtok.stream.batching import Batching
from packtok.stream.from_sources import FileFormat, FromSources
from packtok.stream.inputs import cache
from packtok.stream.iterator import CheckpointableIterator
from packtok.stream.with_functions import ParallelExecutorType
from packtok.stream.with_tokens import WithTokens

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

Sample = dict[str, Any]
TokenArray = Any


class CheckpointableDataset(FromSources, WithTokens):
    """A stream of samples, as a recipe: nothing is read before it is iterated.

    Sources are static methods, operators are methods that return a new dataset.
    """

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
        return CheckpointableIterator(self._node, self._batching, state_dict, allow)

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

    def shuffle(self, buffer_size: int, seed: int = 42) -> CheckpointableDataset:
        """Shuffles through a buffer: a random sample of it leaves, and the next one takes its place."""
        arguments = {
            "buffer_size": checked_integer("buffer_size", buffer_size, least=1),
            "seed": checked_integer("seed", seed),
        }
        return self._with(recipe.Node("shuffle", arguments, upstream=(self._node,)))

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
        if (batch_size is None) == (global_batch_size is None):
            raise ValueError("give either batch_size or global_batch_size")
        check_pin_memory(pin_memory=pin_memory)
        identity: dict[str, Any] = {"collate_fn": None}
        if global_batch_size is not None:
            size = checked_integer("global_batch_size", global_batch_size, least=1)
            identity["global_batch_size"] = size
            _, num_ranks = recipe.share_of(self._node) or (0, 1)
            if size % num_ranks:
                raise ValueError(f"global_batch_size is {size}, expected a multiple of the {num_ranks} ranks")
            size //= num_ranks
        else:
            size = checked_integer("batch_size", batch_size, least=1)
        if collate_fn is not None:
            identity["collate_fn"] = functions.described_function(collate_fn)
        # The size for one rank follows from the global one.
        sizes = {"batch_size": size}
        is_global = global_batch_size is not None
        arguments = {"drop_last": drop_last} if is_global else {**sizes, "drop_last": drop_last}
        # Batches of batches: the inner ones are complete samples, made as they ask.
        source = self.map(_same) if recipe.is_batched(self._node) else self
        execution = {"stacks": collate_fn is None, **(sizes if is_global else {})}
        node = recipe.Node("batch", arguments, execution, (source._node,), identity=identity)
        return CheckpointableDataset(node, Batching(collate_fn, pin_memory))

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

        JSON lines, Parquet and Arrow are cut, so that lanes have equal parts. Of other and of compressed
        files, each is read by one lane, so that lanes have about as many bytes; ``report`` has the bytes of
        each.

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
        }
        # The stream of all ranks does not depend on their number.
        execution = {
            "rank": share.rank,
            "num_ranks": share.num_replicas,
            "is_endless": recipe.is_endless(self._node),
        }
        is_found = rank is None and device_mesh is None
        upstream = (self._node,)
        return self._with(recipe.Node("distribute", arguments, execution, upstream, is_rank_found=is_found))

    def take(self, max_count: int) -> CheckpointableDataset:
        """Ends after ``max_count`` samples."""
        count = checked_integer("max_count", max_count)
        return self._with(recipe.Node("take", {"max_count": count}, upstream=(self._node,)))

    def stride(self, interval: int, offset: int) -> CheckpointableDataset:
        """Yields the samples whose number modulo ``interval`` is ``offset``."""
        interval = checked_integer("interval", interval, least=1)
        offset = checked_integer("offset", offset, below=interval)
        arguments = {"interval": interval, "offset": offset}
        return self._with(recipe.Node("stride", arguments, upstream=(self._node,)))

    def cache(self) -> CheckpointableDataset:
        """Keeps the samples in memory once they were computed; all iterators of this dataset share them.

        Raises:
            ValueError: If the samples have no end, or are divided among ranks.
        """
        if recipe.is_endless(self._node):
            raise ValueError("the stream has no end, so its cache would grow without limit; use take first")
        if recipe.share_of(self._node) is not None:
            raise ValueError("cache cannot follow distribute; put it before")
        identity = {"source": "cache", "recipe": recipe.described(self._node), "repeat": False}
        source = cache.CachedSamples(self.iter)
        policy = recipe.on_bad_document(self._node)
        return CheckpointableDataset(recipe.of_samples(source, identity, policy))

    def enumerate(self, count_column: str = "step") -> CheckpointableDataset:
        """Adds the number of the sample, from 0, as a column."""
        return self._with(recipe.Node("enumerate", {"column": count_column}, upstream=(self._node,)))


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
    given = [1.0] * len(sources) if weights is None else list(weights)
    if len(given) != len(sources):
        raise ValueError(f"there are {len(given)} weights for {len(sources)} datasets; give one for each")
    _check_undivided(sources)
    if not any(given):
        raise ValueError("all weights are 0; give at least one above 0")
    names = {f"dataset {i}": weight for i, weight in enumerate(given) if weight != 0}
    arguments = {"weights": exact_weights(names)}
    nodes = tuple(source._node for source, weight in zip(sources, given, strict=True) if weight != 0)
    node = recipe.Node("interleave", arguments, upstream=nodes, reads_many=True)
    return CheckpointableDataset(node, _common_batching(sources))


def concat_datasets(sources: Sequence[CheckpointableDataset]) -> CheckpointableDataset:
    """Yields the samples of one dataset after the other.

    Raises:
        ValueError: If there are no datasets.
    """
    if not sources:
        raise ValueError("there are no datasets to concatenate; give at least one")
    _check_undivided(sources)
    nodes = tuple(source._node for source in sources)
    node = recipe.Node("concat", upstream=nodes, reads_many=True)
    return CheckpointableDataset(node, _common_batching(sources))


def _check_undivided(sources: Sequence[CheckpointableDataset]) -> None:
    if any(recipe.share_of(source._node) for source in sources):
        raise ValueError("a dataset is divided among ranks already; combine the datasets, then distribute")


def _common_batching(sources: Sequence[CheckpointableDataset]) -> Batching:
    """How the samples of all sources are batched."""
    found = {source._batching for source in sources}
    if len(found) > 1:
        raise ValueError("the datasets have different collate_fn or pin_memory; combine them before batch")
    return found.pop()


def _same(sample: Any) -> Any:
    return sample

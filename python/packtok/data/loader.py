"""`DataLoader`: torch's loader in packtok's order, with a state that counts the batches returned so far."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from signal import Signals
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import torch
import torch.utils.data

from packtok.data.collate import ItemList, without_rows
from packtok.data.epochs import AtEpochEnd
from packtok.data.sampler import ResumableBatchSampler, ResumableDistributedSampler
from packtok.distributed import MeshDim
from packtok.integers import checked_integer

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


# A worker whose connection broke has ended, or ends within this time.
_ENDING_SECONDS = 10


class TorchOptions(TypedDict, total=False):
    """Other arguments of torch's loader, with the same meaning and defaults. None changes the batches."""

    num_workers: int
    pin_memory: bool
    timeout: float
    worker_init_fn: Callable[[int], None] | None
    multiprocessing_context: Any
    generator: torch.Generator | None
    prefetch_factor: int | None
    persistent_workers: bool
    pin_memory_device: str


class DataLoader(torch.utils.data.DataLoader[Any]):
    """Loads batches in an order that depends only on the seed, the data and the global batch size.

    Iteration starts at the loader's position: the start of an epoch, or the position that `load_state_dict`
    set. The next iteration serves the next epoch, even if the previous one was left early; `set_epoch`
    selects another.

    Args:
        dataset: Map-style dataset with a length. ``__getitems__`` is used to fetch whole batches if it
            exists.
        batch_size: Items in each batch of this rank. Default: 1, or as ``global_batch_size`` implies.
        global_batch_size: Items in the batches of all ranks in one step. Must stay the same when a run
            resumes with another number of ranks.
        shuffle: Whether to serve items in an order given by the seed and the epoch.
        seed: From 0 to 2**64 - 1.
        epoch: The first epoch.
        at_epoch_end: How to treat items that do not fill a global batch. ``"drop"`` drops them. ``"carry"``
            serves them first in the next epoch. ``"pad"`` fills the batch with items from the start of the
            epoch's order. ``"short"``, for evaluation, serves each item exactly once: all ranks get the same
            number of batches, and the last batch has fewer rows or none.
        skip_num_global_samples: Items of the first epoch to skip, counted over all ranks.
        rank: Needs ``num_replicas``. Default: the rank in the process group, otherwise RANK and WORLD_SIZE.
        num_replicas: Number of ranks that divide the items.
        device_mesh: Instead of ``rank`` and ``num_replicas``: mesh whose dimension ``dp_dim`` divides the
            items.
        dp_dim: Name or index of a mesh dimension, or several of them in row-major order.
        collate_fn: As in torch's loader.
        read_ahead: Number of batches whose pages the operating system is asked to read ahead of their use, so
            that a file that is not cached does not stall the loop. Adds to what workers prefetch.
        **options: Torch's ``num_workers``, ``prefetch_factor``, ``pin_memory`` and so on.

    Raises:
        ValueError: If an argument is out of range, arguments contradict each other, or the dataset defines
            its own order and ``shuffle`` is set; or if an epoch would have no batch, because the dataset is
            empty or, with ``"drop"`` and ``"carry"``, smaller than a global batch.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = None,
        *,
        global_batch_size: int | None = None,
        shuffle: bool = False,
        seed: int = 0,
        epoch: int = 0,
        at_epoch_end: AtEpochEnd = "drop",
        skip_num_global_samples: int = 0,
        rank: int | None = None,
        num_replicas: int | None = None,
        device_mesh: "DeviceMesh | None" = None,
        dp_dim: MeshDim | None = None,
        collate_fn: Callable[[Any], Any] | None = None,
        read_ahead: int = 0,
        **options: Unpack[TorchOptions],
    ) -> None:
        sampler = ResumableDistributedSampler(
            dataset,
            rank,
            num_replicas,
            epoch,
            shuffle,
            seed,
            skip_num_global_samples=skip_num_global_samples,
            batch_size=1 if batch_size is None and global_batch_size is None else batch_size,
            global_batch_size=global_batch_size,
            at_epoch_end=at_epoch_end,
            device_mesh=device_mesh,
            dp_dim=dp_dim,
        )
        if at_epoch_end == "short":
            collate_fn = CollateOrEmpty(collate_fn or torch.utils.data.default_collate, dataset)
        self._resumable = sampler
        batch_sampler: Any = ResumableBatchSampler(sampler)
        if read_ahead:
            batch_sampler = ReadAhead(batch_sampler, dataset, read_ahead)
        super().__init__(dataset, batch_sampler=batch_sampler, collate_fn=collate_fn, **options)

    @property
    def epoch(self) -> int:
        """The current epoch, or the one that the next iteration starts with."""
        return self._resumable.epoch

    def set_epoch(self, epoch: int) -> None:
        """Moves to the start of ``epoch``, or keeps the position that a loaded state set within it."""
        self._resumable.set_epoch(epoch)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        sampler = self._resumable
        epoch, position = sampler.begin()
        batches = super().__iter__()
        # Workers have already drawn batches that the caller has not received.
        sampler.place(epoch, position)
        return self._count_batches(batches, epoch, position)

    def _count_batches(self, batches: Iterator[Any], epoch: int, position: int) -> Iterator[Any]:
        """Yields batches and counts those that the caller received."""
        sampler = self._resumable
        for batch in _named_deaths(batches):
            position += sampler.epochs.global_batch_size
            if sampler.epochs.num_steps(epoch, position):
                sampler.place(epoch, position, is_under_way=True)
            else:
                # The position is the start of the next epoch: at the end of this one, a resumed loop would
                # get no batch.
                sampler.place(epoch + 1, sampler.start_of(epoch + 1))
            yield batch
        sampler.place(epoch + 1, sampler.start_of(epoch + 1))

    def state_dict(self) -> dict[str, Any]:
        """Returns the caller's position and the settings it depends on, as JSON-serializable values.

        Batches that workers prefetched but the caller has not received do not count. Equal on all ranks.
        """
        return self._resumable.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Resumes after the last batch that was returned when the state was saved.

        The number of ranks, the number of workers and their prefetching may differ. The state is not
        modified.

        Raises:
            ValueError: If a field of the state is missing, unknown, of another type, out of range, or differs
                from this loader's, or if the position is not between two global batches of the epoch. The
                message names the found and the expected value. The loader is left unchanged.
        """
        self._resumable.load_state_dict(state_dict)

    def locate(self, step: int, *, epoch: int | None = None) -> list[dict[str, Any]]:
        """Returns the documents of each row of a step's global batch, ordered by row and then by rank.

        Each entry has ``epoch``, ``rank``, ``row`` (in that rank's batch), ``item`` and ``documents``, the
        result of the dataset's ``locate`` for the item.

        Args:
            step: Counted from 0 within ``epoch``, or, without it, over all epochs of a run that skipped
                nothing.
            epoch: The epoch.

        Raises:
            IndexError: If there is no such step.
            TypeError: If the dataset has no method ``locate``.
        """
        locate = getattr(self.dataset, "locate", None)
        if locate is None:
            raise TypeError(f"{type(self.dataset).__name__} has no method locate; use a dataset of packtok")
        sampler = self._resumable
        epoch, items = sampler.epochs.global_batch(step, epoch)
        return [
            {
                "epoch": epoch,
                "rank": place % sampler.num_replicas,
                "row": place // sampler.num_replicas,
                "item": item,
                "documents": locate(item),
            }
            for place, item in enumerate(items)
        ]


def _named_deaths(batches: Iterator[Any]) -> Iterator[Any]:
    """Yields ``batches``; an error that the death of a worker caused names the worker.

    Torch does so too, unless it asks whether the worker is alive just before the system has ended it.
    """
    try:
        yield from batches
    except (EOFError, OSError) as error:
        workers: Sequence[BaseProcess] = getattr(batches, "_workers", ())
        ending = wait([worker.sentinel for worker in workers], _ENDING_SECONDS)
        for worker in workers:
            if worker.sentinel in ending:
                worker.join(_ENDING_SECONDS)
            if worker.exitcode:
                code = worker.exitcode
                how = f"was killed by {Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
                raise RuntimeError(
                    f"DataLoader worker (pid {worker.pid}) {how}; start again from the last state"
                ) from error
        raise


class ReadAhead:
    """Yields the batches of ``batch_sampler``; the dataset prefetches each some batches in advance."""

    def __init__(self, batch_sampler: ResumableBatchSampler, dataset: Any, num_batches: int) -> None:
        num_batches = checked_integer("read_ahead", num_batches)
        if not hasattr(dataset, "prefetch"):
            raise TypeError(
                f"read_ahead is {num_batches}, but {type(dataset).__name__} has no method prefetch; use a "
                "dataset of packtok"
            )
        self.batch_sampler = batch_sampler
        self.dataset = dataset
        self.num_batches = num_batches

    def __len__(self) -> int:
        return len(self.batch_sampler)

    def __iter__(self) -> Iterator[list[int]]:
        announced: deque[list[int]] = deque()
        for batch in self.batch_sampler:
            self.dataset.prefetch(batch)
            announced.append(batch)
            if len(announced) > self.num_batches:
                yield announced.popleft()
        yield from announced


class CollateOrEmpty:
    """Collates with ``collate_fn``, and turns an empty list into a batch without rows."""

    def __init__(self, collate_fn: Callable[[Any], Any], dataset: Any) -> None:
        self.collate_fn = collate_fn
        self.dataset = dataset

    def __call__(self, items: Any) -> Any:
        """Returns the batch. Without items, returns all fields of a batch of item 0, each with length 0."""
        # A dataset that returns batches instead of lists of items handles empty ones itself. Torch's default
        # collation would access the first item, which does not exist.
        if isinstance(items, ItemList) and not items:
            return items.batch
        if type(items) is list and not items:
            return without_rows(self.collate_fn([self.dataset[0]]))
        return self.collate_fn(items)

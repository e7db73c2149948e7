"""`DataLoader`: torch's loader in packtok's order, with a state that counts the batches that were given."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import torch
import torch.utils.data

from packtok.collate import ItemList
from packtok.data.epochs import AtEpochEnd
from packtok.data.sampler import ResumableBatchSampler, ResumableDistributedSampler
from packtok.distributed import MeshDim
from packtok.integers import checked_integer

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


class TorchOptions(TypedDict, total=False):
    """What torch's loader takes besides, with its meaning and defaults; none changes which batches come."""

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
    """Batches of a map-style dataset in an order that depends on seed, data and global batch size only.

    Iterating serves the epoch from where the loader stands: its beginning, or where `load_state_dict` led.
    Iterating again serves the next epoch, whether the last one was finished or broken off; `set_epoch`
    chooses another.

    Args:
        dataset: Anything with a length that gives items by number, or whole batches by ``__getitems__``.
        batch_size: Items of this rank's batches; by default 1, or what ``global_batch_size`` makes of it.
        global_batch_size: Items of all ranks' batches in a step. Runs that go on with another number of ranks
            need it to stay the same.
        shuffle: Whether items come in an order given by seed and epoch.
        seed: From 0 to 2**64 - 1.
        epoch: The epoch to begin with.
        at_epoch_end: What becomes of items that fill no global batch. ``"drop"`` leaves them out; ``"carry"``
            puts them first in the next epoch; ``"pad"`` fills the batch from the beginning of the epoch's
            order; ``"short"``, for evaluation, serves each item exactly once: all ranks get the same number
            of batches, the last one with fewer rows or none.
        skip_num_global_samples: Items of the first epoch, over all ranks, that are done already.
        rank: By default, with ``num_replicas``, that of the process group, or else of RANK and WORLD_SIZE.
        num_replicas: How many ranks divide the items.
        device_mesh: Instead of rank and num_replicas: the mesh whose dimension ``dp_dim`` divides the items.
        dp_dim: Its name or number, or several, the first coarsest.
        collate_fn: As torch's.
        read_ahead: Batches whose pages the system is asked to read before their turn, so that a file that is
            not in memory yet does not stall the loop; what workers prefetch counts besides.
        **options: Torch's ``num_workers``, ``prefetch_factor``, ``pin_memory`` and so on.

    Raises:
        ValueError: If an argument is out of range, arguments contradict each other, or the dataset brings an
            order of its own; or if an epoch would have no batch, because the dataset has no items or, with
            ``"drop"`` and ``"carry"``, fewer than a global batch.
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
        """The epoch that iterating is in, or will begin with."""
        return self._resumable.epoch

    def set_epoch(self, epoch: int) -> None:
        """Goes to the beginning of ``epoch``, or stays in the middle of it if a state has just led there."""
        self._resumable.set_epoch(epoch)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        sampler = self._resumable
        epoch, position = sampler.begin()
        batches = super().__iter__()
        # Workers have drawn batches by now that nobody was given.
        sampler.place(epoch, position)
        return self._given(batches, epoch, position)

    def _given(self, batches: Iterator[Any], epoch: int, position: int) -> Iterator[Any]:
        """Passes batches on and keeps account of how many the caller was given."""
        sampler = self._resumable
        for batch in batches:
            position += sampler.epochs.global_batch_size
            if sampler.epochs.num_steps(epoch, position):
                sampler.place(epoch, position, is_under_way=True)
            else:
                # Not the end of this epoch, which a resumed loop would take for an epoch without batches.
                sampler.place(epoch + 1, sampler.start_of(epoch + 1))
            yield batch
        sampler.place(epoch + 1, sampler.start_of(epoch + 1))

    def state_dict(self) -> dict[str, Any]:
        """Where the caller stands and what that depends on: numbers and names that JSON can hold.

        Batches that workers have prepared but nobody was given do not count. Equal on all ranks.
        """
        return self._resumable.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Resumes after the last batch that was returned when the state was taken.

        The number of ranks and workers and what they prefetch may differ. The state stays usable.

        Raises:
            ValueError: If a field of the state is missing, unknown, of another type, out of range, or differs
                from this loader's, or if the position is not between two global batches of the epoch. The
                message says what was found and expected; the loader stays as it was.
        """
        self._resumable.load_state_dict(state_dict)

    def locate(self, step: int, *, epoch: int | None = None) -> list[dict[str, Any]]:
        """Where the rows of a step's global batch come from, row after row, each rank's first row first.

        Each has ``epoch``, ``rank``, ``row`` (in that rank's batch), ``item``, and in ``documents`` what the
        dataset's ``locate`` says of the item.

        Args:
            step: Counted from 0 over all epochs of a run without a skipped beginning, or in ``epoch``.
            epoch: The epoch.

        Raises:
            IndexError: If there is no such step.
            TypeError: If the dataset cannot locate items.
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


class ReadAhead:
    """The batches of ``batch_sampler``, each announced to the system some batches before its turn."""

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
    """Collates as ``collate_fn`` does, and makes of no items a batch without rows."""

    def __init__(self, collate_fn: Callable[[Any], Any], dataset: Any) -> None:
        self.collate_fn = collate_fn
        self.dataset = dataset

    def __call__(self, items: Any) -> Any:
        """The batch; without items, one that has all the fields of a batch of item 0, each of length 0."""
        # A dataset that makes batches itself, not lists of items, knows best what one without rows is;
        # torch's default collation would look at the first item, which is not there.
        if isinstance(items, ItemList) and not items:
            return items.batch
        if type(items) is list and not items:
            return _without_rows(self.collate_fn([self.dataset[0]]))
        return self.collate_fn(items)


def _without_rows(batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return {key: _without_rows(value) for key, value in batch.items()}
    if isinstance(batch, tuple):
        return tuple(_without_rows(value) for value in batch)
    if isinstance(batch, list):
        return [_without_rows(value) for value in batch if isinstance(value, torch.Tensor)]
    return batch[:0]

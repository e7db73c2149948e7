"""Samplers: the items of a rank, their order, and the position in it.

`ResumableDistributedSampler` yields single items, like torch's samplers, and holds the state.
`ResumableBatchSampler` yields the same items in batches.
"""

from collections.abc import Iterator, Mapping, Sized
from typing import TYPE_CHECKING, Any

from torch.utils.data import Sampler

from packtok.choices import check_choice
from packtok.data.epochs import AT_EPOCH_ENDS, AtEpochEnd, Epochs, check_batches, order_seed
from packtok.data.state import checked_place, state_of
from packtok.distributed import MeshDim, find_share, process_share
from packtok.integers import checked_integer

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


class ResumableDistributedSampler(Sampler[int]):
    """Yields the items of one rank, shuffled or in sequence, from any position of any epoch.

    In an epoch's order after ``skip_num_global_samples`` samples, rank ``r`` of ``R`` takes every ``R``-th
    item, starting with item ``r``. Iteration starts at the position set by the arguments, `set_epoch` or
    `load_state_dict`; the next iteration starts the next epoch.

    Args:
        dataset: Object with a length. Its attributes ``fingerprint``, ``orders_itself`` and ``takes_epochs``
            are used if they exist.
        rank: Needs ``num_replicas``. Default: the rank in the process group, otherwise RANK and WORLD_SIZE.
        num_replicas: Number of ranks that divide the items.
        epoch: The first epoch.
        shuffle: Whether to use an order given by the seed and the epoch (packtok's, not
            ``torch.randperm``'s).
        seed: From 0 to 2**64 - 1.
        drop_last: True is the same as ``at_epoch_end="drop"``, False the same as ``"pad"``.
        skip_num_global_samples: Samples of the first epoch to skip, counted over all ranks.
        batch_size: Samples per rank and step, which determine what is left over at the end of an epoch.
            Default: 1, if ``global_batch_size`` is not given either.
        global_batch_size: Samples per step over all ranks. Must stay the same when a run resumes.
        at_epoch_end: How to treat samples that do not fill a global batch. ``"drop"`` drops them. ``"pad"``
            fills the batch with items from the start of the epoch's order. ``"carry"`` serves them first in
            the next epoch. ``"short"`` serves each item exactly once, so that some ranks get one more than
            others.
        device_mesh: Instead of ``rank`` and ``num_replicas``: mesh whose dimension ``dp_dim`` divides the
            items.
        dp_dim: Name or index of a mesh dimension, or several of them in row-major order.

    Raises:
        ValueError: If an argument is out of range, arguments contradict each other, or the dataset defines
            its own order and ``shuffle`` is set; or if an epoch would have no batch, because the dataset is
            empty or, with ``"drop"`` and ``"carry"``, smaller than a global batch.
    """

    def __init__(
        self,
        dataset: Sized,
        rank: int | None = None,
        num_replicas: int | None = None,
        epoch: int = 0,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        skip_num_global_samples: int = 0,
        *,
        batch_size: int | None = None,
        global_batch_size: int | None = None,
        at_epoch_end: AtEpochEnd | None = None,
        device_mesh: "DeviceMesh | None" = None,
        dp_dim: MeshDim | None = None,
    ) -> None:
        kind = type(dataset).__name__
        order = order_seed(
            shuffle=shuffle,
            seed=seed,
            kind=kind,
            orders_itself=getattr(dataset, "orders_itself", False),
        )
        share = find_share(rank, num_replicas, device_mesh=device_mesh, dp_dim=dp_dim)
        self.dataset = dataset
        self.global_batch_size = _global_batch_size(batch_size, global_batch_size, share.num_replicas)
        self.epochs = Epochs(
            len(dataset),
            order,
            share.num_replicas if self.global_batch_size is None else self.global_batch_size,
            _epoch_end(at_epoch_end, drop_last=drop_last, has_batches=self.global_batch_size is not None),
            share,
        )
        check_batches(
            self.epochs, kind, batch_size=batch_size, has_batches=self.global_batch_size is not None
        )
        self._finds_share = rank is None and device_mesh is None
        self._first = (
            checked_integer("epoch", epoch),
            checked_integer("skip_num_global_samples", skip_num_global_samples),
        )
        if self._first[1]:
            self.epochs.check_skip(*self._first)
        self._epoch, self._position = self._first
        # Whether a sample was drawn since the sampler was placed at its current position.
        self._is_under_way = False

    @property
    def rank(self) -> int:
        """The rank whose items are yielded."""
        return self.epochs.share.rank

    @property
    def num_replicas(self) -> int:
        """Number of ranks that divide the items."""
        return self.epochs.share.num_replicas

    @property
    def epoch(self) -> int:
        """The current epoch, or the one that the next iteration starts with."""
        return self._epoch

    @property
    def position(self) -> int:
        """Number of samples of the epoch, over all ranks, that were drawn or skipped."""
        return self._position

    def start_of(self, epoch: int) -> int:
        """Returns the position at which ``epoch`` starts."""
        first_epoch, skip = self._first
        return skip if epoch == first_epoch else 0

    def set_epoch(self, epoch: int) -> None:
        """Moves to the start of ``epoch``, or keeps the position that a loaded state set within it."""
        epoch = checked_integer("epoch", epoch)
        if epoch != self._epoch or self._is_under_way:
            self.place(epoch, self.start_of(epoch))

    def __len__(self) -> int:
        """Number of items of this rank in the epoch (after ``skip_num_global_samples`` in the first one)."""
        return self.epochs.num_own(self._epoch, self.start_of(self._epoch))

    def __iter__(self) -> Iterator[int]:
        return self._items(*self.begin())

    def _items(self, epoch: int, position: int) -> Iterator[int]:
        for item in self.epochs.own(epoch, position):
            position += self.num_replicas
            self.place(epoch, position, is_under_way=True)
            yield from self.numbered(epoch, [item])
        self.place(epoch + 1, self.start_of(epoch + 1))

    def numbered(self, epoch: int, items: list[int]) -> list[Any]:
        """Returns ``items``, each with its epoch if the dataset's attribute ``takes_epochs`` is true."""
        if getattr(self.dataset, "takes_epochs", False):
            return [(epoch, item) for item in items]
        return items

    def begin(self) -> tuple[int, int]:
        """Returns the epoch and the position at which an iteration would start now."""
        self._check_share()
        if self._is_under_way:
            self.place(self._epoch + 1, self.start_of(self._epoch + 1))
        return self._epoch, self._position

    def place(self, epoch: int, position: int, *, is_under_way: bool = False) -> None:
        """Sets the position. The next iteration starts there, or with the next epoch if one is under way."""
        self._epoch, self._position, self._is_under_way = epoch, position, is_under_way

    def _check_share(self) -> None:
        """Raises if a sampler from before the process group existed would give all data to every rank."""
        if self._finds_share and (now := process_share()) != self.epochs.share:
            raise RuntimeError(
                f"the sampler was created for rank {self.rank} of {self.num_replicas}, but this process is "
                f"now rank {now.rank} of {now.num_replicas}; create it after the process group, or give "
                "rank and num_replicas"
            )

    def state_dict(self) -> dict[str, Any]:
        """Returns the position and the settings it depends on, as JSON-serializable values."""
        return state_of(
            self.epochs,
            getattr(self.dataset, "fingerprint", None),
            self.global_batch_size,
            epoch=self._epoch,
            start=self.start_of(self._epoch),
            position=self._position,
        )

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Resumes at the position of the state; the number of ranks may differ.

        Raises:
            ValueError: If a field of the state is missing, unknown, of another type, out of range, or differs
                from this sampler's, or if the position is not between two global batches of the epoch. The
                message names the found and the expected value. The sampler is left unchanged.
        """
        epoch, start, position = checked_place(state_dict, self.state_dict(), self.epochs)
        if start != self.start_of(epoch):
            self._first = (epoch, start)
        self.place(epoch, position)


class ResumableBatchSampler(Sampler[list[int]]):
    """Yields the items of a `ResumableDistributedSampler` in batches.

    All ranks have the same number of batches. Can be passed to torch as ``batch_sampler``. Its state counts
    the batches drawn from it, which workers draw ahead of use. `packtok.DataLoader` and torchdata's
    ``StatefulDataLoader`` account for that.
    """

    def __init__(self, sampler: ResumableDistributedSampler) -> None:
        self.sampler = sampler
        self.batch_size = sampler.epochs.batch_size
        self.drop_last = sampler.epochs.at_epoch_end in ("drop", "carry")

    def __len__(self) -> int:
        """Number of batches in the whole epoch (after ``skip_num_global_samples`` in the first)."""
        sampler = self.sampler
        return sampler.epochs.num_steps(sampler.epoch, sampler.start_of(sampler.epoch))

    def __iter__(self) -> Iterator[list[int]]:
        return self._batches(*self.sampler.begin())

    def _batches(self, epoch: int, position: int) -> Iterator[list[int]]:
        sampler = self.sampler
        for batch in sampler.epochs.batches(epoch, position):
            position += sampler.epochs.global_batch_size
            sampler.place(epoch, position, is_under_way=True)
            yield sampler.numbered(epoch, batch)
        sampler.place(epoch + 1, sampler.start_of(epoch + 1))

    def set_epoch(self, epoch: int) -> None:
        """Same as the sampler's `set_epoch`."""
        self.sampler.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Same as the sampler's `state_dict`."""
        return self.sampler.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Same as the sampler's `load_state_dict`."""
        self.sampler.load_state_dict(state_dict)


def _global_batch_size(
    batch_size: int | None, global_batch_size: int | None, num_replicas: int
) -> int | None:
    if batch_size is not None:
        batch_size = checked_integer("batch_size", batch_size, least=1)
    if global_batch_size is not None:
        global_batch_size = checked_integer("global_batch_size", global_batch_size, least=1)
    if batch_size is None:
        return global_batch_size
    if global_batch_size is not None and batch_size * num_replicas != global_batch_size:
        raise ValueError(
            f"batch_size {batch_size} on {num_replicas} ranks is not global_batch_size {global_batch_size}; "
            "remove one of them"
        )
    return batch_size * num_replicas


def _epoch_end(at_epoch_end: AtEpochEnd | None, *, drop_last: bool, has_batches: bool) -> AtEpochEnd:
    if at_epoch_end is None:
        return "drop" if drop_last else "pad"
    check_choice("at_epoch_end", at_epoch_end, AT_EPOCH_ENDS)
    if drop_last and at_epoch_end != "drop":
        raise ValueError(f"drop_last contradicts at_epoch_end={at_epoch_end!r}; remove one of them")
    if at_epoch_end == "carry" and not has_batches:
        raise ValueError('at_epoch_end="carry" needs a batch_size or global_batch_size')
    return at_epoch_end

"""Which items a rank takes, in which order, and how far it has come.

`ResumableDistributedSampler` gives single items, as torch's samplers do, and knows the state;
`ResumableBatchSampler` gives the same items batch by batch.
"""

from collections.abc import Iterator, Mapping, Sized
from typing import TYPE_CHECKING, Any

from torch.utils.data import Sampler

from packtok.data.epochs import AT_EPOCH_ENDS, AtEpochEnd, Epochs
from packtok.data.state import ORDER_VERSION, STATE_VERSION, checked_place
from packtok.distributed import MeshDim, find_share, process_share
from packtok.integers import checked_integer

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


class ResumableDistributedSampler(Sampler[int]):
    """The items of one rank, shuffled or in sequence, from any place of any epoch.

    Of an epoch's order, from sample ``skip_num_global_samples`` on, rank ``r`` of ``R`` takes every ``R``-th
    from the ``r``-th. Iterating begins where the sampler was placed, by its arguments, `set_epoch` or
    `load_state_dict`; iterating again begins the next epoch.

    Args:
        dataset: Anything with a length; its ``fingerprint`` and ``orders_itself`` are heeded if it has them.
        rank: By default, with ``num_replicas``, that of the process group, or else of RANK and WORLD_SIZE.
        num_replicas: How many ranks divide the items.
        epoch: The epoch to begin with.
        shuffle: Whether items come in an order given by seed and epoch (packtok's, not ``torch.randperm``'s).
        seed: From 0 to 2**64 - 1.
        drop_last: The same as ``at_epoch_end="drop"``; false is the same as ``"pad"``.
        skip_num_global_samples: Samples of the first epoch, counted over all ranks, that are done already.
        batch_size: Samples that each rank takes in a step. The steps decide what is left at an epoch's end;
            where neither this nor ``global_batch_size`` is given, each rank takes one.
        global_batch_size: The same for all ranks together. All parts of a stopped run need the same.
        at_epoch_end: What becomes of the samples that fill no global batch. ``"drop"`` leaves them out;
            ``"pad"`` fills the batch from the beginning of the epoch's order; ``"carry"`` puts them first in
            the next epoch; ``"short"`` gives each item exactly once, some ranks one more than others.
        device_mesh: Instead of rank and num_replicas: the mesh whose dimension ``dp_dim`` divides the items.
        dp_dim: Its name or number, or several, the first coarsest.

    Raises:
        ValueError: If an argument is out of range, arguments contradict each other, or the dataset brings an
            order of its own; or if an epoch would have no batch, because the dataset has no items or, with
            ``"drop"`` and ``"carry"``, fewer than a global batch.
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
        if not isinstance(shuffle, bool):
            raise ValueError(f"shuffle is {shuffle!r}, expected True or False")
        seed = checked_integer("seed", seed, below=1 << 64)
        if shuffle and getattr(dataset, "orders_itself", False):
            raise ValueError(
                f"shuffle=True, but {type(dataset).__name__} orders its items itself; remove shuffle and "
                "give the dataset a seed"
            )
        share = find_share(rank, num_replicas, device_mesh=device_mesh, dp_dim=dp_dim)
        self.dataset = dataset
        self.global_batch_size = _global_batch_size(batch_size, global_batch_size, share.num_replicas)
        self.epochs = Epochs(
            len(dataset),
            seed if shuffle else None,
            share.num_replicas if self.global_batch_size is None else self.global_batch_size,
            _epoch_end(at_epoch_end, drop_last=drop_last, has_batches=self.global_batch_size is not None),
            share,
        )
        self._check_batches(batch_size)
        self._finds_share = rank is None and device_mesh is None
        self._first = (
            checked_integer("epoch", epoch),
            checked_integer("skip_num_global_samples", skip_num_global_samples),
        )
        if self._first[1]:
            self.epochs.check_skip(*self._first)
        self._epoch, self._position = self._first
        # Whether a sample was taken since the sampler was placed where it stands.
        self._is_under_way = False

    def _check_batches(self, batch_size: int | None) -> None:
        """Raises a ValueError if there are epochs without a batch, which a training loop would not notice."""
        epochs = self.epochs
        if not epochs.num_items:
            raise ValueError(
                f"the dataset, of type {type(self.dataset).__name__}, has no items; check its files and "
                "options"
            )
        if epochs.num_items >= epochs.global_batch_size or epochs.at_epoch_end in ("pad", "short"):
            return
        if self.global_batch_size is None:
            raise ValueError(
                f"an epoch has no samples: {epochs.num_items} items, {self.num_replicas} ranks; use fewer "
                "ranks, or set at_epoch_end='pad'"
            )
        by_rank = "" if batch_size is None else f" (batch_size {batch_size} on {self.num_replicas} ranks)"
        raise ValueError(
            f"an epoch has no batch: {epochs.num_items} items, global batch {epochs.global_batch_size}"
            f"{by_rank}; lower {'global_batch_size' if batch_size is None else 'batch_size'}, or set "
            "at_epoch_end='short'"
        )

    @property
    def rank(self) -> int:
        """The rank whose items are given."""
        return self.epochs.share.rank

    @property
    def num_replicas(self) -> int:
        """How many ranks divide the items."""
        return self.epochs.share.num_replicas

    @property
    def epoch(self) -> int:
        """The epoch that iterating is in, or will begin with."""
        return self._epoch

    @property
    def position(self) -> int:
        """Samples of the epoch, over all ranks, that were taken or skipped."""
        return self._position

    def start_of(self, epoch: int) -> int:
        """The position at which ``epoch`` begins."""
        first_epoch, skip = self._first
        return skip if epoch == first_epoch else 0

    def set_epoch(self, epoch: int) -> None:
        """Goes to the beginning of ``epoch``, or stays in the middle of it if a state has just led there."""
        epoch = checked_integer("epoch", epoch)
        if epoch != self._epoch or self._is_under_way:
            self.place(epoch, self.start_of(epoch))

    def __len__(self) -> int:
        """Items that this rank gets in the whole epoch (from ``skip_num_global_samples`` on in the first)."""
        return self.epochs.num_own(self._epoch, self.start_of(self._epoch))

    def __iter__(self) -> Iterator[int]:
        return self._items(*self.begin())

    def _items(self, epoch: int, position: int) -> Iterator[int]:
        for item in self.epochs.own(epoch, position):
            position += self.num_replicas
            self.place(epoch, position, is_under_way=True)
            yield item
        self.place(epoch + 1, self.start_of(epoch + 1))

    def begin(self) -> tuple[int, int]:
        """The epoch and the position at which an iteration that begins now begins."""
        self._check_share()
        if self._is_under_way:
            self.place(self._epoch + 1, self.start_of(self._epoch + 1))
        return self._epoch, self._position

    def place(self, epoch: int, position: int, *, is_under_way: bool = False) -> None:
        """Goes to a position; the next iteration begins there, or with the next epoch if one is under way."""
        self._epoch, self._position, self._is_under_way = epoch, position, is_under_way

    def _check_share(self) -> None:
        """Made before the process group, a sampler would give every rank everything, unnoticed."""
        if self._finds_share and (now := process_share()) != self.epochs.share:
            raise RuntimeError(
                f"the sampler was created for rank {self.rank} of {self.num_replicas}, but this process is "
                f"now rank {now.rank} of {now.num_replicas}; create it after the process group, or give "
                "rank and num_replicas"
            )

    def state_dict(self) -> dict[str, Any]:
        """Where the sampler stands and what that depends on: numbers and names that JSON can hold."""
        state = {
            "version": STATE_VERSION,
            "order": ORDER_VERSION,
            "data": getattr(self.dataset, "fingerprint", None),
            "num_items": self.epochs.num_items,
            "seed": self.epochs.seed,
            "global_batch_size": self.global_batch_size,
            "at_epoch_end": self.epochs.at_epoch_end,
            "epoch": self._epoch,
            "num_global_samples": self._position,
        }
        if start := self.start_of(self._epoch):
            state["skip_num_global_samples"] = start
        if self.global_batch_size is None:
            state["num_replicas"] = self.num_replicas
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Resumes where the state was taken; the number of ranks may differ.

        Raises:
            ValueError: If a field of the state is missing, unknown, of another type, out of range, or differs
                from this sampler's, or if the position is not between two global batches of the epoch. The
                message says what was found and expected; the sampler stays as it was.
        """
        epoch, start, position = checked_place(state_dict, self.state_dict(), self.epochs)
        if start != self.start_of(epoch):
            self._first = (epoch, start)
        self.place(epoch, position)


class ResumableBatchSampler(Sampler[list[int]]):
    """The items of a `ResumableDistributedSampler` batch by batch; all ranks have the same number of batches.

    Goes where torch takes a ``batch_sampler``. Its state counts the batches drawn from it, and workers draw
    ahead of what they give; `packtok.DataLoader` and torchdata's ``StatefulDataLoader`` keep account of that.
    """

    def __init__(self, sampler: ResumableDistributedSampler) -> None:
        self.sampler = sampler
        self.batch_size = sampler.epochs.batch_size
        self.drop_last = sampler.epochs.at_epoch_end in ("drop", "carry")

    def __len__(self) -> int:
        """Batches of the whole epoch (from ``skip_num_global_samples`` on in the first)."""
        sampler = self.sampler
        return sampler.epochs.num_steps(sampler.epoch, sampler.start_of(sampler.epoch))

    def __iter__(self) -> Iterator[list[int]]:
        return self._batches(*self.sampler.begin())

    def _batches(self, epoch: int, position: int) -> Iterator[list[int]]:
        sampler = self.sampler
        for batch in sampler.epochs.batches(epoch, position):
            position += sampler.epochs.global_batch_size
            sampler.place(epoch, position, is_under_way=True)
            yield batch
        sampler.place(epoch + 1, sampler.start_of(epoch + 1))

    def set_epoch(self, epoch: int) -> None:
        """As the sampler's."""
        self.sampler.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """As the sampler's."""
        return self.sampler.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """As the sampler's."""
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
    if at_epoch_end not in AT_EPOCH_ENDS:
        raise ValueError(
            f"at_epoch_end is {at_epoch_end!r}, expected {' or '.join(map(repr, AT_EPOCH_ENDS))}"
        )
    if drop_last and at_epoch_end != "drop":
        raise ValueError(f"drop_last contradicts at_epoch_end={at_epoch_end!r}; remove one of them")
    if at_epoch_end == "carry" and not has_batches:
        raise ValueError('at_epoch_end="carry" needs a batch_size or global_batch_size')
    return at_epoch_end

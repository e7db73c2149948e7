"""Cuts the order of an epoch into global batches and divides them among ranks.

Plain arithmetic around the compiled module's `Order`, which returns items in chunks, so that memory use does
not grow with the dataset. The current position of a run is kept by the sampler.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from packtok._packtok import Order
from packtok.distributed import Share
from packtok.integers import checked_integer, integer

AtEpochEnd = Literal["drop", "carry", "pad", "short"]
AT_EPOCH_ENDS: tuple[AtEpochEnd, ...] = get_args(AtEpochEnd)

CHUNK_ITEMS = 4096


@dataclass(frozen=True)
class Epochs:
    """All epochs of a dataset with ``num_items`` items, from the view of one rank.

    A position counts the samples of an epoch over all ranks, including those carried over from the last
    epoch.
    """

    num_items: int
    seed: int | None
    global_batch_size: int
    at_epoch_end: AtEpochEnd
    share: Share
    order: Order = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.global_batch_size < 1 or self.global_batch_size % self.share.num_replicas:
            raise ValueError(
                f"global_batch_size is {self.global_batch_size}, expected a multiple of the "
                f"{self.share.num_replicas} ranks"
            )
        object.__setattr__(self, "order", self._new_order())

    def _new_order(self) -> Order:
        return Order(
            self.num_items,
            seed=self.seed,
            global_batch_size=self.global_batch_size,
            at_epoch_end=self.at_epoch_end,
        )

    def __reduce__(self) -> tuple[type["Epochs"], tuple[int, int | None, int, AtEpochEnd, Share]]:
        return Epochs, (self.num_items, self.seed, self.global_batch_size, self.at_epoch_end, self.share)

    def with_global_batch_size(self, global_batch_size: int) -> "Epochs":
        """Returns the same epochs, cut into global batches of this size for a single rank."""
        if global_batch_size == self.global_batch_size:
            return self
        return replace(self, global_batch_size=global_batch_size, share=Share(0, 1))

    def check_skip(self, epoch: int, skip: int) -> None:
        """Raises a ValueError unless ``epoch`` has a batch at or after position ``skip``."""
        checked_integer("skip_num_global_samples", skip)
        if self.at_epoch_end == "carry" and skip % self.global_batch_size:
            raise ValueError(
                f'skip_num_global_samples is {skip}; with at_epoch_end="carry" it must be a multiple of the '
                f"global batch size {self.global_batch_size}, or samples would be left out"
            )
        if not self.num_steps(epoch, skip):
            raise ValueError(
                f"skip_num_global_samples is {skip}, which leaves no batch of epoch {epoch}: "
                f"{self.num_items} items, global batch {self.global_batch_size}; skip fewer, or start with "
                f"epoch={epoch + 1} and skip_num_global_samples=0"
            )

    @property
    def batch_size(self) -> int:
        """Number of items per rank and step."""
        return self.global_batch_size // self.share.num_replicas

    def num_steps(self, epoch: int, start: int) -> int:
        """Returns the number of global batches of ``epoch`` from position ``start`` on."""
        return -(-self.order.num_positions(epoch, start) // self.global_batch_size)

    def num_own(self, epoch: int, start: int) -> int:
        """Returns the number of items of this rank in ``epoch`` from position ``start`` on."""
        num_positions = self.order.num_positions(epoch, start)
        return max(0, -(-(num_positions - self.share.rank) // self.share.num_replicas))

    def own(self, epoch: int, start: int) -> Iterator[int]:
        """Yields the items of this rank in ``epoch`` from position ``start`` on."""
        num_own = self.num_own(epoch, start)
        for first in range(0, num_own, CHUNK_ITEMS):
            yield from self._chunk(epoch, start, first, min(CHUNK_ITEMS, num_own - first))

    def batches(self, epoch: int, start: int) -> Iterator[list[int]]:
        """Yields this rank's batches of ``epoch`` from position ``start`` on; all ranks have equally many."""
        num_own, num_rows = self.num_own(epoch, start), self.num_steps(epoch, start) * self.batch_size
        chunk_rows = max(1, CHUNK_ITEMS // self.batch_size) * self.batch_size
        for first in range(0, num_rows, chunk_rows):
            items = self._chunk(epoch, start, first, min(chunk_rows, max(0, num_own - first)))
            for row in range(0, min(chunk_rows, num_rows - first), self.batch_size):
                yield items[row : row + self.batch_size]

    def _chunk(self, epoch: int, start: int, first: int, num: int) -> list[int]:
        """Returns ``num`` items of this rank, starting with its ``first``-th after position ``start``."""
        position = start + self.share.rank + first * self.share.num_replicas
        items: list[int] = self.order.items(epoch, position, self.share.num_replicas, num).tolist()
        return items

    def global_batch(self, step: int, epoch: int | None = None) -> tuple[int, list[int]]:
        """Returns the epoch and the items of a global batch.

        Rank ``r`` of ``R`` has every ``R``-th item, starting with item ``r``.

        Args:
            step: Counted from 0, over all epochs, or within ``epoch`` if it is given.
            epoch: The epoch.

        Raises:
            IndexError: If there is no such step.
        """
        step = integer("step", step)
        if epoch is not None:
            epoch = checked_integer("epoch", epoch)
        if step < 0:
            raise IndexError(f"no step {step}")
        if epoch is None:
            epoch, step = self.order.epoch_of(step)
        if step >= (num_steps := self.num_steps(epoch, 0)):
            raise IndexError(f"no step {step}: epoch {epoch} has {num_steps}")
        start = step * self.global_batch_size
        num = min(self.global_batch_size, self.order.num_positions(epoch, 0) - start)
        items: list[int] = self.order.items(epoch, start, 1, num).tolist()
        return epoch, items


def order_seed(*, shuffle: bool, seed: int, kind: str, orders_itself: bool) -> int | None:
    """Returns the seed of an order, or ``None`` for the items in sequence.

    Args:
        shuffle: Whether to shuffle the items.
        seed: From 0 to 2**64 - 1.
        kind: The class of the dataset, for messages.
        orders_itself: Whether the dataset defines its own order.

    Raises:
        ValueError: If an argument is out of range, or the dataset defines its own order and ``shuffle`` is
            set.
    """
    if not isinstance(shuffle, bool):
        raise ValueError(f"shuffle is {shuffle!r}, expected True or False")
    seed = checked_integer("seed", seed, below=1 << 64)
    if shuffle and orders_itself:
        raise ValueError(
            f"shuffle=True, but {kind} orders its items itself; remove shuffle and give the dataset a seed"
        )
    return seed if shuffle else None


def check_batches(epochs: Epochs, kind: str, *, batch_size: int | None, has_batches: bool) -> None:
    """Raises a ValueError if epochs have no batch, which a training loop would not notice.

    Args:
        epochs: The epochs.
        kind: The class of the dataset.
        batch_size: Items per rank and step, if the caller gave it.
        has_batches: Whether the items are served in batches, not one by one.
    """
    if not epochs.num_items:
        raise ValueError(f"the dataset, of type {kind}, has no items; check its files and options")
    if epochs.num_items >= epochs.global_batch_size or epochs.at_epoch_end in ("pad", "short"):
        return
    num_ranks = epochs.share.num_replicas
    if not has_batches:
        raise ValueError(
            f"an epoch has no samples: {epochs.num_items} items, {num_ranks} ranks; use fewer ranks, or set "
            "at_epoch_end='pad'"
        )
    by_rank = "" if batch_size is None else f" (batch_size {batch_size} on {num_ranks} ranks)"
    raise ValueError(
        f"an epoch has no batch: {epochs.num_items} items, global batch {epochs.global_batch_size}{by_rank}; "
        f"lower {'global_batch_size' if batch_size is None else 'batch_size'}, or set at_epoch_end='short'"
    )

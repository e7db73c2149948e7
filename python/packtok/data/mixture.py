"""`Mixture`: several datasets as one, each in exact proportion to its weight.

The compiled module decides which item of which source comes when. This module opens the sources, makes the
weights exact and assembles batches.
"""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, Protocol, overload

from torch.utils.data import Dataset

from packtok.data.token_dataset import RowsOfMany, TokenDataset
from packtok.data.weights import Weight, check_sources, exact_weights, mixing, source_name
from packtok.integers import checked_integer

__all__ = ["Mixture"]


class _Source(Protocol):
    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> Any: ...


class Mixture(Dataset[Any]):
    """Interleaves the items of several sources in exact proportion to their weights.

    For every ``k``, the first ``k`` items contain each source's share to within less than one item. Any
    window of items is therefore off by less than two, and with two sources by less than one. (For some
    weights, no order of three or more sources stays within one in every window.) The sequence is the same on
    every machine.

    Each source repeats endlessly, in a new order each time. Items come in their training order, so they must
    not be shuffled again; ``packtok.DataLoader`` does not shuffle them.

    Args:
        sources: Weight by source, which is the path of a pbin or a map-style dataset. Only the ratios of the
            weights matter. A float counts as the decimal number it prints as.
        seed: Determines the orders.
        num_items: Length of the mixture, at least 1. Default: the total length of all sources.
        shuffle: Whether to shuffle the sources. Otherwise each is read from first to last item.
        **options: For paths, the arguments of `TokenDataset`. Must contain ``context_length`` then.

    Raises:
        ValueError: If a weight is not a number above 0, another argument is out of range, a source is empty
            or named twice, or the sources do not have the same fields.
        TypeError: If ``sources`` is not a mapping, ``context_length`` is missing for a path, or there are
            options but no path.

    Example:
        >>> packtok.Mixture({"web.pbin": 0.7, "code.pbin": 0.3}, context_length=128).counts(10)
        {'web.pbin': 7, 'code.pbin': 3}
    """

    orders_itself = True

    def __init__(
        self,
        sources: Mapping[Any, Weight],
        *,
        seed: int = 0,
        num_items: int | None = None,
        shuffle: bool = True,
        **options: Any,
    ) -> None:
        if not isinstance(sources, Mapping):
            raise TypeError(
                f"sources is of type {type(sources).__name__}, expected a dict of weights by source"
            )
        self.names = [source_name(source, i) for i, source in enumerate(sources)]
        check_sources(self.names, sources, options)
        weights = exact_weights(dict(zip(self.names, sources.values(), strict=True)))
        self._sources = [
            _opened(name, source, options) for name, source in zip(self.names, sources, strict=True)
        ]
        lengths = [len(source) for source in self._sources]
        self._mixing = mixing(self.names, weights, lengths, seed=seed, num_items=num_items, shuffle=shuffle)
        self._prepare()

    def _prepare(self) -> None:
        self._mixture = self._mixing.draws()
        datasets = [source for source in self._sources if isinstance(source, TokenDataset)]
        self._rows = RowsOfMany(datasets) if len(datasets) == len(self._sources) else None

    def __len__(self) -> int:
        return self._mixing.num_items

    @overload
    def __getitem__(self, k: int, /) -> Any: ...
    @overload
    def __getitem__(self, k: slice, /) -> Sequence[Any]: ...
    def __getitem__(self, k: int | slice, /) -> Any:
        """Returns item ``k``, or the items of a slice; negative indices count from the end."""
        if isinstance(k, slice):
            return self.__getitems__(range(len(self))[k])
        source, position = self.source_of(k)
        return self._sources[source][position]

    def __getitems__(self, items: Sequence[int]) -> Sequence[Any]:
        """Returns the items in the order given; with `TokenDataset` sources, as rows of one batch."""
        sources, positions = self._mixture.draws([self._ordinal(k) for k in items])
        if self._rows is not None:
            return self._rows(sources, positions)
        batch_items: list[Any] = [None] * len(items)
        for number, source in enumerate(self._sources):
            rows = (sources == number).nonzero()[0].tolist()
            for row, item in zip(rows, _items_of(source, positions[rows].tolist()), strict=True):
                batch_items[row] = item
        return batch_items

    def source_of(self, k: int) -> tuple[int, int]:
        """Returns the index of item ``k``'s source and the item's index in it."""
        sources, positions = self._mixture.draws([self._ordinal(k)])
        return int(sources[0]), int(positions[0])

    def counts(self, num_items: int) -> dict[str, int]:
        """Returns how many of the first ``num_items`` items come from each source, by name."""
        counts = self._mixture.counts(checked_integer("num_items", num_items))
        return dict(zip(self.names, counts, strict=True))

    def epochs(self, num_items: int) -> dict[str, float]:
        """Returns the number of epochs of each source in the first ``num_items`` items by name."""
        counts = self.counts(num_items)
        return {
            name: counts[name] / len(source) for name, source in zip(self.names, self._sources, strict=True)
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256, as hex, of everything that determines the sequence of items; ``num_items`` does not."""
        prints = [_fingerprint(source) for source in self._sources]
        return self._mixing.fingerprint(prints)

    def locate(self, k: int) -> list[tuple[str, int, int, int]]:
        """Returns the documents whose tokens are in item ``k``, in the format of its source's ``locate``.

        Raises:
            TypeError: If the source has no method ``locate``.
        """
        source, position = self.source_of(k)
        locate = getattr(self._sources[source], "locate", None)
        if locate is None:
            raise TypeError(f"{self.names[source]}: cannot tell which documents its items come from")
        documents: list[tuple[str, int, int, int]] = locate(position)
        return documents

    def prefetch(self, items: Iterable[int]) -> None:
        """Asks the operating system to read the pages of ``items``, without waiting; skips other datasets."""
        sources, positions = self._mixture.draws([self._ordinal(k) for k in items])
        for number, source in enumerate(self._sources):
            if hasattr(source, "prefetch"):
                source.prefetch(positions[sources == number].tolist())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_mixture", "_rows")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    def __repr__(self) -> str:
        weights = ", ".join(map("{}: {}".format, self.names, self._mixing.weights))
        return f"Mixture({{{weights}}}, num_items={len(self)}, seed={self._mixing.seed})"

    def _ordinal(self, k: int) -> int:
        """Returns the non-negative index of item ``k``.

        Raises:
            IndexError: If there is no such item.
        """
        k = int(k)
        if not -len(self) <= k < len(self):
            raise IndexError(f"item {k} is out of range, the mixture has {len(self)}")
        return k % len(self)


def _opened(name: str, source: Any, options: Mapping[str, Any]) -> _Source:
    if not isinstance(source, str | PathLike):
        if not hasattr(source, "__len__") or not hasattr(source, "__getitem__"):
            kind = type(source).__name__
            raise TypeError(f"{name} is of type {kind}, expected a path or a map-style dataset")
        dataset: _Source = source
        return dataset
    if "context_length" not in options:
        raise TypeError(f"{fspath(source)}: context_length is missing; a path needs it")
    return TokenDataset(source, **options)


def _items_of(source: Any, positions: list[int]) -> Sequence[Any]:
    """Returns items of one source, with one call if it has ``__getitems__``."""
    if hasattr(source, "__getitems__") and positions:
        items: Sequence[Any] = source.__getitems__(positions)
        return items
    return [source[position] for position in positions]


def _fingerprint(source: Any) -> str:
    """Returns the identity of a source: its fingerprint if it has one, otherwise its class and length."""
    kind = type(source)
    return str(getattr(source, "fingerprint", f"{kind.__module__}.{kind.__qualname__} {len(source)}"))

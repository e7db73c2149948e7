"""The sources of a mixture by name, and what determines the sequence of its items; imports no torch."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from os import PathLike, fspath
from typing import Any

import numpy as np

from packtok import _packtok
from packtok.fingerprint import digest
from packtok.integers import checked_integer

__all__ = ["Mixing", "Weight", "check_sources", "exact_weights", "mixing", "source_name"]

Weight = int | float | Fraction | Decimal

# Weights that need a larger total are rounded to it, which is 9 digits finer than a weight of 1e-9.
_FINEST_TOTAL = 1 << 60


@dataclass(frozen=True)
class Mixing:
    """What determines the sequence of a mixture's items, besides the items of its sources."""

    weights: list[int]
    lengths: list[int]
    seed: int | None
    num_items: int

    def draws(self) -> _packtok.Mixture:
        """Returns the object that finds the source of an item, and the item in it."""
        return _packtok.Mixture(self.weights, lengths=self.lengths, seed=self.seed)

    def fingerprint(self, sources: Sequence[str]) -> str:
        """Returns what identifies the sequence, from the fingerprints of the sources; without its length."""
        return digest([sources, self.weights, self.seed])


def mixing(
    names: Sequence[str],
    weights: list[int],
    lengths: list[int],
    *,
    seed: int = 0,
    num_items: int | None = None,
    shuffle: bool = True,
) -> Mixing:
    """Returns what the arguments of `packtok.Mixture` determine.

    Raises:
        ValueError: If an argument is out of range, or a source has no items.
    """
    own_seed = checked_integer("seed", seed, below=1 << 64) if shuffle else None
    if 0 in lengths:
        raise ValueError(f"{names[lengths.index(0)]}: has no items; remove it")
    total = sum(lengths) if num_items is None else checked_integer("num_items", num_items, least=1)
    return Mixing(weights, lengths, own_seed, total)


def exact_weights(weights: Mapping[str, Weight]) -> list[int]:
    """Returns integers in the ratios of ``weights``.

    Ratios that need a total over 2**60 are rounded to one, but not to 0.

    Raises:
        ValueError: If a weight is not a number above 0.
    """
    exact = [_exact(name, weight) for name, weight in weights.items()]
    measure = math.lcm(*(weight.denominator for weight in exact))
    integers = [int(weight * measure) for weight in exact]
    total = sum(integers)
    if total > _FINEST_TOTAL:
        integers = [max(1, round(Fraction(weight * _FINEST_TOTAL, total))) for weight in integers]
    return integers


def _exact(name: str, weight: Weight) -> Fraction:
    if isinstance(weight, bool | str):
        raise ValueError(f"{name}: the weight is {weight!r}, expected a number above 0")
    try:
        # A float's exact value has a denominator of about 2**55. The user meant the number that the float
        # prints as.
        exact = Fraction(str(weight)) if isinstance(weight, float | np.floating) else Fraction(weight)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"{name}: the weight is {weight!r}, expected a number above 0") from None
    if exact <= 0:
        raise ValueError(f"{name}: the weight is {weight!r}, expected a number above 0; remove the source")
    return exact


def check_sources(names: Sequence[str], sources: Iterable[Any], options: Mapping[str, Any]) -> None:
    """Raises if a source is named twice, or if there are options but no path."""
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise ValueError(f"{twice[0]}: is given twice; give it once, with the sum of its weights")
    if options and not any(isinstance(source, str | PathLike) for source in sources):
        raise TypeError(
            f"{', '.join(options)}: is not an argument of Mixture; options of TokenDataset apply to paths, "
            "but no source is a path"
        )


def source_name(source: object, i: int) -> str:
    """Returns the path of a source, or its number."""
    return fspath(source) if isinstance(source, str | PathLike) else f"source {i}"

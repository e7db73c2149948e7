"""The sources of a mixture by name, and their weights as exact integers; imports no torch."""

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from os import PathLike, fspath
from typing import Any

import numpy as np

from packtok.fingerprint import digest

__all__ = ["Weight", "check_sources", "exact_weights", "mixture_fingerprint", "source_name"]

Weight = int | float | Fraction | Decimal

# Weights that need a larger total are rounded to it, which is 9 digits finer than a weight of 1e-9.
_FINEST_TOTAL = 1 << 60


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


def mixture_fingerprint(sources: Sequence[str], weights: Sequence[int], seed: int | None) -> str:
    """Returns what identifies the sequence of a mixture's items, from the fingerprints of its sources."""
    return digest([sources, weights, seed])

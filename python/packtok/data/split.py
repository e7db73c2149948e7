"""Train and validation sides of a split: checks the held-out share, and finds the documents of each side."""

from numbers import Real
from typing import Any, Literal, TypedDict

from packtok._packtok import Blocks, find_or_split
from packtok.integers import checked_integer
from packtok.sources import Files

__all__ = ["HeldOut", "Split", "held_out", "side_of"]

Split = Literal["train", "validation"]


class HeldOut(TypedDict):
    """Arguments of `find_or_split`, which select the documents for validation."""

    fraction: float | None
    last: int | float | None
    first_document: int | None
    seed: int | None


def held_out(
    split: Split | None,
    *,
    validation_fraction: float | None,
    validation_last: int | float | None,
    validation_from: int | None,
    split_seed: int,
) -> HeldOut:
    """Checks the arguments of `TokenDataset` that select the validation documents.

    Raises:
        ValueError: If one is out of range, or not exactly one of them is given with a split.
    """
    rules = (validation_fraction, validation_last, validation_from)
    num_rules = sum(rule is not None for rule in rules)
    if num_rules != (split is not None):
        raise ValueError(
            f"split is {split!r} and {num_rules} of validation_fraction, validation_last and validation_from "
            "are given; give one of them with a split, and none without"
        )
    seed = checked_integer("split_seed", split_seed, below=1 << 64)
    return {
        "fraction": None
        if validation_fraction is None
        else _share("validation_fraction", validation_fraction),
        "last": None if validation_last is None else _last(validation_last),
        "first_document": None
        if validation_from is None
        else checked_integer("validation_from", validation_from),
        "seed": seed if validation_fraction is not None else None,
    }


def side_of(files: Files, split: Split | None, rule: HeldOut, folders: list[str]) -> dict[str, str]:
    """Returns the arguments of `Blocks` for one side of a split; empty if there is no split.

    Loads the split from a file, or computes and stores it.

    Raises:
        ValueError: If that side has no document.
    """
    if split is None:
        return {}
    documents = Blocks(**files, packing="whole")
    split_path = str(find_or_split(documents, **rule, folders=folders))
    if not len(Blocks(**files, packing="whole", split_path=split_path, side=split)):
        more = "more" if split == "validation" else "fewer"
        raise ValueError(
            f"{documents.paths[0]}: the {split} side of the split has none of the {len(documents)} "
            f"documents, because {_rule_text(rule)}; hold out {more}"
        )
    return {"split_path": split_path, "side": split}


def _rule_text(rule: HeldOut) -> str:
    names = {
        "fraction": "validation_fraction",
        "last": "validation_last",
        "first_document": "validation_from",
    }
    options: dict[str, Any] = {name: value for name, value in rule.items() if value is not None}
    return " and ".join(f"{names[name]} is {value!r}" for name, value in options.items() if name in names)


def _last(value: object) -> int | float:
    return _share("validation_last", value) if isinstance(value, float) else _number("validation_last", value)


def _number(name: str, value: object) -> int:
    """Returns ``value`` as a number of documents.

    Raises:
        ValueError: If it is not an integer of at least 0.
    """
    try:
        return checked_integer(name, value)
    except ValueError:
        raise ValueError(
            f"{name} is {value!r}, expected a number of documents as an int, or a fraction from 0.0 to 1.0"
        ) from None


def _share(name: str, value: object) -> float:
    """Returns ``value`` as a fraction of the documents.

    Raises:
        ValueError: If it is not from 0 to 1.
    """
    share = float(value) if isinstance(value, Real) and not isinstance(value, bool) else None
    if share is None or not 0 <= share <= 1:
        raise ValueError(f"{name} is {value!r}, expected a fraction from 0 to 1")
    # An int stays an int, because the fingerprint covers the value as the caller passed it.
    return value if isinstance(value, int) else share

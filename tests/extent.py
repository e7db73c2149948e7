"""How much the tests do: slices in CI, everything with `tests/run.py --thorough`."""

import os
from typing import TypeVar

T = TypeVar("T")

IS_THOROUGH = os.environ.get("PACKTOK_THOROUGH") == "1"


def extent(all_of_it: T, some_of_it: T) -> T:
    """The first value in the thorough run, the second in any other."""
    return all_of_it if IS_THOROUGH else some_of_it

"""The extent of the tests: slices in CI, everything with `tests/run.py --thorough`."""

import os
from typing import TypeVar

T = TypeVar("T")

IS_THOROUGH = os.environ.get("PACKTOK_THOROUGH") == "1"


def extent(all_of_it: T, some_of_it: T) -> T:
    """Returns the first value in a thorough run, otherwise the second."""
    return all_of_it if IS_THOROUGH else some_of_it

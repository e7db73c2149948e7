"""Random numbers for the user's functions.

Apart from `packtok.stream.functions`, because processes import this module, and need no torch for it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

# The lane and the number of a sample in it; no lane for a row of all lanes.
Key = tuple[int | None, int]


class WithGenerator:
    """Calls a function with a sample and a generator that depends on the sample's position alone."""

    def __init__(self, function: Callable[..., Any], seed: int) -> None:
        self._function, self._seed = function, seed

    def __call__(self, sample: Any, key: Key) -> Any:
        """Returns what the function returns."""
        lane, number = key
        entropy = [self._seed, 0 if lane is None else lane + 1, number]
        return self._function(sample, np.random.default_rng(entropy))

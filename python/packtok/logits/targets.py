"""Targets from logits: the most probable ids with their probabilities, or ids drawn from the distribution.

Both take float32 logits of a slice of positions, (N, V).
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["sampled", "top_k", "uniforms"]

_GAMMA = 0x9E3779B97F4A7C15
_UNIFORM_BITS = 52


def top_k(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Returns probabilities (N, k + 1) in float16 and ids (N, k) in int32, the most probable first.

    The last probability is the sum of all other ids' probabilities. One minus the first k would be rounding
    errors if the sum is small. Changes ``logits``.
    """
    top, index = torch.topk(logits, k, dim=-1)
    highest = top[:, :1]
    masses = logits.sub_(highest).exp_().scatter_(-1, index, 0.0)
    remainder = masses.sum(-1, keepdim=True)
    masses = torch.cat([(top - highest).exp_(), remainder], dim=-1)
    return (masses / masses.sum(-1, keepdim=True)).half(), index.int()


def sampled(logits: Tensor, uniform: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Returns ids (N, M) drawn with replacement, and the log-probability (N,) of a label for each position.

    A number in ``uniform``, (N, M) in float64 in [0, 1), selects the id at which the cumulative probability
    exceeds it, so an id is drawn with exactly its probability. The log-probability of a negative label is
    NaN. Changes ``logits``.
    """
    logits.sub_(logits.amax(-1, keepdim=True))
    chosen = logits.gather(-1, labels.clamp(min=0)[:, None])
    # Works in place, because the cumulative sums are the largest tensor.
    cumulative = logits.exp_().double()
    cumulative.cumsum_(-1)
    total = cumulative[:, -1:]
    # The product is below the total, because uniform numbers have one bit less than a float64.
    drawn = torch.searchsorted(cumulative, uniform * total, right=True)
    logprobs = (chosen.double() - total.log())[:, 0].float()
    return drawn, logprobs.masked_fill(labels < 0, torch.nan)


def uniforms(
    seed: int, samples: npt.NDArray[np.int64], num_positions: int, num_draws: int
) -> npt.NDArray[np.float64]:
    """Returns numbers in [0, 1) of shape (samples, positions, draws).

    Each number is a function of (seed, sample, position, draw), so that the draws of a sample do not depend
    on its batch, its shard or restarts. The function is the mixer of SplitMix64
    (doi:10.1145/2660193.2660195), applied once for each of the four numbers.
    """
    state = _mixed(np.uint64(seed % 2**64) + np.zeros(1, np.uint64))
    state = _mixed(state ^ _spread(samples.astype(np.uint64)))[:, None]
    state = _mixed(state ^ _spread(np.arange(num_positions, dtype=np.uint64)))[..., None]
    state = _mixed(state ^ _spread(np.arange(num_draws, dtype=np.uint64)))
    return (state >> np.uint64(64 - _UNIFORM_BITS)).astype(np.float64) * 2.0**-_UNIFORM_BITS


def _spread(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return (numbers + np.uint64(1)) * np.uint64(_GAMMA)


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    numbers = numbers + np.uint64(_GAMMA)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))

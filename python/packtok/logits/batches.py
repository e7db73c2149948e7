"""The division of samples into batches that are computed together.

Batches are cut at sample numbers that do not depend on the shards: the last bits of floating-point results
depend on the batch, and a sample must have the same bytes in any number of shards.
"""

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Batches", "slice_rows"]

# Bytes of float32 logits that exist at once. Targets take up to six times as much. The caches of a CPU hold
# few bytes, and a GPU needs many to be busy.
_SLICE_BYTES = {"cpu": 8 << 20, "cuda": 128 << 20}


@dataclass(frozen=True)
class Batches:
    """Samples ``0..num_samples``, in batches of ``size``; the last may have fewer."""

    num_samples: int
    size: int

    @classmethod
    def of_budget(cls, num_samples: int, tokens_per_sample: int, batch_tokens: int) -> "Batches":
        """Returns batches of at most ``batch_tokens`` tokens, or of one sample."""
        return cls(num_samples, max(1, batch_tokens // tokens_per_sample))

    def shard(self, number: int, num_shards: int) -> range:
        """Returns the samples of a shard: whole batches, about equally many for each shard."""
        num_batches = -(-self.num_samples // self.size)
        start, stop = (num_batches * k // num_shards * self.size for k in (number, number + 1))
        return range(min(start, self.num_samples), min(stop, self.num_samples))

    def files(self, samples: range, file_samples: int) -> list[range]:
        """Returns the samples of each file of a shard: whole batches of about ``file_samples``."""
        step = max(1, file_samples // self.size) * self.size
        return [range(i, min(i + step, samples.stop)) for i in range(samples.start, samples.stop, step)]

    def within(self, samples: range) -> Iterator[range]:
        """Yields the batches of a file."""
        for i in range(samples.start, samples.stop, self.size):
            yield range(i, min(i + self.size, samples.stop))


def slice_rows(vocab_size: int, device_type: str) -> int:
    """Returns the number of positions whose logits are computed at once."""
    return max(1, _SLICE_BYTES.get(device_type, _SLICE_BYTES["cuda"]) // (4 * vocab_size))

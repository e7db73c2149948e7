"""The two kinds of targets: their columns, and computing them for a batch."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from packtok.logits.batches import slice_rows
from packtok.logits.inputs import Sample
from packtok.logits.models import Teacher
from packtok.logits.output import Arrays
from packtok.logits.targets import sampled, top_k, uniforms

__all__ = ["Method", "Sampled", "TopK", "targets_of"]


class Method(Protocol):
    """A kind of targets."""

    @property
    def facts(self) -> dict[str, Any]:
        """What distinguishes its targets from others, for the marker."""

    def columns(self, num_positions: int, vocab_size: int) -> dict[str, str]:
        """Returns the encodings of its columns."""

    def bytes_per_token(self, vocab_size: int) -> int:
        """Returns the bytes that a position takes in a file."""

    def of_slice(self, logits: Tensor, labels: Tensor, uniform: Tensor) -> tuple[Tensor, ...]:
        """Returns the values of its columns for float32 logits (N, V)."""

    def uniforms(self, samples: range, num_positions: int) -> npt.NDArray[np.float64]:
        """Returns the random numbers (samples, positions, n) that it needs."""


@dataclass(frozen=True)
class TopK:
    """The ``k`` most probable ids and their probabilities, and the mass of all others."""

    k: int

    @property
    def facts(self) -> dict[str, Any]:
        """Returns what distinguishes its targets."""
        return {"name": "topk", "topk": self.k}

    def columns(self, num_positions: int, vocab_size: int) -> dict[str, str]:
        """Returns the encodings of its columns."""
        del vocab_size
        return {
            "target_prob": f"ndarray:float16:{num_positions},{self.k + 1}",
            "target_index": f"ndarray:int32:{num_positions},{self.k}",
        }

    def bytes_per_token(self, vocab_size: int) -> int:
        """Returns the bytes of a position."""
        del vocab_size
        return 2 * (self.k + 1) + 4 * self.k

    def of_slice(self, logits: Tensor, labels: Tensor, uniform: Tensor) -> tuple[Tensor, ...]:
        """Returns probabilities and ids."""
        del labels, uniform
        return top_k(logits, self.k)

    def uniforms(self, samples: range, num_positions: int) -> npt.NDArray[np.float64]:
        """Returns no number for any position."""
        return np.empty((len(samples), num_positions, 0))


@dataclass(frozen=True)
class Sampled:
    """``draws`` ids drawn with replacement, and the log-probability of the next token."""

    draws: int
    seed: int

    @property
    def facts(self) -> dict[str, Any]:
        """Returns what distinguishes its targets."""
        return {"name": "sampled", "draws": self.draws, "seed": self.seed}

    def columns(self, num_positions: int, vocab_size: int) -> dict[str, str]:
        """Returns the encodings of its columns."""
        return {
            "draw_index": f"ndarray:{self._dtype(vocab_size)}:{num_positions},{self.draws}",
            "label_logprob": f"ndarray:float32:{num_positions}",
        }

    def bytes_per_token(self, vocab_size: int) -> int:
        """Returns the bytes of a position."""
        return self.draws * np.dtype(self._dtype(vocab_size)).itemsize + 4

    def of_slice(self, logits: Tensor, labels: Tensor, uniform: Tensor) -> tuple[Tensor, ...]:
        """Returns ids and log-probabilities."""
        return sampled(logits, uniform, labels)

    def uniforms(self, samples: range, num_positions: int) -> npt.NDArray[np.float64]:
        """Returns a number for each draw."""
        return uniforms(self.seed, np.array(samples), num_positions, self.draws)

    def _dtype(self, vocab_size: int) -> str:
        return "uint16" if vocab_size <= 1 << 16 else "uint32"


def targets_of(
    teacher: Teacher, method: Method, samples: list[Sample], numbers: range, vocab_size: int
) -> list[Arrays]:
    """Returns the columns of each sample of a batch; ``numbers`` are those of the samples in their folder."""
    num_positions = len(samples[0].labels)
    whole = {
        name: _empty(len(samples), encoding)
        for name, encoding in method.columns(num_positions, vocab_size).items()
    }
    # Allocated once: small results of each slice, left between its large temporaries, fragment the heap by up
    # to a gigabyte.
    flat = [values.reshape(-1, *values.shape[2:]) for values in whole.values()]
    with torch.inference_mode():
        hidden = _decoder_states(teacher, samples, num_positions)
        labels = torch.from_numpy(np.concatenate([sample.labels for sample in samples])).to(teacher.device)
        # A label beyond the vocabulary has no probability.
        labels = labels.masked_fill(labels >= vocab_size, -1)
        uniform = torch.from_numpy(method.uniforms(numbers, num_positions)).flatten(0, 1)
        step = slice_rows(vocab_size)
        for start in range(0, len(hidden), step):
            rows = slice(start, start + step)
            logits = teacher.logits(hidden[rows], vocab_size)
            of_slice = method.of_slice(logits, labels[rows], uniform[rows].to(teacher.device))
            for values, found in zip(flat, of_slice, strict=True):
                values[rows] = found.cpu().numpy()
    return [{name: values[i] for name, values in whole.items()} for i in range(len(samples))]


def _empty(num_samples: int, encoding: str) -> npt.NDArray[Any]:
    """Returns an array for the values of a column, as its encoding describes them."""
    _, dtype, shape = encoding.split(":")
    return np.empty((num_samples, *map(int, shape.split(","))), dtype)


def _decoder_states(teacher: Teacher, samples: list[Sample], num_positions: int) -> Tensor:
    """Returns the states (samples * positions, H) after each decoder token."""
    # The length depends on the batch alone; the positions after a shorter sample have no effect on it.
    width = max(len(sample.ids) for sample in samples)
    ids = np.zeros((len(samples), width), np.int64)
    for row, sample in zip(ids, samples, strict=True):
        row[: len(sample.ids)] = sample.ids
    states = teacher.hidden(torch.from_numpy(ids).to(teacher.device))
    return torch.cat(
        [
            row[sample.num_context : sample.num_context + num_positions]
            for row, sample in zip(states, samples, strict=True)
        ]
    )

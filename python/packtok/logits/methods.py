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

__all__ = ["Method", "Sampled", "Targets", "TopK", "targets_of"]


class Method(Protocol):
    """A kind of targets."""

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that distinguish these targets from others, for the marker."""

    def columns(self, num_positions: int, vocab_size: int) -> dict[str, str]:
        """Returns the encodings of its columns."""

    def bytes_per_token(self, vocab_size: int) -> int:
        """Returns the bytes that a position takes in a file."""

    def of_slice(self, logits: Tensor, labels: Tensor, uniform: Tensor) -> tuple[Tensor, ...]:
        """Returns the values of its columns for float32 logits (N, V)."""

    def uniforms(self, samples: range, num_positions: int) -> npt.NDArray[np.float64]:
        """Returns the random numbers (samples, positions, n) that the method needs."""


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


@dataclass(frozen=True)
class Targets:
    """The targets of a batch, which a GPU may still be computing."""

    columns: dict[str, npt.NDArray[Any]]
    """The values of all samples."""
    is_computed: torch.cuda.Event | None

    def of_samples(self) -> list[Arrays]:
        """Waits for the values, and returns the columns of each sample."""
        if self.is_computed is not None:
            self.is_computed.synchronize()
        num_samples = len(next(iter(self.columns.values())))
        return [{name: values[i] for name, values in self.columns.items()} for i in range(num_samples)]


def targets_of(
    teacher: Teacher, method: Method, samples: list[Sample], numbers: range, vocab_size: int
) -> Targets:
    """Computes the targets of a batch; ``numbers`` are those of the samples in their folder.

    On a GPU, the computation is only started.
    """
    num_positions, device = len(samples[0].labels), teacher.device
    # The memory is allocated once: if small results of each slice lay between its large temporaries, the heap
    # would fragment by up to a gigabyte.
    encodings = method.columns(num_positions, vocab_size)
    values = {name: _empty(len(samples), encoding, device) for name, encoding in encodings.items()}
    flat = [column.flatten(0, 1) for column in values.values()]
    with torch.inference_mode():
        hidden = _decoder_states(teacher, samples, num_positions)
        labels = _on_device(np.concatenate([sample.labels for sample in samples]), device)
        # A label beyond the vocabulary has no probability.
        labels = labels.masked_fill(labels >= vocab_size, -1)
        uniform = _on_device(method.uniforms(numbers, num_positions), device).flatten(0, 1)
        step = slice_rows(vocab_size, device.type)
        for start in range(0, len(hidden), step):
            rows = slice(start, start + step)
            logits = teacher.logits(hidden[rows], vocab_size)
            for column, result in zip(
                flat, method.of_slice(logits, labels[rows], uniform[rows]), strict=True
            ):
                column[rows].copy_(result.to(column.dtype), non_blocking=True)
    is_computed = None
    if device.type == "cuda":
        is_computed = torch.cuda.Event()  # type: ignore[no-untyped-call]
        is_computed.record(torch.cuda.current_stream(device))
    dtypes = {name: encoding.split(":")[1] for name, encoding in encodings.items()}
    return Targets({name: column.numpy().view(dtypes[name]) for name, column in values.items()}, is_computed)


def _empty(num_samples: int, encoding: str, device: torch.device) -> Tensor:
    """Returns memory of the host for the values of a column, as its encoding describes them.

    Unsigned types are replaced by signed ones of the same size, because torch supports few operations on
    them.
    """
    _, dtype, shape = encoding.split(":")
    return torch.empty(
        (num_samples, *map(int, shape.split(","))),
        dtype=getattr(torch, dtype.removeprefix("u")),
        pin_memory=device.type == "cuda",
    )


def _on_device(array: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Copies an array to the device; does not wait for a GPU."""
    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def _decoder_states(teacher: Teacher, samples: list[Sample], num_positions: int) -> Tensor:
    """Returns the states (samples * positions, H) after each decoder token."""
    # The length depends on the batch only. Positions after a shorter sample have no effect on it.
    width = max(len(sample.ids) for sample in samples)
    ids = np.zeros((len(samples), width), np.int64)
    for row, sample in zip(ids, samples, strict=True):
        row[: len(sample.ids)] = sample.ids
    states = teacher.hidden(_on_device(ids, teacher.device))
    return torch.cat(
        [
            row[sample.num_context : sample.num_context + num_positions]
            for row, sample in zip(states, samples, strict=True)
        ]
    )

"""The fields of a batch: allocated as one piece of memory and filled by one call of the compiled module."""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch.utils.data import get_worker_info

from packtok.data.batch_memory import MIN_BYTES, reusable
from packtok.data.collate import ItemList

__all__ = ["Fields", "allocated", "check_pin_memory", "document_mask", "in_pinned_memory"]

# Fields start at cache lines, so that vector stores of two cores never write the same line.
_ALIGNMENT_BYTES = 64
_NUMPY_DTYPES: dict[torch.dtype, np.dtype[Any]] = {
    torch.uint16: np.dtype(np.uint16),
    torch.uint32: np.dtype(np.uint32),
    torch.int64: np.dtype(np.int64),
    torch.int32: np.dtype(np.int32),
    torch.bool: np.dtype(np.bool_),
}

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Fields:
    """The arrays of a batch and how they are filled."""

    context_length: int
    dtypes: dict[str, torch.dtype]
    pad_token_id: int
    aligned: bool
    segments: bool
    document_mask: Literal["compact", "dense"] | None
    pin_memory: bool
    loss_markers: tuple[int, int] | None = None
    """The ids between which labels count in the loss."""

    def filled(self, num_rows: int, fill: Callable[..., tuple[np.ndarray[Any, Any], int] | None]) -> ItemList:
        """Returns a batch in newly allocated memory.

        Args:
            num_rows: Number of items.
            fill: `Blocks.fill` or `fill_from`, with the items bound.
        """
        shape = (num_rows, self.context_length)
        shapes = {name: (dtype, shape) for name, dtype in self.dtypes.items()}
        tensors, arrays = allocated(shapes, pin_memory=self.pin_memory)
        batch: dict[str, Any] = tensors
        segments = fill(
            **arrays,
            pad_token_id=self.pad_token_id,
            aligned=self.aligned,
            segments=self.segments,
            loss_markers=self.loss_markers,
        )
        if segments is not None:
            batch["cu_seqlens"], batch["max_seqlen"] = torch.from_numpy(segments[0]), segments[1]
        if self.document_mask == "compact":
            batch["document_mask"] = batch["document_ids"]
        elif self.document_mask == "dense":
            batch["document_mask"] = document_mask(batch["document_ids"])
        return ItemList(in_pinned_memory(batch) if self.pin_memory else batch)


def allocated(
    shapes: Mapping[Key, tuple[torch.dtype, tuple[int, ...]]], *, pin_memory: bool
) -> tuple[dict[Key, torch.Tensor], dict[Key, np.ndarray[Any, Any]]]:
    """Returns uninitialized tensors of these dtypes and shapes by their keys, and array views of them.

    They are in one piece of memory, unless they are small. It is shared in a worker, to avoid a copy, or
    pinned if ``pin_memory`` is set; otherwise it is that of an earlier batch which nothing refers to.
    """
    starts, total_bytes = {}, 0
    for key, (dtype, shape) in shapes.items():
        starts[key] = total_bytes
        # One more cache line than needed, so that fields without rows have different addresses too.
        total_bytes += (math.prod(shape) * dtype.itemsize // _ALIGNMENT_BYTES + 1) * _ALIGNMENT_BYTES
    storage = _storage(total_bytes, pin_memory=pin_memory)
    if storage is not None:
        tensors = {
            key: torch.empty(0, dtype=dtype).set_(
                storage, starts[key] // dtype.itemsize, shape, _strides(shape)
            )
            for key, (dtype, shape) in shapes.items()
        }
        return tensors, {key: tensor.numpy() for key, tensor in tensors.items()}
    # Creating arrays first takes a third of the time that creating tensors over one storage takes.
    if total_bytes < MIN_BYTES:
        # malloc keeps freed memory of this size, and returns it faster.
        arrays = {key: np.empty(shape, _NUMPY_DTYPES[dtype]) for key, (dtype, shape) in shapes.items()}
    else:
        memory = reusable(total_bytes)
        arrays = {
            key: np.ndarray(shape, _NUMPY_DTYPES[dtype], memory, starts[key])
            for key, (dtype, shape) in shapes.items()
        }
    return {key: torch.from_numpy(array) for key, array in arrays.items()}, arrays


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def _storage(num_bytes: int, *, pin_memory: bool) -> torch.UntypedStorage | None:
    """Allocates shared memory in a worker, or pinned memory."""
    if get_worker_info() is not None:
        shared: torch.UntypedStorage = torch.UntypedStorage._new_shared(num_bytes)  # type: ignore[no-untyped-call]
        return shared
    if pin_memory:
        try:
            return torch.empty(num_bytes, dtype=torch.uint8, pin_memory=True).untyped_storage()
        except RuntimeError:
            # A pickled dataset may arrive on a machine that cannot pin memory.
            check_pin_memory(pin_memory=True)
            raise
    return None


def check_pin_memory(*, pin_memory: bool) -> None:
    """Checks that memory can be pinned if it is requested; does not initialize the device.

    Raises:
        ValueError: If it cannot. Torch itself raises at the first batch, with another message in each
            version.
    """
    if pin_memory and not _has_accelerator():
        raise ValueError(
            "pin_memory is True, but PyTorch finds no CUDA device, which pinned memory needs; use "
            "pin_memory=torch.cuda.is_available(), or remove pin_memory"
        )


def _has_accelerator() -> bool:
    # `torch.accelerator`, of torch 2.6 and later, knows devices other than CUDA that can pin memory.
    accelerator = getattr(torch, "accelerator", None)
    return torch.cuda.is_available() or (accelerator is not None and accelerator.is_available())


def in_pinned_memory(batch: dict[str, Any]) -> dict[str, Any]:
    """Returns ``batch`` with copies in pinned memory of the tensors that are elsewhere.

    Except in a worker, whose batches are in shared memory until the DataLoader pins them.
    """
    if get_worker_info() is not None:
        return batch
    return {
        name: value.pin_memory() if isinstance(value, torch.Tensor) else value
        for name, value in batch.items()
    }


def document_mask(document_ids: torch.Tensor) -> torch.Tensor:
    """Returns a mask of the inputs that each input may attend to: itself and those before it in its document.

    Padding counts as a separate document, so that no row of the matrix is empty.

    Args:
        document_ids: Document of each input, of shape ``(..., context_length)``, on any device.

    Returns:
        Bool tensor of shape ``(..., context_length, context_length)``. Queries precede keys.
    """
    same_document = document_ids.unsqueeze(-1) == document_ids.unsqueeze(-2)
    return same_document.tril_()

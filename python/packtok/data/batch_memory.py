"""Memory for batches: what the last batches had is given again as soon as nothing refers to it.

New memory of this length comes from the system page by page, zeroed, when it is first written, and goes back
when it is freed, unless the heap happens to keep it. That costs several times what writing the batch costs
(0.74 against 0.10 ms for 64 rows of 2048 ids and labels, in a virtual machine on an EPYC).
"""

import weakref
from collections import deque

import numpy as np
import numpy.typing as npt
import torch

__all__ = ["reusable"]

# A loop over batches has two at a time, the one in use and the next.
_MAX_KEPT = 4
# Below this malloc keeps what is freed.
_MIN_BYTES = 128 << 10

_Bytes = npt.NDArray[np.uint8]
# Memory, and the array of it that was given out last. All that is made of that array refers to it: NumPy
# looks for the owner of the memory behind it, but stops there, because the owner is a tensor and no array.
_kept: deque[tuple[torch.Tensor, weakref.ref[_Bytes]]] = deque()


def reusable(num_bytes: int) -> _Bytes:
    """Unfilled memory of at least ``num_bytes`` that nothing else refers to.

    All that is made of it, tensors, views and NumPy's, keeps it from being given out again. Not for pinned
    memory, which a copy to a device may be reading after nothing refers to it.
    """
    memory = _taken(num_bytes)
    if memory is None:
        # By torch, which aligns better than NumPy does.
        memory = torch.empty(num_bytes, dtype=torch.uint8)
    array: _Bytes = memory.numpy()
    if num_bytes >= _MIN_BYTES:
        _kept.append((memory, weakref.ref(array)))
    while len(_kept) > _MAX_KEPT:
        _kept.popleft()
    return array


def _taken(num_bytes: int) -> torch.Tensor | None:
    """Kept memory that is free and fits, the last used first: most of it is still in the cache.

    What is looked at is out of the queue for that time, so that no other thread can find it.
    """
    found = None
    passed_over = []
    while _kept and found is None:
        try:
            memory, given = _kept.pop()
        except IndexError:  # another thread has the last
            break
        if given() is None and num_bytes <= memory.nbytes <= 2 * num_bytes:
            found = memory
        else:
            passed_over.append((memory, given))
    _kept.extend(reversed(passed_over))
    return found

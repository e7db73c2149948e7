"""The processes that train together: launched by torchrun, or this one alone."""

import os
import sys
from typing import Any

import torch
import torch.distributed as dist


class OrphanedError(RuntimeError):
    """The torchrun that launched one of the processes ended before them."""


class Launcher:
    """The torchrun that launched this process, if one did.

    A torchrun that is killed with SIGKILL cannot end the processes that it launched. They get another parent,
    which is how they detect it. A process that a shell started may lose its parent and continue.
    """

    def __init__(self) -> None:
        self._pid = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None

    def has_ended(self) -> bool:
        """Returns whether the launcher ended before this process."""
        return self._pid is not None and os.getppid() != self._pid


def join_processes() -> torch.device:
    """Joins the process group and returns this process's device: a GPU of its own, or the CPU.

    The CPU is used if this machine has fewer GPUs than processes.
    """
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    num_gpus, num_processes = torch.cuda.device_count(), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    has_gpus = num_gpus >= num_processes
    if 0 < num_gpus < num_processes and local_rank == 0:
        print(f"train.py: {num_processes} processes, {num_gpus} GPUs: training on the CPU", file=sys.stderr)
    backend = "nccl" if has_gpus else "gloo"
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    if not has_gpus:
        return torch.device("cpu")
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return device


def make_deterministic() -> None:
    """Makes equal inputs give equal numbers, bit for bit, at some cost in speed on GPUs."""
    # cuBLAS reads this at the first matrix product, and is deterministic only with it.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    # Filling would write every batch twice: packtok allocates batches uninitialized and fills them.
    torch.utils.deterministic.fill_uninitialized_memory = False


def from_first(value: Any) -> Any:
    """Returns the first process's ``value`` on all processes."""
    held = [value]
    dist.broadcast_object_list(held, src=0)
    return held[0]


def summed(value: torch.Tensor) -> torch.Tensor:
    """Replaces ``value`` with the sum over all processes and returns it."""
    dist.all_reduce(value)
    return value

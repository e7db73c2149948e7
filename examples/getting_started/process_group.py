"""The processes that train together: started by torchrun, or this one alone."""

import os
from typing import Any

import torch
import torch.distributed as dist


def join_processes() -> torch.device:
    """Joins the process group and returns this process's device: a GPU of its own, or the CPU."""
    has_gpus = torch.cuda.is_available()
    backend = "nccl" if has_gpus else "gloo"
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    if not has_gpus:
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return device


def make_deterministic() -> None:
    """Has the same numbers computed from the same inputs, bit for bit, which on GPUs costs some speed."""
    # Read when the first matrix product makes cuBLAS; without it, deterministic algorithms are refused.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    # It would write every batch twice: packtok's are made empty, and filled.
    torch.utils.deterministic.fill_uninitialized_memory = False


def from_first(value: Any) -> Any:
    """What the first process has as ``value``, on all of them."""
    held = [value]
    dist.broadcast_object_list(held, src=0)
    return held[0]


def summed(value: torch.Tensor) -> torch.Tensor:
    """The sum of all processes' values, which replaces ``value``."""
    dist.all_reduce(value)
    return value

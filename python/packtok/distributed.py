"""Finds the part of the data for this process from process groups, device meshes and environment variables.

No other module reads them.
"""

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packtok._packtok import available_cpus
from packtok.errors import ConfigError
from packtok.integers import integer

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

# The limit exceeds every cluster, and fits every integer type that counts shards.
MAX_SHARDS = 2**31 - 1
MeshDim = str | int | Sequence[str | int]


@dataclass(frozen=True)
class Share:
    """One part of the data: that of process ``rank`` among ``num_replicas``."""

    rank: int
    num_replicas: int

    def __post_init__(self) -> None:
        for name in ("rank", "num_replicas"):
            # NumPy integers become int, because only int is JSON-serializable.
            object.__setattr__(self, name, integer(name, getattr(self, name)))
        if self.num_replicas < 1:
            raise ValueError(f"num_replicas is {self.num_replicas}, expected at least 1")
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"rank is {self.rank}, expected 0 to {self.num_replicas - 1}")


def find_share(
    rank: int | None = None,
    num_replicas: int | None = None,
    *,
    device_mesh: "DeviceMesh | None" = None,
    dp_dim: MeshDim | None = None,
) -> Share:
    """Returns the part of the data for this process.

    The first source that applies wins: ``rank`` and ``num_replicas``, the device mesh, the process group, the
    environment variables RANK and WORLD_SIZE. Without any of them the process gets all data.

    Args:
        rank: Needs ``num_replicas``; takes precedence over all other sources.
        num_replicas: Number of processes that divide the data.
        device_mesh: Mesh whose dimension ``dp_dim`` divides the data. All ranks along the other dimensions
            get the same data.
        dp_dim: Name or index of a mesh dimension, or several of them in row-major order.

    Raises:
        ValueError: If the arguments are incomplete, contradictory or out of range.
    """
    if (rank is None) != (num_replicas is None):
        raise ValueError("give both rank and num_replicas, or neither")
    if rank is not None and num_replicas is not None:
        if device_mesh is not None:
            raise ValueError("give either rank and num_replicas or device_mesh and dp_dim, not both")
        return Share(rank, num_replicas)
    if device_mesh is not None:
        return _share_of_mesh(device_mesh, dp_dim)
    if dp_dim is not None:
        raise ValueError("dp_dim is a dimension of device_mesh, but device_mesh is not given")
    share = process_share()
    if dims := _mesh_dims_in_use(share.num_replicas):
        _warn_of_mesh(dims, share.num_replicas)
    return share


def process_share() -> Share:
    """Returns this process's part among all processes.

    Uses ``torch.distributed`` if it is initialized, otherwise RANK and WORLD_SIZE.
    """
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return Share(dist.get_rank(), dist.get_world_size())
    rank, world_size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None and world_size is None:
        return Share(0, 1)
    if rank is None or world_size is None:
        present, missing = ("WORLD_SIZE", "RANK") if rank is None else ("RANK", "WORLD_SIZE")
        raise ValueError(f"the environment has {present} but not {missing}; set both or neither")
    return Share(_number("RANK", rank), _number("WORLD_SIZE", world_size))


@dataclass(frozen=True)
class ShardChoice:
    """Shard ``shard_index`` of a corpus.

    If ``num_shards`` is ``None``, the plan sets the number of shards; without a plan, ``default_num_shards``
    does.
    """

    shard_index: int
    num_shards: int | None = None
    default_num_shards: int | None = None


def find_shard(shard: str | int) -> ShardChoice:
    """Parses ``k/N``, ``k`` or ``auto``. With ``auto``, the environment decides.

    Raises:
        ConfigError: If ``shard`` is none of these, or Slurm's variables do not determine a shard.
    """
    text = str(shard)
    if text == "auto":
        return shard_of_task(os.environ)
    if (match := re.fullmatch(r"([0-9]{1,19})(?:/([0-9]{1,19}))?", text)) is None:
        raise ConfigError(f"--shard: is {text!r}; expected k/N, k or auto")
    index, count = int(match[1]), int(match[2]) if match[2] else None
    if max(index, count or 0) > MAX_SHARDS:
        raise ConfigError(f"--shard: is {text!r}; there can be at most {MAX_SHARDS:,} shards")
    return ShardChoice(index, count)


def shard_of_task(environment: Mapping[str, str]) -> ShardChoice:
    """Returns the shard of this Slurm task.

    Each task of a job array, of an ``srun``, or of both packs one shard. The array task id is used as it is.
    An array over all shards is ``--array=0-(N-1)``. An array over some shards lists their numbers and needs a
    plan. If ``srun`` starts several tasks in each array task, the shard is the array task id times the number
    of tasks in the step, plus the rank in the step.

    Raises:
        ConfigError: If this process is not such a task.
    """
    array = _variable(environment, "SLURM_ARRAY_TASK_ID")
    # A batch script outside of srun also has SLURM_PROCID and SLURM_NTASKS, but no step.
    in_step = environment.get("SLURM_STEP_ID") not in (None, "")
    rank, num_ranks = 0, 1
    if in_step:
        rank = _variable(environment, "SLURM_PROCID") or 0
        num_ranks = (
            _variable(environment, "SLURM_STEP_NUM_TASKS") or _variable(environment, "SLURM_NTASKS") or 1
        )
    if array is None and not in_step:
        raise ConfigError(
            "--shard: is auto, but this is not a task of a Slurm array or of srun (neither "
            "SLURM_ARRAY_TASK_ID nor SLURM_STEP_ID is set); give k or k/N"
        )
    if array is None:
        return ShardChoice(rank, default_num_shards=num_ranks)
    return ShardChoice(array * num_ranks + rank, default_num_shards=_shards_of_array(environment, num_ranks))


def _shards_of_array(environment: Mapping[str, str], num_ranks: int) -> int | None:
    """Returns the number of shards if the array contains all tasks from 0 on, otherwise ``None``."""
    names = ("SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_COUNT")
    first, last, count = (_variable(environment, name) for name in names)
    if first != 0 or last is None or count != last + 1:
        return None
    return count * num_ranks


def _variable(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name)
    if text is None or text == "":
        return None
    if not text.isdecimal():
        raise ConfigError(f"{name} in the environment is {text!r}, expected a number")
    return int(text)


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name} in the environment is {text!r}, expected a number") from None


def _share_of_mesh(mesh: "DeviceMesh", dp_dim: MeshDim | None) -> Share:
    if dp_dim is None and mesh.ndim == 1:
        dp_dim = 0
    if dp_dim is None:
        names = mesh.mesh_dim_names or [str(number) for number in range(mesh.ndim)]
        _warn_of_mesh(names, mesh.size())
        return process_share()
    rank, num_replicas = 0, 1
    for dim in [dp_dim] if isinstance(dp_dim, str | int) else dp_dim:
        number = _dim_number(mesh, dim)
        rank = rank * mesh.size(number) + mesh.get_local_rank(number)
        num_replicas *= mesh.size(number)
    return Share(rank, num_replicas)


def _dim_number(mesh: "DeviceMesh", dim: str | int) -> int:
    names: tuple[Any, ...] = mesh.mesh_dim_names or ()
    if isinstance(dim, str) and dim in names:
        return names.index(dim)
    if isinstance(dim, int) and 0 <= dim < mesh.ndim:
        return dim
    known = ", ".join(names) if names else f"0 to {mesh.ndim - 1}"
    raise ValueError(f"the device mesh has no dimension {dim!r}; it has {known}")


def _mesh_dims_in_use(world_size: int) -> list[str]:
    """Returns the dimensions of this process's device meshes that do not span all ranks."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return []
    # Torch has no public list of meshes, but the groups it creates for a mesh carry the dimension's name.
    groups = getattr(getattr(dist.distributed_c10d, "_world", None), "pg_map", {})
    return sorted(
        {
            group.group_desc.removeprefix("mesh_")
            for group in groups
            if getattr(group, "group_desc", "").startswith("mesh_") and group.size() != world_size
        }
    )


def _warn_of_mesh(dims: Sequence[str], world_size: int) -> None:
    warnings.warn(
        f"a device mesh ({', '.join(dims)}) is in use but no data-parallel dimension is given, so each of "
        f"the {world_size} ranks gets different items, including ranks that hold parts of one model and "
        "need the same items; pass device_mesh and dp_dim",
        stacklevel=2,
    )


def cpus_of_process() -> int:
    """Returns the CPUs for this process, if all processes of its node divide them; at least 1."""
    return max(1, available_cpus() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))

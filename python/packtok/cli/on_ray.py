"""`packtok run --engine ray`: packs shards as tasks of the Ray cluster that the environment names."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from packtok.cli import console
from packtok.cli.progress import progress


@contextmanager
def ray_at_hand(settings: Any, *, submit: bool) -> Iterator[Any]:
    """Yields the connected Ray module if this process packs on a cluster itself, otherwise ``None``."""
    from packtok.errors import PacktokError
    from packtok.launch import ray_engine
    from packtok.launch.slurm import Slurm

    if settings.engine != "ray" or not submit:
        yield None
    elif ray_engine.is_at_hand():
        with ray_engine.connected() as ray:
            yield ray
    elif shutil.which(Slurm(settings.slurm.slurm_bin_dir).program("sbatch")) is not None:
        yield None
    else:
        raise PacktokError(
            "the ray engine needs a cluster: set RAY_ADDRESS to its address (RAY_ADDRESS=local starts one "
            "on this machine), or run packtok where the Slurm commands are installed"
        )


def pack_on_ray(ray: Any, launch: Any, *, as_json: bool) -> None:
    """Packs the missing shards on a Ray cluster and joins them; blocks until both are done."""
    from packtok.errors import PacktokError
    from packtok.launch import ray_engine
    from packtok.launch.record import Record, read_record, write_record
    from packtok.shard_folder import ShardFolder
    from packtok.store.staging import exists

    record = read_record(launch.outdir)
    write_record(launch.outdir, Record.of(launch, record.submissions if record is not None else ()))
    finished = ShardFolder.open(launch.outdir).finished()
    missing = [shard for shard in range(launch.num_shards) if shard not in finished]
    room = f"{ray_engine.num_nodes(ray):,} nodes, {int(ray.cluster_resources().get('CPU', 0)):,} CPUs"
    console.remark(f"{len(finished):,} of {launch.num_shards:,} shards are done; Ray: {room}")
    with progress(quiet=False) as on_progress:
        failures = ray_engine.pack_shards(ray, launch, missing, on_progress)
    for shard, reason in sorted(failures.items()):
        console.remark(f"shard {shard}: {reason} (log: {ray_engine.log_of(launch.outdir, shard)})")
    if failures:
        raise PacktokError(
            f"{launch.outdir}: {len(failures):,} of {launch.num_shards:,} shards failed; fix the errors "
            f"above, then run: packtok retry {launch.outdir}"
        )
    join = launch.settings.slurm.join
    # A limit on rejects alone does not ask for joining again.
    wishes = [argument for argument in launch.join_arguments if not argument.startswith("--max-rejects=")]
    if join == "none" or (not missing and exists(launch.output) and not wishes):
        if as_json:
            result = {"output": launch.output, "outdir": str(launch.outdir), "shards": launch.num_shards}
            console.as_json(result | {"joined": False})
        else:
            print(console.printable(f"all shards are done: {launch.outdir}"))
        return
    command = ["join", str(launch.outdir), f"--output={launch.output}", *launch.join_arguments]
    if as_json:
        # The JSON that the join prints is the result of the whole run.
        command.append("--json")
    joined = subprocess.run([sys.executable, "-m", "packtok", *command], check=False)
    if joined.returncode != 0:
        raise typer.Exit(joined.returncode)

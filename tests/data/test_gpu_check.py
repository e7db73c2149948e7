"""scripts/gpu_check.py: all checks run in small, and failures are reported."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from repository import ROOT

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")
pytest.importorskip("transformers", reason="needs transformers")

SCRIPT = ROOT / "scripts" / "gpu_check.py"
# The parts of each check that need CUDA.
NEEDS_CUDA = {
    "pinning": ["main process", "2 workers", "torch's DataLoader", "stream"],
    "attention": ["variable length by cu_seqlens"],
    "resume": ["torchrun with NCCL"],
    "in_flight": ["copies were in flight", "a buffer that is overwritten in flight is noticed"],
}
MEASURES = ("never_waits", "raw_feed")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_check", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module.
    sys.modules["gpu_check"] = module
    spec.loader.exec_module(module)
    return module


# What it checks on a CPU has tests of its own; mypy checks how it calls packtok.
@pytest.mark.whole
def test_all_checks_run_in_small_on_a_cpu(script: ModuleType, tmp_path: Path) -> None:
    output, folder = tmp_path / "gpu_check.json", tmp_path / "data"
    done = subprocess.run(
        [sys.executable, SCRIPT, "--small", "--output", output, "--folder", folder],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(output.read_text())
    assert report["status"] == "passed"
    assert report["small"]
    assert report["machine"]["device"] == "cpu"
    assert [check["name"] for check in report["checks"]] == [check.name for check in script.CHECKS]
    for check in report["checks"]:
        name = check["name"]
        assert check["status"] == ("measured" if name in MEASURES else "passed")
        parts = {part["name"]: part["status"] for part in check["parts"]}
        assert len(parts) == len(check["parts"])
        not_run = [part for part, status in parts.items() if status == "not run"]
        assert not_run == NEEDS_CUDA.get(name, [])
        # Any other status would need a meaning in this test.
        assert set(parts.values()) <= {"passed", "measured", "not run"}
    # The line of each check, then the same JSON as in the file.
    lines, start, text = done.stdout.partition("{\n")
    assert len(lines.splitlines()) == len(script.CHECKS)
    assert json.loads(start + text) == report
    assert not [path.name for path in tmp_path.iterdir() if path not in (output, folder)]


@pytest.mark.whole
def test_full_size_needs_a_gpu(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == (
        "there is no CUDA device; add --small to run the checks in small on the CPU"
    )
    assert list(tmp_path.iterdir()) == []


def passing(report: Any, _plan: Any) -> None:
    report.expect("one", True, "shown")


def failing(report: Any, _plan: Any) -> None:
    report.expect("one", True, "shown")
    report.expect("another", False, number=3)


def raising(report: Any, _plan: Any) -> None:
    report.expect("one", True)
    raise ValueError("no such thing")


def dying(report: Any, _plan: Any) -> None:
    report.expect("one", True)
    os.kill(os.getpid(), signal.SIGKILL)


def hanging(report: Any, plan: Any) -> None:
    report.expect("one", True)
    os.write(1, b"printed\n")
    # The check and its child process ignore the request to end.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = os.fork()
    if child:
        (plan.folder / "child").write_text(str(child))
    time.sleep(600)


def is_alive(pid: int) -> bool:
    """Returns whether a process runs; false for a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_each_check_ends_alone_however_it_ends(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    functions = (failing, raising, dying, hanging, passing)
    checks = []
    for function in functions:
        name = function.__name__
        monkeypatch.setattr(script, name, function, raising=False)
        seconds = 2 if name == "hanging" else 60
        checks.append(script.Check(name, f"title of {name}", seconds, name != "passing"))
    monkeypatch.setattr(script, "CHECKS", checks)
    monkeypatch.setattr(script, "TIMES_ON_CPU", 3)
    plan = script.Plan(tmp_path, "cpu", True)
    saved: list[int] = []
    names = [check.name for check in checks]
    results = script.run_all(names, plan, time.monotonic() + 600, lambda done: saved.append(len(done)))
    assert saved == [1, 2, 3, 4, 5]
    by_name = {result["name"]: result for result in results}
    assert {name: by_name[name]["status"] for name in names} == {
        **dict.fromkeys(names, "failed"),
        "passing": "passed",
    }
    last = {name: {**by_name[name]["parts"][-1]} for name in names}
    assert last == {
        "failing": {"name": "another", "status": "failed", "number": 3},
        "raising": {"name": "error", "status": "failed", "error": "ValueError: no such thing"},
        "dying": {"name": "process", "status": "failed", "error": "the process ended with -9"},
        "hanging": {"name": "time limit", "status": "failed", "error": "6 s are over"},
        "passing": {"name": "one", "status": "passed", "shown": "shown"},
    }
    # The parts from before the end are kept, and the log is there.
    assert {len(by_name[name]["parts"]) for name in names if name != "passing"} == {2}
    assert by_name["hanging"]["log"] == ["printed"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split() == ["passed", "title", "of", "passing", lines[-1].split()[4], "s", "shown"]
    assert any("FAILED: error (ValueError: no such thing)" in line for line in lines)
    # The child process of the hanging check was killed with it.
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 120
    while is_alive(child):
        assert time.monotonic() < deadline, "the process of a check does not end"
        time.sleep(0.05)


def test_checks_after_the_time_limit_are_not_run(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "passing", passing, raising=False)
    monkeypatch.setattr(script, "CHECKS", [script.Check("passing", "title", 60)])
    plan = script.Plan(tmp_path, "cpu", True)
    (result,) = script.run_all(["passing"], plan, time.monotonic() + 1, lambda _: None)
    assert result["status"] == "not run"
    assert result["parts"] == [{"name": "all", "status": "not run", "reason": "the time is used up"}]

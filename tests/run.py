"""Runs every check of the project and lists what was skipped for want of something.

Called by the interpreter of an environment that has `packtok[test]` installed. Each step is a command of its
own, and all of them run even if one fails. With CI=true a skip is a failure.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
FUZZ_SECONDS = "30"
# Tests that run beside the others: those that mostly wait for clusters and servers, then whole corpora, so
# that both take about as long.
BESIDE = ("tests/test_slurm.py", "tests/test_ray.py", "tests/test_stores.py", "tests/test_exact.py")


class _Pytest:
    """A pytest that runs while others do."""

    def __init__(self, name: str, arguments: Sequence[str]) -> None:
        self.name = name
        self._log = ROOT / "target" / f"{name.replace(' ', '_')}.log"
        self._log.parent.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "pytest", "-rs", "--durations=10", *arguments]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)

    def finish(self) -> tuple[int, list[str]]:
        """Prints what it prints until it ends; its exit status, and what it skipped."""
        with self._log.open(encoding="utf-8", errors="replace") as log:
            while True:
                has_ended = self._process.poll() is not None
                print(log.read(), end="", flush=True)
                if has_ended:
                    break
                time.sleep(0.2)
            log.seek(0)
            skipped = re.findall(r"^SKIPPED \[\d+\] (.*)", log.read(), re.M)
        return self._process.returncode, skipped


class Run:
    """The steps run so far: what failed and what was skipped."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.skipped: list[str] = []

    def step(self, name: str, command: Sequence[str | Path], *, needs: str | None = None) -> None:
        """Runs one command, unless the program or module that it needs is missing."""
        if needs is not None and not _is_there(needs):
            self.skip(name, f"{needs} is not installed")
            return
        print(f"\n=== {name}", flush=True)
        started = time.monotonic()
        # Tests that wait for clusters and signals run at the same time and go first.
        polite = [] if shutil.which("nice") is None else ["nice", "-n", "19"]
        status = subprocess.run([*polite, *map(str, command)], cwd=ROOT, check=False).returncode
        print(
            f"=== {name}: {'ok' if status == 0 else 'FAILED'} in {time.monotonic() - started:.0f} s",
            flush=True,
        )
        if status != 0:
            self.failed.append(name)

    def skip(self, name: str, reason: str) -> None:
        self.skipped.append(f"{name}: {reason}")

    def pytests(self, runs: Sequence[_Pytest]) -> None:
        """Waits for those that were started and takes over the skips that they report."""
        for one in runs:
            print(f"\n=== {one.name}", flush=True)
            status, skipped = one.finish()
            if status != 0:
                self.failed.append(one.name)
            for reason in skipped:
                self.skip(one.name, reason)

    def finish(self) -> int:
        """Prints the account of the run and returns the exit status."""
        print()
        for skipped in self.skipped:
            print(f"skipped: {skipped}")
        for failed in self.failed:
            print(f"FAILED: {failed}")
        if self.skipped and os.environ.get("CI") == "true":
            print("in CI a skip is a failure")
            return 1
        if not self.failed:
            print("all checks passed" + (f", {len(self.skipped)} skipped" if self.skipped else ""))
        return 1 if self.failed else 0


def _is_there(needed: str) -> bool:
    if needed.startswith("cargo-"):
        component = subprocess.run(
            ["cargo", needed.removeprefix("cargo-"), "--version"], capture_output=True, check=False
        )
        return component.returncode == 0
    return (
        (BIN / needed).exists()
        or shutil.which(needed) is not None
        or importlib.util.find_spec(needed) is not None
    )


def _start_pytest(arguments: Sequence[str]) -> list[_Pytest]:
    """Starts pytest with `arguments`; without any in two processes, which share the tests."""
    if arguments:
        return [_Pytest("pytest", arguments)]
    others = [f"--ignore={path}" for path in BESIDE]
    return [_Pytest("pytest", others), _Pytest("pytest beside it", BESIDE)]


def main(arguments: Sequence[str]) -> int:
    """Runs all steps, the tests in Python beside the others; `arguments` go to pytest."""
    run = Run()
    pytests = _start_pytest(arguments)
    run.step("rustfmt", ["cargo", "fmt", "--all", "--check"], needs="cargo-fmt")
    run.step(
        "clippy",
        ["cargo", "clippy", "--workspace", "--all-targets", "--locked", "-q", "--", "-D", "warnings"],
        needs="cargo-clippy",
    )
    run.step("cargo test", ["cargo", "test", "--locked", "-q"])
    run.step("ruff", [BIN / "ruff", "check", "python", "tests", "benches", "examples"], needs="ruff")
    run.step(
        "ruff format",
        [BIN / "ruff", "format", "--check", "python", "tests", "benches", "examples"],
        needs="ruff",
    )
    run.step("shellcheck", [BIN / "shellcheck", *sorted(ROOT.glob("slurm/*.sbatch"))], needs="shellcheck")
    run.step("mypy", [BIN / "mypy"], needs="mypy")
    run.step("stubtest", [BIN / "stubtest", "packtok._packtok"], needs="stubtest")
    run.step("fuzz", ["bash", "tests/fuzz/run.sh", FUZZ_SECONDS], needs="g++")
    run.pytests(pytests)
    return run.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

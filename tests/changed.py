"""Finds the tests of changed files, for `tests/run.py --changed`.

A test file is its own test. A folder of the package has its tests in the folder of this name in `tests`; the
table lists folders whose tests have another name. Any other change runs everything.
"""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Paths: folders of tests.
ROOMS = {
    "crates/packtok-corpus/": "corpus",
    "crates/packtok-dataset/": "data",
    "crates/packtok-formats/": "corpus data reshape",
    "crates/packtok-jobs/": "pack",
    "crates/packtok-pack/": "pack",
    "crates/packtok-pbin/": "data pack",
    "crates/packtok-reshape/": "reshape",
    "crates/packtok-store/": "pack",
    "crates/packtok-stream/": "stream",
    "crates/packtok-tokenizer/": "tokenizer",
    "python/packtok/commands/": "cli pack reshape",
    "python/packtok/compat/": "data pack reshape",
    "python/packtok/config/": "cli pack",
    "python/packtok/instruction/": "reshape",
    "python/packtok/integrations/": "data",
    "python/packtok/logits/": "reshape",
    "python/packtok/packer/": "pack",
    "python/packtok/plugins/": "corpus",
    "python/packtok/sample/": "reshape",
    "docs/": "docs",
    "examples/": "docs",
    "benches/": "",
}
# Files that the tests of all crates depend on.
OF_ALL_CRATES = ("Cargo.toml", "Cargo.lock", "crates/packtok-features/", "tests/golden/")
# One has no code, and the tests of the other are those of the Python package.
WITHOUT_TESTS = ("packtok-features", "packtok-py")


@dataclass(frozen=True)
class Tests:
    """The tests of a change: paths for pytest, and names of crates."""

    python: tuple[str, ...]
    crates: tuple[str, ...]


def changed_files() -> list[str]:
    """Returns the files that differ from where this branch left main, including untracked ones."""

    def lines(*command: str) -> list[str]:
        done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    branches = lines("branch", "--all", "--format=%(refname:short)")
    main = next((name for name in ("main", "origin/main") if name in branches), None)
    base = lines("merge-base", "HEAD", main)[0] if main else "HEAD"
    known, new = lines("diff", "--name-only", base), lines("ls-files", "--others", "--exclude-standard")
    return sorted({*known, *new})


def tests_of(files: Iterable[str]) -> Tests:
    """Returns the tests of these files."""
    python: set[str] = set()
    crates: set[str] = set()
    for file in files:
        python.update(python_tests_of(file))
        crates.update(crates_of(file))
    return Tests(("tests",) if "tests" in python else tuple(sorted(python)), tuple(sorted(crates)))


def python_tests_of(file: str) -> list[str]:
    """Returns the paths of the Python tests of a file."""
    path = Path(file)
    if path.parts[0] == "tests" and path.match("test_*.py"):
        return [file] if (ROOT / file).exists() else []
    if path.suffix == ".md" and len(path.parts) == 1:
        return ["tests/docs"]
    for folder, rooms in ROOMS.items():
        if file.startswith(folder):
            return [f"tests/{room}" for room in rooms.split()]
    if file.startswith("python/packtok/") and (ROOT / "tests" / path.parts[2]).is_dir():
        return [f"tests/{path.parts[2]}"]
    return ["tests"]


def crates_of(file: str) -> list[str]:
    """Returns the crates whose Rust tests a file affects."""
    if file.startswith(OF_ALL_CRATES):
        return all_crates()
    top, _, rest = file.partition("/")
    return [crate] if top == "crates" and (crate := rest.partition("/")[0]) in all_crates() else []


def all_crates() -> list[str]:
    """Returns all crates with Rust tests."""
    return sorted(path.name for path in (ROOT / "crates").iterdir() if path.name not in WITHOUT_TESTS)

"""`tests/run.py`: the wheel of the tests and `cargo test` compile a crate once for both."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import run
from repository import ROOT


def features(*selection: str) -> dict[str, str]:
    """Returns the features of each crate in a build, without the crates of build scripts and macros."""
    tree = ["cargo", "tree", "--locked", "--offline", "--prefix", "none", "--format", "{p}={f}", *selection]
    done = subprocess.run(tree, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = (line.removesuffix(" (*)").partition("=") for line in done.stdout.splitlines() if line)
    return {crate: enabled for crate, _, enabled in lines}


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_wheel_and_cargo_test_select_the_same_features() -> None:
    """A crate with other features, and all that depend on it, would be compiled twice."""
    wheel = features("-p", "packtok-py", "--features", "crash-points", "-e", "normal,no-proc-macro")
    excluded = [f"--exclude={crate}" for crate in run.NOT_TESTED_BY_CARGO]
    tests = features("--workspace", *excluded, "-e", "normal,dev,no-proc-macro")
    shared = wheel.keys() & tests.keys()
    assert any(crate.startswith("tokenizers ") for crate in shared)
    differing = {crate: (wheel[crate], tests[crate]) for crate in shared if wheel[crate] != tests[crate]}
    assert not differing, "give crates/packtok-features the features of both"

"""Shared fixtures: the data folder, and packtok as a separate process."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import command_line
import forked_cli
import pytest
from command_line import PacktokCli
from extent import extent
from hypothesis import settings
from repository import ROOT

# The time of an example depends on the load of the machine.
settings.register_profile("packtok", deadline=None, max_examples=extent(100, 30))
settings.load_profile("packtok")

# A background job of a shell ignores Ctrl-C, and its children inherit that; tests send Ctrl-C to them.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Starts the process that workers fork commands from: a stream would start one without imports."""
    if hasattr(config, "workerinput"):
        forked_cli.start_server()


# Imports leave no garbage, and searching what they make takes a twentieth of the time of the tests.
gc.disable()


def pytest_collection_finish() -> None:
    """Starts garbage collection, without what has been imported."""
    gc.freeze()
    gc.enable()


SHARED = Path(os.environ.get("PACKTOK_SHARED") or ROOT.parent / "shared")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Returns the ``data`` folder of the shared material: real corpora, tokenizers and files by peers."""
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip(f"needs the shared data folder (PACKTOK_SHARED, or {SHARED}), not there")
    return data


@pytest.fixture(scope="session")
def packtok_cli() -> PacktokCli:
    """Runs the command in a separate process and returns its output and exit code."""
    return command_line.run

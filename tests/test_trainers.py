"""Trainers of other projects take a few steps on packtok's data, each in its own environment."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import packtok

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent / "examples" / "corpus.jsonl"


@pytest.fixture
def pbin(tmp_path: Path) -> Path:
    path = tmp_path / "train.pbin"
    packtok.pack(input=CORPUS, output=path, tokenizer="gpt2")
    return path


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Returns a folder with packtok and nothing else, for other environments."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "packtok").symlink_to(Path(packtok.__file__).parent)
    return folder


def test_olmo_trains_on_get_dataset(pbin: Path, package: Path) -> None:
    """With the dataset, collator and model of ai2-olmo 0.6.0, on NumPy 1, and the masks of the items."""
    python = os.environ.get("PACKTOK_OLMO_PYTHON")
    if python is None:
        pytest.skip("needs PACKTOK_OLMO_PYTHON, a Python with ai2-olmo 0.6.0 installed, not set")
    done = subprocess.run(
        [python, HERE / "olmo_training.py", pbin],
        env={**os.environ, "PYTHONPATH": str(package), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["items"] == len(packtok.get_dataset(pbin, 64))
    losses = found["losses"]
    assert len(losses) == 8
    assert losses[-1] < losses[0] - 0.5

"""Trainers of other projects take a few steps on packtok's data, each in its own environment."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
from pathlib import Path

import pbins
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


def test_olmo_core_trains_on_the_documents_of_pbins(tmp_path: Path, package: Path) -> None:
    """With OLMo-core 3's instance sources, data loader and trainer."""
    python = os.environ.get("PACKTOK_OLMO_CORE_PYTHON")
    if python is None:
        pytest.skip("needs PACKTOK_OLMO_CORE_PYTHON, a Python with ai2-olmo-core 3 installed, not set")
    eod, length, batch_rows = 99, 16, 4
    draw = random.Random(1)
    documents = [[*draw.choices(range(1, eod), k=draw.randrange(1, 40)), eod] for _ in range(120)]
    # A document without tokens has no offsets; an EOD id inside a document does not end it.
    documents[70:70] = [[], [5, eod, 6, eod]]
    pbins.write(tmp_path / "a.pbin", documents[:60], eod_id=eod, tokenizer="t")
    pbins.write(tmp_path / "b.pbin", documents[60:], eod_id=eod, tokenizer="t")
    done = subprocess.run(
        [python, HERE / "olmo_core_training.py", '["a.pbin", "b.pbin"]'],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    tokens = [token for document in documents for token in document]
    bounds = [0, *itertools.accumulate(map(len, documents))]
    assert found["num_tokens"] == len(tokens)
    assert found["offsets"] == [[a, b] for a, b in itertools.pairwise(bounds) if b > a]
    assert found["all"] == tokens
    assert found["ranges"] == [tokens[at : at + 50] for at in range(0, len(tokens) - 50, 7)]
    assert found["is view"]
    assert found["pickle bytes"] < 1000
    chunks = [tokens[at : at + length] for at in range(0, len(tokens) - length + 1, length)]
    # The loader leaves out an incomplete batch.
    assert found["chunks"] == chunks[: len(chunks) // batch_rows * batch_rows]
    assert found["in workers"]
    # The packing truncates documents that are longer than a row.
    rows = [" ".join(map(str, row)) for row in found["packed"]]
    assert all(any(" ".join(map(str, one[:length])) in row for row in rows) for one in documents)
    losses = found["losses"]
    assert max(losses[-5:]) < min(losses[:5])

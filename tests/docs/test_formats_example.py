"""examples/formats: readers of several trainers give the same tokens, and other tokens are noticed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")
from repository import EXAMPLES


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("same_tokens", EXAMPLES / "formats" / "same_tokens.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readers_give_the_same_tokens(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example.compare(tmp_path, 3)
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    for name in ("NumPy", "Hugging Face datasets"):
        assert lines[name] == lines["packtok"]


def test_other_tokens_are_noticed(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(example.READERS, "another", lambda folder: [np.arange(2000)])
    with pytest.raises(SystemExit, match="another reads other tokens"):
        example.compare(tmp_path, 1)

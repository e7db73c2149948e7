"""Runs all examples in the docstrings of the public interface, including those of compiled classes."""

from __future__ import annotations

import doctest
import functools
import inspect
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")

import torch
from repository import CORPUS

import packtok

# Files that examples can use without creating them; `packtok.pack` itself creates `train.pbin`.
PBINS = ("train.pbin", "web.pbin", "code.pbin")
NAMES = {"functools": functools, "np": np, "packtok": packtok, "torch": torch}


def docstrings(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yields the docstrings of a public object and of its public members, each with its name."""
    yield name, inspect.getdoc(value) or ""
    if isinstance(value, ModuleType):
        members = {member: getattr(value, member) for member in value.__all__}
    else:
        members = dict(vars(value)) if inspect.isclass(value) else {}
    for member, raw in members.items():
        if not member.startswith("_") or member in ("__init__", "__getitem__"):
            # Static methods of compiled classes have their docstring only when bound.
            bound = getattr(value, member) if isinstance(raw, staticmethod | classmethod) else raw
            yield from docstrings(f"{name}.{member}", bound)


def with_examples() -> dict[str, str]:
    pairs = [pair for name in packtok.__all__ for pair in docstrings(name, getattr(packtok, name))]
    return {name: text for name, text in pairs if ">>>" in text}


EXAMPLES = with_examples()


@pytest.fixture(scope="module")
def pbins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pbins")
    for name in PBINS:
        packtok.pack(input=CORPUS, output=folder / name, tokenizer="gpt2")
    return folder


@pytest.mark.parametrize("name", EXAMPLES)
def test_docstring_examples_print_the_shown_output(
    name: str, pbins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(CORPUS, "corpus.jsonl")
    if name != "pack":
        shutil.copytree(pbins, tmp_path, dirs_exist_ok=True)
    examples = doctest.DocTestParser().get_doctest(EXAMPLES[name], dict(NAMES), name, None, None)
    report: list[str] = []
    failures, attempts = doctest.DocTestRunner().run(examples, out=report.append)
    assert failures == 0, "".join(report)
    assert attempts > 0


def test_no_example_is_skipped() -> None:
    assert [name for name, text in EXAMPLES.items() if "doctest:" in text] == []


def test_examples_and_compiled_docstrings_are_found() -> None:
    assert {"Mixture", "TokenDataset", "collate.gpt_2_llm_collator", "pack"} <= set(EXAMPLES)
    compiled = dict(docstrings("Tokenizer", packtok.Tokenizer))
    assert {"Tokenizer", "Tokenizer.encode", "Tokenizer.from_file", "Tokenizer.name"} <= set(compiled)
    assert all(compiled.values())

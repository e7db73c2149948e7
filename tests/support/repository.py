"""Folders and files of this repository that tests read."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
GOLDEN = TESTS / "golden"
EXAMPLES = ROOT / "examples"
# 96 stories in six languages.
CORPUS = EXAMPLES / "corpus.jsonl"

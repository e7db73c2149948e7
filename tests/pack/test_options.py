"""The table of options: all generated files are up to date, and each option takes effect."""

import dataclasses
import json
from pathlib import Path

import generated_files
import pytest

from packtok.config import load_config
from packtok.config.options import OPTIONS, SCAN_OPTIONS, SECTIONS, Settings


@pytest.mark.parametrize("path", list(generated_files.generated()), ids=lambda path: path.name)
def test_generated_files_are_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == generated_files.generated()[path], (
        "run python scripts/generated_files.py"
    )


def test_every_key_has_an_effect_or_a_reason_for_having_none() -> None:
    named = {option.key for option in OPTIONS.values()}
    for field in dataclasses.fields(Settings):
        assert f"settings.{field.name}" in named or "ignored" in field.metadata


def test_keywords_and_flags_name_one_option_each() -> None:
    flags = [flag for option in OPTIONS.values() for flag in option.flags or ()]
    assert len(flags) == len(set(flags))
    # The arguments of tasks of a run are named by keyword.
    assert all(
        f"--{option.keyword.replace('_', '-')}" in option.flags for option in OPTIONS.values() if option.flags
    )
    assert set(SCAN_OPTIONS) <= set(OPTIONS)
    assert {option.section for option in OPTIONS.values()} <= set(SECTIONS)


def test_spec_contains_every_option_of_the_core() -> None:
    config = load_config(
        {"settings": {"src_path": "a.jsonl", "dst_path": "a.pbin", "max_rejects": "0.50%"}},
        {"tokenizer": "gpt2", "truncation": True, "max_length": 7},
    )
    spec = json.loads(config.spec(eod="<eod>"))
    assert set(spec) == {option.keyword for option in OPTIONS.values() if option.is_for_core} | {
        "redactions",
        "truncate_to",
    }
    names = ("input", "eod", "max_rejects", "truncate_to", "existing")
    assert {name: spec[name] for name in names} == {
        "input": ["a.jsonl"],
        "eod": "<eod>",
        "max_rejects": "0.5%",
        "truncate_to": 7,
        "existing": "error",
    }

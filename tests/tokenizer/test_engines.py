"""The engine that encodes: selected by an option, checked once, and without effect on the bytes of a pbin."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from stat import S_IMODE

import oracle
import pytest
from command_line import PacktokCli
from extent import extent
from repository import CORPUS
from small_tokenizers import unigram, unsplit_unigram
from tokenizers import Regex, Tokenizer, pre_tokenizers

import packtok
from packtok import _packtok

REFERENCE = "tokenizers 0.23.2"


@pytest.mark.parametrize("name", ["gpt2", "cl100k_base", pytest.param("o200k_base", marks=pytest.mark.whole)])
def test_all_engines_write_the_same_file(tmp_path: Path, name: str) -> None:
    texts = oracle.texts_of(CORPUS)
    # A text that contains an added token, and very long words.
    texts += [f"a{oracle.EOD}b", "x" * 5000, "word " * 3000, "數字" * 2000, "\n \n" * 999]
    corpus = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    files, engines = {}, {}
    for engine in ["auto", "fast", "reference"]:
        output = tmp_path / f"{engine}.pbin"
        report = packtok.pack(input=corpus, output=output, tokenizer=name, engine=engine, num_cpus=2)
        files[engine], engines[engine] = output.read_bytes(), report.engine
    assert engines == {"auto": "packtok", "fast": "packtok", "reference": REFERENCE}
    assert files["auto"] == files["fast"] == files["reference"]


@pytest.mark.parametrize("cache_bytes", [1, 100_000, 1 << 30])
def test_any_cache_size_gives_the_same_file(tmp_path: Path, cache_bytes: int) -> None:
    texts = oracle.texts_of(CORPUS) * 3
    corpus = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    pack = functools.partial(packtok.pack, input=corpus, tokenizer="gpt2", num_cpus=1)
    pack(output=tmp_path / "one.pbin", cache_bytes=cache_bytes)
    pack(output=tmp_path / "other.pbin", engine="reference")
    assert (tmp_path / "one.pbin").read_bytes() == (tmp_path / "other.pbin").read_bytes()


# With the step, the fast engine is compared with the reference engine at each load, and found to differ.
@pytest.mark.parametrize("first_step", extent([None, "WhitespaceSplit"], [None]))
def test_pattern_that_exceeds_its_limit_is_a_document_error(
    tmp_path: Path, packtok_cli: PacktokCli, first_step: str | None
) -> None:
    wheel = Tokenizer.from_str(unigram().to_str())
    wheel.normalizer = None
    split = pre_tokenizers.Split(Regex("(a|aa)+c|."), "isolated")
    before = [] if first_step is None else [getattr(pre_tokenizers, first_step)()]
    wheel.pre_tokenizer = pre_tokenizers.Sequence([*before, split])
    wheel.save(str(tmp_path / "slow.json"))
    oracle.write_lines(tmp_path / "c.jsonl", ["aac", "a" * 60, "b aac"])
    words = ("pack", "-i", "c.jsonl", "-o", "o.pbin", "-t", "slow.json", "--eod", "[SEP]", "--quiet")
    done = packtok_cli(*words, cwd=tmp_path, code=1)
    reason = (
        "the tokenizer cannot encode this text: a pattern of the tokenizer stopped without a result "
        "(retry-limit-in-match over)"
    )
    assert done.stderr.splitlines()[-1] == (
        f"packtok: c.jsonl:2: byte 16: {reason}; fix the text, or skip such documents with "
        "--on-bad-document skip (on_bad_document: skip)"
    )
    assert "panicked" not in done.stderr
    done = packtok_cli(*words, "--on-bad-document", "skip", cwd=tmp_path)
    assert "lines 3 = 2 packed + 0 empty + 0 blank + 1 rejected" in done.stdout
    assert reason in (tmp_path / "o.pbin.rejects.jsonl").read_text(encoding="utf-8")
    sep = wheel.token_to_id("[SEP]")
    expected = [[*wheel.encode(text, add_special_tokens=True).ids] for text in ("aac", "b aac")]
    oracle.assert_holds(tmp_path / "o.pbin", [ids if ids[-1] == sep else [*ids, sep] for ids in expected])
    inspected = packtok_cli("tokenizer", "inspect", "slow.json", cwd=tmp_path).stdout
    assert "\ntime            may be worse than linear in the length of a text; " in inspected


def test_engine_explains_why_it_does_not_support_a_file(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    unsplit_unigram().save(str(tmp_path / "words.json"))
    words = ("pack", "-i", CORPUS, "-o", "o.pbin", "-t", "words.json", "--eod", "[SEP]", "--quiet")
    done = packtok_cli(*words, "--engine", "fast", cwd=tmp_path, code=1)
    assert done.stderr.splitlines()[-1] == (
        "packtok: words.json: the fast engine does not cover this tokenizer, because its pre-tokenizer "
        "Metaspace does not split texts; set engine to auto"
    )
    assert not (tmp_path / "o.pbin").exists()
    packtok_cli(*words, "--engine", "auto", cwd=tmp_path)
    done = packtok_cli(*words, "--engine", "quick", cwd=tmp_path, code=2)
    assert "'auto', 'fast', 'reference'" in done.stderr


def test_every_component_that_keeps_a_file_slow_is_named(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    content = json.loads(packtok.Tokenizer.builtin("gpt2").to_json())
    content["normalizer"] = {"type": "NFKD"}
    content["pre_tokenizer"] = {
        "type": "Sequence",
        "pretokenizers": [
            {
                "type": "Split",
                "pattern": {"Regex": r"(?<=a)b|\s+"},
                "behavior": "Isolated",
                "invert": False,
            },
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        ],
    }
    (tmp_path / "slow.json").write_text(json.dumps(content))
    (tmp_path / "pattern.json").write_text(json.dumps({**content, "normalizer": None}))
    shown = packtok_cli("tokenizer", "inspect", "slow.json", "--measure", cwd=tmp_path).stdout
    pattern = "the pattern of its pre-tokenizer has the group (?<"
    assert f"because its normalizer NFKD is not supported and {pattern}\n" in shown
    assert re.search(r"^speed +[\d.]+ MB/s with tokenizers [\d.]+, on one core$", shown, re.M)
    shown = packtok_cli("tokenizer", "inspect", "pattern.json", cwd=tmp_path).stdout
    assert f"because {pattern}\n" in shown
    assert "\nspeed " not in shown


def test_speeds_of_both_engines_are_measured(packtok_cli: PacktokCli) -> None:
    facts = json.loads(packtok_cli("tokenizer", "inspect", "gpt2", "--measure", "--json").stdout)
    assert [(speed["engine"], speed["is_used"]) for speed in facts["speeds"]] == [
        ("packtok", True),
        (REFERENCE, False),
    ]
    assert all(speed["bytes_per_second"] > 1000 for speed in facts["speeds"])


def test_engine_is_not_part_of_the_output_identity(tmp_path: Path) -> None:
    pack = functools.partial(packtok.pack, input=CORPUS, output=tmp_path / "o.pbin", tokenizer="gpt2")
    assert not pack(engine="reference").skipped_existing
    assert pack(engine="fast", existing="skip").skipped_existing


@pytest.mark.parametrize("is_writable", [True, False])
def test_tokenizer_is_checked_once(tmp_path: Path, is_writable: bool) -> None:
    cache = tmp_path / "cache" if is_writable else Path("/proc/no/such")
    code = "import packtok; t = packtok.Tokenizer.builtin('gpt2'); print(t.engine, t.notes)"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "XDG_CACHE_HOME": str(cache)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "packtok []\n"
    if is_writable:
        folder = cache / "packtok" / "engines"
        (note,) = folder.iterdir()
        fingerprint = packtok.Tokenizer.builtin("gpt2").fingerprint
        version = _packtok.__version__
        start = f"{fingerprint.removeprefix('sha256:')}-{version}-"
        assert note.name.startswith(start)
        lane = note.name.removeprefix(start)
        assert note.read_text(encoding="utf-8") == (
            f"packtok {version}, engine {lane}, gives the ids of tokenizers 0.23.2\ntokenizer {fingerprint}\n"
        )
        assert S_IMODE(folder.stat().st_mode) == 0o700

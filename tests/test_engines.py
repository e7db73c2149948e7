"""Which engine encodes: asked for by an option, proven once; the bytes of a pbin are the same."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from stat import S_IMODE

import oracle
import pytest
from conftest import PacktokCli
from test_exact import unigram

import packtok
from packtok import _packtok

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "corpus.jsonl"
REFERENCE = "tokenizers 1.0.0-rc.3"


@pytest.mark.parametrize("name", ["gpt2", "cl100k_base", "o200k_base"])
def test_every_engine_writes_the_same_file(tmp_path: Path, name: str) -> None:
    texts = oracle.texts_of(EXAMPLES)
    # A text that holds an added token, and words longer than any table.
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
def test_a_cache_of_any_size_gives_the_same_file(tmp_path: Path, cache_bytes: int) -> None:
    texts = oracle.texts_of(EXAMPLES) * 3
    corpus = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    pack = functools.partial(packtok.pack, input=corpus, tokenizer="gpt2", num_cpus=1)
    pack(output=tmp_path / "one.pbin", cache_bytes=cache_bytes)
    pack(output=tmp_path / "other.pbin", engine="reference")
    assert (tmp_path / "one.pbin").read_bytes() == (tmp_path / "other.pbin").read_bytes()


def test_an_engine_that_does_not_cover_the_file_says_why(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    unigram().save(str(tmp_path / "words.json"))
    words = ("pack", "-i", EXAMPLES, "-o", "o.pbin", "-t", "words.json", "--eod", "[SEP]", "--quiet")
    done = packtok_cli(*words, "--engine", "fast", cwd=tmp_path, code=1)
    assert done.stderr.splitlines()[-1] == (
        "packtok: words.json: the fast engine does not cover this tokenizer, because its "
        "pre-tokenizer Metaspace does not take out white space; set engine to auto"
    )
    assert not (tmp_path / "o.pbin").exists()
    packtok_cli(*words, "--engine", "auto", cwd=tmp_path)
    done = packtok_cli(*words, "--engine", "quick", cwd=tmp_path, code=2)
    assert "'auto', 'fast', 'reference'" in done.stderr


def test_the_engine_is_not_part_of_what_an_output_is(tmp_path: Path) -> None:
    pack = functools.partial(packtok.pack, input=EXAMPLES, output=tmp_path / "o.pbin", tokenizer="gpt2")
    assert not pack(engine="reference").skipped_existing
    assert pack(engine="fast", existing="skip").skipped_existing


@pytest.mark.parametrize("is_writable", [True, False])
def test_a_tokenizer_is_proven_once(tmp_path: Path, is_writable: bool) -> None:
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
        fingerprint = packtok.Tokenizer.builtin("gpt2").fingerprint.removeprefix("sha256:")
        assert note.name.startswith(f"{fingerprint}-{_packtok.__version__}-")
        assert (note.read_bytes(), S_IMODE(folder.stat().st_mode)) == (b"", 0o700)

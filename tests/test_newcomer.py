"""The first contact with packtok: an empty folder, wrong arguments, then a corpus that is not clean.

Tests assert the words that an error message needs, and the exit code: 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from conftest import PacktokCli
from processes import names

import packtok

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
GOOD = {"-i": "corpus.jsonl", "-o": "train.pbin", "-t": "gpt2"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with three documents and nothing else."""
    texts = ["Hello world", "Grüße aus Köln", "def f(x):\n    return x\n"]
    lines = [json.dumps({"text": text, "source": "mine"}) + "\n" for text in texts]
    (tmp_path / "corpus.jsonl").write_text("".join(lines))
    return tmp_path


def arguments(**changed: str | None) -> list[str]:
    """The arguments of a run that works, with some of ``i``, ``o`` and ``t`` changed or left out."""
    given = {**GOOD, **{f"-{name}": value for name, value in changed.items()}}
    return [part for name, value in given.items() if value is not None for part in (name, value)]


def answer(cli: PacktokCli, *rest: str, cwd: Path, code: int) -> str:
    """What a command that must fail says; it prints no result and changes nothing."""
    before = names(cwd)
    done = cli("pack", *rest, cwd=cwd, code=code, env={**OFFLINE, "HF_HOME": str(cwd / ".hub")})
    assert done.stdout == ""
    assert names(cwd) == before
    return done.stderr


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        # Paths.
        (arguments(i="corpsu.jsonl"), 1, ("corpsu.jsonl", "No such file")),
        (arguments(i="data/corpus.jsonl"), 1, ("data/corpus.jsonl", "No such file")),
        (arguments(i="*.json"), 1, ('"*.json"', "no file matches")),
        (arguments(i="http://127.0.0.1:9/c.jsonl"), 1, ("http://127.0.0.1:9/c.jsonl", "refused")),
        (arguments(i="hf://datasets/some/corpus.jsonl"), 1, ("hf://", "no URL of a store", "s3://")),
        (["none.yaml"], 1, ("none.yaml", "No such file")),
        # What is left out.
        ([], 2, ("tokenizer", "missing", "--tokenizer")),
        (arguments(i=None), 2, ("settings.src_path", "missing", "--input")),
        (arguments(o=None), 2, ("settings.dst_path", "missing", "--output")),
        (arguments(t=None), 2, ("tokenizer", "missing", "--tokenizer", "gpt2")),
        # The tokenizer.
        (arguments(t="gpt-2"), 1, ("'gpt-2'", "built in", "hub", "tokenizer.json")),
        (arguments(t="someone/model"), 1, ("'someone/model'", "hub", "tokenizer.json")),
        (arguments(t="./gpt2"), 1, ("./gpt2", "no such tokenizer")),
        (arguments(t="."), 1, (".", "no tokenizer.json in this folder")),
        (arguments(t="corpus.jsonl"), 1, ("corpus.jsonl", "not a tokenizer.json")),
        ([*arguments(), "--eod", "<eos>"], 1, ('"<eos>"', "not one token of gpt2", '"<|endoftext|>"')),
        ([*arguments(), "--eod", "two words"], 1, ('"two words"', "not one token of gpt2")),
        ([*arguments(), "--bos", "<s>"], 1, ('"<s>"', "not one token of gpt2")),
        # The text of a document.
        ([*arguments(), "-f", ".body"], 1, ("corpus.jsonl:1", "field .body is missing", "jq_pattern")),
        ([*arguments(), "-f", "."], 1, ("corpus.jsonl:1", "jq_pattern")),
        ([*arguments(), "-f", ".text.more"], 1, ("corpus.jsonl:1", "jq_pattern")),
        ([*arguments(), "-f", ".text |"], 1, ("jq pattern", '".text |"')),
        ([*arguments(), "-f", "text"], 1, ("jq pattern", '"text"', "not defined", "did you mean .text?")),
        ([*arguments(), "-f", "repeat(.)|empty"], 1, ("corpus.jsonl:1", "does too much work", "jq_pattern")),
        ([*arguments(), "-f", "def f: f; f"], 1, ("corpus.jsonl:1", "def f: f; f", "jq_pattern")),
        ([*arguments(), "-f", "[range(1e12)]"], 1, ("corpus.jsonl:1", "does too much work", "jq_pattern")),
        ([*arguments(), "-f", "env.HOME"], 1, ("jq pattern", "env")),
        # Options.
        ([*arguments(), "--set", "nonsense"], 2, ("--set nonsense", "KEY=VALUE", "num_cpus=4")),
        ([*arguments(), "--set", "=1"], 2, ("--set =1", "KEY=VALUE")),
        ([*arguments(), "--set", "num_cpu=1"], 2, ("settings.num_cpu", "settings.num_cpus?")),
        ([*arguments(), "--set", "tokenizer.config.trunc=1"], 2, ("tokenizer.config.truncation?",)),
        ([*arguments(), "--set", "a.b=1"], 2, ("a is no known key", "settings, tokenizer")),
        ([*arguments(), "--set", "num_cpus=many"], 2, ("settings.num_cpus", "'many'", "whole number")),
        ([*arguments(), "--set", "num_cpus=[1"], 2, ("'[1'", "YAML")),
        ([*arguments(), "--set", "num_cpus=${x}"], 2, ("settings.num_cpus", "x")),
        ([*arguments(), "-j", "0"], 2, ("settings.num_cpus is 0", "at least 1")),
        ([*arguments(), "-j", "few"], 2, ("--num-cpus", "integer")),
        ([*arguments(), "--existing", "overwrite"], 2, ("--existing", "error", "skip", "replace")),
        ([*arguments(), "--on-bad-document", "warn"], 2, ("--on-bad-document", "fail", "skip")),
        ([*arguments(), "--max-tokens", "0"], 2, ("settings.max_tokens is 0", "at least 1")),
        ([*arguments(), "--truncation"], 2, ("tokenizer.config.truncation", "max_length")),
        ([*arguments(), "--output-file", "x"], 2, ("--output-file",)),
        # Outputs.
        (arguments(o="corpus.jsonl"), 1, ("corpus.jsonl", "both input and output")),
        (arguments(o="corpus.jsonl/train.pbin"), 1, ("corpus.jsonl", "Not a directory")),
        ([*arguments(), "--report", "none/r.json"], 1, ("none", "report", "does not exist")),
    ],
)
def test_a_wrong_argument_gets_an_answer_to_act_on(
    folder: Path, packtok_cli: PacktokCli, given: list[str], code: int, words: tuple[str, ...]
) -> None:
    said = answer(packtok_cli, *given, cwd=folder, code=code)
    assert [word for word in words if word not in said] == [], said
    # Click shows the usage in three more lines; everything else is one line.
    last = said.splitlines()[-1]
    assert last.startswith("packtok: ") if not said.startswith("Usage: ") else last.startswith("Error: ")
    assert len(said.splitlines()) == (4 if said.startswith("Usage: ") else 1)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("settings: {src_pth: corpus.jsonl, dst_path: a}\ntokenizer: gpt2\n", ("settings.src_path?",)),
        ("setings: {src_path: corpus.jsonl}\ntokenizer: gpt2\n", ("setings", "settings")),
        (
            "settings: {src_path: corpus.jsonl}\ntokenizer: gpt2\n",
            ("settings.dst_path is missing", "--output"),
        ),
        ("settings:\n  src_path: [a\n", ("pack.yaml:", "no valid YAML")),
        ("", ("pack.yaml", "tokenizer is missing")),
        ("- a\n", ("pack.yaml", "mapping of keys")),
        ("just text\n", ("pack.yaml", "just text")),
        (
            "settings: {src_path: corpus.jsonl, dst_path: a.pbin}\n"
            "tokenizer: {variant_key: pretrained_sp_tokenizer, config: {tokenizer_file: a.model}}\n",
            ("tokenizer.config.tokenizer_model_file is missing", ".model"),
        ),
        (
            "settings: {src_path: '${cuda_env:NONE_SUCH}', dst_path: a.pbin}\ntokenizer: gpt2\n",
            ("settings.src_path",),
        ),
    ],
)
def test_a_wrong_config_names_the_key(
    folder: Path, packtok_cli: PacktokCli, config: str, words: tuple[str, ...]
) -> None:
    (folder / "pack.yaml").write_text(config)
    said = answer(packtok_cli, "pack.yaml", cwd=folder, code=2)
    assert [word for word in words if word not in said] == [], said
    (line,) = said.splitlines()
    assert line.startswith("packtok: pack.yaml:")


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz"])
def test_a_corpus_in_the_place_of_the_config_is_pointed_out(
    folder: Path, packtok_cli: PacktokCli, name: str
) -> None:
    if name != "corpus.jsonl":
        (folder / name).write_bytes(gzip.compress((folder / "corpus.jsonl").read_bytes()))
    said = answer(packtok_cli, name, "-o", "train.pbin", "-t", "gpt2", cwd=folder, code=2)
    assert name in said
    assert "--input" in said


def test_a_corpus_that_is_not_clean_is_answered_line_by_line(folder: Path, packtok_cli: PacktokCli) -> None:
    corpus = folder / "corpus.jsonl"
    lines = ['{"text": "a"}\r\n', "\n", '{"text": ""}\n', '{"text": 5}\n', '{"text": "b"\n', '{"text": "c"}']
    corpus.write_text("\ufeff" + "".join(lines), newline="")
    said = answer(packtok_cli, *arguments(), cwd=folder, code=1)
    assert said.startswith(f"packtok: corpus.jsonl:4: byte {3 + sum(map(len, lines[:3]))}: ")
    assert "on_bad_document: skip" in said
    done = packtok_cli("pack", *arguments(), "--on-bad-document", "skip", cwd=folder)
    assert "lines          6 = 2 packed + 1 empty + 1 blank + 2 rejected\n" in done.stdout
    assert "rejects        train.pbin.rejects.jsonl\n" in done.stdout
    rejects = [json.loads(line) for line in (folder / "train.pbin.rejects.jsonl").read_text().splitlines()]
    assert [(reject["source"], reject["line"]) for reject in rejects] == [
        ("corpus.jsonl", 4),
        ("corpus.jsonl", 5),
    ]
    tokenizer = packtok.Tokenizer.builtin("gpt2")
    expected = [[*tokenizer.encode(text), 50256] for text in ("a", "c")]
    assert [document.tolist() for document in packtok.PbinReader(str(folder / "train.pbin"))] == expected


def test_an_empty_document_can_be_forbidden_or_kept(folder: Path, packtok_cli: PacktokCli) -> None:
    (folder / "corpus.jsonl").write_text('{"text": "a"}\n{"text": ""}\n')
    said = answer(packtok_cli, *arguments(), "--empty-document", "fail", cwd=folder, code=1)
    assert said.startswith("packtok: corpus.jsonl:2: byte 14: the document is empty")
    packtok_cli("pack", *arguments(), "--empty-document", "keep", cwd=folder)
    assert [len(document) for document in packtok.PbinReader(str(folder / "train.pbin"))] == [2, 1]


def test_an_empty_corpus_is_packed_and_remarked(folder: Path, packtok_cli: PacktokCli) -> None:
    (folder / "corpus.jsonl").write_text("")
    done = packtok_cli("pack", *arguments(), cwd=folder)
    assert done.stderr == "packtok: warning: no document was packed: the output is valid and empty\n"
    assert len(packtok.PbinReader(str(folder / "train.pbin"))) == 0
    packtok_cli("verify", "train.pbin", cwd=folder)


def test_a_missing_output_folder_is_made(folder: Path, packtok_cli: PacktokCli) -> None:
    packtok_cli("pack", *arguments(o="deep/er/train.pbin"), cwd=folder)
    assert names(folder / "deep" / "er") == ["train.pbin", "train.pbin.tokenizer.json"]


def test_the_same_command_again_says_what_can_be_done(folder: Path, packtok_cli: PacktokCli) -> None:
    packtok_cli("pack", *arguments(), cwd=folder)
    packed = (folder / "train.pbin").read_bytes()
    said = answer(packtok_cli, *arguments(), cwd=folder, code=1)
    assert said == (
        "packtok: train.pbin: the output exists already; name another, or set existing to skip or replace\n"
    )
    done = packtok_cli("pack", *arguments(), "--existing", "skip", cwd=folder)
    assert "whole, and of the same config and sources" in done.stdout
    with (folder / "corpus.jsonl").open("a") as file:
        file.write('{"text": "more"}\n')
    said = answer(packtok_cli, *arguments(), "--existing", "skip", cwd=folder, code=1)
    assert "train.pbin" in said
    assert "source" in said
    assert "set existing to replace" in said
    said = answer(packtok_cli, *arguments(t="cl100k_base"), "--existing", "skip", cwd=folder, code=1)
    assert "tokenizer" in said
    assert (folder / "train.pbin").read_bytes() == packed
    packtok_cli("pack", *arguments(), "--existing", "replace", cwd=folder)
    assert len(packtok.PbinReader(str(folder / "train.pbin"))) == 4


def test_a_damaged_output_is_not_kept(folder: Path, packtok_cli: PacktokCli) -> None:
    packtok_cli("pack", *arguments(), cwd=folder)
    packed = bytearray((folder / "train.pbin").read_bytes())
    packed[14] ^= 1
    (folder / "train.pbin").write_bytes(packed)
    said = answer(packtok_cli, *arguments(), "--existing", "skip", cwd=folder, code=1)
    assert said.startswith("packtok: train.pbin: ")
    assert len(said.splitlines()) == 1

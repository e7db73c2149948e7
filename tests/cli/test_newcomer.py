"""First contact with packtok: an empty folder, wrong arguments, then a corpus with bad lines.

Tests check the essential words of an error message, and the exit code: 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from command_line import PacktokCli
from processes import names

import packtok

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
GOOD = {"-i": "corpus.jsonl", "-o": "train.pbin", "-t": "gpt2"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with three documents and nothing else."""
    texts = ["Hello world", "Grüße aus Köln", "def f(x):\n    return x\n"]
    lines = [json.dumps({"text": text, "source": "mine"}) + "\n" for text in texts]
    (tmp_path / "corpus.jsonl").write_text("".join(lines))
    return tmp_path


def arguments(**changed: str | None) -> list[str]:
    """Returns the arguments of a valid run, with some of ``i``, ``o`` and ``t`` changed or removed."""
    options = {**GOOD, **{f"-{name}": value for name, value in changed.items()}}
    return [part for name, value in options.items() if value is not None for part in (name, value)]


def answer(cli: PacktokCli, *rest: str, cwd: Path, code: int) -> str:
    """Returns the message of a command that must fail, print no result and change nothing."""
    before = names(cwd)
    done = cli("pack", *rest, cwd=cwd, code=code, env={**OFFLINE, "HF_HOME": str(cwd / ".hub")})
    assert done.stdout == ""
    assert names(cwd) == before
    # On a slow machine, progress comes before the error.
    progress = (" MB/s", "checking the engine")
    lines = done.stderr.splitlines(keepends=True)
    return "".join(line for line in lines if not any(part in line for part in progress))


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        # Paths.
        (arguments(i="corpsu.jsonl"), 1, ("corpsu.jsonl", "No such file")),
        (arguments(i="data/corpus.jsonl"), 1, ("data/corpus.jsonl", "No such file")),
        (arguments(i="*.json"), 1, ('"*.json"', "no file matches")),
        (arguments(i="http://127.0.0.1:9/c.jsonl"), 1, ("http://127.0.0.1:9/c.jsonl", "refused")),
        (arguments(i="hf://datasets/some/corpus.jsonl"), 1, ("hf://datasets/some/corpus.jsonl: ",)),
        (["none.yaml"], 1, ("none.yaml", "No such file")),
        # Missing arguments.
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
        (
            [*arguments(), "-f", "repeat(.)|empty"],
            1,
            ("corpus.jsonl:1", "exceeds a limit on this document", "jq_pattern"),
        ),
        ([*arguments(), "-f", "def f: f; f"], 1, ("corpus.jsonl:1", "def f: f; f", "jq_pattern")),
        (
            [*arguments(), "-f", "[range(1e12)]"],
            1,
            ("corpus.jsonl:1", "exceeds a limit on this document", "jq_pattern"),
        ),
        ([*arguments(), "-f", "env.HOME"], 1, ("jq pattern", "env")),
        # Options.
        ([*arguments(), "--set", "nonsense"], 2, ("--set nonsense", "KEY=VALUE", "num_cpus=4")),
        ([*arguments(), "--set", "=1"], 2, ("--set =1", "KEY=VALUE")),
        ([*arguments(), "--set", "num_cpu=1"], 2, ("settings.num_cpu", "settings.num_cpus?")),
        ([*arguments(), "--set", "tokenizer.config.trunc=1"], 2, ("tokenizer.config.truncation?",)),
        ([*arguments(), "--set", "a.b=1"], 2, ("a is not a known key", "settings, tokenizer")),
        ([*arguments(), "--set", "num_cpus=many"], 2, ("settings.num_cpus", "'many'", "an integer")),
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
def test_invalid_argument_gets_an_actionable_message(
    folder: Path, packtok_cli: PacktokCli, args: list[str], code: int, words: tuple[str, ...]
) -> None:
    message = answer(packtok_cli, *args, cwd=folder, code=code)
    assert [word for word in words if word not in message] == [], message
    # Click shows the usage in three more lines; all other messages are one line.
    last = message.splitlines()[-1]
    assert last.startswith("packtok: ") if not message.startswith("Usage: ") else last.startswith("Error: ")
    assert len(message.splitlines()) == (4 if message.startswith("Usage: ") else 1)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("settings: {src_pth: corpus.jsonl, dst_path: a}\ntokenizer: gpt2\n", ("settings.src_path?",)),
        ("setings: {src_path: corpus.jsonl}\ntokenizer: gpt2\n", ("setings", "settings")),
        (
            "settings: {src_path: corpus.jsonl}\ntokenizer: gpt2\n",
            ("--output: is missing", "settings.dst_path"),
        ),
        ("settings:\n  src_path: [a\n", ("pack.yaml:", "not valid YAML")),
        ("", ("pack.yaml", "--tokenizer: is missing")),
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
def test_config_error_names_the_key(
    folder: Path, packtok_cli: PacktokCli, config: str, words: tuple[str, ...]
) -> None:
    (folder / "pack.yaml").write_text(config)
    message = answer(packtok_cli, "pack.yaml", cwd=folder, code=2)
    assert [word for word in words if word not in message] == [], message
    (line,) = message.splitlines()
    assert line.startswith("packtok: pack.yaml:")


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz"])
def test_corpus_given_as_config_is_pointed_out(folder: Path, packtok_cli: PacktokCli, name: str) -> None:
    if name != "corpus.jsonl":
        (folder / name).write_bytes(gzip.compress((folder / "corpus.jsonl").read_bytes()))
    message = answer(packtok_cli, name, "-o", "train.pbin", "-t", "gpt2", cwd=folder, code=2)
    assert name in message
    assert "--input" in message


def test_bad_lines_of_a_corpus_are_reported_one_by_one(folder: Path, packtok_cli: PacktokCli) -> None:
    corpus = folder / "corpus.jsonl"
    lines = ['{"text": "a"}\r\n', "\n", '{"text": ""}\n', '{"text": 5}\n', '{"text": "b"\n', '{"text": "c"}']
    corpus.write_text("\ufeff" + "".join(lines), newline="")
    message = answer(packtok_cli, *arguments(), cwd=folder, code=1)
    assert message.startswith(f"packtok: corpus.jsonl:4: byte {3 + sum(map(len, lines[:3]))}: ")
    assert "on_bad_document: skip" in message
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


def test_empty_document_can_be_rejected_or_kept(folder: Path, packtok_cli: PacktokCli) -> None:
    (folder / "corpus.jsonl").write_text('{"text": "a"}\n{"text": ""}\n')
    message = answer(packtok_cli, *arguments(), "--empty-document", "fail", cwd=folder, code=1)
    assert message.startswith("packtok: corpus.jsonl:2: byte 14: the document is empty")
    packtok_cli("pack", *arguments(), "--empty-document", "keep", cwd=folder)
    assert [len(document) for document in packtok.PbinReader(str(folder / "train.pbin"))] == [2, 1]


def test_empty_corpus_is_packed_with_a_warning(folder: Path, packtok_cli: PacktokCli) -> None:
    (folder / "corpus.jsonl").write_text("")
    done = packtok_cli("pack", *arguments(), cwd=folder)
    assert done.stderr == "packtok: warning: no document was packed; the output is valid but empty\n"
    assert len(packtok.PbinReader(str(folder / "train.pbin"))) == 0
    packtok_cli("verify", "train.pbin", cwd=folder)


def test_missing_output_folder_is_created(folder: Path, packtok_cli: PacktokCli) -> None:
    packtok_cli("pack", *arguments(o="deep/er/train.pbin"), cwd=folder)
    assert names(folder / "deep" / "er") == ["train.pbin", "train.pbin.tokenizer.json"]


def test_repeating_a_command_explains_the_options(folder: Path, packtok_cli: PacktokCli) -> None:
    packtok_cli("pack", *arguments(), cwd=folder)
    packed = (folder / "train.pbin").read_bytes()
    message = answer(packtok_cli, *arguments(), cwd=folder, code=1)
    assert message == (
        "packtok: train.pbin: the output already exists; choose another path, or set --existing (existing "
        "in a config) to skip or replace\n"
    )
    done = packtok_cli("pack", *arguments(), "--existing", "skip", cwd=folder)
    assert "complete and matches this config and its sources" in done.stdout
    with (folder / "corpus.jsonl").open("a") as file:
        file.write('{"text": "more"}\n')
    message = answer(packtok_cli, *arguments(), "--existing", "skip", cwd=folder, code=1)
    assert "train.pbin" in message
    assert "source" in message
    assert "set --existing (existing) to replace" in message
    message = answer(packtok_cli, *arguments(t="cl100k_base"), "--existing", "skip", cwd=folder, code=1)
    assert "tokenizer" in message
    assert (folder / "train.pbin").read_bytes() == packed
    packtok_cli("pack", *arguments(), "--existing", "replace", cwd=folder)
    assert len(packtok.PbinReader(str(folder / "train.pbin"))) == 4


def test_damaged_output_is_not_kept(folder: Path, packtok_cli: PacktokCli) -> None:
    packtok_cli("pack", *arguments(), cwd=folder)
    packed = bytearray((folder / "train.pbin").read_bytes())
    packed[14] ^= 1
    (folder / "train.pbin").write_bytes(packed)
    message = answer(packtok_cli, *arguments(), "--existing", "skip", cwd=folder, code=1)
    assert message.startswith("packtok: train.pbin: ")
    assert len(message.splitlines()) == 1


HOME_HINT = "only a shell expands ~, without quotes and at the start of a word; write /home/me/x"
STDOUT = "- means standard output, which is not supported; give a file (./- for a file named -)"
STDIN = "- means standard input, which is not supported; write the data to a file first"


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        # Standard input and output.
        (["pack", *arguments(o="-")], 2, f"--output: {STDOUT}"),
        (["pack", *arguments(), "--report", "-"], 2, f"--report: {STDOUT}"),
        (["plan", *arguments(o="-"), "--shards", "2"], 2, f"--output: {STDOUT}"),
        (["run", "--no-submit", "pack", *arguments(o="-")], 2, f"--output: {STDOUT}"),
        (["run", "--submit-script", "-", "pack", *arguments()], 2, f"--submit-script: {STDOUT}"),
        (["run", "--outdir", "-", "pack", *arguments()], 2, f"--outdir: {STDOUT}"),
        (["join", "shards", "-o", "-"], 2, f"--output: {STDOUT}"),
        (["merge", "a.pbin", "-"], 2, f"OUT: {STDOUT}"),
        (["convert", "a.pbin", "--to", "cepe-npy", "-o", "-"], 2, f"--output: {STDOUT}"),
        (["convert", "~/x", "--to", "pbin", "-o", "b.pbin"], 2, f"FILE: ~/x: {HOME_HINT}"),
        (["data", "files", "folder", "-o", "-"], 2, f"--output: {STDOUT}"),
        (["data", "files", "none"], 2, "none: is not a folder; give the folder of the corpus"),
        (["manifest", "a.pbin", "-o", "-"], 2, f"--output: {STDOUT}"),
        (["sample", "ab", "-", "8", "4", "0", "1"], 2, f"OUT: {STDOUT}"),
        (["sample", "import", "folder", "-"], 2, f"NEW: {STDOUT}"),
        (["index", "corpus.jsonl", "--index-path", "-"], 2, f"--index-path: {STDOUT}"),
        (["data", "create_raw_index", "corpus.jsonl", "--index_path", "-"], 2, f"--index-path: {STDOUT}"),
        (["data", "merge_packed_data", "a.pbin", "-"], 2, f"OUT: {STDOUT}"),
        (
            ["data", "prepare_instruction_tuning_data", "--config_file_path", "-"],
            2,
            f"--config_file_path: {STDIN}",
        ),
        (["data", "pack_encoded_data", "stdout.yaml"], 2, f"stdout.yaml: settings.dst_path: {STDOUT}"),
        (["pack", *arguments(i="-")], 2, f"--input: {STDIN}"),
        (["count", "-", "-t", "gpt2"], 2, f"CORPUS: {STDIN}"),
        (["index", "-"], 2, f"SRC: {STDIN}"),
        # Syntax that only a shell expands.
        (["pack", *arguments(i="~/x")], 2, f"--input: ~/x: {HOME_HINT}"),
        (["pack", *arguments(o="~/x")], 2, f"--output: ~/x: {HOME_HINT}"),
        (["pack", *arguments(t="~/x")], 2, f"--tokenizer: ~/x: {HOME_HINT}"),
        (["inspect", "~/x"], 2, f"FILE: ~/x: {HOME_HINT}"),
        # Empty arguments.
        (["inspect", ""], 2, "FILE: is empty; give a file or folder"),
        (["merge", "", "b.pbin"], 2, "PART: is empty; give a file or folder"),
        (["join", "shards", "-o", " "], 2, "--output: is empty; give a file or folder"),
        (["retry", ""], 2, "OUTDIR: is empty; give a file or folder"),
        # The same error has the same message everywhere.
        (["pack", *arguments(i="none")], 1, "--input: none: No such file or directory"),
        (["plan", *arguments(i="none"), "-n", "2"], 1, "--input: none: No such file or directory"),
        (["run", "--no-submit", "pack", *arguments(i="none")], 1, "--input: none: No such file or directory"),
        (["pack", *arguments(i=None)], 2, "--input: is missing; give it, or settings.src_path in a config"),
        (
            ["run", "pack", *arguments(i=None)],
            2,
            "--input: is missing; give it, or settings.src_path in a config",
        ),
        (["pack", *arguments(), "-j", "0"], 2, "--num-cpus: settings.num_cpus is 0; expected at least 1"),
        (
            ["run", "pack", *arguments(), "-j", "0"],
            2,
            "--num-cpus: settings.num_cpus is 0; expected at least 1",
        ),
        (["run", "--nodes", "0", "pack", *arguments()], 2, "--nodes: slurm.nodes is 0; expected at least 1"),
        # Folders for files, and files for folders.
        (["pack", *arguments(o="new/")], 2, "--output: new/ is a folder; give a file in it"),
        (
            ["pack", "folder"],
            2,
            "folder: is a folder, but a config was expected; give the corpus with --input or in a config; "
            "packtok pack --print-config prints a config",
        ),
        (["pack", *arguments(), "--report", "folder"], 2, "--report: folder is a folder; give a file in it"),
        (
            ["plan", *arguments(o="corpus.jsonl"), "-n", "2"],
            2,
            "--output: corpus.jsonl is a file; give a folder for the shards",
        ),
        (
            ["join", "corpus.jsonl", "-o", "a.pbin"],
            1,
            "corpus.jsonl: is a file; give the folder that contains the shards",
        ),
        (
            ["index", "corpus.jsonl", "--index-path", "folder"],
            1,
            "folder: the output is a folder, not a file; choose another path",
        ),
        (
            ["index", "corpus.jsonl", "--index-path", "folder", "--existing", "replace"],
            1,
            "folder: the output is a folder, not a file; choose another path",
        ),
        (
            ["merge", "folder/a.pbin", "folder"],
            1,
            "folder: the output is a folder, not a file; choose another path",
        ),
        # Reports that would replace other files.
        (
            ["pack", *arguments(), "--report", "train.pbin"],
            2,
            "--report: train.pbin is a path of the output; choose another file",
        ),
        (
            ["pack", *arguments(), "--report", "corpus.jsonl"],
            2,
            "--report: corpus.jsonl exists and is not a packtok report, so it is not replaced; choose "
            "another",
        ),
        # Numbers.
        (["pack", *arguments(), "--shard", "x"], 2, "--shard: is 'x'; expected k/N, k or auto"),
        (
            ["pack", *arguments(), "--shard", "0/9999999999"],
            2,
            "--shard: is '0/9999999999'; there can be at most 2,147,483,647 shards",
        ),
        # Configs of other commands.
        (
            ["locate", "locate.yaml", "-s", "0"],
            2,
            "locate.yaml: dataset.path: unknown key; did you mean 'paths'?",
        ),
        (["locate", "stdout.yaml", "-s", "0"], 2, "stdout.yaml: dataset.paths: is missing"),
        (
            ["locate", "loder.yaml", "-s", "0"],
            2,
            "loder.yaml: loder: unknown section; did you mean 'loader'?",
        ),
        (
            ["pack", *arguments(t="folder/a.pbin")],
            1,
            "a.pbin: not a tokenizer.json, tekken.json or SentencePiece .model: ",
        ),
    ],
)
def test_malformed_command_gets_one_line(
    folder: Path, packtok_cli: PacktokCli, args: list[str], code: int, message: str
) -> None:
    (folder / "folder").mkdir()
    (folder / "folder/a.pbin").write_bytes(b"\x05" + b"\x00" * 7 + b"\xff\xfe" * 20)
    (folder / "stdout.yaml").write_text(
        "settings: {src_path: corpus.jsonl, dst_path: '-'}\ntokenizer: gpt2\n"
    )
    (folder / "locate.yaml").write_text("dataset: {path: a.pbin}\n")
    (folder / "loder.yaml").write_text("dataset: {paths: a.pbin, context_length: 4}\nloder: {}\n")
    before = {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}
    done = packtok_cli(*args, cwd=folder, code=code, env={**OFFLINE, "HOME": "/home/me"})
    assert done.stdout == ""
    # Only the first run with this tokenizer on a machine checks the engine and prints a note about it.
    (line,) = [line for line in done.stderr.splitlines() if "checking the engine" not in line]
    expected = f"packtok: {message}"
    assert line.startswith(expected) if message.endswith((", ", ": ")) else line == expected
    assert {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")} == before


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["pack", "/dev/zero"], 2, "/dev/zero: is larger than 16 MiB, but a config was expected; "),
        (["pack", *arguments(), "--index-path", "/dev/zero"], 1, "/dev/zero: not a regular file"),
        (["pack", *arguments(), "-t", "/dev/zero"], 1, "/dev/zero: no such tokenizer file or folder"),
        (["run", "--conf", "/dev/zero", "pack", *arguments()], 2, "/dev/zero: is larger than 16 MiB, "),
        (["inspect", "/dev/zero"], 1, "/dev/zero: not a regular file"),
        (["count", "/dev/zero", "-t", "gpt2"], 1, "/dev/zero: is a device, not a file; "),
    ],
)
def test_endless_device_is_not_read(
    folder: Path, packtok_cli: PacktokCli, args: list[str], code: int, message: str
) -> None:
    done = packtok_cli(*args, cwd=folder, code=code, env=OFFLINE, timeout_seconds=60)
    assert done.stderr.splitlines()[-1].startswith(f"packtok: {message}")


def test_huge_number_of_shards_is_wrong_usage(folder: Path, packtok_cli: PacktokCli) -> None:
    done = packtok_cli("plan", *arguments(o="s"), "-n", 10**23, cwd=folder, code=2)
    assert "'--shards' / '-n'" in done.stderr
    done = packtok_cli("run", "--array-tasks", 10**23, "pack", *arguments(), cwd=folder, code=2)
    assert done.stderr == (f"packtok: --array-tasks: slurm.shards is {10**23}; expected at most 2147483647\n")
    with pytest.raises(packtok.ConfigError, match="shards: is 0; expected 1 to 2,147,483,647"):
        packtok.plan(shards=0, input=folder / "corpus.jsonl", output=folder / "s", tokenizer="gpt2")


def test_report_replaces_a_report(folder: Path, packtok_cli: PacktokCli) -> None:
    (folder / "report.json").touch()
    for _ in range(2):
        packtok_cli("pack", *arguments(), "--existing", "replace", "--report", "report.json", cwd=folder)
        assert json.loads((folder / "report.json").read_text())["documents"] == 3


def test_text_decoded_by_another_tokenizer_is_warned_about(folder: Path, packtok_cli: PacktokCli) -> None:
    packtok_cli("pack", *arguments(), cwd=folder)
    assert packtok_cli("cat", "train.pbin", "-t", "gpt2", cwd=folder).stderr == ""
    done = packtok_cli("cat", "train.pbin", "-t", "cl100k_base", cwd=folder)
    assert done.stderr == (
        "packtok: warning: train.pbin was packed with tokenizer gpt2, not cl100k_base; the text may differ "
        "from that of the documents\n"
    )

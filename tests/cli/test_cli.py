"""The commands as a user types them: their output, their exit codes, and the files they leave."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import command_line
import pytest
from command_line import PacktokCli
from processes import start

import packtok
import packtok.config
import packtok.data
from packtok import _packtok
from packtok.cli import GROUPS
from packtok.cli.cat import document_numbers
from packtok.cli.console import printable
from packtok.cli.inspect import histogram
from packtok.cli.progress import PlainLines, status
from packtok.cli.verify import fraction_of

TEXTS = ["Hello world", "Grüße aus Köln", "Ω≈ç√ 数 🙂", "def f(x):\n    return x\n", "x"]


def run(*arguments: object, cwd: Path, code: int = 0, env: dict[str, str] | None = None) -> tuple[str, str]:
    """Returns stdout and stderr of ``packtok`` with these arguments, which must exit with ``code``."""
    done = command_line.run(*arguments, cwd=cwd, code=code, env=env)
    return done.stdout, done.stderr


def write_corpus(path: Path, texts: list[str], key: str = "text") -> Path:
    path.write_text("".join(json.dumps({key: text}) + "\n" for text in texts), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_corpus(tmp_path / "corpus.jsonl", TEXTS)
    return tmp_path


@pytest.fixture
def packed(folder: Path) -> Path:
    run("pack", "-i", "corpus.jsonl", "-o", "train.pbin", "-t", "gpt2", cwd=folder)
    return folder / "train.pbin"


def test_pack_needs_no_config(folder: Path) -> None:
    arguments = ("--input", "*.jsonl", "--output", "a.pbin", "--tokenizer", "gpt2", "--field", ".text")
    out, _ = run("pack", *arguments, "--eod", "<|endoftext|>", "--report", "r.json", cwd=folder)
    assert re.search(r"^documents +5$", out, re.M)
    assert re.search(r"^lines +5 = 5 packed \+ 0 empty \+ 0 blank \+ 0 rejected$", out, re.M)
    report = json.loads((folder / "r.json").read_text())
    assert (report["documents"], report["lines"], report["output"]) == (5, 5, "a.pbin")
    assert report["tokens"] == packtok.PbinReader(str(folder / "a.pbin")).num_tokens
    tokenizer = packtok.Tokenizer.builtin("gpt2")
    expected = [[*tokenizer.encode(text), 50256] for text in TEXTS]
    assert [document.tolist() for document in packtok.PbinReader(str(folder / "a.pbin"))] == expected


def test_pack_in_python_equals_pack_on_the_command_line(packed: Path) -> None:
    seen: list[dict[str, int]] = []
    report = packtok.pack(
        input=packed.parent / "corpus.jsonl",
        output=packed.parent / "b.pbin",
        tokenizer="gpt2",
        on_progress=seen.append,
    )
    assert Path(report.output).read_bytes() == packed.read_bytes()
    assert report.to_dict()["documents"] == len(TEXTS)
    assert all(counts.keys() >= {"bytes_read", "total_bytes", "documents", "tokens"} for counts in seen)


def test_modalities_command_names_are_equivalent(folder: Path, packed: Path) -> None:
    config = folder / "pack.yaml"
    config.write_text(
        "settings: {src_path: corpus.jsonl, dst_path: m.pbin, jq_pattern: .text, eod_token: <|endoftext|>,\n"
        "  num_cpus: '${node_env:num_cpus}', processing_batch_size: 5, raw_samples_queue_size: 300,\n"
        "  processed_samples_queue_size: 300}\n"
        "tokenizer: {component_key: tokenizer, variant_key: pretrained_hf_tokenizer,\n"
        "  config: {pretrained_model_name_or_path: gpt2}}\n"
    )
    run("data", "pack_encoded_data", "pack.yaml", cwd=folder)
    assert (folder / "m.pbin").read_bytes() == packed.read_bytes()
    run("data", "pack_encoded_data", "pack.yaml", cwd=folder, code=1)
    run("data", "pack_encoded_data", "pack.yaml", "--file_existence_policy", "override", cwd=folder)
    run("data", "create_raw_index", "corpus.jsonl", "--index_path", "m.idx", cwd=folder)
    run("index", "corpus.jsonl", cwd=folder)
    assert (folder / "m.idx").read_bytes() == (folder / "corpus.idx").read_bytes()
    run("data", "merge_packed_data", "m.pbin", "train.pbin", "both.pbin", cwd=folder)
    assert len(packtok.PbinReader(str(folder / "both.pbin"))) == 2 * len(TEXTS)


def test_existing_output_is_kept_by_default(packed: Path) -> None:
    again = ("pack", "-i", "corpus.jsonl", "-o", "train.pbin", "-t", "gpt2")
    _, err = run(*again, cwd=packed.parent, code=1)
    assert "train.pbin" in err
    assert len(err.splitlines()) == 1
    out, _ = run(*again, "--existing", "skip", cwd=packed.parent)
    assert re.search(
        r"^kept +the existing file is complete and matches this config and its sources$", out, re.M
    )
    _, err = run(*again, "--existing", "skip", "--file_existence_policy", "error", cwd=packed.parent, code=2)
    assert "--existing skip and --file_existence_policy error differ; give only one" in err
    run(*again, "--file_existence_policy", "override", cwd=packed.parent)
    write_corpus(packed.parent / "corpus.jsonl", TEXTS[:2])
    run(*again, "--existing", "skip", cwd=packed.parent, code=1)
    assert len(packtok.PbinReader(str(packed))) == len(TEXTS)


def test_quiet_prints_one_line(folder: Path) -> None:
    out, err = run("pack", "-i", "corpus.jsonl", "-o", "q.pbin", "-t", "gpt2", "--quiet", cwd=folder)
    assert re.fullmatch(
        r"q\.pbin: 5 documents, \d+ tokens; lines 5 = 5 packed \+ 0 empty \+ 0 blank \+ 0 rejected\n", out
    )
    assert err == ""


def test_print_config_resolves_and_packs_nothing(folder: Path) -> None:
    out, _ = run(
        "pack",
        "-i",
        "corpus.jsonl",
        "-o",
        "${cuda_env:PACKTOK_TEST_SECRET}.pbin",
        "-t",
        "gpt2",
        "-j",
        3,
        "--set",
        "max_tokens=7",
        "--set",
        "tokenizer.config.max_length=4",
        "--print-config",
        cwd=folder,
        env={"PACKTOK_TEST_SECRET": "hunter2hunter2"},
    )
    assert "dst_path: ${cuda_env:PACKTOK_TEST_SECRET}.pbin\n" in out
    assert "num_cpus: 3\n" in out
    assert "max_tokens: 7\n" in out
    assert "max_length: 4\n" in out
    assert not list(folder.glob("*.pbin"))


def test_word_cache_memory_has_a_flag(folder: Path) -> None:
    arguments = ("pack", "-i", "corpus.jsonl", "-o", "q.pbin", "-t", "gpt2", "--cache-bytes", 1_000_000)
    out, _ = run(*arguments, "--print-config", cwd=folder)
    assert "cache_bytes: 1000000\n" in out


def test_secrets_are_neither_written_nor_printed(folder: Path) -> None:
    secret = "hunter2hunter2"
    (folder / secret).mkdir()
    bad = folder / secret / "corpus.jsonl"
    bad.write_text('{"text": "good"}\n{"text": 5}\n')
    (folder / secret / "other.jsonl").write_text('{"text": "other"}\n')
    (folder / "pack.yaml").write_text(
        "settings:\n"
        "  src_path: ['${oc.env:PACKTOK_TEST_SECRET}/corpus.jsonl', corpus.jsonl]\n"
        "  dst_path: out.pbin\n"
        "  on_bad_document: skip\n"
        "  report: r.json\n"
        "tokenizer: gpt2\n"
    )
    env = {"PACKTOK_TEST_SECRET": secret}
    out, err = run("pack", "pack.yaml", cwd=folder, env=env)
    inspected, _ = run("inspect", "out.pbin", "--json", cwd=folder)
    assert secret not in out + err + inspected
    for path in folder.iterdir():
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    _, err = run(
        "pack",
        "pack.yaml",
        "--set",
        "existing=replace",
        "--on-bad-document=fail",
        cwd=folder,
        env=env,
        code=1,
    )
    assert secret not in err
    assert "${oc.env:PACKTOK_TEST_SECRET}" in err
    url = "s3://user:password@host/a.jsonl?signature=abc"
    _, err = run("pack", "-i", url, "-o", "u.pbin", "-t", "gpt2", cwd=folder, code=1)
    assert "password" not in err
    assert "signature" not in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("pack", "-i", "none.jsonl", "-o", "a.pbin", "-t", "gpt2"), 1, "none.jsonl"),
        (
            ("pack", "-i", "corpus.jsonl", "-o", "a.pbin", "-t", "./none"),
            1,
            "./none: no such tokenizer file or folder",
        ),
        (("pack", "none.yaml"), 1, "none.yaml: No such file or directory"),
        (
            ("pack", "-o", "a.pbin", "-t", "gpt2"),
            2,
            "packtok: --input: is missing; give it, or settings.src_path in a config\n",
        ),
        (
            ("pack", "-i", "corpus.jsonl", "-o", "a.pbin"),
            2,
            "packtok: --tokenizer: is missing; give it, such as gpt2, or tokenizer in a config\n",
        ),
        (("pack", "--set", "num_cpus"), 2, "--set num_cpus: expected KEY=VALUE"),
        (("pack", "--nope"), 2, "--nope"),
        (("inspect", "corpus.jsonl"), 1, "corpus.jsonl"),
        (("inspect", "none.pbin"), 1, "none.pbin"),
        (("merge", "a.pbin"), 2, "expected at least one PART, then OUT"),
        (("merge", ".", "out.pbin"), 2, ".: no token file in this folder"),
        (("index", "corpus.idx", "--index_path", "corpus.idx"), 1, "source and index are the same file"),
        (("verify", "none.pbin", "--sample", "2"), 2, "--sample 2: expected all, or a percentage such as 1%"),
    ],
)
def test_errors_are_one_clear_line(folder: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    out, err = run(*arguments, cwd=folder, code=code)
    assert message in err
    assert out == ""
    assert sorted(path.name for path in folder.iterdir()) == ["corpus.jsonl"]


def test_inspect_shows_the_contents(packed: Path) -> None:
    out, _ = run("inspect", packed.name, cwd=packed.parent)
    for pattern in (
        r"consistent +yes",
        r"token width +2 bytes",
        r"documents +5",
        r"tokenizer +gpt2, 50,257 ids",
        r"EOD +<\|endoftext\|> = 50,256",
        r"tokens per document",
        r"2-3  █+ +\d",
    ):
        assert re.search(pattern, out), (pattern, out)
    facts = json.loads(run("inspect", packed.name, "--json", cwd=packed.parent)[0])
    assert (facts["documents"], facts["token_bytes"], facts["trailer"]) == (5, 2, True)
    assert sum(bucket["documents"] for bucket in facts["document_tokens"]) == 5
    assert [source["path"] for source in facts["sources"]] == ["corpus.jsonl"]


def test_cat_prints_text_and_ids(packed: Path) -> None:
    out, _ = run("cat", packed.name, "--documents", "0:2", cwd=packed.parent)
    assert out.startswith("--- document 0, 3 tokens\nHello world<|endoftext|>\n--- document 1, ")
    assert "Grüße aus Köln<|endoftext|>\n" in out
    out, _ = run("cat", packed.name, "--documents", "0", "--ids", cwd=packed.parent)
    assert out == "0: 15496 995 50256\n"
    (packed.parent / f"{packed.name}.tokenizer.json").unlink()
    _, err = run("cat", packed.name, cwd=packed.parent, code=2)
    assert "no tokenizer found next to the file; give --tokenizer, or use --ids" in err
    assert run("cat", packed.name, "-t", "gpt2", cwd=packed.parent)[0].endswith("Hello world<|endoftext|>\n")


def test_cat_escapes_terminal_control_characters(folder: Path) -> None:
    write_corpus(folder / "evil.jsonl", ["a\x1b[31mred\x07\u202e"])
    run("pack", "-i", "evil.jsonl", "-o", "evil.pbin", "-t", "gpt2", cwd=folder)
    out, _ = run("cat", "evil.pbin", cwd=folder)
    assert out.splitlines()[1] == r"a\x1b[31mred\x07\u202e<|endoftext|>"


def test_verify_names_the_error(packed: Path) -> None:
    assert "train.pbin is valid\n" in run("verify", packed.name, cwd=packed.parent)[0]
    content = bytearray(packed.read_bytes())
    content[14] ^= 1
    (packed.parent / "flipped.pbin").write_bytes(content)
    _, err = run("verify", "flipped.pbin", cwd=packed.parent, code=1)
    assert len(err.splitlines()) == 1
    assert "flipped.pbin" in err


def test_verify_compares_with_the_corpus(packed: Path) -> None:
    config = packed.parent / "c.yaml"
    config.write_text("settings: {src_path: corpus.jsonl}\ntokenizer: gpt2\n")
    run("verify", packed.name, "--corpus", "c.yaml", cwd=packed.parent)
    run("verify", packed.name, "--corpus", "c.yaml", "--sample", "50%", cwd=packed.parent)
    write_corpus(packed.parent / "corpus.jsonl", [*TEXTS[:-1], "y"])
    run("verify", packed.name, "--corpus", "c.yaml", cwd=packed.parent, code=1)


def test_merge_takes_files_and_folders(packed: Path) -> None:
    parts = packed.parent / "parts"
    parts.mkdir()
    for number in (10, 9):
        write_corpus(parts / f"{number}.jsonl", [f"number {number}"])
        run("pack", "-i", parts / f"{number}.jsonl", "-o", parts / f"p{number}.pbin", "-t", "gpt2", cwd=parts)
    run("merge", packed.name, "parts", "parts/all.pbin", cwd=packed.parent)
    merged = packtok.PbinReader(str(parts / "all.pbin"))
    tokenizer = packtok.Tokenizer.builtin("gpt2")
    texts = [tokenizer.decode(merged[i].tolist()[:-1]) for i in range(len(merged))]
    assert texts == [*TEXTS, "number 9", "number 10"]
    run("merge", packed.name, "parts", "parts/all.pbin", cwd=packed.parent, code=1)
    run("merge", packed.name, "parts", "parts/all.pbin", "--existing", "replace", cwd=packed.parent)
    assert len(packtok.PbinReader(str(parts / "all.pbin"))) == 7


def test_bad_document_is_named(folder: Path) -> None:
    (folder / "bad.jsonl").write_text('{"text": "a"}\n{"text": 5}\n')
    _, err = run("pack", "-i", "bad.jsonl", "-o", "bad.pbin", "-t", "gpt2", cwd=folder, code=1)
    assert "bad.jsonl" in err
    assert len(err.splitlines()) == 1
    out, _ = run(
        "pack", "-i", "bad.jsonl", "-o", "bad.pbin", "-t", "gpt2", "--on-bad-document", "skip", cwd=folder
    )
    assert re.search(r"^lines +2 = 1 packed \+ 0 empty \+ 0 blank \+ 1 rejected$", out, re.M)
    assert re.search(r"^rejects +bad\.pbin\.rejects\.jsonl$", out, re.M)


def test_interrupt_leaves_no_files_and_exits_with_130(folder: Path) -> None:
    with (folder / "huge.jsonl").open("w") as file:
        for _ in range(300_000):
            file.write(
                '{"text": "A sentence that keeps the tokenizer busy for a while, number after number."}\n'
            )
    process = start("pack", "-i", "huge.jsonl", "-o", "h.pbin", "-t", "o200k_base", "-j", 1, cwd=folder)
    # The temporary file means that packing has started.
    deadline = time.monotonic() + 60
    while process.poll() is None and not _temporaries(folder) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    # Only the first run with this tokenizer on a machine checks the engine and prints a note about it.
    assert [line for line in err.splitlines() if "checking the engine" not in line] == [
        "packtok: interrupted"
    ]
    assert sorted(path.name for path in folder.iterdir()) == ["corpus.jsonl", "huge.jsonl"]


def _temporaries(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix != ".jsonl"]


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import packtok", ("numpy", "torch", "pydantic", "omegaconf", "yaml", "typer")),
        ("import packtok.cli", ("numpy", "torch", "omegaconf", "yaml", "pydantic", "packtok.config.load")),
        (
            "from packtok.cli import Commands; Commands()['inspect']",
            ("numpy", "omegaconf", "yaml", "packtok.cli.pack", "packtok.cli.explore"),
        ),
        ("import packtok.commands.convert", ("omegaconf", "packtok.config.load")),
        ("import packtok; packtok.PackConfig, packtok.pack, packtok.PackReport", ("torch", "typer")),
        (
            "import packtok.config, packtok.data, packtok.stream",
            ("numpy", "torch", "pydantic", "omegaconf", "yaml", "typer"),
        ),
        ("import packtok.stream.worker", ("torch",)),
        (
            "from packtok.tokenizer.find import find_tokenizer; find_tokenizer('gpt2')",
            ("numpy", "torch", "typer"),
        ),
    ],
)
def test_imports_stay_cheap(statement: str, absent: tuple[str, ...]) -> None:
    script = f"{statement}; import sys; print([name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_all_public_names_exist() -> None:
    for module in (packtok, packtok.config, packtok.data, packtok.stream):
        stub = Path(module.__path__[0], "__init__.pyi").read_text(encoding="utf-8")
        assert (
            dir(module) == module.__all__ == sorted(re.findall(r"^from .* import (\w+) as \1$", stub, re.M))
        )
        assert stub.count(" as ") == len(module.__all__)
        assert all(getattr(module, name) is not None for name in module.__all__)
    with pytest.raises(AttributeError) as caught:
        packtok.nope  # noqa: B018
    assert str(caught.value) == "module 'packtok' has no attribute 'nope'"


NEED_TORCH = {
    "CombinedDataset",
    "DataLoader",
    "Mixture",
    "PackedMemMapDatasetBase",
    "PackedMemMapDatasetContinuous",
    "PackedMemMapDatasetMegatron",
    "ResumableBatchSampler",
    "ResumableDistributedSampler",
    "TokenDataset",
    "LossMaskingCollateFnWrapper",
    "collate",
    "document_mask",
    "get_dataset",
}
NEED_TORCH_IN_DATA = {
    "ContextDataCollator",
    "EncoderDecoderDataset",
    "TatmMemmapDataset",
    "distillation_loss",
    "get_dataset",
    "torch_collate_fn",
}
WITHOUT_TORCH = """
import importlib, json, packtok
messages = {}
for module in ("packtok", "packtok.stream", "packtok.data"):
    for name in importlib.import_module(module).__all__:
        try:
            getattr(importlib.import_module(module), name)
        except ImportError as error:
            messages[f"{module}.{name}"] = str(error)
for module in ("packtok.collate", "packtok.stream.testing"):
    try:
        importlib.import_module(module)
    except ImportError as error:
        messages[module] = str(error)
print(json.dumps(messages))
"""


def test_names_that_need_torch_say_how_to_install_it(tmp_path: Path) -> None:
    # The environment of the tests, less torch and what imports it at once.
    for path in Path(pytest.__file__).parent.parent.iterdir():
        if not path.name.startswith(("torch", "functorch", "_")) and path.suffix != ".pth":
            (tmp_path / path.name).symlink_to(path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", WITHOUT_TORCH],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    messages = json.loads(done.stdout)
    needing = {f"packtok.{name}" for name in NEED_TORCH}
    needing |= {f"packtok.data.{name}" for name in NEED_TORCH_IN_DATA}
    needing |= {f"packtok.stream.{name}" for name in packtok.stream.__all__} - {
        "packtok.stream.StateDict",
        "packtok.stream.braceexpand",
        "packtok.stream.merge_states",
    }
    needing |= {"packtok.stream.testing"}
    assert messages == {
        name: f"{name} needs PyTorch, which is not installed; run pip install 'packtok[torch]'"
        for name in needing
    }


def test_commands_of_a_trainer_are_named_as_such(packtok_cli: PacktokCli, tmp_path: Path) -> None:
    for command, *options in (
        ("run", "--config_file_path", "config.yaml"),
        ("run", "--config_file_path=config.yaml"),
        ("generate_text", "--config_file_path", "config.yaml"),
        ("warmstart", "--config_file_path", "config.yaml"),
    ):
        done = packtok_cli(command, *options, cwd=tmp_path, code=2)
        assert done.stderr == (
            f"packtok: {command}: packtok prepares and loads data and has no models; run "
            f"`modalities {command}`, which reads the files that packtok writes, or see "
            "docs/guides/other_trainers.md for other trainers\n"
        )


def test_help_and_version_work(tmp_path: Path) -> None:
    out, _ = run("--help", cwd=tmp_path)
    titles_and_names = re.findall(r"^(\S.*):$|^  (\w+) ", out.partition("Options:")[2], re.M)
    assert [title or name for title, name in titles_and_names] == [
        word for title, names in GROUPS.items() for word in (title, *names)
    ]
    assert run("--version", cwd=tmp_path)[0] == f"packtok {packtok.__version__}\n"


def test_document_numbers_work_as_in_python() -> None:
    assert list(document_numbers("0:3", 5)) == [0, 1, 2]
    assert list(document_numbers("3:", 5)) == [3, 4]
    assert list(document_numbers("-2:", 5)) == [3, 4]
    assert list(document_numbers("-1", 5)) == [4]
    assert list(document_numbers("4:9", 5)) == [4]
    for wrong, message in (
        ("5", "--documents 5: the file has 5 documents, counted from 0"),
        ("", "--documents : the file has 5 documents, counted from 0"),
        ("a:b", "--documents a:b: expected a number, or a range such as 0:3"),
    ):
        with pytest.raises(Exception, match=re.escape(message)):
            document_numbers(wrong, 5)


def test_samples_are_percentages() -> None:
    assert [fraction_of(text) for text in ("all", "1%", "100%", "0.5%")] == [1.0, 0.01, 1.0, 0.005]
    for wrong in ("0%", "101%", "5", "x%", "nan%", "1%%"):
        with pytest.raises(Exception, match="expected all, or a percentage such as 1%"):
            fraction_of(wrong)


def test_histogram_shows_every_non_empty_bucket() -> None:
    buckets = [{"from": 1, "below": 2, "documents": 1}, {"from": 2, "below": 4, "documents": 4000}]
    assert histogram(buckets) == [
        "tokens per document",
        f"1-1  {'█':<40}  1",
        f"2-3  {'█' * 40}  4,000",
    ]
    assert histogram([]) == []


def test_status_line_shows_progress() -> None:
    counts = {"bytes_read": 25_000_000, "total_bytes": 100_000_000, "documents": 1234, "tokens": 5678}
    assert status(counts, 5.0) == "25.0 of 100.0 MB, 1,234 documents, 5,678 tokens, 5.0 MB/s, 0:15 left"
    assert status({"bytes_read": 0, "total_bytes": 0}, 0.0) == "0.0 MB"
    written = {"bytes_read": 2_000_000, "total_bytes": 4_000_000, "documents": 0, "samples": 500, "tokens": 9}
    assert status(written, 1.0) == "2.0 of 4.0 MB, 500 samples, 9 tokens, 2.0 MB/s, 0:01 left"


def test_plain_progress_prints_every_few_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 4.9, 5.0, 6.0, 10.1])
    lines = PlainLines(clock=lambda: next(times))
    for done in (1, 2, 3, 4):
        lines({"bytes_read": done * 1_000_000, "total_bytes": 8_000_000, "documents": done, "tokens": done})
    assert capsys.readouterr().err.splitlines() == [
        "packtok: 2.0 of 8.0 MB, 2 documents, 2 tokens, 0.4 MB/s, 0:15 left",
        "packtok: 4.0 of 8.0 MB, 4 documents, 4 tokens, 0.4 MB/s, 0:10 left",
    ]


def test_natural_order_compares_numbers_as_numbers() -> None:
    # Numbers with leading zeros come first, as in the order of a corpus's files.
    assert _packtok.natural_sorted(["p10", "p9", "p1/b", "p1", "q", "P2", "9", "p009", "b\udcff"]) == [
        "9",
        "P2",
        "b\udcff",
        "p009",
        "p1",
        "p1/b",
        "p9",
        "p10",
        "q",
    ]


def test_printable_escapes_controls_and_nothing_else() -> None:
    assert printable("a\x00\x1b\n\u202e\u2028\x85é数🙂[b]") == "a\\x00\\x1b\\n\\u202e\\u2028\\x85é数🙂[b]"
    assert printable("a\n\tb\r", keep="\n\t") == "a\n\tb\\r"

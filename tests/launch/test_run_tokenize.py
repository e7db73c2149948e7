"""`packtok run tokenize` without a cluster: arguments, scripts, and shards that are packed by hand."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import typer
from command_line import PacktokCli
from processes import dataset_files

from packtok.catalog.schema import load_details
from packtok.cli.wrapped import wrapped
from packtok.commands.data import create_metadata, validate_metadata
from packtok.launch.record import read_record

TATM_CONFIG = """
backend: slurm
slurm: {partition: cpu, account: lab, qos: long, slurm_bin_dir: /opt/slurm/bin/}
environment: {modules: [gcc, python/3.11], conda_env: null, venv: /shared/venv, singularity_image: null}
metadata_backend: {type: json, args: {metadata_store_path: names.json}}
"""


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TATM_BASE_DIR", "TATM_BASE_CONFIG", "PACKTOK_BASE_DIR", "PACKTOK_BASE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))


@pytest.fixture
def datasets(tmp_path: Path) -> list[str]:
    """Returns described datasets with different content fields, below ``tmp_path``."""
    for corpus in ("news", "blogs"):
        write(tmp_path / "web" / corpus / "a.jsonl", "body", 300, corpus)
    create_metadata(
        {
            "output": str(tmp_path / "web" / "metadata.json"),
            "dataset_path": str(tmp_path / "web"),
            "name": "Web",
            "content_field": "body",
            "corpus": ["news", "blogs"],
            "corpus_separation_strategy": "data_dirs",
        }
    )
    write(tmp_path / "books" / "a.jsonl", "text", 200, "a book")
    create_metadata(
        {
            "output": str(tmp_path / "books" / "metadata.json"),
            "dataset_path": str(tmp_path / "books"),
            "name": "Books",
        }
    )
    return ["web:blogs", "books", "web:news"]


def write(path: Path, field: str, number: int, what: str) -> None:
    path.parent.mkdir(parents=True)
    lines = [json.dumps({field: f"document {i} of {what}"}) + "\n" for i in range(number)]
    path.write_text("".join(lines), encoding="utf-8")


def test_arguments_are_those_of_the_command() -> None:
    command = ["tokenize", "d1", "a:b", "-", "-t", "gpt2", "-o", "/o/", "--file-prefix", "p", "--parts", "3"]
    wrapped_command = wrapped(
        [*command, "-j", "4", "--token-dtype", "uint16", "-v", "--no-add-special-tokens"]
    )
    assert wrapped_command.arguments.words() == [
        "d1",
        "a:b",
        "./-",
        "--tokenizer=gpt2",
        "--output-dir=/o/",
        "--file-prefix=p",
        "--token-dtype=uint16",
        "--parts=3",
        "--no-add-special-tokens",
    ]
    assert wrapped_command.num_workers == 4
    assert wrapped_command.remarks == ()


def test_inputs_without_metadata_are_packed(tmp_path: Path) -> None:
    for name in ("d1", "d2"):
        (tmp_path / name).mkdir()
    inputs = [str(tmp_path / "d1"), str(tmp_path / "d2"), "s3://bucket/x", str(tmp_path / "*.jsonl")]
    command = ["tokenize", *inputs, "--tokenizer", "gpt2", "--output-dir", "/o/", "--file-prefix", "p"]
    wrapped_command = wrapped(
        [*command, "--num-workers", "3", "--token-dtype", "uint16", "-v", "--field", ".x"]
    )
    assert wrapped_command.arguments.words() == [
        *(f"--input={path}" for path in inputs),
        "--tokenizer=gpt2",
        "--field=.x",
        "--split=train",
    ]
    assert wrapped_command.num_workers == 3
    assert wrapped_command.remarks == (
        "--token-dtype has no effect: the tokenizer's largest id sets the width of the ids",
    )
    with pytest.raises(
        typer.BadParameter, match=r"--parts needs described datasets, and .*d1 has no metadata"
    ):
        wrapped([*command, "--parts", "2"])


@pytest.mark.parametrize("parts", [(), ("--parts", "3")])
def test_shards_packed_by_hand_become_the_same_dataset(
    tmp_path: Path, datasets: list[str], packtok_cli: PacktokCli, parts: tuple[str, ...]
) -> None:
    command = ("tokenize", *datasets, "-t", "gpt2", *parts, "-o")
    packtok_cli(*command, "expected", cwd=tmp_path)
    for k in (2, 0):
        packtok_cli(*command, "out", "--shard", f"{k}/3", cwd=tmp_path)
    failed = packtok_cli(*command, "out", "--join", cwd=tmp_path, code=1)
    assert failed.stderr.endswith(": shards are missing: 1 of 3; pack them, then join again\n")
    assert not (tmp_path / "out" / "metadata.json").exists()
    report = json.loads(packtok_cli(*command, "out", "--shard", "1", "--json", cwd=tmp_path).stdout)
    assert (report["shard_index"], report["num_shards"]) == (1, 3)
    # Another dataset, or another order, differs from the content of the shards.
    other = ("tokenize", *reversed(datasets), "-t", "gpt2", *parts, "-o", "out", "--join")
    assert "the existing plan does not match" in packtok_cli(*other, cwd=tmp_path, code=1).stderr
    packtok_cli(*command, "out", "--join", cwd=tmp_path)
    assert dataset_files(tmp_path / "out") == dataset_files(tmp_path / "expected")
    assert load_details(tmp_path / "out" / "metadata.json")["documents"] == 800
    assert validate_metadata(tmp_path / "out") == []
    again = packtok_cli(*command, "out", "--join", cwd=tmp_path, code=1)
    assert "the folder is a complete dataset already" in again.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--shard", "0/2", "--join"), "--shard and --join are given; give only one"),
        (("--outdir", "x"), "--outdir needs --shard or --join; without them there are no shards"),
        (("--parts", "3", "--shard", "0/2"), "--shard: is one of 2, but --parts is 3; give the same number"),
        (
            ("--parts", "3", "--shard", "0", "--outdir", "x"),
            "--outdir: is x, but with --parts the shards are in --output-dir; leave it out",
        ),
    ],
)
def test_options_of_shards_that_contradict_are_rejected(
    tmp_path: Path, datasets: list[str], packtok_cli: PacktokCli, flags: tuple[str, ...], message: str
) -> None:
    done = packtok_cli("tokenize", *datasets, "-t", "gpt2", "-o", "out", *flags, cwd=tmp_path, code=2)
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_no_submit_writes_the_script_with_all_settings_and_prints_the_commands(
    tmp_path: Path, datasets: list[str], packtok_cli: PacktokCli
) -> None:
    """tatm parses qos and slurm_bin_dir, and uses neither."""
    (tmp_path / "cfg.yaml").write_text(TATM_CONFIG, encoding="utf-8")
    run = ("run", "--conf", "cfg.yaml", "--conf", "slurm.account=other", "-N", "4", "-c", "40", "--no-submit")
    tokenize = ("tokenize", *datasets, "-t", "gpt2", "--output-dir", "out")
    done = packtok_cli(*run, *tokenize, cwd=tmp_path)
    script, outdir = tmp_path / "packtok_tokenize.submit", tmp_path / "out" / "tokenized.pbin.shards"
    assert done.stdout.splitlines() == [
        f"job0=$(/opt/slurm/bin/sbatch --parsable --array=0-31%4 {script})",
        f'/opt/slurm/bin/sbatch --parsable --dependency="afterany:${{job0%%;*}}" {outdir}/join.sbatch',
    ]
    for path in (script, outdir / "join.sbatch"):
        text = path.read_text(encoding="utf-8")
        for line in ("--partition=cpu", "--account=other", "--qos=long", f"--chdir={tmp_path}"):
            assert f"#SBATCH {line}\n" in text
        assert 'PATH="$PATH":/opt/slurm/bin/\n' in text
        assert "module load gcc python/3.11 || exit 1\n" in text
        assert ". /shared/venv/bin/activate || exit 1\n" in text
        subprocess.run(["bash", "-n", path], check=True)
    assert "#SBATCH --cpus-per-task=40\n" in script.read_text(encoding="utf-8")
    record = read_record(outdir)
    assert record is not None
    assert (record.command, record.output) == ("tokenize", str(tmp_path / "out" / "metadata.json"))
    # While nothing is complete, the same command, and one with another number at once, plan the same shards.
    again = packtok_cli(*run, *tokenize, "--num-workers", "2", cwd=tmp_path)
    assert "--array=0-31%2 " in again.stdout


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            ("--num-workers", "2"),
            ("--num-workers", "3"),
            "--num-workers before the command is 2 and --num-workers after it is 3; both are the number of "
            "tasks that run at once, so give only one",
        ),
        (
            ("--array-tasks", "8%2"),
            ("--num-workers", "3"),
            "--num-workers is 3 and --array-tasks N%M is 2; both are the number of tasks that run at once",
        ),
        (("--mode", "srun"), ("--num-workers", "3"), "--num-workers has no effect with --mode srun"),
        (
            ("--array-tasks", "8"),
            ("--parts", "3"),
            "--array-tasks: slurm.shards is 8, but --parts is 3, and each part is a shard",
        ),
        (("--join", "manifest"), (), "tokenize writes a manifest with --parts; give tokenize --parts N"),
        (("--outdir", "x"), ("--parts", "3"), "with --parts the shards are in --output-dir; leave it out"),
        ((), ("--token-dtype", "uint8"), "--token-dtype is uint8, too narrow for the 50,257 ids of gpt2"),
    ],
)
def test_settings_that_contradict_are_rejected_before_anything_is_written(
    tmp_path: Path,
    datasets: list[str],
    packtok_cli: PacktokCli,
    before: tuple[str, ...],
    after: tuple[str, ...],
    message: str,
) -> None:
    run = ("run", "--no-submit", *before, "tokenize", *datasets, "-t", "gpt2", "-o", "out", *after)
    assert message in packtok_cli(*run, cwd=tmp_path, code=2).stderr
    assert not (tmp_path / "out").exists()


def test_complete_dataset_is_not_run_again(
    tmp_path: Path, datasets: list[str], packtok_cli: PacktokCli
) -> None:
    tokenize = ("tokenize", *datasets, "-t", "gpt2", "-o", "out")
    packtok_cli(*tokenize, cwd=tmp_path)
    done = packtok_cli("run", "--no-submit", *tokenize, cwd=tmp_path, code=1)
    assert "the folder is a complete dataset already; choose another --output-dir" in done.stderr
    assert not (tmp_path / "packtok_tokenize.submit").exists()


def test_number_of_tasks_at_once_is_an_option_of_both_commands(
    tmp_path: Path, datasets: list[str], packtok_cli: PacktokCli
) -> None:
    pack = ("pack", "-i", "books/a.jsonl", "-t", "gpt2", "-o", "a.pbin")
    assert re.search(
        r"--array=0-7%3 ", packtok_cli("run", "--num-workers", 3, "--no-submit", *pack, cwd=tmp_path).stdout
    )


def test_join_job_that_is_requeued_after_its_end_succeeds(
    tmp_path: Path, datasets: list[str], packtok_cli: PacktokCli
) -> None:
    tokenize = ("tokenize", *datasets, "-t", "gpt2", "-o", "out")
    packtok_cli("run", "--no-submit", "--shards", "2", *tokenize, cwd=tmp_path)
    folder = tmp_path / "out"
    record = read_record(folder / "tokenized.pbin.shards")
    assert record is not None
    join = record.launch(folder / "tokenized.pbin.shards").join_command(f"{folder}/tokenized.pbin.shards")
    for k in range(2):
        packtok_cli(*tokenize, "--shard", f"{k}/2", cwd=tmp_path)
    for _ in range(2):
        packtok_cli(*join, cwd=tmp_path)
    assert dataset_files(folder)
    again = packtok_cli("run", "--no-submit", *tokenize, cwd=tmp_path)
    assert again.stdout == f"nothing to submit; see packtok status {folder}/tokenized.pbin.shards\n"
    assert (
        packtok_cli("status", "out", cwd=tmp_path).stdout.splitlines()[-1].endswith("metadata.json: written")
    )


def test_run_replaces_a_complete_dataset_only_if_it_is_told_to(
    tmp_path: Path, datasets: list[str], packtok_cli: PacktokCli
) -> None:
    tokenize = ("tokenize", *datasets, "-t", "gpt2", "-o", "out")
    packtok_cli(*tokenize, cwd=tmp_path)
    script = tmp_path / "out" / "tokenized.pbin.shards" / "join.sbatch"
    for policy in ("skip", "replace"):
        packtok_cli("run", "--no-submit", "--shards", "2", *tokenize, "--existing", policy, cwd=tmp_path)
        assert f" --join --existing={policy}\n" in script.read_text(encoding="utf-8")
    (task,) = re.findall(r"tokenize .* --shard=.*", (tmp_path / "packtok_tokenize.submit").read_text())
    assert "--existing" not in task


def test_inputs_without_metadata_are_packed_without_run_too(
    tmp_path: Path, datasets: list[str], packtok_cli: PacktokCli
) -> None:
    glob = ("web/*/*.jsonl", "-t", "gpt2", "--field", ".body")
    packtok_cli("pack", "-i", glob[0], *glob[1:], "-o", "expected.pbin", cwd=tmp_path)
    expected = (tmp_path / "expected.pbin").read_bytes()
    packtok_cli("tokenize", *glob, "-o", "out", "--file-prefix", "p", "-v", cwd=tmp_path)
    assert (tmp_path / "out" / "p.pbin").read_bytes() == expected
    assert not (tmp_path / "out" / "metadata.json").exists()
    packtok_cli("tokenize", *glob, "-o", "out", "--file-prefix", "p", "--existing", "skip", cwd=tmp_path)
    for k in range(2):
        packtok_cli("tokenize", *glob, "-o", "shards", "--shard", f"{k}/2", cwd=tmp_path)
    packtok_cli("tokenize", *glob, "-o", "shards", "--join", cwd=tmp_path)
    assert (tmp_path / "shards" / "tokenized.pbin").read_bytes() == expected
    parts = packtok_cli("tokenize", *glob, "-o", "parts", "--parts", "2", cwd=tmp_path, code=2)
    assert f"--parts needs described datasets, and {glob[0]} has no metadata" in parts.stderr
    mixed = ("tokenize", glob[0], datasets[1], "-t", "gpt2", "-o", "parts")
    for run in ((), ("run", "--no-submit")):
        assert (
            "web/*/*.jsonl has no metadata, but books is described; tokenize them separately, or run packtok "
            "data create-metadata first"
        ) in " ".join(packtok_cli(*run, *mixed, cwd=tmp_path, code=2).stderr.split())
    assert not (tmp_path / "parts").exists()

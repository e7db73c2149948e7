"""A corpus packed in shards by many processes and joined equals the file of one run, whatever fails."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import tempfile
import time
from pathlib import Path

import oracle
import pytest
import zstandard
from command_line import PacktokCli
from extent import extent
from processes import SLOW_FIELD, start, unfinished, wait_until_packing, write_corpus
from stories import TOKENIZER

import packtok
from packtok.distributed import ShardChoice, find_shard, shard_of_task
from packtok.errors import ConfigError

FLAGS = ("--tokenizer", TOKENIZER, "--field", SLOW_FIELD, "--on-bad-document", "skip", "--quiet")
NUM_KILLS = extent(8, 2)


def outputs(path: Path) -> dict[str, bytes | None]:
    """Returns an output and the files next to it."""
    files = {suffix: Path(f"{path}{suffix}") for suffix in ("", ".rejects.jsonl", ".tokenizer.json")}
    return {suffix: file.read_bytes() if file.exists() else None for suffix, file in files.items()}


def shards_of(folder: Path) -> dict[str, bytes]:
    """Returns all shard files in a folder, without the parts of markers that describe the run."""
    contents = {path.name: path.read_bytes() for path in folder.glob("shard-*") if path.is_file()}
    for name in [name for name in contents if name.endswith(".done.json")]:
        marker = json.loads(contents[name])
        assert marker.pop("seconds") > 0
        assert marker.pop("hostname") == os.uname().nodename
        contents[name] = json.dumps(marker).encode()
    return contents


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder of one large file, some small, compressed and empty ones, with bad lines."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder / "large.jsonl", 3_000_000, bad_every=40, seed=1)
    for i in range(12):
        write_corpus(folder / f"small{i}.jsonl", 40_000, bad_every=9, seed=2 + i)
    text = write_corpus(folder / "zipped.jsonl", 100_000, bad_every=30, seed=20).read_bytes()
    (folder / "zipped.jsonl.gz").write_bytes(gzip.compress(text))
    (folder / "zipped.jsonl.zst").write_bytes(zstandard.compress(text))
    (folder / "zipped.jsonl").write_bytes(b"")
    return folder


@pytest.fixture(scope="module")
def at_once(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes | None]:
    """Returns the output of one run over the corpus."""
    output = tmp_path_factory.mktemp("once") / "one.pbin"
    packtok.pack(input=corpus, output=output, tokenizer=TOKENIZER, field=SLOW_FIELD, on_bad_document="skip")
    contents = outputs(output)
    assert None not in contents.values()
    return contents


@pytest.mark.parametrize("num_shards", extent([1, 2, 19], [2]))
def test_joined_shards_equal_the_file_of_one_run(
    corpus: Path, at_once: dict[str, bytes | None], tmp_path: Path, num_shards: int
) -> None:
    options = {"input": str(corpus), "output": str(tmp_path / "out"), "tokenizer": TOKENIZER}
    options["field"] = SLOW_FIELD
    planned = packtok.plan(shards=num_shards, **options)
    source_bytes = 0
    for k in range(num_shards):
        report = packtok.pack(shard=k, on_bad_document="skip", **options)
        assert (report.shard_index, report.num_shards) == (k, num_shards)
        assert report.lines == report.packed + report.empty + report.blank + report.rejected
        source_bytes += report.source_bytes
        # The large file balances: no shard is larger than its part plus the two compressed files.
        assert report.source_bytes < planned["source_bytes"] / num_shards + 100_000
    assert source_bytes == planned["source_bytes"]
    joined = packtok.join(tmp_path / "out", tmp_path / "joined.pbin")
    assert (joined["num_shards"], joined["skipped_existing"]) == (num_shards, False)
    assert outputs(tmp_path / "joined.pbin") == at_once


def test_shards_on_another_file_system_are_copied_when_joined(
    corpus: Path, at_once: dict[str, bytes | None], tmp_path: Path
) -> None:
    other = Path("/dev/shm")
    if not os.access(other, os.W_OK) or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip(f"needs {other} on a file system of its own")
    with tempfile.TemporaryDirectory(dir=other) as folder:
        options = {
            "input": str(corpus),
            "output": f"{folder}/out",
            "tokenizer": TOKENIZER,
            "field": SLOW_FIELD,
        }
        packtok.plan(shards=3, **options)
        for k in range(3):
            packtok.pack(shard=k, on_bad_document="skip", **options)
        # The bytes are read and written, because the kernel cannot copy across file systems.
        packtok.join(Path(folder) / "out", tmp_path / "joined.pbin")
    assert outputs(tmp_path / "joined.pbin") == at_once


@pytest.mark.whole
def test_shards_of_real_corpora(shared: Path, tmp_path: Path) -> None:
    for name, field in [("redpajama/train", ".raw_content"), ("modalities/lorem_long", ".text")]:
        tokenizer = shared / "tokenizers/gpt2"
        corpus = shared / f"{name}.jsonl"
        folder = tmp_path / Path(name).name
        for k in range(5):
            packtok.pack(
                input=corpus,
                output=folder,
                tokenizer=str(tokenizer),
                field=field,
                eod=oracle.EOD,
                shard=f"{k}/5",
            )
        packtok.join(folder, folder / "joined.pbin")
        theirs = (shared / f"{name}.pbin").read_bytes()
        assert (folder / "joined.pbin").read_bytes()[: len(theirs)] == theirs


def test_manifest_opens_the_shards_as_one(corpus: Path, tmp_path: Path) -> None:
    options = {"input": str(corpus), "tokenizer": TOKENIZER, "on_bad_document": "skip"}
    packtok.pack(output=tmp_path / "one.pbin", **options)
    for k in range(5):
        packtok.pack(output=tmp_path / "out", shard=f"{k}/5", **options)
    counts = packtok.join(tmp_path / "out", tmp_path / "shards.json", manifest=True)
    single = packtok.TokenDataset(tmp_path / "one.pbin", context_length=100, packing="concat")
    many = packtok.TokenDataset(tmp_path / "shards.json", context_length=100, packing="concat")
    assert counts["files"] == 5
    assert len(single) == len(many) > 1000
    for i in (0, 500, len(single) - 1):
        assert single[i]["input_ids"].tolist() == many[i]["input_ids"].tolist()


def test_two_concurrent_copies_of_a_task_are_harmless(
    corpus: Path, at_once: dict[str, bytes | None], tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    pack = ("pack", "-i", corpus, "-o", "out", *FLAGS)
    packtok_cli(*pack, "--shard", "0/2", cwd=tmp_path)
    first = start(*pack, "--shard", "1", cwd=tmp_path)
    assert wait_until_packing(first, tmp_path / "out")
    # The stopped process holds its file while a second copy does all of the work.
    first.send_signal(signal.SIGSTOP)
    packtok_cli(*pack, "--shard", "1", cwd=tmp_path)
    assert len(unfinished(tmp_path / "out")) >= 1
    before = shards_of(tmp_path / "out")
    packtok_cli("join", "out", "-o", "joined.pbin", "-q", cwd=tmp_path)
    assert outputs(tmp_path / "joined.pbin") == at_once
    first.send_signal(signal.SIGCONT)
    _, err = first.communicate(timeout=120)
    assert first.returncode == 0, err
    assert shards_of(tmp_path / "out") == before
    assert unfinished(tmp_path / "out") == []
    packtok_cli("join", "out", "-o", "again.pbin", "-q", cwd=tmp_path)
    assert outputs(tmp_path / "again.pbin") == at_once


@pytest.mark.faults
def test_killed_second_copy_leaves_no_files(
    corpus: Path, at_once: dict[str, bytes | None], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ("pack", "-i", corpus, "-o", "out", *FLAGS, "--shard", "0/1")
    first = start(*arguments, cwd=tmp_path)
    assert wait_until_packing(first, out)
    first.send_signal(signal.SIGSTOP)
    second = start(*arguments, cwd=tmp_path)
    assert wait_until_packing(second, out)
    second.kill()
    second.communicate(timeout=60)
    assert len(unfinished(out)) == 2
    first.send_signal(signal.SIGCONT)
    _, err = first.communicate(timeout=120)
    assert first.returncode == 0, err
    assert unfinished(out) == []


@pytest.mark.faults
def test_killed_tasks_leave_no_partial_shard(
    corpus: Path, at_once: dict[str, bytes | None], tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    out = tmp_path / "out"
    pack = ("pack", "-i", corpus, "-o", "out", *FLAGS)
    packtok_cli("plan", "-i", corpus, "-o", "out", *FLAGS, "--shards", "3", cwd=tmp_path)
    num_left = 0
    for i in range(NUM_KILLS):
        process = start(*pack, "--shard", "1", cwd=tmp_path)
        wait_until_packing(process, out)
        # The timing is the point of the test; nothing is waited for.
        time.sleep(i % 4 * 0.03)
        process.kill()
        process.communicate(timeout=60)
        num_left += bool(unfinished(out))
        marker = out / "shard-00001-of-00003.done.json"
        if marker.exists():
            packtok_cli("verify", out / "shard-00001-of-00003.pbin", cwd=tmp_path)
            marker.unlink()
        failed = packtok_cli("join", "out", "-o", "joined.pbin", cwd=tmp_path, code=1)
        assert failed.stderr == ("packtok: out: shards are missing: 0-2 of 3; pack them, then join again\n")
    assert num_left >= NUM_KILLS // 4
    for k in range(3):
        packtok_cli(*pack, "--shard", k, cwd=tmp_path)
    assert unfinished(out) == []
    packtok_cli("join", "out", "-o", "joined.pbin", "-q", cwd=tmp_path)
    assert outputs(tmp_path / "joined.pbin") == at_once


def test_killed_join_can_be_repeated(
    corpus: Path, at_once: dict[str, bytes | None], tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    packtok_cli("pack", "-i", corpus, "-o", "out", *FLAGS, "--shard", "0/1", cwd=tmp_path)
    for _ in range(extent(5, 1)):
        process = start("join", "out", "-o", "joined.pbin", cwd=tmp_path)
        while not unfinished(tmp_path) and process.poll() is None:
            time.sleep(0.001)
        process.kill()
        process.communicate(timeout=60)
    if not (tmp_path / "joined.pbin").exists():
        packtok_cli("join", "out", "-o", "joined.pbin", cwd=tmp_path)
    assert outputs(tmp_path / "joined.pbin") == at_once
    assert unfinished(tmp_path) == []


def test_tasks_race_for_one_plan(
    corpus: Path, at_once: dict[str, bytes | None], tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    num_tasks = extent(8, 4)
    tasks = [
        start(
            "pack", "-i", corpus, "-o", "out", *FLAGS, "--shard", f"{k}/{num_tasks}", "-j", "1", cwd=tmp_path
        )
        for k in range(num_tasks)
    ]
    for task in tasks:
        _, err = task.communicate(timeout=120)
        assert task.returncode == 0, err
    assert not [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]
    packtok_cli("join", "out", "-o", "joined.pbin", "-q", cwd=tmp_path)
    assert outputs(tmp_path / "joined.pbin") == at_once


def test_one_of_two_configs_racing_for_a_folder_is_rejected(corpus: Path, tmp_path: Path) -> None:
    fields = (".text", ".other", ".text", ".other")
    tasks = [
        start("pack", "-i", corpus, "-o", "out", *FLAGS, "-f", field, "--shard", f"{k}/4", cwd=tmp_path)
        for k, field in enumerate(fields)
    ]
    ended = [(task.communicate(timeout=120)[1], task.returncode) for task in tasks]
    won = json.loads((tmp_path / "out/plan.jsonl").read_text().splitlines()[0])["options"]["field"]
    for field, (err, code) in zip(fields, ended, strict=True):
        if field == won:
            assert code == 0, err
        else:
            assert code == 1
            assert err == (
                "packtok: out/plan.jsonl: the existing plan does not match this run: options.field is "
                f'"{won}", expected "{field}"; pack into another folder, or remove the plan and its shards\n'
            )
    assert len(list((tmp_path / "out").glob("*.done.json"))) == 2


def test_output_of_the_commands(corpus: Path, tmp_path: Path, packtok_cli: PacktokCli) -> None:
    flags = ("-i", corpus, "-o", "out", "-t", TOKENIZER, "--on-bad-document", "skip")
    planned = packtok_cli("plan", *flags, "--shards", "3", cwd=tmp_path)
    rows = dict(re.split(r"  +", line, maxsplit=1) for line in planned.stdout.splitlines())
    assert rows.pop("fingerprint")
    assert rows == {
        "plan": "out/plan.jsonl",
        "num shards": "3",
        "num sources": "16",
        "source bytes": f"{sum(path.stat().st_size for path in corpus.iterdir()):,}",
        "skipped existing": "no",
    }
    again = packtok_cli("plan", *flags, "--shards", "3", cwd=tmp_path)
    assert re.search(r"^skipped existing +yes$", again.stdout, re.M)
    for k in range(3):
        packed = packtok_cli("pack", *flags, "--shard", k, cwd=tmp_path)
        assert re.search(rf"^shard +{k} of 3$", packed.stdout, re.M)
    kept = packtok_cli("pack", *flags, "--shard", "2", cwd=tmp_path)
    reason = "its marker says that it is complete; --existing replace packs it again"
    assert re.search(rf"^kept +{reason}$", kept.stdout, re.M)
    quiet = packtok_cli("pack", *flags, "--shard", "2", "-q", cwd=tmp_path)
    assert quiet.stdout.startswith(f"out/shard-00002-of-00003.pbin (kept: {reason}): ")
    joined = packtok_cli("join", "out", "-o", "j.pbin", cwd=tmp_path)
    assert re.search(r"^num shards +3$", joined.stdout, re.M)
    packtok_cli("verify", "out/shard-00001-of-00003.pbin", cwd=tmp_path)
    for arguments, message in [
        (("--shard", "3"), "no shard 3 of 3; shards are numbered 0 to 2"),
        (("--shard", "x"), "--shard: is 'x'; expected k/N, k or auto"),
        (("--shard", "1/0"), "the existing plan does not match this run: num_shards is 3, expected 0"),
    ]:
        failed = packtok_cli("pack", *flags, *arguments, cwd=tmp_path, code=None)
        assert failed.returncode != 0
        assert message in failed.stderr


def test_environment_selects_the_shard() -> None:
    def array(index: int, first: int, last: int, count: int | None = None) -> dict[str, str]:
        count = last - first + 1 if count is None else count
        names = ("ID", "MIN", "MAX", "COUNT")
        return {
            f"SLURM_ARRAY_TASK_{name}": str(number)
            for name, number in zip(names, (index, first, last, count), strict=True)
        }

    def step(rank: int, num_ranks: int) -> dict[str, str]:
        return {"SLURM_STEP_ID": "0", "SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(num_ranks)}

    in_batch_script = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}
    for environment, index, num_shards in [
        (array(5, 0, 7), 5, 8),
        (array(5, 0, 7) | in_batch_script, 5, 8),
        (array(5, 0, 7) | step(3, 4), 23, 32),
        (array(9, 3, 9, 4), 9, None),
        (array(7, 0, 7, 3), 7, None),
        (array(8, 1, 8), 8, None),
        (step(2, 6), 2, 6),
        ({"SLURM_STEP_ID": "1", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, 1, 2),
    ]:
        assert shard_of_task(environment) == ShardChoice(index, default_num_shards=num_shards)
    with pytest.raises(ConfigError) as error:
        shard_of_task(in_batch_script)
    assert str(error.value) == (
        "--shard: is auto, but this is not a task of a Slurm array or of srun (neither SLURM_ARRAY_TASK_ID "
        "nor SLURM_STEP_ID is set); give k or k/N"
    )
    with pytest.raises(ConfigError) as error:
        shard_of_task({"SLURM_ARRAY_TASK_ID": "-1"})
    assert str(error.value) == "SLURM_ARRAY_TASK_ID in the environment is '-1', expected a number"
    assert find_shard("3/64") == ShardChoice(3, 64)
    assert find_shard(3) == ShardChoice(3)


def test_array_tasks_find_their_shards(
    corpus: Path, at_once: dict[str, bytes | None], tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    pack = ("pack", "-i", corpus, "-o", "out", *FLAGS, "--shard", "auto")
    some = {"SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "2", "SLURM_ARRAY_TASK_COUNT": "2"}
    failed = packtok_cli(*pack, cwd=tmp_path, env=some | {"SLURM_ARRAY_TASK_ID": "1"}, code=1)
    assert failed.stderr == (
        "packtok: out: no plan found, so the number of shards is unknown; write a plan with packtok plan "
        "--shards N, or give the shard as k/N\n"
    )
    whole = {"SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": "2", "SLURM_ARRAY_TASK_COUNT": "3"}
    packtok_cli(*pack, cwd=tmp_path, env=whole | {"SLURM_ARRAY_TASK_ID": "0"})
    for k in ("1", "2"):
        packtok_cli(*pack, cwd=tmp_path, env=some | {"SLURM_ARRAY_TASK_ID": k})
    packtok_cli("join", "out", "-o", "joined.pbin", "-q", cwd=tmp_path)
    assert outputs(tmp_path / "joined.pbin") == at_once


def test_root_from_the_environment_is_in_no_file(
    corpus: Path, tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    (tmp_path / "pack.yaml").write_text(
        "settings:\n  src_path: ${oc.env:DATA_ROOT}/\n  dst_path: out\n  on_bad_document: skip\n"
        "tokenizer: gpt2\n"
    )
    env = {"DATA_ROOT": str(corpus)}
    for k in range(2):
        packtok_cli("pack", "pack.yaml", "--shard", f"{k}/2", cwd=tmp_path, env=env)
    # Another machine may have the same corpus at another path.
    moved = tmp_path / "moved"
    moved.symlink_to(corpus)
    packtok_cli(
        "pack",
        "pack.yaml",
        "--shard",
        "1",
        "--existing",
        "replace",
        cwd=tmp_path,
        env={"DATA_ROOT": str(moved)},
    )
    packtok_cli("pack", "pack.yaml", "-o", "one.pbin", "-q", cwd=tmp_path, env=env)
    packtok_cli("join", "out", "-o", "joined.pbin", "-q", cwd=tmp_path)
    assert outputs(tmp_path / "joined.pbin") == outputs(tmp_path / "one.pbin")
    for path in (tmp_path / "out").iterdir():
        assert str(corpus).encode() not in path.read_bytes(), path

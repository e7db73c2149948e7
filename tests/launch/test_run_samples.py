"""`packtok run sample` and `packtok run logits` without a cluster: scripts, status and retry."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import oracle
import pbins
import pytest
import typer
from command_line import PacktokCli
from stories import TOKENIZER
from task_runs import RUN, called, run_join, run_task, status, tree

import packtok
from packtok._packtok import MdsReader, MdsWriter
from packtok.cli.wrapped import wrapped
from packtok.launch.record import read_record
from packtok.shard_folder import TaskFolder

RECIPE = """
windows: {from: documents, context: 8, decoder: 4}
samples: {test: 6, train: 40}
splits: {test: 0.3, train: 0.6, retrieval: 0.1}
domains: {a: 0.5, b: 0.5}
"""
Compute = Callable[..., tuple[str, ...]]


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TATM_BASE_DIR", "TATM_BASE_CONFIG", "PACKTOK_BASE_DIR", "PACKTOK_BASE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with token files and a recipe."""
    for domain in "ab":
        for number in range(2):
            (tmp_path / "tokens" / domain).mkdir(parents=True, exist_ok=True)
            documents = [[i + number] * (i % 40) for i in range(80)]
            pbins.write(tmp_path / "tokens" / domain / f"{number}.pbin", documents, 2)
    (tmp_path / "r.yaml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    # Small files, so that each shard writes some.
    monkeypatch.setattr("packtok.commands.sample.SIZE_LIMIT", 800)
    return tmp_path


SAMPLES: dict[str, tuple[str, ...]] = {
    "recipe": ("r.yaml", "--tokens", "tokens", "-o"),
    "pack": ("pack", "--tokens", "tokens", "--length", "64"),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_tasks_write_the_samples_of_one_process(folder: Path, kind: str) -> None:
    called("sample", *SAMPLES[kind], "expected", "--quiet")
    command = ("sample", *SAMPLES[kind], "out")
    printed = called(*RUN, *command)
    outdir = folder / "out.shards"
    assert printed.splitlines() == [
        f"job0=$(sbatch --parsable --array=0-2 {outdir}/sample.sbatch)",
        f'sbatch --parsable --dependency="afterany:${{job0%%;*}}" {outdir}/join.sbatch',
    ]
    state = status("out")
    assert (state["done"], state["missing"], state["joined"]) == ([], [0, 1, 2], False)
    for shard in (2, 0):
        run_task(outdir, shard)
    state = status("out")
    assert (state["done"], state["missing"], state["joined"]) == ([0, 2], [1], False)
    assert 0 < state["samples"] < 100
    assert state["tokens"] > 0
    sizes = [path.stat().st_size for path in (folder / "tokens").rglob("*.pbin")]
    assert (state["total_bytes"], state["source_bytes"]) == (sum(sizes), sum(sizes) - sum(sizes) // 3)
    # Only missing shards are submitted, and the join lists them.
    assert "--array=1 " in called("retry", "out", "--no-submit")
    record = read_record(outdir)
    assert record is not None
    failed = called(*record.launch(outdir).join_command(str(outdir)), code=1)
    assert f"{outdir}: shards are missing: 1 of 3; run them, then join again" in " ".join(failed.split())
    run_task(outdir, 1)
    retried = called("retry", "out", "--no-submit").splitlines()
    assert retried == [f"sbatch --parsable {outdir}/join.sbatch"]
    run_join(outdir)
    assert tree(folder / "out") == tree(folder / "expected")
    state = status("out")
    assert (state["done"], state["joined"], state["output"]) == ([0, 1, 2], True, f"{folder}/out")
    assert state["source_bytes"] == state["total_bytes"]
    stdout = called("status", "out")
    assert re.search(rf"^samples +{state['samples']:,}$", stdout, re.M)
    assert stdout.splitlines()[-1].endswith("/out: written")
    # A requeued join job, and the same command again, change nothing.
    before = tree(folder / "out")
    run_join(outdir)
    assert called(*RUN, *command) == f"nothing to submit; see packtok status {outdir}\n"
    assert tree(folder / "out") == before


def test_a_vanished_part_or_output_is_written_again(folder: Path) -> None:
    command = ("sample", *SAMPLES["recipe"], "out")
    called(*RUN, *command)
    outdir = folder / "out.shards"
    for shard in range(3):
        run_task(outdir, shard)
    (marker,) = outdir.glob("shard-00001-*.json")
    files = json.loads(marker.read_bytes())["files"]
    vanished = next(outdir / file["places"][0] for file in files if file["places"][0].endswith(".mds"))
    vanished.unlink()
    assert status("out")["missing"] == [1]
    assert "--array=1 " in called("retry", "out", "--no-submit")
    run_task(outdir, 1)
    run_join(outdir)
    (folder / "out" / "train" / "a" / "index.json").unlink()
    state = status("out")
    assert (state["joined"], state["done"]) == (False, [])
    assert "join.sbatch" in called("retry", "out", "--no-submit")
    for shard in state["missing"]:
        run_task(outdir, shard)
    run_join(outdir)
    called("sample", *SAMPLES["recipe"], "expected", "--quiet")
    assert tree(folder / "out") == tree(folder / "expected")


def test_scripts_that_bash_runs_write_the_samples(folder: Path, packtok_cli: PacktokCli) -> None:
    packtok.draw_samples("r.yaml", "expected", tokens="tokens")
    packtok_cli(*RUN, "sample", *SAMPLES["recipe"], "out", cwd=folder)
    outdir = folder / "out.shards"
    for shard in range(3):
        bash(outdir / "sample.sbatch", SLURM_ARRAY_TASK_ID=str(shard))
    bash(outdir / "join.sbatch")
    for side in ("test", "train"):
        for domain in "ab":
            rows, expected_rows = (packtok_rows(folder / out / side / domain) for out in ("out", "expected"))
            assert rows == expected_rows
    assert status("out")["joined"]


def bash(script: Path, **environment: str) -> None:
    subprocess.run(
        ["bash", script], env={**os.environ, "SLURM_CPUS_PER_TASK": "1", **environment}, check=True
    )


def packtok_rows(folder: Path) -> list[list[int]]:
    reader = MdsReader(folder)
    reader.verify()
    return [reader[i]["token_ids"].tolist() for i in range(len(reader))]


def test_another_run_into_the_same_folder_is_an_error(folder: Path) -> None:
    called(*RUN, "sample", *SAMPLES["recipe"], "out")
    printed = called(*RUN, "sample", *SAMPLES["recipe"], "out", "--origin", code=1)
    assert (
        f"{folder}/out.shards: the existing plan does not match: origin is false, expected true; remove the "
        "folder, or choose another --outdir"
    ) in " ".join(printed.split())
    called(*RUN, "sample", *SAMPLES["recipe"], "out", "--origin", "--existing", "replace")
    assert status("out")["missing"] == [0, 1, 2]


def test_a_loop_over_retrieval_shards_needs_a_folder_for_each(folder: Path) -> None:
    oracle.byte_level(folder / "tokens" / "tokenizer.json")
    retrieval = "retrieval: {samples: 1, shards: 2, chunk: 4}\n"
    (folder / "r.yaml").write_text(
        RECIPE.replace("train: 0.6, retrieval: 0.1", "train: 0.4, retrieval: 0.3") + retrieval
    )
    command = ("sample", *SAMPLES["recipe"], "out", "--retrieval-shard")
    called(*RUN, *command, 0)
    printed = called(*RUN, *command, 1, code=1)
    assert (
        f"{folder}/out.shards: the existing plan does not match: retrieval_shard is 0, expected 1; remove "
        "the folder, or choose another --outdir"
    ) in " ".join(printed.split())
    called(*RUN, "--outdir", "second", *command, 1)
    for outdir in (folder / "out.shards", folder / "second"):
        for shard in range(3):
            run_task(outdir, shard)
        run_join(outdir)
    packtok.draw_samples("r.yaml", "expected", tokens="tokens")
    assert tree(folder / "out") == tree(folder / "expected")


def test_a_complete_output_of_another_plan_is_replaced_only_on_request(folder: Path) -> None:
    packtok.draw_samples("r.yaml", "out", tokens="tokens")
    outdir = folder / "out.shards"
    command = ("sample", *SAMPLES["recipe"], "out", "--origin")
    called(*RUN, *command)
    record = read_record(outdir)
    assert record is not None
    task = record.launch(outdir).task_command(str(outdir), "0", "1")
    assert "has samples of another plan or program" in called(*task, code=1)
    called(*RUN, *command, "--existing", "replace")
    for shard in range(3):
        run_task(outdir, shard)
    assert not status("out")["joined"]
    run_join(outdir)
    packtok.draw_samples("r.yaml", "expected", tokens="tokens", origin=True)
    assert tree(folder / "out") == tree(folder / "expected")


def test_arguments_of_samples_are_those_of_the_command() -> None:
    options = ("--tokens", "t", "-j", "3", "--allow_short", "--dtype", "int32")
    wrapped_command = wrapped(["sample", "ab", "out", "8192", "4096", "2e2", "1e3", *options])
    assert wrapped_command.arguments.words() == [
        "ab",
        "out",
        "8192",
        "4096",
        "2e2",
        "1e3",
        "--tokens=t",
        "--dtype=int32",
        "--allow-short",
        "--num-cpus=3",
    ]
    wrapped_command = wrapped(["sample", "./x.yaml", "-o", "out", "--existing", "replace"])
    assert wrapped_command.arguments.words() == ["recipe", "./x.yaml", "--output=out", "--existing=replace"]


OF_LOGITS = ("logits", "--input_dir", "i", "--model_dir", "m", "--domain", "d")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("sample", "ab", "o", "9", "4", "0", "1", "--shard", "0/2"), "--shard cannot be given here"),
        (("sample", "pack", "o", "--tokens", "t", "--join"), "--join cannot be given here"),
        (("sample", "pack", "o", "--tokens", "t", "--outdir", "x"), "put it before the command"),
        (("sample", "import", "a", "b"), "sample import cannot be run; it has no shards"),
        (
            (*OF_LOGITS, "--shard_id", "0"),
            "--shard-id cannot",
        ),
        (
            (*OF_LOGITS, "--num_shards", "2"),
            "put --shards before",
        ),
        (
            (*OF_LOGITS, "--merge"),
            "--merge cannot be given",
        ),
        (("cat", "x"), "only pack, tokenize, sample, logits, convert and reshape can be run"),
    ],
)
def test_what_cannot_be_run_is_explained(command: tuple[str, ...], message: str) -> None:
    with pytest.raises(typer.BadParameter) as raised:
        wrapped(list(command))
    assert message in str(raised.value)


def test_wrong_arguments_are_rejected_before_anything_is_written(folder: Path) -> None:
    before = sorted(folder.iterdir())
    for command, message in (
        (
            ("sample", "ab", "out", "4", "4", "0", "1", "--tokens", "tokens"),
            "TOTAL: is 4; it must exceed DEC",
        ),
        (("sample", *SAMPLES["recipe"], "out", "--retrieval-chunk", "x"), "retrieval-chunk"),
        (
            ("logits", "--input_dir", "none", "--model_dir", "m", "--domain", "d"),
            "there is no such folder of samples",
        ),
    ):
        assert message in " ".join(called(*RUN, *command, code=2).split())
    manifest = called("run", "--no-submit", "--join", "manifest", "sample", *SAMPLES["pack"], "out", code=2)
    assert "sample writes no pbins to list; leave out --join" in " ".join(manifest.split())
    assert sorted(folder.iterdir()) == before


def test_markers_of_another_plan_do_not_count(tmp_path: Path) -> None:
    first = TaskFolder.create(tmp_path, {"a": 1}, 2, 100)
    first.finish_task(0, [], samples=3, tokens=30, seconds=1.0)
    assert sorted(TaskFolder.open(tmp_path).finished()) == [0]
    other = TaskFolder.create(tmp_path, {"a": 2}, 2, 100, replace=True)
    assert other.finished() == {}
    (tmp_path / "tasks.json").write_text("{}")
    with pytest.raises(packtok.PacktokError) as raised:
        TaskFolder.open(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path}/tasks.json: is not what this version of packtok writes; remove the folder and start the "
        "run again"
    )


# --- teacher signals


@pytest.fixture
def compute(folder: Path) -> Compute:
    """Returns the arguments of `packtok logits` for samples and a small model in the working folder."""
    pytest.importorskip("torch", reason="needs torch (pip install '.[logits]')")
    transformers = pytest.importorskip("transformers", reason="needs transformers (pip install '.[logits]')")
    import numpy as np

    config = transformers.LlamaConfig(
        vocab_size=40, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    transformers.LlamaForCausalLM(config).save_pretrained("tiny")
    columns = {"token_ids": "ndarray:uint16", "prev_token_ids": "ndarray:uint16", "domain": "str"}
    with MdsWriter(folder / "train" / "d", columns) as writer:
        for i in range(7):
            ids = (np.arange(6) + i).astype(np.uint16)
            writer.write({"token_ids": ids, "prev_token_ids": ids, "domain": "d"})
        place = {"plan": "p", "side": "train", "domain": "d", "start": 0, "stop": 7}
        writer.finish(marker={"kind": "samples", **place, "details": {"tokenizer": {"vocab_size": 40}}})

    def arguments(*more: str) -> tuple[str, ...]:
        lengths = ("--num_decoder_tokens", "6", "--num_encoder_tokens", "6", "--topk", "5")
        where = ("--input_dir", "train", "--model_dir", "tiny", "--domain", "d")
        # A batch has two samples.
        return (
            "logits",
            *where,
            *lengths,
            "--device",
            "cpu",
            "--dtype",
            "fp32",
            "--batch_tokens",
            "24",
            *more,
        )

    return arguments


def test_tasks_compute_the_signals_of_one_process(folder: Path, compute: Compute) -> None:
    output = folder / "train-logits-enc6-dec6-tiny"
    called(*compute(), "--quiet")
    called(*compute("--merge"), "--quiet")
    output.rename(folder / "expected")
    called(*RUN, *compute())
    outdir = output / "d.shards"
    assert status(output / "d")["missing"] == [0, 1, 2]
    run_task(outdir, 1)
    state = status(output / "d")
    assert (state["done"], state["joined"], state["samples"], state["tokens"]) == ([1], False, 2, 12)
    assert "--array=0,2 " in called("retry", output / "d", "--no-submit")
    for shard in (0, 2):
        run_task(outdir, shard)
    run_join(outdir)
    state = status(output / "d")
    assert (state["done"], state["joined"], state["samples"]) == ([0, 1, 2], True, 7)
    # The parts may be removed, and a join job that is requeued does not need them.
    for part in output.glob("d-*"):
        for path in part.iterdir():
            path.unlink()
        part.rmdir()
    run_join(outdir)
    assert status(output / "d")["joined"]
    assert called(*RUN, *compute()) == f"nothing to submit; see packtok status {outdir}\n"
    rows, whole = MdsReader(output / "d"), MdsReader(folder / "expected" / "d")
    assert len(rows) == len(whole) == 7
    assert all((rows[i]["target_index"] == whole[i]["target_index"]).all() for i in range(7))


def test_a_model_that_cannot_be_used_is_rejected_before_anything_is_submitted(
    folder: Path, compute: Compute
) -> None:
    before = sorted(folder.iterdir())
    config = json.loads((folder / "tiny" / "config.json").read_text())
    weights, moved = folder / "tiny" / "model.safetensors", folder / "tiny" / "model.bin"
    for changes, more, message in (
        ({}, ("--topk", "41"), "--topk: is 41, but the vocabulary has 40 ids; give at most as many"),
        ({}, ("--topk", "20000"), "--topk: is 20000, expected 1 to 16384"),
        ({}, ("--model_dir", "none/such"), "none/such is neither a folder nor in the hub's local cache"),
        ({"vocab_size": 39}, (), "tiny: the model has 39 ids, but the samples' tokenizer has 40"),
        ({"architectures": ["Own"]}, (), "tiny: config.json names Own; what this class does to logits"),
        ({"architectures": None}, (), "tiny: config.json names no class"),
        (None, (), "tiny: the model's config cannot be used"),
        ({"moved": True}, (), "tiny: has no *.safetensors file"),
    ):
        text = "[]" if changes is None else json.dumps({**config, **changes})
        (folder / "tiny" / "config.json").write_text(text)
        if changes == {"moved": True}:
            weights.rename(moved)
        printed = called(*RUN, *compute(*more), code=None)
        assert message in " ".join(printed.split()), printed
        assert sorted(folder.iterdir()) == before
    moved.rename(weights)
    (folder / "tiny" / "config.json").write_text(json.dumps(config))
    shutil.copy(TOKENIZER, folder / "tiny" / "tokenizer.json")
    (marker,) = (folder / "train" / "d").glob("packtok.json")
    content = json.loads(marker.read_text())
    content["details"]["tokenizer"] |= {"name": "other", "fingerprint": "0" * 64}
    marker.write_text(json.dumps(content))
    printed = called(*RUN, *compute(), code=2)
    assert "were made with other, whose fingerprint is 000000000000; give --yes" in " ".join(printed.split())
    assert not (folder / "train-logits-enc6-dec6-tiny").exists()
    assert "job0=" in called(*RUN, *compute("--yes"))


def test_a_vanished_file_of_signals_is_computed_again(folder: Path, compute: Compute) -> None:
    called(*RUN, *compute())
    output = folder / "train-logits-enc6-dec6-tiny"
    outdir = output / "d.shards"
    for shard in range(3):
        run_task(outdir, shard)
    gone = output / "d-1" / "shard.00000.mds"
    content = gone.read_bytes()
    gone.unlink()
    assert status(output / "d")["missing"] == [1]
    assert "--array=1 " in called("retry", output / "d", "--no-submit")
    run_task(outdir, 1)
    assert gone.read_bytes() == content
    # After the merge, the parts may be removed; a missing file of the merged folder is linked again.
    run_join(outdir)
    (output / "d" / "shard.00001.mds").unlink()
    state = status(output / "d")
    assert (state["joined"], state["missing"]) == (False, [])
    assert "join.sbatch" in called("retry", output / "d", "--no-submit")
    run_join(outdir)
    MdsReader(output / "d").verify()
    assert status(output / "d")["joined"]


def test_another_teacher_in_the_same_folder_is_an_error(compute: Compute) -> None:
    called(*RUN, *compute())
    printed = called(*RUN, *compute("--batch_tokens", "36"), code=1)
    assert "the existing plan does not match: batch_tokens is 24, expected 36" in " ".join(printed.split())

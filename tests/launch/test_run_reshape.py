"""`packtok run convert` and `packtok run reshape`: scripts, markers and results without a cluster."""

from __future__ import annotations

import shutil
from pathlib import Path

import oracle
import pytest
import typer
from task_runs import RUN, called, run_join, run_task, status, tree

import packtok
from packtok.cli.wrapped import wrapped
from packtok.commands.task_run import task_run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a pbin."""
    oracle.write_lines(tmp_path / "c.jsonl", [f"document {i} " * (i % 7) for i in range(60)])
    packtok.pack(input=str(tmp_path / "c.jsonl"), output=str(tmp_path / "a.pbin"), tokenizer="gpt2")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("format", ["mds", "litdata", "npy"])
def test_tasks_convert_as_one_process(folder: Path, format: str) -> None:
    arguments = ("a.pbin", "--to", format, "--max-tokens", "100", "-o")
    called("convert", *arguments, "expected", "--quiet")
    command = ("convert", *arguments, "out")
    called(*RUN, *command)
    outdir = folder / "out.shards"
    for shard in (2, 0):
        run_task(outdir, shard)
    state = status("out")
    assert (state["done"], state["missing"], state["joined"]) == ([0, 2], [1], False)
    assert state["documents"] > 0
    assert not (folder / "out" / "index.json").exists()
    run_task(outdir, 1)
    # A task that is started again keeps what it has written.
    run_task(outdir, 1)
    run_join(outdir)
    run_join(outdir)
    expected = tree(folder / "expected")
    # The name of the folder is in its metadata.
    assert {
        name: data.replace(b"name: out\n", b"name: expected\n") for name, data in tree(folder / "out").items()
    } == expected
    state = status("out")
    assert (state["done"], state["joined"]) == ([0, 1, 2], True)
    assert called(*RUN, *command) == f"nothing to submit; see packtok status {outdir}\n"
    assert packtok.diff("a.pbin", "out")["difference"] is None
    # Files that vanished are written again.
    shutil.rmtree(folder / "out")
    assert status("out.shards")["joined"] is False
    for shard in status("out.shards")["missing"]:
        run_task(outdir, shard)
    run_join(outdir)
    assert tree(folder / "out").keys() == expected.keys()
    # A run that replaces starts again.
    printed = called(*RUN, *command, "--existing", "replace")
    assert "--array=0-2" in printed


def test_files_of_a_folder_are_shared(folder: Path) -> None:
    (folder / "in").mkdir()
    for name in "abcd":
        shutil.copy("a.pbin", folder / "in" / f"{name}.pbin")
    called(*RUN, "convert", "in", "--to", "megatron", "-o", "out")
    for shard in range(3):
        run_task(folder / "out.shards", shard)
    run_join(folder / "out.shards")
    assert sorted(path.name for path in (folder / "out").glob("*.bin")) == [f"{name}.bin" for name in "abcd"]


def test_reshape_is_one_task(folder: Path) -> None:
    steps = ("--filter", "length > 3", "--filter", "number % 2 == 0", "--shuffle", "--seed", "5")
    called("reshape", "a.pbin", "-o", "expected.pbin", *steps, "--quiet")
    called("run", "--no-submit", "reshape", "a.pbin", "-o", "out.pbin", *steps)
    outdir = folder / "out.pbin.shards"
    run_task(outdir, 0)
    run_join(outdir)
    assert (folder / "out.pbin").read_bytes() == (folder / "expected.pbin").read_bytes()
    state = status(outdir)
    assert (state["shards"], state["joined"]) == (1, True)
    assert state["documents"] == len(packtok.PbinReader("out.pbin"))
    failed = called("run", "--no-submit", "--shards", "2", "reshape", "a.pbin", "-o", "b.pbin", code=None)
    assert "reshape is one task" in " ".join(failed.split())


def test_a_run_that_cannot_work_is_refused_before_anything_is_submitted(folder: Path) -> None:
    failed = called(*RUN, "convert", "none.pbin", "--to", "npy", "-o", "out", code=None)
    assert "none.pbin" in failed
    assert not (folder / "out.shards").exists()
    for arguments, message in [
        (
            ["convert", "a.pbin", "--to", "packed-parquet", "-o", "x", "--context-length", "8"],
            "it has no shards",
        ),
        (["convert", "a.pbin", "--to", "npy", "-o", "x", "--shard", "0/2"], "--shard cannot be given here"),
        (["reshape", "a.pbin", "-o", "x", "--join"], "--join cannot be given here"),
    ]:
        with pytest.raises(typer.BadParameter, match=message):
            wrapped(arguments)
    called(*RUN, "convert", "a.pbin", "--to", "npy", "-o", "out")
    failed = called(*RUN, "convert", "a.pbin", "--to", "npy", "-o", "out", "--max-tokens", "50", code=None)
    assert "the existing plan does not match: options is" in " ".join(failed.split())


def test_wrong_values_reach_the_tasks(folder: Path) -> None:
    called("run", "--no-submit", "reshape", "a.pbin", "-o", "out.pbin", "--truncate", "0")
    with pytest.raises(ValueError, match="truncate"):
        task_run("reshape", ["a.pbin"], "b.pbin", "c.shards", {"truncate": 0}).run(
            "0/1", join=False, on_progress=None
        )
    with pytest.raises(ValueError, match="reshape is one task"):
        task_run("reshape", ["a.pbin"], "b.pbin", "b.shards", {}).run("0/2", join=False, on_progress=None)

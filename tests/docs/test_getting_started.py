"""The example in examples/getting_started: training, kills, resuming, locking, evaluation and generation."""

from __future__ import annotations

import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")
import torch
import typer
from extent import extent
from processes import children

import checkpoint
import collect_texts
import compare_losses
import generate
import kill_and_resume
import losses
import packtok
import run_folder
import train
from losses import LossFile, Row
from model import GPT
from packtok import document_mask
from reporting import FullReport
from settings import Settings, SettingsError, load_settings

EXAMPLE = Path(train.__file__).parent
CONTEXT_LENGTH = 48
STEPS, SAVE_EVERY = 40, 8
OVERRIDES = [
    f"data.context_length={CONTEXT_LENGTH}",
    "model.width=16",
    "model.num_heads=2",
    f"training.steps={STEPS}",
    "training.global_batch_size=12",
    f"training.num_workers={extent(1, 0)}",
    f"output.checkpoint_every={SAVE_EVERY}",
    "output.evaluate_every=10",
]


def run(
    program: str, *arguments: object, cwd: Path, code: int = 0, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a program of the example, which must exit with ``code``."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", **options.pop("env", {})}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / program), *map(str, arguments)],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        **options,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with packed data, as in the README, but only from examples/corpus.jsonl."""
    folder = tmp_path_factory.mktemp("getting_started")
    collect_texts.main(folder / "data", [EXAMPLE.parent / "corpus.jsonl"])
    for split in ("train", "test"):
        packtok.pack(
            input=folder / "data" / f"{split}.jsonl",
            output=folder / "data" / f"{split}.pbin",
            tokenizer=str(EXAMPLE / "tokenizer.json"),
        )
    return folder


@pytest.fixture(scope="module")
def demonstration(folder: Path) -> str:
    """Returns the output of the demonstration that trains, kills and resumes with two processes."""
    return run("kill_and_resume.py", EXAMPLE / "small.yaml", *OVERRIDES, cwd=folder).stdout


def rows_of(folder: Path, split: str) -> list[Row]:
    return [row for row in losses.read(folder / "losses.csv") if row.split == split]


def test_killed_run_resumes_with_bit_identical_losses(folder: Path, demonstration: str) -> None:
    killed, compared = demonstration.splitlines()
    done, last = map(int, re.findall(r"step (\d+)", killed))
    assert STEPS // 2 <= done < STEPS
    assert last % SAVE_EVERY == 0
    assert 0 < last <= done
    whole, resumed = ((folder / "runs" / name / "losses.csv").read_bytes() for name in ("whole", "killed"))
    assert whole == resumed
    assert compared.startswith(f"all {STEPS + 4} losses are the same, bit for bit")
    train = rows_of(folder / "runs" / "killed", "train")
    assert [row.step for row in train] == list(range(1, STEPS + 1))
    # An untrained model guesses among 2048 ids; this model has learned something.
    assert abs(train[0].loss - math.log(2048)) < 0.1
    assert train[-1].loss < train[0].loss - 0.5
    # The learning rate rises for 50 steps. The norm is that of the gradient, which is never zero.
    assert [row.learning_rate for row in train] == pytest.approx(
        [3e-3 * step / 50 for step in range(1, STEPS + 1)]
    )
    assert all(row.gradient_norm is not None and row.gradient_norm > 0 for row in train)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Uses one thread, because models this small are slower with more."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads)


@pytest.fixture
def _alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs ``train.main`` as the only rank in this process, in the folder of the runs."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setattr(train, "make_deterministic", lambda: None)
    yield
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def naive_test_loss(folder: Path, run_folder: Path, num_items: int | None = None) -> float:
    """Returns the mean over all labels of the test set from the last checkpoint, item by item.

    With ``num_items``, only over the first items.
    """
    content = checkpoint.load(checkpoint.path_of(run_folder, checkpoint.steps(run_folder)[-1]), "cpu")
    model = GPT(**content["model_options"])
    model.load_state_dict(content["model"])
    file = packtok.PbinReader(folder / "data" / "test.pbin")
    ids = [int(id_) for document in file for id_ in document]
    document_of = [i for i, document in enumerate(file) for _ in document]
    label_losses: list[float] = []
    if num_items is None:
        num_items = (len(ids) - 1) // CONTEXT_LENGTH
        assert num_items % 2 == 1, "with an odd number of items the two processes have to differ"
    for start in range(0, num_items * CONTEXT_LENGTH, CONTEXT_LENGTH):
        first = start
        while first < start + CONTEXT_LENGTH:
            # A part of a document at a time must be equivalent to the mask and the positions.
            stop = first
            while stop < start + CONTEXT_LENGTH and document_of[stop] == document_of[first]:
                stop += 1
            with torch.no_grad():
                logits = model(torch.tensor([ids[first:stop]]))[0].log_softmax(-1)
            label_losses += [
                -float(row[label]) for row, label in zip(logits, ids[first + 1 : stop + 1], strict=True)
            ]
            first = stop
    return sum(label_losses) / len(label_losses)


def test_evaluation_sees_each_item_once_with_documents_separated(folder: Path, demonstration: str) -> None:
    run_folder = folder / "runs" / "whole"
    assert rows_of(run_folder, "test")[-1].loss == pytest.approx(
        naive_test_loss(folder, run_folder), rel=1e-5
    )


@pytest.mark.usefixtures("_alone")
def test_number_of_evaluated_batches_can_be_limited(folder: Path) -> None:
    run_folder = folder / "runs" / "limited"
    options = [f"output.folder={run_folder}", "output.evaluate_batches=2", "training.steps=2"]
    options += ["output.evaluate_every=1", "training.global_batch_size=3"]
    train.main(EXAMPLE / "small.yaml", [*OVERRIDES, *options])
    rows = rows_of(run_folder, "test")
    assert [row.step for row in rows] == [1, 2]
    # The second evaluation starts with the first batch again.
    assert rows[-1].loss == pytest.approx(naive_test_loss(folder, run_folder, num_items=6), rel=1e-5)


@pytest.mark.usefixtures("_alone")
def test_one_process_with_small_parts_resumes_the_run_of_two(folder: Path, demonstration: str) -> None:
    whole, alone = folder / "runs" / "whole", folder / "runs" / "alone"
    shutil.copytree(whole, alone)
    checkpoint.path_of(alone, STEPS).unlink()
    options = [
        *OVERRIDES,
        "output.folder=runs/alone",
        "training.micro_batch_size=5",
        "training.num_workers=0",
    ]
    train.main(EXAMPLE / "small.yaml", options, resume=True)
    first, second = losses.read(alone / "losses.csv"), losses.read(whole / "losses.csv")
    assert [row[:2] for row in first] == [row[:2] for row in second]
    # The batches are equal, but their losses are summed in another order.
    assert [row.loss for row in first] == pytest.approx([row.loss for row in second], rel=1e-3)
    assert first[-1].loss != pytest.approx(first[-3].loss, rel=1e-3)


def test_checkpoints_are_complete_and_old_ones_are_removed(folder: Path, demonstration: str) -> None:
    run_folder = folder / "runs" / "killed"
    assert sorted(path.name for path in run_folder.iterdir()) == [
        "losses.csv",
        "run.lock",
        f"step-{STEPS - SAVE_EVERY:08}.pt",
        f"step-{STEPS:08}.pt",
        "tokenizer.json",
    ]
    content = checkpoint.load(checkpoint.path_of(run_folder, STEPS), "cpu")
    assert content["step"] == STEPS
    assert json.loads(json.dumps(content["loader"])) == content["loader"]


def test_model_continues_a_text(
    folder: Path,
    demonstration: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_folder = folder / "runs" / "whole"
    options = ("--prompt", "Once there was", "--num-tokens", "12", "--temperature", "0")
    monkeypatch.setattr(sys, "argv", ["generate.py", str(run_folder), *options])
    with pytest.raises(SystemExit) as ended:
        typer.run(generate.main)
    assert ended.value.code == 0
    output = capsys.readouterr().out
    assert output.startswith("Once there was")
    assert len(output) > len("Once there was\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("Once there was\n\n"))
    generate.main(run_folder, num_tokens=12, temperature=0)
    typed = capsys.readouterr()
    # The answers to the line and to the empty line; each follows its "> ".
    assert typed.out.startswith(f"> {output}\n> ")
    assert "Ctrl-D" in typed.err


def test_generating_without_a_checkpoint_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        generate.main(tmp_path)
    assert capsys.readouterr().err == f"generate.py: {tmp_path}: there is no checkpoint; train first\n"


def test_run_is_not_started_over_another(folder: Path, demonstration: str) -> None:
    run_path = folder / "runs" / "whole"
    options = [f"output.folder={run_path}", f"data.train={folder / 'data' / 'train.pbin'}"]
    settings = load_settings(EXAMPLE / "small.yaml", options)
    with pytest.raises(SettingsError) as raised:
        run_folder.claim(settings, resume=False)
    assert str(raised.value) == (
        f"{run_path}: there is a run already; add --resume, or name another output.folder"
    )
    assert run_folder.claim(settings, resume=True).last_step == STEPS


class Recorder:
    """Replaces Weights & Biases and records its calls."""

    def __init__(self) -> None:
        self.begun: dict[str, Any] = {}
        self.logged: list[tuple[int, dict[str, float]]] = []

    def init(self, **options: Any) -> Recorder:
        self.begun = options
        return self

    def log(self, values: dict[str, float], step: int) -> None:
        self.logged.append((step, values))


def test_losses_are_sent_to_weights_and_biases_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, "wandb", recorder)
    options = [f"output.folder={tmp_path / 'little'}", "output.wandb_project=stories"]
    (tmp_path / "little").mkdir()
    report = FullReport(load_settings(EXAMPLE / "small.yaml", options), last_step=0)
    report.add(Row(1, "train", 0.5, 3e-3, 1.5))
    report.add(Row(1, "test", 0.25))
    assert (recorder.begun["project"], recorder.begun["id"], recorder.begun["resume"]) == (
        "stories",
        "little",
        "allow",
    )
    assert recorder.begun["config"]["model"]["width"] == 64
    values = {"train loss": 0.5, "learning rate": 3e-3, "gradient norm": 1.5}
    assert recorder.logged == [(1, values), (1, {"test loss": 0.25})]


def test_losses_are_plotted(folder: Path, demonstration: str) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib (pip install '.[plot]')")
    files = [f"runs/{name}/losses.csv" for name in ("whole", "killed")]
    run("plot_losses.py", *files, "--output", "both.png", cwd=folder)
    assert (folder / "both.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_losses_after_the_checkpoint_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    rows = [
        Row(1, "train", 0.1, 1e-3, 0.7),
        Row(2, "train", 1 / 3, 1 / 7, 2.0),
        Row(2, "test", 0.2),
        Row(3, "train", 5e-324),
    ]
    file = LossFile(path, last_step=0)
    for row in rows:
        file.add(row)
    assert losses.read(path) == rows
    with path.open("a") as unfinished:
        unfinished.write("4,tra")
    assert losses.read(path) == rows
    LossFile(path, last_step=2).add(Row(3, "train", 0.5))
    assert (
        path.read_text() == "step,split,loss,learning_rate,gradient_norm\n1,train,0.1,0.001,0.7\n"
        "2,train,0.3333333333333333,0.14285714285714285,2.0\n2,test,0.2,,\n3,train,0.5,,\n"
    )


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("step,split,loss\n1,train,0.5\n2,train,0.25000000000000006\n", "row 1: Row(step=2"),
        ("step,split,loss\n1,train,0.5\n", "row 1: none"),
        (
            "step,split,loss\n1,train,0.5\n2,test,0.25\n",
            "row 1: Row(step=2, split='test', loss=0.25, learning_rate=None, gradient_norm=None)",
        ),
    ],
)
def test_losses_that_differ_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other: str, message: str
) -> None:
    paths = [tmp_path / "one.csv", tmp_path / "other.csv"]
    paths[0].write_text("step,split,loss\n1,train,0.5\n2,train,0.25\n")
    paths[1].write_text(other)
    with pytest.raises(SystemExit):
        compare_losses.main(*paths)
    assert f"{paths[1]}: {message}" in capsys.readouterr().err
    compare_losses.main(paths[0], paths[0])
    assert "all 2 losses are the same" in capsys.readouterr().out


def test_runs_without_losses_are_not_reported_as_equal(tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    path.write_text("step,split,loss\n")
    with pytest.raises(SystemExit):
        compare_losses.main(path, path)


def test_unfinished_checkpoint_is_ignored(tmp_path: Path) -> None:
    for step in (5, 10, 100_000_000):
        checkpoint.save({"step": step}, tmp_path, step, keep=2)
    assert checkpoint.steps(tmp_path) == [10, 100_000_000]
    (tmp_path / "step-00000011.tmp").write_bytes(b"half of it")
    assert checkpoint.steps(tmp_path) == [10, 100_000_000]
    assert checkpoint.load(checkpoint.path_of(tmp_path, 10), "cpu") == {"step": 10}


def test_documents_in_a_row_do_not_attend_to_each_other() -> None:
    torch.manual_seed(0)
    model = GPT(vocab_size=20, context_length=8, num_layers=2, width=16, num_heads=2).eval()
    documents = [torch.tensor([[3, 1, 4]]), torch.tensor([[15, 9, 2, 6, 5]])]
    mask = document_mask(torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1]]))
    positions = torch.tensor([[0, 1, 2, 0, 1, 2, 3, 4]])
    together = model(torch.cat(documents, dim=1), positions, mask)
    apart = torch.cat([model(document) for document in documents], dim=1)
    torch.testing.assert_close(together, apart)


def test_gpu_model_has_60_million_parameters() -> None:
    settings = load_settings(EXAMPLE / "config.yaml")
    with torch.device("meta"):
        model = GPT(
            vocab_size=50257, context_length=settings.data.context_length, **settings.model.model_dump()
        )
    assert sum(parameter.numel() for parameter in model.parameters()) == pytest.approx(60e6, rel=0.02)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["training.step=1"], "training.step: extra inputs are not permitted, found 1"),
        (["training.steps=0"], "training.steps: input should be greater than or equal to 1, found 0"),
        (["training.steps=many"], "training.steps: input should be a valid integer, found 'many'"),
        (["data.train=null"], "data.train: input should be a valid string, found None"),
        (["data.train=${nothing}"], "Interpolation key 'nothing' not found"),
    ],
)
def test_invalid_setting_is_named(overrides: list[str], message: str) -> None:
    path = EXAMPLE / "small.yaml"
    with pytest.raises(SettingsError) as raised:
        load_settings(path, overrides)
    assert str(raised.value) == f"{path}: {message}"


def test_settings_combine_the_file_and_the_options() -> None:
    settings = load_settings(EXAMPLE / "small.yaml", ["training.learning_rate=1e-4", "data.packing=document"])
    assert isinstance(settings, Settings)
    assert settings.training.learning_rate == 1e-4
    assert settings.data.packing == "document"
    assert settings.data.train == "data/train.pbin"


def test_collected_texts_are_split_by_name(tmp_path: Path) -> None:
    source = tmp_path / "texts"
    (source / "folder").mkdir(parents=True)
    (source / "folder" / "ignored.txt").write_text("not collected")
    expected: dict[str, list[str]] = {"train": [], "test": []}
    for i in range(40):
        (source / "folder" / f"{i:02}.md").write_text(f"Text number {i}, größer\n", encoding="utf-8")
        split = "test" if collect_texts.is_for_test(f"texts/folder/{i:02}.md") else "train"
        expected[split].append(f"Text number {i}, größer\n")
    assert expected["test"]
    collect_texts.main(tmp_path / "data", [source])
    for split, texts in expected.items():
        lines = (tmp_path / "data" / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)["text"] for line in lines] == texts


def test_texts_of_a_checkout_suffice_for_the_readme_steps(tmp_path: Path) -> None:
    collect_texts.main(tmp_path)
    report = packtok.pack(
        input=tmp_path / "test.jsonl",
        output=tmp_path / "test.pbin",
        tokenizer=str(EXAMPLE / "tokenizer.json"),
    )
    settings = load_settings(EXAMPLE / "small.yaml")
    assert report.tokens > settings.training.global_batch_size * settings.data.context_length
    assert (tmp_path / "train.jsonl").stat().st_size > 1_000_000


def is_alive(pid: int) -> bool:
    """Returns whether a process runs; false for a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_ended(pids: list[int]) -> None:
    deadline = time.monotonic() + 120
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline, "the processes do not end"
        time.sleep(0.05)


@pytest.mark.whole
@pytest.mark.usefixtures("_alone")
def test_killed_launcher_leaves_no_process_and_no_second_writer(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    run_path = Path("runs/orphaned")
    options = [*OVERRIDES, "training.num_workers=0", "training.steps=100000", f"output.folder={run_path}"]
    running = kill_and_resume.start(EXAMPLE / "small.yaml", run_path, *options, processes=2)
    workers: list[int] = []
    try:
        while not (run_path / "losses.csv").exists():
            assert running.poll() is None
            time.sleep(0.05)
        workers = children(running.pid)
        holder = json.loads((run_path / "run.lock").read_text())
        assert holder["pid"] in workers
        assert (holder["rank"], holder["launcher_pid"]) == ("0 of 2", running.pid)
        with pytest.raises(SystemExit, match="1"):
            train.main(EXAMPLE / "small.yaml", options, resume=True)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        wait_until_ended(workers)
    finally:
        for pid in (running.pid, *workers):
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
    last = losses.read(run_path / "losses.csv")[-1].step
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("train.py: ")]
    assert lines == [
        f"train.py: runs/orphaned: in use by process {holder['pid']} on {holder['host']} "
        f"(rank 0 of 2, launched by process {running.pid}); wait until it ends, kill it, "
        "or name another output.folder",
        f"train.py: torchrun has ended and left this run behind; stopped after step {last}, "
        "add --resume to continue from the last checkpoint",
    ]
    settings = load_settings(EXAMPLE / "small.yaml", options)
    assert run_folder.claim(settings, resume=True).last_step <= last


@pytest.mark.usefixtures("_alone")
def test_finished_run_is_reported_and_left_unchanged(
    folder: Path, demonstration: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run_path = folder / "runs" / "whole"
    before = {path: path.read_bytes() for path in run_path.iterdir() if path.name != "run.lock"}
    train.main(EXAMPLE / "small.yaml", [*OVERRIDES, "output.folder=runs/whole"], resume=True)
    output = capfd.readouterr()
    assert output.out == (
        f"runs/whole: the run is finished: it has taken {STEPS} steps and training.steps is {STEPS}\n"
    )
    assert output.err == ""
    assert {path: path.read_bytes() for path in run_path.iterdir() if path.name != "run.lock"} == before


def train_alone(folder: Path, name: str, *options: str, resume: bool = False) -> list[Row]:
    """Trains 16 steps in this process; returns the losses."""
    fixed = ["training.num_workers=0", "training.steps=16", "output.evaluate_every=8"]
    train.main(
        EXAMPLE / "small.yaml",
        [*OVERRIDES, *fixed, f"output.folder=runs/{name}", *options],
        resume=resume,
    )
    return losses.read(folder / "runs" / name / "losses.csv")


@pytest.mark.usefixtures("_alone")
def test_accumulated_gradients_are_those_of_the_undivided_batch(folder: Path) -> None:
    undivided = train_alone(folder, "undivided")
    # Accumulation divides 12 rows into parts of 5, 5 and 2.
    divided = train_alone(folder, "divided", "training.micro_batch_size=5")
    assert len(divided) == 18
    assert [row[:2] for row in divided] == [row[:2] for row in undivided]
    assert [row.loss for row in divided] == pytest.approx([row.loss for row in undivided], rel=1e-5)
    norms = [[row.gradient_norm for row in rows if row.split == "train"] for rows in (divided, undivided)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-3)
    assert undivided[-1].loss < undivided[0].loss - 0.02


@pytest.mark.whole
@pytest.mark.usefixtures("_alone")
def test_compiled_run_in_bfloat16_with_accumulated_gradients_resumes_exactly(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []

    def compile_without_compiler(model: GPT, **options: Any) -> None:
        compiled.append(options)
        torch.nn.Module.compile(model, backend="eager", **options)

    monkeypatch.setattr(GPT, "compile", compile_without_compiler)
    exact = train_alone(folder, "exact", "training.micro_batch_size=5")
    assert compiled == []
    options = ["training.micro_batch_size=5", "training.precision=bfloat16", "training.compile=true"]
    whole = train_alone(folder, "rounded", *options)
    assert [row.loss for row in whole] != [row.loss for row in exact]
    assert [row.loss for row in whole] == pytest.approx([row.loss for row in exact], rel=0.01)
    shutil.copytree(folder / "runs" / "rounded", folder / "runs" / "again")
    checkpoint.path_of(folder / "runs" / "again", 16).unlink()
    torch._dynamo.reset()
    assert train_alone(folder, "again", *options, resume=True) == whole
    assert compiled == [{"dynamic": False}] * 2


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("model.width=32", "its model has width 16, the config's has 32"),
        ("training.seed=2", "seed"),
    ],
)
def test_run_is_not_resumed_with_other_settings(
    folder: Path, demonstration: str, capfd: pytest.CaptureFixture[str], option: str, message: str
) -> None:
    options = [*OVERRIDES, "output.folder=runs/whole", f"training.steps={2 * STEPS}", option]
    before = (folder / "runs" / "whole" / "losses.csv").read_bytes()
    with pytest.raises(SystemExit, match="1"):
        train.main(EXAMPLE / "small.yaml", [*options, "training.num_workers=0"], resume=True)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"train.py: runs/whole/step-{STEPS:08}.pt: ")
    assert message in line
    assert (folder / "runs" / "whole" / "losses.csv").read_bytes() == before


def test_one_process_per_machine_reports_an_invalid_setting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = EXAMPLE / "small.yaml"
    for rank in ("0", "1"):
        monkeypatch.setenv("LOCAL_RANK", rank)
        with pytest.raises(SystemExit, match="1"):
            train.main(path, ["training.step=1"])
    expected = f"train.py: {path}: training.step: extra inputs are not permitted, found 1\n"
    assert capsys.readouterr().err == expected


def test_missing_texts_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="1"):
        collect_texts.main(tmp_path / "data", [tmp_path / "texts"])
    assert capsys.readouterr().err == (
        f"collect_texts.py: [Errno 2] No such file or directory: '{tmp_path / 'texts'}'\n"
    )


# Claims a run folder, starts a child that outlives it, and waits to be killed.
_HOLDER = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import run_folder
from settings import load_settings
held = run_folder.claim(load_settings(sys.argv[2], sys.argv[3:]), resume=False)
child = os.fork()
if child:
    print(os.getpid(), child, flush=True)
time.sleep(600)
"""


def test_lock_is_released_with_its_process_even_if_a_child_survives(folder: Path, tmp_path: Path) -> None:
    options = [f"output.folder={tmp_path / 'run'}", f"data.train={folder / 'data' / 'train.pbin'}"]
    config = str(EXAMPLE / "small.yaml")
    command = [sys.executable, "-c", _HOLDER, str(EXAMPLE), config, *options]
    settings = load_settings(EXAMPLE / "small.yaml", options)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        pid, child = map(int, holder.stdout.readline().split())
        try:
            with pytest.raises(SettingsError) as raised:
                run_folder.claim(settings, resume=False)
            assert f"{tmp_path / 'run'}: in use by process {pid} on " in str(raised.value)
            assert "(rank 0 of 1); wait" in str(raised.value)
            os.kill(pid, signal.SIGKILL)
            holder.wait()
            assert is_alive(child)
            assert run_folder.claim(settings, resume=False).last_step == 0
        finally:
            os.kill(child, signal.SIGKILL)


def test_empty_lock_file_names_no_process(tmp_path: Path) -> None:
    assert run_folder._holder("") == "another process"
    assert run_folder._holder('{"pid": 7, "host": "a", "rank": "0 of 1"}') == "process 7 on a (rank 0 of 1)"

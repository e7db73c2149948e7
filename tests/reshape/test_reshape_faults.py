"""Commands that reshape token files are killed, their disks become full, and their shards vanish.

After a kill or a full disk, no unfinished file has its final name, and the same command completes the output:
its files are those of an undisturbed run, and no temporary file is left. `test_shuffle.py`,
`test_tokenize_npy.py`, `test_logits.py` and `test_instruction.py` kill their own commands.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pbins
import pickled_mds
import pytest
import tokenizers
from command_line import PacktokCli
from extent import extent
from processes import in_a_mount_namespace, write_corpus
from repository import GOLDEN
from stories import TOKENIZER

import packtok
from packtok.commands import sample as samples
from packtok.commands import shuffle

# Small enough that folders of samples have several files.
SIZE_LIMIT = 20_000
# Sizes of a full disk, in pages.
PAGES = extent([*range(1, 25), 30, 35, 40, 50, 60, 70], [2, 12, 40])
PAGE_BYTES = 4096
RECIPE = {
    "windows": {"from": "documents", "context": 24, "decoder": 8},
    "domains": {"arxiv": 0.5, "book": 0.5},
    "splits": {"test": 0.3, "train": 0.7, "retrieval": 0},
    "samples": {"test": 400, "train": 2000},
}

# The arguments are the folder of the inputs and the folder of the output.
Command = Callable[[Path, Path], object]


def tokenize(inputs: Path, out: Path) -> object:
    tokenizer = str(inputs / "tokenizer.json")
    return packtok.tokenize(str(inputs / "root"), tokenizer, out / "o", to="cepe-npy")


def sample(inputs: Path, out: Path) -> object:
    return packtok.draw_samples(RECIPE, out / "o", tokens=inputs / "tokens")


def pack(inputs: Path, out: Path) -> object:
    return packtok.pack_samples(out / "o", tokens=inputs / "tokens", length=64)


def import_(inputs: Path, out: Path) -> object:
    # `import_samples` refuses an existing output, which is always a complete one.
    return (out / "o").exists() or packtok.import_samples(inputs / "old", out / "o")


def convert_to_pbin(inputs: Path, out: Path) -> object:
    return packtok.convert(inputs / "a.npy", out / "o", to="pbin", existing="skip")


def convert_to_npy(inputs: Path, out: Path) -> object:
    return packtok.convert(inputs / "tokens", out / "o", to="cepe-npy", existing="skip")


def shuffle_tokens(inputs: Path, out: Path) -> object:
    source = inputs / "tokens" / "book" / "0.pbin"
    return shuffle.shuffle_file("pbin", source, out / "o", seed=1, existing="skip", memory=(0, 20_000))


def reshape_to_pbin(inputs: Path, out: Path) -> object:
    steps = {"truncate": 50, "shuffle": True, "memory": (0, 20_000)}
    return packtok.reshape(inputs / "tokens", out / "o", existing="skip", **steps)


def reshape_to_megatron(inputs: Path, out: Path) -> object:
    return packtok.reshape(inputs / "tokens", out / "o", to="megatron", filter="length > 20", existing="skip")


def logits(inputs: Path, out: Path) -> object:
    from packtok.commands.logits import logits as compute

    # The command writes its output next to the samples.
    if not (out / "samples").exists():
        (out / "samples").symlink_to(inputs / "samples")
    return compute(
        str(out / "samples"),
        str(inputs / "model"),
        "d",
        num_encoder_tokens=4,
        num_decoder_tokens=8,
        topk=50,
        dtype="fp32",
        device="cpu",
        # Without confirmation, the command reports too little space before it writes anything.
        yes=True,
    )


def instruction(inputs: Path, out: Path) -> object:
    # The config names files relative to the current folder.
    for path in (GOLDEN / "instruction").iterdir():
        if path.name != "prepared" and not (out / path.name).exists():
            (out / path.name).symlink_to(path)
    os.chdir(out)
    return packtok.prepare_instruction_tuning_data("chat.yaml")


# `test_sample.py` ends `sample` and `pack` at each step of publishing.
KILLED: list[Command] = [
    *extent([sample, pack], []),
    import_,
    convert_to_pbin,
    convert_to_npy,
    reshape_to_pbin,
    reshape_to_megatron,
]
# Each of the first has a way to write of its own; the others write as one of them.
ON_FULL_DISKS: list[Command] = [
    sample,
    pack,
    convert_to_npy,
    shuffle_tokens,
    reshape_to_pbin,
    instruction,
    *extent([tokenize, import_, convert_to_pbin, reshape_to_megatron, logits], []),
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the inputs of all commands."""
    folder = tmp_path_factory.mktemp("inputs")
    made = tokenizers.Tokenizer.from_file(TOKENIZER)
    made.add_special_tokens(["<s>", "</s>"])
    made.save(str(folder / "tokenizer.json"))
    numbers = np.random.default_rng(3)
    for domain in ("arxiv", "book"):
        (folder / "root" / domain).mkdir(parents=True)
        write_corpus(folder / "root" / domain / "a.jsonl", 60_000, seed=len(domain))
        (folder / "tokens" / domain).mkdir(parents=True)
        documents = [numbers.integers(0, 60_000, size).tolist() for size in numbers.integers(0, 200, 500)]
        pbins.write(folder / "tokens" / domain / "0.pbin", documents)
        pickles = [pickle.dumps(numbers.integers(0, 60_000, 300)) for _ in range(300)]
        pickled_mds.write_pickles(folder / "old" / domain, pickles)
    lengths = [len(document) for document in documents]
    np.save(folder / "a.npy", np.concatenate([[len(lengths)], lengths, *documents]).astype(np.int64))
    return folder


@pytest.fixture(scope="module")
def all_inputs(inputs: Path) -> Path:
    """Adds a model and samples for the model."""
    pytest.importorskip("transformers", reason="needs transformers (pip install '.[logits]')")
    import teacher_samples

    teacher_samples.small_llama(inputs / "model")
    rows = teacher_samples.samples(40, context=4, decoder=8)
    teacher_samples.write_samples(inputs / "samples", rows)
    return inputs


def tree(folder: Path) -> dict[str, str]:
    """Returns a digest of each file below a folder, by path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def torn(left: dict[str, str], expected: dict[str, str]) -> list[str]:
    """Returns the files of an unfinished output that have a final name and other content.

    The files of an MDS folder belong to the output as soon as it has an index, which is published last.
    """
    return [
        path
        for path, digest in left.items()
        if path in expected
        and digest != expected[path]
        and not (".mds" in path and str(Path(path).parent / "index.json") not in left)
    ]


@pytest.mark.faults
@pytest.mark.parametrize("command", KILLED, ids=lambda command: command.__name__)
def test_commands_killed_at_any_moment_are_completed_by_the_next_run(
    command: Command, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "SIZE_LIMIT", SIZE_LIMIT)
    out = tmp_path / "out"
    out.mkdir()
    seconds = killed_after(None, lambda: command(inputs, out))
    expected = tree(out)
    numbers = random.Random(5)
    for _ in range(extent(30, 1)):
        shutil.rmtree(out)
        out.mkdir()
        # The second run starts with the files that the first kill left.
        for _ in range(2):
            killed_after(numbers.random() * seconds, lambda: command(inputs, out))
            assert torn(tree(out), expected) == []
        command(inputs, out)
        assert tree(out) == expected


def killed_after(seconds: float | None, work: Callable[[], object]) -> float:
    """Runs ``work`` in a forked process that is killed after some time; returns its duration in seconds."""
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if seconds is not None:
        # The test is about the moment; nothing is waited for.
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
    return time.monotonic() - started


def on_small_disks(command: str, inputs: str, disk: str, *pages: str) -> None:
    """Runs a command on file systems of these sizes, and again with more space; prints what each run left.

    Runs in a mount namespace of its own. The result of a run is the error and the files, or ``None``.
    """
    run, folder = globals()[command], Path(disk)
    samples.SIZE_LIMIT = SIZE_LIMIT
    results = []
    for size in (64 << 20, *(int(number) * PAGE_BYTES for number in pages)):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], check=True)
        error = None
        try:
            run(Path(inputs), folder)
        except OSError as caught:
            error = [caught.errno, caught.filename]
        left = tree(folder)
        if error is not None:
            subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
            run(Path(inputs), folder)
        results.append({"size": size, "error": error, "left": left, "complete": tree(folder)})
        os.chdir("/")
        subprocess.run(["umount", disk], check=True)
    print(json.dumps(results))


@pytest.mark.faults
@pytest.mark.parametrize("command", ON_FULL_DISKS, ids=lambda command: command.__name__)
def test_commands_on_a_full_disk_are_completed_when_there_is_space(
    command: Command, all_inputs: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    call = (
        f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as faults; "
        "faults.on_small_disks(*sys.argv[1:])"
    )
    arguments = (command.__name__, all_inputs, disk, *PAGES)
    printed = in_a_mount_namespace(sys.executable, "-c", call, *arguments, cwd=tmp_path)
    whole, *results = json.loads(printed.splitlines()[-1])
    assert whole["error"] is None
    expected = whole["complete"]
    for result in results:
        assert result["complete"] == expected, result["size"]
        assert torn(result["left"], expected) == [], result["size"]
        if result["error"] is not None:
            code, path = result["error"]
            assert code == errno.ENOSPC
            # The config of `instruction` has relative paths. A file without a name is named by its folder.
            assert f"{path}/".startswith("prepared/" if command is instruction else f"{disk}/"), path
    assert any(result["error"] for result in results)


# --- vanished shards ---


@pytest.mark.parametrize("command", ["sample", "pack"])
def test_a_vanished_shard_of_samples_is_named_and_written_again(
    command: str, inputs: Path, tmp_path: Path
) -> None:
    def run(**options: Any) -> object:
        if command == "sample":
            return packtok.draw_samples(RECIPE, tmp_path / "o", tokens=inputs / "tokens", **options)
        return packtok.pack_samples(tmp_path / "o", tokens=inputs / "tokens", length=64, **options)

    run()
    expected = tree(tmp_path / "o")
    shutil.rmtree(tmp_path / "o")
    for shard in ("0/2", "1/2"):
        run(shard=shard)
    gone = min((tmp_path / "o" / ".packtok-sample").rglob("shard.*.mds"))
    gone.unlink()
    with pytest.raises(packtok.PacktokError) as caught:
        run(join=True)
    assert str(caught.value) == f"{gone}: is missing; run its shard again, then set join"
    for shard in ("0/2", "1/2"):
        run(shard=shard)
    run(join=True)
    assert tree(tmp_path / "o") == expected


def test_a_vanished_shard_of_tokens_is_named_and_written_again(
    inputs: Path, tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    command = ("tokenize", inputs / "root", "--to", "cepe-npy", "-q", "-t", inputs / "tokenizer.json")

    def run(*options: object, code: int = 0) -> str:
        return packtok_cli(*command, "-o", "o", *options, cwd=tmp_path, code=code).stderr

    for shard in ("0/2", "1/2"):
        run("--shard", shard)
    (tmp_path / "o" / "tokens.shards" / "shard-00001-of-00002.pbin").unlink()
    assert run("--join", code=1).strip() == (
        "packtok: o/tokens.shards: shards are missing: 1 of 2; pack them, then join again"
    )
    assert not list((tmp_path / "o").rglob("*.npy"))
    run("--shard", "1/2")
    run("--join")
    assert len(list((tmp_path / "o").rglob("*.npy"))) == 2


def test_a_vanished_file_of_teacher_signals_is_named_and_computed_again(
    all_inputs: Path, tmp_path: Path
) -> None:
    from packtok.commands.logits import merge_logits

    shutil.copytree(all_inputs / "samples", tmp_path / "samples")
    logits(all_inputs, tmp_path)
    part = tmp_path / "samples-logits-enc4-dec8-model" / "d-0"
    gone = part / "shard.00000.mds"
    content = gone.read_bytes()
    gone.unlink()
    merge = {"num_encoder_tokens": 4, "num_decoder_tokens": 8}
    with pytest.raises(packtok.PacktokError) as caught:
        merge_logits(str(tmp_path / "samples"), str(all_inputs / "model"), "d", **merge)
    assert str(caught.value) == f"{gone}: is missing; compute it again with --shard 0/1"
    assert not (part.parent / "d").exists()
    logits(all_inputs, tmp_path)
    merge_logits(str(tmp_path / "samples"), str(all_inputs / "model"), "d", **merge)
    assert (part.parent / "d" / gone.name).read_bytes() == content

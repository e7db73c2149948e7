"""Ctrl-C at any moment: an answer before the work is done, exit code 130, no files remain.

`benches/answers.py` measures how soon the answer comes.
"""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pickled_mds
import pytest
from command_line import PacktokCli
from extent import extent
from processes import SLOWER_FIELD, names, start, unfinished, wait_until_packing, write_corpus, write_one_line
from small_tokenizers import small_tokenizer
from stories import TOKENIZER

import packtok
from packtok.cli.progress import CHECKING, PlainLines
from packtok.commands.shuffle import shuffle_file

# The work takes seconds on two cores, so that no interrupt comes after the end.
LARGE_BYTES = 400_000_000
HUGE_BYTES = 100_000_000
# Each moment takes some seconds, most of them for the check of the engine.
STARTUP_MOMENTS = extent(24, 2)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("large") / "c.jsonl", LARGE_BYTES, bad_every=40)


@pytest.fixture(scope="module")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a file with one line of 100 MB."""
    return write_one_line(tmp_path_factory.mktemp("huge") / "c.jsonl", HUGE_BYTES)


def interrupted(process: subprocess.Popen[str], *, number: signal.Signals = signal.SIGINT) -> str:
    """Interrupts a process and returns its messages; it must exit as interrupted, without a result.

    A process that only ended after its work would have published its output.
    """
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert re.search(r"^packtok: interrupted(; finished work is kept .*)?\n\Z", err, re.M)
    assert "Traceback" not in err
    return err


@pytest.mark.faults
def test_interrupt_at_any_moment_leaves_no_partial_files(large: Path, tmp_path: Path) -> None:
    rng = random.Random(4)
    # Without --restart, each run would resume the one before, and one of them would complete.
    options = ("-t", TOKENIZER, "-j", 4, "--on-bad-document", "skip", "--quiet", "--restart")
    for _ in range(extent(12, 2)):
        process = start("pack", "-i", large, "-o", "o.pbin", *options, cwd=tmp_path)
        assert wait_until_packing(process, tmp_path)
        # The timing is the point of the test; nothing is waited for.
        time.sleep(0.7 * rng.random())
        is_kept = "is kept" in interrupted(process)
        assert names(tmp_path) == (["o.pbin.partial"] if is_kept else [])


def test_files_of_a_terminated_run_are_removed_by_the_next(
    large: Path, tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    process = start(
        "pack", "-i", large, "-o", "o.pbin", "-t", TOKENIZER, "--set", "on_bad_document=skip", cwd=tmp_path
    )
    assert wait_until_packing(process, tmp_path)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert not (tmp_path / "o.pbin").exists()
    write_corpus(tmp_path / "c.jsonl", 1000)
    packtok_cli("pack", "-i", "c.jsonl", "-o", "o.pbin", "-t", TOKENIZER, cwd=tmp_path)
    assert names(tmp_path) == ["c.jsonl", "o.pbin", "o.pbin.tokenizer.json"]


# The system sends SIGINT when the first file in the folder is renamed, which happens only at the end.
INTERRUPTED_AT_THE_END = """
import fcntl, os, signal
from packtok.cli import main

folder = os.open(".", os.O_RDONLY)
fcntl.fcntl(folder, fcntl.F_SETSIG, signal.SIGINT)
fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_RENAME)
main()
"""


def test_late_interrupt_reports_that_the_pbin_is_complete(tmp_path: Path) -> None:
    write_corpus(tmp_path / "c.jsonl", 1000)
    program = [sys.executable, "-c", INTERRUPTED_AT_THE_END]
    arguments = ["pack", "-i", "c.jsonl", "-o", "o.pbin", "-t", TOKENIZER]
    done = subprocess.run([*program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "packtok: interrupted; the pbin was already complete\n"
    assert names(tmp_path) == ["c.jsonl", "o.pbin", "o.pbin.tokenizer.json"]
    assert len(packtok.PbinReader(str(tmp_path / "o.pbin"))) > 0


@pytest.mark.parametrize(
    "command", [("count", "-t"), pytest.param(("tokenizer", "verify"), marks=pytest.mark.whole)]
)
def test_scanning_a_corpus_can_be_interrupted(large: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    corpus = () if command[0] == "count" else ("--corpus",)
    options = ("--on-bad-document", "skip", "--field", SLOWER_FIELD, "-j", 1)
    process = start(*command, TOKENIZER, *corpus, large, *options, cwd=tmp_path)
    assert process.stderr is not None
    # The first progress line shows that the process is at work.
    line = "packtok: checking the engine"
    while line.startswith("packtok: checking the engine"):
        line = process.stderr.readline()
    assert re.match(r"packtok: [0-9.]+ of [0-9.]+ MB", line)
    assert interrupted(process).endswith("packtok: interrupted\n")


# The delays reach from reading the line, over extracting its text, to the middle of tokenizing it.
@pytest.mark.faults
@pytest.mark.parametrize("delay_seconds", extent([0.0, 0.2, 1.0, 4.0], [0.0, 1.0]))
@pytest.mark.parametrize("engine", ["one-word", "second-engine"])
def test_interrupt_inside_a_huge_document_works(
    huge: Path, tmp_path: Path, engine: str, delay_seconds: float
) -> None:
    output = tmp_path / "output"
    output.mkdir()
    tokenizer = one_word_tokenizer(tmp_path) if engine == "one-word" else small_tokenizer(tmp_path)
    arguments = ("-i", huge, "-o", "output/o.pbin", "-t", tokenizer, "--eod", "</s>")
    process = start("pack", *arguments, cwd=tmp_path)
    assert wait_until_packing(process, output)
    # The timing is the point of the test; nothing is waited for.
    time.sleep(delay_seconds)
    interrupted(process)
    assert names(output) == []


def one_word_tokenizer(folder: Path) -> Path:
    """Returns a tokenizer like Llama 2's: texts are not split, so that a whole text is one word to merge."""
    letters = [chr(code) for code in range(0x20, 0x7F)]
    pairs = [a + b for a in letters for b in "etaoins "]
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokens = ["<unk>", "</s>", *letters, *pairs]
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": "<unk>",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": False,
        "vocab": {token: i for i, token in enumerate(tokens)},
        "merges": [[pair[0], pair[1]] for pair in pairs],
    }
    described = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": 0, "content": "<unk>", **special},
            {"id": 1, "content": "</s>", **special},
        ],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": model,
    }
    path = folder / "one-word.json"
    path.write_text(json.dumps(described))
    return path


def sparse_corpus(folder: Path) -> Path:
    """Returns one short line followed by 30 GB of sparse zeros, which take long to read."""
    path = folder / "sparse.jsonl"
    path.write_bytes(b'{"text": "hello"}\n')
    os.truncate(path, 30_000_000_000)
    return path


@pytest.mark.faults
def test_interrupt_during_source_checksums_works(tmp_path: Path) -> None:
    sparse_corpus(tmp_path)
    (tmp_path / "c.idx").write_bytes(pickle.dumps([(0, 17)], protocol=4))
    output = tmp_path / "output"
    output.mkdir()
    arguments = ("-i", "sparse.jsonl", "--index-path", "c.idx", "-o", "output/o.pbin", "-t", TOKENIZER)
    process = start("pack", *arguments, cwd=tmp_path)
    assert wait_until_packing(process, output)
    # Packing one line is fast, but reading 30 GB is not.
    time.sleep(1)
    interrupted(process)
    assert names(output) == []


@pytest.mark.faults
def test_interrupt_while_skipping_a_line_works(tmp_path: Path) -> None:
    sparse_corpus(tmp_path)
    output = tmp_path / "output"
    output.mkdir()
    options = ("--on-bad-document", "skip", "--max-document-bytes", 1_000_000)
    process = start(
        "pack", "-i", "sparse.jsonl", "-o", "output/o.pbin", "-t", TOKENIZER, *options, cwd=tmp_path
    )
    assert wait_until_packing(process, output)
    time.sleep(1)
    interrupted(process)
    assert names(output) == []


@pytest.mark.faults
def test_interrupt_while_verifying_an_existing_file_works(
    large: Path, tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    write_corpus(tmp_path / "sparse.jsonl", 1000)
    packtok_cli("pack", "-i", "sparse.jsonl", "-o", "o.pbin", "-t", TOKENIZER, cwd=tmp_path)
    sparse_corpus(tmp_path)
    before = names(tmp_path)
    process = start(
        "pack", "-i", "sparse.jsonl", "-o", "o.pbin", "-t", TOKENIZER, "--existing", "skip", cwd=tmp_path
    )
    # No output shows the progress, but two seconds are enough to start reading.
    time.sleep(2)
    interrupted(process)
    assert names(tmp_path) == before


# Interrupts itself from a thread, like Ctrl-C, and then shows that the process still works.
USABLE = """
import os, signal, sys, threading, time
import packtok
from packtok.cli.progress import CHECKING, PlainLines

def interrupt_when_packing():
    while not os.path.exists("o.pbin.partial/data"):
        time.sleep(0.001)
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)

for corpus in sys.argv[1:]:
    threading.Thread(target=interrupt_when_packing).start()
    try:
        packtok.pack(
            input=corpus,
            output="o.pbin",
            tokenizer="gpt2",
            on_bad_document="skip",
            num_cpus=2,
            span_bytes=2**40,
        )
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("not interrupted")
    # It ended before its work did, which would have left an output.
    assert os.listdir(".") == ["small.jsonl"], os.listdir(".")
report = packtok.pack(input="small.jsonl", output="o.pbin", tokenizer="gpt2")
print(report.documents, len(packtok.PbinReader("o.pbin")))
"""


@pytest.mark.faults
def test_interrupted_call_leaves_the_process_usable(large: Path, huge: Path, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "small.jsonl", 10_000)
    done = subprocess.run(
        [sys.executable, "-c", USABLE, large, huge, large],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stderr == ""
    num_lines = len(corpus.read_bytes().splitlines())
    assert done.stdout == f"{num_lines} {num_lines}\n"


def test_exception_in_progress_callback_ends_the_call(large: Path, tmp_path: Path) -> None:
    class EnoughError(Exception):
        pass

    def stop(counts: dict[str, int]) -> None:
        raise EnoughError(counts["total_bytes"])

    with pytest.raises(EnoughError, match=str(large.stat().st_size)):
        packtok.pack(
            input=large,
            output=tmp_path / "o.pbin",
            tokenizer=TOKENIZER,
            on_bad_document="skip",
            on_progress=stop,
        )
    # On a busy machine, a part may be complete before the callback is called, and is then kept.
    assert names(tmp_path) in ([], ["o.pbin.partial"])


def test_packing_off_the_main_thread_works(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", 100_000)
    reports: list[packtok.PackReport] = []

    def pack() -> None:
        reports.append(packtok.pack(input=corpus, output=tmp_path / "o.pbin", tokenizer=TOKENIZER))

    thread = threading.Thread(target=pack)
    thread.start()
    thread.join(60)
    assert [report.documents for report in reports] == [len(corpus.read_bytes().splitlines())]
    assert unfinished(tmp_path) == []


# A program that sends itself Ctrl-C when a module is imported, a file is opened or a function is called.
STOPPED_AT = """
import os, signal, sys

wanted, sys.argv = sys.argv[1], ["packtok", *sys.argv[2:]]

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
from packtok.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "module",
    [
        "packtok._packtok",
        "packtok.__main__",
        "typer",
        "packtok.commands.pack",
        "pydantic_core",
        "yaml",
        "packtok.packer.staging",
        *extent(
            [
                "packtok.errors",
                "packtok.cli",
                "typer.core",
                "packtok.cli.pack",
                "pydantic",
                "pydantic.main",
                "omegaconf",
                "packtok.config.load",
                "packtok.tokenizer.find",
            ],
            [],
        ),
    ],
)
def test_interrupt_during_imports_prints_one_line(tmp_path: Path, module: str) -> None:
    write_corpus(tmp_path / "c.jsonl", 1000)
    arguments = (module, "pack", "-i", "c.jsonl", "-o", "o.pbin", "-t", TOKENIZER)
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_AT, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "packtok: interrupted\n")
    assert names(tmp_path) == ["c.jsonl"]


@pytest.mark.faults
@pytest.mark.parametrize("program", [("-m", "packtok"), (str(Path(sys.executable).parent / "packtok"),)])
def test_interrupt_at_any_moment_of_startup_prints_one_line(tmp_path: Path, program: tuple[str, ...]) -> None:
    write_corpus(tmp_path / "c.jsonl", 1000)
    cache = tmp_path / "cache"
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    arguments = ("pack", "-i", "c.jsonl", "-o", "o.pbin", "-t", TOKENIZER, "--existing", "replace")
    command = [sys.executable, *program, *arguments]
    started = time.monotonic()
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    whole_seconds = time.monotonic() - started
    # Until Python has found the package, Python itself handles the signal.
    begin_seconds = 0.25 * whole_seconds
    for i in range(STARTUP_MOMENTS):
        shutil.rmtree(cache, ignore_errors=True)
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        # The timing is the point of the test; nothing is waited for.
        time.sleep(begin_seconds + (whole_seconds - begin_seconds) * i / STARTUP_MOMENTS)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        if process.returncode == 0:
            continue
        assert process.returncode == 130, err
        lines = [line for line in err.splitlines() if "checking the engine" not in line]
        assert lines in (["packtok: interrupted"], ["packtok: interrupted; the pbin was already complete"])


def test_interrupt_while_modules_are_imported_ends_a_program_without_stderr(tmp_path: Path) -> None:
    # The package answers an interrupt at once from its first line on; the signal comes at the next one.
    code = (
        "import os, signal, sys; sys.argv[0] = 'packtok'; os.close(2)\n"
        "from packtok import interrupts\n"
        "interrupts.answer_at_once()\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False, timeout=60)
    assert done.returncode == 130


def test_module_that_was_interrupted_within_exec_ends_with_the_code_of_an_interrupt(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import signal, sys\n"
        "from packtok import interrupts\n"
        "def main():\n"
        "    try:\n"
        "        exec('signal.raise_signal(signal.SIGINT)')\n"
        "    except KeyboardInterrupt:\n"
        "        sys.exit(130)\n"
        "interrupts.run_module(main)\n"
    )
    done = subprocess.run([sys.executable, "-m", "program"], cwd=tmp_path, check=False, timeout=60)
    assert done.returncode == 130


def test_interrupt_during_the_engine_check_prints_one_line(tmp_path: Path) -> None:
    write_corpus(tmp_path / "c.jsonl", 1000)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    process = start("pack", "-i", "c.jsonl", "-o", "o.pbin", "-t", TOKENIZER, cwd=tmp_path, env=environment)
    assert process.stderr is not None
    assert process.stderr.readline() == "packtok: checking the engine, once for this tokenizer\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "packtok: interrupted\n")
    assert names(tmp_path) == ["c.jsonl"]


def test_ignored_interrupt_stays_ignored(tmp_path: Path) -> None:
    """Ctrl-C is ignored in a background job of a shell, or with nohup."""
    write_corpus(tmp_path / "c.jsonl", 1000)
    arguments = ("packtok.cli", "pack", "-i", "c.jsonl", "-o", "o.pbin", "-t", TOKENIZER, "--quiet")
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_AT, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_engine_check_is_announced_once_unless_quiet(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    write_corpus(tmp_path / "c.jsonl", 1000)
    arguments = ("pack", "-i", "c.jsonl", "-o", "o.pbin", "-t", TOKENIZER, "--existing", "replace")
    outputs = []
    for cache, *flags in (("one",), ("one",), ("two", "--quiet")):
        environment = {"XDG_CACHE_HOME": str(tmp_path / cache)}
        outputs.append(packtok_cli(*arguments, *flags, cwd=tmp_path, env=environment).stderr)
    assert outputs == ["packtok: checking the engine, once for this tokenizer\n", "", ""]


def test_comparing_engines_shows_no_rate_before_the_first_document(
    capsys: pytest.CaptureFixture[str],
) -> None:
    times = iter([0.0, 5.0, 10.0])
    lines = PlainLines(clock=lambda: next(times), idle=CHECKING)
    lines({"bytes_read": 1_000_000, "total_bytes": 4_000_000, "documents": 0, "tokens": 0})
    lines({"bytes_read": 1_000_000, "total_bytes": 4_000_000, "documents": 3, "tokens": 9})
    assert capsys.readouterr().err.splitlines() == [
        "packtok: checking the engine",
        "packtok: 1.0 of 4.0 MB, 3 documents, 9 tokens, 0.1 MB/s, 0:30 left",
    ]


# Whether the same call resumes the work.

KEPT = "finished work is kept next to the output; run the same command again to resume"
LOST = "nothing was kept; run the same command again to start over"
NUM_TOKENS = 12_000_000
# Windows overlap, so that the samples are much larger than the tokens.
OVERLAPPING: dict[str, Any] = {
    "windows": {"from": "stream", "context": 1000, "decoder": 24},
    "domains": {"a": 1},
    "splits": {"test": 0, "train": 1, "retrieval": 0},
    "samples": {"train": 200_000},
}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a large token file of domain a."""
    folder = tmp_path_factory.mktemp("tokens")
    lengths = np.full(2000, NUM_TOKENS // 2000)
    ids = np.random.default_rng(1).integers(0, 1000, NUM_TOKENS)
    (folder / "a").mkdir()
    np.save(folder / "a" / "0.npy", np.concatenate([[2000], lengths, ids]).astype(np.uint32))
    return folder


def notes_of(call: Callable[[Callable[[dict[str, int]], None]], object], when: Callable[[], bool]) -> str:
    """Interrupts a call at its first progress after ``when`` is true, and returns the note."""

    def stop(_: dict[str, int]) -> None:
        if when():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        call(stop)
    (note,) = caught.value.__notes__
    return str(note)


def at_once() -> bool:
    return True


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Locks a file or folder of a command, which then waits before it plans anything."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def test_interrupted_samples_say_whether_the_same_call_resumes(tokens: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()

    def draw(on_progress: Any) -> object:
        return packtok.draw_samples(OVERLAPPING, out, tokens=tokens, on_progress=on_progress)

    with locked(out):
        assert notes_of(draw, at_once) == LOST
    assert notes_of(draw, lambda: bool(list(out.rglob("shard.*.mds")))) == KEPT
    assert not list(out.rglob("index.json"))


def test_interrupted_rows_say_whether_the_same_call_resumes(tokens: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    work = out / ".packtok-sample"
    work.mkdir(parents=True)
    (work / "lock").touch()

    def pack(on_progress: Any) -> object:
        # The output is compressed, so that writing takes longer than the time between two reports.
        return packtok.pack_samples(
            out, tokens=tokens, length=32, compression="zstd:15", on_progress=on_progress
        )

    with locked(work / "lock"):
        assert notes_of(pack, at_once) == LOST
    assert notes_of(pack, (work / "long.json").exists) == KEPT


def test_the_command_shows_the_note(tokens: Path, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(json.dumps(OVERLAPPING))
    process = start("sample", "r.yaml", "-o", "out", "--tokens", tokens, "--quiet", cwd=tmp_path)
    while not list((tmp_path / "out").rglob("shard.*.mds")):
        assert process.poll() is None
        time.sleep(0.01)
    assert interrupted(process) == f"packtok: interrupted; {KEPT}\n"


def test_interrupted_conversions_say_what_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "two").mkdir()
    # Converting a file must take longer than the 100 ms after which progress is reported.
    ids = np.zeros(2 + (3 << 24), np.uint32)
    ids[:2] = 1, len(ids) - 2
    np.save(tmp_path / "two" / "0.npy", ids)
    (tmp_path / "two" / "1.npy").symlink_to(tmp_path / "two" / "0.npy")
    first = out / "0.pbin"
    for existing, second in (("error", "set existing to skip to resume"), ("skip", KEPT)):

        def convert(on_progress: Any, existing: Any = existing) -> object:
            return packtok.convert(
                tmp_path / "two", out, to="pbin", existing=existing, on_progress=on_progress
            )

        assert notes_of(convert, at_once) == LOST
        assert notes_of(convert, first.exists).endswith(second)
        shutil.rmtree(out)


def test_interrupted_shuffling_starts_over(large: Path, tmp_path: Path) -> None:
    def shuffle(on_progress: Any) -> object:
        return shuffle_file("jsonl", large, tmp_path / "o.jsonl", seed=1, on_progress=on_progress)

    assert notes_of(shuffle, at_once) == LOST
    assert names(tmp_path) == []


def test_interrupted_import_starts_over(tmp_path: Path) -> None:
    old = tmp_path / "old"
    pickled_mds.write_pickles(old, [pickle.dumps(np.arange(4000))] * 4000)
    assert (
        notes_of(lambda stop: packtok.import_samples(old, tmp_path / "new", on_progress=stop), at_once)
        == LOST
    )
    assert names(tmp_path) == ["old"]


def test_files_from_a_packed_corpus_are_written_by_the_same_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", 1000)
    options: dict[str, Any] = {"to": "cepe-npy", "bos": "<|endoftext|>", "eod": "<|endoftext|>"}

    def interrupt(**_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("packtok._packtok.split_tokens", interrupt)
        with pytest.raises(KeyboardInterrupt) as caught:
            packtok.tokenize(str(corpus), TOKENIZER, tmp_path / "out", **options)
    assert caught.value.__notes__ == [KEPT]
    assert packtok.tokenize(str(corpus), TOKENIZER, tmp_path / "out", **options)["written"] == 1

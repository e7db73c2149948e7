"""Standard input, output and error that are closed, as services start programs, full, or broken pipes."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import forked_cli
import pytest
from command_cases import BASE, CASES, CORPUS, write_files
from command_line import PacktokCli
from processes import PROGRAM, names
from stories import TOKENIZER

NAMES = ("stdin", "stdout", "stderr")
COUNT = ("count", "c.jsonl", "-t", TOKENIZER, "--quiet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, packtok_cli: PacktokCli) -> Path:
    return write_files(tmp_path_factory.mktemp("streams"), packtok_cli)


def close(numbers: Iterable[int]) -> None:
    """Turns this process into one that Python starts with these streams closed."""
    for number in numbers:
        os.close(number)
        setattr(sys, NAMES[number], None)


def run_closed(numbers: tuple[int, ...], *commands: tuple[str, ...]) -> None:
    """Runs commands one after the other, each with these streams closed; exits with the last failure."""
    from packtok.cli import main

    failed: object = None
    for command in commands:
        close(numbers)
        sys.argv = ["packtok", *command]
        try:
            main()
        except SystemExit as exit_:
            failed = exit_.code or failed
        # Files that were opened later did not get the numbers of the streams.
        opened = [os.readlink(f"/proc/self/fd/{number}") for number in numbers]
        assert opened == ["/dev/null"] * len(numbers), command
        if failed:
            Path("failed").write_text(" ".join(command))
    sys.exit(failed)


def closed(
    folder: Path, numbers: tuple[int, ...], *commands: tuple[str, ...]
) -> subprocess.CompletedProcess[str]:
    function = functools.partial(run_closed, numbers, *commands)
    return forked_cli.call(function, cwd=folder, env={**os.environ, **BASE}, timeout_seconds=600)


def test_every_command_works_with_all_streams_closed(folder: Path) -> None:
    commands = [(*name.split(), *map(str, arguments)) for name, (arguments, _) in CASES.items()]
    # A small tokenizer's engine is verified in a tenth of the time.
    verify = commands.index(("tokenizer", "verify", "gpt2", "-c", "c.jsonl"))
    commands[verify] = ("tokenizer", "verify", TOKENIZER, "-c", "c.jsonl")
    done = closed(folder, (0, 1, 2), *commands)
    assert done.returncode == 0, (folder / "failed").read_text()


def test_pack_with_closed_streams_writes_its_files(folder: Path, tmp_path: Path) -> None:
    for numbers in ((0,), (1,), (2,), (0, 1, 2)):
        output = tmp_path / f"{numbers}.pbin"
        done = closed(folder, numbers, ("pack", *CORPUS, "-o", str(output)))
        assert (done.returncode, done.stderr) == (0, "")
        assert output.read_bytes() == (folder / "t.pbin").read_bytes()


def test_remarks_and_errors_do_not_go_to_stdout_if_stderr_is_closed(folder: Path) -> None:
    done = closed(folder, (2,), ("inspect", "./none.pbin", "--json"))
    assert (done.returncode, done.stdout) == (1, "")
    done = closed(folder, (2,), ("inspect", "--nope"))
    assert (done.returncode, done.stdout) == (2, "")
    done = closed(folder, (2,), ("inspect", "t.pbin", "--json"))
    assert done.returncode == 0
    assert json.loads(done.stdout)


def test_errors_are_printed_if_the_other_streams_are_closed(folder: Path) -> None:
    done = closed(folder, (0, 1), ("inspect", "./none.pbin"))
    assert (done.returncode, done.stderr) == (1, "packtok: ./none.pbin: No such file or directory\n")


def test_questions_to_a_closed_input_have_no_answers(folder: Path) -> None:
    done = closed(folder, (0,), ("data", "create-metadata", "--output", "questions.json"))
    assert done.returncode == 2
    assert done.stderr == (
        "packtok: no answer to 'Output format'; give --output-format, or --yes for the defaults\n"
    )


def test_help_and_version_work_with_closed_streams(folder: Path) -> None:
    for arguments in (("--version",), ("--help",), ("pack", "--help")):
        assert closed(folder, (0, 1, 2), arguments).returncode == 0
        assert closed(folder, (0, 2), arguments).stdout != ""


def started(*arguments: object, cwd: Path, **streams: int) -> subprocess.CompletedProcess[str]:
    """Runs Python with these streams; its output is buffered, as it is by default."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=env, text=True, check=False, timeout=300, **streams)


@pytest.mark.parametrize("arguments", [COUNT, ("--version",), ("cat", "t.pbin")])
def test_full_output_is_one_line_and_a_failure(folder: Path, arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = started(*arguments, cwd=folder, stdout=full.fileno(), stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (1, "packtok: standard output: No space left on device\n")


@pytest.mark.parametrize("arguments", [COUNT, ("--help",), ("cat", "t.pbin")])
def test_reader_that_has_ended_is_no_traceback(folder: Path, arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = started(*arguments, cwd=folder, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_work_does_not_end_because_no_one_reads_its_remarks(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open("/dev/full", "wb") as full:
        for name, stream in (("pipe", writing), ("full", full.fileno()), ("read", subprocess.PIPE)):
            # Without a cache, the engine is checked, which prints a remark.
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
            output = tmp_path / f"{name}.pbin"
            pack = ("pack", "-i", "c.jsonl", "-o", output, "-t", TOKENIZER)
            done = started(*pack, cwd=folder, stdout=subprocess.PIPE, stderr=stream)
            assert done.returncode == 0, done.stdout
            assert output.exists()
    os.close(writing)
    assert done.stderr == "packtok: checking the engine, once for this tokenizer\n"


def use_library(folder: str) -> None:
    import packtok

    close((0, 1, 2))
    report = packtok.pack(input="c.jsonl", output=f"{folder}/o.pbin", tokenizer=TOKENIZER)
    assert packtok.count("c.jsonl", tokenizers=[TOKENIZER])["total"]["lines"] == report.documents


def test_library_works_without_streams(folder: Path, tmp_path: Path) -> None:
    function = functools.partial(use_library, str(tmp_path))
    done = forked_cli.call(function, cwd=folder, env=dict(os.environ), timeout_seconds=300)
    assert done.returncode == 0
    assert names(tmp_path) == ["o.pbin", "o.pbin.tokenizer.json"]

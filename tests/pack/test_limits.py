"""Memory and threads that the system refuses: a run succeeds or ends with one line that names the limit.

No document is blamed, no run hangs, no file under a final name is incomplete, and the same command resumes.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import seccomp
from extent import extent
from processes import names, texts

import packtok

# The calls run in a program, because only programs report refusals of Python. The search path of the program
# has the modules of the tests.
PROGRAM = [sys.executable, "-m", "packtok"]
LIMITED_KB = extent(
    range(100_000, 1_000_001, 20_000), (100_000, 260_000, 300_000, 380_000, 420_000, 1_000_000)
)
BY_LIMIT = "this process is limited to {} kB of address space (ulimit -v); raise the limit or lower num_cpus"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns 400 documents, of which about half a megabyte is read by each of two threads."""
    path = tmp_path_factory.mktemp("corpus") / "c.jsonl"
    source = texts(seed=3)
    lines = [json.dumps({"text": " ".join(next(source) for _ in range(3))}) for _ in range(400)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Returns the files of a run without limits."""
    folder = tmp_path_factory.mktemp("whole")
    packtok.pack(**options(corpus, folder))
    return files(folder)


def options(corpus: Path, folder: Path) -> dict[str, Any]:
    return {"input": corpus, "output": folder / "o.pbin", "tokenizer": "gpt2", "num_cpus": 2}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def pack(corpus: Path, folder: Path, limited_kb: int, **environment: str) -> subprocess.CompletedProcess[str]:
    """Packs with so much address space; bad documents are skipped."""
    arguments = ("pack", "-i", corpus, "-o", "o.pbin", "-t", "gpt2", "--num-cpus", 2)
    limit = limited_kb * 1024
    return subprocess.run(
        [*PROGRAM, *map(str, arguments), "--quiet", "--on-bad-document", "skip"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )


@pytest.mark.parametrize("backtrace", extent(["0", "1"], ["1"]))
@pytest.mark.parametrize("limited_kb", LIMITED_KB)
def test_run_without_memory_succeeds_or_names_the_limit(
    tmp_path: Path, corpus: Path, whole: dict[str, bytes], limited_kb: int, backtrace: str
) -> None:
    done = pack(corpus, tmp_path, limited_kb, RUST_BACKTRACE=backtrace)
    if done.returncode == 0:
        assert done.stderr == ""
        assert files(tmp_path) == whole
        return
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("packtok: ")
    assert f"{limited_kb} kB of address space (ulimit -v)" in line
    assert "document" not in line
    assert [name for name in names(tmp_path) if not name.endswith((".partial", ".tmp"))] == []
    packtok.pack(**options(corpus, tmp_path), on_bad_document="skip")
    assert files(tmp_path) == whole


def test_refused_memory_is_reported_in_one_line(tmp_path: Path, corpus: Path) -> None:
    # Which limit lets the threads start and refuses a buffer depends on what Python has mapped before, and on
    # which thread asks first.
    for limited_kb in range(300_000, 420_000, 20_000):
        done = pack(corpus, tmp_path, limited_kb, RUST_BACKTRACE="1")
        (line,) = done.stderr.splitlines()
        if "refused 33554432 bytes" in line:
            break
    assert line == (
        "packtok: out of memory: the system refused 33554432 bytes; " + BY_LIMIT.format(limited_kb)
    )


def test_program_without_memory_to_start_says_how_much_it_needs(tmp_path: Path, corpus: Path) -> None:
    done = pack(corpus, tmp_path, 100_000)
    assert done.stderr == (
        f"packtok: packtok needs at least 256000 kB of address space; {BY_LIMIT.format(100_000)}\n"
    )


MEMORY = """
import resource, packtok
_, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, hard))
try:
    packtok.Permutation(1 << 40, 1, 0).fill(0, 1, 1 << 40)
except MemoryError as error:
    print(error)
"""


def test_array_that_does_not_fit_is_a_memory_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.stdout, done.stderr) == (f"cannot allocate {1 << 40} items at once\n", "")


# Lets no thread start: `clone3` does not exist, and the older call refuses threads.
NO_THREADS = f"""
import errno, sys
sys.path.insert(0, {str(Path(seccomp.__file__).parent)!r})
import seccomp
seccomp.install(seccomp.Failing("clone3", errno.ENOSYS), seccomp.Failing("clone", errno.EAGAIN))
sys.argv[0] = "packtok"
"""


def without_threads(code: str, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", NO_THREADS + code, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.skipif(not seccomp.can_install(), reason="needs filters of system calls")
@pytest.mark.parametrize("command", [("pack", "-o", "o.pbin", "-i"), ("count",)])
def test_refused_threads_of_a_command_are_reported_in_one_line(
    tmp_path: Path, corpus: Path, command: tuple[str, ...]
) -> None:
    code = "from packtok.__main__ import main; main()"
    options = ("-t", "gpt2", "--on-bad-document", "skip")
    done = without_threads(code, *command, corpus, *options, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.splitlines()
    assert re.fullmatch(
        r'packtok: jq pattern "\.text": cannot start a thread with a \d+-byte stack to compile it: '
        r"Resource temporarily unavailable \(os error 11\); the limits are .*\(ulimit -u\).*; raise the "
        "limit or lower num_cpus",
        line,
    )
    assert names(tmp_path) == []


@pytest.mark.skipif(not seccomp.can_install(), reason="needs filters of system calls")
@pytest.mark.parametrize(
    ("call", "what"),
    [
        (
            'packtok.Tokenizer.builtin("gpt2").encode_batch(["a b"] * 9999, threads=2)',
            "cannot start the worker threads; ",
        ),
        (
            'packtok._packtok.object_bytes("http://127.0.0.1:9/absent")',
            "cannot start the thread that talks to the store; ",
        ),
        (
            'shuffle_file("jsonl", sys.argv[1], "shuffled", seed=1, memory=(0, 4096))',
            "cannot start the thread that writes and reads the temporary file; ",
        ),
    ],
)
def test_refused_threads_are_an_error_of_packtok(tmp_path: Path, corpus: Path, call: str, what: str) -> None:
    code = f"""
import packtok
from packtok.commands.shuffle import shuffle_file
try:
    {call}
except packtok.PacktokError as error:
    print(error)
"""
    done = without_threads(code, corpus, cwd=tmp_path)
    assert done.stderr == ""
    assert done.stdout.startswith(what)
    assert names(tmp_path) == []
    assert "(ulimit -u)" in done.stdout
    assert done.stdout.count("os error") == 1

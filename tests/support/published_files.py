"""Commands that publish, lock, sync and map files, run in one process in which system calls fail."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import resource
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import seccomp
from stories import TOKENIZER

FLAGS = ("-t", TOKENIZER, "--num-cpus", "1", "--set", "span_bytes=100000")


@dataclass(frozen=True)
class Done:
    """The result of a command in this process."""

    code: object
    out: str
    err: str


def packtok(*arguments: object) -> Done:
    """Runs ``packtok`` in this process."""
    from packtok.cli import main

    sys.argv = ["packtok", *map(str, arguments)]
    code: object = 0
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as exit_:
            code = exit_.code or 0
    return Done(code, out.getvalue(), err.getvalue())


def succeed(*arguments: object) -> str:
    """Runs a command that must succeed, and returns its output."""
    done = packtok(*arguments)
    assert done.code == 0, (arguments, done)
    return done.out


def crash(point: str, *arguments: object) -> None:
    """Runs a command in a child process that dies at a crash point."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.environ["PACKTOK_CRASH"] = point
        packtok(*arguments)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGABRT, point


def all_work(*failing: seccomp.Failing) -> None:
    """Writes, in the current folder, every kind of file from ``c.jsonl``: the same whatever fails."""
    seccomp.install(*failing)
    _packed()
    _shards()
    _token_files()
    _plans()


def _packed() -> None:
    pack = ("pack", "-i", "c.jsonl", "-o", "o.pbin", *FLAGS)
    # This part runs before any command starts threads, which a fork would not copy.
    crash("span noted:1", *pack)
    assert Path("o.pbin.partial").is_dir()
    assert "\nresumed " in succeed(*pack)
    succeed(*pack, "--existing", "skip")
    done = packtok(*pack, "-q")
    assert (done.code, done.err.count("\n")) == (1, 1), done
    assert done.err.startswith("packtok: o.pbin: the output already exists; "), done
    whole = Path("o.pbin").read_bytes()
    succeed(*pack, "--existing", "replace")
    assert Path("o.pbin").read_bytes() == whole
    succeed("verify", "o.pbin")


def _shards() -> None:
    shard = ("pack", "-i", "c.jsonl", "-o", "shards", *FLAGS)
    succeed("plan", "-i", "c.jsonl", "-o", "shards", "-t", TOKENIZER, "--shards", 2, *FLAGS[4:])
    for k in range(2):
        succeed(*shard, "--shard", k)
    succeed(*shard, "--shard", 0)
    succeed("join", "shards", "-o", "joined.pbin")
    assert Path("joined.pbin").read_bytes() == Path("o.pbin").read_bytes()


def _token_files() -> None:
    succeed("merge", "o.pbin", "joined.pbin", "merged.pbin")
    succeed("manifest", "o.pbin", "joined.pbin", "-o", "all.jsonl")
    succeed("index", "c.jsonl", "--index-path", "c.idx")
    succeed("pack", "-i", "c.jsonl", "--set", "index_path=c.idx", "-o", "indexed.pbin", *FLAGS)


def _plans() -> None:
    from packtok._packtok import Blocks, find_or_plan, find_or_split

    files = Blocks(["merged.pbin"], packing="whole")
    for _ in range(2):
        plan = find_or_plan(files, planner="best_fit", block_size=64, folders=["plans"])
        split = find_or_split(files, fraction=0.1, seed=1, folders=["plans"])
    planned = Blocks(["merged.pbin"], packing="planned", plan_path=plan)
    assert len(planned) > 0, (plan, split)
    assert sum(len(planned[i]) for i in range(len(planned))) == sum(len(files[i]) for i in range(len(files)))


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yields the name and content of every file in a folder; no content of shards, which name the folder."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file():
            yield str(name), b"" if name.parts[0] == "shards" else path.read_bytes()


def one_command(arguments: tuple[str, ...], *failing: seccomp.Failing) -> None:
    """Runs ``packtok`` to its end, while system calls fail."""
    from packtok.cli import main

    seccomp.install(*failing)
    sys.argv = ["packtok", *arguments]
    main()


def crash_after_linking(*arguments: str) -> None:
    """Runs ``packtok`` where links publish files, and kills it after the first link."""
    seccomp.install(seccomp.Failing("renameat2", errno.EINVAL))
    crash("file linked:0", *arguments)

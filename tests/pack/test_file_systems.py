"""File systems that lack locks, links, renames that never replace, shared mappings or syncing.

System calls of a real process fail as they do there (`seccomp.py`). packtok has a fallback for everything
that a file system lacks, and the files are the same; a failure of the disk stays an error.
"""

from __future__ import annotations

import errno
import functools
import os
import subprocess
import sys
from pathlib import Path

import forked_cli
import published_files
import pytest
import stories
from command_line import PacktokCli
from processes import SLOWER_FIELD, names, wait_until_packing
from seccomp import Failing

NUM_STORIES = 4000
PACK = ("pack", "-i", "c.jsonl", "-o", "o.pbin", *published_files.FLAGS, "-q")
# No one waits for this command to finish, which would also take long with the release wheel.
SLOW = ("--field", SLOWER_FIELD.replace("(4000)", "(40000)"))
KEPT = "; finished work is kept next to the output; run the same command again to resume"
NO_LINKS = Failing("renameat2", errno.EINVAL)
LACKING = [
    [Failing("flock", errno.ENOLCK)],
    [Failing("flock", errno.EINVAL)],
    [Failing("fcntl", errno.ENOLCK)],
    [Failing("fcntl", errno.EINVAL)],
    [Failing("renameat2", errno.EINVAL)],
    [Failing("renameat2", errno.ENOSYS)],
    [NO_LINKS, Failing("linkat", errno.EPERM)],
    [NO_LINKS, Failing("linkat", errno.EOPNOTSUPP)],
    [Failing("statx", errno.ENOSYS)],
    [Failing("statx", errno.EPERM)],
    [Failing("mmap", errno.ENODEV)],
    [Failing("mmap", errno.EINVAL)],
    [Failing("fsync", errno.EINVAL)],
    [Failing("fsync", errno.EOPNOTSUPP)],
]
# A file system in user space that supports none of these.
NOTHING = [
    Failing("flock", errno.ENOSYS),
    Failing("fcntl", errno.ENOSYS),
    NO_LINKS,
    Failing("linkat", errno.ENOSYS),
    Failing("mmap", errno.ENODEV),
    Failing("fsync", errno.ENOSYS),
    Failing("copy_file_range", errno.ENOSYS),
]


def work(folder: Path, *failing: Failing) -> dict[str, bytes]:
    """Runs all the work in an empty folder and returns its files."""
    stories.main(folder / "c.jsonl", stories=NUM_STORIES, seed=5)
    function = functools.partial(published_files.all_work, *failing)
    # A process that has used statx takes it for granted from then on.
    is_forked = all(failure.call != "statx" for failure in failing)
    done = forked_cli.call(
        function, cwd=folder, env=dict(os.environ), timeout_seconds=300, is_forked=is_forked
    )
    assert done.returncode == 0, done.stderr
    return dict(published_files.files(folder))


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Returns the files of a run in which nothing fails."""
    return work(tmp_path_factory.mktemp("expected"))


@pytest.mark.parametrize(
    "failing", [*LACKING, NOTHING], ids=lambda failing: str(failing[-1]) if len(failing) < 3 else "all"
)
def test_missing_operations_change_no_file(
    failing: list[Failing], expected: dict[str, bytes], tmp_path: Path
) -> None:
    assert work(tmp_path, *failing) == expected


def run(folder: Path, arguments: tuple[str, ...], *failing: Failing) -> subprocess.CompletedProcess[str]:
    function = functools.partial(published_files.one_command, arguments, *failing)
    return forked_cli.call(function, cwd=folder, env=dict(os.environ), timeout_seconds=300)


@pytest.mark.parametrize(
    ("path", "failing"),
    [
        ("o.pbin.partial", [Failing("flock", errno.EIO)]),
        ("o.pbin", [Failing("fsync", errno.EIO)]),
        ("o.pbin", [Failing("fsync", errno.ENOSPC)]),
        ("o.pbin", [Failing("renameat2", errno.EDQUOT)]),
        ("o.pbin", [Failing("renameat2", errno.ENOSPC)]),
        ("o.pbin", [NO_LINKS, Failing("linkat", errno.EIO)]),
        ("o.pbin", [NO_LINKS, Failing("linkat", errno.EDQUOT)]),
    ],
    ids=lambda value: str(value[-1]) if isinstance(value, list) else "",
)
def test_failures_of_the_disk_stay_errors(
    path: str, failing: list[Failing], expected: dict[str, bytes], tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    stories.main(tmp_path / "c.jsonl", stories=NUM_STORIES, seed=5)
    done = run(tmp_path, PACK, *failing)
    reason = os.strerror(failing[-1].errno)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.removesuffix(KEPT) == f"packtok: {path}: {reason}"
    assert not (tmp_path / "o.pbin").exists()
    packtok_cli(*PACK, cwd=tmp_path)
    assert (tmp_path / "o.pbin").read_bytes() == expected["o.pbin"]


@pytest.mark.parametrize("existing", ["error", "replace"])
def test_run_killed_between_link_and_removal_is_complete(
    existing: str, expected: dict[str, bytes], tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    stories.main(tmp_path / "c.jsonl", stories=NUM_STORIES, seed=5)
    function = functools.partial(published_files.crash_after_linking, *PACK)
    done = forked_cli.call(function, cwd=tmp_path, env=dict(os.environ), timeout_seconds=300)
    assert done.returncode == 0, done.stderr
    output = tmp_path / "o.pbin"
    assert output.stat().st_nlink == 2
    linked = output.open("rb")
    packtok_cli(*PACK, "--existing", existing, cwd=tmp_path)
    # Nothing was written into the published file, which others may have open.
    assert linked.read() == output.read_bytes() == expected["o.pbin"]
    assert output.stat().st_nlink == 1
    assert names(tmp_path) == ["c.jsonl", "o.pbin", "o.pbin.tokenizer.json"]


def test_without_locks_an_output_has_one_writer_and_its_end_frees_it(
    expected: dict[str, bytes], tmp_path: Path
) -> None:
    stories.main(tmp_path / "c.jsonl", stories=NUM_STORIES, seed=5)
    no_locks = Failing("flock", errno.ENOLCK)
    call = f"one_command({PACK + SLOW!r}, seccomp.{no_locks!r})"
    program = f"import published_files, seccomp; published_files.{call}"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    first = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, env=env)
    assert wait_until_packing(first, tmp_path)
    done = run(tmp_path, PACK + SLOW, no_locks)
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        f"packtok: o.pbin: process {first.pid} on {os.uname().nodename} is writing this output; wait for it "
        "to finish, or stop it and run this command again\n",
    )
    first.kill()
    first.wait()
    done = run(tmp_path, (*PACK, "--restart"), no_locks)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "o.pbin").read_bytes() == expected["o.pbin"]

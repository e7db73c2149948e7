"""The folder of a run: locked by the one process that writes to it, and resumed if it contains a run."""

import errno
import fcntl
import json
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import IO, NamedTuple

import checkpoint
from settings import Settings, SettingsError

LOCK_NAME = "run.lock"
_CANNOT_LOCK = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}


class Claim(NamedTuple):
    """A run folder that this process may write to."""

    last_step: int
    """The step of the last checkpoint; 0 if there is none."""
    lock: IO[str]
    """Locked while it is open; the kernel releases the lock whenever the process dies."""


def claim(settings: Settings, *, resume: bool) -> Claim:
    """Creates and locks the output folder, and finds the checkpoint to resume from.

    Raises:
        SettingsError: If another process writes to the folder, or if it has a run and ``resume`` is false.
        OSError: If the folder or a file in it cannot be written.
    """
    folder = Path(settings.output.folder)
    folder.mkdir(parents=True, exist_ok=True)
    # Lock first: nothing may be read or changed while another process writes.
    lock = _lock(folder)
    steps = checkpoint.steps(folder)
    if not resume and (steps or (folder / "losses.csv").exists()):
        raise SettingsError(f"{folder}: there is a run already; add --resume, or name another output.folder")
    if not steps:
        shutil.copyfile(f"{settings.data.train}.tokenizer.json", folder / "tokenizer.json")
    return Claim(steps[-1] if steps else 0, lock)


def _lock(folder: Path) -> IO[str]:
    """Locks ``folder`` and records the holder in the lock file.

    The lock is a POSIX record lock. Unlike a lock of flock(2), it belongs to this process alone, so that a
    forked child which outlives the process does not keep the folder locked.
    """
    lock = (folder / LOCK_NAME).open("a+", encoding="utf-8")
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        lock.seek(0)
        raise SettingsError(
            f"{folder}: in use by {_holder(lock.read())}; wait until it ends, kill it, "
            "or name another output.folder"
        ) from None
    except OSError as error:
        if error.errno not in _CANNOT_LOCK:
            raise
        warning = "this file system has no locks, so a second run in this folder would not be noticed"
        print(f"train.py: warning: {folder}: {warning}", file=sys.stderr)
    lock.truncate(0)
    rank, num_ranks = os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1")
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "rank": f"{rank} of {num_ranks}"}
    launcher = {"launcher_pid": os.getppid()} if "TORCHELASTIC_RUN_ID" in os.environ else {}
    json.dump(holder | launcher, lock)
    lock.flush()
    return lock


def _holder(content: str) -> str:
    """Returns who holds the lock, according to the lock file."""
    try:
        owner = json.loads(content)
        holder = f"process {owner['pid']} on {owner['host']} (rank {owner['rank']}"
    except (ValueError, KeyError):
        # The holder has locked the file but not yet written to it.
        return "another process"
    return holder + (f", launched by process {owner['launcher_pid']})" if "launcher_pid" in owner else ")")

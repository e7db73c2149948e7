"""Makes system calls of this process fail with a given error, as on a file system that lacks them.

A filter in BPF (seccomp(2), struct seccomp_data) answers the calls. It needs no privileges and no library,
stays until the process ends, and is inherited by its children.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import struct
from dataclasses import dataclass

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_RET_ALLOW, _RET_ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _AND, _EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16

# The number of the architecture, and those of its system calls.
_ARCHITECTURES = {
    "x86_64": (
        0xC000003E,
        {
            "mmap": 9,
            "clone": 56,
            "clone3": 435,
            "fcntl": 72,
            "flock": 73,
            "fsync": 74,
            "linkat": 265,
            "renameat2": 316,
        }
        | {"copy_file_range": 326, "statx": 332},
    ),
    "aarch64": (
        0xC00000B7,
        {
            "clone": 220,
            "clone3": 435,
            "fcntl": 25,
            "flock": 32,
            "linkat": 37,
            "fsync": 82,
            "mmap": 222,
            "renameat2": 276,
        }
        | {"copy_file_range": 285, "statx": 291},
    ),
}


@dataclass(frozen=True)
class _Argument:
    """Calls fail only if this argument, with this mask, has one of these values."""

    index: int
    mask: int
    values: tuple[int, ...]


_F_OFD_LOCKS = (36, 37, 38)
_MAP_SHARED, _MAP_ANONYMOUS, _RENAME_NOREPLACE = 1, 0x20, 1
_CLONE_THREAD = 0x10000
_ARGUMENTS = {
    # The call creates threads, not processes.
    "clone": _Argument(0, _CLONE_THREAD, (_CLONE_THREAD,)),
    "fcntl": _Argument(1, 0xFFFFFFFF, (fcntl.F_GETLK, fcntl.F_SETLK, fcntl.F_SETLKW, *_F_OFD_LOCKS)),
    # The call shares memory of a file, not memory of processes.
    "mmap": _Argument(3, _MAP_SHARED | _MAP_ANONYMOUS, (_MAP_SHARED,)),
    # Only calls with the flag fail, because `rename` uses this call on some architectures.
    "renameat2": _Argument(4, _RENAME_NOREPLACE, (_RENAME_NOREPLACE,)),
}


@dataclass(frozen=True)
class Failing:
    """A system call that fails: `fcntl` when it locks, `mmap` when it shares a file, the others always."""

    call: str
    errno: int

    def __str__(self) -> str:
        return f"{self.call} {os.strerror(self.errno)}"


def can_install() -> bool:
    """Returns whether this machine has such filters."""
    return os.uname().sysname == "Linux" and platform.machine() in _ARCHITECTURES


def install(*failing: Failing) -> None:
    """Makes these calls fail from now on, in this process and those that it starts.

    Raises:
        OSError: If the system has no such filters.
    """
    architecture, numbers = _ARCHITECTURES[platform.machine()]
    program = [(_LOAD, 0, 0, _ARCHITECTURE_OFFSET), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _RET_ALLOW)]
    for failure in failing:
        program += _answer(failure, numbers[failure.call])
    program.append((_RETURN, 0, 0, _RET_ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    filter_program = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, None)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, filter_program)


def _answer(failing: Failing, number: int) -> list[tuple[int, int, int, int]]:
    """Returns the instructions that answer one call, and otherwise continue after them."""
    fail = (_RETURN, 0, 0, _RET_ERRNO | failing.errno)
    argument = _ARGUMENTS.get(failing.call)
    checks: list[tuple[int, int, int, int]] = []
    if argument is not None:
        low_half = _ARGUMENTS_OFFSET + 8 * argument.index
        checks += [(_LOAD, 0, 0, low_half), (_AND, 0, 0, argument.mask)]
        num = len(argument.values)
        # A match jumps to the last instruction; the last comparison jumps over it if it does not match.
        checks += [
            (_EQUAL, num - 1 - i, 1 if i == num - 1 else 0, value) for i, value in enumerate(argument.values)
        ]
    return [(_LOAD, 0, 0, _NUMBER_OFFSET), (_EQUAL, 0, len(checks) + 1, number), *checks, fail]


def _prctl(option: int, value: int, pointer: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), pointer, ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

"""Memory and threads that the system refuses, in the `packtok` program: one line that names the limit.

The compiled module reports refused memory itself. This is for Python and the libraries it imports.
"""

import errno
import os
import resource
import sys
from types import TracebackType

from packtok import interrupts

# Importing NumPy and the compiled module takes about 200 MB of address space.
LEAST_KB = 256_000
# Texts by which the dynamic loader, the system and Python report that there is no memory, or no thread.
_NO_MEMORY = ("failed to map segment", "cannot allocate memory")
_NO_THREAD = ("can't start new thread", "cannot start new thread")


def report_if_program() -> None:
    """Ends the process, if it is the program, when it cannot start within its limit; reports refusals."""
    if not interrupts.is_program():
        return
    sys.excepthook = _report
    # packtok does not use NumPy's library for matrices. At NumPy's import, that library would start a thread
    # and reserve memory for each core, and end the process if it cannot.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    limited_kb = _address_space_kb()
    if limited_kb is not None and limited_kb < LEAST_KB:
        _end(f"packtok needs at least {LEAST_KB} kB of address space; {memory_limit()}")


def refusal(error: BaseException) -> str | None:
    """Returns the line for an error because of refused memory or threads, `None` for others."""
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and cause not in causes:
        causes.append(cause)
    texts = [str(cause).lower() for cause in causes]
    if any(phrase in text for phrase in _NO_THREAD for text in texts):
        return f"cannot start a thread; {thread_limits()}"
    if any(isinstance(cause, MemoryError) for cause in causes) or any(
        phrase in text for phrase in _NO_MEMORY for text in texts
    ):
        return f"out of memory; {memory_limit()}"
    return None


def with_limit(message: str, error: BaseException) -> str:
    """Returns the message of an error, with the memory limit if the system refused memory."""
    is_refusal = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return f"{message}; {memory_limit()}" if is_refusal else message


def memory_limit() -> str:
    """Returns the limit of memory of this process, and the remedy."""
    limited_kb = _address_space_kb()
    if limited_kb is None:
        return (
            "this process has no limit (ulimit -v), so the system has no more; stop other programs or lower "
            "num_cpus"
        )
    return (
        f"this process is limited to {limited_kb} kB of address space (ulimit -v); "
        "raise the limit or lower num_cpus"
    )


def thread_limits() -> str:
    """Returns the limit of threads of this user, and the remedy."""
    most, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    limit = "unlimited" if most == resource.RLIM_INFINITY else most
    return (
        f"this user may have {limit} processes and threads (ulimit -u), and a control group may have a limit "
        "(pids.max); raise the limit or lower num_cpus"
    )


def _address_space_kb() -> int | None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit // 1024


def _report(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    line = refusal(error)
    if line is None:
        sys.__excepthook__(kind, error, traceback)
    else:
        _write(line)


def _end(line: str) -> None:
    _write(line)
    os._exit(1)


def _write(line: str) -> None:
    os.write(2, f"packtok: {line}\n".encode())

"""The user's functions, called with lists of samples by the core.

Each class returns the results of the function and, if it raised, its exception, which follows them.
"""

from __future__ import annotations

import functools
import hashlib
import io
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

from packtok.integers import checked_integer
from packtok.stream import worker
from packtok.stream.batching import Batching, Rows
from packtok.stream.worker import Key, WithGenerator

__all__ = [
    "Calls",
    "check_options",
    "described",
    "described_function",
    "filtered",
    "identity_of",
    "mapped",
    "mapped_or_dropped",
    "name_of",
]

Results = tuple[list[Any], BaseException | None]
# Time for the other processes to end after one was killed.
_ENDING_SECONDS = 60
_UNGUARDED = (
    "the worker processes ended while they started, with the error that is printed above; they import the "
    'program, so it must start streams only after `if __name__ == "__main__":`'
)
_OPTIONS = ("rng", "seed", "version", "keep_outputs")


class Calls:
    """Calls a function with each sample; ``keep`` makes a result of the sample and the returned value.

    With ``num_processes``, that many processes call the function, which must pickle. With ``seed``, its
    second argument is a generator of random numbers.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        keep: Callable[[Any, Any], Any],
        num_processes: int = 0,
        seed: int | None = None,
        *,
        keeps_outputs: bool = False,
        batching: Batching,
    ) -> None:
        self._function = function
        self._keep = keep
        self._num_processes = num_processes
        self._seed = seed
        self.keeps_outputs = keeps_outputs
        self._batching = batching
        self._processes: Processes | None = None
        # Guards the start of processes, because several threads call at once.
        self._starting = threading.Lock()
        self._is_closed = False

    def __call__(self, samples: Sequence[Any], keys: Sequence[Key]) -> Results:
        """Returns a result for each sample, ``None`` to drop it, and the exception after them."""
        results: list[Any] = []
        try:
            called = [self._sample(sample) for sample in samples]
            values = self._values(called, keys)
            for sample in called:
                results.append(self._keep(sample, _next_of(values)))
        except BrokenExecutor as error:
            reason = str(error) if self._processes is None else self._processes.reason()
            return results, type(error)(f"{reason}; start the stream again from its last state")
        except BaseException as error:
            return results, error
        return results, None

    def _sample(self, sample: Any) -> Any:
        if isinstance(sample, Rows):
            return self._batching.batch_of(sample)
        return sample

    def _values(self, samples: Sequence[Any], keys: Sequence[Key]) -> Iterator[Any]:
        function, arguments = self._function, [samples]
        if self._seed is not None:
            function, arguments = WithGenerator(function, self._seed), [samples, keys]
        if self._num_processes == 0:
            return map(function, *arguments)
        with self._starting:
            if self._is_closed:
                raise RuntimeError("the stream is closed")
            if self._processes is None:
                self._processes = Processes(self._num_processes, function, name_of(self._function))
        return self._processes.map(*arguments)

    def new(self) -> Calls:
        """Returns a copy for another iterator, which has no processes yet."""
        own = (self._function, self._keep, self._num_processes, self._seed)
        return Calls(*own, keeps_outputs=self.keeps_outputs, batching=self._batching)

    def pack(self, samples: Sequence[Any]) -> bytes:
        """Returns the bytes of outputs, for a state."""
        memory = io.BytesIO()
        torch.save(list(samples), memory)
        return memory.getvalue()

    def unpack(self, data: bytes) -> list[Any]:
        """Returns the outputs of ``pack``: tensors and values that JSON has. Nothing in them is executed."""
        samples: list[Any] = torch.load(io.BytesIO(data), weights_only=True)
        return samples

    def close(self) -> None:
        """Ends the processes."""
        with self._starting:
            self._is_closed = True
        if self._processes is not None:
            self._processes.close()


class Processes:
    """Processes that call a function. They end with the current process, even if it is killed."""

    def __init__(self, count: int, function: Callable[..., Any], name: str) -> None:
        """Starts no process yet."""
        context = get_context("forkserver")
        self._started, started = context.Pipe(duplex=False)
        arguments = (worker.packed(function, name), name, started)
        self._executor = ProcessPoolExecutor(
            count, mp_context=context, initializer=worker.start, initargs=arguments
        )
        # The executor forgets its processes when it breaks, but the reason is in their exit codes.
        processes = self._executor._processes
        self._all = {} if processes is None else processes

    def map(self, *arguments: Sequence[Any]) -> Iterator[Any]:
        """Returns the result of the function for each sample, as an iterator.

        Raises:
            BrokenProcessPool: If processes cannot be started.
        """
        try:
            return self._executor.map(worker.call, *arguments)
        except (EOFError, ConnectionError) as error:
            # The server that forks processes has ended, because it imports the program too.
            raise BrokenProcessPool(_UNGUARDED) from error

    def reason(self) -> str:
        """Returns why the executor is broken."""
        manager: Any = self._executor._executor_manager_thread
        if manager is not None:
            # The thread ends the other processes, and then waits for all of them.
            manager.join(_ENDING_SECONDS)
        codes = {process.exitcode for process in list(self._all.values())}
        if signals := sorted(-code for code in codes if code is not None and code < 0):
            # The executor terminates the other processes with SIGTERM.
            killer = next((number for number in signals if number != signal.SIGTERM), signal.SIGTERM)
            memory = ", perhaps because memory ran out" if killer == signal.SIGKILL else ""
            return f"a worker process was killed by {signal.Signals(killer).name}{memory}"
        if not self._started.poll():
            return _UNGUARDED
        listed = ", ".join(str(code) for code in sorted(code for code in codes if code))
        return f"a worker process ended by itself, with exit code {listed or 0}"

    def close(self) -> None:
        """Ends the processes. The program must not wait for a function that is still running."""
        processes = list(self._all.values())
        self._executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


def _next_of(values: Iterator[Any]) -> Any:
    """Returns the next of endless values; a StopIteration of a function must not look like their end."""
    try:
        return next(values)
    except StopIteration as error:
        raise RuntimeError("a function of the stream raised StopIteration") from error


def check_options(options: Mapping[str, Any]) -> None:
    """Checks the options of a function.

    Raises:
        TypeError: If one is unknown.
        ValueError: If the seed is negative.
    """
    if unknown := sorted(set(options) - set(_OPTIONS)):
        raise TypeError(f"unexpected argument {unknown[0]!r}; options are {', '.join(_OPTIONS)}")
    checked_integer("seed", options.get("seed", 0))


def mapped(_: Any, value: Any) -> Any:
    """Returns the value of the function, which must be a sample."""
    if value is None:
        raise ValueError("the function of map returned None; return a sample, or use filter_map to drop it")
    return value


def filtered(sample: Any, value: Any) -> Any:
    """Returns the sample if the value of the function is true."""
    return sample if value else None


def mapped_or_dropped(_: Any, value: Any) -> Any:
    """Returns the value of the function; ``None`` drops the sample."""
    return value


def name_of(function: Any) -> str:
    """Returns the name by which a state records a function."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{getattr(function, '__module__', None) or type(function).__module__}.{name}"


def identity_of(function: Any) -> dict[str, Any]:
    """Returns the record of a function for a state: its name, and its arguments or attributes, if any."""
    if hasattr(function, "stream_identity"):
        identity: dict[str, Any] = function.stream_identity()
        return identity
    name, described = name_of(function), described_function(function)
    return {"function": name} if described == name else {"function": name, "arguments": described}


def described_function(function: Any, *, contents: bool = False) -> str:
    """Returns the name of a function with the values that it was made of; they are equal in every run.

    For a partial function, these are its arguments; for another callable object, its attributes: numbers
    and texts, and with ``contents`` also lists and dicts, which may be caches. Variables that a function
    captured are not included.
    """
    if isinstance(function, functools.partial):
        arguments = [described(value, contents=True) for value in function.args]
        arguments += [
            f"{name}={described(value, contents=True)}" for name, value in sorted(function.keywords.items())
        ]
        return _shortened(f"{described_function(function.func)}({', '.join(arguments)})")
    is_object = not isinstance(function, type) and not hasattr(function, "__qualname__")
    if not is_object or not hasattr(function, "__dict__"):
        return name_of(function)
    attributes = [
        f"{name}={described(value, contents=contents)}"
        for name, value in sorted(vars(function).items())
        if contents or isinstance(value, _PLAIN)
    ]
    return _shortened(f"{name_of(function)}({', '.join(attributes)})")


_PLAIN = (bool, int, float, complex, str, bytes, tuple, frozenset, type(None))
_MAX_SHOWN = 200


def described(value: Any, *, contents: bool) -> str:
    """Returns a value as text that is equal in every run; a long text is cut and ends with a digest.

    With ``contents``, lists, dicts, arrays and tensors are shown too. Other objects are shown by their type.
    """
    return _shortened(_text_of(value, contents=contents))


def _text_of(value: Any, *, contents: bool) -> str:
    if isinstance(value, bool | int | float | complex | str | bytes | None):
        return repr(value)
    if isinstance(value, tuple | list) and (contents or isinstance(value, tuple)):
        inner = ", ".join(_text_of(item, contents=contents) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, set | frozenset) and (contents or isinstance(value, frozenset)):
        return "{" + ", ".join(sorted(_text_of(item, contents=contents) for item in value)) + "}"
    if isinstance(value, Mapping) and contents:
        pairs = (
            (_text_of(name, contents=True), _text_of(item, contents=True)) for name, item in value.items()
        )
        return "{" + ", ".join(f"{name}: {text}" for name, text in pairs) + "}"
    if isinstance(value, torch.Tensor) and contents and value.device.type == "cpu":
        value = (value.float() if value.dtype == torch.bfloat16 else value).detach().numpy()
    if isinstance(value, np.ndarray) and contents and not value.dtype.hasobject:
        return f"array({value.dtype}, {value.shape}, {_digest(value.tobytes())})"
    if isinstance(value, functools.partial) or hasattr(value, "__qualname__"):
        return described_function(value)
    return name_of(type(value))


def _shortened(text: str) -> str:
    if len(text) <= _MAX_SHOWN:
        return text
    return f"{text[: _MAX_SHOWN // 2]}… ({_digest(text.encode())})"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]

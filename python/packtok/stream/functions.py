"""The user's functions, called with lists of samples by the core.

Each class has the function's results and, if it raised, the exception that follows them.
"""

from __future__ import annotations

import io
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

import torch

from packtok.integers import checked_integer
from packtok.stream import worker
from packtok.stream.batching import Batching, Rows
from packtok.stream.generators import Key, WithGenerator

__all__ = ["Calls", "check_options", "filtered", "mapped", "mapped_or_dropped", "name_of"]

Results = tuple[list[Any], BaseException | None]
# How long the other processes may take to end when one was killed.
_ENDING_SECONDS = 60
_UNGUARDED = (
    "the worker processes ended while they started, with the error that is printed above; they import the "
    'program, so it must start streams only after `if __name__ == "__main__":`'
)
_OPTIONS = ("rng", "seed", "version", "keep_outputs")


class Calls:
    """Calls a function with each sample; ``keep`` makes a result of the sample and the returned value.

    With ``num_processes``, it is called in that many processes, to which it must pickle. With ``seed``, its
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
        # Several threads call at once.
        self._starting = threading.Lock()
        self._is_closed = False

    def __call__(self, samples: Sequence[Any], keys: Sequence[Key]) -> Results:
        """Returns a result for each sample, ``None`` to drop it, and the exception after them."""
        results: list[Any] = []
        try:
            given = [self._sample(sample) for sample in samples]
            values = self._values(given, keys)
            for sample in given:
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
        function, given = self._function, [samples]
        if self._seed is not None:
            function, given = WithGenerator(function, self._seed), [samples, keys]
        if self._num_processes == 0:
            return map(function, *given)
        with self._starting:
            if self._is_closed:
                raise RuntimeError("the stream is closed")
            if self._processes is None:
                self._processes = Processes(self._num_processes, function, name_of(self._function))
        return self._processes.map(*given)

    def new(self) -> Calls:
        """Returns one for another iterator, without processes of its own yet."""
        own = (self._function, self._keep, self._num_processes, self._seed)
        return Calls(*own, keeps_outputs=self.keeps_outputs, batching=self._batching)

    def pack(self, samples: Sequence[Any]) -> bytes:
        """Returns the bytes of outputs, for a state."""
        memory = io.BytesIO()
        torch.save(list(samples), memory)
        return memory.getvalue()

    def unpack(self, data: bytes) -> list[Any]:
        """Returns the outputs of ``pack``: tensors and what JSON has. Nothing in them is executed."""
        found: list[Any] = torch.load(io.BytesIO(data), weights_only=True)
        return found

    def close(self) -> None:
        """Ends the processes."""
        with self._starting:
            self._is_closed = True
        if self._processes is not None:
            self._processes.close()


class Processes:
    """Processes that call a function. They end with this one, also if it is killed."""

    def __init__(self, count: int, function: Callable[..., Any], name: str) -> None:
        """Starts no process yet."""
        context = get_context("forkserver")
        self._started, started = context.Pipe(duplex=False)
        given = (worker.packed(function, name), name, started)
        self._executor = ProcessPoolExecutor(
            count, mp_context=context, initializer=worker.start, initargs=given
        )
        # The executor forgets them when it breaks, and the reason is in their exit codes.
        processes = self._executor._processes
        self._all = {} if processes is None else processes

    def map(self, *given: Sequence[Any]) -> Iterator[Any]:
        """Returns what the function returns for each sample, as an iterator.

        Raises:
            BrokenProcessPool: If processes cannot be started.
        """
        try:
            return self._executor.map(worker.call, *given)
        except (EOFError, ConnectionError) as error:
            # The server that starts them has ended, because it imports the program, too.
            raise BrokenProcessPool(_UNGUARDED) from error

    def reason(self) -> str:
        """Returns why the executor is broken."""
        manager: Any = self._executor._executor_manager_thread
        if manager is not None:
            # It ends the other processes and then waits for all of them.
            manager.join(_ENDING_SECONDS)
        codes = {process.exitcode for process in list(self._all.values())}
        if signals := sorted(-code for code in codes if code is not None and code < 0):
            # The others were terminated.
            killer = next((one for one in signals if one != signal.SIGTERM), signal.SIGTERM)
            memory = ", perhaps because memory ran out" if killer == signal.SIGKILL else ""
            return f"a worker process was killed by {signal.Signals(killer).name}{memory}"
        if not self._started.poll():
            return _UNGUARDED
        shown = ", ".join(str(code) for code in sorted(code for code in codes if code))
        return f"a worker process ended by itself, with exit code {shown or 0}"

    def close(self) -> None:
        """Ends them. The program must not wait for a function that is still running."""
        processes = list(self._all.values())
        self._executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


def _next_of(values: Iterator[Any]) -> Any:
    """The next of values that do not end; a function must not look like their end."""
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
    """The returned value, which must be a sample."""
    if value is None:
        raise ValueError("the function of map returned None; return a sample, or use filter_map to drop it")
    return value


def filtered(sample: Any, value: Any) -> Any:
    """The sample, if the function returned something true."""
    return sample if value else None


def mapped_or_dropped(_: Any, value: Any) -> Any:
    """The returned value, or nothing if it is ``None``."""
    return value


def name_of(function: Any) -> str:
    """Returns the name by which a state records a function."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{getattr(function, '__module__', None) or type(function).__module__}.{name}"

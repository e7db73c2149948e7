"""The user's functions, called with lists of samples by the core.

Each class has the function's results and, if it raised, the exception that follows them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from packtok.stream.tokens import tensors

__all__ = ["Calls", "filtered", "mapped", "mapped_or_dropped", "name_of"]

Results = tuple[list[Any], BaseException | None]


class Calls:
    """Calls a function with each sample; ``keep`` makes a result of the sample and the returned value.

    With ``num_processes``, it is called in that many processes, to which it must pickle.
    """

    def __init__(
        self, function: Callable[[Any], Any], keep: Callable[[Any, Any], Any], num_processes: int = 0
    ) -> None:
        self._function = function
        self._keep = keep
        self._num_processes = num_processes
        self._executor: Executor | None = None

    def __call__(self, samples: Sequence[Any]) -> Results:
        """Returns a result for each sample, ``None`` to drop it, and the exception after them."""
        given = [tensors(sample) if isinstance(sample, dict) else sample for sample in samples]
        results: list[Any] = []
        try:
            for sample, value in zip(given, self._values(given), strict=True):
                results.append(self._keep(sample, value))
        except BaseException as error:
            return results, error
        return results, None

    def _values(self, samples: Sequence[Any]) -> Any:
        if self._num_processes == 0:
            return map(self._function, samples)
        if self._executor is None:
            context = get_context("forkserver")
            self._executor = ProcessPoolExecutor(self._num_processes, mp_context=context)
        return self._executor.map(self._function, samples)

    def new(self) -> Calls:
        """Returns one for another iterator, without processes of its own yet."""
        return Calls(self._function, self._keep, self._num_processes)

    def close(self) -> None:
        """Ends the processes."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)


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

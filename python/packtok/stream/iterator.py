"""The iterator of a stream."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

from torch.utils.data import default_collate

from packtok._packtok import Stream, wait_for_stream_calls
from packtok.distributed import cpus_of_process
from packtok.stream import recipe
from packtok.stream.functions import Calls
from packtok.stream.state import StateDict, position_of, state_of
from packtok.stream.tokens import tensors

__all__ = ["CheckpointableIterator"]

# A position is saved again after this many times the time that saving it took; until then, a state counts the
# samples since. So states cost little, and loading one recomputes little.
_SAVING_SHARE = 100


# Iterators that may have threads in the user's functions when the program ends.
_open: WeakSet[CheckpointableIterator] = WeakSet()


@atexit.register
def _close_all() -> None:
    for iterator in list(_open):
        iterator.close()
    wait_for_stream_calls()


class CheckpointableIterator:
    """Iterates over a stream; its state describes the position after the last sample that it returned.

    Made by ``dataset.iter()``. Works in the process that made it, with threads that ``close`` ends.
    """

    def __init__(
        self,
        node: recipe.Node,
        collate_fn: Callable[[list[Any]], Any] | None,
        state_dict: Mapping[str, Any] | None = None,
        allow: Sequence[str] = (),
    ) -> None:
        """Starts at the beginning, or at ``state_dict``."""
        self._node = node
        self._collate_fn = collate_fn
        self._description = recipe.described(node)
        self._is_distributed = "distribute" in {one["op"] for one in self._description}
        self._start(state_dict, allow)
        _open.add(self)

    def _start(self, state_dict: Mapping[str, Any] | None, allow: Sequence[str]) -> None:
        position, num_skipped = None, 0
        if state_dict is not None:
            position, num_skipped = position_of(state_dict, self._description, allow)
        nodes, objects = recipe.flattened(self._node)
        # Iterators of one dataset do not share processes or positions.
        self._objects = [one.new() if hasattr(one, "new") else one for one in objects]
        self._stream = Stream(nodes, self._objects, num_threads=cpus_of_process(), state=position)
        self._saved: StateDict | None = None
        self._saved_at = self._saving_seconds = 0.0
        self._num_since_saved = 0
        if self._stream.skip(num_skipped) < num_skipped:
            raise ValueError("the data end before the state; load it with the data that it was saved with")

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        """Returns the next sample.

        Raises:
            Exception: What a function raised, or the error of a source. After it, every call raises an error.
        """
        found = self._stream.next(stacked=self._collate_fn is None)
        if found is None:
            raise StopIteration
        self._num_since_saved += 1
        rows, columns = found
        if rows is None:
            return tensors(columns) if isinstance(columns, dict) else columns
        rows = [tensors(row) if isinstance(row, dict) else row for row in rows]
        batch = (self._collate_fn or default_collate)(rows)
        return {**batch, **columns} if columns else batch

    def state_dict(self) -> StateDict:
        """Returns the position as a dict that JSON can hold. It stays valid, and can be loaded many times."""
        now = perf_counter()
        is_due = now - self._saved_at > _SAVING_SHARE * self._saving_seconds
        # The position of ranks is the same only without counting.
        if self._saved is None or is_due or self._is_distributed:
            self._saved = state_of(self._stream.state(), self._description)
            self._saved_at = perf_counter()
            self._saving_seconds = self._saved_at - now
            self._num_since_saved = 0
        return {**self._saved, "skip": self._num_since_saved}

    get_state = state_dict

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues at a state of the same recipe.

        Raises:
            ValueError: If the state is damaged or of another recipe.
        """
        position_of(state_dict, self._description, ())
        self.close()
        self._start(state_dict, ())

    set_state = load_state_dict

    def skip(self, count: int) -> None:
        """Passes over the next ``count`` samples, or batches if the stream has them."""
        self._num_since_saved += self._stream.skip(count)

    def report(self) -> dict[str, Any]:
        """Returns what was left out: ``num_bad`` bad documents, and the first of them in ``listed``."""
        report: dict[str, Any] = self._stream.report()
        return report

    def close(self) -> None:
        """Ends the threads and processes of this iterator."""
        self._stream.close()
        for one in self._objects:
            if isinstance(one, Calls):
                one.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

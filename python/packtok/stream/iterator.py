"""The iterator of a stream."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from time import perf_counter, thread_time
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

import torch
import torch.distributed as dist

from packtok._packtok import Stream, wait_for_stream_calls
from packtok.data.fields import allocated, in_pinned_memory
from packtok.distributed import cpus_of_process
from packtok.integers import checked_integer
from packtok.remedies import EntryPoint
from packtok.stream.batching import Batching, Rows
from packtok.stream.comparison import check_allowed, divided_as
from packtok.stream.functions import Calls
from packtok.stream.spec import Spec
from packtok.stream.state import Position, StateDict, position_of, state_of

__all__ = ["CheckpointableIterator"]

# The next save follows after this many times the duration of the last one; until then, a state counts the
# samples since. States thus cost little, and loading one recomputes little.
_SAVING_SHARE = 200
# The interval in samples for the rows of ranks, because all ranks must save at the same row.
_SAVING_SAMPLES = 1024
# Lanes whose bytes differ by more than this factor are reported.
_UNEQUAL = 1.25


# A stream, its description, and the position at which it starts, with how many samples to skip after it.
_Start = tuple[Spec, Sequence[Any], Position | None, int]

# Iterators that may have threads in the user's functions when the program ends.
_open: WeakSet[CheckpointableIterator] = WeakSet()


@atexit.register
def _close_all() -> None:
    for iterator in list(_open):
        iterator.close()
    try:
        # Like the threads of Python, those of a stream end before the program does.
        wait_for_stream_calls()
    except KeyboardInterrupt:
        if sys.stdout is not None:
            sys.stdout.flush()
        os._exit(130)


class CheckpointableIterator:
    """Iterates over a stream; its state describes the position after the last sample that it returned.

    Made by ``dataset.iter()``. Works in the process that made it, with threads that ``close`` ends.
    """

    def __init__(
        self,
        spec: Spec,
        batching: Batching,
        state_dict: Mapping[str, Any] | None,
        allow: Sequence[str],
        entry_point: EntryPoint,
    ) -> None:
        """Starts at the beginning, or at ``state_dict``.

        Errors of reading name the arguments of ``entry_point``.
        """
        self._undivided = spec
        self._batching = batching
        self._entry_point = entry_point
        # Such streams save at every state and do not count samples since the last save: the position must be
        # the same on all ranks, and counting would compute outputs again.
        self._is_distributed = spec.flow["is_distributed"]
        self._keeps_outputs = spec.flow["keeps_outputs"]
        self._shapes: Sequence[tuple[str, int, int | None]] = ()
        self._layout: dict[int, tuple[torch.dtype, tuple[int, ...]]] = {}
        self._start(*self._start_point(state_dict, allow))
        _open.add(self)

    def _start_point(self, state_dict: Mapping[str, Any] | None, allow: Sequence[str]) -> _Start:
        spec = divided_as(self._undivided, state_dict)
        _check_rank(spec.found_rank)
        description = spec.description()
        if state_dict is not None:
            return spec, description, *position_of(state_dict, description, allow)
        check_allowed(allow, description)
        return spec, description, None, 0

    def _start(
        self, spec: Spec, description: Sequence[Any], position: Position | None, num_skipped: int
    ) -> None:
        self._spec, self._description = spec, description
        # Iterators of one dataset do not share processes or positions.
        self._objects = [value.new() if hasattr(value, "new") else value for value in spec.objects]
        self._stream = Stream(spec.json(), self._objects, num_threads=cpus_of_process(), state=position)
        self._warn_of_shares()
        self._has_failed = False
        self._save()
        # The first requested state is due, whatever was saved before it.
        self._requested_at = 0.0
        self._num_lanes = len(self._saved.get("lanes", ()))
        if self._stream.skip(num_skipped) < num_skipped:
            raise ValueError("the data end before the state; load it with the data that it was saved with")
        self._num_since_saved = num_skipped

    def _warn_of_shares(self) -> None:
        """Warns of lanes that repeat their documents more often than others."""
        if not self._spec.flow["has_endless_lanes"]:
            return
        for share in self._stream.report()["lane_shares"]:
            least, most = min(share["bytes"]), max(share["bytes"])
            if most > _UNEQUAL * least:
                warnings.warn(
                    f"{share['source']}: lanes have from {least} to {most} bytes, because compressed files, "
                    "and those of other formats than JSON lines, Parquet and Arrow, are not cut; some "
                    f"documents are repeated up to {most / least:.1f} times as often as others; give files "
                    "of about equal sizes whose number is a multiple of the lanes",
                    stacklevel=4,
                )

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        """Returns the next sample.

        Raises:
            Exception: What a function raised, or the error of a source. After it, every call raises an error.
        """
        self._save_before_error()
        try:
            result = self._stream.next(None if self._batching.collate_fn else self._allocated)
            sample = self._sample(result)
        except StopIteration as error:
            self._fail(error)
            raise RuntimeError("a function of the stream raised StopIteration") from error
        except BaseException as error:
            self._entry_point.reword(error)
            self._fail(error)
            raise
        if result is None:
            raise StopIteration
        self._num_since_saved += 1
        return sample

    def _fail(self, error: BaseException) -> None:
        """Ends the stream. A sample may be lost, for example to a signal after the call that returned it."""
        self._has_failed = True
        self._stream.fail(str(error) or type(error).__name__)

    def _sample(self, result: Any) -> Any:
        sample = self._batching.batch_of(result) if isinstance(result, Rows) else result
        return in_pinned_memory(sample) if self._batching.pin_memory and isinstance(sample, dict) else sample

    def _allocated(self, shapes: Sequence[tuple[str, int, int | None]]) -> list[tuple[Any, Any]]:
        """Returns a tensor and its array for each dtype, number of rows and length, ``None`` for numbers."""
        if shapes != self._shapes:
            # Shapes are cached, because almost all batches have the same.
            self._shapes = shapes
            self._layout = {
                i: (_DTYPES[dtype], (num_rows,) if length is None else (num_rows, length))
                for i, (dtype, num_rows, length) in enumerate(shapes)
            }
        tensors, arrays = allocated(self._layout, pin_memory=self._batching.pin_memory)
        return list(zip(tensors.values(), arrays.values(), strict=True))

    def state_dict(self) -> StateDict:
        """Returns the position as a dict that JSON can hold. It stays valid, and can be loaded many times."""
        now = perf_counter()
        always = self._is_distributed or self._keeps_outputs
        # After a failure, the stream is past the failed sample, which a resumed stream must try again.
        if (always or self._is_due(self._requested_at, now)) and not self._has_failed:
            self._save()
            self._requested_at = self._saved_at
        return {**self._saved, "skip": self._num_since_saved}

    def _save_before_error(self) -> None:
        """Saves from time to time, so that a state after an error has few samples to pass over."""
        now = perf_counter()
        counts = self._is_distributed
        is_due = self._num_since_saved >= _SAVING_SAMPLES if counts else self._is_due(self._saved_at, now)
        if is_due and not self._has_failed and not self._keeps_outputs:
            self._save()

    def _is_due(self, before: float, now: float) -> bool:
        return now - before > _SAVING_SHARE * self._saving_seconds

    def _save(self) -> None:
        # CPU time, because another program that interrupts this one must not delay the next save.
        started = thread_time()
        saved = state_of(self._stream.state(), self._description)
        self._saving_seconds = thread_time() - started
        self._saved_at = perf_counter()
        # There is no call between these statements: a signal handler could raise in it and leave a wrong
        # state.
        self._saved = saved
        self._num_since_saved = 0

    get_state = state_dict

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues at a state of the same recipe.

        Raises:
            ValueError: If the state is damaged or of another recipe.
        """
        start = self._start_point(state_dict, ())
        self.close()
        self._start(*start)

    set_state = load_state_dict

    def skip(self, count: int) -> None:
        """Passes over the next ``count`` samples, or batches if the stream has them.

        Raises:
            Exception: As ``next``.
            ValueError: If ``count`` is negative.
        """
        count = checked_integer("count", count)
        try:
            self._num_since_saved += self._stream.skip(count)
        except BaseException as error:
            self._entry_point.reword(error)
            self._fail(error)
            raise

    def locate(self) -> list[list[dict[str, Any]]]:
        """Returns the documents of the last sample: a list for each of its rows.

        A document has ``path``; ``offset``, its byte in a file of lines, its row in a table or its number in
        a pbin; and ``at``, path and offset as messages show them. In a row of tokens, it also has ``start``
        and ``stop``, the range of its tokens that are in the row. What is not from a file has no path.
        """
        return [[_document(place, tokens) for place, tokens in row] for row in self._stream.located()]

    def report(self) -> dict[str, Any]:
        """Returns what was left out.

        ``num_bad`` counts bad documents that were skipped, and ``listed`` has the first of them.
        ``num_dropped_tokens`` counts the tokens of incomplete rows and of documents that are too long.
        ``num_lanes_read`` is how many lanes this rank computes, 0 without ``distribute``. ``lane_shares``
        has the bytes of each lane, for each source of files.
        """
        return {**self._stream.report(), "num_lanes_read": self._num_lanes}

    def close(self) -> None:
        """Ends the threads and processes of this iterator."""
        self._stream.close()
        for value in self._objects:
            if isinstance(value, Calls):
                value.close()
        _give_back_memory()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _give_back_memory() -> None:
    """Returns freed memory to the system: the C library keeps what threads of a closed stream used."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _check_rank(known: tuple[int, int] | None) -> None:
    """Checks that rank and number of ranks are still those that ``distribute`` found."""
    if known is None or not (dist.is_available() and dist.is_initialized()):
        return
    current = dist.get_rank(), dist.get_world_size()
    if current != known:
        raise ValueError(
            f"distribute found rank {known[0]} of {known[1]}, but this process is rank {current[0]} of "
            f"{current[1]} "
            "now; call it after the process group has started: with Lightning, build the dataset in "
            "train_dataloader"
        )


_DTYPES = {"int64": torch.int64, "int32": torch.int32, "bool": torch.bool}


def _document(place: tuple[str, int, str] | None, tokens: tuple[int, int] | None) -> dict[str, Any]:
    origin: dict[str, Any] = {}
    if place is not None:
        origin["path"], origin["offset"], origin["at"] = place
    if tokens is not None:
        origin["start"], origin["stop"] = tokens
    return origin

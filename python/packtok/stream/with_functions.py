"""The methods of streams that call a function of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self, TypedDict, Unpack

from packtok.distributed import cpus_of_process
from packtok.integers import checked_integer
from packtok.stream import functions, recipe
from packtok.stream.base import Base
from packtok.stream.functions import Calls

__all__ = ["FunctionOptions", "ParallelExecutorType", "ParallelOptions", "WithFunctions"]

ParallelExecutorType = Literal["process", "thread"]
# Samples that a function on the caller's thread receives at once.
_CALLED_SAMPLES = 64


class FunctionOptions(TypedDict, total=False):
    """Options of the methods that call a function."""

    rng: bool
    """Whether the function's second argument is a NumPy generator that depends on the sample's position."""
    seed: int
    """The seed of these generators, by default 42."""
    version: str
    """What a state records instead of the function's name and arguments."""


class ParallelOptions(FunctionOptions, total=False):
    """Options of the methods that call a function ahead of the stream."""

    keep_outputs: bool
    """Whether states hold finished outputs, for a function that returns others when it is called again."""


class WithFunctions(Base):
    """The methods that call a function."""

    def map(self, fn: Callable[..., Any], **options: Unpack[FunctionOptions]) -> Self:
        """Replaces each sample by what ``fn`` returns, which must not be ``None``."""
        return self._called("map", fn, functions.mapped, options)

    def filter(self, fn: Callable[..., Any], **options: Unpack[FunctionOptions]) -> Self:
        """Keeps the samples for which ``fn`` returns something true."""
        return self._called("filter", fn, functions.filtered, options)

    def filter_map(self, fn: Callable[..., Any], **options: Unpack[FunctionOptions]) -> Self:
        """Replaces each sample by what ``fn`` returns, and drops it if that is ``None``."""
        return self._called("filter_map", fn, functions.mapped_or_dropped, options)

    def parallel_map(
        self,
        fn: Callable[..., Any],
        max_workers: int | None = None,
        prefetch_factor: int = 10,
        ordered: bool = True,
        executor_type: ParallelExecutorType = "process",
        **options: Unpack[ParallelOptions],
    ) -> Self:
        """As ``map``, by several threads or processes."""
        given = (max_workers, prefetch_factor, ordered, executor_type, options)
        return self._called_ahead("map", fn, functions.mapped, *given)

    def parallel_filter(
        self,
        fn: Callable[..., Any],
        max_workers: int | None = None,
        prefetch_factor: int = 10,
        ordered: bool = True,
        executor_type: ParallelExecutorType = "process",
        **options: Unpack[ParallelOptions],
    ) -> Self:
        """As ``filter``, by several threads or processes."""
        given = (max_workers, prefetch_factor, ordered, executor_type, options)
        return self._called_ahead("filter", fn, functions.filtered, *given)

    def parallel_filter_map(
        self,
        fn: Callable[..., Any],
        max_workers: int | None = None,
        prefetch_factor: int = 10,
        ordered: bool = True,
        executor_type: ParallelExecutorType = "process",
        **options: Unpack[ParallelOptions],
    ) -> Self:
        """As ``filter_map``, by several threads or processes."""
        given = (max_workers, prefetch_factor, ordered, executor_type, options)
        return self._called_ahead("filter_map", fn, functions.mapped_or_dropped, *given)

    def _called(
        self, name: str, fn: Callable[..., Any], keep: Callable[[Any, Any], Any], options: Mapping[str, Any]
    ) -> Self:
        # After distribute, nothing may be ahead of the ranks' common row.
        is_distributed = recipe.share_of(self._node) is not None
        execution = {"window": 0, "job_samples": 1 if is_distributed else _CALLED_SAMPLES}
        return self._call(name, fn, keep, 0, options, execution)

    def _called_ahead(
        self,
        name: str,
        fn: Callable[..., Any],
        keep: Callable[[Any, Any], Any],
        max_workers: int | None,
        prefetch_factor: int,
        ordered: bool,
        executor_type: ParallelExecutorType,
        options: Mapping[str, Any],
    ) -> Self:
        del ordered  # The order of the samples is one of those that are allowed without it.
        if max_workers is None:
            max_workers = cpus_of_process()
        num_workers = checked_integer("max_workers", max_workers, least=1)
        num_samples = checked_integer("prefetch_factor", prefetch_factor, least=1)
        if executor_type not in ("process", "thread"):
            raise ValueError(f"executor_type is {executor_type!r}, expected 'process' or 'thread'")
        if recipe.share_of(self._node) is not None:
            raise ValueError("a parallel function cannot follow distribute; put it before, or use map")
        num_processes = num_workers if executor_type == "process" else 0
        execution = {"window": num_workers, "job_samples": num_samples}
        return self._call(name, fn, keep, num_processes, options, execution)

    def _call(
        self,
        name: str,
        fn: Callable[..., Any],
        keep: Callable[[Any, Any], Any],
        num_processes: int,
        options: Mapping[str, Any],
        execution: Mapping[str, Any],
    ) -> Self:
        functions.check_options(options)
        if name != "map" and recipe.share_of(self._node) is not None:
            raise ValueError(
                f"{name} cannot follow distribute, because ranks would have different numbers of rows; "
                "put it before"
            )
        keeps_outputs = bool(options.get("keep_outputs"))
        if keeps_outputs and execution["window"] == 0:
            raise TypeError("keep_outputs is an option of parallel functions; use parallel_map")
        seed = options.get("seed", 42) if options.get("rng") else None
        version = options.get("version")
        known = {"function": version} if version else functions.identity_of(fn)
        identity = {"method": name, "seed": seed, **known}
        arguments = {"keeps_outputs": True} if keeps_outputs else {}
        calls = Calls(fn, keep, num_processes, seed, keeps_outputs=keeps_outputs, batching=self._batching)
        node = recipe.Node("call", arguments, execution, (self._node,), object=calls, identity=identity)
        return self._with(node)

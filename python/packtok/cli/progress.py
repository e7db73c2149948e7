"""Progress on stderr: a bar on a terminal, otherwise plain lines every few seconds; nothing if quiet."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from packtok.cli import console
from packtok.progress import Progress

LINE_SECONDS = 5.0


CHECKING = "checking the engine"


@contextmanager
def progress(*, quiet: bool, idle: str = "starting") -> Iterator[Progress | None]:
    """Yields a callback for the compiled module's counts, or ``None`` if ``quiet``.

    Args:
        quiet: Whether to show nothing.
        idle: What to show until bytes are counted.
    """
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar(idle) as show:
            yield show
    else:
        yield PlainLines(idle=idle)


@contextmanager
def progress_of_counts(*, quiet: bool) -> Iterator[Progress | None]:
    """Same as `progress`, but nothing is shown, and no time counts, before the first counts arrive."""
    if quiet:
        yield None
        return
    with ExitStack() as stack:
        show: Progress | None = None

        def on_progress(counts: dict[str, int]) -> None:
            nonlocal show
            if show is None:
                show = stack.enter_context(progress(quiet=False))
            if show is not None:
                show(counts)

        yield on_progress


@contextmanager
def engine_checks(*, quiet: bool) -> Iterator[None]:
    """Remarks within the block that an engine is being checked, which takes seconds but happens only once."""
    from packtok import _packtok

    is_shown = False

    def show(_counts: dict[str, int]) -> None:
        nonlocal is_shown
        if not is_shown:
            is_shown = True
            console.remark(f"{CHECKING}, once for this tokenizer")

    _packtok.on_engine_check(None if quiet else show)
    try:
        yield
    finally:
        _packtok.on_engine_check(None)


def waiting_for(idle: str, counts: dict[str, int]) -> str:
    """Returns the text to show before the counted work starts; empty once it has started.

    While an engine is checked, the counted bytes are those of built-in texts and not of documents.
    """
    if idle == CHECKING:
        return "" if counts.get("documents") else idle
    return "" if counts.get("bytes_read") or counts.get("total_bytes") else idle


class PlainLines:
    """Prints progress lines for logs; the first line appears after `LINE_SECONDS`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, idle: str = "starting") -> None:
        self._clock = clock
        self._idle = idle
        self._started = self._last = clock()

    def __call__(self, counts: dict[str, int]) -> None:
        """Prints ``counts`` if the last line is old enough."""
        now = self._clock()
        if now - self._last >= LINE_SECONDS:
            self._last = now
            waiting = waiting_for(self._idle, counts)
            console.remark(waiting or status(counts, now - self._started))


def status(counts: dict[str, int], seconds: float) -> str:
    """Returns one line of plain text: bytes, documents or samples, tokens, MB/s and the remaining time."""
    done, total = counts.get("bytes_read", 0), counts.get("total_bytes", 0)
    parts = [f"{done / 1e6:,.1f} of {total / 1e6:,.1f} MB" if total else f"{done / 1e6:,.1f} MB"]
    parts += [f"{counts[name]:,} {name}" for name in (_unit(counts), "tokens") if name in counts]
    packed = done - counts.get("resumed_bytes", 0)
    if packed > 0 and seconds > 0:
        parts.append(f"{packed / 1e6 / seconds:,.1f} MB/s")
        if total > done:
            parts.append(f"{_clock_time((total - done) * seconds / packed)} left")
    return ", ".join(parts)


def _unit(counts: dict[str, int]) -> str:
    return "samples" if "samples" in counts else "documents"


def _clock_time(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


@contextmanager
def _bar(idle: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as RichProgress

    working = (
        BarColumn(bar_width=None),
        DownloadColumn(),
        TextColumn("{task.fields[number]:,} {task.fields[unit]}"),
        TextColumn("{task.fields[tokens]:,} tokens"),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    # Until something is counted, do not show zero bytes and zero seconds.
    waiting = (BarColumn(bar_width=None), TextColumn(idle))
    with RichProgress(*waiting, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, number=0, unit="documents", tokens=0)

        def show(counts: dict[str, int]) -> None:
            if not waiting_for(idle, counts):
                bar.columns = working
            bar.update(
                task,
                completed=counts.get("bytes_read", 0),
                total=counts.get("total_bytes") or None,
                number=counts.get(_unit(counts), 0),
                unit=_unit(counts),
                tokens=counts.get("tokens", 0),
            )

        yield show

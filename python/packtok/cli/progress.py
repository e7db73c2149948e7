"""Progress on stderr: a bar on a terminal, plain lines every few seconds otherwise, nothing if quiet."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[dict[str, int]], None]

LINE_SECONDS = 5.0


@contextmanager
def progress(*, quiet: bool) -> Iterator[Progress | None]:
    """A callback for the compiled module's counts, or ``None`` if nothing is to be shown."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar() as show:
            yield show
    else:
        yield PlainLines()


class PlainLines:
    """Prints where things stand, for logs; the first line comes only after `LINE_SECONDS`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = self._last = clock()

    def __call__(self, counts: dict[str, int]) -> None:
        """Prints ``counts`` if the last line is old enough."""
        now = self._clock()
        if now - self._last >= LINE_SECONDS:
            self._last = now
            print(f"packtok: {status(counts, now - self._started)}", file=sys.stderr, flush=True)


def status(counts: dict[str, int], seconds: float) -> str:
    """One line of plain text: bytes, documents, tokens, MB/s and the time that is left."""
    done, total = counts.get("bytes_read", 0), counts.get("total_bytes", 0)
    parts = [f"{done / 1e6:,.1f} of {total / 1e6:,.1f} MB" if total else f"{done / 1e6:,.1f} MB"]
    parts += [f"{counts[name]:,} {name}" for name in ("documents", "tokens") if name in counts]
    packed = done - counts.get("resumed_bytes", 0)
    if packed > 0 and seconds > 0:
        parts.append(f"{packed / 1e6 / seconds:,.1f} MB/s")
        if total > done:
            parts.append(f"{_clock_time((total - done) * seconds / packed)} left")
    return ", ".join(parts)


def _clock_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as RichProgress

    columns = (
        BarColumn(bar_width=None),
        DownloadColumn(),
        TextColumn("{task.fields[documents]:,} documents"),
        TextColumn("{task.fields[tokens]:,} tokens"),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, documents=0, tokens=0)

        def show(counts: dict[str, int]) -> None:
            bar.update(
                task,
                completed=counts.get("bytes_read", 0),
                total=counts.get("total_bytes") or None,
                documents=counts.get("documents", 0),
                tokens=counts.get("tokens", 0),
            )

        yield show

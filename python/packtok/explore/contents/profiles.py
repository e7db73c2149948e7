"""Profiles of token files, computed by a thread while pages are served."""

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any

from packtok.progress import Progress

_MAX_PROFILES = 64
# A profile that no page has asked for during this time is no longer computed.
_ABANDONED_SECONDS = 30.0

Make = Callable[[Progress], dict[str, Any]]


class _AbandonedError(Exception):
    """No page waits for the profile."""


class Job:
    """A profile that is computed or finished."""

    def __init__(self) -> None:
        self.profile: Future[dict[str, Any]] = Future()
        self.fraction = 0.0
        """The part of the data that was read."""
        self.asked_for_at = time.monotonic()

    def show(self, progress: dict[str, int]) -> None:
        """Receives the progress, and ends a profile for which no page waits."""
        self.fraction = progress["bytes_read"] / max(1, progress["total_bytes"])
        if time.monotonic() - self.asked_for_at > _ABANDONED_SECONDS:
            raise _AbandonedError


class Profiles:
    """Computes profiles, one at a time, and keeps those that were requested last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._jobs: dict[Hashable, Job] = {}

    def job(self, key: Hashable, make: Make) -> Job:
        """Returns the job for a key. A thread computes one that is missing with ``make``."""
        with self._lock:
            job = self._jobs.pop(key, None)
            if job is None or (job.profile.done() and isinstance(job.profile.exception(), _AbandonedError)):
                job = Job()
                # The process does not wait for a daemon at its end.
                threading.Thread(target=self._compute, args=(job, make), daemon=True).start()
            job.asked_for_at = time.monotonic()
            self._jobs[key] = job
            while len(self._jobs) > _MAX_PROFILES:
                del self._jobs[next(iter(self._jobs))]
        return job

    def _compute(self, job: Job, make: Make) -> None:
        try:
            with self._turn:
                job.show({"bytes_read": 0, "total_bytes": 0})
                job.profile.set_result(make(job.show))
        except BaseException as error:
            job.profile.set_exception(error)

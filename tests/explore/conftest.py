"""Fixtures of the tests of the pages."""

import pytest

from packtok.explore.contents import catalog


@pytest.fixture(autouse=True)
def _lists_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets each page wait for the list of datasets, which takes longer than a second on a busy machine."""
    monkeypatch.setattr(catalog, "_WAIT_SECONDS", 60.0)

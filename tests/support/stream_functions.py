"""Functions that run in processes of streams, which import only this module of the tests."""

from __future__ import annotations

import os
import random
from typing import Any


def exclaimed(sample: dict[str, str]) -> dict[str, str]:
    return {"text": sample["text"] + "!"}


def is_even(sample: dict[str, str]) -> bool:
    return sample["text"][-1] in "024"


def exclaimed_if_even(sample: dict[str, str]) -> dict[str, str] | None:
    return exclaimed(sample) if is_even(sample) else None


def noisy(sample: dict[str, Any], rng: Any) -> dict[str, Any]:
    return {**sample, "noise": int(rng.integers(1 << 40))}


def random_number(sample: dict[str, Any]) -> dict[str, Any] | None:
    return None if sample["n"] % 7 == 0 else {**sample, "random": random.SystemRandom().random()}


def ends_its_process(sample: Any) -> Any:
    del sample
    os._exit(3)

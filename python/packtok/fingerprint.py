"""Digests that identify a dataset, so that saved states and cached data are matched with the right one."""

import hashlib
import json
from typing import Any


def digest(facts: Any) -> str:
    """Returns the SHA-256 of a JSON-serializable value as hex; the order of keys does not matter."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

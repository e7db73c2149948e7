"""Short names for the facts that decide what a dataset serves, by which states and data are matched."""

import hashlib
import json
from typing import Any


def digest(facts: Any) -> str:
    """SHA-256, in hex, of what JSON can hold; the order of keys makes no difference."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

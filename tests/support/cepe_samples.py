"""Samples in the form of CEPE's scripts, and the options with which its loader read them."""

from typing import Any

import numpy as np

DOMAINS = {"a": 5, "b": 3}
ITEMS = (0, 4, 5)
RP = dict.fromkeys(("retrieved_token_ids", "retrieved_neighbor_token_ids", "retrieval_scores"), "pkl")
COLUMNS = {
    "samples": {"token_ids": "pkl", "prev_token_ids": "pkl", "domain": "str"},
    "retrieval": RP,
    "logits": {"target_prob": "pkl", "target_index": "pkl"},
}
# Options of the loader; "retrieval" and "logits" stand for the folders.
CASES: dict[str, dict[str, Any]] = {
    "best": {"num_context": 2, "context_size": 8, "chunk_size": 12},
    "short_chunk": {"num_context": 1, "context_size": 16, "chunk_size": 8, "loss_chunk_size": 3},
    "no_loss": {"num_context": 0, "chunk_size": 12, "loss_chunk_size": 0},
    "no_context": {"num_context": 0, "chunk_size": 20, "loss_chunk_size": 12},
    "dummy": {"num_context": 2, "context_size": 4, "chunk_size": 20, "load_strategy": "dummy"},
    "duplicate": {"num_context": 3, "context_size": 4, "chunk_size": 12, "load_strategy": "duplicate"},
    "decoder": {"num_context": 2, "context_size": 8, "chunk_size": 12, "load_strategy": "put_in_decoder"},
    "ignore": {
        "retrieval": True,
        "retrieval_mode": "ignore",
        "num_context": 2,
        "context_size": 8,
        "chunk_size": 12,
    },
    "alone": {"retrieval": True, "num_context": 2, "context_size": 4, "chunk_size": 12},
    "joint": {
        "retrieval": True,
        "retrieval_mode": "joint",
        "num_context": 3,
        "context_size": 5,
        "chunk_size": 12,
    },
    "separate": {
        "retrieval": True,
        "retrieval_mode": "separate",
        "num_context": 2,
        "context_size": 4,
        "chunk_size": 12,
    },
    "few": {"retrieval": True, "num_context": 9, "context_size": 3, "chunk_size": 12},
    "joint_decoder": {
        "retrieval": True,
        "retrieval_mode": "joint",
        "load_strategy": "best_put_in_decoder",
        "num_context": 2,
        "context_size": 4,
        "chunk_size": 12,
    },
    "distill": {"logits": True, "num_context": 2, "context_size": 8, "chunk_size": 12},
}


class Tokenizer:
    """The attributes of a tokenizer that the loader needs."""

    pad_token_id = 99
    eos_token_id = 2


def sample(kind: str, domain: str, i: int) -> dict[str, Any]:
    """Returns sample ``i`` of a domain in the folders ``kind``."""
    rng = np.random.default_rng([ord(kind[0]), ord(domain), i])
    if kind == "samples":
        return {
            "token_ids": rng.integers(3, 1000, 12),
            "prev_token_ids": rng.integers(3, 1000, 24),
            "domain": domain,
        }
    if kind == "logits":
        return {
            "target_prob": rng.random((12, 4)).astype(np.float16),
            "target_index": rng.integers(0, 1000, (12, 3)).astype(np.int32),
        }
    return {
        "retrieved_token_ids": [rng.integers(3, 1000, n) for n in rng.integers(2, 8, 4)],
        "retrieved_neighbor_token_ids": [rng.integers(3, 1000, n) for n in rng.integers(0, 7, 4)],
        "retrieval_scores": rng.random(4).astype(np.float32),
    }

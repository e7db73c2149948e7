"""A small random teacher model, and samples for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from packtok._packtok import MdsWriter

VOCAB, HEAD = 90, 96
ENC, DEC, TOPK = 12, 10, 8
NUM_SAMPLES = 11


def small_llama(folder: Path, *, seed: int = 0, head: int = HEAD) -> Path:
    """Saves a random Llama whose padding rows would win everywhere."""
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=head,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=False,
        initializer_range=0.5,
    )
    model = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        model.lm_head.weight[VOCAB:] *= 50
    model.save_pretrained(folder)
    return folder


def samples(
    num_samples: int = NUM_SAMPLES, context: int = ENC + 3, decoder: int = DEC
) -> list[dict[str, Any]]:
    rng = np.random.default_rng(7)
    return [
        {
            "token_ids": rng.integers(0, VOCAB, decoder).astype(np.uint16),
            "prev_token_ids": rng.integers(0, VOCAB, context).astype(np.uint16),
            "domain": "d",
        }
        for _ in range(num_samples)
    ]


COLUMNS = {"token_ids": "ndarray:uint16", "prev_token_ids": "ndarray:uint16", "domain": "str"}


def write_samples(
    folder: Path, rows: list[dict[str, Any]], tokenizer: dict[str, Any] | None = None, plan: str = "p"
) -> Path:
    """Writes samples as `packtok sample` does; returns the folder of the domains."""
    with MdsWriter(folder / "d", COLUMNS) as writer:
        for row in rows:
            writer.write(row)
        place = {"plan": plan, "side": "train", "domain": "d", "start": 0, "stop": len(rows)}
        details = {"tokenizer": tokenizer or {"vocab_size": VOCAB}}
        writer.finish(marker={"kind": "samples", **place, "details": details})
    return folder

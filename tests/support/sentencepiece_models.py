"""SentencePiece models of every kind, trained on the example corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import oracle
import sentencepiece
from repository import CORPUS

QUICK, PLAIN = "packtok", "packtok's reference SentencePiece"
# Training options of each model, and the engine that serves it.
TRAINED: dict[str, tuple[dict[str, Any], str]] = {
    "unigram": ({"model_type": "unigram"}, QUICK),
    "unigram of bytes, white space kept": (
        {
            "model_type": "unigram",
            "byte_fallback": True,
            "remove_extra_whitespaces": False,
            "allow_whitespace_only_pieces": True,
        },
        QUICK,
    ),
    "unigram with symbols of its own": (
        {
            "model_type": "unigram",
            "user_defined_symbols": ["<x>", "▁▁", "the", "\n"],
            "control_symbols": ["<c>"],
        },
        QUICK,
    ),
    "unigram, white space behind words": (
        {"model_type": "unigram", "treat_whitespace_as_suffix": True},
        QUICK,
    ),
    "bpe": ({"model_type": "bpe"}, QUICK),
    "bpe of bytes, nothing normalized": (
        {
            "model_type": "bpe",
            "byte_fallback": True,
            "normalization_rule_name": "identity",
            "remove_extra_whitespaces": False,
            "allow_whitespace_only_pieces": True,
            "user_defined_symbols": ["▁▁▁", "\n", "<x>", "er"],
        },
        QUICK,
    ),
    "bpe without a prefix, in lower case": (
        {"model_type": "bpe", "add_dummy_prefix": False, "normalization_rule_name": "nmt_nfkc_cf"},
        QUICK,
    ),
    "bpe, white space behind words": ({"model_type": "bpe", "treat_whitespace_as_suffix": True}, QUICK),
    "bpe across words": ({"model_type": "bpe", "split_by_whitespace": False}, QUICK),
    # The rules turn "u" into "W" in texts of ids, and "th" into "D e".
    "unigram with a denormalizer": (
        {"model_type": "unigram", "denormalization_rule_tsv": "75\t57\n74 68\t44 20 65\n"},
        QUICK,
    ),
    "words": ({"model_type": "word", "user_defined_symbols": ["<x>"]}, PLAIN),
    "characters": ({"model_type": "char", "user_defined_symbols": ["<x>", "th"]}, PLAIN),
}


def train(name: str, folder: Path) -> Path:
    """Writes a model of this kind, trained on the texts of the project."""
    texts = oracle.texts_of(CORPUS)
    model = folder / f"{name}.model"
    options = {"vocab_size": 2000, **TRAINED[name][0]}
    if "denormalization_rule_tsv" in options:
        rules = folder / f"{name}.tsv"
        rules.write_text(options["denormalization_rule_tsv"], encoding="utf-8")
        options["denormalization_rule_tsv"] = str(rules)
    with model.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(line for text in texts for line in text.split("\n")),
            model_writer=file,
            hard_vocab_limit=False,
            # With this coverage, some characters are not in the vocabulary.
            character_coverage=0.98,
            minloglevel=2,
            **options,
        )
    return model

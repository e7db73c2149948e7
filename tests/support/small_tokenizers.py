"""Small tokenizers: trained on the example corpus, or with a vocabulary of single bytes or of three words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from exact_texts import example_texts
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

import packtok


def word_piece() -> Tokenizer:
    """Trains a WordPiece model here; BertProcessing adds its special tokens."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[UNK]", "[CLS]", "[SEP]"]
    tokenizer.train_from_iterator(
        example_texts(),
        trainers.WordPieceTrainer(vocab_size=900, special_tokens=special, show_progress=False),
    )
    cls, sep = (tokenizer.token_to_id(token) for token in special[1:])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", sep), ("[CLS]", cls))
    return tokenizer


def unigram() -> Tokenizer:
    """Trains a Unigram model here; a template adds its special tokens."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "[CLS]", "[SEP]"]
    trainer = trainers.UnigramTrainer(
        vocab_size=2000, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(example_texts(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return tokenizer


def unsplit_unigram() -> Tokenizer:
    """Returns a Unigram tokenizer that segments whole texts, so that the reference engine serves it."""
    tokenizer = unigram()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    return tokenizer


def word_level() -> Tokenizer:
    """Trains a WordLevel model with an added token that matches only whole words."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(
        vocab_size=900, special_tokens=["[UNK]", "[SEP]"], show_progress=False
    )
    tokenizer.train_from_iterator(example_texts(), trainer)
    tokenizer.add_tokens([AddedToken("whole", single_word=True), AddedToken("left", lstrip=True)])
    return tokenizer


def tokenizer_json(post_processor: dict[str, Any] | None = None) -> dict[str, Any]:
    """Returns a byte-level BPE without merges: one id per byte, and two special tokens."""
    alphabet = [chr(code) for code in (*range(33, 127), *range(161, 173), *range(174, 256))]
    alphabet += [chr(256 + i) for i in range(256 - len(alphabet))]
    special = {"id": 256, "content": "<s>", "special": True}
    special |= {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [special, special | {"id": 257, "content": "</s>"}],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": True,
        },
        "post_processor": post_processor,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {char: i for i, char in enumerate(alphabet)},
            "merges": [],
        },
    }


def write_tokenizer(folder: Path, config: Any = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def small_tokenizer(folder: Path) -> Path:
    """Returns a tokenizer of a few hundred bytes, so that the output fills the disk."""
    vocabulary = {"[UNK]": 0, "</s>": 1, "a": 2}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    described = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": 1, "content": "</s>", **special}],
        "normalizer": None,
        # Only the reference engine supports this.
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"String": " "},
            "behavior": "Removed",
            "invert": False,
        },
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    path = folder / "small.json"
    path.write_text(json.dumps(described))
    return path


def wheel_of(tokenizer: packtok.Tokenizer) -> Tokenizer:
    wheel = Tokenizer.from_str(tokenizer.to_json().decode())
    wheel.no_truncation()
    wheel.no_padding()
    return wheel

"""Ids of the tokenizer families in use equal those of Python's package, with small vocabularies."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import oracle
import pytest
from exact_texts import SCALARS, TRICKY, assert_every_scalar_value_exact, differing, from_all_corpora
from extent import IS_THOROUGH, extent
from pre_tokenizers_of_families import (
    CL100K,
    DEEPSEEK,
    DIGITS,
    QWEN,
    TEKKEN,
    byte_level,
    splits,
)
from repository import CORPUS
from small_tokenizers import unigram, word_level, word_piece
from tokenizers import Tokenizer

import packtok

NFC = {"type": "NFC"}
BLANK = "▁"
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": BLANK}
LLAMA = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": BLANK}, REPLACE]}
# ChatGLM replaces the name of a prefix like a space, and then splits at the name, which never remains.
PREFIX = "<!dummy-prefix!>"
CHATGLM = {
    "type": "Sequence",
    "normalizers": [{"type": "Replace", "pattern": {"String": PREFIX}, "content": BLANK}, REPLACE],
}


def at(text: str, behavior: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"String": text}, "behavior": behavior, "invert": False}


def inverted(pre_tokenizer: dict[str, Any]) -> dict[str, Any]:
    """Returns a pre-tokenizer whose first step removes what is between the matches, which is nothing."""
    pre_tokenizer["pretokenizers"][0].update(behavior="Removed", invert=True)
    return pre_tokenizer


def metaspace(scheme: str, split: bool) -> dict[str, Any]:
    return {"type": "Metaspace", "replacement": BLANK, "prepend_scheme": scheme, "split": split}


def steps(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(steps)}


def bert_normalizer(lowercase: bool) -> dict[str, Any]:
    flags = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None}
    return {"type": "BertNormalizer", **flags, "lowercase": lowercase}


OF_BYTES: dict[str, tuple[Any, Any]] = {
    "Qwen": (NFC, splits(QWEN)),
    "NeoX": (NFC, byte_level(True)),
    "Claude": ({"type": "NFKC"}, byte_level(True)),
    "GPT-2 after a space": (None, {**byte_level(True), "add_prefix_space": True}),
    "StarCoder": (None, {"type": "Sequence", "pretokenizers": [DIGITS, byte_level(True)]}),
    "Tekken": (None, splits(TEKKEN)),
    "DeepSeek": (None, splits(*DEEPSEEK)),
    "OLMo 2": (None, inverted(splits(CL100K))),
}
OF_TEXT: dict[str, tuple[Any, Any]] = {
    "Llama 2": (LLAMA, None),
    "Gemma": (REPLACE, at(" ", "MergedWithPrevious")),
    "ChatGLM": (CHATGLM, at(PREFIX, "MergedWithNext")),
    "Mistral": (None, metaspace("first", False)),
    "Metaspace, split": (None, metaspace("always", True)),
}
BY_WHITE_SPACE = {"type": "WhitespaceSplit"}
PUNCTUATION = {"type": "Punctuation", "behavior": "Isolated"}
# The models are those that test_exact trains.
OF_WORDS: dict[str, tuple[Callable[[], Tokenizer], Any, Any]] = {
    "BERT": (word_piece, bert_normalizer(lowercase=True), {"type": "BertPreTokenizer"}),
    "BERT, cased": (word_piece, bert_normalizer(lowercase=False), {"type": "BertPreTokenizer"}),
    "XLM-R": (unigram, {"type": "NFKC"}, metaspace("always", True)),
    "ALBERT": (unigram, {"type": "NFKD"}, steps(BY_WHITE_SPACE, metaspace("always", True))),
    "Words": (word_level, None, steps({"type": "Whitespace"}, PUNCTUATION)),
}
FAMILIES: dict[str, tuple[Any, ...]] = {**OF_BYTES, **OF_TEXT, **OF_WORDS}


def write(family: str, path: Path) -> Path:
    """Writes a tokenizer.json that treats texts like those of this family; trained on the example corpus."""
    if family in OF_BYTES:
        oracle.byte_level(path, vocab_size=600)
        content = json.loads(path.read_text(encoding="utf-8"))
    elif family in OF_WORDS:
        tokenizer = OF_WORDS[family][0]()
        tokenizer.add_special_tokens([oracle.EOD])
        content = json.loads(tokenizer.to_str())
        content["post_processor"] = None
    else:
        content = of_text()
    *_, content["normalizer"], content["pre_tokenizer"] = FAMILIES[family]
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def of_text() -> dict[str, Any]:
    """Returns a vocabulary of bytes, characters and some merges, a few of which cross word boundaries."""
    merges = [
        "h e",
        "i n",
        "▁ t",
        "▁t he",
        "▁ a",
        "▁a b",
        "▁ ▁",
        "▁▁ ▁▁",
        "e r",
        ", ▁",
        ",▁ A",
        "é 数",
        "數 字",
        "1 1",
        "a ▁",
        "\n \n",
        "\n\n \n",
        "b a",
        "▁ 数",
        ". .",
        ".. ..",
        "a 1",
        "1 ▁",
        "A .",
        ". \n",
    ]
    pairs = [merge.split(" ", 1) for merge in merges]
    tokens = [char for pair in pairs for token in pair for char in token] + ["".join(pair) for pair in pairs]
    vocab = [oracle.EOD, *(f"<0x{byte:02X}>" for byte in range(256)), *dict.fromkeys(tokens)]
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": True,
        "vocab": {token: i for i, token in enumerate(vocab)},
        "merges": [list(pair) for pair in pairs],
    }
    eod = {"id": 0, "content": oracle.EOD, "special": True, "normalized": False, "single_word": False}
    added = [{**eod, "lstrip": False, "rstrip": False}]
    return {"version": "1.0", "added_tokens": added, "post_processor": None, "decoder": None, "model": model}


@pytest.mark.parametrize("family", FAMILIES)
def test_example_texts_and_edge_cases(tmp_path: Path, family: str) -> None:
    file = write(family, tmp_path / "tokenizer.json")
    texts = [text for text in oracle.texts_of(CORPUS) if text]
    texts += [
        "  two  blanks ",
        " ",
        "\n",
        "a\n \n b",
        "the   ab▁c",
        "11 a1 1",
        "e\u0301 \u1112\u1161",
        "x" * 100,
    ]
    texts += [
        f"数{oracle.EOD} é数字",
        "数字" * 50,
        "a" * 40 + " " * 40,
        "1234567",
        "don't 'LL I'Ll",
        "e\u0301 \u0301e \u200da \u0600 b",
        "a\tb\r\nc\u00a0d\u3000e \x0bf\x0c g\x00 \x00 h",
        "half\uff9e \uff9efull \u0344 \u00b4x \u00a8",
        "\0\0a\0 1",
    ]
    path = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    report = packtok.pack(input=path, output=tmp_path / "out.pbin", tokenizer=str(file))
    assert report.engine == "packtok"
    oracle.assert_holds(tmp_path / "out.pbin", oracle.documents(oracle.load(file), texts))


@pytest.mark.parametrize("family", FAMILIES)
def test_tricky_characters(tmp_path: Path, family: str) -> None:
    file = write(family, tmp_path / "tokenizer.json")
    assert differing(file, [*TRICKY, *SCALARS[:0x3000:7]], tmp_path, oracle.EOD) == []


@pytest.mark.parametrize("family", OF_WORDS)
def test_models_without_a_type_are_as_fast(tmp_path: Path, family: str) -> None:
    """Files of early versions leave out the type of the model, which the keys decide."""
    file = write(family, tmp_path / "tokenizer.json")
    reason = packtok.Tokenizer.from_file(file).engine_reason
    content = json.loads(file.read_text(encoding="utf-8"))
    del content["model"]["type"]
    file.write_text(json.dumps(content), encoding="utf-8")
    assert packtok.Tokenizer.from_file(file).engine_reason == reason
    assert differing(file, [*TRICKY, *oracle.texts_of(CORPUS)], tmp_path, oracle.EOD) == []


@pytest.mark.parametrize("family", OF_TEXT)
@pytest.mark.parametrize("special", [True, False])
def test_added_tokens_with_replaced_spaces(tmp_path: Path, family: str, special: bool) -> None:
    file = write(family, tmp_path / "tokenizer.json")
    content = json.loads(file.read_text(encoding="utf-8"))
    for token, normalized in {
        "<s>": True,
        "</s>": False,
        "|a b|": True,
        " he": True,
        "<s>1": True,
        "▁x": False,
    }.items():
        flags = {"single_word": False, "lstrip": False, "rstrip": False}
        added = {"id": len(content["model"]["vocab"]) + len(content["added_tokens"]) - 1, "content": token}
        content["added_tokens"].append({**added, **flags, "normalized": normalized, "special": special})
    file.write_text(json.dumps(content), encoding="utf-8")
    parts = [*content["model"]["vocab"]][257:]
    parts += ["<s>", "</s>", "|a b|", "|a▁b|", " he", "he", "▁x", "x", " ", "  ", "▁", "▁▁", "<", ">", "1"]
    chosen = random.Random(family)
    texts = ["".join(chosen.choices(parts, k=chosen.randint(0, 9))) for _ in range(3000)]
    tokenizer = packtok.Tokenizer.from_file(file)
    assert tokenizer.engine == "packtok"
    python = oracle.load(file)
    ids, offsets = tokenizer.encode_batch(texts)
    for text, begin, end in zip(texts, offsets[:-1], offsets[1:], strict=True):
        assert ids[begin:end].tolist() == python.encode(text).ids, text


@pytest.mark.parametrize("family", FAMILIES)
def test_scalar_values(tmp_path: Path, family: str) -> None:
    file = write(family, tmp_path / "tokenizer.json")
    if family in OF_WORDS or not IS_THOROUGH:
        # Models of words are trained again each time and differ, so no checksum of their ids is kept.
        assert differing(file, extent(SCALARS, SCALARS[::83]), tmp_path, oracle.EOD) == []
    else:
        assert_every_scalar_value_exact(file, tmp_path, oracle.EOD, f"family {family}")


@pytest.mark.parametrize("family", FAMILIES)
def test_sampled_documents_of_every_corpus(shared: Path, tmp_path: Path, family: str) -> None:
    file = write(family, tmp_path / "tokenizer.json")
    texts = from_all_corpora(shared)
    texts = extent(texts, texts[::12])
    path = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    packtok.pack(input=path, output=tmp_path / "out.pbin", tokenizer=str(file))
    oracle.assert_holds(tmp_path / "out.pbin", oracle.documents(oracle.load(file), texts))

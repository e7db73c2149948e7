"""The trailer records the bytes and tokens of the texts, whatever the tokenizer and the number of parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import small_tokenizers
from exact_texts import example_texts
from tokenizers import Tokenizer

import packtok
from packtok.commands.shuffle import filter_pbin

TEXTS = [*example_texts()[:60], "", " ", "𝄞 naïve 日本語 \u0301", "x" * 3000]


def corpus(folder: Path, texts: list[str] = TEXTS) -> Path:
    path = folder / f"{len(texts)}.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def recorded(path: Path) -> dict[str, int] | None:
    metadata = packtok.PbinReader(path).metadata
    assert metadata is not None
    counts: dict[str, Any] = metadata["counts"]
    return counts.get("text")


def counts_of(tokenizer: Tokenizer, texts: list[str]) -> dict[str, int]:
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    return {"bytes": sum(len(text.encode()) for text in texts), "tokens": sum(map(len, ids))}


def tokenizer_of(kind: str) -> Tokenizer:
    if kind == "byte level":
        return small_tokenizers.wheel_of(packtok.Tokenizer.builtin("gpt2"))
    return small_tokenizers.word_piece() if kind == "WordPiece" else small_tokenizers.unigram()


@pytest.mark.parametrize("kind", ["byte level", "WordPiece", "Unigram"])
def test_counts_equal_those_of_the_raw_texts(tmp_path: Path, kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer.to_str())
    eod = "<|endoftext|>" if kind == "byte level" else "[SEP]"
    packtok.pack(
        input=corpus(tmp_path),
        output=tmp_path / "a.pbin",
        tokenizer=str(path),
        bos=eod,
        eod=eod,
        add_special_tokens=True,
        empty_document="keep",
        special_tokens_in_text="text",
    )
    assert recorded(tmp_path / "a.pbin") == counts_of(tokenizer, TEXTS)
    assert len(packtok.PbinReader(tmp_path / "a.pbin")) == len(TEXTS)


def test_documents_that_are_left_out_do_not_count(tmp_path: Path) -> None:
    gpt2 = tokenizer_of("byte level")
    source = corpus(tmp_path)
    packtok.pack(input=source, output=tmp_path / "few.pbin", tokenizer="gpt2", max_documents=5)
    assert recorded(tmp_path / "few.pbin") == counts_of(gpt2, TEXTS[:5])
    whole = counts_of(gpt2, TEXTS)
    packtok.pack(
        input=source, output=tmp_path / "tokens.pbin", tokenizer="gpt2", max_tokens=whole["tokens"] // 2
    )
    num_documents = len(packtok.PbinReader(tmp_path / "tokens.pbin"))
    assert 0 < num_documents < len(TEXTS)
    assert recorded(tmp_path / "tokens.pbin") == counts_of(gpt2, TEXTS[:num_documents])


def test_truncated_documents_have_no_counts(tmp_path: Path) -> None:
    source, output = corpus(tmp_path), tmp_path / "a.pbin"
    packtok.pack(input=source, output=output, tokenizer="gpt2", truncation=True, max_length=4)
    assert recorded(output) is None


def test_steps_that_keep_documents_keep_their_counts(tmp_path: Path) -> None:
    gpt2 = tokenizer_of("byte level")
    halves = [TEXTS[:30], TEXTS[30:]]
    parts = []
    for i, texts in enumerate(halves):
        parts.append(tmp_path / f"{i}.pbin")
        packtok.pack(input=corpus(tmp_path, texts), output=parts[-1], tokenizer="gpt2")
    packtok.merge(parts, tmp_path / "merged.pbin")
    packtok.reshape(parts, tmp_path / "shuffled.pbin", shuffle=True, seed=1)
    packtok.convert(parts[0], tmp_path / "converted.pbin", to="pbin")
    whole = counts_of(gpt2, TEXTS)
    assert recorded(tmp_path / "merged.pbin") == recorded(tmp_path / "shuffled.pbin") == whole
    assert recorded(tmp_path / "converted.pbin") == counts_of(gpt2, halves[0])


def test_steps_that_change_documents_leave_the_counts_out(tmp_path: Path) -> None:
    packtok.pack(input=corpus(tmp_path), output=tmp_path / "a.pbin", tokenizer="gpt2")
    filter_pbin(tmp_path / "a.pbin", tmp_path / "b.pbin", lambda _, ids: len(ids) > 4)
    packtok.reshape(tmp_path / "a.pbin", tmp_path / "c.pbin", truncate=3)
    assert recorded(tmp_path / "b.pbin") is None
    assert recorded(tmp_path / "c.pbin") is None

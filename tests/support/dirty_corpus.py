"""Texts that are dirty on purpose, for the profile of token files and the search in them."""

from __future__ import annotations

import json
from pathlib import Path

import packtok

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
# Texts that occur once, those that occur several times, and the parts of the corpus in two files.
EMAILS = (
    "Write to jane.doe+list@mail.example.org or JOHN@EXAMPLE.COM today.",
    "spam@example.net",
    "me @ home",
)
PHONES = (
    "Call +49 89 123456-78 or (555) 123-4567.",
    "The number 1234567890 of 2024-10-11 is no phone number.",
)
# Joined here, so that scanners of repositories find no secrets.
KEYS = (
    "export ID=AKI" + "A" + "QWERTYUIOPASDFGH",
    "-----BEGIN OPENSSH" + " PRIVATE KEY-----",
    f"gh{'p_'}{_LETTERS}",
)
SCRIPTS = (
    "小説を読む、カタカナ",
    "Война и мир, роман Льва Толстого",
    "كتاب قديم جدا",
    "ספר ישן",
    "한국어 소설",
    "Ελληνικά και français",
)
CONTROLS = (
    "a null \0 and an escape \x1b[31m",
    "tabs\tand\r\nlines are not control characters",
    "lost \ufffd character",
)
LINES = (
    "\n".join(["Home | About | Contact"] * 8 + ["One line of content."]),
    "One line.\n\nOther line.\n  One line.  ",
)
SPAM = "Buy the best watches for the lowest price in the whole wide world today! " * 6
LONG_WORD = "https://example.org/" + "x" * 150
COPIES = ("This licence is in many files.", "The second text with copies.")
PLAIN = tuple(f"Story {i}: a fox met {i + 2} hens, and nothing happened to them." for i in range(25))
FIRST = [*PLAIN, COPIES[0], *EMAILS, COPIES[0], *SCRIPTS, COPIES[1], ""]
SECOND = [*KEYS, *CONTROLS, COPIES[0], *PHONES, SPAM, *LINES, LONG_WORD, COPIES[1], " \n ", *PLAIN[:1]]


def write_dirty_files(folder: Path, tokenizer: str = "gpt2") -> Path:
    """Packs the texts into two files, one document for each text, and returns their folder."""
    files = folder / "dirty"
    files.mkdir()
    for i, texts in enumerate((FIRST, SECOND)):
        corpus = folder / f"{i}.jsonl"
        corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        packtok.pack(
            input=corpus, output=files / f"dirty-{i}.pbin", tokenizer=tokenizer, empty_document="keep"
        )
    return files

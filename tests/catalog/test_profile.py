"""`packtok data profile`, compared with a plain computation over the same documents."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pbins
import pytest
from command_line import PacktokCli
from dirty_corpus import CONTROLS, EMAILS, FIRST, KEYS, LONG_WORD, PHONES, SECOND, write_dirty_files

import packtok
from packtok.commands.profile import profile_documents
from packtok.errors import ConfigError, PacktokError

EOD = 50256
NGRAM = 10
# The first word of the name of a letter, for scripts whose names differ.
SCRIPTS = {"CJK": "Han"}
Document = tuple[int, int, list[int], str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dirty_files(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def profile(folder: Path) -> dict[str, Any]:
    return profile_documents(folder)


@pytest.fixture(scope="module")
def documents(folder: Path) -> list[Document]:
    """Each document with its file, number, ids and text."""
    texts = (*FIRST, *SECOND)
    files = [packtok.PbinReader(folder / f"dirty-{i}.pbin") for i in range(2)]
    places = [(i, j) for i, file in enumerate(files) for j in range(len(file))]
    return [(i, j, files[i][j].tolist(), text) for (i, j), text in zip(places, texts, strict=True)]


@pytest.fixture(scope="module")
def texts(documents: list[Document]) -> list[Document]:
    return [document for document in documents if document[3].strip()]


def largest(counted: list[tuple[int, int, int]], key: str) -> list[dict[str, int]]:
    """Returns the examples of (file, document, number), in descending order of the numbers."""
    ordered = sorted((entry for entry in counted if entry[2]), key=lambda entry: -entry[2])
    return [{"file": file, "document": document, key: number} for file, document, number in ordered[:5]]


def figure(texts: list[Document], number: Callable[[str], int]) -> dict[str, Any]:
    counted = [(file, document, number(text)) for file, document, _, text in texts]
    return {
        "documents": sum(number > 0 for *_, number in counted),
        "occurrences": sum(number for *_, number in counted),
        "examples": largest(counted, "occurrences"),
    }


def repeats(counted: list[tuple[int, int, int, int]], limit: float) -> dict[str, Any]:
    """Returns the figures of (file, document, repeated part, all of it)."""
    above = [entry for entry in counted if entry[2] > limit * entry[3]]
    ordered = sorted(above, key=lambda entry: -entry[2])[:5]
    return {
        "repeated": sum(entry[2] for entry in counted),
        "total": sum(entry[3] for entry in counted),
        "limit": limit,
        "documents": len(above),
        "examples": [
            {"file": file, "document": document, "repeated": part, "share": part / total}
            for file, document, part, total in ordered
        ],
    }


def test_counts_are_those_of_the_files(
    profile: dict[str, Any], documents: list[Document], folder: Path
) -> None:
    num_tokens = sum(len(ids) for *_, ids, _ in documents)
    assert profile["files"] == [str(folder / "dirty-0.pbin"), str(folder / "dirty-1.pbin")]
    assert profile["tokenizer"] == "gpt2"
    assert (profile["documents"], profile["tokens"]) == (len(documents), num_tokens)
    sample = {"share": 1.0, "documents": len(documents), "tokens": num_tokens, "cut_documents": 0}
    assert profile["sample"] == sample
    blank = [(file, document, 1) for file, document, _, text in documents if not text.strip()]
    assert profile["empty"] == {"documents": 2, "occurrences": 2, "examples": largest(blank, "occurrences")}
    assert profile["text"]["bytes"] == sum(len(text.encode()) for *_, text in documents if text.strip())


def test_duplicates_are_those_of_a_plain_count(profile: dict[str, Any], texts: list[Document]) -> None:
    copies: dict[tuple[int, ...], list[dict[str, int]]] = {}
    for file, document, ids, _ in texts:
        copies.setdefault(tuple(ids), []).append({"file": file, "document": document})
    groups = {ids: places for ids, places in copies.items() if len(places) > 1}
    assert len(groups) == 3
    assert profile["duplicates"] == {
        "documents": sum(len(places) - 1 for places in groups.values()),
        "tokens": sum((len(places) - 1) * len(ids) for ids, places in groups.items()),
        "compared_documents": len(texts),
        "compared_tokens": sum(len(ids) for *_, ids, _ in texts),
        # Groups are in the order of their first documents, and sorting is stable.
        "examples": [
            {"copies": len(places), "tokens": len(ids), "documents": places[:2]}
            for ids, places in sorted(groups.items(), key=lambda group: -len(group[1]))
        ],
    }


def test_repetition_is_that_of_a_plain_count(profile: dict[str, Any], texts: list[Document]) -> None:
    lines, ngrams = [], []
    for file, document, ids, text in texts:
        stripped = [line.strip() for line in text.split("\n") if line.strip()]
        known = [line for i, line in enumerate(stripped) if line in stripped[:i]]
        lines.append(
            (
                file,
                document,
                sum(len(line.encode()) for line in known),
                sum(len(line.encode()) for line in stripped),
            )
        )
        seen, repeated = set(), set()
        for start in range(len(ids) - NGRAM + 1):
            ngram = tuple(ids[start : start + NGRAM])
            if ngram in seen:
                repeated |= {*range(start, start + NGRAM)}
            seen.add(ngram)
        ngrams.append((file, document, len(repeated), len(ids)))
    assert profile["text"]["repeated_lines"] == repeats(lines, 0.2)
    assert profile["repeated_ngrams"] == repeats(ngrams, 0.2)
    assert profile["text"]["repeated_lines"]["documents"] == 2
    assert profile["repeated_ngrams"]["documents"] == 3


def script_of(letter: str) -> str:
    word = unicodedata.name(letter).split()[0]
    return SCRIPTS.get(word, word.capitalize())


def test_scripts_and_characters_are_those_of_a_plain_count(
    profile: dict[str, Any], texts: list[Document]
) -> None:
    letters = Counter(script_of(char) for *_, text in texts for char in text if char.isalpha())
    expected = [
        {
            "script": script,
            **figure(
                texts,
                lambda text, script=script: sum(
                    char.isalpha() and script_of(char) == script for char in text
                ),
            ),
        }  # type: ignore[misc]
        for script in letters
    ]
    scripts = profile["text"]["scripts"]
    assert {"Latin", "Han", "Katakana", "Hiragana", "Cyrillic", "Arabic", "Hebrew", "Hangul", "Greek"} == set(
        letters
    )
    assert sorted(scripts, key=lambda entry: str(entry["script"])) == sorted(
        expected, key=lambda entry: str(entry["script"])
    )
    assert [entry["occurrences"] for entry in scripts] == sorted(letters.values(), reverse=True)
    assert profile["text"]["letters"] == sum(letters.values())
    controls = figure(
        texts, lambda text: sum(unicodedata.category(char) == "Cc" and char not in "\t\n\r" for char in text)
    )
    assert controls["occurrences"] == 2
    assert profile["text"]["control_characters"] == controls
    assert profile["text"]["replacement_characters"] == figure(texts, lambda text: text.count("\ufffd"))


def test_personal_data_is_what_was_planted(profile: dict[str, Any], texts: list[Document]) -> None:
    planted = {
        "emails": {EMAILS[0]: 2, EMAILS[1]: 1},
        "phones": {PHONES[0]: 2},
        "keys": dict.fromkeys(KEYS, 1),
    }
    for key, numbers in planted.items():
        assert profile["text"][key] == figure(texts, lambda text, numbers=numbers: numbers.get(text, 0)), key  # type: ignore[misc]


def test_longest_words_are_those_of_a_plain_split(profile: dict[str, Any], texts: list[Document]) -> None:
    unspaced = ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA")
    words: dict[str, tuple[int, int]] = {}
    for file, document, _, text in texts:
        plain = "".join(
            " " if unicodedata.name(char, "CJK").split()[0] in unspaced else char for char in text
        )
        for word in plain.split():
            words.setdefault(word, (file, document))
    longest = sorted(words.items(), key=lambda entry: -len(entry[0]))[:5]
    assert longest[0][0] == LONG_WORD
    assert profile["text"]["longest_words"] == [
        {"file": file, "document": document, "characters": len(word), "start": word[:100]}
        for word, (file, document) in longest
    ]


def test_use_of_the_vocabulary_is_that_of_a_plain_count(
    profile: dict[str, Any], documents: list[Document]
) -> None:
    counts = Counter(token for *_, ids, _ in documents for token in ids)
    first: dict[int, dict[str, int]] = {}
    for file, document, ids, _ in documents:
        for token in ids:
            first.setdefault(token, {"file": file, "document": document})
    tokenizer = packtok.Tokenizer.builtin("gpt2")
    vocabulary = profile["vocabulary"]
    assert (vocabulary["used"], vocabulary["never_used"]) == (len(counts), 50257 - len(counts))
    unused = [token for token in range(50257) if token not in counts][:10]
    assert vocabulary["never_used_examples"] == [
        {"id": token, "name": tokenizer.id_to_token(token)} for token in unused
    ]
    most = sorted(counts, key=lambda token: (-counts[token], token))[:20]
    assert vocabulary["most_used"] == [
        {
            "id": token,
            "name": tokenizer.id_to_token(token),
            "occurrences": counts[token],
            "example": first[token],
        }
        for token in most
    ]


def test_sample_is_drawn_by_content(folder: Path, profile: dict[str, Any]) -> None:
    half = profile_documents(folder, sample_size=profile["tokens"] // 2)
    assert half["sample"]["share"] == pytest.approx(0.5, abs=0.01)
    assert 0 < half["sample"]["documents"] < profile["documents"]
    assert half == profile_documents(folder, sample_size=profile["tokens"] // 2)
    # All copies of a document are in the sample, or none.
    copies = {group["tokens"]: group["copies"] for group in profile["duplicates"]["examples"]}
    assert all(copies[group["tokens"]] == group["copies"] for group in half["duplicates"]["examples"])


def test_command_prints_figures_with_the_numbers_of_documents(
    folder: Path, packtok_cli: PacktokCli, profile: dict[str, Any]
) -> None:
    done = packtok_cli("data", "profile", folder, "--json")
    assert json.loads(done.stdout) == profile
    rows = dict(
        line.split("  ", 1)
        for line in packtok_cli("data", "profile", folder, "-q").stdout.splitlines()
        if line[0] != " "
    )
    rows = {name: text.strip() for name, text in rows.items()}
    email = len(FIRST) - len(FIRST[FIRST.index(EMAILS[0]) :])
    assert rows["e-mail addresses"] == f"3 in 2 documents: 0:{email}, 0:{email + 1}"
    assert rows["secret keys"] == "3 in 3 documents: 1:0, 1:1, 1:2"
    assert rows["U+FFFD"] == f"1 in 1 documents: 1:{len(KEYS) + CONTROLS.index(CONTROLS[2])}"
    assert rows["scripts"].startswith("Latin ")


def test_without_a_tokenizer_there_are_figures_about_ids(tmp_path: Path, documents: list[Document]) -> None:
    file = pbins.write(tmp_path / "ids.pbin", [ids for *_, ids, _ in documents], trailer=False)
    remarks: list[str] = []
    profile = profile_documents(file, remark=remarks.append)
    assert remarks == [f"{file}: no tokenizer found, so texts are not examined; set --tokenizer (tokenizer)"]
    assert (profile["tokenizer"], profile["text"], profile["vocabulary"]["never_used"]) == (None, None, None)
    assert profile["duplicates"]["documents"] == 4
    assert profile["repeated_ngrams"]["documents"] == 3
    assert profile["vocabulary"]["most_used"][0]["name"] is None


def test_errors_name_the_option(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"--sample-size \(sample_size\) is 0, expected at least 1 token"):
        profile_documents(folder, sample_size=0)
    with pytest.raises(PacktokError, match="was packed with tokenizer gpt2 of fingerprint sha256:"):
        profile_documents(folder / "dirty-0.pbin", tokenizer="cl100k_base")

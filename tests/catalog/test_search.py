"""Search with facets: against an oracle in plain Python, with hostile words, and shared by threads."""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import sys
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from packtok.catalog import search
from packtok.catalog.base import Base
from packtok.catalog.discovery import described_below
from packtok.catalog.entries import tokenizer_name
from packtok.catalog.facets import FACETS, facet_texts, token_range, values_of, year_of
from packtok.catalog.index import INDEX_NAME, Index, build_index
from packtok.catalog.names import all_entries
from packtok.catalog.search import Query, SearchResult, match_expression
from packtok.catalog.words import Vocabulary
from packtok.errors import PacktokError

WORDS = (
    "web",
    "crawl",
    "café",
    "naïve",
    "stories",
    "code",
    "gpt-2",
    "books",
    "storied",
    "Ünïcode",
    "o'clock",
)
SAMPLE = 60


def write(folder: Path, details: dict[str, Any] | None = None, **values: Any) -> Path:
    """Writes a metadata file, without data."""
    folder.mkdir(parents=True, exist_ok=True)
    metadata = {
        "name": folder.name,
        "description": "",
        "date_downloaded": "2024-12-01",
        "download_source": "",
        "data_content": "text",
        **values,
    }
    (folder / "metadata.json").write_text(json.dumps(metadata))
    if details is not None:
        text = json.dumps({"packtok_metadata": 1, **details})
        (folder / "metadata.packtok.json").write_text(text)
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a base directory with 200 datasets, every second of them tokenized as well."""
    base = tmp_path_factory.mktemp("base")
    source = random.Random(5)
    for i in range(200):
        words = source.choices(WORDS, k=6)
        folder = write(
            base / source.choice(["text", "code/deep"]) / f"set{i}",
            {
                "language": source.choice([None, "en", "de", "fr", "en, de"]),
                "documents": i,
                "license": "CC0-1.0",
            },
            name=f"{words[0]} {i}",
            description=" ".join(words[1:5]),
            download_source=words[5],
            date_downloaded=source.choice(["2023-02-03", "2024-12-01", "2025", "yesterday", ""]),
            data_content=source.choice(["text", "text", "image"]),
        )
        if i % 2 == 0:
            tokenizer = source.choice(["gpt2", "t5-base", "llama3"])
            write(
                folder / "tokenized" / tokenizer / "all",
                {"tokens": 10 ** source.randrange(1, 12) + i, "documents": i},
                tokenized_info={"tokenizer": tokenizer, "file_prefix": "tokenized"},
            )
    build_index(base)
    return base


@pytest.fixture
def index(base: Path) -> Any:
    with closing(Index(base / INDEX_NAME)) as opened:
        yield opened


def oracle(index: Index, query: Query) -> tuple[list[str], dict[str, dict[str, int]]]:
    """Returns the paths in the order of folders, and all counts, from the rows alone."""

    def matches(entry: dict[str, Any], ignored: str | None) -> bool:
        details = json.loads(entry["entry"])
        text = " ".join(
            [
                entry["name"],
                details["description"],
                details["download_source"],
                entry["path"].rpartition("/")[0],
            ]
        ).lower()
        text = text.replace("é", "e").replace("ï", "i").replace("ü", "u")
        words = re.findall(r"\w+", text)
        wanted = query.words.lower().replace("é", "e").replace("ï", "i").replace("ü", "u").split()
        chosen = {facet: getattr(query, facet) for facet in FACETS if facet != ignored}
        values = facet_texts(entry)
        return all(any(word.startswith(prefix) for word in words) for prefix in wanted) and all(
            not options or {*options} & {*values_of(facet, values[facet])}
            for facet, options in chosen.items()
        )

    entries = index.entries()
    paths = [entry["path"] for entry in entries if matches(entry, None)]
    counts = {
        facet: dict(
            Counter(
                value
                for entry in entries
                if matches(entry, facet)
                for value in values_of(facet, facet_texts(entry)[facet])
            )
        )
        for facet in FACETS
    }
    return paths, counts


def test_results_and_counts_are_those_of_an_oracle(index: Index) -> None:
    source = random.Random(7)
    options = {facet: [value for value, _ in index.find(Query()).facets[facet]] for facet in FACETS}
    for _ in range(SAMPLE):
        words = source.choices(["", "w", "sto", "CAFE", "café", "unicode", "deep", "code", "naïve we"], k=1)[
            0
        ]
        chosen = {
            facet: tuple(source.sample(options[facet], min(2, len(options[facet]))))
            for facet in source.sample(FACETS, source.randrange(3))
        }
        query = Query(words=words, limit=1000, **chosen)
        result = index.find(query)
        paths, counts = oracle(index, query)
        assert result.total == len(result.entries) == len(paths), query
        assert sorted(entry["path"] for entry in result.entries) == sorted(paths), query
        for facet in FACETS:
            got = {value: count for value, count in result.facets[facet] if count}
            assert got == counts[facet], (query, facet)
            assert [count for _, count in result.facets[facet]] == sorted(
                (count for _, count in result.facets[facet]), reverse=True
            )


def test_pages_are_parts_of_one_list(index: Index) -> None:
    for sort in search.SORTS:
        whole = index.find(Query(words="co", sort=sort, limit=1000))
        parts = [
            index.find(Query(words="co", sort=sort, offset=i, limit=7)) for i in range(0, whole.total + 7, 7)
        ]
        assert [entry for part in parts for entry in part.entries] == whole.entries
        assert {part.total for part in parts} == {whole.total}
    assert index.find(Query(limit=0)).entries == []
    assert index.find(Query(offset=1 << 70)).entries == []


def test_long_pages_are_read_in_parts(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = index.find(Query(words="web", sort="name", limit=1000))
    monkeypatch.setattr("packtok.catalog.index._MAX_IDS", 7)
    assert index.find(Query(words="web", sort="name", limit=1000)) == whole


def test_results_are_sorted(index: Index) -> None:
    everything = [entry["path"] for entry in index.entries()]
    assert [entry["path"] for entry in index.find(Query(limit=1000)).entries] == everything
    tokens = [entry["tokens"] for entry in index.find(Query(sort="tokens", limit=1000)).entries]
    assert tokens == sorted(tokens, key=lambda value: -1 if value is None else value, reverse=True)
    dates = [entry["date"] for entry in index.find(Query(sort="date", limit=1000)).entries]
    assert dates[0] == "2025"
    assert {*dates[-5:]} <= {"yesterday", ""}
    # Natural order: "code 9" is before "code 10".
    names = [entry["name"] for entry in index.find(Query(words="code", sort="name", limit=1000)).entries]
    numbers = [int(name.split()[1]) for name in names if re.fullmatch(r"code \d+", name)]
    assert numbers == sorted(numbers)
    best = index.find(Query(words="books", limit=1000)).entries
    in_name = ["books" in entry["name"] for entry in best]
    assert in_name == sorted(in_name, reverse=True)
    assert [entry["path"] for entry in best] == [entry["path"] for entry in index.search("books")]


def test_words_that_match_too_much_to_be_scored_rank_names_first(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored = index.find(Query(words="code", limit=1000))
    monkeypatch.setattr("packtok.catalog.index._MAX_SCORED", 3)
    result = index.find(Query(words="code", limit=1000))
    assert (result.total, result.facets) == (scored.total, scored.facets)
    in_name = [re.search(r"\bcode", entry["name"]) is not None for entry in result.entries]
    assert in_name == sorted(in_name, reverse=True)
    ids = [entry["id"] for entry in result.entries]
    assert ids == sorted(ids[: sum(in_name)]) + sorted(ids[sum(in_name) :])
    assert sorted(ids) == sorted(entry["id"] for entry in scored.entries)


@pytest.mark.parametrize(
    "words",
    [
        '"',
        '""',
        "*",
        "a*b",
        "AND",
        "NOT",
        "OR",
        "NEAR(a b)",
        "name:web",
        "{name}",
        "^web",
        "-",
        "+",
        "(",
        ")",
        "web)",
        '"web',
        "web\0crawl",
        "\0",
        "\ud800",
        "'; DROP TABLE dataset; --",
        "%",
        "\\",
        "🎉",
        "\u202e",
        "\u0301",
        "x" * 100_000,
        "web " * 10_000,
        "a.b.c.d.e.f" * 100,
        "\n\t\r",
        "web\u00a0crawl",
    ],
)
def test_any_words_are_searched_for_as_words(index: Index, words: str) -> None:
    result = index.find(Query(words=words))
    assert 0 <= result.total <= 300
    assert [entry["id"] for entry in index.search(words)][:25] == [entry["id"] for entry in result.entries]


def test_words_without_a_letter_find_nothing_and_none_find_all(index: Index) -> None:
    assert index.find(Query(words='"')).total == 0
    assert index.find(Query(words="   ")).total == index.find(Query()).total == 300
    assert index.find(Query(words="gpt-2")).total > 0
    assert index.find(Query(words="CAFÉ")).total == index.find(Query(words="cafe")).total > 0
    # A word of signs only does not restrict the matches of the others.
    assert index.find(Query(words="web -")).total == index.find(Query(words="web")).total


def test_unknown_value_of_a_facet_finds_nothing_but_keeps_its_counts(index: Index) -> None:
    for facet in FACETS:
        for value in ("none such", "", "\0", "\ud800", "%"):
            result = index.find(Query(**{facet: (value,)}))  # type: ignore[arg-type]
            assert (result.total, result.entries) == (0, [])
            assert result.facets[facet] == index.find(Query()).facets[facet]
            assert all(not result.facets[other] for other in FACETS if other != facet)
    both = index.find(Query(language=("none such", "en")))
    assert both.total == index.find(Query(language=("en",))).total > 0


def test_chosen_value_is_listed_even_without_matches(index: Index) -> None:
    result = index.find(Query(words="nothing at all", language=("en",)))
    assert result.total == 0
    assert result.facets["language"] == [("en", 0)]


def test_a_facet_lists_its_fifty_most_frequent_values(tmp_path: Path) -> None:
    for i in range(70):
        for k in range(2 if i < 10 else 1):
            write(tmp_path / f"{i}-{k}", {"language": f"l{i:02}"})
    build_index(tmp_path)
    with closing(Index(tmp_path / INDEX_NAME)) as index:
        listed = index.find(Query()).facets["language"]
        assert listed == [(f"l{i:02}", 2 if i < 10 else 1) for i in range(50)]
        chosen = index.find(Query(language=("l69",))).facets["language"]
        assert len(chosen) == 50
        assert ("l69", 1) in chosen


def test_invalid_query_is_an_error() -> None:
    with pytest.raises(ValueError, match="sort is 'size', expected 'best', 'name', 'tokens' or 'date'"):
        Query(sort="size")
    with pytest.raises(ValueError, match="expected no negative number"):
        Query(offset=-1)


def test_ranges_are_powers_of_ten() -> None:
    expected = {
        None: "unknown",
        0: "0-1K",
        999: "0-1K",
        1000: "1K-10K",
        9_999: "1K-10K",
        10_000: "10K-100K",
        999_999: "100K-1M",
        10**6: "1M-10M",
        10**9 - 1: "100M-1B",
        10**9: "1B-10B",
        10**12: "1T-10T",
        10**15 - 1: "100T-1000T",
        10**15: "1000T or more",
        2**63 - 1: "1000T or more",
    }
    assert {tokens: token_range(tokens) for tokens in expected} == expected
    years = {
        "2024-12-01": "2024",
        " 2023": "2023",
        "20241201": "unknown",
        "": "unknown",
        "May 2024": "unknown",
    }
    assert {date: year_of(date) for date in years} == years


def test_entry_and_children_of_a_path(index: Index) -> None:
    child = next(entry for entry in index.entries() if entry["parent"] is not None)
    parent = index.entry(child["parent"])
    assert parent is not None
    assert child in index.children(parent["path"])
    assert [index.entry(path) for path in ("none", "", "\ud800", "../metadata.json")] == [None] * 4
    assert index.children(child["path"]) == index.children("\0") == []


def test_threads_share_an_index(index: Index) -> None:
    queries = [Query(words=words, sort=sort) for words in ("", "web", "c") for sort in search.SORTS]
    expected = [index.find(query) for query in queries]
    results: list[list[SearchResult]] = []
    threads = [
        threading.Thread(target=lambda: results.append([index.find(query) for query in queries * 5]))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected * 5] * 8


def test_an_open_index_notices_that_it_was_replaced(tmp_path: Path) -> None:
    write(tmp_path / "a")
    build_index(tmp_path)
    with closing(Index(tmp_path / INDEX_NAME)) as index:
        build_index(tmp_path)
        assert index.is_current()
        write(tmp_path / "b")
        build_index(tmp_path)
        assert not index.is_current()
        assert index.find(Query()).total == 1
        (tmp_path / INDEX_NAME).unlink()
        assert not index.is_current()


def test_unchanged_index_is_not_written_but_a_torn_one_is(tmp_path: Path) -> None:
    for i in range(30):
        write(tmp_path / f"set{i}", description=f"number {i}")
    path = tmp_path / INDEX_NAME
    build_index(tmp_path)
    content = path.read_bytes()
    written = path.stat().st_ino
    assert build_index(tmp_path) == {"path": str(path), "datasets": 30, "broken": []}
    assert path.stat().st_ino == written
    page = 8192
    torn = [content[:length] for length in (0, 50, page, len(content) // 2, len(content) - page)]
    for start in range(0, len(content), page):
        torn += [
            content[:start] + filler + content[start + page :]
            for filler in (bytes(page), random.Random(3).randbytes(page), content[page : 2 * page])
        ]
    for damaged in torn:
        path.write_bytes(damaged)
        build_index(tmp_path)
        assert path.read_bytes() == content


def test_index_of_another_version_is_refused_and_rebuilt(tmp_path: Path) -> None:
    write(tmp_path / "a")
    path = tmp_path / INDEX_NAME
    for version in (1, 2, 99):
        build_index(tmp_path)
        with closing(sqlite3.connect(path)) as changed:
            changed.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(PacktokError) as raised:
            Index(path)
        assert str(raised.value) == f"{path}: index version {version}, expected 5; run packtok data index"
    build_index(tmp_path)
    with closing(Index(path)) as index:
        assert index.find(Query()).total == 1


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE facets",
        "DELETE FROM facets",
        "UPDATE facets SET id = id + 7",
        "DELETE FROM dataset",
        "DROP TABLE words",
    ],
)
def test_damaged_tables_are_an_error_with_the_remedy(tmp_path: Path, change: str) -> None:
    write(tmp_path / "a")
    build_index(tmp_path)
    with closing(sqlite3.connect(tmp_path / INDEX_NAME)) as connection:
        connection.execute(change)
        connection.commit()
    damaged = pytest.raises(PacktokError, match=r"the index is damaged: .*; run packtok data index")
    with closing(Index(tmp_path / INDEX_NAME)) as index, damaged:
        index.find(Query(words="a"))
    build_index(tmp_path)
    with closing(Index(tmp_path / INDEX_NAME)) as index:
        assert index.find(Query(words="a")).total == 1


def test_hostile_metadata_is_listed_as_broken_or_read_without_its_faults(tmp_path: Path) -> None:
    write(tmp_path / "good")
    write(tmp_path / "types", {"tokens": {"a": 1}, "documents": True, "language": ["en"], "license": 7})
    write(tmp_path / "big", {"tokens": 10**30, "documents": -1})
    write(tmp_path / "half", description="\ud800")
    bad_name = os.fsdecode(b"caf\xe9")
    write(tmp_path / bad_name)
    (tmp_path / "list").mkdir()
    (tmp_path / "list" / "metadata.json").write_text("[]")
    (tmp_path / "folder" / "metadata.json").mkdir(parents=True)
    # Opening a pipe would wait forever for a writer.
    for folder, name in (("pipe", "metadata.json"), ("good", "metadata.packtok.json")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / folder / name)
    (tmp_path / "bomb").mkdir()
    aliases = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 40))
    (tmp_path / "bomb" / "metadata.yaml").write_text(f"a0: &a0 [x]\n{aliases}")
    (tmp_path / "dangling").mkdir()
    (tmp_path / "dangling" / "metadata.json").symlink_to("nowhere")
    done = build_index(tmp_path)
    assert done["datasets"] == 3
    reasons = {dataset["path"]: dataset["reason"] for dataset in done["broken"]}
    assert reasons["half/metadata.json"].endswith("'\\ud800' is not a character")
    assert reasons["caf\\udce9/metadata.json"].endswith("'\\udce9' is not a character")
    assert reasons["list/metadata.json"].endswith("is a list, expected a mapping of names to values")
    assert "stands for more than" in reasons["bomb/metadata.yaml"]
    assert len(reasons) == 4
    assert build_index(tmp_path) == done
    with closing(Index(tmp_path / INDEX_NAME)) as index:
        for entry in index.find(Query()).entries:
            assert [entry[key] for key in ("tokens", "documents", "language", "license")] == [None] * 4
        assert index.entry("half/metadata.json") is None
        assert index.find(Query(words="half")).total == 0


def test_links_in_circles_are_followed_once(tmp_path: Path) -> None:
    write(tmp_path / "context" / "a")
    for name in ("one", "two", "three"):
        (tmp_path / "context" / name).symlink_to("..")
        (tmp_path / name).symlink_to("context")
    paths = [dataset.path for dataset in described_below(tmp_path)]
    assert len(paths) == len(set(paths)) == 4
    assert "context/a/metadata.json" in paths


def test_search_without_facets_needs_no_numpy(tmp_path: Path) -> None:
    import subprocess

    write(tmp_path / "a")
    program = (
        "import sys; from pathlib import Path; from packtok.catalog.index import build_index; "
        f"build_index(Path({str(tmp_path)!r})); print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("words", "expression"),
    [
        ("a b a", '"a"* "b"*'),
        ("Café cafe\u0301 CAFE caf", '"Café"* "caf"*'),
        ("a-b ab a.b", '"a-b"* "ab"*'),
        ('! ? "', '"!"*'),
        ("-".join(["a"] * 100), '"' + " ".join(["a"] * 32) + '"*'),
        (" ".join(f"a-{i}" for i in range(100)), " ".join(f'"a-{i}"*' for i in range(16))),
    ],
)
def test_repeated_and_too_many_words_are_left_out(words: str, expression: str) -> None:
    assert match_expression(words) == expression


def test_tokenized_forms_inherit_what_only_their_raw_dataset_describes(tmp_path: Path) -> None:
    raw = write(
        tmp_path / "x" / "raw-set",
        {"language": "ja, en", "license": "MIT"},
        description="Novels",
        date_downloaded="2021-05-06",
    )
    generated = "Tokenized dataset created with packtok"
    for subset, details, description in (
        ("all", {}, generated),
        ("own", {"language": "de", "license": "CC0-1.0"}, "Only the German ones"),
    ):
        form = raw / "tokenized" / "t" / subset
        info = {"tokenizer": "/home/me/llama/tokenizer.json", "file_prefix": "tokenized"}
        write(form, details, description=description, date_downloaded="2025-01-01", tokenized_info=info)
    base = Base(tmp_path, None)
    without_index = all_entries(base)

    def facts(query: Query) -> list[tuple[Any, ...]]:
        keys = ("path", "language", "license", "date")
        with closing(Index(tmp_path / INDEX_NAME)) as index:
            entries = index.find(query).entries
        return [
            (*(entry[key] for key in keys), json.loads(entry["entry"])["description"]) for entry in entries
        ]

    for language in ("ja, en", "fr"):
        if language == "fr":
            # Only the raw dataset changes.
            write(raw, {"language": language}, description="Novels", date_downloaded="2021-05-06")
            license_ = None
        else:
            license_ = "MIT"
        build_index(tmp_path)
        form = "x/raw-set/tokenized/t/{}/metadata.json"
        inherits = (form.format("all"), language, license_, "2021-05-06", "Novels")
        own = (form.format("own"), "de", "CC0-1.0", "2021-05-06", "Only the German ones")
        assert facts(Query(tokenizer=("llama",))) == [inherits, own]
        assert facts(Query(language=(language[:2],), tokenizer=("llama",), date=("2021",))) == [inherits]
        assert facts(Query(license=("CC0-1.0",))) == [own]
        assert [path for path, *_ in facts(Query(words="novels"))][1:] == [inherits[0]]
    entries = [{key: entry[key] for key in entry if key != "id"} for entry in without_index]
    write(raw, {"language": "ja, en", "license": "MIT"}, description="Novels", date_downloaded="2021-05-06")
    build_index(tmp_path)
    indexed = [{key: entry[key] for key in entry if key != "id"} for entry in all_entries(base)]
    for entry in (*entries, *indexed):
        del entry["modified_ns"]
    assert entries == indexed


def test_groups_keep_the_forms_of_a_raw_dataset_together(index: Index) -> None:
    raws = {entry["path"]: entry["parent"] or entry["path"] for entry in index.entries()}
    for words, sort in (("", "tokens"), ("", "best"), ("co", "name"), ("web", "best"), ("sto", "date")):
        plain = index.find(Query(words=words, sort=sort, limit=1000)).entries
        grouped = index.find(Query(words=words, sort=sort, is_grouped=True, limit=1000)).entries
        order = list(dict.fromkeys(raws[entry["path"]] for entry in plain))
        expected = sorted(
            plain, key=lambda entry: (order.index(raws[entry["path"]]), entry["parent"] is not None)
        )
        assert grouped == expected


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gpt2", "gpt2"),
        ("meta-llama/Llama-2-7b", "meta-llama/Llama-2-7b"),
        ("/home/me/llama/tokenizer.json", "llama"),
        ("/home/me/llama", "llama"),
        ("./tok/own.json", "own"),
        ("../tokenizer.model", "tokenizer"),
        ("models/spm.model", "spm"),
        ("~/bloom/", "bloom"),
        ("/", "/"),
        ("tokenizer.json", "tokenizer"),
    ],
)
def test_tokenizer_is_shown_by_its_name_and_not_by_a_path(text: str, name: str) -> None:
    assert tokenizer_name(text) == name


def names_of_search(base: Path, words: str) -> list[str]:
    with closing(Index(base / INDEX_NAME)) as index:
        names = sorted(entry["name"] for entry in index.find(Query(words=words)).entries)
        assert names == sorted(entry["name"] for entry in index.search(words))
    return names


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("小説", ["近代日本小説集"]),
        ("日本小説", ["近代日本小説集"]),
        ("近", ["近代日本小説集"]),
        ("集", ["近代日本小説集"]),
        ("日説", []),
        ("Aozora小説", ["近代日本小説集"]),
        ("カ\u3099イト\u3099", ["ガイド"]),
        ("국어", ["한국어"]),
        ("🎉", ["Party 🎉🤖"]),
        ("🤖 party", ["Party 🎉🤖"]),
        ("🙂", []),
        ("pajama", ["Tales"]),
        ("stroies", ["Tales"]),
        ("short stroies", ["Tales"]),
        ("shrot stroies", ["Tales"]),
        ("stroies party", []),
        ("sroeis", []),
        ("tal", ["Tales"]),
        ("tla", []),
    ],
)
def test_words_of_every_script_and_words_with_a_typo_are_found(
    scripts: Path, words: str, names: list[str]
) -> None:
    assert names_of_search(scripts, words) == names


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("scripts")
    write(base / "x" / "a", name="近代日本小説集", description="From Aozora")
    write(base / "x" / "b", name="ガイド")
    write(base / "x" / "c", name="한국어")
    write(base / "x" / "d", name="Party 🎉🤖")
    write(base / "x" / "red_pajama", name="Tales", description="Short stories")
    build_index(base)
    return base


def test_corrected_words_are_named(scripts: Path) -> None:
    with closing(Index(scripts / INDEX_NAME)) as index:
        assert index.find(Query(words="short stroies")).corrections == {"stroies": ["stories"]}
        for words in ("stories", "xyzzyx", "stories party", "stroies xyzzyx", ""):
            assert index.find(Query(words=words)).corrections == {}


def test_neighbours_are_those_of_plain_edits() -> None:
    def edits(word: str) -> set[str]:
        cuts = [(word[:i], word[i:]) for i in range(len(word) + 1)]
        made = {a + b[1:] for a, b in cuts} | {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
        made |= {a + char + b for a, b in cuts for char in "abc"}
        made |= {a + char + b[1:] for a, b in cuts if b for char in "abc"}
        return made - {word}

    source = random.Random(3)
    words = sorted({"".join(source.choices("abc", k=source.randrange(1, 9))) for _ in range(2000)})
    vocabulary = Vocabulary("\n".join(words))
    for _ in range(200):
        word = "".join(source.choices("abc", k=source.randrange(4, 9)))
        expected = sorted({*words} & edits(word))
        assert vocabulary.neighbours(word) == expected[:8], word
        assert vocabulary.has_start(word) == any(other.startswith(word) for other in words)
    assert vocabulary.neighbours("abc") == []

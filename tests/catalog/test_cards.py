"""Cards of datasets: accepted by `mlcroissant` and the hub, with hostile texts, and read back."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import PacktokCli

import packtok
from packtok.catalog.cards.answers import answers_of_card
from packtok.catalog.cards.markdown import escaped, size_category, unescaped
from packtok.catalog.schema import load_metadata
from packtok.commands.data import answer_questions, create_metadata, write_card
from packtok.commands.tokenize import tokenize
from packtok.errors import ConfigError

# A program that reads cards, checks the issues that mlcroissant reports, and loads the records of each.
VALIDATE = """
import json, sys, mlcroissant
reports = {}
for path in json.loads(sys.argv[1]):
    dataset = mlcroissant.Dataset(jsonld=path)
    issues = dataset.metadata.ctx.issues
    reports[path] = {
        "errors": sorted(issues.errors),
        "again": dataset.metadata.to_json(),
        "records": {
            record_set.uuid: [
                {k: v.decode() for k, v in row.items()} for row in dataset.records(record_set.uuid)
            ]
            for record_set in dataset.metadata.record_sets
        },
    }
print(json.dumps(reports, default=str))
"""
HOSTILE = [
    "---\nlicense: mit\n---\n",
    "x\n---\n",
    "'\"\\: {}[]&*!|>%@`#",
    "yes",
    "1e3",
    "null",
    "~",
    "- a\n- b",
    "<script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "![x](http://example.org/a.png)",
    "```\nopen",
    "a\u2028b\u2029c",
    "\x1b[31m",
    "\u202egnp.exe",
    "# title\n\nmore",
    "a | b",
    "\x00",
    "🥐",
    "${HOME}",
    "1. one",
    "a\nb: c",
    "\ufeffx",
    "x" * 5000,
    "...\n",
    "? a",
    "@context",
    "urn:packtok:x",
    "a\\\nb",
    "=====",
    "\t",
]


def write_raw(folder: Path, texts: list[str], name: str = "a.jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps({"text": text, "id": "n"}) + "\n" for text in texts))
    return folder


def describe(folder: Path, data: Path | None = None, **answers: Any) -> Path:
    metadata = {"output": str(folder / "metadata.json"), "dataset_path": str(data or folder), **answers}
    create_metadata({"name": "Stories", "date_downloaded": "2024-12-01", **metadata}, existing="replace")
    return folder


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a described folder with raw data in it."""
    folder = tmp_path_factory.mktemp("cards") / "stories"
    write_raw(folder / "raw", ["some words", "more words"])
    write_raw(folder / "raw", ["and more"], "b.jsonl")
    return describe(
        folder,
        folder / "raw",
        description="Stories, an example",
        license="ODC-By-1.0",
        language="en",
        download_source="https://example.org/stories",
    )


@pytest.fixture(scope="module")
def tokenized(raw: Path) -> Path:
    """Returns the tokenized form of `raw`."""
    folder = raw / "tokenized" / "gpt2" / "all"
    tokenize(str(raw), "gpt2", folder)
    return folder


def croissant(path: Path, **options: Any) -> dict[str, Any]:
    card: dict[str, Any] = json.loads(write_card(str(path), **options)["card"])
    return card


def markdown(path: Path) -> tuple[dict[str, Any], str]:
    card = write_card(str(path), format="markdown")["card"]
    # The expression by which huggingface_hub finds the header.
    match = re.match(r"^(\s*---[\r\n]+)([\S\s]*?)([\r\n]+---(\r\n|\n|\r|$))", card)
    assert match is not None
    return yaml.safe_load(match[2]), card[match.end() :]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def files_of(card: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {file["contentUrl"]: file for file in card["distribution"] if file["@type"] == "cr:FileObject"}


def test_every_file_has_the_hash_of_its_bytes(raw: Path, tokenized: Path) -> None:
    for folder, names in (
        (raw, ["raw/a.jsonl", "raw/b.jsonl"]),
        (tokenized, ["tokenized.pbin", "tokenizer.json"]),
    ):
        files = files_of(croissant(folder))
        assert list(files) == names
        for name, file in files.items():
            assert file["sha256"] == sha256(folder / name)
            assert file["contentSize"] == f"{(folder / name).stat().st_size} B"
            assert file["sha256"] in markdown(folder)[1]


def test_card_of_raw_data_says_what_is_known(raw: Path) -> None:
    card = croissant(raw)
    expected = {
        "name": "Stories",
        "description": "Stories, an example",
        "license": "ODC-By-1.0",
        "inLanguage": ["en"],
        "url": "https://example.org/stories",
        "packtok:documents": 3,
        "packtok:dateDownloaded": "2024-12-01",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "@type": "sc:Dataset",
    }
    assert {key: card[key] for key in expected} == expected
    (record_set,) = card["recordSet"]
    assert [(field["name"], field["source"]["extract"]) for field in record_set["field"]] == [
        ("id", {"column": "id"}),
        ("text", {"column": "text"}),
    ]
    assert not any(key.startswith("prov:") for key in card)
    header, body = markdown(raw)
    assert header == {
        "pretty_name": "Stories",
        "license": "odc-by",
        "language": ["en"],
        "size_categories": ["n<1K"],
        "tags": ["text"],
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "raw/*.jsonl"}]}],
        "dataset_info": {"download_size": sum(file.stat().st_size for file in (raw / "raw").iterdir())},
    }
    assert "\n# Stories\n\nStories, an example\n\n" in body


def test_lineage_goes_from_the_packed_file_to_its_raw_sources(raw: Path, tokenized: Path) -> None:
    reader = packtok.PbinReader(tokenized / "tokenized.pbin")
    card = croissant(tokenized)
    parent, *sources = card["prov:wasDerivedFrom"]
    assert (parent["@type"], parent["name"]) == ("prov:Entity", "Stories")
    assert [(source["name"], source["contentSize"], source["packtok:crc32c"]) for source in sources] == [
        (source["path"], f"{source['bytes']} B", f"{source['crc32c']:08x}") for source in reader.sources
    ]
    ids = [{"@id": source["@id"]} for source in sources]
    assert files_of(card)["tokenized.pbin"]["prov:wasDerivedFrom"] == ids
    run = card["prov:wasGeneratedBy"]
    assert run["prov:used"] == ids
    assert run["prov:wasAssociatedWith"]["softwareVersion"] == reader.metadata["writer"]["version"]
    assert run["packtok:tokenizer"]["packtok:fingerprint"] == reader.metadata["tokenizer"]["fingerprint"]
    options = run["packtok:options"]["@value"]
    assert options == {**reader.metadata["options"], "eod": reader.metadata["eod"]}
    body = markdown(tokenized)[1]
    assert f"| tokens | {reader.num_tokens:,} |" in body
    assert all(f"{source['crc32c']:08x}" in body for source in reader.sources)


def test_pbin_alone_has_a_card(tokenized: Path, tmp_path: Path) -> None:
    pbin = tmp_path / "some.pbin"
    pbin.write_bytes((tokenized / "tokenized.pbin").read_bytes())
    card = croissant(pbin)
    assert card["name"] == "some"
    assert list(files_of(card)) == ["some.pbin"]
    assert card["prov:wasGeneratedBy"]["packtok:tokenizer"]["name"] == "gpt2"
    assert markdown(pbin)[0]["tags"] == ["text", "tokenized", "packtok"]
    pbin.write_bytes(b"no pbin")
    with pytest.raises(packtok.PacktokError, match=r"some\.pbin"):
        write_card(str(pbin))


def test_same_dataset_has_the_same_card_wherever_it_is(raw: Path, tokenized: Path, tmp_path: Path) -> None:
    corpus = write_raw(tmp_path / "secret-user" / "in", ["one text"])
    absolute = tmp_path / "absolute.pbin"
    packtok.pack(input=str(corpus / "a.jsonl"), output=absolute, tokenizer="gpt2")
    for format in ("croissant", "markdown"):
        cards = [write_card(str(path), format=format)["card"] for path in (raw, tokenized, absolute)]
        moved = tmp_path / format / "moved"
        moved.parent.mkdir()
        (tokenized.parents[2]).rename(moved)
        try:
            if load_metadata(moved).dataset_path is not None:
                values = load_metadata(moved)
                values.dataset_path = str(moved / "raw")
                values.save(moved / "metadata.json")
            again = [
                write_card(str(path), format=format)["card"] for path in (moved, moved / "tokenized/gpt2/all")
            ]
        finally:
            moved.rename(raw)
            values.dataset_path = str(raw / "raw")
            values.save(raw / "metadata.json")
        assert again == cards[:2]
        for card in cards:
            assert str(tmp_path) not in card
            assert "secret-user" not in card
            assert os.sep + "tmp" not in card


def test_corpora_are_record_sets_and_configs_of_their_own(tmp_path: Path) -> None:
    for corpus in ("news", "old blogs"):
        write_raw(tmp_path / "parts" / corpus, [corpus])
    describe(
        tmp_path,
        corpus=["news", "old blogs"],
        corpus_separation_strategy="data_dirs",
        corpus_data_dir_parent="parts",
    )
    card = croissant(tmp_path)
    assert [record_set["@id"] for record_set in card["recordSet"]] == [
        "documents-news",
        "documents-old%20blogs",
    ]
    sets = [file["includes"] for file in card["distribution"] if file["@type"] == "cr:FileSet"]
    assert sets == [["parts/news/*.jsonl"], ["parts/old blogs/*.jsonl"]]
    assert [config["config_name"] for config in markdown(tmp_path)[0]["configs"]] == ["news", "old blogs"]


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_are_only_texts(tmp_path: Path, text: str) -> None:
    write_raw(tmp_path, ["a text"])
    describe(tmp_path)
    values = json.loads((tmp_path / "metadata.json").read_text())
    values |= {"name": text, "description": text, "download_source": text, "date_downloaded": text}
    (tmp_path / "metadata.json").write_text(json.dumps(values))
    details = json.loads((tmp_path / "metadata.packtok.json").read_text())
    details |= {"license": text, "language": text}
    (tmp_path / "metadata.packtok.json").write_text(json.dumps(details))
    card = croissant(tmp_path)
    assert (card["name"], card.get("description", "")) == (text, text)
    header, body = markdown(tmp_path)
    assert set(header) <= {
        "pretty_name",
        "license",
        "license_name",
        "language",
        "size_categories",
        "tags",
        "configs",
        "dataset_info",
    }
    assert header["license"] in ("other", "mit")
    assert header["pretty_name"] == " ".join("".join(c if c.isprintable() else " " for c in text).split())
    for line in body.splitlines():
        assert not line.startswith(("---", "===", "```\nopen")), line
    before_code = body.partition("## Load it")[0]
    assert not re.search(r"(?<!\\)[<>\[\]`*]", before_code.replace("\\\\", ""))
    assert body.count("\n# ") == 1


def test_card_with_halves_of_surrogate_pairs_is_written(tmp_path: Path) -> None:
    write_raw(tmp_path, ["a text"])
    describe(tmp_path)
    values = json.loads((tmp_path / "metadata.json").read_text()) | {
        "name": "a\ud800b",
        "description": "\udfff",
    }
    (tmp_path / "metadata.json").write_text(json.dumps(values))
    for format in ("croissant", "markdown"):
        write_card(str(tmp_path), format=format, output=tmp_path / f"card.{format}")
    assert json.loads((tmp_path / "card.croissant").read_text())["name"] == "a\ud800b"
    assert "a?b" in (tmp_path / "card.markdown").read_text()


def test_changed_missing_and_foreign_files_are_errors(tmp_path: Path) -> None:
    write_raw(tmp_path / "data", ["a text"])
    (tmp_path / "outside.jsonl").write_text("{}\n")
    folder = describe(tmp_path / "data")
    with (folder / "a.jsonl").open("a") as file:
        file.write('{"text": "new"}\n')
    with pytest.raises(
        ConfigError, match=r"a\.jsonl: the file has .* bytes, expected .*packtok data validate"
    ):
        write_card(str(folder))
    (folder / "a.jsonl").unlink()
    with pytest.raises(FileNotFoundError):
        write_card(str(folder))
    details = json.loads((folder / "metadata.packtok.json").read_text())
    for path in ("../outside.jsonl", str(tmp_path / "outside.jsonl"), "x/../../outside.jsonl"):
        details["files"] = [{"path": path}]
        (folder / "metadata.packtok.json").write_text(json.dumps(details))
        with pytest.raises(ConfigError, match="but a card describes one folder"):
            write_card(str(folder))


def test_details_of_other_types_are_left_out(tmp_path: Path) -> None:
    write_raw(tmp_path, ["a text"])
    describe(tmp_path)
    details = {"packtok_metadata": 1, "documents": "3", "language": 7, "license": [], "fields": {"a": 1}}
    details |= {"format": 5, "text_bytes": True, "files": [1, {"path": 2}]}
    (tmp_path / "metadata.packtok.json").write_text(json.dumps(details))
    card = croissant(tmp_path)
    assert list(files_of(card)) == ["a.jsonl"]
    assert not {"packtok:documents", "license", "inLanguage", "recordSet"} & {*card}
    assert "size_categories" not in markdown(tmp_path)[0]


def test_large_file_is_hashed_in_parts_and_reported(tmp_path: Path) -> None:
    size = 64 << 20
    with (tmp_path / "a.jsonl").open("wb") as file:
        file.truncate(size)
    (tmp_path / "metadata.json").write_text(
        json.dumps(
            dict.fromkeys(("name", "description", "date_downloaded", "download_source"), "")
            | {"data_content": "other"}
        )
    )
    counts: list[dict[str, int]] = []
    tracemalloc.start()
    card = croissant(tmp_path, on_progress=counts.append)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20
    assert counts[-1] == {"bytes_read": size, "total_bytes": size}
    assert files_of(card)["a.jsonl"]["sha256"] == sha256(tmp_path / "a.jsonl")

    def stop(_: dict[str, int]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_card(str(tmp_path), output=tmp_path / "card.json", on_progress=stop)
    assert not (tmp_path / "card.json").exists()


def test_file_that_grows_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    write_raw(tmp_path, ["a text"])
    describe(tmp_path)

    def grow(_: dict[str, int]) -> None:
        with (tmp_path / "a.jsonl").open("a") as file:
            file.write("x")
        if (tmp_path / "a.jsonl").stat().st_size > 200:
            return

    with pytest.raises(ConfigError, match="the file has changed while it was read"):
        write_card(str(tmp_path), on_progress=_at_most(grow, 3))


def _at_most(work: Any, times: int) -> Any:
    left = [times]

    def limited(counts: dict[str, int]) -> None:
        if left[0]:
            left[0] -= 1
            work(counts)

    return limited


def test_hashes_of_sha256sum_are_reused(raw: Path, tmp_path: Path) -> None:
    sums = raw / "raw" / "SHA256SUMS"
    try:
        sums.write_text(f"{'a' * 64}  a.jsonl\n{'b' * 64} *unrelated\n")
        read: list[dict[str, int]] = []
        files = files_of(croissant(raw, checksums=sums, on_progress=read.append))
        assert files["raw/a.jsonl"]["sha256"] == "a" * 64
        assert files["raw/b.jsonl"]["sha256"] == sha256(raw / "raw" / "b.jsonl")
        assert read[-1]["total_bytes"] == (raw / "raw" / "b.jsonl").stat().st_size
        sums.write_text("no hash\n")
        with pytest.raises(ConfigError, match="line 1 is 'no hash', expected a SHA-256 and a path"):
            write_card(str(raw), checksums=sums)
    finally:
        sums.unlink()


def test_card_is_replaced_only_on_request(raw: Path, tmp_path: Path, packtok_cli: PacktokCli) -> None:
    output = tmp_path / "README.md"
    output.write_text("mine")
    done = packtok_cli("data", "card", raw, "--format", "markdown", "-o", output, code=1)
    assert "the card already exists; give another, or --existing replace" in done.stderr
    assert output.read_text() == "mine"
    packtok_cli("data", "card", raw, "--format", "markdown", "-o", output, "--existing", "replace", "-q")
    stdout = packtok_cli("data", "card", raw, "--format", "markdown", "-q").stdout
    assert output.read_text() == stdout
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (
        "--format is 'html', expected 'croissant' or 'markdown'"
        in packtok_cli("data", "card", raw, "--format", "html", code=2).stderr
    )


def test_size_categories_are_those_of_the_hub() -> None:
    expected = {0: "n<1K", 999: "n<1K", 1000: "1K<n<10K", 10**6: "1M<n<10M", 10**9: "1B<n<10B"}
    expected |= {10**11: "100B<n<1T", 10**12: "n>1T", 10**16: "n>1T"}
    assert {number: size_category(number) for number in expected} == expected


@pytest.mark.parametrize("text", HOSTILE)
def test_escaped_text_is_read_back(text: str) -> None:
    assert unescaped(escaped(text)) == text


@pytest.mark.parametrize("format", ["croissant", "markdown"])
def test_own_card_gives_back_the_answers(raw: Path, tmp_path: Path, format: str) -> None:
    card = tmp_path / "card"
    write_card(str(raw), format=format, output=card)
    answers = answers_of_card(card)
    expected = {"name": "Stories", "description": "Stories, an example", "language": "en"}
    assert {key: answers[key] for key in expected} == expected
    if format == "croissant":
        assert answers["license"] == "ODC-By-1.0"
        assert answers["download_source"] == "https://example.org/stories"
        assert answers["date_downloaded"] == "2024-12-01"
        assert (answers["data_content"], answers["content_field"]) == ("text", "text")
    answers = answer_questions({"license": "CC0-1.0", "output": "m.json", "name": None}, card=card)
    assert (answers["license"], answers["name"]) == ("CC0-1.0", "Stories")


HUB_CARD = """---
license: other
license_name: my-license
language:
- en
- de
pretty_name: "Web: the corpus"
dataset_info:
- config_name: news
  features:
  - name: url
    dtype: string
  - name: content
    dtype: string
configs:
- config_name: news
- config_name: blogs
downloads: 2024-01-01
---

# Dataset Card

<div align="center"><img src="x"></div>

## Summary

Texts of the web,
collected in 2024.

More.
"""


def test_hub_card_gives_answers(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(HUB_CARD)
    assert answers_of_card(tmp_path / "README.md") == {
        "name": "Web: the corpus",
        "description": "Texts of the web,\ncollected in 2024.",
        "license": "my-license",
        "language": "en, de",
        "content_field": "content",
        "corpus": ["news", "blogs"],
        "corpus_separation_strategy": "configs",
    }
    (tmp_path / "README.md").write_text("---\nlicense:\n- mit\n- apache-2.0\n---\n# A *title*\n")
    answers = answers_of_card(tmp_path / "README.md")
    assert answers == {"license": "mit, apache-2.0", "name": "A *title*"}


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_croissant_of_others_gives_answers(tmp_path: Path, version: str) -> None:
    card = {
        "@type": "https://schema.org/Dataset",
        "conformsTo": [f"http://mlcommons.org/croissant/{version}"],
        "name": {"@value": "Cats", "@language": "en"},
        "description": "d",
        "url": ["https://example.org/cats"],
        "license": {"@type": "CreativeWork", "name": "CC-BY-4.0"},
        "inLanguage": ["en", {"name": "German"}, 3],
        "recordSet": {
            "field": [
                {"dataType": "sc:Text", "source": {"extract": {"column": "caption"}}},
                {"dataType": ["sc:ImageObject"], "source": "odd"},
                "no field",
            ]
        },
    }
    (tmp_path / "c.json").write_text(json.dumps(card))
    assert answers_of_card(tmp_path / "c.json") == {
        "name": "Cats",
        "description": "d",
        "license": "CC-BY-4.0",
        "language": "en, German",
        "download_source": "https://example.org/cats",
        "data_content": "image",
        "content_field": "caption",
    }


DATASET = '{"@type": "sc:Dataset", "conformsTo": "http://mlcommons.org/croissant/1.1"'
BROKEN_CARDS = {
    "": "is neither a Croissant card nor Markdown",
    "# No header": "is neither a Croissant card nor Markdown",
    "---\nlicense: mit\n": "is neither a Croissant card nor Markdown",
    "{": "not valid JSON",
    "{}": "@type is None, expected sc:Dataset",
    '{"@type": "sc:Dataset"}': "conforms to nothing, expected Croissant 1.0 or 1.1",
    '{"@type": "sc:Dataset", "conformsTo": "http://mlcommons.org/croissant/0.8"}': "conforms to http",
    '{"@type": ["sc:Person", 3, {}]}': "expected sc:Dataset",
    f'{DATASET}, "x": {"[" * 80}{"]" * 80}}}': "is nested deeper than 64 levels",
    f'{DATASET}, "x": {"[" * 100_000}{"]" * 100_000}}}': "not valid JSON",
    f'{DATASET}, "x": {"1" * 5000}}}': "not valid JSON",
    "---\n- a\n---\n": "the header is a list, expected a mapping",
    "---\na: [\n---\n": "not valid YAML",
    "---\n!!python/object/apply:os.system [touch hacked]\n---\n": "not valid YAML",
    "---\na: !!int x\n---\n": "not valid YAML",
    "---\na: !!int ''\n---\n": "not valid YAML",
    f"---\na: {'1' * 5000}\n---\n": "not valid YAML",
    "---\n" + "a: " + "[" * 5000 + "\n---\n": "not valid YAML",
    "---\n" + "a: b\n" * 60_000 + "---\n": "the header is larger than 256 KiB",
}


@pytest.mark.parametrize("content", BROKEN_CARDS, ids=range(len(BROKEN_CARDS)))
def test_broken_card_is_one_clear_error(tmp_path: Path, content: str) -> None:
    card = tmp_path / "card"
    card.write_text(content)
    with pytest.raises(ConfigError) as raised:
        answers_of_card(card)
    message = str(raised.value)
    assert message.startswith(f"{card}: ")
    assert BROKEN_CARDS[content] in message
    assert len(message) < 600
    assert "\n" not in message
    assert not (tmp_path / "hacked").exists()


def test_aliases_that_multiply_are_an_error(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 40))
    (tmp_path / "card").write_text(f"---\n{bomb}language: *a39\npretty_name: N\n---\n")
    with pytest.raises(ConfigError, match="stands for more than 1,000,000 values; remove aliases from it"):
        answers_of_card(tmp_path / "card")


def test_card_that_is_no_text_or_too_large_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "card").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="byte 0 is not UTF-8"):
        answers_of_card(tmp_path / "card")
    with (tmp_path / "card").open("wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(ConfigError, match="is larger than 16 MiB, but a card was expected"):
        answers_of_card(tmp_path / "card")
    with pytest.raises(FileNotFoundError):
        answers_of_card(tmp_path / "none")


def test_flags_win_over_the_card(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    write_raw(tmp_path, ["a text"])
    (tmp_path / "README.md").write_text("---\npretty_name: From the card\nlicense: mit\n---\n\nWords.\n")
    packtok_cli(
        "data",
        "create-metadata",
        "--yes",
        "--from",
        "README.md",
        "--license",
        "CC0-1.0",
        "--dataset-path",
        "a.jsonl",
        "--output",
        "metadata.json",
        cwd=tmp_path,
    )
    values = json.loads((tmp_path / "metadata.json").read_text())
    assert (values["name"], values["description"]) == ("From the card", "Words.")
    assert json.loads((tmp_path / "metadata.packtok.json").read_text())["license"] == "CC0-1.0"
    done = packtok_cli("data", "create-metadata", "--yes", "--from", "a.jsonl", cwd=tmp_path, code=2)
    assert len(done.stderr.splitlines()) == 1
    assert "a.jsonl: @type is None, expected sc:Dataset" in done.stderr


def test_hub_library_reads_a_folder_with_its_card(raw: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    folder = tmp_path / "repository"
    write_raw(folder / "raw", ["some words", "more words"])
    describe(folder, folder / "raw")
    write_card(str(folder), format="markdown", output=folder / "README.md")
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert loaded["train"]["text"][:] == ["some words", "more words"]


def test_cards_are_written_at_the_same_time(raw: Path, tmp_path: Path) -> None:
    output = tmp_path / "card.json"
    threads = [
        threading.Thread(target=lambda: write_card(str(raw), output=output, existing="replace"))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert json.loads(output.read_text())["name"] == "Stories"
    assert [path.name for path in tmp_path.iterdir()] == ["card.json"]


def test_mlcroissant_accepts_cards_and_reads_the_records(raw: Path, tokenized: Path, tmp_path: Path) -> None:
    python = os.environ.get("PACKTOK_MLCROISSANT_PYTHON")
    if not python:
        pytest.skip("needs PACKTOK_MLCROISSANT_PYTHON, a Python with mlcroissant installed, not set")
    cards = {}
    write_card(str(raw), output=raw / "croissant.json", existing="replace")
    write_card(str(tokenized), output=tokenized / "croissant.json", existing="replace")
    cards[str(raw / "croissant.json")] = {"documents": ["some words", "more words", "and more"]}
    cards[str(tokenized / "croissant.json")] = {}
    tables = {
        "t.csv": ("text,b\nfirst,1\nsecond,2\n", ["first", "second"]),
        "t.tsv": ("text\tb\nfirst\t1\n", ["first"]),
        "t.txt": ("one text\nin two lines", ["one text\nin two lines"]),
        "a b, 'c'é#%20?.jsonl": ('{"text": "odd name"}\n', ["odd name"]),
    }
    for i, (name, (content, texts)) in enumerate(tables.items()):
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / name).write_text(content)
        describe(folder, description=HOSTILE[i], name=HOSTILE[i])
        write_card(str(folder), output=folder / "croissant.json")
        cards[str(folder / "croissant.json")] = {"documents": texts}
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    for i, text in enumerate(HOSTILE):
        folder = hostile / str(i)
        write_raw(folder, ["text"])
        describe(folder, name=text or "x", description=text, license=text, language=text)
        write_card(str(folder), output=folder / "croissant.json")
        cards[str(folder / "croissant.json")] = {"documents": ["text"]}
    done = subprocess.run(
        [python, "-W", "ignore", "-c", VALIDATE, json.dumps(list(cards))],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "`@context` is not standard" not in done.stderr
    reports = json.loads(done.stdout.splitlines()[-1])
    for path, texts in cards.items():
        assert reports[path]["errors"] == [], path
        records = {
            name: [row[f"{name}/text"] for row in rows] for name, rows in reports[path]["records"].items()
        }
        assert records == texts, path
    again = reports[str(tokenized / "croissant.json")]["again"]
    assert len(again["prov:wasDerivedFrom"]) == 3
    assert again["prov:wasGeneratedBy"]["prov:wasAssociatedWith"]["name"] == "packtok"

"""Descriptions of datasets: tatm's questions and files, without its crashes, and checks against the data."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from conftest import MAIN, PacktokCli

from packtok.catalog.corpora import corpus_input
from packtok.catalog.schema import DatasetMetadata, load_details, load_metadata
from packtok.commands.data import answer_questions, create_metadata, validate_metadata
from packtok.errors import ConfigError

# All keys that tatm 0.2.2 knows; it refuses others.
TATM_KEYS = {
    *("name", "dataset_path", "description", "date_downloaded", "download_source", "data_content"),
    *("content_field", "corpuses", "corpus_separation_strategy", "corpus_data_dir_parent", "tokenized_info"),
}
TATM_TOKENIZED_KEYS = {
    *("tokenizer", "file_prefix", "dtype", "file_extension", "parent_datasets", "vocab_size"),
    *("tatm_version", "tokenizers_version"),
}
# As tatm writes them: one line of JSON, and YAML with a date that YAML would take for one.
WRITTEN_BY_TATM = {
    "metadata.json": (
        '{"name": "Red Pajama", "dataset_path": "/data/rp", "description": "d", "date_downloaded": '
        '"2024-12-01", "download_source": "hub", "data_content": "text", "content_field": "text", '
        '"corpuses": ["arxiv", "book"], "corpus_separation_strategy": "configs"}'
    ),
    "metadata.yaml": (
        "content_field: NA\ncorpuses: []\ndata_content: text\ndataset_path: /data/tok\n"
        "date_downloaded: 2024-12-01\ndescription: Tokenized dataset created using tatm\n"
        "download_source: Tokenized by tatm\nname: tokenized\ntokenized_info:\n  dtype: uint16\n"
        "  file_extension: bin\n  file_prefix: /data/tok/tokenized\n"
        "  parent_datasets:\n  - Red Pajama:arxiv\n"
        "  tatm_version: 0.2.2\n  tokenizer: t5-base\n  tokenizers_version: 0.21.0\n  vocab_size: 32100\n"
    ),
}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Returns a folder with two corpora as Parquet."""
    folder = tmp_path / "web"
    for name, num in (("arxiv", 3), ("book", 4)):
        (folder / "parts" / name).mkdir(parents=True)
        rows = pa.table({"id": range(num), "content": [f"text {i}" for i in range(num)]})
        pq.write_table(rows, folder / "parts" / name / "a.parquet")
    return folder


CORPORA = {
    "corpus": ["arxiv", "book"],
    "corpus_separation_strategy": "data_dirs",
    "corpus_data_dir_parent": "parts",
}


@pytest.mark.parametrize("name", WRITTEN_BY_TATM)
def test_file_of_tatm_is_read_and_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(WRITTEN_BY_TATM[name])
    metadata = load_metadata(tmp_path)
    assert metadata.date_downloaded == "2024-12-01"
    (tmp_path / "again").mkdir()
    metadata.save(tmp_path / "again" / name)
    parse = json.loads if name.endswith("json") else yaml.safe_load
    before, after = (parse((folder / name).read_text()) for folder in (tmp_path, tmp_path / "again"))
    # YAML takes a date for one unless it is quoted.
    before["date_downloaded"] = str(before["date_downloaded"])
    assert after == before


def test_unknown_keys_are_kept(tmp_path: Path) -> None:
    values = json.loads(WRITTEN_BY_TATM["metadata.json"]) | {"owner": {"team": "data"}}
    values["tokenized_info"] = {"tokenizer": "t5", "file_prefix": "t", "extra": 1}
    (tmp_path / "metadata.json").write_text(json.dumps(values))
    written = load_metadata(tmp_path).to_dict()
    assert written["owner"] == {"team": "data"}
    assert written["tokenized_info"]["extra"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": None}, "key name is missing; add it, it may be empty"),
        ({"data_content": "vid"}, "key data_content is 'vid', expected 'text' or 'image' or"),
        ({"corpuses": "arxiv"}, "key corpuses is 'arxiv', expected a list of texts"),
        ({"corpuses": [1]}, "key corpuses is [1], expected a list of texts"),
        ({"description": 5}, "key description is 5, expected a text"),
        ({"tokenized_info": "yes"}, "key tokenized_info is 'yes', expected a mapping"),
        ({"tokenized_info": {"tokenizer": "t"}}, "key tokenized_info.file_prefix is missing"),
        (
            {"tokenized_info": {"tokenizer": "t", "file_prefix": "f", "vocab_size": "9"}},
            "key tokenized_info.vocab_size is '9', expected an integer",
        ),
    ],
)
def test_invalid_key_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "metadata.json"
    path.write_text(json.dumps(json.loads(WRITTEN_BY_TATM["metadata.json"]) | change))
    with pytest.raises(ConfigError) as raised:
        load_metadata(path)
    assert str(raised.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("metadata.json", b"{", "not valid JSON"),
        ("metadata.json", b"[]", "is a list, expected a mapping"),
        ("metadata.json", b"[" * 100_000, "not valid JSON"),
        ("metadata.json", b"\xff", "byte 0 is not UTF-8"),
        ("metadata.yaml", b"a: [", "not valid YAML"),
        ("metadata.yaml", b"!!python/object/apply:os.system ['touch hacked']", "not valid YAML"),
        ("metadata.yaml", b"1: 2", "is a dict, expected a mapping"),
        ("metadata.yaml", b"a: !!int x", "not valid YAML: "),
        ("metadata.yaml", b"a: !!bool x", "not valid YAML: "),
        ("metadata.yaml", b"a: !!timestamp x", "not valid YAML: "),
        ("metadata.yaml", b"a: " + b"1" * 5000, "not valid YAML: "),
        ("metadata.yaml", b"a: 0x" + b"f" * 5000, "contains an integer of more than 4,000 digits"),
        ("metadata.yaml", b"a: !!timestamp 2001-01-01", "contains a value of type date, which JSON"),
        ("metadata.yaml", b"a: [!!binary aGk=]", "contains a value of type bytes, which JSON"),
    ],
)
def test_damaged_file_is_an_error(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        load_metadata(tmp_path)
    assert not Path("hacked").exists()


def test_number_of_thousands_of_digits_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "metadata.json"
    path.write_text('{"name": ' + "9" * 5000 + "}")
    expected = f"{path}: not valid JSON: Exceeds the limit (4300 digits) "
    with pytest.raises(ConfigError, match=re.escape(expected)):
        load_metadata(path)


def test_every_combination_of_answers_works(dataset: Path, tmp_path: Path) -> None:
    """tatm crashes unless there are several corpora, separated as folders."""
    corpora: list[dict[str, Any]] = [
        {},
        {"corpus": ["arxiv"]},
        {**CORPORA},
        {"corpus": ["arxiv", "book"], "corpus_separation_strategy": "configs"},
    ]
    for i, (output_format, content, corpus, tokenized) in enumerate(
        itertools.product(("json", "yaml"), ("text", "image", "other"), corpora, ("y", "n"))
    ):
        folder = tmp_path / str(i)
        folder.mkdir()
        created = create_metadata(
            {
                "output_format": output_format,
                "output": str(folder / f"metadata.{output_format}"),
                "name": "Web",
                "dataset_path": str(dataset),
                "data_content": content,
                "tokenized": tokenized,
                **corpus,
            }
        )
        written = load_metadata(folder)
        assert written.to_dict() == created["metadata"]
        assert set(written.to_dict()) <= TATM_KEYS
        assert set(written.to_dict().get("tokenized_info", {})) <= TATM_TOKENIZED_KEYS
        assert written.dataset_folder == dataset
        assert load_details(folder / "metadata.json").items() >= created["details"].items()


def test_defaults_are_those_of_tatm(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    # Empty lines are the defaults, in tatm's order; two more questions follow tatm's.
    packtok_cli("data", "create-metadata", cwd=tmp_path, code=2)
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "data", "create-metadata"],
        cwd=tmp_path,
        input="\n" * 14,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert load_metadata(tmp_path).to_dict() == {
        "name": tmp_path.name,
        "description": "",
        "date_downloaded": datetime.date.today().isoformat(),
        "download_source": "",
        "data_content": "text",
        "content_field": "text",
        "corpuses": [],
    }
    asked = [text.split("[")[0].split("(")[0].strip(" :") for text in done.stdout.split(": ")]
    assert asked[:3] == ["Output format", "Output path", "Name"]
    assert asked[-3:-1] == ["Language", "License"]


def test_answers_are_asked_in_the_order_of_tatm(dataset: Path, tmp_path: Path) -> None:
    answers = [
        *("jsno", "yaml", "", "Web", str(dataset), "some text", "2025-01-02", "the web", "text", ""),
        *("arxiv", "book", "", "folders", "data_dirs", "parts", "n", "en", "ODC-By-1.0"),
    ]
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "data", "create-metadata"],
        cwd=tmp_path,
        input="".join(f"{answer}\n" for answer in answers),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load((tmp_path / "metadata.yaml").read_text()) == {
        "name": "Web",
        "dataset_path": str(dataset),
        "description": "some text",
        "date_downloaded": "2025-01-02",
        "download_source": "the web",
        "data_content": "text",
        "content_field": "content",
        "corpuses": ["arxiv", "book"],
        "corpus_separation_strategy": "data_dirs",
        "corpus_data_dir_parent": "parts",
    }
    details = load_details(tmp_path / "metadata.yaml")
    assert (details["language"], details["license"]) == ("en", "ODC-By-1.0")
    assert details["corpora"]["book"]["documents"] == 4
    assert details["documents"] == 7


class Terminal:
    """``packtok data create-metadata`` on a terminal."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self._controller, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "data", "create-metadata", *flags],
            cwd=folder,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TERM": "dumb"},
        )
        os.close(terminal)

    def until(self, text: str) -> str:
        """Returns what is shown until ``text`` is."""
        shown = ""
        while text not in shown:
            assert select.select([self._controller], [], [], 30)[0], shown
            shown += os.read(self._controller, 4096).decode()
        return shown.replace("\r", "")

    def answer(self, answer: str, until: str) -> str:
        """Types an answer and returns what is shown until ``until``."""
        os.write(self._controller, answer.encode())
        return self.until(until)

    def answers_until_content(self) -> str:
        """Takes the defaults up to the question for the content field, and returns what is shown then."""
        for question in ("Name", "description", "downloaded", "source", "Data content"):
            self.answer("\n", question)
        return self.answer("\n", "Content field [")


def test_terminal_completes_answers_and_shows_guesses(dataset: Path, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "--dataset-path", str(dataset))
    terminal.until("Output format")
    terminal.answer("ya\t\n", "metadata.yaml]")
    size = sum(path.stat().st_size for path in dataset.rglob("*.parquet"))
    shown = terminal.answers_until_content()
    assert shown.partition("Found in")[2].splitlines()[:5] == [
        f"   {dataset}",
        "format     parquet",
        f"files      2, {size / 1e3:.1f} kB ({size:,} bytes)",
        "documents  7",
        "fields     content",
    ]
    for question in ("corpus", "tokenized", "Language", "License"):
        terminal.answer("\n", question)
    terminal.answer("\n", "metadata.yaml")
    assert terminal.process.wait(60) == 0
    assert load_metadata(tmp_path / "metadata.yaml").content_field == "content"
    details = load_details(tmp_path / "metadata.yaml")
    assert (details["format"], details["documents"], details["fields"]) == ("parquet", 7, ["content"])


def test_terminal_shows_why_data_cannot_be_read(dataset: Path, tmp_path: Path) -> None:
    (dataset / "a.jsonl").write_text('{"text": "a"}\n')
    terminal = Terminal(tmp_path, "--dataset-path", str(dataset), "--output-format", "json")
    terminal.until("metadata.json]")
    shown = terminal.answers_until_content()
    assert "The data cannot be read as texts: " in shown
    assert "several formats: 1 JSON lines, 2 Parquet" in shown
    # The answers are still asked for; the error comes when the texts are read.
    for question in ("corpus", "tokenized", "Language", "License"):
        terminal.answer("\n", question)
    terminal.answer("\n", "packtok: ")
    assert terminal.process.wait(60) != 0
    assert not (tmp_path / "metadata.json").exists()


def test_documents_are_estimated_if_counting_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"id": "x", "text": "some words of a text"}\n' * 1_000_000)
    for seconds, is_exact in ((0, False), (1000, True)):
        monkeypatch.setattr("packtok.commands.data.COUNT_SECONDS", seconds)
        shown: list[tuple[Any, Any]] = []
        answer_questions(
            {"dataset_path": str(tmp_path)},
            None,
            lambda found, documents, to=shown: to.append((found, documents)),
        )
        ((found, documents),) = shown
        assert (found.format, found.num_files, found.fields) == ("jsonl", 1, ("id", "text"))
        assert found.content_field == "text"
        # The first report may come before a document is counted.
        assert documents is None or documents.is_exact == is_exact
        if documents is not None:
            # In so short a time, most of what was read may not have been counted yet.
            least, most = (1_000_000, 1_000_000) if is_exact else (1, 1_500_000)
            assert least <= documents.documents <= most
    assert documents is not None


def test_guesses_are_not_made_without_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "data", "create-metadata", "--no-count"],
        cwd=tmp_path,
        input="\n" * 14,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Found in" not in done.stdout + done.stderr
    details = load_details(tmp_path / "metadata.json")
    assert (details["format"], details["source_bytes"], details["fields"]) == ("jsonl", 14, ["text"])


def test_existing_metadata_is_not_replaced(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    command = ("data", "create-metadata", "--yes")
    packtok_cli(*command, cwd=tmp_path)
    done = packtok_cli(*command, "--name", "other", cwd=tmp_path, code=1)
    assert "already exists; give another, or --existing replace" in done.stderr
    assert load_metadata(tmp_path).name == tmp_path.name
    packtok_cli(*command, "--name", "other", "--existing", "replace", cwd=tmp_path)
    assert load_metadata(tmp_path).name == "other"


def test_each_metadata_file_of_a_folder_has_its_own_details(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    licenses = {"metadata.json": "CC0-1.0", "again.json": "MIT", "third.v2.yaml": "ODC-By-1.0"}
    for name, given in licenses.items():
        create_metadata(
            {"output": str(tmp_path / name), "dataset_path": str(tmp_path), "license": given}, count=False
        )
    assert {name: load_details(tmp_path / name)["license"] for name in licenses} == licenses
    assert sorted(path.name for path in tmp_path.glob("*.packtok.json")) == [
        *("again.packtok.json", "metadata.packtok.json", "third.v2.packtok.json"),
    ]


def test_details_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """They had one name, whatever that of the metadata file was."""
    (tmp_path / "metadata.packtok.json").write_text('{"packtok_metadata": 1, "license": "MIT"}')
    (tmp_path / "again.json").write_text(WRITTEN_BY_TATM["metadata.json"])
    assert load_details(tmp_path / "again.json")["license"] == "MIT"
    (tmp_path / "metadata.yaml").write_text(WRITTEN_BY_TATM["metadata.yaml"])
    assert load_details(tmp_path / "again.json") == {}
    assert load_details(tmp_path / "metadata.yaml")["license"] == "MIT"


@pytest.mark.parametrize("replaced", [(), ("--existing", "replace")])
def test_second_metadata_file_of_the_same_name_is_refused(
    tmp_path: Path, packtok_cli: PacktokCli, replaced: tuple[str, ...]
) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    command = ("data", "create-metadata", "--yes", *replaced, "--license")
    packtok_cli(*command, "MIT", cwd=tmp_path)
    done = packtok_cli(*command, "CC0-1.0", "--output", "metadata.yaml", cwd=tmp_path, code=1)
    assert done.stderr == (
        "packtok: metadata.yaml: metadata.json in this folder is a metadata file too, and both would share "
        "metadata.packtok.json; give another name, or remove metadata.json\n"
    )
    assert not (tmp_path / "metadata.yaml").exists()
    assert load_details(tmp_path / "metadata.json")["license"] == "MIT"


@pytest.mark.parametrize("name", ["metadata", "metadata.txt", "metadata.packtok.json"])
def test_other_names_are_refused_for_a_metadata_file(
    tmp_path: Path, packtok_cli: PacktokCli, name: str
) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    done = packtok_cli("data", "create-metadata", "--yes", "--output", name, cwd=tmp_path, code=2)
    assert done.stderr == (
        f"packtok: {name}: is no name for a metadata file, expected one that ends with .json, .yaml or .yml, "
        "and not with .packtok.json\n"
    )
    assert not (tmp_path / name).exists()


def test_answer_that_is_not_allowed_is_an_error(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    for flags, message in (
        (
            ("--data-content", "vid"),
            "--data-content is 'vid', expected one of text, image, audio, video, other",
        ),
        (("--corpus-data-dir-parent", "x"), "--corpus-data-dir-parent does not apply to the other answers"),
        (("--dataset-path", "none"), "the dataset does not exist"),
    ):
        done = packtok_cli("data", "create-metadata", "--yes", *flags, cwd=tmp_path, code=None)
        assert done.returncode in (1, 2)
        assert message in done.stderr
        assert not (tmp_path / "metadata.json").exists()


def test_folder_with_its_metadata_can_be_moved(dataset: Path, packtok_cli: PacktokCli) -> None:
    packtok_cli("data", "create-metadata", "--yes", "--content-field", "content", cwd=dataset)
    moved = dataset.with_name("moved")
    dataset.rename(moved)
    assert load_metadata(moved).dataset_folder == moved
    done = packtok_cli("data", "validate", moved)
    assert done.stdout == f"{moved} matches its data\n"


def described(dataset: Path) -> Path:
    return Path(
        create_metadata(
            {
                "output": str(dataset / "metadata.json"),
                "dataset_path": str(dataset),
                "content_field": "content",
                **CORPORA,
            }
        )["path"]
    )


def damage_row(dataset: Path) -> None:
    rows = pa.table({"id": range(3), "content": ["text 0", "text 9", "text 2"]})
    pq.write_table(rows, dataset / "parts" / "arxiv" / "a.parquet")


def add_file(dataset: Path) -> None:
    pq.write_table(pa.table({"content": ["new"]}), dataset / "parts" / "book" / "b.parquet")


def remove_file(dataset: Path) -> None:
    add_file(dataset)
    (dataset / "parts" / "book" / "a.parquet").unlink()


def rename_column(dataset: Path) -> None:
    pq.write_table(pa.table({"text": ["a"]}), dataset / "parts" / "book" / "a.parquet")


def change_format(dataset: Path) -> None:
    (dataset / "parts" / "book" / "a.parquet").unlink()
    (dataset / "parts" / "book" / "a.jsonl").write_text('{"content": "a"}\n')


def remove_corpus(dataset: Path) -> None:
    (dataset / "parts" / "arxiv").rename(dataset / "parts" / "arXiv")


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (damage_row, ["parts/arxiv/a.parquet: crc32c is"]),
        (add_file, ["parts/book/b.parquet: the file is not in"]),
        (
            remove_file,
            ["parts/book/a.parquet: the file is missing", "parts/book/b.parquet: the file is not in"],
        ),
        (rename_column, ["content_field 'content' is not in the data, which has 'text'"]),
        (change_format, ["the format is jsonl, expected parquet"]),
        (remove_corpus, ["corpus 'arxiv': "]),
    ],
)
def test_validation_finds_every_difference(
    dataset: Path, packtok_cli: PacktokCli, change: Any, messages: list[str]
) -> None:
    path = described(dataset)
    assert validate_metadata(path) == []
    change(dataset)
    found = validate_metadata(path)
    assert len(found) == len(messages), found
    for message in messages:
        assert any(message in one for one in found), found
    done = packtok_cli("data", "validate", dataset, code=1)
    assert done.stdout.splitlines() == found


def test_quick_validation_compares_sizes(dataset: Path) -> None:
    path = described(dataset)
    assert validate_metadata(path, quick=True) == []
    remove_file(dataset)
    (found,) = validate_metadata(path, quick=True)
    assert found.endswith("parts/book/a.parquet: the file is missing")


def test_unknown_corpus_lists_the_known_ones(dataset: Path) -> None:
    metadata = load_metadata(described(dataset))
    assert corpus_input(metadata, "arxiv") == dataset / "parts" / "arxiv"
    with pytest.raises(ConfigError) as raised:
        corpus_input(metadata, "arxvi")
    assert str(raised.value) == (
        f"{dataset}/metadata.json: no corpus 'arxvi'; the dataset has 'arxiv', 'book'; did you mean 'arxiv'?"
    )
    plain = DatasetMetadata(
        name="n", description="", date_downloaded="", download_source="", data_content="text"
    )
    with pytest.raises(ConfigError, match="n: no corpus 'x'; the dataset has none"):
        corpus_input(plain, "x")

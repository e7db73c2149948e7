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
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from command_line import PacktokCli
from extent import extent
from processes import PROGRAM
from stories import TOKENIZER
from tatm_keys import TATM_KEYS, TATM_TOKENIZED_KEYS

from packtok.catalog.corpora import corpus_input
from packtok.catalog.schema import DatasetMetadata, load_details, load_metadata
from packtok.commands.data import answer_questions, create_metadata, validate_metadata
from packtok.errors import ConfigError

# Files in tatm's form: one line of JSON, and YAML with a text that YAML would parse as a date.
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
    # YAML parses a text in the form of a date as a date, unless it is quoted.
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
        ({"data_content": "vid"}, "key data_content is 'vid', expected 'text', 'image',"),
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
    np.arange(100, dtype="uint16").tofile(dataset / "tokenized_0.bin")
    combinations = itertools.product(("json", "yaml"), ("text", "image", "other"), corpora, ("y", "n"))
    # Every fifth combination covers each answer, because no number of answers is divisible by five.
    for i, (output_format, content, corpus, tokenized) in enumerate(
        itertools.islice(combinations, 0, None, extent(1, 5))
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
                **({"tokenizer": "gpt2"} if tokenized == "y" else {}),
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
    # An empty line takes the default, in tatm's order of questions; two more questions follow.
    packtok_cli("data", "create-metadata", cwd=tmp_path, code=2)
    done = subprocess.run(
        [*PROGRAM, "data", "create-metadata"],
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
    questions = [text.split("[")[0].split("(")[0].strip(" :") for text in done.stdout.split(": ")]
    assert questions[:3] == ["Output format", "Output path", "Name"]
    assert questions[-3:-1] == ["Language", "License"]


def test_answers_are_asked_in_the_order_of_tatm(dataset: Path, tmp_path: Path) -> None:
    answers = [
        "jsno",
        "yaml",
        "",
        "Web",
        str(dataset),
        "some text",
        "2025-01-02",
        "the web",
        "text",
        "",
        "arxiv",
        "book",
        "",
        "folders",
        "data_dirs",
        "parts",
        "n",
        "en",
        "ODC-By-1.0",
    ]
    done = subprocess.run(
        [*PROGRAM, "data", "create-metadata"],
        cwd=tmp_path,
        input="".join(f"{answer}\n" for answer in answers),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load((tmp_path / "metadata.yaml").read_text()) == {
        "name": "Web",
        # The data is below the metadata file, so the path is relative and both can be moved together.
        "dataset_path": "web",
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
            [*PROGRAM, "data", "create-metadata", *flags],
            cwd=folder,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TERM": "dumb"},
        )
        os.close(terminal)

    def until(self, text: str) -> str:
        """Returns the output up to ``text``."""
        output = ""
        while text not in output:
            assert select.select([self._controller], [], [], 30)[0], output
            output += os.read(self._controller, 4096).decode()
        return output.replace("\r", "")

    def answer(self, answer: str, until: str) -> str:
        """Types an answer and returns the output up to ``until``."""
        os.write(self._controller, answer.encode())
        return self.until(until)

    def answers_until_content(self) -> str:
        """Takes the defaults up to the question for the content field, and returns the output up to there."""
        for question in ("Name", "description", "downloaded", "source", "Data content"):
            self.answer("\n", question)
        return self.answer("\n", "Content field [")


def test_terminal_completes_answers_and_shows_guesses(dataset: Path, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "--dataset-path", str(dataset))
    terminal.until("Output format")
    terminal.answer("ya\t\n", "metadata.yaml]")
    size = sum(path.stat().st_size for path in dataset.rglob("*.parquet"))
    output = terminal.answers_until_content()
    assert output.partition("Found in")[2].splitlines()[:5] == [
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


def test_data_that_cannot_be_read_is_said_at_its_question(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "a.jsonl").write_text('{"text": "a"}\n')
    pq.write_table(pa.table({"text": ["b"]}), tmp_path / "mixed" / "b.parquet")
    terminal = Terminal(tmp_path, "--dataset-path", "mixed", "--name", "Kept", "--output-format", "json")
    terminal.until("metadata.json]")
    for question in ("description", "downloaded", "source", "Data content"):
        terminal.answer("\n", question)
    output = terminal.answer("\n", "Dataset path [mixed]")
    assert "packtok: the data cannot be read as texts: mixed: " in output
    assert "several formats: 1 JSON lines, 1 Parquet" in output
    # The answers in between are kept.
    terminal.answer(f"{dataset}\n", "Data content")
    terminal.answer("\n", "Content field [content]")
    for question in ("corpus", "tokenized", "Language", "License"):
        terminal.answer("\n", question)
    terminal.answer("\n", "metadata.json")
    assert terminal.process.wait(60) == 0
    written = load_metadata(tmp_path / "metadata.json")
    assert (written.name, written.dataset_folder) == ("Kept", dataset)


def test_corpora_and_fields_complete_by_tab(dataset: Path, tmp_path: Path) -> None:
    (dataset / "README.md").write_text("---\nconfigs: [{config_name: spanish}, {config_name: german}]\n---\n")
    terminal = Terminal(tmp_path, "--dataset-path", str(dataset), "--output-format", "json")
    terminal.until("metadata.json]")
    terminal.answers_until_content()
    terminal.answer("con\t\n", "Add a corpus")
    terminal.answer("ar\t\n", "Add a corpus (leave blank to finish) [arxiv]")
    terminal.answer("sp\t\n", "Add a corpus (leave blank to finish) [arxiv, spanish]")
    terminal.process.kill()
    terminal.process.wait(60)


def answered(folder: Path, *answers: str, code: int = 0) -> tuple[str, str]:
    """Returns output and errors of ``create-metadata`` with these lines as answers."""
    done = subprocess.run(
        [*PROGRAM, "data", "create-metadata"],
        cwd=folder,
        input="".join(f"{answer}\n" for answer in answers),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_each_wrong_answer_is_said_at_its_question(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "metadata.json").write_text(WRITTEN_BY_TATM["metadata.json"])
    _, errors = answered(
        tmp_path,
        "jsno",
        "json",
        "",
        "none/m.json",
        "m.txt",
        "mine.json",
        "Web",
        "no_data",
        str(dataset),
        "some text",
        "2025-02-30",
        "yesterday",
        "2025-1-2",
        "2025-01-02",
        "the web",
        "txt",
        "text",
        "body",
        "content",
        "arxvi",
        "arxiv",
        "arxiv",
        "book",
        "",
        "dirs",
        "data_dirs",
        "part",
        "parts",
        "maybe",
        "n",
        "en",
        "MIT",
    )
    assert errors.splitlines() == [
        "packtok: --output-format is 'jsno', expected 'json' or 'yaml'",
        f"packtok: {tmp_path}/metadata.json: the metadata file already exists; give another, or --existing "
        "replace",
        "packtok: none: no such folder",
        "packtok: m.txt: is no name for a metadata file, expected one that ends with .json, .yaml or .yml, "
        "and not with .packtok.json",
        "packtok: no_data: the dataset does not exist",
        "packtok: --date-downloaded is '2025-02-30', expected a date such as 2025-01-31, 2025-01 or 2025",
        "packtok: --date-downloaded is 'yesterday', expected a date such as 2025-01-31, 2025-01 or 2025",
        "packtok: --date-downloaded is '2025-1-2', expected a date such as 2025-01-31, 2025-01 or 2025",
        "packtok: --data-content is 'txt', expected 'text', 'image', 'audio', 'video' or 'other'",
        "packtok: --content-field is 'body', but the data has 'content'",
        f"packtok: --corpus is 'arxvi', but {dataset} has no such folder and its README.md no such config; "
        "did you mean 'arxiv'?",
        "packtok: 'arxiv' is listed already",
        "packtok: --corpus-separation-strategy is 'dirs', expected 'data_dirs' or 'configs'",
        f"packtok: corpus 'arxiv': {dataset}/part/arxiv is not a folder",
        "packtok: --tokenized is 'maybe', expected 'y' or 'n'",
    ]
    written = load_metadata(tmp_path / "mine.json")
    assert (written.name, written.corpuses, written.date_downloaded) == (
        "Web",
        ["arxiv", "book"],
        "2025-01-02",
    )
    assert load_details(tmp_path / "mine.json")["documents"] == 7


@pytest.mark.parametrize("num_missing", [0, 1, 2])
def test_questions_that_tatm_lacks_have_defaults_at_the_end(tmp_path: Path, num_missing: int) -> None:
    """A list of answers for tatm ends before the questions that tatm lacks."""
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    answered(tmp_path, *[""] * (13 - num_missing))
    assert load_metadata(tmp_path).content_field == "text"
    if num_missing == 2:
        (tmp_path / "metadata.json").unlink()
        _, errors = answered(tmp_path, *[""] * 10, code=2)
        assert errors == (
            "packtok: no answer to 'Is the dataset tokenized? (y/n)'; give --tokenized, or --yes for the "
            "defaults\n"
        )


def test_flags_are_checked_before_anything_is_asked(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    for flags, message in (
        (("--tokenized", "no"), "--tokenized is 'no', expected 'y' or 'n'"),
        (("--existing", "skip"), "--existing is 'skip', expected 'error' or 'replace'"),
    ):
        done = packtok_cli("data", "create-metadata", *flags, cwd=tmp_path, code=2)
        assert (done.stdout, done.stderr) == ("", f"packtok: {message}\n")
    for flags, message in (
        (("--content-field", "body"), "--content-field is 'body', but the data has 'text'"),
        (("--date-downloaded", "soon"), "--date-downloaded is 'soon', expected a date such as 2025-01-31, "),
        (("--corpus", "x"), "--corpus is 'x', but "),
    ):
        done = packtok_cli("data", "create-metadata", "--yes", *flags, cwd=tmp_path, code=2)
        assert message in done.stderr
        assert not (tmp_path / "metadata.json").exists()


def test_data_below_the_metadata_can_be_moved_with_it(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    base = tmp_path / "base"
    (base / "raw").mkdir(parents=True)
    (base / "raw" / "a.jsonl").write_text('{"text": "a"}\n')
    command = ("data", "create-metadata", "--yes", "--output", base / "metadata.json")
    packtok_cli(*command, "--dataset-path", base / "raw", cwd=tmp_path)
    assert load_metadata(base).dataset_path == "raw"
    base.rename(tmp_path / "moved")
    done = packtok_cli("data", "validate", tmp_path / "moved")
    assert done.stdout == f"{tmp_path / 'moved'} matches its data\n"
    # Elsewhere, the path is absolute. The folder of the metadata file needs no path.
    packtok_cli(*command[:-1], tmp_path / "other.json", "--dataset-path", tmp_path / "moved" / "raw", cwd="/")
    assert load_metadata(tmp_path / "other.json").dataset_path == "moved/raw"
    (tmp_path / "apart").mkdir()
    for folder, path in (("apart", str(tmp_path / "moved/raw")), ("moved/raw", None)):
        output = tmp_path / folder / "m.json"
        packtok_cli(*command[:-1], output, "--dataset-path", tmp_path / "moved" / "raw", cwd=tmp_path)
        assert load_metadata(output).dataset_path == path


def test_relative_path_starts_at_the_metadata_or_at_the_current_folder(
    tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    """tatm resolves the path from the current folder only."""
    described, current = tmp_path / "described", tmp_path / "current"
    for folder in (described, current):
        folder.mkdir()
    metadata = json.loads(WRITTEN_BY_TATM["metadata.json"]) | {"dataset_path": "raw", "corpuses": []}
    (described / "metadata.json").write_text(json.dumps(metadata))
    file = described / "metadata.json"

    def validated(code: int) -> tuple[str, str]:
        done = packtok_cli("data", "validate", described, cwd=current, code=code)
        return done.stdout, done.stderr

    assert validated(1) == (
        f"{file}: dataset_path: 'raw' exists neither in {described} nor in the current folder, {current}\n",
        "",
    )
    matches = f"{described} matches its data\n"
    (current / "raw").mkdir()
    (current / "raw" / "a.jsonl").write_text('{"text": "a"}\n')
    assert validated(0) == (
        matches,
        f"packtok: {file}: dataset_path 'raw' is not next to the metadata file; {current}/raw, from the "
        "current folder, is used\n",
    )
    (described / "raw").mkdir()
    (described / "raw" / "a.jsonl").write_text('{"text": "a"}\n')
    assert validated(0) == (
        matches,
        f"packtok: {file}: dataset_path 'raw' is next to the metadata file and in the current folder; "
        f"{described}/raw is used\n",
    )
    (current / "raw" / "a.jsonl").unlink()
    (current / "raw").rmdir()
    assert validated(0) == (matches, "")


# Token files without a header.


def token_files(folder: Path, dtype: str, largest: int, num: int = 1000) -> Path:
    """Writes two token files with ids up to ``largest`` and zeros at the end, as tatm does."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    for i in range(2):
        ids = rng.integers(1, largest + 1, num)
        ids[-1] = largest
        np.append(ids, [0] * 100).astype(dtype).tofile(folder / f"tokenized_{i}.bin")
    return folder


def written_as(folder: Path, dtype: str, vocab_size: int | None) -> Path:
    """Describes token files as tatm does, with a type that may be wrong."""
    info = {"tokenizer": "t", "file_prefix": "tokenized", "dtype": dtype, "vocab_size": vocab_size}
    described = json.loads(WRITTEN_BY_TATM["metadata.json"]) | {"corpuses": [], "tokenized_info": info}
    del described["dataset_path"]
    (folder / "metadata.json").write_text(json.dumps(described))
    return folder


@pytest.mark.parametrize(
    ("dtype", "largest", "described", "vocab_size", "fault"),
    [
        ("uint16", 50256, "uint16", 50257, None),
        ("uint32", 50256, "uint16", 50257, "every second id is 0; uint32 fits"),
        ("uint32", 50256, "uint16", None, "every second id is 0; uint32 fits"),
        (
            "uint32",
            128_255,
            "uint16",
            128_256,
            "the vocabulary has 128,256 ids, which need uint32; uint32 fits",
        ),
        ("uint32", 128_255, "uint32", 128_256, None),
        ("uint16", 32099, "uint8", 32100, "the vocabulary has 32,100 ids, which need uint16; uint16 fits"),
        ("uint32", 255, "uint8", 256, "three of four ids are 0; uint32 fits"),
        ("uint8", 255, "uint8", 256, None),
        (
            "uint16",
            50256,
            "uint16",
            32100,
            "the largest id is 50,256, and the vocabulary has 32,100 ids; no type fits, so check the "
            "tokenizer",
        ),
    ],
)
def test_validation_compares_ids_with_type_and_vocabulary(
    tmp_path: Path, dtype: str, largest: int, described: str, vocab_size: int | None, fault: str | None
) -> None:
    folder = written_as(token_files(tmp_path / "tokens", dtype, largest), described, vocab_size)
    file = folder / "metadata.json"
    expected = [] if fault is None else [f"{file}: tokenized_info.dtype is {described}, but {fault}"]
    assert validate_metadata(folder) == expected
    # The start of a file is evidence, too.
    assert validate_metadata(folder, quick=True) == expected


def test_tokens_that_are_too_wide_exceed_the_vocabulary(tmp_path: Path) -> None:
    folder = written_as(token_files(tmp_path / "tokens", "uint16", 50256), "uint32", 50257)
    ((fault),) = validate_metadata(folder)
    assert re.fullmatch(
        f"{re.escape(str(folder))}/metadata.json: tokenized_info.dtype is uint32, but the largest id is "
        "[0-9,]+, and the vocabulary has 50,257 ids; uint16 fits",
        fault,
    )


def test_wrong_id_far_into_the_second_file_is_found(tmp_path: Path) -> None:
    folder = written_as(token_files(tmp_path / "tokens", "uint16", 100), "uint16", 101)
    ids = np.fromfile(folder / "tokenized_1.bin", "uint16")
    ids[700] = 101
    ids.tofile(folder / "tokenized_1.bin")
    (fault,) = validate_metadata(folder)
    assert fault.endswith(
        "the largest id is 101, and the vocabulary has 101 ids; no type fits, so check the tokenizer"
    )
    assert validate_metadata(folder, quick=True) == []


def test_described_token_files_have_the_type_and_vocabulary_of_their_ids(
    tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    folder = token_files(tmp_path / "tokens", "uint32", 50256)
    command = ("data", "create-metadata", "--yes", "--tokenized", "y", "--tokenizer", "gpt2")
    done = packtok_cli(*command, "--token-dtype", "uint16", cwd=folder, code=2)
    assert done.stderr == ("packtok: --token-dtype is uint16, but every second id is 0; uint32 fits\n")
    packtok_cli(*command, cwd=folder)
    info = load_metadata(folder).tokenized_info
    assert info is not None
    assert (info.tokenizer, info.dtype, info.vocab_size) == ("gpt2", "uint32", 50257)
    assert load_details(folder / "metadata.json")["eos_token_id"] == 50256
    assert validate_metadata(folder) == []
    done = packtok_cli(*command, "--token-file-extension", "npy", "--output", "b.json", cwd=folder, code=2)
    assert done.stderr == (
        f"packtok: no file tokenized*.npy in {folder}; give the --token-file-prefix and "
        "--token-file-extension of the files\n"
    )


def test_tokenizer_that_is_not_there_is_no_error_if_it_may_be_on_the_hub(
    tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    folder = token_files(tmp_path / "tokens", "uint16", 100)
    command = ("data", "create-metadata", "--yes", "--tokenized", "y", "--tokenizer")
    done = packtok_cli(*command, "./none.json", cwd=folder, code=1)
    assert done.stderr == "packtok: ./none.json: no such tokenizer file or folder\n"
    done = packtok_cli(*command, "t5-base", cwd=folder, env={"HF_ENDPOINT": "http://none.invalid"})
    assert "its vocabulary size and EOS are not recorded" in done.stderr
    info = load_metadata(folder).tokenized_info
    assert info is not None
    assert (info.tokenizer, info.vocab_size) == ("t5-base", None)


def test_tokenizer_is_named_after_its_folder_and_not_by_a_path(
    tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "tokenizer.json").write_bytes(Path(TOKENIZER).read_bytes())
    folder = token_files(tmp_path / "tokens", "uint16", 100)
    command = ("data", "create-metadata", "--yes", "--tokenized", "y", "--tokenizer")
    for path in (tmp_path / "mine", tmp_path / "mine" / "tokenizer.json"):
        packtok_cli(*command, path, "--existing", "replace", cwd=folder)
        info = load_metadata(folder).tokenized_info
        assert info is not None
        assert info.tokenizer == "mine"


def test_documents_are_estimated_if_counting_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"id": "x", "text": "some words of a text"}\n' * 1_000_000)
    for seconds, is_exact in ((0, False), (1000, True)):
        monkeypatch.setattr("packtok.commands.data.COUNT_SECONDS", seconds)
        reports: list[tuple[Any, Any]] = []
        answer_questions(
            {"dataset_path": str(tmp_path)},
            None,
            lambda content, documents, to=reports: to.append((content, documents)),
        )
        ((content, documents),) = reports
        assert (content.format, content.num_files, content.fields) == ("jsonl", 1, ("id", "text"))
        assert content.content_field == "text"
        # The first report may come before any document is counted.
        assert documents is None or documents.is_exact == is_exact
        if documents is not None:
            # In so short a time, most of what was read may not have been counted yet.
            least, most = (1_000_000, 1_000_000) if is_exact else (1, 1_500_000)
            assert least <= documents.documents <= most
    assert documents is not None


def test_guesses_are_not_made_without_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    done = subprocess.run(
        [*PROGRAM, "data", "create-metadata", "--no-count"],
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
    for name, license in licenses.items():
        create_metadata(
            {"output": str(tmp_path / name), "dataset_path": str(tmp_path), "license": license}, count=False
        )
    assert {name: load_details(tmp_path / name)["license"] for name in licenses} == licenses
    assert sorted(path.name for path in tmp_path.glob("*.packtok.json")) == [
        "again.packtok.json",
        "metadata.packtok.json",
        "third.v2.packtok.json",
    ]


def test_details_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """All metadata files of a folder had one file of details."""
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
            "--data-content is 'vid', expected 'text', 'image', 'audio', 'video' or 'other'",
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
    errors = validate_metadata(path)
    assert len(errors) == len(messages), errors
    for message in messages:
        assert any(message in error for error in errors), errors
    done = packtok_cli("data", "validate", dataset, code=1)
    assert done.stdout.splitlines() == errors


def test_quick_validation_compares_sizes(dataset: Path) -> None:
    path = described(dataset)
    assert validate_metadata(path, quick=True) == []
    remove_file(dataset)
    (error,) = validate_metadata(path, quick=True)
    assert error.endswith("parts/book/a.parquet: the file is missing")


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

"""The source plug-in `datasets`: configs, splits and columns of local folders, without a network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import PacktokCli
from stories import TOKENIZER

import packtok
from packtok import ConfigError, DocumentError
from packtok._packtok import corpus_files

OFFLINE = {"HF_HUB_OFFLINE": "1"}
CONFIGS = """---
configs:
- config_name: en
  data_files: en/*.jsonl
- config_name: de
  data_files: [{split: train, path: de/a.jsonl}, {split: dev, path: de/b.jsonl}]
---
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("datasets")
    (folder / "tables").mkdir()
    for number in range(3):
        texts = [f"text {i} of {number}" for i in range(3000)]
        table = pa.table({"text": texts, "meta": [{"title": f"title {i}"} for i in range(3000)]})
        pq.write_table(table, folder / "tables" / f"train-{number:05}-of-00003.parquet")
    pq.write_table(
        pa.table({"text": ["a", None], "meta": [{"title": "b"}] * 2}), folder / "tables/test.parquet"
    )
    for name in ("en/a", "de/a", "de/b"):
        path = folder / "several" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"text": f"text of {name}"}) + "\n")
    (folder / "several" / "README.md").write_text(CONFIGS)
    return folder


@pytest.fixture(autouse=True)
def _in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def pack(output: str, *inputs: str, **options: object) -> packtok.PackReport:
    return packtok.pack(source="datasets", input=inputs, output=output, tokenizer=TOKENIZER, **options)  # type: ignore[arg-type]


def texts(path: Path) -> list[str]:
    reader, tokenizer = packtok.PbinReader(path), packtok.Tokenizer.from_pretrained(TOKENIZER)
    return [tokenizer.decode(reader[i][:-1]) for i in range(len(reader))]


def test_shards_of_a_dataset_are_parts_and_a_split_is_chosen(folder: Path) -> None:
    pack("train.pbin", "tables")
    assert texts(folder / "train.pbin") == [f"text {i} of {k}" for k in range(3) for i in range(3000)]
    for shard in range(2):
        pack("shards", "tables", shard=f"{shard}/2")
    packtok.join("shards", "joined.pbin")
    assert (folder / "joined.pbin").read_bytes() == (folder / "train.pbin").read_bytes()
    pack("title.pbin", "tables@test", field=".meta.title")
    assert texts(folder / "title.pbin") == ["b", "b"]
    with pytest.raises(DocumentError, match=r"^tables@test/0: document 2: the document is None, not"):
        pack("null.pbin", "tables@test")


def test_configs_have_their_own_splits(folder: Path) -> None:
    pack("both.pbin", "several:de@dev", "several:en", "several:de")
    assert texts(folder / "both.pbin") == ["text of de/b", "text of en/a", "text of de/a"]
    pack("file.pbin", "several/de/a.jsonl")
    assert texts(folder / "file.pbin") == ["text of de/a"]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("several", {}, "input: several has several configs: en, de; give several:CONFIG"),
        ("several:fr", {}, "input: several has no config 'fr'; it has en, de"),
        ("tables@dev", {}, "input: tables has no split 'dev'; it has train, test; give tables@SPLIT"),
        ("./none", {}, "input: ./none: No such file or directory"),
        (
            "tables",
            {"field": ".body"},
            "field: no column 'body'; the dataset has text, meta; set it to one of them",
        ),
        (
            "tables",
            {"field": ".a + .b"},
            "field (jq_pattern in a config) is '.a + .b'; with source datasets it must be a plain path of "
            "names, such as .text",
        ),
    ],
)
def test_unknown_names_list_the_known_ones(name: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        pack("o.pbin", name, **options)
    assert str(raised.value) == message


def test_dataset_script_is_an_error_of_one_line(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    """tatm loads dataset scripts with ``trust_remote_code``; `datasets` has refused them since version 4."""
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "old.py").write_text("raise SystemExit('code of the dataset has run')\n")
    described = {
        **dict.fromkeys(("name", "description", "date_downloaded", "download_source"), "old"),
        "data_content": "text",
        "corpuses": ["primary", "x"],
        "corpus_separation_strategy": "configs",
    }
    (tmp_path / "old" / "metadata.json").write_text(json.dumps(described))
    for arguments, subject in (
        (("tokenize", "old:primary", "--output-dir", "out"), "DATASET"),
        (("pack", "--source", "datasets", "-i", "old", "-o", "o.pbin"), "--input"),
    ):
        done = packtok_cli(*arguments, "-t", TOKENIZER, cwd=tmp_path, env=OFFLINE, code=2)
        assert done.stderr == (
            f"packtok: {subject}: old is a dataset script, and scripts are no longer supported by datasets; "
            "read it with a source plug-in (--source my_source.py:function), or convert it to Parquet\n"
        )


def _no_files(folder: Path) -> None:
    (folder / "notes").mkdir()


def _damaged_parquet(folder: Path) -> None:
    (folder / "a.parquet").write_bytes(b"no parquet")


def _other_json(folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"text": "a"}\n{"text": 5\n')


def _missing_files(folder: Path) -> None:
    (folder / "README.md").write_text("---\nconfigs: [{config_name: x, data_files: none.jsonl}]\n---\n")


def _damaged_card(folder: Path) -> None:
    (folder / "README.md").write_text("---\nconfigs: [\n---\n")


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (_no_files, "EmptyDatasetError: The directory at"),
        (_damaged_parquet, "ArrowInvalid: Parquet magic bytes not found"),
        (_other_json, "ValueError: "),
        (_missing_files, "FileNotFoundError: Unable to find"),
        (_damaged_card, "ParserError: while parsing a flow node"),
    ],
)
def test_every_error_of_the_library_is_one_line(
    tmp_path: Path, packtok_cli: PacktokCli, broken: Callable[[Path], None], kind: str
) -> None:
    (tmp_path / "data").mkdir()
    broken(tmp_path / "data")
    done = packtok_cli(
        "pack",
        "--source",
        "datasets",
        "-i",
        "data",
        "-t",
        TOKENIZER,
        "-o",
        "o.pbin",
        cwd=tmp_path,
        env=OFFLINE,
        code=1,
    )
    assert done.stderr.startswith(f"packtok: --input: data: datasets cannot read it: {kind}")
    assert len(done.stderr.splitlines()) == 1
    assert len(done.stderr) < 500


# Kills the process when the last shard of the dataset has yielded half of its texts.
KILLED = """
import os, signal
from packtok.plugins import hf_datasets
texts = hf_datasets._texts
def killed(corpus, names, shard, start):
    for i, text in enumerate(texts(corpus, names, shard, start)):
        if shard == 2 and i == 1500:
            os.kill(os.getpid(), signal.SIGKILL)
        yield text
hf_datasets._texts = killed
from packtok.cli import main; main()
"""


@pytest.mark.faults
def test_killed_run_resumes_with_equal_bytes(folder: Path) -> None:
    pack("expected.pbin", "tables")
    small = ("-j", "1", "--set", "span_bytes=1")
    words = ("pack", "--source", "datasets", "-i", "tables", "-t", TOKENIZER, "-o", "out.pbin", *small)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *words], cwd=folder, env={**os.environ, **OFFLINE}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert (folder / "out.pbin.partial").exists()
    pack("out.pbin", "tables", num_cpus=1)
    assert (folder / "out.pbin").read_bytes() == (folder / "expected.pbin").read_bytes()


def test_missing_package_names_the_extra(folder: Path, packtok_cli: PacktokCli, tmp_path: Path) -> None:
    (tmp_path / "datasets.py").write_text("raise ImportError('hidden')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = packtok_cli(
        "pack",
        "--source",
        "datasets",
        "-i",
        "tables",
        "-t",
        TOKENIZER,
        "-o",
        "o.pbin",
        cwd=folder,
        env={**OFFLINE, "PYTHONPATH": path},
        code=2,
    )
    assert done.stderr == (
        "packtok: --source datasets needs Hugging Face datasets, which is not installed; run pip install "
        "'packtok[datasets]'\n"
    )


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (".text.title", "column text is of type string and has no field 'title'"),
        (".meta.name", "no column 'name'; the dataset has title"),
    ],
)
def test_field_within_a_column_must_exist(tmp_path: Path, field: str, message: str) -> None:
    with pytest.raises(packtok.PacktokError, match=message):
        pack(str(tmp_path / "o.pbin"), "tables", field=field)


LAYOUTS = [
    ("train.jsonl", "test.jsonl", "validation.jsonl"),
    (
        "data/train-00000-of-00002.jsonl",
        "data/train-00001-of-00002-a1b2.jsonl",
        "data/en.x-00000-of-00001.jsonl",
    ),
    ("data/train-00000-of-00001.jsonl", "data/sub/test-00000-of-00001.jsonl"),
    ("data/train-0000-of-00001.jsonl", "data/test-1-of-2.jsonl"),
    ("train/a.jsonl", "x/my-test 2/b/c.jsonl", "dev/train.jsonl"),
    ("en/train_0.jsonl", "en/dev2.jsonl", "de/testing.jsonl", "de/a eval.jsonl"),
    ("a.jsonl", "b/c.jsonl"),
    ("trainer.jsonl", "contest.jsonl", "Train.jsonl", "mytest.jsonl"),
    ("train_test.jsonl", "valid-1.jsonl"),
    ("train.jsonl", "extra.jsonl"),
    ("c4-train.00000-of-00002.json.gz", "c4-validation.00000-of-00001.json.gz"),
    ("only-eval.jsonl",),
]
WORDS = (
    "train",
    "training",
    "validation",
    "valid",
    "dev",
    "val",
    "test",
    "testing",
    "eval",
    "evaluation",
    "a",
)


def layouts() -> list[tuple[str, ...]]:
    random = Random(7)

    def name() -> str:
        parts = [random.choice(WORDS) for _ in range(random.randint(1, 2))]
        return random.choice(("", "x", "1-")) + random.choice(("-", "_", ".", " ", "", "0")).join(parts)

    def path() -> str:
        folders = [name() for _ in range(random.choice((0, 0, 1, 2)))]
        return "/".join([*folders, f"{name()}.jsonl"])

    return [*LAYOUTS, *(tuple({path() for _ in range(random.randint(1, 3))}) for _ in range(25))]


def test_splits_are_those_of_datasets(tmp_path: Path) -> None:
    from datasets.data_files import DataFilesDict, get_data_patterns

    for number, names in enumerate(layouts()):
        folder = tmp_path / str(number)
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).touch()
        data_files = DataFilesDict.from_patterns(get_data_patterns(str(folder)), base_path=str(folder))
        expected = {
            str(split): {os.path.relpath(file, folder) for file in files}
            for split, files in data_files.items()
        }
        if set().union(*expected.values()) != set(names):
            with pytest.raises(ValueError, match="of no split, beside the splits"):
                corpus_files([str(folder)], split="train")
            continue
        for split, files in expected.items():
            taken = {os.path.relpath(path, folder) for path, _ in corpus_files([str(folder)], split=split)}
            assert taken == files, names
        if "train" not in expected:
            with pytest.raises(ValueError, match=f'no split "train"; the folder has {", ".join(expected)};'):
                corpus_files([str(folder)], split="train")


def test_all_splits_are_read_at_once(folder: Path) -> None:
    pack("all.pbin", "several:de@all", "several:en")
    assert texts(folder / "all.pbin") == ["text of de/a", "text of de/b", "text of en/a"]
    pack("split.pbin", "several:de", "several:en@train", split="all")
    assert texts(folder / "split.pbin") == ["text of de/a", "text of de/b", "text of en/a"]
    pack("dev.pbin", "several:de", split="dev")
    assert texts(folder / "dev.pbin") == ["text of de/b"]
    for shard in range(2):
        pack("all_shards", "several:de", split="all", shard=f"{shard}/2")
    packtok.join("all_shards", "all_joined.pbin")
    assert texts(folder / "all_joined.pbin") == ["text of de/a", "text of de/b"]

"""Names of datasets below a base directory: tatm's rule, an index that is never locked, and its absence."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from command_line import PacktokCli

from packtok.catalog.base import find_base
from packtok.catalog.index import INDEX_NAME, build_index
from packtok.catalog.names import find_dataset, indexed_name
from packtok.commands.data import create_metadata, index_datasets, list_datasets, show_dataset
from packtok.commands.tokenize import tokenize
from packtok.errors import ConfigError, PacktokError


def describe(folder: Path, name: str, **answers: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.jsonl").write_text('{"text": "some words"}\n')
    metadata = {"output": str(folder / "metadata.json"), "dataset_path": str(folder), "name": name, **answers}
    create_metadata(metadata, existing="replace")
    return folder


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a base directory in tatm's layout, with an example from its handbook."""
    base = tmp_path_factory.mktemp("names") / "base"
    pajama = describe(
        base / "text" / "red_pajama", "Red Pajama v1", description="An open copy of the data of LLaMA"
    )
    tokenize(str(pajama), "gpt2", pajama / "tokenized" / "t5-base" / "arxiv")
    # The index omits these: copies of the data as downloaded, and the data itself.
    describe(pajama / "raw", "Raw")
    describe(pajama / "parts" / "inner", "Inner")
    describe(base / "code" / "deep" / "stack", "The Stack", description="Source code", download_source="hub")
    return base


@pytest.fixture
def base(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a copy of the base directory, which a test may change."""
    base = tmp_path / "base"
    shutil.copytree(template, base)
    monkeypatch.setenv("PACKTOK_BASE_DIR", str(base))
    monkeypatch.delenv("TATM_BASE_DIR", raising=False)
    return base


NAMES = ["The Stack", "Red Pajama v1", "Red Pajama v1-tokenized_t5-base_arxiv"]


@pytest.mark.parametrize("is_indexed", [True, False])
def test_datasets_are_named_by_the_rule_of_tatm(base: Path, is_indexed: bool) -> None:
    remarks: list[str] = []
    if is_indexed:
        assert index_datasets() == {"path": str(base / INDEX_NAME), "datasets": 3, "broken": []}
    datasets = list_datasets(remark=remarks.append)
    assert [dataset["name"] for dataset in datasets] == NAMES
    assert [dataset["context"] for dataset in datasets] == ["code/deep", "text", "text"]
    assert [dataset["documents"] for dataset in datasets] == [1, 1, 1]
    for name, dataset in zip(NAMES, datasets, strict=True):
        assert str(find_dataset(name, remarks.append).path) == dataset["path"]
        assert show_dataset(name)["path"] == dataset["path"]
    assert bool(remarks) != is_indexed
    if not is_indexed:
        assert remarks[0] == (
            f"{base} has no index, so its folders are searched; packtok data index writes one"
        )


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_tokenized_form_needs_no_folder_for_a_subset(base: Path, is_indexed: bool) -> None:
    parent = base / "code" / "deep" / "stack"
    form = describe(parent / "tokenized" / "gpt2", "any name")
    describe(form / "all", "any name")
    # The index omits what is deeper.
    describe(form / "all" / "deeper", "any name")
    if is_indexed:
        build_index(base)
    names = [dataset["name"] for dataset in list_datasets(remark=print)]
    assert names == ["The Stack", "The Stack-tokenized_gpt2", "The Stack-tokenized_gpt2_all", *NAMES[1:]]
    assert find_dataset("The Stack-tokenized_gpt2", print).path == form / "metadata.json"
    assert indexed_name(form) == "The Stack-tokenized_gpt2"
    assert indexed_name(form / "all") == "The Stack-tokenized_gpt2_all"
    assert indexed_name(form / "all" / "deeper") is None


def test_unknown_name_suggests_the_nearest(base: Path) -> None:
    build_index(base)
    with pytest.raises(ConfigError) as raised:
        find_dataset("Red Pyjama v1")
    assert str(raised.value) == (
        f"no dataset is named 'Red Pyjama v1' in {base}; did you mean 'Red Pajama v1'?; packtok data list "
        "shows all, and packtok data index adds new ones"
    )


@pytest.mark.parametrize("is_indexed", [True, False])
def test_two_datasets_with_a_name_are_an_error_that_names_both(base: Path, is_indexed: bool) -> None:
    other = describe(base / "code" / "other", "Red Pajama v1")
    if is_indexed:
        build_index(base)
    with pytest.raises(ConfigError) as raised:
        find_dataset("Red Pajama v1")
    first, second = other / "metadata.json", base / "text" / "red_pajama" / "metadata.json"
    assert str(raised.value) == (
        f"'Red Pajama v1' names 2 datasets, {first} and {second}; rename one, or give a path"
    )


def test_search_finds_starts_of_words_best_first(base: Path) -> None:
    build_index(base)
    for words, expected in (
        ("paj", NAMES[1:]),
        ("open llama", NAMES[1:]),
        ("source", [NAMES[0]]),
        ("deep hub", [NAMES[0]]),
        ('"', NAMES[:0]),
        ("stack OR pajama", []),
        ("nothing", []),
    ):
        assert [dataset["name"] for dataset in list_datasets(words)] == expected, words
    (base / INDEX_NAME).unlink()
    with pytest.raises(PacktokError, match="there is no index to search; run packtok data index"):
        list_datasets("paj")


def test_broken_metadata_is_listed_and_not_fatal(base: Path, packtok_cli: PacktokCli) -> None:
    broken = base / "text" / "broken" / "metadata.json"
    broken.parent.mkdir()
    broken.write_text("{")
    done = packtok_cli("data", "index")
    assert done.stdout == f"{base / INDEX_NAME}: 3 datasets\n"
    assert f"warning: not indexed: {broken}: not valid JSON" in done.stderr
    assert [dataset["name"] for dataset in list_datasets()] == NAMES
    # The broken file is not read again, but still listed.
    assert index_datasets()["broken"][0]["path"] == "text/broken/metadata.json"


def test_only_changed_files_are_read_again(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from packtok.catalog import entries as index

    build_index(base)
    before = (base / INDEX_NAME).read_bytes()
    read: list[str] = []
    load = index.load_metadata

    def counted(path: Path) -> Any:
        read.append(path.parent.name)
        return load(path)

    monkeypatch.setattr(index, "load_metadata", counted)
    build_index(base)
    assert read == []
    assert (base / INDEX_NAME).read_bytes() == before
    describe(base / "code" / "deep" / "stack", "The Stack v2")
    (base / INDEX_NAME).touch()
    build_index(base)
    assert read == ["stack"]
    assert list_datasets()[0]["name"] == "The Stack v2"
    # A tokenized dataset takes the new name of its parent, although its own metadata file has not changed.
    describe(base / "text" / "red_pajama", "Blue Pajama")
    build_index(base)
    assert [dataset["name"] for dataset in list_datasets()][1:] == [
        "Blue Pajama",
        "Blue Pajama-tokenized_t5-base_arxiv",
    ]
    shutil.rmtree(base / "code")
    build_index(base)
    assert len(list_datasets()) == 2


def test_readers_take_no_lock_and_see_one_whole_index(base: Path) -> None:
    build_index(base)
    with_lock = sqlite3.connect(base / INDEX_NAME)
    with_lock.execute("BEGIN EXCLUSIVE")
    assert len(list_datasets()) == 3
    with_lock.close()
    stop = threading.Event()

    def rebuild() -> None:
        while not stop.is_set():
            build_index(base)

    writers = [threading.Thread(target=rebuild) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(200):
            assert [dataset["name"] for dataset in list_datasets()] == NAMES
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert sorted(path.name for path in base.iterdir()) == ["code", INDEX_NAME, "text"]


@pytest.mark.parametrize("content", [b"", b"no index", b"SQLite format 3\0" + bytes(4000)])
def test_damaged_index_is_an_error_with_the_remedy(base: Path, content: bytes) -> None:
    (base / INDEX_NAME).write_bytes(content)
    with pytest.raises(PacktokError, match="run packtok data index"):
        list_datasets()
    build_index(base)
    assert [dataset["name"] for dataset in list_datasets()] == NAMES


def test_read_only_base_keeps_its_index(base: Path) -> None:
    if os.geteuid() == 0:
        # Root may write anywhere, so a missing folder takes the place of a read-only one.
        with pytest.raises(OSError, match="No such file"):
            build_index(base / "none")
        return
    base.chmod(0o555)
    with pytest.raises(PermissionError):
        build_index(base)


@pytest.mark.parametrize("key", ["metadata_backend_file", "metadata_store_path"])
@pytest.mark.parametrize("as_text", [True, False])
def test_names_of_the_json_backend_are_found(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, as_text: bool
) -> None:
    stack = base / "code" / "deep" / "stack"
    values = json.loads((stack / "metadata.json").read_text()) | {"dataset_path": str(stack), "name": "S"}
    store = tmp_path / "store.json"
    store.write_text(json.dumps({"stack": json.dumps(values) if as_text else values}))
    (base / "config").mkdir()
    config = f"metadata_backend:\n  type: json\n  args:\n    {key}: {store}\n"
    (base / "config" / "config.yaml").write_text(config)
    monkeypatch.delenv("PACKTOK_BASE_DIR")
    monkeypatch.setenv("TATM_BASE_DIR", str(base))
    assert find_dataset("stack").dataset_folder == stack
    assert find_dataset("The Stack").dataset_folder == stack


def test_a_path_is_not_looked_up_as_a_name(base: Path) -> None:
    """tatm queries the store first, even for absolute paths."""
    (base / "config").mkdir()
    config = "metadata_backend:\n  type: json\n  args:\n    metadata_backend_file: /nonexistent/store.json\n"
    (base / "config" / "config.yaml").write_text(config)
    folder = base / "text" / "red_pajama"
    assert find_dataset(str(folder)).name == "Red Pajama v1"
    with pytest.raises(OSError, match=r"store\.json"):
        find_dataset("The Stack")


def test_open_metadata_backend_is_an_error_that_says_what_to_do(base: Path) -> None:
    (base / "config").mkdir()
    (base / "config" / "config.yaml").write_text(
        "metadata_backend: {type: open_metadata, args: {address: x}}\n"
    )
    with pytest.raises(
        ConfigError, match="'open_metadata', which packtok does not support; remove it, and run"
    ):
        find_dataset("The Stack")


def test_base_directory_that_is_missing_is_named(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    assert find_base({}) is None
    with pytest.raises(ConfigError, match="TATM_BASE_DIR: /none is not a folder"):
        find_base({"TATM_BASE_DIR": "/none"})
    clean = dict.fromkeys(("PACKTOK_BASE_DIR", "TATM_BASE_DIR"), "")
    done = packtok_cli("data", "list", env=clean, code=2)
    assert "no base directory is set; set PACKTOK_BASE_DIR or TATM_BASE_DIR" in done.stderr
    done = packtok_cli("tokenize", "The Stack", "-t", "gpt2", "-o", tmp_path / "out", env=clean, code=2)
    assert "'The Stack' is not a path, and no base directory is set" in done.stderr


def test_dataset_is_tokenized_by_its_name(base: Path, tmp_path: Path, packtok_cli: PacktokCli) -> None:
    done = packtok_cli("tokenize", "The Stack", "-t", "gpt2", "-o", tmp_path / "out")
    assert f"packtok: {base} has no index, so its folders are searched" in done.stderr
    build_index(base)
    assert "index" not in packtok_cli("data", "show", "The Stack").stderr
    entry = json.loads(packtok_cli("data", "show", str(tmp_path / "out"), "--json").stdout)
    assert entry["metadata"]["tokenized_info"]["parent_datasets"] == ["The Stack"]
    listed = packtok_cli("data", "list").stdout.splitlines()
    assert listed[0] == f"The Stack  1 documents  {base}/code/deep/stack/metadata.json"


def test_command_line_stays_free_of_what_it_does_not_need() -> None:
    program = "import sys, packtok.cli; print([name for name in ('sqlite3', 'yaml') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

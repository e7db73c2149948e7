"""The commands on the pages of `packtok explore`: each is copied from a page of a hostile base and run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
import yaml
from explore_site import Served, served, write_corpus, write_metadata
from small_tokenizers import write_tokenizer

import packtok
from packtok import cli
from packtok.catalog.index import build_index
from packtok.explore.pages import profile
from packtok.explore.site import site_of_file, site_of_folder

TEXT = "some words " * 200
# In place of the program: reports the base directory and the arguments as the shell passes them.
REPORT = 'packtok() { printf "%s\\0" "$PACKTOK_BASE_DIR" "$@" $\'\\n\'; }\n'
FOLDERS = {
    "plain": "Plain",
    "a:b": "web:news",
    "-x": "-rf",
    "$(touch injected) 'q' \"d\"": "/etc/passwd",
    "[a-z]*": ".hidden",
    "😀\u200b": "😀 Übung `id` $HOME 'q' \"d\"",
    "one": "Twice",
    "two": "Twice",
    "tab": "tab\tand\nline",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a base directory in which every raw dataset has a tokenized form, and there are other files."""
    base = tmp_path_factory.mktemp("comm'ands") / "b a:s é"
    small = str(write_tokenizer(base.parent / "small", {"eos_token": "</s>"}))
    for folder, name in FOLDERS.items():
        raw = base / "x" / folder
        write_corpus(raw / "raw" / "a.jsonl", [TEXT, TEXT])
        write_metadata(raw, name=name, dataset_path="raw")
        form = raw / "tokenized" / "gpt2" / "all"
        if folder == "plain":
            packtok.tokenize([str(raw)], small, form)
        else:
            shutil.copytree(base / "x" / "plain" / "tokenized" / "gpt2" / "all", form)
    two = base / "x" / "plain" / "tokenized" / "gpt2" / "two"
    info = {"tokenizer": "small", "file_prefix": "part", "file_extension": "pbin", "dtype": "uint16"}
    write_metadata(two, tokenized_info=info)
    for i in range(2):
        shutil.copy(form / "tokenized.pbin", two / f"part-{i}.pbin")
    shutil.copy(form / "tokenizer.json", two)
    write_metadata(base / "x" / "pictures", name="Pictures", data_content="image")
    for folder, prefix in (("tatm", "part"), ("moved", "/elsewhere/part"), ("no-tokenizer", "part")):
        write_metadata(
            base / "x" / folder, name=folder, tokenized_info={"tokenizer": "t", "file_prefix": prefix}
        )
        for i in range(2):
            # The tokenizer has 258 tokens.
            ids = np.arange(2500, dtype=np.uint16) % 250 + 1
            (base / "x" / folder / f"part_{i}.bin").write_bytes(ids.tobytes())
        if folder != "no-tokenizer":
            shutil.copy(form / "tokenizer.json", base / "x" / folder)
    # Without a tokenizer next to it.
    shutil.copy(form / "tokenized.pbin", base / "x" / "loose.pbin")
    build_index(base)
    # Not in the index.
    write_metadata(base / "x" / "late é", name="Late", dataset_path="../plain/raw")
    return base


@pytest.fixture(scope="module")
def server(base: Path) -> Iterator[Served]:
    with served(site_of_folder(base)) as running:
        yield running


def pages_of(server: Served) -> list[str]:
    """Returns the addresses of all pages with commands."""
    lists = [server.page(f"/?page={number}").links() for number in (1, 2)]
    datasets = [link for links in lists for link in links if link.startswith("/dataset/")]
    datasets.append("/dataset/x/late%20%C3%A9")
    files = [link for page in datasets for link in server.page(page).links() if link.startswith("/file/")]
    files.append("/file/x/loose.pbin")
    return [*datasets, *files, *(link.replace("/file/", "/profile/", 1) for link in files)]


class Runner:
    """Runs commands as their kind requires; a command of several pages runs once."""

    def __init__(self, folder: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._tokenizer = tokenizer
        # Made once, because it takes longer than most commands.
        self._program = typer.main.get_command(cli.app)
        self._monkeypatch = monkeypatch
        self._done: set[Any] = set()
        self.num_programs = 0
        monkeypatch.chdir(folder)
        monkeypatch.setenv("PACKTOK_BASE_DIR", "")

    def run(self, title: str, text: str) -> None:
        if text in self._done:
            return
        self._done.add(text)
        if title.startswith("Python"):
            values: dict[str, Any] = {}
            exec(text, values)
            assert len(values["dataset"]) > 0
        elif title.startswith("OLMo"):
            described = yaml.safe_load(text)["data"]["custom_dataset"]
            assert described["name"] == "packtok.get_dataset"
            item = packtok.get_dataset(**described["args"])[0]
            assert hasattr(item, described["collate_config"].get("attention_bias_field", "token_ids"))
        elif title.startswith("Modalities"):
            described = yaml.safe_load(text)["train_dataset"]["config"]
            assert packtok.PbinReader(described["raw_data_path"]).num_tokens > described["sequence_length"]
        else:
            self._shell(text)

    def _shell(self, text: str) -> None:
        done = subprocess.run(
            ["bash", "-euc", REPORT + text], capture_output=True, check=True, cwd=self._folder
        )
        for program in done.stdout.split(b"\0\n\0")[:-1]:
            if program in self._done:
                continue
            self._done.add(program)
            base, *arguments = map(os.fsdecode, program.split(b"\0"))
            # GPT-2's tokenizer takes most of the time of a command.
            arguments = [str(self._tokenizer) if word == "gpt2" else word for word in arguments]
            self._monkeypatch.setenv("PACKTOK_BASE_DIR", base)
            with pytest.raises(SystemExit) as ended:
                self._program.main(args=arguments, prog_name="packtok")
            assert not ended.value.code, arguments
            self.num_programs += 1


@pytest.mark.filterwarnings("ignore:.*the tokenizer appends no token")
def test_every_command_of_every_page_runs(
    server: Served, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile, "_WAIT_SECONDS", 60)
    runner = Runner(tmp_path, base.parent / "small", monkeypatch)
    num_commands = 0
    for address in pages_of(server):
        page = server.page(address)
        titles = [title for title in page.all("h3") if title]
        for title, text in zip(titles, page.all("pre"), strict=True):
            runner.run(title, text)
            num_commands += 1
    assert num_commands > 80
    assert runner.num_programs > 40
    for folder in FOLDERS:
        forms = base / "x" / folder / "tokenized" / "gpt2"
        assert json.loads((forms / "all-2" / "metadata.json").read_text())["tokenized_info"]
    assert not [*tmp_path.iterdir()]


def test_dataset_is_named_by_its_path_if_its_name_does_not_lead_to_it(server: Served, base: Path) -> None:
    def shown(folder: str) -> str:
        page = server.page(f"/dataset/x/{urllib.parse.quote(folder)}")
        commands = dict(zip(page.all("h3"), page.all("pre"), strict=True))
        return commands["Show its metadata"].rpartition("packtok data show ")[2]

    assert shown("plain") == "Plain"
    assert (
        shown("one")
        == f"'{str(base).replace(chr(39), chr(39) + chr(34) + chr(39) + chr(34) + chr(39))}/x/one'"
    )


def test_commands_of_a_file_say_how_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tokens.bin"
    file.write_bytes(np.arange(1, 2501, dtype=np.uint16).tobytes())
    runner = Runner(tmp_path, tmp_path, monkeypatch)
    with served(site_of_file(file, read_as=("raw", "uint16", "eos=7"))) as server:
        page = server.page("/file/tokens.bin")
    commands = dict(zip(page.all("h3"), page.all("pre"), strict=True))
    # Modalities does not read it.
    assert [*commands] == ["Python", "Command line", "Check it"]
    for title, text in commands.items():
        runner.run(title, text)
    assert runner.num_programs == 3

"""``--json``: every command prints its result as one JSON document, and nothing else, to stdout."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from command_cases import BASE, CASES, CORPUS, write_files
from command_line import PacktokCli

from packtok.cli import app

# Commands that run until Ctrl-C, and the file that tests their first line.
SERVERS = {"explore": "test_explore_server.py"}


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yields every command of the program that is not a group, with the words to type."""
    if hasattr(command, "commands"):
        for name, subcommand in command.commands.items():
            yield from commands(subcommand, (*path, name))
    else:
        yield " ".join(path), command


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, packtok_cli: PacktokCli) -> Path:
    return write_files(tmp_path_factory.mktemp("json"), packtok_cli)


def test_every_command_has_a_case_and_the_flag() -> None:
    assert sorted(COMMANDS) == sorted([*CASES, *SERVERS])
    for name, command in COMMANDS.items():
        assert "--json" in [flag for parameter in command.params for flag in parameter.opts], name


@pytest.mark.parametrize("name", CASES)
def test_result_is_one_json_document_on_stdout(folder: Path, packtok_cli: PacktokCli, name: str) -> None:
    arguments, key = CASES[name]
    flag = () if "--json" in arguments else ("--json",)
    done = packtok_cli(*name.split(), *arguments, *flag, cwd=folder, env=BASE)
    assert done.stdout.isascii()
    result = json.loads(done.stdout)
    assert all(key in record for record in (result if isinstance(result, list) else [result])), result
    assert result
    assert all(line.startswith("packtok: ") for line in done.stderr.splitlines()), done.stderr


def test_printed_config_can_be_json(folder: Path, packtok_cli: PacktokCli) -> None:
    for command in (("pack",), ("plan", "--shards", 2)):
        done = packtok_cli(*command, *CORPUS, "-o", "none.pbin", "--print-config", "--json", cwd=folder)
        assert json.loads(done.stdout)["settings"]["dst_path"] == "none.pbin"


def test_cat_prints_ids_and_an_empty_list_without_documents(folder: Path, packtok_cli: PacktokCli) -> None:
    documents = json.loads(packtok_cli("cat", "t.pbin", "-d", "0", "--ids", "--json", cwd=folder).stdout)
    assert documents == [{"document": 0, "tokens": 4, "ids": [64, 275, 269, 50256]}]
    assert json.loads(packtok_cli("cat", "t.pbin", "-d", "9:", "--json", cwd=folder).stdout) == []


def test_failure_prints_no_json(folder: Path, packtok_cli: PacktokCli) -> None:
    done = packtok_cli("inspect", "none.pbin", "--json", cwd=folder, code=1)
    assert (done.stdout, done.stderr) == ("", "packtok: none.pbin: No such file or directory\n")


def test_json_flag_belongs_to_run_itself(folder: Path, packtok_cli: PacktokCli) -> None:
    done = packtok_cli("run", "--no-submit", "pack", "--json", *CORPUS, "-o", "n.pbin", cwd=folder, code=2)
    assert done.stderr.endswith(
        "--json cannot be given here; put it before the command: packtok run --json pack\n"
    )

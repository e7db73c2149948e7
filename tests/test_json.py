"""``--json``: every command prints its result as one JSON document, and nothing else, to stdout."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pbins
import pytest
import typer
from conftest import PacktokCli

from packtok._packtok import MdsWriter
from packtok.cli import app

CONFIG = (
    "settings: {src_path: c.jsonl, dst_path: y.pbin, jq_pattern: .text, eod_token: <|endoftext|>}\n"
    "tokenizer: {component_key: tokenizer, variant_key: pretrained_hf_tokenizer,\n"
    "  config: {pretrained_model_name_or_path: gpt2}}\n"
)
CHAT = """
settings: {src_path: chats.jsonl, dst_path: prepared/c.jsonl, messages_key: m,
  pbin_creation_config_file_path: pack_chat.yaml,
  split_config: {splitting: {train: 100, val: 0, test: 0}, seed: 1}}
instruction_data_transformation: {role_mapping: {a: A}}
jinja2_chat_template: "{{ messages[0].content }}"
chat_template_data: {}
"""
LOADER = "dataset: {paths: t.pbin, context_length: 2}\nloader: {global_batch_size: 1}\n"
CORPUS = ("-i", "c.jsonl", "-t", "gpt2")
ROOT = ("--input_data_root_path", ".", "--chunk_id", 0, "--num_chunks", 1)
# The folder itself is the base directory of its datasets.
BASE = {"PACKTOK_BASE_DIR": "."}
# Arguments of each command, and a key of its result; a new command needs a line here.
CASES: dict[str, tuple[tuple[object, ...], str]] = {
    "pack": ((*CORPUS, "-o", "packed.pbin"), "documents"),
    "plan": ((*CORPUS, "-o", "new", "--shards", 2), "num_shards"),
    "join": (("shards", "-o", "joined.pbin"), "documents"),
    "index": (("c.jsonl",), "entries"),
    "inspect": (("t.pbin",), "documents"),
    "cat": (("t.pbin", "-d", ":"), "text"),
    "count": (("c.jsonl", "-t", "gpt2"), "total"),
    "verify": (("t.pbin",), "checked"),
    "merge": (("t.pbin", "t.pbin", "merged.pbin"), "documents"),
    "convert": (("t.pbin", "--to", "cepe-npy", "-o", "converted.npy"), "documents"),
    "data files": ((".", "-o", "list.txt", "--ignore", "*.done.json"), "files"),
    "manifest": (("t.pbin", "-o", "new.jsonl"), "documents"),
    "locate": (("loader.yaml", "-s", 0), "documents"),
    "run": (("--no-submit", "--json", "pack", *CORPUS, "-o", "run.pbin"), "commands"),
    "status": (("shards",), "shards"),
    "retry": (("--no-submit", "old.pbin.shards"), "commands"),
    "tokenizer inspect": (("gpt2",), "vocab_size"),
    "tokenizer verify": (("gpt2", "-c", "c.jsonl"), "built_in_texts"),
    "logits": (
        ("--input_dir", "s", "--model_dir", "m", "--domain", "d", "--merge"),
        "samples",
    ),
    "tokenize": (("described", "-t", "gpt2", "-o", "tokenized"), "tokenized_info"),
    "data card": (("described",), "card"),
    "data create-metadata": (("--yes", "--dataset-path", "c.jsonl", "--output", "m.json"), "details"),
    "data index": ((), "datasets"),
    "data list": ((), "name"),
    "sample ab": (("ab", 12, 4, 0, 4, "--tokens", "samples", "--allow-short"), "train_samples"),
    "sample concat": (("concat", 8, 4, 0, 4, 0, "--tokens", "samples", "--allow-short"), "train_samples"),
    "sample import": (("pickled", "imported"), "folders"),
    "sample pack": (("rows", "--tokens", "samples"), "rows"),
    "sample recipe": (("samples.yaml", "-o", "samples-out", "--tokens", "samples"), "train_samples"),
    "source check": (("plugin.py:documents", "any"), "faults"),
    "stream show": (("state.json",), "steps"),
    "data search": (("desc",), "name"),
    "data show": (("described",), "metadata"),
    "data validate": (("described",), "differences"),
    "data create_raw_index": (("c.jsonl", "--index_path", "new.idx"), "entries"),
    "data pack_encoded_data": (("pack.yaml",), "documents"),
    "data merge_packed_data": (("t.pbin", "t.pbin", "both.pbin"), "documents"),
    "data prepare_instruction_tuning_data": (("--config_file_path", "chat.yaml"), "folder"),
    "data shuffle_tokenized_data": (
        ("--input_data_path", "t.pbin", "--output_data_path", "s.pbin", "--quiet"),
        "seed",
    ),
    "data shuffle_jsonl_data": (("--input-data-path", "c.jsonl", "--output-data-path", "s.jsonl"), "seed"),
    "data create_shuffled_dataset_chunk": (
        ("--input_file_list_path", "t.list", *ROOT, "--output_chunk_file_path", "k.pbin"),
        "seed",
    ),
    "data create_shuffled_jsonl_chunk": (
        ("--input_file_list_path", "c.list", *ROOT, "--output_chunk_file_path", "k.jsonl"),
        "seed",
    ),
}
# Commands that run until Ctrl-C, and the file that tests their first line.
SERVERS = {"explore": "test_explore_server.py"}


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yields every command of the program that is not a group, with the words to type."""
    if hasattr(command, "commands"):
        for name, one in command.commands.items():
            yield from commands(one, (*path, name))
    else:
        yield " ".join(path), command


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, packtok_cli: PacktokCli) -> Path:
    return write_files(tmp_path_factory.mktemp("json"), packtok_cli)


def write_files(folder: Path, packtok_cli: PacktokCli) -> Path:
    """Writes the files that the cases need into a folder, and returns it."""
    (folder / "c.jsonl").write_text('{"text": "a b c"}\n{"text": "\\u001b[31m\\u0660"}\n')
    (folder / "pack.yaml").write_text(CONFIG)
    (folder / "chats.jsonl").write_text('{"m": [{"role": "a", "content": "x"}]}\n')
    (folder / "chat.yaml").write_text(CHAT)
    (folder / "pack_chat.yaml").write_text(CONFIG.replace(".text", ".chat"))
    (folder / "t.list").write_text("t.pbin\n")
    (folder / "c.list").write_text("c.jsonl\n")
    for name in ("arxiv", "book", "c4-rp", "cc", "github", "stackexchange", "wiki"):
        (folder / "samples" / name).mkdir(parents=True)
        pbins.write(folder / "samples" / name / "t.pbin", [[number] * 12 for number in range(9)])
    (folder / "samples.yaml").write_text(
        "windows: {from: stream, context: 8, decoder: 4}\nsamples: {train: 1}\ndomains: {wiki: 1}\n"
    )
    shutil.copytree(Path(__file__).parent / "golden" / "mds" / "pickled", folder / "pickled")
    (folder / "plugin.py").write_text("def documents(corpus):\n    return [corpus]\n")
    (folder / "loader.yaml").write_text(LOADER)
    packtok_cli("pack", *CORPUS, "-o", "t.pbin", cwd=folder)
    with MdsWriter(folder / "s-logits-enc2048-dec2048-m" / "d-0", {"x": "int"}) as writer:
        writer.write({"x": 1})
        place = {"plan": "p", "side": "train", "domain": "d", "start": 0, "stop": 1}
        details = {"start": 0, "num_samples": 1, "shard": 0, "num_shards": 1}
        writer.finish(marker={"kind": "logits", **place, "details": details})
    for k in range(2):
        packtok_cli("pack", *CORPUS, "-o", "shards", "--shard", f"{k}/2", cwd=folder)
    packtok_cli("run", "--no-submit", "pack", *CORPUS, "-o", "old.pbin", cwd=folder)
    (folder / "state.json").write_text(
        json.dumps({"version": 1, "recipe": [{"op": "take", "max_count": 3}], "position": "AAA=", "skip": 2})
    )
    (folder / "described").mkdir()
    (folder / "described" / "c.jsonl").write_text('{"text": "a"}\n')
    packtok_cli("data", "create-metadata", "--yes", "-q", cwd=folder / "described")
    packtok_cli("data", "index", cwd=folder, env=BASE)
    return folder


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
    assert all(key in one for one in (result if isinstance(result, list) else [result])), result
    assert result
    assert all(line.startswith("packtok: ") for line in done.stderr.splitlines()), done.stderr


def test_printed_config_can_be_json(folder: Path, packtok_cli: PacktokCli) -> None:
    for command in (("pack",), ("plan", "--shards", 2)):
        done = packtok_cli(*command, *CORPUS, "-o", "none.pbin", "--print-config", "--json", cwd=folder)
        assert json.loads(done.stdout)["settings"]["dst_path"] == "none.pbin"


def test_cat_prints_ids_and_an_empty_list_without_documents(folder: Path, packtok_cli: PacktokCli) -> None:
    shown = json.loads(packtok_cli("cat", "t.pbin", "-d", "0", "--ids", "--json", cwd=folder).stdout)
    assert shown == [{"document": 0, "tokens": 4, "ids": [64, 275, 269, 50256]}]
    assert json.loads(packtok_cli("cat", "t.pbin", "-d", "9:", "--json", cwd=folder).stdout) == []


def test_failure_prints_no_json(folder: Path, packtok_cli: PacktokCli) -> None:
    done = packtok_cli("inspect", "none.pbin", "--json", cwd=folder, code=1)
    assert (done.stdout, done.stderr) == ("", "packtok: none.pbin: No such file or directory\n")


def test_json_flag_belongs_to_run_itself(folder: Path, packtok_cli: PacktokCli) -> None:
    done = packtok_cli("run", "--no-submit", "pack", "--json", *CORPUS, "-o", "n.pbin", cwd=folder, code=2)
    assert done.stderr.endswith(
        "--json cannot be given here; put it before the command: packtok run --json pack\n"
    )

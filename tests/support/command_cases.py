"""Arguments for every command that ends by itself, and the files that these arguments name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pbins
from command_line import PacktokCli
from repository import GOLDEN

from packtok._packtok import MdsWriter

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
    "reshape": (("t.pbin", "-o", "reshaped.pbin", "--filter", "length > 0"), "documents"),
    "diff": (("t.pbin", "t.pbin"), "difference"),
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
    "data profile": (("t.pbin",), "sample"),
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
    shutil.copytree(GOLDEN / "mds" / "pickled", folder / "pickled")
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

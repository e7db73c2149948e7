"""Messages name only options that their reader has: every message, for every entry point that can show it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import zstandard
from command_line import PacktokCli
from repository import ROOT

import packtok
import packtok.compat.modalities.files
from packtok.cli import app
from packtok.config.options import OPTIONS
from packtok.remedies import FUNCTIONS, INSTEAD, EntryPoint, of_command
from packtok.stream import CheckpointableDataset
from packtok.stream.dataset import FROM_FILES

PACK = ("packtok pack", "packtok plan", "packtok data pack_encoded_data", "packtok.pack", "packtok.plan")
RUN = ("packtok run", "packtok.run")
TOKENIZE = ("packtok tokenize", "packtok.tokenize")
COUNT = ("packtok count", "packtok.count", "packtok tokenizer verify")
INDEX = ("packtok index", "packtok data create_raw_index", "packtok.index")
MERGE = ("packtok merge", "packtok data merge_packed_data", "packtok.merge")
CONVERT = ("packtok convert", "packtok.convert")
RESHAPE = ("packtok reshape", "packtok.reshape")
JOIN = ("packtok join", "packtok.join")
SHUFFLE = (
    "packtok data shuffle_tokenized_data",
    "packtok data shuffle_jsonl_data",
    "packtok.shuffle_tokenized_data",
    "packtok.shuffle_jsonl_data",
)
CHUNKS = (
    "packtok data create_shuffled_dataset_chunk",
    "packtok data create_shuffled_jsonl_chunk",
    "packtok.create_shuffled_dataset_chunk",
    "packtok.create_shuffled_jsonl_dataset_chunk",
)
SAMPLE = ("packtok sample ab", "packtok sample concat", "packtok sample recipe", "packtok.draw_samples")
PACK_SAMPLES = ("packtok sample pack", "packtok.pack_samples")
IMPORT = ("packtok sample import", "packtok.import_samples")
FILTER = ("packtok.filter_dataset", "packtok.create_filtered_tokenized_dataset")
INSTRUCTION = ("packtok data prepare_instruction_tuning_data", "packtok.prepare_instruction_tuning_data")
VERIFY = ("packtok verify", "packtok.verify", "packtok.verify_corpus", "packtok.verify_origins")
STREAM = ("from_files",)
READ = (*PACK, *TOKENIZE, *COUNT, *STREAM)

# The entry points that can show the messages of a folder, of a file, or one message; the longest prefix
# counts.
REACH: dict[str, tuple[str, ...]] = {
    "crates/packtok-corpus/src": READ,
    "crates/packtok-corpus/src/document/reason.rs": (*PACK, *TOKENIZE, *INSTRUCTION),
    "crates/packtok-pack/src/error.rs": (*PACK, *TOKENIZE),
    # These messages are about declared inputs, journals and limits, which only packing has.
    "crates/packtok-pack/src/error.rs: --eod": (*PACK, *TOKENIZE, *INSTRUCTION),
    "crates/packtok-pack/src/error.rs: {}: the ": (*PACK, *TOKENIZE, *INSTRUCTION),
    "crates/packtok-pack/src/error.rs: --max-length": (*PACK, *INSTRUCTION),
    "crates/packtok-pack/src/error.rs: --token-width": PACK,
    "crates/packtok-pack/src/error.rs: {}: does not record": VERIFY,
    "crates/packtok-pack/src/error.rs: {}: document {document} came": VERIFY,
    "crates/packtok-pack/src/error.rs: {}: its source": VERIFY,
    "crates/packtok-pack/src/pack": (*PACK, *TOKENIZE, *INSTRUCTION),
    "crates/packtok-pbin/src": MERGE,
    "crates/packtok-py/src/boundary/error.rs": (*PACK, *TOKENIZE, *INDEX, *MERGE, *JOIN),
    "crates/packtok-reshape/src/error.rs": (*SHUFFLE, *CHUNKS, *FILTER, *RESHAPE),
    "crates/packtok-reshape/src/error.rs: --remove": RESHAPE,
    "crates/packtok-reshape/src/steps": RESHAPE,
    "python/packtok/commands/through_stores.py": (*CONVERT, *RESHAPE),
    "crates/packtok-reshape/src/convert/kept.rs": (*CONVERT, *RESHAPE),
    "crates/packtok-reshape/src/error.rs: --num-chunks": CHUNKS,
    "crates/packtok-reshape/src/error.rs: --chunk-id": CHUNKS,
    "crates/packtok-reshape/src/error.rs: chunk ": CHUNKS,
    "crates/packtok-reshape/src/error.rs: {}: has ids of": ("packtok convert", "packtok.convert", *RESHAPE),
    "crates/packtok-reshape/src/error.rs: {}: line": CHUNKS[:2],
    "crates/packtok-reshape/src/error.rs: {}: cannot be proven": (*SHUFFLE, *CHUNKS),
    "crates/packtok-reshape/src/error.rs: {side} side": SAMPLE,
    "crates/packtok-reshape/src/error.rs: {}: has samples": (*SAMPLE, *PACK_SAMPLES),
    "crates/packtok-reshape/src/error.rs: {}: exists": (*SAMPLE, *PACK_SAMPLES),
    "crates/packtok-reshape/src/error.rs: {}: {missing} of": (*SAMPLE, *PACK_SAMPLES),
    "crates/packtok-reshape/src/error.rs: {}: is missing": SAMPLE,
    "crates/packtok-reshape/src/error.rs: --shard": (*SAMPLE, *PACK_SAMPLES),
    "crates/packtok-reshape/src/error.rs: {}: token": SAMPLE,
    "crates/packtok-reshape/src/error.rs: the retrieval": SAMPLE[1:],
    "crates/packtok-reshape/src/error.rs: {}: sample {sample}": IMPORT,
    "crates/packtok-formats/src/error.rs": CONVERT,
    "crates/packtok-formats/src/mds/tokens.rs": CONVERT,
    "python/packtok/sources.py: {}: has {} files": (*CONVERT, *RESHAPE),
    "crates/packtok-reshape/src/error.rs: {}: a shard": (*CONVERT, *RESHAPE),
    "crates/packtok-reshape/src/error.rs: {}: the output is": (*CONVERT, *RESHAPE),
    "crates/packtok-reshape/src/error.rs: {}: the bytes of": CONVERT,
    "crates/packtok-reshape/src/error.rs: {}: read as": (*CONVERT, *RESHAPE),
    "crates/packtok-reshape/src/error.rs: {}: records": (*CONVERT, *RESHAPE),
    "crates/packtok-reshape/src/error.rs: {}: the existing file": (*CONVERT, *RESHAPE),
    "crates/packtok-reshape/src/error.rs: {} and {}": TOKENIZE,
    "crates/packtok-reshape/src/error.rs: {}: is not below": TOKENIZE,
    "crates/packtok-reshape/src/error.rs: {}: the file exists": TOKENIZE,
    "crates/packtok-py/src/boundary/token_formats.rs": CONVERT,
    "crates/packtok-py/src/reshape/mds.rs": IMPORT,
    "crates/packtok-store/src": (*PACK, *JOIN),
    "crates/packtok-tokenizer/src": PACK,
    "python/packtok/catalog/cards": ("packtok data card",),
    "python/packtok/catalog": TOKENIZE,
    "python/packtok/catalog/checks.py": ("packtok data create-metadata",),
    "python/packtok/commands/convert.py": CONVERT,
    "python/packtok/commands/npy_folder.py": (*CONVERT, *TOKENIZE),
    "python/packtok/commands/reshape.py": RESHAPE,
    "python/packtok/document_filter.py": RESHAPE,
    "python/packtok/commands/count.py": ("packtok count",),
    "python/packtok/commands/data.py": ("packtok data create-metadata",),
    "python/packtok/commands/data.py: --format": ("packtok data card",),
    "python/packtok/commands/data.py: {}: the existing list": ("packtok data files",),
    "python/packtok/commands/data.py: the card": ("packtok data card",),
    "python/packtok/commands/explore.py": ("packtok explore",),
    "python/packtok/commands/profile.py": ("packtok data profile",),
    "python/packtok/commands/index.py": INDEX,
    "python/packtok/commands/instruction.py": INSTRUCTION,
    "python/packtok/commands/join.py": JOIN,
    "python/packtok/commands/logits.py": ("packtok logits",),
    "python/packtok/commands/pack.py": ("packtok pack", "packtok.pack"),
    "python/packtok/commands/merge.py": MERGE,
    "python/packtok/commands/plan.py": ("packtok plan", "packtok.plan"),
    "python/packtok/commands/run.py": RUN,
    "python/packtok/commands/run_command.py": RUN,
    "python/packtok/commands/run_command.py: --join": ("packtok run",),
    "python/packtok/commands/run_command.py: --array-tasks": ("packtok run",),
    "python/packtok/commands/shuffle.py": (SHUFFLE[0], CHUNKS[0]),
    "python/packtok/commands/shuffle.py: --{}": CHUNKS,
    "python/packtok/commands/sample.py": (*SAMPLE, *PACK_SAMPLES),
    "python/packtok/shard_folder.py: {}: the existing plan": (*SAMPLE, *PACK_SAMPLES, "packtok logits"),
    "python/packtok/sample": SAMPLE,
    "python/packtok/sample/files.py": (*SAMPLE, *PACK_SAMPLES),
    "python/packtok/commands/tokenize.py": TOKENIZE,
    "python/packtok/commands/tokenize_npy.py": TOKENIZE,
    "python/packtok/commands/task_run.py": ("packtok convert", "packtok reshape"),
    "python/packtok/commands/tokenize_shards.py": TOKENIZE,
    "python/packtok/commands/tokenizer.py": ("packtok tokenizer verify",),
    "python/packtok/commands/verify.py": VERIFY,
    "python/packtok/config": PACK,
    "python/packtok/distributed.py": ("packtok pack", "packtok.pack", "packtok tokenize"),
    "python/packtok/explore": ("packtok explore",),
    "python/packtok/launch": RUN,
    "python/packtok/logits": ("packtok logits",),
    "python/packtok/packer": PACK,
    "python/packtok/packer/report.py": ("packtok pack", "packtok.pack"),
    "python/packtok/plugins": (*PACK, *TOKENIZE, *COUNT),
    "python/packtok/sources.py": (*SAMPLE, *PACK_SAMPLES),
    "python/packtok/tokenizer": (*PACK, *TOKENIZE),
    "python/packtok/tokenizer/length.py": (*PACK, *INSTRUCTION),
}
# Texts that look like options of packtok but are not, with the reason.
NOT_OPTIONS = {
    "--reservation": "an argument of sbatch",
}
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
# A key of a config in a suggestion. References to options have their flag before the key.
_BARE_KEY = re.compile(
    r"\b(?:set|raise|lower|without|change|give) (?P<key>[a-z_]+)\b(?! in (?:the|a) |=)",
)


def commands(command: Any, path: tuple[str, ...] = ("packtok",)) -> Iterator[tuple[str, EntryPoint]]:
    if hasattr(command, "commands"):
        for name, subcommand in command.commands.items():
            yield from commands(subcommand, (*path, name))
    else:
        yield " ".join(path), of_command(path, command)


@cache
def points() -> dict[str, EntryPoint]:
    for name in packtok.__all__:
        getattr(packtok, name)
    functions = {name: point() for name, point in FUNCTIONS.items()}
    return {**dict(commands(typer.main.get_command(app))), **functions, "from_files": FROM_FILES}


def options(name: str) -> set[str]:
    """Returns the options that can be given; with `packtok run`, also those of the command that it runs."""
    names = ("packtok run", "packtok pack", "packtok tokenize") if name == "packtok run" else (name,)
    return {option for command in names for option in points()[command].options}


def rust_texts(path: Path) -> Iterator[str]:
    code = path.read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
    lines = [line for line in code.splitlines() if not line.lstrip().startswith("//")]
    for match_ in re.finditer(r'"((?:[^"\\]|\\.)*)"', "\n".join(lines)):
        yield re.sub(r"\\\n\s*", "", match_[1]).replace('\\"', '"')


def python_texts(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs | inside:
            yield node.value


def messages() -> Iterator[tuple[str, str]]:
    """Yields every text in the sources, with its file."""
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        if path.name != "tests.rs" and "tests" not in path.parts:
            yield from ((str(path.relative_to(ROOT)), text) for text in rust_texts(path))
    for path in sorted((ROOT / "python" / "packtok").rglob("*.py")):
        # Declarations of options and arguments of sbatch are no messages.
        if path.parent.name != "cli" and path.name not in (
            "option.py",
            "options.py",
            "script.py",
            "slurm.py",
        ):
            yield from ((str(path.relative_to(ROOT)), text) for text in python_texts(path))


@cache
def messages_with_options() -> list[tuple[str, str]]:
    return [(path, text) for path, text in messages() if _FLAG.search(text) and " " in text.strip()]


def reach(path: str, text: str) -> tuple[str, ...]:
    message = f"{path}: {text}"
    places = [place for place in REACH if message.startswith((place, f"{place}/", f"{place}:"))]
    assert places, f"{path} has messages with options: add to REACH which entry points can show them"
    return REACH[max(places, key=len)]


def test_every_message_is_found() -> None:
    paths = {path for path, _ in messages_with_options()}
    assert {"crates/packtok-corpus/src/field/bad.rs", "python/packtok/commands/tokenize.py"} <= paths
    assert set(INSTEAD) <= set(points())
    assert {name for names in REACH.values() for name in names} <= set(points())
    assert len(messages_with_options()) > 60


def test_messages_name_only_options_of_the_entry_point() -> None:
    """A message that fails here needs an option at that entry point, or an entry in `INSTEAD`."""
    wrong = []
    for path, text in messages_with_options():
        for name in reach(path, text):
            point = points()[name]
            whole = text if "; " in text or text.startswith(("{", "--")) else f"problem; {text}"
            message = point.worded(whole)
            named = {
                flag for part in message.split("; ") if "packtok " not in part for flag in _FLAG.findall(part)
            }
            known = {f"--{option}" for option in options(name)} if point.style == "flag" else set()
            lost = "; " in whole and "; " not in message
            if named - known - set(NOT_OPTIONS) or lost:
                wrong.append(f"{path}: {name}: {message}")
    assert not wrong, "\n".join(wrong)


def test_keys_of_a_config_are_named_with_their_flag() -> None:
    keys = {key for keyword, option in OPTIONS.items() if option.flags for key in (keyword, option.name)}
    # Only Python functions show the messages of the first two; every program of packtok has the limits of the
    # machine.
    exempt = (
        "crates/packtok-tokenizer/",
        "crates/packtok-stream/",
        "crates/packtok-jobs/src/limits.rs",
    )
    texts = [text for path, text in messages() if path.endswith(".rs") and not path.startswith(exempt)]
    bare = [text for text in texts for match_ in _BARE_KEY.finditer(text) if match_["key"] in keys]
    assert not bare, "\n".join(bare)


@pytest.mark.parametrize(
    ("name", "message", "expected"),
    [
        ("packtok pack", "a; set --field (jq_pattern) to b", "a; set --field (jq_pattern) to b"),
        (
            "packtok data prepare_instruction_tuning_data",
            "--padding: tokenizer.config.padding is 'x'; set --field (jq_pattern) to b, or remove --eod",
            "tokenizer.config.padding is 'x'; set jq_pattern to b, or remove settings.eod_token",
        ),
        (
            "packtok.prepare_instruction_tuning_data",
            "a; set --existing replace (existing: replace), or --engine auto (engine: auto)",
            'a; set existing="replace", or engine: auto',
        ),
        ("packtok.pack", "a; set --field (jq_pattern) to b", "a; set field (jq_pattern in a config) to b"),
        ("packtok tokenize", "a; set --field (jq_pattern) to b", "a; set content_field in the metadata to b"),
        ("from_files", "a; set --field (jq_pattern) to b", "a; set text_column to b"),
        ("packtok count", "a; set --field (jq_pattern) to b", "a; set --field to b"),
        ("packtok merge", "a; set --field (jq_pattern) to b", "a"),
        ("packtok merge", "a; set --field (jq_pattern) to b, or pack again", "a; pack again"),
        ("packtok.join", "a; start with --restart (restart: true), or wait", "a; wait"),
        ("packtok.pack", "a; start with --restart (restart: true)", "a; start with restart=True"),
        ("packtok.pack", "--eod: settings.eod_token is missing", "eod: settings.eod_token is missing"),
        ("packtok tokenize", "--eod: settings.eod_token is missing", "--eod: is missing"),
        ("packtok.tokenize", "--eod: settings.eod_token is missing", "eod: is missing"),
        ("packtok tokenize", "--num-cpus: settings.num_cpus is 0", "--num-workers: is 0"),
        (
            "packtok tokenize",
            "--eod: is missing; give it, or settings.eod_token in a config",
            "--eod: is missing; give it",
        ),
    ],
)
def test_options_are_named_as_the_caller_gives_them(name: str, message: str, expected: str) -> None:
    assert points()[name].worded(message) == expected


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Returns a described dataset whose content field does not exist in its second document."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.jsonl").write_text('{"body": "a"}\n{"text": "b"}\n')
    metadata = {
        "name": "D",
        "description": "",
        "date_downloaded": "2026-01-01",
        "download_source": "",
        "data_content": "text",
        "content_field": "body",
        "corpuses": [],
    }
    (tmp_path / "d" / "metadata.json").write_text(json.dumps(metadata))
    return tmp_path / "d"


def test_content_field_is_named_where_it_is_set(
    tmp_path: Path, dataset: Path, packtok_cli: PacktokCli
) -> None:
    place = f"{dataset}/a.jsonl:2: byte 14: "
    done = packtok_cli("tokenize", dataset, "-t", "gpt2", "-o", "out", cwd=tmp_path, code=1)
    assert done.stderr.splitlines()[-1].startswith(f"packtok: {place}")
    assert done.stderr.endswith(
        "; change content_field in the metadata, or skip such documents with --on-bad-document skip\n"
    )
    with pytest.raises(packtok.DocumentError) as raised:
        packtok.tokenize(str(dataset), "gpt2", tmp_path / "out")
    assert str(raised.value).endswith(
        '; change content_field in the metadata, or skip such documents with on_bad_document="skip"'
    )
    # A function that the command line calls uses the words of the command line.
    done = packtok_cli("count", dataset / "a.jsonl", "-t", "gpt2", "-f", ".body", cwd=tmp_path, code=1)
    assert done.stderr.endswith("; change --field, or skip such documents with --on-bad-document skip\n")


def test_finished_shard_of_tokenize_can_be_replaced_as_its_report_says(
    tmp_path: Path, dataset: Path, packtok_cli: PacktokCli
) -> None:
    shard = ("tokenize", dataset, "-t", "gpt2", "-o", "out", "--on-bad-document", "skip", "--shard", "0/1")
    packtok_cli(*shard, cwd=tmp_path)
    again = packtok_cli(*shard, cwd=tmp_path)
    assert "its marker says that it is complete; --existing replace packs it again" in again.stdout
    assert "kept" not in packtok_cli(*shard, "--existing", "replace", cwd=tmp_path).stdout


def test_streams_and_tokenize_read_zstd_with_a_large_window(
    tmp_path: Path, dataset: Path, packtok_cli: PacktokCli
) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=28, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    content = compressor.compress(b'{"body": "a"}\n' * 9) + compressor.flush()
    (dataset / "a.jsonl").unlink()
    path = dataset / "b.jsonl.zst"
    path.write_bytes(content)
    problem = f"{path}: a zstd frame needs a window larger than 2^27 bytes; raise "
    with pytest.raises(packtok.PacktokError) as raised:
        next(iter(CheckpointableDataset.from_files(path)))
    assert str(raised.value) == f"{problem}zstd_window_log, to at most 31"
    assert len(list(CheckpointableDataset.from_files(path, zstd_window_log=28))) == 9
    with pytest.raises(ValueError, match="zstd_window_log is 32, expected an integer from 10 to 31"):
        CheckpointableDataset.from_files(path, zstd_window_log=32)
    tokenize = ("tokenize", dataset, "-t", "gpt2", "-o", "out")
    done = packtok_cli(*tokenize, cwd=tmp_path, code=1)
    assert done.stderr == f"packtok: {problem}--zstd-window-log, to at most 31\n"
    packtok_cli(*tokenize, "--zstd-window-log", 28, cwd=tmp_path)


def test_stream_reads_records_up_to_its_own_limit(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a long text"}\n')
    assert len(list(CheckpointableDataset.from_files(tmp_path / "a.jsonl", max_document_bytes=30))) == 1
    short = CheckpointableDataset.from_files(tmp_path / "a.jsonl", max_document_bytes=10)
    with pytest.raises(packtok.DocumentError, match="exceeds max_document_bytes"):
        next(iter(short))


def test_unfinished_folder_of_tokenize_asks_to_finish_it(
    tmp_path: Path, dataset: Path, packtok_cli: PacktokCli
) -> None:
    shard = ("--on-bad-document", "skip", "--shard", "0/2")
    packtok_cli("tokenize", dataset, "-t", "gpt2", "-o", "out", *shard, cwd=tmp_path)
    with pytest.raises(packtok.ConfigError) as raised:
        packtok.get_dataset(tmp_path / "out", 16)
    assert str(raised.value) == (
        f"{tmp_path}/out: has no tokens yet, but tokenized.pbin.shards of an unfinished run; run the command "
        "that writes the folder again, which resumes it"
    )


def test_names_of_modalities_have_the_options_of_the_commands() -> None:
    for alias, command in (
        ("create_raw_index", "index"),
        ("pack_encoded_data", "pack"),
        ("merge_packed_data", "merge"),
    ):
        assert points()[f"packtok data {alias}"].options == points()[f"packtok {command}"].options


def test_text_is_not_indexed_and_no_format_is_suggested(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    (tmp_path / "p.txt").write_text("a line\n")
    for command in (("index",), ("data", "create_raw_index")):
        done = packtok_cli(*command, "p.txt", cwd=tmp_path, code=1)
        assert done.stderr == (
            "packtok: p.txt: is plain text, but a raw index lists lines of JSON; pack the file without one\n"
        )
    (tmp_path / "a.jsonl").write_text('{"text": "a long text"}\n')
    done = packtok_cli("index", "a.jsonl", "--max-document-bytes", 9, cwd=tmp_path, code=1)
    assert done.stderr.endswith(
        "; raise --max-document-bytes, or skip such lines with --on-bad-document skip\n"
    )


@pytest.mark.parametrize(
    ("function", "name", "expected"),
    [
        (packtok.pack, "eod_token", "packtok.pack() has no option 'eod_token'; did you mean 'eod'?"),
        (packtok.pack, "jq_pattern", "packtok.pack() has no option 'jq_pattern'; did you mean 'field'?"),
        (packtok.pack, "dst_pth", "packtok.pack() has no option 'dst_pth'; did you mean 'output'?"),
        (
            packtok.count,
            "max_token",
            "packtok.count() has no option 'max_token'; did you mean 'max_documents'?",
        ),
    ],
)
def test_unknown_keyword_suggests_one_that_the_function_has(function: Any, name: str, expected: str) -> None:
    arguments = ("a.jsonl", "gpt2") if function is packtok.count else ()
    with pytest.raises(TypeError) as raised:
        function(*arguments, **{name: 1})
    assert str(raised.value) == expected


def test_folder_of_tokens_is_named_by_its_option(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    problem = f"{tmp_path}/none is not a folder; give the folder with the token files"
    for arguments in (("ab", "out", 8, 4, 0, 1), ("pack", "out")):
        done = packtok_cli("sample", *arguments, "--tokens", tmp_path / "none", cwd=tmp_path, code=2)
        assert done.stderr.splitlines()[-1] == f"packtok: --tokens: {problem}"
    with pytest.raises(packtok.ConfigError) as raised:
        packtok.pack_samples(tmp_path / "out", tokens=tmp_path / "none")
    assert str(raised.value) == f"tokens: {problem}"

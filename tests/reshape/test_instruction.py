"""`prepare_instruction_tuning_data`: the files of Modalities, errors by file and line, whole folders only."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import oracle
import pytest
import reference
import yaml
from command_line import PacktokCli
from extent import extent
from processes import PROGRAM
from repository import GOLDEN

import packtok
import packtok.instruction
from packtok import prepare_instruction_tuning_data

CASE = GOLDEN / "instruction"
INPUTS = ("chat.yaml", "conversations.jsonl", "pack.yaml")
FOLDER = Path("prepared/conversations_85b64e5")


@pytest.fixture
def golden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a current folder with the inputs that Modalities' golden output was made from."""
    for name in INPUTS:
        shutil.copyfile(CASE / name, tmp_path / name)
    shutil.copytree(CASE / "tokenizer", tmp_path / "tokenizer")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def conversation(*contents: str, role: str = "human") -> dict[str, Any]:
    roles = (role, "gpt")
    return {
        "conversation": [{"role": roles[i % 2], "content": content} for i, content in enumerate(contents)]
    }


def write(lines: list[Any]) -> None:
    encoded = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    Path("conversations.jsonl").write_bytes(b"".join(line + b"\n" for line in encoded))


def change(**changes: Any) -> None:
    """Replaces keys of the config, by dotted name with ``__``; ``None`` removes one."""
    config = yaml.safe_load((CASE / "chat.yaml").read_text(encoding="utf-8"))
    for key, value in changes.items():
        section = config
        *sections, last = key.split("__")
        for name in sections:
            section = section[name]
        section[last] = value
        if value is None:
            del section[last]
    Path("chat.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def error_of(**options: Any) -> str:
    """Returns the message of the error, after checking that nothing is left behind."""
    before = sorted(Path().rglob("*"))
    with pytest.raises((ValueError, packtok.PacktokError)) as caught:
        prepare_instruction_tuning_data("chat.yaml", **options)
    assert [path for path in sorted(Path().rglob("*")) if path != Path("prepared")] == before
    return str(caught.value)


# --- the files of Modalities


def test_every_file_is_that_of_modalities(golden: Path) -> None:
    report = prepare_instruction_tuning_data("chat.yaml")
    assert report["folder"] == str(FOLDER)
    theirs = {path.name: path.read_bytes() for path in (CASE / FOLDER).iterdir()}
    ours = {path.name: path.read_bytes() for path in FOLDER.iterdir()}
    # packtok also keeps a copy of the tokenizer.
    assert ours.keys() - theirs.keys() == {
        f"chats_{part}.85b64e5.pbin.tokenizer.json" for part in ("train", "val")
    }
    assert theirs.keys() <= ours.keys()
    for name, content in theirs.items():
        # The trailer of a pbin follows the bytes that Modalities writes.
        assert (ours[name][: len(content)] if name.endswith(".pbin") else ours[name]) == content, name
    assert [part["part"] for part in report["parts"]] == ["train", "val"]
    for part in report["parts"]:
        documents = reference.read_pbin(Path(part["pbin"])).documents
        assert (part["conversations"], part["documents"]) == (4, len(documents)) == (4, 4)
        assert part["tokens"] == sum(map(len, documents))
        assert Path(part["jsonl"]).is_file()
        assert Path(part["index"]).is_file()
    assert report["blank"] == 0
    assert not report["skipped_existing"]


def test_the_config_in_the_folder_packs_a_part_again(golden: Path) -> None:
    part = prepare_instruction_tuning_data("chat.yaml")["parts"][0]
    packtok.pack(FOLDER / "pbin_config_train.85b64e5.yaml", output="again.pbin")
    assert (
        reference.read_pbin(Path("again.pbin")).documents == reference.read_pbin(Path(part["pbin"])).documents
    )


@pytest.mark.parametrize("percentages", [(100, 0, 0), (70, 15, 15), (1, 0, 99)])
def test_conversations_are_divided_as_python_draws(golden: Path, percentages: tuple[int, int, int]) -> None:
    names = ("train", "val", "test")
    splitting = dict(zip(names, percentages, strict=True))
    change(
        settings__split_config={"splitting": splitting, "seed": 1234}, jinja2_chat_template="{{ messages }}"
    )
    write([conversation(str(i)) | {"id": i} for i in range(200)])
    report = prepare_instruction_tuning_data("chat.yaml")
    generator = random.Random(1234)
    expected: dict[str, list[int]] = {}
    for i in range(200):
        expected.setdefault(generator.choices(names, weights=percentages)[0], []).append(i)
    drawn = {
        part["part"]: [json.loads(line)["id"] for line in Path(part["jsonl"]).read_bytes().splitlines()]
        for part in report["parts"]
    }
    assert drawn == expected
    files = Counter(path.suffix for path in Path(report["folder"]).iterdir())
    assert files[".jsonl"] == sum(percentage > 0 for percentage in percentages)


def test_the_state_of_python_s_generator_is_kept(golden: Path) -> None:
    random.seed(5)
    state = random.getstate()
    prepare_instruction_tuning_data("chat.yaml")
    assert random.getstate() == state


def test_names_with_dots_are_whole(golden: Path) -> None:
    """Modalities gives all parts one name."""
    change(settings__dst_path="prepared/v1.5.chats.jsonl")
    report = prepare_instruction_tuning_data("chat.yaml")
    hash = Path(report["folder"]).name.removeprefix("conversations_")
    assert [Path(part["pbin"]).name for part in report["parts"]] == [
        f"v1.5.chats_{part}.{hash}.pbin" for part in ("train", "val")
    ]


def test_files_are_utf_8_in_any_locale(golden: Path, packtok_cli: PacktokCli) -> None:
    """Modalities writes in the encoding of the locale, and fails for most texts in some."""
    packtok_cli(
        "data",
        "prepare_instruction_tuning_data",
        "--config_file_path",
        "chat.yaml",
        "-q",
        cwd=golden,
        env={"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    )
    name = "chats_val.85b64e5.jsonl"
    assert (FOLDER / name).read_bytes() == (CASE / FOLDER / name).read_bytes()


def test_blank_lines_are_counted(golden: Path) -> None:
    lines = Path("conversations.jsonl").read_bytes().splitlines(keepends=True)
    Path("conversations.jsonl").write_bytes(b"\xef\xbb\xbf" + b" \n".join(lines) + b"\r\n")
    report = prepare_instruction_tuning_data("chat.yaml")
    assert report["blank"] == len(lines)
    name = "chats_train.85b64e5.jsonl"
    assert (FOLDER / name).read_bytes() == (CASE / FOLDER / name).read_bytes()


def test_rows_of_truncated_conversations_are_masked_across_blocks(golden: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs torch, which is not installed")
    part = prepare_instruction_tuning_data("chat.yaml")["parts"][0]
    documents = reference.read_pbin(Path(part["pbin"])).documents
    tokenizer = oracle.load(CASE / "tokenizer" / "tokenizer.json")
    begin, end = (tokenizer.token_to_id(token) for token in ("<|start|>", "<|end|>"))
    flat = [token for document in documents for token in document]
    counts = []
    for document in documents:
        is_open = False
        for token in document:
            counts.append(is_open and token not in (begin, end))
            is_open = token == begin or (is_open and token != end)
    dataset = packtok.TokenDataset(part["pbin"], 50, loss_markers=("<|start|>", "<|end|>"))
    labels = torch.cat([dataset[i]["labels"] for i in range(len(dataset))]).tolist()
    expected = [flat[i] if counts[i] else -100 for i in range(1, len(labels) + 1)]
    assert labels == expected
    assert {-100} < set(labels)


def test_modalities_names_are_in_the_compatibility_module(golden: Path) -> None:
    from packtok.compat import modalities

    modalities.create_instruction_tuning_data("chat.yaml")
    name = "chats_train.85b64e5.jsonl"
    assert (FOLDER / name).read_bytes() == (CASE / FOLDER / name).read_bytes()
    pytest.importorskip("torch", reason="needs torch, which is not installed")
    assert modalities.LossMaskingCollateFnWrapper is packtok.LossMaskingCollateFnWrapper
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        modalities.other  # noqa: B018


# --- errors


TEMPLATE = "{% for turn in messages %}{{ turn.content }}{% endfor %}"


@pytest.mark.parametrize(
    ("line", "template", "message"),
    [
        (
            conversation("a", "b", role="user"),
            TEMPLATE,
            "the role 'user' is none of 'gpt', 'human'; add it to "
            "instruction_data_transformation.role_mapping",
        ),
        (
            {"conversation": [{"from": ["gpt"]}]},
            TEMPLATE,
            "the from ['gpt'] is none of 'gpt', 'human'; add it to "
            "instruction_data_transformation.role_mapping",
        ),
        (
            {"id": 3, "messages": []},
            TEMPLATE,
            "has no key 'conversation', but 'id', 'messages'; set settings.messages_key to the key of the "
            "messages",
        ),
        (
            {"conversation": "Hi!"},
            TEMPLATE,
            "'conversation' is no list of objects; set settings.messages_key to the key of the messages",
        ),
        (
            conversation("a"),
            "{{ raise_exception('roles must alternate') }}",
            "jinja2_chat_template raised TemplateError: roles must alternate; correct the template or the "
            "line",
        ),
        (
            conversation("a"),
            "{{ messages[0].nothing.more }}",
            "jinja2_chat_template raised UndefinedError: 'dict object' has no attribute 'nothing'; correct "
            "the template or the line",
        ),
        (
            conversation("a"),
            "{{ ''.__class__.__mro__ }}",
            "jinja2_chat_template raised SecurityError: access to attribute '__class__' of 'str' object is "
            "unsafe; correct the template or the line",
        ),
        (
            conversation("a"),
            "{{ messages.append(1) }}",
            "jinja2_chat_template raised SecurityError: access to attribute 'append' of 'list' object is "
            "unsafe; correct the template or the line",
        ),
        (
            conversation("a"),
            "{{ 1 // 0 }}",
            "jinja2_chat_template raised ZeroDivisionError: integer division or modulo by zero; correct the "
            "template or the line",
        ),
        (
            b'{"conversation": [',
            TEMPLATE,
            "not valid JSON: Expecting value: line 2 column 1 (char 19); correct or remove the line",
        ),
        (b"[]", TEMPLATE, "a JSON object was expected, found list; correct or remove the line"),
        (
            b'{"conversation": [], "x": NaN}',
            TEMPLATE,
            "not valid JSON: NaN is no JSON; correct or remove the line",
        ),
        (
            b'{"conversation": [], "x": 1e999}',
            TEMPLATE,
            "it contains a number or nesting that cannot be written as JSON; correct or remove the line",
        ),
        (
            b'{"x": "\xff"}',
            TEMPLATE,
            "byte 7 of the line is not UTF-8; convert the file to UTF-8 JSON lines",
        ),
        (
            conversation("\ud800"),
            TEMPLATE,
            "its text contains half of a surrogate pair, which UTF-8 cannot represent; correct the line",
        ),
        (
            conversation("a") | {"x": "\ud800"},
            TEMPLATE,
            "it contains half of a surrogate pair, which UTF-8 cannot represent; correct or remove the line",
        ),
    ],
)
def test_a_bad_conversation_is_named_by_file_and_line(
    golden: Path, line: Any, template: str, message: str
) -> None:
    change(jinja2_chat_template=template)
    good = conversation("a", "b")
    write([line] if "content" not in template else [good, good, line])
    number = 1 if "content" not in template else 3
    assert error_of() == f"conversations.jsonl:{number}: {message}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings__messages_key": None}, "chat.yaml: settings.messages_key is missing"),
        (
            {"settings__message_key": "a"},
            "chat.yaml: settings.message_key is not a known key; did you mean settings.messages_key?",
        ),
        ({"settings__split_config": None}, "chat.yaml: settings.split_config is missing"),
        (
            {"settings__split_config__splitting__val": 46},
            "chat.yaml: settings.split_config.splitting: train, val and test are percentages; their sum is "
            "101, expected 100",
        ),
        (
            {"settings__split_config__splitting__val": -45},
            "chat.yaml: settings.split_config.splitting.val is -45; expected at least 0",
        ),
        (
            {"settings__split_config__seed": "x"},
            "chat.yaml: settings.split_config.seed is 'x'; expected an integer",
        ),
        (
            {"settings__dst_path": "prepared/a.jsonl.gz"},
            "chat.yaml: settings.dst_path is 'prepared/a.jsonl.gz'; expected a name that ends in .jsonl",
        ),
        (
            {"jinja2_chat_template": "\n{% for %}"},
            "chat.yaml: jinja2_chat_template: line 2: Expected an expression, got 'end of statement block'; "
            "correct the template",
        ),
        ({"chat_template_data": "a"}, "chat.yaml: chat_template_data is 'a'; expected a mapping of keys"),
    ],
)
def test_errors_of_the_config_name_the_key(golden: Path, changes: dict[str, Any], message: str) -> None:
    change(**changes)
    assert error_of() == message


def test_errors_of_packing_come_before_the_conversations(golden: Path) -> None:
    Path("conversations.jsonl").write_text("not read", encoding="utf-8")
    Path("pack.yaml").write_text(
        Path("pack.yaml").read_text(encoding="utf-8").replace("num_cpus: 1", "num_cpu: 1"), encoding="utf-8"
    )
    assert error_of() == "pack.yaml: settings.num_cpu is not a known key; did you mean settings.num_cpus?"


def test_missing_files_and_conversations(golden: Path) -> None:
    write([b"", b" "])
    assert error_of() == ("conversations.jsonl: has no conversations; add some, or change settings.src_path")
    Path("conversations.jsonl").unlink()
    with pytest.raises(FileNotFoundError) as caught:
        prepare_instruction_tuning_data("chat.yaml")
    assert (caught.value.filename, caught.value.strerror) == (
        "conversations.jsonl",
        "settings.src_path: no such file",
    )


def test_a_document_that_cannot_be_packed_is_in_a_folder_that_is_kept(golden: Path) -> None:
    pack = Path("pack.yaml").read_text(encoding="utf-8")
    Path("pack.yaml").write_text(pack.replace("jq_pattern", "special_tokens_in_text: fail\n  jq_pattern"))
    with pytest.raises(packtok.DocumentError) as caught:
        prepare_instruction_tuning_data("chat.yaml")
    path, line, rest = str(caught.value).split(":", 2)
    assert 'special token "<|start|>"' in rest
    assert line == "1"
    assert b"<|start|>" in Path(path).read_bytes()
    assert not FOLDER.exists()
    (golden / "pack.yaml").write_text(pack)
    prepare_instruction_tuning_data("chat.yaml")
    assert [path.name for path in Path("prepared").iterdir()] == [FOLDER.name]


def test_without_jinja_the_message_names_the_extra(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("jinja2", "packtok.instruction."))]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("parts", "chat"):
        monkeypatch.delattr(packtok.instruction, name, raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ModuleNotFoundError) as caught:
        prepare_instruction_tuning_data("chat.yaml")
    assert str(caught.value) == (
        "prepare_instruction_tuning_data needs Jinja2, which is not installed; run pip install "
        "'packtok[instruction]'"
    )


def test_values_of_the_environment_are_in_no_file(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_FOLDER", "hidden_place")
    Path("tokenizer").rename("hidden_place")
    pack = Path("pack.yaml").read_text(encoding="utf-8")
    Path("pack.yaml").write_text(pack.replace("path: tokenizer", "path: ${cuda_env:SECRET_FOLDER}"))
    prepare_instruction_tuning_data("chat.yaml")
    written = yaml.safe_load((FOLDER / "pbin_config_train.85b64e5.yaml").read_text(encoding="utf-8"))
    assert written["tokenizer"]["config"]["pretrained_model_name_or_path"] == "${cuda_env:SECRET_FOLDER}"


# --- an existing output, kills and full disks


def contents() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in FOLDER.iterdir()}


def test_an_existing_folder(golden: Path) -> None:
    prepare_instruction_tuning_data("chat.yaml")
    before = contents()
    (FOLDER / "chats_train.85b64e5.pbin").write_bytes(b"torn")
    prepare_instruction_tuning_data("chat.yaml")
    assert contents() == before
    report = prepare_instruction_tuning_data("chat.yaml", existing="skip")
    assert report["skipped_existing"]
    assert contents() == before
    with pytest.raises(FileExistsError) as caught:
        prepare_instruction_tuning_data("chat.yaml", existing="error")
    assert caught.value.strerror == "the folder of the output exists; set existing to skip or replace"
    write([conversation("other")])
    with pytest.raises(FileExistsError) as caught:
        prepare_instruction_tuning_data("chat.yaml", existing="skip")
    assert caught.value.strerror == (
        "the existing file differs from what this run would write; set existing to replace"
    )
    assert contents() == before
    with pytest.raises(ValueError, match="existing is 'override', expected 'error', 'skip' or 'replace'"):
        prepare_instruction_tuning_data("chat.yaml", existing="override")  # type: ignore[arg-type]


def test_skip_does_not_keep_a_torn_file(golden: Path) -> None:
    prepare_instruction_tuning_data("chat.yaml")
    (FOLDER / "chats_train.85b64e5.pbin").write_bytes(b"torn")
    with pytest.raises(packtok.PacktokError):
        prepare_instruction_tuning_data("chat.yaml", existing="skip")


def test_files_of_others_are_not_removed(golden: Path) -> None:
    prepare_instruction_tuning_data("chat.yaml")
    (FOLDER / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError) as caught:
        prepare_instruction_tuning_data("chat.yaml")
    assert caught.value.filename == str(FOLDER / "notes.txt")
    assert caught.value.strerror == "replacing the folder of the output would remove a file of yours; move it"
    assert (FOLDER / "notes.txt").read_text() == "mine"


def test_only_abandoned_folders_are_removed(golden: Path) -> None:
    names = [f".{FOLDER.name}.{number}.unfinished" for number in ("00000000", "11111111")]
    in_use, abandoned = (Path("prepared") / name for name in names)
    for folder in (in_use, abandoned):
        folder.mkdir(parents=True)
        (folder / "file").touch()
    lock = os.open(in_use, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    prepare_instruction_tuning_data("chat.yaml")
    os.close(lock)
    assert sorted(path.name for path in Path("prepared").iterdir()) == [in_use.name, FOLDER.name]


def test_a_full_disk_leaves_nothing(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left on device"):
            prepare_instruction_tuning_data("chat.yaml")
    assert list(Path("prepared").iterdir()) == []


def test_an_interruption_says_that_nothing_is_kept(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        error = KeyboardInterrupt()
        # Packing adds this note, although its work is in the folder that is removed.
        error.add_note("finished work is kept next to the output; run the same command again to resume")
        raise error

    monkeypatch.setattr("packtok.commands.instruction.pack", interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        prepare_instruction_tuning_data("chat.yaml")
    assert caught.value.__notes__ == ["nothing was kept; run the same command again to start over"]
    assert list(Path("prepared").iterdir()) == []


def test_a_kill_leaves_the_old_folder_or_the_new_one(golden: Path) -> None:
    prepare_instruction_tuning_data("chat.yaml")
    complete = contents()
    arguments = ["data", "prepare_instruction_tuning_data", "--config_file_path", "chat.yaml", "-q"]
    started = time.monotonic()
    subprocess.run([*PROGRAM, *arguments], check=True, capture_output=True)
    seconds = time.monotonic() - started
    generator = random.Random(1)
    for _ in range(extent(30, 1)):
        process = subprocess.Popen([*PROGRAM, *arguments], stderr=subprocess.DEVNULL)
        with_delay = generator.uniform(0.5, 1.0) * seconds
        try:
            process.wait(with_delay)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        # Between two renames, the folder does not exist.
        assert not FOLDER.exists() or contents() == complete
    prepare_instruction_tuning_data("chat.yaml")
    assert contents() == complete
    assert [path.name for path in Path("prepared").iterdir()] == [FOLDER.name]


# --- the command


def test_the_command_prints_the_folder_and_the_parts(golden: Path, packtok_cli: PacktokCli) -> None:
    command = ("data", "prepare_instruction_tuning_data")
    done = packtok_cli(*command, "--config_file_path", "chat.yaml", cwd=golden)
    assert done.stdout == (
        f"folder  {FOLDER}\ntrain   4 conversations, 640 tokens\nval     4 conversations, 641 tokens\n"
    )
    done = packtok_cli(*command, "--config-file-path", "chat.yaml", "--quiet", cwd=golden)
    assert done.stdout == f"{FOLDER}\n"
    done = packtok_cli(
        *command, "--config_file_path", "chat.yaml", "--json", "--file_existence_policy", "skip", cwd=golden
    )
    report = json.loads(done.stdout)
    assert report["skipped_existing"] is True
    assert [part["tokens"] for part in report["parts"]] == [640, 641]
    done = packtok_cli(*command, "--config_file_path", "chat.yaml", "--existing", "error", cwd=golden, code=1)
    assert done.stderr == (
        f"packtok: {FOLDER}: the folder of the output exists; set --existing to skip or replace\n"
    )

"""The messages in docs/guides/troubleshooting.md: each is provoked, with the text that the page shows."""

from __future__ import annotations

import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")

from command_line import PacktokCli
from reference import modalities_bytes, write_modalities
from repository import ROOT

import packtok
from packtok.stream import CheckpointableDataset

PAGE = ROOT / "docs" / "guides" / "troubleshooting.md"
# The tables before this heading are tested; those after it list faults of a cluster or a machine.
OTHERS = "## Other messages and symptoms"

NUMBER = '{"text": "good"}\n{"text": 5}\n'
PACK = "pack -o out.pbin -t gpt2 -i"
COMMANDS = (
    f"{PACK} corpsu.jsonl",
    f"{PACK} *.json1",
    f"{PACK} empty",
    f"{PACK} mixed",
    f"{PACK} unread",
    f"{PACK} splits --split train",
    f"{PACK} good.jsonl -i good.jsonl",
    f"{PACK} missing.jsonl",
    f"{PACK} number.jsonl",
    f"{PACK} good.jsonl -f text",
    f"{PACK} mixed/part-0.parquet -f .txt",
    f"{PACK} malformed.jsonl",
    f"{PACK} array.json",
    f"{PACK} exists.pbin",
    f"{PACK} torn.jsonl.gz",
    f"{PACK} missing.jsonl -f .title --on-bad-document skip",
    f"{PACK} number.jsonl --on-bad-document skip --max-rejects 1%",
    "pack -i good.jsonl -o x.pbin -t gpt-2",
    "pack -i good.jsonl -o x.pbin -t good.jsonl",
    f"{PACK} good.jsonl --eod </s>",
    "pack typing_error.yaml",
    "pack good.jsonl -o x.pbin -t gpt2",
    "pack -i good.jsonl -o exists.pbin -t gpt2",
    "pack -i missing.jsonl -o exists.pbin -t gpt2 --on-bad-document skip --existing skip",
    "inspect truncated.pbin",
    "inspect no_pbin.pbin",
    "verify damaged.pbin",
    "verify merged_by_modalities.pbin",
    "merge by_modalities.pbin by_modalities.pbin m.pbin",
    "merge exists.pbin other.pbin m.pbin",
    "pack -i good.jsonl -o none -t gpt2 --shard 0",
    "pack -i good.jsonl -o shards -t cl100k_base --shard 1",
    "pack -i good.jsonl -o shards -t gpt2 --shard 9",
    "pack -i good.jsonl -o shards -t gpt2 --shard auto",
    "pack -i changed.jsonl -o changed -t gpt2 --shard 0",
    "join shards -o joined.pbin",
    "status none.pbin",
)


def documented() -> list[str]:
    """Returns the messages in the first column of the tested tables."""
    text = PAGE.read_text(encoding="utf-8").partition(OTHERS)[0]
    return re.findall(r"^\| `(.*?)` \|", text, re.M)


def write_files(folder: Path, cli: PacktokCli) -> None:
    corpus = (ROOT / "examples" / "corpus.jsonl").read_bytes()
    for name in ("good.jsonl", "changed.jsonl", "unread/a.jsonl", "splits/train.jsonl", "splits/extra.jsonl"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(corpus)
    (folder / "unread" / "b.jsonl.xz").touch()
    (folder / "empty").mkdir()
    (folder / "mixed").mkdir()
    shutil.copy(ROOT / "examples" / "parquet" / "part-0.parquet", folder / "mixed")
    (folder / "mixed" / "a.jsonl").write_bytes(corpus)
    (folder / "number.jsonl").write_text(NUMBER)
    (folder / "missing.jsonl").write_text('{"text": "a"}\n{"body": "x"}\n')
    (folder / "malformed.jsonl").write_text('{"text": "good"}\n{"text": "x"\n')
    (folder / "array.json").write_text('[{"text": "a"}]')
    (folder / "torn.jsonl.gz").write_bytes(b"\x1f\x8bgarbage")
    (folder / "typing_error.yaml").write_text("settings: {src_pth: a}\ntokenizer: gpt2\n")
    (folder / "no_pbin.pbin").write_bytes(corpus)
    cli("pack", "-i", "good.jsonl", "-o", "exists.pbin", "-t", "gpt2", cwd=folder)
    cli("pack", "-i", "good.jsonl", "-o", "other.pbin", "-t", "cl100k_base", cwd=folder)
    cli("plan", "-i", "good.jsonl", "-o", "shards", "-t", "gpt2", "--shards", 4, cwd=folder)
    cli("pack", "-i", "good.jsonl", "-o", "shards", "-t", "gpt2", "--shard", 0, cwd=folder)
    cli("plan", "-i", "changed.jsonl", "-o", "changed", "-t", "gpt2", "--shards", 2, cwd=folder)
    (folder / "changed.jsonl").write_bytes(corpus + b"\n")
    whole = bytearray((folder / "exists.pbin").read_bytes())
    (folder / "truncated.pbin").write_bytes(whole[:2000])
    whole[500] ^= 1
    (folder / "damaged.pbin").write_bytes(whole)
    write_modalities(folder / "by_modalities.pbin", [[1, 2, 3], [4, 5, 0]], 2)
    # The second document starts at byte 12 in its index, and not at 6.
    index, wrong = (pickle.dumps([(0, 6), (start, 6)], protocol=4) for start in (6, 12))
    file = modalities_bytes([[1, 2, 3], [4, 5, 0]], 2).removesuffix(index)
    (folder / "merged_by_modalities.pbin").write_bytes(file + wrong)


def calls(folder: Path) -> list[Callable[[], Any]]:
    """Returns calls of the Python interface that fail."""
    path = str(folder / "exists.pbin")
    corpus = str(folder / "good.jsonl")
    dataset = packtok.TokenDataset(path, 128)
    mixture = packtok.Mixture({path: 1}, context_length=128)

    def loader(**options: Any) -> Any:
        return packtok.DataLoader(dataset, **{"global_batch_size": 8, "shuffle": True, "seed": 1, **options})

    def stream(length: int) -> Any:
        return CheckpointableDataset.from_files(corpus).tokenize("gpt2").concat_chunk(length)

    saved = loader().state_dict()
    with stream(128).iter() as iterator:
        next(iterator)
        stream_state = iterator.state_dict()
    unbound = CheckpointableDataset.from_files(corpus).parallel_map(lambda sample: sample)
    return [
        lambda: packtok.TokenDataset(path, 100_000),
        lambda: packtok.DataLoader(dataset, global_batch_size=512),
        lambda: loader(num_replicas=3, rank=0),
        lambda: loader(seed=2).load_state_dict(saved),
        lambda: packtok.DataLoader(mixture, global_batch_size=8, shuffle=True),
        lambda: packtok.TokenDataset(path, 128, pin_memory=True),
        lambda: packtok.TokenDataset(path, 128, split="train"),
        lambda: packtok.get_dataset("No such set", context_length=128),
        lambda: stream(64).iter(stream_state),
        lambda: next(CheckpointableDataset.from_files(corpus).concat_chunk(8).iter()),
        lambda: next(unbound.iter()),
    ]


@pytest.fixture(scope="module")
def messages(packtok_cli: PacktokCli, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Returns the message of each failing command and call."""
    folder = tmp_path_factory.mktemp("troubles")
    write_files(folder, packtok_cli)
    messages = []
    for command in COMMANDS:
        done = packtok_cli(*command.split(), cwd=folder, code=None, env={"HF_HUB_OFFLINE": "1"})
        assert done.returncode in (1, 2), command
        messages.append(done.stderr.splitlines()[-1].removeprefix("packtok: "))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PACKTOK_BASE_DIR", raising=False)
        patch.delenv("TATM_BASE_DIR", raising=False)
        # Hides CUDA, because the first try may be on a machine without it.
        patch.setattr("torch.cuda.is_available", lambda: False)
        for call in calls(folder):
            with pytest.raises((ValueError, TypeError, packtok.PacktokError)) as raised:
                call()
            messages.append(str(raised.value))
    return messages


def test_every_documented_message_is_shown(messages: list[str]) -> None:
    missing = [text for text in documented() if not any(matches(text, message) for message in messages)]
    assert missing == [], messages


def test_every_provoked_message_is_documented(messages: list[str]) -> None:
    patterns = documented()
    assert [message for message in messages if not any(matches(text, message) for text in patterns)] == []


def matches(pattern: str, message: str) -> bool:
    """Returns whether a message is that of the page, in which ``…`` stands for any text."""
    return re.fullmatch(re.escape(pattern).replace("…", ".*"), message, re.S) is not None

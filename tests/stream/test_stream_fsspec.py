"""Streams of URLs that packtok does not know: from an SFTP server, and from fsspec's memory."""

from __future__ import annotations

import gzip
import json
import logging
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from command_line import PacktokCli
from extent import extent
from sftp_server import USER, SftpServer, sftp_server
from stories import TOKENIZER, story
from torch.utils.data import DataLoader

import packtok
from packtok.stream import CheckpointableDataset, remote

# A password with characters that a URL must encode.
PASSWORD = "hunter2/Zürich@42 ü?#"
LOGIN = f"{USER}:{quote(PASSWORD, safe='')}"
SECRETS = (PASSWORD, quote(PASSWORD, safe=""), "hunter2", "rich@42")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SftpServer]:
    """Returns a server of the folder ``files``."""
    (tmp_path / "files").mkdir()
    with sftp_server(tmp_path / "files", tmp_path, PASSWORD) as server:
        yield server


@pytest.fixture
def memory() -> Iterator[Any]:
    """Returns the file system in memory, empty."""
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    yield memory
    memory.store.clear()


def lines(texts: list[str]) -> bytes:
    return "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()


def stories(count: int, seed: int = 5) -> bytes:
    rng = random.Random(seed)
    return lines([story(rng) for _ in range(count)])


def texts(dataset: Any) -> list[str]:
    return [sample["text"] for sample in dataset]


def assert_hidden(text: str) -> None:
    for secret in SECRETS:
        assert secret not in text, text


# --- contents ---


def test_files_of_a_server_are_those_of_its_folder(server: SftpServer) -> None:
    data = [stories(50, seed) for seed in range(3)]
    (server.folder / "a.jsonl").write_bytes(data[0])
    (server.folder / "b.jsonl.gz").write_bytes(gzip.compress(data[1]))
    (server.folder / "c.jsonl.zst").write_bytes(zstandard.compress(data[2]))
    (server.folder / "d.csv").write_text("number,text\n1,one\n2,two\n")
    (server.folder / "e.txt").write_text("a text")
    table = pa.table({"text": [f"row {i}" for i in range(1000)]})
    pq.write_table(table, server.folder / "f.parquet", row_group_size=300)
    with pa.OSFile(str(server.folder / "g.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table, max_chunksize=300)
    names = sorted(os.listdir(server.folder))
    local = [str(server.folder / name) for name in names]
    urls = [server.url(name, user=LOGIN) for name in names]
    for paths, same_urls in (*zip(local, urls, strict=True), (local, urls)):
        dataset = CheckpointableDataset.from_files(same_urls)
        assert texts(dataset) == texts(CheckpointableDataset.from_files(paths))


def test_a_key_and_a_user_of_the_configuration(server: SftpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    (server.folder / "a.jsonl").write_bytes(lines(["one"]))
    options = {"username": USER, "client_keys": [str(server.key)]}
    monkeypatch.setitem(fsspec.config.conf, "sftp", options)
    assert texts(CheckpointableDataset.from_files(server.url("a.jsonl"))) == ["one"]


def test_braces_globs_and_folders(server: SftpServer) -> None:
    (server.folder / "deep/er").mkdir(parents=True)
    for name in ("p10.jsonl", "p2.jsonl", "p1.jsonl", ".hidden.jsonl", "deep/p3.jsonl", "deep/er/p4.jsonl"):
        (server.folder / name).write_bytes(lines([name]))
    (server.folder / "notes.md").write_text("no data")
    (server.folder / "linked.jsonl").symlink_to("p1.jsonl")
    (server.folder / "dangling.jsonl").symlink_to("nothing")

    def of(name: str) -> list[str]:
        return texts(CheckpointableDataset.from_files(server.url(name, user=LOGIN)))

    assert of("p{2..1}.jsonl") == ["p2.jsonl", "p1.jsonl"]
    assert of("p*.jsonl") == ["p1.jsonl", "p2.jsonl", "p10.jsonl"]
    assert of("p[12].jsonl") == ["p1.jsonl", "p2.jsonl"]
    assert of("deep/**/*.jsonl") == ["deep/er/p4.jsonl", "deep/p3.jsonl"]
    assert of("l*.jsonl") == ["p1.jsonl"]
    for folder in ("deep", "deep/"):
        assert of(folder) == ["deep/er/p4.jsonl", "deep/p3.jsonl"]
    assert len(of("")) == 6


def test_files_in_memory_are_divided_into_lanes_as_local_ones(memory: Any, tmp_path: Path) -> None:
    names = ("p2.jsonl", "p10.jsonl")
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(stories(60, number))
        memory.pipe(f"/a/b/{name}", stories(60, number))
    local = CheckpointableDataset.from_files([str(tmp_path / name) for name in names])
    for url in ("memory://a/b/*.jsonl", "memory://a/b", "memory:///a/b/p{2,10}.jsonl"):
        remote = CheckpointableDataset.from_files(url)
        for expected, dataset in ((local, remote), (local.distribute(3, 0, 1), remote.distribute(3, 0, 1))):
            assert texts(dataset) == texts(expected)


def test_scp_is_read_as_sftp(server: SftpServer) -> None:
    (server.folder / "deep").mkdir()
    (server.folder / "deep/a.jsonl.gz").write_bytes(gzip.compress(lines(["one", "two"])))
    for name in ("deep/a.jsonl.gz", "deep/*.gz", "deep"):
        dataset = CheckpointableDataset.from_files(server.url(name, scheme="scp", user=LOGIN))
        assert texts(dataset) == ["one", "two"]
    for name, error in (("none.jsonl", FileNotFoundError), ("*.jsonl", ValueError)):
        with pytest.raises(error, match=r"scp://…@127.0.0.1:\d+/") as caught:
            CheckpointableDataset.from_files(server.url(name, scheme="scp", user=LOGIN))
        assert_hidden(str(caught.value))


def test_other_names_of_schemes_lead_to_those_of_fsspec() -> None:
    assert remote._file_system("ftps")[::2] == ("ftp", {"tls": True})
    # A scheme that fsspec knows keeps its name.
    assert remote._file_system("ftp")[::2] == ("ftp", {})


# --- states ---


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_state_continues_exactly(server: SftpServer, suffix: str) -> None:
    compress = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}[suffix]
    for number in range(3):
        (server.folder / f"{number}.jsonl{suffix}").write_bytes(
            b"".join(compress(stories(10, part)) for part in range(number, number + 4))
        )
    files = CheckpointableDataset.from_files(
        server.url(f"*{suffix}", user=LOGIN), repeat=True, shuffle_shards=True, n_active_shards=2
    )
    tokens = files.tokenize(packtok.Tokenizer.from_file(TOKENIZER)).concat_chunk(32).shuffle(20).batch(4)
    dataset = tokens.enumerate().take(60)
    expected = [batch["input_ids"].tolist() for batch in dataset]
    for stop in (0, 1, 25, 59):
        with dataset.iter() as iterator:
            found = [next(iterator)["input_ids"].tolist() for _ in range(stop)]
            state = json.dumps(iterator.state_dict())
        found += [batch["input_ids"].tolist() for batch in dataset.iter(json.loads(state))]
        assert found == expected


def test_a_plain_file_is_read_on_from_its_position(server: SftpServer) -> None:
    num_lines, num_bytes = 6000, 12_000_000
    line = "x" * (num_bytes // num_lines - len('{"text": ""}\n'))
    (server.folder / "large.jsonl").write_bytes(lines([line] * num_lines))
    dataset = CheckpointableDataset.from_files(server.url("large.jsonl", user=LOGIN))
    with dataset.iter() as iterator:
        iterator.skip(5900)
        state = iterator.state_dict()
    server.forget()
    assert len(list(dataset.iter(state))) == 100
    head, position = 1 << 19, 11_000_000
    assert all(start < head or start > position for start, _ in server.reads), server.reads
    assert sum(size for _, size in server.reads) < head + num_bytes - position
    # The stream reads blocks, not lines: one request of the protocol for at least 16 KiB.
    assert len(server.reads) < 100


def test_pickled_datasets_and_forked_workers_read_on(server: SftpServer) -> None:
    (server.folder / "a.jsonl").write_bytes(lines(["one", "two"]))
    dataset = CheckpointableDataset.from_files(server.url("a.jsonl", user=LOGIN))
    assert texts(dataset) == ["one", "two"]
    assert texts(pickle.loads(pickle.dumps(dataset))) == ["one", "two"]
    loader = DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context="fork")
    assert texts(loader) == ["one", "two"]


# --- errors ---


def test_a_missing_or_unreadable_file_is_an_error_of_the_recipe(server: SftpServer) -> None:
    (server.folder / "closed.jsonl").write_bytes(lines(["one"]))
    server.denied.add("closed.jsonl")
    for name, error in (("none.jsonl", FileNotFoundError), ("closed.jsonl", OSError), ("*.none", ValueError)):
        with pytest.raises(error) as caught:
            CheckpointableDataset.from_files(server.url(name, user=LOGIN))
        assert f"sftp://…@127.0.0.1:{server.port}/{name}" in str(caught.value)
        assert_hidden(str(caught.value))


def test_a_wrong_password_is_an_error_at_once(server: SftpServer) -> None:
    with pytest.raises(OSError, match=r"sftp://…@127.0.0.1:\d+/a.jsonl: Perm") as caught:
        CheckpointableDataset.from_files(server.url("a.jsonl", user=f"{USER}:wrongpassword"))
    assert "wrongpassword" not in str(caught.value)


def test_repeating_nothing_is_an_error(server: SftpServer) -> None:
    (server.folder / "a.jsonl").write_bytes(b"")
    with pytest.raises(ValueError, match="would never end"):
        CheckpointableDataset.from_files(server.url("a.jsonl", user=LOGIN), repeat=True)


def test_damaged_and_changed_files_are_named(server: SftpServer) -> None:
    path = server.folder / "a.jsonl.gz"
    path.write_bytes(gzip.compress(stories(40))[:-20])
    dataset = CheckpointableDataset.from_files(server.url(path.name, user=LOGIN))
    with pytest.raises(packtok.PacktokError, match=r"sftp://…@.*/a.jsonl.gz: .*truncated"):
        texts(dataset)
    plain = server.folder / "b.jsonl"
    plain.write_bytes(stories(3000))
    dataset = CheckpointableDataset.from_files(server.url(plain.name, user=LOGIN))
    with dataset.iter() as iterator:
        iterator.skip(10)
        state = iterator.state_dict()
        os.truncate(plain, 500_000)
        with pytest.raises(packtok.PacktokError, match=r"sftp://…@.*/b.jsonl: .* replaced"):
            texts(iterator)
    with pytest.raises(ValueError, match=r"the file b.jsonl had \d+ bytes, and has 500000"):
        CheckpointableDataset.from_files(server.url(plain.name, user=LOGIN)).iter(state)


def test_credentials_are_shown_nowhere(server: SftpServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    (server.folder / "a.jsonl").write_bytes(lines(["one"]) + b'{"text": 5}\n{"text": "x"\n')
    url = server.url("a.jsonl", user=LOGIN)
    dataset = CheckpointableDataset.from_files(url, on_bad_document="skip")
    tokens = dataset.tokenize(packtok.Tokenizer.from_file(TOKENIZER))
    with tokens.iter() as iterator:
        assert len(list(iterator)) == 1
        outputs = [repr(tokens), repr(tokens._spec), repr(iterator), json.dumps(iterator.state_dict())]
        report = iterator.report()
        assert report["num_bad"] == 2
        outputs.append(json.dumps(report, ensure_ascii=False))
    assert "sftp://…@" in outputs[-1]
    with pytest.raises(packtok.DocumentError, match=r"sftp://…@.*/a.jsonl: byte 16: ") as caught:
        list(CheckpointableDataset.from_files(url).tokenize(packtok.Tokenizer.from_file(TOKENIZER)))
    for text in (*outputs, str(caught.value), repr(caught.value), caplog.text):
        assert_hidden(text)


@pytest.mark.parametrize(
    "url",
    [
        "sftp://user:SECRET/with/slash@example.org/c.jsonl",
        "sftp://user:pass@host/SECRET@example.org/c.jsonl",
        "sftp://user:SECRET?mark@example.org/c.jsonl",
        "sftp://example.org/c.jsonl?token=SECRET",
        "sftp://example.org/c.jsonl#SECRET",
        "none://user:SECRET@example.org/c.jsonl",
        "memory://user:SECRET@example.org/c.jsonl::sftp://user:SECRET@example.org/c",
    ],
)
def test_urls_that_are_refused_are_shown_without_credentials(url: str) -> None:
    with pytest.raises(ValueError, match="://") as caught:
        CheckpointableDataset.from_files(url)
    assert "SECRET" not in str(caught.value)


def test_an_at_sign_in_a_path_is_no_password() -> None:
    files = remote.RemoteFiles(1.0)
    assert files.add("memory://datasets/a/b@main/c") == "memory://datasets/a/b@main/c"
    assert files.add("memory://u@h/a@b") == "memory://…@h/a@b"
    with pytest.raises(ValueError, match="memory://…@h: two URLs have this host"):
        files.add("memory://other@h/a@b")


def test_an_unknown_scheme_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"none://: .* fsspec, which is installed, does not know it"):
        CheckpointableDataset.from_files("none://host/a.jsonl")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    for scheme, extra in (("ftp", "fsspec"), ("sftp", "sftp"), ("scp", "sftp")):
        with pytest.raises(ValueError, match=rf"{scheme}://: .*; run pip install 'packtok\[{extra}\]'"):
            CheckpointableDataset.from_files(f"{scheme}://host/a.jsonl")


def test_everything_that_reads_a_corpus_reads_these_urls(memory: Any, tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    for i in range(3):
        memory.pipe(f"/corpus/{i}.jsonl", stories(30, i))
        (tmp_path / f"corpus/{i}.jsonl").write_bytes(stories(30, i))
    options: Any = {"tokenizer": TOKENIZER, "eod": "<|endoftext|>"}
    found = []
    for name, corpus in (("local", str(tmp_path / "corpus")), ("memory", "memory://corpus")):
        output = tmp_path / f"{name}.pbin"
        packtok.pack(input=f"{corpus}/*.jsonl", output=output, **options)
        for shard in range(2):
            packtok.pack(input=corpus, output=tmp_path / name, shard=f"{shard}/2", **options)
        packtok.join(tmp_path / name, output=tmp_path / f"{name}-joined.pbin")
        tokens = packtok.PbinReader(output)
        joined = packtok.PbinReader(tmp_path / f"{name}-joined.pbin")
        assert [list(tokens[i]) for i in range(len(tokens))] == [list(joined[i]) for i in range(len(joined))]
        config = {"settings": {"src_path": f"{corpus}/*.jsonl"}}
        checked = packtok.verify_corpus(str(output), config, tokenizer=TOKENIZER)
        counted = packtok.count(f"{corpus}/*.jsonl", TOKENIZER)["total"]
        counts = {name: count for name, count in checked.items() if isinstance(count, int)}
        found.append(([list(tokens[i]) for i in range(len(tokens))], counts, counted))
    assert found[0] == found[1]


def test_urls_with_credentials_and_unknown_schemes_are_one_line(
    packtok_cli: PacktokCli, tmp_path: Path
) -> None:
    for url, expected in (
        (
            "sftp://me:SECRET@example.org/c.jsonl",
            "sftp://…: the URL contains credentials or a query, which would be recorded with it; set "
            "credentials "
            "in the environment, such as AWS_ACCESS_KEY_ID, or for fsspec in its configuration",
        ),
        (
            "none://host/c.jsonl",
            "none://host/c.jsonl: packtok itself reads URLs of s3, gs, az, http and https only; fsspec, "
            "which is "
            "installed, does not know it either; check the spelling",
        ),
    ):
        failed = packtok_cli("pack", "-i", url, "-t", TOKENIZER, "-o", "c.pbin", cwd=tmp_path, code=1)
        assert failed.stderr == f"packtok: {expected}\n"


def test_other_urls_import_no_library() -> None:
    code = "import sys, packtok; assert not {'fsspec', 'asyncssh'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- connections ---


def test_a_broken_connection_is_made_again(server: SftpServer) -> None:
    (server.folder / "a.jsonl").write_bytes(stories(3000))
    dataset = CheckpointableDataset.from_files(server.url("a.jsonl", user=LOGIN))
    expected = texts(dataset)
    assert server.num_logins == 1
    server.forget()
    server.breaks_after = 2
    assert texts(dataset) == expected
    assert server.num_logins == 2


def test_a_read_without_answer_is_tried_again(server: SftpServer) -> None:
    (server.folder / "a.jsonl").write_bytes(stories(500))
    dataset = CheckpointableDataset.from_files(server.url("a.jsonl", user=LOGIN), timeout=2.0)
    expected = texts(dataset)
    server.forget()
    server.hangs_after = 1
    assert texts(dataset) == expected


def test_a_server_that_stays_away_is_an_error(server: SftpServer) -> None:
    (server.folder / "a.jsonl").write_bytes(stories(3000))
    dataset = CheckpointableDataset.from_files(server.url("a.jsonl", user=LOGIN), timeout=1.0)
    with dataset.iter() as iterator:
        next(iterator)
        server.stop()
        with pytest.raises(OSError, match=r"sftp://…@127.0.0.1:\d+/a.jsonl: Conn") as caught:
            list(iterator)
    assert_hidden(str(caught.value))


@pytest.mark.parametrize("breaks", [False, True])
def test_a_file_overwritten_while_it_is_read_is_an_error(server: SftpServer, breaks: bool) -> None:
    path, data = server.folder / "a.jsonl", stories(3000)
    path.write_bytes(data)
    dataset = CheckpointableDataset.from_files(server.url("a.jsonl", user=LOGIN))
    with dataset.iter() as iterator:
        next(iterator)
        path.write_bytes(data.replace(b"the", b"one"))
        # SFTP has times in seconds.
        os.utime(path, (1e9, 1e9))
        if breaks:
            server.loop.call_soon_threadsafe(server.break_connections)
        with pytest.raises(packtok.PacktokError, match=r"sftp://…@.*/a.jsonl: .* replaced"):
            list(iterator)


@pytest.mark.parametrize(
    ("end", "hangs"),
    [
        ("", False),
        ("os.kill(os.getpid(), 2)", True),
        *extent([("", True), ("os.kill(os.getpid(), 2)", False)], []),
    ],
)
def test_a_program_ends_with_open_files(server: SftpServer, end: str, hangs: bool) -> None:
    for number in range(4):
        (server.folder / f"{number}.jsonl").write_bytes(stories(3000, number))
    server.hangs_after = 9 if hangs else None
    code = f"""import os, sys
from packtok.stream import CheckpointableDataset
iterator = CheckpointableDataset.from_files({server.url("*.jsonl", user=LOGIN)!r}, timeout=3).iter()
print(next(iterator)["text"])
{end}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    expected = -2 if end else 0
    assert (done.returncode, done.stdout.count("\n")) == (expected, 1), done.stderr
    assert_hidden(done.stderr)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (BrokenPipeError(), True),
        (FileNotFoundError(), False),
        (PermissionError(), False),
        (ValueError(), False),
        (OSError(), False),
        (type("SSHException", (Exception,), {})(), True),
        (type("AuthenticationException", (type("SSHException", (Exception,), {}),), {})(), False),
    ],
)
def test_only_broken_connections_are_transient(error: Exception, expected: bool) -> None:
    assert remote.is_transient(error) == expected

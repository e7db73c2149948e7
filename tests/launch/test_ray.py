"""`packtok run --engine ray` on a real Ray cluster of two nodes that loses workers and a node."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pbins
import pytest
from extent import extent
from processes import (
    SLOWER_FIELD,
    dataset_files,
    is_sent,
    processes_of_shard,
    start,
    wait_for,
    write_corpus,
    write_datasets,
)
from ray_cluster import NODE_CPUS, RayCluster, parent
from stories import TOKENIZER

import packtok

pytest.importorskip("ray", reason="needs Ray (pip install '.[ray]')")

CORPUS_BYTES = 900_000
NUM_SHARDS = 6


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    cluster = RayCluster(tmp_path_factory.mktemp("ray"))
    try:
        cluster.start()
        cluster.start_second()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus") / "corpus.jsonl", CORPUS_BYTES)


@pytest.fixture(scope="module")
def at_once(corpus: Path) -> bytes:
    """Returns the file that one process packs from the corpus."""
    output = corpus.with_name("at_once.pbin")
    packtok.pack(input=corpus, output=output, tokenizer=TOKENIZER, field=SLOWER_FIELD)
    return output.read_bytes()


class Site:
    """A user of the cluster, in a folder."""

    def __init__(self, cluster: RayCluster, folder: Path) -> None:
        self.env = cluster.env
        self.folder = folder
        self.outdir = folder / "train.pbin.shards"
        self.output = folder / "train.pbin"

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Starts ``packtok`` with these arguments."""
        return start(*arguments, cwd=self.folder, env=self.env)

    def run(self, corpus: Path, *flags: str, field: str = SLOWER_FIELD) -> subprocess.Popen[str]:
        """Starts ``packtok run`` for this corpus."""
        pack = ("pack", "-i", corpus, "-o", "train.pbin", "-t", TOKENIZER, "--field", field)
        return self.start("run", "--engine", "ray", "-c", 1, "--shards", NUM_SHARDS, *flags, *pack)

    def catch(self, shard: int) -> int:
        """Returns a process that packs a shard and has started to write."""
        begun = f"shard-{shard:05}-of-{NUM_SHARDS:05}.pbin.partial/data"
        wait_for(lambda: (self.outdir / begun).exists(), f"shard {shard} is packed", seconds=60)
        (pid,) = processes_of_shard(self.outdir, shard)
        return pid


@pytest.fixture
def site(cluster: RayCluster, tmp_path: Path) -> Site:
    return Site(cluster, tmp_path)


def ended(process: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    """Returns the output of a process, which must exit with this code."""
    out, err = process.communicate(timeout=240)
    assert process.returncode == code, out + err
    return out, err


def test_dead_worker_costs_only_its_task(site: Site, corpus: Path, at_once: bytes) -> None:
    running = site.run(corpus)
    os.kill(parent(site.catch(1)), signal.SIGKILL)
    _, err = ended(running)
    assert f"0 of {NUM_SHARDS} shards are done; Ray: 2 nodes, {2 * NODE_CPUS} CPUs" in err
    assert site.output.read_bytes() == at_once
    # Ray started the task twice.
    assert (site.outdir / "logs" / "ray_1.out").exists()
    out, _ = ended(site.run(corpus))
    assert out == f"all shards are done: {site.outdir}\n"


@pytest.mark.whole
def test_dead_node_costs_only_its_tasks(
    site: Site, cluster: RayCluster, corpus: Path, at_once: bytes
) -> None:
    running = site.run(corpus)
    wait_for(
        lambda: any(
            cluster.is_on_second(pid) for k in range(NUM_SHARDS) for pid in processes_of_shard(site.outdir, k)
        ),
        "the second node packs",
        seconds=60,
    )
    cluster.kill_second()
    try:
        ended(running)
    finally:
        cluster.start_second()
    assert site.output.read_bytes() == at_once


@pytest.mark.whole
def test_failed_shard_is_named_and_a_fixed_corpus_completes(site: Site) -> None:
    corpus = write_corpus(site.folder / "corpus.jsonl", 200_000)
    text = corpus.read_bytes()
    at = text.index(b'{"text"', len(text) // 2 + 1000)
    corpus.write_bytes(text[:at] + b"x" + text[at + 1 :])
    _, err = ended(site.run(corpus, field=".text"), code=1)
    lines = err.splitlines()
    assert lines[-1] == (
        f"packtok: {site.outdir}: 1 of {NUM_SHARDS} shards failed; fix the errors, then run: packtok "
        f"retry {site.outdir}"
    )
    log = site.outdir / "logs" / "ray_3.out"
    assert lines[-2].startswith(f"packtok: shard 3: {corpus}:")
    assert "malformed JSON" in lines[-2]
    assert lines[-2].endswith(f"(log: {log})")
    assert not site.output.exists()
    corpus.write_bytes(text)
    _, err = ended(site.start("retry", site.outdir))
    assert f"{NUM_SHARDS - 1} of {NUM_SHARDS} shards are done" in err
    packtok.pack(input=corpus, output=site.folder / "at_once.pbin", tokenizer=TOKENIZER)
    assert site.output.read_bytes() == (site.folder / "at_once.pbin").read_bytes()


def test_interrupt_stops_the_tasks_and_the_same_command_resumes(
    site: Site, corpus: Path, at_once: bytes
) -> None:
    running = site.run(corpus, "--num-workers", "2")
    pid = site.catch(0)
    # The task is stopped like a busy one until it is asked to end.
    os.kill(pid, signal.SIGSTOP)
    running.send_signal(signal.SIGINT)
    wait_for(lambda: is_sent(pid, signal.SIGINT), "the task is asked to stop", seconds=60)
    os.kill(pid, signal.SIGCONT)
    _, err = ended(running, code=130)
    assert err.splitlines()[-1] == "packtok: interrupted"
    assert not [pid for k in range(NUM_SHARDS) for pid in processes_of_shard(site.outdir, k)]
    assert "packtok: interrupted" in (site.outdir / "logs" / "ray_0.out").read_text()
    assert not (site.outdir / "logs" / "ray_5.out").exists()
    ended(site.run(corpus))
    assert site.output.read_bytes() == at_once


@pytest.mark.parametrize("parts", extent([(), ("--parts", 4)], [("--parts", 4)]))
def test_tokenize_writes_the_dataset_of_one_process(site: Site, parts: tuple[object, ...]) -> None:
    datasets = write_datasets(site.folder / "data", CORPUS_BYTES)
    names = [os.path.relpath(dataset, site.folder) for dataset in datasets]
    tokenize = ("tokenize", *names, "-t", "gpt2", *parts, "-o")
    ended(site.start(*tokenize, "expected"))
    outdir = site.folder / "out" / ("" if parts else "tokenized.pbin.shards")
    number = 4 if parts else NUM_SHARDS
    flags = () if parts else ("--shards", NUM_SHARDS)
    run = ("run", "--engine", "ray", "-c", 1, *flags)
    out, _ = ended(site.start(*run, *tokenize, "out", "--num-workers", 2))
    assert str(site.folder / "out" / "metadata.json") in out
    assert dataset_files(site.folder / "out") == dataset_files(site.folder / "expected")
    (site.folder / "out" / "metadata.json").unlink()
    (outdir / f"shard-00002-of-{number:05}.done.json").unlink()
    # The command runs in another folder: datasets are found from the folder of the run.
    elsewhere = site.folder / "elsewhere"
    elsewhere.mkdir()
    _, err = ended(start("retry", outdir, cwd=elsewhere, env=site.env))
    assert f"{number - 1} of {number} shards are done" in err
    assert dataset_files(site.folder / "out") == dataset_files(site.folder / "expected")


@pytest.mark.whole
def test_samples_are_written_and_reported_as_by_one_process(site: Site) -> None:
    (site.folder / "tokens" / "a").mkdir(parents=True)
    pbins.write(site.folder / "tokens" / "a" / "0.pbin", [[i] * (i % 40) for i in range(200)], 2)
    sample = ("sample", "pack", "--tokens", "tokens", "--length", 64)
    ended(site.start(*sample, "expected"))
    run = ("run", "--engine", "ray", "-c", 1, "--shards", 2)
    out, _ = ended(site.start(*run, *sample, "out"))
    assert re.search(r"^rows +\d+$", out, re.M)
    assert dataset_files(site.folder / "out" / "a") == dataset_files(site.folder / "expected" / "a")
    out, _ = ended(site.start(*run, *sample, "out"))
    assert out == f"all shards are done: {site.folder}/out.shards\n"


@pytest.mark.whole
def test_files_of_tokens_are_written_and_reported(site: Site) -> None:
    (site.folder / "a.jsonl").write_text('{"text": "a"}\n' * 5)
    bos = ("--bos", "<|endoftext|>", "--special-tokens-in-text", "text")
    tokenize = ("tokenize", "a.jsonl", "-t", "gpt2", "--to", "cepe-npy", *bos, "-o", "out")
    out, _ = ended(site.start("run", "--engine", "ray", "-c", 1, "--shards", 2, *tokenize))
    assert re.search(r"^documents +5$", out, re.M)
    assert (site.folder / "out" / "a.npy").exists()


@pytest.mark.whole
def test_failed_metadata_of_tokenize_is_reported(site: Site) -> None:
    datasets = write_datasets(site.folder / "data", 100_000)
    (site.folder / "out").mkdir()
    (site.folder / "out" / "tokenized.pbin").write_bytes(b"not from these shards")
    tokenize = ("tokenize", *datasets, "-t", "gpt2", "-o", "out")
    _, err = ended(site.start("run", "--engine", "ray", "-c", 1, "--shards", 2, *tokenize), code=1)
    log = site.folder / "out" / "tokenized.pbin.shards" / "logs" / "ray_join.out"
    assert err.splitlines()[-1].startswith("packtok: out/tokenized.pbin: header at byte 8")
    assert err.splitlines()[-1].endswith(f"(log: {log})")
    assert not (site.folder / "out" / "metadata.json").exists()


def test_task_too_large_for_every_node_is_rejected(site: Site, corpus: Path) -> None:
    _, err = ended(site.run(corpus, "-c", "64"), code=1)
    assert err.splitlines()[-1] == (
        f"packtok: slurm.cpus_per_task is 64, but the largest node of the Ray cluster has {NODE_CPUS} CPUs, "
        f"so no task could start; give --cpus-per-task {NODE_CPUS} (slurm.cpus_per_task: {NODE_CPUS})"
    )


def test_unreachable_cluster_is_reported(site: Site, corpus: Path) -> None:
    site.env = {**site.env, "RAY_ADDRESS": "127.0.0.1:9"}
    _, err = ended(site.run(corpus), code=1)
    assert err.startswith("packtok: RAY_ADDRESS is 127.0.0.1:9: no Ray cluster answers there: ")
    assert len(err.splitlines()) == 1


def test_missing_cluster_is_reported(site: Site, corpus: Path) -> None:
    site.env = {name: text for name, text in site.env.items() if name != "RAY_ADDRESS"}
    _, err = ended(site.run(corpus, "--conf", f"slurm.slurm_bin_dir={site.folder}"), code=1)
    assert err == (
        "packtok: the ray engine needs a cluster: set RAY_ADDRESS to its address (RAY_ADDRESS=local starts "
        "one on this machine), or run packtok where the Slurm commands are installed\n"
    )


def test_missing_ray_names_the_extra(site: Site, corpus: Path) -> None:
    program = "import sys; sys.modules['ray'] = None; from packtok.cli import main; main()"
    command = ("run", "--engine", "ray", "pack", "-i", corpus, "-o", "train.pbin", "-t", "gpt2")
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, command)],
        cwd=site.folder,
        env={**site.env, "RAY_ADDRESS": "local"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "packtok: the ray engine needs Ray; run pip install 'packtok[ray]'\n",
    )

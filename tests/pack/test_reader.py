"""`PbinReader`: documents as read-only views of the memory map, from files of packtok and of Modalities."""

from __future__ import annotations

import gc
import json
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import make
import numpy as np
import oracle
import pytest
import reference
from repository import GOLDEN

import packtok
from packtok import PbinReader

TEXTS = ["the first", "a", "Grüße 数 🙂", "x" * 3000, "last"]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a packed file of five documents with two bytes per token."""
    folder = tmp_path_factory.mktemp("packed")
    tokenizer = oracle.byte_level(folder / "tokenizer.json")
    corpus = oracle.write_lines(folder / "corpus.jsonl", TEXTS)
    packtok.pack(input=corpus, output=folder / "out.pbin", tokenizer=str(tokenizer))
    return folder / "out.pbin"


def test_documents_by_position(packed: Path) -> None:
    reader = PbinReader(str(packed))
    documents = reference.read_pbin(packed).documents
    assert len(reader) == len(TEXTS)
    assert [reader[i].tolist() for i in range(5)] == documents
    assert [reader[i].tolist() for i in range(-5, 0)] == documents
    assert [document.tolist() for document in reader] == documents


@pytest.mark.parametrize("i", [5, -6, 2**62, -(2**63)])
def test_position_out_of_range_is_an_index_error(packed: Path, i: int) -> None:
    with pytest.raises(IndexError) as caught:
        PbinReader(str(packed))[i]
    assert str(caught.value) == f"{packed}: document {i} is out of range, the file has 5"


def test_tokens_span_documents(packed: Path) -> None:
    reader = PbinReader(str(packed))
    flat = [token for document in reference.read_pbin(packed).documents for token in document]
    assert reader.num_tokens == len(flat)
    for start, stop in [(0, len(flat)), (0, 0), (3, 9), (len(flat) - 1, len(flat)), (len(flat), len(flat))]:
        assert reader.tokens(start, stop).tolist() == flat[start:stop]
    for start, stop in [(0, len(flat) + 1), (5, 4), (2**63, 2**63 + 1), (-1, 4), (0, 2**65)]:
        with pytest.raises(IndexError) as caught:
            reader.tokens(start, stop)
        assert str(caught.value) == f"{packed}: no tokens {start}..{stop}, file has {len(flat)}"


def test_views_stay_read_only(packed: Path) -> None:
    reader = PbinReader(str(packed))
    for view in (reader[0], reader.tokens(0, 4), reader[0][1:]):
        assert not view.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True


def test_views_are_zero_copy(packed: Path) -> None:
    reader = PbinReader(str(packed))
    first, whole = reader[0], reader.tokens(0, reader.num_tokens)
    assert not first.flags.owndata
    assert np.shares_memory(first, whole)
    assert np.shares_memory(reader[0], first)


def test_views_outlive_the_reader_and_the_unlinked_file(packed: Path, tmp_path: Path) -> None:
    file = tmp_path / "gone.pbin"
    file.write_bytes(packed.read_bytes())
    reader = PbinReader(str(file))
    views = [reader[i] for i in range(len(reader))]
    whole = reader.tokens(0, reader.num_tokens)
    del reader
    file.unlink()
    gc.collect()
    documents = reference.read_pbin(packed).documents
    assert [view.tolist() for view in views] == documents
    assert whole.tolist() == [token for document in documents for token in document]


@pytest.mark.parametrize(("name", "dtype"), [("u8", np.uint8), ("u16", np.uint16), ("u32", np.uint32)])
def test_dtype_follows_the_token_width(name: str, dtype: type) -> None:
    reader = PbinReader(str(GOLDEN / f"plain_{name}.pbin"))
    assert reader.dtype == np.dtype(dtype)
    assert {reader[i].dtype for i in range(4)} | {reader.tokens(0, 2).dtype} == {np.dtype(dtype)}
    assert [document.tolist() for document in reader] == make.DOCUMENTS


def test_properties_of_a_packed_file(packed: Path) -> None:
    reader = PbinReader(str(packed))
    pbin = reference.read_pbin(packed)
    assert (str(reader.path), reader.dialect) == (str(packed), "packtok")
    assert reader.file_bytes == packed.stat().st_size
    assert reader.data_bytes == 2 * reader.num_tokens
    assert reader.metadata == pbin.metadata
    assert reader.sources == pbin.sources
    assert repr(reader) == f'PbinReader("{packed}", documents=5, tokens={reader.num_tokens})'


def test_lengths_are_counted_in_doubling_buckets(packed: Path) -> None:
    lengths = [len(document) for document in reference.read_pbin(packed).documents]
    buckets = PbinReader(str(packed)).document_lengths_histogram()
    assert sum(count for *_, count in buckets) == len(lengths)
    for least, end, count in buckets:
        assert sum(least <= length < end for length in lengths) == count


def test_lengths_of_all_documents_are_one_array(packed: Path) -> None:
    lengths = PbinReader(str(packed)).document_lengths()
    assert lengths.dtype == np.uint64
    assert lengths.tolist() == [len(document) for document in reference.read_pbin(packed).documents]


def test_lengths_of_a_file_with_damaged_offsets_are_an_error(packed: Path, tmp_path: Path) -> None:
    content = packed.read_bytes()
    offsets = reference.trailer_of(content)[reference.OFFSETS].content
    # The second document starts one token later.
    damaged = offsets[:8] + bytes([offsets[8] + 2]) + offsets[9:]
    (tmp_path / "a.pbin").write_bytes(content.replace(offsets, damaged))
    with pytest.raises(packtok.PbinFormatError, match=r"a\.pbin: trailer section of type 1 .*CRC32C"):
        PbinReader(str(tmp_path / "a.pbin")).document_lengths()


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        ("plain_u16", "modalities"),
        ("plain_legacy", "modalities-legacy"),
        ("plain_fixed_stride", "modalities"),
        ("plain_protocol2", "modalities"),
        ("plain_protocol5", "modalities"),
    ],
)
def test_files_without_trailer(name: str, dialect: str) -> None:
    reader = PbinReader(str(GOLDEN / f"{name}.pbin"))
    assert [document.tolist() for document in reader] == make.DOCUMENTS
    assert (reader.dialect, reader.metadata, reader.sources) == (dialect, None, [])


@pytest.mark.parametrize("name", ["example", "offsets_only", "unknown_optional"])
def test_golden_files_with_trailer(name: str) -> None:
    pbin = reference.read_pbin(GOLDEN / f"{name}.pbin")
    reader = PbinReader(str(GOLDEN / f"{name}.pbin"))
    assert [document.tolist() for document in reader] == pbin.documents
    assert (reader.metadata, reader.sources) == (pbin.metadata, pbin.sources)


@pytest.mark.parametrize("name", ["train", "train.shuf42", "train.even"])
def test_files_written_by_modalities(shared: Path, name: str) -> None:
    path = shared / f"redpajama/{name}.pbin"
    pbin = reference.read_pbin(path)
    reader = PbinReader(str(path))
    assert reader.dialect == "modalities"
    assert [document.tolist() for document in reader] == pbin.documents


def test_file_of_the_older_dialect_has_the_same_documents(shared: Path, tmp_path: Path) -> None:
    documents = reference.read_pbin(shared / "redpajama/train.pbin").documents
    older = tmp_path / "older.pbin"
    older.write_bytes(reference.modalities_bytes(documents, 2, origin=12))
    reader = PbinReader(str(older))
    assert reader.dialect == "modalities-legacy"
    assert [document.tolist() for document in reader] == documents


def test_packed_file_truncated_after_its_index_has_no_trailer(packed: Path, tmp_path: Path) -> None:
    pbin = reference.read_pbin(packed)
    plain = reference.modalities_bytes(pbin.documents, pbin.width)
    whole = packed.read_bytes()
    cut = tmp_path / "cut.pbin"
    for num_bytes in range(len(plain) - 8, len(whole)):
        cut.write_bytes(whole[:num_bytes])
        if num_bytes == len(plain):
            assert [document.tolist() for document in PbinReader(str(cut))] == pbin.documents
            continue
        with pytest.raises(packtok.PbinFormatError):
            PbinReader(str(cut))


def test_unknown_required_section_is_rejected() -> None:
    with pytest.raises(packtok.PbinFormatError, match="99"):
        PbinReader(str(GOLDEN / "unknown_required.pbin"))


def test_pickle_that_would_execute_code_is_rejected(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    command = f"touch {trace}".encode()
    evil = b"\x80\x04cos\nsystem\n(X" + len(command).to_bytes(4, "little") + command + b"tR."
    path = tmp_path / "evil.pbin"
    path.write_bytes(reference.HEADER.pack(2, 2) + b"\0\0" + evil)
    with pytest.raises(packtok.PbinFormatError):
        PbinReader(str(path))
    assert not trace.exists()
    pickle.loads(evil)
    assert trace.exists(), "the file would not have done it anyway"


def test_missing_files_and_folders_are_os_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        PbinReader(str(tmp_path / "none.pbin"))
    assert str(caught.value) == f"[Errno 2] No such file or directory: {str(tmp_path / 'none.pbin')!r}"
    with pytest.raises((OSError, ValueError)):
        PbinReader(str(tmp_path))


def test_path_objects_are_accepted(packed: Path) -> None:
    assert len(PbinReader(packed)) == 5


def test_reader_pickles_as_its_path(packed: Path) -> None:
    reader = PbinReader(str(packed))
    pickled = pickle.dumps(reader)
    assert len(pickled) < 200 + len(str(packed))
    again = pickle.loads(pickled)
    assert [document.tolist() for document in again] == [document.tolist() for document in reader]


def total(reader: PbinReader) -> int:
    """Returns a sum that depends on every token; runs in other processes."""
    return sum(int(document.astype(np.int64).sum()) for document in reader)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_can_read_an_open_file(packed: Path, method: str) -> None:
    reader = PbinReader(str(packed))
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(total, [reader] * 4) == [total(reader)] * 4


def test_threads_share_one_reader(packed: Path) -> None:
    reader = PbinReader(str(packed))
    expected = [document.tolist() for document in reader]

    def read(seed: int) -> bool:
        order = np.random.default_rng(seed).integers(-5, 5, 2000).tolist()
        return all(reader[i].tolist() == expected[i] for i in order)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(16)))


OPEN = """
import json, resource, sys
from packtok import PbinReader

def pages():
    return int(open("/proc/self/statm").read().split()[1])

PbinReader(sys.argv[1])  # what is loaded once is loaded now
faults, resident = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, pages()
reader = PbinReader(sys.argv[2])
print(json.dumps([
    resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults,
    (pages() - resident) * resource.getpagesize(),
    len(reader),
]))
"""


def opening_cost(warm: Path, path: Path) -> list[int]:
    """Returns page faults and bytes to open ``path`` after ``warm`` was opened, and its documents."""
    command = [sys.executable, "-c", OPEN, str(warm), str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: list[int] = json.loads(done.stdout)
    return measured


def test_opening_a_million_documents_costs_the_same(packed: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_bytes(b'{"text":"ab"}\n' * 1_000_000)
    large = tmp_path / "large.pbin"
    packtok.pack(input=corpus, output=large, tokenizer=str(packed.parent / "tokenizer.json"))
    faults_small, _, _ = opening_cost(packed, packed)
    faults_large, resident_bytes, num_documents = opening_cost(packed, large)
    assert num_documents == 1_000_000
    assert faults_large - faults_small < 64
    assert resident_bytes < 1 << 20

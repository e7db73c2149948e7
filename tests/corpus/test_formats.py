"""Corpora in Parquet, Arrow, CSV, TSV, CBOR and plain text: the same documents, whatever their format."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cbor2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from command_line import PacktokCli
from corpus_files import (
    SEPARATOR,
    WRITERS,
    documents,
    write_jsonl,
    write_parquet,
)
from extent import extent
from processes import measure, start, unfinished, wait_for_spans
from stories import TOKENIZER

import packtok
from packtok import DocumentError, PacktokError

NUM_DOCUMENTS = 300
NUM_KILLS = extent(25, 1)
# The memory bar of packing with two threads, as in benches/bars.py.
MEMORY_BYTES = (180 + 2 * 64) * 1_000_000


# One file for each reader, for tests that take long.
READERS = ("c.parquet", "c.arrow", "c.csv", "c.txt", "c.cbor")


def options(name: str) -> dict[str, str]:
    return {"text_separator": SEPARATOR} if ".txt" in name else {}


def flags(name: str) -> tuple[str, ...]:
    return ("--text-separator", SEPARATOR) if ".txt" in name else ()


def write_feather(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def texts_of(path: Path) -> list[str]:
    """Returns the texts of a packed file."""
    tokenizer = packtok.Tokenizer.from_file(TOKENIZER)
    return [tokenizer.decode(document[:-1]) for document in documents_of(path)]


def documents_of(path: Path) -> list[list[int]]:
    reader = packtok.PbinReader(path)
    return [reader[i].tolist() for i in range(len(reader))]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return documents(NUM_DOCUMENTS)


@pytest.fixture(scope="module")
def expected(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the pbin of the same documents as JSON lines."""
    folder = tmp_path_factory.mktemp("expected")
    write_jsonl(folder / "c.jsonl", texts)
    packtok.pack(input=folder / "c.jsonl", output=folder / "o.pbin", tokenizer=TOKENIZER)
    return folder / "o.pbin"


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_has_the_documents_of_json_lines(
    tmp_path: Path, texts: list[str], expected: Path, name: str
) -> None:
    WRITERS[name](tmp_path / name, texts)
    outputs = []
    for num_cpus in (1, 3):
        output = tmp_path / f"{num_cpus}.pbin"
        report = packtok.pack(
            input=tmp_path / name, output=output, tokenizer=TOKENIZER, num_cpus=num_cpus, **options(name)
        )
        assert report.documents == NUM_DOCUMENTS - report.empty
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1]
    assert documents_of(tmp_path / "1.pbin") == documents_of(expected)
    assert packtok.verify(tmp_path / "1.pbin")
    counted = packtok.count(tmp_path / name, TOKENIZER, **options(name))["total"]
    assert counted["documents"] == len(documents_of(expected))
    assert counted["text_bytes"] == sum(len(text.encode()) for text in texts)


@pytest.mark.parametrize("name", [*READERS, "stream.arrow"])
def test_shards_joined_equal_one_run(
    tmp_path: Path, texts: list[str], packtok_cli: PacktokCli, name: str
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    suffix = name[name.index(".") :]
    for i in range(3):
        WRITERS[name](folder / f"p{i}{suffix}", texts[i * 100 : i * 100 + 100])
    common = ("-i", folder, "-t", TOKENIZER, "-q", *flags(name))
    packtok_cli("pack", "-o", "one.pbin", *common, cwd=tmp_path)
    packtok_cli("plan", "-o", "parts", *common, "--shards", 4, cwd=tmp_path)
    for shard in range(4):
        packtok_cli("pack", "-o", "parts", *common, "--shard", f"{shard}/4", cwd=tmp_path)
    packtok_cli("join", "parts", "-o", "joined.pbin", cwd=tmp_path)
    assert (tmp_path / "joined.pbin").read_bytes() == (tmp_path / "one.pbin").read_bytes()
    sizes = [packtok.PbinReader(path) for path in sorted((tmp_path / "parts").glob("shard-*.pbin"))]
    used = sum(len(reader) > 0 for reader in sizes)
    # Row groups and record batches are divided among shards; other files are not.
    assert used == 4 if name in ("c.parquet", "c.arrow", "stream.arrow") else used >= 3


@pytest.mark.faults
@pytest.mark.parametrize("name", extent(READERS, ("c.parquet", "c.csv")))
def test_killed_run_resumes(tmp_path: Path, packtok_cli: PacktokCli, name: str) -> None:
    corpus = tmp_path / name
    WRITERS[name](corpus, documents(extent(8_000, 3_000), seed=5, words=120))
    common = (
        "-i",
        corpus,
        "-t",
        TOKENIZER,
        "--engine",
        "reference",
        *flags(name),
        "--set",
        "span_bytes=40000",
    )
    packtok_cli("pack", "-o", "one.pbin", *common, "-q", cwd=tmp_path)
    resumed = 0
    for spans in range(2, 2 + NUM_KILLS):
        process = start("pack", "-o", "o.pbin", *common, "-q", cwd=tmp_path)
        wait_for_spans(process, tmp_path, spans)
        process.kill()
        process.communicate(timeout=60)
        assert not (tmp_path / "o.pbin").exists() or process.returncode == 0
        assert unfinished(tmp_path) or (tmp_path / "o.pbin").exists()
        done = packtok_cli("pack", "-o", "o.pbin", *common, "--existing", "skip", cwd=tmp_path)
        resumed += "resumed" in done.stdout
        assert (tmp_path / "o.pbin").read_bytes() == (tmp_path / "one.pbin").read_bytes()
        (tmp_path / "o.pbin").unlink()
    assert resumed


def test_interrupted_run_of_a_changed_table_starts_over(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    corpus = tmp_path / "c.parquet"
    texts = documents(8_000, seed=5, words=120)
    write_parquet(corpus, texts)
    common = ("-i", corpus, "-t", TOKENIZER, "--engine", "reference", "--set", "span_bytes=40000", "-q")
    process = start("pack", "-o", "o.pbin", *common, cwd=tmp_path)
    wait_for_spans(process, tmp_path, 3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    write_parquet(corpus, texts[1:])
    packtok_cli("pack", "-o", "o.pbin", *common, cwd=tmp_path)
    packtok_cli("pack", "-o", "one.pbin", *common, cwd=tmp_path)
    assert (tmp_path / "o.pbin").read_bytes() == (tmp_path / "one.pbin").read_bytes()


def bad_csv(path: Path) -> None:
    path.write_bytes(b"id,text\n1,good\n2,too,many\n3,\xff\xfe\n4,fine\n")


def bad_parquet(path: Path) -> None:
    texts = pa.array([b"good", None, b"\xff\xfe", b"fine"], pa.binary())
    pq.write_table(pa.table({"text": texts}), path)


def bad_arrow(path: Path) -> None:
    # pyarrow does not check that the bytes of a string are UTF-8.
    texts = pa.array([b"good", None, b"\xff\xfe", b"fine"], pa.binary()).view(pa.string())
    content = pa.table({"text": texts})
    with pa.ipc.new_file(str(path), content.schema) as writer:
        writer.write_table(content)


def bad_text(path: Path) -> None:
    path.write_bytes(SEPARATOR.encode().join([b"good", b"\xfe", b"\xff\xfe", b"fine"]))


def bad_cbor(path: Path) -> None:
    path.write_bytes(
        b"".join(map(cbor2.dumps, [{"text": "good"}, {"text": b"a"}, {1: "a"}, {"text": "fine"}]))
    )


NULL = ("row", 2, None, 0, "the text is null")
BYTES = "the text is not UTF-8 at byte 1"
BAD = {
    "c.csv": (
        bad_csv,
        [
            ("row", 2, 15, 11, "the row has 3 fields, the header 2"),
            ("row", 3, 26, 2, BYTES),
        ],
    ),
    "c.parquet": (bad_parquet, [NULL, ("row", 3, None, 2, BYTES)]),
    "c.arrow": (bad_arrow, [NULL, ("row", 3, None, 2, BYTES)]),
    "c.cbor": (
        bad_cbor,
        [
            ("document", 2, 11, 0, "the item has bytes, which JSON lacks"),
            ("document", 3, 19, 0, "the item has a map whose keys are not texts, which JSON lacks"),
        ],
    ),
    "c.txt": (bad_text, [("document", 2, 6, 1, BYTES), ("document", 3, 9, 2, BYTES)]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_document_is_named_by_its_row(tmp_path: Path, name: str) -> None:
    write, rejects = BAD[name]
    corpus, output = tmp_path / name, tmp_path / "o.pbin"
    write(corpus)
    unit, number, offset, _, reason = rejects[0]
    with pytest.raises(DocumentError) as raised:
        packtok.pack(input=corpus, output=output, tokenizer=TOKENIZER, **options(name))
    byte = "" if offset is None else f"byte {offset}: "
    assert str(raised.value).startswith(f"{corpus}: {unit} {number}: {byte}{reason}; ")
    assert not output.exists()
    report = packtok.pack(
        input=corpus, output=output, tokenizer=TOKENIZER, on_bad_document="skip", **options(name)
    )
    assert (report.documents, report.rejected) == (2, 2)
    written = [json.loads(line) for line in Path(f"{output}.rejects.jsonl").read_text().splitlines()]
    expected = []
    for unit, number, offset, length, reason in rejects:
        record = {"source": name, unit: number, "offset_bytes": offset, "len_bytes": length, "reason": reason}
        expected.append({key: value for key, value in record.items() if value is not None})
    assert written == expected


@pytest.mark.parametrize("name", ["c.parquet", "c.arrow"])
def test_column_of_another_type_is_a_bad_document(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name, ["a", "b"])
    with pytest.raises(DocumentError) as raised:
        packtok.count(tmp_path / name, TOKENIZER, field=".id")
    assert str(raised.value) == (
        f"{tmp_path / name}: row 1: the column is an integer, not a text; change field to a column of texts"
    )
    counted = packtok.count(tmp_path / name, TOKENIZER, field=".id", on_bad_document="skip")
    assert counted["total"]["rejected"] == 2


@pytest.mark.parametrize("name", ["c.parquet", "c.arrow", "c.csv", "c.tsv"])
def test_missing_column_lists_the_existing_ones(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name, ["a", "b"])
    with pytest.raises(ValueError, match="no column") as raised:
        packtok.count(tmp_path / name, TOKENIZER, field=".content")
    assert str(raised.value) == (
        f'{tmp_path / name}: no column "content"; the table has "id", "text"; '
        "set field to one of them, such as .id"
    )
    with pytest.raises(ValueError, match=r"plain path of names such as \.text, but field"):
        packtok.count(tmp_path / name, TOKENIZER, field=".text + .id")


def test_field_of_a_structure_is_a_path(tmp_path: Path) -> None:
    texts = ["a b", None, "c"]
    meta = pa.StructArray.from_arrays([pa.array([1, 2, 3]), pa.array(texts)], ["n", "text"])
    pq.write_table(pa.table({"meta": meta}), tmp_path / "c.parquet")
    report = packtok.pack(
        input=tmp_path / "c.parquet",
        output=tmp_path / "o.pbin",
        tokenizer=TOKENIZER,
        field=".meta.text",
        on_bad_document="skip",
    )
    assert (report.documents, report.rejected) == (2, 1)


@pytest.mark.parametrize("write", [pq.write_table, write_feather])
def test_column_with_a_quote_in_its_name_is_read(write: Callable[..., None], tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(pa.table({"text": ["no"], 'q"uote': ["yes"]}), path)
    for field in (r'.["q\"uote"]', r'."q\"uote"', r'."q\u0022uote"'):
        packtok.pack(
            input=path, output=tmp_path / "o.pbin", tokenizer=TOKENIZER, field=field, existing="replace"
        )
        assert texts_of(tmp_path / "o.pbin") == ["yes"]


@pytest.mark.parametrize("write", [pq.write_table, write_feather])
def test_bytes_of_fixed_length_are_texts(write: Callable[..., None], tmp_path: Path) -> None:
    path = tmp_path / "t"
    values = [b"abcd", None, "éß".encode(), b"wxyz", b"abcd"]
    write(pa.table({"key": [b"12", b"34"] * 2 + [b"56"], "text": pa.array(values, pa.binary(4))}), path)
    report = packtok.pack(input=path, output=tmp_path / "o.pbin", tokenizer=TOKENIZER, on_bad_document="skip")
    assert (report.packed, report.rejected) == (4, 1)
    assert texts_of(tmp_path / "o.pbin") == ["abcd", "éß", "wxyz", "abcd"]


def test_bytes_of_fixed_length_in_large_pages_and_too_long_ones(tmp_path: Path) -> None:
    values = [f"{i:06}".encode() * 1000 for i in range(1000)]
    path = tmp_path / "t.parquet"
    table = pa.table({"text": pa.array(values, pa.binary(6000))})
    pq.write_table(table, path, use_dictionary=False, data_page_size=1 << 30)
    packtok.pack(input=path, output=tmp_path / "o.pbin", tokenizer=TOKENIZER)
    assert texts_of(tmp_path / "o.pbin") == [value.decode() for value in values]
    with pytest.raises(DocumentError, match="6000 bytes"):
        packtok.pack(input=path, output=tmp_path / "p.pbin", tokenizer=TOKENIZER, max_document_bytes=5999)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(pa.decimal128(5, 2), "a decimal"), (pa.uuid(), "a UUID"), (pa.float16(), "a floating-point number")],
)
def test_other_values_of_fixed_length_are_no_texts(tmp_path: Path, kind: pa.DataType, name: str) -> None:
    values = (
        pa.array([None], pa.binary(16)).cast(pa.binary(16)) if kind == pa.uuid() else pa.array([None], kind)
    )
    column = pa.ExtensionArray.from_storage(kind, values) if kind == pa.uuid() else values
    pq.write_table(pa.table({"text": column}), tmp_path / "t.parquet")
    with pytest.raises(DocumentError, match=f"the column is {name}, not a text"):
        packtok.pack(input=tmp_path / "t.parquet", output=tmp_path / "o.pbin", tokenizer=TOKENIZER)


def write_csv_table(table: pa.Table, path: Path) -> None:
    rows = [table.column_names, *zip(*(column.to_pylist() for column in table.columns), strict=True)]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.mark.parametrize("write", [pq.write_table, write_feather, write_csv_table])
def test_two_columns_of_one_name_are_an_error(write: Callable[..., None], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    arrays = [pa.array([text]) for text in ("a", "b", "c", "d")]
    write(pa.Table.from_arrays(arrays, names=["id", "text", "more", "text"]), path)
    options = {"format": "csv"} if write is write_csv_table else {}
    if write is not write_csv_table:
        path = path.rename(tmp_path / "t")
    with pytest.raises(ValueError, match="the columns 2 and 4") as caught:
        packtok.pack(input=path, output=tmp_path / "o.pbin", tokenizer=TOKENIZER, **options)
    assert str(caught.value) == (
        f'{path}: the columns 2 and 4 are both named "text"; expected one, so rename or remove the other'
    )
    # A column that is not requested may occur twice.
    packtok.pack(input=path, output=tmp_path / "o.pbin", tokenizer=TOKENIZER, field=".more", **options)
    assert texts_of(tmp_path / "o.pbin") == ["c"]


def test_zstd_frame_with_a_dictionary_says_that_it_needs_one(tmp_path: Path) -> None:
    samples = [json.dumps({"text": f"sample {i} of many"}).encode() for i in range(2000)]
    dictionary = zstandard.train_dictionary(4096, samples)
    lines = b"\n".join(samples)
    path = tmp_path / "c.jsonl.zst"
    first = zstandard.compress(lines + b"\n")
    path.write_bytes(first + zstandard.ZstdCompressor(dict_data=dictionary).compress(lines))
    with pytest.raises(PacktokError) as caught:
        packtok.pack(input=path, output=tmp_path / "o.pbin", tokenizer=TOKENIZER)
    assert re.fullmatch(
        re.escape(f"{path}: a zstd frame near byte ")
        + r"\d+"
        + re.escape(
            " of the file was compressed with a dictionary, which packtok cannot read; decompress the "
            "file with zstd -d -D DICTIONARY"
        ),
        str(caught.value),
    )


def test_byte_order_mark_between_lines_is_named(tmp_path: Path) -> None:
    part = b'\xef\xbb\xbf{"text": "a"}\n'
    path = tmp_path / "c.jsonl"
    path.write_bytes(part * 2)
    with pytest.raises(DocumentError) as caught:
        packtok.pack(input=path, output=tmp_path / "o.pbin", tokenizer=TOKENIZER)
    assert str(caught.value) == (
        f"{path}:2: byte 17: byte order mark (U+FEFF) at byte 1 of the line, expected only at the start of a "
        "file; remove it (files that were joined have one where each of them starts), or skip such lines "
        'with on_bad_document="skip"'
    )


def test_folder_for_temporary_files_that_does_not_exist_is_named(
    tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    text = "".join(chr(0x4E00 + i % 20000) for i in range(6 << 20))
    pq.write_table(
        pa.table({"text": [text, text]}), tmp_path / "t.parquet", dictionary_pagesize_limit=1 << 30
    )
    done = packtok_cli(
        "pack",
        "-i",
        "t.parquet",
        "-o",
        "o.pbin",
        "-t",
        TOKENIZER,
        "--quiet",
        cwd=tmp_path,
        code=1,
        env={"TMPDIR": "/absent/folder"},
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "packtok: t.parquet: a large dictionary of this table must be written to a temporary file, which is "
        "not possible in /absent/folder; set TMPDIR to a folder with space: No such file or directory (os "
        "error 2)"
    )
    assert line.count("os error") == 1


def test_folder_of_several_formats_needs_the_format(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a.parquet", "b.parquet", "c.csv"):
        WRITERS[f"c{Path(name).suffix}"](folder / name, ["one", "two"])
    (folder / "README.txt").write_text("about this corpus")
    done = packtok_cli("count", folder, "-t", TOKENIZER, code=1)
    assert done.stderr.strip() == (
        f"packtok: {folder}: the folder contains files of several formats: 2 Parquet, 1 CSV; "
        "set --format to the one to read, or leave the others out with --ignore"
    )
    for chosen, num_documents in (("parquet", 4), ("csv", 2), ("text", 1)):
        assert packtok.count(folder, TOKENIZER, format=chosen)["total"]["documents"] == num_documents
    # Notes next to the corpus belong to it only if they are the corpus.
    (folder / "c.csv").unlink()
    assert packtok.count(folder, TOKENIZER)["total"]["documents"] == 4
    for i in range(4):
        (folder / f"{i}.txt").write_text("a text")
    with pytest.raises(ValueError, match="2 Parquet, 5 plain text"):
        packtok.count(folder, TOKENIZER)


def test_text_without_separator_is_one_document(tmp_path: Path) -> None:
    for i, text in enumerate(["one\ntwo\n", "", "three"]):
        (tmp_path / f"{i}.txt").write_text(text)
    report = packtok.pack(
        input=tmp_path, output=tmp_path / "o.pbin", tokenizer=TOKENIZER, empty_document="keep"
    )
    assert report.documents == 3
    counted = packtok.count(tmp_path / "0.txt", TOKENIZER, format="text", text_separator=r"\n")
    assert counted["total"]["documents"] == 2


@pytest.mark.parametrize("name", ["c.txt", "c.csv"])
def test_json_lines_under_another_name_need_the_format(tmp_path: Path, name: str) -> None:
    write_jsonl(tmp_path / name, ["a", "b"])
    for corpus in (tmp_path / name, tmp_path):
        with pytest.raises(ValueError, match=r"starts with a JSON object; set format to say"):
            packtok.count(corpus, TOKENIZER)
    assert packtok.count(tmp_path / name, TOKENIZER, format="jsonl")["total"]["documents"] == 2


@pytest.mark.parametrize("name", ["c.parquet", "c.arrow", "stream.arrow"])
@pytest.mark.parametrize("keep", [0.0, 0.3, 0.97])
def test_truncated_table_is_an_error(tmp_path: Path, texts: list[str], name: str, keep: float) -> None:
    corpus = tmp_path / name
    WRITERS[name](corpus, texts)
    corpus.write_bytes(corpus.read_bytes()[: int(keep * corpus.stat().st_size)])
    with pytest.raises(PacktokError) as raised:
        packtok.count(corpus, TOKENIZER)
    message = str(raised.value)
    assert message.startswith(f"{corpus}: ")
    remedy = "rename it, or set format to its format"
    assert message.endswith(remedy if keep == 0 else "the file is damaged or truncated: write it again")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            cbor2.dumps({"text": "a"}) + cbor2.dumps({"text": "b" * 500})[:-1],
            "byte 8 is no CBOR, or the file is",
        ),
        (cbor2.dumps({"text": "a"}) + b"\x1c", "byte 8 is no CBOR"),
        (b'{"text": "a"}', "byte 0 is no CBOR"),
    ],
)
def test_damaged_cbor_is_an_error(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "c.cbor").write_bytes(content)
    with pytest.raises(PacktokError, match=f"c.cbor: the item at {reason}"):
        packtok.pack(
            input=tmp_path / "c.cbor", output=tmp_path / "o.pbin", tokenizer=TOKENIZER, on_bad_document="skip"
        )
    assert not (tmp_path / "o.pbin").exists()


def test_order_of_sources_of_several_formats_is_kept(tmp_path: Path) -> None:
    parts = [documents(20, seed=seed) for seed in range(4)]
    names = ["d.parquet", "c.csv", "b.arrow", "a.jsonl"]
    write_jsonl(tmp_path / "a.jsonl", parts[3])
    for name, part in zip(names[:3], parts[:3], strict=True):
        WRITERS[f"c{Path(name).suffix}"](tmp_path / name, part)
    write_jsonl(tmp_path / "all.jsonl", [text for part in parts for text in part])
    packtok.pack(
        input=[tmp_path / name for name in names],
        output=tmp_path / "mixed.pbin",
        tokenizer=TOKENIZER,
        num_cpus=3,
    )
    packtok.pack(input=tmp_path / "all.jsonl", output=tmp_path / "all.pbin", tokenizer=TOKENIZER)
    assert documents_of(tmp_path / "mixed.pbin") == documents_of(tmp_path / "all.pbin")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        # The texts of the first page are in a dictionary.
        ("c.parquet", {"compression": "snappy"}),
        ("c.arrow", {}),
        *extent(
            [
                ("c.parquet", {"compression": "zstd", "use_dictionary": False}),
                ("c.parquet", {"compression": "lz4", "use_dictionary": False, "data_page_version": "2.0"}),
            ],
            [],
        ),
    ],
)
def test_memory_does_not_grow_with_a_row_group(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    """A text column of more than 2 GiB in one group, in the thorough run.

    The pages of pyarrow have 1,024 rows, so that a page has a gigabyte.
    """
    num_bytes = extent(2_400_000_000, 80_000_000)
    text = "all work and no play " * 50_000
    rows = num_bytes // len(text)
    content = pa.table({"text": pa.array([f"{i} {text}" for i in range(rows)], pa.large_string())})
    peaks = []
    for group_rows in (max(rows // 40, 1), rows):
        corpus = tmp_path / name
        if name == "c.parquet":
            pq.write_table(content, corpus, row_group_size=group_rows, **options)
            groups = pq.ParquetFile(corpus).num_row_groups
        else:
            with pa.ipc.new_file(str(corpus), content.schema) as writer:
                writer.write_table(content, max_chunksize=group_rows)
            with pa.ipc.open_file(str(corpus)) as reader:
                groups = reader.num_record_batches
        assert groups == -(-rows // group_rows)
        done = measure("count", corpus, "-t", TOKENIZER, "-j", 2, "-q", cwd=tmp_path)
        assert done.code == 0, done.err
        peaks.append(done.peak_bytes)
    print(f"{name} {options}: {peaks[0] / 1e6:.0f} MB with many groups, {peaks[1] / 1e6:.0f} MB with one")
    assert max(peaks) <= MEMORY_BYTES


@pytest.mark.parametrize(
    ("compression", "what"),
    [
        ("snappy", "bytes of SNAPPY hold at most "),
        ("gzip", "bytes of GZIP hold at most "),
        ("brotli", "after decompression, but it has 1200"),
        ("lz4", "bytes of LZ4_RAW hold at most "),
        ("zstd", "bytes of ZSTD hold at most "),
    ],
)
def test_page_that_declares_more_than_it_holds_reserves_no_memory(
    tmp_path: Path, compression: str, what: str
) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"text": ["x" * 1_200_000]}), path, use_dictionary=False, compression=compression)
    file = bytearray(path.read_bytes())
    # The header of the first page: its kind, then its length after decompression, in four bytes of 7 bits.
    assert file[4:7] == b"\x15\x00\x15"
    end = 7 + next(i for i, byte in enumerate(file[7:]) if byte < 0x80)
    file[7 : end + 1] = b"\xfe" + b"\xff" * (end - 8) + b"\x7f"
    path.write_bytes(file)
    done = measure("count", path.name, "-t", TOKENIZER, "-j", 1, "-q", cwd=tmp_path)
    assert done.code == 1
    start = 'packtok: c.parquet: Parquet: row group 0, column "text", page 0: its header declares '
    assert done.err.startswith(start)
    assert what in done.err
    assert done.peak_bytes <= MEMORY_BYTES


def test_file_of_another_format_than_chosen_is_an_error(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "c.jsonl", ["a", "b" * 100])
    for chosen in ("parquet", "arrow"):
        with pytest.raises(DocumentError, match=f"is not a file of {chosen.capitalize()}; rename it, or set"):
            packtok.count(tmp_path / "c.jsonl", TOKENIZER, format=chosen)
    (tmp_path / "c.csv").write_bytes(b"")
    with pytest.raises(ValueError, match=r'no column "text"; the table has no columns$'):
        packtok.count(tmp_path / "c.csv", TOKENIZER)
    (tmp_path / "c.csv").write_text(f"{'x' * 100},b\n")
    with pytest.raises(ValueError, match=f'the table has "{"x" * 40}"…, "b"; set field'):
        packtok.count(tmp_path / "c.csv", TOKENIZER)


def test_plan_reads_only_the_footer(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    write_parquet(tmp_path / "c.parquet", documents(200))
    done: subprocess.CompletedProcess[str] = packtok_cli(
        "plan", "-i", "c.parquet", "-o", "parts", "-t", TOKENIZER, "--shards", 3, "--json", cwd=tmp_path
    )
    assert json.loads(done.stdout)["num_shards"] == 3
    plan = (tmp_path / "parts" / "plan.jsonl").read_text().splitlines()
    assert json.loads(plan[1])["format"] == "parquet"

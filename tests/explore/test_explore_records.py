"""`packtok explore`: from a document to its source record, and the first rows of raw datasets."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import gzip
import io
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cbor2
import pytest
import zstandard
from explore_site import Page, Served, notes, served, served_folder, write_metadata

import packtok
from packtok.catalog.index import build_index
from packtok.explore.pages import raw_rows, records
from packtok.explore.site import site_of_file

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

LINES = [
    '{"text": "first ünïcode", "n": 1}',
    '{"text":   "second <b>\\u200b", "deep": {"a": [1, null]}}',
    "",
    "no json",
    '{"n": 5}',
    '{"text": "sixth"}',
]
CSV = 'id,text\r\n1,"two\r\nlines"\r\n2,plain\r\n'
TEXT = "A plain text\nof two lines\n"
ITEMS = [{"text": "an item", "n": [1, None]}, {"text": "عربي 👩‍👧"}]
# Types that every corpus has, and those that need care.
TABLE = pa.table(
    {
        "n": pa.array([1, 2, 3], pa.int64()),
        "text": ["row one", None, "row\nthree"],
        "messages": [[{"role": "user", "content": "hi"}], None, []],
        "day": [dt.date(2024, 2, 29), None, dt.date(1969, 12, 31)],
        "price": pa.array([decimal.Decimal("-0.05"), None, decimal.Decimal("12.30")], pa.decimal128(9, 2)),
        "image": [b"\x89PNG", None, b"as text"],
        "score": [0.5, None, 1e-7],
        "is_new": [True, None, False],
    }
)
CELLS = [
    ["1", "row one", '[{"role":"user","content":"hi"}]', "2024-02-29", "-0.05", "0x89504e47", "0.5", "true"],
    ["2", None, None, None, None, None, None, None],
    ["3", "row\nthree", "[]", "1969-12-31", "12.30", "as text", "0.0000001", "false"],
]


def arrow_file(path: Path) -> None:
    with pa.ipc.new_file(
        str(path), TABLE.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")
    ) as writer:
        writer.write_table(TABLE, max_chunksize=2)


def parquet_file(path: Path) -> None:
    pq.write_table(TABLE, path, row_group_size=2)


LINES_OF_JSON = "".join(f"{line}\n" for line in LINES).encode()
ITEMS_OF_CBOR = b"".join(map(cbor2.dumps, ITEMS))
# The lines, texts or rows of the documents of each file.
RECORDS: dict[str, list[Any]] = {
    "a.jsonl": [LINES[0], LINES[1], LINES[5]],
    "b.jsonl.gz": [LINES[0], LINES[1], LINES[5]],
    "c.csv": [["1", "two\r\nlines"], ["2", "plain"]],
    "d.txt": [TEXT],
    "e.parquet": [CELLS[0], CELLS[2]],
    "f.arrow": [CELLS[0], CELLS[2]],
    "g.cbor": ['{"text":"an item","n":[1,null]}', '{"text":"عربي 👩‍👧"}'],
    "h.jsonl.zst": [LINES[0], LINES[1], LINES[5]],
    "i.tsv.zst": [["1", "two\r\nlines"], ["2", "plain"]],
    "j.cbor.gz": ['{"text":"an item","n":[1,null]}', '{"text":"عربي 👩‍👧"}'],
    "k.txt.zst": [TEXT],
}
CONTENTS: dict[str, bytes | Callable[[Path], None]] = {
    "a.jsonl": LINES_OF_JSON,
    "b.jsonl.gz": gzip.compress(LINES_OF_JSON),
    "c.csv": CSV.encode(),
    "d.txt": TEXT.encode(),
    "e.parquet": parquet_file,
    "f.arrow": arrow_file,
    "g.cbor": ITEMS_OF_CBOR,
    "h.jsonl.zst": zstandard.compress(LINES_OF_JSON),
    "i.tsv.zst": zstandard.compress(CSV.replace(",", "\t").encode()),
    "j.cbor.gz": gzip.compress(ITEMS_OF_CBOR),
    "k.txt.zst": zstandard.compress(TEXT.encode()),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a base directory with a dataset of all formats, and pbins of it with origins."""
    base = tmp_path_factory.mktemp("records")
    raw = base / "x" / "data" / "raw"
    raw.mkdir(parents=True)
    for name, content in CONTENTS.items():
        if isinstance(content, bytes):
            (raw / name).write_bytes(content)
        else:
            content(raw / name)
    (raw / "secret.env").write_text("password")
    write_metadata(base / "x" / "data", name="Raw", dataset_path="raw", content_field="text")
    folder = base / "x" / "data" / "tokenized" / "gpt2" / "all"
    folder.mkdir(parents=True)
    inputs = [[raw / name for name in RECORDS], raw / "a.jsonl"]
    for name, files in zip(("all", "a.jsonl"), inputs, strict=True):
        packtok.pack(
            input=files,
            output=folder / f"{name}.pbin",
            tokenizer="gpt2",
            origins=True,
            on_bad_document="skip",
        )
    info = {"tokenizer": "gpt2", "file_prefix": "a", "file_extension": "pbin"}
    write_metadata(folder, name="Form", tokenized_info=info)
    build_index(base)
    return base


PLACE = "x/data/tokenized/gpt2/all"


@pytest.fixture(scope="module")
def server(base: Path) -> Iterator[Served]:
    with served_folder(base) as running:
        yield running


def json_of(server: Served, path: str) -> Any:
    answer = server.get(path + ("&" if "?" in path else "?") + "format=json")
    assert answer.status == 200, answer.text
    return json.loads(answer.text)


def visible(text: str) -> str:
    """Returns a text as the page shows it: invisible characters are named."""
    return text.replace("\u200b", "\\u200b").replace("\r", "\\r").replace("\u200d", "\\u200d")


@pytest.mark.parametrize("name", RECORDS)
def test_record_of_a_document_is_shown_as_it_is_in_its_source(server: Served, base: Path, name: str) -> None:
    file = f"{PLACE}/all.pbin"
    reader = packtok.PbinReader(base / file)
    first = sum(len(RECORDS[before]) for before in list(RECORDS)[: list(RECORDS).index(name)])
    assert len(reader) == sum(map(len, RECORDS.values()))
    names = TABLE.column_names if name in ("e.parquet", "f.arrow") else ["id", "text"]
    for i, record in enumerate(RECORDS[name], first):
        facts = json_of(server, f"/record/{file}?document={i}")
        assert (facts["reason"], facts["is_cut"]) == (None, False)
        assert facts["source"] == f"x/data/raw/{name}"
        assert facts["field"] == (None if ".txt" in name else ".text")
        origin = reader.origin(i)
        assert origin is not None
        assert facts["origin"] == origin.to_dict()
        page = server.page(f"/record/{file}?document={i}")
        if isinstance(record, str):
            assert (facts["record"], facts["columns"]) == (record, None)
            assert page.all("pre", class_="record") == [visible(record)]
        else:
            assert facts["record"] is None
            shown = [(column["name"], column["text"]) for column in facts["columns"]]
            assert shown == list(zip(names, record, strict=True))
            assert all(not column["is_cut"] and column["fault"] is None for column in facts["columns"])
            assert page.all("pre", class_="record") == [visible(text) for text in record]
            assert "text (text of the document)" in page.all("dt")
        assert "<b>\\" not in page.html
        assert f"/documents/{file}?document={i}" in page.links()
    assert f"/record/{file}?document={first}" in server.page(f"/documents/{file}?document={first}").links()


def test_document_without_a_record_to_show_has_a_reason(
    server: Served, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reason(site: Served, file: str) -> str:
        facts, page = json_of(site, f"/record/{file}"), site.page(f"/record/{file}")
        assert facts["record"] is None
        assert notes(page.html) == [f"There is no record to show: {facts['reason']}."]
        return str(facts["reason"])

    far = f"/record/{PLACE}/all.pbin?document=4"
    time_over = "seconds, and did not reach byte 36 of x/data/raw/b.jsonl.gz in this time"
    monkeypatch.setattr(records, "_SECONDS", 0.0)
    facts = json_of(server, far)
    assert (facts["reason"], facts["can_take_longer"]) == (f"the page reads for at most 0 {time_over}", True)
    assert f"{far}&long=1" in server.page(far).links()
    assert "Read for up to 60 seconds" in server.page(far).html
    assert json_of(server, f"{far}&long=1")["record"] is not None
    with records._TAKES_LONG:
        assert json_of(server, f"{far}&long=1")["reason"].startswith(
            "another page is reading for a long time"
        )
    monkeypatch.setattr(records, "_LONG_SECONDS", 0.0)
    facts = json_of(server, f"{far}&long=1")
    assert (facts["reason"], facts["can_take_longer"]) == (
        f"the page reads for at most 0 {time_over}; read the file with a program",
        False,
    )
    monkeypatch.undo()
    with served(site_of_file(base / PLACE / "a.jsonl.pbin")) as single:
        assert reason(single, "a.jsonl.pbin").startswith("only a.jsonl.pbin is served")
    shutil.copy(base / PLACE / "a.jsonl.pbin", tmp_path / "a.pbin")
    packtok.pack(input=base / "x/data/raw/d.txt", output=tmp_path / "none.pbin", tokenizer="gpt2")
    with served_folder(tmp_path) as other:
        assert "does not record where its documents came from" in reason(other, "none.pbin")
        assert reason(other, "a.pbin").startswith("the source a.jsonl is neither in the raw dataset")
        # A file of the same name with another length is another file.
        (tmp_path / "a.jsonl").write_text("secret\n")
        assert "the source a.jsonl has 7 bytes, and it had " in reason(other, "a.pbin")
        shutil.copy(base / "x/data/raw/a.jsonl", tmp_path / "a.jsonl")
        assert json_of(other, "/record/a.pbin?document=1")["record"] == LINES[1]


@pytest.mark.parametrize(
    "path", ["../x.jsonl", "/etc/x.txt", "secret.env", "config.json", "sub/../../y.jsonl"]
)
def test_source_that_a_trailer_names_is_opened_only_if_it_is_a_corpus_below_the_folder(
    server: Served, path: str
) -> None:
    packed: Any = type("Packed", (), {"name": "a.pbin"})
    site: Any = type("Site", (), {"single": None})
    with pytest.raises(records.NoRecordError, match="is not below the folder that is served"):
        records._source_file(site, packed, {"path": path, "bytes": 8})


def test_long_records_are_cut(tmp_path: Path) -> None:
    text = "é " * 100_000
    line = json.dumps({"text": text}, ensure_ascii=False)
    (tmp_path / "a.jsonl").write_text(line + "\n", encoding="utf-8")
    columns = {"n": [7], "text": [text], "other": [{"inner": text}]}
    pq.write_table(pa.table(columns), tmp_path / "b.parquet")
    for name, field in (("a.jsonl", ".text"), ("b.parquet", ".other.inner")):
        output = tmp_path / f"{name}.pbin"
        packtok.pack(input=tmp_path / name, output=output, field=field, tokenizer="gpt2", origins=True)
    with served_folder(tmp_path) as server:
        facts = json_of(server, "/record/a.jsonl.pbin")
        page = server.page("/record/a.jsonl.pbin")
        table = json_of(server, "/record/b.parquet.pbin")
        page_of_table = server.page("/record/b.parquet.pbin")
    assert facts["is_cut"]
    assert line.startswith(facts["record"])
    assert 65_530 <= len(facts["record"].encode()) <= 65_536
    assert "Only the first 65.5 kB are shown." in page.text
    # All columns together have so many bytes, and the short ones are complete.
    number, first, second = table["columns"]
    assert (number["text"], number["is_cut"], table["is_cut"]) == ("7", False, True)
    assert first["text"] == text[: len(first["text"])]
    assert second["text"] == f'{{"inner":"{text}'[: len(second["text"])]
    assert 65_530 <= len((first["text"] + second["text"]).encode()) <= 65_536
    assert page_of_table.text.count("The start of 300 kB.") == 1
    assert "other (contains the text of the document)" in page_of_table.all("dt")


def test_first_rows_have_all_columns(server: Served) -> None:
    assert "/rows/x/data" in server.page("/dataset/x/data").links()
    files = json_of(server, "/rows/x/data")["files"]
    assert files == [f"x/data/raw/{name}" for name in RECORDS]
    keys = ["text", "n", "deep"]
    no_json = {"reason": "malformed JSON at byte 2 of the line: expected ident", "text": "no json"}
    lines = [
        ["first ünïcode", "1", None],
        ["second <b>\u200b", None, '{"a": [1, null]}'],
        None,
        [None, "5", None],
        ["sixth", None, None],
    ]
    fields = list(csv.reader(io.StringIO(CSV, newline="")))
    items = [["an item", "[1,null]"], [ITEMS[1]["text"], None]]
    expected = {
        "a.jsonl": (keys, lines),
        "b.jsonl.gz": (keys, lines),
        "c.csv": (fields[0], fields[1:]),
        "d.txt": (["text"], [[TEXT]]),
        "e.parquet": (TABLE.column_names, CELLS),
        "f.arrow": (TABLE.column_names, CELLS),
        "g.cbor": (["text", "n"], items),
        "h.jsonl.zst": (keys, lines),
        "i.tsv.zst": (fields[0], fields[1:]),
        "j.cbor.gz": (["text", "n"], items),
        "k.txt.zst": (["text"], [[TEXT]]),
    }
    for i, (name, (columns, cells)) in enumerate(expected.items()):
        facts, page = json_of(server, f"/rows/x/data?file={i}"), server.page(f"/rows/x/data?file={i}")
        assert (facts["columns"], facts["rows"], name) == (columns, cells, name)
        assert facts["faults"] == [None if row else no_json for row in cells]
        assert (facts["from"], facts["next"], facts["stopped"]) == (0, None, None)
        shown = [
            ["–" if cell is None else visible(cell) for cell in row]
            if row
            else [f"{no_json['reason']}\n{no_json['text']}"]
            for row in cells
        ]
        assert [row[1:] for row in page.rows("rows")] == shown, name
    assert server.get(f"/rows/x/data?file={len(expected)}").status == 400
    for path in (f"/rows/{PLACE}", "/rows/none"):
        assert server.get(path).status == 404


def test_rows_have_pages_up_to_a_limit_and_long_cells_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_rows, "MAX_ROWS", 50)
    folder = write_metadata(tmp_path / "x" / "data", name="D", dataset_path="raw").parent / "raw"
    folder.mkdir()
    values = [f'{{"text": "{i}"}}\n' for i in range(60)]
    (folder / "a.jsonl").write_text(json.dumps({"text": "x" * 5000}) + "\n" + "".join(values))
    with served_folder(tmp_path) as server:
        first = json_of(server, "/rows/x/data")
        assert first["rows"][0] == ["x" * 500 + " … (5,000 bytes)"]
        assert [row[0] for row in first["rows"][1:]] == [str(i) for i in range(24)]
        assert first["next"] == 25
        page = server.page("/rows/x/data?from=25")
        assert [row[1] for row in page.rows("rows")] == [str(i) for i in range(24, 49)]
        assert "/rows/x/data" in page.links()
        assert "The page shows the first 50 rows of a file." in page.text
        assert json_of(server, "/rows/x/data?from=25")["next"] is None
        assert server.get("/rows/x/data?from=26").status == 400


@pytest.mark.parametrize(
    "name", ["a*[1]?.b.jsonl", "@list.jsonl", "${oc.env:HOME}.jsonl", "new\nline.JSONL.GZ", "-x.jsonl"]
)
def test_rows_of_files_with_odd_names(tmp_path: Path, name: str) -> None:
    folder = write_metadata(tmp_path / "x" / "data", name="D").parent
    content = b'{"text": "here"}\n'
    (folder / name).write_bytes(gzip.compress(content) if name.endswith("GZ") else content)
    with served_folder(tmp_path) as server:
        assert json_of(server, "/rows/x/data")["rows"] == [["here"]]
        assert server.get("/rows/x/data").status == 200


# 64 GiB after decompression, in many frames.
BOMBS = {
    "line.jsonl.zst": zstandard.compress(b"a" * (1 << 24)) * 4096,
    "blank.jsonl.zst": zstandard.compress(b"\n" * (1 << 24)) * 4096,
    "fields.csv.zst": zstandard.compress(b"," * (1 << 24)) * 4096,
    "quote.tsv.zst": b"".join(map(zstandard.compress, [b'a\tb\n1\t"', *[b"x" * (1 << 24)] * 2]))
    + zstandard.compress(b"x" * (1 << 24)) * 4096,
    "text.txt.gz": gzip.compress(b"a" * (1 << 24), 1) * 256,
}


@pytest.mark.parametrize("name", BOMBS)
def test_endless_compressed_records_take_a_limited_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(raw_rows, "_SECONDS", 0.25)
    folder = write_metadata(tmp_path / "x" / "data", name="D", dataset_path="raw").parent / "raw"
    folder.mkdir()
    (folder / name).write_bytes(BOMBS[name])
    with served_folder(tmp_path) as server:
        start = time.monotonic()
        page = server.page("/rows/x/data")
        seconds = time.monotonic() - start
        facts = json_of(server, "/rows/x/data")
    assert 0.25 <= seconds < 2
    assert facts["rows"] == []
    assert facts["stopped"] == (
        f"the page reads for at most 0.25 seconds, and the next rows of x/data/raw/{name} need more time"
    )
    assert notes(page.html) == [f"There are no rows to show: {facts['stopped']}."]
    with pytest.raises(TimeoutError):
        records.source_record(
            folder / name,
            "text" if ".txt" in name else name.split(".")[1],
            offset=1 << 40,
            text_separator=None,
            max_columns=9,
            max_bytes=9,
            max_record_bytes=9,
            seconds=0.1,
        )


def test_tables_with_values_that_are_too_long_show_their_other_values(tmp_path: Path) -> None:
    folder = write_metadata(tmp_path / "x" / "data", name="D", dataset_path="raw").parent / "raw"
    folder.mkdir()
    deep = 7
    for _ in range(200):
        deep = [deep]
    large = {"text": ["a", "x" * (70 << 20)], "ids": [[1] * (1 << 21), [2]], "deep": [deep, None]}
    wide = {f"c{i}": [i] for i in range(101)}
    pq.write_table(pa.table(large), folder / "a.parquet", compression="zstd", use_dictionary=["ids"])
    pq.write_table(pa.table(wide), folder / "b.parquet")
    lines = [b'{"deep": ' + b"[" * 5000 + b"]" * 5000 + b"}", b'{"long": "' + b"y" * 2_000_000 + b'"}', b"{}"]
    (folder / "c.jsonl").write_bytes(b"\n".join(lines))
    items = [
        b"\x81" * 200 + b"\x01",
        cbor2.dumps({"a": 1}),
        cbor2.dumps({"b": b"bytes"}),
        b"\x9f" * 1_100_000,
    ]
    (folder / "d.cbor").write_bytes(b"".join(items))
    (folder / "e.csv").write_text('a,b\n1,2,3\n4,5\n6,"open')
    with served_folder(tmp_path) as server:
        first, second = (json_of(server, f"/rows/x/data?file={i}") for i in (0, 1))
        third, fourth = (json_of(server, f"/rows/x/data?file={i}") for i in (2, 3))
        fifth, page = json_of(server, "/rows/x/data?file=4"), server.page("/rows/x/data?file=1")
        assert server.get("/rows/x/data?file=0").status == 200
    (text, ids, nested), (long, *_) = first["rows"]
    assert (text, long) == ("a", "(the value has 73400320 bytes)")
    assert ids == (
        '(row group 0, column "ids.list.element", page 0: its header declares 2097152 values, and at most '
        "1048576 more are accepted)"
    )
    assert nested.startswith("[[[[")
    assert "(deeper nesting)" in nested
    assert (len(second["columns"]), second["num_columns"]) == (100, 101)
    assert "The page shows 100 of 101 columns." in page.text
    assert [row and row[0] for row in third["rows"]] == ["[" * 500 + " … (10,000 bytes)", None, None]
    assert third["faults"][1]["reason"] == "it has more than 1000000 bytes"
    assert fourth["rows"] == [None, ["1"], None, None]
    reasons = [fault and fault["reason"] for fault in fourth["faults"]]
    assert reasons == [
        "the item has nested too deeply, which JSON lacks",
        None,
        "the item has bytes, which JSON lacks",
        "it has more than 1000000 bytes",
    ]
    assert (fifth["columns"], fifth["rows"]) == (["a", "b"], [None, ["4", "5"], None])
    assert fifth["faults"] == [
        {"reason": "the row has 3 fields, the header 2", "text": "1\n2\n3"},
        None,
        {"reason": "the file ends inside a quoted field", "text": None},
    ]


def test_rows_that_take_long_do_not_hold_up_other_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_rows, "_SECONDS", 1.5)
    folder = write_metadata(tmp_path / "x" / "data", name="D").parent
    (folder / "line.jsonl.zst").write_bytes(BOMBS["line.jsonl.zst"])
    with served_folder(tmp_path) as server, ThreadPoolExecutor(1) as pool:
        server.page("/dataset/x/data")
        slow = pool.submit(server.get, "/rows/x/data")
        time.sleep(0.2)
        start = time.monotonic()
        server.page("/dataset/x/data")
        seconds = time.monotonic() - start
        is_running = not slow.done()
        assert slow.result().status == 200
    assert is_running
    assert seconds < 0.5


def test_field_that_metadata_name_is_no_expression(tmp_path: Path) -> None:
    field = "${node_env:num_cpus}"
    folder = write_metadata(tmp_path / "x" / "data", name="D", content_field=field).parent
    (folder / "a.csv").write_text(f"{field},b\n1,2\n")
    with served_folder(tmp_path) as server:
        facts = json_of(server, "/rows/x/data")
        assert (facts["content_field"], facts["columns"], facts["rows"]) == (
            field,
            [field, "b"],
            [["1", "2"]],
        )


def test_rows_of_damaged_files_and_links_are_errors_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "outside.jsonl").write_text('{"text": "secret"}\n')
    folder = tmp_path / "base" / "x" / "data"
    write_metadata(folder, name="D")
    (folder / "a.parquet").write_bytes(b"PAR1" + b"x" * 100)
    (folder / "b.jsonl.gz").write_bytes(b"\x1f\x8b" + b"x" * 100)
    os.symlink(tmp_path / "outside.jsonl", folder / "c.jsonl")
    with served_folder(tmp_path / "base") as server:
        for i, name in enumerate(("a.parquet", "b.jsonl.gz")):
            answer = server.get(f"/rows/x/data?file={i}")
            assert answer.status == 404
            assert notes(answer.text)[0].startswith(f"x/data/{name}: ")
        answer = server.get("/rows/x/data?file=2")
        assert (answer.status, "secret" in answer.text) == (400, False)
        # Metadata that name files elsewhere, or that hold no texts.
        details = {
            "packtok_metadata": 1,
            "files": [{"path": "../../../outside.jsonl"}, {"path": "metadata.json"}],
        }
        (folder / "metadata.packtok.json").write_text(json.dumps(details))
        answer = server.get("/rows/x/data")
        assert answer.status == 404
        assert "no file of texts of this dataset is below the folder" in Page(answer.text).text
        assert "/rows/x/data" not in server.page("/dataset/x/data").links()

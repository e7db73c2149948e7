"""`packtok explore`: from a document to its source record, and the first rows of raw datasets."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
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
RECORDS = {
    "a.jsonl": [LINES[0], LINES[1], LINES[5]],
    "b.jsonl.gz": [LINES[0], LINES[1], LINES[5]],
    "c.csv": ['1,"two\r\nlines"', "2,plain"],
    "d.txt": ["A plain text\nof two lines\n"],
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a base directory with a dataset of many formats, and pbins of it with origins."""
    base = tmp_path_factory.mktemp("records")
    raw = base / "x" / "data" / "raw"
    raw.mkdir(parents=True)
    lines = "".join(f"{line}\n" for line in LINES)
    (raw / "a.jsonl").write_text(lines, encoding="utf-8")
    with gzip.open(raw / "b.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(lines)
    (raw / "c.csv").write_bytes(CSV.encode())
    (raw / "d.txt").write_text(RECORDS["d.txt"][0])
    table = pa.table({"n": [1, 2, 3], "text": ["row one", None, "row three"]})
    pq.write_table(table, raw / "e.parquet")
    with pa.ipc.new_file(str(raw / "f.arrow"), table.schema) as writer:
        writer.write_table(table)
    (raw / "secret.env").write_text("password")
    write_metadata(base / "x" / "data", name="Raw", dataset_path="raw", content_field="text")
    folder = base / "x" / "data" / "tokenized" / "gpt2" / "all"
    folder.mkdir(parents=True)
    for name in (*RECORDS, "e.parquet"):
        packtok.pack(
            input=raw / name,
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


@pytest.mark.parametrize("name", RECORDS)
def test_record_of_a_document_is_shown_as_it_is_in_its_source(server: Served, base: Path, name: str) -> None:
    file = f"{PLACE}/{name}.pbin"
    reader = packtok.PbinReader(base / file)
    assert len(reader) == len(RECORDS[name])
    for i, record in enumerate(RECORDS[name]):
        facts = json_of(server, f"/record/{file}?document={i}")
        assert (facts["record"], facts["reason"], facts["is_cut"]) == (record, None, False)
        assert facts["source"] == f"x/data/raw/{name}"
        assert facts["field"] == (None if name == "d.txt" else ".text")
        origin = reader.origin(i)
        assert origin is not None
        assert facts["origin"] == origin.to_dict()
        page = server.page(f"/record/{file}?document={i}")
        shown = record.replace("\u200b", "\\u200b").replace("\r\n", "\\r\n")
        assert page.all("pre", class_="record") == [shown]
        assert "<b>\\" not in page.html
        assert f"/documents/{file}?document={i}" in page.links()
    assert f"/record/{file}?document=0" in server.page(f"/documents/{file}").links()


def test_document_without_a_record_to_show_has_a_reason(
    server: Served, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reason(site: Served, file: str) -> str:
        facts, page = json_of(site, f"/record/{file}"), site.page(f"/record/{file}")
        assert facts["record"] is None
        assert notes(page.html) == [f"There is no record to show: {facts['reason']}."]
        return str(facts["reason"])

    assert reason(server, f"{PLACE}/e.parquet.pbin") == (
        "the source e.parquet is parquet, of which the page shows no single record; its row is 0"
    )
    monkeypatch.setattr(records, "_SECONDS", -1.0)
    assert json_of(server, f"/record/{PLACE}/b.jsonl.gz.pbin?document=1")["reason"] == (
        "the record is too far from the start of x/data/raw/b.jsonl.gz, which is compressed"
    )
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


def test_long_record_is_cut(tmp_path: Path) -> None:
    line = json.dumps({"text": "é " * 100_000}, ensure_ascii=False)
    (tmp_path / "a.jsonl").write_text(line + "\n", encoding="utf-8")
    packtok.pack(input=tmp_path / "a.jsonl", output=tmp_path / "a.pbin", tokenizer="gpt2", origins=True)
    with served_folder(tmp_path) as server:
        facts = json_of(server, "/record/a.pbin")
        page = server.page("/record/a.pbin")
    assert facts["is_cut"]
    assert line.startswith(facts["record"])
    assert 65_530 <= len(facts["record"].encode()) <= 65_536
    assert "Only the first 65.5 kB are shown." in page.text


def test_first_rows_are_those_that_packtok_reads(server: Served) -> None:
    assert "/rows/x/data" in server.page("/dataset/x/data").links()
    files = json_of(server, "/rows/x/data")["files"]
    names = ["a.jsonl", "b.jsonl.gz", "c.csv", "d.txt", "e.parquet", "f.arrow"]
    assert files == [f"x/data/raw/{name}" for name in names]
    lines = [
        ["first ünïcode", "1", None],
        ["second <b>\u200b", None, '{"a": [1, null]}'],
        [None, "5", None],
        ["sixth", None, None],
    ]
    texts = [["row one"], ["row three"]]
    expected = [lines, lines, [["two\r\nlines"], ["plain"]], [RECORDS["d.txt"]], texts, texts]
    for i, cells in enumerate(expected):
        facts, page = json_of(server, f"/rows/x/data?file={i}"), server.page(f"/rows/x/data?file={i}")
        assert facts["rows"] == cells
        assert facts["columns"] == (["text", "n", "deep"] if i < 2 else ["text"])
        assert (facts["from"], facts["next"]) == (0, None)
        shown = [
            ["–" if cell is None else cell.replace("\u200b", "\\u200b").replace("\r", "\\r") for cell in row]
            for row in cells
        ]
        assert [row[1:] for row in page.rows("rows")] == shown
    assert server.get("/rows/x/data?file=6").status == 400
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
        assert first["rows"][0] == ["x" * 500 + " … (5,000 characters)"]
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


def test_field_that_metadata_name_is_no_expression(tmp_path: Path) -> None:
    field = "${node_env:num_cpus}"
    folder = write_metadata(tmp_path / "x" / "data", name="D", content_field=field).parent
    (folder / "a.csv").write_text(f"{field},b\n1,2\n")
    with served_folder(tmp_path) as server:
        assert json_of(server, "/rows/x/data")["rows"] == [["1"]]


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

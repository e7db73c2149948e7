"""Records of Parquet and Arrow files with all their columns, against a plain computation with pyarrow."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import random
from pathlib import Path
from typing import Any

import pytest

from packtok._packtok import source_record, source_rows

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NUM_ROWS = 400
MESSAGE = [("role", pa.string()), ("content", pa.string())]
SCHEMA = pa.schema(
    {
        "i64": pa.int64(),
        "u8": pa.uint8(),
        "u32": pa.uint32(),
        "u64": pa.uint64(),
        "f64": pa.float64(),
        "f32": pa.float32(),
        "f16": pa.float16(),
        "bool": pa.bool_(),
        "text": pa.string(),
        "large": pa.large_string(),
        "bytes": pa.binary(),
        "fixed": pa.binary(4),
        "date": pa.date32(),
        "milliseconds": pa.timestamp("ms"),
        "microseconds": pa.timestamp("us", "UTC"),
        "time": pa.time64("us"),
        "decimal": pa.decimal128(10, 2),
        "long_decimal": pa.decimal128(30, 3),
        "list": pa.list_(pa.int32()),
        "lists": pa.list_(pa.list_(pa.string())),
        "bits": pa.list_(pa.bool_()),
        "pair": pa.list_(pa.int32(), 2),
        "structure": pa.struct([("number", pa.int64()), ("text", pa.string())]),
        "messages": pa.list_(pa.struct(MESSAGE)),
        "map": pa.map_(pa.string(), pa.int64()),
        "null": pa.null(),
    }
)


def random_rows() -> list[dict[str, Any]]:
    numbers = random.Random(1)

    def maybe(value: Any) -> Any:
        return None if numbers.random() < 0.2 else value

    def several(make: Any) -> list[Any]:
        return [make(i) for i in range(numbers.randint(0, 3))]

    return [
        {
            "i64": maybe(numbers.randint(-(2**60), 2**60)),
            "u8": i % 256,
            "u32": 2**32 - 1 - i,
            "u64": maybe(2**64 - 1 - i),
            "f64": maybe(numbers.random()),
            "f32": maybe(0.1),
            "f16": maybe(0.5),
            "bool": maybe(i % 3 == 0),
            "text": maybe("é" * numbers.randint(0, 30) + str(i)),
            "large": "x" * numbers.randint(0, 500),
            "bytes": maybe(bytes([255, i % 256])),
            "fixed": maybe(b"abcd"),
            "date": maybe(dt.date(1960, 1, 1) + dt.timedelta(days=29 * i)),
            "milliseconds": maybe(dt.datetime(1969, 2, 3, 4, 5, 6, 1000 * i)),
            "microseconds": maybe(dt.datetime(2001, 2, 3, 4, 5, 6, i, tzinfo=dt.UTC)),
            "time": maybe(dt.time(1, 2, 3, i)),
            "decimal": maybe(decimal.Decimal(i - 200) / 100),
            "long_decimal": maybe(decimal.Decimal(-i) / 1000),
            "list": maybe(several(maybe)),
            "lists": maybe(several(lambda j: maybe([f'"{j}"'] * j))),
            "bits": maybe(several(lambda j: maybe(j == 1))),
            "pair": maybe([i, None]),
            "structure": maybe({"number": maybe(i), "text": maybe('q"uote')}),
            "messages": maybe(several(lambda j: maybe({"role": "user", "content": maybe(f"hi {j}")}))),
            "map": maybe(several(lambda j: (f"k{j}", maybe(j)))),
            "null": None,
        }
        for i in range(NUM_ROWS)
    ]


def expected(value: Any, kind: Any, is_inner: bool = False) -> str | None:
    """Returns the text of a value; inside of lists and structures, it is JSON."""
    if value is None:
        return "null" if is_inner else None
    if pa.types.is_map(kind):
        entry = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        return expected([{"key": key, "value": inner} for key, inner in value], pa.list_(entry), is_inner)
    if isinstance(value, list):
        return f"[{','.join(str(expected(inner, kind.value_type, True)) for inner in value)}]"
    if isinstance(value, dict):
        fields = (f"{json.dumps(key)}:{expected(value[key], kind.field(key).type, True)}" for key in value)
        return "{" + ",".join(fields) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | decimal.Decimal):
        return "0.1" if pa.types.is_float32(kind) else str(value)
    text = text_of(value, kind)
    return json.dumps(text, ensure_ascii=False) if is_inner else text


def text_of(value: Any, kind: Any) -> str:
    """Returns a text, bytes or time as a text."""
    if isinstance(value, bytes):
        return f"0x{value.hex()}" if value[0] > 127 else value.decode()
    if pa.types.is_timestamp(kind):
        text: str = value.replace(tzinfo=None).isoformat()
        return f"{text}Z" if kind.tz else text.removesuffix("000")
    return value if isinstance(value, str) else str(value.isoformat())


def cells_of(table: Any) -> list[list[str | None]]:
    return [[expected(row[field.name], field.type) for field in table.schema] for row in table.to_pylist()]


@pytest.fixture(scope="module")
def table() -> Any:
    return pa.Table.from_pylist(random_rows(), SCHEMA)


def check(path: Path, cells: list[list[str | None]]) -> None:
    """Compares the rows of a file at the start and end of its groups, which have 150 rows."""
    for first in (0, 140, 290, len(cells) - 3):
        rows = source_rows(
            path,
            path.name,
            first=first,
            num_rows=20,
            max_columns=99,
            max_bytes=10_000,
            max_record_bytes=1,
            seconds=60,
        )
        shown = [[cell["fault"] or cell["text"] for cell in row["cells"]] for row in rows["rows"]]
        assert shown == cells[first : first + 20]
        assert rows["has_more"] == (first + 20 < len(cells))
    for row in (0, 149, 150, 299, len(cells) - 1, len(cells)):
        record = source_record(
            path,
            path.suffix[1:],
            offset=row,
            text_separator=None,
            max_columns=99,
            max_bytes=10_000,
            max_record_bytes=1,
            seconds=60,
        )
        if row == len(cells):
            assert record is None
        else:
            assert record is not None
            assert [cell["text"] for cell in record["cells"]] == cells[row]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
def test_records_of_parquet_have_all_columns(
    tmp_path: Path, table: Any, compression: str, version: str
) -> None:
    path = tmp_path / "a.parquet"
    # Several pages in each column, with and without dictionaries.
    pq.write_table(
        table,
        path,
        compression=compression,
        data_page_version=version,
        row_group_size=150,
        data_page_size=500,
        write_batch_size=20,
        use_dictionary=["text", "list", "messages"],
    )
    check(path, cells_of(table))


def test_records_of_parquet_with_differences_and_large_pages(
    tmp_path: Path, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    encodings = {"text": "DELTA_BYTE_ARRAY", "i64": "DELTA_BINARY_PACKED", "large": "DELTA_LENGTH_BYTE_ARRAY"}
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False, column_encoding=encodings)
    check(tmp_path / "a.parquet", cells_of(table))
    texts = [None if i % 7 == 0 else f"{i}: " + "long " * 30_000 for i in range(90)]
    long = pa.table({"n": range(90), "text": texts})
    for use_dictionary in (False, True):
        pq.write_table(long, tmp_path / "b.parquet", use_dictionary=use_dictionary)
        rows = source_rows(
            tmp_path / "b.parquet",
            "b.parquet",
            first=61,
            num_rows=4,
            max_columns=9,
            max_bytes=20,
            max_record_bytes=1,
            seconds=60,
        )
        shown = [[(cell["text"], cell["bytes"]) for cell in row["cells"]] for row in rows["rows"]]
        expected = [(text and text[:20], text and len(text)) for text in texts[61:65]]
        assert [text for _, text in shown] == expected


@pytest.mark.parametrize("make", ["new_file", "new_stream"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_records_of_arrow_have_all_columns(
    tmp_path: Path, table: Any, compression: str | None, make: str
) -> None:
    path = tmp_path / "a.arrow"
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with getattr(pa.ipc, make)(str(path), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=150)
    check(path, cells_of(table))


@pytest.mark.parametrize("has_deltas", [False, True])
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_dictionaries_and_views_of_arrow(tmp_path: Path, compression: str | None, has_deltas: bool) -> None:
    schema = pa.schema(
        {
            "category": pa.dictionary(pa.int32(), pa.string()),
            "number": pa.dictionary(pa.int8(), pa.int64()),
            "list": pa.list_(pa.dictionary(pa.int32(), pa.string())),
            "view": pa.string_view(),
        }
    )

    def batch(texts: list[str | None], numbers: list[int | None], words: list[str]) -> Any:
        values = pa.array(words).dictionary_encode()
        views = ["short", None, f"a text of more than 12 bytes {texts}"]
        columns = [
            pa.array(texts).dictionary_encode(),
            pa.array(numbers).dictionary_encode().cast(schema.field("number").type),
            pa.ListArray.from_arrays(pa.array([0, 2, 2, 3], pa.int32()), values),
            pa.array(views, pa.string_view()),
        ]
        return pa.record_batch(columns, schema)

    # In a stream, a later dictionary replaces or extends an earlier one.
    batches = [
        batch(["a", "b", None], [1, 2, 1], ["p", "q", "p"]),
        batch(["a", "b", "c"], [9, None, 9], ["r"] * 3),
    ]
    options = pa.ipc.IpcWriteOptions(compression=compression, emit_dictionary_deltas=has_deltas)
    with pa.ipc.new_stream(str(tmp_path / "a.arrow"), schema, options=options) as writer:
        for rows in batches:
            writer.write_batch(rows)
    with pa.ipc.open_stream(str(tmp_path / "a.arrow")) as reader:
        cells = cells_of(reader.read_all())
    assert [row[0] for row in cells] == ["a", "b", None, "a", "b", "c"]
    rows = source_rows(
        tmp_path / "a.arrow",
        "a.arrow",
        first=0,
        num_rows=9,
        max_columns=9,
        max_bytes=100,
        max_record_bytes=1,
        seconds=60,
    )
    assert [[cell["fault"] or cell["text"] for cell in row["cells"]] for row in rows["rows"]] == cells


@pytest.mark.parametrize("end", ["", "\n", "\nc,d\n"])
def test_row_of_very_many_fields_is_counted_and_not_kept(tmp_path: Path, end: str) -> None:
    (tmp_path / "a.csv").write_text("text,b\n" + "," * 1_200_000 + end)
    rows = source_rows(
        tmp_path / "a.csv",
        "a.csv",
        first=0,
        num_rows=9,
        max_columns=9,
        max_bytes=9,
        max_record_bytes=1 << 30,
        seconds=60,
    )
    faults = [row["fault"] for row in rows["rows"]]
    assert faults == ["the row has 1200001 fields, the header 2", None][: 2 if "c" in end else 1]

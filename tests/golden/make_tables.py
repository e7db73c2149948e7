"""Writes the golden tables with pyarrow: the same texts in every layout that packtok reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
TEXTS = ["a", "", "héllo wörld", None, 'line\nbreak, "quoted"', "x" * 40, "日本語のテキスト", None, "end"] * 3
GROUP_ROWS = 10


def table(text: pa.DataType) -> pa.Table:
    """Returns a table with the texts between columns of other types, and again inside a structure."""
    rows = range(len(TEXTS))
    texts = pa.array(TEXTS, text)
    meta = pa.StructArray.from_arrays(
        [pa.array(rows, pa.int32()), texts], ["n", "text"], mask=pa.array([i % 5 == 4 for i in rows])
    )
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "tags": pa.array([["t"] * (i % 3) for i in rows], pa.list_(pa.string())),
            "kind": pa.array(["k"] * len(TEXTS)).dictionary_encode(),
            "text": texts,
            "meta": meta,
        }
    )


def write_arrow(
    name: str, text: pa.DataType, *, is_stream: bool = False, compression: str | None = None
) -> None:
    """Writes an Arrow file or stream."""
    content = table(text)
    options = pa.ipc.IpcWriteOptions(compression=compression)
    new = pa.ipc.new_stream if is_stream else pa.ipc.new_file
    with new(str(HERE / name), content.schema, options=options) as writer:
        writer.write_table(content, max_chunksize=GROUP_ROWS)


def parquet_layouts() -> Iterator[tuple[str, dict[str, object]]]:
    """Yields file names with the arguments of pyarrow's writer."""
    yield "dictionary.parquet", {"compression": "snappy"}
    yield "plain.parquet", {"compression": "none", "use_dictionary": False}
    yield "zstd_v2.parquet", {"compression": "zstd", "data_page_version": "2.0", "use_dictionary": False}
    yield (
        "delta.parquet",
        {
            "compression": "gzip",
            "use_dictionary": False,
            "column_encoding": {"text": "DELTA_BYTE_ARRAY", "meta.text": "DELTA_LENGTH_BYTE_ARRAY"},
        },
    )
    yield (
        "small_pages.parquet",
        {
            "compression": "lz4",
            "use_dictionary": False,
            "write_batch_size": 2,
            "data_page_size": 16,
            "write_page_checksum": True,
        },
    )


def main() -> None:
    """Writes all files."""
    for name, options in parquet_layouts():
        pq.write_table(table(pa.string()), HERE / name, row_group_size=GROUP_ROWS, **options)
    write_arrow("file.arrow", pa.string())
    write_arrow("large_zstd.arrow", pa.large_string(), compression="zstd")
    write_arrow("lz4.arrow", pa.string(), compression="lz4")
    write_arrow("stream.arrow", pa.string(), is_stream=True)
    write_arrow("views.arrow", pa.string_view())
    write_arrow("views_zstd.arrow", pa.string_view(), is_stream=True, compression="zstd")


if __name__ == "__main__":
    main()

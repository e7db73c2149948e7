"""`packtok convert --to packed-parquet`: items of `TokenDataset`, as Megatron-Bridge reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from command_line import PacktokCli
from extent import extent
from hypothesis import given, settings
from hypothesis import strategies as st

import packtok

DOCUMENTS = st.lists(st.lists(st.integers(3, 9), max_size=12), min_size=1, max_size=12)


def written(folder: Path, documents: list[list[int]], dtype: str = "int64") -> Path:
    lengths = [len(document) for document in documents]
    np.save(folder / "a.npy", np.concatenate([[len(lengths)], lengths, *documents]).astype(dtype))
    return folder / "a.npy"


def rows_of(folder: Path) -> list[dict[str, list[int]]]:
    files = sorted(folder.glob("shard_*.idx.parquet"))
    return [row for file in files for row in pyarrow.parquet.read_table(file).to_pylist()]


def pairs_of(row: dict[str, list[int]]) -> list[tuple[int, int, int]]:
    """Inputs, labels and whether they count, as Megatron-Bridge makes them of a row."""
    ends = [*row["seq_start_id"][1:], len(row["input_ids"])]
    ids, mask = row["input_ids"], row["loss_mask"]
    return [
        (ids[i], ids[i + 1], mask[i])
        for start, end in zip(row["seq_start_id"], ends, strict=True)
        for i in range(start, end - 1)
    ]


@given(documents=DOCUMENTS, context_length=st.integers(1, 9), has_markers=st.booleans())
@settings(max_examples=extent(200, 30), deadline=None)
def test_rows_train_on_the_pairs_of_the_dataset(
    tmp_path_factory: pytest.TempPathFactory,
    documents: list[list[int]],
    context_length: int,
    has_markers: bool,
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    if not any(documents):
        documents = [*documents, [3]]
    file = written(folder, documents)
    markers = {"loss_markers": (4, 5)} if has_markers else {}
    report = packtok.convert(
        file, folder / "x", to="packed-parquet", context_length=context_length, max_tokens=30, **markers
    )
    rows = rows_of(folder / "x")
    options: dict[str, Any] = {"packing": "best_fit", "loss_mask": True, "cache_dir": folder}
    dataset = packtok.TokenDataset(file, context_length, **options, **markers)
    # Items without a label are no rows.
    all_count = packtok.TokenDataset(file, context_length, **options)
    items = [item for item, other in zip(dataset, all_count, strict=True) if other["loss_mask"].any()]
    assert (report["rows"], report["tokens"]) == (len(rows), sum(map(len, documents)))
    assert report["left_out_documents"] == sum(len(document) == 1 for document in documents)
    for row, item in zip(rows, items, strict=True):
        labels = item["labels"].tolist()
        expected = [
            (id, label)
            for id, label, counts in zip(
                item["input_ids"].tolist(), labels, item["loss_mask"].tolist(), strict=True
            )
            if counts
        ]
        pairs = pairs_of(row)
        assert [(id, label) for id, label, counts in pairs if counts] == expected
        assert len(pairs) <= context_length
        assert all(
            row["loss_mask"][end - 1] == 0 for end in [*row["seq_start_id"][1:], len(row["input_ids"])]
        )


def test_files_have_the_types_of_megatron_bridge(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    file = written(tmp_path, [[3] * 5, [4] * 3, [5] * 9])
    packtok_cli("convert", file, "--to", "packed-parquet", "-o", tmp_path / "x", "--context-length", "8")
    (path,) = (tmp_path / "x").glob("*.idx.parquet")
    schema = pyarrow.parquet.read_schema(path)
    types = {name: str(schema.field(name).type.value_type) for name in schema.names}
    assert types == {"input_ids": "int32", "loss_mask": "int8", "seq_start_id": "int32"}
    assert rows_of(tmp_path / "x") == [
        {"input_ids": [3] * 5 + [4] * 3, "loss_mask": [1, 1, 1, 1, 0, 1, 1, 0], "seq_start_id": [0, 5]},
        # The first part of a long document, and the id that is the label of its last input.
        {"input_ids": [5] * 9, "loss_mask": [1] * 8 + [0], "seq_start_id": [0]},
    ]
    assert "Megatron-Bridge" in (tmp_path / "x" / "README.md").read_text()


def test_tokenizer_and_folders(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"text": "one two"}\n{"text": "three"}\n')
        packtok.pack(
            input=str(tmp_path / f"{name}.jsonl"),
            output=str(tmp_path / "in" / f"{name}.pbin"),
            tokenizer="gpt2",
        )
    report = packtok.convert(tmp_path / "in", tmp_path / "x", to="packed-parquet", context_length=64)
    assert (report["documents"], report["rows"]) == (4, 1)
    assert (tmp_path / "x" / "tokenizer.json").is_file()
    with pytest.raises(FileExistsError, match=r"shard_00000\.idx\.parquet"):
        packtok.convert(tmp_path / "in", tmp_path / "x", to="packed-parquet", context_length=64)
    packtok.convert(
        tmp_path / "in",
        tmp_path / "x",
        to="packed-parquet",
        context_length=4,
        max_tokens=5,
        existing="replace",
    )
    with pytest.raises(FileExistsError, match=r"shard_00001\.idx\.parquet"):
        packtok.convert(
            tmp_path / "in", tmp_path / "x", to="packed-parquet", context_length=64, existing="replace"
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context_length": None}, "context_length: is missing"),
        ({"context_length": 0}, "expected an integer from 1"),
        ({"existing": "skip"}, "has no effect with --to packed-parquet|has no effect with to packed-parquet"),
        ({"dtype": "uint16"}, "dtype: has no effect with"),
        ({"loss_markers": (4, 4)}, "have the same id"),
        ({"to": "parquet"}, "context_length: has no effect with"),
    ],
)
def test_wrong_arguments(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    file = written(tmp_path, [[3, 4], [5]])
    with pytest.raises(ValueError, match=message):
        packtok.convert(file, tmp_path / "x", **{"to": "packed-parquet", "context_length": 8, **options})
    assert not (tmp_path / "x").exists()


def test_ids_that_do_not_fit_and_origins_are_errors(tmp_path: Path) -> None:
    file = written(tmp_path, [[1], [2**31]])
    with pytest.raises(
        packtok.PbinFormatError, match="token 0 of document 1 is 2147483648, which int32 cannot"
    ):
        packtok.convert(file, tmp_path / "x", to="packed-parquet", context_length=8)
    (tmp_path / "c.jsonl").write_text('{"text": "one"}\n')
    packtok.pack(
        input=str(tmp_path / "c.jsonl"), output=str(tmp_path / "c.pbin"), tokenizer="gpt2", origins=True
    )
    with pytest.raises(ValueError, match="records origins, which packed-parquet cannot hold"):
        packtok.convert(tmp_path / "c.pbin", tmp_path / "x", to="packed-parquet", context_length=8)
    assert not (tmp_path / "x").exists()
    report = packtok.convert(
        tmp_path / "c.pbin", tmp_path / "x", to="packed-parquet", context_length=8, accept_loss="origins"
    )
    assert report["lost"] == ["origins"]

"""Loss masks go wherever their tokens go: through conversions, steps and merges, and into training.

The oracle keeps for each document its ids and, beside them, whether each counts.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from command_line import PacktokCli
from hypothesis import given, settings
from hypothesis import strategies as st

import packtok
from packtok.commands.shuffle import shuffle_chunk, shuffle_file
from packtok.commands.token_folder import verify_folder
from packtok.compat.modalities.files import filter_dataset
from packtok.stream import CheckpointableDataset

Masked = list[tuple[list[int], list[bool]]]

DOCUMENTS: Masked = [
    ([5, 6, 7, 8, 9], [False, False, True, True, True]),
    ([11], [False]),
    ([12, 13], [True, True]),
    ([14, 15, 16, 17, 18, 19, 20], [True, False, True, False, True, False, True]),
]


def write_dolma(folder: Path, name: str, documents: Masked) -> Path:
    """Writes files as open-instruct does."""
    folder.mkdir(exist_ok=True)
    ids = [token for ids, _ in documents for token in ids]
    mask = [is_counted for _, mask in documents for is_counted in mask]
    path = folder / f"token_ids_{name}.npy"
    np.array(ids, np.uint16).tofile(path)
    np.array(mask, np.bool_).tofile(folder / f"labels_mask_{name}.npy")
    rows, end = [], 0
    for ids, _ in documents:
        rows.append(f"{end},{end + len(ids)}\n")
        end += len(ids)
    (folder / f"token_ids_{name}.csv.gz").write_bytes(gzip.compress("".join(rows).encode()))
    return path


def masked_documents(path: Path) -> Masked:
    """Returns documents with their masks, of ones where none is recorded."""
    reader = packtok.PbinReader(path)
    masks = [reader.loss_mask(i) for i in range(len(reader))]
    return [
        (reader[i].tolist(), [True] * len(reader[i]) if mask is None else mask.tolist())
        for i, mask in enumerate(masks)
    ]


def masked_pbin(folder: Path, documents: Masked = DOCUMENTS, name: str = "a") -> Path:
    packtok.convert(write_dolma(folder / name, "0", documents), folder / f"{name}.pbin", to="pbin")
    return folder / f"{name}.pbin"


@st.composite
def masked(draw: st.DrawFn) -> Masked:
    lengths = draw(st.lists(st.integers(0, 20), min_size=1, max_size=8))
    return [
        (
            draw(st.lists(st.integers(1, 1000), min_size=length, max_size=length)),
            draw(st.lists(st.booleans(), min_size=length, max_size=length)),
        )
        for length in lengths
    ]


@settings(max_examples=15, deadline=None)
@given(documents=masked(), chain=st.permutations(["datatrove", "dolma", "parquet", "megatron"]))
def test_masks_come_back_through_any_chain_of_formats(
    tmp_path_factory: pytest.TempPathFactory, documents: Masked, chain: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("chain")
    pbin = masked_pbin(folder, documents)
    assert masked_documents(pbin) == documents
    before = pbin
    for number, to in enumerate(chain):
        out = folder / f"{number}" / "a"
        packtok.convert(before, out, to=to)  # type: ignore[arg-type]
        before = out / "shard_00000.parquet" if to == "parquet" else out
        if to != "megatron":
            assert masked_documents(before) == documents, to
    packtok.convert(before, folder / "back.pbin", to="pbin")
    assert (folder / "back.pbin").read_bytes() == pbin.read_bytes()


def test_each_tool_finds_the_mask_where_it_looks_for_it(tmp_path: Path) -> None:
    pbin = masked_pbin(tmp_path)
    flat = [is_counted for _, mask in DOCUMENTS for is_counted in mask]
    report = packtok.convert(pbin, tmp_path / "d" / "a", to="datatrove")
    assert np.fromfile(tmp_path / "d" / "a.ds.loss", np.bool_).tolist() == flat
    assert "loss_mask" in report["kept_in_files"]
    packtok.convert(pbin, tmp_path / "o" / "token_ids_part_0000", to="dolma")
    assert np.fromfile(tmp_path / "o" / "labels_mask_part_0000.npy", np.bool_).tolist() == flat
    # Other names get a folder, so that `o/*.npy` has no masks.
    packtok.convert(pbin, tmp_path / "o" / "train", to="dolma")
    assert np.fromfile(tmp_path / "o" / "label_masks" / "train.npy", np.bool_).tolist() == flat
    packtok.convert(pbin, tmp_path / "p", to="parquet")
    table = pyarrow.parquet.read_table(tmp_path / "p" / "shard_00000.parquet")
    assert table.column_names == ["input_ids", "attention_mask", "labels"]
    assert table["labels"].to_pylist() == [
        [token if is_counted else -100 for token, is_counted in zip(ids, mask, strict=True)]
        for ids, mask in DOCUMENTS
    ]
    assert table["attention_mask"].to_pylist() == [[1] * len(ids) for ids, _ in DOCUMENTS]
    # A conversion without a mask removes the mask of an earlier one.
    plain = tmp_path / "plain.pbin"
    packtok.reshape(write_dolma(tmp_path / "x", "0", [([1, 2], [True, True])]), plain)
    (tmp_path / "x" / "labels_mask_0.npy").unlink()
    packtok.reshape(tmp_path / "x" / "token_ids_0.npy", plain, existing="replace")
    packtok.convert(plain, tmp_path / "d" / "a", to="datatrove", existing="replace")
    assert not (tmp_path / "d" / "a.ds.loss").exists()


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"labels": [[-100, 2], [3]]}, [[False, True], [True]]),
        ({"completion_mask": [[0, 1], [0]]}, [[False, True], [False]]),
        (
            {
                "assistant_masks": [[1, 0], [1]],
                "completion_mask": [
                    [1, 1],
                    [
                        0,
                    ],
                ],
            },
            [[True, False], [False]],
        ),
        ({"labels": [[1, 2], [3]], "attention_mask": [[1, 1], [1]]}, None),
        ({"completion_mask": [[False, True], [False]]}, [[False, True], [False]]),
        ({"loss_weights": [[1.0, 0.0], [1.0]]}, [[True, False], [True]]),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_columns_of_trainers_are_masks(
    tmp_path: Path, columns: dict[str, Any], expected: list[list[bool]] | None, suffix: str
) -> None:
    table = pyarrow.table({"input_ids": [[1, 2], [3]], **columns})
    path = tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        with pyarrow.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    packtok.convert(path, tmp_path / "a.pbin", to="pbin")
    reader = packtok.PbinReader(tmp_path / "a.pbin")
    assert reader.has_loss_mask == (expected is not None)
    if expected is not None:
        assert [mask for _, mask in masked_documents(tmp_path / "a.pbin")] == expected


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("labels", [[1, 9], [3]]),
        ("labels", [[1], [3]]),
        ("completion_mask", [[0, 2], [1]]),
        ("labels", [None, [3]]),
        ("labels", [[1, None], [3]]),
        ("attention_mask", [[0, 1], [1]]),
        ("loss_weights", [[0.5, 1.0], [1.0]]),
    ],
)
def test_a_column_that_is_no_mask_is_not_lost_unasked(tmp_path: Path, name: str, values: list[Any]) -> None:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"input_ids": [[1, 2], [3]], name: values}), path)
    with pytest.raises(ValueError, match=f"records {name}, which pbin cannot hold"):
        packtok.convert(path, tmp_path / "a.pbin", to="pbin")
    # Nobody trains on padding, or without weights, without knowing it.
    message = f"column {name} is no loss mask .* convert the file and accept the loss of {name}"
    for dataset in (packtok.TokenDataset, packtok.get_dataset):
        with pytest.raises(ValueError, match=message):
            dataset(path, 1)  # type: ignore[operator]
    with pytest.raises(ValueError, match=message):
        next(iter(CheckpointableDataset.from_pbin(path)))
    packtok.convert(path, tmp_path / "a.pbin", to="pbin", accept_loss=name)
    assert packtok.TokenDataset(tmp_path / "a.pbin", 1).num_tokens == 3
    report = packtok.convert(path, tmp_path / "rows", to="packed-parquet", context_length=4, accept_loss=name)
    assert report["lost"] == [name]


def test_masks_of_many_rows_and_of_large_offsets_are_read(tmp_path: Path) -> None:
    """Booleans are bits in Arrow: rows that start within a byte, skipped rows, and several batches."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 21, 400)
    masks = [rng.random(length) < 0.5 for length in lengths]
    ids = [list(range(length)) for length in lengths]
    flags = pyarrow.array(masks, pyarrow.large_list(pyarrow.bool_()))
    table = pyarrow.table({"input_ids": ids, "completion_mask": flags})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=70)
    with pyarrow.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        # The offsets of a slice do not start at 0.
        file.write_table(table.slice(0, 150), max_chunksize=33)
        file.write_table(table.slice(150))
    for path in (tmp_path / "a.parquet", tmp_path / "a.arrow"):
        packtok.convert(path, tmp_path / "a.pbin", to="pbin", existing="replace")
        assert [mask for _, mask in masked_documents(tmp_path / "a.pbin")] == [list(mask) for mask in masks]


def test_formats_without_room_keep_the_mask_beside_them_or_ask(
    tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    pbin = masked_pbin(tmp_path)
    report = packtok.convert(pbin, tmp_path / "m" / "a", to="megatron")
    assert "loss_mask" in report["kept_beside"]
    # A file that was no pbin has nothing to keep beside its output.
    dolma = tmp_path / "a" / "token_ids_0.npy"
    done = packtok_cli("convert", dolma, "--to", "megatron", "-o", tmp_path / "n" / "a", code=1)
    assert done.stderr == (
        f"packtok: {dolma}: records loss_mask, which megatron cannot hold; set --accept-loss loss_mask to "
        "accept that\n"
    )
    with pytest.raises(ValueError, match="records loss_mask, which mds cannot hold"):
        packtok.convert(pbin, tmp_path / "s", to="mds", max_tokens=4)
    with pytest.raises(ValueError, match="records loss_mask, which retokenize cannot hold"):
        packtok.reshape(pbin, tmp_path / "r.pbin", retokenize="gpt2", tokenizer="gpt2")
    # A mask that was changed in between is not replaced by the one that was kept.
    packtok.convert(pbin, tmp_path / "d" / "a", to="datatrove")
    (tmp_path / "d" / "a.ds.loss").write_bytes(b"\1" * 15)
    with pytest.raises(packtok.PacktokError, match="pbin_rest"):
        packtok.convert(tmp_path / "d" / "a", tmp_path / "b.pbin", to="pbin")


def test_an_existing_output_with_another_mask_is_not_kept(tmp_path: Path) -> None:
    pbin = masked_pbin(tmp_path)
    for to, name in (("datatrove", "a.ds.loss"), ("dolma", "label_masks/a.npy")):
        packtok.convert(pbin, tmp_path / to / "a", to=to)  # type: ignore[arg-type]
        packtok.convert(pbin, tmp_path / to / "a", to=to, existing="skip")  # type: ignore[arg-type]
        mask = tmp_path / to / name
        mask.write_bytes(mask.read_bytes()[:-1] + b"\0")
        with pytest.raises(packtok.PacktokError, match="document 3"):
            packtok.convert(pbin, tmp_path / to / "a", to=to, existing="skip")  # type: ignore[arg-type]
        mask.unlink()
        with pytest.raises(packtok.PacktokError, match="document 0"):
            packtok.convert(pbin, tmp_path / to / "a", to=to, existing="skip")  # type: ignore[arg-type]


def test_a_folder_of_open_instruct_is_a_dataset(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    write_dolma(tmp_path / "sft", "part_0000", DOCUMENTS)
    write_dolma(tmp_path / "sft", "part_0001", DOCUMENTS[:2])
    packtok_cli("merge", tmp_path / "sft", tmp_path / "all.pbin")
    assert masked_documents(tmp_path / "all.pbin") == [*DOCUMENTS, *DOCUMENTS[:2]]
    for source in (tmp_path / "sft", f"{tmp_path}/sft/*.npy"):
        assert packtok.TokenDataset(source, 4).num_documents == 6
    checked = verify_folder(tmp_path / "sft")
    assert (checked["files"], checked["documents"], checked["faults"]) == (2, 6, [])
    # Our own names, with the masks in a folder.
    packtok.convert(tmp_path / "all.pbin", tmp_path / "own" / "train", to="dolma")
    assert packtok.diff(tmp_path / "own", tmp_path / "all.pbin")["difference"] is None


def test_a_mask_of_others_is_neither_removed_nor_used(tmp_path: Path) -> None:
    plain = tmp_path / "plain.pbin"
    tokens = write_dolma(tmp_path / "x", "0", DOCUMENTS)
    mask = tmp_path / "x" / "labels_mask_0.npy"
    before = mask.read_bytes()
    mask.unlink()
    packtok.convert(tokens, plain, to="pbin")
    mask = tmp_path / "y" / "labels_mask_0.npy"
    mask.parent.mkdir()
    mask.write_bytes(before)
    other = masked_pbin(tmp_path, [([5, 6], [True, False])], name="other")
    for source in (plain, other):
        with pytest.raises(FileExistsError, match=r"labels_mask_0\.npy"):
            packtok.convert(source, tmp_path / "y" / "token_ids_0", to="dolma")
    assert mask.read_bytes() == before
    assert not (tmp_path / "y" / "token_ids_0.npy").exists()
    packtok.convert(plain, tmp_path / "y" / "token_ids_0", to="dolma", existing="replace")
    assert not mask.exists()


def test_steps_move_the_masks_with_their_tokens(tmp_path: Path) -> None:
    pbin = masked_pbin(tmp_path)
    out = tmp_path / "out.pbin"

    def reshaped(**options: Any) -> Masked:
        packtok.reshape(pbin, out, existing="replace", **options)
        packtok.verify(out)
        return masked_documents(out)

    assert reshaped(filter="length > 1") == [DOCUMENTS[0], DOCUMENTS[2], DOCUMENTS[3]]
    assert reshaped(truncate=3) == [(ids[:3], mask[:3]) for ids, mask in DOCUMENTS]
    ids = [token for ids, _ in DOCUMENTS for token in ids]
    mask = [is_counted for _, mask in DOCUMENTS for is_counted in mask]
    assert reshaped(rows=4) == [(ids[i : i + 4], mask[i : i + 4]) for i in range(0, 12, 4)]
    by_ids = {tuple(ids): mask for ids, mask in DOCUMENTS}
    chosen = (
        {"shuffle": True},
        {"shuffle": True, "memory": (0, 64)},
        {"shuffle": True, "truncate": 7},
        {"sample": "*=3"},
    )
    for options in chosen:
        documents = reshaped(seed=1, **options)
        assert sorted(by_ids) == sorted({tuple(ids) for ids, _ in documents})
        assert all(by_ids[tuple(ids)] == mask for ids, mask in documents)


def test_merging_and_shuffling_pbins_keep_masks(tmp_path: Path) -> None:
    first = masked_pbin(tmp_path)
    plain: Masked = [([30, 31], [True, True]), ([32], [True])]
    write_dolma(tmp_path / "b", "0", plain)
    (tmp_path / "b" / "labels_mask_0.npy").unlink()
    second = tmp_path / "b.pbin"
    packtok.convert(tmp_path / "b" / "token_ids_0.npy", second, to="pbin")
    assert not packtok.PbinReader(second).has_loss_mask
    # All tokens of a file without a mask count.
    packtok.reshape([first, second], tmp_path / "joined.pbin")
    assert masked_documents(tmp_path / "joined.pbin") == DOCUMENTS + plain
    packtok.reshape([first, second], tmp_path / "shuffled.pbin", shuffle=True, seed=3)
    shuffled = masked_documents(tmp_path / "shuffled.pbin")
    assert shuffled != DOCUMENTS + plain
    assert sorted(shuffled) == sorted(DOCUMENTS + plain)
    packtok.merge([first, second], tmp_path / "merged.pbin", tokenizer="gpt2")
    assert masked_documents(tmp_path / "merged.pbin") == DOCUMENTS + plain
    shuffle_file("pbin", tmp_path / "joined.pbin", tmp_path / "other.pbin", seed=5)
    assert sorted(masked_documents(tmp_path / "other.pbin")) == sorted(DOCUMENTS + plain)
    shuffle_chunk("pbin", [first, second], tmp_path / "chunk.pbin", chunk_id=1, num_chunks=2, global_seed=5)
    assert sorted(masked_documents(tmp_path / "chunk.pbin")) == sorted([*DOCUMENTS[2:], plain[1]])
    for name in ("joined", "shuffled", "merged", "other", "chunk"):
        packtok.verify(tmp_path / f"{name}.pbin")


@pytest.mark.parametrize("packing", ["concat", "document", "best_fit"])
@pytest.mark.parametrize("labels", ["shifted", "aligned"])
def test_labels_that_do_not_count_are_ignored_in_training(tmp_path: Path, packing: Any, labels: Any) -> None:
    plain = tmp_path / "plain"
    write_dolma(plain, "0", DOCUMENTS)
    (plain / "labels_mask_0.npy").unlink()
    options: dict[str, Any] = {"packing": packing, "labels": labels, "loss_mask": True}
    everything = packtok.TokenDataset(plain / "token_ids_0.npy", 4, **options)
    counted = {
        token for ids, mask in DOCUMENTS for token, is_counted in zip(ids, mask, strict=True) if is_counted
    }
    for path in (tmp_path / "a" / "token_ids_0.npy", masked_pbin(tmp_path)):
        dataset = packtok.TokenDataset(path, 4, **options)
        assert len(dataset) == len(everything) > 0
        for item, whole in zip(dataset, everything, strict=True):
            assert torch.equal(item["input_ids"], whole["input_ids"])
            # Every id occurs once.
            expected = [label if label in counted else -100 for label in whole["labels"].tolist()]
            assert item["labels"].tolist() == expected
            assert item["loss_mask"].tolist() == [label != -100 for label in expected]


def test_packed_rows_have_the_mask_of_the_file(tmp_path: Path) -> None:
    pbin = masked_pbin(tmp_path)
    packtok.convert(pbin, tmp_path / "p", to="packed-parquet", context_length=8)
    rows = pyarrow.parquet.read_table(tmp_path / "p" / "shard_00000.idx.parquet").to_pylist()
    counted = {
        token for ids, mask in DOCUMENTS for token, is_counted in zip(ids, mask, strict=True) if is_counted
    }
    pairs = [
        (label, bool(is_counted))
        for row in rows
        for start, stop in zip(
            row["seq_start_id"], [*row["seq_start_id"][1:], len(row["input_ids"])], strict=True
        )
        for label, is_counted in zip(
            row["input_ids"][start + 1 : stop], row["loss_mask"][start : stop - 1], strict=True
        )
    ]
    assert len(pairs) == sum(len(ids) - 1 for ids, _ in DOCUMENTS)
    assert all(is_counted == (label in counted) for label, is_counted in pairs)


def test_filter_of_modalities_keeps_masks(tmp_path: Path) -> None:
    filter_dataset(masked_pbin(tmp_path), tmp_path / "out.pbin", lambda item: item[0] % 2 == 1)
    assert masked_documents(tmp_path / "out.pbin") == DOCUMENTS[1::2]
    packtok.verify(tmp_path / "out.pbin")


def test_a_stream_does_not_drop_the_mask(tmp_path: Path) -> None:
    stream = CheckpointableDataset.from_pbin(masked_pbin(tmp_path))
    with pytest.raises(ValueError, match=r"a\.pbin: has a loss mask, which streams do not apply"):
        next(iter(stream))


def test_no_way_out_of_a_format_without_room_loses_the_mask_unasked(tmp_path: Path) -> None:
    packtok.convert(masked_pbin(tmp_path), tmp_path / "m" / "a", to="megatron")
    with pytest.raises(ValueError, match="records loss_mask, which packed-parquet cannot hold"):
        packtok.convert(tmp_path / "m" / "a", tmp_path / "p", to="packed-parquet", context_length=8)
    # Another mask of the same tokens is not taken for the one that was kept.
    changed = [(ids, [not is_counted for is_counted in mask]) for ids, mask in DOCUMENTS]
    other = masked_pbin(tmp_path, changed, name="b")
    with pytest.raises(packtok.PacktokError, match="document 0"):
        packtok.convert(other, tmp_path / "m" / "a", to="megatron", existing="skip")
    packtok.convert(tmp_path / "a.pbin", tmp_path / "m" / "a", to="megatron", existing="skip")


def test_tokens_and_mask_of_olmo_without_an_index_are_read(tmp_path: Path) -> None:
    ids = [token for ids, _ in DOCUMENTS for token in ids]
    mask = [is_counted for _, mask in DOCUMENTS for is_counted in mask]
    np.array(ids, np.uint16).tofile(tmp_path / "input_ids.npy")
    np.array(mask, np.bool_).tofile(tmp_path / "label_mask.npy")
    packtok.convert(tmp_path / "input_ids.npy", tmp_path / "a.pbin", to="pbin", input_dtype="uint16")
    assert masked_documents(tmp_path / "a.pbin") == [(ids, mask)]
    options: dict[str, Any] = {"input_dtype": "uint16", "existing": "replace"}
    with pytest.raises(ValueError, match="label_mask"):
        packtok.convert(tmp_path / "input_ids.npy", tmp_path / "label_mask", to="dolma", **options)


def test_shards_of_one_conversion_have_the_same_columns_and_files(tmp_path: Path) -> None:
    write_dolma(tmp_path / "x", "0", [([30, 31], [True, True])])
    (tmp_path / "x" / "labels_mask_0.npy").unlink()
    inputs = [masked_pbin(tmp_path), tmp_path / "x" / "token_ids_0.npy"]
    packtok.convert(inputs, tmp_path / "p", to="parquet", max_tokens=15)
    shards = sorted((tmp_path / "p").glob("*.parquet"))
    assert len(shards) == 2
    assert len({tuple(pyarrow.parquet.read_schema(shard).names) for shard in shards}) == 1
    packtok.convert(inputs, tmp_path / "d" / "a", to="dolma", max_tokens=15)
    assert len(list((tmp_path / "d" / "label_masks").iterdir())) == 2


def test_a_damaged_mask_is_found_where_it_is_used(tmp_path: Path) -> None:
    pbin = masked_pbin(tmp_path)
    packtok.convert(pbin, tmp_path / "d" / "a", to="datatrove")
    content = bytearray(pbin.read_bytes())
    sections = len(content) - 48 - 32
    content[int.from_bytes(content[sections + 8 : sections + 16], "little")] ^= 1
    pbin.write_bytes(content)
    calls: list[Any] = [
        lambda: packtok.TokenDataset(pbin, 4, verify=True)[0],
        lambda: packtok.convert(pbin, tmp_path / "o" / "a", to="datatrove"),
        lambda: packtok.reshape(pbin, tmp_path / "out.pbin", truncate=3),
        lambda: packtok.verify(pbin),
    ]
    for call in calls:
        with pytest.raises(packtok.PbinFormatError, match="CRC32C"):
            call()
    loss = tmp_path / "d" / "a.ds.loss"
    loss.write_bytes(b"\7" + loss.read_bytes()[1:])
    with pytest.raises(packtok.PbinFormatError, match="a byte of the loss mask is 7"):
        packtok.verify(tmp_path / "d" / "a.ds")


def test_inspect_says_that_there_is_a_mask(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    pbin = masked_pbin(tmp_path)
    assert "loss mask" in packtok_cli("inspect", pbin).stdout

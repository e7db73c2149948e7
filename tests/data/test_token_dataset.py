"""`TokenDataset`: every field compared with the naive oracle, and all access patterns of torch."""

from __future__ import annotations

import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pbins
import pytest
import reference_rows
from extent import extent
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs torch, which is not installed")

from torch.utils.data import ConcatDataset, DataLoader, RandomSampler, Subset, default_collate  # noqa: E402

import packtok  # noqa: E402
from packtok.collate import Item, ItemList, LossMaskingCollateFnWrapper, collate  # noqa: E402
from packtok.data.fields import document_mask  # noqa: E402
from packtok.data.token_dataset import TokenDataset  # noqa: E402

ALL_FIELDS: dict[str, Any] = {
    "position_ids": True,
    "document_ids": True,
    "cu_seqlens": True,
    "document_mask": "dense",
    "loss_mask": True,
}
DOCUMENTS = [[1, 2, 3, 9], [9], [], [4, 5, 9], [6, 7, 8, 10, 11, 12, 13, 14, 9], [15, 9], [16, 17, 9]]
EOD = 9


@pytest.fixture
def pbin(tmp_path: Path) -> Path:
    """Returns a file with short, long and empty documents."""
    return pbins.write(tmp_path / "train.pbin", DOCUMENTS, eod_id=EOD)


def check_batch(
    batch: dict[str, Any], rows: list[reference_rows.Row], dtype: torch.dtype = torch.int64
) -> None:
    """Compares every field of ``batch`` with rows of the oracle: values, shapes and dtypes."""
    for name in ("input_ids", "labels", "position_ids"):
        assert batch[name].dtype == dtype
        assert batch[name].tolist() == [getattr(row, name) for row in rows], name
    assert batch["document_ids"].dtype == torch.int32
    assert batch["document_ids"].tolist() == [row.document_ids for row in rows]
    assert batch["loss_mask"].dtype == torch.bool
    assert batch["loss_mask"].tolist() == [row.loss_mask for row in rows]
    lengths = [length for row in rows for length in row.segments]
    assert batch["cu_seqlens"].dtype == torch.int32
    assert batch["cu_seqlens"].tolist() == [0, *np.cumsum(lengths).tolist()]
    assert batch["max_seqlen"] == max(lengths)
    assert type(batch["max_seqlen"]) is int
    assert batch["document_mask"].dtype == torch.bool
    assert batch["document_mask"].tolist() == [naive_mask(row) for row in rows]


def naive_mask(row: reference_rows.Row) -> list[list[bool]]:
    """Returns the attention mask, from the lengths of segments alone."""
    owner = [number for number, length in enumerate(row.segments) for _ in range(length)]
    return [
        [owner[key] == owner[query] and key <= query for key in range(len(owner))]
        for query in range(len(owner))
    ]


def rows_of(
    packing: str, documents: list[list[int]], context_length: int, pad_token_id: int, *, aligned: bool = False
) -> list[reference_rows.Row]:
    if packing == "concat":
        return reference_rows.concat_rows(documents, context_length, aligned=aligned)
    return reference_rows.document_rows(documents, context_length, pad_token_id, aligned=aligned)


BEGIN, END = 1, 2
_MARKERS = {"b_include_to_loss_token": BEGIN, "e_include_to_loss_token": END}


@given(data=st.data())
@settings(max_examples=extent(300, 60), deadline=None)
def test_loss_markers_equal_a_loop_over_the_file(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("markers")
    # Most examples have few markers, so that rows begin in the middle of parts that count.
    ids = st.sampled_from([3, 4, 5, 6, 7, BEGIN, END])
    documents_of_a_file = st.lists(st.lists(ids, max_size=14), min_size=1, max_size=6)
    files = data.draw(st.lists(documents_of_a_file, min_size=1, max_size=2))
    packing = data.draw(st.sampled_from(["concat", "document", "best_fit"]))
    labels = data.draw(st.sampled_from(["shifted", "aligned"]))
    context_length = data.draw(st.integers(1, 6))
    documents = [document for file in files for document in file]
    if sum(map(len, documents)) <= context_length:
        return
    width = data.draw(st.sampled_from([1, 2, 4]))
    options: dict[str, Any] = {"packing": packing, "labels": labels, "loss_mask": True}
    # In a file of the same lengths whose tokens are their own numbers, each label shows its token.
    numbers = iter(range(100, 1 << 14))
    numbered = [[[next(numbers) for _ in document] for document in file] for file in files]
    masked, plain = (
        TokenDataset(
            [pbins.write(folder / f"{name}{i}.pbin", file, wide) for i, file in enumerate(contents)],
            context_length,
            cache_dir=folder / name,
            **options,
            **markers,
        ).__getitems__
        for name, contents, wide, markers in (
            ("a", files, width, {"loss_markers": (BEGIN, END)}),
            ("b", numbered, 2, {}),
        )
    )
    flat = [token for document in documents for token in document]
    counts = [flag for document in reference_rows.counted(documents, BEGIN, END) for flag in document]
    num_items = len(
        TokenDataset(sorted(folder.glob("b*.pbin")), context_length, packing=packing, cache_dir=folder / "b")
    )
    batch, numbers_of = masked(range(num_items)).batch, plain(range(num_items)).batch["labels"]
    is_counted = [[number >= 100 and counts[number - 100] for number in row] for row in numbers_of.tolist()]
    assert batch["loss_mask"].tolist() == is_counted
    assert batch["labels"].tolist() == [
        [
            flat[number - 100] if counts_here else -100
            for number, counts_here in zip(row, counted, strict=True)
        ]
        for row, counted in zip(numbers_of.tolist(), is_counted, strict=True)
    ]


def test_rows_that_begin_inside_an_answer_are_masked(tmp_path: Path) -> None:
    """Modalities' wrapper raises an error for such a row, or counts the wrong part of it."""
    documents = [[5, BEGIN, 6, 7, 8, 9, END, 5], [4, 4, BEGIN, 3, END, 4, 4, 4, 4]]
    path = pbins.write(tmp_path / "train.pbin", documents)
    dataset = TokenDataset(path, 4, loss_markers=(BEGIN, END))
    assert [dataset[i]["labels"].tolist() for i in range(4)] == [
        [-100, 6, 7, 8],
        [9, -100, -100, -100],
        [-100, -100, 3, -100],
        [-100, -100, -100, -100],
    ]
    theirs = LossMaskingCollateFnWrapper(collate, "labels", -100, _MARKERS)
    unmasked = TokenDataset(path, 4)
    with pytest.raises(ValueError, match="row 1 has an end marker without a begin marker at position 1"):
        theirs(unmasked.__getitems__(range(4)))


def test_loss_markers_in_a_mixture_and_in_workers(tmp_path: Path) -> None:
    documents = [[5, BEGIN, 6, 7, 8, 9, END, 5]] * 5
    path = pbins.write(tmp_path / "train.pbin", documents)
    marked = TokenDataset(path, 4, loss_markers=(BEGIN, END))
    expected = [marked[i]["labels"].tolist() for i in range(len(marked))]
    again = pickle.loads(pickle.dumps(marked))
    assert [again[i]["labels"].tolist() for i in range(len(again))] == expected
    other = TokenDataset(path, 4, loss_markers=(BEGIN, END))
    mixture = packtok.Mixture({marked: 1, other: 1}, num_items=4, shuffle=False)
    assert mixture.__getitems__([0, 1, 2, 3]).batch["labels"].tolist() == [  # type: ignore[union-attr]
        expected[i] for i in (0, 0, 1, 1)
    ]
    with pytest.raises(ValueError, match="create both with the same options"):
        packtok.Mixture({marked: 1, TokenDataset(path, 4): 1}, num_items=4)


def test_loss_markers_are_looked_up_in_the_tokenizer_of_the_file(tmp_path: Path) -> None:
    path = pbins.write(tmp_path / "train.pbin", [[5, 300, 6, 7, 301, 9]])
    with pytest.raises(ValueError, match="no tokenizer next to the file has the marker"):
        TokenDataset(path, 4, loss_markers=("<b>", 301))
    oracle.byte_level(tmp_path / "train.pbin.tokenizer.json", added=("<b>", "<e>"))
    dataset = TokenDataset(path, 5, loss_markers=("<b>", "<e>"))
    assert dataset[0]["labels"].tolist() == [-100, 6, 7, -100, -100]
    for markers, message in [
        (
            ("<b>", "<x>"),
            f"{path}.tokenizer.json: has no token '<x>'; give a marker that is one of its tokens",
        ),
        (
            ("<b>", 300),
            "loss_markers is ('<b>', 300): the begin and end markers have the same id 300; give two",
        ),
        ((1,), "loss_markers is (1,); expected two, the begin and the end marker"),
        ((1, -2), "loss_markers is -2, expected an integer from 0 to"),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            TokenDataset(path, 4, loss_markers=markers)  # type: ignore[arg-type]


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_every_field_equals_the_oracle(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("fields")
    width = data.draw(st.sampled_from([1, 2, 4]))
    ids = st.integers(0, min(256**width, 2**31) - 1)
    documents_of_a_file = st.lists(st.lists(ids, max_size=12), min_size=1, max_size=8)
    files = data.draw(st.lists(documents_of_a_file, min_size=1, max_size=3))
    packing = data.draw(st.sampled_from(["concat", "document"]))
    labels = data.draw(st.sampled_from(["shifted", "aligned"]))
    dtype = data.draw(st.sampled_from([torch.int64, torch.int32]))
    context_length = data.draw(st.integers(1, 9))
    documents = [document for file in files for document in file]
    rows = rows_of(packing, documents, context_length, 77, aligned=labels == "aligned")
    paths = [pbins.write(folder / f"{i}.pbin", file, width) for i, file in enumerate(files)]

    def make() -> TokenDataset:
        return TokenDataset(
            paths,
            context_length,
            packing=packing,
            labels=labels,
            dtype=dtype,
            pad_token_id=77,
            **ALL_FIELDS,
        )

    if not rows:
        with pytest.raises(ValueError, match=r"found \d+; lower"):
            make()
        return
    dataset = make()
    assert len(dataset) == len(rows)
    chosen = data.draw(st.lists(st.integers(-len(rows), len(rows) - 1), min_size=1, max_size=6))
    check_batch(dataset.__getitems__(chosen).batch, [rows[i] for i in chosen], dtype)
    i = chosen[0]
    check_batch(default_collate([dataset[i]]), [rows[i]], dtype)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_best_fit_serves_every_token_once_and_cuts_only_long_documents(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("best_fit")
    documents_of_a_file = st.lists(st.lists(st.integers(0, 250), max_size=12), min_size=1, max_size=8)
    files = data.draw(
        st.lists(documents_of_a_file, min_size=1, max_size=3).filter(lambda f: any(map(any, f)))
    )
    labels = data.draw(st.sampled_from(["shifted", "aligned"]))
    context_length = data.draw(st.integers(1, 9))
    paths = [pbins.write(folder / f"{i}.pbin", file) for i, file in enumerate(files)]
    dataset = TokenDataset(
        paths, context_length, packing="best_fit", labels=labels, pad_token_id=77, **ALL_FIELDS
    )

    documents = [document for file in files for document in file]
    first = {str(path): sum(map(len, files[:i])) for i, path in enumerate(paths)}
    blocks = [
        [(first[path] + number, start, stop) for path, number, start, stop in dataset.locate(i)]
        for i in range(len(dataset))
    ]
    served = sorted(piece for block in blocks for piece in block)
    expected = []
    for number, document in enumerate(documents):
        starts = range(0, len(document), context_length)
        expected += [(number, start, min(start + context_length, len(document))) for start in starts]
    assert served == expected
    rows = reference_rows.piece_rows(blocks, documents, context_length, 77, aligned=labels == "aligned")
    check_batch(dataset.__getitems__(range(len(dataset))).batch, rows)
    assert dataset.num_dropped_tokens == 0
    assert dataset.num_padding_tokens == len(dataset) * context_length - sum(map(len, documents))


def documents_of(dataset: TokenDataset) -> set[int]:
    """Returns the documents of one file that provide tokens to a dataset."""
    return {number for i in range(len(dataset)) for _, number, _, _ in dataset.locate(i)}


SPLITS: list[dict[str, Any]] = [
    {"validation_fraction": 0.3},
    {"validation_fraction": 0.3, "split_seed": 1},
    {"validation_last": 20},
    {"validation_last": 0.2},
    {"validation_from": 80},
]


@pytest.mark.parametrize("held_out", SPLITS, ids=str)
@pytest.mark.parametrize("packing", ["concat", "document", "best_fit"])
def test_sides_of_a_split_cover_all_documents(tmp_path: Path, held_out: dict[str, Any], packing: str) -> None:
    documents = [[i, i + 1, i * 7 % 250][: 1 + i % 3] for i in range(100)]
    path = pbins.write(tmp_path / "train.pbin", documents)
    whole = {"packing": "document", "context_length": 3}
    train, validation = (
        documents_of(TokenDataset(path, **whole, split=split, **held_out))
        for split in ("train", "validation")
    )
    assert train.isdisjoint(validation)
    assert train | validation == set(range(100))
    if "validation_fraction" in held_out:
        assert 10 < len(validation) < 50
    else:
        assert validation == set(range(80, 100))
    for split, chosen in (("train", train), ("validation", validation)):
        dataset = TokenDataset(
            path, 4, packing=packing, split=split, pad_token_id=0, **held_out, **ALL_FIELDS
        )
        batch = dataset.__getitems__(range(len(dataset))).batch
        selected = [documents[i] for i in sorted(chosen)]
        if packing == "best_fit":
            assert documents_of(dataset) == chosen
        else:
            check_batch(batch, rows_of(packing, selected, 4, 0))


def test_document_stays_on_its_side_when_data_is_added(tmp_path: Path) -> None:
    documents = [[i, i * 3 % 251, i * 7 % 241] for i in range(120)]
    sides = []
    for num_documents in (100, 120):
        path = pbins.write(tmp_path / f"{num_documents}.pbin", documents[:num_documents])
        dataset = TokenDataset(
            path, 4, packing="document", split="validation", validation_fraction=0.3, split_seed=5
        )
        sides.append(documents_of(dataset))
    assert sides[0] == {number for number in sides[1] if number < 100}


def test_split_needs_exactly_one_rule(pbin: Path) -> None:
    def message(**options: Any) -> str:
        with pytest.raises(ValueError, match="split is ") as caught:
            TokenDataset(pbin, 4, **options)
        return str(caught.value)

    rest = (
        "of validation_fraction, validation_last and validation_from are given; "
        "give one of them with a split, and none without"
    )
    assert message(split="train") == f"split is 'train' and 0 {rest}"
    assert message(validation_last=1) == f"split is None and 1 {rest}"
    assert message(split="validation", validation_last=1, validation_from=2) == (
        f"split is 'validation' and 2 {rest}"
    )
    assert message(split="test", validation_last=1).startswith("split is 'test', expected None, 'train' or")


def test_plans_and_splits_are_stored_in_cache_dir(tmp_path: Path, pbin: Path) -> None:
    options: dict[str, Any] = {"packing": "best_fit", "split": "train", "validation_last": 1}
    dataset = TokenDataset(pbin, 4, cache_dir=tmp_path / "cache", **options)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").iterdir()}
    assert len(kept) >= 2
    assert {path.name for path in tmp_path.iterdir()} == {"cache", "train.pbin"}
    again = TokenDataset(pbin, 4, cache_dir=tmp_path / "cache", **options)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").iterdir()} == kept
    assert again.fingerprint == dataset.fingerprint
    # A process that receives the dataset computes nothing again.
    assert len(pickle.dumps(dataset)) <= 2048
    sent = pickle.loads(pickle.dumps(dataset))
    assert sent[0]["input_ids"].tolist() == dataset[0]["input_ids"].tolist()


def test_side_without_documents_is_rejected(pbin: Path) -> None:
    num = len(DOCUMENTS)
    for split, rule, reason, remedy in (
        ("validation", {"validation_from": num}, f"validation_from is {num}", "hold out more"),
        ("train", {"validation_from": 0}, "validation_from is 0", "hold out fewer"),
        ("validation", {"validation_last": 0}, "validation_last is 0", "hold out more"),
        ("train", {"validation_last": 1.0}, "validation_last is 1.0", "hold out fewer"),
        ("validation", {"validation_fraction": 1e-9}, "validation_fraction is 1e-09", "hold out more"),
    ):
        text = (
            f"{pbin}: the {split} side of the split has none of the {num} documents, because {reason}; "
            f"{remedy}"
        )
        for packing in ("concat", "document", "best_fit"):
            with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
                TokenDataset(pbin, 4, packing=packing, split=split, **rule)  # type: ignore[arg-type]


def test_files_without_documents_are_rejected(tmp_path: Path) -> None:
    path = pbins.write(tmp_path / "a.pbin", [])
    text = f"{path}: no documents to make items of; pack some first"
    for packing in ("document", "best_fit"):
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            TokenDataset(path, 4, packing=packing)  # type: ignore[arg-type]


def test_too_few_tokens_are_reported_in_terms_of_context_length(tmp_path: Path) -> None:
    paths = [pbins.write(tmp_path / f"{name}.pbin", [[1, 2, 3], [4, 5]]) for name in "ab"]

    def message(paths: Any, context_length: int, **options: Any) -> str:
        with pytest.raises(ValueError, match="context_length") as caught:
            TokenDataset(paths, context_length, **options)
        return str(caught.value)

    why = "tokens (the inputs and the last label), found"
    remedy = "lower context_length, or add data"
    assert message(paths[0], 5) == f"{paths[0]}: context_length 5 needs 6 {why} 5; {remedy}"
    many = f"{paths[0]} and 1 more: context_length"
    assert message(paths, 10) == f"{many} 10 needs 11 {why} 10; {remedy}"
    assert message(paths, 5, by_file=True) == f"{many} 5 needs 6 {why} 5; {remedy}"
    held_out = {"split": "validation", "validation_last": 1}
    assert message(paths[0], 2, **held_out) == f"{paths[0]}: context_length 2 needs 3 {why} 2; {remedy}"
    assert message(paths, 2**30) == f"{many} 1073741824 needs 1073741825 {why} 10; {remedy}"
    assert message(paths, 2**24 + 1, packing="best_fit") == (
        "context_length is 16777217, expected 1 to 16777216"
    )
    for value in (0, -1, True, 4.0, "4", None, float("nan"), 2**31, 2**64):
        for packing in ("concat", "document", "best_fit"):
            assert message(paths, value, packing=packing) == (  # type: ignore[arg-type]
                f"context_length is {value!r}, expected an integer from 1 to 2147483647"
            )
    assert len(TokenDataset(paths[0], 4)) == 1


def test_optional_fields_are_returned_only_on_request(pbin: Path) -> None:
    assert list(TokenDataset(pbin, 4)[0]) == ["input_ids", "labels"]
    assert list(TokenDataset(pbin, 4, position_ids=True)[0]) == ["input_ids", "labels", "position_ids"]
    assert list(TokenDataset(pbin, 4, cu_seqlens=True)[0]) == [
        "input_ids",
        "labels",
        "cu_seqlens",
        "max_seqlen",
    ]
    assert list(TokenDataset(pbin, 4, loss_mask=True)[0]) == ["input_ids", "labels", "loss_mask"]
    compact = TokenDataset(pbin, 4, document_mask="compact")[0]
    assert compact["document_mask"].tolist() == [0, 0, 0, 0]
    assert compact["document_mask"].dtype == torch.int32


def test_item_has_the_documented_shapes(pbin: Path) -> None:
    item = TokenDataset(pbin, 4, **ALL_FIELDS)[1]
    shapes = {name: tuple(field.shape) for name, field in item.items() if name != "max_seqlen"}
    assert shapes == {
        "input_ids": (4,),
        "labels": (4,),
        "position_ids": (4,),
        "document_ids": (4,),
        "loss_mask": (4,),
        "cu_seqlens": (3,),
        "document_mask": (4, 4),
    }
    assert item["input_ids"].tolist() == [9, 4, 5, 9]
    assert item["cu_seqlens"].tolist() == [0, 1, 4]
    assert item["max_seqlen"] == 3


def test_indices_and_slices_work_as_in_a_list(pbin: Path) -> None:
    dataset = TokenDataset(pbin, 4)
    expected = [dataset[i]["input_ids"].tolist() for i in range(len(dataset))]
    for chosen in (slice(None), slice(1, 3), slice(None, None, -2), slice(5, 2), slice(-2, 100)):
        assert [item["input_ids"].tolist() for item in dataset[chosen]] == expected[chosen]
    assert dataset[-1]["input_ids"].tolist() == expected[-1]
    for i in (len(dataset), -len(dataset) - 1, 2**70):
        with pytest.raises((IndexError, OverflowError)):
            dataset[i]
    assert [item["input_ids"].tolist() for item in dataset] == expected


def test_padding_is_the_eod_of_the_files_by_default(tmp_path: Path, pbin: Path) -> None:
    unknown = pbins.write(tmp_path / "unknown.pbin", DOCUMENTS)
    first = {"packing": "document", "context_length": 6}
    assert TokenDataset(pbin, **first)[1]["input_ids"].tolist() == [EOD] * 6
    assert TokenDataset(unknown, **first)[1]["input_ids"].tolist() == [EOD, 0, 0, 0, 0, 0]
    assert TokenDataset(pbin, pad_token_id=3, **first)[1]["input_ids"].tolist() == [EOD, 3, 3, 3, 3, 3]


def test_dropped_and_padding_tokens_are_counted(pbin: Path) -> None:
    concat = TokenDataset(pbin, 4)
    num_tokens = sum(map(len, DOCUMENTS))
    assert concat.num_tokens == num_tokens
    assert concat.num_documents == len(DOCUMENTS)
    assert concat.num_dropped_tokens == num_tokens - (len(concat) * 4 + 1)
    assert concat.num_padding_tokens == 0
    document = TokenDataset(pbin, 4, packing="document")
    assert document.num_padding_tokens == sum(max(0, 4 - len(document)) for document in DOCUMENTS)
    assert document.num_dropped_tokens == sum(max(0, len(document) - 5) for document in DOCUMENTS)


def plain_batches(dataset: Any, **options: Any) -> list[dict[str, Any]]:
    """Returns all batches of torch's own loader, which must not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Python 3.12 warns about every fork of a process with threads, with any dataset.
        warnings.filterwarnings("ignore", message=".*use of fork.*", category=DeprecationWarning)
        return list(DataLoader(dataset, **options))


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": 0},
        {"num_workers": 2, "multiprocessing_context": "fork"},
        {"num_workers": 1, "multiprocessing_context": "spawn"},
        {"num_workers": 2, "multiprocessing_context": "fork", "collate_fn": packtok.collate.collate},
    ],
    ids=["no worker", "fork", "spawn", "fork and collate"],
)
def test_torch_loader_returns_the_batches(pbin: Path, options: dict[str, Any]) -> None:
    rows = reference_rows.concat_rows(DOCUMENTS, 3)
    batches = plain_batches(TokenDataset(pbin, 3, **ALL_FIELDS), batch_size=3, **options)
    assert len(batches) == -(-len(rows) // 3)
    for i, batch in enumerate(batches):
        check_batch(batch, rows[3 * i : 3 * i + 3])


def test_worker_fills_shared_memory_directly(pbin: Path) -> None:
    options = {"batch_size": 3, "num_workers": 1, "multiprocessing_context": "fork"}
    for batch in plain_batches(TokenDataset(pbin, 3, **ALL_FIELDS), **options):
        fields = [
            batch[name] for name in ("input_ids", "labels", "position_ids", "document_ids", "loss_mask")
        ]
        assert all(field.is_shared() for field in fields)
        # Fields in one piece of memory need one file descriptor per batch instead of five.
        assert len({field.untyped_storage().data_ptr() for field in fields}) == 1


def test_batches_pass_default_collation_without_a_copy(pbin: Path) -> None:
    items = TokenDataset(pbin, 3).__getitems__([0, 1, 2])
    batch = default_collate(items)
    assert type(batch) is dict
    assert batch["input_ids"].data_ptr() == items[0]["input_ids"].data_ptr()


def test_subsets_concatenations_and_samplers_give_the_same_rows(pbin: Path) -> None:
    dataset = TokenDataset(pbin, 3, **ALL_FIELDS)
    rows = reference_rows.concat_rows(DOCUMENTS, 3)
    [batch] = plain_batches(Subset(dataset, [4, 0, 2]), batch_size=3)
    check_batch(batch, [rows[4], rows[0], rows[2]])
    [batch] = plain_batches(Subset(dataset, torch.tensor([1, 3])), batch_size=2)
    check_batch(batch, [rows[1], rows[3]])
    [batch] = plain_batches(ConcatDataset([dataset, dataset]), batch_size=2 * len(rows))
    check_batch(batch, rows + rows)
    order = list(RandomSampler(dataset, generator=torch.Generator().manual_seed(3)))
    sampler = RandomSampler(dataset, generator=torch.Generator().manual_seed(3))
    [batch] = plain_batches(dataset, batch_size=len(rows), sampler=sampler)
    check_batch(batch, [rows[i] for i in order])


def test_without_batching_items_are_returned_one_by_one(pbin: Path) -> None:
    items = plain_batches(TokenDataset(pbin, 3), batch_size=None)
    assert [item["input_ids"].tolist() for item in items] == [
        row.input_ids for row in reference_rows.concat_rows(DOCUMENTS, 3)
    ]


def test_items_work_with_the_default_collator_of_hugging_face(pbin: Path) -> None:
    # The collator checks whether items are mappings, takes the names from the first and stacks tensors.
    items = TokenDataset(pbin, 3, labels="aligned").__getitems__([0, 2])
    assert isinstance(items, ItemList)
    assert all(isinstance(item, Item | dict) for item in items)
    stacked = {name: torch.stack([item[name] for item in items]) for name in items[0]}
    rows = [reference_rows.concat_rows(DOCUMENTS, 3, aligned=True)[i] for i in (0, 2)]
    assert stacked["labels"].tolist() == stacked["input_ids"].tolist() == [row.labels for row in rows]


def test_thousand_kept_batches_do_not_change(pbin: Path) -> None:
    dataset = TokenDataset(pbin, 3, **ALL_FIELDS)
    rows = reference_rows.concat_rows(DOCUMENTS, 3)
    chosen = [[k % len(rows), k * 7 % len(rows)] for k in range(1000)]
    kept = [dataset.__getitems__(items).batch for items in chosen]
    loader = iter(DataLoader(dataset, batch_sampler=chosen, num_workers=1, multiprocessing_context="fork"))
    by_worker = [next(loader) for _ in range(200)]
    for items, batch in zip(chosen, kept, strict=True):
        check_batch(batch, [rows[i] for i in items])
    for items, batch in zip(chosen, by_worker, strict=False):
        check_batch(batch, [rows[i] for i in items])


def test_rows_are_writable(pbin: Path) -> None:
    dataset = TokenDataset(pbin, 3)
    before = dataset[0]["input_ids"].tolist()
    batch = dataset.__getitems__([0, 1]).batch
    batch["input_ids"].zero_()
    batch["labels"].add_(1)
    assert dataset[0]["input_ids"].tolist() == before


def test_dataset_pickles_small_and_by_content(pbin: Path) -> None:
    dataset = TokenDataset(pbin, 3, **ALL_FIELDS)
    pickled = pickle.dumps(dataset)
    assert len(pickled) <= 2048
    again = pickle.loads(pickled)
    assert again.fingerprint == dataset.fingerprint
    check_batch(
        again.__getitems__([2, 0]).batch, [reference_rows.concat_rows(DOCUMENTS, 3)[i] for i in (2, 0)]
    )


def test_fingerprint_depends_on_items_and_not_on_fields(pbin: Path) -> None:
    prints = {
        TokenDataset(pbin, 3).fingerprint,
        TokenDataset(pbin, 4).fingerprint,
        TokenDataset(pbin, 3, packing="document").fingerprint,
        TokenDataset(pbin, 3, packing="best_fit").fingerprint,
        TokenDataset(pbin, 3, split="train", validation_last=2).fingerprint,
        TokenDataset(pbin, 3, split="train", validation_last=3).fingerprint,
        TokenDataset(pbin, 3, split="train", validation_fraction=0.2).fingerprint,
        TokenDataset(pbin, 3, split="train", validation_fraction=0.2, split_seed=1).fingerprint,
        TokenDataset(pbin, 3, by_file=True).fingerprint,
        TokenDataset([pbin, pbin], 3).fingerprint,
    }
    assert len(prints) == 10
    assert TokenDataset(pbin, 3, **ALL_FIELDS, dtype=torch.int32).fingerprint in prints


def test_locate_names_the_documents_of_an_item(pbin: Path) -> None:
    located = TokenDataset(pbin, 4).locate(1)
    assert located == [(str(pbin), 1, 0, 1), (str(pbin), 3, 0, 3), (str(pbin), 4, 0, 1)]


def test_document_mask_works_on_any_shape() -> None:
    assert document_mask(torch.tensor([0, 0, 1, -1, -1])).int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 1, 0],
        [0, 0, 0, 1, 1],
    ]
    assert document_mask(torch.zeros(2, 3, 4, dtype=torch.int32)).shape == (2, 3, 4, 4)


def test_invalid_options_are_rejected_by_name(pbin: Path) -> None:
    def message(**options: Any) -> str:
        with pytest.raises(ValueError, match=" is ") as caught:
            TokenDataset(pbin, **{"context_length": 4, **options})
        return str(caught.value)

    u31, u63, u64 = (f"expected an integer from 0 to {2**bits - 1}" for bits in (31, 63, 64))
    for pad in (-1, 2**31, True, 1.5, "0"):
        assert message(pad_token_id=pad) == f"pad_token_id is {pad!r}, {u31}"
    assert message(split="test") == "split is 'test', expected None, 'train' or 'validation'"
    for share in (-0.5, 2, float("nan"), True, "0.1"):
        assert message(split="train", validation_fraction=share) == (
            f"validation_fraction is {share!r}, expected a fraction from 0 to 1"
        )
    for share in (-0.5, 1.5, float("nan")):
        assert message(split="train", validation_last=share) == (
            f"validation_last is {share!r}, expected a fraction from 0 to 1"
        )
    for number in (-1, True, "1", 10**30):
        assert message(split="train", validation_last=number) == (
            f"validation_last is {number!r}, expected a number of documents as an int, or a fraction from "
            "0.0 to 1.0"
        )
    for number in (-1, True, 1.0, "1", 10**30):
        assert message(split="train", validation_from=number) == f"validation_from is {number!r}, {u63}"
    for seed in (-1, True, 1.0, "1", 2**64, None):
        assert message(split="train", validation_fraction=0.5, split_seed=seed) == (
            f"split_seed is {seed!r}, {u64}"
        )
    assert message(labels="left") == "labels is 'left', expected 'shifted' or 'aligned'"
    assert message(document_mask="on") == "document_mask is 'on', expected None, 'compact' or 'dense'"
    assert message(dtype=torch.int16) == "dtype is torch.int16, expected torch.int64 or torch.int32"
    assert message(packing="document", by_file=True) == (
        "by_file needs packing 'concat', but packing is 'document'; remove by_file"
    )
    assert message(packing="next_fit") == (
        "packing is 'next_fit', expected 'concat', 'document' or 'best_fit'"
    )


def test_evaluation_batches_can_be_empty(pbin: Path) -> None:
    batch = TokenDataset(pbin, 3, **ALL_FIELDS).__getitems__([]).batch
    assert batch["input_ids"].shape == (0, 3)
    assert batch["cu_seqlens"].tolist() == [0]
    # Five items are one more than the first batches of four ranks: the last step has no item for this rank.
    loader = packtok.DataLoader(
        Subset(TokenDataset(pbin, 3), range(5)), batch_size=1, at_epoch_end="short", rank=3, num_replicas=4
    )
    assert [batch["input_ids"].shape for batch in loader] == [(1, 3), (0, 3)]

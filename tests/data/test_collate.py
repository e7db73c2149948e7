"""Collators: Modalities' two as plain functions, and the one for items of `TokenDataset`."""

from __future__ import annotations

import functools
import pickle
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="collators make torch tensors")

from torch.utils.data import DataLoader, default_collate  # noqa: E402

import packtok  # noqa: E402
from packtok.collate import (  # noqa: E402
    Item,
    ItemList,
    collate,
    gpt_2_llm_collator,
    mask_loss_collator_wrapper,
)

BEGIN, END, IGNORED = 100, 101, -100
MARKERS = {"b_include_to_loss_token": BEGIN, "e_include_to_loss_token": END}
shifted = functools.partial(gpt_2_llm_collator, sample_key="input_ids", target_key="target_ids")


def items_of(rows: Sequence[Sequence[int]], dtype: str = "uint16") -> list[dict[str, np.ndarray]]:
    items = [{"input_ids": np.array(row, dtype)} for row in rows]
    for item in items:
        item["input_ids"].flags.writeable = False
    return items


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int32", "int64"])
def test_targets_are_one_token_later(dtype: str) -> None:
    high = int(np.iinfo(dtype).max) if dtype != "int64" else 2**40
    rows = [[1, 2, 3, high], [high, 5, 6, 7]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch = shifted(items_of(rows, dtype))
    assert batch.samples.keys() == {"input_ids"}
    assert batch.targets.keys() == {"target_ids"}
    samples, targets = batch.samples["input_ids"], batch.targets["target_ids"]
    assert samples.dtype == targets.dtype == torch.int64
    assert samples.tolist() == [row[:-1] for row in rows]
    assert targets.tolist() == [row[1:] for row in rows]


def test_dtype_of_samples_is_configurable() -> None:
    batch = shifted(items_of([[1, 2, 3]]), dtype=torch.int32)
    assert batch.samples["input_ids"].dtype == torch.int32
    assert batch.targets["target_ids"].tolist() == [[2, 3]]


def test_tensors_are_accepted_like_arrays() -> None:
    items = [{"input_ids": torch.tensor([1, 2, 3], dtype=torch.int32)}]
    assert shifted(items).targets["target_ids"].tolist() == [[2, 3]]


def test_rows_of_different_lengths_are_rejected() -> None:
    with pytest.raises(ValueError, match="same shape"):
        shifted(items_of([[1, 2, 3], [1, 2]]))


@pytest.mark.whole
def test_collator_works_in_spawned_workers() -> None:
    items = items_of([[i, i + 1, i + 2] for i in range(5)])
    loader = DataLoader(
        items, batch_size=2, collate_fn=shifted, num_workers=1, multiprocessing_context="spawn"
    )
    targets = [batch.targets["target_ids"].tolist() for batch in loader]
    assert targets == [[[1, 2], [2, 3]], [[3, 4], [4, 5]], [[5, 6]]]


def counted(row: list[int]) -> list[int]:
    """Returns the targets of a row that count for the loss; ValueError if spans nest or cross."""
    result, num_open = [], 0
    for i, token in enumerate(row):
        num_open += (i > 0 and row[i - 1] == BEGIN) - (token == END)
        if num_open not in (0, 1):
            raise ValueError
        result.append(token if num_open else IGNORED)
    return result


def masked(targets: list[list[int]]) -> list[list[int]]:
    wrapped = mask_loss_collator_wrapper(shifted, ["target_ids"], IGNORED, MARKERS)
    batch = wrapped(items_of([[0, *row] for row in targets]))
    assert batch.samples["input_ids"].tolist() == [[0, *row[:-1]] for row in targets]
    result: list[list[int]] = batch.targets["target_ids"].tolist()
    return result


def test_only_targets_between_markers_count() -> None:
    assert masked(
        [[5, BEGIN, 6, 7, END, 8, BEGIN, 9], [1, 2, 3, 4, 5, 6, 7, BEGIN], [BEGIN, END, *[4] * 6]]
    ) == [
        [IGNORED, IGNORED, 6, 7, IGNORED, IGNORED, IGNORED, 9],
        [IGNORED] * 8,
        [IGNORED] * 8,
    ]


@given(
    st.integers(1, 12).flatmap(
        lambda length: st.lists(
            st.lists(st.sampled_from([1, 2, BEGIN, END]), min_size=length, max_size=length),
            min_size=1,
            max_size=4,
        )
    )
)
@settings(max_examples=300, deadline=None)
def test_masks_equal_those_of_a_state_machine(targets: list[list[int]]) -> None:
    flat = [token for row in targets for token in row]
    if BEGIN not in flat or END not in flat:
        with pytest.warns(UserWarning, match="does not occur in the batch"):
            assert masked(targets) == [[IGNORED] * len(row) for row in targets]
        return
    try:
        expected = [counted(row) for row in targets]
    except ValueError:
        with pytest.raises(ValueError, match="markers must alternate"):
            masked(targets)
    else:
        assert masked(targets) == expected


@dataclass
class MaskTokens:
    """Like Modalities' class of the same purpose, has the markers as attributes."""

    b_include_to_loss_token: str
    e_include_to_loss_token: str


def test_class_has_the_arguments_and_attributes_of_modalities() -> None:
    class Tokenizer:
        def get_token_id(self, token: str) -> int:
            return {"<b>": BEGIN, "<e>": END}[token]

    wrapped = packtok.LossMaskingCollateFnWrapper(
        wrapped_collate_fn=shifted,
        target_keys_to_mask=["target_ids"],
        loss_ignore_index=-1,
        mask_tokens=MaskTokens("<b>", "<e>"),
        tokenizer=Tokenizer(),
    )
    assert (wrapped.b_mask_token_id, wrapped.e_mask_token_id) == (BEGIN, END)
    items = [{"input_ids": torch.tensor([0, 3, BEGIN, 4, END])}]
    assert wrapped(items).targets["target_ids"].tolist() == [[-1, -1, 4, -1]]
    again = pickle.loads(pickle.dumps(wrapped))
    assert again(items).targets["target_ids"].tolist() == [[-1, -1, 4, -1]]


def test_only_rank_0_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert masked([[1, 2]]) == [[IGNORED, IGNORED]]


def test_error_locates_markers_that_do_not_alternate() -> None:
    with pytest.raises(ValueError, match="markers") as caught:
        masked([[BEGIN, 1, END], [1, END, BEGIN]])
    assert str(caught.value) == (
        "target_ids: row 1 has an end marker without a begin marker at position 1; markers must alternate "
        "in each row, starting with a begin marker; put each conversation in its own row"
    )
    with pytest.raises(ValueError, match="row 0 has a second begin marker at position 1;"):
        masked([[BEGIN, BEGIN, 1, END]])


def test_missing_marker_is_warned_about() -> None:
    with pytest.warns(UserWarning, match="end marker") as caught:
        assert masked([[1, BEGIN, 2]]) == [[IGNORED] * 3]
    assert str(caught[0].message) == (
        "target_ids: the end marker, id 101, does not occur in the batch, so no token counts for the loss; "
        "check that the tokenizer encodes the marker as one token, also next to spaces"
    )


def test_markers_are_looked_up_in_the_tokenizer() -> None:
    class Packtok:
        def token_to_id(self, token: str) -> int | None:
            return {"<b>": BEGIN, "<e>": END}.get(token)

    class Modalities:
        def get_token_id(self, token: str) -> int:
            return {"<b>": BEGIN, "<e>": END}[token]

    class Transformers:
        unk_token_id = 0

        def convert_tokens_to_ids(self, token: str) -> int:
            return {"<b>": BEGIN, "<e>": END}.get(token, 0)

    markers = {"b_include_to_loss_token": "<b>", "e_include_to_loss_token": "<e>"}
    for tokenizer in (Packtok(), Modalities(), Transformers()):
        wrapped = mask_loss_collator_wrapper(shifted, ["target_ids"], IGNORED, markers, tokenizer)
        batch = wrapped(items_of([[0, BEGIN, 3, END]]))
        assert batch.targets["target_ids"].tolist() == [[IGNORED, 3, IGNORED]]
    for tokenizer in (Packtok(), Transformers(), None):
        with pytest.raises(
            ValueError, match="has no token '<b>x'; give a marker that is one of its tokens, or give"
        ):
            mask_loss_collator_wrapper(
                shifted, ["target_ids"], IGNORED, {**markers, "b_include_to_loss_token": "<b>x"}, tokenizer
            )


def test_equal_markers_are_rejected() -> None:
    markers = {"b_include_to_loss_token": 5, "e_include_to_loss_token": 5}
    with pytest.raises(ValueError, match="the begin and end markers have the same id 5"):
        mask_loss_collator_wrapper(shifted, ["target_ids"], IGNORED, markers)


def test_single_key_to_mask_is_not_split_into_letters() -> None:
    items = items_of([[0, BEGIN, 3, END]])
    single, listed = (
        mask_loss_collator_wrapper(shifted, keys, IGNORED, MARKERS)(items)
        for keys in ("target_ids", ["target_ids"])
    )
    assert (
        single.targets["target_ids"].tolist()
        == listed.targets["target_ids"].tolist()
        == [[IGNORED, 3, IGNORED]]
    )


def test_wrapper_pickles_and_masks_plain_dicts() -> None:
    wrapped = mask_loss_collator_wrapper(collate, ["labels"], IGNORED, MARKERS)
    items = [Item(input_ids=torch.tensor([1, 2, 3]), labels=torch.tensor([BEGIN, 5, END]))]
    batch = pickle.loads(pickle.dumps(wrapped))(items)
    assert batch["labels"].tolist() == [[IGNORED, 5, IGNORED]]
    assert batch["input_ids"].tolist() == [[1, 2, 3]]


def item(first: int, cu_seqlens: list[int]) -> Item:
    ids = torch.arange(first, first + cu_seqlens[-1])
    lengths = np.diff(cu_seqlens)
    return Item(
        input_ids=ids,
        labels=ids + 1,
        cu_seqlens=torch.tensor(cu_seqlens, dtype=torch.int32),
        max_seqlen=int(lengths.max()),
    )


def test_separate_items_become_a_batch() -> None:
    batch = collate([item(10, [0, 2, 5]), item(20, [0, 5]), item(30, [0, 1, 2, 5])])
    assert batch["input_ids"].tolist() == [list(range(n, n + 5)) for n in (10, 20, 30)]
    assert batch["labels"].tolist() == [list(range(n, n + 5)) for n in (11, 21, 31)]
    assert batch["cu_seqlens"].tolist() == [0, 2, 5, 10, 11, 12, 15]
    assert batch["cu_seqlens"].dtype == torch.int32
    assert batch["max_seqlen"] == 5
    assert list(batch) == ["input_ids", "labels", "cu_seqlens", "max_seqlen"]


def test_rows_of_a_batch_are_views_that_collate_to_the_same_batch() -> None:
    batch = collate([item(10, [0, 2, 5]), item(20, [0, 5]), item(30, [0, 1, 2, 5])])
    rows = ItemList(batch)
    assert collate(rows) is batch
    assert len(rows) == 3
    assert rows[1]["input_ids"].data_ptr() == batch["input_ids"][1].data_ptr()
    assert [row["cu_seqlens"].tolist() for row in rows] == [[0, 2, 5], [0, 5], [0, 1, 2, 5]]
    assert [row["max_seqlen"] for row in rows] == [3, 5, 3]
    again = collate(list(rows))
    for name, field in batch.items():
        assert torch.equal(torch.as_tensor(again[name]), torch.as_tensor(field)), name
    assert rows[-1]["input_ids"].tolist() == rows[2]["input_ids"].tolist()
    assert [row["input_ids"][0].item() for row in rows[::-2]] == [30, 10]
    with pytest.raises(IndexError):
        rows[3]


def test_torch_default_collation_uses_collate() -> None:
    batch = collate([item(10, [0, 2, 5]), item(20, [0, 5])])
    assert default_collate(ItemList(batch)) is batch
    separate = default_collate([item(10, [0, 2, 5]), item(20, [0, 5])])
    assert separate["cu_seqlens"].tolist() == [0, 2, 5, 10]
    assert separate["max_seqlen"] == 5


def test_incompatible_items_are_rejected() -> None:
    with pytest.raises(ValueError, match="no items to collate"):
        collate([])
    other = Item(input_ids=torch.arange(5))
    with pytest.raises(ValueError, match="item 1 has the fields input_ids, item 0 has input_ids, labels, "):
        collate([item(0, [0, 5]), other])
    with pytest.raises(ValueError, match="item 1 has 4 tokens, item 0 has 5; give both datasets the same"):
        collate([item(0, [0, 5]), item(0, [0, 4])])

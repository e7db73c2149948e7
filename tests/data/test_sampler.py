"""The samplers compared with plain lists: order, ranks, ends of epochs, positions and states."""

from __future__ import annotations

import itertools
import json
import pickle
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
import ranks
import reference_order
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from ranks import Numbers

from packtok import DataLoader, ResumableBatchSampler, ResumableDistributedSampler
from packtok.data import epochs
from packtok.distributed import Share, find_share

ENDS = ("drop", "carry", "pad", "short")
# The number exceeds the batches of any test.
MANY_EPOCHS = 100


def exactly(text):
    return f"^{re.escape(text)}$"


def modalities(num_items, rank, num_replicas, skip, drop_last):
    """Returns the items of a rank in sequence, as in Modalities' sampler."""
    items = list(range(num_items))[skip:]
    num_own = len(items) // num_replicas if drop_last else -(-len(items) // num_replicas)
    padded = (items + list(range(num_items)) * num_replicas)[: num_own * num_replicas]
    return padded[rank::num_replicas]


@given(st.integers(1, 40), st.integers(1, 7), st.integers(0, 40), st.booleans())
def test_items_in_sequence_equal_those_of_modalities(num_items, num_replicas, skip, drop_last):
    skip = min(skip, num_items)
    if not modalities(num_items, 0, num_replicas, skip, drop_last):
        with pytest.raises(ValueError, match=r"an epoch has no samples|leaves no batch of epoch 0"):
            ResumableDistributedSampler(Numbers(num_items), 0, num_replicas, 0, False, 0, drop_last, skip)
        return
    for rank in range(num_replicas):
        sampler = ResumableDistributedSampler(
            Numbers(num_items), rank, num_replicas, 0, False, 0, drop_last, skip
        )
        expected = modalities(num_items, rank, num_replicas, skip, drop_last)
        assert len(sampler) == len(expected)
        assert list(sampler) == expected


@given(
    num_items=st.integers(1, 50),
    batch_size=st.integers(1, 7),
    num_replicas=st.integers(1, 5),
    seed=st.one_of(st.none(), st.integers(0, 2**64 - 1)),
    end=st.sampled_from(ENDS),
    chunk=st.integers(1, 9),
)
def test_batches_equal_those_of_plain_lists(num_items, batch_size, num_replicas, seed, end, chunk):
    global_batch_size = batch_size * num_replicas
    if num_items < global_batch_size and end in ("drop", "carry"):
        with pytest.raises(ValueError, match="an epoch has no batch"):
            ResumableDistributedSampler(
                Numbers(num_items), 0, num_replicas, at_epoch_end=end, global_batch_size=global_batch_size
            )
        return
    every_epoch = reference_order.global_batches(
        num_items, global_batch_size, seed=seed, at_epoch_end=end, epochs=3
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epochs, "CHUNK_ITEMS", chunk)
        for rank in range(num_replicas):
            sampler = ResumableDistributedSampler(
                Numbers(num_items),
                rank,
                num_replicas,
                shuffle=seed is not None,
                seed=seed or 0,
                at_epoch_end=end,
                global_batch_size=global_batch_size,
            )
            batch_sampler = ResumableBatchSampler(sampler)
            for global_batches in every_epoch:
                expected = [batch[rank::num_replicas] for batch in global_batches]
                assert len(batch_sampler) == len(expected)
                assert list(batch_sampler) == expected
            sampler.set_epoch(0)
            for global_batches in every_epoch:
                expected = [item for batch in global_batches for item in batch[rank::num_replicas]]
                assert len(sampler) == len(expected)
                assert list(sampler) == expected


@given(
    num_items=st.integers(5, 50),
    global_batch_size=st.sampled_from([4, 12]),
    end=st.sampled_from(ENDS),
    stop=st.integers(0, 30),
    worlds=st.tuples(st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4])),
)
def test_state_resumes_exactly_with_any_number_of_ranks(num_items, global_batch_size, end, stop, worlds):
    assume(num_items >= global_batch_size or end in ("pad", "short"))
    every_epoch = reference_order.global_batches(
        num_items, global_batch_size, seed=9, at_epoch_end=end, epochs=MANY_EPOCHS
    )
    expected = [batch for batches in every_epoch for batch in batches]

    def samplers(num_replicas):
        return [
            ResumableBatchSampler(
                ResumableDistributedSampler(
                    Numbers(num_items),
                    rank,
                    num_replicas,
                    shuffle=True,
                    seed=9,
                    at_epoch_end=end,
                    global_batch_size=global_batch_size,
                )
            )
            for rank in range(num_replicas)
        ]

    before, after = samplers(worlds[0]), samplers(worlds[1])
    first = [steps(sampler, stop) for sampler in before]
    states = [json.loads(json.dumps(sampler.state_dict())) for sampler in before]
    assert all(state == states[0] for state in states)
    for _ in range(2):  # a state can be loaded more than once
        for sampler in after:
            sampler.load_state_dict(states[0])
        rest = [steps(sampler, 10) for sampler in after]
        assert woven(first) + woven(rest) == expected[: len(woven(first)) + len(woven(rest))]
    assert len(woven(first)) == stop


def steps(sampler, num):
    """Returns ``num`` batches, over as many epochs as needed."""
    batches = itertools.chain.from_iterable(iter(sampler) for _ in range(MANY_EPOCHS))
    return list(itertools.islice(batches, num))


def woven(batches_of_ranks):
    """Returns global batches from those of the ranks, row by row."""
    return [
        [row for row_of_ranks in itertools.zip_longest(*batches) for row in row_of_ranks if row is not None]
        for batches in zip(*batches_of_ranks, strict=True)
    ]


def test_trillion_items_take_no_memory():
    sampler = ResumableDistributedSampler(range(10**12), 3, 8, shuffle=True, seed=1)
    at = reference_order.permutation(10**12, 1, 0)
    assert list(itertools.islice(sampler, 5000)) == [at(3 + 8 * i) for i in range(5000)]
    assert len(sampler) == 10**12 // 8


def test_iterating_again_serves_the_next_epoch_even_after_a_break():
    sampler = ResumableDistributedSampler(Numbers(20), 0, 1, shuffle=True)
    assert list(sampler) == reference_order.shuffled(20, 0, 0)
    assert sampler.epoch == 1
    assert list(itertools.islice(sampler, 3)) == reference_order.shuffled(20, 0, 1)[:3]
    assert list(sampler) == reference_order.shuffled(20, 0, 2)


def test_unused_iterator_does_not_change_the_position():
    sampler = ResumableDistributedSampler(Numbers(20), 0, 1, shuffle=True)
    iter(sampler)
    assert list(sampler) == reference_order.shuffled(20, 0, 0)


def test_set_epoch_moves_to_the_start_of_any_epoch():
    sampler = ResumableDistributedSampler(Numbers(20), 0, 1, shuffle=True)
    for epoch in (5, 5, 0, 2**62):
        sampler.set_epoch(epoch)
        assert list(sampler) == reference_order.shuffled(20, 0, epoch)


def test_set_epoch_keeps_the_position_of_a_loaded_state():
    sampler = ResumableDistributedSampler(Numbers(20), 0, 1, shuffle=True)
    sampler.set_epoch(3)
    list(itertools.islice(sampler, 7))
    state = sampler.state_dict()
    again = ResumableDistributedSampler(Numbers(20), 0, 1, shuffle=True)
    again.load_state_dict(state)
    again.set_epoch(3)
    assert list(again) == reference_order.shuffled(20, 0, 3)[7:]
    again.load_state_dict(state)
    again.set_epoch(4)
    assert list(again) == reference_order.shuffled(20, 0, 4)


def test_samples_are_skipped_in_the_first_epoch_only():
    sampler = ResumableDistributedSampler(Numbers(10), 1, 2, epoch=4, skip_num_global_samples=6)
    assert len(sampler) == 2
    assert list(sampler) == [7, 9]
    assert len(sampler) == 5
    assert list(sampler) == [1, 3, 5, 7, 9]


def test_state_at_the_end_of_an_epoch_continues_with_the_next():
    sampler = ResumableDistributedSampler(Numbers(4), 0, 1, shuffle=True)
    list(itertools.islice(sampler, 4))
    state = sampler.state_dict()
    assert (state["epoch"], state["num_global_samples"]) == (0, 4)
    again = ResumableDistributedSampler(Numbers(4), 0, 1, shuffle=True)
    again.load_state_dict(state)
    assert list(again) == []
    assert list(again) == reference_order.shuffled(4, 0, 1)


def test_state_is_small_and_identifies_its_run():
    sampler = ResumableDistributedSampler(
        Numbers(20, "abc"), 1, 2, shuffle=True, seed=7, drop_last=True, batch_size=3
    )
    next(iter(ResumableBatchSampler(sampler)))
    assert sampler.state_dict() == {
        "version": 1,
        "order": 1,
        "data": "abc",
        "num_items": 20,
        "seed": 7,
        "global_batch_size": 6,
        "at_epoch_end": "drop",
        "epoch": 0,
        "num_global_samples": 6,
    }


def test_foreign_state_is_rejected_and_changes_nothing():
    sampler = ResumableDistributedSampler(Numbers(20, "abc"), 0, 2, shuffle=True, seed=7, batch_size=2)
    other = ResumableDistributedSampler(Numbers(21, "abd"), 0, 2, drop_last=True, batch_size=3)
    text = (
        "the state does not match: data is 'abd' in the state and 'abc' here; num_items is 21 in the state "
        "and 20 here; seed is None in the state and 7 here; global_batch_size is 6 in the state and 4 "
        "here; at_epoch_end is 'drop' in the state and 'pad' here; resume with the values of the state, or "
        "start without it"
    )
    with pytest.raises(ValueError, match=exactly(text)):
        sampler.load_state_dict(other.state_dict())
    text = (
        "the state has version 2, expected 1; load it with the release of packtok that saved it, or start "
        "without a state"
    )
    with pytest.raises(ValueError, match=exactly(text)):
        sampler.load_state_dict({**sampler.state_dict(), "version": 2, "more": 1})
    assert (sampler.epoch, sampler.position) == (0, 0)


NO_STATE = "not a state of a packtok sampler or loader: "
REMEDY = "; load what state_dict returned, or start without a state"
U63 = "expected an integer from 0 to 9223372036854775807"
FROM_1 = "expected an integer from 1 to 9223372036854775807"
U64 = "expected an integer from 0 to 18446744073709551615"
# Invalid fields for the state of 53 items in global batches of 12, and the error for each.
DAMAGED = [
    (
        "num_global_samples",
        10**9,
        "expected a multiple of 12, the global batch, up to 48, the end of epoch 1",
    ),
    (
        "num_global_samples",
        2**62,
        "expected a multiple of 12, the global batch, up to 48, the end of epoch 1",
    ),
    ("num_global_samples", 60, "expected a multiple of 12, the global batch, up to 48, the end of epoch 1"),
    ("num_global_samples", 18, "expected a multiple of 12, the global batch, up to 48, the end of epoch 1"),
    ("num_global_samples", 2**63, U63),
    ("num_global_samples", 10**40, U63),
    ("num_global_samples", -12, U63),
    ("num_global_samples", True, U63),
    ("num_global_samples", 12.0, U63),
    ("num_global_samples", float("nan"), U63),
    ("num_global_samples", "12", U63),
    ("num_global_samples", None, U63),
    ("num_global_samples", [12], U63),
    ("epoch", -1, U63),
    ("epoch", 2**63, U63),
    ("epoch", 1.0, U63),
    ("epoch", False, U63),
    ("version", True, U63),
    ("version", 1.0, U63),
    ("version", None, U63),
    ("order", True, U63),
    ("order", "1", U63),
    ("data", 3, "expected a string or None"),
    ("data", b"numbers", "expected a string or None"),
    ("num_items", 53.0, FROM_1),
    ("num_items", 0, FROM_1),
    ("num_items", -53, FROM_1),
    ("seed", 3.0, U64),
    ("seed", True, U64),
    ("seed", 2**64, U64),
    ("seed", -1, U64),
    ("global_batch_size", 0, FROM_1),
    ("global_batch_size", 12.0, FROM_1),
    ("global_batch_size", True, FROM_1),
    ("at_epoch_end", "stop", "expected 'drop', 'carry', 'pad' or 'short'"),
    ("at_epoch_end", None, "expected 'drop', 'carry', 'pad' or 'short'"),
    ("at_epoch_end", ["drop"], "expected 'drop', 'carry', 'pad' or 'short'"),
    ("skip_num_global_samples", -1, U63),
    ("skip_num_global_samples", 1.5, U63),
    ("num_replicas", 0, FROM_1),
    ("num_replicas", True, FROM_1),
]


def whole(kind, **options):
    """Returns a sampler, batch sampler or loader of 53 items, in the middle of its second epoch."""
    options = {"global_batch_size": 12, "shuffle": True, "seed": 3, "at_epoch_end": "drop", **options}
    if kind is DataLoader:
        made = DataLoader(Numbers(53), epoch=1, rank=0, num_replicas=1, **options)
        next(iter(made))
    else:
        made = ResumableDistributedSampler(Numbers(53), 0, 1, epoch=1, **options)
        made = made if kind is ResumableDistributedSampler else kind(made)
        list(itertools.islice(iter(made), 12 if kind is ResumableDistributedSampler else 1))
    assert (made.state_dict()["epoch"], made.state_dict()["num_global_samples"]) == (1, 12)
    return made


def served(made, kind):
    """Returns the remaining items of the epoch."""
    if kind is DataLoader:
        return [item for batch in made for item in ranks.rows(batch)]
    return list(made) if kind is ResumableDistributedSampler else [item for batch in made for item in batch]


KINDS = (DataLoader, ResumableBatchSampler, ResumableDistributedSampler)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_checked_and_a_rejected_state_changes_nothing(kind):
    made = whole(kind)
    good = made.state_dict()
    made.load_state_dict(good)
    for name, value, expected in DAMAGED:
        text = f"the state cannot be loaded: {name} is {value!r}, {expected}{REMEDY}"
        with pytest.raises(ValueError, match=exactly(text)):
            made.load_state_dict({**good, name: value})
        assert made.state_dict() == good
    for name in good:
        with pytest.raises(ValueError, match=exactly(f"{NO_STATE}it lacks {name}{REMEDY}")):
            made.load_state_dict({key: value for key, value in good.items() if key != name})
        assert made.state_dict() == good
    text = f"{NO_STATE}it lacks epoch, num_global_samples{REMEDY}"
    with pytest.raises(ValueError, match=exactly(text)):
        made.load_state_dict({k: v for k, v in good.items() if k not in ("epoch", "num_global_samples")})
    with pytest.raises(ValueError, match=exactly(f"{NO_STATE}'step', 3 is not a known field{REMEDY}")):
        made.load_state_dict({**good, "step": 1, 3: 4})
    for value in (None, [], "state", 3):
        text = f"the state is of type {type(value).__name__}, expected a dict; load what state_dict returned"
        with pytest.raises(ValueError, match=exactly(text)):
            made.load_state_dict(value)
    assert made.state_dict() == good
    assert served(made, kind) == reference_order.shuffled(53, 3, 1)[12:48]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("end", "last"), [("drop", 48), ("carry", 48), ("pad", 60), ("short", 60)])
def test_state_must_be_between_two_batches(kind, end, last):
    made = whole(kind, at_epoch_end=end)
    good = made.state_dict()
    for position in range(100):
        state = {**good, "num_global_samples": position}
        if position % 12 == 0 and position <= last:
            made.load_state_dict(state)
            assert made.state_dict() == state
            continue
        with pytest.raises(
            ValueError, match=f"^the state cannot be loaded: num_global_samples is {position},"
        ):
            made.load_state_dict(state)


def test_state_records_the_start_of_its_epoch_if_samples_were_skipped():
    def grown(**options):
        options = {"global_batch_size": 14, "shuffle": True, "seed": 3, "at_epoch_end": "drop", **options}
        return ResumableBatchSampler(ResumableDistributedSampler(Numbers(53), 0, 1, **options))

    first = grown(skip_num_global_samples=24)
    batches = iter(first)
    items = [next(batches)]
    state = json.loads(json.dumps(first.state_dict()))
    assert (state["num_global_samples"], state["skip_num_global_samples"]) == (38, 24)
    # The state counts, whether or not the resuming program passes skip_num_global_samples again.
    for again in (grown(), grown(skip_num_global_samples=24)):
        again.load_state_dict(state)
        assert len(again) == 2
        assert again.state_dict() == state
        assert items + list(again) == [reference_order.shuffled(53, 3, 0)[at : at + 14] for at in (24, 38)]
        assert "skip_num_global_samples" not in again.state_dict()
        assert list(again) == [reference_order.shuffled(53, 3, 1)[at : at + 14] for at in (0, 14, 28)]
    text = (
        "the state cannot be loaded: num_global_samples is 28, expected 24 plus a multiple of 14, the global "
        f"batch, up to 52, the end of epoch 0{REMEDY}"
    )
    with pytest.raises(ValueError, match=exactly(text)):
        grown().load_state_dict({**state, "num_global_samples": 28})
    text = (
        "the state cannot be loaded: skip_num_global_samples is 40, which leaves no batch of epoch 0: 53 "
        f"items, global batch 14; skip fewer, or start with epoch=1 and skip_num_global_samples=0{REMEDY}"
    )
    with pytest.raises(ValueError, match=exactly(text)):
        grown().load_state_dict({**state, "skip_num_global_samples": 40})


@pytest.mark.parametrize("end", ["pad", "drop", "short"])
def test_state_without_batch_size_records_ranks_and_loads_with_others(end):
    def samplers(num_replicas):
        return [
            ResumableDistributedSampler(Numbers(53), rank, num_replicas, shuffle=True, at_epoch_end=end)
            for rank in range(num_replicas)
        ]

    first, again = samplers(4), samplers(3)
    items = list(itertools.chain(*zip(*[itertools.islice(sampler, 5) for sampler in first], strict=True)))
    state = first[0].state_dict()
    assert (state["num_replicas"], state["num_global_samples"]) == (4, 20)
    for sampler in again:
        sampler.load_state_dict(state)
    rest = [list(sampler) for sampler in again]
    items += [item for row in itertools.zip_longest(*rest) for item in row if item is not None]
    num = {"pad": 53, "drop": 53, "short": 53}[end]
    assert items[:num] == reference_order.shuffled(53, 0, 0)[: len(items[:num])]
    for position in (22, 60, 10**9):
        with pytest.raises(ValueError, match=f"num_global_samples is {position}, expected a multiple of 4, "):
            again[0].load_state_dict({**state, "num_global_samples": position})


@pytest.mark.parametrize(
    ("num_items", "options", "text"),
    [
        (
            82,
            {"global_batch_size": 512, "at_epoch_end": "drop"},
            "an epoch has no batch: 82 items, global batch 512; lower global_batch_size, or set "
            "at_epoch_end='short'",
        ),
        (
            82,
            {"global_batch_size": 512, "at_epoch_end": "carry"},
            "an epoch has no batch: 82 items, global batch 512; lower global_batch_size, or set "
            "at_epoch_end='short'",
        ),
        (
            82,
            {"batch_size": 64, "rank": 0, "num_replicas": 2, "at_epoch_end": "drop"},
            "an epoch has no batch: 82 items, global batch 128 (batch_size 64 on 2 ranks); lower batch_size, "
            "or set at_epoch_end='short'",
        ),
        (
            0,
            {"at_epoch_end": "drop"},
            "the dataset, of type Numbers, has no items; check its files and options",
        ),
        (
            0,
            {"at_epoch_end": "short", "global_batch_size": 4},
            "the dataset, of type Numbers, has no items; check its files and options",
        ),
        (
            0,
            {"at_epoch_end": "pad"},
            "the dataset, of type Numbers, has no items; check its files and options",
        ),
        (
            10,
            {"at_epoch_end": "drop", "batch_size": 4, "skip_num_global_samples": 8},
            "skip_num_global_samples is 8, which leaves no batch of epoch 0: 10 items, global batch 4; "
            "skip fewer, or start with epoch=1 and skip_num_global_samples=0",
        ),
        (
            10,
            {"at_epoch_end": "pad", "batch_size": 4, "epoch": 6, "skip_num_global_samples": 10**9},
            "skip_num_global_samples is 1000000000, which leaves no batch of epoch 6: 10 items, global "
            "batch 4; skip fewer, or start with epoch=7 and skip_num_global_samples=0",
        ),
    ],
)
def test_epoch_without_a_batch_is_an_error_on_creation(num_items, options, text):
    for kind in (DataLoader, ResumableDistributedSampler):
        with pytest.raises(ValueError, match=exactly(text)):
            kind(Numbers(num_items), **options)


def test_ranks_without_samples_are_an_error_on_creation():
    text = "an epoch has no samples: 3 items, 8 ranks; use fewer ranks, or set at_epoch_end='pad'"
    for options in ({"drop_last": True}, {"at_epoch_end": "drop"}):
        with pytest.raises(ValueError, match=exactly(text)):
            ResumableDistributedSampler(Numbers(3), 0, 8, **options)
    assert [len(list(ResumableDistributedSampler(Numbers(3), rank, 8))) for rank in range(8)] == [1] * 8
    # Each item is served once. With fewer items than ranks, some ranks get none.
    short = [ResumableDistributedSampler(Numbers(3), rank, 8, at_epoch_end="short") for rank in range(8)]
    assert [list(sampler) for sampler in short] == [[0], [1], [2], [], [], [], [], []]


@given(
    num_items=st.integers(1, 40),
    batch_size=st.integers(1, 9),
    num_replicas=st.integers(1, 4),
    end=st.sampled_from(ENDS),
)
def test_every_valid_loader_has_a_batch_in_every_epoch(num_items, batch_size, num_replicas, end):
    try:
        sampler = ResumableDistributedSampler(
            Numbers(num_items), 0, num_replicas, batch_size=batch_size, at_epoch_end=end
        )
    except ValueError:
        assert end in ("drop", "carry")
        assert num_items < batch_size * num_replicas
        return
    batches = ResumableBatchSampler(sampler)
    assert all(list(batches) for _ in range(12))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"rank": 1}, "give both rank and num_replicas, or neither"),
        ({"rank": 2, "num_replicas": 2}, "rank is 2, expected 0 to 1"),
        ({"rank": 0, "num_replicas": 0}, "num_replicas is 0, expected at least 1"),
        ({"dp_dim": "dp"}, "dp_dim is a dimension of device_mesh, but device_mesh is not given"),
        ({"seed": -1, "shuffle": True}, f"seed is -1, expected an integer from 0 to {2**64 - 1}"),
        ({"seed": -1}, f"seed is -1, expected an integer from 0 to {2**64 - 1}"),
        ({"shuffle": "yes"}, "shuffle is 'yes', expected True or False"),
        ({"seed": True, "shuffle": True}, f"seed is True, expected an integer from 0 to {2**64 - 1}"),
        ({"epoch": 1.5}, f"epoch is 1.5, {U63}"),
        ({"epoch": True}, f"epoch is True, {U63}"),
        ({"skip_num_global_samples": True}, f"skip_num_global_samples is True, {U63}"),
        ({"rank": True, "num_replicas": 2}, "rank is True, expected an integer"),
        ({"rank": 0, "num_replicas": 2.0}, "num_replicas is 2.0, expected an integer"),
        ({"global_batch_size": 0}, f"global_batch_size is 0, {FROM_1}"),
        ({"global_batch_size": 4.0}, f"global_batch_size is 4.0, {FROM_1}"),
        ({"global_batch_size": True}, f"global_batch_size is True, {FROM_1}"),
        ({"batch_size": -2}, f"batch_size is -2, {FROM_1}"),
        ({"batch_size": "2"}, f"batch_size is '2', {FROM_1}"),
        (
            {"global_batch_size": 9, "rank": 0, "num_replicas": 2},
            "global_batch_size is 9, expected a multiple of the 2 ranks",
        ),
        (
            {"batch_size": 4, "global_batch_size": 9, "rank": 0, "num_replicas": 2},
            "batch_size 4 on 2 ranks is not global_batch_size 9; remove one of them",
        ),
        (
            {"drop_last": True, "at_epoch_end": "pad"},
            "drop_last contradicts at_epoch_end='pad'; remove one of them",
        ),
        ({"at_epoch_end": "carry"}, 'at_epoch_end="carry" needs a batch_size or global_batch_size'),
        (
            {"at_epoch_end": "stop"},
            "at_epoch_end is 'stop', expected 'drop', 'carry', 'pad' or 'short'",
        ),
        (
            {"at_epoch_end": "carry", "batch_size": 4, "skip_num_global_samples": 6},
            'skip_num_global_samples is 6; with at_epoch_end="carry" it must be a multiple of the global '
            "batch size 4, or samples would be left out",
        ),
    ],
)
def test_invalid_arguments_are_rejected(arguments, text):
    with pytest.raises(ValueError, match=exactly(text)):
        ResumableDistributedSampler(Numbers(10), **arguments)


def test_dataset_with_its_own_order_is_not_shuffled():
    dataset = Numbers(10)
    dataset.orders_itself = True
    text = "shuffle=True, but Numbers orders its items itself; remove shuffle and give the dataset a seed"
    with pytest.raises(ValueError, match=exactly(text)):
        ResumableDistributedSampler(dataset, 0, 1, shuffle=True)
    with pytest.raises(ValueError, match=exactly(text)):
        DataLoader(dataset, shuffle=True)
    assert list(ResumableDistributedSampler(dataset, 0, 1)) == list(range(10))


def test_rank_and_world_size_come_from_the_environment(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert find_share() == Share(0, 1)
    monkeypatch.setenv("RANK", "2")
    with pytest.raises(
        ValueError, match=exactly("the environment has RANK but not WORLD_SIZE; set both or neither")
    ):
        find_share()
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert find_share() == Share(2, 3)
    assert list(ResumableDistributedSampler(Numbers(9))) == [2, 5, 8]
    assert find_share(0, 1) == Share(0, 1)
    monkeypatch.setenv("RANK", "two")
    with pytest.raises(ValueError, match=exactly("RANK in the environment is 'two', expected a number")):
        find_share()
    monkeypatch.delenv("RANK")
    with pytest.raises(
        ValueError, match=exactly("the environment has WORLD_SIZE but not RANK; set both or neither")
    ):
        find_share()


def test_sampler_created_before_the_process_group_is_an_error(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    early, named = ResumableDistributedSampler(Numbers(9)), ResumableDistributedSampler(Numbers(9), 0, 1)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    text = (
        "the sampler was created for rank 0 of 1, but this process is now rank 1 of 2; create it after the "
        "process group, or give rank and num_replicas"
    )
    with pytest.raises(RuntimeError, match=exactly(text)):
        iter(early)
    assert list(named) == list(range(9))


def test_pickled_sampler_keeps_its_position():
    sampler = ResumableDistributedSampler(Numbers(20), 1, 2, shuffle=True, at_epoch_end="short")
    list(itertools.islice(sampler, 3))
    other = pickle.loads(pickle.dumps(sampler))
    assert other.state_dict() == sampler.state_dict()
    assert list(other) == list(sampler) == reference_order.shuffled(20, 0, 1)[1::2]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_sampler_works_in_a_plain_torch_loader_without_a_warning(num_workers):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sampler = ResumableDistributedSampler(Numbers(20), 1, 2, shuffle=True, batch_size=3)
        loader = torch.utils.data.DataLoader(
            Numbers(20), batch_size=3, sampler=sampler, num_workers=num_workers
        )
        items = [item for batch in loader for item in ranks.rows(batch)]
    (batches,) = reference_order.global_batches(20, 6, seed=0, at_epoch_end="pad", epochs=1)
    assert items == [item for batch in batches for item in batch[1::2]]


def mesh(names, sizes, coordinate):
    """Returns an object with the DeviceMesh methods that the sampler uses."""
    return SimpleNamespace(
        ndim=len(sizes),
        mesh_dim_names=names,
        size=lambda dim=None: sizes[dim],
        get_local_rank=lambda dim: coordinate[dim],
    )


def test_named_dimensions_of_a_mesh_divide_the_data():
    three = mesh(("replicate", "shard", "tp"), (2, 3, 4), (1, 2, 3))
    assert find_share(device_mesh=three, dp_dim="shard") == Share(2, 3)
    assert find_share(device_mesh=three, dp_dim=1) == Share(2, 3)
    assert find_share(device_mesh=three, dp_dim=("replicate", "shard")) == Share(5, 6)
    assert find_share(device_mesh=mesh(None, (4,), (3,))) == Share(3, 4)
    with pytest.raises(
        ValueError, match=exactly("the device mesh has no dimension 'dp'; it has replicate, shard, tp")
    ):
        find_share(device_mesh=three, dp_dim="dp")
    with pytest.raises(ValueError, match=exactly("the device mesh has no dimension 1; it has 0 to 0")):
        find_share(device_mesh=mesh(None, (4,), (3,)), dp_dim=1)
    text = "give either rank and num_replicas or device_mesh and dp_dim, not both"
    with pytest.raises(ValueError, match=exactly(text)):
        find_share(0, 1, device_mesh=three, dp_dim="tp")


def shares_with_a_mesh():
    """Returns the items of the samplers of four ranks in a mesh of two by two, and the warnings."""
    from torch.distributed.device_mesh import init_device_mesh

    alone = [repr(find_share())]
    two = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        forgotten = list(ResumableDistributedSampler(Numbers(8)))
        unnamed = list(ResumableDistributedSampler(Numbers(8), device_mesh=two))
    texts = [str(warning.message) for warning in caught]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named = list(ResumableDistributedSampler(Numbers(8), device_mesh=two, dp_dim="dp"))
    return ranks.gathered([alone, forgotten, unnamed, named, texts])


def test_mesh_without_a_named_dimension_is_warned_about(tmp_path: Path):
    results = ranks.run_ranks(4, tmp_path / "ranks", shares_with_a_mesh)
    for rank, (alone, forgotten, unnamed, named, texts) in enumerate(results):
        assert alone == [repr(Share(rank, 4))]
        assert forgotten == unnamed == [rank, rank + 4]
        assert named == [item for item in range(8) if item % 2 == rank // 2]
        text = (
            "a device mesh (dp, tp) is in use but no data-parallel dimension is given, so each of the 4 "
            "ranks gets different items, including ranks that hold parts of one model and need the same "
            "items; pass device_mesh and dp_dim"
        )
        assert texts == [text, text]

"""The loader: epochs, exact resume in real processes, uneven ranks, locating documents."""

from __future__ import annotations

import copy
import itertools
import json
import multiprocessing
import pickle
import re
import signal
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
import ranks
import reference_order
import torch
import torch.distributed as dist
from extent import extent
from ranks import Numbers, rows

from packtok import DataLoader, ResumableBatchSampler, ResumableDistributedSampler

ENDS = ("drop", "carry", "pad", "short")
NUM_ITEMS = 53
GLOBAL_BATCH_SIZE = 12
NUM_STEPS = 11


def expected_steps(end: str, num_steps: int = NUM_STEPS) -> list[list[int]]:
    """Returns the first steps of a shuffled run over some epochs."""
    every_epoch = reference_order.global_batches(
        NUM_ITEMS, GLOBAL_BATCH_SIZE, seed=3, at_epoch_end=end, epochs=4
    )
    return [batch for batches in every_epoch for batch in batches][:num_steps]


def loader(end: str = "drop", **options: Any) -> DataLoader:
    return DataLoader(
        Numbers(NUM_ITEMS),
        global_batch_size=GLOBAL_BATCH_SIZE,
        shuffle=True,
        seed=3,
        at_epoch_end=end,
        **options,
    )


def take(data_loader: DataLoader, num: int) -> list[list[int]]:
    """Returns the rows of ``num`` batches, over as many epochs as needed."""
    batches = itertools.chain.from_iterable(iter(data_loader) for _ in range(num + 1))
    return [rows(batch) for batch in itertools.islice(batches, num)]


# Each entry is the setup before the stop, the step of the stop, and the setup after it. A setup is ranks,
# workers, prefetched batches.
GRID = [
    ((1, 0, None), 0, (2, 1, 2)),
    ((1, 3, 4), 1, (1, 0, None)),
    ((2, 0, None), 2, (4, 0, None)),
    ((2, 3, 2), 3, (3, 1, 2)),
    ((3, 1, 8), 4, (1, 3, 2)),
    ((4, 1, 2), 5, (2, 3, 8)),
    ((4, 0, None), 7, (4, 1, 4)),
    ((1, 1, 2), 9, (3, 0, None)),
]
# In CI, each end runs with every second entry of the grid, and each entry with two ends.
RUNS = [
    (end, how) for i, end in enumerate(ENDS) for j, how in enumerate(GRID) if extent(True, (i + j) % 2 == 0)
]


def stop_and_go_on(runs: list[Any]) -> list[Any]:
    """Returns, on every rank, the rows of each run before and after its stop, and the states.

    All runs up to their stop come first, so that few workers are forked right after a collective, whose
    thread may hold a lock of Python at that moment.
    """
    stopped = ranks.gathered([run_part(end, before, None, stop) for end, (before, stop, _) in runs])
    states = [[rank[run][1] for rank in stopped if rank[run][1] is not None] for run in range(len(runs))]
    rest = ranks.gathered(
        [
            run_part(end, after, states[run][0], NUM_STEPS - stop)[0]
            for run, (end, (_, stop, after)) in enumerate(runs)
        ]
    )
    return [
        ([rank[run][0] for rank in stopped], states[run], [rank[run] for rank in rest])
        for run in range(len(runs))
    ]


def run_part(end: str, how: Any, state: Any, num_steps: int) -> tuple[Any, Any]:
    """Returns the rows and the state of this rank, if it takes part."""
    num_ranks, num_workers, prefetch_factor = how
    if dist.get_rank() >= num_ranks:
        return None, None
    part = loader(
        end,
        rank=dist.get_rank(),
        num_replicas=num_ranks,
        num_workers=num_workers,
        prefetch_factor=prefetch_factor,
        persistent_workers=num_workers == 3,
        multiprocessing_context="fork" if num_workers else None,
    )
    if state is not None:
        part.load_state_dict(state)
    return take(part, num_steps), part.state_dict()


def woven(rows_of_ranks: list[Any]) -> list[list[int]]:
    """Returns global batches from the rows of the ranks that took part."""
    taking = [steps for steps in rows_of_ranks if steps is not None]
    return [
        [row for row_of_ranks in itertools.zip_longest(*step) for row in row_of_ranks if row is not None]
        for step in zip(*taking, strict=True)
    ]


def test_stopped_run_resumes_exactly_with_any_number_of_processes(tmp_path: Path) -> None:
    results = ranks.run_ranks(4, tmp_path / "ranks", stop_and_go_on, RUNS)
    for (end, (before, stop, after)), (first, states, rest) in zip(RUNS, results, strict=True):
        assert woven(first) + woven(rest) == expected_steps(end), (end, before, stop, after)
        assert len(states) == before[0]
        assert all(state == states[0] for state in states)


def evaluate_with_a_collective(num_items: int) -> list[Any]:
    """Returns each rank's rows of an evaluation with a collective in every step, and its counts."""
    data_loader = DataLoader(Numbers(num_items), 2, at_epoch_end="short")
    sums, items = [], []
    for batch in data_loader:
        items.append(rows(batch))
        counted = torch.tensor([len(batch["x"]), batch["x"].sum()])
        dist.all_reduce(counted)
        sums.append(counted.tolist())
    return ranks.gathered((len(data_loader), items, sums))


def evaluate_all() -> list[Any]:
    return [evaluate_with_a_collective(num_items) for num_items in (1, 2, 5, 6, 7, 10, 12, 13)]


def test_evaluation_serves_each_item_once_with_equal_steps_on_all_ranks(tmp_path: Path) -> None:
    results = ranks.run_ranks(3, tmp_path / "ranks", evaluate_all)
    for num_items, result in zip((1, 2, 5, 6, 7, 10, 12, 13), results, strict=True):
        num_steps = -(-num_items // 6)
        for rank, (length, items, sums) in enumerate(result):
            assert length == len(items) == num_steps
            assert [item for batch in items for item in batch] == list(range(rank, num_items, 3))
            assert [number for number, _ in sums] == [6] * (num_items // 6) + [num_items % 6] * (
                num_items % 6 > 0
            )
            assert sum(total for _, total in sums) == sum(range(num_items))


@pytest.mark.parametrize(("context", "num_workers"), [("fork", 2), *extent([("spawn", 1)], [])])
def test_prefetched_batches_that_were_not_returned_do_not_count(context: str, num_workers: int) -> None:
    first = loader(num_workers=num_workers, prefetch_factor=4, multiprocessing_context=context)
    batches = iter(first)
    assert first.state_dict()["num_global_samples"] == 0
    served = [rows(next(batches)), rows(next(batches))]
    assert first.state_dict()["num_global_samples"] == 2 * GLOBAL_BATCH_SIZE
    again = loader()
    again.load_state_dict(first.state_dict())
    assert served + take(again, NUM_STEPS - 2) == expected_steps("drop")
    assert served + [rows(batch) for batch in batches] == expected_steps("drop")[:4]


@pytest.mark.parametrize(("num_workers", "persistent"), [(0, False), (1, False), (1, True)])
def test_iterating_again_serves_the_next_epoch_even_after_a_break(num_workers: int, persistent: bool) -> None:
    data_loader = loader(num_workers=num_workers, persistent_workers=persistent)
    steps = expected_steps("drop")
    assert len(data_loader) == 4
    assert [rows(batch) for batch in data_loader] == steps[:4]
    assert data_loader.epoch == 1
    for batch in data_loader:
        assert rows(batch) == steps[4]
        break
    assert [rows(batch) for batch in data_loader] == expected_steps("drop", 12)[8:]
    data_loader.set_epoch(0)
    assert [rows(batch) for batch in data_loader] == steps[:4]


def test_unused_iterator_does_not_change_the_position() -> None:
    data_loader = loader(num_workers=1)
    iter(data_loader)
    assert take(data_loader, 4) == expected_steps("drop")[:4]


def test_frameworks_can_set_the_epoch_of_the_sampler() -> None:
    data_loader = loader()
    assert isinstance(data_loader.batch_sampler, ResumableBatchSampler)
    data_loader.batch_sampler.sampler.set_epoch(1)
    assert take(data_loader, 4) == expected_steps("drop")[4:8]


def test_state_can_be_loaded_repeatedly_and_is_one_line_of_json() -> None:
    first = loader()
    take(first, 6)
    text = json.dumps(first.state_dict())
    assert len(text) < 300
    again = loader()
    for _ in range(2):
        again.load_state_dict(json.loads(text))
        assert take(again, NUM_STEPS - 6) == expected_steps("drop")[6:]
    assert first.state_dict() == json.loads(text)


def test_checkpoint_with_the_state_loads_with_weights_only(tmp_path: Path) -> None:
    first = loader()
    take(first, 5)
    torch.save({"loader": first.state_dict()}, tmp_path / "checkpoint.pt")
    again = loader()
    again.load_state_dict(torch.load(tmp_path / "checkpoint.pt", weights_only=True)["loader"])
    assert take(again, NUM_STEPS - 5) == expected_steps("drop")[5:]


def test_state_of_another_run_is_rejected_key_by_key() -> None:
    other = DataLoader(Numbers(60, "other"), 5, seed=1, at_epoch_end="pad")
    text = (
        "the state does not match: data is 'other' in the state and 'numbers' here; num_items is 60 in the "
        "state and 53 here; seed is None in the state and 3 here; global_batch_size is 5 in the state and "
        "12 here; at_epoch_end is 'pad' in the state and 'drop' here; resume with the values of the state, "
        "or start without it"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        loader().load_state_dict(other.state_dict())


def test_run_continues_with_a_larger_batch_at_a_given_position() -> None:
    first = loader()
    take(first, 2)
    state = first.state_dict()
    grown = DataLoader(
        Numbers(NUM_ITEMS),
        global_batch_size=14,
        shuffle=True,
        seed=3,
        epoch=state["epoch"],
        skip_num_global_samples=state["num_global_samples"],
    )
    items = reference_order.shuffled(NUM_ITEMS, 3, 0)
    assert len(grown) == 2
    assert [rows(batch) for batch in grown] == [items[24:38], items[38:52]]
    assert rows(next(iter(grown))) == reference_order.shuffled(NUM_ITEMS, 3, 1)[:14]


@pytest.mark.parametrize("end", ENDS)
def test_locate_returns_the_documents_of_a_step(end: str) -> None:
    data_loader = loader(end, rank=1, num_replicas=3)
    epochs = [4, 4, 5, 4] if end == "carry" else [4 if end == "drop" else 5] * 4
    numbers = [(epoch, step) for epoch, num in enumerate(epochs) for step in range(num)]
    for step, items in enumerate(expected_steps(end)):
        expected = [
            {
                "epoch": numbers[step][0],
                "rank": place % 3,
                "row": place // 3,
                "item": item,
                "documents": [("numbers.pbin", item, 10 * item, 10 * item + 10)],
            }
            for place, item in enumerate(items)
        ]
        assert data_loader.locate(step) == expected
        assert data_loader.locate(numbers[step][1], epoch=numbers[step][0]) == expected
    assert data_loader.state_dict()["num_global_samples"] == 0


def test_nonexistent_steps_are_index_errors() -> None:
    data_loader = loader()
    for step in (-1, 4):
        with pytest.raises(IndexError, match=f"^no step {step}"):
            data_loader.locate(step, epoch=0)
    with pytest.raises(IndexError, match=r"^no step 4: epoch 2 has 4$"):
        data_loader.locate(4, epoch=2)
    for step, epoch, text in (
        (1.0, None, "step is 1.0, expected an integer"),
        (True, None, "step is True, expected an integer"),
        (0, -1, "epoch is -1, expected an integer from 0 to 9223372036854775807"),
    ):
        with pytest.raises(ValueError, match=f"^{text}$"):
            data_loader.locate(step, epoch=epoch)


def test_datasets_without_locate_are_named() -> None:
    data_loader = DataLoader(torch.arange(10), 2)
    with pytest.raises(TypeError, match=r"^Tensor has no method locate; use a dataset of packtok$"):
        data_loader.locate(0)


def test_batches_without_rows_have_every_field() -> None:
    def collate(items: list[Any]) -> Any:
        numbers = torch.stack([item["x"] for item in items])
        return {"pair": (numbers, [numbers.float()]), "square": numbers[:, None] * torch.ones(1, 4)}

    data_loader = DataLoader(Numbers(1), 1, rank=1, num_replicas=2, at_epoch_end="short", collate_fn=collate)
    (batch,) = data_loader
    assert batch["pair"][0].tolist() == []
    assert batch["pair"][0].dtype == torch.int64
    assert batch["pair"][1][0].dtype == torch.float32
    assert batch["square"].shape == (0, 4)


def test_loader_copies_and_pickles_with_its_position() -> None:
    first = loader()
    take(first, 6)
    for other in (copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        assert other.state_dict() == first.state_dict()
        other.load_state_dict(first.state_dict())
        assert take(other, NUM_STEPS - 6) == expected_steps("drop")[6:]


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("stop", extent([1, 3, 4, 5, 9], [1, 4]))
@pytest.mark.parametrize("batched", [True, False])
def test_torchdata_keeps_the_state_of_the_samplers(num_workers: int, stop: int, batched: bool) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def made() -> Any:
        sampler = ResumableDistributedSampler(
            Numbers(NUM_ITEMS),
            0,
            1,
            shuffle=True,
            seed=3,
            at_epoch_end="drop",
            global_batch_size=GLOBAL_BATCH_SIZE,
        )
        how = (
            {"batch_sampler": ResumableBatchSampler(sampler)}
            if batched
            else {"sampler": sampler, "batch_size": GLOBAL_BATCH_SIZE}
        )
        return stateful.StatefulDataLoader(Numbers(NUM_ITEMS), num_workers=num_workers, **how)

    first = made()
    served = []
    for _ in range(4):
        for batch in first:
            served.append(rows(batch))
            if len(served) == stop:
                break
        if len(served) == stop:
            break
    again = made()
    again.load_state_dict(first.state_dict())
    assert served + take(again, NUM_STEPS - stop) == expected_steps("drop")


@pytest.mark.parametrize("num_workers", [0, 1])
def test_loader_emits_no_warnings(num_workers: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data_loader = loader(num_workers=num_workers)
        take(data_loader, 5)
        data_loader.load_state_dict(data_loader.state_dict())
        take(data_loader, 2)


class Announced(Numbers):
    """A dataset that records the items it should prefetch."""

    def __init__(self, num_items: int) -> None:
        super().__init__(num_items)
        self.items: list[int] = []

    def prefetch(self, items: list[int]) -> None:
        self.items += items


def test_read_ahead_prefetches_batches_early_without_changing_them() -> None:
    plain = [rows(batch) for batch in DataLoader(Numbers(NUM_ITEMS), 4, shuffle=True)]
    dataset = Announced(NUM_ITEMS)
    ahead = DataLoader(dataset, 4, shuffle=True, read_ahead=2)
    for step, batch in enumerate(ahead):
        assert rows(batch) == plain[step]
        assert dataset.items == list(itertools.chain(*plain[: step + 3]))
        if step == 5:
            state = ahead.state_dict()
    assert len(ahead) == len(plain)
    rest = DataLoader(Announced(NUM_ITEMS), 4, shuffle=True, read_ahead=3)
    rest.load_state_dict(state)
    assert [rows(batch) for batch in rest] == plain[6:]


def test_read_ahead_needs_a_dataset_with_prefetch() -> None:
    message = re.escape("read_ahead is 2, but Numbers has no method prefetch; use a dataset of packtok")
    with pytest.raises(TypeError, match=f"^{message}$"):
        DataLoader(Numbers(5), read_ahead=2)
    for value in (-1, True, 1.5):
        text = f"read_ahead is {value!r}, expected an integer from 0 to 9223372036854775807"
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            DataLoader(Announced(5), read_ahead=value)


class Broken:
    """The iterator of torch if a broken connection is noticed before the system has ended the worker."""

    def __init__(self, workers: list[Any]) -> None:
        self._workers = workers

    def __iter__(self) -> Broken:
        return self

    def __next__(self) -> Any:
        # The worker dies after the error, as in torch.
        self._workers[0].kill()
        raise ConnectionResetError(104, "Connection reset by peer")


def test_a_killed_worker_is_named() -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=signal.pause, daemon=True) for _ in range(2)]
    for worker in workers:
        worker.start()
    with pytest.raises(
        RuntimeError,
        match=rf"^DataLoader worker \(pid {workers[0].pid}\) was killed by SIGKILL; start again from the "
        "last "
        "state$",
    ):
        list(loader()._count_batches(iter(Broken(workers)), 0, 0))
    workers[1].kill()

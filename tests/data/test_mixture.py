"""`Mixture`: exact proportions, passes over sources, and batches from several sources."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pbins
import pytest
import reference_order
from extent import extent
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs torch, which is not installed")

from torch.utils.data import DataLoader, Dataset, default_collate  # noqa: E402

import packtok  # noqa: E402
from packtok import Mixture, TokenDataset, _packtok  # noqa: E402
from packtok.data.weights import exact_weights  # noqa: E402

U64 = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15


class Numbered(Dataset[tuple[str, int]]):
    """A dataset whose items name their source and index."""

    def __init__(self, name: str, num_items: int) -> None:
        self.name, self.num_items = name, num_items

    def __len__(self) -> int:
        return self.num_items

    def __getitem__(self, i: int) -> tuple[str, int]:
        if not 0 <= i < self.num_items:
            raise IndexError(i)
        return self.name, i


def mixed(word: int) -> int:
    """The output function of SplitMix64."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & U64
    word = (word ^ word >> 27) * 0x94D049BB133111EB & U64
    return word ^ word >> 31


def expected_items(sources: Sequence[int], lengths: Sequence[int], seed: int) -> list[tuple[int, int]]:
    """Returns the item of each source for a sequence of sources, pass after pass."""
    counts = [0] * len(lengths)
    items = []
    for source in sources:
        epoch, position = divmod(counts[source], lengths[source])
        counts[source] += 1
        source_seed = mixed(seed + (source + 1) * GAMMA & U64)
        items.append((source, reference_order.permutation(lengths[source], source_seed, epoch)(position)))
    return items


def largest_error(sources: Sequence[int], weights: Sequence[Fraction]) -> Fraction:
    """Returns the largest distance of any source from its share after any number of items."""
    counts, worst = [0] * len(weights), Fraction(0)
    for k, source in enumerate(sources, start=1):
        counts[source] += 1
        worst = max(worst, *(abs(count - k * w) for count, w in zip(counts, weights, strict=True)))
    return worst


@given(
    weights=st.lists(st.integers(1, 10**9), min_size=1, max_size=7),
    lengths=st.lists(st.integers(1, 40), min_size=7, max_size=7),
    seed=st.integers(0, U64),
)
@settings(max_examples=60, deadline=None)
def test_shares_are_exact_and_passes_equal_the_oracle(
    weights: list[int], lengths: list[int], seed: int
) -> None:
    lengths = lengths[: len(weights)]
    mixture = _packtok.Mixture(weights, lengths=lengths, seed=seed)
    sources, items = (array.tolist() for array in mixture.draws(range(300)))
    shares = [Fraction(weight, sum(weights)) for weight in weights]
    assert largest_error(sources, shares) < 1
    assert list(zip(sources, items, strict=True)) == expected_items(sources, lengths, seed)
    assert mixture.counts(300) == [sources.count(source) for source in range(len(weights))]


@given(
    weights=st.lists(st.integers(1, 10**6), min_size=1, max_size=5),
    items=st.lists(st.integers(0, 5000), min_size=1, max_size=20),
)
@settings(max_examples=40, deadline=None)
def test_random_access_equals_sequential_order(weights: list[int], items: list[int]) -> None:
    lengths = [7] * len(weights)
    in_order = _packtok.Mixture(weights, lengths=lengths, seed=1).draws(range(5001))
    at_once = _packtok.Mixture(weights, lengths=lengths, seed=1).draws(items)
    for expected, drawn in zip(in_order, at_once, strict=True):
        assert drawn.tolist() == [int(expected[k]) for k in items]


def test_source_with_a_weight_of_a_billionth_is_served_on_time() -> None:
    mixture = Mixture({Numbered("a", 10): 1 - 1e-9, Numbered("b", 10): 1e-9}, num_items=10**10)
    assert mixture.counts(10**10) == {"source 0": 10**10 - 10, "source 1": 10}
    mixture = Mixture({Numbered("a", 10): 1 - 1e-6, Numbered("b", 10): 1e-6}, num_items=10**6)
    sources = [mixture.source_of(k)[0] for k in (0, 499_998, 499_999, 500_000, 500_001, 999_999)]
    assert sources.count(1) == 1
    assert mixture.counts(499_999)["source 1"] == 0
    assert mixture.counts(500_001)["source 1"] == 1


def test_weights_are_the_decimal_numbers_they_print_as() -> None:
    assert exact_weights({"a": 0.7, "b": 0.2, "c": 0.1}) == [7, 2, 1]
    assert exact_weights({"a": 0.1 + 0.2, "b": 1}) == [7500000000000001, 25000000000000000]
    assert exact_weights({"a": 3, "b": Fraction(1, 3), "c": Decimal("0.25")}) == [36, 4, 3]
    assert exact_weights({"a": 1e-9, "b": 1}) == [1, 10**9]
    assert exact_weights({"a": 1e300, "b": 1}) == [1 << 60, 1]
    assert exact_weights({"a": np.float32(0.7), "b": np.float64(0.2), "c": np.int8(1)}) == [7, 2, 10]


@pytest.mark.parametrize("weight", [0, -1, 0.0, float("nan"), float("inf"), "x", None, Fraction(-1, 3)])
def test_invalid_weight_is_rejected_by_name(weight: Any) -> None:
    with pytest.raises(ValueError, match="source 1: the weight is ") as caught:
        Mixture({Numbered("a", 10): 1, Numbered("b", 10): weight})
    assert str(caught.value).startswith(f"source 1: the weight is {weight!r}, expected a number above 0")


@pytest.mark.parametrize(
    "weight", [True, "0.5", "1/3", np.float32("nan"), -0.0, 10**400 * -1, Decimal("NaN")]
)
def test_weight_that_is_not_a_number_is_rejected_by_name(weight: Any) -> None:
    with pytest.raises(ValueError, match="source 0: the weight is ") as caught:
        Mixture({Numbered("a", 10): weight})
    assert str(caught.value).startswith(f"source 0: the weight is {weight!r}, expected a number above 0")


def test_numbers_out_of_range_are_rejected_by_name() -> None:
    sources = {Numbered("a", 10): 1}
    for value in (-1, 0, True, 5.0, "5", float("nan"), 2**63):
        text = f"num_items is {value!r}, expected an integer from 1 to 9223372036854775807"
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            Mixture(sources, num_items=value)  # type: ignore[arg-type]
    for value in (-1, True, 5.0, "5", None, 2**64):
        text = f"seed is {value!r}, expected an integer from 0 to 18446744073709551615"
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            Mixture(sources, seed=value)  # type: ignore[arg-type]
    mixture = Mixture(sources, num_items=np.int64(7), seed=np.uint64(2**64 - 1))  # type: ignore[arg-type]
    assert (len(mixture), len([mixture[k] for k in range(7)])) == (7, 7)
    for method in (mixture.counts, mixture.epochs):
        for value in (-1, 1.5, True):
            text = f"num_items is {value!r}, expected an integer from 0 to 9223372036854775807"
            with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
                method(value)  # type: ignore[arg-type]
    assert mixture.counts(0) == {"source 0": 0}


def test_state_of_a_mixture_of_another_length_is_rejected() -> None:
    def loader(num_items: int) -> packtok.DataLoader:
        return packtok.DataLoader(Mixture({Numbered("a", 10): 1}, num_items=num_items), 4)

    state = loader(24).state_dict()
    for changes in (
        {},
        {"num_items": 28, "num_global_samples": 32},
        {"num_items": 28, "num_global_samples": 2},
    ):
        made = loader(28)
        before = made.state_dict()
        with pytest.raises(
            ValueError, match=r"num_items is 24 in the state and 28 here|num_global_samples is "
        ):
            made.load_state_dict({**state, **changes})
        assert made.state_dict() == before


def test_invalid_sources_are_rejected() -> None:
    text = "sources is of type list, expected a dict of weights by source"
    with pytest.raises(TypeError, match=f"^{text}$"):
        Mixture(["a.pbin", "b.pbin"])  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"^a\.pbin: is given twice; give it once, with the sum of its weights$"
    ):
        Mixture({"a.pbin": 1, Path("a.pbin"): 2}, context_length=4)
    text = (
        "num_itmes, context_length: is not an argument of Mixture; options of TokenDataset apply to paths, "
        "but no source is a path"
    )
    with pytest.raises(TypeError, match=f"^{text}$"):
        Mixture({Numbered("a", 10): 1}, num_itmes=5, context_length=4)
    with pytest.raises(ValueError, match="the mixture has no source; give at least one"):
        Mixture({})
    with pytest.raises(ValueError, match="source 1: has no items; remove it"):
        Mixture({Numbered("a", 3): 1, Numbered("b", 0): 1})
    with pytest.raises(TypeError, match="source 0 is of type int, expected a path or a map-style dataset"):
        Mixture({5: 1})
    with pytest.raises(TypeError, match=r"x\.pbin: context_length is missing; a path needs it"):
        Mixture({"x.pbin": 1})


def test_items_of_any_datasets_keep_their_order_in_batches() -> None:
    mixture = Mixture({Numbered("a", 5): 0.5, Numbered("b", 7): 0.3, Numbered("c", 2): 0.2}, num_items=50)
    one_by_one = [mixture[k] for k in range(50)]
    assert mixture.__getitems__(range(50)) == one_by_one
    assert mixture.__getitems__([3, 49, 3, 0]) == [one_by_one[k] for k in (3, 49, 3, 0)]
    assert mixture[10:3:-2] == one_by_one[10:3:-2]
    assert mixture[-1] == one_by_one[49]
    names = [name for name, _ in one_by_one]
    assert [names.count(name) for name in "abc"] == [25, 15, 10]
    for k in (50, -51):
        with pytest.raises(IndexError, match=f"item {k} is out of range, the mixture has 50"):
            mixture[k]
    assert [tuple(item) for item in DataLoader(mixture, batch_size=None)] == one_by_one


def test_each_pass_over_a_source_is_complete_and_in_another_order() -> None:
    mixture = Mixture({Numbered("a", 20): 1}, num_items=60)
    items = [item for _, item in mixture]
    passes = [items[i : i + 20] for i in (0, 20, 40)]
    assert [sorted(pass_items) for pass_items in passes] == [list(range(20))] * 3
    assert passes[0] != passes[1] != passes[2] != passes[0]
    in_sequence = Mixture({Numbered("a", 3): 1}, num_items=7, shuffle=False)
    assert [item for _, item in in_sequence] == [0, 1, 2, 0, 1, 2, 0]


def test_epochs_are_counted_for_each_source() -> None:
    mixture = Mixture({Numbered("a", 10): 3, Numbered("b", 10): 1})
    assert len(mixture) == 20
    assert mixture.counts(20) == {"source 0": 15, "source 1": 5}
    assert mixture.epochs(20) == {"source 0": 1.5, "source 1": 0.5}


FIELDS: dict[str, Any] = {"position_ids": True, "document_ids": True, "cu_seqlens": True, "loss_mask": True}


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Returns three files with distinct ids."""
    return [
        pbins.write(
            tmp_path / f"{name}.pbin",
            [[start + token for token in range(length)] for length in (3, 1, 8, 2, 9, 4)],
            width,
            eod_id=start,
        )
        for name, start, width in (("a", 100, 1), ("b", 1000, 2), ("c", 100_000, 4))
    ]


@pytest.mark.parametrize("packing", ["concat", "document"])
def test_batch_from_several_files_equals_its_items(paths: list[Path], packing: str) -> None:
    mixture = Mixture(
        dict(zip(paths, (0.4, 0.35, 0.25), strict=True)),
        context_length=4,
        packing=packing,
        num_items=40,
        pad_token_id=5,
        **FIELDS,
    )
    items = [3, 39, 0, 1, 2, 17, 18, 19, 20]
    batch = default_collate(mixture.__getitems__(items))
    separate = default_collate([mixture[k] for k in items])
    assert batch.keys() == separate.keys() == {"input_ids", "labels", *FIELDS, "max_seqlen"}
    for name, field in separate.items():
        assert torch.equal(torch.as_tensor(batch[name]), torch.as_tensor(field)), name
    sources = [mixture.source_of(k) for k in items]
    assert {source for source, _ in sources} == {0, 1, 2}
    alone = [TokenDataset(path, 4, packing=packing, pad_token_id=5) for path in paths]
    rows = [alone[source][position]["input_ids"].tolist() for source, position in sources]
    assert batch["input_ids"].tolist() == rows
    located = [mixture.locate(k) for k in items]
    assert located == [alone[source].locate(position) for source, position in sources]


def test_datasets_without_common_fields_are_rejected(paths: list[Path]) -> None:
    def message(first: TokenDataset, second: TokenDataset) -> str:
        with pytest.raises(ValueError, match="dataset") as caught:
            Mixture({first: 1, second: 1})
        return str(caught.value)

    short, long = TokenDataset(paths[0], 4), TokenDataset(paths[1], 5)
    assert message(short, long).endswith("create both with the same options")
    padded = [TokenDataset(path, 4, packing="document") for path in paths[:2]]
    assert (
        message(*padded)
        == "the datasets pad with different ids [100, 1000]; use the same pad_token_id for all"
    )
    # Datasets without padding need not agree on the padding id.
    assert len(Mixture({TokenDataset(paths[0], 4): 1, padded[1]: 1})) > 0


def test_workers_serve_the_same_items_as_the_main_process(paths: list[Path]) -> None:
    mixture = Mixture(dict.fromkeys(paths, 1), context_length=3, num_items=24, **FIELDS)
    expected = list(DataLoader(mixture, batch_size=4))
    for context, num_workers in [("fork", 2), *extent([("spawn", 1)], [])]:
        data_loader = DataLoader(
            mixture, batch_size=4, num_workers=num_workers, multiprocessing_context=context
        )
        for batch, other in zip(expected, data_loader, strict=True):
            for name in batch:
                assert torch.equal(torch.as_tensor(batch[name]), torch.as_tensor(other[name])), name


def test_loader_serves_a_mixture_in_its_own_order_and_resumes(paths: list[Path]) -> None:
    def make() -> Mixture:
        return Mixture(dict.fromkeys(paths, 1), context_length=3, num_items=24, seed=5)

    with pytest.raises(ValueError, match="order"):
        packtok.DataLoader(make(), batch_size=4, shuffle=True)
    expected = [batch["input_ids"].tolist() for batch in DataLoader(make(), batch_size=4)]
    loader = packtok.DataLoader(make(), batch_size=4)
    batches = iter(loader)
    first = [next(batches)["input_ids"].tolist() for _ in range(2)]
    state = loader.state_dict()
    resumed = packtok.DataLoader(make(), batch_size=4)
    resumed.load_state_dict(state)
    assert first + [batch["input_ids"].tolist() for batch in resumed] == expected
    other = packtok.DataLoader(
        Mixture(dict.fromkeys(paths, 1), context_length=3, num_items=24, seed=6), batch_size=4
    )
    with pytest.raises(ValueError, match="data is"):
        other.load_state_dict(state)


def test_mixture_pickles_small(paths: list[Path]) -> None:
    mixture = Mixture(dict.fromkeys(paths, 1), context_length=3, **FIELDS)
    mixture.counts(10**6)
    pickled = pickle.dumps(mixture)
    assert len(pickled) <= 2048 * len(paths)
    again = pickle.loads(pickled)
    assert again.fingerprint == mixture.fingerprint
    assert again[7]["input_ids"].tolist() == mixture[7]["input_ids"].tolist()


def test_fingerprint_identifies_the_sequence(paths: list[Path]) -> None:
    def fingerprint(weights: Sequence[float] = (1, 1, 1), **options: Any) -> str:
        sources = dict(zip(paths, weights, strict=True))
        return Mixture(sources, **{"context_length": 3, **options}).fingerprint

    prints = {
        fingerprint(),
        fingerprint(seed=1),
        fingerprint(shuffle=False),
        fingerprint((1, 1, 2)),
        fingerprint(context_length=2),
    }
    assert len(prints) == 5
    assert fingerprint((0.5, 0.5, 0.5), num_items=3) == fingerprint()
    datasets = {Numbered("a", 5): 1}
    assert Mixture(datasets).fingerprint != Mixture({Numbered("a", 6): 1}).fingerprint


def test_source_without_locate_is_named() -> None:
    mixture = Mixture({Numbered("a", 5): 1})
    with pytest.raises(TypeError, match="source 0: cannot tell which documents its items come from"):
        mixture.locate(0)


def test_compiled_module_rejects_invalid_arguments() -> None:
    with pytest.raises(ValueError, match=r"lengths are \[1\], expected 2 positive numbers"):
        _packtok.Mixture([1, 1], lengths=[1], seed=0)
    with pytest.raises(ValueError, match=r"lengths are \[0\], expected 1 positive numbers"):
        _packtok.Mixture([1], lengths=[0], seed=0)
    with pytest.raises(OverflowError):
        _packtok.Mixture([1], lengths=[1], seed=0).draws([-1])
    assert _packtok.Mixture([3, 2], lengths=[9, 9], seed=None).counts(sys.maxsize) == [
        5534023222112865484,
        3689348814741910323,
    ]


def test_prefetch_reaches_each_source_with_its_own_items(paths: list[Path]) -> None:
    class Announced(Numbered):
        def prefetch(self, items: list[int]) -> None:
            prefetched.extend((self.name, item) for item in items)

    prefetched: list[tuple[str, int]] = []
    mixture = Mixture({Announced("a", 9): 2, Announced("b", 9): 1, Numbered("c", 9): 1}, num_items=20)
    mixture.prefetch([7, 3, 12, 0, 19])
    assert sorted(prefetched) == sorted(mixture[k] for k in (7, 3, 12, 0, 19) if mixture[k][0] != "c")
    assert prefetched
    files = Mixture(dict.fromkeys(paths, 1), context_length=3, num_items=24)
    loaded = [batch["input_ids"].tolist() for batch in packtok.DataLoader(files, 4, read_ahead=2)]
    assert loaded == [batch["input_ids"].tolist() for batch in packtok.DataLoader(files, 4)]

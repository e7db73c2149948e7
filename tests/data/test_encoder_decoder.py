"""`EncoderDecoderDataset`: items and batches are those of CEPE's loader (`golden/cepe/items.npz`)."""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cepe_samples import CASES, DOMAINS, ITEMS, Tokenizer, sample
from repository import GOLDEN

import packtok
from packtok._packtok import MdsWriter
from packtok.compat import cepe
from packtok.data import ContextDataCollator, EncoderDecoderDataset

CEPE = GOLDEN / "cepe"
NUM_SAMPLES = sum(DOMAINS.values())
NO_MARKER = "ignore:.*no packtok.json says which samples these are"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the golden folders without pickles, with CEPE's dtypes."""
    folder = tmp_path_factory.mktemp("cepe") / "imported"
    packtok.import_samples(CEPE, folder, dtype="int64")
    return folder


def dataset_of(folder: Path, **options: Any) -> EncoderDecoderDataset:
    retrieval, logits = options.pop("retrieval", False), options.pop("logits", False)
    arguments = {"domains": ",".join(DOMAINS), "tokenizer": Tokenizer(), **options}
    if retrieval:
        arguments["retrieval_remote"] = str(folder / "retrieval")
    if logits:
        arguments["distill_remote"] = str(folder / "logits")
    return EncoderDecoderDataset(str(folder / "samples"), **arguments)


@pytest.mark.filterwarnings(NO_MARKER)
@pytest.mark.parametrize("case", CASES)
def test_items_and_batches_are_those_of_cepe(imported: Path, case: str) -> None:
    golden = np.load(CEPE / "items.npz")
    dataset = dataset_of(imported, **CASES[case])
    assert len(dataset) == NUM_SAMPLES
    items = [dataset[i] for i in ITEMS]
    for i, item in zip(ITEMS, items, strict=True):
        expected = {key.split("/")[2]: golden[key] for key in golden if key.startswith(f"{case}/{i}/")}
        assert item.keys() == expected.keys()
        for key, value in expected.items():
            array = np.asarray(item[key])
            assert (array.dtype, array.shape) == (value.dtype, value.shape), key
            assert np.array_equal(array, value), key
    batch = ContextDataCollator()(items)
    expected = {key.split("/")[2]: golden[key] for key in golden if key.startswith(f"{case}/batch/")}
    assert batch.keys() == expected.keys()
    for key, value in expected.items():
        assert (batch[key].numpy().dtype, batch[key].shape) == (value.dtype, value.shape), key
        assert np.array_equal(batch[key].numpy(), value), key


def test_narrow_ids_give_the_same_batches(imported: Path, tmp_path: Path) -> None:
    packtok.import_samples(CEPE / "samples", tmp_path / "samples")
    options: dict[str, Any] = {"domains": "a,b", "num_context": 2, "context_size": 8, "chunk_size": 12}
    narrow = EncoderDecoderDataset(str(tmp_path / "samples"), **options)
    wide = EncoderDecoderDataset(str(imported / "samples"), **options)
    assert narrow[0]["input_ids"].dtype == np.uint16
    batches = [ContextDataCollator()([dataset[i] for i in range(8)]) for dataset in (narrow, wide)]
    assert all(torch.equal(batches[0][key], batches[1][key]) for key in batches[1])


MASKS: dict[str, Any] = {
    "num_context": 3,
    "context_size": 8,
    "chunk_size": 12,
    "mask_prob": 0.7,
    "mask_seq_prob": 0.4,
}


def masks(loader: packtok.DataLoader) -> list[torch.Tensor]:
    return [batch["encoder_attention_mask"] for batch in loader]


def loader_of(dataset: EncoderDecoderDataset, **options: Any) -> packtok.DataLoader:
    return packtok.DataLoader(
        dataset, 2, shuffle=True, seed=5, collate_fn=ContextDataCollator(), rank=0, num_replicas=1, **options
    )


def test_masks_depend_on_seed_epoch_and_sample_only(imported: Path) -> None:
    dataset = dataset_of(imported, **MASKS)
    loader = loader_of(dataset)
    first, second = masks(loader), masks(loader)
    assert not torch.equal(torch.cat(first), torch.cat(second))
    order = [item for _, item in _order(dataset)]
    by_sample = {item: dataset[0, item]["encoder_attention_mask"] for item in range(NUM_SAMPLES)}
    expected = torch.stack([torch.from_numpy(by_sample[item]) for item in order])
    assert torch.equal(torch.cat(first), expected)
    other = dataset_of(imported, **MASKS, seed=1)
    assert not np.array_equal(other[0, 0]["encoder_attention_mask"], by_sample[0])
    dataset.set_epoch(1)
    assert np.array_equal(dataset[3]["encoder_attention_mask"], dataset[1, 3]["encoder_attention_mask"])


def _order(dataset: EncoderDecoderDataset) -> list[tuple[int, int]]:
    sampler = packtok.ResumableDistributedSampler(dataset, 0, 1, shuffle=True, seed=5, batch_size=2)
    return list(sampler)  # type: ignore[arg-type]


def test_masked_tokens_are_at_the_end_of_a_context(imported: Path) -> None:
    dataset = dataset_of(imported, **MASKS)
    seen = set()
    for epoch in range(20):
        for mask in (dataset[epoch, i]["encoder_attention_mask"] for i in range(NUM_SAMPLES)):
            for row in mask:
                kept = int(row.sum())
                assert row.tolist() == [1] * kept + [0] * (8 - kept)
                seen.add(kept)
    assert seen == set(range(9))


@pytest.mark.filterwarnings(NO_MARKER)
@pytest.mark.parametrize("mode", ["joint", "separate", "no_neighbor"])
def test_masks_of_passages_cover_the_passages_there_are(imported: Path, mode: str) -> None:
    # With "separate", CEPE's loader masks the two parts instead of the passages; with fewer passages than
    # num_context, the loader fails.
    options = {**MASKS, "num_context": 9, "mask_prob": 1.0, "mask_seq_prob": 1.0, "retrieval_mode": mode}
    item = dataset_of(imported, retrieval=True, **options)[0]
    assert item["encoder_attention_mask"].shape == item["encoder_input_ids"].shape
    assert not item["encoder_attention_mask"].any()


def test_workers_and_a_restart_change_nothing(imported: Path) -> None:
    dataset = dataset_of(imported, **MASKS)
    loader = loader_of(dataset)
    whole = [*loader, *loader]
    stopped = loader_of(dataset, num_workers=2)
    batches = iter(stopped)
    begun = [next(batches) for _ in range(3)]
    state = stopped.state_dict()
    resumed = loader_of(dataset_of(imported, **MASKS))
    resumed.load_state_dict(state)
    items = [*begun, *resumed, *resumed]
    assert len(items) == len(whole) == 8
    for mine, expected in zip(items, whole, strict=True):
        assert all(torch.equal(mine[key], expected[key]) for key in expected)


def test_a_state_of_other_folders_or_options_is_refused(imported: Path) -> None:
    state = loader_of(dataset_of(imported, **MASKS)).state_dict()
    with pytest.raises(ValueError, match="data"):
        loader_of(dataset_of(imported, **{**MASKS, "mask_prob": 0.6})).load_state_dict(state)


def write(folder: Path, kind: str, samples: range, marker: dict[str, Any] | None = None) -> None:
    """Writes samples of domain a in packtok's own form."""
    columns = {
        "samples": {"token_ids": "ndarray:uint16", "prev_token_ids": "ndarray:uint16", "domain": "str"},
        "logits": {"draw_index": "ndarray:uint16:12,3", "label_logprob": "ndarray:float32:12"},
    }[kind]
    writer = MdsWriter(folder / "a", columns)
    for i in samples:
        row = sample("samples", "a", i)
        if kind == "samples":
            row |= {key: row[key].astype(np.uint16) for key in ("token_ids", "prev_token_ids")}
        else:
            draws = np.full((12, 3), i, np.uint16)
            row = {"draw_index": draws, "label_logprob": np.full(12, -i, np.float32)}
        writer.write(row)
    default = {"kind": kind, "plan": "p1", "side": "train", "domain": "a"}
    range_ = {"start": samples.start, "stop": samples.stop}
    writer.finish(marker=None if marker is None else {**default, **range_, **marker})


OPTIONS: dict[str, Any] = {"domains": "a", "num_context": 0, "chunk_size": 12}


def test_teacher_signals_are_aligned_by_their_range(tmp_path: Path) -> None:
    write(tmp_path / "samples", "samples", range(2, 5), {})
    write(tmp_path / "logits", "logits", range(9), {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = EncoderDecoderDataset(
            str(tmp_path / "samples"), distill_remote=str(tmp_path / "logits"), **OPTIONS
        )
    batch = ContextDataCollator()([dataset[i] for i in range(3)])
    assert batch["draw_index"][:, 0, 0].tolist() == [2, 3, 4]
    assert batch["label_logprob"][:, 0].tolist() == [-2, -3, -4]
    assert (batch["draw_index"].dtype, batch["label_logprob"].dtype) == (torch.int64, torch.float32)


@pytest.mark.parametrize(
    ("samples", "marker", "message"),
    [
        (
            range(5),
            {"plan": "p2"},
            "{l}/a: plan is 'p2', in {s}/a it is 'p1'; expected folders about the same samples",
        ),
        (
            range(5),
            {"side": "test"},
            "{l}/a: side is 'test', in {s}/a it is 'train'; expected folders about the same samples",
        ),
        (range(4), {}, "{l}/a: samples 0..4, {s}/a has 0..5; expected at least these"),
        (
            range(5),
            {"stop": 6},
            "{l}/a: packtok.json names samples 0..6, but the folder has 5; it belongs to another index",
        ),
        (range(4), None, "{l}/a: 4 samples, {s}/a has 5; expected the same samples"),
    ],
)
def test_signals_of_other_samples_are_errors(
    tmp_path: Path, samples: range, marker: dict[str, Any] | None, message: str
) -> None:
    write(tmp_path / "samples", "samples", range(5), {})
    write(tmp_path / "logits", "logits", samples, marker)
    text = message.format(l=tmp_path / "logits", s=tmp_path / "samples")
    with pytest.raises(ValueError, match=re.escape(text) + "$"):
        EncoderDecoderDataset(str(tmp_path / "samples"), distill_remote=str(tmp_path / "logits"), **OPTIONS)


def test_without_a_marker_a_warning_says_what_was_compared(tmp_path: Path) -> None:
    write(tmp_path / "samples", "samples", range(5), {})
    write(tmp_path / "logits", "logits", range(5))
    with pytest.warns(
        UserWarning, match="logits/a: no packtok.json says which samples these are; only the numbers"
    ):
        EncoderDecoderDataset(str(tmp_path / "samples"), distill_remote=str(tmp_path / "logits"), **OPTIONS)


def test_arguments_that_cannot_work_are_errors(imported: Path) -> None:
    samples = str(imported / "samples")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"epoch_size": 9}, f"epoch_size is 9, {samples} has 8 samples; lower it"),
        ({"mask_prob": 1.5}, "mask_prob is 1.5, expected a number from 0 to 1"),
        (
            {"retrieval_mode": "x"},
            "retrieval_mode is 'x', expected 'joint', 'separate', 'no_neighbor' or 'ignore'",
        ),
        (
            {"load_strategy": "dummy"},
            "tokenizer has no eos_token_id, which contexts need; give one that has it",
        ),
        ({"domains": "a;b"}, f"{samples}: 1 folders, but domains has 2 groups; expected 1 or as many"),
    ]
    for options, message in cases:
        with pytest.raises(ValueError, match=re.escape(message) + "$"):
            EncoderDecoderDataset(samples, **{"domains": "a,b", **options})
    dataset = EncoderDecoderDataset(samples, epoch_size=3, domains="a,b", chunk_size=12)
    assert len(dataset) == 3
    with pytest.raises(IndexError, match="item 3 is out of range, the dataset has 3"):
        dataset[3]
    with pytest.raises(
        ValueError, match=r"prev_token_ids of a sample has 24 tokens, num_context 8 times context_size 256"
    ):
        dataset[0]
    with pytest.raises(ValueError, match="chunk_size is 13, but a sample has 12 decoder tokens"):
        EncoderDecoderDataset(samples, domains="a", chunk_size=13)[0]


def test_each_folder_has_its_domains(imported: Path) -> None:
    samples = str(imported / "samples")
    dataset = EncoderDecoderDataset(f"{samples},{samples}/", domains="b;a,b", num_context=0, chunk_size=12)
    assert [dataset[i]["domain"] for i in range(len(dataset))] == ["b"] * 3 + ["a"] * 5 + ["b"] * 3


def test_cepes_names_import_the_same_loader() -> None:
    assert cepe.CombineStreamingDataset is EncoderDecoderDataset
    assert cepe.ContextDataCollator is ContextDataCollator
    assert cepe.RP_DOMAINS == ["arxiv", "book", "c4-rp", "cc", "github", "stackexchange", "wiki"]

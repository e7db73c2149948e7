"""Teacher signals: targets against a plain loop, shards, resuming, merging, and the loss."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stories import TOKENIZER

pytest.importorskip("torch", reason="needs torch (pip install '.[logits]')")
pytest.importorskip("transformers", reason="needs transformers (pip install '.[logits]')")

import torch
import transformers
from extent import extent
from reference import teacher_rows
from teacher_samples import (
    DEC,
    ENC,
    HEAD,
    NUM_SAMPLES,
    TOPK,
    VOCAB,
    samples,
    small_llama,
    write_samples,
)
from typer.testing import CliRunner, Result

from packtok import PacktokError
from packtok._packtok import MdsReader, MdsWriter, mds_marker
from packtok.cli import app
from packtok.commands.logits import logits, merge_logits
from packtok.data import distillation_loss
from packtok.errors import ConfigError
from packtok.logits import batches, signals
from packtok.logits.model_files import AFTER_HEAD, model_folder
from packtok.logits.models import Teacher, load_teacher
from packtok.logits.targets import sampled, top_k, uniforms

DEFAULTS: dict[str, Any] = {
    "num_encoder_tokens": ENC,
    "num_decoder_tokens": DEC,
    "topk": TOPK,
    "dtype": "fp32",
    "device": "cpu",
    "batch_tokens": 3 * (ENC + DEC),
}
DRAWN: dict[str, Any] = {**DEFAULTS, "method": "sampled", "topk": None, "draws": 5}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_llama(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def teacher(model: Path) -> Any:
    """Returns the model as Transformers loads it."""
    return transformers.LlamaForCausalLM.from_pretrained(model, dtype=torch.float32).eval()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_samples(tmp_path / "train", samples())


def output_of(data: Path, model: Path, name: str = "d") -> Path:
    return Path(f"{data}-logits-enc{ENC}-dec{DEC}-{model.name}") / name


def compute(data: Path, model: Path, **options: Any) -> list[dict[str, np.ndarray[Any, Any]]]:
    """Computes all shards, merges them and returns the rows."""
    arguments = {**DEFAULTS, **options}
    count = arguments.pop("num_shards", 1)
    for k in range(count):
        logits(str(data), str(model), "d", shard=f"{k}/{count}", **arguments)
    merge(data, model)
    return rows_of(output_of(data, model))


def merge(data: Path, model: Path) -> dict[str, Any]:
    return merge_logits(str(data), str(model), "d", num_encoder_tokens=ENC, num_decoder_tokens=DEC)


def rows_of(folder: Path) -> list[dict[str, np.ndarray[Any, Any]]]:
    reader = MdsReader(folder)
    reader.verify()
    return [dict(reader[i]) for i in range(len(reader))]


def same_bytes(rows: list[dict[str, Any]], expected: list[dict[str, Any]]) -> bool:
    assert len(rows) == len(expected)
    return all(
        list(a) == list(b) and all(a[name].tobytes() == b[name].tobytes() for name in a)
        for a, b in zip(rows, expected, strict=True)
    )


def expected_rows(teacher: Any, row: dict[str, Any], enc: int = ENC) -> list[list[float]]:
    context = row["prev_token_ids"].tolist()
    return teacher_rows(teacher, context[len(context) - enc :], row["token_ids"].tolist()[:DEC], VOCAB)


def test_top_k_targets_are_those_of_a_plain_loop(data: Path, model: Path, teacher: Any) -> None:
    signals = compute(data, model)
    assert MdsReader(output_of(data, model)).columns == {
        "target_index": f"ndarray:int32:{DEC},{TOPK}",
        "target_prob": f"ndarray:float16:{DEC},{TOPK + 1}",
    }
    for row, signal_ in zip(samples(), signals, strict=True):
        for i, log_probs in enumerate(expected_rows(teacher, row)):
            best = sorted(range(VOCAB), key=lambda id_: -log_probs[id_])[:TOPK]
            probs = [math.exp(log_probs[id_]) for id_ in best]
            assert signal_["target_index"][i].tolist() == best
            assert np.allclose(signal_["target_prob"][i, :TOPK], probs, rtol=2**-10, atol=1e-6)
            assert np.isclose(signal_["target_prob"][i, TOPK], 1 - sum(probs), rtol=2**-10, atol=1e-6)
        assert np.abs(signal_["target_prob"].astype(np.float64).sum(1) - 1).max() < 1e-3


def test_row_i_is_the_distribution_after_decoder_token_i(tmp_path: Path, model: Path, teacher: Any) -> None:
    rows = samples(1)
    changed = {**rows[0], "token_ids": rows[0]["token_ids"].copy()}
    changed["token_ids"][4] = (changed["token_ids"][4] + 1) % VOCAB
    before, after = (
        compute(write_samples(tmp_path / name, [row]), model, **DRAWN)[0]["label_logprob"]
        for name, row in (("a", rows[0]), ("b", changed))
    )
    # Row 3 predicts token 4, so its probability is that of the other token; row 4 has read token 4.
    assert np.array_equal(before[:3], after[:3])
    expected = expected_rows(teacher, rows[0])
    following = rows[0]["token_ids"].tolist()[1:]
    assert np.allclose(before[:-1], [expected[i][id_] for i, id_ in enumerate(following)], atol=1e-4)
    assert np.isnan(before[-1])
    assert np.isclose(after[3], expected[3][changed["token_ids"][4]], atol=1e-4)
    assert not np.isclose(before[4], after[4], atol=1e-3)


def test_last_row_has_a_label_if_the_sample_has_more_tokens(
    tmp_path: Path, model: Path, teacher: Any
) -> None:
    (row,) = samples(1, decoder=DEC + 2)
    (signal_,) = compute(write_samples(tmp_path / "a", [row]), model, **DRAWN)
    expected = expected_rows(teacher, row)[DEC - 1][int(row["token_ids"][DEC])]
    assert np.isclose(signal_["label_logprob"][DEC - 1], expected, atol=1e-4)


def test_padding_rows_of_the_head_are_never_targets(data: Path, model: Path, teacher: Any) -> None:
    raw = teacher(input_ids=torch.arange(20)[None]).logits[0]
    assert (raw.argmax(-1) >= VOCAB).any()
    assert max(row["target_index"].max() for row in compute(data, model)) < VOCAB
    shutil.rmtree(output_of(data, model).parent)
    assert max(row["draw_index"].max() for row in compute(data, model, **DRAWN)) < VOCAB


def test_draws_are_those_of_a_plain_loop_over_cumulative_probabilities(
    data: Path, model: Path, teacher: Any
) -> None:
    signals = compute(data, model, **DRAWN, seed=3)
    assert signals[0]["draw_index"].dtype == np.uint16
    for number, (row, signal_) in enumerate(zip(samples(), signals, strict=True)):
        for i, log_probs in enumerate(expected_rows(teacher, row)):
            for draw in range(5):
                threshold, total = uniform(3, number, i, draw), 0.0
                for id_ in range(VOCAB):
                    total += math.exp(log_probs[id_])
                    if total > threshold:
                        break
                # The ids may differ if the threshold is within rounding errors of a boundary.
                assert signal_["draw_index"][i, draw] == id_ or abs(total - threshold) < 1e-5


def uniform(*numbers: int) -> float:
    """Returns the number in [0, 1) of (seed, sample, position, draw), with Python's integers."""
    gamma, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    state = 0
    for place, number in enumerate(numbers):
        state ^= number if place == 0 else (number + 1) * gamma & mask
        state = (state + gamma) & mask
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & mask
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB & mask
        state ^= state >> 31
    return (state >> 12) / 2**52


def test_uniform_numbers_are_a_function_of_seed_sample_position_and_draw() -> None:
    numbers = uniforms(5, np.array([2, 7]), 3, 4)
    expected = [[[uniform(5, i, j, n) for n in range(4)] for j in range(3)] for i in (2, 7)]
    assert numbers.tolist() == expected


@pytest.mark.parametrize("options", [DEFAULTS, DRAWN], ids=["topk", "sampled"])
def test_shards_and_batches_do_not_change_targets(data: Path, model: Path, options: dict[str, Any]) -> None:
    whole = compute(data, model, **options)
    for num_shards in (2, 7):
        shutil.rmtree(output_of(data, model).parent)
        assert same_bytes(compute(data, model, **options, num_shards=num_shards), whole)
    for batch_tokens in (1, 5 * (ENC + DEC)):
        shutil.rmtree(output_of(data, model).parent)
        for a, b in zip(
            compute(data, model, **{**options, "batch_tokens": batch_tokens}), whole, strict=True
        ):
            assert all(np.allclose(a[name], b[name], rtol=2e-3, atol=1e-5, equal_nan=True) for name in a)


class KilledError(Exception):
    """Ends a run where it is raised."""


def test_finished_files_are_kept_and_damaged_ones_computed_again(
    data: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = compute(data, model)
    shutil.rmtree(output_of(data, model).parent)
    monkeypatch.setattr(signals, "_FILE_BYTES", 1)
    part = output_of(data, model, "d-0")

    def interrupt(counts: dict[str, int]) -> None:
        if len(list(part.glob("shard.*.mds"))) == 2:
            raise KilledError

    with pytest.raises(KilledError):
        logits(str(data), str(model), "d", **DEFAULTS, on_progress=interrupt)
    assert not (part / "index.json").exists()
    with pytest.raises(PacktokError, match="d-0 is not finished"):
        merge(data, model)
    first = part / "shard.00000.mds"
    kept = first.stat().st_mtime_ns
    damaged = part / "shard.00001.mds"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\0")
    report = logits(str(data), str(model), "d", **DEFAULTS)
    assert (report["kept_samples"], report["samples"]) == (3, NUM_SAMPLES)
    assert first.stat().st_mtime_ns == kept
    merge(data, model)
    assert same_bytes(rows_of(output_of(data, model)), whole)
    assert logits(str(data), str(model), "d", **DEFAULTS)["kept_samples"] == NUM_SAMPLES


def test_an_interruption_says_whether_the_same_call_resumes(
    data: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "_FILE_BYTES", 1)
    part = output_of(data, model, "d-0")
    for num_files, note in (
        (0, "nothing was kept; run the same command again to start over"),
        (1, "finished work is kept next to the output; run the same command again to resume"),
    ):

        def interrupt(_: dict[str, int], num_files: int = num_files) -> None:
            if len(list(part.glob("shard.*.mds"))) == num_files:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt) as caught:
            logits(str(data), str(model), "d", **DEFAULTS, on_progress=interrupt)
        assert caught.value.__notes__ == [note]
    assert logits(str(data), str(model), "d", **DEFAULTS)["kept_samples"] == 3


def test_finished_files_survive_a_full_disk(data: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_FILE_BYTES", 1)

    class FullDisk:
        """A writer that finds the disk full in the third file."""

        def __init__(self, folder: Path, columns: dict[str, str], **options: Any) -> None:
            self._writer = MdsWriter(folder, columns, **options)
            self._is_full = options["first_shard"] == 2

        def write(self, sample: dict[str, Any]) -> None:
            self._writer.write(sample)

        def finish(self, **options: Any) -> Any:
            if self._is_full:
                raise OSError(28, "No space left on device", "shard.00002.mds")
            return self._writer.finish(**options)

        def discard(self) -> None:
            self._writer.discard()

    with monkeypatch.context() as patch:
        patch.setattr("packtok.logits.output.MdsWriter", FullDisk)
        with pytest.raises(OSError, match="No space left on device"):
            logits(str(data), str(model), "d", **DEFAULTS)
    part = output_of(data, model, "d-0")
    assert sorted(path.name for path in part.iterdir()) == [
        ".packtok-logits.json",
        "shard.00000.mds",
        "shard.00001.mds",
    ]
    assert logits(str(data), str(model), "d", **DEFAULTS)["kept_samples"] == 6


def test_logits_exist_for_a_slice_of_positions_only(
    data: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = compute(data, model)
    shutil.rmtree(output_of(data, model).parent)
    monkeypatch.setitem(batches._SLICE_BYTES, "cpu", 4 * VOCAB * 7)
    rows = []
    computed = Teacher.logits

    def seen(self: Teacher, hidden: Any, vocab_size: int | None = None) -> Any:
        if vocab_size is not None:
            rows.append(len(hidden))
        return computed(self, hidden, vocab_size)

    monkeypatch.setattr(Teacher, "logits", seen)
    assert [row["target_index"].tolist() for row in compute(data, model)] == [
        row["target_index"].tolist() for row in whole
    ]
    assert max(rows) == 7
    assert sum(rows) == NUM_SAMPLES * DEC


@pytest.mark.faults
def test_runs_killed_at_any_moment_resume_to_the_same_bytes(
    data: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "_FILE_BYTES", 1)
    monkeypatch.setattr("packtok.commands.logits.find_part", lambda *_: (0, 1))
    loaded = load_teacher(str(model), "fp32", "cpu")
    monkeypatch.setattr("packtok.logits.models.load_teacher", lambda *_: loaded)
    began = time.monotonic()
    whole = compute(data, model, **DRAWN)
    seconds = time.monotonic() - began
    rng = random.Random(5)
    for _ in range(extent(30, 1)):
        shutil.rmtree(output_of(data, model).parent)
        killed_after(rng.random() * seconds, lambda: compute(data, model, **DRAWN))
        assert same_bytes(compute(data, model, **DRAWN), whole)
        assert not list(output_of(data, model).parent.rglob("*.tmp"))


def killed_after(seconds: float, work: Callable[[], object]) -> None:
    """Runs ``work`` in a forked process that ends at once, without any handler, after some time."""
    process = os.fork()
    if process == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
        work()
        os._exit(0)
    os.waitpid(process, 0)


def test_another_run_into_the_same_folder_is_an_error(data: Path, model: Path, tmp_path: Path) -> None:
    logits(str(data), str(model), "d", **DEFAULTS)
    part = output_of(data, model, "d-0")
    remedy = "; remove the folder, or rename it to keep them"
    with pytest.raises(PacktokError) as error:
        logits(str(data), str(model), "d", **{**DEFAULTS, "topk": 3})
    assert str(error.value) == (
        f'{part}: contains other teacher signals: method is {{"name": "topk", "topk": {TOPK}}}, expected '
        f'{{"name": "topk", "topk": 3}}{remedy}'
    )
    other = small_llama(tmp_path / "other" / model.name, seed=1)
    with pytest.raises(PacktokError, match="contains other teacher signals: model is "):
        logits(str(data), str(other), "d", **DEFAULTS)


def test_folder_of_another_program_is_not_taken_for_finished(data: Path, model: Path) -> None:
    part = output_of(data, model, "d-0")
    part.mkdir(parents=True)
    (part / "shard.00000.mds").write_bytes(b"half of a file")
    with pytest.raises(PacktokError) as error:
        logits(str(data), str(model), "d", **DEFAULTS)
    assert str(error.value) == (
        f"{part}: contains shard.00000.mds, but no .packtok-logits.json of an unfinished run; remove the "
        "folder"
    )


def test_merging_links_files_and_rewrites_no_sample(data: Path, model: Path) -> None:
    for k in range(3):
        logits(str(data), str(model), "d", **DEFAULTS, shard=k, num_shards=3)
    report = merge(data, model)
    folder = output_of(data, model)
    assert report == {"output": str(folder), "parts": 3, "files": 3, "samples": 11, "kept": False}
    for k in range(3):
        part = output_of(data, model, f"d-{k}")
        assert (folder / f"shard.{k:05}.mds").samefile(part / "shard.00000.mds")
    marker = mds_marker(folder)
    assert marker is not None
    assert (marker["kind"], marker["plan"], marker["start"], marker["stop"]) == ("logits", "p", 0, 11)
    assert marker["details"]["method"] == {"name": "topk", "topk": TOPK}
    assert merge(data, model)["kept"]


def test_merging_moves_files_where_there_are_no_links_and_can_be_resumed(
    data: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = compute(data, model)
    shutil.rmtree(output_of(data, model).parent)
    for k in range(3):
        logits(str(data), str(model), "d", **DEFAULTS, shard=f"{k}/3")

    def no_links(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    def one_move(source: Path, target: Path) -> None:
        rename(source, target)
        raise KilledError

    rename = os.rename
    monkeypatch.setattr(os, "link", no_links)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", one_move)
        with pytest.raises(KilledError):
            merge(data, model)
    assert not (output_of(data, model) / "index.json").exists()
    merge(data, model)
    assert same_bytes(rows_of(output_of(data, model)), whole)


def test_parts_that_are_missing_or_differ_are_named(data: Path, model: Path, tmp_path: Path) -> None:
    for k in (0, 3):
        logits(str(data), str(model), "d", **DEFAULTS, shard=f"{k}/4")
    output_of(data, model, "d-2").mkdir()
    with pytest.raises(PacktokError) as error:
        merge(data, model)
    parent = output_of(data, model).parent
    assert str(error.value) == f"{parent}: d-1 is missing, d-2 is not finished; compute these shards first"
    output_of(data, model, "d-2").rmdir()
    logits(str(data), str(model), "d", **DEFAULTS, shard="2/4")
    logits(str(data), str(model), "d", **{**DEFAULTS, "topk": 3}, shard="1/4")
    with pytest.raises(PacktokError, match=r"d-1: does not belong to the other parts: method is .*topk\": 3"):
        merge(data, model)


def test_a_loop_that_always_passes_shard_0_ends_with_an_error(data: Path, model: Path) -> None:
    # CEPE's README has this loop; the --merge of CEPE's script merges the parts that exist.
    for k in range(3):
        report = logits(str(data), str(model), "d", **DEFAULTS, shard=0, num_shards=3)
        assert report["kept_samples"] == (report["samples"] if k else 0)
    with pytest.raises(PacktokError) as error:
        merge(data, model)
    assert str(error.value) == (
        f"{output_of(data, model).parent}: d-1 is missing, d-2 is missing; compute these shards first"
    )
    assert not output_of(data, model).exists()


def test_parts_of_a_domain_whose_name_begins_alike_are_others(data: Path, model: Path) -> None:
    shutil.copytree(data / "d", data / "d-0")
    logits(str(data), str(model), "d-0", **DEFAULTS)
    with pytest.raises(PacktokError, match="has no part of d; compute its shards first"):
        merge(data, model)


def test_context_is_its_last_tokens_and_may_be_empty(tmp_path: Path, model: Path, teacher: Any) -> None:
    # `ids[-0:]`, as in CEPE's script, is the whole context.
    data = write_samples(tmp_path / "a", samples(2))
    report = logits(str(data), str(model), "d", **{**DEFAULTS, "num_encoder_tokens": 0})
    assert Path(report["output"]).parent.name == f"a-logits-enc0-dec{DEC}-tiny"
    for row, signal_ in zip(samples(2), rows_of(Path(report["output"])), strict=True):
        best = [max(range(VOCAB), key=logprobs.__getitem__) for logprobs in expected_rows(teacher, row, 0)]
        assert signal_["target_index"][:, 0].tolist() == best


def test_retrieved_passages_replace_the_context(tmp_path: Path, model: Path, teacher: Any) -> None:
    data = write_samples(tmp_path / "a", samples(3))
    rng = np.random.default_rng(1)
    passages = rng.integers(0, VOCAB, (3, 4, 5)).astype(np.uint16)
    lengths = np.array([[5, 2, 0, 4], [1, 5, 5, 5], [5, 5, 5, 5]], np.uint32)
    with MdsWriter(
        tmp_path / "ret" / "d",
        {"retrieved_token_ids": "ndarray:uint16", "retrieved_lengths": "ndarray:uint32"},
    ) as writer:
        for row, length in zip(passages, lengths, strict=True):
            writer.write({"retrieved_token_ids": row, "retrieved_lengths": length})
    report = logits(
        str(data), str(model), "d", **DEFAULTS, retrieval_input_dir=f"{tmp_path}/ret/", retrieval_k=3
    )
    assert Path(report["output"]) == tmp_path / f"ret-ret_k3-dec{DEC}-tiny" / "d-0"
    for i, signal_ in enumerate(rows_of(Path(report["output"]))):
        context = [int(id_) for j in range(3) for id_ in passages[i, j, : lengths[i, j]]]
        expected = teacher_rows(teacher, context, samples(3)[i]["token_ids"].tolist(), VOCAB)
        assert signal_["target_index"][:, 0].tolist() == [
            max(range(VOCAB), key=logprobs.__getitem__) for logprobs in expected
        ]


def test_sampled_targets_take_a_tenth_of_the_bytes_of_top_50(tmp_path: Path, model: Path) -> None:
    data = write_samples(tmp_path / "a", samples(8, decoder=128))
    options = {**DEFAULTS, "num_decoder_tokens": 128, "topk": None}
    sizes = []
    for method in ("topk", "sampled"):
        part = Path(logits(str(data), str(model), "d", **options, method=method)["output"])
        sizes.append(sum(path.stat().st_size for path in part.glob("*.mds")))
        shutil.rmtree(part)
    assert sizes[1] <= sizes[0] / 10


def test_bfloat16_targets_sum_to_one(data: Path, model: Path) -> None:
    for row in compute(data, model, dtype="bf16"):
        assert np.abs(row["target_prob"].astype(np.float64).sum(1) - 1).max() < 1e-3


# Sizes for which most configs have the same names.
SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "initializer_range": 0.3,
}
MOE = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
OF_CLASS: dict[str, dict[str, Any]] = {
    "CohereForCausalLM": {"logit_scale": 0.3},
    "Cohere2ForCausalLM": {"logit_scale": 0.3},
    "DeepseekV3ForCausalLM": {
        "n_routed_experts": 4,
        "n_group": 2,
        "topk_group": 1,
        "num_experts_per_tok": 2,
        "kv_lora_rank": 8,
        "q_lora_rank": 8,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 8,
        "v_head_dim": 8,
        "moe_intermediate_size": 16,
        "num_key_value_heads": 4,
    },
    "FalconForCausalLM": {"num_kv_heads": 4, "ffn_hidden_size": 48},
    "GPTJForCausalLM": {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4},
    "GPTNeoForCausalLM": {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]},
    "Gemma2ForCausalLM": {"final_logit_softcapping": 0.5},
    "Gemma3ForCausalLM": {"final_logit_softcapping": 0.5},
    "GraniteForCausalLM": {"logits_scaling": 4.0},
    "GraniteMoeForCausalLM": {"logits_scaling": 4.0, **MOE},
    "MixtralForCausalLM": MOE,
    "OPTForCausalLM": {"ffn_dim": 48, "word_embed_proj_dim": 16},
    "Qwen2MoeForCausalLM": {**MOE, "shared_expert_intermediate_size": 16},
    "Qwen3MoeForCausalLM": MOE,
}
CHANGED = {name for name, after in AFTER_HEAD.items() if after is not AFTER_HEAD["LlamaForCausalLM"]}


def config_of(name: str) -> Any:
    """Returns a small config of a model class."""
    kind = getattr(transformers, name).config_class
    settings = {**SMALL, **OF_CLASS.get(name, {})}
    if name.startswith(("GPT2", "GPTBig")):
        settings = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4}
    if name in ("DeepseekV3ForCausalLM", "FalconForCausalLM"):
        del settings["head_dim"]
    return kind(**settings)


@pytest.mark.parametrize("name", sorted(AFTER_HEAD))
def test_logits_of_each_known_class_are_those_of_the_model(name: str) -> None:
    torch.manual_seed(0)
    network = getattr(transformers, name)(config_of(name)).eval()
    ids = torch.randint(3, 64, (2, 9))
    loaded = Teacher(network, "tiny", "", Path())
    with torch.inference_mode():
        expected = network(input_ids=ids, use_cache=False).logits.float()
        hidden = loaded.hidden(ids)
        logits_ = torch.stack([loaded.logits(row) for row in hidden])
        raw = network.get_output_embeddings()(hidden).float()
    assert torch.allclose(logits_, expected, atol=1e-5, rtol=1e-4)
    assert torch.allclose(raw, expected, atol=1e-3) == (name not in CHANGED)


def test_unknown_classes_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    small_llama(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    config["architectures"] = ["XGLMForCausalLM"]
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with pytest.raises(PacktokError) as error:
        load_teacher(str(tmp_path / "m"), "fp32", "cpu")
    assert str(error.value) == (
        f"{tmp_path / 'm'}: config.json names XGLMForCausalLM; what this class does to logits after the "
        f"head is not known. Known classes: {', '.join(sorted(AFTER_HEAD))}"
    )


def test_pickled_weights_and_code_of_models_are_refused(tmp_path: Path, model: Path) -> None:
    folder = tmp_path / "m"
    shutil.copytree(model, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(PacktokError, match=r"m: has no \*\.safetensors file; other weights can execute code"):
        load_teacher(str(folder))
    (folder / "config.json").write_text('{"model_type": "own", "auto_map": {"AutoConfig": "evil.Config"}}')
    (folder / "evil.py").write_text("raise SystemExit('executed')")
    with pytest.raises(PacktokError, match="models that need code of their own are not supported"):
        load_teacher(str(folder))


def test_names_on_the_hub_are_resolved_in_the_local_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ConfigError) as error:
        model_folder("someone/tiny")
    assert str(error.value) == (
        "--model-dir: someone/tiny is neither a folder nor in the hub's local cache; give a folder, or "
        "download it with: hf download someone/tiny"
    )
    snapshot = tmp_path / "models--someone--tiny" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (tmp_path / "models--someone--tiny" / "refs").mkdir()
    (tmp_path / "models--someone--tiny" / "refs" / "main").write_text("abc")
    assert model_folder("someone/tiny") == snapshot


def test_vocabularies_must_fit(tmp_path: Path, model: Path) -> None:
    data = write_samples(tmp_path / "a", samples(1), {"vocab_size": HEAD + 1})
    with pytest.raises(ConfigError) as error:
        logits(str(data), str(model), "d", **DEFAULTS)
    assert str(error.value) == (
        f"{model}: the model has {HEAD} ids, but the samples' tokenizer has {HEAD + 1}; give the model that "
        "belongs to the tokenizer"
    )
    with_tokenizer = tmp_path / "with"
    shutil.copytree(model, with_tokenizer)
    shutil.copy(TOKENIZER, with_tokenizer / "tokenizer.json")
    data = write_samples(
        tmp_path / "b", samples(1), {"vocab_size": VOCAB, "name": "other", "fingerprint": "0" * 64}
    )
    with pytest.raises(ConfigError, match="were made with other, whose fingerprint is 000000000000; give "):
        logits(str(data), str(with_tokenizer), "d", **DEFAULTS)
    starts: list[Any] = []
    logits(str(data), str(with_tokenizer), "d", **DEFAULTS, yes=True, on_start=starts.append)
    assert len(starts[0].warnings) == 1


def test_ids_beyond_the_model_and_short_samples_are_named(tmp_path: Path, model: Path) -> None:
    rows = samples(2)
    rows[1]["token_ids"] = np.array([*rows[1]["token_ids"][:-1], 500], np.uint16)
    data = write_samples(tmp_path / "a", rows)
    with pytest.raises(PacktokError) as error:
        logits(str(data), str(model), "d", **DEFAULTS)
    assert str(error.value) == (
        f"{data / 'd'}: sample 1: token {ENC + DEC - 1} of the input has id 500, but the model knows ids up "
        f"to {HEAD - 1}; give the model that belongs to the tokenizer"
    )
    with pytest.raises(PacktokError, match=r"token_ids has shape \(10,\), expected at least 11 tokens"):
        logits(str(data), str(model), "d", **{**DEFAULTS, "num_decoder_tokens": 11})
    with pytest.raises(PacktokError, match=r"prev_token_ids has shape \(15,\), expected at least 16"):
        logits(str(data), str(model), "d", **{**DEFAULTS, "num_encoder_tokens": 16})


def test_too_little_space_is_an_error_before_the_first_sample(
    data: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "free_bytes", lambda _: 1000)
    starts = []
    with pytest.raises(ConfigError) as error:
        logits(str(data), str(model), "d", **DEFAULTS, on_start=starts.append)
    total = NUM_SAMPLES * DEC * (2 * (TOPK + 1) + 4 * TOPK)
    assert (starts[0].bytes_per_token, starts[0].total_bytes) == (50, total)
    assert f"d-0: the signals take {total:,} bytes, but only 1,000 are free; " in str(error.value)
    # The suggestion works, because the folder has no files yet.
    monkeypatch.undo()
    assert logits(str(data), str(model), "d", **DRAWN)["samples"] == NUM_SAMPLES


def test_too_little_space_can_be_ignored(data: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "free_bytes", lambda _: 0)
    assert logits(str(data), str(model), "d", **DEFAULTS, yes=True)["samples"] == NUM_SAMPLES


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topk": 0}, "topk: is 0, expected 1 to 16384"),
        ({"topk": VOCAB + 1}, "topk: is 91, but the vocabulary has 90 ids; give at most as many"),
        ({"draws": 3}, "draws: has no effect with method topk; give method sampled"),
        ({"method": "sampled"}, "topk: has no effect with method sampled; give draws"),
        ({"retrieval_k": 3}, "retrieval_k: has no effect without retrieval_input_dir; give both"),
        ({"num_shards": 3}, "num_shards: is 3, but shard is not given; give shard k/3"),
        ({"shard": "1"}, "shard: is 1, but the number of shards is missing; give shard k/N"),
        ({"shard": "3/3"}, "shard: is 3, expected 0 to 2"),
        (
            {"shard": "1/3", "num_shards": 2},
            "shard: is 1/3, but num_shards is 2; give only one of the numbers",
        ),
        ({"num_decoder_tokens": 0}, "num_decoder_tokens: is 0, expected at least 1"),
        ({"device": "abacus"}, "device: abacus is not available; expected a device such as cpu or cuda:0"),
    ],
)
def test_wrong_options_are_refused(data: Path, model: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        logits(str(data), str(model), "d", **{**DEFAULTS, **options})
    problem = str(error.value).replace("--", "")
    assert problem.replace("-", "_") == message.replace("-", "_")


def run(arguments: list[str]) -> Result:
    """Runs `packtok` in this process, which has imported torch."""
    before = signal.getsignal(signal.SIGINT)
    try:
        return CliRunner().invoke(app, arguments)
    finally:
        # The command ignores Ctrl-C while it reports its outcome.
        signal.signal(signal.SIGINT, before)


def test_both_spellings_of_flags_work_and_one_has_no_effect(data: Path, model: Path) -> None:
    arguments = ("--input_dir", f"{data}/", "--model-dir", f"{model}/", "--domain", "d", "--device", "cpu")
    sizes = ("--num_decoder_tokens", str(DEC), "--num-encoder-tokens", str(ENC))
    result = run(
        [
            "logits",
            *arguments,
            *sizes,
            "--shard_id",
            "0",
            "--num_shards",
            "2",
            "--num_ret_passages",
            "9",
            "--json",
        ],
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["output"] == str(output_of(data, model, "d-0"))
    lines = result.stderr.splitlines()
    assert all(line.startswith("packtok: ") for line in lines), lines
    assert lines[0].startswith("packtok: warning: --num_ret_passages has no effect, as in CEPE's script; ")
    assert "bytes per token, " in lines[-1]
    assert run(["logits", *arguments, *sizes, "--shard", "1/2", "-q"]).exit_code == 0
    result = run(["logits", *arguments, *sizes, "--merge", "--num-shards", "2"])
    assert result.stdout.splitlines()[0] == f"output   {output_of(data, model)}"


# The loss.

POWER = 512


def power_law() -> Any:
    weights = torch.arange(1, POWER + 1, dtype=torch.float64) ** -1.2
    # The order of the ids is not that of their probabilities.
    shuffled = torch.randperm(POWER, generator=torch.Generator().manual_seed(0))
    return (weights / weights.sum())[shuffled]


def p_value(counts: Any, teacher: Any, total: float) -> float:
    """Returns the p-value of counts in a chi-square test, with rare ids pooled."""
    expected = teacher * total
    rare = expected < 25
    pooled = lambda values: torch.cat([values[~rare], values[rare].sum()[None]])  # noqa: E731
    statistic = ((pooled(counts) - pooled(expected)) ** 2 / pooled(expected)).sum()
    degrees = torch.tensor((len(pooled(expected)) - 1) / 2, dtype=torch.float64)
    return float(torch.special.gammaincc(degrees, statistic / 2))


def test_sampled_targets_and_their_gradients_are_unbiased_and_top_50_is_not() -> None:
    teacher, seeds, draws = power_law(), 10_000, 12
    logits_ = teacher.log().float()
    uniform_ = np.concatenate([uniforms(seed, np.array([0]), 1, draws)[0] for seed in range(seeds)])
    no_labels = torch.full((seeds,), -1)
    drawn, _ = sampled(logits_.repeat(seeds, 1), torch.from_numpy(uniform_), no_labels)
    total = float(seeds * draws)
    assert p_value(torch.bincount(drawn.flatten(), minlength=POWER).double(), teacher, total) > 0.001

    student = torch.randn(POWER, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def implied(batch: dict[str, Any], rows: int) -> Any:
        """Returns the distribution whose dense gradient is the mean gradient."""
        z = student.clone().requires_grad_()
        distillation_loss(z.expand(1, rows, POWER), batch).backward()
        return student.softmax(0) - z.grad

    assert p_value(implied({"draw_index": drawn[None]}, seeds) * total, teacher, total) > 0.001
    prob, index = top_k(logits_[None].clone(), 50)
    in_top = torch.zeros(POWER, dtype=torch.float64).scatter(0, index[0].long(), prob[0, :-1].double())
    assert p_value(in_top / in_top.sum() * total, teacher, total) < 0.001
    batch = {"distill_prob": prob[None], "distill_index": index[None]}
    assert p_value(implied(batch, 1) * total, teacher, total) < 0.001


def top_k_batch(teacher: Any, k: int) -> dict[str, Any]:
    prob, index = teacher.softmax(-1).topk(k, -1)
    rest = 1 - prob.sum(-1, keepdim=True)
    return {"distill_prob": torch.cat([prob, rest.clamp(min=0)], -1), "distill_index": index}


def test_top_k_loss_is_the_dense_divergence_if_k_is_the_vocabulary() -> None:
    torch.manual_seed(0)
    teacher = torch.randn(2, 5, 40, dtype=torch.float64)
    student = torch.randn(2, 7, 40, dtype=torch.float64)
    ours, dense = (student.clone().requires_grad_() for _ in range(2))
    loss = distillation_loss(ours, top_k_batch(teacher, 40))
    expected = torch.nn.functional.kl_div(
        dense[:, -5:].log_softmax(-1).flatten(0, 1),
        teacher.log_softmax(-1).flatten(0, 1),
        reduction="batchmean",
        log_target=True,
    )
    assert torch.isclose(loss, expected)
    loss.backward()
    expected.backward()
    assert torch.allclose(ours.grad, dense.grad, atol=1e-12)
    assert not ours.grad[:, :2].any()


def test_remaining_mass_is_one_outcome() -> None:
    torch.manual_seed(0)
    teacher, student = torch.randn(2, 1, 3, 40, dtype=torch.float64)
    batch = top_k_batch(teacher, 6)
    q = student.softmax(-1)
    top = q.gather(-1, batch["distill_index"])
    outcomes = torch.cat([top, 1 - top.sum(-1, keepdim=True)], -1)
    expected = (batch["distill_prob"] * (batch["distill_prob"] / outcomes).log()).sum(-1).mean()
    assert torch.isclose(distillation_loss(student, batch), expected)
    assert torch.isclose(distillation_loss(teacher, batch), torch.zeros((), dtype=torch.float64), atol=1e-12)


def test_chunks_and_types_do_not_change_the_loss() -> None:
    torch.manual_seed(0)
    teacher = torch.randn(2, 5, 8)
    drawn = {"draw_index": torch.randint(0, 8, (2, 5, 4))}
    student = torch.randn(2, 6, 8, dtype=torch.float64).requires_grad_()
    for batch in (top_k_batch(teacher.double(), 3), drawn):
        assert torch.autograd.gradcheck(
            lambda z, batch=batch: distillation_loss(z, batch, chunk_positions=2), student
        )
        whole = distillation_loss(student, batch)
        for chunk in (1, 2, 5):
            assert torch.isclose(distillation_loss(student, batch, chunk_positions=chunk), whole)
        assert torch.isclose(distillation_loss(student.bfloat16(), batch).double(), whole, rtol=0.02)


def test_padding_columns_of_the_student_do_not_count() -> None:
    torch.manual_seed(0)
    student = torch.randn(1, 4, 50)
    batch = top_k_batch(torch.randn(1, 4, 40), 5)
    padded = student.clone()
    padded[..., 40:] += 100
    padded.requires_grad_()
    loss = distillation_loss(padded, batch, vocab_size=40)
    assert torch.isclose(loss, distillation_loss(student[..., :40], batch))
    loss.backward()
    assert not padded.grad[..., 40:].any()


def test_wrong_batches_are_refused() -> None:
    z = torch.zeros(1, 4, 10)
    for batch, message in (
        ({}, "the batch has no targets; expected distill_prob and distill_index, or draw_index"),
        (
            {"distill_prob": z},
            "the batch has distill_prob; expected distill_prob and distill_index, or draw_index",
        ),
        (
            {"draw_index": torch.zeros(1, 5, 2)},
            "targets have shape (1, 5, 2), expected (1, D, n) with D at most 4",
        ),
        (
            {"distill_prob": torch.zeros(1, 4, 3), "distill_index": torch.zeros(1, 4, 3)},
            "distill_prob has shape (1, 4, 3), expected (1, 4, 4)",
        ),
    ):
        with pytest.raises(ValueError, match=r"^") as error:
            distillation_loss(z, batch)
        assert str(error.value) == message


def test_small_remaining_masses_are_not_rounding_errors() -> None:
    logits_ = torch.full((1, 1000), -18.0)
    logits_[0, 7] = 0.0
    prob, index = top_k(logits_.clone(), 1)
    expected = 999 * math.exp(-18) / (1 + 999 * math.exp(-18))
    assert index.tolist() == [[7]]
    assert np.isclose(prob[0, 1].item(), expected, rtol=2**-8)
    _, logprob = sampled(logits_, torch.zeros(1, 1, dtype=torch.float64), torch.tensor([7]))
    assert np.isclose(logprob.item(), -expected, rtol=1e-6)

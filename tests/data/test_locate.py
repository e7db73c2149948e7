"""`packtok locate`: from a step to the documents of its rows."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
import reference
import reference_order
import torch

import packtok
from packtok.commands.locate import locate
from packtok.data import run
from packtok.data.token_items import token_items
from packtok.errors import ConfigError

LENGTHS = [7, 1, 12, 3, 3, 9, 20, 2, 5, 8]
CONTEXT_LENGTH = 4
NUM_ITEMS = (sum(LENGTHS) - 1) // CONTEXT_LENGTH


@pytest.fixture
def config(tmp_path: Path) -> Path:
    starts = [sum(LENGTHS[:i]) for i in range(len(LENGTHS))]
    documents = [list(range(start, start + length)) for start, length in zip(starts, LENGTHS, strict=True)]
    reference.write_modalities(tmp_path / "train.pbin", documents, 2)
    file = tmp_path / "run.yaml"
    file.write_text(
        f"dataset: {{paths: {tmp_path}/train.pbin, context_length: {CONTEXT_LENGTH}}}\n"
        "loader: {global_batch_size: 3, shuffle: true, seed: 5, num_replicas: 3}\n"
        "model: {layers: 2}\n"
    )
    return file


def expected(step: int, epoch: int, folder: Path) -> list[dict[str, object]]:
    """Returns the documents of the inputs and the last label of each row, using plain lists."""
    items = reference_order.shuffled(NUM_ITEMS, 5, epoch)[3 * step : 3 * step + 3]
    rows = []
    for rank, item in enumerate(items):
        tokens = range(item * CONTEXT_LENGTH, item * CONTEXT_LENGTH + CONTEXT_LENGTH + 1)
        documents, start = [], 0
        for document, length in enumerate(LENGTHS):
            own = [token - start for token in tokens if start <= token < start + length]
            if own:
                place = {"document": document, "start": own[0], "stop": own[-1] + 1}
                documents.append({"path": str(folder / "train.pbin"), **place})
            start += length
        rows.append({"epoch": epoch, "rank": rank, "row": 0, "item": item, "documents": documents})
    return rows


def test_every_row_names_its_documents(packtok_cli, config: Path) -> None:
    done = packtok_cli("locate", config, "--step", 4, "--json")
    assert json.loads(done.stdout) == expected(4, 0, config.parent)
    steps = NUM_ITEMS // 3
    assert locate(str(config), 2 * steps + 1) == expected(1, 2, config.parent)
    done = packtok_cli("locate", config, "--step", 1, "--epoch", 2)
    row = expected(1, 2, config.parent)[0]
    documents = ", ".join(
        f"{part['path']}:{part['document']}[{part['start']}:{part['stop']}]" for part in row["documents"]
    )
    assert done.stdout.splitlines()[0] == f"epoch 2 rank 0 row 0 item {row['item']}: {documents}"


def test_saved_state_sets_the_order_and_checks_the_data(packtok_cli, config: Path) -> None:
    dataset = packtok.TokenDataset(config.parent / "train.pbin", CONTEXT_LENGTH)
    loader = packtok.DataLoader(dataset, 2, shuffle=True, seed=9)
    for _ in zip(range(3), loader, strict=False):
        pass
    rows = packtok.DataLoader(dataset, 2, shuffle=True, seed=9).locate(2)
    names = ("path", "document", "start", "stop")
    for row in rows:
        row["documents"] = [dict(zip(names, part, strict=True)) for part in row["documents"]]
    saved, checkpoint = config.parent / "state.json", config.parent / "checkpoint.pt"
    saved.write_text(json.dumps(loader.state_dict()))
    torch.save({"model": {"w": torch.zeros(3)}, "train": [loader.state_dict()]}, checkpoint)
    config.write_text(config.read_text().replace(", num_replicas: 3", ""))
    for file in (saved, checkpoint):
        assert locate(str(config), 2, state=str(file)) == rows

    config.write_text(config.read_text().replace("context_length: 4", "context_length: 5"))
    done = packtok_cli("locate", config, "--step", 2, "--state", saved, code=1)
    assert done.stderr.startswith(f"packtok: {saved}: the state does not match: data is ")


def test_mixture_names_its_documents(config: Path) -> None:
    pbin = str(config.parent / "train.pbin")
    other = config.parent / "other.pbin"
    reference.write_modalities(other, [[1, 2, 3, 4, 5, 6, 7], [8, 9]], 2)
    sources = {pbin: 3, str(other): 1}
    config.write_text(
        f"dataset: {{type: Mixture, sources: {json.dumps(sources)}, seed: 7, context_length: 4}}\n"
        "loader: {global_batch_size: 4}\n"
    )
    mixture = packtok.Mixture(sources, seed=7, context_length=4)
    rows = packtok.DataLoader(mixture, 4, rank=0, num_replicas=1).locate(0)
    names = ("path", "document", "start", "stop")
    expected = [
        {**row, "documents": [dict(zip(names, part, strict=True)) for part in row["documents"]]}
        for row in rows
    ]
    located = locate(str(config), 0)
    assert located == expected
    assert {part["path"] for row in located for part in row["documents"]} == {pbin, str(other)}
    config.write_text(config.read_text().replace("context_length: 4", "paths: x"))
    with pytest.raises(ConfigError, match=r"dataset\.paths: unknown key; known keys are sources, seed, "):
        locate(str(config), 0)


@pytest.mark.parametrize(
    ("old", "new", "kind", "text"),
    [
        (
            "seed: 5",
            "sed: 5",
            ConfigError,
            "loader.sed: unknown key; did you mean 'seed'?",
        ),
        ("dataset: {", "dataset: {type: Images, ", ConfigError, "dataset.type is 'Images', expected 'Token"),
        (
            "context_length",
            "context",
            ConfigError,
            "dataset.context: unknown key; did you mean 'context_length'?",
        ),
        ("loader: {", "loader: 3 # {", ConfigError, "loader: expected a mapping, found 3"),
        (
            "size: 3",
            "size: 0",
            ValueError,
            "global_batch_size is 0, expected an integer from 1 to 9223372036854775807",
        ),
        (
            "dataset: {",
            "dataset: {dtype: float32, ",
            ConfigError,
            "dataset.dtype is 'float32', expected 'int64' or 'int32'",
        ),
        (
            "dataset: {",
            "dataset: {pin_memory: 2, ",
            ConfigError,
            "dataset.pin_memory is 2, expected False or True",
        ),
        (
            "size: 3",
            "size: 90",
            ValueError,
            "an epoch has no batch: 17 items, global batch 90; lower global_batch_size, or set "
            "at_epoch_end='short'",
        ),
    ],
)
def test_errors_name_the_key(config: Path, old: str, new: str, kind: type[Exception], text: str) -> None:
    config.write_text(config.read_text().replace(old, new).replace("num_replicas: 3", "num_replicas: 1"))
    with pytest.raises(kind, match=re.escape(text)):
        locate(str(config), 0)


def test_keys_of_tensors_change_no_row(config: Path) -> None:
    rows = locate(str(config), 1)
    # Memory is pinned on the machine of the training, which may have a GPU that this one has not.
    config.write_text(config.read_text().replace("dataset: {", "dataset: {dtype: int32, pin_memory: true, "))
    assert locate(str(config), 1) == rows


def test_files_that_record_no_documents_are_read_as_the_config_says(tmp_path: Path) -> None:
    np.array([5, 6, 7, 2, 8, 9, 2, 4, 4, 4, 4, 2], np.uint16).tofile(tmp_path / "raw.bin")
    reading = "format: raw, input_dtype: uint16, boundaries: eos=2"
    config = tmp_path / "run.yaml"
    config.write_text(f"dataset: {{paths: {tmp_path}/raw.bin, context_length: 3, {reading}}}\n")
    (row,) = locate(str(config), 1)
    assert [(part["document"], part["start"], part["stop"]) for part in row["documents"]] == [
        (0, 3, 4),
        (1, 0, 3),
    ]


def test_plans_and_splits_are_made_in_the_scratch_folder_unless_training_made_them(config: Path) -> None:
    scratch = config.parent / "scratch"
    options = "packing: best_fit, split: train, validation_last: 2, "
    config.write_text(config.read_text().replace("dataset: {", f"dataset: {{{options}"))
    before = {*config.parent.iterdir()}
    first = run.open_run(str(config), scratch_dir=scratch)
    assert {*config.parent.iterdir()} == {*before, scratch}
    assert len([*scratch.iterdir()]) == 2
    located = locate(str(config), 1)
    assert len({*config.parent.iterdir()} - before - {scratch}) == 2
    other = config.parent / "other"
    second = run.open_run(str(config), scratch_dir=other)
    assert not other.exists()
    for opened in (first, second):
        rows = opened.batch(1)
        assert [row.item for row in rows] == [row["item"] for row in located]
        documents = [[part["document"] for part in row["documents"]] for row in located]
        assert [[part[1] for part in opened.locate(row.item)] for row in rows] == documents
        assert [row.rank for row in opened.batch(1, rank=2)] == [2]


def test_nonexistent_step_is_reported_in_one_line(packtok_cli, config: Path) -> None:
    done = packtok_cli("locate", config, "--step", 7, "--epoch", 1, code=1)
    assert done.stderr == "packtok: no step 7: epoch 1 has 5\n"


def test_state_with_an_invalid_field_is_an_error_that_names_it(config: Path) -> None:
    dataset = packtok.TokenDataset(config.parent / "train.pbin", CONTEXT_LENGTH)
    good = packtok.DataLoader(dataset, 3, shuffle=True, seed=5).state_dict()
    saved = config.parent / "state.json"
    remedy = "load what state_dict returned, or start without a state"
    for name, value, text in (
        ("global_batch_size", "x", "'x', expected an integer from 1 to 9223372036854775807"),
        ("seed", 1.5, "1.5, expected an integer from 0 to 18446744073709551615"),
        (
            "num_global_samples",
            10**9,
            "1000000000, expected a multiple of 3, the global batch, up to 15, the end of epoch 0",
        ),
    ):
        saved.write_text(json.dumps({**good, name: value}))
        with pytest.raises(ValueError, match="the state cannot be loaded") as raised:
            locate(str(config), 0, state=str(saved))
        assert str(raised.value) == f"{saved}: the state cannot be loaded: {name} is {text}; {remedy}"


def test_file_without_a_state_is_named(config: Path) -> None:
    empty, torn, two = (config.parent / name for name in ("empty.json", "torn.pt", "two.json"))
    empty.write_text("{}")
    torn.write_bytes(b"PK\x03\x04")
    states = [packtok.DataLoader(range(10), 2, seed=seed, shuffle=True).state_dict() for seed in (1, 2)]
    two.write_text(json.dumps(states))
    for file, text in (
        (empty, "contains no state of a packtok.DataLoader; save one as JSON"),
        (two, "contains several different states of a packtok.DataLoader; save one as JSON"),
        (torn, "neither JSON nor a torch.save checkpoint"),
    ):
        with pytest.raises(ConfigError, match=f"^{re.escape(f'{file}: {text}')}$"):
            locate(str(config), 0, state=str(file))


def test_run_has_the_arguments_of_its_datasets_and_needs_no_torch() -> None:
    arguments = set(inspect.signature(packtok.TokenDataset).parameters)
    items = {*inspect.signature(token_items).parameters} - {"scratch_dir"}
    assert items | {*run._TENSOR_KEYS} == arguments
    mixture = inspect.signature(packtok.Mixture).parameters
    assert {*run._MIXTURE_KEYS, "options"} == {*mixture}
    code = "import sys, packtok.commands.locate; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)

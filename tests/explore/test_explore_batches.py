"""The pages of the batches of a run, compared with what the datasets and the loader of the run give."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
import reference
from explore_site import served

import packtok
from packtok.commands.locate import locate
from packtok.data.run import open_run
from packtok.explore.html.mask import bounds_of, mask_svg
from packtok.explore.site import site_of_folder

EOD = 9
TOKENS = [[1, 2, 3, EOD], [4, EOD], [5, 6, 7, 8, 1, 2, EOD], [3, EOD], [2, 4, EOD]]


@pytest.mark.parametrize(
    "options",
    [
        {"packing": "best_fit", "pad_token_id": 0, "cu_seqlens": True},
        {"packing": "document", "labels": "aligned", "split": "train", "validation_last": 1},
        {"packing": "concat"},
    ],
)
def test_rows_are_those_of_the_loader(tmp_path: Path, options: dict[str, Any]) -> None:
    paths = [str(tmp_path / name) for name in ("a.pbin", "b.pbin")]
    for path in paths:
        reference.write_modalities(Path(path), TOKENS, 2)
    sources = {paths[0]: 2, paths[1]: 1}
    dataset = {
        "type": "Mixture",
        "sources": sources,
        "seed": 3,
        "context_length": 6,
        "num_items": 16,
        **options,
    }
    config = tmp_path / "run.yaml"
    loader = {"global_batch_size": 4, "num_replicas": 2}
    config.write_text(json.dumps({"dataset": dataset, "loader": loader}))
    mixture = packtok.Mixture(
        sources,
        seed=3,
        context_length=6,
        num_items=16,
        **{**options, "position_ids": True, "document_ids": True},
    )
    site = replace(site_of_folder(tmp_path), run=open_run(str(config)))
    expected = [row for row in locate(str(config), 1) if row["rank"] == 1]
    assert len(expected) == 2
    with served(site) as server:
        page = server.page("/batch?step=1&rank=1")
        rows = json.loads(server.get("/batch?step=1&rank=1&format=json").text)["rows"]
        for i, row in enumerate(expected):
            assert row == {key: rows[i][key] for key in row}
            url = f"/batch?epoch=0&step=1&rank=1&row={i}"
            assert url in page.links()
            fields = json.loads(server.get(f"{url}&format=json").text)
            item = mixture[row["item"]]
            for name in ("input_ids", "labels", "position_ids", "document_ids"):
                assert fields[name] == item[name].tolist()
            html = server.page(url).html
            padding = sum(number < 0 for number in fields["document_ids"])
            assert (f"Padding: {padding} positions" in html) == (padding > 0)
            unlabelled = sum(label == -100 for label in fields["labels"]) - padding
            assert html.count('<span class="label">no label</span>') == unlabelled
        assert server.get("/batch?epoch=0&step=1000000").status == 400
        assert server.get("/batch?rank=2").status == 400


def test_mask_of_many_documents_is_small_and_that_of_few_is_exact() -> None:
    svg = mask_svg(bounds_of(np.array([0, 0, 0, 1, 1, -1], np.int32)))
    assert 'class="s0" d="M0 0V3H3z"' in svg
    assert 'class="s1" d="M3 3V5H5z"' in svg
    assert 'class="pad" d="M5 5V6H6z"' in svg
    assert len(mask_svg(bounds_of(np.repeat(np.arange(1024, dtype=np.int32), 8)))) < 1000
    mixed = np.repeat(np.arange(400, dtype=np.int32), [1, 41] * 200)
    assert len(mask_svg(bounds_of(mixed))) < 20_000


def test_without_a_run_there_is_no_batch_and_a_wrong_run_is_an_error(packtok_cli, tmp_path: Path) -> None:
    with served(site_of_folder(tmp_path)) as server:
        assert server.get("/batch").status == 404
    config = tmp_path / "run.yaml"
    config.write_text("dataset: {paths: x, context: 3}")
    done = packtok_cli("explore", tmp_path, "--run", config, code=2)
    assert done.stderr.startswith(f"packtok: {config}: dataset.context: unknown key; known keys are paths, ")
    assert done.stderr.count("\n") == 1

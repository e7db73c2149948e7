"""The pages of the batches of a run, compared with what the loader of the run serves."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
import reference
import torch
from explore_site import Page, Served, notes, served, write_corpus

import packtok
from packtok.catalog.base import BASE_VARIABLES
from packtok.commands.convert import Reading
from packtok.commands.explore import explore, site_to_serve
from packtok.commands.locate import locate
from packtok.data.run import open_run
from packtok.errors import ConfigError
from packtok.explore import server
from packtok.explore.html.mask import bounds_of, mask_svg
from packtok.explore.site import Site, site_of_file, site_of_folder

EOD = 9
TOKENS = [[1, 2, 3, EOD], [4, EOD], [5, 6, 7, 8, 1, 2, EOD], [3, EOD], [2, 4, EOD]]
LOADER = {"global_batch_size": 4, "num_replicas": 2}
FIELDS = ("input_ids", "labels", "position_ids", "document_ids")


def write_run(folder: Path, dataset: dict[str, Any], loader: dict[str, Any] | None = None) -> str:
    config = folder / "run.yaml"
    config.write_text(json.dumps({"dataset": dataset, "loader": LOADER if loader is None else loader}))
    return str(config)


@contextmanager
def served_run(site: Site, config: str, state: str | None = None) -> Iterator[Served]:
    with served(site.with_run(open_run(config, state))) as server:
        yield server


def facts(server: Served, path: str) -> dict[str, Any]:
    answer = server.get(f"{path}&format=json")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    content: dict[str, Any] = json.loads(answer.text)
    return content


def mask_of(page: Page, length: int) -> np.ndarray[Any, Any]:
    """Returns the matrix that the only picture of a page draws, without the triangle of the whole row."""
    matrix = np.zeros((length, length), bool)
    for path in page.attributes("path", "d")[1:]:
        shapes = re.findall(r"M(\d+) \1V(\d+)H\2z", path)
        assert path == "".join(f"M{start} {start}V{stop}H{stop}z" for start, stop in shapes)
        for start, stop in shapes:
            size = int(stop) - int(start)
            part = slice(int(start), int(stop))
            matrix[part, part] |= np.tri(size, dtype=bool)
    return matrix


@pytest.mark.parametrize(
    "options",
    [
        {"packing": "best_fit", "pad_token_id": 0, "cu_seqlens": True},
        {"packing": "document", "labels": "aligned", "split": "train", "validation_last": 1},
        {"packing": "concat", "document_mask": "dense"},
    ],
)
def test_rows_are_those_that_the_loader_serves(tmp_path: Path, options: dict[str, Any]) -> None:
    paths = [str(tmp_path / name) for name in ("a.pbin", "b.pbin")]
    for path in paths:
        reference.write_modalities(Path(path), TOKENS, 2)
    sources = {paths[0]: 2, paths[1]: 1}
    arguments = {"seed": 3, "context_length": 6, "num_items": 16, **options}
    config = write_run(tmp_path, {"type": "Mixture", "sources": sources, **arguments})
    mixture = packtok.Mixture(sources, **{**arguments, "position_ids": True, "document_ids": True})
    with served_run(site_of_folder(tmp_path), config) as server:
        for rank in range(2):
            loader = packtok.DataLoader(mixture, global_batch_size=4, rank=rank, num_replicas=2)
            for step, batch in enumerate(loader):
                located = [row for row in locate(config, step) if row["rank"] == rank]
                address = f"/batch?epoch=0&step={step}&rank={rank}"
                rows = facts(server, address)["rows"]
                assert [{key: row[key] for key in located[0]} for row in rows] == located
                for i, row in enumerate(rows):
                    content = facts(server, f"{address}&row={i}")
                    assert content["documents"] == row["documents"]
                    assert content["separated_by"] == [
                        name for name in options if "cu_" in name or "mask" in name
                    ]
                    assert [row["source"], row["item_of_source"]] == [
                        mixture.names[mixture.source_of(row["item"])[0]],
                        mixture.source_of(row["item"])[1],
                    ]
                    for name in FIELDS:
                        assert content[name] == batch[name][i].tolist()
        page = server.page("/batch?step=1&rank=1")
        assert [link for link in page.links() if "row=" in link] == [
            f"/batch?epoch=0&step=1&rank=1&row={i}" for i in range(2)
        ]
        # The pages show the same as their JSON.
        for i in range(2):
            page = server.page(f"/batch?epoch=0&step=1&rank=1&row={i}")
            content = facts(server, f"/batch?epoch=0&step=1&rank=1&row={i}")
            ids = torch.tensor(content["document_ids"])
            expected = packtok.document_mask(ids)
            assert (mask_of(page, 6) == expected.numpy()).all()
            inputs = [number for number, id_ in zip(content["input_ids"], ids, strict=True) if id_ >= 0]
            labels = [None if label == -100 else str(label) for label in content["labels"]]
            texts = [str(number) for number in inputs]
            assert page.pairs() == list(zip(texts, labels, strict=False))
            padding = 6 - len(inputs)
            assert page.all("p", class_="chip") == ([f"{padding} positions without label"] if padding else [])
        assert server.get("/batch?epoch=0&step=1000000").status == 400
        assert server.get("/batch?rank=2").status == 400
        assert server.get("/batch?rank=1&row=2").status == 400


@pytest.mark.parametrize(
    ("options", "text", "name"),
    [
        ({}, "The batch has no document_mask, document_ids or cu_seqlens, so attention is causal", "causal"),
        ({"position_ids": True}, "which masks nothing by itself", "causal"),
        ({"cu_seqlens": True, "document_ids": True}, "The batch has document_ids, cu_seqlens, with", "mask"),
        ({"document_mask": "compact"}, "The batch has document_mask, with which", "mask"),
    ],
)
def test_picture_and_note_are_those_of_the_fields_of_the_batch(
    tmp_path: Path, options: dict[str, Any], text: str, name: str
) -> None:
    reference.write_modalities(tmp_path / "a.pbin", TOKENS, 2)
    config = write_run(tmp_path, {"paths": str(tmp_path / "a.pbin"), "context_length": 6, **options}, {})
    with served_run(site_of_folder(tmp_path), config) as server:
        for address in ("/batch", "/batch?row=0"):
            page = server.page(address)
            assert text in " ".join(page.text.split())
            (classes,) = page.attributes("svg", "class")
            assert classes.split()[-1] == name


def test_page_starts_at_the_step_after_a_saved_state(tmp_path: Path) -> None:
    reference.write_modalities(tmp_path / "a.pbin", TOKENS, 2)
    dataset = {"paths": str(tmp_path / "a.pbin"), "context_length": 2}
    loader = packtok.DataLoader(
        packtok.TokenDataset(**dataset), global_batch_size=2, shuffle=True, seed=5, rank=0, num_replicas=1
    )
    config, saved = write_run(tmp_path, dataset, {"global_batch_size": 8}), tmp_path / "state.json"
    batches = list(loader)
    for served_steps in (1, len(batches)):
        fresh = packtok.DataLoader(
            loader.dataset, global_batch_size=2, shuffle=True, seed=5, rank=0, num_replicas=1
        )
        for _ in zip(range(served_steps), fresh, strict=False):
            pass
        saved.write_text(json.dumps(fresh.state_dict()))
        epoch, step = (0, 1) if served_steps == 1 else (1, 0)
        with served_run(site_of_folder(tmp_path), config, str(saved)) as server:
            page = server.page("/batch")
            assert page.text_of("h1").startswith(f"Step {step} (0–{len(batches) - 1}) of epoch {epoch}")
            content = [facts(server, f"/batch?epoch={epoch}&step={step}&row={i}") for i in range(2)]
        expected = next(iter(fresh)) if epoch else batches[1]
        assert [row["input_ids"] for row in content] == expected["input_ids"].tolist()
        assert [row["labels"] for row in content] == expected["labels"].tolist()
    state = {**loader.state_dict(), "epoch": 2, "num_global_samples": 3, "skip_num_global_samples": 1}
    saved.write_text(json.dumps(state))
    with served_run(site_of_folder(tmp_path), config, str(saved)) as server:
        assert notes(server.get("/batch?epoch=2&step=0").text)[0].startswith(
            "The saved run skipped 1 samples"
        )
        assert notes(server.get("/batch?epoch=1&step=0").text)[0].startswith("Some texts are not shown")


def letters(first: str) -> bytes:
    """A tokenizer whose ids are letters, as the content of its file."""
    model = {"type": "BPE", "vocab": {chr(ord(first) + i): i for i in range(10)}, "merges": []}
    return json.dumps({"model": model, "decoder": {"type": "Fuse"}}).encode()


def test_documents_link_to_pages_that_exist_only(tmp_path: Path) -> None:
    files = [tmp_path / "served" / "a.pbin", tmp_path / "elsewhere" / "b.pbin"]
    for file, ids in zip(files, ([1, 2, EOD], [3, 4, EOD]), strict=True):
        file.parent.mkdir()
        reference.write_modalities(file, [ids] * 3, 2)
    dataset = {"paths": [*map(str, files)], "context_length": 4, "packing": "document"}
    config, tokenizer = (
        write_run(tmp_path, dataset, {"global_batch_size": 6}),
        packtok.Tokenizer(letters("a")),
    )
    for site, name, number in (
        (site_of_folder(tmp_path, tokenizer), "elsewhere/b.pbin", 6),
        (site_of_folder(files[0].parent, tokenizer), "a.pbin", 3),
        # A single file is the only one that has pages, and its neighbours have none.
        (site_of_file(files[0], tokenizer), "a.pbin", 3),
        (site_of_file(files[1], tokenizer), "b.pbin", 3),
    ):
        with served_run(site, config) as server:
            page = server.page("/batch")
            links = [link for link in page.links() if link.startswith("/documents/")]
            assert len(links) == number
            assert f"/documents/{name}?document=2" in links
            assert {server.get(link).status for link in links} == {200}
            # The texts of files that are not served are shown, too.
            assert page.all("div", class_="tokens") == ["bcj"] * 3 + ["dej"] * 3


def test_documents_of_a_file_that_is_read_in_another_way_have_no_links(tmp_path: Path) -> None:
    np.array([5, 6, 7, 2, 8, 9, 2, 4, 4, 4, 4, 2], np.uint16).tofile(tmp_path / "a.bin")
    reading = ("raw", "uint16", "eos=2")
    names = dict(zip(("format", "input_dtype", "boundaries"), reading, strict=True))
    config = write_run(tmp_path, {"paths": str(tmp_path / "a.bin"), "context_length": 3, **names}, {})
    for own, expected in ((reading, ["/documents/a.bin?document=0"]), (("raw", "uint16", None), [])):
        with served_run(site_of_file(tmp_path / "a.bin", None, own), config) as server:
            page = server.page("/batch")
            assert [link for link in page.links() if link.startswith("/documents/")] == expected
            # The first row has the first three tokens of the first document.
            assert facts(server, "/batch?row=0")["input_ids"] == [5, 6, 7]


def test_text_is_decoded_by_the_tokenizer_that_made_the_file(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    reference.write_modalities(tmp_path / "plain" / "a.pbin", [[1, 2, 3, 4, 5]], 2)
    corpus = write_corpus(tmp_path / "c.jsonl", ["some words"])
    packtok.pack(input=corpus, output=tmp_path / "packed" / "a.pbin", tokenizer="gpt2")
    plain, packed = (
        write_run(tmp_path / name, {"paths": str(tmp_path / name / "a.pbin"), "context_length": 1}, {})
        for name in ("plain", "packed")
    )
    served_folder = tmp_path / "served"
    served_folder.mkdir()
    # This tokenizer made neither file.
    (served_folder / "tokenizer.json").write_bytes(letters("p"))
    given = packtok.Tokenizer(letters("a"))
    for config, tokenizer, expected in (
        (plain, None, None),
        (plain, given, ["b"]),
        (packed, None, ["some"]),
        (packed, given, ["some"]),
    ):
        with served_run(site_of_folder(served_folder, tokenizer), config) as server:
            page = server.page("/batch?row=0")
            if expected is None:
                assert (
                    "does not say which tokenizer it was packed with; give --tokenizer" in notes(page.html)[0]
                )
            else:
                assert [text.lower() for text, _ in page.tokens()] == expected


def test_page_of_a_large_batch_is_small(tmp_path: Path) -> None:
    reference.write_modalities(tmp_path / "a.pbin", [[1, 2, EOD]] * 90_000, 2)
    dataset = {"paths": str(tmp_path / "a.pbin"), "context_length": 4096, "document_mask": "compact"}
    config = write_run(tmp_path, dataset, {"global_batch_size": 60})
    with served_run(site_of_folder(tmp_path), config) as server:
        page = server.page("/batch")
        assert len(page.html) < 150_000
        assert page.text.count("and 1,354 more") > 5
        assert len([link for link in page.links() if "row=" in link]) == 16
        assert "/batch?epoch=0&step=0&rank=0&from=16" in page.links()
        last = server.page("/batch?from=48")
        assert "Rows 48–59 of 60" in last.text
        assert len(server.page("/batch?row=59").html) < 300_000
        assert len(facts(server, "/batch?row=59&from=4000")["input_ids"]) == 96


def test_mask_of_many_documents_is_small_and_that_of_few_is_exact() -> None:
    svg = mask_svg(bounds_of(np.array([0, 0, 0, 1, 1, -1], np.int32)), separates=True)
    assert 'class="s0" d="M0 0V3H3z"' in svg
    assert 'class="s1" d="M3 3V5H5z"' in svg
    assert 'class="pad" d="M5 5V6H6z"' in svg
    assert len(mask_svg(bounds_of(np.repeat(np.arange(1024, dtype=np.int32), 8)), separates=True)) < 1000
    mixed = np.repeat(np.arange(400, dtype=np.int32), [1, 41] * 200)
    assert len(mask_svg(bounds_of(mixed), separates=True)) < 20_000
    assert len(mask_svg(bounds_of(mixed), separates=True, max_shapes=40)) < 1000


def test_run_without_a_path_serves_its_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in BASE_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    for name in ("a/x.pbin", "b/c/y.pbin", "other.pbin", "a/other.pbin"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        reference.write_modalities(tmp_path / name, TOKENS, 2)
    paths = [str(tmp_path / name) for name in ("a/x.pbin", "b/c/y.pbin")]
    (tmp_path / "b" / "c" / "tokenizer.json").write_bytes(letters("a"))
    run = open_run(write_run(tmp_path, {"paths": paths, "context_length": 30, "packing": "document"}, {}))
    with served(site_to_serve(None, None, None, False, Reading(), run)) as server:
        answer = server.get("/")
        assert (answer.status, answer.headers["location"]) == (303, "/batch")
        for step, name in ((0, "a/x.pbin"), (5, "b/c/y.pbin")):
            assert f"/documents/{name}?document=0" in server.page(f"/batch?step={step}").links()
            for kind in ("documents", "items", "file"):
                assert server.get(f"/{kind}/{name}?context_length=4").status == 200
        assert server.page("/documents/b/c/y.pbin").tokens()[0] == ("b", 1)
        for path in ("documents/other.pbin", "documents/a/other.pbin", "dataset/a", "file/run.yaml"):
            assert server.get(f"/{path}").status == 404
    with pytest.raises(ConfigError, match="the config says how files of the run are read"):
        site_to_serve(None, None, None, False, Reading("raw"), run)


def test_command_leaves_no_plan_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, temporary = tmp_path / "data", tmp_path / "temporary"
    data.mkdir()
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    reference.write_modalities(data / "a.pbin", TOKENS, 2)
    dataset = {"paths": str(data / "a.pbin"), "context_length": 6, "packing": "best_fit"}
    config = write_run(tmp_path, {**dataset, "split": "train", "validation_last": 1}, {})
    rows: list[int] = []

    def serve(site: Site, app: Any, listener: Any, *, ready: Any) -> None:
        assert not list(temporary.iterdir())
        with served(site) as running:
            assert "/batch" in running.page("/batch").links()
            rows.extend(facts(running, "/batch?row=0")["input_ids"])

    monkeypatch.setattr(server, "serve", serve)
    explore(data, port=0, run=config)
    assert [path.name for path in data.iterdir()] == ["a.pbin"]
    options = {**dataset, "split": "train", "validation_last": 1, "cache_dir": tmp_path}
    assert rows == packtok.TokenDataset(**options)[0]["input_ids"].tolist()
    with pytest.raises(ConfigError, match="--state: is a state of a run; give --run too"):
        explore(data, port=0, state="state.json")


def test_without_a_run_there_is_no_batch_and_a_wrong_run_is_an_error(packtok_cli, tmp_path: Path) -> None:
    with served(site_of_folder(tmp_path)) as server:
        assert server.get("/batch").status == 404
    config = tmp_path / "run.yaml"
    config.write_text("dataset: {paths: x, context: 3}")
    done = packtok_cli("explore", tmp_path, "--run", config, code=2)
    assert done.stderr.startswith(f"packtok: {config}: dataset.context: unknown key; did you mean 'context_l")
    assert done.stderr.count("\n") == 1

"""`packtok sample` draws the samples of a naive implementation, without the losses of CEPE's scripts."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pbins
import pytest
import reference_samples as reference
from command_line import PacktokCli
from extent import extent
from hypothesis import given, settings
from hypothesis import strategies as st
from peers import python_of, trained

import packtok

HALVES = (0.3, 0.3, 0.4)
# Proportions of the recipe `concat`.
SEVEN = {
    "arxiv": "0.025",
    "book": "0.045",
    "c4-rp": "0.15",
    "cc": "0.67",
    "github": "0.045",
    "stackexchange": "0.02",
    "wiki": "0.045",
}
Domains = dict[str, list[list[int]]]


def documents(count: int, longest: int, seed: int, vocabulary: int = 200) -> list[list[int]]:
    """Returns documents of random lengths and ids."""
    numbers = random.Random(seed)
    return [
        [numbers.randrange(vocabulary) for _ in range(numbers.randrange(longest + 1))] for _ in range(count)
    ]


def write(folder: Path, domains: Domains, files: int = 2, width: int = 2) -> Path:
    """Writes each domain's documents into some pbins in a folder of its name."""
    for name, listed in domains.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(files):
            pbins.write(folder / name / f"{number}.pbin", listed[number::files], width)
    return folder


def recipe(domains: Domains, *, from_: str = "documents", **options: Any) -> dict[str, Any]:
    """Returns a recipe of equal proportions, with windows of 8 + 4 tokens."""
    return {
        "windows": {"from": from_, "context": 8, "decoder": 4},
        "domains": {name: 1 / len(domains) for name in domains},
        "splits": dict(zip(reference.SIDES, HALVES, strict=True)),
        "samples": {"test": 6, "train": 10},
        **options,
    }


def taken(out: Path, side: str, domain: str) -> list[list[int]]:
    """Returns the tokens of each sample of a folder."""
    samples = reference.read_mds(out / side / domain)
    assert all(sample["domain"] == domain for sample in samples)
    return [sample["prev_token_ids"] + sample["token_ids"] for sample in samples]


def tree(folder: Path) -> dict[str, bytes]:
    """Returns the content of all files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Domains]:
    """Returns token files of two domains, and their documents."""
    domains = {"arxiv": documents(60, 60, 1), "book": documents(50, 90, 2)}
    return write(tmp_path_factory.mktemp("tokens"), domains), domains


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Returns a folder with a packed domain and its tokenizer."""
    folder = tmp_path_factory.mktemp("texts")
    tokenizer = oracle.byte_level(folder / "tokenizer.json")
    (folder / "wiki").mkdir()
    numbers = random.Random(5)
    lines = [{"text": "".join(numbers.choices("ab é\n", k=numbers.randrange(80)))} for _ in range(40)]
    (folder / "c.jsonl").write_text("\n".join(map(json.dumps, lines)))
    packtok.pack(input=str(folder / "c.jsonl"), output=folder / "wiki" / "w.pbin", tokenizer=str(tokenizer))
    return folder, tokenizer


@pytest.mark.parametrize("from_", ["documents", "stream"])
@settings(max_examples=extent(200, 12))
@given(data=st.data())
def test_samples_are_those_of_a_naive_implementation(from_: str, data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 2**32))
    domains = {"a": documents(20, 40, seed), "b": documents(10, 60, seed + 1)}
    domains["a"] += domains["a"][:3]
    context, decoder = data.draw(st.tuples(st.integers(1, 12), st.integers(1, 12)))
    expected = {
        name: reference.draw(
            listed, is_stream=from_ == "stream", context=context, decoder=decoder, splits=HALVES, seed=seed
        )
        for name, listed in domains.items()
    }
    totals = {}
    for side in ("test", "train"):
        available = [len(expected[name][side].samples) for name in domains]
        totals[side] = data.draw(st.integers(0, 2 * min(available)))
    with tempfile.TemporaryDirectory() as folder:
        root = write(Path(folder) / "tokens", domains, files=data.draw(st.integers(1, 4)))
        report = packtok.draw_samples(
            recipe(
                domains,
                from_=from_,
                windows={"from": from_, "context": context, "decoder": decoder},
                samples=totals,
                seed=seed,
            ),
            Path(folder) / "out",
            tokens=root,
        )
        for side, total in totals.items():
            for name, quota in zip(domains, reference.quotas(total, ["0.5", "0.5"]), strict=True):
                if quota == 0:
                    assert not (Path(folder) / "out" / side / name).exists()
                else:
                    samples = taken(Path(folder) / "out", side, name)
                    assert samples == expected[name][side].samples[:quota]
    for counts in report["sides"]:
        side = expected[counts["domain"]][counts["side"]]
        assert counts["documents"] == len(side.documents)
        if counts["side"] != "retrieval":
            assert counts["available"] == len(side.samples)
            assert counts["used"] + counts["over_quota"] == counts["available"]
            assert counts["too_short"] == (side.too_short if from_ == "documents" else 0)
            assert counts["tail_tokens"] == side.tail_tokens


def test_windows_tile_a_document(tmp_path: Path) -> None:
    document = list(range(200))
    root = write(tmp_path / "tokens", {"a": [document]}, files=1)
    side = reference.side_of(document, HALVES, 42)
    assert side != "retrieval"
    packtok.draw_samples(recipe({"a": []}, samples={side: 48}), tmp_path / "out", tokens=root)
    samples = reference.read_mds(tmp_path / "out" / side / "a")
    decoders = sorted(sample["token_ids"] for sample in samples)
    assert [token for ids in decoders for token in ids] == document[8:]
    assert all(
        drawn["prev_token_ids"] == list(range(drawn["token_ids"][0] - 8, drawn["token_ids"][0]))
        for drawn in samples
    )


def test_sides_are_disjoint_and_duplicates_stay_together(tmp_path: Path) -> None:
    unique = [[number] * 12 for number in range(100)]
    root = write(tmp_path / "tokens", {"a": unique * 3}, files=3)
    report = packtok.draw_samples(
        recipe({"a": []}, samples={"test": 1000, "train": 1000}),
        tmp_path / "out",
        tokens=root,
        allow_short=True,
    )
    sides = {side: {ids[0] for ids in taken(tmp_path / "out", side, "a")} for side in ("test", "train")}
    assert not sides["test"] & sides["train"]
    counts = {counts_of_side["side"]: counts_of_side["documents"] for counts_of_side in report["sides"]}
    assert sum(counts.values()) == 300
    assert {side: counts[side] for side in sides} == {
        side: 3 * len(numbers) for side, numbers in sides.items()
    }


def test_files_and_other_documents_do_not_move_a_document(two: tuple[Path, Domains], tmp_path: Path) -> None:
    root, domains = two
    packtok.draw_samples(recipe(domains), tmp_path / "a", tokens=root)
    shuffled = {name: random.Random(3).sample(listed, len(listed)) for name, listed in domains.items()}
    packtok.draw_samples(recipe(domains), tmp_path / "b", tokens=write(tmp_path / "one", shuffled, files=1))
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    more = {name: listed + documents(30, 80, 9) for name, listed in domains.items()}
    every = {"test": 10**6, "train": 10**6}
    for out, files in (("c", root), ("d", write(tmp_path / "more", more, files=5))):
        packtok.draw_samples(recipe(domains, samples=every), tmp_path / out, tokens=files, allow_short=True)
    for side in every:
        for name in domains:
            some, many = (set(map(tuple, taken(tmp_path / out, side, name))) for out in "cd")
            assert some <= many


def test_more_samples_begin_with_those_of_fewer(two: tuple[Path, Domains], tmp_path: Path) -> None:
    root, domains = two
    for from_ in ("documents", "stream"):
        for train in (10, 40):
            packtok.draw_samples(
                recipe(domains, from_=from_, samples={"test": 6, "train": train}),
                tmp_path / f"{from_}{train}",
                tokens=root,
            )
        for name in domains:
            few, many = (taken(tmp_path / f"{from_}{train}", "train", name) for train in (10, 40))
            assert many[: len(few)] == few
            assert tree(tmp_path / f"{from_}10" / "test") == tree(tmp_path / f"{from_}40" / "test")


def test_a_longer_total_moves_no_document_to_another_side(two: tuple[Path, Domains], tmp_path: Path) -> None:
    root, domains = two
    for context in (8, 20):
        packtok.draw_samples(
            recipe(domains, samples={"test": 1000}),
            tmp_path / str(context),
            tokens=root,
            context=context,
            allow_short=True,
        )
    test = [document for document in domains["book"] if reference.side_of(document, HALVES, 42) == "test"]
    for sample in taken(tmp_path / "20", "test", "book"):
        assert any(_contains(document, sample) for document in test)


def _contains(document: list[int], part: list[int]) -> bool:
    return any(document[i : i + len(part)] == part for i in range(len(document) - len(part) + 1))


@pytest.mark.parametrize(
    ("dtype", "width"), [(None, 1), (None, 4), ("uint32", 2), ("int32", 2), ("uint16", 4)]
)
def test_every_type_of_ids_holds_the_same_ids(
    two: tuple[Path, Domains], tmp_path: Path, dtype: Any, width: int
) -> None:
    root, domains = two
    packtok.draw_samples(recipe(domains), tmp_path / "a", tokens=root)
    wide = write(tmp_path / "wide", domains, width=width)
    packtok.draw_samples(recipe(domains), tmp_path / "b", tokens=wide, dtype=dtype)
    for name in domains:
        assert taken(tmp_path / "b", "train", name) == taken(tmp_path / "a", "train", name)
    index = json.loads((tmp_path / "b" / "train" / "arxiv" / "index.json").read_bytes())
    expected = dtype or ("uint32" if width == 4 else "uint16")
    assert index["shards"][0]["column_encodings"] == ["str", f"ndarray:{expected}", f"ndarray:{expected}"]


def test_npy_files_give_the_samples_of_pbins(two: tuple[Path, Domains], tmp_path: Path) -> None:
    root, domains = two
    for name, listed in domains.items():
        (tmp_path / "npy" / name).mkdir(parents=True)
        numbers = [len(listed), *map(len, listed), *(token for document in listed for token in document)]
        np.save(tmp_path / "npy" / name / "a.npy", np.array(numbers, np.int64))
    for from_ in ("documents", "stream"):
        wanted = recipe(domains, from_=from_)
        packtok.draw_samples(wanted, tmp_path / from_ / "a", tokens=root)
        packtok.draw_samples(wanted, tmp_path / from_ / "b", tokens=tmp_path / "npy", dtype="uint16")
        for side in ("test", "train"):
            for name in domains:
                samples = (taken(tmp_path / from_ / out, side, name) for out in "ab")
                assert next(samples) == next(samples)


def test_an_id_that_does_not_fit_is_named(tmp_path: Path) -> None:
    root = write(tmp_path / "tokens", {"a": [[70_000] * 12] * 9}, files=1, width=4)
    side = reference.side_of([70_000] * 12, HALVES, 42)
    with pytest.raises(packtok.PacktokError) as raised:
        packtok.draw_samples(
            recipe({"a": []}, samples={side: 1}), tmp_path / "out", tokens=root, dtype="uint16"
        )
    assert str(raised.value) == (
        f"{root}/a/0.pbin: token 0 has id 70000, which uint16 cannot hold; set dtype to uint32 or int32"
    )


def test_the_origin_of_a_sample_leads_to_its_tokens(two: tuple[Path, Domains], tmp_path: Path) -> None:
    root, domains = two
    packtok.draw_samples(recipe(domains), tmp_path / "out", tokens=root, origin=True)
    for sample in reference.read_mds(tmp_path / "out" / "train" / "book"):
        data = np.concatenate([packtok.PbinReader(str(root / sample["source"]))[i] for i in range(25)])
        tokens = data[sample["start"] : sample["start"] + 12].tolist()
        assert tokens == sample["prev_token_ids"] + sample["token_ids"]


@pytest.mark.parametrize("count", [2, 7])
def test_shards_together_equal_one_run(
    texts: tuple[Path, Path], tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small files, so that each shard writes some.
    monkeypatch.setattr("packtok.commands.sample.SIZE_LIMIT", 500)
    wanted = recipe(
        {"wiki": []},
        from_="stream",
        samples={"test": 20, "train": 30},
        retrieval={"samples": 4, "shards": 3, "chunk": 5},
    )
    for origin in (False, True):
        options = {"tokens": texts[0], "origin": origin}
        single, many = tmp_path / f"one{origin}", tmp_path / f"many{origin}"
        packtok.draw_samples(wanted, single, **options)
        for shard in reversed(range(count)):
            packtok.draw_samples(wanted, many, shard=f"{shard}/{count}", **options)
        assert not list(many.rglob("index.json"))
        packtok.draw_samples(wanted, many, join=True, **options)
        assert tree(many) == tree(single)
        assert len(json.loads((single / "train" / "wiki" / "index.json").read_bytes())["shards"]) > 3


def test_a_missing_shard_is_named_and_can_be_written_later(two: tuple[Path, Domains], tmp_path: Path) -> None:
    root, domains = two
    packtok.draw_samples(recipe(domains), tmp_path / "out", tokens=root, shard="0/2")
    with pytest.raises(packtok.PacktokError) as raised:
        packtok.draw_samples(recipe(domains), tmp_path / "out", tokens=root, join=True)
    assert str(raised.value) == (
        f"{tmp_path}/out: 2 of 4 parts are not written; run the missing shards, then set join"
    )
    packtok.draw_samples(recipe(domains), tmp_path / "out", tokens=root, shard="1/2")
    # A shard that vanished is written again.
    shutil.rmtree(next((tmp_path / "out" / ".packtok-sample").glob("*/0")))
    packtok.draw_samples(recipe(domains), tmp_path / "out", tokens=root)
    packtok.draw_samples(recipe(domains), tmp_path / "expected", tokens=root)
    assert tree(tmp_path / "out") == tree(tmp_path / "expected")


def test_finished_outputs_of_the_same_plan_are_kept_and_others_refused(
    two: tuple[Path, Domains], tmp_path: Path
) -> None:
    root, domains = two
    out = tmp_path / "out"
    packtok.draw_samples(recipe(domains), out, tokens=root)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert packtok.draw_samples(recipe(domains), out, tokens=root)["kept"] == 4
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == {
        path: time for path, time in before.items() if path.is_file()
    }
    with pytest.raises(packtok.PacktokError) as raised:
        packtok.draw_samples(recipe(domains), out, tokens=root, train=12)
    assert str(raised.value) == (
        f"{out}/train/arxiv: has samples of another plan or program; set existing to replace, or choose "
        "another output"
    )
    with pytest.raises(FileExistsError):
        packtok.draw_samples(recipe(domains), out, tokens=root, existing="error")
    report = packtok.draw_samples(recipe(domains), out, tokens=root, train=12, existing="replace")
    assert report["kept"] == 2
    packtok.draw_samples(recipe(domains), tmp_path / "expected", tokens=root, train=12)
    assert tree(out) == tree(tmp_path / "expected")


def test_a_complete_output_keeps_no_plan(texts: tuple[Path, Path], tmp_path: Path) -> None:
    wanted = recipe({"wiki": []}, samples={"train": 2}, retrieval={"samples": 2, "shards": 2, "chunk": 5})
    work = tmp_path / "out" / ".packtok-sample"
    options: dict[str, Any] = {"tokens": texts[0]}
    packtok.draw_samples(wanted, tmp_path / "out", retrieval_shard=1, **options)
    # The plan stays, because the other shard needs it.
    assert [path.name for path in work.iterdir() if path.suffix == ".json"] == ["plan.json"]
    packtok.draw_samples(wanted, tmp_path / "out", retrieval_shard=0, **options)
    assert not work.exists()
    before = tree(tmp_path / "out")
    for shard in (None, 1):
        report = packtok.draw_samples(wanted, tmp_path / "out", retrieval_shard=shard, **options)
        assert report["kept"] == 3 - (shard or 0)
    for changes, error in (
        ({"train": 3}, packtok.PacktokError),
        ({"existing": "error"}, FileExistsError),
    ):
        with pytest.raises(error):
            packtok.draw_samples(wanted, tmp_path / "out", **options, **changes)
        assert not work.exists()
    assert tree(tmp_path / "out") == before


def test_a_shortfall_states_what_is_available(two: tuple[Path, Domains], tmp_path: Path) -> None:
    root, domains = two
    side = reference.draw(domains["arxiv"], is_stream=False, context=8, decoder=4, splits=HALVES)["train"]
    with pytest.raises(packtok.PacktokError) as raised:
        packtok.draw_samples(recipe(domains), tmp_path / "out", tokens=root, train=10_000)
    assert str(raised.value) == (
        f'train side of domain "arxiv": 5000 samples requested, {len(side.samples)} available '
        f"({len(side.documents)} documents, {side.too_short} of them too short); request fewer, add data, or "
        "set allow_short"
    )
    assert not (tmp_path / "out" / "train").exists()
    report = packtok.draw_samples(
        recipe(domains), tmp_path / "out", tokens=root, train=10_000, allow_short=True
    )
    assert report["train_samples"] == sum(
        counts["available"] for counts in report["sides"] if counts["side"] == "train"
    )


def test_a_file_of_less_than_100_documents_is_used_to_the_last(tmp_path: Path) -> None:
    # CEPE's scripts take no sample from such a file, and lose the documents after 100 * (n // 100).
    for count in (50, 150):
        listed = [[number] * 12 for number in range(count)]
        root = write(tmp_path / str(count), {"a": listed}, files=1)
        report = packtok.draw_samples(
            recipe({"a": []}, samples={"test": 1, "train": 1}), tmp_path / f"out{count}", tokens=root
        )
        assert sum(counts["documents"] for counts in report["sides"]) == count


@pytest.mark.parametrize("files", [1, 2, 3])
def test_a_domain_of_few_files_has_samples_on_every_side(tmp_path: Path, files: int) -> None:
    # CEPE's scripts divide files: with two or three, one is test, none is train and the rest is retrieval.
    root = write(tmp_path / "tokens", {"a": documents(120, 60, 7)}, files=files)
    report = packtok.draw_samples(
        recipe({"a": []}, samples={"test": 20, "train": 20}), tmp_path / "out", tokens=root
    )
    counts = {counts_of_side["side"]: counts_of_side["documents"] for counts_of_side in report["sides"]}
    assert sum(counts.values()) == 120
    assert all(count > 20 for count in counts.values())
    assert [len(taken(tmp_path / "out", side, "a")) for side in ("test", "train")] == [20, 20]


def test_equal_files_are_not_sampled_at_equal_positions(tmp_path: Path) -> None:
    # CEPE's scripts seed the order of each file with the same seed, so files with equal numbers of windows
    # have one order.
    numbers = iter(range(60_000))
    listed = [[next(numbers) for _ in range(400)] for _ in range(8)]
    root = write(tmp_path / "tokens", {"a": listed}, files=8)
    packtok.draw_samples(
        recipe({"a": []}, splits={"test": 0, "train": 1, "retrieval": 0}, samples={"train": 100}),
        tmp_path / "out",
        tokens=root,
    )
    positions: dict[int, list[int]] = {}
    for sample in taken(tmp_path / "out", "train", "a"):
        positions.setdefault(sample[0] // 400, []).append(sample[0] % 400)
    assert len(positions) == 8
    assert len({tuple(first[:3]) for first in positions.values()}) > 1


def test_missing_folders_of_the_output_are_created(two: tuple[Path, Domains], tmp_path: Path) -> None:
    # CEPE's scripts fail unless OUT exists.
    root, domains = two
    packtok.draw_samples(recipe(domains), tmp_path / "a" / "b", tokens=root)
    packtok.draw_samples(recipe(domains), tmp_path / "c", tokens=root)
    assert tree(tmp_path / "a" / "b") == tree(tmp_path / "c")
    packtok.pack_samples(tmp_path / "d" / "e", tokens=root, length=32)
    assert (tmp_path / "d" / "e" / "book" / "index.json").is_file()


@pytest.mark.parametrize("name", ["gone.pbin", "gone.npy"])
def test_a_listed_file_that_is_missing_is_an_error(tmp_path: Path, name: str) -> None:
    # CEPE's scripts leave out missing files, which changes the sides of all others.
    root = write(tmp_path / "tokens", {"a": documents(20, 40, 1)}, files=1)
    files = ["a/0.pbin", f"a/{name}"]
    wanted = {**recipe({"a": []}), "domains": {"a": {"proportion": 1, "files": files}}}
    with pytest.raises(FileNotFoundError) as raised:
        packtok.draw_samples(wanted, tmp_path / "out", tokens=root)
    assert raised.value.filename == str(root / "a" / name)


def test_a_domain_is_a_whole_name_of_a_folder(tmp_path: Path) -> None:
    # CEPE's scripts search for "book/" anywhere in the path.
    domains = {"book": [[1] * 12] * 30, "notebook": [[2] * 12] * 30}
    root = write(tmp_path / "tokens", domains)
    report = packtok.draw_samples(recipe({"book": []}, samples={"test": 0}), tmp_path / "out", tokens=root)
    assert sum(counts["documents"] for counts in report["sides"]) == 30
    assert report["files_of_no_domain"] == [f"{root}/notebook/{number}.pbin" for number in range(2)]


def test_retrieval_chunks_are_those_of_a_naive_implementation(
    texts: tuple[Path, Path], tmp_path: Path
) -> None:
    folder, tokenizer = texts
    wanted = recipe({"wiki": []}, samples={}, retrieval={"samples": 5, "shards": 4, "chunk": 6})
    packtok.draw_samples(wanted, tmp_path / "all", tokens=folder)
    reader = packtok.PbinReader(str(folder / "wiki" / "w.pbin"))
    listed = [reader[i].tolist() for i in range(len(reader))]
    side = reference.draw(listed, is_stream=False, context=8, decoder=4, splits=HALVES, chunk=6)["retrieval"]
    decode = packtok.Tokenizer.from_file(str(tokenizer)).decode
    for shard in range(4):
        content = (tmp_path / "all" / "retrieval" / str(shard) / "wiki.jsonl").read_text()
        expected = [
            {
                "id": f"wiki_{shard}_{number}",
                "contents": decode(ids[:6]).replace("<eod>", ""),
                "neighbor": decode(ids[6:]).replace("<eod>", ""),
                "contents_token_ids": ids[:6],
                "neighbor_token_ids": ids[6:],
            }
            for number, ids in enumerate(side.samples[5 * shard : 5 * shard + 5])
        ]
        rows = [json.loads(line) for line in content.splitlines()]
        for row, other in zip(rows, expected, strict=True):
            assert {**row, "contents": "", "neighbor": ""} == {**other, "contents": "", "neighbor": ""}
        assert content == "".join(json.dumps(row) + "\n" for row in rows)
        # A shard that is requested alone has the same bytes.
        packtok.draw_samples(wanted, tmp_path / "single", tokens=folder, retrieval_shard=shard)
    assert tree(tmp_path / "single" / "retrieval") == tree(tmp_path / "all" / "retrieval")


def test_the_commands_take_the_arguments_of_the_readme(
    two: tuple[Path, Domains], tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    root, _ = two
    out = packtok_cli(
        "sample", "ab", tmp_path / "ab", "12", "4", "0", "1e1", "--tokens", root, "--json", "--quiet"
    ).stdout
    assert json.loads(out)["train_samples"] == 10
    assert sorted(path.name for path in (tmp_path / "ab").iterdir()) == ["train"]
    seven_root = write(tmp_path / "seven", {name: documents(30, 60, i) for i, name in enumerate(SEVEN)})
    shutil.copy(oracle.byte_level(tmp_path / "tokenizer.json"), seven_root / "tokenizer.json")
    arguments = ("sample", "concat", tmp_path / "concat", 8, 4, 0, 40, "1e1")
    for shard in (0, 1):
        packtok_cli(*arguments, shard, "--tokens", seven_root, "--retrieval_chunk", 4, "--quiet")
    samples = {name: len(taken(tmp_path / "concat", "train", name)) for name in SEVEN}
    assert list(samples.values()) == reference.quotas(40, [*SEVEN.values()])
    lines = sum(
        path.read_text().count("\n") for path in (tmp_path / "concat" / "retrieval").glob("*/*.jsonl")
    )
    assert lines == 20


def test_a_number_of_samples_in_place_of_the_shard_is_an_error(
    tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    # CEPE's script reads the README's fourth number as SHARD, and then writes no retrieval corpus.
    root = write(tmp_path / "tokens", {name: documents(3, 30, i) for i, name in enumerate(SEVEN)})
    arguments = ("sample", "concat", tmp_path / "out", 8, 4, 0, 0, 1, "2.5e6", "--tokens", root)
    done = packtok_cli(*arguments, code=1)
    assert done.stderr.strip() == "packtok: SHARD: is 2500000; expected 0 to 99"


def test_retrieval_shards_share_one_plan(texts: tuple[Path, Path], tmp_path: Path) -> None:
    # CEPE's script reads and orders all files again for each of 100 shards.
    wanted = recipe({"wiki": []}, samples={"train": 2}, retrieval={"samples": 1, "shards": 3, "chunk": 5})
    plan = tmp_path / "out" / ".packtok-sample" / "plan.json"
    packtok.draw_samples(wanted, tmp_path / "out", tokens=texts[0], retrieval_shard=0)
    before = plan.stat()
    packtok.draw_samples(wanted, tmp_path / "out", tokens=texts[0], retrieval_shard=2)
    assert (plan.stat().st_ino, plan.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_retrieval_shards_can_be_written_at_the_same_time(texts: tuple[Path, Path], tmp_path: Path) -> None:
    # Each process of CEPE's script writes the test and train side, unless their folder exists.
    wanted = recipe(
        {"wiki": []}, samples={"test": 2, "train": 9}, retrieval={"samples": 1, "shards": 3, "chunk": 5}
    )
    packtok.draw_samples(wanted, tmp_path / "expected", tokens=texts[0])
    for attempt in range(extent(30, 2)):
        out = tmp_path / str(attempt)
        children = []
        for shard in range(3):
            child = os.fork()
            if child == 0:
                try:
                    packtok.draw_samples(wanted, out, tokens=texts[0], retrieval_shard=shard)
                    os._exit(0)
                finally:
                    os._exit(1)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
        assert tree(out) == tree(tmp_path / "expected")


def test_a_recipe_is_a_yaml_file(two: tuple[Path, Domains], tmp_path: Path, packtok_cli: PacktokCli) -> None:
    root, domains = two
    (tmp_path / "r.yaml").write_text(
        "windows: {from: documents, context: 8, decoder: 4}\n"
        "samples: {test: 6, train: 1e1}\n"
        "splits: {test: 0.3, train: 0.3, retrieval: 0.4}\n"
        "domains:\n  arxiv: 0.5\n  book: {proportion: 0.5, files: book/*.pbin}\n"
    )
    packtok_cli("sample", tmp_path / "r.yaml", "-o", tmp_path / "out", "--tokens", root)
    packtok.draw_samples(recipe(domains), tmp_path / "expected", tokens=root)
    assert tree(tmp_path / "out") == tree(tmp_path / "expected")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": 1}, "seeds is not a known key; did you mean seed?"),
        (
            {"samples": {"test": 2.5}},
            "samples.test is 2.5; expected a whole number from 0 to 2^53, such as 1000 or 2e6",
        ),
        ({"domains": {"a": 0.5}}, "proportions of the domains sum to 0.5; expected 1"),
        ({"domains": {"../a": 1}}, "domains: '../a' cannot be the name of a folder"),
        ({"splits": {"test": 0.5}}, "splits sum to 1.49; expected 1"),
    ],
)
def test_a_wrong_recipe_is_explained(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(packtok.ConfigError) as raised:
        packtok.draw_samples({**recipe({"a": []}), **changes}, tmp_path / "out", tokens=tmp_path)
    assert str(raised.value) == message


def test_wrong_usage_is_explained(two: tuple[Path, Domains], tmp_path: Path, packtok_cli: PacktokCli) -> None:
    root, _ = two
    for arguments, message in (
        (("ab", "out", 4, 4, 0, 1), "TOTAL: is 4; it must exceed DEC, which is 4"),
        (
            ("ab", "out", 8, 4, "x", 1),
            "EVAL: is 'x'; expected a whole number from 0 to 2^53, such as 1000 or 2e6",
        ),
        (("ab", "out", 8, 4, 1, 1), "domain 'arxiv' has no files; set --tokens, or list files in the recipe"),
        (
            ("ab", "out", 8, 4, 1, 1, "--tokens", root, "--shard", "1"),
            "--shard: is '1', without the number of shards; give k/N",
        ),
    ):
        done = packtok_cli("sample", *arguments, cwd=tmp_path, code=2)
        assert done.stderr.strip() == f"packtok: {message}"


@pytest.mark.parametrize("command", ["ab out 12 4 0 1", "pack out"])
def test_a_corpus_in_place_of_tokens_is_explained(
    tmp_path: Path, packtok_cli: PacktokCli, command: str
) -> None:
    (tmp_path / "corpus" / "arxiv").mkdir(parents=True)
    (tmp_path / "corpus" / "arxiv" / "a.jsonl").write_text('{"text": "a"}\n')
    done = packtok_cli("sample", *command.split(), "--tokens", "corpus", cwd=tmp_path, code=2)
    assert done.stderr == (
        "packtok: corpus: no .pbin file in this folder; tokenize the corpus first, with packtok pack, or "
        "with packtok tokenize --to cepe-npy\n"
    )


def test_a_damaged_token_file_is_refused(tmp_path: Path) -> None:
    root = write(tmp_path / "tokens", {"a": [[1] * 12] * 30}, files=1)
    path = root / "a" / "0.pbin"
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    with pytest.raises(packtok.PbinFormatError) as raised:
        packtok.draw_samples(recipe({"a": []}), tmp_path / "out", tokens=root)
    assert str(raised.value).startswith(f"{path}: ")


def test_a_killed_run_continues(two: tuple[Path, Domains], tmp_path: Path) -> None:
    root, domains = two
    folder = tmp_path
    packtok.draw_samples(recipe(domains), folder / "expected", tokens=root)
    points = [f"{place}:{number}" for number in range(9) for place in ("file synced", "file renamed")]
    for point in extent(points, points[::4]):
        shutil.rmtree(folder / "out", ignore_errors=True)
        _die_at(point, lambda: packtok.draw_samples(recipe(domains), folder / "out", tokens=root))
        finished = [path.parent for path in (folder / "out").rglob("index.json")]
        assert all(
            tree(path) == tree(folder / "expected" / path.relative_to(folder / "out")) for path in finished
        )
        packtok.draw_samples(recipe(domains), folder / "out", tokens=root)
        assert tree(folder / "out") == tree(folder / "expected")


def _die_at(point: str, call: Callable[[], object]) -> None:
    """Calls a function in a child process that dies at a crash point."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.environ["PACKTOK_CRASH"] = point
        call()
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGABRT, point


def test_a_full_disk_leaves_nothing_and_the_run_continues(two: tuple[Path, Domains], tmp_path: Path) -> None:
    root, domains = two
    packtok.draw_samples(recipe(domains), tmp_path / "expected", tokens=root)
    for limit in extent(range(0, 4000, 200), [0, 700, 3000]):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            try:
                packtok.draw_samples(recipe(domains), tmp_path / "out", tokens=root)
            except OSError as error:
                os._exit(error.errno == errno.EFBIG)
            os._exit(2)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 1, limit
        assert not list((tmp_path / "out").rglob("index.json"))
        packtok.draw_samples(recipe(domains), tmp_path / "out", tokens=root)
        assert tree(tmp_path / "out") == tree(tmp_path / "expected")


@settings(max_examples=extent(100, 8))
@given(seed=st.integers(0, 2**32), length=st.integers(1, 40), min_length=st.integers(0, 20))
def test_rows_of_long_documents_have_every_token_once(seed: int, length: int, min_length: int) -> None:
    # Ids are unique, so that a piece shows its origin.
    identifiers = iter(range(10**6))
    listed = [[next(identifiers) for _ in document] for document in documents(30, 50, seed)]
    with tempfile.TemporaryDirectory() as folder:
        root = write(Path(folder) / "tokens", {"a": listed}, width=4)
        report = packtok.pack_samples(Path(folder) / "out", tokens=root, length=length, min_length=min_length)
        long = [document for document in listed if len(document) >= max(min_length, 1)]
        rows = reference.read_mds(Path(folder) / "out" / "a") if long else []
    pieces = []
    for row in rows:
        assert row["domain"] == "a"
        assert row["length"] == len(row["input_ids"]) <= length
        assert [0, *(stop for _, stop in row["indices"])] == [
            *(start for start, _ in row["indices"]),
            row["length"],
        ]
        pieces += [row["input_ids"][start:stop] for start, stop in row["indices"]]
    expected = [
        document[start : start + length] for document in long for start in range(0, len(document), length)
    ]
    assert sorted(pieces) == sorted(expected)
    (counts,) = report["domains"]
    assert counts["rows"] == report["rows"] == len(rows)
    assert counts["row_tokens"] == sum(map(len, long))
    assert counts["too_short"] == len(listed) - len(long)
    assert counts["too_short_tokens"] == sum(map(len, listed)) - sum(map(len, long))
    assert counts["cut"] == sum(len(document) > length for document in long)
    assert counts["short_rows"] == sum(row["length"] < length for row in rows)


@pytest.mark.parametrize("by_length", [(), (4, 8)])
def test_shards_of_long_documents_together_equal_one_run(
    tmp_path: Path, by_length: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small files, so that each shard writes some.
    monkeypatch.setattr("packtok.commands.sample.SIZE_LIMIT", 600)
    root = write(tmp_path / "tokens", {"a": documents(60, 30, 3), "b": documents(40, 20, 4)}, width=4)
    options: dict[str, Any] = {"tokens": root, "length": 16, "by_length": by_length}
    expected = packtok.pack_samples(tmp_path / "one", **options)
    for count in extent((2, 3, 7, 50), (3, 50)):
        out = tmp_path / str(count)
        for shard in reversed(range(count)):
            part = packtok.pack_samples(out, shard=f"{shard}/{count}", **options)
            assert part["is_part"]
        assert not list(out.rglob("index.json"))
        whole = packtok.pack_samples(out, join=True, **options)
        assert tree(out) == tree(tmp_path / "one")
        assert whole["domains"] == expected["domains"]
    folders = [path.parent for path in (tmp_path / "one").rglob("index.json")]
    assert len(folders) == 2 * (len(by_length) or 1)
    assert all(len(list(folder.glob("*.mds"))) > 1 for folder in folders)


def test_a_missing_shard_of_long_documents_is_named(two: tuple[Path, Domains], tmp_path: Path) -> None:
    root, _ = two
    options: dict[str, Any] = {"tokens": root, "length": 32}
    packtok.pack_samples(tmp_path / "out", shard="1/2", **options)
    with pytest.raises(packtok.PacktokError) as raised:
        packtok.pack_samples(tmp_path / "out", join=True, **options)
    assert str(raised.value) == (
        f"{tmp_path}/out: 1 of 2 parts are not written; run the missing shards, then set join"
    )
    packtok.pack_samples(tmp_path / "out", **options)
    packtok.pack_samples(tmp_path / "expected", **options)
    assert tree(tmp_path / "out") == tree(tmp_path / "expected")


def test_a_killed_run_of_long_documents_continues(two: tuple[Path, Domains], tmp_path: Path) -> None:
    root, _ = two
    options: dict[str, Any] = {"tokens": root, "length": 32}
    packtok.pack_samples(tmp_path / "expected", **options)
    points = [f"{place}:{number}" for number in range(7) for place in ("file synced", "file renamed")]
    for point in extent(points, points[1::5]):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        _die_at(point, lambda: packtok.pack_samples(tmp_path / "out", **options))
        packtok.pack_samples(tmp_path / "out", **options)
        assert tree(tmp_path / "out") == tree(tmp_path / "expected")


def test_pieces_of_fixed_lengths_have_rows_of_their_own(tmp_path: Path) -> None:
    identifiers = iter(range(10**6))
    listed = [[next(identifiers) for _ in document] for document in documents(40, 30, 3)]
    root = write(tmp_path / "tokens", {"a": listed}, files=1, width=4)
    for _ in range(2):
        report = packtok.pack_samples(tmp_path / "out", tokens=root, length=8, by_length=[4, 8])
    expected: dict[int, list[list[int]]] = {8: [], 4: []}
    left_over = 0
    for document in listed:
        eights = len(document) // 8 * 8
        expected[8] += [document[start : start + 8] for start in range(0, eights, 8)]
        rest = document[eights:]
        if len(rest) >= 4:
            expected[4].append(rest[:4])
            rest = rest[4:]
        left_over += len(rest)
    items = {
        length: [
            row["input_ids"][start:stop]
            for row in reference.read_mds(tmp_path / "out" / "a" / f"{length}-8")
            for start, stop in row["indices"]
        ]
        for length in (4, 8)
    }
    assert items == expected
    (counts,) = report["domains"]
    assert counts["left_over_tokens"] == left_over
    assert counts["short_rows"] == len(expected[4]) % 2
    assert counts["rows"] == len(expected[8]) + -(-len(expected[4]) // 2)
    # The second call kept the files of the first one.
    assert counts["kept"]


def test_rows_of_other_options_are_refused(
    two: tuple[Path, Domains], tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    root, _ = two
    packtok_cli("sample", "pack", tmp_path / "out", "--tokens", root, "--length", 32, "--min_length", "1e1")
    done = packtok_cli("sample", "pack", tmp_path / "out", "--tokens", root, "--length", 64, code=1)
    assert done.stderr.strip() == (
        f"packtok: {tmp_path}/out/arxiv: has samples of another plan or program; set --existing to replace, "
        "or choose another output"
    )
    packtok_cli("sample", "pack", tmp_path / "out", "--tokens", root, "--length", 64, "--existing", "replace")
    done = packtok_cli("sample", "pack", tmp_path / "out", "--tokens", root, "--by-length", "7", code=1)
    assert (
        done.stderr.strip() == "packtok: --by-length: is 7; expected lengths that divide the length of a row"
    )


Rows = dict[str, list[dict[str, Any]]]


def drawn(recipe_: str, domains: Domains, proportions: list[str], train: int) -> Rows:
    """Returns the rows of each folder of a run with 8 + 4 tokens, as the naive implementation draws them."""
    rows = {}
    for (name, listed), quota in zip(domains.items(), reference.quotas(train, proportions), strict=True):
        side = reference.draw(listed, is_stream=recipe_ == "concat", context=8, decoder=4)["train"]
        rows[f"{recipe_}/train/{name}"] = [
            {"prev_token_ids": ["uint16", ids[:8]], "token_ids": ["uint16", ids[8:]], "domain": name}
            for ids in side.samples[:quota]
        ]
    return rows


def packed(folder: Path) -> Rows:
    """Returns the rows of each folder of uncompressed long documents."""
    arrays = ("input_ids", "indices")
    return {
        f"pack/{path.name}": [
            {**row, **{name: ["uint32", row[name]] for name in arrays}} for row in reference.read_mds(path)
        ]
        for path in folder.iterdir()
    }


@pytest.mark.whole
@pytest.mark.parametrize("compression", [None, "zstd:5"])
def test_mosaicml_streaming_reads_samples_with_hashes_checked(
    two: tuple[Path, Domains], compression: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = python_of("streaming", "mosaicml-streaming")
    # The limit gives folders several files.
    monkeypatch.setattr("packtok.commands.sample.SIZE_LIMIT", 600)
    root, domains = two
    seven = {name: documents(30, 60, i) for i, name in enumerate(SEVEN)}
    of_seven = write(tmp_path / "seven", seven)
    sizes: dict[str, Any] = {"context": 8, "decoder": 4, "test": 0, "train": 40}
    options: dict[str, Any] = {"compression": compression}
    out = tmp_path / "out"
    packtok.draw_samples("ab", out / "ab", tokens=root, **sizes, **options)
    packtok.draw_samples("concat", out / "concat", tokens=of_seven, retrieval=0, **sizes, **options)
    packtok.pack_samples(out / "pack", tokens=root, length=32, **options)
    packtok.pack_samples(tmp_path / "plain", tokens=root, length=32)
    expected = {
        **drawn("ab", domains, ["0.5", "0.5"], 40),
        **drawn("concat", seven, [*SEVEN.values()], 40),
        **packed(tmp_path / "plain"),
    }
    ending = "*.mds" if compression is None else "*.mds.zstd"
    assert all(len(list((out / name).glob(ending))) > 1 for name in ("ab/train/book", "pack/arxiv"))
    assert trained(python, "streaming_reading.py", out) == expected


@pytest.mark.whole
def test_mosaicml_streaming_finds_a_changed_byte(two: tuple[Path, Domains], tmp_path: Path) -> None:
    python = python_of("streaming", "mosaicml-streaming")
    packtok.pack_samples(tmp_path / "out", tokens=two[0], length=32)
    path = tmp_path / "out" / "book" / "shard.00000.mds"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(AssertionError, match="Checksum failure"):
        trained(python, "streaming_reading.py", tmp_path / "out")

"""Rows of streams and their fields, against `TokenDataset` and plain versions."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from stories import TOKENIZER, story

import packtok
from packtok.stream import CheckpointableDataset

EOS = 0
ALL_FIELDS: Any = dict.fromkeys(("labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens"), True)
OPTIONS: Any = dict.fromkeys(("position_ids", "document_ids", "loss_mask", "cu_seqlens"), True)


class WithEos:
    """A tokenizer that only has special tokens."""

    bos_token_id = None
    eos_token_id = EOS


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Returns three files of stories, with a document that is longer than a row and one without text."""
    folder, rng = tmp_path_factory.mktemp("stories"), random.Random(3)
    texts = [[story(rng) for _ in range(n)] for n in (50, 7, 60)]
    texts[1][2:4] = [" ".join(texts[0][:9]), ""]
    paths = [folder / f"{number}.jsonl" for number in range(3)]
    for path, lines in zip(paths, texts, strict=True):
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in lines))
    return [str(path) for path in paths]


@pytest.fixture(scope="module")
def pbin(files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "o.pbin"
    packtok.pack(input=files, output=path, tokenizer=TOKENIZER)
    return path


@pytest.fixture(scope="module")
def tokens(files: list[str]) -> CheckpointableDataset:
    """Returns the documents in the order of the files, each with EOS."""
    tokenizer = packtok.Tokenizer.from_file(TOKENIZER)
    documents = CheckpointableDataset.from_files(files, n_active_shards=1).tokenize(tokenizer)
    # Drops empty documents, as `pack` does.
    return documents.filter(lambda sample: sample["text"]).add_bos_eos(None, EOS)


def plain(sample: Any) -> Any:
    """Returns a sample without tensors, to compare it."""
    if isinstance(sample, torch.Tensor):
        return [str(sample.dtype), sample.tolist()]
    return {name: plain(value) for name, value in sample.items()} if isinstance(sample, dict) else sample


@pytest.mark.parametrize("aligned", [False, True])
def test_concatenated_rows_equal_token_dataset_field_by_field(
    tokens: CheckpointableDataset, pbin: Path, aligned: bool
) -> None:
    labels: Any = "aligned" if aligned else True
    dataset = packtok.TokenDataset(pbin, 64, labels="aligned" if aligned else "shifted", **OPTIONS)
    expected = [plain(dict(dataset[i])) for i in range(len(dataset))]
    fields = {**ALL_FIELDS, "labels": labels}
    from_files = [plain(row) for row in tokens.concat_chunk(64, **fields)]
    from_pbin = [plain(row) for row in CheckpointableDataset.from_pbin(pbin).concat_chunk(64, **fields)]
    assert from_files == expected
    assert from_pbin == expected


def test_batches_equal_those_of_token_dataset(tokens: CheckpointableDataset, pbin: Path) -> None:
    dataset = packtok.TokenDataset(pbin, 48, **OPTIONS)
    loader = torch.utils.data.DataLoader(dataset, batch_size=5)
    stream = tokens.concat_chunk(48, **ALL_FIELDS).batch(5)
    assert [plain(batch) for batch in stream] == [plain(batch) for batch in loader]
    # Rows that a function returned are collated in the same way.
    mapped = tokens.concat_chunk(48, **ALL_FIELDS).map(lambda row: row).batch(5)
    assert [plain(batch) for batch in mapped] == [plain(batch) for batch in loader]


def test_best_fit_equals_token_dataset(tokens: CheckpointableDataset, pbin: Path) -> None:
    dataset = packtok.TokenDataset(pbin, 300, packing="best_fit", pad_token_id=7, **OPTIONS)
    rows = tokens.pack_chunk(300, strategy="best_fit", window=1000, **ALL_FIELDS).pad({"input_ids": 7}, 300)
    expected = [plain(dict(dataset[i])) for i in range(len(dataset))]
    assert [plain(row) for row in rows] == expected
    assert sum(len(row["cu_seqlens"]) for row in rows) > 2 * len(expected)


def test_best_fit_divides_only_documents_that_are_longer_than_a_row(tokens: CheckpointableDataset) -> None:
    documents = [document["input_ids"].tolist() for document in tokens]
    found: list[list[int]] = []
    for row in tokens.pack_chunk(200, strategy="best_fit", window=13, cu_seqlens=True):
        bounds = row["cu_seqlens"].tolist()
        found += [row["input_ids"][a:b].tolist() for a, b in itertools.pairwise(bounds)]
        assert len(row["input_ids"]) <= 200
    pieces = [d[i : i + 200] for d in documents for i in range(0, len(d), 200)]
    assert sorted(found) == sorted(pieces)


def test_documents_in_rows_have_no_label_beyond_their_end(tokens: CheckpointableDataset) -> None:
    documents = iter([document["input_ids"].tolist() for document in tokens])
    document: list[int] = []
    for row in tokens.chunk(40, drop_remainder=False, **ALL_FIELDS):
        document = document or next(documents)
        expected, document = document[:40], document[40:]
        labels = [*expected[1:], document[0] if document else -100]
        assert row["input_ids"].tolist() == expected
        assert row["labels"].tolist() == labels
        assert row["loss_mask"].tolist() == [label != -100 for label in labels]
        assert row["document_ids"].tolist() == [0] * len(expected)


def test_truncated_documents_keep_their_last_label(tokens: CheckpointableDataset) -> None:
    documents = [document["input_ids"].tolist() for document in tokens]
    rows = list(tokens.pack_chunk(150, labels=True, document_ids=True).pad({"input_ids": 9}, 150))
    long = [document for document in documents if len(document) > 150]
    found = [row for row in rows if row["document_ids"].max() == 0 and row["document_ids"].min() == 0]
    full = [[*row["input_ids"].tolist(), int(row["labels"][-1])] for row in found]
    assert [document[:151] for document in long] == [row for row in full if row[-1] != -100]
    for row in rows:
        is_padding = row["document_ids"] == -1
        assert (row["labels"][is_padding] == -100).all()
        assert (row["input_ids"][is_padding] == 9).all()


def test_incomplete_rows_are_returned_or_counted(tokens: CheckpointableDataset) -> None:
    num_tokens = sum(len(document["input_ids"]) for document in tokens)
    complete, left = tokens.concat_chunk(64), tokens.concat_chunk(64, drop_remainder=False, labels=True)
    with complete.iter() as iterator:
        num_rows = len(list(iterator))
        assert iterator.report()["num_dropped_tokens"] == num_tokens - 64 * num_rows > 0
    rows = list(left)
    assert sum(len(row["input_ids"]) for row in rows) == num_tokens
    assert rows[-1]["labels"][-1] == -100
    assert all(row["labels"][-1] != -100 for row in rows[:-1])
    with tokens.pack_chunk(100, discard_long_samples=True).iter() as iterator:
        kept = sum(len(row["input_ids"]) for row in iterator)
        assert iterator.report()["num_dropped_tokens"] == num_tokens - kept > 0


@pytest.mark.parametrize("window", [5, 1000])
def test_rows_with_fields_resume_exactly(tokens: CheckpointableDataset, window: int) -> None:
    packed = tokens.pack_chunk(120, strategy="best_fit", window=window, **ALL_FIELDS)
    for dataset in (
        packed.shuffle(9).pad({"input_ids": 0}, 120).batch(2),
        tokens.concat_chunk(30, labels=True),
    ):
        expected, found, state = [plain(batch) for batch in dataset], [], None
        while len(found) < len(expected):
            with dataset.iter(json.loads(json.dumps(state))) as iterator:
                found += [plain(batch) for batch in itertools.islice(iterator, 7)]
                state = iterator.state_dict()
        assert found == expected


def test_memory_of_batches_is_reused_once_released() -> None:
    stream = CheckpointableDataset.from_sequence([{"input_ids": list(range(4096))}], repeat=True)
    batches = stream.concat_chunk(4096).batch(8).iter()
    kept = next(batches)
    copied, seen = kept["input_ids"].clone(), set()
    for _ in range(12):
        seen.add(next(batches)["input_ids"].data_ptr())
    assert kept["input_ids"].data_ptr() not in seen
    assert len(seen) < 5
    assert torch.equal(kept["input_ids"], copied)


def test_documents_of_token_files_are_permuted_and_divided(pbin: Path) -> None:
    reader = packtok.PbinReader(pbin)
    documents = [reader[i].tolist() for i in range(len(reader))]
    source = CheckpointableDataset.from_pbin
    assert [row["input_ids"].tolist() for row in source(pbin)] == documents
    shuffled = source(pbin, repeat=True, shuffle=True, seed=3)
    epochs = [[row["input_ids"].tolist() for row in shuffled.take(2 * len(documents))]]
    first, second = epochs[0][: len(documents)], epochs[0][len(documents) :]
    assert sorted(first) == sorted(second) == sorted(documents)
    assert first != second
    orders = [packtok.Permutation(len(documents), 3, epoch) for epoch in range(2)]
    assert first == [documents[orders[0][i]] for i in range(len(documents))]
    lanes = [source(pbin).distribute(4, rank=r, num_replicas=4) for r in range(4)]
    parts = [[row["input_ids"].tolist() for row in lane] for lane in lanes]
    joined = [row for rank in parts for row in rank]
    assert sorted(joined)[: len(joined)] == sorted(joined)
    with shuffled.iter() as iterator:
        iterator.skip(5000)
        state = iterator.state_dict()
        following = plain(next(iterator))
    assert len(json.dumps(state)) < 700
    with shuffled.iter(state) as iterator:
        assert plain(next(iterator)) == following


def test_all_documents_of_plain_files_are_permuted(files: list[str], tmp_path: Path) -> None:
    for path in files:
        (tmp_path / Path(path).name).write_bytes(Path(path).read_bytes())
    shuffled = CheckpointableDataset.from_files(tmp_path, shuffle="documents", seed=5)
    with pytest.raises(ValueError, match=r"0.jsonl: there is no index .*0.idx; write it with `packtok index"):
        list(shuffled)
    for path in files:
        packtok.index(str(tmp_path / Path(path).name))
    lines = [line for path in files for line in Path(path).read_text().splitlines()]
    order = packtok.Permutation(len(lines), 5, 0)
    expected = [json.loads(lines[order[i]]) for i in range(len(lines))]
    assert list(shuffled) == expected
    distributed = CheckpointableDataset.from_files(tmp_path, shuffle="documents", repeat=True)
    ranks = [distributed.distribute(4, rank=r, num_replicas=2).take(len(lines)) for r in range(2)]
    texts = {row["text"] for rank in ranks for row in rank}
    assert len(texts) > len(lines) // 2
    # A located document is in its file.
    with shuffled.iter() as iterator:
        sample = next(iterator)
        place = iterator.locate()[0][0]
    with Path(place["path"]).open("rb") as file:
        file.seek(place["offset"])
        assert json.loads(file.readline()) == sample


def test_documents_of_a_batch_are_located(tokens: CheckpointableDataset, files: list[str]) -> None:
    tokenizer = packtok.Tokenizer.from_file(TOKENIZER)
    with tokens.concat_chunk(60).shuffle(20).batch(3).iter() as iterator:
        iterator.skip(7)
        batch, located = next(iterator), iterator.locate()
    assert len(located) == 3
    for row, documents in zip(batch["input_ids"].tolist(), located, strict=True):
        found: list[int] = []
        for document in documents:
            assert document["path"] in files
            assert document["at"] == f"{document['path']}: byte {document['offset']}"
            with Path(document["path"]).open("rb") as file:
                file.seek(document["offset"])
                ids = [*tokenizer.encode(json.loads(file.readline())["text"]), EOS]
            found += ids[document["start"] : document["stop"]]
        assert found == row


def test_wrong_arguments_of_rows_are_errors(tokens: CheckpointableDataset) -> None:
    wrong: list[tuple[Any, str]] = [
        (
            lambda: tokens.concat_chunk(8, labels="next"),
            "labels is 'next', expected True, False or 'aligned'",
        ),
        (lambda: tokens.pack_chunk(8, strategy="first_fit"), "strategy is 'first_fit'"),
        (lambda: tokens.pack_chunk(8, True, strategy="best_fit", window=0), "window is 0"),
        (lambda: tokens.pad({}, 8), "pad_values is empty"),
        (lambda: CheckpointableDataset.from_files(__file__, shuffle="rows"), "shuffle is 'rows'"),
    ]
    for call, message in wrong:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="unexpected argument 'label'"):
        tokens.concat_chunk(8, label=True)


def test_padded_documents_have_labels_of_their_ids(tokens: CheckpointableDataset) -> None:
    longest = max(len(document["input_ids"]) for document in tokens)
    values = {"attention_mask": 0, "input_ids": 7}
    documents = [document["input_ids"].tolist() for document in tokens]
    padded = list(tokens_of(tokens).pad(values, longest, labels=True))
    for document, row in zip(documents, padded, strict=True):
        rest = longest - len(document)
        assert row["input_ids"].tolist() == document + [7] * rest
        assert row["labels"].tolist() == document[1:] + [-100] * (rest + 1)
        assert row["attention_mask"].tolist() == [1] * len(document) + [0] * rest


def tokens_of(tokens: CheckpointableDataset) -> CheckpointableDataset:
    """Returns documents in the form of the core, from the ids of ``tokens``."""
    samples = [{"input_ids": document["input_ids"]} for document in tokens]
    # The chunks are so long that each document is one row.
    source = CheckpointableDataset.from_sequence(samples)
    return source.map(with_mask).chunk(1 << 20, ("input_ids", "attention_mask"), drop_remainder=False)


def with_mask(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "attention_mask": torch.ones(len(sample["input_ids"]), dtype=torch.int64)}


def test_fields_that_cannot_be_derived_are_errors(tokens: CheckpointableDataset) -> None:
    wrong = [
        (tokens.map(dict).pad({"input_ids": 0}, 5000, labels=True), "of a sample that a function returned"),
        (tokens.chunk(8, labels=True).add_bos_eos(1, 2), "add them to documents, before the rows"),
    ]
    for dataset, message in wrong:
        with pytest.raises(ValueError, match=message):
            next(iter(dataset))


def test_ragged_rows_ask_for_padding(tokens: CheckpointableDataset) -> None:
    ragged = tokens.pack_chunk(100, cu_seqlens=True)
    for dataset in (ragged, ragged.map(dict), tokens.pack_chunk(100)):
        with pytest.raises(
            ValueError,
            match=r"^samples of a batch have \d+ and \d+ elements in column 'input_ids'; pad them first, "
            "with pad, "
            "or give a collate_fn$",
        ):
            list(dataset.batch(8))
        assert len(next(iter(dataset.pad({"input_ids": 0}, 100).batch(8)))["input_ids"]) == 8


# --- negative ids ---


COLUMNS = ("input_ids", "labels")


def of_negatives(folder: Path | None = None) -> tuple[CheckpointableDataset, list[dict[str, list[int]]]]:
    """Returns documents with labels of -100, as dicts or as lines of a file, and their columns."""
    documents = []
    for n in range(30):
        ids = [100 * n + i for i in range(n % 7)]
        # The first documents have no negative label, and some have only negative labels.
        labels = ids if n < 4 else [-100] * len(ids) if n % 3 == 0 else [-100, *ids[1:]][: len(ids)]
        documents.append({"input_ids": ids, "labels": labels})
    if folder is None:
        return CheckpointableDataset.from_sequence(documents), documents
    path = folder / "negatives.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return CheckpointableDataset.from_files(path), documents


def columns_of(samples: Any) -> list[dict[str, list[int]]]:
    found = []
    for sample in samples:
        assert all(sample[name].dtype == torch.int64 for name in COLUMNS)
        found.append({name: sample[name].tolist() for name in COLUMNS})
    return found


def joined(documents: list[dict[str, list[int]]]) -> dict[str, list[int]]:
    return {name: [id_ for document in documents for id_ in document[name]] for name in COLUMNS}


def in_parts(document: dict[str, list[int]], length: int) -> list[dict[str, list[int]]]:
    starts = range(0, len(document["input_ids"]), length)
    return [{name: ids[start : start + length] for name, ids in document.items()} for start in starts]


@pytest.mark.parametrize("is_file", [False, True])
def test_negative_ids_are_kept_in_rows(tmp_path: Path, is_file: bool) -> None:
    dataset, documents = of_negatives(tmp_path if is_file else None)
    whole = in_parts(joined(documents), 8)
    assert columns_of(dataset.concat_chunk(8, COLUMNS, drop_remainder=False)) == whole
    parts = [part for document in documents for part in in_parts(document, 4)]
    assert columns_of(dataset.chunk(4, COLUMNS, drop_remainder=False)) == parts
    rows: list[list[dict[str, list[int]]]] = [[]]
    for document in documents:
        if len(joined([*rows[-1], document])["labels"]) > 8:
            rows.append([])
        rows[-1].append(document)
    assert columns_of(dataset.pack_chunk(8, COLUMNS)) == [joined(row) for row in rows]
    fitted = columns_of(dataset.pack_chunk(8, COLUMNS, strategy="best_fit", window=30))
    assert sorted(joined(fitted)["input_ids"]) == joined(documents)["input_ids"]
    # Each id keeps its label.
    label_of = dict(zip(*joined(documents).values(), strict=True))
    assert all(row["labels"] == [label_of[id_] for id_ in row["input_ids"]] for row in fitted)


@pytest.mark.parametrize("is_file", [False, True])
def test_negative_ids_are_added_padded_batched_and_resumed(tmp_path: Path, is_file: bool) -> None:
    dataset, documents = of_negatives(tmp_path if is_file else None)
    ended = dataset.add_bos_eos(-1, -2).add_bos_eos(None, -100, "labels").add_bos_eos(-100, None, "labels")
    expected = [
        {"input_ids": [-1, *document["input_ids"], -2], "labels": [-100, *document["labels"], -100]}
        for document in documents
    ]
    assert columns_of(ended.map(dict)) == expected
    padded = ended.pad({"input_ids": -3, "labels": -100}, 10)
    values = {"input_ids": -3, "labels": -100}
    full = [
        {name: ids + [values[name]] * (10 - len(ids)) for name, ids in document.items()}
        for document in expected
    ]
    assert columns_of(padded) == full
    # Padding may also precede rows.
    assert columns_of(padded.concat_chunk(25, COLUMNS)) == in_parts(joined(full), 25)
    rows = padded.concat_chunk(25, COLUMNS).shuffle(3)
    one_by_one = columns_of(rows)
    batches = list(rows.batch(4))
    for name in COLUMNS:
        assert all(batch[name].dtype == torch.int64 for batch in batches)
        assert [row for batch in batches for row in batch[name].tolist()] == [
            sample[name] for sample in one_by_one
        ]
    loaded = list(torch.utils.data.DataLoader(rows, batch_size=4))  # type: ignore[var-annotated]
    assert [batch["labels"].tolist() for batch in loaded] == [batch["labels"].tolist() for batch in batches]
    with rows.iter() as iterator:
        for _ in range(5):
            next(iterator)
        state = json.loads(json.dumps(iterator.state_dict()))
    assert columns_of(rows.iter(state)) == one_by_one[5:]


def test_missing_negative_ends_are_ensured() -> None:
    class Special:
        bos_token_id, eos_token_id = -1, -2

    samples = [{"input_ids": ids} for ids in ([5], [-1, 5], [5, -2], [-1, 5, -2], [])]
    found = CheckpointableDataset.from_sequence(samples).ensure_bos_eos(Special())
    assert [sample["input_ids"].tolist() for sample in found] == [[-1, 5, -2]] * 4 + [[-1, -2]]


def test_fields_of_rows_with_negative_ids_follow_from_them() -> None:
    samples = [{"input_ids": [-5, 6, 7]}, {"input_ids": [8, -9]}]
    dataset = CheckpointableDataset.from_sequence(samples)
    (row,) = dataset.pack_chunk(8, labels=True, position_ids=True, loss_mask=True)
    assert row["input_ids"].tolist() == [-5, 6, 7, 8, -9]
    assert row["labels"].tolist() == [6, 7, -100, -9, -100]
    assert row["position_ids"].tolist() == [0, 1, 2, 0, 1]
    assert row["loss_mask"].tolist() == [True, True, False, True, False]
    rows = list(dataset.concat_chunk(2, labels=True))
    assert [sample["labels"].tolist() for sample in rows] == [[6, 7], [8, -9]]
    (batch,) = dataset.chunk(3, drop_remainder=False, labels="aligned").pad({"input_ids": -1}, 4).batch(2)
    assert batch["input_ids"].tolist() == [[-5, 6, 7, -1], [8, -9, -1, -1]]
    assert batch["labels"].tolist() == [[-5, 6, 7, -100], [8, -9, -100, -100]]


def test_special_ids_that_no_id_can_be_are_errors() -> None:
    with pytest.raises(ValueError, match="eos_token_id is 4294967296, expected at most 4294967295"):
        CheckpointableDataset.from_sequence([]).add_bos_eos(None, 1 << 32)


def test_masks_are_extended_with_their_ids() -> None:
    sample = {"input_ids": [5, 6], "attention_mask": [0, 1]}
    (found,) = CheckpointableDataset.from_sequence([sample]).add_bos_eos(1, 2)
    assert found["input_ids"].tolist() == [1, 5, 6, 2]
    assert found["attention_mask"].tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize("change", ["longer", "shorter", "shifted"])
def test_index_of_another_version_is_an_error(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"text": f"text {i}"}) + "\n" for i in range(20)]
    path.write_text("".join(lines))
    packtok.index(str(path))
    dataset = CheckpointableDataset.from_files(path, shuffle="documents")
    assert len(list(dataset)) == 20
    changed = {"longer": [*lines, lines[0]], "shorter": lines[:10], "shifted": ["[1, 2]\n", *lines[1:]]}[
        change
    ]
    path.write_text("".join(changed))
    with pytest.raises((ValueError, packtok.PacktokError), match=r"a.jsonl: .*ind"):
        list(CheckpointableDataset.from_files(path, shuffle="documents", on_bad_document="skip"))

"""`packtok reshape`: each step against a plain version in Python, chains of steps, origins, and faults."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pbins
import pyarrow
import pyarrow.parquet
import pytest
import xxhash
from command_line import PacktokCli
from extent import extent
from hypothesis import given, settings
from hypothesis import strategies as st

import packtok

EOD = 50256
TEXTS = ["one", "two and a half", "three", "a longer text, to the very end of it", "one", "", "six\nlines"]
# Too little memory for any file, so that documents are shuffled through buckets.
NO_MEMORY = (0, 64)


def documents_of(path: Path) -> list[list[int]]:
    reader = packtok.PbinReader(path)
    return [reader[number].tolist() for number in range(len(reader))]


def origins_of(path: Path) -> list[tuple[str, int]]:
    reader = packtok.PbinReader(path)
    origins = [reader.origin(number) for number in range(len(reader))]
    return [(origin.source, origin.offset) for origin in origins if origin is not None]


def order_of(num_documents: int, seed: int) -> list[int]:
    """The order of a shuffle."""
    return packtok.Permutation(num_documents, seed, 0).fill(0, 1, num_documents).tolist()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A pbin of seven documents from two files, with origins and its tokenizer beside it."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    oracle.write_lines(folder / "a.jsonl", TEXTS[:4])
    oracle.write_lines(folder / "b.jsonl", TEXTS[4:])
    packtok.pack(
        input=str(folder),
        output=str(tmp_path / "in.pbin"),
        tokenizer="gpt2",
        origins=True,
        empty_document="keep",
    )
    return tmp_path / "in.pbin"


def reshaped(source: Path | list[Path], name: str = "out.pbin", **steps: Any) -> tuple[list[list[int]], Any]:
    """The documents that a call of `reshape` writes, and its report, whose counts are checked."""
    first = source[0] if isinstance(source, list) else source
    output = first.with_name(name)
    report = packtok.reshape(source, output, **steps)
    documents = documents_of(output)
    assert report["documents"] == len(documents)
    assert report["tokens"] == sum(map(len, documents))
    for unit in ("documents", "tokens"):
        left_out, repeated = (
            ("left_out", "repeated")
            if unit == "documents"
            else (
                "left_out_tokens",
                "repeated_tokens",
            )
        )
        changes = sum(step[repeated] - step[left_out] for step in report["steps"])
        if "retokenize" not in steps:
            assert report[f"{unit}_in"] + changes == report[unit]
    packtok.verify(str(output))
    return documents, report


def test_expressions_select_documents(corpus: Path) -> None:
    documents, origins = documents_of(corpus), origins_of(corpus)
    for expression, keeps in {
        "length >= 4": lambda number: len(documents[number]) >= 4,
        "number % 2 == 0 and not length == 2": lambda number: number % 2 == 0 and len(documents[number]) != 2,
        "count(eod) == 1 and count(11) > 0": lambda number: documents[number].count(11) > 0,
        "count(262) / length < 0.1": lambda number: (
            documents[number].count(262) / len(documents[number]) < 0.1
        ),
        "hash % 3 == 1": lambda number: (
            xxhash.xxh64_intdigest(np.array(documents[number], "<u4").tobytes()) % 3 == 1
        ),
        "source == 'b.jsonl'": lambda number: origins[number][0] == "b.jsonl",
        "source in ('a.jsonl', 'c') or offset > 20": lambda number: (
            origins[number][0] == "a.jsonl" or origins[number][1] > 20
        ),
        "matches(source, '[!a].*')": lambda number: origins[number][0] == "b.jsonl",
        "1 < length <= 5 != 3": lambda number: 1 < len(documents[number]) <= 5,
        "True": lambda number: True,
    }.items():
        numbers = [number for number in range(len(documents)) if keeps(number)]
        written, report = reshaped(corpus, filter=expression, existing="replace")
        assert written == [documents[number] for number in numbers], expression
        assert origins_of(corpus.with_name("out.pbin")) == [origins[number] for number in numbers]
        assert report["steps"][0]["value"] == expression


def test_a_function_selects_documents_in_batches(corpus: Path) -> None:
    documents = documents_of(corpus)
    sizes = []

    def keeps(batch: Any) -> Any:
        sizes.append(len(batch))
        assert [batch.ids(i).tolist() for i in range(len(batch))] == [documents[n] for n in batch.number]
        return np.array([source == 0 for source in batch.source]) & (batch.length > 2)

    written, report = reshaped(corpus, filter=[keeps, "number > 0"])
    assert written == [document for document in documents[1:4] if len(document) > 2]
    assert sizes == [len(documents)]
    assert report["steps"][0]["value"].endswith("keeps")


def test_chunks_of_all_files_have_all_documents(corpus: Path) -> None:
    documents = documents_of(corpus)
    chunks = [reshaped(corpus, f"{k}.pbin", chunk=f"{k}/3")[0] for k in range(3)]
    assert [len(chunk) for chunk in chunks] == [3, 2, 2]
    assert [*chain.from_iterable(chunks)] == documents


def test_listed_documents_are_removed_and_the_report_proves_it(corpus: Path) -> None:
    documents, origins = documents_of(corpus), origins_of(corpus)
    digest = hashlib.sha256(TEXTS[1].encode()).hexdigest()
    listed = corpus.with_name("takedown.txt")
    listed.write_text(
        f"# asked for in June\n\n0\n{origins[2][0]}: byte {origins[2][1]}\nsha256:{digest}\nb.jsonl:1\n"
    )
    written, report = reshaped(corpus, remove=[listed, "6,6"])
    assert written == [documents[3], documents[4], documents[5]]
    removed = report["removed"]
    assert (removed["entries"], removed["documents"]) == (6, 4)
    assert removed["unmatched"] == ["b.jsonl:1"]
    # Document 4 has the text of document 0, which was removed by its number.
    assert removed["is_proven_by_ids"]
    assert removed["same_ids"] == [1]
    assert any("same ids" in warning for warning in report["warnings"])
    metadata = packtok.PbinReader(corpus.with_name("out.pbin")).metadata
    assert metadata["steps"] == [{"step": "remove", "left_out": 4}], "no list is recorded"

    digest = hashlib.sha256(TEXTS[0].encode()).hexdigest()
    written, report = reshaped(corpus, "by_text.pbin", remove=f"sha256:{digest}", truncate=2)
    assert report["removed"]["same_ids"] == []
    assert len(written) == 5


def test_a_copy_of_a_document_that_is_removed_by_its_number_is_reported(corpus: Path) -> None:
    packtok.reshape(corpus, corpus.with_name("twice.pbin"), sample="*=2")
    written, report = reshaped(corpus.with_name("twice.pbin"), remove="0")
    assert written[0] == documents_of(corpus)[0]
    assert report["removed"]["same_ids"][0] == 0
    origin = "{0[0]}:{0[1]}".format(origins_of(corpus)[0])
    written, report = reshaped(corpus.with_name("twice.pbin"), "none.pbin", remove=origin)
    assert report["removed"]["documents"] == 2


def test_sides_of_a_split_are_those_of_datasets(corpus: Path) -> None:
    documents = documents_of(corpus)
    for rule in ({"validation_fraction": 0.5, "split_seed": 3}, {"validation_last": 2}):
        for side in ("train", "validation"):
            dataset = packtok.TokenDataset(str(corpus), 1, labels="aligned", split=side, **rule)
            expected = [int(dataset[i]["input_ids"][0]) for i in range(len(dataset))]
            written, _ = reshaped(corpus, existing="replace", split=side, **rule)
            assert [*chain.from_iterable(written)][: len(expected)] == expected
            assert 0 < len(written) < len(documents)


def test_samples_have_what_was_asked_for(corpus: Path) -> None:
    documents, origins = documents_of(corpus), origins_of(corpus)
    written, _ = reshaped(corpus, sample="documents=3", seed=5)
    positions = [documents.index(document) for document in written]
    assert len(written) == 3
    assert positions == sorted(positions)
    assert written == reshaped(corpus, "again.pbin", sample="documents=3", seed=5)[0]

    written, report = reshaped(corpus, "tokens.pbin", sample="tokens=9")
    assert 0 < report["tokens"] <= 9

    written, report = reshaped(corpus, "weights.pbin", sample=["a.jsonl=2.5", "b*=0"], seed=1)
    counts = Counter(origins_of(corpus.with_name("weights.pbin")))
    assert set(counts) == set(origins[:4])
    assert sorted(counts.values()) == [2, 2, 3, 3]


def test_cut_documents_keep_their_eod(corpus: Path) -> None:
    documents = documents_of(corpus)
    written, report = reshaped(corpus, truncate=3)
    expected = [ids if len(ids) <= 3 else [*ids[:2], EOD] for ids in documents]
    assert written == expected
    assert report["truncated"] == sum(len(ids) > 3 for ids in documents)
    assert origins_of(corpus.with_name("out.pbin")) == origins_of(corpus)


def test_tokenizing_again_equals_packing_the_texts(corpus: Path, tmp_path: Path) -> None:
    options = {"tokenizer": "cl100k_base", "empty_document": "keep"}
    packtok.pack(input=str(tmp_path / "corpus"), output=str(tmp_path / "expected.pbin"), **options)
    written, report = reshaped(corpus, retokenize="cl100k_base")
    assert written == documents_of(tmp_path / "expected.pbin")
    assert report["retokenized"]["not_restored"] == 0
    assert origins_of(corpus.with_name("out.pbin")) == origins_of(corpus)
    metadata = packtok.PbinReader(corpus.with_name("out.pbin")).metadata
    expected = packtok.PbinReader(tmp_path / "expected.pbin").metadata
    assert (metadata["tokenizer"], metadata["eod"]) == (expected["tokenizer"], expected["eod"])
    assert Path(f"{corpus.with_name('out.pbin')}.tokenizer.json").exists()


def test_documents_whose_text_does_not_give_their_ids_are_named(corpus: Path) -> None:
    # "on" and "e" are one token for the tokenizer, but two here.
    source = corpus.with_name("two.pbin")
    pbins.write(source, [[505, EOD], [261, 68, EOD]], eod_id=EOD)
    written, report = reshaped(source, retokenize="cl100k_base", tokenizer=f"{corpus}.tokenizer.json")
    assert report["retokenized"]["not_restored_documents"] == [1]
    assert any("documents of the input: 1" in warning for warning in report["warnings"])
    assert len(written) == 2


@pytest.mark.parametrize("memory", [None, NO_MEMORY])
@pytest.mark.parametrize("form", ["pbin", "megatron", "datatrove", "npy"])
def test_a_shuffle_is_the_permutation_from_every_format(corpus: Path, form: str, memory: Any) -> None:
    documents, origins = documents_of(corpus), origins_of(corpus)
    source = corpus
    if form != "pbin":
        packtok.convert(corpus, corpus.with_name("other"), to=form)
        source = (
            corpus.parent
            / {"megatron": "other.idx", "datatrove": "other.ds", "npy": "other/shard_00000.npy"}[form]
        )
    output = corpus.with_name("out.pbin")
    packtok.reshape(source, output, shuffle=True, seed=7, memory=memory)
    order = order_of(len(documents), 7)
    assert documents_of(output) == [documents[number] for number in order]
    # Other formats keep the origins beside their files.
    assert origins_of(output) == [origins[number] for number in order]


def test_a_shuffle_after_a_change_is_that_of_the_changed_documents(corpus: Path) -> None:
    changed, _ = reshaped(corpus, "changed.pbin", truncate=3, filter="number != 2")
    written, _ = reshaped(corpus, truncate=3, filter="number != 2", shuffle=True, memory=NO_MEMORY)
    assert written == [changed[number] for number in order_of(len(changed), 0)]


def test_blocks_keep_their_neighbours(corpus: Path) -> None:
    documents = documents_of(corpus)
    blocks: list[list[list[int]]] = [[]]
    for document in documents:
        if sum(map(len, blocks[-1])) >= 8:
            blocks.append([])
        blocks[-1].append(document)
    written, _ = reshaped(corpus, shuffle=True, block_tokens=8, seed=2)
    order = order_of(len(blocks), 2)
    assert written == [*chain.from_iterable(blocks[number] for number in order)]


@pytest.mark.parametrize("steps", [{}, *extent([{"truncate": 3}], []), {"retokenize": "cl100k_base"}])
@pytest.mark.parametrize("memory", [None, NO_MEMORY])
def test_rows_are_cut_from_the_joined_documents(corpus: Path, steps: dict[str, Any], memory: Any) -> None:
    packtok.reshape(corpus, corpus.with_name("changed.pbin"), shuffle=True, seed=3, memory=memory, **steps)
    tokens = [*chain.from_iterable(documents_of(corpus.with_name("changed.pbin")))]
    for length in (1, 4, 1000):
        output = corpus.with_name(f"{length}.pbin")
        report = packtok.reshape(
            corpus, output, rows=length, shuffle=True, seed=3, memory=memory, accept_loss="origins", **steps
        )
        rows = [tokens[start : start + length] for start in range(0, len(tokens) - length + 1, length)]
        assert documents_of(output) == rows
        assert report["documents"] == len(rows)
        assert report["steps"][-1]["left_out_tokens"] == len(tokens) % length
        packtok.verify(str(output))
    in_order = [*chain.from_iterable(documents_of(corpus))]
    packtok.reshape(corpus, corpus.with_name("rows"), rows=4, to="mds", accept_loss="origins")
    assert documents_of(corpus.parent / "rows" / "shard.00000.mds") == [
        in_order[start : start + 4] for start in range(0, len(in_order) - 3, 4)
    ]


def test_origins_survive_a_chain_through_formats(corpus: Path, tmp_path: Path) -> None:
    expected = dict(zip(origins_of(corpus), documents_of(corpus), strict=True))
    packtok.reshape(corpus, tmp_path / "m", to="megatron", shuffle=True)
    packtok.reshape(tmp_path / "m.idx", tmp_path / "d", to="datatrove", filter="number > 0")
    packtok.reshape(tmp_path / "d.ds", tmp_path / "n", to="npy", sample="documents=5")
    packtok.reshape(tmp_path / "n/shard_00000.npy", tmp_path / "end.pbin", shuffle=True, seed=1)
    packtok.verify(str(tmp_path / "end.pbin"))
    written = dict(zip(origins_of(tmp_path / "end.pbin"), documents_of(tmp_path / "end.pbin"), strict=True))
    assert len(written) == 5
    assert written.items() <= expected.items()
    names = [step["step"] for step in packtok.PbinReader(tmp_path / "end.pbin").metadata["steps"]]
    assert names == ["shuffle", "filter", "sample", "shuffle"]


@settings(max_examples=extent(40, 15), deadline=None)
@given(data=st.data())
def test_any_chain_of_steps_equals_its_plain_version(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    folder = tmp_path_factory.mktemp("chain")
    documents = data.draw(st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=12))
    oracle.write_lines(folder / "c.jsonl", [" ".join(map(str, ids)) or "x" for ids in documents])
    packtok.pack(input=str(folder / "c.jsonl"), output=str(folder / "0.pbin"), tokenizer="gpt2", origins=True)
    model = list(zip(documents_of(folder / "0.pbin"), origins_of(folder / "0.pbin"), strict=True))
    source = folder / "0.pbin"
    for step in range(data.draw(st.integers(1, 3))):
        options: dict[str, Any] = {}
        if data.draw(st.booleans()):
            listed = data.draw(st.sets(st.integers(0, len(model) - 1))) if model else set()
            if listed:
                options["remove"] = ",".join(map(str, sorted(listed)))
        least = data.draw(st.integers(0, 4))
        options["filter"] = f"length >= {least}"
        kept = [pair for number, pair in enumerate(model) if "remove" not in options or number not in listed]
        kept = [pair for pair in kept if len(pair[0]) >= least]
        if data.draw(st.booleans()):
            limit = options["truncate"] = data.draw(st.integers(1, 5))
            kept = [
                (ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]], origin) for ids, origin in kept
            ]
        if data.draw(st.booleans()):
            options.update(shuffle=True, seed=step, memory=data.draw(st.sampled_from([None, NO_MEMORY])))
            kept = [kept[number] for number in order_of(len(kept), step)] if kept else []
        output = folder / f"{step + 1}.pbin"
        packtok.reshape(source, output, **options)
        assert list(zip(documents_of(output), origins_of(output), strict=True)) == kept
        model, source = kept, output


def test_command_line(corpus: Path, packtok_cli: PacktokCli) -> None:
    output = corpus.with_name("out.pbin")
    done = packtok_cli("reshape", corpus, "-o", output, "--filter", "length >= 3", "--shuffle", "--json")
    report = json.loads(done.stdout)
    assert report["documents"] == len(documents_of(output))
    done = packtok_cli(
        "reshape", corpus, "-o", output, "--filter", "length >= 3", "--shuffle", "--existing", "skip"
    )
    assert "skipped existing" in done.stdout
    assert "step 1" in done.stdout
    inspected = packtok_cli("inspect", output).stdout
    assert "filter length >= 3; leaves out 4 documents" in inspected
    done = packtok_cli("reshape", corpus, "-o", output, "--existing", "skip", code=1)
    assert "the existing output differs" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filter": "length >"}, "--filter|filter: 'length >' is no expression"),
        ({"filter": "lenght > 3"}, "^filter: 'lenght' in 'lenght > 3': expected number, length"),
        ({"filter": "__import__('os')"}, "expected number, length"),
        ({"filter": "length.real > 3"}, "expected number, length"),
        ({"filter": "length ** 9 > 3"}, "expected number, length"),
        ({"filter": "count(length) > 3"}, "expected the id of one token"),
        ({"filter": "length + 1"}, "expected a bool for each document"),
        ({"filter": "source > 3"}, "'source > 3' in 'source > 3'"),
        ({"filter": "count(bos) > 3"}, "the files record no BOS"),
        ({"filter": lambda documents: [True]}, "the filter returned 1 values; expected 7"),
        ({"chunk": "3"}, "expected K/N"),
        ({"chunk": "3/3"}, "expected 0/3 to 2/3"),
        ({"remove": "7"}, "there is no document 7; the inputs have 7"),
        ({"remove": "x"}, "'x'|\"x\" names no document"),
        ({"split": "train"}, "needs one of"),
        ({"validation_last": 2}, "needs one of"),
        ({"split": "train", "validation_last": 8}, "at most the number of documents"),
        ({"sample": "documents=8"}, "at most the number of documents"),
        ({"sample": "tokens=1000"}, "at most the number of tokens"),
        ({"sample": "c*=2"}, "no source matches 'c\\*'; there are a.jsonl, b.jsonl"),
        ({"sample": "a*=300"}, "expected 0 to 255"),
        ({"sample": ["tokens=1", "a*=1"]}, "stand alone"),
        ({"sample": "tokens"}, "expected documents=N, tokens=N or GLOB=WEIGHT"),
        ({"truncate": 0}, "expected an integer from 1"),
        ({"block_tokens": 4}, "has no effect without"),
        ({"eod_token": "x"}, "has no effect without"),
        ({"retokenize": "gpt2", "eod_token": "nope"}, "has no token 'nope'"),
        ({"to": "pbin", "dtype": "uint16"}, "has no effect with"),
        ({"rows": 0}, "expected an integer from 1"),
        ({"rows": 4}, "records origins, which rows cannot hold; set accept_loss"),
        ({"rows": 4, "remove": "0"}, "cannot be combined with remove"),
    ],
)
def test_wrong_arguments(corpus: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, packtok.PacktokError), match=message):
        packtok.reshape(corpus, corpus.with_name("out.pbin"), **options)
    assert not corpus.with_name("out.pbin").exists()
    assert not list(corpus.parent.glob(".*")), "nothing half-written is left"


def test_damaged_data_is_an_error(corpus: Path) -> None:
    data = bytearray(corpus.read_bytes())
    data[14] ^= 1
    corpus.write_bytes(data)
    for options in (
        {},
        {"filter": "count(eod) > 0"},
        {"shuffle": True},
        {"split": "train", "validation_fraction": 0.5},
    ):
        with pytest.raises(packtok.PbinFormatError, match="CRC32C"):
            packtok.reshape(corpus, corpus.with_name("out.pbin"), **options)
        assert not corpus.with_name("out.pbin").exists()


def test_origins_are_lost_only_if_that_is_accepted(corpus: Path) -> None:
    shards = {"to": "npy", "max_tokens": 8}
    for call in (packtok.convert, packtok.reshape):
        output = corpus.with_name(call.__name__)
        with pytest.raises(ValueError, match="records origins, which npy cannot hold"):
            call(corpus, output, **shards)
        assert not output.exists()
        report = call(corpus, output, **shards, accept_loss=["origins"])
        assert report["files"] > 1
    assert packtok.convert(corpus, corpus.with_name("one"), to="npy")["kept_beside"] == [
        "documents",
        "eod",
        "origins",
        "tokenizer",
    ]


def test_the_output_is_never_an_input(corpus: Path) -> None:
    before = corpus.read_bytes()
    for to in ("pbin", "raw"):
        with pytest.raises((ValueError, packtok.PacktokError), match="output"):
            packtok.reshape(corpus, corpus, to=to, existing="replace")
    assert corpus.read_bytes() == before


def test_columns_are_lost_only_if_that_is_accepted(corpus: Path) -> None:
    table = pyarrow.table({"input_ids": [[1, 2], [3]], "scores": [0.5, 1.0]})
    pyarrow.parquet.write_table(table, corpus.with_name("d.parquet"))
    with pytest.raises(ValueError, match="records scores, which pbin cannot hold"):
        packtok.reshape(corpus.with_name("d.parquet"), corpus.with_name("out.pbin"))
    packtok.reshape(corpus.with_name("d.parquet"), corpus.with_name("out.pbin"), accept_loss="scores")


def test_what_is_kept_is_said_before_anything_is_written(corpus: Path, packtok_cli: PacktokCli) -> None:
    seen: list[dict[str, list[str]]] = []
    output = corpus.with_name("out")

    def on_start(kept: dict[str, list[str]]) -> None:
        assert not output.exists()
        seen.append(kept)

    for options, expected in [
        ({"to": "pbin"}, {"kept_in_files": {"documents", "origins"}, "kept_beside": set(), "lost": set()}),
        ({"to": "megatron"}, {"kept_in_files": {"documents"}, "kept_beside": {"origins"}, "lost": set()}),
        ({"to": "raw"}, {"kept_in_files": set(), "kept_beside": {"documents", "origins"}, "lost": set()}),
        (
            {"to": "parquet", "max_tokens": 9, "accept_loss": "origins"},
            {"kept_in_files": {"documents"}, "kept_beside": set(), "lost": {"origins"}},
        ),
        (
            {"rows": 4, "accept_loss": "origins"},
            {"kept_in_files": {"documents"}, "kept_beside": set(), "lost": {"origins"}},
        ),
    ]:
        report = packtok.reshape(corpus, output, truncate=5, on_start=on_start, **options)
        kept = seen.pop()
        assert {place: report[place] for place in kept} == kept
        always = {"ids", "tokenizer", "eod"}
        assert {place: set(kept[place]) - always for place in kept} == expected
        shutil.rmtree(output, ignore_errors=True)
        output.unlink(missing_ok=True)
        output = output.with_name(f"{output.name}x")

    def refuse(_: dict[str, list[str]]) -> None:
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        packtok.reshape(corpus, output, truncate=5, on_start=refuse)
    assert not output.exists()
    done = packtok_cli("reshape", corpus, "-o", output, "--truncate", 5)
    assert done.stderr == "packtok: keeps documents, eod, ids, origins, tokenizer in the files\n"


def test_a_seed_without_effect_is_an_error(corpus: Path) -> None:
    with pytest.raises(ValueError, match="seed: has no effect without sample or shuffle"):
        packtok.reshape(corpus, corpus.with_name("out.pbin"), truncate=3, seed=7)


def test_arithmetic_that_would_be_wrong_is_an_error(corpus: Path) -> None:
    hashes = [xxhash.xxh64(np.array(ids, "<u4").tobytes()).intdigest() for ids in documents_of(corpus)]
    for expression, message in [
        ("hash * 2 > 5", "hashes have 64 bits"),
        ("hash - 1 > 5", "hashes have 64 bits"),
        ("-hash > 5", "hashes have 64 bits"),
        ("hash % length == 0", "divided by a positive integer only"),
        ("hash // 2.5 == 0", "divided by a positive integer only"),
        ("length // 0 == 1", "division by zero"),
        ("length % (length - length) == 1", "division by zero"),
        ("not " * 5000 + "length > 0", "nested too deeply|too many nested|is no expression"),
    ]:
        with pytest.raises(ValueError, match=message):
            reshaped(corpus, filter=expression)
    for expression, expected in [
        ("hash % 10 * 2 - 5 > 0", [value % 10 * 2 - 5 > 0 for value in hashes]),
        ("hash // 3 - 1 > 5", [value // 3 - 1 > 5 for value in hashes]),
        ("5 / length > 1", [len(ids) == 0 or 5 / len(ids) > 1 for ids in documents_of(corpus)]),
    ]:
        written, _ = reshaped(corpus, "out2.pbin", filter=expression, existing="replace")
        documents = documents_of(corpus)
        assert written == [ids for ids, keeps in zip(documents, expected, strict=True) if keeps]


def test_the_tokenizer_of_a_replaced_output_is_replaced(corpus: Path) -> None:
    output = corpus.with_name("out.pbin")
    packtok.reshape(corpus, output, retokenize="cl100k_base")
    report = packtok.reshape(corpus, output, existing="replace")
    assert report["warnings"] == []
    tokenizer = output.with_name("out.pbin.tokenizer.json")
    assert tokenizer.read_bytes() == corpus.with_name("in.pbin.tokenizer.json").read_bytes()


def test_an_input_behind_a_missing_folder_is_not_overwritten(corpus: Path) -> None:
    before = corpus.read_bytes()
    with pytest.raises(ValueError, match="input"):
        packtok.reshape(corpus, corpus.parent / "none" / ".." / "in.pbin", existing="replace", shuffle=True)
    assert corpus.read_bytes() == before


def test_a_name_that_several_files_share_is_an_input(corpus: Path) -> None:
    for form in ("megatron", "datatrove", "dolma"):
        packtok.convert(corpus, corpus.with_name(form), to=form)
        packtok.reshape(corpus.with_name(form), corpus.with_name(f"{form}.pbin"), truncate=2)
        assert documents_of(corpus.with_name(f"{form}.pbin")) == [
            ids if len(ids) <= 2 else [ids[0], EOD] for ids in documents_of(corpus)
        ]


def test_files_with_and_without_origins_are_joined_if_the_loss_is_accepted(corpus: Path) -> None:
    (corpus.parent / "c.jsonl").write_text('{"text": "other"}\n')
    other = corpus.with_name("other.pbin")
    packtok.pack(input=str(corpus.parent / "c.jsonl"), output=str(other), tokenizer="gpt2")
    packtok.convert(other, corpus.with_name("m"), to="megatron")
    for second in (other, corpus.with_name("m")):
        output = corpus.with_name("out.pbin")
        with pytest.raises(
            ValueError, match=r"in\.pbin: records origins, which an output that joins inputs with and"
        ):
            packtok.reshape([corpus, second], output, existing="replace")
        packtok.reshape([corpus, second], output, accept_loss="origins", existing="replace")
        assert documents_of(output) == documents_of(corpus) + documents_of(other)
        assert packtok.PbinReader(output).origin(0) is None
        packtok.verify(str(output))


def test_joined_rows_are_still_rows(corpus: Path) -> None:
    rows = corpus.with_name("rows.pbin")
    packtok.reshape(corpus, rows, rows=4, accept_loss="origins")
    packtok.reshape(corpus, corpus.with_name("plain.pbin"), truncate=2)
    for name, call in (("merged", packtok.merge), ("joined", packtok.reshape)):
        output = corpus.with_name(f"{name}.pbin")
        call([str(rows), str(rows)], str(output))
        packtok.verify(str(output))

"""`packtok tokenize`: described datasets to a described dataset of token files, without tatm's failures."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import PacktokCli
from extent import extent
from processes import start, wait_until_packing
from small_tokenizers import write_tokenizer
from stories import TOKENIZER
from tatm_keys import TATM_KEYS, TATM_TOKENIZED_KEYS

import packtok
from packtok.catalog.schema import load_details, load_metadata
from packtok.commands.data import create_metadata, validate_metadata
from packtok.errors import ConfigError


def describe(folder: Path, **answers: Any) -> Path:
    create_metadata({"output": str(folder / "metadata.json"), "dataset_path": str(folder), **answers})
    return folder


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    """Returns a described dataset of JSON lines whose texts are in ``body``."""
    folder = tmp_path / "lines"
    folder.mkdir()
    texts = [f"line {i} of the first dataset" for i in range(200)]
    (folder / "a.jsonl").write_text("".join(json.dumps({"body": text}) + "\n" for text in texts))
    return describe(folder, name="Lines", content_field="body")


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    """Returns a described dataset of two corpora of Parquet files whose texts are in ``text``."""
    folder = tmp_path / "table"
    for corpus in ("arxiv", "book"):
        (folder / corpus).mkdir(parents=True)
        rows = pa.table({"text": [f"row {i} of {corpus}" for i in range(300)]})
        pq.write_table(rows, folder / corpus / "a.parquet", row_group_size=50)
    return describe(folder, name="Table", corpus=["arxiv", "book"], corpus_separation_strategy="data_dirs")


def documents_of(path: Path) -> list[list[int]]:
    reader = packtok.PbinReader(path)
    return [reader[i].tolist() for i in range(len(reader))]


def packed(tmp_path: Path, corpus: Path, field: str) -> list[list[int]]:
    output = tmp_path / "expected.pbin"
    packtok.pack(input=corpus, output=output, tokenizer="gpt2", field=field, existing="replace")
    return documents_of(output)


def test_datasets_are_written_in_order_each_with_its_field(
    tmp_path: Path, jsonl: Path, parquet: Path
) -> None:
    """tatm interleaves datasets at random, takes the wrong field, and hangs when the first one ends."""
    expected = [
        *packed(tmp_path, parquet / "book", ".text"),
        *packed(tmp_path, jsonl, ".body"),
        *packed(tmp_path, parquet / "arxiv", ".text"),
    ]
    datasets = [f"{parquet}:book", str(jsonl), f"{parquet}:arxiv"]
    for num_cpus in (1, 3):
        folder = tmp_path / f"out{num_cpus}"
        written = packtok.tokenize(datasets, "gpt2", folder, num_cpus=num_cpus)
        assert documents_of(folder / "tokenized.pbin") == expected
        assert written["tokenized_info"]["parent_datasets"] == ["Table:book", "Lines", "Table:arxiv"]
        assert written["details"]["documents"] == len(expected) == 800


@pytest.mark.parametrize("is_folder", [True, False])
def test_tokenizer_given_by_a_path_is_recorded_by_its_name(
    tmp_path: Path, jsonl: Path, packtok_cli: PacktokCli, is_folder: bool
) -> None:
    """A path of the machine that tokenizes means nothing elsewhere."""
    home = tmp_path / "home" / "mine"
    home.mkdir(parents=True)
    path = home / ("tokenizer.json" if is_folder else "mine.json")
    path.write_bytes(Path(TOKENIZER).read_bytes())
    name, folder = home.name if is_folder else path.name, tmp_path / "out"
    packtok.tokenize(str(jsonl), str(home if is_folder else path), folder)
    info = load_metadata(folder).tokenized_info
    assert info is not None
    assert info.tokenizer == name
    trailer: Any = packtok.PbinReader(folder / "tokenized.pbin").metadata
    assert trailer["tokenizer"]["name"] == name
    output = packtok_cli("inspect", folder / "tokenized.pbin").stdout + packtok_cli("inspect", folder).stdout
    files = [file.read_text() for file in folder.glob("metadata*")]
    for text in (json.dumps(trailer), output.replace(str(folder), ""), *files):
        assert str(tmp_path) not in text


def test_metadata_describes_the_files(tmp_path: Path, jsonl: Path) -> None:
    folder = tmp_path / "out"
    packtok.tokenize(str(jsonl), "gpt2", folder, file_prefix="web")
    metadata, details = load_metadata(folder), load_details(folder / "metadata.json")
    info = metadata.tokenized_info
    assert info is not None
    assert set(metadata.to_dict()) <= TATM_KEYS
    assert set(metadata.to_dict()["tokenized_info"]) <= TATM_TOKENIZED_KEYS
    assert (info.file_prefix, info.file_extension, info.dtype) == ("web", "pbin", "uint16")
    assert info.vocab_size == packtok.Tokenizer.builtin("gpt2").vocab_size
    # Real tokens: tatm counts the zeros after the last document too.
    reader = packtok.PbinReader(folder / "web.pbin")
    assert details["tokens"] == reader.num_tokens == sum(len(reader[i]) for i in range(len(reader)))
    assert details["files"][0]["trailer_crc32c"] == reader.trailer_crc32c
    assert "vocab" not in details["tokenizer_config"]["model"]
    assert (
        packtok.Tokenizer.from_file(folder / "tokenizer.json").fingerprint == details["tokenizer_fingerprint"]
    )
    assert str(tmp_path) not in (folder / "metadata.json").read_text()
    moved = tmp_path / "moved"
    folder.rename(moved)
    assert validate_metadata(moved) == []
    (moved / "web.pbin").write_bytes(b"")
    assert len(validate_metadata(moved)) == 1


def test_parts_are_the_documents_of_one_file(tmp_path: Path, jsonl: Path, parquet: Path) -> None:
    datasets = [str(jsonl), str(parquet)]
    packtok.tokenize(datasets, "gpt2", tmp_path / "one")
    written = packtok.tokenize(datasets, "gpt2", tmp_path / "parts", parts=4)
    files = [tmp_path / "parts" / file["path"] for file in written["details"]["files"]]
    assert len(files) == 4
    assert [document for path in files for document in documents_of(path)] == documents_of(
        tmp_path / "one" / "tokenized.pbin"
    )
    dataset = packtok.TokenDataset(tmp_path / "parts" / "tokenized.jsonl", 16)
    assert dataset.num_tokens == written["details"]["tokens"]
    assert written["tokenized_info"]["file_prefix"] == "shard-"
    assert validate_metadata(tmp_path / "parts") == []


def test_type_that_is_too_narrow_is_an_error_before_anything_is_written(tmp_path: Path, jsonl: Path) -> None:
    """tatm wraps ids silently."""
    for tokenizer, dtype in (("gpt2", "uint8"), ("cl100k_base", "uint16")):
        with pytest.raises(ConfigError, match=f"token_dtype is {dtype}, too narrow for the"):
            packtok.tokenize(str(jsonl), tokenizer, tmp_path / "out", token_dtype=dtype)
    assert not (tmp_path / "out").exists()
    packtok.tokenize(str(jsonl), "gpt2", tmp_path / "out", token_dtype="uint32")


@pytest.mark.faults
def test_killed_run_resumes_and_writes_metadata_last(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    """tatm writes the metadata first, so that a failed run looks complete, and cannot resume."""
    folder = tmp_path / "large"
    folder.mkdir()
    texts = [f"document {i} " + "with some words of text " * 30 for i in range(30_000)]
    (folder / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    describe(folder)
    command = ("tokenize", folder, "-t", "gpt2", "-o", "out", "-j", 1)
    packtok_cli(*command[:-4], "-o", "expected", cwd=tmp_path)
    process = start(*command, cwd=tmp_path)
    while not (tmp_path / "out").exists():
        time.sleep(0.001)
    assert wait_until_packing(process, tmp_path / "out")
    process.kill()
    process.communicate(timeout=60)
    assert not (tmp_path / "out" / "metadata.json").exists()
    packtok_cli(*command, cwd=tmp_path)
    for name in ("tokenized.pbin", "tokenizer.json", "metadata.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "expected" / name).read_bytes()


def test_complete_dataset_is_not_replaced(tmp_path: Path, jsonl: Path, packtok_cli: PacktokCli) -> None:
    packtok_cli("tokenize", jsonl, "-t", "gpt2", "-o", "out", cwd=tmp_path)
    before = (tmp_path / "out" / "metadata.json").read_bytes()
    done = packtok_cli("tokenize", jsonl, "-t", "cl100k_base", "-o", "out", cwd=tmp_path, code=1)
    assert "the folder is a complete dataset already; choose another --output-dir" in done.stderr
    assert (tmp_path / "out" / "metadata.json").read_bytes() == before


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Returns the content of each file and when it was written."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


@pytest.mark.parametrize("parts", extent([(), ("--parts", "2")], [("--parts", "2")]))
def test_complete_dataset_is_kept_if_the_command_would_write_it(
    tmp_path: Path, jsonl: Path, parquet: Path, packtok_cli: PacktokCli, parts: tuple[str, ...]
) -> None:
    """A job that a cluster starts again after its end must not fail, and must not keep another dataset."""
    command = ("tokenize", jsonl, "-t", "gpt2", "-o", "out", *parts)
    skip = (*command, "--existing", "skip")
    first = packtok_cli(*skip, cwd=tmp_path)
    assert "kept" not in first.stdout
    before = contents(tmp_path / "out")
    again = packtok_cli(*skip, cwd=tmp_path)
    assert (
        again.stdout
        == first.stdout.removesuffix("\n") + " (kept: complete and what this command would write)\n"
    )
    after = contents(tmp_path / "out")
    assert {name: content for name, (content, _) in after.items()} == {
        name: content for name, (content, _) in before.items()
    }
    assert after["metadata.json"] == before["metadata.json"]
    assert json.loads(packtok_cli(*skip, "--json", cwd=tmp_path).stdout)["details"]["documents"] == 200
    for other, message in (
        (("-t", "cl100k_base"), "tokenizer_fingerprint is "),
        (("--file-prefix", "other"), "file_prefix is " if not parts else ""),
        ((parquet,), "parents is Lines body, expected Lines body, Table text; "),
        (("--no-add-special-tokens",), "add_special_tokens"),
    ):
        if message:
            failed = packtok_cli(*skip, *other, cwd=tmp_path, code=1)
            assert message in failed.stderr
            assert "replace" in failed.stderr or parts
    (jsonl / "a.jsonl").write_text('{"body": "another text"}\n')
    packtok_cli(*skip, cwd=tmp_path, code=1)
    kept = contents(tmp_path / "out")
    assert kept["metadata.json"] == before["metadata.json"]


def test_skip_verifies_the_tokens_and_packs_a_file_that_is_lost(tmp_path: Path, jsonl: Path) -> None:
    def tokenize() -> dict[str, Any]:
        return packtok.tokenize(str(jsonl), "gpt2", tmp_path / "out", existing="skip")

    first = tokenize()
    pbin = tmp_path / "out" / "tokenized.pbin"
    content = pbin.read_bytes()
    pbin.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    with pytest.raises(packtok.PbinFormatError, match=r"tokenized\.pbin: "):
        tokenize()
    pbin.unlink()
    assert tokenize() == first
    assert pbin.read_bytes() == content


def test_replaced_dataset_stays_until_the_new_one_is_complete(
    tmp_path: Path, jsonl: Path, packtok_cli: PacktokCli
) -> None:
    packtok_cli("tokenize", jsonl, "-t", "gpt2", "-o", "out", cwd=tmp_path)
    before = contents(tmp_path / "out")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "a.jsonl").write_text('{"text": "a"}\n{"text": 1}\n')
    describe(broken, name="Broken", no_count=True)
    replace = ("tokenize", broken, "-t", "cl100k_base", "--existing", "replace", "-o", "out")
    failed = packtok_cli(*replace, cwd=tmp_path, code=1)
    assert "a.jsonl:2: " in failed.stderr
    assert {name: before[name] for name in before} == {
        name: value for name, value in contents(tmp_path / "out").items() if name in before
    }
    (broken / "a.jsonl").write_text('{"text": "a"}\n{"text": "1"}\n')
    packtok_cli(*replace, cwd=tmp_path)
    packtok_cli(*replace[:-1], "fresh", cwd=tmp_path)
    assert {name: content for name, (content, _) in contents(tmp_path / "out").items()} == {
        name: content for name, (content, _) in contents(tmp_path / "fresh").items()
    }
    for k in range(2):
        packtok_cli("tokenize", jsonl, "-t", "gpt2", "-o", "out", "--shard", f"{k}/2", cwd=tmp_path)
    packtok_cli("tokenize", jsonl, "-t", "gpt2", "-o", "out", "--join", "--existing", "replace", cwd=tmp_path)
    assert (tmp_path / "out" / "tokenized.pbin").read_bytes() == before["tokenized.pbin"][0]
    assert validate_metadata(tmp_path / "out") == []


def test_metadata_of_texts_are_never_replaced(tmp_path: Path, jsonl: Path, packtok_cli: PacktokCli) -> None:
    """The default output folder is the current one, which may be that of the texts."""
    before = contents(jsonl)
    for policy in ("skip", "replace"):
        done = packtok_cli("tokenize", ".", "-t", "gpt2", "--existing", policy, cwd=jsonl, code=1)
        assert done.stderr == (
            "packtok: metadata.json: describes a dataset of texts, which is not replaced; choose another "
            "--output-dir\n"
        )
        assert contents(jsonl) == before


def test_mixture_is_named_after_all_its_datasets(tmp_path: Path, jsonl: Path, parquet: Path) -> None:
    datasets = [str(jsonl), f"{parquet}:book", f"{parquet}:arxiv"]
    assert packtok.tokenize(datasets, "gpt2", tmp_path / "two")["name"] == "Lines + Table-tokenized_gpt2"
    for name in "abc":
        folder = tmp_path / name
        folder.mkdir()
        (folder / "a.jsonl").write_text('{"text": "a"}\n')
        datasets.append(str(describe(folder, name=name)))
    written = packtok.tokenize(datasets, "gpt2", tmp_path / "five")
    assert written["name"] == "Lines + Table + a + 2 more-tokenized_gpt2"


def test_summary_has_the_name_that_the_index_will_have(
    tmp_path: Path, jsonl: Path, packtok_cli: PacktokCli
) -> None:
    base = tmp_path / "base"
    (base / "text").mkdir(parents=True)
    jsonl.rename(base / "text" / "lines")
    model = tmp_path / "my tokenizer.json"
    model.write_bytes(packtok.Tokenizer.builtin("gpt2").to_json())
    env = {"PACKTOK_BASE_DIR": str(base)}
    for folder, name in (
        ("base/text/lines/tokenized/mine/all", "Lines-tokenized_mine_all: "),
        ("base/mixed", "Lines-tokenized_my tokenizer.json: "),
        ("base/text/lines/raw", ""),
        ("base/text/lines/tokenized/mine", "Lines-tokenized_mine: "),
        ("elsewhere", ""),
    ):
        done = packtok_cli("tokenize", "base/text/lines", "-t", model, "-o", folder, cwd=tmp_path, env=env)
        assert (
            re.sub(r"[\d,]+ tokens", "N tokens", done.stdout) == f"{folder}: {name}200 documents, N tokens\n"
        )
        if name:
            packtok_cli("data", "index", cwd=tmp_path, env=env)
            done = packtok_cli("data", "show", name.removesuffix(": "), cwd=tmp_path, env=env)
            assert f"{folder}/metadata.json" in done.stdout


def test_local_tokenizer_takes_any_number_of_documents(tmp_path: Path) -> None:
    """tatm reloads the tokenizer by its name after 10,000 documents, and fails for a file."""
    folder = tmp_path / "many"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"text": "a b"}\n' * 25_000)
    describe(folder)
    (tmp_path / "tokenizer.json").write_bytes(packtok.Tokenizer.builtin("gpt2").to_json())
    written = packtok.tokenize(str(folder), str(tmp_path / "tokenizer.json"), tmp_path / "out", num_cpus=2)
    assert written["details"]["documents"] == 25_000


def test_dataset_that_cannot_be_tokenized_is_an_error(tmp_path: Path, jsonl: Path, parquet: Path) -> None:
    packtok.tokenize(str(jsonl), "gpt2", tmp_path / "out")
    images = tmp_path / "images"
    images.mkdir()
    describe(images, data_content="image")
    for dataset, message in (
        (str(tmp_path / "out"), "the dataset is tokenized already"),
        (str(images), "the data is image, not text"),
        (f"{parquet}:books", "no corpus 'books'; the dataset has 'arxiv', 'book'; did you mean 'book'?"),
        (f"{jsonl}:x", "no corpus 'x'; the dataset has none"),
    ):
        with pytest.raises(ConfigError) as raised:
            packtok.tokenize(dataset, "gpt2", tmp_path / "new")
        assert message in str(raised.value)
    with pytest.raises(FileNotFoundError):
        packtok.tokenize(str(tmp_path / "none"), "gpt2", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """Returns a described dataset whose corpora are configs of `datasets`, with texts in ``body``."""
    folder = tmp_path / "configs"
    for corpus in ("arxiv", "book"):
        (folder / "data").mkdir(parents=True, exist_ok=True)
        (folder / "data" / f"{corpus}.jsonl").write_text(json.dumps({"body": f"a {corpus}"}) + "\n")
    named = "".join(
        f"- {{config_name: {corpus}, data_files: data/{corpus}.jsonl}}\n" for corpus in ("arxiv", "book")
    )
    (folder / "README.md").write_text(f"---\nconfigs:\n{named}---\n")
    return describe(
        folder,
        name="Configs",
        content_field="body",
        corpus=["arxiv", "book", "lost"],
        corpus_separation_strategy="configs",
        no_count=True,
    )


def test_corpora_may_be_configs_of_datasets(tmp_path: Path, configs: Path, parquet: Path) -> None:
    written = packtok.tokenize([f"{configs}:book", f"{configs}:arxiv"], "gpt2", tmp_path / "out")
    tokenizer = packtok.Tokenizer.from_pretrained("gpt2")
    texts = [tokenizer.decode(ids[:-1]) for ids in documents_of(tmp_path / "out" / "tokenized.pbin")]
    assert texts == ["a book", "a arxiv"]
    assert written["tokenized_info"]["parent_datasets"] == ["Configs:book", "Configs:arxiv"]
    for datasets, message in (
        (
            [f"{configs}:boo"],
            "no corpus 'boo'; the dataset has 'arxiv', 'book', 'lost'; did you mean 'book'?",
        ),
        ([f"{configs}:lost"], "has no config 'lost'; it has arxiv, book"),
        ([f"{configs}:book", f"{parquet}:book"], "Table:book is read as files; tokenize them separately"),
    ):
        with pytest.raises(ConfigError, match=re.escape(message)):
            packtok.tokenize(datasets, "gpt2", tmp_path / "none")


def test_dataset_of_several_configs_needs_one(tmp_path: Path, configs: Path) -> None:
    card = tmp_path / "card"
    shutil.copytree(configs, card)
    metadata = json.loads((card / "metadata.json").read_text())
    for key in ("corpuses", "corpus_separation_strategy"):
        metadata.pop(key)
    (card / "metadata.json").write_text(json.dumps(metadata | {"dataset_path": str(card)}))
    for folder, known in ((configs, "arxiv, book, lost"), (card, "arxiv, book")):
        with pytest.raises(ConfigError) as raised:
            packtok.tokenize(str(folder), "gpt2", tmp_path / "none")
        assert str(raised.value) == (
            f"{folder}/metadata.json: the dataset has several configs: {known}; give one, such as "
            f"{folder}:arxiv"
        )
    packtok.tokenize(f"{card}:book", "gpt2", tmp_path / "out")
    assert len(documents_of(tmp_path / "out" / "tokenized.pbin")) == 1


@pytest.fixture
def splits(tmp_path: Path) -> Path:
    """Returns a described dataset with three splits of 5, 2 and 1 documents."""
    folder = tmp_path / "splits"
    folder.mkdir()
    for name, number in (("train", 5), ("test", 2), ("validation", 1)):
        lines = [json.dumps({"text": f"{name} {i}"}) + "\n" for i in range(number)]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    return describe(folder, name="Splits")


def test_split_train_is_taken_unless_another_is_chosen(
    tmp_path: Path, splits: Path, packtok_cli: PacktokCli
) -> None:
    tokenize = ("tokenize", splits, "-t", TOKENIZER, "-o")
    done = packtok_cli(*tokenize, "out", cwd=tmp_path)
    assert done.stderr == (
        f"packtok: read of the split train: {splits}/train.jsonl; not read: {splits}/test.jsonl (split "
        f"test), {splits}/validation.jsonl (split validation)\n"
    )
    assert len(documents_of(tmp_path / "out" / "tokenized.pbin")) == 5
    for split, number in (("test", 2), ("validation", 1), ("all", 8)):
        packtok_cli(*tokenize, split, "--split", split, cwd=tmp_path)
        assert len(documents_of(tmp_path / split / "tokenized.pbin")) == number
    # The split also applies to shards, by hand and in a run.
    for shard in range(2):
        packtok_cli(*tokenize, "shards", "--shard", f"{shard}/2", cwd=tmp_path)
    packtok_cli(*tokenize, "shards", "--join", cwd=tmp_path)
    assert len(documents_of(tmp_path / "shards" / "tokenized.pbin")) == 5
    run = packtok_cli("run", "--no-submit", *tokenize, "run", "--split", "test", cwd=tmp_path)
    assert f"packtok: read of the split test: {splits}/test.jsonl; not read: " in run.stderr
    assert "--split=test" in (tmp_path / "packtok_tokenize.submit").read_text()
    # Other commands read all files.
    assert packtok.count(splits, TOKENIZER)["total"]["documents"] == 8


def test_files_of_no_split_and_missing_splits_are_errors(
    tmp_path: Path, splits: Path, packtok_cli: PacktokCli
) -> None:
    tokenize = ("tokenize", splits, "-t", TOKENIZER, "-o", "out")
    (splits / "extra.jsonl").write_text('{"text": "x"}\n')
    assert packtok_cli(*tokenize, cwd=tmp_path, code=1).stderr == (
        f"packtok: {splits}: a file is of no split, beside the splits train, validation, test: extra.jsonl; "
        "read all files with --split all, or leave it out with --ignore\n"
    )
    (splits / "train.jsonl").unlink()
    assert packtok_cli(*tokenize, "--ignore", "extra.*", cwd=tmp_path, code=1).stderr == (
        f'packtok: {splits}: no split "train"; the folder has validation, test; set --split to one of them, '
        "or to all\n"
    )
    # The split also applies to a run over a corpus without metadata.
    (splits / "metadata.json").unlink()
    run = ("run", "--no-submit", *tokenize, "--ignore", "extra.*")
    assert 'no split "train"' in packtok_cli(*run, cwd=tmp_path, code=1).stderr
    packtok_cli(*run, "--split", "test", cwd=tmp_path)
    plugin = tmp_path / "plugin.py"
    plugin.write_text("def documents(corpus):\n    return [corpus]\n")
    describe(splits)
    refused = packtok_cli(
        *tokenize, "--source", f"{plugin}:documents", "--split", "test", cwd=tmp_path, code=2
    )
    assert refused.stderr.endswith(
        "--split: it describes files, but --source reads the inputs; give only one\n"
    )


def test_source_plugin_reads_described_datasets(tmp_path: Path, configs: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text("def documents(corpus):\n    return [corpus]\n")
    datasets = [str(configs), f"{configs}:lost"]
    packtok.tokenize(datasets, "gpt2", tmp_path / "out", source=f"{plugin}:documents")
    tokenizer = packtok.Tokenizer.from_pretrained("gpt2")
    texts = [tokenizer.decode(ids[:-1]) for ids in documents_of(tmp_path / "out" / "tokenized.pbin")]
    assert texts == datasets


@pytest.mark.whole
def test_document_of_more_than_a_billion_tokens(tmp_path: Path) -> None:
    """tatm fails for documents of more than 2**30 tokens, and its files have at most as many."""
    character, block_characters = "\u00ff", 1 << 20
    corpus = tmp_path / "corpus" / "a.jsonl"
    corpus.parent.mkdir()
    with corpus.open("wb") as file:
        file.write(b'{"text": "')
        for _ in range(513):
            file.write(character.encode() * block_characters)
        file.write(b'"}\n')
    describe(corpus.parent, name="Long", content_field="text")
    packtok.tokenize(str(corpus.parent), TOKENIZER, tmp_path / "out", max_document_bytes=2 << 30)
    pair = packtok.Tokenizer.from_file(TOKENIZER).encode(character)
    (length,) = (len(document) for document in packtok.PbinReader(tmp_path / "out" / "tokenized.pbin"))
    assert length == 513 * block_characters * len(pair) + 1 > 1 << 30
    dataset = packtok.get_dataset(str(tmp_path / "out"), context_length=1 << 12)
    assert dataset.num_tokens() == length
    for i in (0, len(dataset) // 2, (1 << 30 >> 12) + 1):
        assert dataset[i].token_ids.tolist() == [*pair] * (4096 // len(pair))
        assert not dataset[i].document_ids.any()


NO_DEFAULT = (
    "--tokenizer: is not given, and the default, t5-base, cannot be loaded: tokenizer 't5-base': neither a "
    "path, "
    "nor built in, nor in the hub's cache, and the hub cannot be reached; download it with network access, "
    "or give "
    "the path of a tokenizer.json; or choose another with --tokenizer, such as gpt2, which is built in"
)


def offline(cache: Path) -> dict[str, str]:
    return {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(cache)}


def test_default_tokenizer_is_that_of_tatm(parquet: Path, tmp_path: Path, packtok_cli: PacktokCli) -> None:
    """This is the first command in tatm's guide."""
    (tmp_path / "corpus.jsonl").write_text('{"text": "a b"}\n')
    dataset, run = f"{parquet}:arxiv", ("run", "--no-submit")
    for command in (
        ("tokenize", "--output-dir", "out", dataset),
        ("tokenize", "--output-dir", "out", "corpus.jsonl"),
        (*run, "tokenize", "--output-dir", "out", dataset),
        (*run, "tokenize", "--output-dir", "out", "corpus.jsonl"),
    ):
        failed = packtok_cli(*command, cwd=tmp_path, code=1, env=offline(tmp_path / "cache"))
        assert failed.stderr.rstrip().endswith(NO_DEFAULT), failed.stderr
        assert not (tmp_path / "out").exists()
    write_tokenizer(tmp_path / "t5-base", {"eos_token": "</s>"})
    packtok_cli("tokenize", "--output-dir", "out", dataset, cwd=tmp_path, env=offline(tmp_path / "cache"))
    written = load_metadata(tmp_path / "out" / "metadata.json")
    assert written.tokenized_info is not None
    assert written.tokenized_info.tokenizer == "t5-base"
    assert documents_of(tmp_path / "out" / "tokenized.pbin")[0][-1] == 257
    packtok_cli(
        *run, "tokenize", "--output-dir", "run", dataset, cwd=tmp_path, env=offline(tmp_path / "cache")
    )


def test_tokens_added_from_the_config_are_in_the_tokenizer_written(
    parquet: Path, tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    write_tokenizer(tmp_path / "mine", {"eos_token": "</s>", "pad_token": "<pad>"})
    for options, size in ([], 258), (["--add-special-tokens-from-config"], 259):
        output = tmp_path / str(size)
        packtok_cli("tokenize", f"{parquet}:arxiv", "-t", "mine", "-o", output, *options, cwd=tmp_path)
        assert packtok.Tokenizer.from_file(output / "tokenizer.json").vocab_size == size
        info = load_metadata(output / "metadata.json").tokenized_info
        assert info is not None
        assert info.vocab_size == size

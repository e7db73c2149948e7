"""`packtok.get_dataset`: items of tatm's and packtok's tokenized folders, compared with a plain oracle."""

from __future__ import annotations

import itertools
import json
import pickle
import shutil
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference

torch = pytest.importorskip("torch", reason="needs torch, which is not installed")

import worker_memory  # noqa: E402
from command_line import PacktokCli  # noqa: E402

import packtok  # noqa: E402
from packtok.catalog.schema import load_metadata  # noqa: E402
from packtok.compat.tatm.items import TatmItem  # noqa: E402
from packtok.data import TatmMemmapDataset, torch_collate_fn  # noqa: E402
from packtok.errors import ConfigError, TokenizerError  # noqa: E402

MIB = 1 << 20
EOS = 1
LENGTH = 8
# Documents of two files, each with its separator. The lengths put boundaries at the start, in the middle and
# at the end of items.
FILES = [
    [[*range(10, 10 + n), EOS] for n in (0, 3, 7, 7, 1, 20, 2)],
    [[*range(300, 300 + n), EOS] for n in (5, 0, 0, 11)],
]


@dataclass
class Expected:
    """An item, as lists."""

    token_ids: list[int]
    document_ids: list[int]
    num_padding: int


def expected_items(
    files: list[list[list[int]]], length: int, *, chunked: bool = True, by_file: bool = True
) -> list[Expected]:
    """Returns the items of files of documents, computed token by token."""
    numbered = itertools.count()
    streams = [
        [(token, number) for document, number in zip(file, numbered, strict=False) for token in document]
        for file in files
    ]
    if not by_file:
        streams = [list(itertools.chain(*streams))]
    items = []
    for stream in streams:
        for start in range(0, len(stream), length if chunked else 1):
            part = stream[start : start + length]
            numbers = [number for _, number in part]
            places = {number: place for place, number in enumerate(dict.fromkeys(numbers))}
            missing = length - len(part)
            items.append(
                Expected(
                    [token for token, _ in part] + [0] * missing,
                    [places[number] for number in numbers] + [len(places)] * missing,
                    missing,
                )
            )
    return items


def assert_items(dataset: Any, expected: list[Expected]) -> None:
    assert len(dataset) == len(expected)
    for i, (item, wanted) in enumerate(zip(dataset, expected, strict=True)):
        assert item.token_ids.tolist() == wanted.token_ids, i
        assert item["document_ids"].tolist() == wanted.document_ids, i
        ids = np.array(wanted.document_ids)
        mask = np.tril(ids[:, None] == ids[None, :])
        assert (np.asarray(item.document_mask) == mask).all(), i
    assert dataset.num_padding_tokens == sum(wanted.num_padding for wanted in expected)


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}


def write_tatm(
    folder: Path,
    files: list[list[list[int]]],
    *,
    dtype: str = "uint16",
    padding: int = 100,
    first: int = 0,
    separator: str | None = "template",
) -> Path:
    """Writes a folder as tatm does: files without a header, zeros at their ends, ``metadata.yaml``."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, documents in enumerate(files, first):
        tokens = [token for document in documents for token in document] + [0] * padding
        np.array(tokens, dtype=dtype).tofile(folder / f"tokenized_{i}.bin")
    processors = {
        "template": {
            "type": "TemplateProcessing",
            "single": [
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "</s>", "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"</s>": {"id": "</s>", "ids": [EOS], "tokens": ["</s>"]}},
        },
        "bert": {
            "type": "Sequence",
            "processors": [
                BYTE_LEVEL,
                {"type": "BertProcessing", "sep": ["</s>", EOS], "cls": ["<s>", 9]},
            ],
        },
        "none": BYTE_LEVEL,
    }
    if separator is not None:
        processor = processors[separator]
        (folder / "tokenizer.json").write_text(json.dumps({"model": {}, "post_processor": processor}))
    (folder / "metadata.yaml").write_text(
        "name: tokenized\ndataset_path: "
        + str(folder)
        + "\ndescription: Tokenized dataset created using tatm\n"
        "date_downloaded: '2025-01-01'\ndownload_source: Tokenized by tatm\ndata_content: text\n"
        "content_field: NA\ntokenized_info:\n"
        f"  tokenizer: t5-base\n  file_prefix: {folder}/tokenized\n  dtype: {dtype}\n  file_extension: bin\n"
        "  parent_datasets: [a]\n  vocab_size: 32100\n  tatm_version: 0.2.2\n"
    )
    return folder


def write_pbins(folder: Path, files: list[list[list[int]]], width: int = 2) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{i}.pbin" for i in range(len(files))]
    for path, documents in zip(paths, files, strict=True):
        reference.write_modalities(path, documents, width)
    return paths


@pytest.fixture
def tatm(tmp_path: Path) -> Path:
    return write_tatm(tmp_path / "tatm", FILES)


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("by_file", [True, False])
@pytest.mark.parametrize("length", [1, 4, 8, 13, 100])
def test_items_of_pbins_equal_those_of_the_oracle(
    tmp_path: Path, length: int, by_file: bool, chunked: bool
) -> None:
    write_pbins(tmp_path, FILES)
    dataset = packtok.get_dataset(tmp_path, length, chunked=chunked, by_file=by_file)
    assert_items(dataset, expected_items(FILES, length, chunked=chunked, by_file=by_file))


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("by_file", [True, False])
@pytest.mark.parametrize("length", [1, 4, 8, 13, 100])
@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.filterwarnings("ignore:cut")
def test_items_of_tatm_folders_equal_those_of_the_oracle(
    tmp_path: Path, dtype: str, length: int, by_file: bool, chunked: bool
) -> None:
    write_tatm(tmp_path, FILES, dtype=dtype)
    dataset = packtok.get_dataset(tmp_path, length, chunked=chunked, by_file=by_file)
    assert_items(dataset, expected_items(FILES, length, chunked=chunked, by_file=by_file))
    assert dataset[0].token_ids.dtype == dtype
    assert dataset[0].document_ids.dtype == np.uint16


def test_the_padding_of_tatm_is_cut_and_reported(tatm: Path) -> None:
    with pytest.warns(
        UserWarning, match=r"cut 200 tokens of zero padding at the end of 2 of 2 files"
    ) as caught:
        dataset = packtok.get_dataset(tatm, LENGTH)
    assert caught[0].filename == __file__
    assert dataset.num_cut_tokens == 200
    assert dataset.num_tokens() == sum(len(document) for file in FILES for document in file)
    assert dataset.num_files() == 2
    assert dataset.vocab_size == 32100


def test_a_capacity_of_2_to_the_30_tokens_is_not_data(tmp_path: Path) -> None:
    """The file is sparse and has 2 GiB, like each file that tatm creates; 40 tokens are used."""
    folder = write_tatm(tmp_path, [[[*range(2, 41), EOS]]], padding=0)
    with (folder / "tokenized_0.bin").open("ab") as file:
        file.truncate(2 << 30)
    with pytest.warns(UserWarning, match=r"cut 1,073,741,784 tokens"):
        dataset = packtok.get_dataset(folder, 2048)
    assert (len(dataset), dataset.num_tokens()) == (1, 40)


def test_files_without_padding_are_not_remarked(tmp_path: Path) -> None:
    write_tatm(tmp_path, FILES, padding=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert packtok.get_dataset(tmp_path, LENGTH).num_cut_tokens == 0


@pytest.mark.filterwarnings("ignore:cut")
def test_files_are_read_in_natural_order(tmp_path: Path) -> None:
    """tatm reads ``tokenized_10`` before ``tokenized_2``."""
    files = [[[100 + i, EOS]] for i in range(12)]
    write_tatm(tmp_path, files)
    first_ids = [item.token_ids[0] for item in packtok.get_dataset(tmp_path, 2)]
    assert first_ids == [100 + i for i in range(12)]


@pytest.mark.filterwarnings("ignore:cut")
def test_a_folder_of_tatm_can_be_moved(tatm: Path, tmp_path: Path) -> None:
    shutil.move(tatm, tmp_path / "elsewhere")
    assert_items(packtok.get_dataset(tmp_path / "elsewhere", LENGTH), expected_items(FILES, LENGTH))


@pytest.mark.filterwarnings("ignore:cut")
@pytest.mark.parametrize("separator", ["template", "bert"])
def test_the_separator_is_read_from_the_tokenizer(tmp_path: Path, separator: str) -> None:
    write_tatm(tmp_path, FILES, separator=separator)
    assert_items(packtok.get_dataset(tmp_path, LENGTH), expected_items(FILES, LENGTH))


@pytest.mark.filterwarnings("ignore:cut")
def test_a_given_separator_counts_and_is_not_guessed(tmp_path: Path) -> None:
    files = [[[5, 6, 7], [8, 7], [9, 9, 9, 7]]]
    write_tatm(tmp_path, files, separator=None)
    assert_items(packtok.get_dataset(tmp_path, LENGTH, eos_token=7), expected_items(files, LENGTH))
    with pytest.raises(ConfigError, match=r"eos_token is missing, and .*tokenizer.json does not exist"):
        packtok.get_dataset(tmp_path, LENGTH)
    assert "document_ids" not in packtok.get_dataset(tmp_path, LENGTH, create_doc_ids=False)[0]


@pytest.mark.filterwarnings("ignore:cut")
def test_a_tokenizer_without_a_separator_is_remarked(tmp_path: Path) -> None:
    """tatm takes id 1 as the separator of every tokenizer."""
    write_tatm(tmp_path, FILES, separator="none")
    with pytest.warns(UserWarning, match="appends no token to a document, so documents cannot be told apart"):
        dataset = packtok.get_dataset(tmp_path, LENGTH)
    assert not dataset[0].document_ids.any()


def test_a_truncated_file_is_an_error(tatm: Path) -> None:
    path = tatm / "tokenized_1.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(packtok.PbinFormatError, match=r"tokenized_1.bin: the file is \d+ bytes, which is no"):
        packtok.get_dataset(tatm, LENGTH)


@pytest.mark.filterwarnings("ignore:cut")
def test_a_file_replaced_after_it_was_listed_is_an_error(tatm: Path) -> None:
    dataset = packtok.get_dataset(tatm, LENGTH)
    (tatm / "tokenized_0.bin").write_bytes(b"\1\0" * 10)
    with pytest.raises(packtok.PacktokError, match=r"tokenized_0.bin"):
        _ = dataset[0]


def test_items_of_an_unknown_dtype_are_an_error(tmp_path: Path) -> None:
    write_tatm(tmp_path, FILES, padding=0)
    with pytest.raises(ConfigError, match="dtype is 'float32', expected 'uint8', 'uint16' or 'uint32'"):
        TatmMemmapDataset(str(tmp_path / "tokenized"), LENGTH, "float32")


def test_the_file_extension_is_that_of_the_metadata(tmp_path: Path) -> None:
    """tatm reads ``.bin`` files whatever the metadata says."""
    write_tatm(tmp_path, FILES, padding=0)
    for path in tmp_path.glob("*.bin"):
        path.rename(path.with_suffix(".tok"))
    metadata = tmp_path / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace("file_extension: bin", "file_extension: tok"))
    assert_items(packtok.get_dataset(tmp_path, LENGTH), expected_items(FILES, LENGTH))
    for path in tmp_path.glob("*.tok"):
        path.unlink()
    with pytest.raises(ConfigError, match=r"tokenized\*.tok: no file matches"):
        packtok.get_dataset(tmp_path, LENGTH)


def test_the_class_takes_the_arguments_of_tatm(tmp_path: Path) -> None:
    write_tatm(tmp_path, FILES, padding=0)
    dataset = TatmMemmapDataset(
        str(tmp_path / "tokenized"),
        context_length=LENGTH,
        dtype="uint16",
        chunked=True,
        file_suffix="bin",
        eos_token=EOS,
        token_output_format="numpy",
        vocab_size=5,
        create_doc_ids=True,
        create_doc_mask=False,
        split="validation",
        val_split_size=2,
    )
    assert (len(dataset), dataset.vocab_size) == (2, 5)


# Ways to name a dataset.


@pytest.mark.filterwarnings("ignore:.*has no index")
def test_a_dataset_is_found_by_every_kind_of_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "base"
    texts = [f"text number {i} of the corpus" for i in range(50)]
    raw = base / "text" / "Pile"
    (raw / "raw").mkdir(parents=True)
    (raw / "raw" / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (raw / "metadata.json").write_text(
        json.dumps(
            {
                "name": "Pile",
                "dataset_path": "raw",
                "description": "",
                "date_downloaded": "",
                "download_source": "",
                "data_content": "text",
            }
        )
    )
    folder = raw / "tokenized" / "gpt2" / "all"
    packtok.tokenize(str(raw), "gpt2", folder, parts=3)
    monkeypatch.setenv("PACKTOK_BASE_DIR", str(base))
    paths = sorted(folder.glob("*.pbin"))
    expected = packtok.get_dataset(folder, 16)
    assert expected.num_files() == 3
    assert expected.vocab_size == 50257
    for named in (
        str(folder),
        folder / "metadata.json",
        load_metadata(folder),
        "Pile-tokenized_gpt2_all",
        folder / "tokenized.jsonl",
    ):
        dataset = packtok.get_dataset(named, 16)
        assert dataset.vocab_size == 50257
        assert [item.token_ids.tolist() for item in dataset] == [item.token_ids.tolist() for item in expected]
    single = packtok.get_dataset(paths[0], 16)
    assert (single.num_files(), single.vocab_size) == (1, 50257)
    assert single[0].token_ids.tolist() == expected[0].token_ids.tolist()
    with pytest.raises(ConfigError, match="the dataset is not tokenized; run packtok tokenize"):
        packtok.get_dataset("Pile", 16)
    for kind in (ConfigError, FileNotFoundError):
        with pytest.raises(kind, match="did you mean 'Pile-tokenized_gpt2_all'"):
            packtok.get_dataset("Pile-tokenised_gpt2_all", 16)
    by_name = packtok.TokenDataset("Pile-tokenized_gpt2_all", 16)
    assert torch.equal(by_name[0]["input_ids"], packtok.TokenDataset(folder, 16)[0]["input_ids"])
    with pytest.raises(FileNotFoundError, match="no dataset is named 'Pyle'"):
        packtok.TokenDataset("Pyle", 16)
    monkeypatch.delenv("PACKTOK_BASE_DIR")
    with pytest.raises(FileNotFoundError, match="'Pile' is not a path, and no base directory is set"):
        packtok.get_dataset("Pile", 16)
    with pytest.raises(FileNotFoundError):
        packtok.get_dataset(tmp_path / "none", 16)


def test_documents_of_gpt2_are_told_apart(tmp_path: Path) -> None:
    """tatm writes no boundaries, because GPT-2's tokenizer appends no token."""
    texts = ["one text", "another, which is longer", "a third"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    packtok.pack(input=tmp_path / "a.jsonl", output=tmp_path / "a.pbin", tokenizer="gpt2")
    reader = packtok.PbinReader(tmp_path / "a.pbin")
    lens = [len(reader[i]) for i in range(3)]
    item = packtok.get_dataset(tmp_path / "a.pbin", sum(lens))[0]
    assert item.document_ids.tolist() == [i for i, n in enumerate(lens) for _ in range(n)]


def test_shards_beside_their_file_are_not_read_twice(tmp_path: Path) -> None:
    """A run leaves the shards that it joined in a folder next to its output."""
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": f"text {i}"}) + "\n" for i in range(20)))
    output = tmp_path / "out" / "train.pbin"
    output.parent.mkdir()
    options: Any = {"input": tmp_path / "a.jsonl", "tokenizer": "gpt2"}
    shards = output.parent / "train.pbin.shards"
    packtok.plan(shards=2, output=shards, **options)
    packtok.pack(output=shards, shard="0/2", **options)
    with pytest.raises(ConfigError, match="1 of 2 shards are finished; run the command"):
        packtok.get_dataset(shards, 8)
    packtok.pack(output=shards, shard="1/2", **options)
    packtok.join(shards, output)
    expected = packtok.get_dataset(output, 8)
    for folder in (output.parent, shards):
        dataset = packtok.get_dataset(folder, 8, by_file=False)
        assert dataset.num_tokens() == expected.num_tokens()
        assert dataset.vocab_size == 50257
    assert packtok.TokenDataset(output.parent, 8).num_tokens == expected.num_tokens()


@pytest.mark.filterwarnings("ignore:cut")
@pytest.mark.parametrize("padding", [0, 1, 100])
def test_a_separator_of_0_is_not_taken_for_padding(tmp_path: Path, padding: int) -> None:
    files = [[[5, 6, 0], [7, 8, 9, 0]], [[3, 0]]]
    write_tatm(tmp_path, files, separator=None, padding=padding)
    dataset = packtok.get_dataset(tmp_path, 4, eos_token=0)
    assert_items(dataset, expected_items(files, 4))
    assert dataset.num_cut_tokens == 2 * padding


def test_a_damaged_tokenizer_is_named(tmp_path: Path) -> None:
    write_tatm(tmp_path, FILES, padding=0)
    for content in ("[]", "{", '{"post_processor": {"type": "BertProcessing", "sep": 5}}'):
        (tmp_path / "tokenizer.json").write_text(content)
        with pytest.raises(TokenizerError, match=f"^{tmp_path}/tokenizer.json: "):
            packtok.get_dataset(tmp_path, LENGTH)


@pytest.mark.filterwarnings("ignore:cut")
@pytest.mark.parametrize("by_file", [True, False])
@pytest.mark.parametrize("separator", [EOS, 0])
def test_rows_of_token_dataset_from_a_folder_of_tatm_equal_those_of_pbins(
    tmp_path: Path, by_file: bool, separator: int
) -> None:
    files = [[[*document[:-1], separator] for document in file] for file in FILES]
    folder = write_tatm(tmp_path / "tatm", files, separator=None)
    write_pbins(tmp_path / "pbins", files)
    fields: Any = {"position_ids": True, "document_ids": True, "cu_seqlens": True, "by_file": by_file}
    expected = packtok.TokenDataset(tmp_path / "pbins", LENGTH, **fields)
    for source in (folder, folder / "metadata.yaml", str(folder)):
        dataset = packtok.TokenDataset(source, LENGTH, eos_token=separator, **fields)
        assert dataset.num_tokens == expected.num_tokens
        assert len(dataset) == len(expected)
        items, expected_items = dataset[0 : len(dataset)], expected[0 : len(expected)]
        for item, other in zip(items, expected_items, strict=True):
            assert item.keys() == other.keys()
            for name, field in other.items():
                assert torch.equal(torch.as_tensor(item[name]), torch.as_tensor(field)), name
    copy = pickle.loads(pickle.dumps(dataset))
    assert copy.fingerprint == dataset.fingerprint
    assert torch.equal(copy[1]["document_ids"], dataset[1]["document_ids"])


@pytest.mark.filterwarnings("ignore:cut")
def test_a_mixture_opens_folders_of_tatm(tmp_path: Path) -> None:
    folders = [write_tatm(tmp_path / str(i), FILES[i : i + 1]) for i in range(2)]
    mixture = packtok.Mixture(dict.fromkeys(folders, 1), context_length=4, seed=1)
    alone = [packtok.TokenDataset(folder, 4) for folder in folders]
    for k in range(len(mixture)):
        source, position = mixture.source_of(k)
        assert torch.equal(mixture[k]["input_ids"], alone[source][position]["input_ids"])


def test_what_files_of_tatm_do_not_record_is_an_error(tmp_path: Path) -> None:
    folder = write_tatm(tmp_path, FILES, padding=0)
    for options, named in (
        ({"packing": "document"}, "packing is 'document'"),
        ({"packing": "best_fit"}, "packing is 'best_fit'"),
        ({"split": "train", "validation_fraction": 0.1}, "split is 'train'"),
    ):
        with pytest.raises(ValueError, match="files without a header") as raised:
            packtok.TokenDataset(folder, 4, **options)  # type: ignore[arg-type]
        assert str(raised.value) == (
            f"{folder}/tokenized_0.bin: {named}, but files without a header do not record where documents "
            "start; use packing='concat' without split and loss_markers, or tokenize the data with packtok"
        )


def test_padding_cut_by_token_dataset_is_reported_where_it_is_called(tatm: Path) -> None:
    with pytest.warns(UserWarning, match=r"cut 200 tokens of zero padding") as caught:
        packtok.TokenDataset(tatm, LENGTH)
    assert caught[0].filename == __file__


def test_inspect_shows_a_tokenized_dataset(tatm: Path, packtok_cli: PacktokCli) -> None:
    for source in (tatm, tatm / "metadata.yaml"):
        facts = json.loads(packtok_cli("inspect", source, "--json").stdout)
        num_tokens = [sum(map(len, file)) for file in FILES]
        assert facts == {
            "path": f"{tatm}/metadata.yaml",
            "name": "tokenized",
            "tokenizer": "t5-base",
            "vocab_size": 32100,
            "token_bytes": 2,
            "documents": None,
            "tokens": sum(num_tokens),
            "padding_tokens": 200,
            "files": [
                {
                    "path": f"{tatm}/tokenized_{i}.bin",
                    "file_bytes": 2 * (num + 100),
                    "token_bytes": 2,
                    "documents": None,
                    "tokens": num,
                    "padding_tokens": 100,
                }
                for i, num in enumerate(num_tokens)
            ],
        }
    stdout = packtok_cli("inspect", tatm).stdout
    assert "tokenizer    t5-base, 32,100 ids\n" in stdout
    assert "documents    unknown\n" in stdout
    assert "padding      200 zeros at the ends of files\n" in stdout


def test_the_end_of_documents_is_that_of_the_description(tmp_path: Path) -> None:
    """Files of other programs may end documents with a token that no post-processor appends."""
    files = [[[5, 6, 7], [8, 7], [9, 9, 9, 7]]]
    write_tatm(tmp_path, files, separator=None, padding=0)
    details = {"packtok_metadata": 1, "eos_token_id": 7}
    (tmp_path / "metadata.packtok.json").write_text(json.dumps(details))
    assert_items(packtok.get_dataset(tmp_path, LENGTH), expected_items(files, LENGTH))


# Items.


def test_a_mask_is_computed_when_it_is_read(tmp_path: Path) -> None:
    write_pbins(tmp_path, FILES)
    item = packtok.get_dataset(tmp_path, LENGTH)[0]
    assert isinstance(item, dict)
    assert list(item) == ["token_ids", "document_ids"]
    assert item.document_mask.dtype == bool
    assert item.document_mask is item["document_mask"]
    assert list(item) == ["token_ids", "document_ids", "document_mask"]
    assert list(packtok.get_dataset(tmp_path, LENGTH, create_doc_mask=True)[0]) == list(item)
    with pytest.raises(AttributeError, match="no field 'labels', only token_ids"):
        _ = item.labels
    with pytest.raises(KeyError):
        _ = item["labels"]
    assert pickle.loads(pickle.dumps(item)).token_ids.tolist() == item.token_ids.tolist()


@pytest.mark.parametrize("form", ["numpy", "torch"])
def test_all_fields_agree(tmp_path: Path, form: Any) -> None:
    write_pbins(tmp_path, FILES)
    options: Any = {"token_output_format": form, "position_ids": True, "cu_seqlens": True, "doc_lens": True}
    dataset = packtok.get_dataset(tmp_path, LENGTH, **options)
    for item, wanted in zip(dataset, expected_items(FILES, LENGTH), strict=True):
        lens = [len(list(group)) for _, group in itertools.groupby(wanted.document_ids)]
        assert item.doc_lens.tolist() == lens
        assert item.cu_seqlens.tolist() == [0, *itertools.accumulate(lens)]
        assert item.max_seqlen == max(lens)
        assert item.position_ids.tolist() == [i for n in lens for i in range(n)]
    item = dataset[0]
    if form == "torch":
        assert (item.token_ids.dtype, item.document_ids.dtype) == (torch.int64, torch.int64)
        assert item.document_mask.dtype == torch.bool
        assert item.cu_seqlens.dtype == torch.int32
    else:
        assert (item.token_ids.dtype, item.document_ids.dtype) == (np.uint16, np.uint16)
        assert item.doc_lens.dtype == np.int32
    only = packtok.get_dataset(tmp_path, LENGTH, doc_lens=True)[0]
    assert set(only) == {"token_ids", "document_ids", "doc_lens"}


def test_ids_of_every_width(tmp_path: Path) -> None:
    for width, dtype in ((1, np.uint16), (2, np.uint16), (4, np.uint32)):
        path = tmp_path / f"{width}.pbin"
        top = min(256**width - 1, 3_000_000_000)
        reference.write_modalities(path, [[1, 2, top]], width)
        item = packtok.get_dataset(path, 3)[0]
        assert (item.token_ids.dtype, item.token_ids.tolist()) == (dtype, [1, 2, top])


def test_long_items_number_their_documents_without_wrapping(tmp_path: Path) -> None:
    """tatm's uint16 document ids restart at 0 after 65,536 documents."""
    path = tmp_path / "a.pbin"
    num_documents = 70_000
    reference.write_modalities(path, [[i % 250] for i in range(num_documents)], 1)
    ids = packtok.get_dataset(path, num_documents)[0].document_ids
    assert ids.dtype == np.uint32
    assert (ids == np.arange(num_documents)).all()
    ids = packtok.get_dataset(path, 1 << 16)[0].document_ids
    assert ids.dtype == np.uint16
    assert (ids == np.arange(1 << 16)).all()


# Splits.


def test_splits_are_those_of_tatm(tmp_path: Path) -> None:
    path = tmp_path / "a.pbin"
    reference.write_modalities(path, [[i] for i in range(100)], 1)
    everything = [item.token_ids.tolist() for item in packtok.get_dataset(path, 7)]
    assert len(everything) == 15
    for size, num_validation in ((4, 4), (0.25, 4), (0.2, 3), (0.01, 1), (15, 15), (0, 0), (1, 1)):
        dataset = packtok.get_dataset(path, 7, val_split_size=size)
        assert [item.token_ids.tolist() for item in dataset] == everything
        dataset.set_split("train")
        assert [item.token_ids.tolist() for item in dataset] == everything[: 15 - num_validation]
        for name in ("validation", "val"):
            dataset.set_split(name)
            assert dataset.split == "validation"
            assert [item.token_ids.tolist() for item in dataset] == everything[15 - num_validation :]
        if num_validation:
            assert dataset[-1].token_ids.tolist() == everything[-1]
        with pytest.raises(IndexError, match="out of range"):
            _ = dataset[num_validation]
        with pytest.raises(IndexError, match="out of range"):
            _ = dataset[-num_validation - 1]
        dataset.set_split()
        assert len(dataset) == 15


def test_a_split_that_is_not_possible_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.pbin"
    reference.write_modalities(path, [[i] for i in range(100)], 1)
    with pytest.raises(ConfigError, match="split is 'train', but val_split_size is missing"):
        packtok.get_dataset(path, 7, split="train")
    for size in (16, -1, 1.5, -0.5):
        with pytest.raises(
            ConfigError, match=f"val_split_size is {size}, expected a number of items up to 15"
        ):
            packtok.get_dataset(path, 7, val_split_size=size)
    dataset = packtok.get_dataset(path, 7)
    with pytest.raises(ConfigError, match="split is 'test', expected 'train', 'validation', 'val' or None"):
        dataset.set_split("test")  # type: ignore[arg-type]
    dataset.create_split()
    dataset.set_split("val")
    assert len(dataset) == 2


def test_errors_of_arguments_name_the_public_function_and_what_is_accepted(tmp_path: Path) -> None:
    write_pbins(tmp_path, FILES)
    known = (
        "chunked, eos_token, token_output_format, vocab_size, create_doc_ids, create_doc_mask, position_ids, "
        "cu_seqlens, doc_lens, by_file, split, val_split_size"
    )
    create: Any = packtok.get_dataset
    with pytest.raises(TypeError) as raised:
        create(tmp_path, 8, foo=3)
    assert str(raised.value) == f"get_dataset() has no option 'foo', expected one of {known}"
    with pytest.raises(TypeError) as raised:
        create(tmp_path, 8, chunk=True)
    assert str(raised.value).endswith("; did you mean 'chunked'?")
    with pytest.raises(
        TypeError, match=r"^TatmMemmapDataset\(\) has no option 'foo', expected one of chunked"
    ):
        TatmMemmapDataset(str(tmp_path / "0"), 8, file_suffix="pbin", foo=3)  # type: ignore[call-arg]
    dataset = create(tmp_path, 8)
    for i in (slice(1, 3), "0", 1.0, None):
        with pytest.raises(TypeError) as raised:
            dataset[i]
        assert str(raised.value) == (
            f"an item of get_dataset is selected by an integer, found {i!r}; for several, call "
            "dataset.__getitems__([0, 1]), or use torch.utils.data.Subset"
        )
    assert dataset[np.int64(1)].token_ids.tolist() == dataset[1].token_ids.tolist()
    for size in ("0.1", [1], True, float("nan"), float("inf")):
        with pytest.raises(ConfigError) as raised_by_size:
            create(tmp_path, 8, val_split_size=size)
        assert str(raised_by_size.value) == (
            f"val_split_size is {size!r}, expected a number of items up to {len(dataset)}, or a fraction "
            "from 0 to 1"
        )
    for name in ("chunked", "by_file", "create_doc_ids", "doc_lens"):
        with pytest.raises(ConfigError, match=f"^{name} is 'no', expected True or False$"):
            create(tmp_path, 8, **{name: "no"})
    with pytest.raises(ValueError, match="vocab_size"):
        create(tmp_path, 8, vocab_size="many")


def test_options_without_a_meaning_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.pbin"
    reference.write_modalities(path, [[1, 2]], 1)
    with pytest.raises(ConfigError, match="create_doc_mask needs create_doc_ids"):
        packtok.get_dataset(path, 2, create_doc_mask=True, create_doc_ids=False)
    with pytest.raises(ConfigError, match="token_output_format is 'jax', expected 'numpy' or 'torch'"):
        packtok.get_dataset(path, 2, token_output_format="jax")  # type: ignore[typeddict-item]
    with pytest.raises(ValueError, match="context_length"):
        packtok.get_dataset(path, 0)
    reference.write_modalities(path, [[]], 1)
    with pytest.raises(ConfigError, match="the files contain no tokens"):
        packtok.get_dataset(path, 2)


# Loading.


@pytest.mark.parametrize(
    ("method", "form"),
    [
        (None, "numpy"),
        (None, "torch"),
        ("fork", "numpy"),
        ("fork", "torch"),
        pytest.param("spawn", "numpy", marks=pytest.mark.whole),
        ("spawn", "torch"),
    ],
)
def test_batches_equal_items(tmp_path: Path, method: str | None, form: Any) -> None:
    write_pbins(tmp_path, FILES)
    options: Any = {
        "token_output_format": form,
        "cu_seqlens": True,
        "doc_lens": True,
        "create_doc_mask": True,
    }
    dataset = packtok.get_dataset(tmp_path, LENGTH, **options)
    workers: Any = {} if method is None else {"num_workers": 1, "multiprocessing_context": method}
    loader = torch.utils.data.DataLoader(dataset, batch_size=3, **workers)
    batches = list(loader)
    items = [dataset[i] for i in range(len(dataset))]
    for batch, part in zip(
        batches,
        itertools.batched(items, 3) if sys.version_info >= (3, 12) else _batched(items, 3),
        strict=True,
    ):
        stacked = torch_collate_fn(part)
        assert batch.keys() == stacked.keys() == set(part[0])
        for name, field in stacked.items():
            assert isinstance(batch[name], torch.Tensor) or name == "max_seqlen"
            assert torch.equal(torch.as_tensor(batch[name]), torch.as_tensor(field)), name
            assert getattr(batch[name], "dtype", None) == getattr(field, "dtype", None), name
    assert batches[0]["token_ids"].dtype == (torch.int64 if form == "torch" else torch.uint16)


def _batched(items: list[Any], size: int) -> list[list[Any]]:
    return [items[i : i + size] for i in range(0, len(items), size)]


def test_rows_of_a_batch_equal_items(tmp_path: Path) -> None:
    write_pbins(tmp_path, FILES)
    for options in ({}, {"cu_seqlens": True}, {"doc_lens": True}, {"token_output_format": "torch"}):
        dataset = packtok.get_dataset(tmp_path, LENGTH, **options)  # type: ignore[arg-type]
        rows = dataset.__getitems__(range(len(dataset)))
        assert len(rows[1:3]) == 2
        for row, item in zip(rows, dataset, strict=True):
            assert row.keys() == item.keys()
            for name in item:
                assert type(row[name]) is type(item[name])
                assert np.array_equal(row[name], item[name]), name


def test_items_of_a_subset_are_collated_by_default(tmp_path: Path) -> None:
    write_pbins(tmp_path, FILES)
    dataset = packtok.get_dataset(tmp_path, LENGTH)
    joined = torch.utils.data.ConcatDataset([dataset, dataset])
    batch = next(iter(torch.utils.data.DataLoader(joined, batch_size=4)))
    assert batch["token_ids"].tolist() == [dataset[i].token_ids.tolist() for i in range(4)]
    assert set(batch) == {"token_ids", "document_ids"}


def test_items_with_different_fields_are_not_collated(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no items to collate"):
        torch_collate_fn([])
    with pytest.raises(ValueError, match="item 1 has the fields a, item 0 has b"):
        torch_collate_fn([TatmItem(b=1), TatmItem(a=1)])
    write_pbins(tmp_path, FILES)
    items = [packtok.get_dataset(tmp_path, length)[0] for length in (4, 3)]
    with pytest.raises(ValueError, match="item 1 has 3 tokens, item 0 has 4; give both datasets the same"):
        torch_collate_fn(items)


@pytest.mark.parametrize("is_joined", [False, True])
@pytest.mark.parametrize("form", ["numpy", "torch"])
def test_a_rank_without_items_gets_all_fields(tmp_path: Path, form: Any, is_joined: bool) -> None:
    path = tmp_path / "a.pbin"
    reference.write_modalities(path, [[i] for i in range(4)], 1)
    fields: Any = dict.fromkeys(("cu_seqlens", "doc_lens", "position_ids"), True)
    dataset: Any = packtok.get_dataset(path, 4, token_output_format=form, **fields)
    if is_joined:
        dataset = torch.utils.data.ConcatDataset([dataset])
    batches = [
        batch
        for rank in (0, 1)
        for batch in packtok.DataLoader(dataset, 1, rank=rank, num_replicas=2, at_epoch_end="short")
    ]
    assert batches[0].keys() == batches[1].keys()
    assert [len(batch["token_ids"]) for batch in batches] == [1, 0]
    assert [batch["token_ids"].dtype for batch in batches] == [batches[0]["token_ids"].dtype] * 2
    assert (batches[1]["cu_seqlens"].tolist(), batches[1]["max_seqlen"]) == ([0], 0)


def test_a_distributed_sampler_serves_each_item_once(tmp_path: Path) -> None:
    path = tmp_path / "a.pbin"
    reference.write_modalities(path, [[i] for i in range(96)], 1)
    dataset = packtok.get_dataset(path, 4)
    served = []
    for rank in range(3):
        sampler = torch.utils.data.DistributedSampler(dataset, 3, rank, shuffle=True)
        loader = torch.utils.data.DataLoader(dataset, batch_size=2, sampler=sampler)
        served += [row[0] for batch in loader for row in batch["token_ids"].tolist()]
    assert sorted(served) == list(range(0, 96, 4))


def test_the_resumable_loader_serves_the_dataset(tmp_path: Path) -> None:
    path = tmp_path / "a.pbin"
    reference.write_modalities(path, [[i] for i in range(96)], 1)
    loader = packtok.DataLoader(packtok.get_dataset(path, 4), 4, shuffle=True)
    batches = [batch["token_ids"].tolist() for batch in loader]
    loader = packtok.DataLoader(packtok.get_dataset(path, 4), 4, shuffle=True)
    iterator = iter(loader)
    assert [next(iterator)["token_ids"].tolist() for _ in range(2)] == batches[:2]
    state = loader.state_dict()
    resumed = packtok.DataLoader(packtok.get_dataset(path, 4), 4, shuffle=True)
    resumed.load_state_dict(state)
    assert [batch["token_ids"].tolist() for batch in resumed] == batches[2:]


@pytest.mark.filterwarnings("ignore:cut")
def test_threads_read_the_same_items(tatm: Path) -> None:
    dataset = packtok.get_dataset(tatm, LENGTH)
    expected = [wanted.token_ids for wanted in expected_items(FILES, LENGTH)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            ids = list(pool.map(lambda i: dataset[i].token_ids.tolist(), range(len(dataset))))
            assert ids == expected


@pytest.mark.filterwarnings("ignore:cut")
def test_pickles_are_small_and_do_not_close_the_files(tmp_path: Path) -> None:
    """tatm's pickles were as large as the data, and pickling closed the files of the parent."""
    write_tatm(tmp_path, [[[*range(2, 50_000), EOS]]] * 34, dtype="uint32")
    dataset = packtok.get_dataset(tmp_path, LENGTH, val_split_size=0.5, split="val")
    first = dataset[0].token_ids.tolist()
    pickled = pickle.dumps(dataset)
    assert len(pickled) < 10_000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy = pickle.loads(pickled)
    assert len(copy) == len(dataset)
    assert copy[0].token_ids.tolist() == dataset[0].token_ids.tolist() == first
    assert copy.fingerprint == dataset.fingerprint
    dataset.set_split("train")
    assert copy.fingerprint != dataset.fingerprint


@pytest.mark.whole
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in /proc")
def test_a_spawned_worker_uses_little_memory_for_34_large_files(tmp_path: Path) -> None:
    """34 sparse files of 2^30 tokens each, as in the documentation of tatm."""
    folder = write_tatm(tmp_path, [[[5, EOS]]] * 34, padding=0)
    for path in folder.glob("*.bin"):
        with path.open("r+b") as file:
            file.seek((2 << 30) - 2)
            file.write(b"\1\0")
    measured = worker_memory.measured("spawn", folder, "get_dataset")
    assert measured["num_tokens"] == 34 << 30
    more = measured["dataset"] - measured["nothing"]
    print(f"{measured['nothing'] / MIB:.1f} MiB, with the dataset {more / MIB:+.1f} MiB")
    assert more <= 10 * MIB

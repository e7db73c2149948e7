"""`packtok.get_data`: the texts of described datasets, and metadata under the names of tatm."""

from __future__ import annotations

import gzip
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import packtok
import packtok.commands.data
from packtok import ConfigError, DocumentError
from packtok.catalog.schema import load_metadata
from packtok.commands.data import index_datasets
from packtok.data import (
    CorpusSeparationStrategy,
    DataContentType,
    TatmDataMetadata,
    TatmTextData,
    TokenizedMetadataComponenet,
    get_data,
)

KEYS: Any = {"name": "Web", "description": "", "date_downloaded": "2025-01-02", "download_source": ""}


def described(folder: Path, **keys: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata.json").write_text(json.dumps({**KEYS, "data_content": "text", **keys}))
    return folder


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """Returns a described dataset with a corpus of Parquet and one of JSON lines; texts are in ``body``."""
    folder = described(
        tmp_path / "web",
        content_field="body",
        corpuses=["news", "blogs"],
        corpus_separation_strategy="data_dirs",
        corpus_data_dir_parent="parts",
    )
    for corpus in ("news", "blogs"):
        (folder / "parts" / corpus).mkdir(parents=True)
    pq.write_table(
        pa.table({"id": [1, 2], "body": ["some news", "caf\u00e9"]}), folder / "parts/news/a.parquet"
    )
    with gzip.open(folder / "parts/blogs/a.jsonl.gz", "wt") as file:
        file.write('{"body": "a blog"}\n\n{"id": 5, "body": "\\ud83d\\ude00"}\n{"body": ""}\n')
    return folder


def test_texts_are_those_of_the_corpus_in_order(web: Path) -> None:
    news, blogs = ["some news", "caf\u00e9"], ["a blog", "\U0001f600", ""]
    data = get_data(f"{web}:blogs")
    # Items have the form of tatm's. Each iteration starts at the first document.
    assert [list(data), list(data)] == [[{"body": text} for text in blogs]] * 2
    assert list(data.texts()) == blogs
    assert data.get_source() == "Web:blogs"
    assert next(data) == {"body": "a blog"}
    assert next(data)["body"] == "\U0001f600"
    assert list(get_data(f"{web}/metadata.json:news").texts()) == news
    assert list(TatmTextData(load_metadata(web), corpus="news").texts()) == news
    assert list(TatmTextData.from_metadata(load_metadata(web), "blogs").texts()) == blogs


def test_texts_are_those_that_are_tokenized(web: Path, tmp_path: Path) -> None:
    packtok.tokenize([f"{web}:blogs", f"{web}:news"], "gpt2", tmp_path / "out")
    reader = packtok.PbinReader(tmp_path / "out" / "tokenized.pbin")
    tokenizer = packtok.Tokenizer.builtin("gpt2")
    packed = [tokenizer.decode(reader[i][:-1]) for i in range(len(reader))]
    texts = [text for corpus in ("blogs", "news") for text in packtok.get_data(f"{web}:{corpus}").texts()]
    assert packed == [text for text in texts if text]


def test_a_long_corpus_is_read_completely_and_lazily(tmp_path: Path) -> None:
    folder = described(tmp_path)
    texts = [f"text {i} " + "of a document " * 20 for i in range(5000)]
    (folder / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts) + "broken\n")
    iterator = packtok.get_data(folder).texts()
    assert list(itertools.islice(iterator, len(texts))) == texts
    with pytest.raises(DocumentError, match=r"a.jsonl:5001"):
        next(iterator)


@pytest.mark.parametrize("is_indexed", [True, False])
@pytest.mark.filterwarnings("ignore:.*has no index")
def test_data_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_indexed: bool) -> None:
    folder = described(tmp_path / "text" / "web")
    (folder / "a.jsonl").write_text('{"text": "a"}\n')
    monkeypatch.setenv("PACKTOK_BASE_DIR", str(tmp_path))
    if is_indexed:
        index_datasets()
    assert list(packtok.get_data("Web")) == [{"text": "a"}]
    with pytest.raises(FileNotFoundError, match="no dataset is named 'Wob'"):
        packtok.get_data("Wob")
    with pytest.raises(ConfigError, match="no corpus 'x'; the dataset has none"):
        list(packtok.get_data("Web:x"))


def test_the_split_train_is_read_unless_another_is_chosen(tmp_path: Path) -> None:
    folder = described(tmp_path / "splits")
    for name in ("train", "test"):
        (folder / f"{name}.jsonl").write_text(f'{{"text": "of {name}"}}\n')
    assert list(packtok.get_data(folder).texts()) == ["of train"]
    assert list(packtok.get_data(folder, split="test").texts()) == ["of test"]
    assert list(packtok.get_data(folder, split="all").texts()) == ["of test", "of train"]
    (folder / "other.jsonl.xz").touch()
    with pytest.raises(ValueError, match="a file looks like data but cannot be read: other"):
        list(packtok.get_data(folder))
    assert list(packtok.get_data(folder, ignore=["*.xz"]).texts()) == ["of train"]


def test_a_config_is_read_with_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = described(tmp_path / "d", corpuses=["en", "de"], corpus_separation_strategy="configs")
    (folder / "README.md").write_text(
        "---\nconfigs:\n- {config_name: en, data_files: en.jsonl}\n"
        "- {config_name: de, data_files: de.jsonl}\n---\n"
    )
    for name in ("en", "de"):
        (folder / f"{name}.jsonl").write_text(json.dumps({"text": f"text of {name}"}) + "\n")
    assert list(packtok.get_data(f"{folder}:de")) == [{"text": "text of de"}]
    assert list(packtok.get_data(f"{folder}:en").texts()) == ["text of en"]


def test_relative_path_of_the_current_folder_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = described(tmp_path / "d", dataset_path="raw")
    with pytest.raises(FileNotFoundError, match=r"'raw' exists neither in .* nor in the current folder"):
        list(packtok.get_data(folder))
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.jsonl").write_text('{"text": "a"}\n')
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="dataset_path 'raw' is not next to the metadata file"):
        assert list(packtok.get_data(folder)) == [{"text": "a"}]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"data_content": "image"}, "the data is image, not text"),
        (
            {"tokenized_info": {"tokenizer": "t", "file_prefix": "t"}},
            "the dataset is tokenized already; give one of texts",
        ),
    ],
)
def test_data_without_texts_is_an_error(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    folder = described(tmp_path, **keys)
    with pytest.raises(ConfigError) as raised:
        packtok.get_data(folder)
    assert str(raised.value) == f"{folder}/metadata.json: {message}"


def test_neither_torch_nor_a_tokenizer_is_imported(web: Path) -> None:
    program = (
        "import sys, packtok\n"
        f"print(len(list(packtok.get_data({str(web / 'metadata.json')!r} + ':news'))))\n"
        "from packtok.data import TatmDataMetadata\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "2\nFalse\n"


# Metadata under the names of tatm.


def test_metadata_is_made_and_written_in_python(tmp_path: Path) -> None:
    metadata = TatmDataMetadata(
        **KEYS,
        dataset_path=str(tmp_path),
        data_content=DataContentType.TEXT,
        corpuses=["a", "b"],
        corpus_separation_strategy=CorpusSeparationStrategy.DATA_DIRS,
        tokenized_info=TokenizedMetadataComponenet(tokenizer="t5-base", file_prefix="tokenized"),
    )
    assert metadata.data_content == DataContentType.TEXT
    assert metadata.tokenized_info is not None
    assert metadata.tokenized_info.dtype == "uint16"
    metadata.to_json(tmp_path / "metadata.json")
    metadata.to_yaml(tmp_path / "metadata.yaml")
    values = json.loads((tmp_path / "metadata.json").read_text())
    assert values == json.loads(metadata.as_json()) == json.loads(str(metadata))
    assert values == yaml.safe_load(metadata.as_yaml())
    assert (values["data_content"], values["corpus_separation_strategy"]) == ("text", "data_dirs")
    for read in (
        TatmDataMetadata.from_directory(tmp_path),
        TatmDataMetadata.from_json(tmp_path / "metadata.json"),
        TatmDataMetadata.from_yaml(str(tmp_path / "metadata.yaml")),
        TatmDataMetadata.from_file(tmp_path / "metadata.yaml"),
    ):
        assert isinstance(read, TatmDataMetadata)
        assert read.to_dict() == metadata.to_dict()


def test_invalid_metadata_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="key data_content is 'vid', expected 'text', 'image',"):
        TatmDataMetadata(**KEYS, data_content="vid")
    with pytest.raises(ValueError, match="key data_content is missing"):
        TatmDataMetadata(**KEYS)


def test_metadata_of_python_is_data(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    metadata = TatmDataMetadata(**KEYS, data_content="text", dataset_path=str(tmp_path))
    assert list(get_data(metadata)) == [{"text": "a"}]

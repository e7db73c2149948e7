"""Packtok's files are read by Modalities' classes, if they are installed, and by a plain unpickler."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import subprocess
from pathlib import Path
from typing import Any

import oracle
import pbins
import pytest
import reference
from command_line import PacktokCli
from peers import modalities_python
from sentencepiece_models import train
from stories import TOKENIZER

import packtok
from packtok.commands.merge import merge

TEXTS = ["the first thing", "a second", "Grüße aus Köln", "数 🙂", "x" * 500, "", f"in{oracle.EOD}side", "z"]

# Runs in the environment of Modalities, without packtok: prints everything it reads as JSON.
READ = """
import json, sys
from pathlib import Path
from modalities.dataloader.dataset import PackedMemMapDatasetBase, PackedMemMapDatasetContinuous

def listed(items):
    return [item["ids"].tolist() for item in items]

def everything(path, block_sizes):
    base = PackedMemMapDatasetBase(path, "ids", load_index=True)
    report = {"documents": listed(base[i] for i in range(len(base)))}
    report["slice"] = [document.tolist() for document in base[0:3]["ids"]]
    for block_size in block_sizes:
        for reuse in (True, False):
            for load_index in (True, False):
                blocks = PackedMemMapDatasetContinuous(path, "ids", block_size, reuse, load_index)
                key = f"{block_size} {reuse} {load_index}"
                report[key] = listed(blocks[i] for i in range(len(blocks)))
    return report

paths, block_sizes = json.loads(sys.argv[1])
print("\\n" + json.dumps([everything(Path(path), block_sizes) for path in paths]))
"""

# Runs in the environment of Modalities, with packtok importable: a training step of Modalities' GPT2 model on
# items of Modalities' dataset, and of each of packtok's equivalent classes.
TRAIN = """
import json, sys, warnings
from pathlib import Path
import packtok
from modalities.batch import InferenceResultBatch
from modalities.dataloader import dataset as modalities
from modalities.loss_functions import CLMCrossEntropyLoss
from modalities.models.components.layer_norms import LayerNormConfig
from modalities.models.gpt2.collator import GPT2LLMCollateFn
from modalities.models.gpt2.gpt2_model import (
    AttentionConfig, AttentionImplementation, GPT2LLM, LayerNorms, LayerNormWrapperConfig, PositionTypes,
)
from modalities.models.model import ActivationType

norm = LayerNormWrapperConfig(norm_type=LayerNorms.layer_norm, config=LayerNormConfig(normalized_shape=128))

def step(items):
    batch = GPT2LLMCollateFn("ids", "targets")(items)
    model = GPT2LLM(
        sample_key="ids", prediction_key="logits", poe_type=PositionTypes.ABSOLUTE, sequence_length=8,
        vocab_size=256, n_layer=1, n_head_q=2, n_head_kv=2, n_embd=128, ffn_hidden=512, dropout=0.0,
        bias=True, activation_type=ActivationType.GELU,
        attention_implementation=AttentionImplementation.PYTORCH_FLASH,
        attention_config=AttentionConfig(qkv_transforms=[]), attention_norm_config=norm, ffn_norm_config=norm,
        lm_head_norm_config=norm, use_weight_tying=True, seed=0,
    )
    result = {"dtype": str(batch.samples["ids"].dtype), "ids": [item["ids"].tolist() for item in items]}
    try:
        predictions = model(batch.samples)
    except RuntimeError as error:
        return {**result, "error": str(error)}
    loss = CLMCrossEntropyLoss("targets", "logits")(InferenceResultBatch(batch.targets, predictions))
    loss.backward()
    gradients = [parameter.grad.norm().item() for parameter in model.parameters()]
    return {**result, "loss": loss.item(), "gradients": gradients}

def steps(path):
    continuous = packtok.PackedMemMapDatasetContinuous(path, "ids", 9, True)
    made = {
        "original": modalities.PackedMemMapDatasetContinuous(path, "ids", 9, True),
        "continuous": continuous,
        "combined": packtok.CombinedDataset([continuous]),
        "base": packtok.PackedMemMapDatasetBase(path, "ids"),
        "megatron": packtok.PackedMemMapDatasetMegatron(path, "ids", 9),
        "views": packtok.PackedMemMapDatasetContinuous(path, "ids", 9, True, zero_copy=True),
    }
    return {name: step([dataset[i] for i in range(2)]) for name, dataset in made.items()}

# Torch warns when it is given memory that cannot be written.
warnings.simplefilter("error", category=UserWarning)
print("\\n" + json.dumps([steps(Path(path)) for path in json.loads(sys.argv[1])]))
"""


def write_files(folder: Path) -> list[Path]:
    """Writes packed files of the three token widths, some with empty documents, and merged ones."""
    corpus = oracle.write_lines(folder / "corpus.jsonl", TEXTS)
    other = oracle.write_lines(folder / "other.jsonl", TEXTS[::-1])
    tokenizers = {
        1: narrow(folder / "1.json"),
        2: oracle.byte_level(folder / "2.json"),
        4: oracle.byte_level(folder / "4.json", vocab_size=65_536),
    }
    files = []
    for width, tokenizer in tokenizers.items():
        skip, keep, more, merged = (
            folder / f"{width}-{name}.pbin" for name in ("skip", "keep", "more", "merged")
        )
        packtok.pack(input=corpus, output=skip, tokenizer=str(tokenizer))
        packtok.pack(input=corpus, output=keep, tokenizer=str(tokenizer), empty_document="keep")
        packtok.pack(input=other, output=more, tokenizer=str(tokenizer), empty_document="keep")
        merge([str(keep), str(more)], str(merged))
        assert reference.read_pbin(merged).width == width
        files += [skip, keep, merged]
    return files


def narrow(path: Path) -> Path:
    """Returns a tokenizer with ids below 256: added tokens replace bytes that never occur in UTF-8."""
    oracle.byte_level(path, vocab_size=0, merges=())
    content = json.loads(path.read_text())
    symbols = list(content["model"]["vocab"])
    impossible = {symbol for symbol in symbols if symbol in "ÀÁõö÷øùúûüýþÿ"}
    kept = [symbol for symbol in symbols if symbol not in impossible]
    content["model"]["vocab"] = {symbol: i for i, symbol in enumerate(kept)}
    for i, token in enumerate(content["added_tokens"]):
        token["id"] = len(kept) + i
    path.write_text(json.dumps(content))
    return path


def blocks(documents: list[list[int]], block_size: int, reuse_last_target: bool) -> list[list[int]]:
    """Returns the expected items of a dataset of blocks; the tail is dropped."""
    tokens = [token for document in documents for token in document]
    step = block_size - 1 if reuse_last_target else block_size
    return [tokens[at : at + block_size] for at in range(0, len(tokens) - block_size + 1, step)]


@pytest.mark.whole
def test_modalities_reads_every_document_and_block(tmp_path: Path) -> None:
    python = modalities_python()
    files = write_files(tmp_path)
    block_sizes = [2, 3, 16, 101]
    arguments = json.dumps([[str(file) for file in files], block_sizes])
    done = subprocess.run(
        [python, "-c", READ, arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    for file, report in zip(files, json.loads(done.stdout.splitlines()[-1]), strict=True):
        documents = reference.read_pbin(file).documents
        expected: dict[str, Any] = {"documents": documents, "slice": documents[:3]}
        for block_size in block_sizes:
            for reuse in (True, False):
                for load_index in (True, False):
                    expected[f"{block_size} {reuse} {load_index}"] = blocks(documents, block_size, reuse)
        assert report == expected, file.name


@pytest.mark.whole
def test_modalities_model_trains_on_items_of_the_equivalent_classes(tmp_path: Path) -> None:
    python = modalities_python()
    documents = [[(7 * i + j) % 256 for j in range(9)] for i in range(4)]
    files = [pbins.write(tmp_path / f"{width}.pbin", documents, width) for width in (1, 2, 4)]
    # The folder links only packtok, because the packages next to it belong to another environment.
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "packtok").symlink_to(Path(packtok.__file__).parent)
    done = subprocess.run(
        [python, "-c", TRAIN, json.dumps([str(file) for file in files])],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
    )
    assert done.returncode == 0, done.stderr
    dtypes = {1: "torch.int32", 2: "torch.int32", 4: "torch.int64"}
    for width, report in zip(dtypes, json.loads(done.stdout.splitlines()[-1]), strict=True):
        original, views = report.pop("original"), report.pop("views")
        for name, result in report.items():
            assert result["dtype"] == dtypes[width], name
            assert result["loss"] > 0, name
            assert sum(result["gradients"]) > 0, name
        assert report["combined"] == report["continuous"]
        assert report["megatron"]["ids"] == report["base"]["ids"] == documents[:2]
        assert original["ids"] == report["continuous"]["ids"]
        if width == 1:
            # Modalities cannot train on its own items here, because its embedding does not accept uint8.
            assert original["dtype"] == "torch.uint8"
            assert "but got torch.ByteTensor" in original["error"]
        else:
            assert original == report["continuous"]
        assert "to have one of the following scalar types: Long, Int; but got" in views["error"]


@pytest.mark.whole
def test_sentencepiece_config_packs_the_same_as_modalities(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    program = modalities_python().with_name("modalities")
    oracle.write_lines(tmp_path / "corpus.jsonl", [text for text in TEXTS if text])
    paths = {"src_path": "corpus.jsonl", "index_path": "corpus.idx", "dst_path": "theirs.pbin"}
    sizes = ("processing_batch_size", "raw_samples_queue_size", "processed_samples_queue_size")
    settings = {"jq_pattern": ".text", "num_cpus": 1, "eod_token": "</s>", **dict.fromkeys(sizes, 4)}
    tokenizer = {"component_key": "tokenizer", "variant_key": "pretrained_sp_tokenizer"}
    tokenizer |= {"config": {"tokenizer_model_file": str(train("unigram", tmp_path))}}
    config = {"settings": {**paths, **settings}, "tokenizer": tokenizer}
    (tmp_path / "pack.yaml").write_text(json.dumps(config))
    for command in (
        ("create_raw_index", "corpus.jsonl", "--index_path", "corpus.idx"),
        ("pack_encoded_data", "pack.yaml"),
    ):
        subprocess.run([program, "data", *command], cwd=tmp_path, check=True, capture_output=True)
    packtok_cli("pack", "pack.yaml", "-o", "ours.pbin", "--quiet", cwd=tmp_path)
    theirs = (tmp_path / "theirs.pbin").read_bytes()
    assert (tmp_path / "ours.pbin").read_bytes()[: len(theirs)] == theirs


TUTORIAL = """\
settings:
  src_path: data/raw/samples_train.jsonl
  dst_path: data/mem_map/samples_train.pbin
  index_path: data/mem_map/samples_train.idx
  jq_pattern: .raw_content
  num_cpus: ${{node_env:num_cpus}}
  eod_token: <|endoftext|>
{queue_sizes}
tokenizer:
  component_key: tokenizer
  variant_key: pretrained_hf_tokenizer
  config:
    pretrained_model_name_or_path: tokenizer
    padding: false
    truncation: false
"""
QUEUE_SIZES = """\
  processing_batch_size: 1000
  raw_samples_queue_size: 300
  processed_samples_queue_size: 300
"""


@pytest.mark.parametrize("queue_sizes", [QUEUE_SIZES, ""], ids=["as in version 0.5.0", "as in the tutorial"])
@pytest.mark.parametrize("has_index", [True, False])
def test_commands_of_the_tutorial_work(
    tmp_path: Path, packtok_cli: PacktokCli, queue_sizes: str, has_index: bool
) -> None:
    for folder in ("data/raw", "data/mem_map", "configs", "tokenizer"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(TOKENIZER, tmp_path / "tokenizer" / "tokenizer.json")
    texts = ["Once upon a time", "there was a test"]
    raw, packed = "data/raw/samples_train.jsonl", "data/mem_map/samples_train"
    (tmp_path / raw).write_text("".join(json.dumps({"raw_content": text}) + "\n" for text in texts))
    (tmp_path / "configs" / "train.yaml").write_text(TUTORIAL.format(queue_sizes=queue_sizes))
    if has_index:
        packtok_cli("data", "create_raw_index", "--index_path", f"{packed}.idx", raw, cwd=tmp_path)
    done = packtok_cli("data", "pack_encoded_data", "configs/train.yaml", cwd=tmp_path)
    note = f"settings.index_path: no such file: {packed}.idx; it has the name of the index of all "
    assert (note in done.stderr) != has_index
    reader = packtok.PbinReader(tmp_path / f"{packed}.pbin")
    tokenizer = packtok.Tokenizer.from_file(tmp_path / "tokenizer" / "tokenizer.json")
    assert [tokenizer.decode(ids[:-1]) for ids in reader] == texts


def test_plain_unpickler_reads_every_document(tmp_path: Path) -> None:
    for file in write_files(tmp_path):
        content = file.read_bytes()
        data_bytes, width = int.from_bytes(content[:8], "little"), int.from_bytes(content[8:12], "little")
        # Like Modalities, passes everything after the data to the unpickler.
        pairs = pickle.loads(content[12 + data_bytes :])
        data = content[12 : 12 + data_bytes]
        documents = [
            [int.from_bytes(data[at : at + width], "little") for at in range(offset, offset + length, width)]
            for offset, length in pairs
        ]
        reader = packtok.PbinReader(str(file))
        assert documents == [reader[i].tolist() for i in range(len(reader))]
        assert documents == reference.read_pbin(file).documents
        assert content.startswith(reference.modalities_bytes(documents, width))


@pytest.mark.parametrize("name", ["redpajama/train.jsonl", "modalities/lorem_long.jsonl"])
def test_packed_file_truncated_after_its_index_equals_that_of_modalities(
    shared: Path, tmp_path: Path, name: str
) -> None:
    theirs = (shared / name).with_suffix(".pbin").read_bytes()
    field = ".raw_content" if name.startswith("redpajama") else ".text"
    output = tmp_path / "ours.pbin"
    packtok.pack(
        input=shared / name,
        output=output,
        tokenizer=str(shared / "tokenizers/gpt2"),
        field=field,
        eod=oracle.EOD,
    )
    ours = output.read_bytes()
    index = io.BytesIO(ours[12 + int.from_bytes(ours[:8], "little") :])
    pickle.load(index)
    assert ours[: len(ours) - len(index.read())] == theirs

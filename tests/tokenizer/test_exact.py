"""Ids in packed files equal those of the Python package tokenizers 0.23.3; see docs/design/exactness.md."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import oracle
import pytest
import sentencepiece_json
import tokenizers
from exact_texts import (
    CORPORA,
    SCALARS,
    TRICKY,
    assert_every_scalar_value_exact,
    differing,
    example_texts,
    from_all_corpora,
    some,
)
from extent import extent
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_tokenizers import unigram, unsplit_unigram, word_level, word_piece
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

import packtok

EOD_OF = {"gpt2": oracle.EOD, "cl100k": oracle.EOD, "llama2": "</s>"}
FAST, SECOND = "packtok", "tokenizers 0.23.2"


def test_oracle_has_the_documented_version() -> None:
    assert tokenizers.__version__ == "0.23.3"


@lru_cache(maxsize=1)
def corpus_texts(path: Path) -> list[str]:
    return oracle.texts_of(path)


def assert_exact(
    corpus: Path,
    texts: list[str],
    tokenizer: Path | str,
    wheel: Tokenizer,
    folder: Path,
    eod: str,
    *,
    key: str | None = None,
) -> packtok.PackReport:
    """Packs with and without special tokens; both files must contain the wheel's ids for ``texts``.

    With ``key``, the wheel runs only for files whose checksums differ from those kept under it.
    """

    def assert_holds(path: Path, **options: bool) -> None:
        def expected() -> Iterator[list[int]]:
            return oracle.documents(wheel, texts, eod, **options)

        if key is None:
            oracle.assert_holds(path, expected())
        else:
            oracle.assert_holds_known(path, f"{key}, {path.stem} special tokens", expected)

    options: dict[str, Any] = {"input": corpus, "tokenizer": str(tokenizer), "eod": eod}
    with_special, without = folder / "with.pbin", folder / "without.pbin"
    report = packtok.pack(**options, output=with_special, existing="replace")
    packtok.pack(**options, output=without, existing="replace", add_special_tokens=False)
    assert report.lines == len(texts) == report.packed + report.empty
    assert_holds(with_special)
    if wheel.num_special_tokens_to_add(is_pair=False) > 0:
        assert_holds(without, add_special_tokens=False)
    else:
        # The wheel would add no special tokens, so both files have the same ids.
        common = 12 + report.data_bytes
        assert with_special.read_bytes()[:common] == without.read_bytes()[:common]
    return report


@pytest.mark.parametrize("name", EOD_OF)
def test_sampled_documents_of_every_corpus(shared: Path, tmp_path: Path, name: str) -> None:
    texts = from_all_corpora(shared)
    path = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    file = shared / f"tokenizers/{name}/tokenizer.json"
    report = assert_exact(path, texts, file, oracle.load(file), tmp_path, EOD_OF[name])
    assert report.engine == FAST


@pytest.mark.whole
@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize("name", EOD_OF)
def test_every_document_of_every_corpus(shared: Path, tmp_path: Path, name: str, corpus: str) -> None:
    path = shared / f"corpora/{corpus}.jsonl.zst"
    file = shared / f"tokenizers/{name}/tokenizer.json"
    wheel = oracle.load(file)
    assert_exact(path, corpus_texts(path), file, wheel, tmp_path, EOD_OF[name], key=f"{name}, {corpus}")


def test_file_with_another_checksum_is_compared_with_the_wheel(tmp_path: Path) -> None:
    file = oracle.byte_level(tmp_path / "tokenizer.json")
    wheel = oracle.load(file)
    path = oracle.write_lines(tmp_path / "corpus.jsonl", ["the", "a thing"])
    packtok.pack(input=path, output=tmp_path / "out.pbin", tokenizer=str(file))
    with pytest.raises(AssertionError, match="document 1: from token 3: found"):
        oracle.assert_holds_known(
            tmp_path / "out.pbin", "gpt2, nasty", lambda: oracle.documents(wheel, ["the", "a thong"])
        )
    with pytest.raises(AssertionError, match="checksum of 'gpt2, nasty, with special tokens' is not in"):
        oracle.assert_holds_known(
            tmp_path / "out.pbin",
            "gpt2, nasty, with special tokens",
            lambda: oracle.documents(wheel, ["the", "a thing"]),
        )


@pytest.mark.parametrize("name", ["gpt2", "p50k_base", "cl100k_base", "o200k_harmony"])
def test_built_in_name_writes_a_tokenizer_with_its_ids(shared: Path, tmp_path: Path, name: str) -> None:
    texts = from_all_corpora(shared)
    texts = extent(texts, texts[::4])
    path = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    packtok.pack(input=path, output=tmp_path / "out.pbin", tokenizer=name)
    wheel = oracle.load(tmp_path / "out.pbin.tokenizer.json")
    oracle.assert_holds(tmp_path / "out.pbin", oracle.documents(wheel, texts))


@pytest.mark.whole
@pytest.mark.parametrize("name", ["gpt2", "cl100k_base", "o200k_base"])
def test_every_edge_case_document_with_a_built_in_tokenizer(shared: Path, tmp_path: Path, name: str) -> None:
    path = shared / "corpora/nasty.jsonl.zst"
    output = tmp_path / "nasty.pbin"
    packtok.pack(input=path, output=output, tokenizer=name)
    wheel = oracle.load(Path(f"{output}.tokenizer.json"))
    oracle.assert_holds_known(
        output, f"built-in {name}, nasty", lambda: oracle.documents(wheel, corpus_texts(path))
    )


def test_built_in_gpt2_equals_the_published_file(shared: Path, tmp_path: Path) -> None:
    texts = some(corpus_texts(shared / "corpora/nasty.jsonl.zst"), "nasty")
    path = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    packtok.pack(input=path, output=tmp_path / "gpt2.pbin", tokenizer="gpt2")
    wheel = oracle.load(shared / "tokenizers/gpt2/tokenizer.json")
    oracle.assert_holds(tmp_path / "gpt2.pbin", oracle.documents(wheel, texts))


@pytest.mark.parametrize("model", ["bpe_32k", "unigram_32k"])
def test_sampled_documents_with_a_converted_sentencepiece_model(
    shared: Path, tmp_path: Path, model: str
) -> None:
    file, wheel = converted(shared, model, tmp_path)
    texts = from_all_corpora(shared)
    path = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    assert assert_exact(path, texts, file, wheel, tmp_path, "</s>").engine == SECOND


@pytest.mark.whole
@pytest.mark.parametrize("model", ["bpe_32k", "unigram_32k"])
def test_every_edge_case_document_with_a_converted_sentencepiece_model(
    shared: Path, tmp_path: Path, model: str
) -> None:
    file, wheel = converted(shared, model, tmp_path)
    path = shared / "corpora/nasty.jsonl.zst"
    assert_exact(path, corpus_texts(path), file, wheel, tmp_path, "</s>", key=f"{model}, nasty")


QUOTES = [{"type": "Replace", "pattern": {"String": old}, "content": '"'} for old in ("``", "''")]
# The normalizers before the map of T5 and XLM-R, of XLNet, and of ALBERT.
BEFORE_MAP = {
    "T5": [],
    "XLNet": [*QUOTES, {"type": "NFKD"}, {"type": "StripAccents"}],
    "ALBERT": [*QUOTES, {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}],
}


@pytest.mark.parametrize(
    ("family", "pre_tokenizer"),
    [
        ("T5", "WhitespaceSplit"),
        ("XLNet", "BertPreTokenizer"),
        *(
            pytest.param(*names, marks=pytest.mark.whole)
            for names in [
                ("T5", "BertPreTokenizer"),
                ("XLNet", "WhitespaceSplit"),
                ("ALBERT", "WhitespaceSplit"),
                ("ALBERT", "BertPreTokenizer"),
            ]
        ),
    ],
)
def test_sampled_documents_with_a_sentencepiece_map_and_words(
    shared: Path, tmp_path: Path, family: str, pre_tokenizer: str
) -> None:
    """Covers graphemes of several characters, even with a space among them."""
    file = by_words(shared, tmp_path, pre_tokenizer, BEFORE_MAP[family])
    marks = [
        "a \u0301b",
        "a\u0600 b",
        "x \u200dy",
        "e\u0301 é \u0e33",
        "ｱﾞ ﾞｱ",
        "\u00a8 \u00b4 x\r\ny\tz",
        "\x01 \x02a",
        "``a'' `` '' b``",
        "\u0344 a\u0344 \u1fee \u1feea \ufb1d \u0f73 \u2fad4 \u0958",
        "\uac00\u11a8 \u1100\u1161 \u00c5\u0323 \u1e9b\u0323",
    ]
    texts = [*from_all_corpora(shared), *example_texts(), *marks]
    path = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    assert assert_exact(path, texts, file, oracle.load(file), tmp_path, "</s>").engine == FAST


@pytest.mark.whole
@pytest.mark.parametrize("family", ["T5", "XLNet"])
def test_every_edge_case_document_with_a_sentencepiece_map_and_words(
    shared: Path, tmp_path: Path, family: str
) -> None:
    file = by_words(shared, tmp_path, "WhitespaceSplit", BEFORE_MAP[family])
    path = shared / "corpora/nasty.jsonl.zst"
    key = f"unigram_32k by words{'' if family == 'T5' else ', ' + family}, nasty"
    assert_exact(path, corpus_texts(path), file, oracle.load(file), tmp_path, "</s>", key=key)


def by_words(shared: Path, folder: Path, pre_tokenizer: str, before_map: list[dict[str, Any]]) -> Path:
    """Returns the converted Unigram model with texts split at white space first."""
    file, _ = converted(shared, "unigram_32k", folder)
    content = json.loads(file.read_text(encoding="utf-8"))
    precompiled = content["normalizer"]["normalizers"][0]
    assert precompiled["type"] == "Precompiled"
    sequence = {"type": "Sequence", "normalizers": [*before_map, precompiled]}
    content["normalizer"] = sequence if before_map else precompiled
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{"type": pre_tokenizer}, metaspace]}
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def converted(shared: Path, model: str, folder: Path) -> tuple[Path, Tokenizer]:
    source = shared / f"tokenizers/sentencepiece/{model}.model"
    file = sentencepiece_json.convert(source, folder / f"{model}.json")
    return file, oracle.load(file)


@pytest.mark.parametrize(
    ("make", "engine"),
    [(word_piece, FAST), (unigram, FAST), (unsplit_unigram, SECOND), (word_level, FAST)],
)
def test_models_other_than_bpe(tmp_path: Path, make: Callable[[], Tokenizer], engine: str) -> None:
    file = tmp_path / "tokenizer.json"
    make().save(str(file))
    texts = example_texts()
    path = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    report = assert_exact(path, texts, file, oracle.load(file), tmp_path, "[SEP]")
    assert report.engine == engine
    is_slower = any("is exact but slower" in warning for warning in report.warnings)
    assert is_slower == (engine == SECOND)


@pytest.mark.parametrize("make", [word_piece, unigram, word_level])
def test_scalar_values_with_models_other_than_bpe(tmp_path: Path, make: Callable[[], Tokenizer]) -> None:
    file = tmp_path / "tokenizer.json"
    make().save(str(file))
    assert differing(file, extent(SCALARS, SCALARS[::41]), tmp_path, "[SEP]") == []


def bytes_tokenizer(path: Path, normalizer: Any, pre_tokenizer: Any) -> Path:
    """Writes a tokenizer.json whose ids show each byte of the text and each split of the pre-tokenizer."""
    vocab = {"[SEP]": 0} | {f"<0x{byte:02X}>": byte + 1 for byte in range(256)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[], byte_fallback=True))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    # Metaspace puts its mark before every piece of the preceding pre-tokenizer.
    marks = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [marks] if pre_tokenizer is None else [pre_tokenizer, marks]
    )
    tokenizer.add_special_tokens(["[SEP]"])
    tokenizer.add_tokens([AddedToken("1", single_word=True, normalized=False)])
    tokenizer.save(str(path))
    return path


REGEX = tokenizers.Regex
COMPONENTS: dict[str, tuple[Any, Any]] = {
    "Nothing": (None, None),
    "NFC": (normalizers.NFC(), None),
    "NFD": (normalizers.NFD(), None),
    "NFKC": (normalizers.NFKC(), None),
    "NFKD": (normalizers.NFKD(), None),
    "Lowercase": (normalizers.Lowercase(), None),
    "Strip": (normalizers.Strip(), None),
    "StripAccents": (normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]), None),
    "Nmt": (normalizers.Nmt(), None),
    "BertNormalizer": (normalizers.BertNormalizer(), None),
    "BertNormalizer cased": (normalizers.BertNormalizer(lowercase=False, strip_accents=True), None),
    "Replace": (normalizers.Replace(REGEX(r"\p{Lu}|\p{Nd}|\p{So}"), "x"), None),
    "BertPreTokenizer": (None, pre_tokenizers.BertPreTokenizer()),
    "Whitespace": (None, pre_tokenizers.Whitespace()),
    "WhitespaceSplit": (None, pre_tokenizers.WhitespaceSplit()),
    "Punctuation": (None, pre_tokenizers.Punctuation()),
    "Digits": (None, pre_tokenizers.Digits(individual_digits=True)),
    "UnicodeScripts": (None, pre_tokenizers.UnicodeScripts()),
    "Split by letters": (
        None,
        pre_tokenizers.Split(REGEX(r"\p{L}+|\p{N}+|\p{P}+|\p{S}+|\p{M}+"), "isolated"),
    ),
    "Split by words": (None, pre_tokenizers.Split(REGEX(r"(?i)\w\b|\s|[[:punct:]]|[[:upper:]]"), "isolated")),
}


@pytest.mark.parametrize("name", COMPONENTS)
def test_tricky_characters_in_every_component(tmp_path: Path, name: str) -> None:
    file = bytes_tokenizer(tmp_path / "tokenizer.json", *COMPONENTS[name])
    assert differing(file, [*TRICKY, *SCALARS[:0x3000:7]], tmp_path, "[SEP]") == []


@pytest.mark.whole
@pytest.mark.parametrize("name", COMPONENTS)
def test_every_scalar_value_in_every_component(tmp_path: Path, name: str) -> None:
    file = bytes_tokenizer(tmp_path / "tokenizer.json", *COMPONENTS[name])
    assert_every_scalar_value_exact(file, tmp_path, "[SEP]", name)


@pytest.mark.whole
@pytest.mark.parametrize("name", EOD_OF)
def test_every_scalar_value_with_real_tokenizers(shared: Path, tmp_path: Path, name: str) -> None:
    file = shared / f"tokenizers/{name}/tokenizer.json"
    assert_every_scalar_value_exact(file, tmp_path, EOD_OF[name], name)


def test_special_tokens_around_documents(tmp_path: Path) -> None:
    ids = {oracle.EOD: 300, "<|bos|>": 301}
    for i, (before, after) in enumerate(
        [(("<|bos|>",), ()), ((), (oracle.EOD,)), (("<|bos|>",), (oracle.EOD,))]
    ):
        folder = tmp_path / str(i)
        folder.mkdir()
        file = oracle.byte_level(
            folder / "tokenizer.json", post_processor=oracle.template(before=before, after=after, ids=ids)
        )
        texts = ["the thing", "a", f"x{oracle.EOD}", f"<|bos|>y{oracle.EOD}z"]
        path = oracle.write_lines(folder / "corpus.jsonl", texts)
        assert_exact(path, texts, file, oracle.load(file), folder, oracle.EOD)


def test_truncation_and_padding_in_the_file_are_ignored(tmp_path: Path) -> None:
    file = oracle.byte_level(tmp_path / "tokenizer.json")
    wheel = Tokenizer.from_file(str(file))
    texts = ["the thing that is longer", "a"]
    path = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    wheel.enable_truncation(3)
    wheel.enable_padding(length=9)
    wheel.save(str(file))
    assert [len(ids) for ids in oracle.encode(wheel, texts)] == [9, 9]
    assert_exact(path, texts, file, oracle.load(file), tmp_path, oracle.EOD)


@pytest.mark.parametrize("max_length", [0, 1, 2, 3, 7, 100])
@pytest.mark.parametrize("add_special_tokens", [True, False])
def test_requested_truncation_truncates(tmp_path: Path, max_length: int, add_special_tokens: bool) -> None:
    ids = {oracle.EOD: 300, "<|bos|>": 301}
    processor = oracle.template(before=("<|bos|>",), after=(), ids=ids)
    file = oracle.byte_level(tmp_path / "tokenizer.json", post_processor=processor)
    texts = ["the thing that is longer", "the", "a", f"ab{oracle.EOD}cd"]
    path = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    wheel = oracle.load(file)
    options: dict[str, Any] = {"input": path, "output": tmp_path / "out.pbin", "tokenizer": str(file)}
    options |= {"truncation": True, "max_length": max_length, "add_special_tokens": add_special_tokens}
    if max_length == 0 and add_special_tokens:
        with pytest.raises(ValueError, match="max_length 0 is below the 1 special tokens"):
            packtok.pack(**options, eod=oracle.EOD)
        return
    packtok.pack(**options, eod=oracle.EOD)
    wheel.enable_truncation(max_length)
    expected = oracle.documents(wheel, texts, add_special_tokens=add_special_tokens)
    oracle.assert_holds(tmp_path / "out.pbin", expected)


def test_special_tokens_in_text_as_text(tmp_path: Path) -> None:
    file = oracle.byte_level(tmp_path / "tokenizer.json")
    texts = [f"a{oracle.EOD}b", oracle.EOD, "<|bos|>"]
    path = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    report = packtok.pack(
        input=path, output=tmp_path / "out.pbin", tokenizer=str(file), special_tokens_in_text="text"
    )
    assert report.eods_in_text == 0
    wheel = oracle.load(file)
    wheel.encode_special_tokens = True
    oracle.assert_holds(tmp_path / "out.pbin", oracle.documents(wheel, texts))


def test_special_tokens_in_text_are_rejected(tmp_path: Path) -> None:
    file = oracle.byte_level(tmp_path / "tokenizer.json")
    path = oracle.write_lines(tmp_path / "corpus.jsonl", ["fine", f"a{oracle.EOD}b"])
    with pytest.raises(packtok.DocumentError) as caught:
        packtok.pack(
            input=path, output=tmp_path / "out.pbin", tokenizer=str(file), special_tokens_in_text="fail"
        )
    assert str(caught.value) == (
        f'{path}:2: byte 17: the text contains the special token "{oracle.EOD}"; fix the text, set '
        'special_tokens_in_text to parse or text, or skip such documents with on_bad_document="skip"'
    )
    assert not (tmp_path / "out.pbin").exists()


def test_added_tokens_with_gaps_in_their_ids_are_renumbered_and_reported(tmp_path: Path) -> None:
    file = oracle.byte_level(tmp_path / "tokenizer.json")
    content = json.loads(file.read_text())
    content["added_tokens"][1]["id"] = 999
    file.write_text(json.dumps(content))
    texts = ["a<|bos|>b"]
    path = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    report = assert_exact(path, texts, file, oracle.load(file), tmp_path, oracle.EOD)
    assert report.warnings == (
        'added token "<|bos|>" is declared with id 999, but the tokenizers library and packtok assign id 301',
    )


SPLITS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "qwen": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
        r"\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
SYMBOLS = ["a", "b", "▁", "é", "数", "Ġ", "Ã", "©", "1", "'", "s", "\n", "Ċ"]
MERGES = [
    ("a", "b"),
    ("▁", "a"),
    ("▁", "▁"),
    ("Ġ", "a"),
    ("ab", "a"),
    ("▁a", "b"),
    ("Ã", "©"),
    ("'", "s"),
    ("b", "b"),
]


@st.composite
def bpe_files(draw: st.DrawFn) -> dict[str, Any]:
    """Strategy for a BPE tokenizer.json whose other components are common ones."""
    merges = draw(st.lists(st.sampled_from(MERGES), unique=True, max_size=6))
    known = {*SYMBOLS, *(left + right for left, right in MERGES)}
    merges = [pair for pair in merges if {*pair} <= known]
    vocab = draw(st.lists(st.sampled_from(SYMBOLS), unique=True, min_size=4))
    vocab += [token for pair in merges for token in (*pair, "".join(pair)) if token not in vocab]
    vocab = list(dict.fromkeys([*vocab, "<unk>"]))
    if draw(st.booleans()):
        vocab += [f"<0x{byte:02X}>" for byte in range(256)]
    model = {"type": "BPE", "dropout": None, "continuing_subword_prefix": None, "end_of_word_suffix": None}
    model |= {"unk_token": draw(st.sampled_from([None, "<unk>"])), "fuse_unk": draw(st.booleans())}
    model |= {"byte_fallback": draw(st.booleans()), "ignore_merges": draw(st.booleans())}
    model |= {"vocab": {token: i for i, token in enumerate(vocab)}, "merges": [list(pair) for pair in merges]}
    contents = draw(st.lists(st.sampled_from(["[SEP]", "<s>", "ab", "▁", "<unk>", "a a"]), unique=True))
    added = [
        {"id": len(vocab) + i, "content": content, "single_word": False}
        | {key: draw(st.booleans()) for key in ("lstrip", "rstrip", "normalized", "special")}
        for i, content in enumerate(["[SEP]", *contents])
    ]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "decoder": None} | {
        "normalizer": draw(st.sampled_from([None, *NORMALIZERS])),
        "pre_tokenizer": draw(st.sampled_from([None, *PRE_TOKENIZERS])),
        "post_processor": None,
        "model": model,
    }


PREPEND = {"type": "Prepend", "prepend": "▁"}
SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
NORMALIZERS = [
    PREPEND,
    SPACES,
    {"type": "Sequence", "normalizers": [PREPEND, SPACES]},
    {"type": "Sequence", "normalizers": []},
    {"type": "Replace", "pattern": {"String": "bb"}, "content": "a"},
]


def byte_level_step(add_prefix_space: bool, use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def split_step(name: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": SPLITS[name]}, "behavior": "Isolated", "invert": False}


PRE_TOKENIZERS = [
    *(byte_level_step(prefix, regex) for prefix in (True, False) for regex in (True, False)),
    *(
        {"type": "Sequence", "pretokenizers": [split_step(name), byte_level_step(prefix, False)]}
        for name in SPLITS
        for prefix in (True, False)
    ),
    split_step("gpt2"),
    {"type": "Sequence", "pretokenizers": []},
]
PIECES = [
    "a",
    "b",
    "ab",
    " ",
    "  ",
    "▁",
    "é",
    "数",
    "1",
    "'s",
    "\n",
    "[SEP]",
    "<s>",
    "<unk>",
    "z",
    "🙂",
    "bb",
]


@settings(max_examples=extent(300, 100), deadline=None, derandomize=True)
@given(
    bpe_files(), st.lists(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), min_size=1, max_size=8)
)
def test_generated_bpe_tokenizers(content: dict[str, Any], texts: list[str]) -> None:
    file = json.dumps(content)
    try:
        wheel = Tokenizer.from_str(file)
    except Exception:  # The wheel has no specific class; packtok promises nothing for files it rejects.
        assume(False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        path.write_text(file, encoding="utf-8")
        tokenizer = packtok.Tokenizer.from_file(str(path))
    expected = [encoding.ids for encoding in wheel.encode_batch(texts)]
    assert [tokenizer.encode(text).tolist() for text in texts] == expected


def test_added_token_that_starts_with_space_stripped_by_another(tmp_path: Path) -> None:
    file = oracle.byte_level(tmp_path / "tokenizer.json", added=(oracle.EOD, "<x>", " b"))
    content = json.loads(file.read_text())
    content["added_tokens"][1]["rstrip"] = True
    file.write_text(json.dumps(content))
    texts = ["a<x> b", "<x>  b", " b<x>", "<x> a"]
    path = oracle.write_lines(tmp_path / "corpus.jsonl", texts)
    assert_exact(path, texts, file, oracle.load(file), tmp_path, oracle.EOD)

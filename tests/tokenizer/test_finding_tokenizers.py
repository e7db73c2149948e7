"""Names of tokenizers: their meaning, the order of lookup, and the messages about them."""

import base64
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from pre_tokenizers_of_families import TEKKEN
from small_tokenizers import write_tokenizer

import packtok
from packtok import DocumentError, Tokenizer, TokenizerError
from packtok.errors import ConfigError
from packtok.tokenizer.find import default_eod, find_tokenizer

REVISION = "0123456789abcdef0123456789abcdef01234567"


def error_of(name: str) -> str:
    with pytest.raises(TokenizerError) as caught:
        find_tokenizer(name)
    return str(caught.value)


def test_folder_and_its_file_are_the_same_tokenizer(tmp_path: Path) -> None:
    folder = write_tokenizer(tmp_path / "tiny", {"eos_token": {"content": "</s>"}})
    by_folder, by_file = find_tokenizer(str(folder)), find_tokenizer(str(folder / "tokenizer.json"))
    assert by_folder.tokenizer.name == by_file.tokenizer.name == "tiny"
    assert by_folder.tokenizer.fingerprint == by_file.tokenizer.fingerprint
    assert by_folder.eos_token == by_file.eos_token == "</s>"
    assert by_folder.warnings == ()


def test_path_takes_precedence_over_a_built_in_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_tokenizer("gpt2").tokenizer.vocab_size == 50257
    write_tokenizer(tmp_path / "gpt2")
    assert find_tokenizer("gpt2").tokenizer.vocab_size == 258


def test_eod_comes_from_tokenizer_config_or_is_required(tmp_path: Path) -> None:
    assert default_eod(find_tokenizer("cl100k_base")) == "<|endoftext|>"
    assert default_eod(find_tokenizer(str(write_tokenizer(tmp_path / "a", {"eos_token": "</s>"})))) == "</s>"
    with pytest.raises(ConfigError) as caught:
        default_eod(find_tokenizer(str(write_tokenizer(tmp_path / "b"))))
    assert str(caught.value) == (
        "--eod: is missing, and tokenizer b has no EOS token; give it, or settings.eod_token in a config; "
        "special tokens are '<s>', '</s>'"
    )


def test_settings_that_change_ids_elsewhere_are_reported(tmp_path: Path) -> None:
    config = {
        "add_bos_token": True,
        "add_eos_token": False,
        "add_prefix_space": True,
        "do_lower_case": True,
        "bos_token": "<s>",
        "eos_token": "</s>",
        "truncation_side": "left",
        "split_special_tokens": True,
        "added_tokens_decoder": {
            "256": {"content": "<s>"},
            "300": {"content": "</s>"},
            "301": {"content": "<pad>"},
        },
    }
    path = write_tokenizer(tmp_path / "odd", config)
    beside = path / "tokenizer_config.json"
    assert [text.removeprefix(f"{beside}: ") for text in find_tokenizer(str(path)).warnings] == [
        "add_bos_token is true, but tokenizer.json does not add '<s>'; tokenizer.json takes precedence",
        "split_special_tokens is true and has no effect; use special_tokens_in_text: text",
        "added_tokens_decoder gives '</s>' the id 300, tokenizer.json 257; tokenizer.json takes precedence",
        "added_tokens_decoder names tokens that the tokenizer does not have: '<pad>'; they are not added; "
        "give "
        "--add-special-tokens-from-config to add them, as Transformers does",
        "add_prefix_space is true, but tokenizer.json behaves differently; tokenizer.json takes precedence",
        "do_lower_case is true, but tokenizer.json behaves differently; tokenizer.json takes precedence",
        "truncation_side is left; packing truncates on the left, streams on the right",
    ]


def test_damaged_tokenizer_config_is_an_error(tmp_path: Path) -> None:
    folder = write_tokenizer(tmp_path / "tiny", [1])
    assert error_of(str(folder)) == f"{folder}/tokenizer_config.json: expected a JSON object, found list"
    (folder / "tokenizer_config.json").write_text("{")
    assert error_of(str(folder)).startswith(f"{folder}/tokenizer_config.json: not valid JSON: ")


def test_folder_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    assert error_of(str(tmp_path)) == f"{tmp_path}: no tokenizer.json in this folder"
    for name in ("b.model", "a.model"):
        (tmp_path / name).touch()
    assert error_of(str(tmp_path)) == (
        f"{tmp_path}: no tokenizer.json in this folder, and more than one model: a.model, b.model; give one "
        "of them"
    )


@pytest.mark.parametrize("name", ["/no/such", "./no", "../no/such", "a/b/c", "no.json", "~/x"])
def test_invalid_hub_name_is_a_missing_file(name: str) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        find_tokenizer(name)
    assert (caught.value.strerror, caught.value.filename) == ("no such tokenizer file or folder", name)


def test_missing_hub_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert error_of("some/model") == (
        "tokenizer 'some/model' is neither a path nor built in, and huggingface_hub, which is needed to "
        "download it, is not installed; run pip install 'packtok[hub]', or give the path of a "
        "tokenizer.json"
    )


@pytest.fixture
def offline_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path


def cache(folder: Path, config: Any) -> None:
    repository = folder / "models--some--model"
    write_tokenizer(repository / "snapshots" / REVISION, config)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(REVISION)


@pytest.mark.parametrize("config", [{"eos_token": "</s>"}, None])
def test_hub_name_is_loaded_from_the_cache(offline_cache: Path, config: Any) -> None:
    cache(offline_cache, config)
    loaded = find_tokenizer("some/model")
    assert (loaded.tokenizer.name, loaded.tokenizer.vocab_size) == ("some/model", 258)
    assert loaded.eos_token == (config["eos_token"] if config else None)


def test_unreachable_hub_is_an_error(offline_cache: Path) -> None:
    assert error_of("some/model") == (
        "tokenizer 'some/model': neither a path, nor built in, nor in the hub's cache, and the hub cannot "
        "be reached; download it with network access, or give the path of a tokenizer.json"
    )


def test_hub_without_an_address_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library would repeat its requests for half a minute."""
    huggingface_hub = pytest.importorskip("huggingface_hub")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "https://no-such-host.invalid")
    download = huggingface_hub.hf_hub_download

    def download_from_the_cache(*args: Any, **options: Any) -> Any:
        assert options.get("local_files_only"), "a request to the hub"
        return download(*args, **options)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download_from_the_cache)
    assert "the hub cannot be reached" in error_of("some/model")
    # A tokenizer in the cache works without its config file, which may not exist on the hub either.
    cache(tmp_path, None)
    assert find_tokenizer("some/model").tokenizer.vocab_size == 258


def test_name_similar_to_a_built_in_one_gets_a_suggestion(offline_cache: Path) -> None:
    assert error_of("gpt-2") == (
        "tokenizer 'gpt-2': neither a path, nor built in, nor in the hub's cache, and the hub cannot be "
        "reached; download it with network access, or give the path of a tokenizer.json; did you mean "
        "gpt2, which is built in?"
    )
    # A name of another family.
    assert error_of("t5-base").endswith("or give the path of a tokenizer.json")


def tekken_json(special_tokens: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Returns a tekken file with all bytes, a few longer tokens, and 22 special tokens before them."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"th", b"the", b" t", b" the", "é".encode()]
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for rank, token in enumerate(tokens)
    ]
    config = {"pattern": TEKKEN, "default_vocab_size": len(tokens) + 22, "default_num_special_tokens": 22}
    file: dict[str, Any] = {"config": config | {"version": "v3"}, "vocab": vocab}
    return file if special_tokens is None else file | {"special_tokens": special_tokens}


def test_tekken_json_is_saved_as_tokenizer_json(tmp_path: Path) -> None:
    folder = tmp_path / "nemo"
    folder.mkdir()
    (folder / "tekken.json").write_text(json.dumps(tekken_json()))
    loaded = find_tokenizer(str(folder))
    assert (loaded.tokenizer.name, loaded.eos_token) == ("nemo", "</s>")
    assert find_tokenizer(str(folder / "tekken.json")).tokenizer.name == "nemo"
    parsed = loaded.tokenizer.encode("the é</s>", special_tokens_in_text="parse")
    assert parsed.tolist() == [22 + 257, 22 + 32, 22 + 260, 2]
    assert loaded.tokenizer.engine == "packtok"
    corpus = tmp_path / "corpus.jsonl"
    texts = ["the the\n é", "12 [I", "\u00e9\u0301 DOn't"]
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    output = tmp_path / "o.pbin"
    packtok.pack(input=corpus, output=output, tokenizer=str(folder))
    wheel = tokenizers.Tokenizer.from_file(f"{output}.tokenizer.json")
    reader = packtok.PbinReader(output)
    ids = [wheel.encode(text, add_special_tokens=False).ids for text in texts]
    assert [reader[i].tolist() for i in range(len(reader))] == [[*ids_of_text, 2] for ids_of_text in ids]


def test_special_tokens_in_texts_for_a_tekken_json_are_text_as_in_its_library(tmp_path: Path) -> None:
    file, corpus = tmp_path / "tekken.json", tmp_path / "c.jsonl"
    file.write_text(json.dumps(tekken_json()))
    corpus.write_text('{"text": "the</s>"}\n')
    tokenizer = Tokenizer.from_file(file)
    as_text, as_token = [22 + 257, *(22 + byte for byte in b"</s>")], [22 + 257, 2]
    by_name = Tokenizer.from_pretrained(file)
    for same in (tokenizer, pickle.loads(pickle.dumps(tokenizer)), by_name):
        assert same.special_tokens_in_text == "text"
        assert same.encode("the</s>").tolist() == as_text
        assert same.encode_batch(["the</s>"])[0].tolist() == as_text
        assert same.count(["the</s>"]).tolist() == [5]
        assert same.encode("the</s>", special_tokens_in_text="parse").tolist() == as_token
        with pytest.raises(DocumentError, match="contains the special token"):
            same.encode("the</s>", special_tokens_in_text="fail")
    output = tmp_path / "o.pbin"
    packtok.pack(input=corpus, output=output, tokenizer=file)
    assert packtok.PbinReader(output)[0].tolist() == [*as_text, 2]
    assert packtok.PbinReader(output).metadata["options"]["special_tokens_in_text"] == "text"
    config = {
        "settings": {"src_path": str(corpus), "dst_path": str(output)},
        "tokenizer": {"config": {"pretrained_model_name_or_path": str(file)}},
    }
    assert packtok.verify_corpus(str(output), config)["compared"] == 1
    # A tokenizer.json does not say that it was a tekken.json.
    converted = Tokenizer.from_file(f"{output}.tokenizer.json")
    assert converted.special_tokens_in_text == "parse"
    assert converted.encode("the</s>").tolist() == as_token
    counted = packtok.count(corpus, [str(file), f"{output}.tokenizer.json"])
    assert counted["total"]["tokens"] == [5, 2]
    packtok.pack(
        input=corpus, output=output, tokenizer=file, existing="replace", special_tokens_in_text="parse"
    )
    # The text ends with the EOD, so no other is added.
    assert packtok.PbinReader(output)[0].tolist() == as_token


def test_invalid_tekken_json_is_rejected(tmp_path: Path) -> None:
    special = [{"rank": 22, "token_str": "<x>", "is_control": True}]
    (tmp_path / "tekken.json").write_text(json.dumps(tekken_json(special)))
    message = error_of(str(tmp_path / "tekken.json"))
    assert message.endswith('not a tekken.json: special token "<x>" has id 22, expected an id below 22')
